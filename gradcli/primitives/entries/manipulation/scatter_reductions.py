"""Reductions of the elements of a tensor by the place that an index sends them to, as PyTorch has them."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import ShapeError
from gradcli.primitives.axes import boolean, integer_array, normalize_axis, option
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import cast, reshape
from gradcli.primitives.entries.arithmetic import divide, floor_divide, identity
from gradcli.primitives.entries.indexing import index as indexed
from gradcli.primitives.entries.manipulation.functional_update import set_at
from gradcli.primitives.entries.manipulation.gather_scatter import scatter_key, scattered_source
from gradcli.primitives.entries.reductions import max_, min_, prod, sum_
from gradcli.primitives.entries.shape import concat, ravel
from gradcli.primitives.operation import Composite

SUBJECT = "shape"

_MATRIX, _OTHER = [[1.0, 2.0, 3.5], [4.0, -5.5, 6.0]], [[0.5, 2.5, 3.0], [3.0, -5.0, 6.5]]
_REDUCTIONS = {"sum": sum_, "prod": prod, "mean": sum_, "amax": max_, "amin": min_}


def _scatter_reduce(x: Any, axis: Any, index: Any, src: Any, reduce: Any, include_self: Any = True) -> Any:
    how, own = option(reduce, _REDUCTIONS, "reduction"), boolean(include_self, "'include_self'")
    if not arrays.shape(x):
        return reshape(_reduced(reshape(x, 1), 0, reshape(concrete(index), 1), reshape(src, 1), how, own), ())
    return _reduced(x, axis, concrete(index), src, how, own)


scatter_reduce = Composite(
    "scatter_reduce", "x, axis, index, src, reduce, include_self=True",
    "x with the elements of src reduced at the places in index along an axis", _scatter_reduce,
    derivative="that of the reduction, 'sum', 'prod', 'mean', 'amax' or 'amin', of the elements that go to each place",
    domain="smooth where one element is the largest or the smallest",
    edges=(
        "the element of x at a place takes part unless include_self is False",
        "where several elements are the largest, each has an even share of g",
    ),
    samples=(
        (_MATRIX, 1, [[0, 2, 0], [1, 1, 1]], [[0.5, 4.0, -2.0], [1.5, 7.0, 3.0]], "sum"),
        (_MATRIX, 0, [[1, 0, 1], [1, 1, 0]], _OTHER, "prod"),
        (_MATRIX, 0, [[1, 0, 1], [1, 1, 0]], _OTHER, "amax", False),
    ),
)  # fmt: skip


def _index_reduce(x: Any, axis: Any, index: Any, source: Any, reduce: Any, include_self: Any = True) -> Any:
    how = option(reduce, ("prod", "mean", "amax", "amin"), "reduction")
    # A list is not read as a tensor before, because 'source' has axes elsewhere.
    source = identity(source) if isinstance(source, (list, tuple)) else source
    number, places = normalize_axis(axis, len(arrays.shape(x))), integer_array(concrete(index), "an index")
    shape = arrays.shape(source)
    if places.ndim != 1 or len(shape) != len(arrays.shape(x)) or shape[number] != places.size:
        raise ShapeError(f"'index_reduce' does not fit {places.size} positions and a source of {list(shape)}")
    along = (-1, *(1,) * (len(shape) - number - 1))
    repeated = arrays.numpy_namespace().broadcast_to(places.reshape(along), shape)
    return _reduced(x, number, repeated, source, how, boolean(include_self, "'include_self'"))


index_reduce = Composite(
    "index_reduce", "x, axis, index, source, reduce, include_self=True",
    "x with the slices of source reduced at positions along an axis", _index_reduce,
    derivative="that of the reduction, 'prod', 'mean', 'amax' or 'amin', of the elements that go to each place",
    domain=scatter_reduce.domain, edges=scatter_reduce.edges,
    samples=((_MATRIX, 1, [0, 0, 2], _OTHER, "mean"), (_MATRIX, 0, [1, 1], _OTHER, "amin", False)),
)  # fmt: skip


def _reduced(x: Any, axis: Any, index: Any, src: Any, how: str, own: bool) -> Any:
    xp, shape, dtype = arrays.numpy_namespace(), arrays.shape(x), arrays.dtype_name(x)
    key = scatter_key(x, axis, index, "scatter_reduce")
    numbers = xp.arange(math.prod(shape)).reshape(shape)
    targets = xp.asarray(numbers[key]).reshape(-1)
    if not targets.size:
        return x
    source = cast(ravel(scattered_source(src, arrays.shape(index))), dtype)
    # All elements that may take part, and last one that changes nothing, for rows with fewer elements than others.
    terms = concat([ravel(x), source, _neutral(how, dtype)], 0)
    order = xp.argsort(targets, kind="stable")
    places, starts, counts = xp.unique(targets[order], return_index=True, return_counts=True)
    flat = ravel(x)
    # Places with like numbers of elements are reduced together, so that at most half of each matrix is filled up.
    widths = xp.ceil(xp.log2(counts)).astype("int64")
    for width in xp.unique(widths):
        chosen = widths == width
        members = _members(order, starts[chosen], counts[chosen], math.prod(shape))
        if own:
            members = xp.concatenate([places[chosen][:, None], members], 1)
        found = _REDUCTIONS[how](indexed(terms, (members,)), 1)
        if how == "mean":
            numbers_of_terms = counts[chosen] + own
            found = (divide if arrays.is_inexact(x) else floor_divide)(found, numbers_of_terms)
        flat = set_at(flat, (places[chosen],), cast(found, dtype))
    return reshape(flat, shape)


def _members(order: Any, starts: Any, counts: Any, before: int) -> Any:
    """For each place, the numbers of its terms in a row, which is filled up with that of the last term."""
    xp = arrays.numpy_namespace()
    limits.charge(len(counts) * int(counts.max()))
    steps = xp.arange(int(counts.max()))
    inside = steps < counts[:, None]
    positions = xp.where(inside, starts[:, None] + steps, 0)
    return xp.where(inside, before + order[positions], before + order.size)


def _neutral(how: str, dtype: str) -> Any:
    """The number that does not change a reduction."""
    if how in ("amax", "amin"):
        if dtype.startswith(("int", "uint")):
            limit = arrays.numpy_namespace().iinfo(dtype)
            number = limit.min if how == "amax" else limit.max
        else:
            number = float("-inf" if how == "amax" else "inf")
    else:
        number = 1 if how == "prod" else 0
    return arrays.astype(arrays.asarray([number]), dtype)
