"""The command `gradcli propagate`: propagates uncertainties of inputs through a program."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs, propagate_arguments
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering import model_report
from gradcli.cli.rendering.render import Table
from gradcli.cli.rendering.warning_output import warning_json, warning_text
from gradcli.errors import ExitStatus, UsageError
from gradcli.limits import MAX_PRECISION
from gradcli.models.results import as_json
from gradcli.models.uncertainty.coverage import coverage_factor, whole_dof
from gradcli.models.uncertainty.monte_carlo import MonteCarlo
from gradcli.models.uncertainty.propagation import PropagateRequest, Propagation, propagated
from gradcli.models.uncertainty.significant_digits import stated_text

# If the standard deviation of samples exceeds that of their interval by this factor, it is due to a few outliers.
_FAR_DRAWS = 3.0
# The maximum number of rows of a budget in a table; the largest contributions are shown.
_MOST_ROWS = 50

_HELP = """\
An uncertain value is 5.0±0.1, 5.0+-0.1, 5.0(1) or 5.0±2%, with one standard uncertainty, or a
list of them; a distribution, ~normal(5, 0.1) ~uniform(4.9, 5.1) ~triangular(0, 1)
~triangular(0, 1, 0.3) ~trapezoidal(0, 1, 0.5) ~curvilinear(0, 1, 0.1) ~arcsine(0, 1)
~lognormal(0, 0.1) ~exponential(2) ~gamma(2, 1); or @data.csv:column, observations whose mean is
taken, with its standard error, and @data.csv:all, the means of all columns with their covariance.
Values without uncertainty are exact.

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
    digits: opt.Digits = None
    max_precision: opt.MaxPrecision = MAX_PRECISION
    json: opt.Json = False
    quiet: opt.Quiet = False


def run(options: PropagateOptions, environment: Environment) -> ExitStatus:
    """Propagate and print; see `gradcli propagate --help`."""
    if options.shortest and options.samples is None:
        raise UsageError("--shortest is for draws", hint="add --samples 1e6")
    inputs.check_digits(options, ["--samples"] if options.samples is not None else [])
    given = propagate_arguments.read_words(options, environment)
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
        )
        found, complete = propagated(text, given.values, asked, (options.max_steps, options.max_elements))
    warnings = found.warnings or ()
    if options.json:
        notes = [warning_json(warning, text) for warning in warnings]
        said = {"program": text} | ({} if options.digits is None else {"digits": options.digits})
        model_report.report(said, dataclasses.replace(found, warnings=notes or None), environment)
    else:
        tables = _tables_of if options.digits is None else _in_digits
        model_report.show_tables(_tables(found, tables), environment)
        for warning in () if options.quiet else warnings:
            environment.write_error(warning_text(warning, text))
    return ExitStatus.SUCCESS if complete else ExitStatus.FAILURE


def _tables(found: Propagation, of_one: Callable[[Propagation, str | None], list[Table]]) -> list[Table]:
    labels = [*found.value] if isinstance(found.value, dict) else [None]
    tables = [table for label in labels for table in of_one(found, label)]
    if found.covariance is not None:
        matrix = as_json(found.covariance)
        rows = [(str(label), *map(_brief, row)) for label, row in zip(labels, matrix)]
        tables.append(Table(("covariance", *map(str, labels)), rows))
    return tables


def _of(found: Propagation, label: str | None) -> Callable[[str], Any]:
    """A function that returns a field of the result with this label."""

    def of(name: str) -> Any:
        part = getattr(found, name)
        return part if label is None or part is None else part[label]

    return of


