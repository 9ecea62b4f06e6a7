"""The command `gradcli diff`: prints derivatives as formulas."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from gradcli import arrays, limits
from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.render import show_json, warning_json, warning_text
from gradcli.errors import ExitStatus, NonHolomorphicError, Span, UnknownNameError, UsageError, did_you_mean
from gradcli.evaluation.diagnose import Warning, unused_parts
from gradcli.formulas import languages
from gradcli.formulas.symbolic import compared_for_equality, derivatives_as_formulas, tests_equality
from gradcli.formulas.writing.documents import Document, Formulas, one_line
from gradcli.io.text_tables import number_text
from gradcli.language.formula_lists import LabelledFormula, formulas_of
from gradcli.language.names import scope
from gradcli.language.suggestions.joined_names import call_of_last_function, function_of_a_letter, product_of_letters
from gradcli.language.syntax import tree
from gradcli.limits import MAX_PRECISION
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Variable, owner_name
from gradcli.type_hints import Annotated, Any

_HELP = """\
Several formulas, as in 'sin(x); x^2' or '[sin(x), x**2]', are differentiated one by one.
A name without a value stands for any number. A number that is given as NAME=VALUE is put in for its
name, unless the derivative is by that name: its value there then stands below the formula. A tensor
gives its name a shape. The formulas are simplified as for real numbers where the functions are
smooth: at a kink or a pole, eval has the conventions, and the formula need not. With --wirtinger, a
name without a value stands for any complex number.

Examples:

  gradcli diff 'log(x**q)' --wrt x

  gradcli diff 'x**3 + a*x' x=2 a=5

  gradcli diff 'a*exp(-x**2/2)' --wrt x --order 2 --to latex

  gradcli diff 'z*abs(z)' --wirtinger

  gradcli diff 'sum((X@w - y)**2)' X='eye(3, 2)' w=[1,2] y=[1,2,3] --wrt w --to python
