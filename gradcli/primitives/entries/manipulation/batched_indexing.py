"""Indexing with positions that differ between the rows of a batch, as a masked sum over all positions of the axis."""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.errors import ShapeError
from gradcli.primitives.bind import Kind, assume, constant
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import add
from gradcli.primitives.entries.comparisons import equal, greater_equal, less, logical_and, where
from gradcli.primitives.entries.reductions import all_, sum_
from gradcli.primitives.entries.shape import expand_dims


def is_batched(places: Any) -> bool:
    """Return whether positions are batched, so that they are not concrete integers."""
    given = constant(places)
    return isinstance(given, Kind) and given.by_row


def taken_along(x: Any, places: Any, axis: int) -> Any:
    """The elements of `x` at `places` along an axis; along the others both have equal sizes, or 1. Raises ShapeError
    for a position out of bounds."""
    marks = marked(places, arrays.shape(x)[axis], axis + 1)
    nothing = 0.0 if arrays.is_floating(x) else 0
    return sum_(where(marks, expand_dims(x, axis), nothing), axis + 1)


def take(x: Any, places: Any) -> Any:
    """x[places] for positions along the first axis of `x`."""
    rank, rest = len(arrays.shape(places)), len(arrays.shape(x)) - 1
    marks = marked(places, arrays.shape(x)[0], rank)
    marks = reshape(marks, (*arrays.shape(marks), *(1,) * rest))
    return sum_(where(marks, x, 0.0 if arrays.is_floating(x) else 0), rank)


def marked(places: Any, size: int, axis: int) -> Any:
    """A one-hot mask of the positions, along a new axis of the given size. Raises ShapeError for a position out of
    bounds."""
    places = constant(places)
    if not assume(all_(logical_and(greater_equal(places, -size), less(places, size)))):
        raise ShapeError(f"an index is out of bounds for an axis of size {size}")
    places = where(less(places, 0), add(places, size), places)
    counted = reshape(
        arrays.in_default_namespace(arrays.numpy_namespace().arange(size)),
        (size, *(1,) * (len(arrays.shape(places)) - axis)),
    )
    return equal(expand_dims(places, axis), counted)
