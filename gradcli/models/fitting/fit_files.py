"""Writes the files of a fit: tables of residuals and of predictions, and a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.errors import UsageError
from gradcli.io import system
from gradcli.io.output import Save, place_of, write_atomically
from gradcli.models.data import Data
from gradcli.models.fitting.fit_requests import FitOutcome, FitRequest, FitSolution
from gradcli.models.fitting.fit_runs import FitJob
from gradcli.models.fitting.problem.fit_problems import PosedFit
from gradcli.models.fitting.problem.likelihoods import Assumptions
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.statistics.inference import FitRows, Statistics
from gradcli.models.plotting.charts import Band, Chart, Layer, Points, Polyline, Presentation
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats import new_tables, outputs

# Number of points of the fitted curve in a plot.
_CURVE = 400
# The most groups whose colours and curves can be told apart.
_MOST_GROUPS = 12


class FitFiles(NamedTuple):
    """The paths of the requested files, None for others, the function that writes a file, and the looks of the picture
    with the names of its logarithmic axes."""

    residuals: str | None = None
    predict: str | None = None
    plot: str | None = None
    save: Save = write_atomically
    looks: Presentation = Presentation()
    log: str = ""

    def check(self, read: Sequence[str]) -> None:
        """Check the paths.

        Raises UsageError for a path whose ending is no known format, for one that is given twice and for one of the
        files that are `read`, and OutputError for a path that no file can have.
        """
        written = [path for path in (self.residuals, self.predict, self.plot) if path is not None]
        places = [place_of(path) for path in written]
        if len({*places}) < len(places):
            raise UsageError("two files would be written to one place", hint="give them different names")
        taken = {system.real_path(path) for path in read}
        for output, place in zip(written, places):
            if place in taken:
                raise UsageError(f"'{output}' is read and would be written", hint="give what is written another name")
        for path in (self.residuals, self.predict):
            if path is not None:
                outputs.check_path(path)
        if self.plot is not None:
            from gradcli.models.plotting.by_matplotlib import format_of

            format_of(self.plot)


def write(
    files: FitFiles,
    concluded: Sequence[FitOutcome],
    groups: Sequence[Any],
    fitting: FitJob,
    request: FitRequest,
    everything: Data,
    data: Data,
) -> None:
    """Write the requested files of fits, whose rows in `data` are at the indices `groups`; `everything` also has the
    rows without a response."""
    question = fitting.question
    if files.residuals is not None:
        tables = [_residuals(each, rows, question, request, data) for each, rows in zip(concluded, groups)]
        new_tables.save(_joined(tables), files.residuals, files.save)
    if files.predict is not None:
        own = {None: slice(None)} if request.by is None else everything.grouped(request.by)
        tables = [_predicted(each, own[each.fit.group], question, request, everything) for each in concluded]
        new_tables.save(_joined(tables), files.predict, files.save)
    if files.plot is not None:
        _draw(files, concluded, groups, fitting, request)


def _joined(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first = tables[0]
    if len(tables) == 1:
        return dict(first)
    return {
        name: np.concatenate([t[name] for t in tables])
        if isinstance(column, np.ndarray)
        else [item for t in tables for item in t[name]]
        for name, column in first.items()
    }


def _named(request: FitRequest, group: Any, count: int) -> dict[str, Any]:
    return {} if request.by is None else {request.by: [group] * count}


def _nothing(names: Sequence[str], count: int) -> dict[str, Any]:
    return {name: np.full(count, np.nan) for name in names}


def _residuals(found: FitOutcome, rows: Any, question: PosedFit, request: FitRequest, data: Data) -> dict[str, Any]:
    """The table of residuals of one fit: the numbers of its rows in the user's table, the columns that the model reads,
    the response, and what `residuals` computes."""
    problem = question.problem.with_rows(rows)
    table = {**_named(request, found.fit.group, len(rows)), **problem.columns, question.response_name: problem.response}
    table = {new_tables.unused_name("row", table): data.rows[rows] + 1, **table}
    if found.solved is None:
        return new_tables.beside(table, _nothing(RESIDUAL_COLUMNS, len(rows)))
    solved = found.solved
    said = residuals(solved.rows.chosen(solved.place), solved.statistics, solved.place, problem.known)
    return new_tables.beside(table, said)


def _predicted(
    found: FitOutcome, rows: Any, question: PosedFit, request: FitRequest, everything: Data
) -> dict[str, Any]:
    """The table of predictions of one fit for those of its `rows` that have all predictors."""
    columns = {name: everything.columns[name][rows] for name in question.problem.predictors}
    sigma: Any = everything.columns[request.sigma] if isinstance(request.sigma, str) else question.problem.sigma
    sigma = sigma[rows] if np.ndim(sigma) else sigma
    count = len(everything.rows[rows])
    table = {**_named(request, found.fit.group, count), **columns}
    if found.solved is None:
        ends = ("low_response", "high_response") if request.known.family == "gaussian" else ()
        return new_tables.beside(table, _nothing(("value", "error", "low", "high", *ends), count))
    return new_tables.beside(table, _bands(question.problem, found.solved, columns, count, sigma))


def _bands(problem: Problem, solved: FitSolution, columns: Mapping[str, Any], count: int, sigma: Any) -> dict[str, Any]:
    """The predictions, with their errors and bands, for `count` rows with these columns."""
    value, first = problem.at(columns, count, solved.ending.point)
    return prediction(value, first[:, solved.ending.free], sigma, solved.statistics, solved.place, problem.known)


def _draw(
    files: FitFiles, concluded: Sequence[FitOutcome], groups: Sequence[Any], fitting: FitJob, request: FitRequest
) -> None:
    """Draw the data with the fitted curve and its confidence band over a single predictor, or with several predictors
    the responses over the fitted values; each group in its colour, and the residuals below.

    Raises UsageError for more groups than can be told apart."""
    from gradcli.models.plotting.by_matplotlib import save as save_picture

    drawn = [(each, rows) for each, rows in zip(concluded, groups) if each.solved is not None]
    if not drawn or files.plot is None:
        return
    if len(drawn) > _MOST_GROUPS:
        raise UsageError(
            f"a picture of {len(drawn)} groups cannot be read: there are at most {_MOST_GROUPS}",
            hint="leave out --plot, or fit fewer groups",
        )
    layers: list[Layer] = []
    below: list[Points] = []
    single = len(fitting.question.problem.columns) == 1
    for number, (found, rows) in enumerate(drawn):
        mine, residual = _layers(found, rows, fitting, request, number, files.log)
        layers += mine
        below.append(residual)
    across = next(iter(fitting.question.problem.columns)) if single else "fitted"
    chart = Chart(layers, across, fitting.question.response_name, request.model, files.log, residuals=below)
    save_picture(files.looks.of(chart), files.plot, files.save)


def _layers(
    found: FitOutcome, rows: Any, fitting: FitJob, request: FitRequest, number: int, log: str
) -> tuple[list[Layer], Points]:
    """The layers of the picture of one fit, and its residuals."""
    problem = fitting.question.problem.with_rows(rows)
    solved = found.solved
    assert solved is not None
    error = problem.sigma if request.sigma is not None else None
    value, _ = problem.rows(solved.ending.point)
    group = None if request.by is None else number
    called = (lambda name: name) if group is None else (lambda name: f"{found.fit.group}: {name}")
    if len(problem.columns) != 1:
        points = Points(called("data"), value, problem.response, error, None, group)
        layers: list[Layer] = [points]
        if not number:
            ends = np.array([value.min(), value.max()])
            layers.append(Polyline("where they agree", ends, ends))
        return layers, points._replace(y=problem.response - value)
    ((across, column),) = problem.columns.items()
    deviation: Any = fitting.deviations.get(across)
    x_error = deviation[rows] if np.ndim(deviation) else deviation
    points = Points(called("data"), column, problem.response, error, x_error, group)
    logarithmic = "x" in log and column.min() > 0
    x = (np.geomspace if logarithmic else np.linspace)(column.min(), column.max(), _CURVE)
    curve = _bands(problem, solved, {across: x}, len(x), 1.0)
    line = Polyline(called("fit"), x, curve["value"], group)
    band = Band(called(f"{100 * problem.known.level:g} % confidence"), x, curve["low"], curve["high"])
    return [points, line, band], points._replace(y=problem.response - value)


# --- the tables of a fit by row: residuals of the fitted rows, and predictions with bands

RESIDUAL_COLUMNS = ("value", "residual", "standardized", "leverage", "cook")
# A leverage that is nearer to 1 than this counts as 1: its residual is a rounding error.
_FULL_LEVERAGE = 1e-12


def residuals(rows: FitRows, found: Statistics, index: int, known: Assumptions) -> dict[str, Any]:
    """Residual statistics of the n rows of one fit, which is at `index` in the statistics.

    They are the model's `value`, the `residual`, the `standardized` residual, that is divided by its standard error and
    nan where that is 0, the `leverage`, as R's `hatvalues`, and the distance of `cook`, by how much the estimates change
    without the row, as R's `cooks.distance`. Source: R. D. Cook and S. Weisberg, Residuals and Influence in Regression,
    1982, 2.2, 3.1 and 5.
    """
    value, sigma, first = rows.value[0], rows.sigma[0], rows.first[0]
    residual = rows.off(slice(None))[0]
    with np.errstate(all="ignore"):
        deviation = sigma * (found.s[index] if known.is_scaled else 1.0)
        if known.family != "gaussian":
            deviation = sigma * np.sqrt(value if known.family == "poisson" else value * (1 - value))
        spread = found.information.covariance[index]
        scaled = first / (sigma if known.family == "gaussian" else deviation)[:, None]
        if known.family != "gaussian":
            # That of the expected information, which differs from the observed one where a link is not canonical.
            before = 0.0 if rows.priors is None else np.diag(rows.priors[1][0] ** -2.0)
            spread = np.linalg.pinv(scaled.T @ scaled + before, hermitian=True)
        leverage = ((scaled @ spread) * scaled).sum(axis=1)
        left = 1 - leverage
        left = np.where(left > _FULL_LEVERAGE, left, np.nan)
        standardized = residual / deviation / np.sqrt(left)
        cook = standardized**2 * leverage / left / first.shape[1]
    return dict(zip(RESIDUAL_COLUMNS, (value, residual, standardized, leverage, cook)))


def prediction(value: Any, first: Any, sigma: Any, found: Statistics, index: int, known: Assumptions) -> dict[str, Any]:
    """Predictions for n rows: the model's `value`, its standard `error` from the covariances of the estimates and the
    derivatives `first` `[n, p]`, and its confidence band `low` to `high`.

    A gaussian family also has the band `low_response` to `high_response`, in which a further response lies.
    """
    spread = found.covariance[index]
    with np.errstate(all="ignore"):
        variance = np.maximum(((first @ spread) * first).sum(axis=1), 0.0)
        error = np.sqrt(variance)
        width = found.quantile[index] * error
        table = {"value": value, "error": error, "low": value - width, "high": value + width}
        if known.family == "gaussian":
            noise = np.asarray(sigma) * (found.s[index] if known.is_scaled else 1.0)
            width = found.quantile[index] * np.sqrt(variance + noise**2)
            table |= {"low_response": value - width, "high_response": value + width}
    return table
