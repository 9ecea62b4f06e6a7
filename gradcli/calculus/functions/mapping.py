"""`vmap`: maps a function of one row over many rows, which are computed together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gradcli.autograd.creation.factory import tensor
from gradcli.autograd.function import mapped_rows
from gradcli.autograd.generators import RANDOMNESS, Batch, batches
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.batches_and_series import batch_of, rows_of
from gradcli.calculus.functions import pytrees
from gradcli.errors import CallError, DifferentiationError, ShapeError, expect, expect_function
from gradcli.kinds import batch
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.axes import normalize_axis
from gradcli.primitives.entries.shape import moveaxis

_BOTH = (
    "You tried to vmap over {0}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please "
    "set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity."
)
_ONE_PAIR = "the vmap of {0} returns its outputs, and along which axis the rows of each stand, or None"


def as_tensor(x: Any) -> Tensor:
    """Return a tensor as it is, and convert anything else to a tensor."""
    return x if isinstance(x, Tensor) else tensor(x)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that applies `func` to all slices of its arguments at once.

    `in_dims` is the axis along which each argument is sliced, None for an argument that all rows share: one number for
    all arguments, or a tuple in their structure. `out_dims` is the axis of the rows in each result. Keyword arguments
    are sliced along axis 0. With `randomness` "different" or "same", random numbers are drawn for each row or for all
    rows; otherwise they are an error. `chunk_size` exists for compatibility with PyTorch and has no effect on the
    results. Raises ShapeError where the numbers of slices differ, and NotBatchableError where control flow depends on
    the numbers of a row, as with `if`; use `where(condition, a, b)`.
    """
    expect_function(func)
    if randomness not in RANDOMNESS:
        raise CallError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")

    @functools.wraps(func)
    def mapped(*arguments: Any, **keywords: Any) -> Any:
        axes = [*_axes(in_dims, arguments), *[0] * len(pytrees.leaves(keywords))]
        given = [
            x if axis is None else _sliced(x, axis) for x, axis in zip(pytrees.leaves((arguments, keywords)), axes)
        ]
        size = _rows(x.shape[0] for x, axis in zip(given, axes) if axis is not None)
        nesting = batch.new_batch_id()
        with batch.row_by_row(nesting), _own_rules(nesting, size), _drawing(Batch(nesting, size, randomness)):
            each = [x if axis is None else batch_of(x, nesting) for x, axis in zip(given, axes)]
            positional, named = pytrees.unflatten((arguments, keywords), each)
            returned = func(*positional, **named)
            rows = [rows_of(as_tensor(y), nesting, size) for y in pytrees.leaves(returned)]
        places = pytrees.broadcast_prefix(out_dims, returned)
        if None in places:
            raise CallError("out_dims says for each result along which axis its rows stand, and None is no axis")
        return pytrees.unflatten(returned, [_moved(y, 0, place) for y, place in zip(rows, places)])

    return mapped


@contextmanager
def _drawing(batch: Batch) -> Iterator[None]:
    """Within the block, draw random numbers for the rows of a batch."""
    token = batches.set((*batches.get(), batch))
    try:
        yield
    finally:
        batches.reset(token)


@contextmanager
def _own_rules(nesting: int, size: int) -> Iterator[None]:
    """Within the block, Functions that define `vmap` are applied by it."""

    def apply(function: Any, inputs: tuple[Any, ...]) -> Any:
        return _apply_to_rows(function, inputs, nesting, size)

    token = mapped_rows.set((*mapped_rows.get(), (nesting, apply)))
    try:
        yield
    finally:
        mapped_rows.reset(token)


def _axes(in_dims: Any, arguments: tuple[Any, ...]) -> list[Any]:
    expect(in_dims, (int, tuple, list), "in_dims is a number, or a tuple in the structure of the arguments")
    axes = pytrees.broadcast_prefix(in_dims, arguments)
    for axis in axes:
        expect(axis, (int, type(None)), "in_dims has the number of an axis, or None, for each argument")
    return axes


def _sliced(x: Any, axis: int) -> Tensor:
    """An argument with the axis of its slices first."""
    value = as_tensor(x)
    if not value.shape:
        raise ShapeError("a number has no rows", hint="in_dims=None gives it to every row whole")
    return _moved(value, normalize_axis(axis, value.ndim), 0)


def _moved(x: Tensor, source: int, destination: int) -> Tensor:
    moved: Tensor = x if source == destination else moveaxis(x, source, destination)
    return moved


def _rows(sizes: Any) -> int:
    found = sorted(set(sizes))
    if not found:
        raise CallError("nothing is sliced: in_dims is None for every argument")
    if len(found) > 1:
        raise ShapeError(f"the arguments have different numbers of rows: {', '.join(map(str, found))}")
    return int(found[0])


class VmapInfo(NamedTuple):
    """The first argument of `Function.vmap`."""

    batch_size: int
    randomness: str = "error"


def _apply_to_rows(function: Any, inputs: tuple[Any, ...], nesting: int, size: int) -> Any:
    """Apply `function.vmap` to the rows of a batch: inputs have their rows along axis 0, and each output becomes
    batched again."""
    if function.generate_vmap_rule:
        raise DifferentiationError(_BOTH.format(function.__name__))
    sliced = [isinstance(i, Tensor) and nesting in batch.nestings(i.inner) for i in inputs]
    whole = [rows_of(i, nesting, size) if rows else i for i, rows in zip(inputs, sliced)]
    returned = function.vmap(VmapInfo(size), tuple(0 if rows else None for rows in sliced), *whole)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise CallError(_ONE_PAIR.format(function.__name__))
    outputs, axes = returned
    each = [
        y if axis is None or not isinstance(y, Tensor) else batch_of(moveaxis(y, axis, 0), nesting)
        for y, axis in zip(pytrees.leaves(outputs), pytrees.broadcast_prefix(axes, outputs))
    ]
    return pytrees.unflatten(outputs, each)
