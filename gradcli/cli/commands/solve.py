"""The command `gradcli solve`: finds roots of equations and their derivatives."""

from __future__ import annotations

import re
from contextlib import suppress

from gradcli import arrays, limits
from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs, map_arguments
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering import model_report
from gradcli.errors import BindingError, ExitStatus, GradcliError, Span
from gradcli.evaluation.constant_expressions import constant
from gradcli.io import variables
from gradcli.limits import MAX_PRECISION
from gradcli.models.equations import roots
from gradcli.models.equations.roots import START, ProofOptions, RootProblem, bracket_and_box, question_of, solve_problem
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import Annotated, Any

# The most steps and array elements of a search for a complex root that a hint proposes.
_TRIAL = (200_000, 2_000_000)
_EXAMPLE = "gradcli solve 'x**3 + a*x = b' x~1 a=2 b=5"
_HELP = """\
Equations are left = right, left == right, or expressions that are to be 0, with ; between them. The
unknowns are the names with a start, x~1 or w~[1,2], those of --for, or the one with a bracket, x=0..5,
in which a root is certain where the sign changes. Another NAME = … is a definition. A single unknown
without a start is looked for anywhere.

Examples:

  gradcli solve 'x**3 = 2'

  gradcli solve 'x**3 + a*x = b' x~1 a=2 b=5

  gradcli solve 'x + y = s; x*y = p' x~1 y~2 s=5 p=6 --order 2

  gradcli solve 'tan(x) = x' x=0.1..20 --all

  gradcli solve 'x**2 + y**2 = 4; y = x**2 - 1' x=-3..3 y=-3..3 --all --prove
"""


class SolveOptions(opt.ProgramRun):
    """The options of `gradcli solve`."""

    words: Annotated[
        list[str] | None,
        opt.Argument(
            metavar="EQUATIONS [NAME~START|NAME=LOW..HIGH|NAME=VALUE]...",
            help="The equations, or - for standard input; then the starts or the bracket of unknowns, and the values of "
            "all other names.",
        ),
    ] = None
    file: Annotated[
        str | None,
        opt.Option("--file", short="-f", group=opt.INPUT, metavar="PATH", help="Read the equations from a file."),
    ] = None
    vars: opt.Vars = None
    input_form: opt.From = None
    unknowns: Annotated[
        list[str] | None,
        opt.Option(
            "--for",
            brief="Solve for these names.",
            metavar="NAMES",
            help="Solve for these, as in x,y, from their values or from 1.",
        ),
    ] = None
    all: Annotated[
        bool,
        opt.Option(
            "--all",
            brief="Every change of sign in the range of x.",
            help="Every change of sign in the range of the unknown, x=0..20.",
        ),
    ] = False
    prove: Annotated[
        bool,
        opt.Option(
            "--prove",
            brief="Prove that all roots in the ranges are listed.",
            help="With --all, prove that all roots in the ranges of the unknowns are listed, or list the boxes that are left.",
        ),
    ] = False
    wrt: opt.Wrt = None
    const: opt.Const = None
    order: Annotated[
        int,
        opt.order(
            "The derivatives of the root up to order N, 0, 1 or 2.", brief="The derivatives of the root up to order N."
        ),
    ] = 1
    seed: Annotated[
        int, opt.Option("--seed", metavar="S", min=0, help="Of further starts, where the first leads nowhere.")
    ] = 0
    digits: opt.Digits = None
    max_precision: opt.MaxPrecision = MAX_PRECISION
    json: opt.Json = False
    quiet: opt.Quiet = False


def run(options: SolveOptions, environment: Environment) -> ExitStatus:
    """Solve, differentiate and print; see `gradcli solve --help`."""
    inputs.check_digits(options)
    with limits.within(options.max_steps, options.max_elements):
        question = _question(options, environment)
        with model_report.progress_line(environment, options.quiet) as watch:
            found = solve_problem(question, watch)
    if options.json:
        asked: dict[str, Any] = {"program": question.equations.program.source}
        model_report.report(
            asked if options.digits is None else {**asked, "digits": options.digits}, found, environment
        )
    else:
        model_report.show_tables(
            [*roots.root_tables(found, listed=question.all, told=question.all or question.everywhere)], environment
        )
        if not found.converged:
            environment.write_error(f"error: {found.message}")
            if (name := _complex_unknown(question)) is not None:
                environment.write_error(f"hint: {name}~1j finds a complex root")
    return ExitStatus.SUCCESS if found.converged else ExitStatus.FAILURE


