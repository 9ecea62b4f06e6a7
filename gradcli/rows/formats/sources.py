"""The inputs of tables: files by name, pattern and folder, and byte streams, decompressed and decoded to UTF-8."""

from __future__ import annotations

import codecs
import importlib
import os
import re
import select
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, Any, cast

from gradcli import install_command
from gradcli.errors import BindingError, UsageError, did_you_mean
from gradcli.io import system
from gradcli.io.file_formats import TABLE_EXTENSIONS
from gradcli.io.text_lines import stream_of

_COMPRESSIONS = {".gz": "gz", ".bz2": "bz2", ".xz": "xz", ".zst": "zst"}
# The first bytes of compressed files, and the byte order marks of text encodings.
_MAGIC = {
    b"\x1f\x8b": "gz",
    b"BZh": "bz2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zst",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
# Python's codecs for host names and for its own literals, which are not encodings of files.
_OF_NO_FILE = ("idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined")
_DAMAGED = ("EOFError", "LZMAError", "ZstdError", "error")
_LONGEST_MAGIC = max(map(len, _MAGIC))
_LIBRARIES = {"gz": "gzip", "bz2": "bz2", "xz": "lzma", "zst": "compression.zstd"}
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PATTERN = re.compile(r"[*?\[]")
# Seconds for which a read waits for more data of a pipe after the first bytes.
_READ_TIMEOUT = 0.02
# If the previous data of a pipe came within this time, the next read polls for as long before it blocks: waking a
# sleeping processor takes about as long as evaluating a row, and slows that down.
_POLL_SECONDS = 0.0002
# The capacity of a pipe in bytes.
_AT_ONCE = 2**16
# The bytes before a block boundary that are searched for a line end.
_LINE_END_WINDOW = 2**14


def is_url(path: str) -> bool:
    return _URL.match(path) is not None


def format_of(path: str) -> tuple[str | None, str | None]:
    """The format and the compression that the extensions of a path name; None where they name none."""
    stem, ending = os.path.splitext(path.lower())
    compression = _COMPRESSIONS.get(ending)
    return TABLE_EXTENSIONS.get(os.path.splitext(stem)[1] if compression else ending), compression


def files(words: Iterable[str]) -> list[str]:
    """The files that words name: those that match a pattern, the tables below a folder, in the order of their names, or
    the word itself.

    Raises UsageError where a pattern matches nothing, or a folder has no tables.
    """
    found = []
    for word in words:
        with readable(word):
            found += _files(word)
    return found


def _files(word: str) -> list[str]:
    if word == "-" or is_url(word):
        return [word]
    found = system.status_or_none(word)
    if found is not None and stat.S_ISDIR(found.st_mode):
        tables = [path for path in system.files_below(word) if format_of(path)[0] is not None]
        if not tables:
            raise UsageError(
                f"there is no table in the folder {word!r}", hint=f"tables end in {' '.join(TABLE_EXTENSIONS)}"
            )
        return tables
    if found is not None or not _PATTERN.search(word):
        return [word]
    matching = system.paths_matching(word)
    if not matching:
        raise UsageError(f"no file matches {word!r}", hint="paths are relative to the current directory")
    return matching


def is_read_once(path: str) -> bool:
    """Return whether a path can be read only once, as a pipe."""
    found = None if is_url(path) else system.status_or_none(path)
    return found is not None and not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))


def opened(path: str) -> IO[bytes]:
    """An open file. Raises BindingError where it cannot be read."""
    if is_url(path):
        raise BindingError(
            f"{path!r} cannot be read: tables at a URL are .parquet or .arrow",
            hint=f"download it: curl -s {path} | gradcli map … -",
        )
    with readable(path):
        if stat.S_ISDIR(system.status(path).st_mode):
            raise IsADirectoryError(0, "it is a directory")
        return system.reader(path)


