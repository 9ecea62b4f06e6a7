"""Batched operands: values with a batch axis that functions do not see."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from gradcli import arrays
from gradcli.errors import NotBatchableError
from gradcli.kinds.levels import BATCHED
from gradcli.primitives import batching
from gradcli.primitives.batching import exchange
from gradcli.primitives.bind import Kind, assume, bind, concrete, primal_and_tangents
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.jet_rules import linear
from gradcli.primitives.operators import Operators
from gradcli.primitives.primitive import Primitive
from gradcli.type_hints import Any, NoReturn


class Batched(Operators):
    """Many values of one shape, on which every operation acts row by row.

    `rows` holds them along its first axis; `shape` is that of one value. Batches nest: each has its own axis,
    identified by `nesting`, and the one with the higher number is outside. Whatever depends on the numbers of a single
    row, such as a Python condition or an index, raises NotBatchableError.
    """

    __slots__ = ("nesting", "rows")
    level = BATCHED
    by_row = True

    def __init__(self, rows: Any, nesting: int) -> None:
        self.rows = rows
        self.nesting = nesting

    @property
    def shape(self) -> tuple[int, ...]:
        return arrays.shape(self.rows)[1:]

    @property
    def dtype(self) -> str:
        return arrays.dtype_name(self.rows)

    @property
    def inner(self) -> NoReturn:
        self._refuse()

    def assume(self) -> bool:
        return assume(self.rows)

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        nesting = 0
        for operand in operands:
            if isinstance(operand, Batched) and operand.nesting > nesting:
                nesting = operand.nesting
        if primitive is sum_rows and nesting == params["nesting"]:
            return sum_(operands[0].rows, axis=0)
        batched = [isinstance(o, Batched) and o.nesting == nesting for o in operands]
        result = primitive.batch(primitive, [o.rows if b else o for o, b in zip(operands, batched)], batched, params)
        return [Batched(r, nesting) for r in result] if type(result) is list else Batched(result, nesting)

    def __array__(self, *_arguments: Any, **_keywords: Any) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NotBatchableError(
            "what is computed here depends on the numbers, which are others in each row of a batch",
            hint="where(condition, a, b) chooses in each row",
        )

    __bool__ = __float__ = __int__ = _refuse

    def __repr__(self) -> str:
        return f"<batched {self.rows!r}>"


# Rows are batched together as long as no result has more elements than this.
MAX_ELEMENTS = 2**22
# The number of a new batch, higher than those of all existing batches.
new_batch_id = itertools.count(1).__next__


def batched(x: Any, nesting: int) -> Any:
    """The slices of `x` along its first axis as the rows of a batch."""
    if isinstance(x, Batched) and x.nesting > nesting:
        return Batched(batched(exchange(x.rows, 0, 1), nesting), x.nesting)
    return Batched(x, nesting)


def unbatched(x: Any, nesting: int, size: int) -> Any:
    """The rows of a batch along a new first axis; `size` copies of a value that does not depend on the row."""
    if isinstance(x, Batched) and x.nesting == nesting:
        return x.rows
    if isinstance(x, Batched) and x.nesting > nesting:
        return Batched(exchange(unbatched(x.rows, nesting, size), 0, 1), x.nesting)
    return broadcast_to(x, (size, *arrays.shape(x)))


def _in_each_row(g: Any, _y: Any, x: Any, *, nesting: int, size: int) -> Any:
    """The cotangent of a sum of rows for each row. A value shared by all rows receives it from each of them."""
    if all(nesting in _nestings(component) for component in primal_and_tangents(x)):
        return g
    xp = arrays.numpy_namespace()
    return multiply(g, Batched(arrays.like_library_of(xp.ones(size, arrays.dtype_name(x)), concrete(x)), nesting))


sum_rows = Primitive(
    "sum_rows", "x, nesting, size", "the sum of the rows of the batch that `nesting` tells, which ends with it",
    numbers="analytic",
    # Called for values that do not depend on the row.
    forward=lambda _xp, x, *, nesting, size: x * size,
    vjp=(_in_each_row,),
    jet=linear,
    batch=batching.trailing,
    elementwise=True,
    derivative="g",
)  # fmt: skip


def sum_over_rows(cotangent: Any, like: Any) -> Any:
    """The cotangent of the operand `like`, summed over the batches whose rows share the operand.

    Within `row_by_row`, the cotangents of that batch are not summed.
    """
    found = nestings(cotangent)
    if not found:
        return cotangent
    for nesting in found - nestings(like) - independent_batches():
        size = next(filter(None, (_rows_of(component, nesting) for component in primal_and_tangents(cotangent))))
        cotangent = bind(sum_rows, (cotangent,), {"nesting": nesting, "size": size})
    return cotangent


_NO_BATCHES = frozenset[int]()


def nestings(x: Any) -> frozenset[int]:
    """The batches of which a value is part."""
    if not isinstance(x, Batched) and not (isinstance(x, Kind) and x.differential):
        return _NO_BATCHES
    return frozenset(nesting for component in primal_and_tangents(x) for nesting in _nestings(component))


def _nestings(x: Any) -> Iterator[int]:
    while isinstance(x, Batched):
        yield x.nesting
        x = x.rows


def _rows_of(x: Any, nesting: int) -> int | None:
    """The number of rows of the batch `nesting` in a value; None if the value is not part of it."""
    while isinstance(x, Batched):
        if x.nesting == nesting:
            return int(arrays.shape(x.rows)[0])
        x = x.rows
    return None


def unwrap_rows(x: Any) -> Any:
    """The array inside nested batches, whose rows are its first axes."""
    while isinstance(x, Batched):
        x = x.rows
    return x


_inside: ContextVar[frozenset[int]] = ContextVar("gradcli_inside_batches", default=frozenset())


def independent_batches() -> frozenset[int]:
    """The batches whose rows are currently differentiated independently."""
    return _inside.get()


@contextmanager
def row_by_row(nesting: int) -> Iterator[None]:
    """Within the block, derivatives are computed for each row of the batch independently.

    Outside of it, the derivative by a value that the rows share is the sum over the rows.
    """
    token = _inside.set(_inside.get() | {nesting})
    try:
        yield
    finally:
        _inside.reset(token)
