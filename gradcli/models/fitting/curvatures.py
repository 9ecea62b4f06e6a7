"""How far a model is from a linear one near its fit: the curvatures of Bates and Watts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.models.fitting.packed_hessians import pairs


class Curvatures(NamedTuple):
    """The root mean squares over all directions of the curvature of g fits, `[g]` each, times the radius of the
    confidence region: of the surface of the model's values, and of the lines on it along which one parameter changes."""

    intrinsic: Any
    parameter: Any


def curvatures(blocks: Sequence[Any], axes: Any, radius: Any) -> Curvatures:
    """Those of g fits, whose n rows come in blocks of the model's derivatives over the standard deviations of the rows,
    `[g, n, p + k]`: the p first ones, and behind them those of order 2 by `pairs`; the `axes` of the parameters'
    information, and the `radius` `[g]` of the confidence region in the space of the rows, s sqrt(p F).

    Directions that the rows do not determine are left out. Source: D. M. Bates and D. G. Watts, Relative curvature
    measures of nonlinearity, J. R. Statist. Soc. B 42 (1980) 1, (2.14) and (2.15).
    """
    p = axes.shape[-1]
    first, other = pairs(p)
    # A row's second derivatives V are AᵀVA along the axes A.
    twice = np.where(first == other, 0.5, 1.0)[:, None]
    left, right = axes[:, first], axes[:, other]
    change = twice * (left[:, :, first] * right[:, :, other] + right[:, :, first] * left[:, :, other])
    tangential = axes.mT @ sum(block[..., :p].mT @ block[..., p:] for block in blocks) @ change
    # What is left of them beyond the tangent plane.
    beyond = np.concatenate([-axes @ tangential, change], axis=1).mT
    normal = sum(_squares(beyond @ block.mT, p) for block in blocks)
    scale = radius / np.sqrt(p * (p + 2.0))
    return Curvatures(scale * np.sqrt(normal), scale * np.sqrt(_squares(tangential.mT, p)))


def _squares(curved: Any, p: int) -> Any:
    """The mean over directions of the square of the curvature, by `pairs` of these `[g, k, n]`, times p(p + 2): twice all
    squares, and that of the trace."""
    first, other = pairs(p)
    counts = np.where(first == other, 2.0, 4.0)
    trace = (first == other).astype(float) @ curved
    return np.vecdot(curved, curved) @ counts + np.vecdot(trace, trace)
