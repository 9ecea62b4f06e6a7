"""Threads in the place of the workers of a cluster, which die when a test wants them to."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from gradcli.errors import GradcliError


class Died(Exception):
    """So many workers died."""


Before = Callable[[int, str], object]


class Pool:
    """Threads as workers. Before a task `before` is given its number, counted from 1, and the name of its part, and may
    raise what a future of a cluster raises."""

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
        # All that travels is plain.
        return json.loads(json.dumps(function(*json.loads(json.dumps(arguments)))))

    def cancel(self, futures: Sequence[Future[Any]]) -> None:
        self.cancelled += futures
        for future in futures:
            future.cancel()

    def check(self) -> None:
        """The threads are there."""

    def deaths(self, error: BaseException) -> int:
        if isinstance(error, Died):
            return int(error.args[0])
        raise GradcliError(f"the cluster is lost: {error}", hint="--resume continues")

    def close(self) -> None:
        self._executor.shutdown()


class Killed(BaseException):
    """The process is gone."""


def killed_at(number: int) -> Before:
    def before(at: int, _part: str) -> None:
        if at == number:
            raise Killed

    return before
