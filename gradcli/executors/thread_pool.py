"""A thread pool whose threads help callers with work that can be shared."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from queue import SimpleQueue

Work = Callable[[], object]


class _ThreadPool:
    """A pool of waiting threads, which grows to the largest number of helpers requested so far."""

    def __init__(self) -> None:
        self._offers: SimpleQueue[_Shared] = SimpleQueue()
        self._count = 0
        self._lock = threading.Lock()

    def offer(self, shared: _Shared, helpers: int) -> None:
        with self._lock:
            while self._count < helpers:
                # Daemon threads, for which the process does not wait at exit; callers wait for their own work.
                threading.Thread(target=self._help, name="gradcli", daemon=True).start()
                self._count += 1
        for _ in range(helpers):
            self._offers.put(shared)

    def _help(self) -> None:
        while True:
            self._offers.get().help()


class _Affinity:
    """Pins the calling thread to its core, and each helper to another one, while helpers are active.

    If cores share no cache, Linux migrates a woken thread to the core of the thread that wakes it, and leaves both
    there for longer than most work takes. The helpers also pin the calling thread.
    """

    def __init__(self, core: int, cores: set[int]) -> None:
        self._thread = threading.get_native_id()
        self._core, self._cores = core, cores
        self._others = iter(sorted(cores - {core}))
        self._taken = 0
        self._lock = threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Within the block, pin this helper and the thread that it helps to their cores."""
        with self._lock:
            self._taken += 1
            own = next(self._others, None)
        try:
            _keep(self._thread, {self._core})
            _keep(0, self._cores if own is None else {own})
            yield
        finally:
            _keep(0, self._cores)
            with self._lock:
                self._taken -= 1
                if not self._taken:
                    _keep(self._thread, self._cores)


def _keep(thread: int, cores: set[int]) -> None:
    """Restrict a thread (0 for the current one) to these cores."""
    # The available cores and threads may change at any time.
    with suppress(OSError):
        os.sched_setaffinity(thread, cores)


class _Shared:
    """Work that several threads do together, pinned by `places` if given."""

    def __init__(self, work: Work, places: _Affinity | None) -> None:
        self._work = work
        self._places = places
        self._lock = threading.Lock()
        self._helping = 0
        self._over = False
        self._done: SimpleQueue[None] = SimpleQueue()

    def help(self) -> None:
        with self._lock:
            if self._over:
                return
            self._helping += 1
        try:
            with nullcontext() if self._places is None else self._places.taken():
                self._work()
        finally:
            self._done.put(None)

    def wait(self) -> None:
        """Wait until the active helpers are done. Helpers that have not begun by now do nothing."""
        with self._lock:
            self._over = True
        for _ in range(self._helping):
            self._done.get()


_team = _ThreadPool()


def _renew() -> None:
    global _team
    _team = _ThreadPool()


if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads of its parent.
    os.register_at_fork(after_in_child=_renew)


def cores() -> int:
    """The number of threads that can run at the same time."""
    return len(_allowed()) or os.cpu_count() or 1


def _allowed() -> set[int]:
    """The cores that this thread may run on; empty if the system does not tell."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


@cache
def _core() -> Callable[[], int]:
    """A function that returns the core of the current thread; a negative number if the system does not tell."""
    import ctypes

    return getattr(ctypes.pythonapi, "sched_getcpu", lambda: -1)


def _places(threads: int) -> _Affinity | None:
    """A pinning of the threads if they use all allowed cores.

    None if there are spare cores, because pinned threads could then block other processes.
    """
    allowed = _allowed()
    core = _core()() if len(allowed) == threads else -1
    return _Affinity(core, allowed) if core in allowed else None


def work(work: Work, threads: int, *, pinned: bool = False) -> None:
    """Run `work` here and in up to `threads - 1` other threads at the same time; it must not raise.

    With `pinned`, each thread is pinned to one core; use it only if `work` starts no threads or processes, which would
    inherit the pinning.
    """
    if threads < 2:
        work()
        return
    shared = _Shared(work, _places(threads) if pinned else None)
    _team.offer(shared, threads - 1)
    try:
        work()
    finally:
        shared.wait()
