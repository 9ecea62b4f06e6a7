"""Tasks for workers that may die: each is done once, or given up with the reason, whoever does it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

Key = TypeVar("Key")
# Tasks that are given out at a time, and the bytes of all that they are told, which whoever gives them out holds.
_MOST_TASKS, _MOST_BYTES = 1_000, 2**26
# Seconds without the end of a task after which it is seen whether there are workers.
_LOOK = 1.0


class Future(Protocol):
    """What a task will give, as `concurrent.futures` and Dask have it."""

    def add_done_callback(self, function: Callable[[Any], object], /) -> object: ...
    def result(self) -> Any: ...


class Pool(Protocol):
    """Workers, wherever they are.

    `check` is called where no task ends for a while, and raises the GradcliError that says why none will. `deaths` says how many of them died of a task whose future raises an error, and raises the GradcliError that ends
    the run where it was something else.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future: ...
    def cancel(self, futures: Sequence[Any], /) -> None: ...
    def check(self) -> object: ...
    def deaths(self, error: BaseException, /) -> int: ...


class Died(NamedTuple):
    """A task is given up: so many workers died of it."""

    workers: int


def done(
    pool: Pool, function: Callable[..., Any], tasks: Mapping[Key, Sequence[Any]], retries: int, size: int = 0
) -> Generator[tuple[Key, Any]]:
    """What `function` returns for the arguments of each task, or that workers died of it, in the order in which they end.

    A task whose worker died is given to another, `retries` times. One is told about `size` bytes. What is still running
    when nobody asks any more is cancelled.
    """
    ended: SimpleQueue[Any] = SimpleQueue()
    most = max(1, min(_MOST_TASKS, _MOST_BYTES // max(size, 1)))
    left = [*tasks.items()][::-1]
    deaths = dict.fromkeys(tasks, 0)
    running: dict[Any, Any] = {}

    try:
        while left or running:
            while left and len(running) < most:
                key, arguments = left.pop()
                future = pool.submit(function, *arguments)
                running[future] = key
                future.add_done_callback(ended.put)
            future = _next(ended, pool)
            key = running.pop(future)
            try:
                result = future.result()
            except Exception as error:
                deaths[key] += pool.deaths(error)
                if deaths[key] <= retries:
                    left.append((key, tasks[key]))
                    continue
                result = Died(deaths[key])
            yield key, result
    finally:
        pool.cancel([*running])


def _next(ended: SimpleQueue[Any], pool: Pool) -> Any:
    """The future of the task that ends next."""
    while True:
        try:
            return ended.get(timeout=_LOOK)
        except Empty:
            pool.check()
