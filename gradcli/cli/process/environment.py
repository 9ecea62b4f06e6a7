"""The streams and environment variables of a command, passed explicitly so that tests can replace them."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from gradcli.cli.process.interrupts import Interrupts
from gradcli.errors import GradcliError, OutputError, PipeClosed, UsageError
from gradcli.io import output, system
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import IO, Any, TextIO

# ASCII replacements of drawing characters, for encodings that lack them.
_DRAWN = str.maketrans("─│┌┐└┘├┤┬┴┼╭╮╰╯…×", "-|+++++++++++++.x")
# The width of a terminal that does not say it.
_COLUMNS = 80


class Environment(NamedTuple):
    """Standard input, output and error, the environment variables, and the function that writes a file atomically (see
    `output.write_atomically`). `is_child` is true in a child process that runs one limited command; `interrupts` are
    those of the process, None where it has no handler of them. `names` has arrays for names that a program reads and the
    command line gives no value: those of a notebook."""

    stdin: TextIO | None
    stdout: TextIO | None
    stderr: TextIO | None
    variables: Mapping[str, str]
    save: output.Save = output.write_atomically
    is_child: bool = False
    interrupts: Interrupts | None = None
    names: Mapping[str, Any] = {}

    @classmethod
    def of_process(cls) -> Environment:
        """The environment of this process. Input is read as UTF-8 in any locale; output uses the encoding of the locale
        or PYTHONIOENCODING."""
        codecs.register_error("gradcli", _replacement_text)
        _fill_descriptors()
        if sys.stdin is not None:
            sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict")  # type: ignore[union-attr]
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                # A character that the encoding lacks is replaced instead of raising.
                stream.reconfigure(errors="gradcli")  # type: ignore[union-attr]
        return cls(sys.stdin, sys.stdout, sys.stderr, os.environ)

    def read_stdin(self, what: str, max_characters: int) -> str:
        """All of standard input, or its first `max_characters` + 1 characters if it is longer. Raises UsageError if it is
        closed, unreadable or not UTF-8; `what` names the content in the message."""
        if self.stdin is None:
            raise UsageError(f"standard input is closed, and {what} is read from it")
        try:
            return system.text_of(self.stdin, max_characters)
        except UnicodeDecodeError:
            raise UsageError(f"standard input is not UTF-8 text, and {what} is read from it") from None
        except OSError as error:
            raise UsageError(
                f"cannot read standard input: {error.strerror or error}", hint=f"{what} is read from it"
            ) from None

    @property
    def is_interactive(self) -> bool:
        """True if a user types at a terminal and reads there."""
        return all(stream is not None and stream.isatty() for stream in (self.stdin, self.stdout))

    def has_unread_input(self) -> bool:
        """Return whether standard input has data that has not been read."""
        try:
            return self.stdin is not None and system.is_waiting(self.stdin)
        except (OSError, ValueError):
            return False

    def write(self, text: str) -> None:
        """Write to standard output and flush. Raises OutputError on failure, and PipeClosed if the reader has closed
        the pipe."""
        with output_errors():
            if self.stdout is None:
                raise OSError("standard output is closed")
            self.stdout.write(text)
            self.stdout.flush()

    def write_error(self, text: str) -> None:
        """Write a line to standard error, ignoring failures."""
        try:
            if self.stderr is not None:
                self.stderr.write(text + "\n")
                self.stderr.flush()
        except OSError:
            pass

    def report(self, error: GradcliError, as_json: bool) -> None:
        """Write an error to standard error, as text or as a line of JSON."""
        if not as_json:
            self.write_error(error.report())
            return
        # Imported here because few commands fail.
        from gradcli.io import json_text

        self.write_error(json_text.dumps({"error": error.as_json()}, ascii=not is_unicode(self.stderr)))

    @property
    def for_terminal(self) -> bool:
        """True if standard output is a terminal that allows colours."""
        plain = self.variables.get("NO_COLOR") or self.variables.get("TERM") == "dumb"
        return self.stdout is not None and self.stdout.isatty() and not plain

    @property
    def columns(self) -> int | None:
        """The width of the terminal that standard output is, or None where it is none."""
        if self.stdout is None or not self.stdout.isatty():
            return None
        given = self.variables.get("COLUMNS", "")
        if given.isdecimal() and int(given):
            return int(given)
        with suppress(OSError):
            return os.get_terminal_size(self.stdout.fileno()).columns or _COLUMNS
        return _COLUMNS

    @property
    def rows(self) -> int | None:
        """The height of the terminal that standard output is, or None where it is none or does not say it."""
        if self.stdout is None or not self.stdout.isatty():
            return None
        with suppress(OSError):
            return os.get_terminal_size(self.stdout.fileno()).lines or None
        return None

    def redirect_broken_streams(self) -> None:
        """Redirect streams that cannot be flushed to the null device, so that the interpreter's flush at exit does not
        fail."""
        for stream in filter(None, (self.stdout, self.stderr)):
            try:
                stream.flush()
            except OSError:
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)


@contextmanager
def output_errors() -> Iterator[None]:
    """Within the block, an error of standard output raises OutputError, or PipeClosed if the reader has closed the
    pipe."""
    try:
        yield
    except BrokenPipeError:
        raise PipeClosed from None
    except OSError as error:
        raise OutputError(
            f"cannot write the result: {error.strerror or error}", hint="check where standard output goes"
        ) from None


def is_unicode(stream: TextIO | None) -> bool:
    """Return whether `stream` encodes as UTF-8."""
    return codecs.lookup(getattr(stream, "encoding", None) or "utf-8").name == "utf-8"


def process_arguments() -> list[str]:
    """The arguments of this process, decoded as UTF-8 in any locale; undecodable bytes, as in file names, become lone
    surrogates."""
    if sys.getfilesystemencoding() == "utf-8":
        return sys.argv[1:]
    return [os.fsencode(word).decode("utf-8", "surrogateescape") for word in sys.argv[1:]]


def _replacement_text(error: UnicodeError) -> tuple[str, int]:
    """The replacement of characters that an encoding lacks: a similar character, or a \\uXXXX escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_DRAWN)
    units = text.encode("utf-16-be", "surrogatepass")
    escapes = (
        f"\\u{high:02x}{low:02x}" if high or low > 127 else chr(low) for high, low in zip(units[::2], units[1::2])
    )
    return "".join(escapes), error.end