@contextmanager
def readable(name: str) -> Iterator[None]:
    """A context in which errors of reading the table `name` become BindingErrors."""
    try:
        yield
    except FileNotFoundError as error:
        folder, own = os.path.split(name)
        with suppress(OSError):
            hint = did_you_mean(own, system.names_in(folder or "."))
            raise BindingError(f"cannot read {name!r}: there is no such file", hint=hint) from error
        raise BindingError(f"cannot read {name!r}: there is no such directory") from error
    except UnicodeDecodeError as error:
        raise BindingError(
            f"cannot read {name!r}: it is not {error.encoding} text", hint="--encoding names another"
        ) from error
    except (OSError, ValueError) as error:
        raise BindingError(f"cannot read {name!r}: {getattr(error, 'strerror', None) or error}") from error
    except Exception as error:
        # Compression libraries raise their own error types.
        if type(error).__name__ not in _DAMAGED:
            raise
        raise BindingError(f"cannot read {name!r}: it is damaged, or was cut off", hint="compress it again") from error


def spooled(stream: Stream, head: bytes) -> IO[bytes]:
    """A temporary file with the content of a stream, of which `head` has been read; closing deletes it."""
    file = system.temporary_file()
    file.write(head)
    while data := stream.read(_AT_ONCE):
        file.write(data)
    return file


class Stream:
    """The bytes of a table, read once and in order, decompressed and decoded to UTF-8.

    `size` is the number of stored bytes, None where it is not known; `plain` says that the stored bytes of a file are
    read unchanged.
    """

    def __init__(self, name: str, file: IO[bytes], encoding: str | None = None) -> None:
        self.name = name
        self._file = file
        self._pipe = _descriptor_of_pipe(file)
        # `read1` returns what is available, where `read` waits for the full size.
        self._once: Callable[[int], bytes] = getattr(file, "read1", file.read)
        self.size = _size(file)
        self._unread = b""
        # Whether the last data came soon enough for polling.
        self._is_prompt = False
        with readable(name):
            kind = self._kind()
        self._unpacked = None
        if kind in _COMPRESSIONS.values():
            self._unpacked = unpacked(kind, stream_of(partial(self._stored, timeout=0)), name)
        elif kind:
            encoding = encoding or kind
        self._decoder = _decoder(encoding) if encoding else None
        self.plain = self.size is not None and not self._unpacked and not self._decoder

    def _kind(self) -> str:
        """The compression or encoding that the first bytes name, or ""."""
        begin = b""
        while any(magic != begin and magic.startswith(begin) for magic in _MAGIC):
            more = self._stored(_LONGEST_MAGIC - len(begin), 0)
            if not more:
                break
            begin += more
        self._unread = begin
        return next((kind for magic, kind in _MAGIC.items() if begin.startswith(magic)), "")

    def read(self, size: int, timeout: float = _READ_TIMEOUT) -> bytes:
        """About `size` bytes, and b"" at the end; from a pipe, what arrives within `timeout` seconds after the first
        bytes.

        Raises BindingError where they cannot be read.
        """
        with readable(self.name):
            while True:
                data = self._unpacked.read(size) if self._unpacked else self._stored(self._to_line(size), timeout)
                if self._decoder is None:
                    return data
                text = self._decoder.decode(data, final=not data)
                if text or not data:
                    return text.encode()

    @property
    def waits(self) -> bool:
        """True if the bytes come from a pipe, whose writer may be waiting for an answer."""
        return self._pipe is not None

    def ready(self) -> bool:
        """Return whether a read would return without waiting."""
        return bool(self._unread) or self._pipe is None or bool(select.select([self._pipe], [], [], 0)[0])

    def within(self, start: int, end: int) -> Callable[[int], bytes]:
        """A function that reads the bytes from `start` to before `end` of a plain file."""
        self._file.seek(start)
        left = end - start

        def read(size: int) -> bytes:
            nonlocal left
            with readable(self.name):
                data = self._file.read(min(self._to_line(size), left)) if left > 0 else b""
            left -= len(data)
            return data

        return read

    def close(self) -> None:
        with readable(self.name):
            self._file.close()

    def _to_line(self, size: int) -> int:
        """A number of bytes, about `size`, up to the end of a line of a file: joining a block from parts would take
        longer than reading it."""
        if not self.plain or size <= _LINE_END_WINDOW:
            return size
        at = self._file.tell()
        self._file.seek(at + size - _LINE_END_WINDOW)
        last = self._file.read(_LINE_END_WINDOW)
        self._file.seek(at)
        end = last.rfind(b"\n") + 1
        return size - _LINE_END_WINDOW + end if end and len(last) == _LINE_END_WINDOW else size

    def _stored(self, size: int, timeout: float) -> bytes:
        if self._unread:
            begin, self._unread = self._unread, b""
            return begin
        if self._pipe is None:
            return self._file.read(size) or b""
        parts, deadline = [self._awaited(min(size, _AT_ONCE))], time.monotonic() + timeout
        left = size - len(parts[0])
        while parts[-1] and left and select.select([self._pipe], [], [], max(0, deadline - time.monotonic()))[0]:
            parts.append(self._once(min(left, _AT_ONCE)))
            left -= len(parts[-1])
        return b"".join(parts)

    def _awaited(self, size: int) -> bytes:
        """Return up to `size` bytes of a pipe as soon as any are available."""
        begin = time.monotonic()
        while self._is_prompt and not self.ready() and time.monotonic() - begin < _POLL_SECONDS:
            pass
        data = self._once(size)
        self._is_prompt = time.monotonic() - begin < _POLL_SECONDS
        return data


