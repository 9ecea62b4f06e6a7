"""Tables of any format, opened by their names and beginnings."""

from __future__ import annotations

import re
from typing import IO

from gradcli.errors import BindingError, UsageError
from gradcli.io import preambles
from gradcli.rows import columnar, sources
from gradcli.rows.lines import FORMAT as LINES
from gradcli.rows.lines import LinesReader
from gradcli.rows.reading import SAMPLE, DelimitedReader, Range, Reader, Reading, closed_on_error
from gradcli.rows.records import MAX_RECORD

# How an array of objects begins in JSON.
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*[{\]]")


def open_table(source: str, reading: Reading, part: Range | None = None, stream: IO[bytes] | None = None) -> Reader:
    """The table in a file, or in a `stream`, which `source` is the name of then; of it a `part` alone.

    Raises BindingError where it cannot be read, UsageError for a separator that is none.
    """
    mark = reading.separator
    if mark is not None and (len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in '"\r\n.-+'):
        raise UsageError(f"{mark!r} is no separator", hint="it is one character, such as , or ;")
    named, compression = (None, None) if stream is not None else sources.format_of(source)
    format = reading.format or named
    if stream is None and compression is None and format in columnar.FORMATS and not sources.is_passing(source):
        return columnar.ColumnarReader(source, format, reading, part)
    given = stream or sources.opened(source)
    with closed_on_error(given):
        opened = sources.Stream(source, given, reading.encoding)
        head = _head(opened, format)
        format = format or columnar.told(head)
        if format in columnar.FORMATS:
            # Its end says where its rows are.
            file = sources.stored(opened, head)
            if stream is None:
                opened.close()
            return columnar.ColumnarReader(source, format, reading, part, file)
        if format == LINES or (format is None and _is_lines(head)):
            return LinesReader(opened, head, reading, part)
        if format is None and _ARRAY.match(head):
            raise BindingError(
                f"{source} is an array of JSON, and its rows are no lines",
                hint="jq -c '.[]' makes a line of each of its objects, which --from jsonl reads",
            )
        return DelimitedReader(opened, head, format, reading, part)


def _head(stream: sources.Stream, format: str | None) -> bytes:
    """The beginning of a table: two lines of it behind its comments, and more where that is there; of JSON, and of long
    lines, one."""
    head = b""
    while (chunk := stream.read(SAMPLE)) and len(head := head + chunk) <= MAX_RECORD:
        if format == LINES and b"\n" in head:
            break
        one = _is_lines(head) or len(head) >= SAMPLE
        if head.count(b"\n", preambles.end_of_comments(head)) >= (1 if one else 2):
            break
    return head


def _is_lines(head: bytes) -> bool:
    """Whether a table begins as JSON lines do."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
