"""Whether an objective is smooth at a point, and if not, whether 0 is among its subgradients.

The subgradients are approximated by the convex hull of gradients sampled nearby, as in J. V. Burke, A. S. Lewis and M.
L. Overton, "A robust gradient sampling algorithm for nonsmooth, nonconvex optimization", SIAM J. Optim. 15 (2005).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.models.optima.objectives import Objective

# The distance from a point at which gradients are sampled, relative to the variables, and the factor of the nearer
# points.
_NEARBY, _NEARER = 1e-6, 1e-3
# A smooth gradient changes as the Hessian predicts up to the share `_SIMILAR`; a jump changes by at least the share
# `_JUMP` at the nearer points as well. Changes below the share `_ROUNDING` of the gradient nearby, or `_SMALL` of its
# terms, are rounding.
_SIMILAR, _JUMP, _ROUNDING, _SMALL = 0.1, 0.5, 1e-6, 1e-8
# The upper bound of the variables for which subgradients are sampled, and their number: `_FOR_EACH` per variable and
# `_BESIDE` more.
_MOST, _FOR_EACH, _BESIDE = 50, 4, 8
# The shortest convex combination counts as 0 below the share `_ZERO` of the longest gradient; the objective falls where
# a sampled value is lower by more than the share `_FALL` of the change that this gradient predicts.
_ZERO, _FALL = 1e-3, 1e-2


class Kink(NamedTuple):
    """A point at which an objective is not smooth: whether 0 is a subgradient, None where there are too many variables
    to tell, and whether the objective `falls` from it."""

    has_subgradient_0: bool | None
    falls: bool


class GradientSampler:
    """Samples an objective near a point `x` `[n]` between `low` and `high`, varying only the `free` variables."""

    def __init__(self, objective: Objective, x: Any, sizes: Any, free: Any, low: Any, high: Any) -> None:
        np = arrays.numpy_namespace()
        self._objective, self._x, self._low, self._high = objective, x, low, high
        self._free, self._units = free, np.where(free, sizes, 0.0)
        self._generator = np.random.default_rng(0)

    def kink(self, value: float, hessian: Any) -> Kink | None:
        """The kink at the point, at which the objective has this value and Hessian (None where unknown); None where the
        objective is smooth, or has no finite values nearby."""
        np = arrays.numpy_namespace()
        direction = self._direction()
        wide = self._change(direction, _NEARBY)
        if wide is None or not wide.any():
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            expected = (
                0.0 if hessian is None else hessian @ (self._at(direction, _NEARBY) - self._at(direction, -_NEARBY))
            )
            off = np.linalg.norm((wide - expected)[self._free])
        near = self._change(direction, _NEARBY * _NEARER)
        if near is None or off <= _SIMILAR * np.linalg.norm(wide) or not self._jumps(near, wide, hessian):
            return None
        return self._subgradients(value)

    def _jumps(self, near: Any, wide: Any, hessian: Any) -> bool:
        np = arrays.numpy_namespace()
        steepest = float(abs(self._objective.value_and_gradient(self._at(self._direction(), _NEARBY))[1]).max())
        rounding = 0.0 if hessian is None else _SMALL * float(np.linalg.norm(abs(hessian) @ abs(self._x)))
        return bool(np.linalg.norm(near) >= max(_JUMP * np.linalg.norm(wide), _ROUNDING * steepest, rounding))

    def _subgradients(self, value: float) -> Kink:
        np = arrays.numpy_namespace()
        count = int(self._free.sum())
        if count > _MOST:
            return Kink(None, False)
        points = [self._at(self._direction(), _NEARBY) for _ in range(_FOR_EACH * count + _BESIDE)]
        found = [self._objective.value_and_gradient(point) for point in points]
        # Gradients by the scaled variables.
        rows = np.stack([gradient * self._units for _, gradient in found])
        if not np.isfinite(rows).all():
            return Kink(None, False)
        longest = float(np.linalg.norm(rows, axis=1).max())
        falls = min(v for v, _ in found) < value - _FALL * _NEARBY * longest
        return Kink(
            float(np.linalg.norm(shortest_convex_combination(rows / longest))) <= _ZERO if longest else True, falls
        )

    def _direction(self) -> Any:
        # Every component is large enough that a kink across it is seen.
        signs = self._generator.choice([-1.0, 1.0], len(self._x))
        return signs * self._generator.uniform(0.3, 1.0, len(self._x)) * self._units

    def _at(self, direction: Any, step: float) -> Any:
        np = arrays.numpy_namespace()
        return np.clip(self._x + step * direction, self._low, self._high)

    def _change(self, direction: Any, step: float) -> Any:
        """The change of the gradient across the point; None where the gradient is not finite."""
        np = arrays.numpy_namespace()
        ends = [self._objective.value_and_gradient(self._at(direction, s))[1] for s in (step, -step)]
        change = np.where(self._free, ends[0] - ends[1], 0.0)
        return change if np.isfinite(change).all() else None


def shortest_convex_combination(rows: Any) -> Any:
    """The shortest vector `[n]` in the convex hull of the rows `[k, n]`."""
    from scipy.optimize import nnls

    np = arrays.numpy_namespace()
    # An additional equation with a large weight enforces that the weights add up to 1.
    matrix = np.concatenate([rows.T, np.full((1, len(rows)), 1e3)])
    weights = nnls(matrix, np.append(np.zeros(rows.shape[1]), 1e3))[0]
    return weights @ rows / max(weights.sum(), 1e-300)
