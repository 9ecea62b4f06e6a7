"""The streams and variables that a run sees, so that every one of them can be tested."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple, TextIO

from gradcli.errors import OutputError, PipeClosed, UsageError


class Environment(NamedTuple):
    """Standard input, output and error, and the environment variables."""

    stdin: TextIO | None
    stdout: TextIO | None
    stderr: TextIO | None
    variables: Mapping[str, str]

    @classmethod
    def of_process(cls) -> Environment:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                # A character that the terminal's encoding lacks is no reason to fail.
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        return cls(sys.stdin, sys.stdout, sys.stderr, os.environ)

    def read_stdin(self, what: str) -> str:
        """All of standard input. Raises UsageError where there is none or it is not UTF-8."""
        if self.stdin is None:
            raise UsageError(f"standard input is closed, and {what} is read from it")
        try:
            return self.stdin.read()
        except UnicodeDecodeError:
            raise UsageError(f"standard input is not UTF-8 text, and {what} is read from it") from None

    def write(self, text: str) -> None:
        """Write to standard output at once. Raises OutputError where that fails, and PipeClosed
        where the reader has gone."""
        try:
            if self.stdout is None:
                raise OSError("standard output is closed")
            self.stdout.write(text)
            self.stdout.flush()
        except BrokenPipeError:
            raise PipeClosed from None
        except OSError as error:
            raise OutputError(
                f"cannot write the result: {error.strerror or error}", hint="check where standard output goes"
            ) from None

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
        return self.stdout is not None and self.stdout.isatty() and not self.variables.get("NO_COLOR")