"""


class DiffOptions(opt.ProgramRun):
    """The options of `gradcli diff`."""

    words: opt.Words = None
    file: opt.File = None
    vars: opt.Vars = None
    input_form: opt.From = None
    wrt: Annotated[
        list[str] | None,
        opt.wrt(
            "Differentiate by these, as in x,q; default: every name it reads.", "Differentiate by these names alone."
        ),
    ] = None
    order: Annotated[int, opt.order("The derivatives of order N.")] = 1
    to: Annotated[
        str,
        opt.Option(
            "--to",
            brief=True,
            metavar="|".join(languages.NAMES),
            help="The language of the formulas.",
        ),
    ] = "text"
    dialect: Annotated[
        str | None,
        opt.Option(
            "--dialect",
            metavar="|".join(languages.DIALECTS),
            help="The database that --to sql is for; default: what most of them have.",
        ),
    ] = None
    simplify: Annotated[
        bool,
        opt.Option(
            "--simplify",
            brief="Simplify further by SymPy.",
            help="Simplify further by SymPy, from the extra gradcli[sympy].",
        ),
    ] = False
    wirtinger: opt.Wirtinger = False
    digits: opt.Digits = None
    max_precision: opt.MaxPrecision = MAX_PRECISION
    json: opt.Json = False


def run(options: DiffOptions, environment: Environment) -> ExitStatus:
    """Differentiate, simplify and print; see `gradcli diff --help`."""
    _check(options)
    with limits.within(options.max_steps, options.max_elements):
        sources = inputs.sources(options, environment, "float64")
        program, bindings = sources.program, sources.bindings()
        _check_brackets(program, bindings)
        wrt = names_to_differentiate(program, bindings, options.wrt)
        formulas = formulas_of(program)
        if len(formulas) > 1 and options.to not in _OF_SEVERAL:
            hint = f"--to {' or '.join(_OF_SEVERAL)} writes several, or give one after the other"
            raise UsageError(f"--to {options.to} is for one formula, and these are {len(formulas)}", hint=hint)
        try:
            found = [_derived(options, sources, formula, wrt) for formula in formulas]
        except NonHolomorphicError as error:
            error.hint = _with_wirtinger(options, error.hint)
            raise
    if options.json:
        show_json(_members(options, program, wrt, found), environment)
    else:
        _show(options, program, found, environment)
    complete = all(each.values is None or each.values.complete for each in found)
    return ExitStatus.SUCCESS if complete else ExitStatus.FAILURE


# The languages that several formulas can be written in: in the others, functions would have the same names.
_OF_SEVERAL = ("text", "latex")


class _Derived(NamedTuple):
    """The derivatives of one formula: what is written, their values at a point, and the warnings. `simplified` says
    whether SymPy could simplify them."""

    label: str
    document: Document
    values: _Values | None
    warnings: Sequence[Warning]
    simplified: bool


def _derived(options: DiffOptions, every: inputs.Sources, formula: LabelledFormula, names: Sequence[str]) -> _Derived:
    program = formula.program
    reads = scope.free_names(program)
    sources = inputs.Sources(program, {n: v for n, v in every.values.items() if n in reads})
    wrt = [name for name in names if name in reads] or names
    bindings = sources.bindings()
    warnings = [
        *unused_parts(program),
        *_constants(program, {*bindings, *wrt}),
        *_names_of_functions(program, {*bindings, *inputs.names_of(options.wrt)}),
        *_products_of_letters(program, bindings, inputs.names_of(options.wrt)),
    ]
    language = languages.find(options.to, options.dialect)
    formulas = derivatives_as_formulas(
        program, bindings, wrt, options.order, language=language, conjugates=True, wirtinger=options.wirtinger
    )
    if options.simplify and formulas.complex_names is not None:
        raise UsageError("--simplify is for formulas of real numbers", hint="leave out --simplify")
    simplified = _by_sympy(formulas) if options.simplify else None
    document = languages.document(options.to, simplified or formulas, options.dialect)
    warnings += [*_nonfinite_warnings(program, formulas), *_equality_warnings(program, formulas)]
    point = {n: bindings[n] for n in wrt if n in bindings and not arrays.shape(bindings[n])}
    read = [owner_name(v.name or "") for v in formulas.value.inputs] if point else []
    missing = [name for name in read if name not in bindings]
    if missing:
        warnings.append(_no_value(program, point, missing[0]))
    values = _values(options, sources, wrt, point, formulas) if point and not missing else None
    if values is not None:
        warnings += values.warnings
    elif options.digits is not None:
        raise UsageError("--digits is for values at a point", hint="give every name a value, as in x=3")
    return _Derived(formula.label, document, values, warnings, simplified is not None)


def _members(
    options: DiffOptions, program: tree.Module, wrt: Sequence[str], found: Sequence[_Derived]
) -> dict[str, Any]:
    """The derivatives as members of a JSON object; with several formulas, those of each."""
    record: dict[str, Any] = {"program": program.source, "wrt": list(wrt), "order": options.order, "to": options.to}
    record |= {} if options.dialect is None else {"dialect": options.dialect}
    each = [
        ({"simplified": one.simplified} if options.simplify else {})
        | one.document.members
        | ({} if one.values is None else {"values": one.values.derivatives})
        for one in found
    ]
    if len(found) == 1:
        record |= each[0]
    else:
        record["formulas"] = [{"formula": one.label, **members} for one, members in zip(found, each)]
    notes = [warning_json(warning, program.source) for one in found for warning in one.warnings]
    return record | ({"warnings": notes} if notes else {})


def _show(options: DiffOptions, program: tree.Module, found: Sequence[_Derived], environment: Environment) -> None:
    """Write the derivatives, below a comment with the formula where there are several."""
    comment = languages.find(options.to).comment
    for one in found:
        if len(found) > 1:
            environment.write(f"{comment} {one_line(one.label)}\n")
        environment.write(one.document.text + "\n")
        if one.values is not None:
            environment.write(_value_comments(comment, one.values))
    for one in found:
        for warning in one.warnings:
            environment.write_error(warning_text(warning, program.source))
        if options.simplify and not one.simplified:
            environment.write_error("warning: SymPy cannot simplify this within its limits of time and memory")


class _Values(NamedTuple):
    """The values at a point: the point, the derivatives by their names, the warnings, and whether all requested digits
    are proved (`complete`)."""

    point: Mapping[str, Any]
    derivatives: Mapping[str, Any]
    warnings: Sequence[Warning]
    complete: bool = True


def _with_wirtinger(options: DiffOptions, hint: str | None) -> str | None:
    """The hint at --wirtinger, with the words of the command line where these are the whole command."""
    if hint is None or not options.words or options.file or options.vars or "-" in options.words:
        return hint
    # Loaded on demand: few command lines fail.
    from shlex import join

    wrt = ["--wrt", ",".join(options.wrt)] if options.wrt else []
    command = join(["gradcli", "diff", *options.words, *wrt, "--wirtinger"])
    return hint.replace("--wirtinger", command, 1)


def _values(
    options: DiffOptions,
    sources: inputs.Sources,
    wrt: Sequence[str],
    point: Mapping[str, Any],
    formulas: Formulas,
) -> _Values:
    from gradcli.evaluation import session

    if options.wirtinger and options.order > 1:
        from gradcli.formulas.complex_variables.wirtinger import numbers_at

        if options.digits is not None:
            raise UsageError("--digits is for Wirtinger's derivatives of order 1", hint="leave out one of them")
        return _Values(point, numbers_at(formulas.derivatives, sources.bindings()), [])

    given = [n for n in wrt if n in sources.values]

    def request() -> session.EvaluationRequest:
        order = options.order if options.order > 1 else None
        return session.EvaluationRequest(
            sources.program, sources.bindings(), given, order=order, wirtinger=options.wirtinger
        )

    complete = True
    if options.digits is None:
        result = session.run(request())
    else:
        from gradcli.proofs import digits

        with digits.computing():
            result, complete = digits.run(request, options.digits, options.max_precision)
            point = digits.texts(lambda: {n: v for n, v in sources.bindings().items() if n in point}, options.digits)
    found = (result.grad if options.order == 1 else result.derivatives) or {}
    derivatives = {key: value for key, value in found.items() if key.count(",") == options.order - 1}
    for name, pair in (result.wirtinger or {}).items():
        derivatives |= {name: pair and pair["by"], f"conj({name})": pair and pair["by_conjugate"]}
    return _Values(point, derivatives, [w for w in result.warnings if w.code != "unused"], complete)


def _value_comments(comment: str, values: _Values) -> str:
    """The values at a point, as comment lines of the output language."""
    where = ", ".join(f"{name}={number_text(value)}" for name, value in values.point.items())
    found = values.derivatives
    lines = [f"{key}: " * (len(found) > 1) + number_text(value) for key, value in found.items()]
    return "".join(f"{comment} {line} at {where}\n" for text in lines for line in text.splitlines())


def _no_value(program: tree.Module, point: Collection[str], missing: str) -> Warning:
    """The warning that the given values are unused because another name has none."""
    span = scope.free_names(program)[missing].span
    names = " and ".join(f"'{name}'" for name in point)
    return Warning("point", "parse", missing, span, f"the value of {names} is not used: '{missing}' has none")


def _by_sympy(formulas: Formulas) -> Formulas | None:
    from gradcli.formulas import sympy_simplification

    return sympy_simplification.simplified(formulas)


def _check(options: DiffOptions) -> None:
    if options.order < 1:
        raise UsageError("--order is 1 or more", hint="--order 2 is the second derivative")
    if options.to not in languages.NAMES:
        meant = {
            "tex": "latex",
            "numpy": "python",
            "py": "python",
            "c++": "c",
            "js": "javascript",
            "octave": "matlab",
            "xlsx": "excel",
        }.get(options.to)
        hint = (
            f"did you mean '{meant}'?"
            if meant
            else did_you_mean(options.to, languages.NAMES, f"--to is one of {', '.join(languages.NAMES)}")
        )
        raise UsageError(f"there is no language {options.to!r} to write formulas in", hint=hint)
    if options.dialect is not None and options.to != "sql":
        raise UsageError("--dialect is for --to sql", hint=f"gradcli diff … --to sql --dialect {options.dialect}")
    if options.dialect not in (None, *languages.DIALECTS):
        known = ", ".join(languages.DIALECTS)
        raise UsageError(
            f"there is no dialect {options.dialect!r} of SQL",
            hint=did_you_mean(str(options.dialect), languages.DIALECTS, f"--dialect is one of {known}"),
        )
    inputs.check_digits(options)


def names_to_differentiate(program: tree.Module, bound: Collection[str], wrt: Sequence[str] | None) -> Sequence[str]:
    """The names to differentiate by: those of --wrt, or every name that the program reads except constants."""
    asked = inputs.names_of(wrt)
    constants = scope.CONSTANTS.keys() - {*bound, *asked}
    reads = {n: r for n, r in scope.free_names(program).items() if n not in constants}
    names = asked or [n for n, r in reads.items() if not r.maybe_assigned] or [*reads]
    if not names:
        example = "gradcli diff 'log(x**q)' --wrt x"
        raise UsageError(
            "the program reads no names to differentiate by", hint=call_of_last_function(program) or example
        )
    for name in names:
        if name not in reads:
            products = {n: p for n in reads if n not in bound and (p := product_of_letters(n, name)) is not None}
            joined = next((f"'{n}' is one name: write {p}" for n, p in products.items()), None)
            hint = joined or did_you_mean(name, reads, f"it reads {', '.join(reads)}")
            raise UnknownNameError(f"the program does not read '{name}', which --wrt asks for", hint=hint)
    return names


def _nonfinite_warnings(program: tree.Module, formulas: Formulas) -> Iterator[Warning]:
    """Warnings for derivatives that contain an infinity or nan which the program does not name."""
    if any(isinstance(node, tree.Name) and node.id in ("inf", "nan") for node in tree.all_nodes(program)):
        return
    for by, derivative in formulas.derivatives.items():
        atoms = [*derivative.outputs, *(a for e in derivative.equations for a in e.inputs)]
        plain = [a for a in atoms if not isinstance(a, (Variable, complex)) and not arrays.shape(a)]
        numbers = [*map(float, plain)]
        found = next((n for n in numbers if not math.isfinite(n)), None)
        if found is not None:
            what = "infinite" if math.isinf(found) else "nan"
            message = (
                f"the derivative by {by.replace(',', ', ')} is written with a number that is {what}, as it is in floats"
            )
            yield Warning("nonfinite", "parse", "program", program.body[-1].span, message)


def _equality_warnings(program: tree.Module, formulas: Formulas) -> Iterator[Warning]:
    """The warning that a derivative is written with a test for equality of what it is taken by."""
    place = compared_for_equality(program)
    if place is None:
        return
    for by, derivative in formulas.derivatives.items():
        for name in dict.fromkeys(map(owner_name, by.split(","))):
            if tests_equality(derivative, name):
                message = (
                    f"where numbers are equal, the derivative by {by.replace(',', ', ')} is written as that of one branch "
                    "alone, which the value may not have: gradcli eval has that of the value"
                )
                yield Warning("nonsmooth", "parse", "equal", place.span, message)
                return


def _constants(program: tree.Module, named: Collection[str]) -> Iterator[Warning]:
    """The warning that the name `e` is read as Euler's number."""
    read = scope.free_names(program).get("e")
    if read is not None and "e" not in named:
        message = "'e' is read as Euler's number; --wrt e differentiates by it"
        yield Warning("constant", "parse", "e", read.span, message)


