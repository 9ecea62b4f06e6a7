"""A program for so many rows at a time, run for any number of them: block by block, on several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import GradcliError
from gradcli.executors import team
from gradcli.program.ir import Executable

# From a block's first row and the row behind its last to whether it was computed.
Compute = Callable[[int, int], bool]


class RowBlocks:
    """A program for `size` rows over more: the first axis of those inputs that are `columns` are rows.

    Rows that are missing in the last block are copies of its last one, so that each row is computed as all others are,
    wherever it stands. Each row may take `most` steps and array elements.
    """

    def __init__(self, run: Executable, size: int, columns: Sequence[bool], most: tuple[int, int]) -> None:
        self.run = run
        self.size = size
        self.columns = columns
        self.limits = most[0], most[1] * size
        self._places = arrays.numpy_namespace().arange(size)

    def compute(self, inputs: Sequence[Any], outputs: Sequence[Any], start: int, stop: int) -> bool:
        """Put what the rows from `start` to `stop`, no more than a block has, give into their place in `outputs`; False
        where the program fails for one of them, or is not good for it."""
        try:
            with limits.within(*self.limits):
                found = self.run([self._rows(a, start, stop) if c else a for a, c in zip(inputs, self.columns)])
        except (GradcliError, MemoryError):
            return False
        if found is None:
            return False
        for output, result in zip(outputs, found):
            output[start:stop] = result[: stop - start] if arrays.shape(result) else result
        return True

    def _rows(self, column: Any, start: int, stop: int) -> Any:
        rows = column[start:stop]
        return rows if stop - start == self.size else rows.take(self._places, 0, mode="clip")


def over_blocks(compute: Compute, count: int, size: int, threads: int, *, stay: bool = False) -> list[tuple[int, int]]:
    """Have every block of `count` rows computed, and the blocks that were not. The threads `stay` on a core each, see
    `team.work`."""
    if count <= size:
        return [] if compute(0, count) else [(0, count)]
    failed: list[tuple[int, int]] = []
    errors: list[BaseException] = []
    starts = iter(range(0, count, size))

    def work() -> None:
        try:
            for start in starts:
                if errors:
                    return
                block = start, min(start + size, count)
                if not compute(*block):
                    failed.append(block)
        except BaseException as error:
            errors.append(error)

    # A context is for one thread at a time.
    contexts = [copy_context() for _ in range(threads)]
    team.work(lambda: contexts.pop().run(work), threads, stay=stay)
    if errors:
        raise errors[0]
    return sorted(failed)
