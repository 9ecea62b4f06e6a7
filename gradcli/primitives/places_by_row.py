"""Elements at places that are others in each row of a batch: a sum over all places of the axis, of which one counts."""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.errors import ShapeError
from gradcli.primitives.arithmetic import add
from gradcli.primitives.bind import Kind, assume, constant
from gradcli.primitives.comparisons import equal, greater_equal, less, logical_and, where
from gradcli.primitives.conversions import reshape
from gradcli.primitives.reductions import all_, sum_
from gradcli.primitives.shape import expand_dims


def differ_by_row(places: Any) -> bool:
    """Whether places are of a batch, so that they are not known as numbers of one row."""
    given = constant(places)
    return isinstance(given, Kind) and given.by_row


def taken_along(x: Any, places: Any, axis: int) -> Any:
    """The elements of `x` at places along an axis; along the others both have the same sizes, or 1. Raises ShapeError for
    a place that there is not."""
    marks = marked(places, arrays.shape(x)[axis], axis + 1)
    nothing = 0.0 if arrays.is_floating(x) else 0
    return sum_(where(marks, expand_dims(x, axis), nothing), axis + 1)


def taken_first(x: Any, places: Any) -> Any:
    """x[places]: the parts of `x` at places along its first axis."""
    rank, rest = len(arrays.shape(places)), len(arrays.shape(x)) - 1
    marks = marked(places, arrays.shape(x)[0], rank)
    marks = reshape(marks, (*arrays.shape(marks), *(1,) * rest))
    return sum_(where(marks, x, 0.0 if arrays.is_floating(x) else 0), rank)


def marked(places: Any, size: int, axis: int) -> Any:
    """Along a new axis of a size, the truth value of each place whether it is the one that is asked for."""
    places = constant(places)
    if not assume(all_(logical_and(greater_equal(places, -size), less(places, size)))):
        raise ShapeError(f"an index is out of bounds for an axis of size {size}")
    places = where(less(places, 0), add(places, size), places)
    counted = reshape(
        arrays.placed(arrays.numpy_namespace().arange(size)), (size, *(1,) * (len(arrays.shape(places)) - axis))
    )
    return equal(expand_dims(places, axis), counted)