def _fill_descriptors() -> None:
    """Open the null device for closed standard streams, so that no file gets their descriptors."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is None:
            with suppress(OSError):
                os.open(os.devnull, os.O_RDWR)


def input_of(environment: Environment, what: str) -> io.BufferedReader:
    """Standard input as bytes; `what` names the content in the message. Raises UsageError if it is closed."""
    if environment.stdin is None:
        raise UsageError(f"standard input is closed, and {what} is read from it")
    found: Any = getattr(environment.stdin, "buffer", None)
    if found is not None:
        return found  # type: ignore[no-any-return]
    # A text stream in memory, as in tests.
    raw: Any = io.BytesIO(environment.stdin.read().encode("utf-8", "surrogatepass"))
    return io.BufferedReader(raw)


class Output(io.RawIOBase):
    """Standard output as a binary stream that is never closed. Writing raises OutputError on failure, and PipeClosed if
    the reader has closed the pipe."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._bytes: IO[bytes] | None = getattr(environment.stdout, "buffer", None)
        self._count = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._count

    def write(self, data: Any) -> int:
        count = len(memoryview(data).cast("B"))
        self._count += count
        if self._bytes is None:
            self._environment.write(bytes(data).decode("utf-8", "surrogateescape"))
            return count
        with output_errors():
            self._bytes.write(data)
        return count

    def flush(self) -> None:
        """Flush standard output."""
        if self._bytes is not None and not self.closed:
            with output_errors():
                self._bytes.flush()
