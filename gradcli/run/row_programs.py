"""Programs over the rows of a table: the value and the derivatives of each row."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.errors import BindingError, GradcliError
from gradcli.executors.row_blocks import over_blocks
from gradcli.executors.team import cores
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS, MOST_LIMITED
from gradcli.run import converted
from gradcli.run.lone_rows import LoneRows
from gradcli.run.row_inputs import Rows, counted, uniform
from gradcli.run.row_paths import Paths, RowPath
from gradcli.run.row_results import Gathered, RowResults
from gradcli.run.single_rows import evaluated, keys

if TYPE_CHECKING:
    from gradcli.run.callables import Computation

# So many rows are picked apart at a time.
_PART = 2**17
# For fewer, paths are not run together, which takes a program more.
_JOINED = 2**14
# So many kinds of rows, by their shapes and dtypes, are known at a time.
_MOST_KINDS = 32


class RowProgram:
    """A program, or a function of Python's, that is run for each row by itself.

    `wrt` are the inputs to differentiate by, columns or what all rows share, up to `order`. Each row may take
    `max_steps` steps and compute `max_elements` array elements, as if it were evaluated alone. It may be run by several
    threads at once.
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
        self._kinds: dict[Any, Paths] = {}
        self._lone: LoneRows | None = None
        self._lock = threading.Lock()

    @property
    def is_one_path(self) -> bool:
        """Whether all rows so far took the same path."""
        with self._lock:
            return all(paths.is_one for paths in self._kinds.values())

    def run(
        self,
        columns: Mapping[str, Any],
        shared: Mapping[str, Any],
        *,
        rows: int | None = None,
        threads: int | None = None,
        most_limited: int = MOST_LIMITED,
    ) -> RowResults:
        """The results for the rows of `columns`, arrays of shape `[n, …]`, or of n objects that are arrays each;
        `shared` are inputs that are the same for all of them. They are arrays of the library of the inputs.

        `rows` is n where there are no columns, and `threads` how many may work at a time, None for one on each core.
        When more than `most_limited` rows have reached a limit, those that are left and would be evaluated alone fail.

        Raises ShapeError for columns of different lengths, and BindingError for an input to differentiate by that is
        not there. What evaluating a row raises is among the `failures`.
        """
        count = counted(columns, rows)
        missing = [n for n in self.wrt if n not in columns and n not in shared]
        if missing:
            raise BindingError(f"cannot differentiate by '{missing[0]}', which has no value")
        given = {name: converted.value(value) for name, value in shared.items()}
        lone = {**given, **columns} if count == 1 else {}
        found = self._lone.results(lone) if lone and self._lone is not None else None
        if found is not None:
            return found
        namespace = arrays.foreign_namespace([*columns.values(), *given.values()])
        gathered = Gathered(count, self.keys, most_limited, namespace)
        for group in uniform(columns, given, count, namespace):
            if group.count:
                self._run_group(group, gathered, threads or cores())
                if lone:
                    self._remember(group, lone)
        return gathered.results()

    def _remember(self, row: Rows, inputs: Mapping[str, Any]) -> None:
        """Keep what a row that comes alone was computed with for those after it, where all of its kind are."""
        path = next(iter(self._paths_of(row).known), None)
        own = row.namespace is None and all(inputs[name] is column for name, column in row.columns.items())
        if own and path is not None and path.is_everyones:
            self._lone = LoneRows(path, inputs)

    def _run_group(self, rows: Rows, gathered: Gathered, threads: int) -> None:
        """Compute rows whose inputs have the same shapes: many that take several paths in parts, as those that go along
        one are picked out, and their results put back, in memory that is near then."""
        paths = self._paths_of(rows)
        if rows.count <= _PART or rows.namespace is not None or paths.is_one or paths.joined is not None:
            self._run_uniform(rows, paths, gathered, threads)
            return

        def compute(start: int, stop: int) -> bool:
            self._run_uniform(rows.chosen(slice(start, stop)), paths, gathered, 1)
            return True

        over_blocks(compute, rows.count, _PART, threads)

    def _run_uniform(self, rows: Rows, paths: Paths, gathered: Gathered, threads: int) -> None:
        """Compute rows of one kind, whose `paths` these are."""
        # The rows that paths were recorded for: rounding may keep them from these all the same.
        recorded: set[int] = set()
        seen = 0
        left: Rows | None = rows
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

    def _paths_of(self, rows: Rows) -> Paths:
        kind = rows.kind
        with self._lock:
            paths = self._kinds.get(kind)
            if paths is None:
                if len(self._kinds) >= _MOST_KINDS:
                    self._kinds.pop(next(iter(self._kinds)))
                paths = self._kinds[kind] = Paths()
            return paths

    def _along(self, path: RowPath, rows: Rows, gathered: Gathered, threads: int) -> Rows | None:
        """The rows that are left when those that take a path are computed, None where there are none."""
        if not path.suits(rows.shared):
            return rows
        held = path.holds(rows, threads)
        everyone = held is None or held.all()
        taken = rows if everyone else rows.chosen(held)
        if taken.count:
            outputs, failed = path.run(taken, threads)
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

    def _one_by_one(self, rows: Rows, paths: Paths, seen: int, recorded: set[int], gathered: Gathered) -> Rows | None:
        """The rows that are left when those are evaluated alone that come before one with another path, None where there
        are none."""
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

    def _alone(self, rows: Rows, place: int, gathered: Gathered) -> tuple[Any, Mapping[str, Any]] | None:
        """What a row gives that is evaluated by itself; None where that fails."""
        if gathered.is_hopeless():
            gathered.fail(int(rows.numbers[place]), gathered.hopeless())
            return None
        try:
            value, found, _ = evaluated(self.program, rows.row(place), self.wrt, self.order, self.limits)
        except GradcliError as error:
            gathered.fail(int(rows.numbers[place]), error)
            return None
        return value, found