def _complex_unknown(question: RootProblem) -> str | None:
    """The only unknown of an equation of which a search from 1j finds a complex root; else None."""
    if len(question.starts) != 1 or question.all or question.box is not None or question.proof is not None:
        return None
    ((name, start),) = question.starts.items()
    if arrays.shape(start) != () or arrays.is_complex(start):
        return None
    with suppress(GradcliError), limits.within(*_TRIAL):
        found = solve_problem(question._replace(starts={name: 1j}, range=None, everywhere=False))
        if found.converged and found.roots[0].point[name].imag:
            return name
    return None


class _Unknowns(NamedTuple):
    """The starts of unknowns, the brackets of them, and the words that bind other names."""

    starts: dict[str, Any]
    ranges: dict[str, tuple[float, float]]
    words: list[str]


def _question(options: SolveOptions, environment: Environment) -> RootProblem:
    text, words = map_arguments.program_of(options, environment, _EXAMPLE)
    unknowns = _unknowns(words)
    bindings = inputs.bindings_of(unknowns.words, "float64", options, environment)
    for name, value in inputs.values_of_vars_option(options, environment, "float64", bindings).items():
        if name not in unknowns.starts:
            bindings[name] = value
    names = inputs.names_mentioned(text)
    explicit = {*unknowns.starts, *unknowns.ranges, *inputs.names_of(options.unknowns)}
    # A single name without a value is the unknown, also where a notebook has one of this name.
    if explicit or len(names.keys() - bindings.keys()) > 1:
        bindings |= inputs.values_of_caller(environment, names, {*bindings, *explicit}, "float64")
    values = {name: value() for name, value in bindings.items()}
    starts = dict(unknowns.starts)
    for name in inputs.names_of(options.unknowns):
        starts.setdefault(name, values.pop(name, START))
    twice = next((name for name in starts if name in values), None)
    if twice is not None:
        raise BindingError(f"'{twice}' is given twice, as an unknown and with a value", hint="leave one of them out")
    by = inputs.leaves(values, options)
    proof = None
    if options.digits is not None:
        exactly = {name: bindings[name] for name in values}
        proof = ProofOptions(
            options.digits, options.max_precision, lambda: {name: value() for name, value in exactly.items()}
        )
    return question_of(
        text, starts, values, by, options.order, *bracket_and_box(unknowns.ranges, options.prove), options.all,
        options.seed, proof,
    )  # fmt: skip


_START = re.compile(r"\s*([^\W\d]\w*)\s*~")
_RANGE = re.compile(r"\s*[^\W\d]\w*\s*=\s*[^@\s].*\.\.")


def _unknowns(words: list[str]) -> _Unknowns:
    """Separate the words of unknowns from the others. Raises BindingError for an unknown that is given twice."""
    starts: dict[str, Any] = {}
    ranges: dict[str, tuple[float, float]] = {}
    others: list[str] = []
    for word in words:
        start, is_range = _START.match(word), _RANGE.match(word) is not None
        if start is None and not is_range:
            others.append(word)
            continue
        # A start NAME~VALUE is split as NAME=VALUE.
        name, text, offset = variables.split_binding(word.replace("~", "=", 1) if start else word)
        if name in starts:
            raise BindingError(
                f"'{name}' is given twice",
                hint="give each unknown one start or bracket",
                span=Span(0, len(word)),
                source=word,
            )
        if start:
            starts[name] = constant(text, "float64", word, offset)
        else:
            ranges[name] = _ends(text, word, offset)
            starts[name] = ranges[name][0]
    return _Unknowns(starts, ranges, others)


def _ends(text: str, word: str, offset: int) -> tuple[float, float]:
    low, _, high = text.partition("..")
    if high.startswith("."):
        # With three dots, the second number could be 5 or .5.
        hint = f"write {word[:offset]}{low}..{high[1:]} or {word[:offset]}{low}..0{high}"
        raise BindingError("a bracket has two dots", hint=hint, span=Span(offset, len(word)), source=word)
    if not low.strip() or not high.strip():
        raise BindingError("a bracket has two ends", hint="write x=0..5", span=Span(offset, len(word)), source=word)
    found = [constant(part, "float64", word, at) for part, at in ((low, offset), (high, offset + len(low) + 2))]
    if any(getattr(end, "shape", ()) or arrays.is_complex(end) for end in found):
        raise BindingError(
            "an end of a bracket is a real number", hint="write x=0..5", span=Span(offset, len(word)), source=word
        )
    return float(found[0]), float(found[1])


COMMAND = Command(SolveOptions, run, _HELP)
