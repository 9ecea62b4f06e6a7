"""A pool of threads in place of a cluster's workers, which die when a test requests it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from gradcli.errors import GradcliError


class Died(Exception):
    """Raised when workers have died."""


Before = Callable[[int, str], object]


class Pool:
    """A pool of threads. Before each task, `before` is called with its number, counted from 1, and the name of its
    part, and may raise what a cluster's future raises."""

    def __init__(self, before: Before, threads: int) -> None:
        self._before = before
        self._executor = ThreadPoolExecutor(threads)
        self.given = 0
        self.cancelled: list[Any] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        if arguments[1] != "divide":
            self.given += 1
        return self._executor.submit(self._run, self.given, function, arguments)

    def _run(self, number: int, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        if arguments[1] != "divide":
            self._before(number, os.path.basename(arguments[2]["target"]))
        # Passed through JSON, as everything that is sent to a worker.
        return json.loads(json.dumps(function(*json.loads(json.dumps(arguments)))))

    def cancel(self, futures: Sequence[Future[Any]]) -> None:
        self.cancelled += futures
        for future in futures:
            future.cancel()

    def check(self) -> None:
        """Does nothing, since the threads always exist."""

    def deaths(self, error: BaseException) -> int:
        if isinstance(error, Died):
            return int(error.args[0])
        raise GradcliError(f"the cluster is lost: {error}", hint="--resume continues")

    def close(self) -> None:
        self._executor.shutdown()


class Killed(BaseException):
    """Simulates the end of the process."""


def killed_at(number: int) -> Before:
    def before(at: int, _part: str) -> None:
        if at == number:
            raise Killed

    return before
