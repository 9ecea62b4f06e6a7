"""One way through a program, recorded for a row that takes it, and run for all rows that do, block by block."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.errors import GradcliError, LimitError, NotBatchableError, NotRecordableError
from gradcli.executors import on_host
from gradcli.executors.row_blocks import Compute, RowBlocks, over_blocks
from gradcli.primitives.conversions import broadcast_to
from gradcli.program.ir import Atom, Program
from gradcli.program.joined import joined
from gradcli.program.passes import optimise
from gradcli.program.record import record
from gradcli.run import converted
from gradcli.run.row_batches import computed
from gradcli.run.row_columns import WholeColumns
from gradcli.run.row_inputs import Rows
from gradcli.run.trace import Trace, row_derivatives

if TYPE_CHECKING:
    from gradcli.run.callables import Computation

# So many elements of an array that a block computes suit the caches; with fewer rows threads wait for each other.
_ELEMENTS = 2**15
# Rows in a block where there are fewer; whole vectors of any processor, so that each row is computed as in a large one.
_FEWER_ROWS = (64, 1024, 8192)
# Rows times equations for one thread: with fewer, starting it takes longer than it saves.
_WORTH_A_THREAD = 2**20
# So many elements are kept while a program for a block is made: with a hundred equations blocks are half as large, which
# takes no longer and half of the memory of each thread.
_MOST_KEPT = 3 * 2**20
# To make a program for smaller blocks takes as long as to compute so many whole ones.
_MAKING = 8

# So many paths are recorded for rows of one kind; a recording that fails for what it met counts as some of them.
_MOST_PATHS = 64
_FAILED = 16
# Rows take their own path each, whichever was recorded first; the last paths are for all rows that they are right for.
_SHARED = 8
# A path of more steps is not recorded, which takes as long as to evaluate some tens of rows, and none are after it; nor
# are more in all of them.
_LONGEST = 400_000
_STEPS = 1_000_000
# Where paths are as short as that together, in the time of additions, rows are not picked apart, which takes as long as
# to compute all of them for every row.
_SHORT = 48
# With less, what one path may take is not enough for several.
_ROOM = 1000


class Paths:
    """The paths of rows whose inputs have the same shapes and dtypes."""

    def __init__(self) -> None:
        self.known: tuple[RowPath, ...] = ()
        # So many of these as one, where they are short.
        self.joined: tuple[int, RowPath] | None = None
        self.lock = threading.Lock()
        self._left = _MOST_PATHS
        self._steps = _STEPS

    @property
    def is_one(self) -> bool:
        """Whether all rows are known to take the same path."""
        return any(path.is_everyones for path in self.known)

    def record(
        self,
        program: Computation,
        inputs: Mapping[str, Any],
        rows: Rows,
        wrt: Sequence[str],
        order: int,
        most: tuple[int, int],
    ) -> None:
        """Know the path of one of `rows` with these inputs, unless there are too many, or it cannot be recorded."""
        if self._left <= 0 or self._steps <= 0:
            return
        for fixed in ({}, {name: inputs[name] for name in rows.shared}) if rows.shared else ({},):
            given = {name: value for name, value in inputs.items() if name not in fixed}
            budget = limits.Budget(min(most[0], _LONGEST), most[1])
            try:
                with (
                    limits.spending(budget),
                    arrays.using_dtype(converted.dtype(inputs)),
                    arrays.using_namespace(None),
                ):
                    trace = row_derivatives(program, given, fixed, wrt, order, apart=self._left > _SHARED)
                path = RowPath(trace, given, frozenset(rows.columns), fixed, most)
                path.prepare(rows.count if rows.namespace is None else 1)
            except (NotRecordableError, NotBatchableError):
                # Numbers that all rows share are known when it is recorded for them alone.
                continue
            except LimitError:
                self._left = 0
                return
            except (GradcliError, MemoryError):
                break
            finally:
                self._steps -= budget.max_steps - budget.eighths // limits.STEP
            self._left -= 1
            self.known = (*self.known, path)
            self._join()
            return
        self._left -= _FAILED

    def _join(self) -> None:
        """Have the paths as one, where they differ in their numbers alone."""
        first, *others = self.known
        if not others or min(first.limits) < _ROOM:
            return
        if any(path.fixed or path.positions != first.positions for path in self.known):
            return
        program = joined([path.program for path in self.known])
        if program is not None and sum(e.primitive.time for e in program.equations) <= _SHORT:
            trace = Trace(program, (), first.positions, {})
            self.joined = len(self.known), RowPath(trace, first.inputs, first.columns, {}, first.limits)


class RowPath:
    """A recording of one row, good for the rows for which its guards hold.

    `inputs` are those of the recorded row by name, of which `columns` have others in other rows, and `fixed` are numbers
    that it was recorded with, rather than inputs of it. A row may take `most` steps and array elements.
    """

    def __init__(
        self,
        trace: Trace,
        inputs: Mapping[str, Any],
        columns: frozenset[str],
        fixed: Mapping[str, Any],
        most: tuple[int, int],
    ) -> None:
        self.positions = trace.positions
        self.program = optimise(trace.program)
        self.inputs = inputs
        self.columns = columns
        self.fixed = fixed
        self.limits = most
        # Whether all rows take it.
        self.is_everyones = not self.program.guards and not fixed
        self.most_rows = _most_rows([arrays.size(e.output) for e in self.program.equations])
        dtypes = map(arrays.dtype_name, self.program.outputs)
        # Truth values are written as 0 and 1.
        self._outputs = [
            (arrays.shape(a), "float64" if d == "bool" else d) for a, d in zip(self.program.outputs, dtypes)
        ]
        self._names = [v.name or "" for v in self.program.inputs]
        self._blocks: dict[tuple[int, bool], RowBlocks] = {}
        self._whole = WholeColumns(self.program, columns, most)
        self._in_vain = 0

    def prepare(self, count: int) -> None:
        """Have what runs so many rows. Raises NotBatchableError for what cannot be done with several at once."""
        size = self._size(count)
        if self.program.guards:
            self._of_size(size, guards=True)
        self._of_size(size, guards=False)

    def suits(self, shared: Mapping[str, Any]) -> bool:
        """Whether it is good for these inputs that are the same for all rows."""
        return all(_same(value, shared[name]) for name, value in self.fixed.items())

    def holds(self, rows: Rows, threads: int) -> Any:
        """For which rows its guards hold, None for all."""
        if not self.program.guards:
            return None
        held = arrays.numpy_namespace().zeros(rows.count, "bool")
        if rows.namespace is not None:
            found = self._whole.run(rows, guards=True)
            return held if found is None else arrays.to_numpy(found[0])
        self._run(self._inputs(rows.inputs), rows.count, [held], threads, guards=True)
        return held

    def run(self, rows: Rows, threads: int) -> tuple[list[Any], Sequence[int]]:
        """The outputs for rows for which its guards hold, and the rows for which it failed."""
        if rows.namespace is not None:
            found = self._whole.run(rows, guards=False)
            return ([], range(rows.count)) if found is None else ([_floating(f, rows) for f in found], ())
        outputs = self._empty(rows.count)
        return outputs, self._run(self._inputs(rows.inputs), rows.count, outputs, threads, guards=False)

    def of_one(self, inputs: Mapping[str, Any]) -> list[Any] | None:
        """The outputs for one row of NumPy for which its guards hold, None where it fails."""
        blocks = self._of_size(self._at_hand(self._size(1), guards=False), guards=False)
        outputs = self._empty(1)
        return outputs if blocks.compute(self._inputs(inputs), outputs, 0, 1) else None

    def _empty(self, count: int) -> list[Any]:
        np = arrays.numpy_namespace()
        return [np.empty((count, *shape), dtype) for shape, dtype in self._outputs]

    def _inputs(self, given: Mapping[str, Any]) -> list[Any]:
        return [given[name] for name in self._names]

    def _run(
        self, inputs: Sequence[Any], count: int, outputs: Sequence[Any], threads: int, *, guards: bool
    ) -> list[int]:
        """Fill the outputs, and the rows that it could not be run for."""
        size = self._at_hand(self._size(count), guards=guards)
        blocks = self._of_size(size, guards=guards)
        # What is left is no whole block, and there may be a program for fewer rows.
        left = count % size if count > size else 0
        if left and self._at_hand(self._size(left), guards=guards) == size:
            left = 0
        whole = count - left
        work = count * len(self.program.equations)
        at_once = max(1, min(threads, -(-count // size), work // _WORTH_A_THREAD))
        compute = functools.partial(blocks.compute, inputs, outputs)
        lost = [
            row
            for block in over_blocks(compute, whole, size, at_once, stay=True)
            for row in _failing_alone(compute, *block)
        ]
        if not left:
            return lost
        after = [output[whole:] for output in outputs]
        further = [value[whole:] if is_column else value for value, is_column in zip(inputs, blocks.columns)]
        return [*lost, *(whole + row for row in self._run(further, left, after, 1, guards=guards))]

    def _size(self, count: int) -> int:
        return min(self.most_rows, next((size for size in _FEWER_ROWS if count <= 4 * size), self.most_rows))

    def _at_hand(self, size: int, *, guards: bool) -> int:
        """The size of blocks for which there is a program that does for blocks of `size`, until another one has been worth
        the while to make."""
        larger = [known for known, joined in self._blocks if joined == guards and known >= size]
        if not larger or self._in_vain > _MAKING * self.most_rows:
            return size
        self._in_vain += min(larger) - size
        return min(larger)

    def _of_size(self, size: int, *, guards: bool) -> RowBlocks:
        blocks = self._blocks.get((size, guards))
        if blocks is None:
            program = self._by_rows(self.program.guards if guards else self.program.outputs, size, joined=guards)
            run = on_host.executable(optimise(program), reproducible=True)
            blocks = RowBlocks(run, size, [name in self.columns for name in self._names], self.limits)
            self._blocks[size, guards] = blocks
        return blocks

    def _by_rows(self, atoms: Sequence[Atom], size: int, *, joined: bool) -> Program:
        """The program for `size` rows that gives the values of `atoms` for each; `joined`, whether all are true."""

        def run(**given: Any) -> list[Any]:
            return computed(self.program, atoms, given, self.columns, size, joined=joined)

        examples = {
            name: broadcast_to(value, (size, *arrays.shape(value))) if name in self.columns else value
            for name, value in self.inputs.items()
        }
        with limits.within(), arrays.using_namespace(None):
            return record(run, examples).program


def _failing_alone(compute: Compute, start: int, stop: int) -> list[int]:
    """The rows of a block that fails which fail by themselves; the others are computed."""
    failed = []
    waiting = [(start, stop)]
    while waiting:
        start, stop = waiting.pop()
        if stop - start == 1:
            failed.append(start)
            continue
        middle = (start + stop) // 2
        for part in ((start, middle), (middle, stop)):
            if not compute(*part):
                waiting.append(part)
    return sorted(failed)


def _floating(result: Any, rows: Rows) -> Any:
    """A result as an array of the library of the rows, apart from them; truth values as 0 and 1."""
    assert rows.namespace is not None
    array = rows.namespace.asarray(result)
    array = array if arrays.is_floating(array) else rows.namespace.astype(array, converted.dtype(rows.inputs))
    return arrays.unshared(array, rows.inputs.values())


def _most_rows(sizes: Sequence[int]) -> int:
    """How many rows a block has, a power of 2, where equations for one row have results of these sizes."""
    most = min(_ELEMENTS // max(1, *sizes, 1), _MOST_KEPT // max(1, sum(sizes)))
    return 1 << max(1, most).bit_length() - 1


def _same(a: Any, b: Any) -> bool:
    np = arrays.numpy_namespace()
    return arrays.dtype_name(a) == arrays.dtype_name(b) and np.array_equal(a, b, equal_nan=True)
