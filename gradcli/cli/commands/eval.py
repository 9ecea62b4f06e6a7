"""The command `gradcli eval`: prints the value and derivatives of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gradcli import arrays, timing
from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.evaluation_report import evaluation_tables, sparse_matrices
from gradcli.cli.rendering.render import opening, show, show_json, warning_json, warning_text
from gradcli.errors import ExitStatus, SeveralTensorsError, UsageError, position
from gradcli.evaluation import session
from gradcli.io import output
from gradcli.io.text_tables import flat, number_text, rounded
from gradcli.language.stable.stable_expressions import RewrittenExpression
from gradcli.limits import MAX_PRECISION
from gradcli.type_hints import Annotated, Any

# The number of digits that a hint proposes for --digits; about those of a float64.
_SOME_DIGITS = 15
# The largest number of digits of a float64 that can be required with --require-digits.
_MOST_DIGITS = 16

_HELP = """\
Quoting the program, '…', keeps the shell from reading * ( ) $ and ! in it.

Examples:

  gradcli eval 'log(x**q)' x=5 q=3

  gradcli eval 'sum((X@w - y)**2)' X=@data.npz:X y=@data.npz:y w=[0,0] --wrt w --json

  gradcli eval 'sin(x)*exp(x)' x=1 --order 4

  gradcli eval '[x*y, x + y]' x=2 y=3 --jacobian

  gradcli eval 'sum(log(x**q)*sin(x))' x=@x.npy q=3 --backend torch --device cuda

  gradcli eval 'x*exp(-x)' x=0.5..2 --enclose
