"""`gradcli fit`: the parameters of a model for which it is nearest to data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from gradcli import arrays
from gradcli.cli import inputs, model_report, model_words
from gradcli.cli import options as opt
from gradcli.cli.command import Command
from gradcli.cli.environment import Environment
from gradcli.cli.render import Table
from gradcli.errors import BindingError, ExitStatus, Span, UsageError
from gradcli.io import variables
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models import uncertain_values
from gradcli.models.data import table_of
from gradcli.models.estimation import Search, estimated
from gradcli.models.fit_problems import Parameters
from gradcli.models.fits import asked, concluded
from gradcli.models.fitted import Fit
from gradcli.models.inference import Assumptions
from gradcli.models.likelihoods import FAMILIES, LOSSES, likelihood
from gradcli.run.constant_expressions import constant

_EXAMPLE = "gradcli fit 'y ~ b1*(1 - exp(-b2*x))' misra.csv b1=500 b2=0.0001"

_HELP = """\
Names that are columns of the data are data, the others parameters, whose
NAME=VALUE is where the search begins; those without one are found. Exit status
1 where no minimum was found: the best point is printed, and why it is none.

Examples:

  gradcli fit 'y ~ b1*(1 - exp(-b2*x))' misra.csv b1=500 b2=0.0001

  gradcli fit 'a + b*x' data.csv --response y --sigma dy --absolute-sigma

  gradcli fit 'y ~ a*exp(-k*x)' x=[0,1,2,3] y=[2,1.2,0.7,0.5] --bounds 'k=0:'
