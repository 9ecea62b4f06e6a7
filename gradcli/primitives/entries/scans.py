"""Functions along one axis that preserve its size: cumulative sums and products, softmax, sorting."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from gradcli import arrays, limits
from gradcli.primitives import batching
from gradcli.primitives.axes import normalize_axis
from gradcli.primitives.bind import assume, constant, detached
from gradcli.primitives.conversions import reshape
from gradcli.primitives.costs import sort_cost
from gradcli.primitives.entries.arithmetic import divide, is_normal, multiply, ones_like, subtract
from gradcli.primitives.entries.comparisons import equal, isfinite, nowhere, where
from gradcli.primitives.entries.complex_parts import real_part_of
from gradcli.primitives.entries.exponential import exp, log
from gradcli.primitives.entries.indexing import axis_key, index
from gradcli.primitives.entries.reductions import any_, max_, sum_
from gradcli.primitives.entries.shape import along_axis, concat, flip, ravel, transpose, triu
from gradcli.primitives.entries.statistics import logsumexp
from gradcli.primitives.jet_rules import Coefficients, from_derivative, jet_through_definition, linear
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere
from gradcli.type_hints import Any

SUBJECT = "reductions"

_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.0], [4.0, -5.5, 6.0]]
_SAMPLES = ((_VECTOR,), (_MATRIX, 0), (_MATRIX, 1))


def _scan_call(default: int | None) -> Any:
    def prepare(x: Any, axis: Any = default) -> tuple[Sequence[Any], Mapping[str, Any]]:
        x, axis = (ravel(x), 0) if axis is None else (x, axis)
        return (x,), {"axis": normalize_axis(axis, len(arrays.shape(x)))}

    return prepare


def _along_axis(taken: Any, *, axis: int) -> Any:
    return any_(taken, axis=axis, keepdims=True)


cumsum: Primitive = Primitive(
    "cumsum", "x, axis=None", "cumulative sum along an axis, or of all elements one after another",
    numbers="analytic",
    vjp=(lambda g, _y, _x, *, axis: flip(cumsum(flip(g, axis), axis), axis),),
    jet=linear,
    prepare=_scan_call(None),
    batch=batching.along_axis,
    spelling=names_elsewhere(standard="cumulative_sum"),
    derivative="cumulative sum of g from the end",
    aliases=("cumulative_sum",),
    samples=_SAMPLES,
)  # fmt: skip


def _leave_one_out(x: Any) -> Any:
    """n copies of `x`, where n is the size of its last axis; in copy i element i is replaced by 1."""
    sizes = arrays.shape(x)
    rows = reshape(x, (*sizes[:-1], 1, sizes[-1]))
    limits.charge(sizes[-1] ** 2)
    return where(arrays.numpy_namespace().eye(sizes[-1], dtype=bool), 1.0, rows)


def _cumprod_rule(g: Any, y: Any, x: Any, *, axis: int) -> Any:
    if assume(is_normal(constant(y))):
        return divide(flip(cumsum(flip(g * y, axis), axis), axis), x)
    # y/x is 0/0 at a zero and inaccurate where y is subnormal: row i of `others` is the cumulative product with x[i]
    # replaced by 1, from i on.
    others = triu(cumprod(_leave_one_out(transpose(x, axis, -1)), -1))
    rows = reshape(transpose(g, axis, -1), (*others.shape[:-2], 1, others.shape[-1]))
    return transpose(sum_(rows * others, axis=-1), axis, -1)


def _doubled(x: Any, axis: int) -> Any:
    """The cumulative product by doubling: each step multiplies products of twice as many elements."""
    size = arrays.shape(x)[axis]
    reach = 1
    while reach < size:
        before = index(x, axis_key(axis, slice(0, size - reach)))
        ones = ones_like(index(x, axis_key(axis, slice(0, reach))))
        x = multiply(x, concat([ones, before], axis))
        reach *= 2
    return x


cumprod = Primitive(
    "cumprod", "x, axis=None", "cumulative product along an axis, or of all elements one after another",
    numbers="analytic",
    vjp=(_cumprod_rule,),
    jet=jet_through_definition(_doubled),
    reach=_along_axis,
    prepare=_scan_call(None),
    batch=batching.along_axis,
    spelling=names_elsewhere(standard="cumulative_prod"),
    derivative="cumulative sum of g*y from the end, over x",
    edges=("with a zero among the elements, the derivative is still that of the products",),
    aliases=("cumulative_prod",),
    samples=_SAMPLES,
)  # fmt: skip


def _softmax(xp: Any, x: Any, *, axis: int) -> Any:
    if 0 in arrays.shape(x):
        return x
    shifted = xp.exp(xp.subtract(x, xp.max(xp.real(x) if arrays.is_complex(x) else x, axis=axis, keepdims=True)))
    return xp.divide(shifted, xp.sum(shifted, axis=axis, keepdims=True))


softmax = Primitive(
    "softmax", "x, axis=-1", "exp(x)/sum(exp(x)) along an axis, without overflow",
    forward=_softmax, numbers="analytic",
    vjp=(lambda g, y, _x, *, axis: y * (g - sum_(g * y, axis=axis, keepdims=True)),),
    jet=from_derivative,
    reach=_along_axis,
    prepare=lambda x, axis=-1: ((x,), {"axis": normalize_axis(axis, len(arrays.shape(x)))}),
    batch=batching.along_axis,
    spelling=names_elsewhere("scipy"),
    derivative="y*(g - sum(g*y))",
    time=3,
    samples=_SAMPLES,
)  # fmt: skip


def _log_softmax(x: Any, axis: Any = -1) -> Any:
    return along_axis(x, axis, _logs_of_shares)


def _logs_of_shares(x: Any, axis: int) -> Any:
    if 0 in arrays.shape(x):
        return x
    largest = max_(real_part_of(detached(x)), axis, True)
    if not assume(isfinite(largest)):
        return subtract(x, logsumexp(x, axis=axis, keepdims=True))
    # Subtract the maximum first: the sum of a large maximum and a logarithm would lose the digits of the latter.
    shifted = subtract(x, largest)
    return subtract(shifted, log(sum_(exp(shifted), axis, True)))


log_softmax = Composite(
    "log_softmax", "x, axis=-1", "log(softmax(x)) along an axis, without overflow", _log_softmax,
    node_name="LogSoftmaxBackward0",
    derivative="g - softmax(x)*sum(g)",
    samples=_SAMPLES,
)  # fmt: skip


def _order(xp: Any, keys: Any, axis: int) -> Any:
    return xp.argsort(keys, axis=axis, stable=True)


sort_by: Primitive = Primitive(
    "sort_by", "x, keys, axis", "x in the order in which keys of the same shape rise along an axis",
    numbers="analytic",
    internal="sort", truths=True, jet=linear,
    forward=lambda xp, x, keys, *, axis: xp.take_along_axis(x, _order(xp, keys, axis), axis=axis),
    vjp=(lambda g, _y, _x, keys, *, axis: unsort_by(g, keys, axis), None),
    prepare=lambda x, keys, axis: ((x, keys), {"axis": axis}),
    batch=batching.along_axis,
    derivative="g in the old order",
    elements=sort_cost(2),
    samples=((_VECTOR, [3, 1, 2], 0), (_MATRIX, [[0, 2, 1], [1, 0, 2]], 1)),
)  # fmt: skip

unsort_by: Primitive = Primitive(
    "unsort_by", "x, keys, axis", "the y that sort_by brings into the order of x",
    numbers="analytic",
    internal="sort", truths=True, jet=linear,
    forward=lambda xp, x, keys, *, axis: xp.take_along_axis(x, _order(xp, _order(xp, keys, axis), axis), axis=axis),
    vjp=(lambda g, _y, _x, keys, *, axis: sort_by(g, keys, axis), None),
    prepare=lambda x, keys, axis: ((x, keys), {"axis": axis}),
    batch=batching.along_axis,
    derivative="g in the order of keys",
    elements=sort_cost(3),
    samples=((_VECTOR, [3, 1, 2], 0), (_MATRIX, [[0, 2, 1], [1, 0, 2]], 1)),
)  # fmt: skip


def scan_smooth(x: Any, *, axis: int) -> bool:
    """Return whether no two elements along the axis are equal, so that their order does not change nearby."""
    ordered, number = sort(x, axis), normalize_axis(axis, len(arrays.shape(x)))
    above, below = (index(ordered, axis_key(number, part)) for part in (slice(1, None), slice(-1)))
    return nowhere(equal(above, below))


def _sort_series(_primitive: Primitive, _y: Any, x: Any, *, axis: int) -> Coefficients:
    parts = map(x.coefficient, itertools.count(1))
    return (None if part is None else sort_by(part, x.inner, axis) for part in parts)


sort: Primitive = Primitive(
    "sort", "x, axis=-1", "in rising order along an axis",
    forward=lambda xp, x, *, axis: xp.sort(x, axis=axis, stable=True),
    vjp=(lambda g, _y, x, *, axis: unsort_by(g, constant(x), axis),),
    jet=_sort_series, reorders=True,
    prepare=_scan_call(-1),
    batch=batching.along_axis,
    spelling=names_elsewhere("numpy"),
    derivative="g in the old order",
    domain="smooth where no two elements are equal",
    smooth=scan_smooth,
    edges=("equal elements keep their order, in the gradient too", "nan comes last"),
    elements=sort_cost(),
    samples=_SAMPLES,
)  # fmt: skip
