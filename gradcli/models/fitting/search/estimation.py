"""Searches for the estimates of a fit: from the start values given, or from several generated ones, to a verified
minimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli import arrays
from gradcli.errors import EvaluationError, ExitStatus, GradcliError, LimitError
from gradcli.models.fitting.problem.linear_parameters import linear_parameters, projected_parameters
from gradcli.models.fitting.problem.linearisations import Linearised, linearised, weights
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.search.convergence import (
    CONVERGED,
    NO_MAXIMUM,
    is_at_end,
    largest_offset,
    message_of,
    of_one_minimum,
    relative_offset,
    root_mean_squares,
    terms,
    without_effect,
)
from gradcli.models.fitting.search.levenberg_marquardt import Descended, levenberg_marquardt
from gradcli.models.fitting.search.start_values import start_values
from gradcli.models.fitting.statistics.information import RANK_TOLERANCE
from gradcli.models.results import ProgressCallback
from gradcli.models.value_checks import real_value
from gradcli.named_tuples import NamedTuple

# Size of the sample of rows (see `Problem.sampled`) that a search begins with: from one point, and from each of
# several.
_SAMPLE_OF_ONE_START, _SAMPLE_OF_MANY_STARTS = 2**14, 2**11
# A search from k points takes at most _MOST_STEPS // k + _LEAST_STEPS steps.
_MOST_STEPS, _LEAST_STEPS = 400, 100
# The most of these steps for a log density, where Newton's method with exact Hessians is faster from a rough minimum on.
_DENSITY_STEPS = 30
# Length of the first step relative to the point, in searches from generated points.
INITIAL_STEP = 1.0
# A minimum from a given start that leaves more than this fraction of the squares about the mean is poor. It is replaced
# by one from generated points that has less than this fraction of its cost.
POOR_FRACTION = 0.5
# Number of steps, each twice as long as the one before, after which a log density that still rises has no maximum; and
# the share of the longest relative step from which on a parameter takes part in that.
_FURTHER, _MIN_SHARE = 8, 0.01
# Largest number of end points of a search from several starts that are refined to full precision.
_POLISHED = 4


class SearchOptions(NamedTuple):
    """Options of a search: the number of `starts` that are generated where parameters have none, the `seed` that they
    depend on, and a function `watch` to call with each iteration."""

    starts: int = 32
    seed: int = 0
    watch: ProgressCallback | None = None


@dataclass(frozen=True)
class Starts:
    """The number of points from which a search began, and of those that led to the same minimum."""

    tried: int
    agreed: int


class SearchEnd(NamedTuple):
    """The end of a search: the `point` `[p]` of the p parameters that were varied, which of these are `free` `[p]` (not
    at a bound), whether it converged with a message about that, and the iterations, evaluations, starts and warnings of
    the search."""

    point: Any
    free: Any
    converged: bool
    message: str
    iterations: int
    evaluations: int
    starts: Starts
    warnings: Sequence[str] = ()


class SearchEnds(NamedTuple):
    """The ends of g searches. Members are as those of `SearchEnd`, with points `[g, p]` and iterations and evaluations
    `[g]`; the others are common to all."""

    points: Any
    free: Any
    converged: bool
    message: str
    iterations: Any
    evaluations: Any
    starts: Starts
    warnings: Sequence[str] = ()

    @classmethod
    def of_one(cls, ending: SearchEnd) -> SearchEnds:
        iterations, evaluations = np.array([ending.iterations]), np.array([ending.evaluations])
        return cls(ending.point[None], *ending[1:4], iterations, evaluations, *ending[6:])

    def one(self, place: int) -> SearchEnd:
        iterations, evaluations = int(self.iterations[place]), int(self.evaluations[place])
        return SearchEnd(self.points[place], *self[1:4], iterations, evaluations, *self[6:])


class _DescentVariant(NamedTuple):
    """A variant of the descent: whether linear parameters are projected out, and the length of the first step relative
    to the point."""

    projected: bool
    reach: float


# Variants of the descent from one point, tried in this order until one reaches a minimum.
DESCENT_VARIANTS = (
    _DescentVariant(False, 1.0),
    _DescentVariant(True, 0.3),
    _DescentVariant(False, 0.3),
    _DescentVariant(False, 100.0),
    _DescentVariant(True, 100.0),
)


class _Found(NamedTuple):
    best: RefinedMinimum
    reason: str | None
    iterations: int
    evaluations: int
    tried: int
    agreed: int
    lower: str | None = None
    """Why a point with a lower cost than the best one is no minimum."""


def estimate(problem: Problem, start: Any, search: SearchOptions | None = None) -> SearchEnd:
    """Estimate the parameters from a start `[p]`, nan for those without a start value.

    Raises EvaluationError, with the row, where the model has no finite value at a given start.
    """
    np = arrays.numpy_namespace()
    search = search or SearchOptions()
    first = problem.with_rows(slice(0, 1)).results(np.where(np.isnan(start), 1.0, start))
    real_value(first.value, "a fit")
    for failed in first.failures:
        if failed.error.exit_status is ExitStatus.USAGE or isinstance(failed.error, LimitError):
            # This error comes from the program itself and would occur in every row at every point.
            raise failed.error
    linear = linear_parameters(problem, np.where(np.isnan(start), 1.0, start))
    projected = projected_parameters(problem, linear)
    if [i for i in np.flatnonzero(np.isnan(start)) if i not in projected]:
        found = _from_many(problem, start, linear, search)
        return _ending(found, _multistart_warnings(problem, found))
    point = np.clip(np.where(np.isnan(start), 0.0, start), problem.low, problem.high)
    failure = problem.failure(point)
    if failure is not None:
        raise failure
    given = not np.isnan(start).any()
    ways = [way for way in DESCENT_VARIANTS if (projected if way.projected else given)]
    found = _from_one(problem, point, projected, ways, search)
    if found.reason is None and (len(projected) == len(start) or not _is_poor(problem, found.best.point)):
        return _ending(found, [])
    if not problem.is_searched_widely:
        return _ending(found, [])
    try:
        others = _from_many(problem, np.full(len(start), np.nan), linear, search)
    except EvaluationError:
        return _ending(found, [])
    if found.reason is None and (others.reason is not None or others.best.cost > POOR_FRACTION * found.best.cost):
        return _ending(found, [])
    both = others._replace(
        iterations=found.iterations + others.iterations,
        evaluations=found.evaluations + others.evaluations,
        tried=1 + others.tried,
    )
    lower = others.best.cost < found.best.cost
    if others.reason is not None and (
        not lower or of_one_minimum(others.best.cost, found.best.cost, problem.response_norm)
    ):
        # A cost that is lower by rounding alone is no reason to abandon the given start.
        return _ending(both._replace(best=found.best, reason=found.reason, agreed=0), [])
    warning = f"from the start that was given the search did not converge: {found.reason}"
    if found.reason is None:
        warning = (
            f"from the start that was given the search came to a minimum with {found.best.cost / others.best.cost:.3g} "
            f"times the cost: this one was found from {others.tried} others"
        )
    return _ending(both, [warning, *_multistart_warnings(problem, others)])


def _is_poor(problem: Problem, point: Any) -> bool:
    """Return whether a minimum leaves more than `POOR_FRACTION` of the squares about the mean response, so that a far
    better one may exist. False for families other than gaussian, which more often have a single minimum."""
    np = arrays.numpy_namespace()
    if problem.known.family != "gaussian":
        return False
    value, _ = problem.rows(point)
    weights = np.broadcast_to(np.asarray(problem.sigma, "float64"), value.shape) ** -2.0
    mean = (weights * problem.response).sum() / weights.sum()
    with np.errstate(all="ignore"):
        left, of_mean = ((weights * (problem.response - other) ** 2).sum() for other in (value, mean))
    return bool(left > POOR_FRACTION * of_mean)


def _multistart_warnings(problem: Problem, found: _Found) -> list[str]:
    """Warnings that a minimum found from several points may not be the lowest one."""
    if found.reason is not None or of_one_minimum(0.0, found.best.cost, problem.response_norm):
        return []
    doubts = []
    if found.agreed == 1 < found.tried:
        doubts.append(f"only one of {found.tried} starts came to this minimum: there may be a lower one")
    if found.lower is not None:
        doubts.append(f"a search came lower than this minimum, where there is none: {found.lower}")
    return doubts


def local_minimum(problem: Problem, point: Any) -> SearchEnd:
    """The minimum near a point `[p]`, searched from there alone."""
    return _ending(_from_one(problem, point, [], DESCENT_VARIANTS[:1], SearchOptions()), [])


def _ending(found: _Found, warnings: Sequence[str]) -> SearchEnd:
    best = found.best
    return SearchEnd(
        best.point,
        best.free,
        found.reason is None,
        message_of(found.reason),
        found.iterations,
        found.evaluations,
        Starts(found.tried, found.agreed),
        warnings,
    )


def _from_one(
    problem: Problem, point: Any, linear: Sequence[int], ways: Sequence[_DescentVariant], search: SearchOptions
) -> _Found:
    """Search from one point, by the variants `ways`, at least one, in order until one reaches a minimum."""
    tried: list[tuple[RefinedMinimum, str | None]] = []
    for way in ways:
        settled = _minimum_near(problem, point, linear if way.projected else (), way.reach, search)
        tried.append((settled, _convergence_failure(problem, settled)))
        if tried[-1][1] is None:
            break
    best = tried[-1] if tried[-1][1] is None else min(tried, key=lambda each: each[0].cost)
    iterations = sum(settled.iterations for settled, _ in tried)
    evaluations = sum(settled.evaluations for settled, _ in tried)
    return _Found(*best, iterations, evaluations, 1, int(best[1] is None))


def _minimum_near(
    problem: Problem, point: Any, linear: Sequence[int], reach: float, search: SearchOptions
) -> RefinedMinimum:
    """The minimum near a point; where there are very many rows, a sample of them is searched first to come near it."""
    np = arrays.numpy_namespace()
    iterations = evaluations = 0
    for some in dict.fromkeys((problem.sampled(_SAMPLE_OF_ONE_START), problem)):
        descended = _descended(some, point[None], linear, reach, search)
        iterations += int(descended.iterations[0])
        evaluations += int(descended.evaluations[0])
        if np.isfinite(descended.costs[0]):
            point = descended.points[0]
    last = newton_refined(problem, point, problem.dof)
    return last._replace(iterations=iterations + last.iterations, evaluations=evaluations + last.evaluations)


def _descended(problem: Problem, points: Any, linear: Sequence[int], reach: float, search: SearchOptions) -> Descended:
    return levenberg_marquardt(
        lambda at, _: linearised(problem, at),
        points,
        problem.dof,
        linear=linear,
        low=problem.low,
        high=problem.high,
        reach=reach,
        most=_DENSITY_STEPS if problem.known.is_density else _MOST_STEPS // len(points) + _LEAST_STEPS,
        watch=search.watch,
    )


def _from_many(problem: Problem, start: Any, linear: Sequence[int], search: SearchOptions) -> _Found:
    """The lowest minimum found from several generated points; where there are many rows, a sample of them selects the
    candidates."""
    np = arrays.numpy_namespace()
    points = start_values(problem, start, linear, search.starts, search.seed)
    projected = projected_parameters(problem, linear)
    descended = _descended(problem.sampled(_SAMPLE_OF_MANY_STARTS), points, projected, INITIAL_STEP, search)
    iterations, evaluations = int(descended.iterations.sum()), int(descended.evaluations.sum())
    best: tuple[RefinedMinimum, str | None] | None = None
    agreed = 0
    ends = []
    for i in _lowest(problem, descended, linear):
        settled = _minimum_near(problem, descended.points[i], projected, INITIAL_STEP, search)
        iterations += settled.iterations
        evaluations += settled.evaluations
        reason = _convergence_failure(problem, settled)
        ends.append((settled.cost, reason))
        if np.isfinite(settled.cost) and (
            best is None or (reason is None, -settled.cost) > (best[1] is None, -best[0].cost)
        ):
            best = settled, reason
            agreed = int(of_one_minimum(descended.costs, descended.costs[i], problem.response_norm).sum())
    if best is None:
        raise _no_finite_start(problem, points)
    cost = best[0].cost
    lower = [why for c, why in ends if c < cost and not of_one_minimum(c, cost, problem.response_norm)]
    return _Found(*best, iterations, evaluations, len(points), agreed, lower[0] if lower else None)


def _no_finite_start(problem: Problem, points: Any) -> GradcliError:
    """The error that the model has no finite value at any of the points `[g, p]`, with the row and the operation that
    fails."""
    what = f"the model has no finite value at any of {len(points)} starts that were tried"
    error = problem.failure(points[0], f"{what}; ")
    if error is not None:
        return error
    return EvaluationError(
        f"the responses are not possible at any of {len(points)} starts that were tried, or their costs overflow",
        hint="give start values, as in b1=1",
    )


def _lowest(problem: Problem, descended: Descended, linear: Sequence[int]) -> list[int]:
    """The indices of the searches that ended lowest, one for each distinct cost and at most `_POLISHED`."""
    np = arrays.numpy_namespace()
    found: list[int] = []
    costs = np.where(np.isfinite(descended.costs), descended.costs, np.inf)
    left = np.isfinite(costs)
    while left.any() and len(found) < _POLISHED:
        same = np.flatnonzero(left & of_one_minimum(costs, costs[left].min(), problem.response_norm))
        found.append(int(same[representative(descended.points[same], linear)]))
        left[same] = False
    return found


def representative(points: Any, linear: Sequence[int]) -> int:
    """The index of the point to report among points `[k, p]` of one cost, which differ by an exchange of parameters or
    by signs: that with the fewest negative parameters, and of these the first in lexicographic order of the parameters
    that are not `linear`."""
    others = [i for i in range(points.shape[1]) if i not in linear]
    # Rounding to four digits keeps rounding errors from deciding the order.
    rounded = [[float(f"{number:.4g}") for number in point] for point in points.tolist()]
    return min(range(len(points)), key=lambda i: (sum(b < 0 for b in rounded[i]), *(rounded[i][k] for k in others)))


def _convergence_failure(problem: Problem, found: RefinedMinimum) -> str | None:
    """Why a point is not known to be a minimum; None where it is."""
    np = arrays.numpy_namespace()
    value, derivatives = problem.columns_of(found.point[None])
    lost = without_effect(value, derivatives, problem.sigma, found.point[None], problem.count)[0]
    if lost.any() and not problem.has_priors:
        names = [name for name, is_lost in zip(problem.parameters, lost) if is_lost]
        return f"the model does not depend on {' and '.join(names)} any more there"
    if not found.determined:
        return "the data do not determine all parameters there"
    if not found.least_eigenvalue > 0:
        return "the Hessian is not positive definite there"
    known = problem.known
    if known.family in ("poisson", "binomial"):
        with np.errstate(all="ignore"):
            change = sum(derivative[0] * part for derivative, part in zip(derivatives, found.step))
        if is_at_end(value[0], change, known.family):
            return NO_MAXIMUM
    if found.offset <= CONVERGED:
        return None
    first = np.stack(derivatives, axis=-1)[0]
    size = root_mean_squares(terms(value[0], first, found.point), problem.sigma, problem.count)
    rising = _rising_parameters(problem, found) if known.is_density else []
    if rising:
        return f"the likelihood rises without end with {' and '.join(rising)}"
    rest = np.sqrt(problem.count) if known.is_density else np.sqrt(2 * found.cost)
    if not found.offset <= largest_offset(size, rest, problem.dof):
        return f"the relative offset is {found.offset:.1e}, which is not below {CONVERGED:.0e}"
    return None


def _rising_parameters(problem: Problem, found: RefinedMinimum) -> list[str]:
    """The parameters that go on where a log density rises with every further step; none where it falls at last."""
    np = arrays.numpy_namespace()
    further = found.point + 2.0 ** np.arange(_FURTHER)[:, None] * found.step
    costs = linearised(problem, np.clip(further, problem.low, problem.high)).cost
    if not found.step.any() or not np.isfinite(costs).all() or (np.diff([found.cost, *costs]) > 0).any():
        return []
    share = np.abs(found.step) / np.maximum(np.abs(found.point), 1)
    return [name for name, part in zip(problem.parameters, share) if part > _MIN_SHARE * share.max()]


# --- refinement of a minimum by Newton's method
# Steps and eigenvalues are those of the Hessian in directions along which the Gauss-Newton matrix is the unit matrix,
# which keeps the digits that normal equations would lose. `group_fits` has Newton steps of its own: they factorise the Hessian itself,
# fast for many small groups, and leave a group whose Hessian is not clearly definite to the search here.

# Relative rise of the cost that may be a rounding error.
_HIDDEN = 1e-9
# Relative offset at which Newton's method ends: the distance from the minimum in standard errors.
_DONE = 1e-10
# Rows whose second derivatives are in memory at once.
_ROWS = 2**16
# Largest number of halvings of a step that does not lower the cost.
_HALVINGS = 30


class RefinedMinimum(NamedTuple):
    """A point `[p]` near a minimum with its cost and relative `offset`; which parameters `[p]` are `free` (not held by
    a bound); the Newton `step` `[p]` that remains; the `least_eigenvalue` of the Hessian of the free parameters
    relative to the Gauss-Newton matrix; whether that has full rank (`determined`); and the numbers of iterations and
    evaluations."""

    point: Any
    cost: float
    offset: float
    free: Any
    step: Any
    least_eigenvalue: float
    determined: bool
    iterations: int
    evaluations: int


class _Newton(NamedTuple):
    """The Newton step at a point, and the other quantities of `RefinedMinimum` there."""

    step: Any
    offset: float
    free: Any
    least_eigenvalue: float
    determined: bool


def newton_refined(problem: Problem, point: Any, dof: int, most: int = 100) -> RefinedMinimum:
    """The minimum near a point `[p]` at which the cost is finite."""
    here = linearised(problem, point[None])
    newton = _newton(problem, point, here, dof)
    iterations, evaluations = 0, 2
    while iterations < most and not _is_done(newton):
        iterations += 1
        moved, there, tried = _line_search(problem, point, here, newton.step)
        evaluations += tried
        if there is None:
            break
        further = _newton(problem, moved, there, dof)
        evaluations += 1
        # Where rounding errors hide whether the cost falls, the offset shows the progress.
        if there.cost[0] >= here.cost[0] and further.offset >= newton.offset / 2:
            break
        point, here, newton = moved, there, further
    return RefinedMinimum(
        point,
        float(here.cost[0]),
        newton.offset,
        newton.free,
        newton.step,
        newton.least_eigenvalue,
        newton.determined,
        iterations,
        evaluations,
    )


def _is_done(newton: _Newton) -> bool:
    return not newton.step.any() or (newton.offset <= _DONE and newton.least_eigenvalue > 0)


def _line_search(problem: Problem, point: Any, here: Linearised, step: Any) -> tuple[Any, Linearised | None, int]:
    """A point along a step, or a fraction of it, at which the cost is not higher; with the linearisation there, None
    where there is no such point, and the number of evaluations."""
    np = arrays.numpy_namespace()
    for halved in range(_HALVINGS):
        moved = np.clip(point + step * 0.5**halved, problem.low, problem.high)
        if (moved == point).all():
            return point, None, halved
        there = linearised(problem, moved[None])
        if there.cost[0] <= here.cost[0] + _HIDDEN * abs(here.cost[0]):
            return moved, there, halved + 1
    return point, None, _HALVINGS


def _newton(problem: Problem, point: Any, here: Linearised, dof: int) -> _Newton:
    """The Newton step; where the Hessian is not positive definite, eigenvalues count by their absolute values, so that
    the step leads away from a saddle point."""
    np = arrays.numpy_namespace()
    factor, q, rest = here.factor[0, :-1, :-1], here.factor[0, :-1, -1], here.factor[0, -1, -1]
    gradient = factor.T @ q
    free = ~(((point <= problem.low) & (gradient > 0)) | ((point >= problem.high) & (gradient < 0)))
    own = factor[:, free]
    scales = np.sqrt((own * own).sum(0))
    scales = np.where(scales > 0, scales, 1)
    u, s, vt = np.linalg.svd(own / scales, full_matrices=False)
    kept = s > RANK_TOLERANCE * s.max(initial=0)
    inside = u[:, kept].T @ q
    outside = q - u[:, kept] @ inside
    offset = relative_offset(np.sqrt(inside @ inside), np.hypot(rest, np.sqrt(outside @ outside)), int(kept.sum()), dof)
    # The columns are directions of the parameters along which the Gauss-Newton matrix is the unit matrix.
    basis = (vt[kept] / s[kept, None]).T / scales[:, None]
    with np.errstate(all="ignore"):
        hessian = np.eye(int(kept.sum())) + basis.T @ _hessian_correction(problem, point)[np.ix_(free, free)] @ basis
    if not np.isfinite(hessian).all():
        # Second derivatives may overflow where the first do not.
        return _Newton(np.zeros(len(point)), float(offset), free, float("nan"), bool(kept.all()))
    values, vectors = np.linalg.eigh(hessian)
    step = np.zeros(len(point))
    step[free] = -basis @ (vectors @ ((vectors.T @ inside) / np.maximum(np.abs(values), 1e-3)))
    return _Newton(step, float(offset), free, float(values.min(initial=np.inf)), bool(kept.all()))


def _hessian_correction(problem: Problem, point: Any) -> Any:
    """The Hessian of the cost `[p, p]` less the Gauss-Newton matrix."""
    np = arrays.numpy_namespace()
    p = len(point)
    total = np.zeros((p, p))
    for start in range(0, problem.count, _ROWS):
        some = problem.with_rows(slice(start, start + _ROWS))
        value, first, weighted = some.hessian_terms(point)
        cost = some.cost(value)
        total += weighted(cost.first)
        if not problem.known.is_least_squares:
            further = cost.second - weights(some, value, cost)
            total += (first * further[:, None]).T @ first
    return total
