"""Standard input and output as binary streams."""

from __future__ import annotations

import io
from typing import IO, Any

from gradcli.cli.process.environment import Environment, output_errors
from gradcli.errors import UsageError


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