"""


class EvalOptions(opt.ProgramRun):
    """The options of `gradcli eval`."""

    words: opt.Words = None
    file: opt.File = None
    vars: opt.Vars = None
    input_form: opt.From = None
    wrt: opt.Wrt = None
    const: opt.Const = None
    dtype: opt.Dtype = "float64"
    backend: opt.Backend = "numpy"
    device: opt.Device = None
    digits: opt.Digits = None
    max_precision: opt.MaxPrecision = MAX_PRECISION
    enclose: Annotated[
        bool,
        opt.Option(
            "--enclose",
            brief="Bounds over ranges: x=0.9..1.1.",
            help="Inputs may be intervals, x=0.9..1.1 or x=1±0.1: bounds of the value and of each derivative over all of "
            "them, which are proved.",
        ),
    ] = False
    json: opt.Json = False
    order: Annotated[int | None, opt.order("All derivatives up to order N.")] = None
    sparse: Annotated[
        bool, opt.Option("--sparse", help="The derivatives of order 2 as coordinates: those that may differ from 0.")
    ] = False
    jacobian: Annotated[
        bool,
        opt.Option(
            "--jacobian",
            brief="By element, where the value is a vector or matrix.",
            help="The derivative of each element of the value by each name.",
        ),
    ] = False
    grad_output: opt.GradOutput = None
    wirtinger: opt.Wirtinger = False
    retain: Annotated[
        list[str] | None, opt.Option("--retain", metavar="NAMES", help="The derivatives by these computed names too.")
    ] = None
    nodes: Annotated[bool, opt.Option("--nodes", help="A row for every named value and its place in the graph.")] = (
        False
    )
    save: Annotated[
        str | None,
        opt.Option(
            "--save",
            short="-o",
            group=opt.OUTPUT,
            brief="Write the arrays to a file.",
            metavar="PATH.npz",
            help="Write the arrays in full precision.",
        ),
    ] = None
    no_grad: opt.NoGrad = False
    no_rewrite: opt.NoRewrite = False
    executor: Annotated[
        str | None,
        opt.Option(
            "--executor",
            group=opt.COMPUTING,
            metavar="|".join(session.EXECUTORS),
            help="How to compute value and gradients: operation by operation, or as one recorded program, which the "
            "backend compiles; default: compiled for large arrays.",
        ),
    ] = None
    timing: Annotated[
        bool,
        opt.Option(
            "--timing",
            group=opt.OUTPUT,
            help="The seconds spent on import (of array libraries), parse (of the program), read (the values of its names), "
            "record, compile, transfer (to the device and back) and run; 0 for what did not happen.",
        ),
    ] = False
    fail_on_nonfinite: Annotated[
        bool, opt.Option("--fail-on-nonfinite", help="Exit with status 1 where a result is nan or infinite.")
    ] = False
    fail_on_inaccurate: Annotated[
        bool,
        opt.Option(
            "--fail-on-inaccurate", help="Exit with status 1 where a warning says that a result may be inaccurate."
        ),
    ] = False
    certify: Annotated[
        bool, opt.Option("--certify", help="How many digits of each number are right, proved by ball arithmetic.")
    ] = False
    require_digits: Annotated[
        int | None,
        opt.Option(
            "--require-digits", metavar="N", help="Exit with status 1 where fewer digits of a number are certified."
        ),
    ] = None
    precision: opt.Precision = None
    polar: opt.Polar = False
    bare: opt.Bare = False
    quiet: opt.Quiet = False


def run(options: EvalOptions, environment: Environment) -> ExitStatus:
    """Evaluate, differentiate and print; see `gradcli eval --help`."""
    _check(options)
    if options.enclose:
        # Imported here because few commands need it.
        from gradcli.cli.commands import enclose

        return enclose.run(options, environment)
    measured = timing.measured(options.timing)
    with measured as stopwatch, inputs.computing(options) as namespace, arrays.using_dtype(options.dtype):
        if namespace is not None:
            stopwatch.synchronise = namespace.synchronise
        with timing.phase("read"):
            sources = inputs.sources(options, environment, options.dtype)
            request = partial(_request, options, sources, inputs.leaves(sources.values, options))
        try:
            result, complete = _result(options, request)
        except SeveralTensorsError as error:
            return _several(options, error, request, namespace, environment)
        seconds = stopwatch.seconds if options.timing else None
        if options.save is not None:
            output.save_npz(options.save, _arrays(result), environment.save)
        text = sources.program.source
        if options.json:
            show_json(_json(options, text, result, namespace, seconds), environment)
        else:
            if options.bare:
                with rounded(None, polar=options.polar):
                    environment.write("".join(f"{number_text(number)}\n" for number in flat(result.value)))
            else:
                with rounded(options.precision, polar=options.polar):
                    tables = evaluation_tables(result, seconds)
                show(tables, environment)
            if not options.quiet:
                for warning in result.warnings:
                    environment.write_error(warning_text(warning, text))
    failed = not complete or _fails(options, result)
    return ExitStatus.FAILURE if failed else ExitStatus.SUCCESS


def _fails(options: EvalOptions, result: session.Result) -> bool:
    """Return whether a result is one that the options refuse."""
    inaccurate = any(warning.code == "inaccurate" for warning in result.warnings)
    return (options.fail_on_nonfinite and not result.finite) or (options.fail_on_inaccurate and inaccurate)


def _result(options: EvalOptions, request: Callable[[], session.EvaluationRequest]) -> tuple[session.Result, bool]:
    """The result, and whether every number has the requested digits."""
    if options.digits is None:
        with timing.phase("read"):
            asked = request()
        with timing.phase("run"):
            found = _in_floats(options, asked)
            _hint_at_digits(options, request, found[0])
            return found
    from gradcli.proofs import digits

    with timing.phase("run"):
        return digits.run(request, options.digits, options.max_precision)


def _hint_at_digits(
    options: EvalOptions, request: Callable[[], session.EvaluationRequest], result: session.Result
) -> None:
    """Add to the warning of a nonfinite result that --digits gives finite digits, where it does."""
    if result.finite or any(_options_excluding_digits(options).values()):
        return
    # Imported here because few commands need it.
    from gradcli.proofs.nonfinite_results import has_digits

    for i, warning in enumerate(result.warnings):
        # A result without infinities, such as 0/0, is not out of range.
        told = "--digits" in warning.message
        if warning.code == "nonfinite" and "inf" in warning.message and not told and has_digits(request):
            message = f"{warning.message}; --digits {_SOME_DIGITS} computes beyond the range of floats"
            result.warnings[i] = warning._replace(message=message)


def _several(
    options: EvalOptions,
    error: SeveralTensorsError,
    request: Callable[[], session.EvaluationRequest],
    namespace: arrays.Namespace | None,
    environment: Environment,
) -> ExitStatus:
    """Print each of several tensors as JSON. Raises `error` unless they are the value of the program and JSON is
    requested."""
    if not error.of_program:
        raise error
    if not options.json or options.save is not None:
        error.hint = f"{error.hint}; --json without --save lists them"
        raise error
    # Imported here because few commands need it.
    from gradcli.evaluation.tensor_tuples import parts

    found = [_result(options, part) for part in parts(request, error)]
    text = request().program.source
    records = [_json(options, text, result, namespace, None) for result, _ in found]
    each = {key: [record.get(key) for record in records] for key in dict.fromkeys(key for r in records for key in r)}
    common = {key: values[0] for key, values in each.items() if key in _OF_THE_RUN}
    show_json(common | {"parts": [*error.names]} | {k: v for k, v in each.items() if k not in common}, environment)
    failed = any(not complete or _fails(options, result) for result, complete in found)
    return ExitStatus.FAILURE if failed else ExitStatus.SUCCESS


# The members that are the same for each of several tensors.
_OF_THE_RUN = frozenset({"schema", "program", "backend", "device", "dtype", "digits"})


def _in_floats(options: EvalOptions, request: session.EvaluationRequest) -> tuple[session.Result, bool]:
    result = session.run(request)
    if not options.certify:
        return result, True
    # Imported here because few commands need it.
    from gradcli.proofs.certify import certify

    return result, certify(request, result, options.max_precision) >= (options.require_digits or 0)


def _check(options: EvalOptions) -> None:
    if options.dtype not in arrays.DTYPES:
        raise UsageError(f"there is no dtype {options.dtype!r}", hint=f"--dtype {' or '.join(arrays.DTYPES)}")
    derived = {
        "--order": options.order is not None,
        "--jacobian": options.jacobian,
        "--grad-output": options.grad_output is not None,
        "--retain": options.retain is not None,
        "--wirtinger": options.wirtinger,
    }
    asked = [name for name, given in derived.items() if given]
    alone = "--no-grad" if options.no_grad else "--bare"
    if (options.no_grad or options.bare) and asked:
        raise UsageError(f"{alone} and {asked[0]} contradict each other", hint="leave out one of them")
    _check_bare(options)
    if options.order is not None and options.order < 1:
        raise UsageError("--order is 1 or more", hint="--no-grad gives the value alone")
    _check_complex(options)
    if options.sparse and options.order != 2:
        raise UsageError("--sparse is for derivatives of order 2", hint="add --order 2")
    _check_executor(options)
    inputs.check_digits(options, [name for name, given in _options_excluding_digits(options).items() if given])
    _check_certified(options)
    if options.save is not None:
        output.check_npz_path(options.save)


def _check_complex(options: EvalOptions) -> None:
    if options.wirtinger and options.grad_output is not None:
        raise UsageError("--wirtinger is for derivatives without --grad-output", hint="leave out one of them")
    if options.wirtinger and options.sparse:
        raise UsageError("--wirtinger is for derivatives that are not sparse", hint="leave out --sparse")
    if options.polar and (options.json or options.digits is not None or options.enclose):
        other = "--json" if options.json else "--digits" if options.digits is not None else "--enclose"
        raise UsageError(f"--polar is for tables of complex numbers, and not for {other}", hint=f"leave out {other}")


def _check_bare(options: EvalOptions) -> None:
    others = {
        "--json": options.json,
        "--nodes": options.nodes,
        "--certify": options.certify,
        "--timing": options.timing,
        "--enclose": options.enclose,
    }
    given = [name for name, asked in others.items() if asked]
    if options.bare and given:
        raise UsageError(f"--bare prints the value alone, without {given[0]}", hint="leave out one of them")
    if options.precision is not None and (options.json or options.digits is not None or options.enclose):
        other = "--json" if options.json else "--digits" if options.digits is not None else "--enclose"
        raise UsageError(
            f"--precision rounds the numbers of a table, and {other} has all digits", hint=f"leave out {other}"
        )


def _check_executor(options: EvalOptions) -> None:
    if options.executor not in (None, *session.EXECUTORS):
        raise UsageError(
            f"there is no executor {options.executor!r}", hint=f"--executor {' or '.join(session.EXECUTORS)}"
        )
    further = {
        "--order": options.order is not None,
        "--jacobian": options.jacobian,
        "--retain": options.retain is not None,
        "--nodes": options.nodes,
        "--wirtinger": options.wirtinger,
    }
    asked = [name for name, given in further.items() if given]
    if options.executor == "compiled" and asked:
        raise UsageError(f"{asked[0]} is computed eagerly alone", hint="leave out --executor compiled")


def _options_excluding_digits(options: EvalOptions) -> dict[str, bool]:
    """The options that cannot be combined with --digits, and whether each is given."""
    return {
        "--dtype": options.dtype != "float64",
        "--backend": options.backend != "numpy",
        "--device": options.device not in (None, "cpu"),
        "--executor": options.executor == "compiled",
        "--sparse": options.sparse,
        "--save": options.save is not None,
        "--certify": options.certify,
    }


def _check_certified(options: EvalOptions) -> None:
    if options.certify and options.sparse:
        raise UsageError("--certify is for derivatives that are not sparse", hint="leave out --sparse")
    if options.require_digits is None:
        return
    if not options.certify:
        raise UsageError("--require-digits asks for digits that are certified", hint="add --certify")
    if not 1 <= options.require_digits <= _MOST_DIGITS:
        raise UsageError(f"--require-digits is between 1 and {_MOST_DIGITS}", hint="a float has 15 or 16 digits")


def _request(options: EvalOptions, sources: inputs.Sources, wrt: Sequence[str]) -> session.EvaluationRequest:
    return session.EvaluationRequest(
        program=sources.program,
        bindings=sources.bindings(),
        wrt=wrt,
        gradient=not (options.no_grad or options.bare),
        grad_output=inputs.cotangent(options.grad_output, options.dtype),
        jacobian=options.jacobian,
        # The Jacobian has the derivatives of order 1.
        order=None if options.jacobian and options.order == 1 else options.order,
        sparse=options.sparse,
        retain=inputs.names_of(options.retain),
        nodes=options.nodes,
        rewrite=not options.no_rewrite,
        executor=options.executor,
        wirtinger=options.wirtinger,
    )


def _arrays(result: session.Result) -> dict[str, Any]:
    """The arrays of a result by their names in the .npz file."""
    named = {"value": result.value}
    parts = {
        "grad": result.grad,
        "derivatives": result.derivatives,
        "jacobian": result.jacobian,
        "retained": result.retained,
    }
    for part, members in parts.items():
        named |= {f"{part}/{name}": array for name, array in (members or {}).items() if array is not None}
    for name, pair in (result.wirtinger or {}).items():
        named |= {f"wirtinger/{name}/{part}": array for part, array in (pair or {}).items()}
    for name, matrix in sparse_matrices(result):
        named |= {f"derivatives/{name}/{field}": array for field, array in matrix._asdict().items()}
    return named


def _json(
    options: EvalOptions,
    text: str,
    result: session.Result,
    namespace: arrays.Namespace | None,
    seconds: Mapping[str, float] | None,
) -> dict[str, Any]:
    record = opening(text, namespace)
    if options.digits is None:
        record |= {"dtype": _dtype(result.value, options.dtype)}
    else:
        record |= {"dtype": "arb", "digits": options.digits}
    # Values with proved digits are strings, without a shape.
    record |= {"shape": list(getattr(result.value, "shape", ())), "value": result.value}
    parts = {
        "grad": result.grad,
        "derivatives": result.derivatives if result.coordinates is None else _coordinates_json(result),
        "jacobian": result.jacobian,
        "wirtinger": result.wirtinger,
        "retained": result.retained,
        "nodes": result.nodes,
        "rewrites": None if result.nodes is None else [_rewrite_json(r, text) for r in result.rewritten],
        "certified": result.certified,
        "warnings": [warning_json(w, text) for w in result.warnings] or None,
        "timing": seconds,
    }
    return record | {key: part for key, part in parts.items() if part is not None}


def _dtype(value: Any, dtype: str) -> str:
    """The dtype of a value: the one in use, or the complex one of the same precision."""
    return arrays.complex_dtype(dtype) if value is not None and arrays.is_complex(value) else dtype


def _coordinates_json(result: session.Result) -> dict[str, Any]:
    return dict.fromkeys(result.coordinates or ()) | {
        name: matrix._asdict() for name, matrix in sparse_matrices(result)
    }


def _rewrite_json(rewritten: RewrittenExpression, source: str) -> dict[str, Any]:
    place = position(source, rewritten.span)
    return {
        "from": rewritten.rule.pattern,
        "to": rewritten.rule.stable,
        "line": place.line,
        "column": place.column,
    }


COMMAND = Command(EvalOptions, run, _HELP)
