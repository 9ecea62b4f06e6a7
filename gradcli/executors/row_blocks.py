"""Run a program that is compiled for a fixed number of rows on any number of rows, in blocks on several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import GradcliError
from gradcli.executors import thread_pool
from gradcli.program.ir import Executable

# Computes the rows [start, stop), and returns whether that succeeded.
Compute = Callable[[int, int], bool]


class RowBlocks:
    """A program for `size` rows, applied to more: the inputs in `columns` have the rows as their first axis.

    The last block is padded with copies of its last row, so that each row is computed in the same way wherever it
    stands. Each row may take the numbers of steps and array elements in `most`.
    """

    def __init__(self, run: Executable, size: int, columns: Sequence[bool], most: tuple[int, int]) -> None:
        self.run = run
        self.size = size
        self.columns = columns
        self.limits = most[0], most[1] * size
        self._places = arrays.numpy_namespace().arange(size)

    def compute(self, inputs: Sequence[Any], outputs: Sequence[Any], start: int, stop: int) -> bool:
        """Compute the rows [start, stop), at most a block, into their places in `outputs`.

        Returns False if the program raises an error or a guard fails for one of them.
        """
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


def over_blocks(
    compute: Compute, count: int, size: int, threads: int, *, pinned: bool = False
) -> list[tuple[int, int]]:
    """Compute `count` rows in blocks, and return the blocks that failed.

    With `pinned`, each thread stays on one core, see `thread_pool.work`.
    """
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

    # A context can be entered by one thread at a time only.
    contexts = [copy_context() for _ in range(threads)]
    thread_pool.work(lambda: contexts.pop().run(work), threads, pinned=pinned)
    if errors:
        raise errors[0]
    return sorted(failed)
