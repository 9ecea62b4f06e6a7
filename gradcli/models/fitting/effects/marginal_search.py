"""Searches for the minimum of a function of few parameters with exact Hessians, by Newton's method within trust
regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from gradcli.errors import EvaluationError
from gradcli.models.optima.newton import bounded_step, held_by_bounds
from gradcli.models.results import Iteration, ProgressCallback
from gradcli.named_tuples import NamedTuple

# The most steps of a search; the length of the first, in units of the scales of the parameters.
_MOST_STEPS, _FIRST_RADIUS = 200, 10.0
# The step left, in standard errors, up to which a search has converged, and up to which it goes on.
CONVERGED, _DONE = 1e-6, 1e-9
# Largest share of the value that may be rounding errors.
_ROUNDING_SHARE = 1e-13
# An eigenvalue of the scaled Hessian counts as 0 if it is at most this share of the largest.
_SINGULAR_SHARE = 1e-10

# The shares of the expected decrease below which the trust region shrinks and above which it grows (J. Nocedal and
# S. J. Wright, Numerical Optimization, 2006, algorithm 4.1), and the least radius, in scales of the parameters.
_POOR_GAIN, _GOOD_GAIN, _LEAST_RADIUS = 0.25, 0.75, 1e-12


class MarginalObjective(Protocol):
    """A function to minimise: its value, infinite where it has none, and its gradient `[p]` and Hessian `[p, p]`."""

    def value(self, point: Any) -> float: ...

    def slopes(self, point: Any) -> tuple[Any, Any]: ...


class MarginalMinimum(NamedTuple):
    """The end of a search: the `point` `[p]`, its value, gradient and Hessian, which parameters are `free` (not held by
    a bound), the step that is left in standard errors, and the numbers of steps and evaluations."""

    point: Any
    value: float
    gradient: Any
    hessian: Any
    free: Any
    left: float
    iterations: int
    evaluations: int

    def least_curvature(self, places: Sequence[int]) -> float:
        """The least eigenvalue of the Hessian of the parameters at these places, over the largest; 0 where it may be a
        rounding error."""
        values = np.linalg.eigvalsh(scaled(self.hessian[np.ix_(places, places)])[0])
        least = float(values[0] / np.abs(values).max())
        return least if abs(least) > _SINGULAR_SHARE else 0.0

    @property
    def step(self) -> Any:
        """Newton's step `[p]` of the free parameters, without directions in which the Hessian is 0."""
        return -np.nan_to_num(self.inverse()) @ self.gradient

    def inverse(self, among: Any = slice(None)) -> Any:
        """The inverse `[p, p]` of the Hessian of the free parameters at the places `among`, nan for others."""
        found = np.full(self.hessian.shape, np.nan)
        taken = np.zeros(len(self.free), "bool")
        taken[among] = self.free[among]
        own = np.ix_(taken, taken)
        found[own] = inverse(self.hessian[own])
        return found


def inverse(hessian: Any) -> Any:
    """The inverse of a Hessian `[p, p]`, leaving out directions in which it is 0; nan where it is indefinite."""
    own, scales = scaled(hessian)
    values, vectors = np.linalg.eigh(own)
    flat = np.abs(values) <= _SINGULAR_SHARE * np.abs(values).max(initial=0.0)
    if (values[~flat] < 0).any():
        return np.full(hessian.shape, np.nan)
    inverses = np.where(flat, 0.0, 1 / np.where(flat, 1.0, values))
    return (vectors * inverses) @ vectors.T * scales[:, None] * scales


def scaled(hessian: Any) -> tuple[Any, Any]:
    """A Hessian `[p, p]` with a diagonal of 1 and -1, and the scales `[p]` of the parameters that make it so."""
    sizes = np.sqrt(np.abs(np.diagonal(hessian)))
    scales = 1 / np.where(sizes > 0, sizes, 1.0)
    return hessian * scales[:, None] * scales, scales


class Box(NamedTuple):
    """The bounds `low` and `high` `[p]` of the parameters; equal ones hold a parameter."""

    low: Any
    high: Any

    def free(self, point: Any, gradient: Any) -> Any:
        """The parameters `[p]` that no bound holds."""
        return ~held_by_bounds(point, gradient, self.low, self.high)

    def moved(self, point: Any, move: Any, scales: Any) -> Any:
        """The point after a `move` within the box, in units of `scales`; parameters that reach a bound are equal to it,
        independently of rounding in the units."""
        found = np.clip(point + move * scales, self.low, self.high)
        found = np.where(move <= (self.low - point) / scales, self.low, found)
        return np.where(move >= (self.high - point) / scales, self.high, found)


def minimised(objective: MarginalObjective, start: Any, box: Box, watch: ProgressCallback | None) -> MarginalMinimum:
    """Minimise within a box from a point `[p]` in it at which the value is finite."""
    point, value = start, objective.value(start)
    gradient, hessian = _finite(objective.slopes(point))
    free = box.free(point, gradient)
    _, scales = scaled(hessian)
    radius, evaluations = _FIRST_RADIUS * len(start) ** 0.5, 1
    left, iterations = _left(gradient, hessian, free), 0
    while iterations < _MOST_STEPS and left > _DONE:
        iterations += 1
        units = scales[free]
        low, high = ((end - point)[free] / units for end in box)
        reduced = hessian[np.ix_(free, free)] * units[:, None] * units
        move = np.zeros(len(point))
        move[free] = bounded_step(gradient[free] * units, reduced, radius, low, high).direction
        moved = box.moved(point, move, scales)
        there = objective.value(moved)
        evaluations += 1
        expected = -float(gradient @ (move * scales) + move * scales @ hessian @ (move * scales) / 2)
        noise = _ROUNDING_SHARE * max(abs(value), 1.0)
        gained = value - there if np.isfinite(there) else -np.inf
        length = float(np.linalg.norm(move))
        if gained < _POOR_GAIN * expected - noise:
            radius = length / 4
            if radius < _LEAST_RADIUS:
                break
        if not gained >= -noise or (gained <= 0 and expected > 2 * noise):
            if expected <= noise:
                break
            continue
        if gained > _GOOD_GAIN * expected and length > 0.9 * radius:
            radius *= 2
        further = _finite(objective.slopes(moved))
        still_free = box.free(moved, further[0])
        remaining = _left(*further, still_free)
        if expected <= noise and not remaining < left / 2:
            break
        point, value, left, free = moved, there, remaining, still_free
        gradient, hessian = further
        if watch is not None:
            watch(Iteration(iterations, value, float(np.linalg.norm(gradient)), point))
    return MarginalMinimum(point, value, gradient, hessian, free, left, iterations, evaluations)


def _finite(slopes: tuple[Any, Any]) -> tuple[Any, Any]:
    if not all(np.isfinite(each).all() for each in slopes):
        raise EvaluationError(
            "the likelihood has no finite derivatives where the search came to",
            hint="give start values near the estimates, or write the model without kinks",
        )
    return slopes


def _left(gradient: Any, hessian: Any, free: Any) -> float:
    """The length of Newton's step of the free parameters in standard errors; infinite where the Hessian is indefinite."""
    own, scales = scaled(hessian[np.ix_(free, free)])
    values, vectors = np.linalg.eigh(own)
    along = vectors.T @ (gradient[free] * scales)
    flat = np.abs(values) <= _SINGULAR_SHARE * np.abs(values).max(initial=0.0)
    if (values[~flat] < 0).any():
        return float("inf")
    return float(np.sqrt((along[~flat] ** 2 / values[~flat]).sum()))