def unpacked(compression: str, stream: IO[bytes], name: str) -> IO[bytes]:
    """The decompressed content of a stream. Raises BindingError where the library for it is not installed."""
    return cast("IO[bytes]", _library(compression, repr(name)).open(stream, "rb"))


def packed(stream: IO[bytes], compression: str) -> IO[bytes]:
    """A stream that compresses into another one; closing it leaves the other one open. Raises BindingError where the
    library for it is not installed."""
    library = _library(compression, f"a .{compression} file")
    # Without these, a gzip file would contain the time and its name.
    options = {"filename": "", "mtime": 0, "fileobj": stream} if compression == "gz" else {}
    opened = library.GzipFile(mode="wb", compresslevel=6, **options) if options else library.open(stream, "wb")
    return cast("IO[bytes]", opened)


def _library(compression: str, what: str) -> Any:
    """The module for a compression that `what` needs. Raises BindingError where it is not installed."""
    try:
        return importlib.import_module(_LIBRARIES[compression])
    except ImportError:
        pass
    try:
        # Part of the standard library from Python 3.14 on.
        return importlib.import_module("backports.zstd")
    except ImportError as error:
        raise BindingError(
            f"{what} needs {_LIBRARIES[compression]}, which is not installed",
            hint=install_command.install_command("tables"),
        ) from error


def _decoder(encoding: str) -> codecs.IncrementalDecoder | None:
    """The incremental decoder of an encoding, None for UTF-8. Raises UsageError for an unknown one."""
    try:
        found = codecs.lookup(encoding)
        decoder = codecs.getincrementaldecoder(encoding)()
        # rot13, for example, decodes text to text.
        if not getattr(found, "_is_text_encoding", True) or found.name in _OF_NO_FILE:
            raise LookupError
    except (LookupError, ValueError) as error:
        raise UsageError(
            f"there is no encoding {encoding!r}", hint="such as latin-1, cp1252, utf-16, shift-jis"
        ) from error
    return None if found.name == "utf-8" else decoder


def _descriptor_of_pipe(file: IO[bytes]) -> int | None:
    """The file descriptor of a pipe or terminal; None for a file and for bytes in memory."""
    with suppress(OSError, AttributeError):
        number = file.fileno()
        if os.name == "posix" and not stat.S_ISREG(os.fstat(number).st_mode):
            return number
    return None


def _size(file: IO[bytes]) -> int | None:
    with suppress(OSError, AttributeError):
        status = os.fstat(file.fileno())
        return status.st_size if stat.S_ISREG(status.st_mode) else None
    return None
