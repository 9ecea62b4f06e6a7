"""When a point is a minimum: the relative offset of Bates and Watts, and what rounding makes of it."""

from __future__ import annotations

from typing import Any

from gradcli import arrays

# D. M. Bates and D. G. Watts, Technometrics 23 (1981) 179.
CONVERGED = 1e-6
# Of the root mean square of the model's values: what rounding makes of a residual.
ROUNDING = 4 * 2.0**-52
# Costs that differ by so little, as parts of them, are of the same minimum, and so are residuals that are so small beside
# the responses.
_SAME, _NO_RESIDUALS = 1e-6, 64 * 2.0**-52


def relative_offset(gradient_part: Any, rest: Any, parameters: int, dof: Any) -> Any:
    """The length of the residuals' part in the tangent plane over that of the rest, each over the root of its dimension:
    how far it is to the minimum in units of the confidence region (D. M. Bates and D. G. Watts, Technometrics 23 (1981)
    179)."""
    np = arrays.numpy_namespace()
    with np.errstate(all="ignore"):
        found = np.abs(gradient_part) / np.sqrt(max(parameters, 1)) / (np.abs(rest) / np.sqrt(np.maximum(dof, 1)))
    return np.where(gradient_part == 0, 0.0, found)


def largest_offset(size: Any, rest: Any, dof: Any) -> Any:
    """The largest relative offset of a minimum: where residuals of length `rest` are rounding of the model's
    values, whose `terms` have the root mean square `size`, both over the standard deviations, it is what that makes of it. That of
    the parameters is the same way in all rows."""
    np = arrays.numpy_namespace()
    root = np.sqrt(np.maximum(dof, 1))
    with np.errstate(all="ignore"):
        return np.fmax(CONVERGED, ROUNDING * np.fmax(1, root / 4) * size / (np.abs(rest) / root))


def terms(value: Any, first: Any, point: Any) -> Any:
    """Of rows the sizes `[…, n]` of which rounding is a part: those of the model's values, and of what each of the
    parameters `[…, p]` brings to them, by the derivatives `[…, n, p]`, for these are rounded too."""
    np = arrays.numpy_namespace()
    return np.abs(value) + (np.abs(first) @ np.abs(point)[..., None])[..., 0]


def of_one_minimum(costs: Any, cost: Any, size: Any) -> Any:
    """Which costs are those of the same minimum as another, by all that rounding lets tell; `size` is the length of the
    responses over their standard deviations."""
    np = arrays.numpy_namespace()
    with np.errstate(invalid="ignore"):
        root = np.sqrt(np.abs(cost))
        return np.abs(np.sqrt(np.abs(costs)) - root) <= _SAME * root + _NO_RESIDUALS * size


def message_of(reason: str | None) -> str:
    """How a search ended, in words; the reason is why it is not known to be at a minimum."""
    if reason is not None:
        return f"not converged: {reason}"
    return f"converged: relative offset below {CONVERGED:.0e}, positive-definite Hessian"
