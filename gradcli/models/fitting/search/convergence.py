"""The convergence criterion of a fit: the relative offset of Bates and Watts, and the limit that rounding errors set to
it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays

# Relative offset below which a search has converged (D. M. Bates and D. G. Watts, Technometrics 23 (1981) 179).
CONVERGED = 1e-6
# Rounding error of a residual, relative to the root mean square of the model's values.
ROUNDING = 4 * 2.0**-52
# Two costs belong to one minimum where their square roots differ by at most _SAME, relatively, plus _NO_RESIDUALS times
# the length of the weighted responses, which is the size of residuals that are rounding errors.
_SAME, _NO_RESIDUALS = 1e-6, 64 * 2.0**-52
# Limit of the change of a fitted mean by a further step, relative to its distance from the end of its range: a larger
# change shows that there is no minimum; see `is_at_end`.
_MAX_MEAN_CHANGE = 1e-5
NO_MAXIMUM = "the likelihood rises without end as some of the fitted means go to the ends of their range"


def relative_offset(gradient_part: Any, rest: Any, parameters: int, dof: Any) -> Any:
    """The length of the residuals' component in the tangent plane over that of the rest, each divided by the square
    root of its dimension.

    This is the distance from the minimum in units of the confidence region (D. M. Bates and D. G. Watts, Technometrics
    23 (1981) 179).
    """
    np = arrays.numpy_namespace()
    with np.errstate(all="ignore"):
        found = np.abs(gradient_part) / np.sqrt(max(parameters, 1)) / (np.abs(rest) / np.sqrt(np.maximum(dof, 1)))
    return np.where(gradient_part == 0, 0.0, found)


def largest_offset(size: Any, rest: Any, dof: Any) -> Any:
    """The largest relative offset that a minimum can have, given the rounding errors of the model's values.

    `rest` is the length of the residuals and `size` the root mean square of the `terms` of the model's values, both
    divided by the standard deviations. Rounding errors of the parameters act in the same direction in all rows, so
    their effect grows with the number of rows.
    """
    np = arrays.numpy_namespace()
    root = np.sqrt(np.maximum(dof, 1))
    with np.errstate(all="ignore"):
        return np.fmax(CONVERGED, ROUNDING * np.fmax(1, root / 4) * size / (np.abs(rest) / root))


def root_mean_squares(values: Any, sigma: Any, count: Any) -> Any:
    """The root mean squares `[…]` of `values` `[…, n]` divided by their standard deviations, over `count` rows; rows
    beyond these are padding, whose standard deviation is infinite."""
    np = arrays.numpy_namespace()
    weighted = values / sigma
    return np.sqrt(np.vecdot(weighted, weighted) / count)


def without_effect(value: Any, derivatives: Sequence[Any], sigma: Any, points: Any, count: Any) -> Any:
    """A mask `[g, p]` of the parameters that do not change the model's values `[g, n]` beyond their rounding errors at
    points `[g, p]`, given the derivatives by each parameter, `[g, n]` each."""
    np = arrays.numpy_namespace()
    with np.errstate(all="ignore"):
        size = root_mean_squares(value, sigma, count)
        slopes = np.stack([root_mean_squares(column, sigma, count) for column in derivatives], axis=-1)
        return ~(slopes * np.maximum(np.abs(points), 1) > ROUNDING * size[:, None])


def is_at_end(value: Any, change: Any, family: str) -> bool:
    """Return whether a further step changes a fitted mean, `[n]` each, by more than `_MAX_MEAN_CHANGE` of its distance
    from the end of its range.

    This is so where the likelihood has no maximum, as when events are perfectly separable: the means go to 0 or 1 with
    every step, while the relative offset goes to 0.
    """
    np = arrays.numpy_namespace()
    room = value if family == "poisson" else np.minimum(value, np.maximum(1 - value, np.finfo(float).eps))
    with np.errstate(all="ignore"):
        return bool((np.abs(change) > _MAX_MEAN_CHANGE * np.abs(room)).any())


def terms(value: Any, first: Any, point: Any) -> Any:
    """The magnitudes `[…, n]` of which the rounding error of each row is a fraction.

    That is the sum of the absolute model value and of the absolute products of the parameters `[…, p]` with the
    derivatives `[…, n, p]`, as parameters are rounded too.
    """
    np = arrays.numpy_namespace()
    return np.abs(value) + (np.abs(first) @ np.abs(point)[..., None])[..., 0]


def of_one_minimum(costs: Any, cost: Any, size: Any) -> Any:
    """A mask of the `costs` that belong to the same minimum as `cost`, up to rounding errors; `size` is the length of
    the responses divided by their standard deviations."""
    np = arrays.numpy_namespace()
    with np.errstate(invalid="ignore"):
        # Costs below 0 are those of log densities.
        root, roots = (np.copysign(np.sqrt(np.abs(each)), each) for each in (cost, costs))
        return np.abs(roots - root) <= _SAME * np.abs(root) + _NO_RESIDUALS * size


def message_of(reason: str | None) -> str:
    """The message of how a search ended; `reason` says why it is not known to be at a minimum, None where it is."""
    if reason is not None:
        return f"not converged: {reason}"
    return f"converged: relative offset below {CONVERGED:.0e}, positive-definite Hessian"
