"""`design`: the rows that tell most about the parameters of a model, from its exact Fisher information, as weights of
points or as a number of rows for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli import arrays, limits
from gradcli.errors import BindingError, DifferentiationError, EvaluationError, UsageError, did_you_mean, expect
from gradcli.evaluation.row_evaluation import evaluated
from gradcli.io.text_tables import Table, number_text
from gradcli.language.differential_equations import has_differential_equations
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models import checked_arguments
from gradcli.models.designs.approximate_designs import (
    TOLERANCE,
    ACriterion,
    ApproximateDesign,
    Candidates,
    Criterion,
    DCriterion,
    c_optimal_design,
    moved_points,
    optimal_design,
)
from gradcli.models.designs.design_regions import DesignRegion, given_value, region_and_numbers
from gradcli.models.designs.row_information import VARIANCES, RowInformation
from gradcli.models.fitting.derived_quantities import DerivedQuantity, read_derived
from gradcli.models.fitting.notation.model_texts import TILDE, read_model
from gradcli.models.fitting.statistics.information import combination_text, factor_of_rows, information
from gradcli.models.results import Reported
from gradcli.named_tuples import NamedTuple

CRITERIA = ("D", "A", "c")
FAMILIES = tuple(VARIANCES)
# The condition number from which on the information of all candidates counts as singular.
_SINGULAR = 1e12
# The most rows of an exact design.
_MOST_ROWS = 10**9
# Significant digits of points and weights, about those that are exact; and the rounding error of an efficiency.
_DIGITS, _ROUNDING = 10, 1e-12
# The number of candidates, beside the support points, to exchange rows with; and the most exchanges.
_POOL, _MOST_EXCHANGES = 400, 500
# Points nearer to each other than this, relative to the widths of the region, are one.
_SAME = 1e-7
# An exchange must lower the criterion by more than this.
_LEAST_FALL = 1e-10


@dataclass(frozen=True)
class SupportPoint:
    """A point of an approximate design: its inputs by name, and its weight, the share of the rows there."""

    point: dict[str, float]
    weight: float


@dataclass(frozen=True)
class RepeatedRow:
    """A point of an exact design: its inputs by name, and the number of rows there."""

    point: dict[str, float]
    rows: int


@dataclass(frozen=True)
class PlannedEstimate:
    """The value of a parameter or a derived quantity at which a design is best, and the standard error that the rows
    will give it: infinite where they do not determine it."""

    value: float
    error: float


@dataclass(frozen=True)
class OptimalDesign(Reported):
    """An optimal design: the `support` of the approximate one, and for a number of `rows` an `exact` one, whose
    `efficiency` is relative to the approximate one.

    `efficiency_bound` is a lower bound of the efficiency of the approximate design among all designs in the region, by
    the General Equivalence Theorem; it rests on a search on a grid with refinement, and is not proved. Standard errors are those of the exact design, without one those of the approximate
    design times the square root of the number of rows. `left_out` counts the candidates without finite information.
    """

    criterion: str
    support: list[SupportPoint]
    efficiency_bound: float
    rows: int | None
    exact: list[RepeatedRow] | None
    efficiency: float | None
    parameters: dict[str, PlannedEstimate]
    derived: dict[str, PlannedEstimate] | None
    left_out: int | None
    converged: bool = field(default=True)

    def report(self) -> Sequence[Table]:
        return _tables(self)


class DesignRequest(NamedTuple):
    """The options of `design`."""

    rows: int | None = None
    criterion: str | None = None
    derive: str | None = None
    fix: Sequence[str] = ()
    sigma: str = "1"
    family: str = "gaussian"


def design(
    model: str,
    values: Mapping[str, Any] | None = None,
    /,
    *,
    rows: int | None = None,
    criterion: str | None = None,
    derive: str | None = None,
    fix: Sequence[str] | str | None = None,
    sigma: str | float = 1.0,
    family: str = "gaussian",
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    **named: Any,
) -> OptimalDesign:
    """The locally optimal design of experiments for a model, as an `OptimalDesign`.

    The model is `y ~ f`, or `f`. The inputs have a range, "0.01..1" or a tuple of its ends, or a list of levels; the
    other names are parameters, at whose values the design is best; those in `fix` are known. A parameter that the
    information does not depend on needs no value.

    `criterion` is "D", the determinant of the information, "A", the sum of the variances of the parameters, or "c", the
    variance of the quantity `derive`, an expression of parameters such as "V/K". With `rows` there is an exact design
    of that many rows. `sigma` is the standard deviation of the response, a number or an expression of inputs and known
    names, and `family` is one of `gaussian poisson binomial`, the last with one trial a row, whose mean the model is.

    Raises UsageError where there is no region, and for invalid options; BindingError for names without a value; and
    EvaluationError where the region does not determine the parameters.
    """
    expect(model, str, "a model is a text")
    if criterion is not None:
        expect(criterion, str, "a criterion is a text")
    if derive is not None:
        expect(derive, str, "'derive' is a text")
    asked = DesignRequest(
        None if rows is None else checked_arguments.integer(rows, "the number of rows", 1),
        criterion,
        derive,
        checked_arguments.names(fix, "'fix'"),
        sigma if isinstance(sigma, str) else repr(checked_arguments.number(sigma, "'sigma'")),
        family,
    )
    given = {**checked_arguments.mapping_by_name(values, "'values'"), **named}
    read = {name: given_value(name, value) for name, value in given.items()}
    return designed(model, read, asked, (max_steps, max_elements))


def designed(model: str, values: Mapping[str, Any], asked: DesignRequest, most: tuple[int, int]) -> OptimalDesign:
    """The design for `values` as `given_value` returns them; `most` are the limits of steps and elements of a row."""
    limits.check(max_steps=most[0], max_elements=most[1])
    if asked.rows is not None and asked.rows > _MOST_ROWS:
        raise UsageError(f"{asked.rows:,} rows are more than a design has", hint="leave out the rows: it has weights")
    with limits.within(*most), arrays.using_dtype("float64"), arrays.quiet():
        problem = _Problem.of(model, values, asked, most)
        return problem.designed()


class _Problem(NamedTuple):
    """A design problem: the region, the parameters with their values, the information of rows, and for the criterion c
    the derived quantity."""

    asked: DesignRequest
    criterion: str
    region: DesignRegion
    parameters: Mapping[str, float]
    rows: RowInformation
    quantity: DerivedQuantity | None

    @classmethod
    def of(cls, text: str, values: Mapping[str, Any], asked: DesignRequest, most: tuple[int, int]) -> _Problem:
        checked_arguments.one_of(asked.family, FAMILIES, "family")
        criterion = _criterion(asked)
        module, deviation = _model(text), parse_charged(asked.sigma)
        reads = {name: where for name, where in scope.free_names(module).items() if _is_input(name, values)}
        of_deviation = scope.free_names(deviation)
        for name in values:
            if name not in reads and name not in of_deviation:
                raise scope.unread_name(name, [*reads], values, module)
        region, numbers = region_and_numbers(values)
        for name in asked.fix:
            if name not in numbers:
                known = f"write {name}=1" if name in reads or not numbers else f"there are {', '.join(numbers)}"
                hint = known if name in reads else did_you_mean(name, numbers, known)
                raise BindingError(f"--fix names '{name}', which has no value", hint=hint)
        missing = [name for name in reads if name not in values]
        parameters = {n: numbers.get(n, 1.0) for n in reads if n not in region.inputs and n not in asked.fix}
        if not parameters:
            raise UsageError("the model has no parameters to estimate", hint="give one a value, as in k=0.5")
        for name, where in of_deviation.items():
            if name in parameters or (_is_input(name, values) and name not in values):
                raise BindingError(
                    f"the standard deviation reads '{name}', which is no input and not known",
                    hint=f"--fix {name}" if name in numbers else f"give it a value, as in {name}=1",
                    span=where.span,
                    source=asked.sigma,
                )
        rows = RowInformation(
            module, region.names, [*parameters], {**numbers, **parameters}, asked.family, deviation, most
        )
        quantity = None if asked.derive is None else _derived(asked.derive, [*parameters])
        problem = cls(asked, criterion, region, parameters, rows, quantity)
        if missing:
            problem._check_missing(missing, module, reads)
        return problem

    def _check_missing(self, missing: Sequence[str], module: Module, reads: Mapping[str, Any]) -> None:
        """Raise BindingError for parameters without a value on which the design depends."""
        points = self.region.candidates()
        # Raises the error of a model that is no number.
        self.rows.gradients(points[:1])
        curved = self.rows.curved_parameters(points)
        if self.quantity is not None and not self._is_linear(self.quantity):
            curved |= {*self.quantity.reads.values()}
        needed = [name for name in missing if name in curved]
        if needed:
            raise BindingError(
                f"'{needed[0]}' has no value, and the information depends on it",
                hint=f"give it its likely value, as in {needed[0]}=1, or a range if it is an input, {needed[0]}=0..1",
                span=reads[needed[0]].span,
                source=module.source,
            )

    def _is_linear(self, quantity: DerivedQuantity) -> bool:
        """Return whether the second derivatives of a quantity vanish, here and elsewhere."""
        for shift in (0.0, 0.7310585):
            given = {name: self.parameters[label] + shift for name, label in quantity.reads.items()}
            _, found, _ = evaluated(quantity.program, given, [*given], 2, (MAX_STEPS, MAX_ELEMENTS))
            if any(second is not None and np.any(second) for key, second in found.items() if "," in key):
                return False
        return True

    def designed(self) -> OptimalDesign:
        candidates, left_out = self._candidates()
        count = self.asked.rows
        exact: _ExactDesign | None = None
        if self.criterion == "c":
            found = c_optimal_design(candidates, self._slope() @ candidates.units)
            approximate = found.design
            self._check_rows(len(approximate.weights), "points of the best design")
            if count is not None:
                exact = _exact_c_design(approximate, found.coefficients, count)
        else:
            self._check_rows(len(self.parameters), "parameters")
            criterion: Criterion = (
                DCriterion() if self.criterion == "D" else ACriterion(candidates.units.T @ candidates.units)
            )
            approximate = optimal_design(candidates, criterion)
            if self.criterion == "D" and len(approximate.weights) == len(self.parameters):
                # As many points as parameters have the same weights, here without rounding errors.
                approximate = approximate._replace(weights=np.full(len(self.parameters), 1 / len(self.parameters)))
            if count is not None:
                exact = _exact_design(candidates, criterion, approximate, count)
        return self._result(approximate, exact, left_out)

    def _check_rows(self, least: int, what: str) -> None:
        if self.asked.rows is not None and self.asked.rows < least:
            raise UsageError(f"{self.asked.rows} rows are fewer than the {least} {what}", hint=f"--rows {least}")

    def _candidates(self) -> tuple[Candidates, int]:
        """The candidates with finite information, and the number of those without. Raises the error of the first where
        none has, and EvaluationError where all of them together do not determine the parameters."""
        points = self.region.candidates()
        gradients = self.rows.gradients(points)
        finite = np.isfinite(gradients).all(axis=1)
        if not finite.any():
            raise self.rows.failure(points[0])
        points, gradients = points[finite], gradients[finite]
        scales = _scales(gradients)
        factor = np.linalg.qr(gradients * scales / math.sqrt(len(gradients)), mode="r")
        if len(factor) == len(scales) and np.linalg.cond(factor) < _SINGULAR:
            units = scales[:, None] * np.linalg.inv(factor)
        else:
            units = np.diag(scales)
        if self.criterion != "c":
            self._check_determined(gradients * scales, scales)
        return Candidates(self.region, self.rows, points, gradients @ units, units), int((~finite).sum())

    def _check_determined(self, gradients: Any, scales: Any) -> None:
        found = information(factor_of_rows(gradients[None]), len(gradients))
        if not found.is_determined[0]:
            text = combination_text(
                found.null[0][0] * scales, np.array([*self.parameters.values()]), [*self.parameters]
            )
            raise EvaluationError(
                f"no rows of this region determine {text}: the information is singular",
                hint="--fix a parameter, or give the inputs other ranges",
            )

    def _slope(self) -> Any:
        """The derivatives `[p]` of the quantity by the parameters. Raises DifferentiationError where they are 0 or not
        finite."""
        assert self.quantity is not None
        _, slopes = self._quantity()
        slope = np.array([slopes.get(name, 0.0) for name in self.parameters])
        if not np.isfinite(slope).all() or not slope.any():
            raise DifferentiationError(
                f"the derivatives of '{self.quantity.program.source}' by the parameters are "
                + ("0" if np.isfinite(slope).all() else "not finite"),
                hint="no design is best for it here",
            )
        return slope

    def _quantity(self) -> tuple[float, dict[str, float]]:
        """The value of the quantity, and its derivatives by parameter."""
        assert self.quantity is not None
        reads = self.quantity.reads
        given = {name: self.parameters[label] for name, label in reads.items()}
        value, found, _ = evaluated(self.quantity.program, given, [*given], 1, (MAX_STEPS, MAX_ELEMENTS))
        if arrays.shape(value):
            raise UsageError(f"'{self.quantity.program.source}' is no number", hint="a design is best for one quantity")
        slopes = {reads[name]: 0.0 if slope is None else float(slope) for name, slope in found.items()}
        return float(value), slopes

    def _result(self, approximate: ApproximateDesign, exact: _ExactDesign | None, left_out: int) -> OptimalDesign:
        points, weights = (approximate.points, approximate.weights) if exact is None else (exact.points, exact.rows)
        covariance = self._covariance(points, weights)
        errors = np.sqrt(np.diagonal(covariance))
        derived = None
        if self.quantity is not None:
            value, slopes = self._quantity()
            slope = np.array([slopes.get(name, 0.0) for name in self.parameters])
            derived = {self.quantity.name: PlannedEstimate(value, self._error(slope, points, weights))}
        return OptimalDesign(
            self.criterion,
            [
                SupportPoint(self._named(each), weight)
                for each, weight in zip(approximate.points, approximate.weights.tolist())
            ],
            approximate.bound,
            self.asked.rows,
            None
            if exact is None
            else [RepeatedRow(self._named(each), rows) for each, rows in zip(exact.points, exact.rows.tolist())],
            None if exact is None else exact.efficiency,
            {
                name: PlannedEstimate(value, float(error))
                for (name, value), error in zip(self.parameters.items(), errors)
            },
            derived,
            left_out or None,
            approximate.bound >= 1 - 1e3 * TOLERANCE,
        )

    def _named(self, point: Any) -> dict[str, float]:
        return dict(zip(self.region.names, map(float, point)))

    def _weighted(self, points: Any, weights: Any) -> Any:
        return self.rows.gradients(points) * np.sqrt(weights)[:, None]

    def _covariance(self, points: Any, weights: Any) -> Any:
        """The covariance `[p, p]` of the parameters, infinite on the diagonal for those that are not determined."""
        gradients = self._weighted(points, weights)
        scales = _scales(gradients)
        found = information(factor_of_rows(gradients[None] * scales), len(gradients)).covariance[0]
        return found * scales * scales[:, None]

    def _error(self, slope: Any, points: Any, weights: Any) -> float:
        """The standard error of a quantity with the derivatives `[p]`, also where not all parameters are determined:
        the length of the shortest combination of the rows that gives them."""
        gradients = self._weighted(points, weights)
        scales = _scales(gradients)
        combination = np.linalg.lstsq((gradients * scales).T, slope * scales, rcond=None)[0]
        return float(np.linalg.norm(combination))


def _scales(gradients: Any) -> Any:
    """Factors `[p]` of the columns of gradients `[n, p]` that make their largest element 1; 1 for zeros."""
    largest = np.abs(gradients).max(axis=0)
    return 1 / np.where(largest > 0, largest, 1.0)


def _is_input(name: str, values: Mapping[str, Any]) -> bool:
    """Return whether a name that a program reads is not a constant; e and pi are constants unless they have a value."""
    return name in values or name not in scope.CONSTANTS


def _criterion(asked: DesignRequest) -> str:
    """The criterion. Raises UsageError for an unknown one, and for a derived quantity that it does not fit."""
    found = {"d": "D", "a": "A", "c": "c"}.get((asked.criterion or ("c" if asked.derive else "D")).lower())
    if found is None:
        raise UsageError(f"there is no criterion {asked.criterion!r}", hint=f"it is one of {', '.join(CRITERIA)}")
    if found == "c" and asked.derive is None:
        raise UsageError("the criterion c is for a quantity", hint="say which, as in --derive 'V/K'")
    if found != "c" and asked.derive is not None:
        raise UsageError(f"the criterion {found} is for all parameters", hint="--criterion c is for one quantity")
    return found


def _model(text: str) -> Module:
    """The program of the model of one row. Raises UsageError for differential equations."""
    if has_differential_equations(text):
        raise UsageError(
            "a design is for a formula, not for differential equations",
            hint="solve_ivp(…) in the formula solves them",
        )
    return read_model(text).model if TILDE.search(text) else parse_charged(text)


def _derived(text: str, parameters: Sequence[str]) -> DerivedQuantity:
    """The quantity of a text, `V/K` or `ratio=V/K`."""
    name, equals, formula = text.partition("=")
    is_named = equals and name.strip().isidentifier() and not formula.startswith("=")
    label, formula = (name.strip(), formula) if is_named else (text.strip(), text)
    if label in parameters and formula.strip() == label:
        # A parameter is a quantity too, whose name would be taken.
        (found,) = read_derived({f"{label} ": formula}, parameters)
        return found._replace(name=label)
    (found,) = read_derived({label: formula}, parameters)
    return found


def _tables(found: OptimalDesign) -> list[Table]:
    """The tables of a design: how good it is, its points, and the standard errors to expect."""
    facts = [
        ("criterion", found.criterion),
        ("support points", str(len(found.support))),
        ("efficiency at least", f"{_bound_text(found.efficiency_bound)}, by a search on a grid"),
    ]
    if found.efficiency is not None:
        facts.append((f"efficiency of {found.rows:,} rows", _rounded(found.efficiency)))
    names = [*found.support[0].point]
    made = [
        Table((), facts),
        Table((*names, "weight"), [(*_numbers(each.point), _rounded(each.weight)) for each in found.support]),
    ]
    if found.exact is not None:
        made.append(Table((*names, "rows"), [(*_numbers(each.point), str(each.rows)) for each in found.exact]))
    made.append(_estimates("parameter", found.parameters, found.rows))
    if found.derived is not None:
        made.append(_estimates("derived", found.derived, found.rows))
    return made


def _numbers(point: Mapping[str, float]) -> Sequence[str]:
    return [_rounded(value) for value in point.values()]


def _rounded(number: float) -> str:
    """A number that was found by a search, which JSON has with all digits."""
    return f"{number:.{_DIGITS}g}"


def _bound_text(bound: float) -> str:
    """A lower bound, rounded down unless it is 1 up to rounding errors."""
    return _rounded(bound if bound > 1 - _ROUNDING else math.floor(bound * 10**_DIGITS) / 10**_DIGITS)


def _estimates(what: str, estimates: Mapping[str, Any], rows: int | None) -> Table:
    heading = "standard error" if rows is not None else "standard error, times root of rows"
    return Table(
        (what, "value", heading),
        [
            (name, number_text(each.value), "not determined" if math.isinf(each.error) else f"{each.error:.4g}")
            for name, each in estimates.items()
        ],
    )


class _ExactDesign(NamedTuple):
    """Points `[m, d]` with their numbers of rows `[m]`, and the efficiency relative to the best approximate design."""

    points: Any
    rows: Any
    efficiency: float


def _rounded_weights(weights: Any, count: int) -> Any:
    """Numbers of rows `[m]` for weights `[m]`, none 0, with the sum `count`, which is at least m: the efficient
    rounding of F. Pukelsheim and S. Rieder (Biometrika 79 (1992) 763)."""
    rows = np.ceil((count - len(weights) / 2) * weights).astype(int)
    while rows.sum() < count:
        rows[np.argmin(rows / weights)] += 1
    while rows.sum() > count:
        rows[np.argmax((rows - 1) / weights)] -= 1
    return rows


def _exact_design(
    candidates: Candidates, criterion: Criterion, approximate: ApproximateDesign, count: int
) -> _ExactDesign:
    """The best exact design that is found with `count` rows, at least as many as parameters."""
    support = candidates.gradients_at(approximate.points)
    matrix = (support.T * approximate.weights) @ support
    rises = np.einsum("ij,jk,ik->i", candidates.gradients, criterion.slope(matrix), candidates.gradients)
    # A sample of the best candidates, and the same number of others everywhere.
    by_rise = np.argsort(-rises, kind="stable")[: 4 * _POOL : 8]
    evenly = np.unique(np.linspace(0, len(rises) - 1, _POOL // 2).astype(int))
    chosen = np.unique(np.concatenate([by_rise, evenly]))
    points = np.concatenate([approximate.points, candidates.points[chosen]])
    gradients = np.concatenate([support, candidates.gradients[chosen]])
    weights = np.concatenate([approximate.weights, np.zeros(len(chosen))])
    best: tuple[float, Any, Any] | None = None
    for rows in _starts(gradients, weights, criterion, count):
        rows = _exchanged(rows, gradients, criterion)
        taken = rows > 0
        shares = rows[taken] / count
        moved = moved_points(points[taken], shares, candidates, criterion)
        own = candidates.gradients_at(moved)
        value = criterion.value((own.T * shares) @ own)
        if best is None or value < best[0] - _LEAST_FALL:
            best = value, moved, rows[taken]
    assert best is not None
    value, moved, rows = best
    moved = _snapped(moved, approximate.points, candidates.region.widths)
    places, inverse = np.unique(moved, axis=0, return_inverse=True)
    totals = np.bincount(inverse.ravel(), weights=rows).astype(int)
    return _ExactDesign(places, totals, min(1.0, float(np.exp(criterion.value(matrix) - value))))


def _snapped(points: Any, support: Any, widths: Any) -> Any:
    """The points, of which those at a support point are that one without rounding errors."""
    apart = np.abs((points[:, None] - support[None]) / widths).max(axis=2)
    nearest = apart.argmin(axis=1)
    return np.where(apart.min(axis=1)[:, None] < _SAME, support[nearest], points)


def _starts(gradients: Any, weights: Any, criterion: Criterion, count: int) -> list[Any]:
    """Numbers of rows from which to exchange: the rounded weights where there are rows for each support point, and
    those that are chosen one after the other."""
    support = int((weights > 0).sum())
    found = []
    if count >= support:
        rows = np.zeros(len(weights), int)
        rows[:support] = _rounded_weights(weights[:support], count)
        found.append(rows)
    if count < 4 * support:
        found.append(_greedy(gradients, criterion, count))
    return found


def _greedy(gradients: Any, criterion: Criterion, count: int) -> Any:
    from scipy.linalg import qr

    _, _, order = qr(gradients.T, mode="economic", pivoting=True)
    rows = np.zeros(len(gradients), int)
    rows[order[: gradients.shape[1]]] = 1
    while rows.sum() < count:
        matrix = (gradients.T * rows) @ gradients
        added = matrix + gradients[:, :, None] * gradients[:, None, :]
        rows[np.argmin(criterion.values(added))] += 1
    return rows


def _exchanged(rows: Any, gradients: Any, criterion: Criterion) -> Any:
    """Numbers of rows, after the best exchange of one row for another as long as there is one."""
    rows, count = rows.copy(), rows.sum()
    products = gradients[:, :, None] * gradients[:, None, :] / count
    value = criterion.value(np.tensordot(rows, products, 1))
    for _ in range(_MOST_EXCHANGES):
        matrix, taken = np.tensordot(rows, products, 1), np.flatnonzero(rows)
        tried = criterion.values(matrix - products[taken, None] + products[None])
        place = int(np.argmin(tried))
        found = float(tried.flat[place])
        if not found < value - _LEAST_FALL:
            break
        out, into = divmod(place, len(gradients))
        rows[taken[out]] -= 1
        rows[into] += 1
        value = found
    return rows


def _exact_c_design(approximate: ApproximateDesign, coefficients: Any, count: int) -> _ExactDesign:
    """The exact c-optimal design at the support points with `count` rows, at least as many as points; the variance is
    the sum of coefficients²/rows."""
    squares = coefficients**2
    rows = _rounded_weights(approximate.weights, count)
    while True:
        falls = squares / rows - squares / (rows + 1)
        rises = np.where(rows > 1, squares / np.maximum(rows - 1, 1) - squares / rows, np.inf)
        into, out = int(np.argmax(falls)), int(np.argmin(rises))
        if into == out or falls[into] <= rises[out] * (1 + 1e-12):
            break
        rows[into] += 1
        rows[out] -= 1
    variance = float((squares / rows).sum())
    efficiency = float(np.abs(coefficients).sum()) ** 2 / count / variance
    return _ExactDesign(approximate.points, rows, min(1.0, efficiency))
