"""Several responses with parameters in common, `y1 ~ f; y2 ~ g`: each has a standard deviation of its own, which is
estimated where none is given, and with `correlated` a correlation with each other one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from gradcli.errors import (
    BindingError,
    EvaluationError,
    GradcliError,
    NotRecordableError,
    ProgramSyntaxError,
    Span,
    UsageError,
)
from gradcli.evaluation.derivative_traces import Trace
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.models.data import Data, DataTable
from gradcli.models.fitting.fit_requests import FitRequest, check_used, refuse
from gradcli.models.fitting.notation.log_densities import HALF_LOG_TWO_PI
from gradcli.models.fitting.notation.model_texts import TILDE, ComposedProgram, ModelText, Relocation, statement_start
from gradcli.models.fitting.problem.factors import indexed_parameters
from gradcli.models.fitting.problem.fit_problems import (
    ModelNames,
    PosedFit,
    check_count,
    check_settings,
    check_shape,
    check_sigma,
    classify_names,
    point_of,
    posed_fit,
    response_of,
    sigma_of_weights,
    sigmas_of,
)
from gradcli.models.fitting.problem.likelihoods import LOG_DENSITY, Assumptions
from gradcli.models.fitting.problem.problems import Problem, ResponseFit
from gradcli.models.fitting.responses.correlated_rows import CorrelatedRows, Spreads
from gradcli.models.fitting.responses.density_problems import DensityProblem
from gradcli.models.fitting.search.estimation import SearchOptions, estimate
from gradcli.models.fitting.statistics.inference import ROBUST, Statistics
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.new_tables import unused_name

# Part of the squares about the mean that residuals leave which are rounding errors.
_EXACT = 1e-26
# Least eigenvalue of the correlations of residuals above which these are not known to depend on each other.
_SINGULAR = 1e-12
# Number of fits with weights by the residuals before, from which the search for the largest likelihood begins.
_REWEIGHTED = 4


class _Formula(NamedTuple):
    """A response, the formula that it is compared with, and where both begin in the text of the model."""

    response: str
    formula: str
    response_start: int
    formula_start: int


class ResponseTexts(NamedTuple):
    """The text of a model, the statements `before` its formulas, and the `formulas` of its responses."""

    source: str
    before: str
    formulas: Sequence[_Formula]

    @property
    def names(self) -> list[str]:
        return [each.response for each in self.formulas]

    def of_formulas(self) -> ComposedProgram:
        """A program that reads all that the formulas read."""
        found = self._begun()
        for k, each in enumerate(self.formulas):
            found.add("(" if not k else "\n) + (").add(each.formula, each.formula_start)
        return found.add("\n)")

    def of_formula(self, k: int) -> ComposedProgram:
        each = self.formulas[k]
        return self._begun().add("(").add(each.formula, each.formula_start).add("\n)")

    def of_responses(self) -> ComposedProgram:
        """A program that reads all that the responses read."""
        found = ComposedProgram()
        for k, each in enumerate(self.formulas):
            found.add("(" if not k else ") + (").add(each.response, each.response_start)
        return found.add(")")

    def chosen(self, which: str) -> tuple[ComposedProgram, ComposedProgram]:
        """The programs of the formula and of the response whose number is in the column `which`."""
        model, response = self._begun(), ComposedProgram()
        last = len(self.formulas) - 1
        for k, each in enumerate(self.formulas):
            test = f"torch.where({which} == {k}, (" if k < last else "("
            model.add(test).add(each.formula, each.formula_start).add("\n), " if k < last else "\n)")
            response.add(test).add(each.response, each.response_start).add("), " if k < last else ")")
        return model.add(")" * last), response.add(")" * last)

    def residual(self, k: int) -> ComposedProgram:
        """The program of a response less its formula."""
        each = self.formulas[k]
        found = self._begun().add("(").add(each.response, each.response_start)
        return found.add(") - (").add(each.formula, each.formula_start).add("\n)")

    def densities(self, which: str, deviations: Sequence[str], scale: str) -> ComposedProgram:
        """The program of the log density of the response whose number is in the column `which`; the `deviations` are
        names of the standard deviations, of which each row has the multiple in the column `scale`."""
        found = self._begun()
        last = len(self.formulas) - 1
        for k, (each, deviation) in enumerate(zip(self.formulas, deviations)):
            s = f"({deviation}*{scale})"
            found.add(f"torch.where({which} == {k}, " if k < last else "")
            found.add(f"-torch.log({s}) - {HALF_LOG_TWO_PI} - 0.5*(((").add(each.response, each.response_start)
            found.add(") - (").add(each.formula, each.formula_start).add(f"\n))/{s})**2" + ", " * (k < last))
        return found.add(")" * last)

    def _begun(self) -> ComposedProgram:
        return ComposedProgram().add(self.before, 0).add("\n") if self.before.strip() else ComposedProgram()


def read_responses(source: str) -> ResponseTexts:
    """Read the text of a model of several responses.

    Raises ProgramSyntaxError for a formula that is missing, and UsageError for a response that stands there twice.
    """
    tildes = {statement_start(source, tilde.start()): tilde for tilde in reversed([*TILDE.finditer(source)])}
    starts = sorted(tildes)
    formulas: list[_Formula] = []
    for start, end in zip(starts, [*starts[1:], len(source)]):
        tilde = tildes[start]
        formula = source[tilde.end() : end].rstrip(" \t\n;")
        behind = tilde.end() + len(formula) - len(formula.lstrip())
        if not formula.strip():
            span = Span(tilde.end() - 1, tilde.end())
            raise ProgramSyntaxError("there is no model behind '~'", source=source, span=span)
        written = source[start : tilde.start()]
        begin = start + len(written) - len(written.lstrip())
        if written.strip() in [each.response for each in formulas]:
            raise UsageError(
                f"'{written.strip()}' has two models",
                hint="each response has one",
                span=Span(begin, begin + len(written.strip())),
                source=source,
            )
        formulas.append(_Formula(written.strip(), formula.strip(), begin, behind))
    return ResponseTexts(source, source[: starts[0]].rstrip(" \t\n;"), formulas)


class ResponsesProblem(DensityProblem):
    """The problem of several responses whose standard deviations are estimated; a row is a response of a row of the
    data.

    `chosen` is the program of the formula whose number is in the column `which`, `values` `[n]` are the responses,
    `spreads` are the parameters of the standard deviations, of which rows have the multiples in the column `scale`, and of
    the correlations; and `names` are the responses.
    """

    chosen: tree.Module
    which: str
    scale: str
    values: Any
    spreads: Spreads
    names: Sequence[str]

    def with_rows(self, rows: Any) -> Problem:
        found = super().with_rows(rows)
        assert isinstance(found, ResponsesProblem)
        found.values = self.values[rows]
        return found

    def least_squares(self, scales: Sequence[float]) -> Problem:
        """The least squares of all responses, each in units of its scale, over the parameters of the formulas."""
        own = [name for name in self.parameters if name not in self.spreads.names]
        place = [self.parameters.index(name) for name in own]
        return Problem(
            self.chosen,
            {name: self.columns[name] for name in scope.free_names(self.chosen) if name in self.columns},
            self.values,
            own,
            Assumptions(),
            sigma=np.asarray(scales)[self.columns[self.which].astype(int)] * self.columns[self.scale],
            fixed={name: value for name, value in self.fixed.items() if name not in self.spreads.names},
            bounds=(self.low[place], self.high[place]),
            limits=self.limits,
            places=self.places,
            is_typed=False,
        )

    def begun(self, start: Any, search: SearchOptions) -> Any:
        """A start `[p]` with all numbers: that of least squares with weights by the residuals."""
        if not np.isnan(start).any():
            return start
        own = [i for i, name in enumerate(self.parameters) if name not in self.spreads.names]
        number = self.columns[self.which]
        scales = [float(np.std(self.values[number == k])) or 1.0 for k in range(len(self.names))]
        point = start[own]
        for _ in range(_REWEIGHTED):
            near = self.least_squares(scales)
            if own:
                point = estimate(near, point, search).point
            value, _first = near.rows(point)
            scales = self._deviations_of(near, value)
        found = start.copy()
        found[own] = point
        likely = {**dict(zip(self.spreads.deviations, scales)), **self._correlations_of(value)}
        for i, name in enumerate(self.parameters):
            if name in likely and np.isnan(found[i]):
                found[i] = np.clip(likely[name], self.low[i], self.high[i])
        return found

    def _deviations_of(self, near: Problem, value: Any) -> list[float]:
        """The root mean squares of the residuals of each response. Raises EvaluationError where one is 0 but for
        rounding, as its likelihood has no maximum."""
        fits = fits_of_responses(self.names, self.columns[self.which], self.values, value, self.columns[self.scale])
        for name, own in fits.items():
            if not 1 - own.r2 > _EXACT:
                raise EvaluationError(
                    f"the model gives '{name}' exactly, so that its standard deviation is 0",
                    hint=f"give the standard deviations: --sigma {name}=1,…",
                )
        return [own.s for own in fits.values()]

    def _correlations_of(self, value: Any) -> dict[str, float]:
        """The correlations of the residuals. Raises EvaluationError where these depend on each other linearly, as the
        likelihood has no maximum then."""
        if not self.spreads.correlations:
            return {}
        residuals = ((self.values - value) / self.columns[self.scale]).reshape(len(self.names), -1)
        residuals = residuals / np.sqrt((residuals**2).sum(axis=1, keepdims=True))
        matrix = residuals @ residuals.T
        if not np.linalg.eigvalsh(matrix)[0] > _SINGULAR:
            raise EvaluationError(
                "the residuals of the responses depend on each other linearly, so that their covariances are singular",
                hint="leave out a response, or --correlated",
            )
        return {name: float(matrix[i, j]) for (i, j), name in self.spreads.correlations.items()}

    def with_deviance(self, found: Statistics, point: Any) -> Statistics:
        return found

    def doubts(self, point: Any) -> list[str]:
        return []

    def of_responses(self, point: Any) -> dict[str, ResponseFit]:
        """The goodness of fit of each response at a point."""
        near = self.least_squares([1.0] * len(self.names))
        at = dict(zip(self.parameters, point))
        value, _ = near.rows(np.array([at[name] for name in near.parameters]))
        return fits_of_responses(self.names, self.columns[self.which], self.values, value, self.columns[self.scale])


class CorrelatedResponses(ResponsesProblem):
    """The same where the responses of a row are correlated, computed from the programs of their residuals."""

    def with_residuals(self, residuals: Sequence[tree.Module]) -> CorrelatedResponses:
        about = residuals, self.spreads, self.parameters, self.which, self.scale
        self._first, self._second = (CorrelatedRows(*about, order, self.limits) for order in (1, 2))
        return self

    def row_trace(self, inputs: Mapping[str, Any], wrt: Sequence[str], order: int) -> Trace:
        raise NotRecordableError("the density of correlated responses is no program")

    def failure(self, point: Any, when: str = "at the start, ") -> GradcliError | None:
        if np.isfinite(self.results(point).value).all():
            return None
        near = self.least_squares([1.0] * len(self.names))
        at = self._shared(point)
        found = near.failure(np.array([at[name] for name in near.parameters]), when)
        names = ", ".join(self.spreads.correlations.values())
        return found or EvaluationError(
            f"{when}the correlations {names} are impossible together", hint="leave out the start values of these"
        )


class StackedResponses(Problem):
    """The least squares of several responses with given standard deviations; a row is a response of a row of the data,
    and `which` is the column of its number."""

    is_stackable = False
    which: str
    names: Sequence[str]

    def of_responses(self, point: Any) -> dict[str, ResponseFit]:
        value, _ = self.rows(point)
        return fits_of_responses(self.names, self.columns[self.which], self.response, value, self.sigma)


def fits_of_responses(
    names: Sequence[str], number: Any, response: Any, value: Any, sigma: Any
) -> dict[str, ResponseFit]:
    """The goodness of fit of each response; `number` `[n]` are those of the responses."""
    weights = np.broadcast_to(np.asarray(sigma, "float64"), len(response)) ** -2.0
    found = {}
    for k, name in enumerate(names):
        mine = number == k
        y, off, weight = response[mine], (response - value)[mine], weights[mine]
        with np.errstate(all="ignore"):
            rss = np.float64((weight * off**2).sum())
            about_mean = (weight * (y - np.average(y, weights=weight)) ** 2).sum()
            found[name] = ResponseFit(len(y), float(rss), float(np.sqrt(rss / len(y))), float(1 - rss / about_mean))
    return found


class PosedResponses(NamedTuple):
    """A posed fit, the data with a row for each row of the table, and the indices of the rows of each group."""

    question: PosedFit
    data: Data
    groups: Mapping[str | None, Any]
    relocation: Relocation


class _Rows(NamedTuple):
    """The `data` with a number in each place; only those that a response of a row needs are used. `seen` `[m, n]` says
    which responses each row has."""

    data: Data
    seen: Any


def posed_responses(request: FitRequest) -> PosedResponses:
    """Read the data, and build the problem.

    Raises BindingError for names and data that do not fit together, and UsageError for options that several responses
    lack.
    """
    _check(request)
    texts = read_responses(request.model)
    relocation = Relocation(request.model)
    with relocation.relocating():
        return _posed(request, texts, relocation)


def _posed(request: FitRequest, texts: ResponseTexts, relocation: Relocation) -> PosedResponses:
    columns = request.table.columns
    _check_formulas(texts)
    model = relocation.parsed(texts.of_formulas())
    if indexed_parameters(model, columns):
        raise UsageError("parameters with levels are for one response", hint="--by fits groups apart")
    taken = {*columns, *scope.free_names(model)}
    spreads = _spread_names(texts, taken, request.correlated) if request.sigma is None else Spreads([], {})
    given = request.parameters.without(spreads.names)
    everywhere = [name for name in (request.weights,) if isinstance(name, str)]
    sigmas = [1.0] * len(texts.formulas) if request.sigma is None else sigmas_of(request.sigma, texts.names)
    others = [*everywhere, *(sigma for sigma in sigmas if isinstance(sigma, str))]
    pooled = ModelText(model.source, model, relocation.parsed(texts.of_responses()))
    names = classify_names(pooled, request.table, given, others)
    words = [name for name in (request.by, request.clusters) if name is not None]
    check_used(request, [*names.needed, *words])
    rows = _read(request, texts, relocation, names, sigmas, everywhere, words)
    _check_responses(texts, rows)
    which = unused_name("number_of_response", taken)
    stacked = _stacked(request, rows, which, sigmas)
    scale = unused_name("scale_of_row", taken)
    if request.sigma is None:
        question = _posed_density(request, texts, relocation, names, stacked, spreads, scale)
    else:
        question = _posed_least_squares(request, texts, relocation, names, stacked)
    groups: Mapping[str | None, Any] = {None: np.arange(len(stacked.row))}
    if request.by is not None:
        of_rows = rows.data.grouped(request.by)
        groups = {name: np.flatnonzero(np.isin(stacked.row, own)) for name, own in of_rows.items()}
    return PosedResponses(question, rows.data, groups, relocation)


def _check(request: FitRequest) -> None:
    known = request.known
    options = {
        "--response": request.response,
        "--x-sigma": request.x_sigma,
        "--offset": request.offset,
        "--trials": request.trials,
        "--against": request.against,
        "--cross-validate": request.resampling.folds,
    }
    refuse(options, "several responses")
    if known.family != "gaussian":
        raise UsageError("several responses are measurements", hint="leave out --family, or fit them apart")
    if request.correlated and request.sigma is not None:
        raise UsageError("correlations are estimated with the standard deviations", hint="leave out --sigma")
    if known.is_robust and request.sigma is None:
        raise UsageError(
            "a robust loss of several responses takes their standard deviations as given", hint="--sigma y1=0.1,y2=2"
        )
    if known.errors == ROBUST:
        raise UsageError(
            "--errors robust takes the responses of a row for independent",
            hint="--errors cluster:COLUMN, with a column that numbers the rows, does not",
        )


def _check_formulas(texts: ResponseTexts) -> None:
    """Raise ProgramSyntaxError for a statement behind a formula."""
    for each in texts.formulas:
        line = each.formula.partition(";")[0]
        if line != each.formula:
            start = each.formula_start + len(line)
            raise ProgramSyntaxError(
                "a statement stands behind a formula",
                hint="statements stand before the first response: c = 2; y1 ~ a*c; y2 ~ b*c",
                source=texts.source,
                span=Span(start, start + 1),
            )


def _spread_names(texts: ResponseTexts, taken: set[str], correlated: bool) -> Spreads:
    """The names of the parameters of the standard deviations and correlations. Raises BindingError for one that the model
    or the data have."""
    own = [name if name.isidentifier() else f"{k}" for k, name in enumerate(texts.names, start=1)]
    pairs = [*combinations(range(len(own)), 2)] if correlated else []
    found = Spreads([f"s_{name}" for name in own], {(i, j): f"r_{own[i]}_{own[j]}" for i, j in pairs})
    wholes = [f"the standard deviation of '{name}'" for name in texts.names]
    wholes += [f"the correlation of '{texts.names[i]}' and '{texts.names[j]}'" for i, j in pairs]
    for k, (name, whole) in enumerate(zip(found.names, wholes)):
        if name in taken or name in found.names[:k]:
            raise BindingError(
                f"'{name}' is {whole}, and another name of the model or the data",
                hint="call that otherwise, or give --sigma",
            )
    return found


def _read(
    request: FitRequest,
    texts: ResponseTexts,
    relocation: Relocation,
    names: ModelNames,
    sigmas: Sequence[str | float],
    everywhere: Sequence[str],
    words: Sequence[str],
) -> _Rows:
    """The rows that have at least one response with all that its formula needs."""
    table: DataTable = request.table
    read = table.taken(names.needed, words, [name for name in names.needed if name not in everywhere])
    there = {name: ~np.isnan(column) for name, column in read.columns.items()}
    known = np.ones(len(read.rows), "bool")
    for categories in read.texts.values():
        known &= categories.known
    seen = []
    for k, each in enumerate(texts.formulas):
        own = {
            *scope.free_names(relocation.parsed(texts.of_formula(k))),
            *scope.free_names(parse_charged(each.response)),
        }
        sigma = sigmas[k]
        own |= {sigma} if isinstance(sigma, str) else set()
        has = known.copy()
        for name in own:
            has &= there.get(name, True)
        seen.append(has)
    of_rows = np.stack(seen)
    # A response is correlated with all others of its row.
    kept = of_rows.all(axis=0) if request.correlated else of_rows.any(axis=0)
    # A number that is missing is not used; that of another row keeps the formula there where it has a value.
    filled = {n: np.where(there[n], c, c[there[n].argmax()]) for n, c in read.columns.items() if there[n].any()}
    filled |= {n: np.ones(len(c)) for n, c in read.columns.items() if not there[n].any()}
    return _Rows(read._replace(columns=filled).kept(kept), of_rows[:, kept])


def _check_responses(texts: ResponseTexts, rows: _Rows) -> None:
    for each, seen in zip(texts.formulas, rows.seen):
        if not seen.any():
            raise BindingError(
                f"there are no data of '{each.response}'", hint="a row counts where the response and its predictors are"
            )


class _Stacked(NamedTuple):
    """The `data` with a row for each response of a row, whose number is in the column `which`; the indices `row` `[n]`
    of the rows; their standard deviations `sigma` `[n]` up to a factor; and the codes `[n]` of the units that are
    sampled together."""

    data: Data
    which: str
    row: Any
    sigma: Any
    units: Any


def _stacked(request: FitRequest, rows: _Rows, which: str, sigmas: Sequence[str | float]) -> _Stacked:
    data = rows.data
    number, row = np.nonzero(rows.seen)
    deviations = [data.columns[sigma] if isinstance(sigma, str) else np.full(len(data.rows), sigma) for sigma in sigmas]
    sigma = np.stack(deviations)[number, row]
    check_sigma(sigma, data.rows[row])
    if request.weights is not None:
        sigma = sigma * np.broadcast_to(sigma_of_weights(request.weights, data), len(data.rows))[row]
    columns = {name: column[row] for name, column in data.columns.items()} | {which: number.astype(float)}
    stacked = Data(columns, data.rows[row], data.left_out, {name: own.at(row) for name, own in data.texts.items()})
    # All responses of a row are sampled together.
    units = stacked.rows if request.clusters is None else stacked.texts[request.clusters].codes
    return _Stacked(stacked, which, row, sigma, units)


def _posed_density(
    request: FitRequest,
    texts: ResponseTexts,
    relocation: Relocation,
    names: ModelNames,
    stacked: _Stacked,
    spreads: Spreads,
    scale: str,
) -> PosedFit:
    """The problem in which the standard deviations of the responses, and their correlations, are parameters."""
    data, given = stacked.data, request.parameters
    parameters = [*names.parameters, *spreads.names]
    check_settings(given, parameters, request.table.columns)
    for name in [own for own in spreads.names if own not in given.fixed]:
        least, most = (0.0, np.inf) if name in spreads.deviations else (-1.0, 1.0)
        low, high = given.bounds.get(name, (least, most))
        given = given._replace(bounds={**given.bounds, name: (max(low, least), min(high, most))})
    free = [name for name in parameters if name not in given.fixed]
    check_count(len(data.rows), data, given, free)
    start, bounds, priors = point_of(given, free)
    chosen, responses = (relocation.parsed(each) for each in texts.chosen(stacked.which))
    problem = (CorrelatedResponses if request.correlated else ResponsesProblem)(
        relocation.parsed(texts.densities(stacked.which, spreads.deviations, scale)),
        {name: data.columns[name] for name in (*names.columns, stacked.which)} | {scale: stacked.sigma},
        np.zeros(len(data.rows)),
        free,
        request.known._replace(family=LOG_DENSITY),
        sigma=1.0,
        fixed={name: float(given.start[name]) for name in given.fixed},
        priors=priors,
        bounds=bounds,
        limits=request.limits,
        places=data.rows,
        is_typed=False,
    )
    problem.chosen, problem.which, problem.scale = chosen, stacked.which, scale
    problem.values = response_of(responses, data, request.limits)
    problem.spreads, problem.names, problem.clusters = spreads, texts.names, stacked.units
    if isinstance(problem, CorrelatedResponses):
        problem = problem.with_residuals([relocation.parsed(texts.residual(k)) for k in range(len(texts.formulas))])
    check_shape(problem, start)
    return PosedFit(problem, parameters, start, ", ".join(texts.names))


def _posed_least_squares(
    request: FitRequest, texts: ResponseTexts, relocation: Relocation, names: ModelNames, stacked: _Stacked
) -> PosedFit:
    """The problem in which the standard deviations of the responses are given, up to a common factor."""
    model, response = (relocation.parsed(each) for each in texts.chosen(stacked.which))
    text, known = ModelText(request.model, model, response), request.known
    question = posed_fit(text, names, stacked.data, request.parameters, known, stacked.sigma, None, request.limits)
    if question.units is not None:
        raise UsageError("numbers as large or small as these are of one response", hint="give the data in other units")
    found = StackedResponses.__new__(StackedResponses)
    found.__dict__.update(question.problem.__dict__)
    found.which, found.names, found.clusters = stacked.which, texts.names, stacked.units
    return question._replace(problem=found, response_name=", ".join(texts.names))
