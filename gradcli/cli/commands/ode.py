"""The command `gradcli ode`: solves differential equations, and differentiates their solutions."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from gradcli import limits
from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs, map_arguments
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering import model_report
from gradcli.errors import BindingError, ExitStatus, ProgramSyntaxError, UsageError
from gradcli.evaluation.constant_expressions import constant
from gradcli.io import json_text, variables
from gradcli.type_hints import TYPE_CHECKING, Annotated, Any

_EXAMPLE = "gradcli ode 'dx/dt = -k*x' x=1 k=0.5 t=0..10"
_HELP = """\
Equations are dx/dt = …, x' = …, d2x/dt2 = … or x'' = …, with definitions between them, and
what happens at known times, at t = 12, 24: x += dose. States start at NAME=VALUE, velocities
at x'=VALUE, at the first time. The table is on standard output, without --output.

Examples:

  gradcli ode 'dx/dt = -k*x' x=1 k=0.5 t=0..10 --plot decay.svg

  gradcli ode 'dx/dt = a*x - b*x*y; dy/dt = d*x*y - c*y' x=10 y=5 a=1.1 b=0.4 c=0.4 d=0.1 t=0..20

  gradcli ode "x'' = -x - c*x'" x=1 "x'=0" c=0.1 t=0..10 --points 11 --wrt c

  gradcli ode "y'' = -9.81" y=20 "y'=0" t=0..10 --stop 'y = 0' --wrt y

  gradcli ode 'dx/dt = -k*x; at t = 12, 24: x += dose' x=0 k=0.2 dose=5 t=0..36 --plot doses.svg
