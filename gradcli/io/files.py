"""The values that `NAME=@PATH` and `NAME=@PATH:member` bind."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from gradcli.errors import BindingError, nearest
from gradcli.io import system
from gradcli.io.json_numbers import read_json
from gradcli.io.numpy_files import read_npy, read_npz
from gradcli.io.parquet import read_parquet
from gradcli.io.source import Source
from gradcli.io.tables import read_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

_READERS: dict[str, Callable[[Source], float | NDArray[Any]]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".csv": read_table,
    ".tsv": read_table,
    ".json": read_json,
    ".parquet": read_parquet,
}
# Linux has no longer one.
_LONGEST_PATH = 4_096


def read(reference: str, max_elements: int | None = None, exact: bool = False) -> float | NDArray[Any]:
    """The numbers in the file that `reference`, which is `PATH` or `PATH:member`, names.

    A float where the file holds a single number without axes, otherwise a C-contiguous float64 array in the
    shape that the file gives it; tables have shape (rows, columns), a single column (rows,). Where the numbers of text
    are to be `exact`, they are `Written`, in an array of objects.
    Raises BindingError where the file is missing, unreadable, damaged, holds something other than real
    numbers, or claims more than `max_elements` of them.
    """
    path, member = _split(reference)
    size = _size(path)
    reader = _READERS.get(_suffix(path))
    if reader is None:
        raise BindingError(
            f"cannot read {path!r}: its name does not end in a known suffix",
            hint=f"the suffix says what a file holds: {' '.join(_READERS)}",
        )
    try:
        with system.reader(path) as stream:
            return reader(Source(path, member, stream, size, max_elements, exact))
    except OSError as error:
        raise _refused(path, error) from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, "it is not UTF-8 text", "save it as UTF-8") from error
    except MemoryError as error:
        raise _unreadable(path, "it does not fit in memory", "give a smaller file") from error


def _split(reference: str) -> tuple[str, str | None]:
    """Path and member; a path may hold ':' itself, so what exists decides."""
    if not reference:
        raise BindingError("no file is named after '@'", hint="write NAME=@PATH, such as x=@data.npy")
    ends = [len(reference), *_colons(reference)]
    supported = [end for end in ends if _suffix(reference[:end]) in _READERS]
    there = (end for end in supported or ends if system.exists(reference[:end]))
    end = next(there, (supported or ends[:1])[-1])
    return reference[:end], None if end == len(reference) else reference[end + 1 :]


def _colons(reference: str) -> Iterator[int]:
    """The places where a path may end, the longest first."""
    end = min(len(reference), _LONGEST_PATH)
    while (end := reference.rfind(":", 1, end)) > 0:
        yield end


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _size(path: str) -> int:
    """The size in bytes of a regular file; anything else could block or never end."""
    try:
        status = system.status(path)
    except OSError as error:
        raise _refused(path, error) from error
    if stat.S_ISDIR(status.st_mode):
        raise _unreadable(path, "it is a directory", "name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise _unreadable(path, "it is no regular file", "copy its data to a file first")
    return status.st_size


def _unreadable(path: str, reason: str, hint: str) -> BindingError:
    return BindingError(f"cannot read {path!r}: {reason}", hint=hint)


def _refused(path: str, error: OSError) -> BindingError:
    if isinstance(error, FileNotFoundError):
        return _unreadable(path, "there is no such file", _missing_hint(path))
    if isinstance(error, PermissionError):
        return _unreadable(path, "permission denied", "make it readable: chmod u+r")
    return _unreadable(path, error.strerror or str(error), "check the path and the file")


def _missing_hint(path: str) -> str:
    directory, name = os.path.split(path)
    current = system.current_directory()
    if current is None and not os.path.isabs(path):
        return "the current directory was removed: cd to another"
    try:
        names = [entry for entry in system.names_in(directory or ".") if _suffix(entry) in _READERS]
    except OSError:
        return f"there is no directory {directory!r}, or it cannot be listed"
    close = nearest(name, names)
    if close:
        return f"did you mean {os.path.join(directory, close)!r}?"
    return f"paths are relative to the current directory, {current!r}"