def _tables_of(found: Propagation, label: str | None) -> list[Table]:
    """The tables of one result: its values and its budget."""
    of = _of(found, label)
    value, u, k = of("value"), of("u"), of("k")
    rows = [
        (label or "value", stated_text(value, u)),
        ("relative uncertainty", f"{of('relative'):.2g}"),
        ("degrees of freedom", _effective(of("dof"))),
        (f"interval of {found.level:.15g}", f"{stated_text(value, k * u)}  (k = {k:.4g})"),
    ]
    second, sampled = of("second_order"), of("monte_carlo")
    if second is not None:
        rows.append(("to second order", stated_text(second.mean, second.u)))
    if sampled is not None:
        rows.append((f"{sampled.samples:,} samples", stated_text(sampled.mean, sampled.u)))
        ends = ", ".join(_to_place(end, _spread(sampled, found.level)) for end in sampled.interval)
        rows.append((f"interval of {found.level:.15g}", f"[{ends}]"))
    return [Table((), rows), _budget(of("budget"))]


def _in_digits(found: Propagation, label: str | None) -> list[Table]:
    """The same tables with proved digits, of which all are printed."""
    of = _of(found, label)
    rows = [
        (label or "value", of("value")),
        ("standard uncertainty", of("u")),
        ("relative uncertainty", of("relative")),
        ("degrees of freedom", _effective_in_digits(of("dof"))),
        ("coverage factor", of("k")),
        *((f"interval of {found.level:.15g}", end) for end in of("interval")),
    ]
    keys = ("name", "value", "u", "dof", "sensitivity", "contribution", "share")
    entries = [tuple(str(getattr(each, key)) for key in keys) for each in of("budget")]
    return [Table((), [(name, str(number)) for name, number in rows]), Table(("input", *keys[1:]), entries)]


def _budget(entries: Sequence[Any]) -> Table:
    """A table of the budget; of many entries those that contribute most."""
    shown = entries
    if len(entries) > _MOST_ROWS:
        largest = sorted(range(len(entries)), key=lambda i: -abs(entries[i].contribution))[:_MOST_ROWS]
        shown = [entries[i] for i in sorted(largest)]
    rows = [
        (
            each.name,
            stated_text(each.value, each.u),
            _freedom(each.dof),
            _brief(each.sensitivity),
            _brief(each.contribution),
            f"{100 * each.share:.1f} %",
        )
        for each in shown
    ]
    if len(shown) < len(entries):
        rest = 100 * (1 - sum(each.share for each in shown))
        rows.append((f"{len(entries) - len(shown):,} others", "", "", "", "", f"{rest:.1f} %"))
    return Table(("input", "value", "dof", "sensitivity", "contribution", "share"), rows)


def _freedom(dof: float) -> str:
    return "inf" if math.isinf(dof) else f"{dof:.4g}"


def _effective(dof: float) -> str:
    """The degrees of freedom for the coverage factor, truncated to an integer, with the original value."""
    if math.isinf(dof) or math.isnan(dof) or whole_dof(dof) == dof:
        return _freedom(dof)
    place = max(0, 3 - math.floor(math.log10(dof)))
    cut = math.floor(dof * 10**place) / 10**place
    return f"{whole_dof(dof):.15g}  ({cut:.15g} cut to a whole number)"


def _effective_in_digits(dof: str) -> str:
    """As `_effective`, for degrees of freedom with proved digits."""
    number = float(dof)
    if math.isinf(number) or math.isnan(number) or whole_dof(number) == number:
        return dof
    return f"{whole_dof(number):.15g}  ({dof} cut to a whole number)"


def _spread(sampled: MonteCarlo, level: float) -> float:
    """The standard deviation that determines the rounding of samples: their own, or that of a normal distribution with
    the same interval where a few outliers make theirs far larger."""
    low, high = sampled.interval
    of_interval = (high - low) / 2 / coverage_factor(level, math.inf)
    return of_interval if sampled.u > _FAR_DRAWS * of_interval > 0 else sampled.u


def _brief(number: Any) -> str:
    return number if isinstance(number, str) else f"{number:.4g}"


def _to_place(number: float, u: float) -> str:
    """A number rounded to the decimal place to which a value with uncertainty `u` is stated."""
    shown, _, rest = stated_text(number, u).partition(" ± ")
    # A value with a power of 10 is in parentheses, with the power after them.
    return shown[1:] + rest.partition(")")[2] if shown.startswith("(") else shown


COMMAND = Command(PropagateOptions, run, _HELP)
