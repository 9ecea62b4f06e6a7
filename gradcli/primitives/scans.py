"""Functions along one axis that keep it: cumulative sums and products, softmax, sorting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import ShapeError
from gradcli.primitives.arithmetic import divide, equal, nowhere, usable_divisor, where
from gradcli.primitives.axes import normalize_axis
from gradcli.primitives.bind import assume, concrete, constant
from gradcli.primitives.families import structural
from gradcli.primitives.indexing import index
from gradcli.primitives.primitive import Composite, Primitive
from gradcli.primitives.reductions import any_, logsumexp, sum_
from gradcli.primitives.shape import flip, reshape, transpose, triu

_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.0], [4.0, -5.5, 6.0]]
_SAMPLES = ((_VECTOR,), (_MATRIX, 0), (_MATRIX, 1))


def _scan_call(name: str, default: int | None) -> Any:
    def prepare(x: Any, axis: Any = default) -> tuple[Sequence[Any], Mapping[str, Any]]:
        ndim = len(arrays.shape(x))
        if axis is None and ndim != 1:
            raise ShapeError(f"'{name}' of a tensor of {ndim} dimensions needs an axis", hint=f"{name}(x, axis=0)")
        return (x,), {"axis": normalize_axis(0 if axis is None else axis, ndim)}

    return prepare


def _along_axis(taken: Any, *, axis: int) -> Any:
    return any_(taken, axis=axis, keepdims=True)


cumsum: Primitive = structural(
    "cumsum", "x, axis=None", "cumulative sum along an axis",
    forward=lambda xp, x, *, axis: xp.cumsum(x, axis=axis),
    vjp=(lambda g, _y, _x, *, axis: flip(cumsum(flip(g, axis), axis), axis),),
    prepare=_scan_call("cumsum", None),
    derivative="cumulative sum of g from the end",
    aliases=("cumulative_sum",),
    samples=_SAMPLES,
)  # fmt: skip


def _leave_one_out(x: Any) -> Any:
    """Rows of x, one for each element of its last axis, in which that element is 1."""
    sizes = arrays.shape(x)
    rows = reshape(x, (*sizes[:-1], 1, sizes[-1]))
    arrays.charge(sizes[-1] ** 2)
    return where(arrays.numpy_namespace().eye(sizes[-1], dtype=bool), 1.0, rows)


def _cumprod_rule(g: Any, y: Any, x: Any, *, axis: int) -> Any:
    if assume(usable_divisor(constant(y))):
        return divide(flip(cumsum(flip(g * y, axis), axis), axis), x)
    # y/x is 0/0 at a zero: row i of `others` is the scan with x[i] taken as 1, from i on.
    others = triu(cumprod(_leave_one_out(transpose(x, axis, -1)), -1))
    rows = reshape(transpose(g, axis, -1), (*others.shape[:-2], 1, others.shape[-1]))
    return transpose(sum_(rows * others, axis=-1), axis, -1)


cumprod = structural(
    "cumprod", "x, axis=None", "cumulative product along an axis",
    forward=lambda xp, x, *, axis: xp.cumprod(x, axis=axis),
    vjp=(_cumprod_rule,),
    reach=_along_axis,
    prepare=_scan_call("cumprod", None),
    derivative="cumulative sum of g*y from the end, over x",
    edges=("with a zero among the elements, the derivative is still that of the products",),
    aliases=("cumulative_prod",),
    samples=_SAMPLES,
)  # fmt: skip


def _softmax(xp: Any, x: Any, *, axis: int) -> Any:
    shifted = xp.exp(xp.subtract(x, xp.max(x, axis=axis, keepdims=True, initial=-xp.inf)))
    return xp.divide(shifted, xp.sum(shifted, axis=axis, keepdims=True))


softmax = structural(
    "softmax", "x, axis=-1", "exp(x)/sum(exp(x)) along an axis, without overflow",
    forward=_softmax,
    vjp=(lambda g, y, _x, *, axis: y * (g - sum_(g * y, axis=axis, keepdims=True)),),
    reach=_along_axis,
    prepare=_scan_call("softmax", -1),
    derivative="y*(g - sum(g*y))",
    samples=_SAMPLES,
)  # fmt: skip


def _log_softmax(x: Any, axis: Any = -1) -> Any:
    return x - logsumexp(x, axis=normalize_axis(axis, len(arrays.shape(x))), keepdims=True)


log_softmax = Composite(
    "log_softmax", "x, axis=-1", "log(softmax(x)) along an axis, without overflow", _log_softmax,
    derivative="g - softmax(x)*sum(g)",
    samples=_SAMPLES,
)  # fmt: skip


def _along(positions: Any, axis: int) -> tuple[Any, ...]:
    """The index that takes `positions` along `axis`, and every other axis as it is."""
    xp = arrays.numpy_namespace()
    key = list(xp.indices(positions.shape, sparse=True))
    key[axis] = positions
    return tuple(key)


def _sort_rule(g: Any, _y: Any, x: Any, *, axis: int) -> Any:
    xp = arrays.numpy_namespace()
    order = xp.argsort(concrete(x), axis=axis, stable=True)
    return index(g, _along(xp.argsort(order, axis=axis), axis))


def scan_smooth(x: Any, *, axis: int) -> bool:
    ordered = arrays.numpy_namespace().sort(x, axis=axis)
    above, below = (index(ordered, (slice(None),) * axis + (part,)) for part in (slice(1, None), slice(-1)))
    return nowhere(equal(above, below))


sort = structural(
    "sort", "x, axis=-1", "in rising order along an axis",
    forward=lambda xp, x, *, axis: xp.sort(x, axis=axis, stable=True),
    vjp=(_sort_rule,),
    prepare=_scan_call("sort", -1),
    derivative="g in the old order",
    domain="smooth where no two elements are equal",
    smooth=scan_smooth,
    edges=("equal elements keep their order, in the gradient too", "nan comes last"),
    samples=_SAMPLES,
)  # fmt: skip
