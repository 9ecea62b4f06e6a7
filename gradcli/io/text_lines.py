"""Streams of bytes, some of which were read already, and the lines of text in them."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader, RawIOBase, StringIO, TextIOWrapper
from typing import Any, BinaryIO

from gradcli import limits
from gradcli.io.source import Source

# Characters of a line: each cell of one takes memory until all are read.
MAX_LINE = 10_000_000
# Characters at a time.
_CHARACTERS = 2**18
_MARK = b"\xef\xbb\xbf"
# In eighths of steps.
LINE = 3


class _Joined(RawIOBase):
    """Bytes, and what a stream has behind them, which stays open when this is closed."""

    def __init__(self, start: bytes, stream: BinaryIO) -> None:
        self._start = memoryview(start)
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._start[: len(buffer)] or self._stream.read(len(buffer))
        self._start = self._start[len(part) :]
        buffer[: len(part)] = part
        return len(part)


def joined(start: bytes, stream: BinaryIO) -> BinaryIO:
    """What was read of a stream, and then the rest of it."""
    return BufferedReader(_Joined(start, stream))


def beginning(stream: BinaryIO, size: int) -> bytes:
    """The first bytes of a text, without its byte order mark."""
    return stream.read(size).removeprefix(_MARK)


def lines(source: Source, start: bytes, stream: BinaryIO) -> Iterator[list[str]]:
    """The lines, with their ends, of a text that begins with `start`, some at a time, which are charged.

    Raises BindingError for one that is too long, UnicodeDecodeError for what is no text."""
    text = TextIOWrapper(joined(start, stream), encoding="utf-8", newline="")
    while chunk := text.read(_CHARACTERS):
        if not chunk.endswith("\n"):
            chunk += text.readline(MAX_LINE + 1)
        found = StringIO(chunk, newline="").readlines()
        if max(map(len, found)) > MAX_LINE:
            raise source.error(
                f"a line of it is longer than {MAX_LINE:,} characters", "save large arrays with numpy.save"
            )
        limits.charge_steps(LINE * len(found))
        yield found
