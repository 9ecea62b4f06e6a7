"""The division of a file into parts that are tasks for the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing

from gradcli.rows.columnar import ColumnarReader
from gradcli.rows.opening import open_table
from gradcli.rows.reading import Chosen, Range, Reading
from gradcli.rows.sources import format_of

# The least number of pieces of a part, so that its size deviates from the wanted one by at most about this fraction.
_PIECES = 16


def divided(path: str, reading: Reading, part_bytes: int) -> tuple[str, list[Range | None]]:
    """The format of a file and its parts: byte ranges of about `part_bytes` that begin and end at record boundaries, or
    row ranges of a columnar file. None stands for the whole of a file that cannot be divided.

    Raises BindingError where the file cannot be read.
    """
    block = max(1, min(reading.block, part_bytes // _PIECES))
    with closing(open_table(path, reading._replace(block=block))) as reader:
        if reader.size is None or not reader.divisible or format_of(path)[1] is not None:
            return reader.format, [None]
        if isinstance(reader, ColumnarReader):
            most = reader.rows * part_bytes // max(1, reader.size)
            return reader.format, [*_of_rows(reader.rows, max(1, most))]
        # One pass over the file, with the same division into blocks as for reading.
        sizes = [piece.size for piece in reader.pieces(Chosen(()))]
        header = reader.size - sum(sizes)
    return reader.format, [*_filled([header, *sizes], part_bytes)]


def _of_rows(rows: int, most: int) -> Iterator[Range]:
    """Ranges of at most `most` rows."""
    for start in range(0, max(rows, 1), most):
        yield Range(start, min(start + most, rows))


def _filled(sizes: Iterable[int], most: int) -> Iterator[Range]:
    """Consecutive ranges of bytes, each with as many of the pieces of these sizes as fit into `most` bytes."""
    start = end = 0
    for size in sizes:
        if end > start and end + size - start > most:
            yield Range(start, end)
            start = end
        end += size
    yield Range(start, end)
