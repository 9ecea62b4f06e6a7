"""Runs a command in a child process, so that `--max-seconds` and `--max-memory` can limit it.

The child runs the same command line. Its output and saved files go to unnamed temporary files, which are copied to
their destinations when the command has ended by itself; a child that was killed leaves no files.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from tempfile import TemporaryFile

from gradcli import subprocess_calls
from gradcli.arrays.backends import BACKENDS
from gradcli.cli.process.environment import Environment
from gradcli.errors import ExitStatus, UsageError
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import IO, Any, Protocol, TextIO

# Characters per read of buffered output, and bytes per copy of saved files.
_CHUNK = 2**20


class LimitedOptions(Protocol):
    """The options of a command that can be limited."""

    @property
    def max_seconds(self) -> float | None: ...
    @property
    def max_memory(self) -> str | None: ...


# Runs a command line and returns its exit status.
Main = Callable[[Sequence[str], Environment], ExitStatus]


class _Streams(NamedTuple):
    """The properties of the parent's streams that the child takes over, and the descriptors of its own streams."""

    stdin: int | None
    stdin_encoding: str
    stdout: int
    saved: int
    encoding: str
    error_encoding: str
    is_terminal: bool
    size: tuple[int, int] | None
    variables: dict[str, str]
    names: dict[str, Any]


class _Ended(NamedTuple):
    """The result of a child: its exit status, its standard error, and the paths that it saved to in order, each with
    the size of the file in bytes."""

    status: int
    complaints: str
    saved_to: Sequence[tuple[str, int]]


class _Text(io.TextIOWrapper):
    """A text stream that writes to a file but reports the encoding and terminal of another stream."""

    def __init__(self, file: IO[bytes], encoding: str, is_terminal: bool) -> None:
        super().__init__(file, encoding="utf-8", errors="surrogatepass", newline="")
        self._encoding = encoding
        self._is_terminal = is_terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._is_terminal


def run(
    main: Main,
    arguments: Sequence[str],
    environment: Environment,
    options: LimitedOptions,
) -> ExitStatus:
    """Run the command line `arguments` by `main` in a child process, with the limits in its options.

    Raises UsageError for an invalid limit or a device other than the CPU, and LimitError where a limit is reached.
    """
    limits = subprocess_calls.Limits.of(options.max_seconds, options.max_memory)
    _check_device(getattr(options, "backend", "numpy"), getattr(options, "device", None))
    with TemporaryFile() as out, TemporaryFile() as saved, _descriptor(environment.stdin) as stdin:
        streams = _streams(environment, stdin, out.fileno(), saved.fileno())
        used = [n for n in (streams.stdin, streams.stdout, streams.saved) if n is not None]
        ended = subprocess_calls.call(limits, _run, main, list(arguments), streams, descriptors=used)
        saved.seek(0)
        for path, size in ended.saved_to:
            environment.save(path, partial(_copy, saved, size))
        out.seek(0)
        text = io.TextIOWrapper(out, encoding="utf-8", errors="surrogatepass", newline="")
        while chunk := text.read(_CHUNK):
            environment.write(chunk)
    if ended.complaints:
        environment.write_error(ended.complaints.removesuffix("\n"))
    return ExitStatus(ended.status)


def _copy(source: IO[bytes], size: int, target: IO[bytes]) -> None:
    """Copy `size` bytes from the current position of `source`."""
    while size:
        chunk = source.read(min(size, _CHUNK))
        target.write(chunk)
        size -= len(chunk)


def _check_device(name: str, device: str | None) -> None:
    default = next((b.default_device for b in BACKENDS if b.name == name), "cpu")
    if not (device or default).startswith("cpu"):
        raise UsageError(
            f"--max-seconds and --max-memory hold on the CPU alone, and this is for {device or default}",
            hint="leave them out, or compute on the CPU",
        )


@contextmanager
def _descriptor(stdin: TextIO | None) -> Iterator[int | None]:
    """A duplicated descriptor of a stream, or that of a temporary copy."""
    if stdin is None:
        yield None
        return
    try:
        found = os.dup(stdin.fileno())
    except io.UnsupportedOperation:
        # A stream in memory has no descriptor.
        with TemporaryFile() as file:
            file.write(stdin.read().encode("utf-8", "surrogatepass"))
            file.seek(0)
            yield file.fileno()
        return
    try:
        yield found
    finally:
        os.close(found)


def _streams(environment: Environment, stdin: int | None, out: int, saved: int) -> _Streams:
    terminal = environment.stdout is not None and environment.stdout.isatty()
    return _Streams(
        stdin=stdin,
        stdin_encoding=getattr(environment.stdin, "encoding", None) or "utf-8",
        stdout=out,
        saved=saved,
        encoding=getattr(environment.stdout, "encoding", None) or "utf-8",
        error_encoding=getattr(environment.stderr, "encoding", None) or "utf-8",
        is_terminal=terminal,
        size=shutil.get_terminal_size() if terminal else None,
        variables=dict(environment.variables),
        names=dict(environment.names),
    )


def _run(main: Main, arguments: Sequence[str], streams: _Streams) -> _Ended:
    """The body of the child process."""
    saved_to: list[tuple[str, int]] = []

    def save(path: str, write: Callable[[IO[bytes]], object]) -> None:
        # Written to a file of its own first, because some writers seek to the beginning of their file.
        with TemporaryFile() as file, open(streams.saved, "ab", closefd=False) as saved:
            write(file)
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            _copy(file, size, saved)
        saved_to.append((path, size))

    size = {} if streams.size is None else dict(zip(("COLUMNS", "LINES"), map(str, streams.size)))
    os.environ |= size
    with ExitStack() as opened:
        stdin: TextIO | None = None
        if streams.stdin is not None:
            stdin = opened.enter_context(open(streams.stdin, encoding=streams.stdin_encoding))
        out = opened.enter_context(_Text(io.FileIO(streams.stdout, "wb"), streams.encoding, streams.is_terminal))
        complaints = io.BytesIO()
        err = _Text(complaints, streams.error_encoding, is_terminal=False)
        status = main(
            arguments,
            Environment(stdin, out, err, {**streams.variables, **size}, save, is_child=True, names=streams.names),
        )
        err.flush()
    return _Ended(status, complaints.getvalue().decode("utf-8", "surrogatepass"), saved_to)
