"""The streams and variables that a run sees, so that every one of them can be tested."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, NamedTuple, TextIO

from gradcli.errors import OutputError, PipeClosed, UsageError
from gradcli.io import system

# What takes the place of the characters of drawings where the encoding of a stream lacks them.
_DRAWN = str.maketrans("─│┌┐└┘├┤┬┴┼╭╮╰╯…×", "-|+++++++++++++.x")


def _save(path: str, write: Callable[[IO[bytes]], object]) -> None:
    # Few commands write a file.
    from gradcli.io import output

    output.write_atomically(path, write)


class Environment(NamedTuple):
    """Standard input, output and error, the environment variables, and how a file is written: what is given a binary
    stream writes it (see `output.write_atomically`). `apart` is true in a process that was started for one command."""

    stdin: TextIO | None
    stdout: TextIO | None
    stderr: TextIO | None
    variables: Mapping[str, str]
    save: Callable[[str, Callable[[IO[bytes]], object]], None] = _save
    apart: bool = False

    @classmethod
    def of_process(cls) -> Environment:
        """Those of this process. Text is read as UTF-8 whatever the locale, and written in the encoding that
        the locale or PYTHONIOENCODING says."""
        codecs.register_error("gradcli", _written_out)
        _fill_descriptors()
        if sys.stdin is not None:
            sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict")  # type: ignore[union-attr]
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                # A character that the encoding lacks is no reason to fail.
                stream.reconfigure(errors="gradcli")  # type: ignore[union-attr]
        return cls(sys.stdin, sys.stdout, sys.stderr, os.environ)

    def read_stdin(self, what: str, most: int) -> str:
        """All of standard input, or one character more than `most` where it is longer. Raises UsageError where
        there is none or it is not UTF-8."""
        if self.stdin is None:
            raise UsageError(f"standard input is closed, and {what} is read from it")
        try:
            return system.text_of(self.stdin, most)
        except UnicodeDecodeError:
            raise UsageError(f"standard input is not UTF-8 text, and {what} is read from it") from None
        except OSError as error:
            raise UsageError(
                f"cannot read standard input: {error.strerror or error}", hint=f"{what} is read from it"
            ) from None

    def has_unread_input(self) -> bool:
        """Whether somebody has written to standard input what nobody has read."""
        try:
            return self.stdin is not None and system.is_waiting(self.stdin)
        except (OSError, ValueError):
            return False

    def write(self, text: str) -> None:
        """Write to standard output at once. Raises OutputError where that fails, and PipeClosed
        where the reader has gone."""
        with told():
            if self.stdout is None:
                raise OSError("standard output is closed")
            self.stdout.write(text)
            self.stdout.flush()

    def complain(self, text: str) -> None:
        """Write to standard error, if anyone can hear it."""
        try:
            if self.stderr is not None:
                self.stderr.write(text + "\n")
                self.stderr.flush()
        except OSError:
            pass

    @property
    def for_terminal(self) -> bool:
        """Whether standard output is a terminal that wants decoration."""
        plain = self.variables.get("NO_COLOR") or self.variables.get("TERM") == "dumb"
        return self.stdout is not None and self.stdout.isatty() and not plain

    def leave(self) -> None:
        """Point the streams that cannot be written to at nothing, so that the interpreter's last flush of them
        does not fail."""
        for stream in filter(None, (self.stdout, self.stderr)):
            try:
                stream.flush()
            except OSError:
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)


@contextmanager
def told() -> Iterator[None]:
    """Within the block, what goes wrong with standard output is an OutputError, or PipeClosed where the reader has gone."""
    try:
        yield
    except BrokenPipeError:
        raise PipeClosed from None
    except OSError as error:
        raise OutputError(
            f"cannot write the result: {error.strerror or error}", hint="check where standard output goes"
        ) from None


def is_unicode(stream: TextIO | None) -> bool:
    """Whether every character can be written to `stream` as UTF-8."""
    return codecs.lookup(getattr(stream, "encoding", None) or "utf-8").name == "utf-8"


def words_of_process() -> list[str]:
    """The arguments of this process, which are UTF-8 whatever the locale; half a surrogate pair is for what
    is not, as in a file's name."""
    if sys.getfilesystemencoding() == "utf-8":
        return sys.argv[1:]
    return [os.fsencode(word).decode("utf-8", "surrogateescape") for word in sys.argv[1:]]


def _written_out(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that an encoding lacks: their like, or the escapes that JSON and Python share."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_DRAWN)
    units = text.encode("utf-16-be", "surrogatepass")
    escapes = (
        f"\\u{high:02x}{low:02x}" if high or low > 127 else chr(low) for high, low in zip(units[::2], units[1::2])
    )
    return "".join(escapes), error.end


def _fill_descriptors() -> None:
    """Let a standard stream that is closed lead nowhere, so that no file that is opened gets its number."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is None:
            with suppress(OSError):
                os.open(os.devnull, os.O_RDWR)
