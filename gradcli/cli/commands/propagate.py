"""The command `gradcli propagate`: propagates uncertainties of inputs through a program."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering import model_report
from gradcli.cli.rendering.render import warning_json, warning_text
from gradcli.errors import ExitStatus, UsageError
from gradcli.evaluation.nested_lists import items
from gradcli.io import variables
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_PRECISION
from gradcli.models.uncertainty import propagation_tables
from gradcli.models.uncertainty.input_quantities import input_of_text, quantity_of_observations
from gradcli.models.uncertainty.propagation import PropagateRequest, propagated
from gradcli.models.uncertainty.propagation_tables import check_budget_path, save_budget
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import Annotated, Any

# A suffix of a file name that means all of its columns.
_ALL = ":all"


class UncertainWords(NamedTuple):
    """A program, its inputs as `propagate` accepts them, their correlations and degrees of freedom."""

    program: Module
    values: dict[str, Any]
    correlation: dict[str | tuple[str, str], float]
    dof: dict[str, float]


def read_words(options: Any, environment: Environment) -> UncertainWords:
    """Read the words and options of a command line; `options` has those of `inputs.BindingOptions`, `correlation`,
    `dof`, `digits` and `quiet`.

    Raises what `inputs.sources` raises, and UsageError for an invalid correlation or degrees of freedom.
    """
    words = [word.removesuffix(_ALL) if _of_file(word) else word for word in options.words or ()]
    # With --digits, values stay text and are parsed again at each precision.
    reading = _value if options.digits is None else _text
    sources = inputs.sources(options.replaced(words=words), environment, "float64", reading)
    of_files = [variables.split_binding(word).name for word in words if _of_file(word)]
    values = {name: value() for name, value in sources.values.items()}
    if of_files and options.digits is not None:
        raise UsageError(
            f"the mean of the observations of '{of_files[0]}' has no proved digits", hint="leave out --digits"
        )
    for name in of_files:
        values[name], left_out = quantity_of_observations(values[name], name)
        if left_out and not options.quiet:
            environment.write_error(f"warning: {left_out:,} rows of '{name}' lack a number and are left out")
    correlation: dict[str | tuple[str, str], float] = {}
    for text in options.correlation or ():
        for names, number in _said(text, "--correlation a,b=0.3"):
            _put(correlation, _two(names, text), _number(number, text), text)
    dof: dict[str, float] = {}
    for text in options.dof or ():
        for names, number in _said(text, "--dof x=9"):
            _put(dof, _one(names, text), _number(number, text), text)
    return UncertainWords(sources.program, values, correlation, dof)


def _of_file(word: str) -> bool:
    return inputs.is_binding(word) and word.partition("=")[2].lstrip().startswith("@")


def _value(text: str, _dtype: str, whole: str, offset: int) -> Any:
    return input_of_text(text, offset, whole)


def _text(text: str, _dtype: str, _whole: str, _offset: int) -> str:
    return text


def _said(text: str, like: str) -> list[tuple[list[str], str]]:
    """The names and numbers of `a,b=0.3,b,c=0.1`."""
    found: list[tuple[list[str], str]] = []
    names: list[str] = []
    for _, part in items(text):
        name, equals, number = part.partition("=")
        names.append(name.strip())
        if equals:
            found.append((names, number.strip()))
            names = []
    if names or not found:
        raise UsageError(f"{text!r} says no number", hint=f"write {like}")
    return found


def _put(said: dict[Any, float], key: Any, number: float, text: str) -> None:
    if key in said:
        raise UsageError(f"{text!r} says again what was said already", hint="leave out one of them")
    said[key] = number


def _two(names: Sequence[str], text: str) -> tuple[str, str]:
    if len(names) != 2:
        raise UsageError(f"{text!r} is no correlation of two inputs", hint="write --correlation a,b=0.3")
    return names[0], names[1]


def _one(names: Sequence[str], text: str) -> str:
    if len(names) != 1:
        raise UsageError(f"{text!r} is no number for one input", hint="write --dof x=9")
    return names[0]


def _number(text: str, whole: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise UsageError(f"{text!r} in {whole!r} is no number", hint="write --correlation a,b=0.3, or --dof x=9")
    return number


_HELP = """\
An uncertain value is 5.0±0.1, 5.0+-0.1, 5.0(1) or 5.0±2%, with one standard uncertainty, a
complex one (1±0.1)+(2±0.1)j, with that of each part, or a list of them; a distribution,
~normal(5, 0.1) ~uniform(4.9, 5.1) ~triangular(0, 1) ~triangular(0, 1, 0.3)
~trapezoidal(0, 1, 0.5) ~curvilinear(0, 1, 0.1) ~arcsine(0, 1) ~lognormal(0, 0.1)
~exponential(2) ~gamma(2, 1) ~student(9, 5, 0.1) ~beta(2, 5) ~poisson(40); or
@data.csv:column, observations whose mean is taken, with its standard error, and
@data.csv:all, the means of all columns with their covariance. Values without uncertainty are exact.

