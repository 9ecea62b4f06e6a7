"""What goes from a reader of tables to an evaluation and on to a writer: rows that follow each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

# Names of what has no column that are told.
MOST_LOST = 8


class Words(NamedTuple):
    """Which rows have none of the numbers of a column since their field is a text, other than those that say so; and
    what gives the text of such a row."""

    rows: NDArray[numpy.bool]
    text: Callable[[int], str]

    def first(self) -> tuple[int, str]:
        """The first such row, and its text."""
        row = int(self.rows.argmax())
        return row, self.text(row)


class Column(NamedTuple):
    """Numbers of shape [n, …], or an array of n objects, arrays of several shapes; which rows have none; by their
    index those whose field is no number and not missing either, with what to say of them; and where some of those that
    have none hold `words`, these."""

    values: NDArray[Any]
    missing: NDArray[numpy.bool]
    failing: Mapping[int, str]
    words: Words | None = None


def numbers_at(columns: Mapping[str, Column], row: int) -> dict[str, Any]:
    """What a row has by name, where it has a number."""
    return {n: c.values[row] for n, c in columns.items() if row not in c.failing and not c.missing[row]}


class Block(NamedTuple):
    """`rows` rows of a table.

    What is written again are `lines`, a series of the rows as they stand in the input, or else the columns of the
    frame `fields`. In the lines `line_break`, where it is there, stands for a line feed. `failed` are the rows that
    could not be read, by their index, with what to say of them, and `lost` the names of what is not written again, as
    the output has no columns for it. Where columns have `kinds` a text is none of a number.
    """

    rows: int
    numbers: Mapping[str, Column]
    texts: Mapping[str, Sequence[str | None]] = MappingProxyType({})
    lines: Any = None
    fields: Any = None
    line_break: str | None = None
    failed: Mapping[int, str] = MappingProxyType({})
    lost: Sequence[str] = ()
    kinds: bool = False


class Piece(NamedTuple):
    """A part of a table that has not been parsed: about `size` bytes of what is read. It is made in order and at
    little cost; `block`, which costs, may be called by any thread, once."""

    size: int
    block: Callable[[], Block]
