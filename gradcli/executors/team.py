"""Threads that stay, and help those who have work that can be shared."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
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


class _Shared:
    """Work that several threads do together, each on one of `places`, which are cores."""

    def __init__(self, work: Work, places: Sequence[int]) -> None:
        self._work = work
        self._places = iter(places)
        self._lock = threading.Lock()
        self._helping = 0
        self._over = False
        self._done: SimpleQueue[None] = SimpleQueue()

    def help(self) -> None:
        with self._lock:
            if self._over:
                return
            self._helping += 1
            place = next(self._places, None)
        try:
            with _staying(place):
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


def _core() -> int:
    """The core that this thread runs on; a negative number where the system does not say."""
    return _asked_for_core()()


@cache
def _asked_for_core() -> Callable[[], int]:
    import ctypes

    return getattr(ctypes.pythonapi, "sched_getcpu", lambda: -1)


@contextmanager
def _staying(place: int | None) -> Iterator[None]:
    """Have this thread stay on a core within the block, if one is given. Where threads share no cache, Linux moves one to
    the core of the other that wakes it, and leaves both there for longer than most work takes."""
    before = _allowed()
    if place is None or place not in before:
        yield
        return
    # Which cores there are may change at any time.
    with suppress(OSError):
        os.sched_setaffinity(0, [place])
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, before)


def work(work: Work, threads: int) -> None:
    """Do `work` here and in up to `threads - 1` others at the same time, which must raise nothing."""
    if threads < 2:
        work()
        return
    allowed, here = _allowed(), _core()
    # With cores to spare, those that others use are better left to them.
    places = sorted(allowed, key=lambda core: core != here) if here in allowed and threads == len(allowed) else []
    shared = _Shared(work, places[1:])
    _team.offer(shared, threads - 1)
    try:
        with _staying(here if places else None):
            work()
    finally:
        shared.wait()
