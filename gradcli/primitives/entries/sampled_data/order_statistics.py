"""Order statistics and reductions that skip elements: quantiles, running extremes, averages, trapezoids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape
from gradcli.errors import EvaluationError, ShapeError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import batching
from gradcli.primitives.axes import boolean, integer, normalize_axes, normalize_axis, option
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.costs import sort_cost
from gradcli.primitives.entries.arithmetic import (
    add,
    ceil,
    divide,
    floor,
    multiply,
    ones_like,
    round_,
    subtract,
)
from gradcli.primitives.entries.comparisons import not_equal, where
from gradcli.primitives.entries.complex_parts import check_real
from gradcli.primitives.entries.exponential import logaddexp
from gradcli.primitives.entries.indexing import axis_key, index, take_along_key
from gradcli.primitives.entries.reductions import (
    SAMPLES,
    SIGNATURE,
    axes_last,
    count_along,
    keep_axes,
    max_,
    mean,
    min_,
    order_statistic,
    sum_,
)
from gradcli.primitives.entries.scans import cumsum, scan_smooth, sort
from gradcli.primitives.entries.shape import along_axis, concat, flip, ravel, stack
from gradcli.primitives.entries.statistics import std, var
from gradcli.primitives.jet_rules import locally_constant
from gradcli.primitives.operation import Composite, Operation
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "reductions"

_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.0], [4.0, -5.5, 6.0]]
_SCANS = ((_VECTOR, 0), (_MATRIX, 0), (_MATRIX, 1))


positions_in_order = Primitive(
    "positions_in_order", "x, axis", "where the elements of the rising order along an axis are",
    internal="argsort",
    vjp=None, jet=locally_constant,
    forward=lambda xp, x, *, axis: xp.argsort(x, axis=axis, stable=True),
    prepare=lambda x, axis: ((x,), {"axis": normalize_axis(axis, len(arrays.shape(x)))}),
    batch=batching.along_axis,
    smooth=lambda x, *, axis: scan_smooth(x, axis=axis),
    spelling=names_elsewhere(numpy="argsort"),
    derivative="none",
    elements=sort_cost(),
    samples=((_VECTOR, 0), (_MATRIX, 1)),
)  # fmt: skip


def _argsort(x: Any, axis: Any = -1, descending: Any = False, stable: Any = True) -> Any:
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    return along_axis(x, axis, positions_falling if boolean(descending, "'descending'") else positions_in_order)


def positions_falling(x: Any, axis: int) -> Any:
    """The positions in descending order, stable: the first of equal elements comes first."""
    from_behind = flip(positions_in_order(flip(x, axis), axis), axis)
    return subtract(arrays.shape(x)[axis] - 1, from_behind)


argsort = Composite(
    "argsort", "x, axis=-1, descending=False, stable=True", "the positions of the elements in rising order", _argsort,
    derivative="none",
    edges=("equal elements keep their order", "nan comes last"),
    samples=((_VECTOR,), (_MATRIX, 0), (_MATRIX, -1, True)),
)  # fmt: skip


def _with_mean(of: Composite) -> Composite:
    """PyTorch's var_mean or std_mean. No other library has the names, so they have its semantics everywhere."""

    def definition(x: Any, axis: Any = None, correction: Any = 1, keepdims: Any = False) -> tuple[Any, Any]:
        # A bool in second place is PyTorch's `unbiased`: `var_mean(x, False)`.
        axis, correction = (None, axis) if type(axis) is bool else (axis, correction)
        return of(x, axis, keepdims, correction), mean(x, axis, keepdims)

    return Composite(
        f"{of.name}_mean", "x, axis=None, correction=1, keepdims=False",
        f"PyTorch's {of.name}, with n - 1 in the denominator, and mean over the axes", definition,
        derivative=f"that of {of.name} and that of mean",
        example=f"'v, m = {of.name}_mean(x); v*m' x='[1, 2, 4]'",
    )  # fmt: skip


