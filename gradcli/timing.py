"""Measures the time of the phases of a run.

Code marks its phase by `phase`, and `measured` collects the seconds of all phases. Without `measured` nothing is
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

PHASES = ("import", "parse", "read", "record", "compile", "transfer", "run")


class Stopwatch:
    """Measures phases; `seconds` has the time of each one without those nested in it, 0 for one that did not occur.

    `synchronise` waits until the device in use has finished.
    """

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.synchronise: Callable[[], object] = _at_once
        self._phase: str | None = None
        self._since = 0.0

    def switch(self, phase: str | None) -> str | None:
        """Start `phase` and return the phase that ended."""
        self.synchronise()
        now, ended = perf_counter(), self._phase
        if ended is not None:
            self.seconds[ended] += now - self._since
        self._phase, self._since = phase, now
        return ended


def _at_once() -> None:
    """The `synchronise` of devices that compute synchronously; does nothing."""


_running: ContextVar[Stopwatch | None] = ContextVar("gradcli_stopwatch", default=None)


@contextmanager
def measured(asked: bool) -> Iterator[Stopwatch]:
    """Within the block, measure phases if `asked`, with the stopwatch that is yielded."""
    stopwatch = Stopwatch()
    token = _running.set(stopwatch if asked else None)
    try:
        yield stopwatch
    finally:
        _running.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Context manager and decorator that assigns the block or function to the phase `name`, one of PHASES."""
    stopwatch = _running.get()
    if stopwatch is None:
        yield
        return
    outer = stopwatch.switch(name)
    try:
        yield
    finally:
        stopwatch.switch(outer)
