"""Points of a profile likelihood: those of least cost where some parameters are held."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.models.fitting.problem.linearisations import Linearised, linearised
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.search.levenberg_marquardt import levenberg_marquardt
from gradcli.models.results import ProgressCallback
from gradcli.named_tuples import NamedTuple

# A likelihood ratio below this is that of a minimum lower than the one that the profile is of.
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
        """Whether a point has a lower cost than the minimum."""
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
