"""Lines of text in byte streams whose beginning has been read already."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from io import BufferedReader, RawIOBase, StringIO, TextIOWrapper
from typing import Any, BinaryIO

from gradcli import limits
from gradcli.io.source import Source

# Upper bound of the characters of a line, whose cells are all held in memory.
MAX_LINE = 10_000_000
# Characters that are read at a time.
_CHARACTERS = 2**18
# The charge for each line, in units of 1/8 of a step.
LINE = 3


class _FunctionStream(RawIOBase):
    """The bytes that a function returns, which is called with the largest number of them."""

    def __init__(self, read: Callable[[int], bytes | memoryview]) -> None:
        self._read_some = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._read_some(len(buffer))
        buffer[: len(part)] = part
        return len(part)


def stream_of(read: Callable[[int], bytes | memoryview]) -> BinaryIO:
    """A stream of the bytes that a function returns: at most as many as its argument says, none at the end."""
    return BufferedReader(_FunctionStream(read))


def prepended(start: bytes, stream: BinaryIO) -> BinaryIO:
    """A stream of bytes that were read already, followed by the rest of their stream, which stays open when this is
    closed."""
    left = memoryview(start)

    def read(size: int) -> bytes | memoryview:
        nonlocal left
        part, left = left[:size], left[size:]
        return part or stream.read(size)

    return stream_of(read)


def beginning(stream: BinaryIO, size: int) -> bytes:
    """The first `size` bytes of a text, without its byte order mark."""
    return stream.read(size).removeprefix(codecs.BOM_UTF8)


def lines(source: Source, start: bytes, stream: BinaryIO) -> Iterator[list[str]]:
    """The lines of a text that begins with `start`, with their ends, in chunks that are charged.

    Raises BindingError for a line that is too long, UnicodeDecodeError for bytes that are not UTF-8.
    """
    text = TextIOWrapper(prepended(start, stream), encoding="utf-8", newline="")
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
