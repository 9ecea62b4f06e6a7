"""Tasks for workers that may die: each is done once, or given up with the reason, whoever does it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

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

    `check` is called where no task ends for a while, and raises the GradcliError that says why none will. `deaths` says
    how many of them died of a task whose future raises an error, and raises the GradcliError that ends the run where it
    was something else.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future: ...
    def cancel(self, futures: Sequence[Any], /) -> None: ...
    def check(self) -> object: ...
    def deaths(self, error: BaseException, /) -> int: ...


class Died(NamedTuple):
    """A task is given up: so many workers died of it."""

    workers: int


class Tasks(NamedTuple, Generic[Key]):
    """What is to be done for each of the `keys`: `function` is called with the `arguments` of a key, which are made when
    it is given out; whoever gives it out holds about `size` bytes of one as long as it runs."""

    function: Callable[..., Any]
    keys: Iterable[Key]
    arguments: Callable[[Key], Sequence[Any]]
    size: Callable[[Key], int]


def done(pool: Pool, tasks: Tasks[Key], retries: int) -> Generator[tuple[Key, Any]]:
    """What comes of each task, or that workers died of it, in the order in which they end.

    A task whose worker died is given to another, `retries` times. What is still running when nobody asks any more is
    cancelled.
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
    """Whether a task may be given out beside those that are."""
    return not running or (running < _MOST_TASKS and held + size <= _MOST_BYTES)


def _next(ended: SimpleQueue[Any], pool: Pool) -> Any:
    """The future of the task that ends next."""
    while True:
        try:
            return ended.get(timeout=_LOOK)
        except Empty:
            pool.check()