var_mean = _with_mean(var)
std_mean = _with_mean(std)


class Pair(NamedTuple):
    """Values, and their positions along an axis."""

    values: Any
    indices: Any


def _topk(x: Any, k: Any, axis: Any = -1, largest: Any = True, sorted: Any = True) -> Any:
    return along_axis(x, axis, lambda x, number: _first_of_order(x, k, number, largest))


def _first_of_order(x: Any, k: Any, number: int, largest: Any) -> Pair:
    count = integer(k, "'k'")
    if not 0 <= count <= arrays.shape(x)[number]:
        raise ShapeError(f"'topk' cannot take {count} of {arrays.shape(x)[number]} elements")
    if boolean(largest, "'largest'"):
        values, positions = flip(sort(flip(x, number), number), number), positions_falling(x, number)
    else:
        values, positions = sort(x, number), positions_in_order(x, number)
    return Pair(index(values, axis_key(number, slice(0, count))), index(positions, axis_key(number, slice(0, count))))


topk = Composite(
    "topk", "x, k, axis=-1, largest=True, sorted=True",
    "the k largest elements along an axis in falling order, or the smallest in rising order, and their positions",
    _topk,
    derivative="g put back at the positions, 0 elsewhere",
    domain="smooth where no two elements are equal",
    edges=("the first of equal elements comes first", "nan counts as the largest"),
    example="'v, i = topk(x, 2); v[0]*v[1]' x='[1, 3, 2]'",
)  # fmt: skip


def kth_value(x: Any, k: Any, axis: Any = -1, keepdims: Any = False) -> Any:
    """The element of rank k, counted from 1, along an axis, and its position; the lower median if k is None."""

    def found(x: Any, number: int) -> Pair:
        size = arrays.shape(x)[number]
        rank = (size + 1) // 2 if k is None else integer(k, "a rank")
        if not 1 <= rank <= size:
            raise ShapeError(f"{size} elements have no one of rank {rank}" if size else "no elements have a rank")
        place = axis_key(number, slice(rank - 1, rank) if boolean(keepdims, "'keepdims'") else rank - 1)
        return Pair(*(index(part, place) for part in (sort(x, number), positions_in_order(x, number))))

    return along_axis(x, axis, found)


kthvalue = Composite(
    "kthvalue", "x, k, axis=-1, keepdims=False", "the kth smallest element along an axis, from 1 on, and its position",
    kth_value,
    derivative="g put back at the position, 0 elsewhere",
    domain="smooth where no two elements are equal",
    example="'v, i = kthvalue(x, 2); v*i' x='[1, 3, 2]'",
)  # fmt: skip


def _positions(name: str, better: str) -> Primitive:
    def extremes(x: Any, axis: int) -> Any:
        return getattr(arrays.numpy_namespace(), better).accumulate(arrays.to_numpy(x), axis=axis)

    def forward(xp: Any, x: Any, *, axis: int) -> Any:
        np, numbers = arrays.numpy_namespace(), arrays.to_numpy(x)
        shape = [-1 if a == axis else 1 for a in range(numbers.ndim)]
        steps = np.arange(numbers.shape[axis]).reshape(shape)
        taken = np.where((numbers == extremes(x, axis)) | (numbers != numbers), steps, 0)
        return xp.asarray(np.maximum.accumulate(taken, axis=axis))

    def smooth(x: Any, *, axis: int) -> bool:
        np = arrays.numpy_namespace()
        before, after = (np.moveaxis(numbers, axis, 0) for numbers in (extremes(x, axis), arrays.to_numpy(x)))
        return not (before[:-1] == after[1:]).any()

    return Primitive(
        f"{name}_positions", "x, axis", f"where the elements are that {name} takes",
        internal=name,
        vjp=None, jet=locally_constant, forward=forward, smooth=smooth,
        prepare=lambda x, axis: ((x,), {"axis": axis}),
        batch=batching.along_axis,
        derivative="none",
        samples=((_VECTOR, 0), (_MATRIX, 1)),
    )  # fmt: skip


