"""Output of the commands that fit, minimise, solve and propagate: JSON, tables and progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.render import show, show_json
from gradcli.io.text_tables import Table
from gradcli.models.results import Iteration, Sampling, as_json
from gradcli.type_hints import Any

# Seconds before a progress line is shown, and between its updates.
_FIRST_SHOWN, _UPDATE_INTERVAL = 1.0, 0.1


def report(asked: Mapping[str, Any], result: Any, environment: Environment) -> None:
    """Write a result as one JSON object on one line: `asked` (`program` or `model`), then the fields of `result`."""
    show_json({**asked, **as_json(result)}, environment)


def show_tables(tables: Sequence[Table], environment: Environment) -> None:
    """Write the tables that are not empty."""
    show([table for table in tables if table.rows], environment)


@contextmanager
def progress_line(environment: Environment, quiet: bool) -> Iterator[Callable[[Iteration | Sampling], None]]:
    """Within the block, the yielded function shows iterations or samples in a progress line on a terminal, from one
    second on."""
    stream = environment.stderr
    if quiet or stream is None or not stream.isatty():
        yield lambda _: None
        return
    line = _Line(stream.write, stream.flush)
    try:
        yield line.show
    finally:
        line.clear()


class _Line:
    """A progress line that overwrites itself."""

    def __init__(self, write: Callable[[str], object], flush: Callable[[], object]) -> None:
        self._write, self._flush = write, flush
        self._begin = time.monotonic()
        self._next = _FIRST_SHOWN
        self._length = 0

    def show(self, told: Iteration | Sampling) -> None:
        seconds = time.monotonic() - self._begin
        if seconds < self._next:
            return
        self._next = seconds + _UPDATE_INTERVAL
        self._put(", ".join([*_parts(told), f"{seconds:.1f} s"]))

    def clear(self) -> None:
        if self._length:
            self._put("")

    def _put(self, text: str) -> None:
        # Overwrite the rest of the previous text with blanks.
        self._write(f"\r{text}{' ' * (self._length - len(text))}" + ("" if text else "\r"))
        self._flush()
        self._length = len(text)


def _parts(told: Iteration | Sampling) -> list[str]:
    if isinstance(told, Sampling):
        return [f"sample {told.drawn:,} of {told.samples:,}"]
    parts = [f"iteration {told.number:,}", f"objective {told.objective:.6g}"]
    return parts if told.gradient_norm is None else [*parts, f"gradient {told.gradient_norm:.3g}"]
