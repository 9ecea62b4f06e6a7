"""Where tables come from: files, and streams of bytes."""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from gradcli.errors import BindingError
from gradcli.io import system

# Seconds for which a block waits for more of a pipe, from when there is something in it.
_PATIENCE = 0.02
# What a pipe holds at most.
_AT_ONCE = 2**16


class Stream:
    """Bytes that are read once, in order. `size` is how many there are, before they are decompressed, None where that
    is not known."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.name = name
        self.file = file
        self._number = _pipe(file)
        self.size = _size(file)

    def read(self, size: int) -> bytes:
        """At most `size` bytes, none at the end: from a pipe what comes within a moment."""
        if self._number is None:
            return self.file.read(size) or b""
        parts, deadline = [os.read(self._number, min(size, _AT_ONCE))], time.monotonic() + _PATIENCE
        left = size - len(parts[0])
        while parts[-1] and left and select.select([self._number], [], [], max(0, deadline - time.monotonic()))[0]:
            parts.append(os.read(self._number, min(left, _AT_ONCE)))
            left -= len(parts[-1])
        return b"".join(parts)

    def within(self, start: int, end: int) -> Callable[[int], bytes]:
        """What reads the bytes from `start` to before `end` of a file."""
        self.file.seek(start)
        left = end - start

        def read(size: int) -> bytes:
            nonlocal left
            data = self.file.read(min(size, left)) if left > 0 else b""
            left -= len(data)
            return data

        return read


def _pipe(file: IO[bytes]) -> int | None:
    """The descriptor of a stream whose bytes come in time; None for a file and for bytes in memory."""
    with suppress(OSError, AttributeError):
        number = file.fileno()
        if not stat.S_ISREG(os.fstat(number).st_mode) and os.name == "posix":
            return number
    return None


def _size(file: IO[bytes]) -> int | None:
    with suppress(OSError, AttributeError):
        status = os.fstat(file.fileno())
        return status.st_size if stat.S_ISREG(status.st_mode) else None
    return None


def opened(path: str) -> IO[bytes]:
    """The bytes of a file. Raises BindingError where it cannot be read."""
    try:
        if stat.S_ISDIR(system.status(path).st_mode):
            raise IsADirectoryError(0, "it is a directory")
        return system.reader(path)
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(name: str, error: OSError) -> BindingError:
    return BindingError(f"cannot read {name!r}: {error.strerror or error}", hint="check the path and the file")