cummax_positions, cummin_positions = _positions("cummax", "maximum"), _positions("cummin", "minimum")


def _running(name: str, positions: Primitive) -> Composite:
    def function(x: Any, axis: Any = 0) -> Any:
        return along_axis(x, axis, run)

    def run(x: Any, number: int) -> Pair:
        # The positions are an index, which must be a concrete array.
        limits.charge(3 * arrays.size(concrete(x)))
        found = arrays.to_numpy(concrete(positions(x, number)))
        return Pair(index(x, take_along_key(arrays.shape(x), number, found)), arrays.in_default_namespace(found))

    word = "largest" if name == "cummax" else "smallest"
    return Composite(
        name, "x, axis=0", f"the {word} element up to each along an axis, and its position", function,
        derivative="g added up at the positions",
        domain="smooth where no two elements are equal",
        edges=("the last of equal elements is taken", "from a nan on, it is nan"),
        example=f"'v, i = {name}(x); v @ [1, 10, 100]' x='[1, 3, 2]'",
    )  # fmt: skip


cummax = _running("cummax", cummax_positions)
cummin = _running("cummin", cummin_positions)

count_nonzero = Composite(
    "count_nonzero", SIGNATURE, "how many elements are not 0",
    lambda x, axis=None, keepdims=False: sum_(where(not_equal(x, 0), ones_like(x), 0.0), axis, keepdims),
    derivative="none",
    samples=SAMPLES,
)  # fmt: skip


ptp = Composite(
    "ptp", SIGNATURE, "the largest element minus the smallest",
    lambda x, axis=None, keepdims=False: subtract(max_(x, axis, keepdims), min_(x, axis, keepdims)),
    derivative="g to the largest element, -g to the smallest; ties share it evenly",
    domain="smooth where one element is chosen",
    samples=SAMPLES,
)  # fmt: skip


def _average(x: Any, axis: Any = None, weights: Any = None, keepdims: Any = False) -> Any:
    sizes = arrays.shape(x)
    axes = normalize_axes(axis, len(sizes))
    if weights is None:
        weights = ones_like(x)
    elif arrays.shape(weights) != sizes:
        if len(axes) != 1 or arrays.shape(weights) != (sizes[axes[0]],):
            raise ShapeError(f"weights of shape {list(arrays.shape(weights))} do not fit a tensor of {list(sizes)}")
        weights = reshape(weights, [-1 if a == axes[0] else 1 for a in range(len(sizes))])
    weights = broadcast_to(weights, sizes)
    return divide(sum_(multiply(x, weights), axes, keepdims), sum_(weights, axes, keepdims))


average = Composite(
    "average", "x, axis=None, weights=None, keepdims=False", "sum(x*weights)/sum(weights) over the axes", _average,
    derivative="g*weights/sum(weights), g*(x - average)/sum(weights)",
    domain="sum(weights) != 0",
    samples=((_VECTOR,), (_MATRIX, 1, [0.5, 1.0, 2.0]), (_MATRIX, None, [[1.0, 2.0, 0.5], [0.7, 1.0, 3.0]])),
)  # fmt: skip

# For each method, the functions that round a fractional rank to the ranks that are averaged; "linear" interpolates.
_METHODS: Mapping[str, Sequence[Operation]] = {
    "linear": (floor,),
    "lower": (floor,),
    "higher": (ceil,),
    "nearest": (round_,),
    "midpoint": (floor, ceil),
}


def _quantiles(x: Any, q: Any, axis: Any, keepdims: Any, method: Any, scale: float) -> Any:
    check_real("quantile", q)
    sizes = arrays.shape(x)
    axes = normalize_axes(axis, len(sizes))
    flat = axes_last(x, axes)
    shape = arrays.shape(q)
    orders = [q] if not shape else [index(q, i) for i in range(shape[0])]
    if len(shape) > 1:
        raise ShapeError("the orders of quantiles are a number or a vector")
    if not count_along(sizes, axes) or not orders:
        raise ShapeError("a quantile needs at least one element and one order")
    found = [_quantile(flat, divide(order, scale), method) for order in orders]
    if boolean(keepdims, "'keepdims'"):
        found = [keep_axes(value, sizes, axes) for value in found]
    return stack(found) if shape else found[0]