Examples:

  gradcli propagate 'V/I' V=5.0±0.1 I=0.020(1)

  gradcli propagate 'm*g*h' m=2.50±1% g=9.81 h='~uniform(1.9, 2.1)'

  gradcli propagate 'a*b' a=1.0±0.1 b=2.0±0.1 --correlation a,b=-0.5

  gradcli propagate 'm*h' m=2.50±1% h='~uniform(1.9, 2.1)' --samples 1e6

  gradcli propagate 'a*b' a=1.0±0.1 b=2.0±0.1 --correlation a,b=-0.5 --dof a=9 --level 0.99
"""


class PropagateOptions(opt.ProgramRun):
    """The options of `gradcli propagate`."""

    words: Annotated[
        list[str] | None,
        opt.Argument(
            metavar="PROGRAM [NAME=VALUE±U]...",
            help="The program, or - for standard input; then the values of its names: x=5.0±0.1, x=5.0(1), x=[1±0.1, 2], "
            "x=~uniform(4.9,5.1), x=@data.csv:column, x=5.",
        ),
    ] = None
    file: opt.File = None
    vars: opt.Vars = None
    input_form: opt.From = None
    correlation: Annotated[
        list[str] | None,
        opt.Option(
            "--correlation",
            brief="The correlation of two inputs.",
            metavar="A,B=R",
            help="The correlation coefficient of two inputs, or elements.",
        ),
    ] = None
    dof: Annotated[
        list[str] | None, opt.Option("--dof", metavar="NAME=N", help="The degrees of freedom of an uncertainty.")
    ] = None
    level: Annotated[
        float,
        opt.Option(
            "--level", brief="The level of the intervals.", metavar="P", help="The level of the coverage intervals."
        ),
    ] = 0.95
    samples: Annotated[
        float | None,
        opt.Option(
            "--samples",
            brief="Draw N samples too, as in 1e6.",
            metavar="N",
            help="Propagate the distributions too, by N draws, as in 1e6.",
        ),
    ] = None
    seed: Annotated[int, opt.Option("--seed", metavar="S", min=0, help="The seed of the draws.")] = 0
    shortest: Annotated[
        bool, opt.Option("--shortest", help="The shortest interval of the draws, not the one with equal tails.")
    ] = False
    adaptive: Annotated[
        int | None,
        opt.Option(
            "--adaptive",
            brief="Draw until N digits are stable.",
            metavar="N",
            min=1,
            help="Instead of --samples, draw until N digits of the uncertainty are stable, and mean and interval with them.",
        ),
    ] = None
    sobol: Annotated[
        bool,
        opt.Option(
            "--sobol",
            brief="Sobol' indices of the inputs.",
            help="First-order and total Sobol' indices of independent inputs, by at most --samples evaluations.",
        ),
    ] = False
    morris: Annotated[
        bool,
        opt.Option(
            "--morris",
            brief="Elementary effects of the inputs.",
            help="The elementary effects of independent inputs (Morris), by at most --samples evaluations.",
        ),
    ] = False
    limits: Annotated[
        bool,
        opt.Option(
            "--limits",
            brief="What is behind ± are limits.",
            help="What stands behind ± are limits, between which all values are equally likely: the limits of the result in "
            "the worst case, proved, and as root of the sum of squares.",
        ),
    ] = False
    budget: Annotated[
        str | None,
        opt.Option(
            "--budget",
            metavar="PATH",
            help="Write the budget to a table, as in budget.csv, or as a table of LaTeX, budget.tex.",
        ),
    ] = None
    digits: opt.Digits = None
    max_precision: opt.MaxPrecision = MAX_PRECISION
    json: opt.Json = False
    quiet: opt.Quiet = False


def run(options: PropagateOptions, environment: Environment) -> ExitStatus:
    """Propagate and print; see `gradcli propagate --help`."""
    if options.shortest and options.samples is None and options.adaptive is None:
        raise UsageError("--shortest is for draws", hint="add --samples 1e6")
    if options.samples is not None and options.adaptive is not None:
        raise UsageError("--samples and --adaptive contradict each other", hint="leave out one of them")
    drawn = {
        "--samples": options.samples is not None,
        "--adaptive": options.adaptive is not None,
        "--limits": options.limits,
        "--sobol": options.sobol,
        "--morris": options.morris,
    }
    inputs.check_digits(options, [name for name, given in drawn.items() if given])
    check_budget_path(options.budget)
    given = read_words(options, environment)
    text = given.program.source
    with model_report.progress_line(environment, options.quiet) as watch:
        asked = PropagateRequest(
            given.correlation,
            given.dof,
            options.level,
            options.samples,
            options.seed,
            options.shortest,
            options.digits,
            options.max_precision,
            watch,
            options.sobol,
            options.morris,
            options.adaptive,
            options.limits,
        )
        found, complete = propagated(text, given.values, asked, (options.max_steps, options.max_elements))
    if options.budget is not None:
        save_budget(found, options.budget, environment.save)
    warnings = found.warnings or ()
    if options.json:
        notes = [warning_json(warning, text) for warning in warnings]
        said = {"program": text} | ({} if options.digits is None else {"digits": options.digits})
        model_report.report(said, dataclasses.replace(found, warnings=notes or None), environment)
    else:
        tables = propagation_tables.tables(found, in_digits=options.digits is not None)
        model_report.show_tables(tables, environment)
        for warning in () if options.quiet else warnings:
            environment.write_error(warning_text(warning, text))
    return ExitStatus.SUCCESS if complete else ExitStatus.FAILURE


COMMAND = Command(PropagateOptions, run, _HELP)
