"""Injects file system faults into one call at a time, as SQLite's tests do.

`every(monkeypatch, fault)` yields a `Faults` for the first call on a file, then one for the second, and so on, until
there is no such call.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from io import FileIO
from typing import Any

import pytest

from gradcli.io import system

# The functions of `os` in `gradcli.io.system` that make a system call.
CALLS = ("stat", "access", "listdir", "getcwd", "fsync", "chmod", "replace", "unlink")


class Killed(BaseException):
    """Simulates the end of the process: no call is made after it."""


class Faults:
    """Replaces call number `at`, counted from 1, by `fault`, which receives the call with its arguments, and may raise
    or return a result.

    `reached` says whether there was such a call. After `killed`, no calls are made.
    """

    def __init__(self, at: int, fault: Callable[..., Any]) -> None:
        self.at = at
        self.fault = fault
        self.count = 0
        self.killed = False

    @property
    def reached(self) -> bool:
        return self.count >= self.at

    def call(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        if self.killed:
            raise Killed
        self.count += 1
        if self.count != self.at:
            return function(*arguments)
        try:
            return self.fault(name, function, *arguments)
        except Killed:
            self.killed = True
            raise


class _System:
    """The module `os` with faults."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        function = getattr(os, name)
        if name not in CALLS:
            return function
        if name == "fsync":
            # Tests do not wait for the disk.
            function = abs
        return lambda *arguments: self._faults.call(name, function, *arguments)


def file_with(faults: Faults) -> type[FileIO]:
    """A class of files with faults."""

    class Faulty(FileIO):
        def __init__(self, *arguments: Any) -> None:
            try:
                faults.call("open", super().__init__, *arguments)
            except Killed:
                # The system closes the files of a process that ended.
                super().close()
                raise

        def readinto(self, buffer: Any) -> Any:
            return faults.call("read", super().readinto, buffer)

        def readall(self) -> Any:
            return faults.call("readall", super().readall)

        def write(self, data: Any) -> Any:
            return faults.call("write", super().write, data)

        def seek(self, *place: Any) -> Any:
            return faults.call("seek", super().seek, *place)

        def tell(self) -> Any:
            return faults.call("tell", super().tell)

        def truncate(self, *size: Any) -> Any:
            return faults.call("truncate", super().truncate, *size)

        def close(self) -> None:
            # The descriptor is released even if close fails.
            closed = self.closed
            super().close()
            if not closed:
                faults.call("close", lambda: None)

    return Faulty


def every(monkeypatch: pytest.MonkeyPatch, fault: Callable[..., Any]) -> Iterator[Faults]:
    at = 1
    while True:
        faults = Faults(at, fault)
        with monkeypatch.context() as patch:
            patch.setattr(system, "os", _System(faults))
            patch.setattr(system, "FileIO", file_with(faults))
            yield faults
        if not faults.reached:
            return
        at += 1


def failing(number: int) -> Callable[..., Any]:
    """A fault that raises OSError with an error number."""

    def fault(name: str, *_: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fault


def interrupted(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """A fault that simulates EINTR, which Python's streams report, while Python retries other calls."""
    if name in ("read", "write"):
        raise OSError(errno.EINTR, os.strerror(errno.EINTR))
    return function(*arguments)


def short(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """A fault that reads or writes a single byte."""
    if name in ("read", "write"):
        return function(memoryview(arguments[0])[:1])
    return function(*arguments)


def killed(*_: Any) -> Any:
    raise Killed


def killed_within(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """A fault that ends the process in the middle of a write, or after another call."""
    if name == "write":
        arguments = (bytes(arguments[0])[: len(arguments[0]) // 2],)
    function(*arguments)
    raise Killed
