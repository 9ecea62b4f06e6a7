"""Approximate designs: points with the weights that give the most information. Those for D and A add the points where
the General Equivalence Theorem is violated most, and move all points along exact gradients; those for c are linear
programs, by Elfving's theorem, also where the best information matrix is singular (G. Elfving, Annals of Mathematical
Statistics 23 (1952) 255)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.errors import EvaluationError
from gradcli.models.designs.design_regions import DesignRegion
from gradcli.models.designs.row_information import RowInformation
from gradcli.named_tuples import NamedTuple

# The best design has the ratio 1: it is found where the greatest ratio exceeds 1 by no more than this.
TOLERANCE = 1e-9
# A ratio above 1 by less than this is a rounding error.
_NO_RISE = 1e-13
# Points nearer to each other than this, relative to the widths of the region, are one.
_SAME = 1e-9
# A point without a gradient is searched for within this distance of a minimum.
_ROOT_REACH = 1e-4
# Points nearer than this are joined where the design is as good with one of them.
_NEAR = 0.02
# Weights below this are 0.
_LEAST_WEIGHT = 1e-7
_MOST_ROUNDS, _MOST_STEPS = 60, 100
# Coordinates below this, relative to the widths of the region, are 0.
_ZERO = 1e-14
# The value of a function where it has none, for a line search.
_NO_VALUE = 1e300
# A slope below this, relative to the value and for coordinates from 0 to 1, is 0; and the most searches from a start.
_FLAT, _MOST_RESTARTS = 1e-6, 20
# A search along gradients; rounding errors of information that is nearly singular can keep it from its end.
_SEARCH = {"ftol": 0.0, "gtol": 1e-13, "maxiter": 200, "maxfun": 400}
# A search is repeated where the last one rose by more than this; and the most rounds without a better bound.
_RISE, _MOST_VAIN_ROUNDS = 1e-10, 3
# Steps along a gradient, relative to the region.
_SIZES = 0.5 ** np.arange(44)
# The number of local maxima of a function over the candidates that are refined.
_MOST_MAXIMA = 24
_MOST_PROGRAMS = 40
# Steps of Remez' algorithm, which converges quadratically; and the condition number from which on a matrix is singular.
_MOST_POLISHES, _SINGULAR = 4, 1e12
# Coefficients below this, relative to the largest, are 0: the linear program has tolerances of this size.
_LEAST = 1e-7
# Points nearer to each other than this, relative to the widths of the region, are one.
_SAME_SUPPORT = 1e-5


class ApproximateDesign(NamedTuple):
    """Points `[m, d]` with their weights `[m]`, whose sum is 1, and the lower bound of the efficiency of the design."""

    points: Any
    weights: Any
    bound: float


class Candidates(NamedTuple):
    """Points `[n, d]` that cover the region, and the gradients `[n, p]` there by combinations of the parameters, whose
    information is about the unit matrix; gradients by the parameters are multiplied by `units` `[p, p]`."""

    region: DesignRegion
    rows: RowInformation
    points: Any
    gradients: Any
    units: Any

    def gradients_at(self, points: Any) -> Any:
        return self.rows.gradients(points) @ self.units

    def slopes_at(self, points: Any) -> tuple[Any, Any]:
        """The gradients `[n, p]` at points, and their derivatives by the inputs, `[n, p, d]`."""
        gradients, slopes = self.rows.gradients_and_slopes(points)
        return gradients @ self.units, np.einsum("npd,pk->nkd", slopes, self.units)


def optimal_design(candidates: Candidates, criterion: Criterion) -> ApproximateDesign:
    """The best approximate design of a criterion whose information matrices are regular."""
    points, gradients = _first_points(candidates)
    weights = np.full(len(points), 1 / len(points))
    best: ApproximateDesign | None = None
    vain = 0
    for _ in range(_MOST_ROUNDS):
        weights = optimal_weights(gradients, weights, criterion)
        points, weights = _merged(points, weights, candidates.region)
        points, weights = _moved(points, weights, candidates, criterion)
        points, weights = _merged(points, weights, candidates.region)
        points, weights = _without_neighbours(points, weights, candidates, criterion)
        gradients = candidates.gradients_at(points)
        weights = optimal_weights(gradients, weights, criterion)
        points, gradients, weights = (part[weights > 0] for part in (points, gradients, weights))
        slope = criterion.slope(_information(gradients, weights))
        beyond, ratio = _greatest(candidates, slope)
        vain += 1
        if best is None or 1 / ratio > best.bound:
            best, vain = ApproximateDesign(points, weights, min(1.0, 1 / ratio)), 0
        if ratio <= 1 + TOLERANCE or vain == _MOST_VAIN_ROUNDS:
            break
        added = beyond[_distances(beyond, points, candidates.region) > _SAME]
        if not len(added):
            break
        points = np.concatenate([points, added])
        gradients = np.concatenate([gradients, candidates.gradients_at(added)])
        weights = np.concatenate([weights * 0.9, np.full(len(added), 0.1 / len(added))])
    assert best is not None
    return best


def _information(gradients: Any, weights: Any) -> Any:
    return (gradients.T * weights) @ gradients


def _first_points(candidates: Candidates) -> tuple[Any, Any]:
    """p candidates with a regular information matrix: those that a QR decomposition with pivoting chooses."""
    from scipy.linalg import qr

    _, _, order = qr(candidates.gradients.T, mode="economic", pivoting=True)
    chosen = order[: candidates.gradients.shape[1]]
    return candidates.points[chosen], candidates.gradients[chosen]


def optimal_weights(gradients: Any, weights: Any, criterion: Criterion) -> Any:
    """The best weights of rows with gradients `[m, p]`, from others, by Newton's method within the bound 0.

    h(M) + the sum of the weights is least for weights whose sum is 1.
    """
    weights = np.maximum(weights, _LEAST_WEIGHT)

    def objective(given: Any) -> float:
        return criterion.value(_information(gradients, given)) + float(given.sum())

    value, found = objective(weights), np.inf
    for _ in range(_MOST_STEPS):
        matrix = _information(gradients, weights)
        slope = 1 - np.einsum("ij,jk,ik->i", gradients, criterion.slope(matrix), gradients)
        free = (weights > 0) | (slope < 0)
        if not free.any() or np.abs(slope[free]).max() < 1e-14:
            break
        curvature = criterion.curvature(matrix, gradients)[np.ix_(free, free)]
        ridge = 1e-12 * np.trace(curvature)
        step = np.zeros(len(weights))
        step[free] = -np.linalg.solve(curvature + ridge * np.eye(free.sum()), slope[free])
        size = 1.0
        while size > 1e-12:
            tried = np.maximum(weights + size * step, 0.0)
            found = objective(tried)
            if found < value:
                break
            size /= 2
        else:
            break
        falls = value - found
        weights, value = tried, found
        if falls < 1e-16:
            break
    weights = np.where(weights > _LEAST_WEIGHT, weights, 0.0)
    return weights / weights.sum()


def _moved(points: Any, weights: Any, candidates: Candidates, criterion: Criterion) -> tuple[Any, Any]:
    """Points and weights, changed together along the gradient to the nearest best ones."""
    m, places = len(points), _Places(points, candidates)

    def objective(vector: Any) -> tuple[float, Any]:
        found, by_weight, by_place = places.objective(vector[m:], vector[:m], criterion)
        return found, np.concatenate([by_weight, by_place])

    start = np.concatenate([weights, places.start])
    best = _descended(objective, start, [(0.0, None)] * m + [(0.0, 1.0)] * len(places.start))
    return places.points(best[m:]), best[:m]


def moved_points(points: Any, weights: Any, candidates: Candidates, criterion: Criterion) -> Any:
    """Points, moved along the gradient to the nearest best ones for these weights."""
    places = _Places(points, candidates)

    def objective(vector: Any) -> tuple[float, Any]:
        found, _, by_place = places.objective(vector, weights, criterion)
        return found, by_place

    return places.points(_descended(objective, places.start, [(0.0, 1.0)] * len(places.start)))


class _Places:
    """The coordinates of points that can be moved, as a vector of numbers from 0 to 1; `start` has those of the points
    themselves."""

    def __init__(self, points: Any, candidates: Candidates) -> None:
        self._points, self._candidates = points, candidates
        region = candidates.region
        self._continuous = region.is_continuous
        self._low, self._widths = region.low[self._continuous], region.widths[self._continuous]
        self.start = ((points[:, self._continuous] - self._low) / self._widths).ravel()

    def points(self, vector: Any) -> Any:
        """The points `[m, d]` with these coordinates."""
        moved = self._points.copy()
        shares = vector.reshape(len(moved), -1)
        # Ends are met exactly.
        inner = np.where(shares < 1, self._low + shares * self._widths, self._low + self._widths)
        moved[:, self._continuous] = np.where(np.abs(inner) < _ZERO * self._widths, 0.0, inner)
        return moved

    def objective(self, vector: Any, weights: Any, criterion: Criterion) -> tuple[float, Any, Any]:
        """h + the sum of the weights, and its derivatives by the weights `[m]` and by the coordinates."""
        gradients, slopes = self._candidates.slopes_at(self.points(vector))
        matrix = _information(gradients, weights)
        is_finite = np.isfinite(gradients).all() and np.isfinite(slopes).all()
        value = criterion.value(matrix) + float(weights.sum()) if is_finite else np.inf
        if not np.isfinite(value):
            return _NO_VALUE, np.zeros(len(weights)), np.zeros(len(vector))
        falls = gradients @ criterion.slope(matrix)
        by_weight = 1 - (falls * gradients).sum(axis=1)
        by_input = np.einsum("ij,ijk->ik", falls, slopes)
        return value, by_weight, self.by_coordinates(-2 * weights[:, None] * by_input).ravel()

    def by_coordinates(self, by_input: Any) -> Any:
        """Derivatives by the coordinates, from those by all inputs, `[…, d]`."""
        return by_input[..., self._continuous] * self._widths


def _descended(objective: Any, start: Any, bounds: Any) -> Any:
    """The nearest minimum within bounds of a function that returns its value and its gradient."""
    if not len(start):
        return start
    from scipy.optimize import minimize

    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=_SEARCH)
    best = _stationary(objective, found.x, bounds)
    # A stationary point may be higher by rounding errors.
    value = objective(start)[0]
    return best if objective(best)[0] <= value + _NO_RISE * abs(value) else start


def _stationary(objective: Any, point: Any, bounds: Any) -> Any:
    """The point near a minimum where the gradient vanishes in the coordinates that are at no bound, which is more exact
    than comparisons of values allow; the given point where there is none."""
    from scipy.optimize import root

    low = np.array([lowest for lowest, _ in bounds])
    high = np.array([np.inf if highest is None else highest for _, highest in bounds])
    _, slope = objective(point)
    free = (point > low) & (point < high)
    if not free.any() or np.abs(slope[free]).max() < 1e-15:
        return point

    def equations(part: Any) -> Any:
        whole = point.copy()
        whole[free] = part
        return objective(whole)[1][free]

    with np.errstate(all="ignore"):
        found = root(equations, point[free], method="hybr", options={"xtol": 1e-15})
    whole = point.copy()
    whole[free] = found.x
    near = np.abs(whole - point).max() < _ROOT_REACH and (whole >= low).all() and (whole <= high).all()
    return whole if near and np.abs(found.fun).max() < np.abs(slope[free]).max() else point


def _greatest(candidates: Candidates, slope: Any) -> tuple[Any, float]:
    """The points `[k, d]` of the region where gᵀAg has local maxima above 1, and the greatest value that was found,
    for the matrix A `[p, p]`."""
    values = np.einsum("ij,jk,ik->i", candidates.gradients, slope, candidates.gradients)
    reached = [_climbed(candidates, slope, start) for start in _local_maxima(candidates, values)]
    found, heights = np.stack([point for point, _ in reached]), np.array([height for _, height in reached])
    above = heights > 1 + _NO_RISE
    best = _distinct(found[above], np.argsort(-heights[above], kind="stable"), _SAME, candidates.region)
    return found[above][best], float(max(values.max(), heights.max()))


def _local_maxima(candidates: Candidates, values: Any) -> Any:
    """The candidates from which to climb: with one input those above their neighbours, else the highest ones that are
    not near to each other."""
    order = np.argsort(-values, kind="stable")
    points, region = candidates.points, candidates.region
    if points.shape[1] == 1 and region.is_continuous[0]:
        padded = np.concatenate([[-np.inf], values, [-np.inf]])
        peaks = (values >= padded[:-2]) & (values >= padded[2:])
        return points[order[peaks[order]][:_MOST_MAXIMA]]
    # The distance at which as many points would fill the region.
    apart = 0.5 * _MOST_MAXIMA ** (-1 / points.shape[1])
    return points[_distinct(points, order[: 50 * _MOST_MAXIMA], apart, region, _MOST_MAXIMA)]


def _climbed(candidates: Candidates, slope: Any, start: Any) -> tuple[Any, float]:
    """The local maximum of gᵀAg to which the gradient leads from a point `[d]`, and its value: infinite where it still
    rises beside points without information."""
    places = _Places(start[None], candidates)

    def objective(vector: Any) -> tuple[float, Any]:
        gradients, slopes = candidates.slopes_at(places.points(vector))
        if not (np.isfinite(gradients).all() and np.isfinite(slopes).all()):
            return _NO_VALUE, np.zeros(len(vector))
        rises = gradients[0] @ slope
        return -float(rises @ gradients[0]), -2 * places.by_coordinates(rises @ slopes[0])

    def values(vectors: Any) -> Any:
        gradients = candidates.gradients_at(np.concatenate([places.points(vector) for vector in vectors]))
        found = -np.einsum("ij,jk,ik->i", gradients, slope, gradients)
        return np.where(np.isfinite(found), found, np.inf)

    reached, value = places.start, objective(places.start)[0]
    for _ in range(_MOST_RESTARTS):
        ends = np.stack([_descended(objective, reached, [(0.0, 1.0)] * len(reached)), *_line(objective, reached)])
        found = values(ends)
        best = int(np.argmin(found))
        if not found[best] < value - _RISE * abs(value):
            # The end of the search is at least as stationary.
            is_same = (
                found[0] <= value + _NO_RISE * abs(value) and np.abs(ends[0] - reached).max(initial=0.0) < _ROOT_REACH
            )
            reached = ends[0] if is_same else reached
            break
        reached, value = ends[best], found[best]
    is_open = np.isinf(values(_line(objective, reached)[-1:])).any()
    return places.points(reached)[0], np.inf if is_open else -float(value)


def _line(objective: Any, point: Any) -> Any:
    """Points `[k, n]` on the line down the gradient from a point, the nearest last; the point alone where it is a
    minimum. They show kinks and jumps, at which a search along the gradient fails."""
    value, slope = objective(point)
    down = np.where((point <= 0) & (slope > 0) | (point >= 1) & (slope < 0), 0.0, -slope)
    steepest = np.abs(down).max(initial=0.0)
    if not steepest > _FLAT * abs(value):
        return point[None]
    return np.clip(point + _SIZES[:, None] * down / steepest, 0.0, 1.0)


def _distances(points: Any, others: Any, region: DesignRegion) -> Any:
    """The distance `[k]` of each point to the nearest of the others, relative to the widths of the region."""
    if not len(points):
        return np.zeros(0)
    return np.abs((points[:, None] - others[None]) / region.widths).max(axis=2).min(axis=1)


def _distinct(points: Any, order: Any, apart: float, region: DesignRegion, most: int | None = None) -> list[int]:
    """The places of points, in an order, that are farther than `apart` from all that were kept before; at most
    `most`."""
    kept: list[int] = []
    for place in order.tolist():
        if len(kept) == most:
            break
        if not kept or _distances(points[place][None], points[kept], region)[0] > apart:
            kept.append(place)
    return kept


def _without_neighbours(points: Any, weights: Any, candidates: Candidates, criterion: Criterion) -> tuple[Any, Any]:
    """The same design with the two nearest points joined, as long as the design is as good without one of them."""
    while len(points) > 1:
        apart = np.abs((points[:, None] - points[None]) / candidates.region.widths).max(axis=2)
        np.fill_diagonal(apart, np.inf)
        first, second = np.unravel_index(int(np.argmin(apart)), apart.shape)
        if not apart[first, second] < _NEAR:
            break
        joined, totals = points.copy(), weights.copy()
        totals[first] += totals[second]
        joined[first] += (joined[second] - joined[first]) * weights[second] / totals[first]
        kept = np.arange(len(points)) != second
        joined, totals = _moved(joined[kept], totals[kept], candidates, criterion)
        if (
            not _value(joined, totals, candidates, criterion)
            <= _value(points, weights, candidates, criterion) + TOLERANCE
        ):
            break
        points, weights = joined, totals
    return points, weights


def _value(points: Any, weights: Any, candidates: Candidates, criterion: Criterion) -> float:
    return criterion.value(_information(candidates.gradients_at(points), weights / weights.sum()))


def _merged(points: Any, weights: Any, region: DesignRegion) -> tuple[Any, Any]:
    """Points with a weight, of which those near to each other are joined at the heaviest one; in the order of their
    coordinates."""
    order = np.argsort(-weights, kind="stable")
    kept: list[int] = []
    totals: list[float] = []
    for place in order[weights[order] > 0].tolist():
        apart = _distances(points[kept], points[place][None], region) if kept else np.zeros(0)
        if kept and apart.min() <= _SAME:
            totals[int(apart.argmin())] += weights[place]
        else:
            kept.append(place)
            totals.append(float(weights[place]))
    by_place = np.lexsort(points[kept].T[::-1])
    return points[kept][by_place], np.array(totals)[by_place]


class ElfvingDesign(NamedTuple):
    """A c-optimal design, and the coefficients `[m]` with which the gradients at its points add up to c."""

    design: ApproximateDesign
    coefficients: Any


def c_optimal_design(candidates: Candidates, quantity: Any) -> ElfvingDesign:
    """The design with the least variance of a quantity whose derivatives by the combinations of parameters are `[p]`.

    Raises EvaluationError where no rows of the region determine the quantity.
    """
    points, gradients = candidates.points, candidates.gradients
    best: ElfvingDesign | None = None
    for _ in range(_MOST_PROGRAMS):
        support, coefficients, direction = _linear_program(gradients, quantity)
        size = float(np.abs(coefficients).sum())
        beyond, bound = _bounded(candidates, quantity, direction, size)
        if best is not None and bound <= best.design.bound and bound >= 1 - TOLERANCE:
            break
        if best is None or bound > best.design.bound:
            found = ApproximateDesign(points[support], np.abs(coefficients) / size, bound)
            best = ElfvingDesign(found, coefficients)
        if not len(beyond):
            break
        points = np.concatenate([points, beyond])
        gradients = np.concatenate([gradients, candidates.gradients_at(beyond)])
    assert best is not None
    return _polished(_joined(best, candidates, quantity), candidates, quantity)


def _bounded(candidates: Candidates, quantity: Any, direction: Any, size: float) -> tuple[Any, float]:
    """The rows whose gradients reach beyond a direction h `[p]`, and a bound of the efficiency of the design of which
    the absolute coefficients add up to `size`."""
    beyond, ratio = _greatest(candidates, np.outer(direction, direction))
    return beyond, min(1.0, (quantity @ direction / size) ** 2 / ratio)


def _linear_program(gradients: Any, quantity: Any) -> tuple[Any, Any, Any]:
    """The indices `[m]` and coefficients `[m]` of the rows with the least sum of absolute coefficients whose gradients
    add up to the quantity, and h `[p]` with |gᵀh| at most 1 in all rows for which quantityᵀh is that sum."""
    from scipy.optimize import linprog

    count, size = len(gradients), float(np.abs(quantity).max())
    found = linprog(
        np.ones(2 * count),
        A_eq=np.concatenate([gradients, -gradients]).T,
        b_eq=quantity / size,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.x is None:
        raise EvaluationError(
            "no rows of this region determine the quantity", hint="give the inputs wider ranges, or --fix parameters"
        )
    signed = found.x[:count] - found.x[count:]
    support = np.flatnonzero(np.abs(signed) > _LEAST * np.abs(signed).max())
    chosen = gradients[support]
    coefficients = np.linalg.lstsq(chosen.T, quantity, rcond=None)[0]
    direction = found.eqlin.marginals
    if len(support) == len(quantity):
        direction = np.linalg.solve(chosen, np.sign(coefficients))
    return support, coefficients, direction


def _joined(found: ElfvingDesign, candidates: Candidates, quantity: Any) -> ElfvingDesign:
    """The same design in the order of the points; neighbours are one point, with the coefficients that it then has."""
    design = found.design
    points = design.points[
        _distinct(design.points, np.argsort(-design.weights, kind="stable"), _SAME_SUPPORT, candidates.region)
    ]
    points = points[np.lexsort(points.T[::-1])]
    coefficients = np.linalg.lstsq(candidates.gradients_at(points).T, quantity, rcond=None)[0]
    weights = np.abs(coefficients) / np.abs(coefficients).sum()
    return ElfvingDesign(ApproximateDesign(points, weights, design.bound), coefficients)


def _polished(found: ElfvingDesign, candidates: Candidates, quantity: Any) -> ElfvingDesign:
    """The same design with its points at the extrema of gᵀh, beyond the tolerances of the linear program: those of as
    many points as parameters determine h, as in Remez' algorithm."""
    points, coefficients = found.design.points, found.coefficients
    if len(points) != len(quantity):
        return found
    for _ in range(_MOST_POLISHES):
        direction = np.linalg.solve(candidates.gradients_at(points), np.sign(coefficients))
        slope = np.outer(direction, direction)
        points = np.stack([_climbed(candidates, slope, point)[0] for point in points])
        gradients = candidates.gradients_at(points)
        if not np.linalg.cond(gradients) < _SINGULAR:
            return found
        coefficients = np.linalg.solve(gradients.T, quantity)
    direction = np.linalg.solve(gradients, np.sign(coefficients))
    size = float(np.abs(coefficients).sum())
    _, bound = _bounded(candidates, quantity, direction, size)
    if bound < found.design.bound:
        return found
    return ElfvingDesign(ApproximateDesign(points, np.abs(coefficients) / size, bound), coefficients)


