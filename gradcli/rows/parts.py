"""The parts into which a file is cut, each of them a task for one of many machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing

from gradcli.rows.columnar import ColumnarReader
from gradcli.rows.opening import open_table
from gradcli.rows.reading import Chosen, Range, Reading
from gradcli.rows.sources import format_of

# A part is made of so many pieces at least, so that what is missing of its size is a part of that.
_PIECES = 16


def divided(path: str, reading: Reading, part_bytes: int) -> tuple[str, list[Range | None]]:
    """The format of a file, and where it is cut: ranges of about so many bytes, which begin and end where records do, or
    ranges of rows of a file that is stored by columns. None stands for the whole of a file which cannot be cut.

    Raises BindingError where it cannot be read.
    """
    block = max(1, min(reading.block, part_bytes // _PIECES))
    with closing(open_table(path, reading._replace(block=block))) as reader:
        if reader.size is None or not reader.divisible or format_of(path)[1] is not None:
            return reader.format, [None]
        if isinstance(reader, ColumnarReader):
            most = reader.rows * part_bytes // max(1, reader.size)
            return reader.format, [*_of_rows(reader.rows, max(1, most))]
        # In one pass over the file, by what cuts it into blocks as well.
        sizes = [piece.size for piece in reader.pieces(Chosen(()))]
        header = reader.size - sum(sizes)
    return reader.format, [*_filled([header, *sizes], part_bytes)]


def _of_rows(rows: int, most: int) -> Iterator[Range]:
    """Ranges of so many rows."""
    for start in range(0, max(rows, 1), most):
        yield Range(start, min(start + most, rows))


def _filled(sizes: Iterable[int], most: int) -> Iterator[Range]:
    """Ranges over pieces of these sizes which follow each other, each with as many of them as fit into `most` bytes."""
    start = end = 0
    for size in sizes:
        if end > start and end + size - start > most:
            yield Range(start, end)
            start = end
        end += size
    yield Range(start, end)
