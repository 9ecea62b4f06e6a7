"""The profile likelihood: points of least cost where some parameters are held, and the contours of the confidence
regions of two parameters that follow from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.models.fitting.problem.likelihoods import Assumptions
from gradcli.models.fitting.problem.linearisations import Linearised, linearised
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.results.fit_records import ConfidenceContour
from gradcli.models.fitting.search.levenberg_marquardt import levenberg_marquardt
from gradcli.models.results import ProgressCallback
from gradcli.named_tuples import NamedTuple

# A likelihood ratio below this shows a lower minimum than the one whose likelihood is profiled.
_LOWER = -1e-6


class ProfilePoints(NamedTuple):
    """Points `[k, p]`, the gradients `[k, p]` of their costs, and the likelihood ratios `[k]` to the least cost."""

    points: Any
    gradient: Any
    ratio: Any

    @property
    def root(self) -> Any:
        """The root of the likelihood ratio, with its sign; infinite where the cost is not finite."""
        with np.errstate(all="ignore"):
            root = np.copysign(np.sqrt(np.abs(self.ratio)), self.ratio)
            return np.where(np.isfinite(self.ratio), root, np.inf)

    @property
    def any_lower(self) -> bool:
        """True if a point has a lower cost than the minimum."""
        return bool((self.ratio < _LOWER).any())


def profile_points(
    problem: Problem, starts: Any, held: Any, least: float, scale: float, watch: ProgressCallback | None
) -> ProfilePoints:
    """The points of least cost where the parameters that are `held` `[k, p]` keep their values in `starts` `[k, p]`.

    `least` is the cost of the minimum, and `scale` the factor of the standard deviations of the rows.
    """

    def linearise(points: Any, which: Any) -> Linearised:
        found = linearised(problem, points)
        np.copyto(found.factor[:, :, :-1], 0.0, where=held[which][:, None])
        return found

    ended = levenberg_marquardt(
        linearise, starts, problem.dof, low=problem.low, high=problem.high, reach=1.0, watch=watch
    )
    factor = linearised(problem, ended.points).factor
    gradient = (factor[:, :, :-1].mT @ factor[:, :, -1:])[:, :, 0]
    return ProfilePoints(ended.points, gradient, 2 * (ended.costs - least) / scale**2)


# Number of directions in which points are searched at first, and the most after those between distant points.
_DIRECTIONS, _MOST_DIRECTIONS = 32, 128
# Relative precision of a point, in the root of the likelihood ratio; and the largest number of steps to find it.
_TOLERANCE, _STEPS = 1e-8, 60
# A region has no end in a direction where the fit is still good at this multiple of the linear region.
_MOST_WIDTHS = 1e3
# Two points are distant if they are apart by more than this share of the size of the linear region.
_DISTANT = 0.5


def radius_of(known: Assumptions, dof: float) -> float:
    """The root of the likelihood ratio on the contour: that of twice the F quantile where the standard deviation is
    estimated (D. M. Bates and D. G. Watts, Nonlinear Regression Analysis, 1988, 6.1.2), else that of the chi-square
    quantile, of two parameters."""
    from scipy.special import chdtri, fdtri

    if known.is_scaled:
        return math.sqrt(2 * float(fdtri(2, dof, known.level))) if dof > 0 else math.nan
    return math.sqrt(float(chdtri(2, 1 - known.level)))


def contour_of(
    problem: Problem,
    point: Any,
    covariance: Any,
    pair: tuple[int, int],
    scale: float,
    radius: float,
    watch: ProgressCallback | None = None,
) -> tuple[ConfidenceContour, list[str]]:
    """The contour around the minimum `point` `[p]` of the parameters with the indices `pair`, with warnings.

    `covariance` `[p, p]` is that of the estimates, `scale` the factor of the standard deviations of the rows, and
    `radius` the root of the likelihood ratio on the contour. The others have their best values.
    """
    names = " and ".join(problem.parameters[i] for i in pair)
    own = covariance[np.ix_(pair, pair)]
    if not (math.isfinite(radius) and np.isfinite(own).all() and np.linalg.eigvalsh(own)[0] > 0):
        return ConfidenceContour([], False), [
            f"there is no contour of {names}: a parameter is at a bound, or the data do not determine one"
        ]
    search = _Contour(problem, point, covariance, pair, scale, radius, watch)
    angles = np.arange(_DIRECTIONS) * (2 * math.pi / _DIRECTIONS)
    found = search.distances(angles)
    while len(angles) < _MOST_DIRECTIONS:
        distant = search.distant(angles, found)
        if not distant.any():
            break
        between = angles[distant] + np.diff(np.append(angles, angles[0] + 2 * math.pi))[distant] / 2
        angles, found = np.append(angles, between), np.append(found, search.distances(between))
        order = np.argsort(angles)
        angles, found = angles[order], found[order]
    warnings = []
    ended = np.isfinite(found)
    if not ended.all():
        warnings.append(f"the confidence region of {names} has no end in some directions")
    elif search.distant(angles, found).any():
        warnings.append(f"the contour of {names} has gaps, behind which the region is not seen from the estimates")
    if search.lower_found:
        warnings.append(f"the contour of {names} meets a lower minimum")
    points = search.at(angles[ended], found[ended])
    return ConfidenceContour([(float(x), float(y)) for x, y in points], bool(ended.all())), warnings


class _Contour:
    """The search for the points of a contour along rays from the minimum, in coordinates in which the linear region is
    a circle whose radius is the root of the likelihood ratio."""

    def __init__(
        self,
        problem: Problem,
        point: Any,
        covariance: Any,
        pair: Sequence[int],
        scale: float,
        radius: float,
        watch: ProgressCallback | None,
    ) -> None:
        self._problem, self._point, self._pair = problem, point, [*pair]
        self._scale, self._radius, self._watch = scale, radius, watch
        own = covariance[np.ix_(pair, pair)]
        self._axes = np.linalg.cholesky(own)
        # How all parameters move with the two, where the model is linear.
        moves = np.linalg.solve(own, covariance[self._pair]).T
        self._moves = np.where(np.isfinite(moves), moves, 0.0)
        self._least = linearised(problem, point[None]).cost[0]
        self.lower_found = False

    def at(self, angles: Any, distances: Any) -> Any:
        """The values `[k, 2]` of the two parameters."""
        return self._point[self._pair] + distances[:, None] * self._rays(angles)

    def _rays(self, angles: Any) -> Any:
        return np.stack([np.cos(angles), np.sin(angles)], axis=1) @ self._axes.T

    def distant(self, angles: Any, found: Any) -> Any:
        """A mask of the points that are distant from the next one."""
        places = found[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        with np.errstate(invalid="ignore"):
            return np.linalg.norm(np.roll(places, -1, axis=0) - places, axis=1) > _DISTANT * self._radius

    def distances(self, angles: Any) -> Any:
        """The distances `[k]` of the contour along rays, infinite where the region has no end; a bound ends it."""
        rays = self._rays(angles)
        low, high = self._problem.low[self._pair], self._problem.high[self._pair]
        with np.errstate(all="ignore"):
            room = np.where(rays > 0, high - self._point[self._pair], self._point[self._pair] - low) / np.abs(rays)
            limit = np.nanmin(np.where(rays == 0, np.inf, room), axis=1)
        count = len(angles)
        found = np.full(count, np.nan)
        near, beyond = np.zeros(count), np.full(count, np.inf)
        moves = rays @ self._moves.T
        starts = np.tile(self._point, (count, 1))
        at = np.full(count, self._radius)
        for _ in range(_STEPS):
            k = np.flatnonzero(np.isnan(found))
            if not len(k):
                break
            here = np.minimum(at[k], limit[k])
            points, root, slope = self._profiled(starts[k] + (here - near[k])[:, None] * moves[k], rays[k], here)
            good = root < self._radius
            starts[k[good]], near[k[good]] = points[good], here[good]
            beyond[k[~good]] = here[~good]
            with np.errstate(all="ignore"):
                newton = here + (self._radius - root) / slope
            ends = (np.abs(root - self._radius) <= _TOLERANCE * self._radius) | (here >= limit[k]) & good
            closed = np.isfinite(beyond[k])
            width = np.where(closed, beyond[k], 0.0) - near[k]
            ends |= closed & (width <= 1e-12 * beyond[k])
            found[k[ends]] = here[ends]
            found[k[~ends & good & (here > _MOST_WIDTHS * self._radius)]] = np.inf
            between = np.where(closed, near[k] + width / 2, 2 * here)
            fits = (newton > near[k]) & (newton < np.minimum(beyond[k], 2 * here))
            at[k] = np.where(fits, newton, between)
        return np.where(np.isnan(found), near, found)

    def _profiled(self, starts: Any, rays: Any, distances: Any) -> tuple[Any, Any, Any]:
        """The points of least cost with the two parameters on the rays, and the root of the likelihood ratio there,
        with its derivative by the distance."""
        starts = np.clip(starts, self._problem.low, self._problem.high)
        starts[:, self._pair] = self._point[self._pair] + distances[:, None] * rays
        held = np.zeros(starts.shape, bool)
        held[:, self._pair] = True
        found = profile_points(self._problem, starts, held, self._least, self._scale, self._watch)
        self.lower_found |= found.any_lower
        root = found.root
        with np.errstate(all="ignore"):
            slope = np.vecdot(found.gradient[:, self._pair], rays) / (root * self._scale**2)
        return found.points, root, slope
