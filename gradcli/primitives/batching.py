"""Batching rules of primitives, by family.

A rule is called as rule(primitive, operands, batched, params). Operands whose flag in `batched` is set, at least one,
have the batch axis as their first axis; so has the result (each result, where there are several). A rule binds the
primitive again, so that the operands may be of any kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gradcli import arrays
from gradcli.primitives.bind import bind
from gradcli.primitives.conversions import broadcast_to, cast, permute, reshaped, with_rank
from gradcli.primitives.primitive import Primitive
from gradcli.type_hints import Any

Operands = Sequence[Any]
Flags = Sequence[bool]
Params = Mapping[str, Any]

_NO_PARAMS: Params = {}


def _permute(x: Any, axes: Sequence[int]) -> Any:
    return bind(permute, (x,), {"axes": tuple(axes)})


def exchange(x: Any, first: int, second: int) -> Any:
    """`x` with two axes exchanged; negative axes count from the end."""
    axes = list(range(len(arrays.shape(x))))
    axes[first], axes[second] = axes[second], axes[first]
    return _permute(x, axes)


def _ranks(operands: Operands, batched: Flags) -> list[int]:
    """The rank of each operand without its batch axis."""
    return [len(arrays.shape(o)) - b for o, b in zip(operands, batched)]


def _size(operands: Operands, batched: Flags) -> int:
    """The number of rows of the batch."""
    return int(next(arrays.shape(o)[0] for o, b in zip(operands, batched) if b))


def _aligned(operands: Operands, ranks: Sequence[int], batched: Flags) -> list[Any]:
    """The operands, with axes of size 1 inserted after the batch axis so that the batch axes align in broadcasting."""
    rank = max(ranks)
    return [with_rank(o, rank) if b and r < rank else o for o, r, b in zip(operands, ranks, batched)]


def _all_batched(operands: Operands, batched: Flags) -> list[Any]:
    """The operands, those without a batch axis broadcast along a new one."""
    rows = _size(operands, batched)
    return [
        o if b else bind(broadcast_to, (o,), {"shape": (rows, *arrays.shape(o))}) for o, b in zip(operands, batched)
    ]


# --- elementwise


def elementwise(primitive: Primitive, operands: Operands, batched: Flags, params: Params) -> Any:
    """Rule of an elementwise function: unbatched operands are aligned with the axes after the batch axis."""
    if len(operands) > 1:
        ranks = _ranks(operands, batched)
        if not all(ranks):
            operands = _in_one_dtype(operands, ranks, batched)
        operands = _aligned(operands, ranks, batched)
    return bind(primitive, operands, params)


def _in_one_dtype(operands: Operands, ranks: Sequence[int], batched: Flags) -> Operands:
    """Cast batches of scalars to float32 where the other operands are float32.

    A float64 scalar does not promote a float32 array; the column of scalars that it becomes in a batch must not
    either.
    """
    dtypes = [arrays.dtype_name(o) for o in operands]
    numbers = [rank == 0 and dtype == "float64" for rank, dtype in zip(ranks, dtypes)]
    others = {dtype for dtype, number in zip(dtypes, numbers) if not number}
    if "float32" not in others or "float64" in others:
        return operands
    return [cast(o, "float32") if number and b else o for o, number, b in zip(operands, numbers, batched)]


# --- one operand along numbered axes


def trailing(primitive: Primitive, operands: Operands, _batched: Flags, params: Params) -> Any:
    """Rule of a function of the last axes of one operand, which treats the axes before them as a batch already."""
    return bind(primitive, operands, params)


def trailing_of_all(primitive: Primitive, operands: Operands, batched: Flags, params: Params) -> Any:
    """The rule `trailing` for several operands that have one batch."""
    return bind(primitive, _all_batched(operands, batched), params)


def along_axis(primitive: Primitive, operands: Operands, batched: Flags, params: Params) -> Any:
    """Rule of a function along the axis or axes in the parameter `axis`."""
    axis = params["axis"]
    moved = tuple(a + 1 for a in axis) if isinstance(axis, tuple) else axis + 1
    return bind(primitive, _all_batched(operands, batched), {**params, "axis": moved})


def position(primitive: Primitive, operands: Operands, batched: Flags, params: Params) -> Any:
    """Rule of argmax and argmin: the position along `axis`, or among all elements where `axis` is None."""
    if params["axis"] is not None:
        return along_axis(primitive, operands, batched, params)
    rows, *sizes = arrays.shape(operands[0])
    flat = reshaped(operands[0], (rows, math.prod(sizes)))
    found = bind(primitive, (flat,), {"axis": 1, "keepdims": False})
    return reshaped(found, (rows, *(1 for _ in sizes))) if params["keepdims"] else found


# --- moving elements


def roll(primitive: Primitive, operands: Operands, _batched: Flags, params: Params) -> Any:
    """Rule of roll: `axis` is moved by one, and where it is None each row is rolled as a vector."""
    shift, axis = params["shift"], params["axis"]
    if axis is not None:
        return bind(primitive, operands, {"shift": shift, "axis": tuple(a + 1 for a in axis)})
    shape = arrays.shape(operands[0])
    flat = reshaped(operands[0], (shape[0], math.prod(shape[1:])))
    return reshaped(bind(primitive, (flat,), {"shift": (shift,), "axis": (1,)}), shape)


def joined(primitive: Primitive, operands: Operands, batched: Flags, params: Params) -> Any:
    """Rule of concat and stack: unbatched operands are repeated for each row."""
    return bind(primitive, _all_batched(operands, batched), {"axis": params["axis"] + 1})


def index(primitive: Primitive, operands: Operands, _batched: Flags, params: Params) -> Any:
    """Rule of indexing: the batch axis is taken whole, and comes first in the result."""
    key = params["key"]
    taken = bind(primitive, operands, {"key": (slice(None), *key)})
    front = _axes_in_front(key)
    others = range(front + 1, len(arrays.shape(taken)))
    return _permute(taken, (front, *range(front), *others)) if front else taken


def scatter(primitive: Primitive, operands: Operands, batched: Flags, params: Params) -> Any:
    """Rule of scattering, the transpose of indexing: each row is scattered to a row of the result."""
    (x,), key = operands, params["key"]
    front = _axes_in_front(key)
    if front:
        x = _permute(x, (*range(1, front + 1), 0, *range(front + 1, len(arrays.shape(x)))))
    shape = (_size(operands, batched), *params["shape"])
    return bind(primitive, (x,), {"key": (slice(None), *key), "shape": shape})


def _axes_in_front(key: Sequence[Any]) -> int:
    """The number of axes that the index arrays of `key` put first: those of the arrays if a slice stands between
    them."""
    arrays_there = [item.ndim for item in key if hasattr(item, "ndim")]
    places = [i for i, item in enumerate(key) if hasattr(item, "ndim") or isinstance(item, int)]
    if not arrays_there or places[-1] - places[0] == len(places) - 1:
        return 0
    return int(max(arrays_there))


# --- products and linear systems


def matmul(primitive: Primitive, operands: Operands, batched: Flags, params: Params) -> Any:
    """A batch times a single matrix is one product with more rows; two batches are multiplied row by row."""
    a, b = operands
    left, right = _ranks(operands, batched)
    if not batched[1] and right <= 2:
        return _rows_times(primitive, a, b)
    if not batched[0] and left <= 2:
        columns = b if right == 1 else exchange(b, -2, -1)
        product = _rows_times(primitive, columns, a if left == 1 else exchange(a, -2, -1))
        return product if left == 1 or right == 1 else exchange(product, -2, -1)
    matrices = [_as_row(a) if left == 1 else a, _as_column(b) if right == 1 else b]
    product = bind(primitive, _aligned(matrices, _ranks(matrices, batched), batched), params)
    *sizes, m, n = arrays.shape(product)
    return reshaped(product, (*sizes, *(m,) * (left > 1), *(n,) * (right > 1)))


def _as_row(x: Any) -> Any:
    *sizes, n = arrays.shape(x)
    return reshaped(x, (*sizes, 1, n))


def _as_column(x: Any) -> Any:
    return reshaped(x, (*arrays.shape(x), 1))


def _rows_times(matmul: Primitive, rows: Any, b: Any) -> Any:
    """The product of each vector along the last axis of `rows` with the vector or matrix `b`."""
    *sizes, n = arrays.shape(rows)
    product = bind(matmul, (reshaped(rows, (math.prod(sizes), n)), b), _NO_PARAMS)
    return reshaped(product, (*sizes, *arrays.shape(product)[1:]))


def contract(primitive: Primitive, operands: Operands, batched: Flags, params: Params) -> Any:
    """Rule of einsum: the batch axis has a letter of its own."""
    terms, result = params["terms"], params["result"]
    letter = next(c for c in map(chr, range(ord("a"), 0x3FF)) if not any(c in t for t in terms))
    named = tuple(letter + t if b else t for t, b in zip(terms, batched))
    return bind(primitive, operands, {"terms": named, "result": letter + result})


def solve(primitive: Primitive, operands: Operands, batched: Flags, params: Params) -> Any:
    """The rule of `solve`: right-hand sides become columns of one system if there is a single matrix; otherwise each
    row is a system of its own."""
    a, b = operands
    left, right = _ranks(operands, batched)
    b = _as_column(b) if right == 1 else b
    if not batched[0] and left == 2:
        solution = _solve_columns(primitive, a, b)
    else:
        solution = bind(primitive, _aligned((a, b), _ranks((a, b), batched), batched), params)
    return reshaped(solution, arrays.shape(solution)[:-1]) if right == 1 else solution


def _solve_columns(solve: Primitive, a: Any, b: Any) -> Any:
    """Solve with one matrix `a` and a batch of right-hand sides `b`, placed side by side as columns of one matrix."""
    first = exchange(b, 0, -2)
    sizes = arrays.shape(first)
    columns = reshaped(first, (sizes[0], math.prod(sizes[1:])))
    return exchange(reshaped(bind(solve, (a, columns), _NO_PARAMS), sizes), 0, -2)
