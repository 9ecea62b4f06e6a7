"""What the commands of models print: one JSON object, or tables for people, and how far they are on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli.cli.environment import Environment
from gradcli.cli.render import Table, number_text, show, show_json
from gradcli.models.results import Iteration, Sampling, as_json

# Seconds after which a line is shown, and after which it is another.
_PATIENCE, _PAUSE = 1.0, 0.1


def report(asked: Mapping[str, Any], result: Any, environment: Environment) -> None:
    """Write a result as one JSON object on one line: what was asked (`program` or `model`), then its fields."""
    show_json({**asked, **as_json(result)}, environment)


def members(rows: Mapping[str, Any]) -> Table:
    """A table of two columns, what is known and what it is; what is None is left out."""
    return Table((), [(name, number_text(value)) for name, value in rows.items() if value is not None])


def tell(tables: Sequence[Table], environment: Environment) -> None:
    """Write tables that are not empty for people."""
    show([table for table in tables if table.rows], environment)


@contextmanager
def watched(environment: Environment, quiet: bool) -> Iterator[Callable[[Iteration | Sampling], None]]:
    """Within the block, what is given is told of each iteration, or of samples, which a line on a terminal shows after a
    second."""
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
    """A line that takes the place of the one before it."""

    def __init__(self, write: Callable[[str], object], flush: Callable[[], object]) -> None:
        self._write, self._flush = write, flush
        self._begin = time.monotonic()
        self._next = _PATIENCE
        self._length = 0

    def show(self, told: Iteration | Sampling) -> None:
        seconds = time.monotonic() - self._begin
        if seconds < self._next:
            return
        self._next = seconds + _PAUSE
        self._put(", ".join([*_parts(told), f"{seconds:.1f} s"]))

    def clear(self) -> None:
        if self._length:
            self._put("")

    def _put(self, text: str) -> None:
        # Blanks over what is left of the line before.
        self._write(f"\r{text}{' ' * (self._length - len(text))}" + ("" if text else "\r"))
        self._flush()
        self._length = len(text)


def _parts(told: Iteration | Sampling) -> list[str]:
    if isinstance(told, Sampling):
        return [f"sample {told.drawn:,} of {told.samples:,}"]
    parts = [f"iteration {told.number:,}", f"objective {told.objective:.6g}"]
    return parts if told.gradient_norm is None else [*parts, f"gradient {told.gradient_norm:.3g}"]
