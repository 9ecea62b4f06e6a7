"""Record boundaries in delimited text, and parsing of records whose quotes are irregular.

A quote opens a field only at its start, and closes it only before a separator or the end of the record; in a field that
does not begin with a quote it is an ordinary character. A record with other quotes, or one that is not closed before
the text ends, is malformed: it ends with its line, and parsing continues after it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gradcli.errors import BindingError
from gradcli.named_tuples import NamedTuple

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

# Upper bound of the bytes of one record, which limits the memory for a text without record ends.
MAX_RECORD = 16 * 2**20
# Bytes of a block: large enough that the overhead of a call is negligible, and parsed in milliseconds.
BLOCK = 4 * 2**20
# Approximate upper bound of the rows of a block: a row that fails takes some hundred bytes of memory in addition to its
# text.
_MOST_ROWS = 2**18
# Bytes at the beginning of a block from which the length of lines is estimated.
_SAMPLE = 2**12
_QUOTE, _LINE_FEED, _RETURN = b'"\n\r'


def blocks(
    read: Callable[[int], bytes], last_end: Callable[[bytes], int], size: int = BLOCK, head: bytes = b""
) -> Iterator[bytes]:
    """The bytes of `head`, which has been read already, and of `read`, in blocks of about `size` bytes, or of what is
    available, that end where records end. `last_end` returns the end of the last whole record of a text, 0 for none.

    A record that is not closed within MAX_RECORD bytes is cut at the end of its first line. Raises BindingError for a
    line that is longer.
    """
    rest, unread = b"", io.BytesIO(head)
    at_a_time = size
    while chunk := unread.read(at_a_time) or read(at_a_time):
        at_a_time = min(size, _MOST_ROWS * _line_length(chunk))
        if b'"' not in chunk and b'"' not in rest and (end := last_line_end(chunk)):
            # Copy the bytes at most once: allocating a copy takes as long as parsing a part of them.
            yield b"".join((rest, memoryview(chunk)[:end])) if rest or end < len(chunk) else chunk
            rest = chunk[end:]
            continue
        data = rest + chunk
        end = last_end(data)
        if not end and len(data) > MAX_RECORD:
            end = _first_line_end(data)
        if end:
            yield data[:end]
        rest = data[end:]
    if rest:
        yield rest


def _line_length(text: bytes) -> int:
    """An estimate of the bytes of a line at the beginning of a text."""
    return min(len(text), _SAMPLE) // (text.count(b"\n", 0, _SAMPLE) + 1) + 1


def _first_line_end(data: bytes) -> int:
    end = data.find(b"\n") + 1
    if not end:
        raise BindingError(
            f"a row is longer than {MAX_RECORD:,} bytes",
            hint="rows of text are lines: is this the format that was said?",
        )
    return end


def last_line_end(data: bytes) -> int:
    """The end of the last whole line, 0 for none."""
    return data.rfind(b"\n") + 1


class Record(NamedTuple):
    """The text of a record without its line end, and the offset `end` after the line end. In `fields`, None stands for
    a field without any character, not even quotes; `fields` itself is None for a malformed record."""

    text: bytes
    end: int
    fields: list[bytes | None] | None


class Breaks(NamedTuple):
    """The positions of line feeds, which of them are inside quotes, and whether the last quote is still open."""

    at: NDArray[numpy.intp]
    quoted: NDArray[numpy.bool]
    open: bool


class Quoting:
    """Parses records whose fields are separated by one byte and may be quoted."""

    def __init__(self, separator: bytes) -> None:
        mark = re.escape(separator)
        quoted = rb'"(?:[^"]++|"")*+"(?=' + mark + rb"|\r?\n|\r?\Z)"
        plain = rb'(?!")[^' + mark + rb"\n]*+"
        field = rb"(?:" + quoted + rb"|" + plain + rb")"
        self._separator = separator[0]
        self._field = re.compile(field)
        self._record = re.compile(field + rb"(?:" + mark + field + rb")*+\r?(?:\n|\Z)")
        self._open = re.compile(rb"(?:" + field + mark + rb')*+"(?:[^"]++|"")*+\Z')

    def last_end(self, data: bytes) -> int:
        """The end of the last whole record, 0 for none."""
        end = last_line_end(data)
        if not end or b'"' not in data:
            return end
        breaks = self.breaks(data[:end])
        if breaks is None:
            return max((record.end for record in self.records(data[:end], more=True)), default=0)
        ends = breaks.at[~breaks.quoted]
        return int(ends[-1]) + 1 if len(ends) else 0

    def breaks(self, data: bytes) -> Breaks | None:
        """The line feeds of whole records, the last of which may be open; None where a record may be malformed or has
        quotes inside an unquoted field."""
        import numpy

        text = numpy.frombuffer(data + b"\n", numpy.uint8)
        quotes = numpy.flatnonzero(text == _QUOTE)
        before, after = text[quotes[::2] - 1], text[quotes[1::2] + 1]
        opening = (before == self._separator) | (before == _LINE_FEED) | (before == _QUOTE)
        closing = (after == self._separator) | (after == _LINE_FEED) | (after == _QUOTE)
        closing |= (after == _RETURN) & (text[numpy.minimum(quotes[1::2] + 2, len(data))] == _LINE_FEED)
        if not opening.all() or not closing.all():
            return None
        at = numpy.flatnonzero(text[: len(data)] == _LINE_FEED)
        return Breaks(at, numpy.searchsorted(quotes, at) % 2 == 1, len(quotes) % 2 == 1)

    def without_quoted_separators(self, data: bytes) -> bytes:
        """The text of whole records with the separators inside quotes replaced by quotes."""
        import numpy

        text = numpy.frombuffer(data, numpy.uint8).copy()
        separators = numpy.flatnonzero(text == self._separator)
        quotes = numpy.flatnonzero(text == _QUOTE)
        text[separators[numpy.searchsorted(quotes, separators) % 2 == 1]] = _QUOTE
        return text.tobytes()

    def records(self, data: bytes, more: bool = False) -> Iterator[Record]:
        """The records of a text one by one. A last record that is not closed is left out where there is `more` text."""
        if b'"' not in data:
            yield from self._unquoted_records(data)
            return
        at = 0
        while at < len(data):
            found = self._record.match(data, at)
            if found is None and more and self._open.match(data, at):
                return
            end = found.end() if found else data.find(b"\n", at) + 1 or len(data)
            text = data[at:end].removesuffix(b"\n").removesuffix(b"\r")
            yield Record(text, end, self._fields(text) if found else None)
            at = end

    def _unquoted_records(self, data: bytes) -> Iterator[Record]:
        """The records of a text without quotes, which are its lines."""
        separator, at = bytes([self._separator]), 0
        while at < len(data):
            end = data.find(b"\n", at) + 1 or len(data)
            text = data[at:end].removesuffix(b"\n").removesuffix(b"\r")
            yield Record(text, end, [field or None for field in text.split(separator)])
            at = end

    def rest(self, text: bytes, fields: int) -> bytes:
        """The text after a number of fields of a well-formed record."""
        at = 0
        for _ in range(fields):
            found = self._field.match(text, at)
            assert found is not None
            at = found.end() + 1
        return text[at:]

    def _fields(self, text: bytes) -> list[bytes | None]:
        fields: list[bytes | None] = []
        at = 0
        while at <= len(text):
            found = self._field.match(text, at)
            assert found is not None
            fields.append(_unquoted(found[0]))
            at = found.end() + 1
        return fields


def _unquoted(field: bytes) -> bytes | None:
    return field[1:-1].replace(b'""', b'"') if field.startswith(b'"') else field or None