def _quantile(flat: Any, order: Any, method: Any) -> Any:
    last = arrays.shape(flat)[-1] - 1
    place = multiply(order, float(last))
    number = arrays.on_host(concrete(place))
    if not 0 <= number <= last:
        raise EvaluationError("the order of a quantile is a number from 0 to 1, of a percentile one from 0 to 100")
    if option(method, _METHODS, "method") != "linear" or (floor(number) == number and concrete(order) is order):
        ranks = [integer(function(number), "a rank") for function in _METHODS[method]]
        values = [order_statistic(flat, rank) for rank in dict.fromkeys(ranks)]
        return values[0] if len(values) == 1 else multiply(0.5, add(*values))
    low = max(min(integer(floor(number), "a rank"), last - 1), 0)
    below, above = order_statistic(flat, low), order_statistic(flat, min(low + 1, last))
    return add(below, multiply(subtract(place, float(low)), subtract(above, below)))


_QUANTILE_EDGES = (
    "elements that tie with a chosen one share its part of g evenly",
    "nan where an element is nan",
    "of no elements it is an error",
)

quantile = Composite(
    "quantile", "x, q, axis=None, keepdims=False, method='linear'",
    "the place q of the way from the smallest element to the largest in their order, or several for a vector q",
    lambda x, q, axis=None, keepdims=False, method="linear": _quantiles(x, q, axis, keepdims, method, 1.0),
    derivative="g to the two elements around the place, in their parts; g*(n - 1)*(their difference) by q",
    domain="0 <= q <= 1; smooth where q*(n - 1) is not whole",
    edges=_QUANTILE_EDGES,
    samples=((_VECTOR, 0.3), (_MATRIX, 0.4, 1), (_MATRIX, [0.2, 0.7], 1)),
)  # fmt: skip

percentile = Composite(
    "percentile", "x, q, axis=None, keepdims=False, method='linear'", "quantile(x, q/100)",
    lambda x, q, axis=None, keepdims=False, method="linear": _quantiles(x, q, axis, keepdims, method, 100.0),
    derivative="that of quantile",
    domain="0 <= q <= 100; smooth where q*(n - 1)/100 is not whole",
    edges=_QUANTILE_EDGES,
    samples=((_VECTOR, 30.0), (_MATRIX, 40.0, 1)),
)  # fmt: skip


def _logcumsumexp(x: Any, axis: Any = 0) -> Any:
    return along_axis(x, axis, _logs_of_sums)


def _logs_of_sums(x: Any, number: int) -> Any:
    """Running logsumexp by doubling: log2(size) steps, each of which reaches twice as far as the one before."""
    size, reach = arrays.shape(x)[number], 1
    while reach < size:
        first, rest = index(x, axis_key(number, slice(0, reach))), index(x, axis_key(number, slice(reach, size)))
        x = concat([first, logaddexp(rest, index(x, axis_key(number, slice(0, size - reach))))], number)
        reach *= 2
    return x


logcumsumexp = Composite(
    "logcumsumexp", "x, axis=0", "log(cumsum(exp(x))) along an axis, without overflow", _logcumsumexp,
    derivative="sum of g*exp(x - y) from the end",
    samples=_SCANS,
)  # fmt: skip


