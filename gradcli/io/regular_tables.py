"""Reading of regular blocks of a large text table by Polars.

The numbers are identical to those that Python reads. Blocks with anything irregular, such as quotes, blank lines, rows
of other lengths, texts in place of numbers, and infinities, are left to the slower reader in `tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from gradcli.io.separators import CellNotation

# Bytes of a line above which a cell may be too long for the slower reader.
_LONG_LINE = 2**16


def columns(
    block: bytes, notation: CellNotation, width: int, wanted: Sequence[int], polars: Any
) -> list[NDArray[numpy.float64]] | None:
    """The `wanted` columns, ascending from 0, of a block of whole lines; None where the block is irregular."""
    rows = _rows(block, notation.separator.encode(), width)
    if rows is None:
        return None
    try:
        frame = polars.read_csv(
            BytesIO(block),
            has_header=False,
            separator=notation.separator,
            quote_char=None,
            columns=list(wanted),
            infer_schema=False,
        )
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException):
        return None
    found: list[NDArray[numpy.float64]] = []
    for column in frame.get_columns():
        numbers = _numbers(column, notation.decimal_comma, polars)
        if numbers is None or len(numbers) != rows:
            return None
        found.append(numbers)
    return found


def _rows(block: bytes, separator: bytes, width: int) -> int | None:
    """The number of rows of `width` cells in a block, None where it is irregular."""
    import numpy

    if any(odd in block for odd in (b'"', b"\n\n", b"\n\r", b" \n", b" \r", b"\0")) or block[:1] in b"\r\n":
        return None
    if block.count(b"\r") != block.count(b"\r\n") or not _is_text(block):
        return None
    if not is_rectangular(block, separator, width):
        return None
    ends = numpy.flatnonzero(numpy.frombuffer(block, numpy.uint8) == ord("\n"))
    if not block.endswith(b"\n"):
        ends = numpy.append(ends, len(block))
    return None if numpy.diff(ends, prepend=-1).max() > _LONG_LINE + 1 else len(ends)


def is_rectangular(text: bytes, separator: bytes, width: int) -> bool:
    """Return whether each line of a text without quotes has `width` cells."""
    # One pass in C over the text, which is several times faster than finding the separators of each line.
    marks = text.translate(None, _all_but(separator + b"\n"))
    if not text.endswith(b"\n"):
        marks += b"\n"
    of_a_line = separator * (width - 1) + b"\n"
    return marks == of_a_line * (len(marks) // len(of_a_line))


@cache
def _all_but(characters: bytes) -> bytes:
    return bytes({*range(256)} - {*characters})


def _is_text(block: bytes) -> bool:
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _numbers(column: Any, decimal_comma: bool, polars: Any) -> NDArray[numpy.float64] | None:
    """The numbers in a column of texts, nan for empty ones; None where there is anything else."""
    import numpy

    texts = column.str.strip_chars()
    if decimal_comma:
        if texts.str.contains(".", literal=True).any():
            return None
        texts = texts.str.replace(",", ".", literal=True)
    values = texts.cast(polars.Float64, strict=False)
    if values.null_count() != (texts.str.len_bytes().fill_null(0) == 0).sum() or values.is_infinite().any():
        return None
    array: NDArray[numpy.float64] = values.fill_null(numpy.nan).to_numpy()
    return array
