"""The Batched reading: one more leading axis, which no function sees."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from gradcli import arrays
from gradcli.errors import NotBatchableError
from gradcli.kinds.order import BATCHED
from gradcli.primitives import batching
from gradcli.primitives.arithmetic import multiply
from gradcli.primitives.batching import exchange
from gradcli.primitives.bind import assume, bind, components, concrete
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.operators import Operators
from gradcli.primitives.primitive import Primitive
from gradcli.primitives.reductions import sum_
from gradcli.primitives.series import linear


class Batched(Operators):
    """Many values of one shape, with which each operation is done row by row.

    `rows` holds them along its first axis; `shape` is that of one. A batch may hold a batch: each
    has an axis of its own, told apart by `nesting`, and the higher one is outside. What depends
    on the numbers of one row, such as a condition or an index, raises NotBatchableError.
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


# Rows go together as long as no result of all of them has more elements.
MOST_ELEMENTS = 2**22
# A new number is higher than those of all batches that a value may hold already.
new_nesting = itertools.count(1).__next__


def batched(x: Any, nesting: int) -> Any:
    """The slices of `x` along its first axis as the rows of a batch."""
    if isinstance(x, Batched) and x.nesting > nesting:
        return Batched(batched(exchange(x.rows, 0, 1), nesting), x.nesting)
    return Batched(x, nesting)


def unbatched(x: Any, nesting: int, size: int) -> Any:
    """The rows of a batch along a new first axis; `size` copies of what is the same in all of them."""
    if isinstance(x, Batched) and x.nesting == nesting:
        return x.rows
    if isinstance(x, Batched) and x.nesting > nesting:
        return Batched(exchange(unbatched(x.rows, nesting, size), 0, 1), x.nesting)
    return broadcast_to(x, (size, *arrays.shape(x)))


def _in_each_row(g: Any, _y: Any, x: Any, *, nesting: int, size: int) -> Any:
    """The cotangent of a sum of rows for each of them. What shares all rows in `x` gets it from each."""
    if all(nesting in _nestings(component) for component in components(x)):
        return g
    xp = arrays.numpy_namespace()
    return multiply(g, Batched(arrays.beside(xp.ones(size, arrays.dtype_name(x)), concrete(x)), nesting))


sum_rows = Primitive(
    "sum_rows", "x, nesting, size", "the sum of the rows of the batch that `nesting` tells, which ends with it",
    # Of what is the same in all of them.
    forward=lambda _xp, x, *, nesting, size: x * size,
    vjp=(_in_each_row,),
    jet=linear,
    batch=batching.trailing,
    elementwise=True,
    derivative="g",
)  # fmt: skip


def sum_over_rows(cotangent: Any, like: Any) -> Any:
    """The cotangent of an operand, summed over those batches the rows of which share it.

    A derivative that is computed row by row stays one for each row.
    """
    for nesting in nestings(cotangent) - nestings(like) - inside():
        size = next(filter(None, (_rows_of(component, nesting) for component in components(cotangent))))
        cotangent = bind(sum_rows, (cotangent,), {"nesting": nesting, "size": size})
    return cotangent


def nestings(x: Any) -> frozenset[int]:
    """The batches that a value is part of."""
    return frozenset(nesting for component in components(x) for nesting in _nestings(component))


def _nestings(x: Any) -> Iterator[int]:
    while isinstance(x, Batched):
        yield x.nesting
        x = x.rows


def _rows_of(x: Any, nesting: int) -> int | None:
    """How many rows a batch has that a value is part of, None where it is not."""
    while isinstance(x, Batched):
        if x.nesting == nesting:
            return int(arrays.shape(x.rows)[0])
        x = x.rows
    return None


def stacked(x: Any) -> Any:
    """The numbers of a batch, with the rows of it and of those that it holds along the first axes."""
    while isinstance(x, Batched):
        x = x.rows
    return x


_inside: ContextVar[frozenset[int]] = ContextVar("gradcli_inside_batches", default=frozenset())


def inside() -> frozenset[int]:
    """The batches each row of which is being computed by itself."""
    return _inside.get()


@contextmanager
def row_by_row(nesting: int) -> Iterator[None]:
    """Within the block, a derivative is that of each row of the batch by itself.

    After it, a derivative by what all rows share is the sum of theirs.
    """
    token = _inside.set(_inside.get() | {nesting})
    try:
        yield
    finally:
        _inside.reset(token)
