"""The door to the file system: every call on a file that gradcli makes for a user is made here."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from typing import IO, Any, TextIO

# Characters to read at a time.
_CHUNK = 2**18
# Bytes to write at a time: for more at once Linux looks for long stretches of memory, which may take five times as long
# as to copy the bytes.
_PIECE = 2**18
# Seconds in which somebody must open the other end of a named pipe: who starts both ends at once needs one at most.
_OTHER_END = 5.0


def _named(path: str) -> bytes:
    """The name as the system has it: UTF-8 whatever the locale, as the words of a command line are."""
    try:
        name = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        name = b"\0"
    if b"\0" in name:
        raise OSError(errno.EINVAL, "no file can have this name", path)
    return name


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def status(path: str) -> os.stat_result:
    """Raises OSError, as all functions here do."""
    return os.stat(_named(path))


def found(path: str) -> os.stat_result | None:
    """The status of what `path` leads to, None where there is nothing."""
    try:
        return status(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def exists(path: str) -> bool:
    """Whether there is something at `path`; not where that cannot be told."""
    try:
        return found(path) is not None
    except OSError:
        return False


def is_directory(path: str) -> bool:
    """Not where that cannot be told."""
    try:
        return stat.S_ISDIR(status(path).st_mode)
    except OSError:
        return False


def is_writable(path: str) -> bool:
    return os.access(_named(path), os.W_OK)


def names_in(directory: str) -> list[str]:
    return [_shown(name) for name in os.listdir(_named(directory))]


def make_directory(path: str) -> None:
    """Make a directory, and those above it, where there is none."""
    os.makedirs(_named(path), exist_ok=True)


def current_directory() -> str | None:
    """None where it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def real_path(path: str) -> str:
    """`path` without symbolic links and relative parts."""
    return _shown(os.path.realpath(_named(path)))


def reader(path: str) -> BufferedReader:
    return BufferedReader(FileIO(_opened(path, os.O_RDONLY), "r"))


def _opened(path: str, flags: int) -> bytes | int:
    """What FileIO takes for a path: its name, and of a named pipe a descriptor."""
    there = found(path)
    is_pipe = there is not None and stat.S_ISFIFO(there.st_mode)
    return _opened_pipe(_named(path), flags) if is_pipe else _named(path)


def _opened_pipe(name: bytes, flags: int) -> int:
    """A descriptor of a named pipe, which can be opened when somebody has its other end."""
    # Few files are pipes.
    from queue import Empty, SimpleQueue
    from threading import Thread

    ended: SimpleQueue[int | OSError] = SimpleQueue()

    def begin() -> None:
        try:
            ended.put(os.open(name, flags))
        except OSError as error:
            ended.put(error)

    Thread(target=begin, daemon=True).start()
    try:
        opened = ended.get(timeout=_OTHER_END)
    except Empty:
        # The thread has what it waits for, and can end.
        both = os.open(name, os.O_RDWR | os.O_NONBLOCK)
        late = ended.get()
        os.close(both)
        if isinstance(late, int):
            os.close(late)
        what = "reads from" if flags & os.O_WRONLY else "writes to"
        opened = OSError(errno.ENXIO, f"it is a pipe, and nobody {what} it", _shown(name))
    if isinstance(opened, OSError):
        raise opened
    return opened


def read_text(path: str, most: int) -> str:
    """The text of a file in UTF-8, without its byte order mark: all of it, or one character more than `most`
    where it is longer, or has no end, as that of a device. Raises UnicodeDecodeError for another encoding."""
    with TextIOWrapper(reader(path), encoding="utf-8-sig") as stream:
        return text_of(stream, most)


def text_of(stream: TextIO, most: int) -> str:
    """All that is left of a stream, or one character more than `most` where that is longer.

    A stream that is asked for so many characters at once makes room for them, however few there are.
    """
    parts, left = [], most + 1
    while left and (part := stream.read(min(left, _CHUNK))):
        parts.append(part)
        left -= len(part)
    return "".join(parts)


def is_waiting(stream: TextIO) -> bool:
    """Whether there is text that nobody has read: in a pipe, or from the beginning of a file."""
    try:
        number = stream.fileno()
    except OSError:
        # One in memory.
        place, part = stream.tell(), stream.read(1)
        stream.seek(place)
        return bool(part)
    found = os.fstat(number)
    if stat.S_ISREG(found.st_mode):
        return found.st_size > 0 and os.lseek(number, 0, os.SEEK_CUR) == 0
    return stat.S_ISFIFO(found.st_mode) and _bytes_in_pipe(number) > 0


def _bytes_in_pipe(number: int) -> int:
    """How many have been written to it and not read yet; 0 where the system does not tell."""
    try:
        from fcntl import ioctl
        from termios import FIONREAD
    except ImportError:
        return 0
    return int.from_bytes(ioctl(number, FIONREAD, bytes(4)), sys.byteorder)


@contextmanager
def without_standard_error() -> Iterator[None]:
    """Within the block what libraries write to the descriptor of standard error, past Python, is lost."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


class _InPieces(BufferedWriter):
    """A stream into a file that writes much in pieces."""

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _PIECE):
            super().write(view[start : start + _PIECE])
        return len(view)


def writer(path: str, new: bool = False) -> BufferedWriter:
    """A stream into a file, which is emptied; one that may not exist before where it is `new`."""
    return _InPieces(FileIO(_opened(path, os.O_WRONLY), "x" if new else "w"))


def nameless() -> IO[bytes]:
    """A file that is gone when it is closed."""
    import tempfile

    return tempfile.TemporaryFile()


def synchronise(stream: BufferedWriter) -> None:
    """Wait until what was written is on the disk."""
    stream.flush()
    os.fsync(stream.fileno())


def set_mode(path: str, mode: int) -> None:
    os.chmod(_named(path), mode)


def replace(path: str, by: str) -> None:
    """Let `path` lead to the file that is at `by`, which is gone from there: at once or not at all."""
    os.replace(_named(by), _named(path))


def remove(path: str) -> None:
    os.unlink(_named(path))


def matching(pattern: str) -> list[str]:
    """The files, in the order of their names, whose paths match a shell's pattern: `*` `?` `[…]`, and `**` for any
    number of folders."""
    import glob

    return sorted(_shown(name) for name in glob.iglob(_named(pattern), recursive=True) if os.path.isfile(name))


def files_below(directory: str) -> list[str]:
    """The files in a directory and in those in it, in the order of their names, without those that are hidden."""
    found: list[bytes] = []
    for parent, directories, names in os.walk(_named(directory)):
        directories[:] = sorted(name for name in directories if not name.startswith(b"."))
        found += (os.path.join(parent, name) for name in names if not name.startswith(b"."))
    return sorted(map(_shown, found))