def _areas(y: Any, x: Any, dx: Any, number: int) -> Any:
    """The areas of the trapezoids between neighbours along an axis, of spacing `dx` or at abscissas `x`."""
    if x is None:
        steps = 1.0 if dx is None else dx
    elif len(arrays.shape(x)) == 1:
        step = subtract(index(x, slice(1, None)), index(x, slice(0, -1)))
        steps = reshape(step, [-1 if a == number else 1 for a in range(len(arrays.shape(y)))])
    else:
        steps = _steps(x, normalize_axis(number - len(arrays.shape(y)), len(arrays.shape(x))))
    means = multiply(0.5, add(index(y, axis_key(number, slice(1, None))), index(y, axis_key(number, slice(0, -1)))))
    return multiply(means, steps)


def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    rank = len(arrays.shape(y))
    number = normalize_axis(axis, rank)
    # Abscissas may have more axes than y, in front.
    return sum_(_areas(y, x, dx, number), number - rank)


def _steps(x: Any, axis: int) -> Any:
    return subtract(index(x, axis_key(axis, slice(1, None))), index(x, axis_key(axis, slice(0, -1))))


trapezoid = Composite(
    "trapezoid", "y, x=None, dx=1.0, axis=-1", "the integral of y over x, or over steps of dx, by trapezoids",
    _trapezoid,
    derivative="g*(the mean step around each element), g*(the differences of neighbouring means)",
    aliases=("trapz",),
    samples=((_VECTOR,), (_VECTOR, [0.0, 0.7, 2.0]), (_MATRIX, None, 0.5, 0)),
)  # fmt: skip


def _cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1, initial: Any = None) -> Any:
    rank = len(arrays.shape(y))
    areas = _areas(y, x, dx, normalize_axis(axis, rank))
    number = normalize_axis(axis, rank) - rank + len(arrays.shape(areas))
    areas = cumsum(areas, number)
    return areas if initial is None else concat([_end(initial, arrays.shape(areas), number), areas], number)


cumulative_trapezoid = Composite(
    "cumulative_trapezoid", "y, x=None, dx=1.0, axis=-1, initial=None",
    "the integrals of y from its first element to each of the others by trapezoids, behind an initial number",
    _cumulative_trapezoid,
    derivative="that of trapezoid for the sums of g from the end",
    aliases=("cumtrapz",),
    samples=((_VECTOR,), (_VECTOR, [0.0, 0.7, 2.0]), (_MATRIX, None, 0.5, 0)),
)  # fmt: skip


class Extremes(NamedTuple):
    """The smallest and the largest elements."""

    min: Any
    max: Any


aminmax = Composite(
    "aminmax", SIGNATURE, "the smallest element and the largest",
    lambda x, axis=None, keepdims=False: Extremes(min_(x, axis, keepdims), max_(x, axis, keepdims)),
    derivative="those of min and of max",
    example="'a, b = aminmax(x); a*b' x='[1, 3, 2]'",
)  # fmt: skip

msort = Composite(
    "msort", "x", "in rising order along the first axis", lambda x: sort(x, 0),
    derivative="g in the old order",
    domain="smooth where no two elements are equal",
    samples=((_MATRIX,),),
)  # fmt: skip


def _difference(x: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Any:
    number, count = normalize_axis(axis, len(arrays.shape(x))), integer(n, "the order of a difference")
    if count < 0:
        raise EvaluationError("the order of a difference must not be negative")
    ends = [None if end is None else _end(end, arrays.shape(x), number) for end in (prepend, append)]
    parts = [part for part in (ends[0], x, ends[1]) if part is not None]
    x = concat(parts, number) if len(parts) > 1 else x
    for _ in range(min(count, arrays.shape(x)[number])):
        x = _steps(x, number)
    return x


def _end(value: Any, shape: Shape, axis: int) -> Any:
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    return broadcast_to(value, one) if not arrays.shape(value) else value


# `diff` of NumPy and PyTorch. In the language itself the name `diff` means a derivative.
difference = Composite(
    "difference", "x, n=1, axis=-1, prepend=None, append=None",
    "the differences of neighbours along an axis, n times", _difference,
    internal="diff",
    derivative="the differences of -g, with zeros at the ends",
    samples=((_VECTOR,), (_MATRIX, 2, 1)),
)  # fmt: skip
