"""Functions of sampled data: interpolation, searchsorted, counts, padding, windows, convolution."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import EvaluationError, ShapeError
from gradcli.primitives.axes import boolean, integer, integer_array, normalize_axis, option
from gradcli.primitives.bind import assume, concrete
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.arithmetic import add, divide, multiply, subtract
from gradcli.primitives.entries.comparisons import (
    greater,
    greater_equal,
    isnan,
    less,
    less_equal,
    logical_and,
    where,
)
from gradcli.primitives.entries.indexing import axis_key, index
from gradcli.primitives.entries.indexing import scatter as put_at
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.entries.shape import concat, expand_dims, flip, moveaxis
from gradcli.primitives.operation import Composite

SUBJECT = "shape"

_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]
_KNOTS, _HEIGHTS = [0.0, 1.0, 2.5, 4.0], [1.0, -0.5, 2.0, 3.0]


def _sorted_positions(ordered: Any, values: Any, side: str) -> Any:
    given = concrete(ordered), concrete(values)
    xp = arrays.namespace_of(given)
    limits.charge(arrays.size(given[1]) * max(arrays.size(given[0]), 1).bit_length())
    return xp.tidy(xp.searchsorted(*xp.promoted(given, truths=False), side=side))


def _searchsorted(a: Any, v: Any, side: Any = "left", right: Any = False) -> Any:
    if len(arrays.shape(a)) != 1:
        raise ShapeError(f"'searchsorted' needs a vector in rising order, not a tensor of {list(arrays.shape(a))}")
    way = "right" if boolean(right, "'right'") else option(side, ("left", "right"), "side")
    return arrays.in_default_namespace(_sorted_positions(a, v, way))


searchsorted = Composite(
    "searchsorted", "a, v, side='left', right=False",
    "where each of v belongs in the vector a, which rises: before elements equal to it, or behind them", _searchsorted,
    derivative="none",
    samples=(([1, 2, 4], [0, 2, 5]), ([1, 2, 2], 2, "right")),
)  # fmt: skip


def _bucketize(x: Any, boundaries: Any, out_int32: Any = False, right: Any = False) -> Any:
    boolean(out_int32, "'out_int32'")
    if len(arrays.shape(boundaries)) != 1:
        raise ShapeError(f"'bucketize' needs a vector of boundaries, not a tensor of {list(arrays.shape(boundaries))}")
    return _searchsorted(boundaries, x, "right" if boolean(right, "'right'") else "left")


bucketize = Composite(
    "bucketize", "x, boundaries, out_int32=False, right=False",
    "the number of the interval in which each of x is: boundaries[i-1] < x <= boundaries[i], or <= and < if right is True",
    _bucketize,
    derivative="none",
    edges=("before the first of boundaries it is 0, behind the last their number",),
    samples=(([0, 2, 5], [1, 2, 4]), (2, [1, 2, 2], False, True)),
)  # fmt: skip


def _digitize(x: Any, bins: Any, right: Any = False) -> Any:
    if len(arrays.shape(bins)) != 1:
        raise ShapeError(f"'digitize' needs a vector of bins, not a tensor of {list(arrays.shape(bins))}")
    side = "left" if boolean(right, "'right'") else "right"
    starts, stops = index(bins, slice(0, -1)), index(bins, slice(1, None))
    if assume(less_equal(starts, stops)):
        return _searchsorted(bins, x, side)
    if not assume(greater_equal(starts, stops)):
        raise EvaluationError("'digitize' needs bins that rise or that fall")
    return subtract(arrays.shape(bins)[0], _searchsorted(flip(bins), x, side))


digitize = Composite(
    "digitize", "x, bins, right=False",
    "the number of the bin in which each of x is: bins[i-1] <= x < bins[i], with < and <= the other way if right is True",
    _digitize,
    derivative="none",
    edges=("before the first of bins it is 0, behind the last their number; bins that fall have it the other way",),
    samples=(([0, 2, 5], [1, 2, 4]), (2, [1, 2, 2], True), ([0, 2, 5], [4, 2, 1])),
)  # fmt: skip


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    count = arrays.shape(xp)[0] if len(arrays.shape(xp)) == 1 else 0
    if not count or arrays.shape(fp) != (count,):
        raise ShapeError(
            f"'interp' needs two vectors of one length, not {list(arrays.shape(xp))} and {list(arrays.shape(fp))}"
        )
    starts, stops = index(xp, slice(0, -1)), index(xp, slice(1, None))
    if not assume(less_equal(starts, stops)):
        raise EvaluationError("'interp' needs places in rising order", hint="sort both: i = argsort(xp); xp[i], fp[i]")
    # All linear pieces are evaluated side by side; each x lies in one of them.
    point = expand_dims(x, -1)
    here = logical_and(greater_equal(point, starts), less(point, stops))
    way = divide(where(here, subtract(point, starts), 0.0), where(here, subtract(stops, starts), 1.0))
    heights = index(fp, slice(0, -1)), index(fp, slice(1, None))
    line = add(multiply(heights[0], subtract(1.0, way)), multiply(heights[1], way))
    found = sum_(where(here, line, 0.0), -1)
    first, last, end = index(xp, 0), index(xp, -1), index(fp, -1)
    found = where(less(x, last), found, where(greater(x, last), end if right is None else right, end))
    found = where(less(x, first), index(fp, 0) if left is None else left, found)
    return where(isnan(x), x, found)


interp = Composite(
    "interp", "x, xp, fp, left=None, right=None",
    "at x the line through the points (xp, fp), whose xp rise; left and right of them the first and the last fp",
    _interp,
    derivative="g*slope, -g*slope in the parts of the two neighbours, g in their parts",
    domain="smooth where x is none of xp",
    edges=("at one of xp, the slope is that on its right, 0 at the last one",),
    samples=((0.7, _KNOTS, _HEIGHTS), ([0.7, 3.0, -1.0, 5.0], _KNOTS, _HEIGHTS), (-1.0, _KNOTS, _HEIGHTS, 0.5)),
)  # fmt: skip


def _bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    places = integer_array(concrete(x), "a number to count")
    if places.ndim != 1 or (places < 0).any():
        raise ShapeError("'bincount' counts a vector of whole numbers that are not negative")
    size = max(int(places.max(initial=-1)) + 1, integer(minlength, "'minlength'"))
    if weights is None:
        limits.charge(places.size + size)
        return arrays.made(lambda xp: xp.bincount(places, minlength=size).astype(arrays.default_dtype()))
    if arrays.shape(weights) != places.shape:
        raise ShapeError(f"weights of shape {list(arrays.shape(weights))} do not fit {places.size} numbers")
    return put_at(weights, (places,), (size,))


bincount = Composite(
    "bincount", "x, weights=None, minlength=0", "how often each whole number from 0 on is in x, or the sum of its weights",
    _bincount,
    derivative="none by x, g at the numbers by weights",
    example="'bincount([0, 2, 2], weights=w) @ [1, 10, 100]' w='[0.5, 1, 2]'",
    samples=(([0, 2, 2], [0.5, 1.0, 2.0]), ([1, 1], [0.5, 1.0], 4)),
)  # fmt: skip


def _convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    option(mode, ("full", "same", "valid"), "mode")
    sizes = [arrays.shape(x) for x in (a, v)]
    if any(len(s) != 1 or not s[0] for s in sizes):
        raise ShapeError(f"'convolve' needs two vectors, not {list(sizes[0])} and {list(sizes[1])}")
    if sizes[1] > sizes[0]:
        a, v = v, a
    (long,), (short,) = sorted(sizes, reverse=True)
    first, count = {
        "full": (0, long + short - 1),
        "same": ((short - 1) // 2, long),
        "valid": (short - 1, long - short + 1),
    }[mode]
    limits.charge(count * short)
    places = arrays.guard_memory(lambda xp: xp.arange(first, first + count)[:, None] + xp.arange(short))
    if mode != "valid" and short > 1:
        zeros = arrays.zeros((short - 1,), arrays.dtype_name(a))
        a = concat([zeros, a, zeros])
    else:
        places = places - (short - 1)
    return matmul(index(a, (places,)), flip(v))


convolve = Composite(
    "convolve", "a, v, mode='full'", "the discrete convolution of two vectors: sum(a[k]*v[n - k]) for each n", _convolve,
    derivative="the correlation of g with v, and with a",
    edges=("mode='same' is the middle part as long as the longer one, 'valid' that without the ends",),
    samples=(([1.0, 2.5, -3.0, 0.5], [0.5, 2.0]), ([1.0, 2.0], [0.5, 1.0, -1.0], "same"), ([1.0, 2.5, -3.0], [0.5, 2.0], "valid")),
)  # fmt: skip


# The padding mode by its name in NumPy and PyTorch; "" pads with a constant.
_MODES: Mapping[str, str] = {
    "constant": "", "edge": "edge", "replicate": "edge", "reflect": "reflect", "symmetric": "symmetric",
    "wrap": "wrap", "circular": "wrap",
}  # fmt: skip


def _pad(x: Any, pad_width: Any, mode: Any = "constant", constant_values: Any = 0.0) -> Any:
    rank = len(arrays.shape(x))
    widths = integer_array(concrete(pad_width), "a width")
    if widths.shape not in ((), (1,), (2,), (1, 2), (rank, 2)):
        raise ShapeError(
            f"widths of shape {list(widths.shape)} do not fit a tensor of {rank} dimensions",
            hint="give one width, a pair (before, after), or a pair for each axis",
        )
    pairs = arrays.numpy_namespace().broadcast_to(widths, (rank, 2)).tolist()
    return padded(x, pairs, mode, constant_values)


def padded(x: Any, pairs: Sequence[Sequence[int]], mode: Any, value: Any) -> Any:
    """`x` padded before and after each axis by the widths in `pairs`. Raises ShapeError for negative widths."""
    way = _MODES[option(mode, _MODES, "mode")]
    if min(itertools.chain.from_iterable(pairs), default=0) < 0:
        raise ShapeError("a width must not be negative")
    for axis, (before, behind) in enumerate(pairs):
        if before or behind:
            x = _padded_axis(x, axis, before, behind, way, value)
    return x


def _padded_axis(x: Any, axis: int, before: int, behind: int, way: str, value: Any) -> Any:
    sizes = arrays.shape(x)
    if not way:
        ends = [broadcast_to(value, (*sizes[:axis], width, *sizes[axis + 1 :])) for width in (before, behind)]
        ends = [arrays.astype(end, arrays.dtype_name(x)) if arrays.is_array(end) else end for end in ends]
        return concat([ends[0], x, ends[1]], axis)
    if not sizes[axis]:
        raise ShapeError("an empty axis has nothing to pad with")
    limits.charge(before + sizes[axis] + behind)
    places = arrays.guard_memory(lambda xp: xp.pad(xp.arange(sizes[axis]), (before, behind), way))
    return index(x, axis_key(axis, places))


pad = Composite(
    "pad", "x, pad_width, mode='constant', constant_values=0.0",
    "more elements before and behind those along the axes: a constant, or by mode what is there again", _pad,
    derivative="g without what was added, or that added up where it came from; the sum of the rest by the constant",
    edges=("the modes are constant, edge, reflect, symmetric and wrap, as in NumPy",),
    samples=((_VECTOR, 1), (_MATRIX, ((1, 0), (0, 2)), "constant", 0.5), (_MATRIX, (1, 2), "reflect"), (_VECTOR, 2, "wrap")),
)  # fmt: skip


def _unfold(x: Any, axis: Any, size: Any, step: Any = 1) -> Any:
    number = normalize_axis(axis, len(arrays.shape(x)))
    length, width, stride = arrays.shape(x)[number], integer(size, "a size"), integer(step, "a step")
    if not 0 <= width <= length or stride < 1:
        raise ShapeError(f"windows of {width} in steps of {stride} do not fit an axis of size {length}")
    limits.charge(((length - width) // stride + 1) * width)
    places = arrays.guard_memory(lambda xp: xp.arange(0, length - width + 1, stride)[:, None] + xp.arange(width))
    return moveaxis(index(x, axis_key(number, places)), number + 1, -1)


unfold = Composite(
    "unfold", "x, axis, size, step=1", "the windows of a size along an axis, each along a new last axis", _unfold,
    derivative="g added up where each element came from",
    samples=((_VECTOR, 0, 2), (_MATRIX, 1, 2, 1), (_MATRIX, 0, 1, 1)),
)  # fmt: skip
