"""Records one execution path of a program for a row that takes it, and runs the recording for all rows that do.

They are run block by block, on arrays of other libraries, or by batching rules. Programs for different paths may be
joined into one, which selects for each row the results of its own path.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Container, Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.arrays import backends
from gradcli.errors import BackendError, GradcliError, LimitError, NotBatchableError, NotRecordableError
from gradcli.evaluation import python_values
from gradcli.evaluation.derivative_traces import Trace, row_derivatives
from gradcli.evaluation.recording_cache import BoundedCache
from gradcli.executors import cpu
from gradcli.executors.executor_choice import executable
from gradcli.executors.row_blocks import Compute, RowBlocks, over_blocks
from gradcli.functionals import shortfalls
from gradcli.kinds.batch import Batched, new_batch_id, unbatched
from gradcli.primitives.bind import bind
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries import linear
from gradcli.primitives.entries.comparisons import logical_and, logical_or, where
from gradcli.primitives.entries.reductions import all_
from gradcli.primitives.primitive import Primitive
from gradcli.program.abstract import Abstract
from gradcli.program.ir import Atom, Equation, Executable, Program, Variable
from gradcli.program.passes import optimise
from gradcli.program.record import record
from gradcli.rows.row_inputs import SelectedRows

if TYPE_CHECKING:
    from gradcli.evaluation.callables import Computation

# Elements of one array in a block, a size that suits the caches; with fewer rows threads wait for each other.
_ELEMENTS = 2**15
# Block sizes in rows for fewer rows. They are multiples of the vector length of any processor, so that a row is
# computed as in a large block.
_FEWER_ROWS = (64, 1024, 8192)
# Rows times equations that are worth a thread; with less work, starting it takes longer than it saves.
_WORTH_A_THREAD = 2**20
# Bound on the elements of all intermediate results of a block. With a hundred equations it halves the block, which
# costs no time and halves the memory of each thread.
_MOST_KEPT = 3 * 2**20
# Cost of making a program for smaller blocks, in full blocks that could be computed meanwhile.
_MAKING_COST_IN_BLOCKS = 8

# Bound on the number of paths recorded for rows of one kind; a failed recording counts as `_FAILED` paths.
_MOST_PATHS = 64
_FAILED = 16
# The last paths to be recorded are not specific to the recorded row, but serve all rows for which they are valid.
_SHARED = 8
# Bounds in steps on recording one path and all paths. Recording a path takes as long as evaluating some tens of rows;
# after one that is too long, no more are recorded.
_LONGEST = 400_000
_STEPS = 1_000_000
# Bound on the cost of all paths together, in additions, below which every row computes all of them: selecting the rows
# of each path takes as long.
_SHORT = 48
# The step and element limits must be at least this for paths to be joined, since a joined path needs more than each of
# them.
_MIN_LIMIT_TO_JOIN = 1000
# Bound on the number of compiled programs; each is for one number of rows.
_MOST_PROGRAMS = 8


class Paths:
    """The recorded paths for rows whose inputs have the same shapes and dtypes."""

    def __init__(self) -> None:
        self.known: tuple[RowPath, ...] = ()
        # The number of paths that are joined, and the joined path; only for short paths.
        self.joined: tuple[int, RowPath] | None = None
        self.lock = threading.Lock()
        self._left = _MOST_PATHS
        self._steps = _STEPS

    @property
    def is_one(self) -> bool:
        """True if all rows are known to take the same path."""
        return any(path.is_everyones for path in self.known)

    def record(
        self,
        program: Computation,
        inputs: Mapping[str, Any],
        rows: SelectedRows,
        wrt: Sequence[str],
        order: int,
        most: tuple[int, int],
    ) -> None:
        """Record the path of one of `rows`, with these `inputs`, unless there are too many paths or it cannot be
        recorded."""
        if self._left <= 0 or self._steps <= 0:
            return
        for fixed in ({}, {name: inputs[name] for name in rows.shared}) if rows.shared else ({},):
            given = {name: value for name, value in inputs.items() if name not in fixed}
            budget = limits.Budget(min(most[0], _LONGEST), most[1])
            try:
                with (
                    limits.using_budget(budget),
                    arrays.using_dtype(python_values.dtype(inputs)),
                    arrays.using_namespace(None),
                ):
                    trace = row_derivatives(program, given, fixed, wrt, order, apart=self._left > _SHARED)
                path = RowPath(trace, given, frozenset(rows.columns), fixed, most)
                path.prepare(rows.count if rows.namespace is None else 1)
            except (NotRecordableError, NotBatchableError):
                # Next, record it with the shared inputs as constants.
                continue
            except LimitError:
                self._left = 0
                return
            except (GradcliError, MemoryError):
                break
            finally:
                self._steps -= budget.max_steps - budget.eighths // limits.UNITS_PER_STEP
            self._left -= 1
            self.known = (*self.known, path)
            self._join()
            return
        self._left -= _FAILED

    def _join(self) -> None:
        """Join paths of numbers alone into one program that selects among their results by their guards, if it costs at
        most `_SHORT`."""
        first, *others = self.known
        if not others or min(first.limits) < _MIN_LIMIT_TO_JOIN:
            return
        if any(path.fixed or path.positions != first.positions for path in self.known):
            return
        program = joined_paths([path.program for path in self.known])
        if program is not None and sum(e.primitive.time for e in program.equations) <= _SHORT:
            trace = Trace(program, (), first.positions, {})
            self.joined = len(self.known), RowPath(trace, first.inputs, first.columns, {}, first.limits)


class RowPath:
    """The recording of one row, valid for the rows for which its guards hold.

    `inputs` are those of the recorded row by name; those in `columns` vary between rows, and `fixed` are values that
    were recorded as constants. `limits` are those of steps and array elements for a row.
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
        # Whether all rows take this path.
        self.is_everyones = not self.program.guards and not fixed
        self.most_rows = _most_rows([arrays.size(e.output) for e in self.program.equations])
        dtypes = map(arrays.dtype_name, self.program.outputs)
        # Booleans are returned as 0 and 1.
        self._outputs = [
            (arrays.shape(a), "float64" if d == "bool" else d) for a, d in zip(self.program.outputs, dtypes)
        ]
        self._names = [v.name or "" for v in self.program.inputs]
        self._blocks: dict[tuple[int, bool], RowBlocks] = {}
        self._whole = ColumnProgram(self.program, columns, most)
        self._in_vain = 0

    def prepare(self, count: int) -> None:
        """Make the programs for this number of rows. Raises NotBatchableError where several rows cannot be computed at
        once."""
        size = self._size(count)
        if self.program.guards:
            self._of_size(size, guards=True)
        self._of_size(size, guards=False)

    def fits_shared(self, shared: Mapping[str, Any]) -> bool:
        """Return whether the path is valid for these shared inputs."""
        return all(_same(value, shared[name]) for name, value in self.fixed.items())

    def holds(self, rows: SelectedRows, threads: int) -> Any:
        """Return a boolean array of the rows for which the guards hold; None where there are no guards."""
        if not self.program.guards:
            return None
        held = arrays.numpy_namespace().zeros(rows.count, "bool")
        if rows.namespace is not None:
            found = self._whole.run(rows, guards=True)
            return held if found is None else arrays.to_numpy(found[0])
        self._run(self._inputs(rows.inputs), rows.count, [held], threads, guards=True)
        return held

    def run(self, rows: SelectedRows, threads: int) -> tuple[list[Any], Sequence[int], list[int]]:
        """Return the outputs for rows that satisfy the guards, the indices of those that failed, and of those whose
        results have few digits, where these are noted."""
        if rows.namespace is not None:
            found = self._whole.run(rows, guards=False)
            return ([], range(rows.count), []) if found is None else ([_floating(f, rows) for f in found], (), [])
        outputs, noted = self._empty(rows.count), _NotedRows()
        failed = self._run(self._inputs(rows.inputs), rows.count, outputs, threads, guards=False, noted=noted)
        return outputs, failed, sorted(noted.rows)

    def of_one(self, inputs: Mapping[str, Any]) -> tuple[list[Any], list[int]] | None:
        """Return the outputs for a single row of NumPy arrays that satisfies the guards, and the index of the row if its
        results have few digits, where that is noted; None on failure."""
        blocks = self._of_size(self._available_size(self._size(1), guards=False), guards=False)
        outputs, noted = self._empty(1), _NotedRows()
        compute = noted.by(functools.partial(blocks.compute, self._inputs(inputs), outputs), 0)
        return (outputs, sorted(noted.rows)) if compute(0, 1) else None

    def _empty(self, count: int) -> list[Any]:
        np = arrays.numpy_namespace()
        return [np.empty((count, *shape), dtype) for shape, dtype in self._outputs]

    def _inputs(self, given: Mapping[str, Any]) -> list[Any]:
        return [given[name] for name in self._names]

    def _run(
        self,
        inputs: Sequence[Any],
        count: int,
        outputs: Sequence[Any],
        threads: int,
        *,
        guards: bool,
        noted: _NotedRows | None = None,
        begin: int = 0,
    ) -> list[int]:
        """Fill `outputs`, and return the indices of the rows that failed, of which the first is `begin` for `noted`."""
        size = self._available_size(self._size(count), guards=guards)
        blocks = self._of_size(size, guards=guards)
        # The remainder is not a full block; a program for smaller blocks may exist.
        left = count % size if count > size else 0
        if left and self._available_size(self._size(left), guards=guards) == size:
            left = 0
        whole = count - left
        work = count * len(self.program.equations)
        at_once = max(1, min(threads, -(-count // size), work // _WORTH_A_THREAD))
        compute: Compute = functools.partial(blocks.compute, inputs, outputs)
        if noted is not None:
            compute = noted.by(compute, begin)
        lost = [
            row
            for block in over_blocks(compute, whole, size, at_once, pinned=True)
            for row in _failed_rows(compute, *block)
        ]
        if not left:
            return lost
        after = [output[whole:] for output in outputs]
        further = [value[whole:] if is_column else value for value, is_column in zip(inputs, blocks.columns)]
        rest = self._run(further, left, after, 1, guards=guards, noted=noted, begin=begin + whole)
        return [*lost, *(whole + row for row in rest)]

    def _size(self, count: int) -> int:
        return min(self.most_rows, next((size for size in _FEWER_ROWS if count <= 4 * size), self.most_rows))

    def _available_size(self, size: int, *, guards: bool) -> int:
        """Return the block size of an existing program that can replace blocks of `size`, until the waste is worth a
        new program."""
        larger = [known for known, joined in self._blocks if joined == guards and known >= size]
        if not larger or self._in_vain > _MAKING_COST_IN_BLOCKS * self.most_rows:
            return size
        self._in_vain += min(larger) - size
        return min(larger)

    def _of_size(self, size: int, *, guards: bool) -> RowBlocks:
        blocks = self._blocks.get((size, guards))
        if blocks is None:
            program = self._by_rows(self.program.guards if guards else self.program.outputs, size, joined=guards)
            run = cpu.executable(optimise(program), reproducible=True)
            blocks = RowBlocks(run, size, [name in self.columns for name in self._names], self.limits)
            self._blocks[size, guards] = blocks
        return blocks

    def _by_rows(self, atoms: Sequence[Atom], size: int, *, joined: bool) -> Program:
        """Record the program that evaluates `atoms` for `size` rows; with `joined`, whether all are true for each
        row."""

        def run(**given: Any) -> list[Any]:
            return _computed(self.program, atoms, given, self.columns, size, joined=joined)

        examples = {
            name: broadcast_to(value, (size, *arrays.shape(value))) if name in self.columns else value
            for name, value in self.inputs.items()
        }
        with limits.within(), arrays.using_namespace(None):
            return record(run, examples).program


class _NotedRows:
    """The indices of the rows whose results have few digits, where these are noted."""

    def __init__(self) -> None:
        self.rows: set[int] = set()

    def by(self, compute: Compute, begin: int) -> Compute:
        """`compute`, whose row 0 has the index `begin`, which notes the rows."""
        if not shortfalls.is_noting_rows():
            return compute

        def noting(start: int, stop: int) -> bool:
            with shortfalls.noting_rows() as noted:
                done = compute(start, stop)
            if done:
                self.rows.update(begin + row for row in _rows_of(noted, start, stop))
            return done

        return noting


def _rows_of(noted: Sequence[Any], start: int, stop: int) -> Iterable[int]:
    """The rows of a block with a mark; all of them where a mark is that of no row, as of an equation that reads no
    column."""
    found: set[int] = set()
    for marks in noted:
        if not marks.any():
            continue
        if len(arrays.shape(marks)) == 0 or len(marks) < stop - start:
            return range(start, stop)
        found.update(start + row for row in marks[: stop - start].reshape(stop - start, -1).any(axis=1).nonzero()[0])
    return found


def _failed_rows(compute: Compute, start: int, stop: int) -> list[int]:
    """Return the rows of a failed block that fail on their own; the other rows are computed."""
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


def _floating(result: Any, rows: SelectedRows) -> Any:
    """A result as a floating-point array of the library of the rows that shares no memory with them; booleans become 0
    and 1."""
    assert rows.namespace is not None
    array = rows.namespace.asarray(result)
    array = array if arrays.is_inexact(array) else rows.namespace.astype(array, python_values.dtype(rows.inputs))
    return arrays.unshared(array, rows.inputs.values())


def _most_rows(sizes: Sequence[int]) -> int:
    """The number of rows in a block, a power of 2, from the sizes of the results of all equations for one row."""
    most = min(_ELEMENTS // max(1, *sizes, 1), _MOST_KEPT // max(1, sum(sizes)))
    return 1 << max(1, most).bit_length() - 1


def _same(a: Any, b: Any) -> bool:
    np = arrays.numpy_namespace()
    return arrays.dtype_name(a) == arrays.dtype_name(b) and np.array_equal(a, b, equal_nan=True)


class ColumnProgram:
    """A single-row program whose inputs in `columns` have a value for each row.

    It runs equation by equation, or compiled by the library of the columns where that pays.
    """

    def __init__(self, program: Program, columns: Container[str], most: tuple[int, int]) -> None:
        self._program = program
        self._columns = columns
        self._limits = most
        self._largest = max((arrays.size(e.output) for e in program.equations), default=1)
        # By key: the compiled program; None where it has not paid so far, `_refused` where it cannot be compiled.
        self._compiled: BoundedCache[Any, Executable | None] = BoundedCache(_MOST_PROGRAMS)
        self._lock = Lock()

    def run(self, rows: SelectedRows, *, guards: bool) -> list[Any] | None:
        """Return the outputs for all rows, or with `guards` whether all guards hold for each row; None on failure."""
        atoms = self._program.guards if guards else self._program.outputs
        key = rows.namespace, rows.count, guards
        compiled = self._executable(key, rows, atoms)
        steps, elements = self._limits
        try:
            with limits.within(steps, elements * rows.count), arrays.using_namespace(rows.namespace), arrays.quiet():
                found = None if compiled is None else self._by_library(key, compiled, rows)
                return found or _computed(
                    self._program,
                    atoms,
                    rows.inputs,
                    self._columns,
                    rows.count,
                    joined=guards,
                    namespace=rows.namespace,
                )
        except (GradcliError, MemoryError):
            return None

    def _by_library(self, key: Any, compiled: Executable, rows: SelectedRows) -> list[Any] | None:
        """Run the compiled program; None where it fails or refuses these rows."""
        try:
            found = compiled([rows.inputs[v.name] for v in self._program.inputs if v.name is not None])
        except BackendError:
            # A failed compiler is not tried again.
            self._keep(key, _refused)
            return None
        except GradcliError:
            # For example, memory may suffice for running one operation at a time.
            return None
        return None if found is None else [*found]

    def _executable(self, key: Any, rows: SelectedRows, atoms: Sequence[Atom]) -> Executable | None:
        """Return the compiled program for this number of rows; None where there is none.

        It is compiled at the second call with the same number of rows.
        """
        backend = backends.of_namespace(rows.namespace)
        with self._lock:
            known, seen = self._compiled.get(key), key in self._compiled
        if backend is None or known is not None:
            return known
        if not seen or self._largest * rows.count < backend.worth_on(rows.namespace).again:
            return self._keep(key, None)
        try:
            return self._keep(key, executable(self._recorded(rows, atoms, guards=key[-1]), rows.namespace))
        except GradcliError:
            return self._keep(key, _refused)

    def _keep(self, key: Any, run: Executable | None) -> Executable | None:
        with self._lock:
            self._compiled[key] = run
        return run

    def _recorded(self, rows: SelectedRows, atoms: Sequence[Atom], *, guards: bool) -> Program:
        def run(**given: Any) -> list[Any]:
            return _computed(self._program, atoms, given, self._columns, rows.count, joined=guards)

        examples = {n: Abstract(arrays.shape(a), arrays.dtype_name(a)) for n, a in rows.inputs.items()}
        with limits.within(), arrays.using_namespace(None):
            return optimise(record(run, examples).program)


def _refused(_inputs: Sequence[Any]) -> None:
    """Stands for a program that cannot be compiled."""


def _computed(
    program: Program,
    atoms: Sequence[Atom],
    given: Mapping[str, Any],
    columns: Container[str],
    size: int,
    *,
    joined: bool,
    namespace: arrays.Namespace | None = None,
) -> list[Any]:
    """Evaluate `atoms` of a single-row program for `size` rows, equation by equation.

    `given` has the inputs by name; those in `columns` have a leading axis of rows. With `joined`, return a single
    boolean for each row: whether all atoms are true.
    """
    nesting = new_batch_id()
    known = {
        v: Batched(given[v.name], nesting) if v.name in columns else given[v.name]
        for v in program.inputs
        if v.name is not None
    }

    def value(atom: Atom) -> Any:
        if isinstance(atom, Variable):
            return known[atom]
        return atom if namespace is None else python_values.in_namespace(atom, namespace)

    for equation in program.equations:
        operands = [value(a) for a in equation.inputs]
        if equation.primitive is linear.matmul and any(isinstance(o, Batched) for o in operands):
            # A single product of all rows with a shared matrix would round differently depending on the position of a
            # row.
            operands = [Batched(unbatched(o, nesting, size), nesting) for o in operands]
        known[equation.output] = bind(equation.primitive, operands, equation.params)
    found = [value(a) for a in atoms]
    if joined:
        found = [functools.reduce(logical_and, (all_(f) if arrays.shape(f) else f for f in found))]
    return [unbatched(f, nesting, size) for f in found]


def joined_paths(programs: Sequence[Program]) -> Program | None:
    """Return a program with the outputs of the first of `programs` whose guards hold, valid for inputs for which there
    is one.

    None where not all programs can be evaluated for all numbers: they must be scalar and must not fail. The programs
    have inputs of the same names, equal numbers of outputs, and guards.
    """
    if not all(map(_is_of_numbers, programs)):
        return None
    inputs = {v.name: v for program in programs for v in program.inputs}
    equations: list[Equation] = []

    def apply(primitive: Primitive, *operands: Atom, dtype: str) -> Variable:
        result = Variable((), dtype)
        equations.append(Equation(primitive, operands, {}, result))
        return result

    def both(a: Atom, b: Atom) -> Variable:
        return apply(logical_and, a, b, dtype="bool")

    outputs: Sequence[Atom] = ()
    known: Atom = None
    for program in reversed(programs):
        own = {v: inputs[v.name] for v in program.inputs}
        equations += (e._replace(inputs=tuple(_among(own, a) for a in e.inputs)) for e in program.equations)
        held = functools.reduce(both, (_among(own, guard) for guard in program.guards))
        found = [_among(own, output) for output in program.outputs]
        if known is None:
            outputs, known = found, held
        else:
            outputs = [apply(where, held, a, b, dtype="float64") for a, b in zip(found, outputs)]
            known = apply(logical_or, held, known, dtype="bool")
    return Program(tuple(inputs.values()), tuple(equations), tuple(outputs), (known,))


def _is_of_numbers(program: Program) -> bool:
    atoms = [*program.inputs, *(e.output for e in program.equations), *program.outputs]
    return (
        bool(program.guards)
        and all(e.primitive.elementwise and not e.primitive.fails for e in program.equations)
        and not any(map(arrays.shape, atoms))
        and all(arrays.dtype_name(output) == "float64" for output in program.outputs)
    )


def _among(own: dict[Variable, Variable], atom: Any) -> Any:
    return own.get(atom, atom) if isinstance(atom, Variable) else atom
