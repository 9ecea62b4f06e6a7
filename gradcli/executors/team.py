"""Threads that stay, and help those who have work that can be shared."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from queue import SimpleQueue

Work = Callable[[], object]


class _Team:
    """Threads that wait for work: one less than there are cores, whoever asks for them."""

    def __init__(self) -> None:
        self._offers: SimpleQueue[_Shared] = SimpleQueue()
        self._count = 0
        self._lock = threading.Lock()

    def offer(self, shared: _Shared, helpers: int) -> None:
        with self._lock:
            while self._count < helpers:
                # The process ends without waiting for them: whoever offers work waits for it.
                threading.Thread(target=self._help, name="gradcli", daemon=True).start()
                self._count += 1
        for _ in range(helpers):
            self._offers.put(shared)

    def _help(self) -> None:
        while True:
            self._offers.get().help()


class _Places:
    """A core for the thread that made this, and one for each that helps it, as long as one does.

    Where cores share no cache, Linux moves a thread to the core of the one that wakes it, and leaves both there for longer
    than most work takes. Those who help keep the other one in its place too, as an interrupt does not reach them.
    """

    def __init__(self, core: int, cores: set[int]) -> None:
        self._thread = threading.get_native_id()
        self._core, self._cores = core, cores
        self._others = iter(sorted(cores - {core}))
        self._taken = 0
        self._lock = threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have this thread, and that which it helps, stay in their places within the block."""
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
    """Have a thread, 0 for this one, run on these cores alone."""
    # Which cores and threads there are may change at any time.
    with suppress(OSError):
        os.sched_setaffinity(thread, cores)


class _Shared:
    """Work that several threads do together, in `places` of theirs if these are given."""

    def __init__(self, work: Work, places: _Places | None) -> None:
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
        """Until those who help are done. Who has not begun by now never will."""
        with self._lock:
            self._over = True
        for _ in range(self._helping):
            self._done.get()


_team = _Team()


def _renew() -> None:
    global _team
    _team = _Team()


if hasattr(os, "register_at_fork"):
    # The threads of a process are not in those that it forks.
    os.register_at_fork(after_in_child=_renew)


def cores() -> int:
    """How many threads may run at a time."""
    return len(_allowed()) or os.cpu_count() or 1


def _allowed() -> set[int]:
    """The cores that this thread may run on; none where the system does not say."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


@cache
def _core() -> Callable[[], int]:
    """What says on which core this thread runs; a negative number where the system does not."""
    import ctypes

    return getattr(ctypes.pythonapi, "sched_getcpu", lambda: -1)


def _places(threads: int) -> _Places | None:
    """Those of all cores; none where there are cores to spare, of which those that others use are better left to them."""
    allowed = _allowed()
    core = _core()() if len(allowed) == threads else -1
    return _Places(core, allowed) if core in allowed else None


def work(work: Work, threads: int, *, stay: bool = False) -> None:
    """Do `work` here and in up to `threads - 1` others at the same time, which must raise nothing. They `stay` on a core
    each if it runs nothing that starts threads or processes: those would stay there too."""
    if threads < 2:
        work()
        return
    shared = _Shared(work, _places(threads) if stay else None)
    _team.offer(shared, threads - 1)
    try:
        work()
    finally:
        shared.wait()
