"""How far a model is from a linear one near its fit: the curvature measures of Bates and Watts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.models.fitting.packed_hessians import pairs


class Curvatures(NamedTuple):
    """Root mean square curvatures of g fits over all directions, `[g]` each, times the radius of the confidence region.

    `intrinsic` is the curvature of the surface of the model's values, `parameter` that of the lines on it along which
    one parameter changes.
    """

    intrinsic: Any
    parameter: Any


def curvatures(blocks: Sequence[Any], axes: Any, radius: Any) -> Curvatures:
    """The curvatures of g fits.

    `blocks` hold the n rows: derivatives of the model divided by the standard deviations of the rows, `[g, n, p + k]`,
    the p first ones followed by the k second ones in the order of `pairs`. `axes` are those of the parameters'
    `Information`, and `radius` `[g]` is that of the confidence region in the space of the rows, s sqrt(p F).

    Directions that the rows do not determine are left out. Source: D. M. Bates and D. G. Watts, Relative curvature
    measures of nonlinearity, J. R. Statist. Soc. B 42 (1980) 1, (2.14) and (2.15).
    """
    p = axes.shape[-1]
    first, other = pairs(p)
    # Along the axes A, the second derivatives V of a row are AᵀVA.
    twice = np.where(first == other, 0.5, 1.0)[:, None]
    left, right = axes[:, first], axes[:, other]
    change = twice * (left[:, :, first] * right[:, :, other] + right[:, :, first] * left[:, :, other])
    tangential = axes.mT @ sum(block[..., :p].mT @ block[..., p:] for block in blocks) @ change
    # The components of the second derivatives normal to the tangent plane.
    beyond = np.concatenate([-axes @ tangential, change], axis=1).mT
    normal = sum(_squares(beyond @ block.mT, p) for block in blocks)
    scale = radius / np.sqrt(p * (p + 2.0))
    return Curvatures(scale * np.sqrt(normal), scale * np.sqrt(_squares(tangential.mT, p)))


def _squares(curved: Any, p: int) -> Any:
    """The mean square curvature over all directions, times p(p + 2), of second derivatives `[g, k, n]` in the order of
    `pairs`: twice the sum of the squares of all matrix elements, plus the square of the trace."""
    first, other = pairs(p)
    counts = np.where(first == other, 2.0, 4.0)
    trace = (first == other).astype(float) @ curved
    return np.vecdot(curved, curved) @ counts + np.vecdot(trace, trace)
