"""Execution of tasks by workers that may die: each task is done once, or given up with a reason."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

Key = TypeVar("Key")
# Upper bounds of the tasks submitted at a time, and of the bytes of their arguments, which the scheduler holds.
_MOST_TASKS, _MOST_BYTES = 1_000, 2**26
# Seconds without a finished task after which the pool is checked for workers.
_LOOK = 1.0


class Future(Protocol):
    """The interface shared by the futures of `concurrent.futures` and Dask."""

    def add_done_callback(self, function: Callable[[Any], object], /) -> object: ...
    def result(self) -> Any: ...


class Pool(Protocol):
    """A pool of workers.

    `check` is called when no task has ended for a while, and raises the GradcliError that ends the run. `deaths` is the
    number of workers that died of a task whose future raises `error`, and raises the GradcliError that ends the run for
    other errors.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future: ...
    def cancel(self, futures: Sequence[Any], /) -> None: ...
    def check(self) -> object: ...
    def deaths(self, error: BaseException, /) -> int: ...


class Died(NamedTuple):
    """The result of a task that was given up since this number of workers died of it."""

    workers: int


class Tasks(NamedTuple, Generic[Key]):
    """The tasks of a run, one for each of the `keys`. `function` is called with the `arguments` of a key, which are
    computed at submission and take about `size` bytes as long as the task runs."""

    function: Callable[..., Any]
    keys: Iterable[Key]
    arguments: Callable[[Key], Sequence[Any]]
    size: Callable[[Key], int]


def run_tasks(pool: Pool, tasks: Tasks[Key], retries: int) -> Generator[tuple[Key, Any]]:
    """The key and the result of each task, or Died, in the order in which they end.

    A task whose worker died is submitted again, at most `retries` times. Tasks that still run when the generator is
    closed are cancelled.
    """
    ended: SimpleQueue[Any] = SimpleQueue()
    left = [*tasks.keys][::-1]
    deaths = dict.fromkeys(left, 0)
    running: dict[Any, Key] = {}
    held = 0

    try:
        while left or running:
            while left and _fits(tasks.size(left[-1]), len(running), held):
                key = left.pop()
                held += tasks.size(key)
                future = pool.submit(tasks.function, *tasks.arguments(key))
                running[future] = key
                future.add_done_callback(ended.put)
            future = _next(ended, pool)
            key = running.pop(future)
            held -= tasks.size(key)
            try:
                result = future.result()
            except Exception as error:
                deaths[key] += pool.deaths(error)
                if deaths[key] <= retries:
                    left.append(key)
                    continue
                result = Died(deaths[key])
            yield key, result
    finally:
        pool.cancel([*running])


def _fits(size: int, running: int, held: int) -> bool:
    """Whether another task may be submitted while `running` others run."""
    return not running or (running < _MOST_TASKS and held + size <= _MOST_BYTES)


def _next(ended: SimpleQueue[Any], pool: Pool) -> Any:
    """The future of the next task that ends."""
    while True:
        try:
            return ended.get(timeout=_LOOK)
        except Empty:
            pool.check()
