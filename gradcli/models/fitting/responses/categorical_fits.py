"""Responses that are categories: multinomial logits, `food ~ a[food] + b[food]*size`, where a parameter has a value for each
category, and ordered ones, `rating ~ b*size`, between whose categories there are cuts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.errors import BindingError, GradcliError, NotRecordableError, UsageError
from gradcli.evaluation.derivative_traces import Trace
from gradcli.language.names import scope
from gradcli.models.data import Categories, Data
from gradcli.models.fitting.fit_requests import FitRequest, check_used, refuse
from gradcli.models.fitting.notation.model_texts import ComposedProgram, ModelText, Relocation, read_model, rewritten
from gradcli.models.fitting.problem.factors import (
    Factor,
    base_of,
    by_level,
    indexed_parameters,
    labels_of,
    level_texts,
    parted,
    without_indices,
)
from gradcli.models.fitting.problem.fit_problems import (
    Parameters,
    PosedFit,
    check_count,
    check_shape,
    classify_names,
    point_of,
    sigma_of_weights,
)
from gradcli.models.fitting.problem.likelihoods import MULTINOMIAL
from gradcli.models.fitting.problem.problems import Problem, in_row
from gradcli.models.fitting.responses.density_problems import DensityProblem
from gradcli.models.fitting.search.estimation import SearchOptions
from gradcli.models.fitting.statistics.inference import Statistics
from gradcli.models.value_checks import nonfinite_error
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.new_tables import unused_name
from gradcli.rows.row_programs import RowProgram
from gradcli.rows.row_results import RowResults

# The most categories, each of which has a formula of its own.
_MOST_CATEGORIES = 50
# Probability of the categories of all rows above which these are separable.
_SEPARATED = 1 - 1e-6
# The parameters between ordered categories.
CUT = "cut"


class CategoryProblem(DensityProblem):
    """The problem of the log probabilities of categories, whose `parameters` have labels such as `a[fish]`; `inner` are
    the names that these have in the program, by label. `codes` `[n]` are the categories, of which there are `count_of`.
    `begin` are starts by label."""

    # The likelihood of linear formulas has one maximum.
    is_searched_widely = False
    inner: Mapping[str, str]
    codes: Any
    begin: Mapping[str, float]

    def program(self, wrt: Sequence[str], order: int) -> RowProgram:
        return super().program([self.inner.get(name, name) for name in wrt], order)

    def row_trace(self, inputs: Mapping[str, Any], wrt: Sequence[str], order: int) -> Trace:
        raise NotRecordableError("the parameters have other names in the program")

    def with_rows(self, rows: Any) -> Problem:
        found = super().with_rows(rows)
        assert isinstance(found, CategoryProblem)
        found.codes = self.codes[rows]
        return found

    def begun(self, start: Any, search: SearchOptions) -> Any:
        begin = [self.begin.get(label, 0.0) for label in self.parameters]
        return np.clip(np.where(np.isnan(start), begin, start), self.low, self.high)

    def _shared(self, point: Any) -> dict[str, float]:
        return {self.inner.get(name, name): value for name, value in super()._shared(point).items()}

    def stacked(self, found: RowResults, keys: Sequence[str], rows: int) -> Any:
        return super().stacked(found, [self.inner.get(key, key) for key in keys], rows)

    def _by_row(self, found: RowResults, shape: tuple[int, int], keys: Sequence[str]) -> tuple[Any, list[Any]]:
        return super()._by_row(found, shape, [self.inner.get(key, key) for key in keys])

    def columns_of(self, points: Any) -> tuple[Any, list[Any]]:
        values, derivatives = zip(*(self.rows(point) for point in points))
        return np.stack(values), [*np.moveaxis(np.stack(derivatives), -1, 0)]

    def failure(self, point: Any, when: str = "at the start, ") -> GradcliError | None:
        found = self.results(point)
        for failed in found.failures:
            return in_row(when, self.places[failed.index], failed.error)
        value, derivatives = self.rows(point)
        bad = ~(np.isfinite(value) & np.isfinite(derivatives).all(axis=1))
        if not bad.any():
            return None
        row = int(bad.argmax())
        given = {name: float(column[row]) for name, column in self.columns.items()}
        wrt = [self.inner.get(name, name) for name in self.parameters]
        error = nonfinite_error(self.model, given | self._shared(point), wrt, "the model is not finite")
        error.hint = "give other start values, or bounds that keep the model where it has a value"
        return in_row(when, self.places[row], error)

    def with_deviance(self, found: Statistics, point: Any) -> Statistics:
        """The statistics with the deviance, of which the categories alone, as often as they come, leave 1 - R²."""
        weight = np.broadcast_to(np.square(1 / np.asarray(self.sigma)), self.count)
        counts = np.bincount(self.codes, weight)
        counts = counts[counts > 0]
        of_shares = -2 * float((counts * np.log(counts / counts.sum())).sum())
        with np.errstate(all="ignore"):
            deviance = -2 * found.loglik
            return found._replace(deviance=deviance, r2=1 - deviance / np.float64(of_shares))

    def doubts(self, point: Any) -> list[str]:
        value, _ = self.rows(point)
        if np.exp(value).min() > _SEPARATED:
            return ["the formulas tell the categories of all rows apart: they fit better the larger the parameters are"]
        return []


class _Levels(NamedTuple):
    """The categories in their order, as they are written, with the `codes` `[n]` of the rows and warnings about them."""

    names: Sequence[str]
    codes: Any
    warnings: Sequence[str]


class PosedCategories(NamedTuple):
    """A posed fit, and its data."""

    question: PosedFit
    data: Data
    relocation: Relocation


def posed_categories(request: FitRequest) -> PosedCategories:
    """Read the data, and build the problem.

    Raises BindingError for names and data that do not fit together, and UsageError for options that categories lack.
    """
    _check(request)
    columns, known = request.table.columns, request.known
    text = read_model(request.model, request.response, [*columns])
    response = text.response_name.strip()
    if response not in columns:
        classify_names(text, request.table, request.parameters)
        raise UsageError(
            f"the categories are a column of the data, and not {response}",
            hint="the name of a column stands before the ~",
        )
    is_multinomial = known.family == MULTINOMIAL
    found = indexed_parameters(text.model, columns)
    other = next((name for name, (column, _) in found.items() if column != response or not is_multinomial), None)
    if other is not None:
        hint = f"{other}[{response}] has one for each category" if is_multinomial else f"write {other}"
        raise UsageError(f"'{other}' has values by '{found[other][0]}', and this is not for categories", hint=hint)
    if is_multinomial and not found:
        raise UsageError(
            "no parameter has a value for each category, so that all are equally probable",
            hint=f"write a[{response}] + b[{response}]*x",
        )
    if found:
        source = without_indices(request.model, [place for _, own in found.values() for place in own])
        text = read_model(source, request.response, [*columns])
    if response in scope.free_names(text.model):
        raise UsageError(f"the model reads its response '{response}'", hint=f"a[{response}] is a parameter by category")
    extra = [] if is_multinomial else [CUT]
    if extra and (CUT in columns or CUT in scope.free_names(text.model)):
        raise BindingError(f"'{CUT}' is what lies between two categories, and another name", hint="call it otherwise")
    whole, levels = parted(request.parameters, [*found, *extra])
    weights = [request.weights] if isinstance(request.weights, str) else []
    names = classify_names(text, request.table, whole.without(extra), weights, found)
    needed = [name for name in names.needed if name != response]
    words = [response, *([request.clusters] if request.clusters is not None else [])]
    check_used(request, [*needed, *words])
    data = request.table.taken(needed, words).complete()
    seen = _levels(data, response, is_multinomial)
    parameters = [*names.parameters, *extra]
    between = [f"{one}|{two}" for one, two in zip(seen.names, seen.names[1:])]
    factors = {name: Factor(response, seen.names, seen.codes) for name in found}
    factors |= {name: Factor(response, between, seen.codes) for name in extra}
    given = by_level(whole, levels, parameters, factors)
    if is_multinomial:
        given = _with_baseline(given, [*found], seen.names[0])
    relocation = Relocation(request.model)
    with relocation.relocating():
        question = _posed(request, text, data, seen, parameters, factors, given, relocation)
    return PosedCategories(question._replace(warnings=seen.warnings), data, relocation)


def _check(request: FitRequest) -> None:
    options = {
        "--x-sigma": request.x_sigma,
        "--offset": request.offset,
        "--by": request.by,
        "--against": request.against,
    }
    refuse(options, f"--family {request.known.family}")


def _levels(data: Data, response: str, is_multinomial: bool) -> _Levels:
    """The categories of the rows: numbers by their size, texts by the alphabet, or for ordered categories as they appear.

    Raises BindingError where there are too few or too many.
    """
    texts: Categories = data.texts[response]
    order = [str(name) for name, rows in texts.grouped().items() if name is not None and len(rows)]
    if len(order) < 2:
        what = f"one category, {level_texts(order)[0]}" if order else "no categories"
        raise BindingError(
            f"'{response}' has {what}, and a fit needs two at least", hint="rows that lack a number do not count"
        )
    if len(order) > _MOST_CATEGORIES:
        raise BindingError(
            f"'{response}' has {len(order):,} categories, and there are at most {_MOST_CATEGORIES}",
            hint="measurements and counts have other families",
        )
    warnings = []
    try:
        ordered = sorted(order, key=float)
    except ValueError:
        ordered = sorted(order) if is_multinomial else order
        if not is_multinomial:
            listed = ", ".join(order)
            warnings.append(
                f"the categories are in the order in which they appear: {listed}; numbers are ordered by size"
            )
    gone = [str(n) for n in dict.fromkeys(data.other_texts.get(response, ())) if n is not None and n not in order]
    if gone:
        warnings.append(f"no row of {', '.join(gone)} has all numbers: the fit is without that")
    place: dict[str | None, int] = {name: i for i, name in enumerate(ordered)}
    codes: Any = np.array([place.get(name, -1) for name in texts.names])[texts.codes]
    return _Levels(level_texts(ordered), codes, warnings)


def _with_baseline(given: Parameters, names: Sequence[str], first: str) -> Parameters:
    """The settings in which the parameters are 0 for the `first` category, but for those that are fixed elsewhere."""
    held = {base_of(label) for label in given.fixed}
    own = [f"{name}[{first}]" for name in names if name not in held]
    for label in own:
        for what, said in (("a start", given.start), ("bounds", given.bounds), ("a prior", given.priors)):
            if label in said and said is not given.bounds:
                raise BindingError(
                    f"'{label}' is given {what}, and it is 0: the others are compared with it",
                    hint=f"--fix fixes another one instead: --fix '{base_of(label)}[…]'",
                )
    start = {**given.start, **dict.fromkeys(own, 0.0)}
    bounds = {label: pair for label, pair in given.bounds.items() if label not in own}
    return Parameters(start, [*given.fixed, *own], bounds, given.priors)


def _posed(
    request: FitRequest,
    text: ModelText,
    data: Data,
    seen: _Levels,
    names: Sequence[str],
    factors: Mapping[str, Factor],
    given: Parameters,
    relocation: Relocation,
) -> PosedFit:
    labels = labels_of(names, factors)
    free = [label for label in labels if label not in given.fixed]
    if not free:
        raise BindingError("the model has no parameters to fit", hint="give fewer of them a fixed value")
    check_count(len(data.rows), data, given, free)
    start, bounds, priors = point_of(given, free)
    taken = {*request.table.columns, *names, *scope.free_names(text.model)}
    inner = {
        label: unused_name(f"{name}_{k}", taken)
        for name, factor in factors.items()
        for k, label in enumerate(labels_of([name], {name: factor}))
    }
    code = unused_name("code_of_category", taken)
    compose = _multinomial if request.known.family == MULTINOMIAL else _ordinal
    model = relocation.parsed(ComposedProgram().add(compose(text, factors, inner, code, len(seen.names))))
    columns = {name: data.columns[name] for name in scope.free_names(model) if name in data.columns}
    # The programs are made where the problem is, and need the names.
    problem = CategoryProblem.__new__(CategoryProblem)
    problem.inner = inner
    problem.__init__(  # type: ignore[misc]
        model,
        columns | {code: seen.codes.astype(float)},
        np.zeros(len(data.rows)),
        free,
        request.known,
        sigma=1.0 if request.weights is None else sigma_of_weights(request.weights, data),
        fixed={label: float(given.start[label]) for label in labels if label in given.fixed},
        priors=priors,
        bounds=bounds,
        limits=request.limits,
        places=data.rows,
        is_typed=False,
    )
    problem.codes = seen.codes
    problem.begin = _cuts(seen, problem, inner) if CUT in names else {}
    if request.clusters is not None:
        problem.clusters = data.texts[request.clusters].codes
    check_shape(problem, start)
    return PosedFit(problem, labels, start, text.response_name)


def _cuts(seen: _Levels, problem: CategoryProblem, inner: Mapping[str, str]) -> dict[str, float]:
    """The cuts where the formula is 0: the log odds of the shares of the categories below."""
    weight = np.broadcast_to(np.square(1 / np.asarray(problem.sigma)), problem.count)
    counts = np.bincount(seen.codes, weight, len(seen.names))
    share = np.cumsum(counts)[:-1] / counts.sum()
    return dict(zip(inner, np.log(share / (1 - share)).tolist()))


def _of_category(source: str, factors: Mapping[str, Factor], inner: Mapping[str, str], k: int) -> str:
    """A formula with the names of the values of category k."""
    for name, factor in factors.items():
        source = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", inner[f"{name}[{factor.levels[k]}]"], source)
    return source


def _multinomial(
    text: ModelText, factors: Mapping[str, Factor], inner: Mapping[str, str], code: str, count: int
) -> str:
    """The program of the logarithm of the probability of the category of a row, the share of the exponential of its
    formula in the sum of all."""
    lines, values = [], [f"{code}_{k}" for k in range(count)]
    for k, value in enumerate(values):
        own = rewritten(text.model, [value + " = {value}"]).source
        lines.append(_of_category(own, factors, inner, k))
    total = values[-1]
    chosen = values[-1]
    for k in range(count - 2, -1, -1):
        total = f"torch.logaddexp({values[k]}, {total})"
        chosen = f"torch.where({code} == {k}, {values[k]}, {chosen})"
    return "\n".join([*lines, f"{chosen} - {total}"])


def _ordinal(text: ModelText, factors: Mapping[str, Factor], inner: Mapping[str, str], code: str, count: int) -> str:
    """The program of the logarithm of the probability of the category of a row: with the distribution function F of the
    logistic distribution F(cut above - value) - F(cut below - value), in factors without cancellation."""
    cuts, value = [*inner.values()], f"{code}_value"
    parts = []
    for k in range(count):
        terms = []
        if k < count - 1:
            terms.append(f"-torch.logaddexp(0, {value} - {cuts[k]})")
        if k:
            terms.append(f"-torch.logaddexp(0, {cuts[k - 1]} - {value})")
        if 0 < k < count - 1:
            terms.append(f"torch.log(-torch.expm1({cuts[k - 1]} - {cuts[k]}))")
        parts.append(" + ".join(terms))
    chosen = parts[-1]
    for k in range(count - 2, -1, -1):
        chosen = f"torch.where({code} == {k}, {parts[k]}, {chosen})"
    return rewritten(text.model, [value + " = {value}", chosen]).source