"""
_FORMATS = ("csv", "tsv", "jsonl")
_APOSTROPHES = "['’′]"
# A state or a velocity at the start: x(0)=1, x'(0)=1, x'=1.
_START = re.compile(rf"(\s*[^\W\d]\w*)({_APOSTROPHES}*)(\(\s*[-+]?(?:\d+\.?\d*|\.\d+)\s*\))?(\s*=)")

if TYPE_CHECKING:
    from gradcli.language.differential_equations import DifferentialEquations
    from gradcli.models.ode.initial_values import InitialValueRequest


class OdeOptions(opt.ProgramRun):
    """The options of `gradcli ode`."""

    words: Annotated[
        list[str] | None,
        opt.Argument(
            metavar="EQUATIONS t=LOW..HIGH [NAME=VALUE]...",
            help="The equations, or - for standard input; the times, t=0..20, t=[0,1,5] or t=@file.csv:time; then the "
            "starts of states, and the values of all other names.",
        ),
    ] = None
    file: Annotated[
        str | None,
        opt.Option(
            "--file",
            short="-f",
            brief=True,
            metavar="PATH",
            help="Read the equations from a file.",
        ),
    ] = None
    vars: opt.Vars = None
    input_form: opt.From = None
    points: Annotated[
        int,
        opt.Option(
            "--points",
            brief="N times in the range.",
            metavar="N",
            min=2,
            help="N times between the ends of a range.",
        ),
    ] = 101
    wrt: Annotated[
        list[str] | None,
        opt.wrt(
            "Columns of the derivatives by these, as in a,x; default: none.", "Columns of the derivatives by these."
        ),
    ] = None
    order: Annotated[int, opt.order("The derivatives up to order N, 1 or 2.", min=1)] = 1
    show: Annotated[
        list[str] | None,
        opt.Option("--show", metavar="EXPRESSION", help="A column of an expression of the states."),
    ] = None
    stop: Annotated[
        str | None,
        opt.Option(
            "--stop",
            brief="End where this is met first.",
            metavar="EQUATION",
            help="End where this is met first, and tell when, as in 'y = 0'.",
        ),
    ] = None
    method: Annotated[
        str,
        opt.Option(
            "--method",
            metavar="auto|taylor|radau",
            help="Taylor series for smooth systems, Radau's method for stiff ones; default: what suits the system.",
        ),
    ] = "auto"
    digits: opt.Digits = None
    max_precision: opt.MaxPrecision = limits.MAX_PRECISION
    output: Annotated[
        str | None,
        opt.output_path("Write the table to a file."),
    ] = None
    to: Annotated[
        str | None,
        opt.Option("--to", metavar="csv|tsv|jsonl", help="The format of the table on standard output."),
    ] = None
    plot: Annotated[
        str | None,
        opt.Option(
            "--plot",
            group=opt.OUTPUT,
            brief=True,
            metavar="PATH",
            help="A picture of the states, .png, .svg or .pdf.",
        ),
    ] = None
    phase: Annotated[
        str | None, opt.Option("--phase", metavar="X,Y", help="Let --plot draw Y over X in place of time.")
    ] = None
    json: opt.Json = False
    quiet: opt.Quiet = False


def run(options: OdeOptions, environment: Environment) -> ExitStatus:
    """Solve, differentiate and print; see `gradcli ode --help`."""
    # Imported here because they load NumPy.
    from gradcli.models.ode import initial_values

    if options.to is not None and options.to not in _FORMATS:
        raise UsageError(f"there is no --to {options.to!r}", hint=f"--to {' or '.join(_FORMATS)}")
    if options.phase is not None and options.plot is None:
        raise UsageError("--phase says what a plot shows, and there is none", hint="--plot PATH draws one")
    if options.plot is not None:
        from gradcli.models.plotting import by_matplotlib

        by_matplotlib.format_of(options.plot)
    others = [f"--{name}" for name in ("plot", "output") if getattr(options, name) is not None]
    inputs.check_digits(options, [*others, *(["--method radau"] if options.method == "radau" else [])])
    with limits.within(options.max_steps, options.max_elements), _arithmetic(options):
        request = _request(options, environment)
        asked = request()
        if options.digits is None:
            found = initial_values.solve(asked)
        else:
            found = initial_values.prove(request, options.digits, options.max_precision)
    if options.plot is not None:
        by_matplotlib.save(initial_values.chart(asked, found, options.phase), options.plot, environment.save)
    if options.output is not None:
        from gradcli.rows.formats import new_tables

        new_tables.save(found.columns, options.output, environment.save)
    if options.json:
        stop = {} if found.stop is None else {"stop": found.stop}
        model_report.report({"program": asked.equations.source}, {**stop, "columns": found.columns}, environment)
    elif options.output is None and (options.plot is None or options.to is not None):
        environment.write(_text(found.columns, options.to or "csv"))
    for warning in () if options.quiet else found.warnings:
        environment.write_error(f"warning: {warning}")
    if found.stop is not None and not options.json and not options.quiet:
        told = ", ".join(f"{name} = {value:.10g}" for name, value in found.stop.items())
        environment.write_error(f"{asked.stop} at {told}")
    if not found.complete:
        environment.write_error(
            f"warning: computed with up to {options.max_precision:,} digits, a result is not told from 0"
        )
        return ExitStatus.FAILURE
    return ExitStatus.SUCCESS


def _arithmetic(options: OdeOptions) -> AbstractContextManager[Any]:
    """Within it, numbers are floats, or balls where digits are to be proved."""
    if options.digits is None:
        return nullcontext()
    from gradcli.proofs import digits

    return digits.computing()


def _request(options: OdeOptions, environment: Environment) -> Callable[[], Any]:
    """The function that makes the request, with numbers of the working precision."""
    from gradcli.language.differential_equations import read_differential_equations, unmarked

    text, words = map_arguments.program_of(options, environment, _EXAMPLE)
    try:
        equations = read_differential_equations(text)
    except ProgramSyntaxError as error:
        if error.hint is not None and not any(re.match(r"\s*\w+\s*=.*(?:\.\.|\[|@)", word) for word in words):
            error.hint = f"{error.hint}; the times are missing too, as in t=0..20"
        raise
    time = equations.time
    bindings, times_said = _bindings(options, environment, words, time)
    mentioned = [*inputs.names_mentioned(text), time]
    bindings |= inputs.values_of_caller(environment, mentioned, bindings, "float64")
    if time not in bindings:
        raise BindingError(f"there are no times '{time}'", hint=f"give their range, {time}=0..20, or {time}=[0,1,5]")

    def request() -> InitialValueRequest:
        with unmarked():
            values = {name: value() for name, value in bindings.items()}
        return _checked(options, equations, values, times_said)

    return request


def _checked(
    options: OdeOptions, equations: DifferentialEquations, values: dict[str, Any], times_said: dict[str, float]
) -> InitialValueRequest:
    from gradcli.models.ode import initial_values
    from gradcli.models.ode.initial_values import InitialValueRequest

    time = equations.time
    times = initial_values.moments(values.pop(time), options.points, time)
    for word, at in times_said.items():
        if len(times) and at != _float(times[0]):
            raise BindingError(
                f"'{word}' is the value at {time} = {at:g}, and the first time is {_float(times[0]):g}",
                hint=f"states start at the first time: begin with it, as in {time}={at:g}..20",
            )
    wrt = inputs.names_of([_with_prime_letters(name) for name in options.wrt or ()])
    for name in wrt:
        if name == time:
            raise BindingError(
                f"'{time}' is the time, and the derivatives by it are the right sides", hint='--show "x\'" shows one'
            )
        if name not in values:
            raise BindingError(f"--wrt names '{name}', which has no value", hint=f"give it a value, as in {name}=1")
    return InitialValueRequest(
        equations, values, times, wrt, options.order, tuple(options.show or ()), options.stop, options.method
    )


def _with_prime_letters(name: str) -> str:
    """A name with a letter in place of each apostrophe, as the equations have it."""
    from gradcli.language.syntax.derivative_marks import PRIME

    return re.sub(_APOSTROPHES, PRIME, name)


def _float(number: Any) -> float:
    if isinstance(number, float):
        return number
    from gradcli.arrays.flint.balls import to_float

    return to_float(number)


def _bindings(
    options: OdeOptions, environment: Environment, words: list[str], time: str
) -> tuple[dict[str, Callable[[], Any]], dict[str, float]]:
    """The functions that return the values of names, and the times that words say their values are at."""
    from gradcli.language.differential_equations import unmarked
    from gradcli.models.ode import initial_values

    found: list[str] = []
    times_said: dict[str, float] = {}
    for word in words:
        begin = _START.match(word)
        if begin is not None:
            if begin[3] is not None:
                times_said[word] = float(begin[3].strip("() "))
            word = _with_prime_letters(begin[1] + begin[2]) + begin[4] + word[begin.end() :]
        found.append(word)

    def read(text: str, dtype: str, word: str, offset: int) -> Any:
        is_time = variables.split_binding(word).name == time
        return (initial_values.times_value if is_time else constant)(text, dtype, word, offset)

    with unmarked():
        bindings = inputs.bindings_of(found, "float64", options, environment, read)
    for name, value in inputs.values_of_vars_option(options, environment, "float64", bindings).items():
        bindings.setdefault(_with_prime_letters(name), value)
    return bindings, times_said


def _text(columns: Mapping[str, Any], format: str) -> str:
    """The table; a number is the shortest text that reads back as the same number, or NaN, Infinity or -Infinity, and
    texts stay as they are."""
    rows = zip(*(column.tolist() for column in columns.values()))
    if format == "jsonl":
        return "".join(f"{json_text.dumps(dict(zip(columns, row)))}\n" for row in rows)
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="\t" if format == "tsv" else ",", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_written, rows))
    return stream.getvalue()


def _written(row: tuple[float | str, ...]) -> list[str]:
    return [x if isinstance(x, str) else _number_text(x) for x in row]


def _number_text(x: float) -> str:
    return repr(x) if math.isfinite(x) else "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"


COMMAND = Command(OdeOptions, run, _HELP)
