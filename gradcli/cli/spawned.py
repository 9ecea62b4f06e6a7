"""A command in a process of its own, which `--max-seconds` and `--max-memory` limit.

That process runs the same command line. What it prints and saves goes to files without a name, and from there to
where it belongs when the command has ended well or with an error of its own: of a process that was ended nothing is left.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from tempfile import TemporaryFile
from typing import IO, NamedTuple, Protocol, TextIO

from gradcli import confined
from gradcli.arrays.backends import BACKENDS
from gradcli.cli.environment import Environment
from gradcli.errors import ExitStatus, UsageError

# Characters at a time from a file to standard output, and bytes from one to another.
_CHUNK = 2**20


class LimitedOptions(Protocol):
    """The options of a command that can be limited."""

    @property
    def max_seconds(self) -> float | None: ...
    @property
    def max_memory(self) -> str | None: ...


# Runs a command line.
Main = Callable[[Sequence[str], Environment], ExitStatus]


class _Streams(NamedTuple):
    """What a process must know of the streams of the one that started it, and where its own are."""

    stdin: int | None
    stdin_encoding: str
    stdout: int
    saved: int
    encoding: str
    error_encoding: str
    is_terminal: bool
    size: tuple[int, int] | None
    variables: dict[str, str]


class _Ended(NamedTuple):
    """What is to be told of a command that has ended: its exit status, what it said on standard error, and the
    paths that it saved to, each with the bytes of its file, in their order."""

    status: int
    complaints: str
    saved_to: Sequence[tuple[str, int]]


class _Text(io.TextIOWrapper):
    """Text for another stream, in a file, which pretends to be that stream."""

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
    """Have a process of its own run the command line `arguments` by `main`, with the limits of its options.

    Raises UsageError for a limit that is none, or beside a device that is no CPU, and LimitError where one is reached.
    """
    limits = confined.Limits.of(options.max_seconds, options.max_memory)
    _check_device(getattr(options, "backend", "numpy"), getattr(options, "device", None))
    with TemporaryFile() as out, TemporaryFile() as saved, _descriptor(environment.stdin) as stdin:
        streams = _streams(environment, stdin, out.fileno(), saved.fileno())
        used = [n for n in (streams.stdin, streams.stdout, streams.saved) if n is not None]
        ended = confined.call(limits, _run, main, list(arguments), streams, descriptors=used)
        saved.seek(0)
        for path, size in ended.saved_to:
            environment.save(path, partial(_copy, saved, size))
        out.seek(0)
        text = io.TextIOWrapper(out, encoding="utf-8", errors="surrogatepass", newline="")
        while chunk := text.read(_CHUNK):
            environment.write(chunk)
    if ended.complaints:
        environment.complain(ended.complaints.removesuffix("\n"))
    return ExitStatus(ended.status)


def _copy(source: IO[bytes], size: int, target: IO[bytes]) -> None:
    """Copy so many bytes from where `source` stands."""
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
    """A descriptor of a stream, other than those of the standard streams."""
    if stdin is None:
        yield None
        return
    try:
        found = os.dup(stdin.fileno())
    except io.UnsupportedOperation:
        # One that is only in the memory of this process.
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
    )


def _run(main: Main, arguments: Sequence[str], streams: _Streams) -> _Ended:
    """What the process does."""
    saved_to: list[tuple[str, int]] = []

    def save(path: str, write: Callable[[IO[bytes]], object]) -> None:
        # By itself first: some writers go back to the beginning of their file.
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
        status = main(arguments, Environment(stdin, out, err, {**streams.variables, **size}, save, apart=True))
        err.flush()
    return _Ended(status, complaints.getvalue().decode("utf-8", "surrogatepass"), saved_to)
