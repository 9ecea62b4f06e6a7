"""Reductions of the elements of a tensor by the place that an index sends them to, as PyTorch has them."""

from __future__ import annotations

from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.tensor_base import TensorBase
from gradcli.errors import ShapeError, expect
from gradcli.primitives.axes import boolean, integer_array, normalize_axis, option
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import cast, reshape
from gradcli.primitives.entries.arithmetic import add, divide, floor_divide
from gradcli.primitives.entries.functional_update import set_at
from gradcli.primitives.entries.gather_scatter import scatter_key, scattered_source
from gradcli.primitives.entries.indexing import index as indexed
from gradcli.primitives.entries.indexing import scatter as put_at
from gradcli.primitives.entries.reductions import max_, min_, prod, sum_
from gradcli.primitives.entries.shape import concat, ravel

_REDUCTIONS = {"sum": sum_, "prod": prod, "mean": sum_, "amax": max_, "amin": min_}


def scatter_reduce(input: Any, dim: Any, index: Any, src: Any, reduce: Any, *, include_self: Any = True) -> Any:
    """`input` with the elements of `src` reduced, by "sum", "prod", "mean", "amax" or "amin", at the places in `index`
    along an axis. The element of `input` at a place takes part unless `include_self` is false.

    Where several elements are the largest, each has an even share of the gradient.
    """
    expect(input, TensorBase, "scatter_reduce takes a tensor")
    how, own = option(reduce, _REDUCTIONS, "reduction"), boolean(include_self, "'include_self'")
    if not input.shape:
        return reshape(_reduced(reshape(input, 1), 0, reshape(concrete(index), 1), reshape(src, 1), how, own), ())
    return _reduced(input, dim, concrete(index), src, how, own)


def index_reduce(input: Any, dim: Any, index: Any, source: Any, reduce: Any, *, include_self: Any = True) -> Any:
    """`input` with the slices of `source` reduced, by "prod", "mean", "amax" or "amin", at positions along an axis; see
    `scatter_reduce`."""
    expect(input, TensorBase, "index_reduce takes a tensor")
    how = option(reduce, ("prod", "mean", "amax", "amin"), "reduction")
    axis, places = normalize_axis(dim, input.ndim), integer_array(concrete(index), "an index")
    shape = arrays.shape(source)
    if places.ndim != 1 or len(shape) != input.ndim or shape[axis] != places.size:
        raise ShapeError(f"'index_reduce' does not fit {places.size} positions and a source of {list(shape)}")
    along = (-1, *(1,) * (input.ndim - axis - 1))
    repeated = arrays.numpy_namespace().broadcast_to(places.reshape(along), shape)
    return _reduced(input, axis, repeated, source, how, boolean(include_self, "'include_self'"))


def put(input: Any, index: Any, source: Any, accumulate: Any = False) -> Any:
    """`input` with the elements of `source` at positions in the flat tensor, or added there if `accumulate`; of several
    elements that go to one place, the last stays."""
    expect(input, TensorBase, "put takes a tensor")
    places = integer_array(concrete(index), "an index").reshape(-1)
    values, flat = ravel(source), ravel(input)
    if arrays.size(values) != places.size:
        raise ShapeError(
            f"put_(): Expected source and index to have the same number of elements, but got "
            f"{arrays.size(values)} and {places.size}"
        )
    key = (places,)
    changed = (
        add(flat, put_at(values, key, flat.shape)) if boolean(accumulate, "'accumulate'") else set_at(flat, key, values)
    )
    return reshape(changed, input.shape)


def _reduced(x: Any, axis: Any, index: Any, src: Any, how: str, own: bool) -> Any:
    xp, shape = arrays.numpy_namespace(), x.shape
    key = scatter_key(x, axis, index, "scatter_reduce")
    numbers = xp.arange(x.numel()).reshape(shape)
    targets = xp.asarray(numbers[key]).reshape(-1)
    if not targets.size:
        return x
    source = cast(ravel(scattered_source(src, arrays.shape(index))), x.dtype)
    # All elements that may take part, and last one that changes nothing, for rows with fewer elements than others.
    terms = concat([ravel(x), source, x.made(_neutral(how, x.dtype)).reshape(1)], 0)
    order = xp.argsort(targets, kind="stable")
    places, starts, counts = xp.unique(targets[order], return_index=True, return_counts=True)
    flat = ravel(x)
    # Places with like numbers of elements are reduced together, so that at most half of each matrix is filled up.
    widths = xp.ceil(xp.log2(counts)).astype("int64")
    for width in xp.unique(widths):
        chosen = widths == width
        members = _members(order, starts[chosen], counts[chosen], x.numel())
        if own:
            members = xp.concatenate([places[chosen][:, None], members], 1)
        found = _REDUCTIONS[how](indexed(terms, (members,)), 1)
        if how == "mean":
            numbers_of_terms = counts[chosen] + own
            found = (divide if x.is_floating_point() or x.is_complex() else floor_divide)(found, numbers_of_terms)
        flat = set_at(flat, (places[chosen],), cast(found, x.dtype))
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