"""


class FitOptions(NamedTuple):
    """What `gradcli fit` was asked for."""

    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL [DATA]... [NAME=VALUE]...",
            help="The model, y ~ f; tables, - for standard input; then the starts of parameters: b1=500, columns: "
            "x=[1,2,3], and t='column:Time (s)'.",
            show_default=False,
        ),
    ] = None
    file: opt.File = None
    vars: opt.Vars = None
    response: Annotated[
        str | None, typer.Option("--response", metavar="NAME", help="The response, where the model does not name it.")
    ] = None
    fix: Annotated[
        list[str] | None, typer.Option("--fix", metavar="NAMES", help="Keep these parameters at their values.")
    ] = None
    bounds: Annotated[
        list[str] | None,
        typer.Option("--bounds", metavar="NAME=LOW:HIGH", help="Keep parameters between bounds: 'b2=0:1,b1=0:'."),
    ] = None
    prior: Annotated[
        list[str] | None,
        typer.Option("--prior", metavar="NAME=VALUE±U", help="What is known of a parameter before: 'b1=500±50'."),
    ] = None
    sigma: Annotated[
        str | None,
        typer.Option(
            "--sigma", metavar="COLUMN|NUMBER", help="The standard deviations of the response, up to a common factor."
        ),
    ] = None
    absolute_sigma: Annotated[
        bool, typer.Option("--absolute-sigma", help="Take the standard deviations as they stand.")
    ] = False
    loss: Annotated[
        str,
        typer.Option("--loss", metavar="|".join(LOSSES), help="What a residual costs; others than linear are robust."),
    ] = "linear"
    family: Annotated[
        str, typer.Option("--family", metavar="|".join(FAMILIES), help="The distribution of the response.")
    ] = "gaussian"
    level: Annotated[float, typer.Option("--level", metavar="P", help="The level of the confidence intervals.")] = 0.95
    starts: Annotated[
        int,
        typer.Option(
            "--starts", metavar="N", min=1, help="Search from at most so many points, where starts are missing."
        ),
    ] = 32
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="What chooses those points.")] = 0
    json: opt.Json = False
    quiet: opt.Quiet = False
    traceback: opt.Traceback = False
    max_steps: opt.MaxSteps = MAX_STEPS
    max_elements: opt.MaxElements = MAX_ELEMENTS
    max_seconds: opt.MaxSeconds = None
    max_memory: opt.MaxMemory = None


def run(options: FitOptions, environment: Environment) -> ExitStatus:
    """Fit, print; see `gradcli fit --help`."""
    if not 0 < options.level < 1:
        raise UsageError("--level is between 0 and 1", hint="--level 0.95")
    known = Assumptions(options.family, options.loss, options.absolute_sigma, options.level)
    likelihood(options.family, options.loss)
    given = model_words.given(options, environment, _EXAMPLE)
    np = arrays.numpy_namespace()
    vectors = {name: value for name, value in given.values.items() if np.ndim(value)}
    table = (table_of(None) if given.table is None else given.table).with_vectors(vectors)
    parameters = Parameters(
        {name: float(value) for name, value in given.values.items() if name not in vectors},
        inputs.names_of(options.fix),
        _bounds(options.bounds or ()),
        _priors(options.prior or ()),
    )
    sigma = (
        None if options.sigma is None else options.sigma if options.sigma in table.columns else _number(options.sigma)
    )
    most = options.max_steps, options.max_elements
    question, data = asked(given.text, options.response, table, parameters, known, sigma, most)
    with model_report.watched(environment, options.quiet) as watch:
        ending = estimated(question.problem, question.start, Search(options.starts, options.seed, watch))
    found = concluded(question, ending)
    if options.json:
        model_report.report({"model": given.text}, found, environment)
    else:
        model_report.tell(_tables(found, options.level), environment)
    if not options.quiet:
        _complain(found, data.left_out, environment)
    return ExitStatus.SUCCESS if found.converged else ExitStatus.FAILURE


def _complain(found: Fit, left_out: int, environment: Environment) -> None:
    if left_out:
        rows = "row was" if left_out == 1 else "rows were"
        environment.complain(f"warning: {left_out:,} {rows} left out, as a number is missing there")
    for warning in found.warnings:
        environment.complain(f"warning: {warning}")
    if not found.converged:
        environment.complain(f"error: {found.message}")


def _number(text: str) -> float:
    """The number that `--sigma` is, where it is no column."""
    try:
        return float(text)
    except ValueError:
        raise BindingError(f"--sigma {text}: the data have no such column", hint="a column, or a number") from None


def _parts(texts: Sequence[str], option: str, example: str) -> dict[str, tuple[str, str, int]]:
    """What stands behind each name in lists such as `b2=0:1,b1=0:`: with the text and the place in it."""
    found: dict[str, tuple[str, str, int]] = {}
    for text in texts:
        start = 0
        for part in text.split(","):
            try:
                name, value, offset = variables.split_binding(part)
            except BindingError as error:
                raise UsageError(
                    f"{option} {part!r} is no NAME=…",
                    hint=f"{option} {example}",
                    span=Span(start, start + len(part)),
                    source=text,
                ) from error
            if name in found:
                raise UsageError(f"{option} names '{name}' twice", hint="leave out one of them")
            found[name] = value, text, start + offset
            start += len(part) + 1
    return found


def _bounds(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    found = {}
    for name, (text, whole, offset) in _parts(texts, "--bounds", "'b2=0:1,b1=0:'").items():
        low, colon, high = text.partition(":")
        if not colon or not (low.strip() or high.strip()):
            raise UsageError(
                f"the bounds of '{name}' are no LOW:HIGH",
                hint=f"{name}=0:1, or {name}=0: for no upper one",
                span=Span(offset, offset + len(text)),
                source=whole,
            )
        ends = [
            float(constant(end, "float64", whole, at)) if end.strip() else infinite
            for end, at, infinite in ((low, offset, float("-inf")), (high, offset + len(low) + 1, float("inf")))
        ]
        found[name] = ends[0], ends[1]
    return found


def _priors(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    found = {}
    for name, (text, whole, offset) in _parts(texts, "--prior", "'b1=500±50'").items():
        known = uncertain_values.uncertain(text, offset, whole, uncertain_values.in_floats(whole))
        found[name] = float(known.value), float(known.u)
    return found


def _tables(found: Fit, level: float) -> list[Table]:
    """What people read of a fit."""
    header = ("parameter", "estimate", "error", "t", f"{100 * level:g} % from", "to")
    rows = [
        (name, *map(_short, (e.value, e.error, e.t, e.low, e.high)))
        if not e.fixed
        else (name, _short(e.value), "fixed", "", "", "")
        for name, e in found.estimates.items()
    ]
    further = {
        "rows": found.n,
        "degrees of freedom": found.dof,
        "residual standard deviation": _short(found.s),
        "reduced chi-square": _short(found.reduced_chi2),
        "R²": _short(found.r2),
        "AIC": _short(found.aic),
        "BIC": _short(found.bic),
        "condition": _short(found.condition),
        "iterations": found.iterations,
        "evaluations": found.evaluations,
        "starts": f"{found.starts.tried}, of which {found.starts.agreed} agreed" if found.starts.tried > 1 else None,
        "ended": found.message,
    }
    names = [*found.estimates]
    correlated = [
        (name, *(f"{found.correlation[i][k]:.3f}" for k in range(i + 1))) + ("",) * (len(names) - i - 1)
        for i, name in enumerate(names)
    ]
    tables = [Table(header, rows), model_report.members(further)]
    if len(names) > 1:
        tables.insert(1, Table(("correlation", *names), correlated))
    return tables


def _short(value: float) -> str:
    """Ten digits, which are those of a fit: `--json` has all."""
    return f"{value:.10g}"


COMMAND = Command(FitOptions, run, _HELP)
