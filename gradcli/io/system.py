"""Access to the file system: every operation on a user's files goes through here."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper

from gradcli.type_hints import IO, Any, TextIO

# Characters that are read at a time.
_CHUNK = 2**18
# Bytes that are written at a time: for larger writes Linux looks for contiguous memory, which may take five times as
# long as copying the bytes.
_PIECE = 2**18
# Seconds to wait until another process opens the other end of a named pipe; a command line that starts both ends needs
# one at most.
_OTHER_END = 5.0


def _named(path: str) -> bytes:
    """The path as bytes: UTF-8 whatever the locale, like the arguments of a command line."""
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
    """The status of a path. Raises OSError, as all functions here do."""
    return os.stat(_named(path))


def status_or_none(path: str) -> os.stat_result | None:
    """The status of a path, None where nothing is there."""
    try:
        return status(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def exists(path: str) -> bool:
    """Return whether a path exists; False where that cannot be determined."""
    try:
        return status_or_none(path) is not None
    except OSError:
        return False


def is_directory(path: str) -> bool:
    """Return whether a path is a directory; False where that cannot be determined."""
    try:
        return stat.S_ISDIR(status(path).st_mode)
    except OSError:
        return False


def is_writable(path: str) -> bool:
    return os.access(_named(path), os.W_OK)


def names_in(directory: str) -> list[str]:
    return [_shown(name) for name in os.listdir(_named(directory))]


def make_directory(path: str) -> None:
    """Create a directory and its parents where they do not exist."""
    os.makedirs(_named(path), exist_ok=True)


def current_directory() -> str | None:
    """The current directory, None where it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def real_path(path: str) -> str:
    """The absolute path without symbolic links."""
    return _shown(os.path.realpath(_named(path)))


def reader(path: str) -> BufferedReader:
    return BufferedReader(FileIO(_opened(path, os.O_RDONLY), "r"))


def _opened(path: str, flags: int) -> bytes | int:
    """The argument of FileIO for a path: its name, or the open descriptor of a named pipe."""
    there = status_or_none(path)
    is_pipe = there is not None and stat.S_ISFIFO(there.st_mode)
    return _opened_pipe(_named(path), flags) if is_pipe else _named(path)


def _opened_pipe(name: bytes, flags: int) -> int:
    """The descriptor of a named pipe, whose opening blocks until another process opens the other end."""
    # Imported here, since few files are pipes.
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
        # Opening both ends unblocks the thread, so that it ends.
        both = os.open(name, os.O_RDWR | os.O_NONBLOCK)
        late = ended.get()
        os.close(both)
        if isinstance(late, int):
            os.close(late)
        what = "reads from" if flags & os.O_WRONLY else "writes to"
        opened = OSError(errno.ENXIO, f"it is a pipe, and no process {what} it", _shown(name))
    if isinstance(opened, OSError):
        raise opened
    return opened


def read_text(path: str, most: int) -> str:
    """The text of a UTF-8 file without its byte order mark; only the first `most` + 1 characters where it is longer or
    endless, such as a device. Raises UnicodeDecodeError for another encoding."""
    with TextIOWrapper(reader(path), encoding="utf-8-sig") as stream:
        return text_of(stream, most)


def text_of(stream: TextIO, most: int) -> str:
    """The rest of a stream, or its first `most` + 1 characters where it is longer.

    It is read in chunks, since a single read would allocate room for all characters requested.
    """
    parts, left = [], most + 1
    while left and (part := stream.read(min(left, _CHUNK))):
        parts.append(part)
        left -= len(part)
    return "".join(parts)


def is_waiting(stream: TextIO) -> bool:
    """Return whether a stream has unread text: in a pipe, or from the beginning of a file."""
    try:
        number = stream.fileno()
    except OSError:
        # A stream in memory.
        place, part = stream.tell(), stream.read(1)
        stream.seek(place)
        return bool(part)
    found = os.fstat(number)
    if stat.S_ISREG(found.st_mode):
        return found.st_size > 0 and os.lseek(number, 0, os.SEEK_CUR) == 0
    return stat.S_ISFIFO(found.st_mode) and _bytes_in_pipe(number) > 0


def _bytes_in_pipe(number: int) -> int:
    """The number of unread bytes in a pipe; 0 where the system cannot tell."""
    try:
        from fcntl import ioctl
        from termios import FIONREAD
    except ImportError:
        return 0
    return int.from_bytes(ioctl(number, FIONREAD, bytes(4)), sys.byteorder)


@contextmanager
def without_standard_error() -> Iterator[None]:
    """A context in which output of native libraries to the descriptor of standard error is discarded."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


class _InPieces(BufferedWriter):
    """A buffered writer that splits large writes into pieces."""

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _PIECE):
            super().write(view[start : start + _PIECE])
        return len(view)


def writer(path: str, new: bool = False) -> BufferedWriter:
    """A stream into a file, which is truncated; the file must not exist where it is `new`."""
    return _InPieces(FileIO(_opened(path, os.O_WRONLY), "x" if new else "w"))


def temporary_file() -> IO[bytes]:
    """A temporary file that is deleted when it is closed."""
    import tempfile

    return tempfile.TemporaryFile()


def synchronise(stream: BufferedWriter) -> None:
    """Wait until everything written is on disk."""
    stream.flush()
    os.fsync(stream.fileno())


def set_mode(path: str, mode: int) -> None:
    os.chmod(_named(path), mode)


def replace(path: str, by: str) -> None:
    """Atomically rename the file at `by` to `path`."""
    os.replace(_named(by), _named(path))


def remove(path: str) -> None:
    os.unlink(_named(path))


def paths_matching(pattern: str) -> list[str]:
    """The files whose paths match a shell pattern with `*`, `?`, `[…]`, and `**` for any number of folders, sorted by
    name."""
    import glob

    return sorted(_shown(name) for name in glob.iglob(_named(pattern), recursive=True) if os.path.isfile(name))


def files_below(directory: str) -> list[str]:
    """The files in a directory and its subdirectories, without hidden ones, sorted by name."""
    found: list[bytes] = []
    for parent, directories, names in os.walk(_named(directory)):
        directories[:] = sorted(name for name in directories if not name.startswith(b"."))
        found += (os.path.join(parent, name) for name in names if not name.startswith(b"."))
    return sorted(map(_shown, found))
