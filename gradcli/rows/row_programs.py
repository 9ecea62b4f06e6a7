"""Runs a program for each row of a table: values and derivatives."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.errors import BindingError, GradcliError
from gradcli.evaluation import python_values
from gradcli.evaluation.recording_cache import BoundedCache, input_key
from gradcli.evaluation.row_evaluation import evaluated, keys
from gradcli.executors.row_blocks import over_blocks
from gradcli.executors.thread_pool import cores
from gradcli.functionals import shortfalls
from gradcli.limits import MAX_ELEMENTS, MAX_LIMITED_ROWS, MAX_STEPS
from gradcli.rows.row_inputs import SelectedRows, counted, uniform
from gradcli.rows.row_paths import Paths, RowPath
from gradcli.rows.row_results import RowCollector, RowResults

if TYPE_CHECKING:
    from gradcli.evaluation.callables import Computation

# Rows that are divided among paths at a time.
_PART = 2**17
# With fewer rows, joining paths does not pay, because it takes another program.
_JOINED = 2**14
# Bound on the number of kinds of rows, by shapes and dtypes, that are kept.
_MOST_KINDS = 32


class RowProgram:
    """A program or Python function that is evaluated for each row separately.

    `wrt` are the inputs to differentiate by, columns or shared, up to `order`. Each row may take `max_steps` steps and
    compute `max_elements` array elements, as if it were evaluated alone. Several threads may run it at once.
    """

    def __init__(
        self,
        program: Computation,
        wrt: Sequence[str],
        order: int = 1,
        *,
        max_steps: int = MAX_STEPS,
        max_elements: int = MAX_ELEMENTS,
    ) -> None:
        self.program = program
        self.wrt = tuple(wrt)
        self.order = order
        self.keys = keys(self.wrt, order)
        self.limits = max_steps, max_elements
        self._kinds: BoundedCache[Any, Paths] = BoundedCache(_MOST_KINDS)
        self._lone: SingleRowRunner | None = None
        self._lock = threading.Lock()

    @property
    def is_one_path(self) -> bool:
        """True if all rows so far took the same path."""
        with self._lock:
            return all(paths.is_one for paths in self._kinds.values())

    def run(
        self,
        columns: Mapping[str, Any],
        shared: Mapping[str, Any],
        *,
        rows: int | None = None,
        threads: int | None = None,
        most_limited: int = MAX_LIMITED_ROWS,
    ) -> RowResults:
        """Return the results for the rows of `columns`, arrays of shape `[n, …]` or object arrays of n arrays.

        `shared` are inputs that all rows share. Results are arrays of the library of the inputs. `rows` is n where
        there are no columns; `threads` is the number of threads (None: one for each core). When more than
        `most_limited` rows have reached a limit, the remaining rows that would be evaluated one by one fail.

        Raises ShapeError for columns of different lengths, and BindingError for a missing input in `wrt`. Errors of
        single rows are in `failures`.
        """
        count = counted(columns, rows)
        missing = [n for n in self.wrt if n not in columns and n not in shared]
        if missing:
            raise BindingError(f"cannot differentiate by '{missing[0]}', which has no value")
        given = {name: python_values.value(value) for name, value in shared.items()}
        lone = {**given, **columns} if count == 1 else {}
        found = self._lone.results(lone) if lone and self._lone is not None else None
        if found is not None:
            return found
        namespace = arrays.foreign_namespace([*columns.values(), *given.values()])
        gathered = RowCollector(count, self.keys, most_limited, namespace)
        for group in uniform(columns, given, count, namespace):
            if group.count:
                self._run_group(group, gathered, threads or cores())
                if lone:
                    self._remember(group, lone)
        return gathered.results()

    def _remember(self, row: SelectedRows, inputs: Mapping[str, Any]) -> None:
        """Keep the path of a single row for later single rows, where all rows of its kind take it."""
        path = next(iter(self._paths_of(row).known), None)
        own = row.namespace is None and all(inputs[name] is column for name, column in row.columns.items())
        if own and path is not None and path.is_everyones:
            self._lone = SingleRowRunner(path, inputs)

    def _run_group(self, rows: SelectedRows, gathered: RowCollector, threads: int) -> None:
        """Compute rows whose inputs have the same shapes.

        Many rows on several paths are processed in parts, so that selecting the rows of a path and putting back their
        results stays in nearby memory.
        """
        paths = self._paths_of(rows)
        if rows.count <= _PART or rows.namespace is not None or paths.is_one or paths.joined is not None:
            self._run_uniform(rows, paths, gathered, threads)
            return

        def compute(start: int, stop: int) -> bool:
            self._run_uniform(rows.chosen(slice(start, stop)), paths, gathered, 1)
            return True

        over_blocks(compute, rows.count, _PART, threads)

    def _run_uniform(self, rows: SelectedRows, paths: Paths, gathered: RowCollector, threads: int) -> None:
        """Compute rows of one kind, whose paths are `paths`."""
        # Rows for which a path was recorded: because of rounding, the path may still not be valid for them.
        recorded: set[int] = set()
        seen = 0
        left: SelectedRows | None = rows
        if paths.joined is not None and rows.count >= _JOINED:
            seen, joined = paths.joined
            left = self._along(joined, rows, gathered, threads)
        while left is not None:
            known = paths.known
            for path in known[seen:]:
                left = self._along(path, left, gathered, threads)
                if left is None:
                    return
            seen = len(known)
            left = self._one_by_one(left, paths, seen, recorded, gathered)

    def _paths_of(self, rows: SelectedRows) -> Paths:
        kind = rows.kind
        with self._lock:
            paths = self._kinds.get(kind)
            if paths is None:
                paths = self._kinds[kind] = Paths()
            return paths

    def _along(self, path: RowPath, rows: SelectedRows, gathered: RowCollector, threads: int) -> SelectedRows | None:
        """Compute the rows that take a path, and return the others; None where none are left."""
        if not path.fits_shared(rows.shared):
            return rows
        held = path.holds(rows, threads)
        everyone = held is None or held.all()
        taken = rows if everyone else rows.chosen(held)
        if taken.count:
            outputs, failed, inaccurate = path.run(taken, threads)
            gathered.inaccurate.update(int(taken.numbers[place]) for place in inaccurate)
            if len(failed) < taken.count:
                for output in outputs if failed else ():
                    output[failed] = math.nan
                found = {key: None if i is None else outputs[i] for key, i in path.positions.items()}
                gathered.put(taken.numbers, outputs[0], found)
            for place in failed:
                alone = self._alone(taken, place, gathered)
                if alone is not None:
                    gathered.put_one(int(taken.numbers[place]), *alone)
        return None if everyone else rows.chosen(~held)

    def _one_by_one(
        self, rows: SelectedRows, paths: Paths, seen: int, recorded: set[int], gathered: RowCollector
    ) -> SelectedRows | None:
        """Evaluate rows one by one until a new path is known, and return the rows that are left; None where none are
        left."""
        for place in range(rows.count):
            alone = self._alone(rows, place, gathered)
            if alone is None:
                continue
            with paths.lock:
                number = int(rows.numbers[place])
                if len(paths.known) == seen and number not in recorded:
                    recorded.add(number)
                    paths.record(self.program, rows.row(place), rows, self.wrt, self.order, self.limits)
            if len(paths.known) > seen:
                return rows.chosen(slice(place, None))
            gathered.put_one(number, *alone)
        return None

    def _alone(self, rows: SelectedRows, place: int, gathered: RowCollector) -> tuple[Any, Mapping[str, Any]] | None:
        """Evaluate one row separately; None where that fails."""
        if gathered.has_too_many_limited():
            gathered.fail(int(rows.numbers[place]), gathered.too_many_limited_error())
            return None
        try:
            with shortfalls.noting_rows() if shortfalls.is_noting_rows() else nullcontext(()) as noted:
                value, found, _ = evaluated(self.program, rows.row(place), self.wrt, self.order, self.limits)
        except GradcliError as error:
            gathered.fail(int(rows.numbers[place]), error)
            return None
        if any(mask.any() for mask in noted):
            gathered.inaccurate.add(int(rows.numbers[place]))
        return value, found


# --- rows that arrive one at a time


class SingleRowRunner:
    """Computes single rows by an execution path that all rows take.

    `inputs` are those of an example row: NumPy columns of shape `[1, …]` and shared inputs.
    """

    def __init__(self, path: RowPath, inputs: Mapping[str, Any]) -> None:
        self._key = input_key(inputs, ())
        self._path = path

    def results(self, inputs: Mapping[str, Any]) -> RowResults | None:
        """Return the results of a row; None where its inputs have other types, shapes or dtypes, or its evaluation
        fails."""
        found = self._path.of_one(inputs) if input_key(inputs, ()) == self._key else None
        if found is None:
            return None
        outputs, inaccurate = found
        derivatives = {k: None if i is None else outputs[i] for k, i in self._path.positions.items()}
        return RowResults(outputs[0], derivatives, inaccurate=inaccurate)
