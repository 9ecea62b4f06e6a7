"""Approximate designs: points with weights, found by adding the points where the General Equivalence Theorem is
violated most, and by moving all points along exact gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradcli.models.designs.criteria import Criterion
from gradcli.models.designs.design_regions import DesignRegion
from gradcli.models.designs.row_information import RowInformation

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
# How many local maxima of a function over the candidates are refined.
_MOST_MAXIMA = 24


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
        beyond, ratio = greatest(candidates, slope)
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


def greatest(candidates: Candidates, slope: Any) -> tuple[Any, float]:
    """The points `[k, d]` of the region where gᵀAg has local maxima above 1, and the greatest value that was found,
    for the matrix A `[p, p]`."""
    values = np.einsum("ij,jk,ik->i", candidates.gradients, slope, candidates.gradients)
    reached = [climbed(candidates, slope, start) for start in _local_maxima(candidates, values)]
    found, heights = np.stack([point for point, _ in reached]), np.array([height for _, height in reached])
    above = heights > 1 + _NO_RISE
    best = distinct(found[above], np.argsort(-heights[above], kind="stable"), _SAME, candidates.region)
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
    return points[distinct(points, order[: 50 * _MOST_MAXIMA], apart, region, _MOST_MAXIMA)]


def climbed(candidates: Candidates, slope: Any, start: Any) -> tuple[Any, float]:
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


def distinct(points: Any, order: Any, apart: float, region: DesignRegion, most: int | None = None) -> list[int]:
    """The places of points, in an order, that are farther than `apart` from all that were kept before; at most `most`."""
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