class Criterion:
    """A criterion as the convex function h(M) of the p×p information matrix that is least for the best design; h falls
    by log t where M grows t-fold, so that the efficiency of a design is exp(h of the best - h).

    For h the matrix A(M) is such that gᵀAg is minus the derivative of h by the weight of a row with the gradient g, and
    the mean of gᵀAg over the design is 1. By the General Equivalence Theorem (J. Kiefer, Annals of Statistics 2 (1974)
    849) a design is the best one if gᵀAg is at most 1 in all of the region; and 1/max gᵀAg is a lower bound of its
    efficiency.
    """

    def values(self, matrices: Any) -> Any:
        """h `[…]` of matrices `[…, p, p]`, infinite where they are singular."""
        raise NotImplementedError

    def value(self, matrix: Any) -> float:
        """h of one matrix."""
        return float(self.values(matrix))

    def slope(self, matrix: Any) -> Any:
        """A `[p, p]`."""
        raise NotImplementedError

    def curvature(self, matrix: Any, gradients: Any) -> Any:
        """The second derivatives `[m, m]` of h by the weights of rows with the gradients `[m, p]`."""
        raise NotImplementedError


class DCriterion(Criterion):
    """h = -log(det M)/p."""

    def values(self, matrices: Any) -> Any:
        sign, logarithm = np.linalg.slogdet(matrices)
        return np.where(sign > 0, -logarithm / matrices.shape[-1], np.inf)

    def slope(self, matrix: Any) -> Any:
        return np.linalg.inv(matrix) / len(matrix)

    def curvature(self, matrix: Any, gradients: Any) -> Any:
        products = gradients @ np.linalg.inv(matrix) @ gradients.T
        return products**2 / len(matrix)


class ACriterion(Criterion):
    """h = log tr(K M⁻¹), the logarithm of the sum of the variances of the parameters for a matrix K `[p, p]`, which
    converts M to their units."""

    def __init__(self, units: Any) -> None:
        self._units = units

    def values(self, matrices: Any) -> Any:
        lengths, vectors = np.linalg.eigh(matrices)
        regular = lengths[..., 0] > np.finfo(float).eps * lengths[..., -1]
        inverse = 1 / np.where(regular[..., None], lengths, 1.0)
        total = np.einsum("...ij,ik,...kj,...j->...", vectors, self._units, vectors, inverse, optimize=True)
        return np.where(regular, np.log(total), np.inf)

    def slope(self, matrix: Any) -> Any:
        inverse = np.linalg.inv(matrix)
        return inverse @ self._units @ inverse / (self._units * inverse).sum()

    def curvature(self, matrix: Any, gradients: Any) -> Any:
        products = gradients @ np.linalg.inv(matrix) @ gradients.T
        weighted = gradients @ self.slope(matrix) @ gradients.T
        rises = np.diagonal(weighted)
        return 2 * products * weighted - np.outer(rises, rises)
