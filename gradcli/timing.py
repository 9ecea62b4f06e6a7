"""How long the phases of a run take.

A block says which phase it belongs to by `phase`; `measured` asks for the seconds of them all. Where
nobody asks, nothing is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

PHASES = ("import", "parse", "read", "record", "compile", "transfer", "run")


class Stopwatch:
    """`seconds` has the time of each phase without that of the phases inside it, 0 for one that did not
    happen. `synchronise` waits for what a device still computes."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.synchronise: Callable[[], object] = _at_once
        self._phase: str | None = None
        self._since = 0.0

    def switch(self, phase: str | None) -> str | None:
        """End the phase that runs, which is returned, and begin `phase`."""
        self.synchronise()
        now, ended = perf_counter(), self._phase
        if ended is not None:
            self.seconds[ended] += now - self._since
        self._phase, self._since = phase, now
        return ended


def _at_once() -> None:
    """A device that computes while it is called has nothing left to wait for."""


_running: ContextVar[Stopwatch | None] = ContextVar("gradcli_stopwatch", default=None)


@contextmanager
def measured(asked: bool) -> Iterator[Stopwatch]:
    """Within the block, phases are measured where that is `asked` for, by the stopwatch that is given."""
    stopwatch = Stopwatch()
    token = _running.set(stopwatch if asked else None)
    try:
        yield stopwatch
    finally:
        _running.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """The block, or the function that this decorates, belongs to the phase `name`, one of PHASES."""
    stopwatch = _running.get()
    if stopwatch is None:
        yield
        return
    outer = stopwatch.switch(name)
    try:
        yield
    finally:
        stopwatch.switch(outer)