# A function with its argument in square brackets, as in Mathematica.
_IN_BRACKETS = re.compile(r"(?<![\w.])([A-Z]\w*)(?=\[[^\]]*[A-Za-z])")


def _check_brackets(program: tree.Module, bound: Collection[str]) -> None:
    """Raise UnknownNameError for `Sin[x]`, which would be an index into a tensor without a value."""
    reads = scope.free_names(program)
    for found in _IN_BRACKETS.finditer(program.source):
        if found[1] not in reads or found[1] in bound:
            continue
        # Imported here because only incorrect programs need it.
        from gradcli.language.suggestions.unknown_names import hint_for_name

        span = Span(*found.span())
        if (hint := hint_for_name(found[1], program.source, span)) is not None:
            raise UnknownNameError(f"unknown name '{found[1]}'", hint=hint, span=span, source=program.source)


# A derivative in Leibniz's notation, dy/dx.
_LEIBNIZ = re.compile(r"(?<![\w.])([d∂]\w+)\s*/\s*([d∂]\w+)(?!\w)")


def _names_of_functions(program: tree.Module, bound: Collection[str]) -> Iterator[Warning]:
    """Warnings for names that were probably meant as a function of a name, such as `sinx`, or as a derivative dy/dx."""
    reads = scope.free_names(program)
    for quotient in _LEIBNIZ.finditer(program.source):
        if quotient[1] in reads and quotient[2] in reads and not {quotient[1], quotient[2]} & {*bound}:
            message = f"'{quotient[0]}' is the quotient of two names: write the formula that is to be differentiated"
            yield Warning("name", "parse", quotient[1], Span(*quotient.span()), message)
    for name, read in reads.items():
        call = function_of_a_letter(name, reads) if name not in bound else None
        if call is not None:
            yield Warning("name", "parse", name, read.span, f"'{name}' is one name: a function is written {call}")


def _products_of_letters(program: tree.Module, bound: Collection[str], wrt: Sequence[str]) -> Iterator[Warning]:
    """Warnings for names such as `kx` beside --wrt x, which may have been meant as products."""
    for name, read in scope.free_names(program).items():
        products = [(by, product_of_letters(name, by)) for by in wrt if name not in bound and name not in wrt]
        for by, product in products:
            if product is not None:
                message = f"'{name}' is one name, which does not depend on '{by}': the product is written {product}"
                yield Warning("name", "parse", name, read.span, message)


COMMAND = Command(DiffOptions, run, _HELP)
