"""Computes a functional for each element of its broadcast operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import broadcast


def of_each(operands: Sequence[Any], compute: Callable[[Any], Any]) -> Any:
    """The results for all elements of the operands, in the library of the first operand; nan where an operand is nan.

    `compute` takes an array of shape [elements, operands] and returns one of shape [elements].
    """
    np = arrays.numpy_namespace()
    given = np.broadcast_arrays(*map(arrays.to_numpy, operands))
    rows = np.array([g.ravel() for g in given], float).T
    known = ~np.isnan(rows).any(axis=1)
    found = np.full(len(rows), np.nan)
    if known.any():
        found[known] = compute(rows[known])
    shape = given[0].shape
    return arrays.like_library_of(found.reshape(shape), operands[0]) if shape else float(found[0])


def stacked_balls(operands: Sequence[Any]) -> Any:
    """Broadcast operands along a new last axis, in the library of balls."""
    xp: Any = arrays.default_namespace()
    shape = broadcast([arrays.shape(o) for o in operands])
    return xp.stack([xp.broadcast_to(xp.asarray(o, "float64"), shape) for o in operands], -1)
