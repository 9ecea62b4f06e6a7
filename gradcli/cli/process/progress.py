"""A progress bar on standard error for runs over the rows of tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gradcli.cli.process.environment import Environment
from gradcli.rows.pipeline import RunProgress
from gradcli.type_hints import Any

# Seconds before the bar is shown; most runs are over by then.
_FIRST_SHOWN = 0.5


@contextmanager
def shown(environment: Environment, quiet: bool, total: int | None) -> Iterator[Callable[[RunProgress], None]]:
    """Within the block, the yielded function updates a progress bar, if standard error is a terminal: rows, rows per
    second, and the time left if the `total` in bytes is known."""
    stream = environment.stderr
    if quiet or stream is None or not stream.isatty():
        yield lambda _: None
        return
    bar = _Bar(stream, total)
    try:
        yield bar.show
    finally:
        bar.stop()


class _Bar:
    def __init__(self, stream: Any, total: int | None) -> None:
        self._stream = stream
        self._total = total
        self._begin = time.monotonic()
        self._bar: Any = None

    def show(self, progress: RunProgress) -> None:
        seconds = time.monotonic() - self._begin
        if self._bar is None and seconds > _FIRST_SHOWN:
            self._start()
        if self._bar is not None:
            rate = f"{progress.rows / seconds:,.0f}"
            self._bar.update(self._task, completed=progress.size, rows=f"{progress.rows:,}", rate=rate)

    def _start(self) -> None:
        # Imported here because most runs show no bar.
        from rich import progress as bars
        from rich.console import Console

        left = (bars.BarColumn(), bars.TimeRemainingColumn()) if self._total else (bars.TimeElapsedColumn(),)
        words = bars.TextColumn("{task.fields[rows]} rows, {task.fields[rate]} a second")
        self._bar = bars.Progress(words, *left, console=Console(file=self._stream), transient=True)
        self._task = self._bar.add_task("", total=self._total, rows="", rate="")
        self._bar.start()

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
