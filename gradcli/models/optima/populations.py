"""Candidate starts of a global search, from values at many points: sampled points that are lower than their neighbours,
and the results of differential evolution.

A. Törn and S. Viitanen, "Topographical global optimization", in Recent Advances in Global Optimization (Princeton 1992)
384; R. Storn and K. Price, "Differential evolution", J. Global Optim. 11 (1997) 341.
"""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import LimitError
from gradcli.models.optima.optimality import RESIDUAL_TOLERANCE
from gradcli.models.optima.optimization_problems import Problem
from gradcli.models.results import Iteration, ProgressCallback

# Upper bound of the variables: in more dimensions, sampled points are too sparse to be useful.
MOST_VARIABLES = 50
# The number of sampled points, and of nearest neighbours that must all be higher around a candidate.
_SAMPLES, _NEAREST = 4_000, 8
# The mutation strategies of SciPy's differential evolution: the first explores more widely, the second is faster in
# many dimensions.
_STRATEGIES = ("currenttobest1bin", "best1bin")
# Points of a population per variable, and upper bounds of the generations and of the evaluated points of one evolution.
_FOR_EACH, _GENERATIONS, _MOST_POINTS = 15, 1_000, 150_000
# The value of points that violate constraints, above all other values.
_FORBIDDEN = 1e200


class Population:
    """Evaluates an objective at many points between `low` and `high`, and keeps the lowest one."""

    def __init__(self, posed: Problem, low: Any, high: Any) -> None:
        self._posed, self.low, self.high = posed, low, high
        self.lowest: Any = None
        self._least = math.inf

    def values(self, points: Any) -> Any:
        """The values `[k]` at points `[k, n]`, infinite where there are none. Where constraints are violated, a value
        is very large and depends on the violation only."""
        np = arrays.numpy_namespace()
        found = self._posed.objective.values_at(points)
        if len(self._posed.constraints):
            residuals = self._posed.constraints.residuals_at(points)
            violated = np.nan_to_num(self._posed.constraints.violation(residuals), nan=np.inf).sum(axis=1)
            found = np.where(violated > RESIDUAL_TOLERANCE, _FORBIDDEN * (1.0 + np.log1p(violated)), found)
        place = int(found.argmin())
        if found[place] < self._least:
            self.lowest, self._least = points[place].copy(), float(found[place])
        return found

    def low_points(self, count: int, generator: Any) -> Any:
        """At most `count` of the lowest sampled points that are lower than all their nearest neighbours, `[k, n]`."""
        from scipy.spatial import KDTree

        np = arrays.numpy_namespace()
        shares = generator.random((_SAMPLES, len(self.low)))
        points = self.low + shares * (self.high - self.low)
        try:
            with limits.optional_budget():
                values = self.values(points)
        except LimitError:
            return points[:0]
        near = KDTree(shares).query(shares, _NEAREST + 1)[1][:, 1:]
        is_low = np.isfinite(values) & (values[:, None] <= values[near]).all(axis=1)
        order = np.argsort(values[is_low], kind="stable")
        return points[is_low][order[:count]]

    def evolved(self, seed: int, watch: ProgressCallback) -> list[Any]:
        """The lowest point that differential evolution finds, for each strategy."""
        found = []
        for strategy in _STRATEGIES:
            self.lowest, self._least = None, math.inf
            try:
                with limits.optional_budget():
                    self._evolve(strategy, seed, watch)
            except LimitError:
                # The best point so far is a start as well.
                pass
            if self.lowest is not None:
                found.append(self.lowest)
        return found

    def _evolve(self, strategy: str, seed: int, watch: ProgressCallback) -> None:
        from scipy.optimize import differential_evolution

        np = arrays.numpy_namespace()
        sign = self._posed.objective.sign
        generations = 0

        def told(_point: Any, _convergence: float = 0.0) -> bool:
            nonlocal generations
            generations += 1
            watch(Iteration(generations, sign * self._least, None, self.lowest))
            # Returning True ends the evolution, where no point has a finite value.
            return self.lowest is None

        with np.errstate(all="ignore"):
            differential_evolution(
                lambda columns: self.values(np.ascontiguousarray(columns.T)),
                np.stack([self.low, self.high], axis=1),
                strategy=strategy,
                popsize=_FOR_EACH,
                maxiter=min(_GENERATIONS, _MOST_POINTS // (_FOR_EACH * len(self.low))),
                rng=np.random.default_rng(seed),
                callback=told,
                polish=False,
                vectorized=True,
                updating="deferred",
            )
