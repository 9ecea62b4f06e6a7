"""The file in which the inputs of sessions are kept, a JSON string a line, readable by its owner alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress

import typer

# The size in bytes from which the file is cut, and the number of inputs that are kept then.
_MAX_BYTES, _KEPT_INPUTS = 2_000_000, 5_000
_OWNER_ALONE, _FOLDER_OF_OWNER = 0o600, 0o700


def default_path() -> str:
    """The path of the file, in the folder that the system has for the settings of a program."""
    return os.path.join(typer.get_app_dir("gradcli"), "shell-history")


class HistoryFile:
    """The inputs of former sessions. Errors of reading or writing the file are ignored."""

    def __init__(self, path: str) -> None:
        self._path = path
        with suppress(OSError):
            os.makedirs(os.path.dirname(path), mode=_FOLDER_OF_OWNER, exist_ok=True)
            self._shorten()

    def entries(self) -> list[str]:
        """The inputs, the oldest first."""
        with suppress(OSError), open(self._path, encoding="utf-8", errors="replace") as file:
            return [*_texts(file)]
        return []

    def append(self, text: str) -> None:
        with suppress(OSError):
            self._write(self._path, os.O_APPEND, _line(text))

    def _shorten(self) -> None:
        """Drop the oldest inputs of a file that is too large."""
        if not os.path.exists(self._path) or os.path.getsize(self._path) < _MAX_BYTES:
            return
        beside = f"{self._path}.{os.getpid()}"
        self._write(beside, os.O_TRUNC, "".join(map(_line, self.entries()[-_KEPT_INPUTS:])))
        os.replace(beside, self._path)

    @staticmethod
    def _write(path: str, flag: int, text: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flag, _OWNER_ALONE)
        try:
            # The file may have been made by another program.
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, _OWNER_ALONE)
            os.write(descriptor, text.encode("ascii"))
        finally:
            os.close(descriptor)


def _line(text: str) -> str:
    return json.dumps(text) + "\n"


def _texts(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        with suppress(ValueError):
            text = json.loads(line)
            if isinstance(text, str):
                yield text
