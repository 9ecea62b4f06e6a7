"""How far a model is from a linear one near its fit: the curvatures of Bates and Watts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Curvatures(NamedTuple):
    """The root mean squares over all directions of the curvature of g fits, `[g]` each, times the radius of the
    confidence region: of the surface of the model's values, and of the lines on it along which one parameter changes."""

    intrinsic: Any
    parameter: Any


def pairs(p: int) -> tuple[Any, Any]:
    """The indices of the elements on and above the diagonal of a matrix of p rows, k = p(p + 1)/2 of them."""
    return np.triu_indices(p)


def curvatures(jacobian: Any, second: Any, factor: Any, radius: Any) -> Curvatures:
    """Those of g fits of n rows, with the model's derivatives over the standard deviations of the rows: the first as
    `[g, n, p]`, those of order 2 by `pairs` as `[g, n, k]`; `factor` is R of the first's QR factors, and `radius` `[g]`
    is s sqrt(p F), the confidence region's in the space of the rows.

    Nan where the first are not of full rank. Source: D. M. Bates and D. G. Watts, Relative curvature measures of
    nonlinearity, J. R. Statist. Soc. B 42 (1980) 1, (2.14) and (2.15).
    """
    p = jacobian.shape[-1]
    inverse = _inverse(factor)
    first, other = pairs(p)
    # Row i of a model has the second derivatives V; by coordinates in which the columns are orthonormal, R⁻ᵀ V R⁻¹.
    twice = np.where(first == other, 0.5, 1.0)[:, None]
    left, right = inverse[:, first], inverse[:, other]
    change = twice * (left[:, :, first] * right[:, :, other] + right[:, :, first] * left[:, :, other])
    curved = second @ change
    basis = jacobian @ inverse
    tangential = np.swapaxes(basis, 1, 2) @ curved
    normal = curved - basis @ tangential
    scale = radius / np.sqrt(p * (p + 2.0))
    return Curvatures(scale * np.sqrt(_squares(normal, p)), scale * np.sqrt(_squares(tangential, p)))


def _squares(curved: Any, p: int) -> Any:
    """The mean over directions of the square of the curvature, times p(p + 2): twice all squares, and that of the
    trace."""
    first, other = pairs(p)
    trace = curved[:, :, first == other].sum(axis=2)
    counts = np.where(first == other, 2.0, 4.0)
    return np.einsum("gnk,gnk,k->g", curved, curved, counts) + np.einsum("gn,gn->g", trace, trace)


def _inverse(factor: Any) -> Any:
    scales = np.linalg.norm(factor, axis=1, keepdims=True)
    found = np.full_like(factor, np.nan)
    for i in range(len(factor)):
        if scales[i].all() and np.linalg.cond(factor[i] / scales[i]) < 1e13:
            found[i] = np.linalg.inv(factor[i] / scales[i]) / scales[i].T
    return found
