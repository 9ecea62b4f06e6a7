"""Blocks of consecutive rows, which pass from a reader to the evaluation and on to a writer, and their masked results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.named_tuples import NamedTuple

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


# Upper bound of the names of lost members that are reported.
MOST_LOST = 8


class TextCells(NamedTuple):
    """The rows of a column in which a missing number is a text other than those that stand for a missing value, and a
    function that returns the text of such a row."""

    rows: NDArray[numpy.bool]
    text: Callable[[int], str]

    def first(self) -> tuple[int, str]:
        """The first of these rows, and its text."""
        row = int(self.rows.argmax())
        return row, self.text(row)


class Column(NamedTuple):
    """A column of numbers.

    `values` has shape `[n, …]`, or is an array of n arrays of different shapes. `missing` `[n]` marks rows without a
    number. `failing` maps the indices of rows whose field is neither a number nor missing to messages. `words` are the
    missing rows that hold texts, None where there are none.
    """

    values: NDArray[Any]
    missing: NDArray[numpy.bool]
    failing: Mapping[int, str]
    words: TextCells | None = None


def numbers_at(columns: Mapping[str, Column], row: int) -> dict[str, Any]:
    """The numbers of a row by name, without those that it lacks."""
    return {n: c.values[row] for n, c in columns.items() if row not in c.failing and not c.missing[row]}


class RowBlock(NamedTuple):
    """`rows` consecutive rows of a table.

    What is written again are `lines`, a series of the rows as they are in the input, or the columns of the frame
    `fields`. In the lines, the character `line_break`, where it is not None, stands for a line feed. `failed` maps the
    indices of rows that could not be read to messages. `lost` are names of members for which the output has no column.
    `is_typed` says that columns are typed, so that a text is never a number.
    """

    rows: int
    numbers: Mapping[str, Column]
    texts: Mapping[str, Sequence[str | None]] = MappingProxyType({})
    lines: Any = None
    fields: Any = None
    line_break: str | None = None
    failed: Mapping[int, str] = MappingProxyType({})
    lost: Sequence[str] = ()
    is_typed: bool = False


class UnparsedPiece(NamedTuple):
    """A part of a table of about `size` bytes that has not been parsed. Pieces are made in order and cheaply; the
    expensive `block` may be called once, by any thread."""

    size: int
    block: Callable[[], RowBlock]


def masked(array: Any, absent: Any) -> Any:
    """Results `[n, …]` masked in the rows marked by `absent` `[n]`."""
    np = arrays.numpy_namespace()
    mask = np.broadcast_to(absent.reshape(-1, *[1] * (array.ndim - 1)), array.shape)
    return np.ma.masked_array(array, mask)


def unmasked(found: Any) -> tuple[Any, Any | None]:
    """The data of results `[n, …]`, and a mask of the rows that lack them, None where they are not masked."""
    # numpy.ma takes a while to import, and most runs have no masked results.
    if not hasattr(found, "mask"):
        return found, None
    np = arrays.numpy_namespace()
    return np.ma.getdata(found), np.ma.getmaskarray(found).any(axis=tuple(range(1, found.ndim)))


def without(found: Any, null: Any) -> tuple[Any, Any]:
    """The data of results, and a mask of the rows without them, including the rows `null`, which have no results at
    all."""
    values, absent = unmasked(found)
    return values, null if absent is None else null | absent
