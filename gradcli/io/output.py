"""Output files that are written atomically: they appear complete or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from gradcli.errors import OutputError, UsageError
from gradcli.io import system
from gradcli.type_hints import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_HINTS = {
    errno.ENOENT: "create its directory first",
    errno.ENOTDIR: "one of the directories in the path is a file",
    errno.EISDIR: "name a file in that directory",
    errno.EACCES: "choose a file and a directory that you may write to",
    errno.EPERM: "choose a file and a directory that you may write to",
    errno.EROFS: "choose a directory on another file system",
    errno.ENOSPC: "free some space, or choose another file system",
}
# Calls a function with a binary stream whose content becomes the file at a path.
Save = Callable[[str, Callable[[IO[bytes]], object]], None]
# The prefix and suffix of the names of temporary files.
_PREFIX, _SUFFIX = ".gradcli-", ".tmp"
# The temporary files of this process.
_unfinished: set[str] = set()
# Paths of open descriptors, which are written to directly and never replaced.
_DESCRIPTORS = ("/dev/std", "/dev/fd/", "/proc/")


def write_atomically(path: str, write: Callable[[IO[bytes]], object], *, on_disk: bool = False) -> None:
    """Call `write` with a binary stream whose content becomes the file `path` when `write` returns.

    Where `write` raises or the process is killed, an earlier file is unchanged. A system crash soon after may leave an
    empty file, unless the call is to wait until all data are `on_disk`. What is not a regular file, such as a pipe, is
    written directly. Raises OutputError where the file cannot be written.
    """
    with _output_errors(path):
        earlier = system.status_or_none(path)
        if _is_special(path, earlier):
            with system.writer(path) as stream:
                write(stream)
        else:
            _replace(system.real_path(path), earlier, write, on_disk)


def place_of(path: str) -> str:
    """The real path of a file that is written to `path`. Raises OutputError where it cannot be resolved."""
    with _output_errors(path):
        return system.real_path(path)


def make_directory(path: str) -> None:
    """Create a directory and its parents. Raises OutputError where that fails."""
    with _output_errors(path):
        system.make_directory(path)


@contextmanager
def _output_errors(path: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"cannot write {path!r}: {error.strerror or error}",
            hint=_HINTS.get(error.errno or 0, "check the path, or choose another"),
        ) from error


def _is_special(path: str, earlier: os.stat_result | None) -> bool:
    if os.path.normpath(path).startswith(_DESCRIPTORS):
        return True
    return earlier is not None and not stat.S_ISREG(earlier.st_mode)


def _replace(path: str, earlier: os.stat_result | None, write: Callable[[IO[bytes]], object], on_disk: bool) -> None:
    if earlier is not None and not system.is_writable(path):
        # Renaming would overwrite a read-only file.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    temporary = os.path.join(os.path.dirname(path), f"{_PREFIX}{os.urandom(8).hex()}{_SUFFIX}")
    _unfinished.add(temporary)
    try:
        with system.writer(temporary, new=True) as stream:
            write(stream)
            if on_disk:
                system.synchronise(stream)
        if earlier is not None:
            system.set_mode(temporary, stat.S_IMODE(earlier.st_mode))
        system.replace(path, temporary)
    except BaseException:
        with suppress(OSError):
            system.remove(temporary)
        raise
    finally:
        _unfinished.discard(temporary)


def remove_unfinished() -> None:
    """Remove the temporary files of this process before it ends."""
    for temporary in tuple(_unfinished):
        with suppress(OSError):
            system.remove(temporary)


def sweep(directory: str) -> None:
    """Remove the temporary files that killed processes left in a directory."""
    with suppress(OSError):
        for name in system.names_in(directory):
            if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
                system.remove(os.path.join(directory, name))


def check_npz_path(path: str) -> None:
    """Raise UsageError for a path that does not end in `.npz`."""
    if not path.lower().endswith(".npz"):
        raise UsageError(f"{path!r} does not end in .npz", hint=f"arrays are saved as .npz: {path + '.npz'!r}")


def save_npz(path: str, arrays: Mapping[str, ArrayLike], save: Save = write_atomically) -> None:
    """Save arrays and floats in full precision under their keys, such as `value` and `grad/x`.

    Raises UsageError where `path` does not end in .npz, OutputError where it cannot be written.
    """
    check_npz_path(path)
    save(path, lambda stream: _write_npz(stream, arrays))


def _write_npz(stream: IO[bytes], arrays: Mapping[str, ArrayLike]) -> None:
    # numpy.savez takes the keys as keyword arguments, which would clash with its parameter `file`.
    import zipfile

    import numpy

    with zipfile.ZipFile(stream, "w") as archive:
        for key, value in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as entry:
                numpy.lib.format.write_array(entry, numpy.asarray(value), allow_pickle=False)
