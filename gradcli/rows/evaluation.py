"""Evaluation of the rows of a block: the results by column, the rows without results, and the errors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.errors import BindingError, GradcliError, did_you_mean, locating
from gradcli.evaluation.recording_cache import BoundedCache
from gradcli.executors.function_pairs import FunctionPair, compile_in_background
from gradcli.executors.vector_functions import PAIRS
from gradcli.functionals import shortfalls
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_LIMITED_ROWS
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table
from gradcli.rows.failures import text_for_number_message
from gradcli.rows.formats.blocks import Column, masked
from gradcli.rows.formats.columns import hint_of
from gradcli.rows.plan import VALUE, Plan
from gradcli.rows.row_results import RowCollector, RowResults
from gradcli.rows.row_uncertainties import PREFIX, checked, combined

if TYPE_CHECKING:
    from gradcli.rows.row_programs import RowProgram

# Upper bound of the cached programs of a program column.
_MOST_PROGRAMS = 1_000

# Return the numbers, and the texts, of a column by its name.
Numbers = Callable[[str], Column]
Texts = Callable[[str], Sequence[str | None]]


class TextCell(NamedTuple):
    """A row with a text in place of the number `name`."""

    row: int
    name: str
    text: str


class EvaluatedRows(NamedTuple):
    """The results of n rows by key: arrays `[n, …]` or object arrays, masked where a row lacks only this result.

    `null` `[n]` marks the rows without results: those with a missing number and those that failed, with their errors in
    `failures`. `words` is the number of rows in which the missing number is a text, and `first_word` the first of them;
    `inaccurate` are the rows with results of few digits.
    """

    results: Mapping[str, Any]
    null: Any
    failures: Mapping[int, GradcliError]
    words: int = 0
    first_word: TextCell | None = None
    inaccurate: Sequence[int] = ()


class TableEvaluation:
    """Evaluates the rows of a table by a plan; several threads may use it at once.

    It starts at most `threads` threads, one per core where that is None. Once more than `most_limited` rows of a block
    have reached a limit, further expensive rows of it fail at once. A row with a text in place of a number has no
    results, and counts as failed where `texts_fail`. `known` are the row programs of other tables, by program and what
    is differentiated.
    """

    def __init__(
        self,
        plan: Plan,
        threads: int | None = 1,
        most_limited: int = MAX_LIMITED_ROWS,
        *,
        texts_fail: bool = False,
        known: BoundedCache[Hashable, RowProgram] | None = None,
    ) -> None:
        self._known = known
        self._plan = plan
        self._threads = threads
        self._most_limited = most_limited
        self._texts_fail = texts_fail
        self._keys = tuple(key for key in plan.results if key != VALUE)
        self._shared = dict(plan.asked.shared)
        self._programs: BoundedCache[str, _Program | GradcliError] = BoundedCache(_MOST_PROGRAMS)
        self._lock = Lock()
        if plan.program is not None:
            # Compiles in a thread while modules are imported and the first rows are read.
            compile_in_background(_pairs(plan.program))
        self._only = None if plan.program is None else self._made(plan.program)

    def run(self, count: int, numbers: Numbers, texts: Texts, failed: Mapping[int, str]) -> EvaluatedRows:
        """The results of `count` rows. `failed` are the rows that could not be read, with the reasons."""
        if self._only is not None and not failed:
            whole = self._of_all(self._only, numbers, count)
            if whole is not None:
                return whole
        np = arrays.numpy_namespace()
        found = _Found(count, self._keys, self._most_limited)
        # One error per reason, since millions of rows may fail for the same one.
        reasons = {why: BindingError(why) for why in {*failed.values()}}
        found.unread = {row: reasons[why] for row, why in failed.items()}
        found.null[[*failed]] = True
        if self._only is not None:
            self._evaluate(self._only, numbers, np.flatnonzero(~found.null) if failed else None, found)
            return found.evaluated()
        for text, rows in self._by_text(texts, found.null).items():
            program = self._of_text(text)
            if found.gathered.has_too_many_limited():
                program = found.gathered.too_many_limited_error()
            if isinstance(program, GradcliError):
                found.fail(rows, program)
            else:
                self._evaluate(program, numbers, np.asarray(rows), found)
        return found.evaluated()

    def _of_all(self, program: _Program, numbers: Numbers, count: int) -> EvaluatedRows | None:
        """The results where no row has a missing or failing number; else None."""
        np = arrays.numpy_namespace()
        inputs = _in_range(program.inputs(numbers), self._plan.asked.dtype)
        # count_nonzero is faster than `any`.
        if any(given.failing or np.count_nonzero(given.missing) for given in inputs.values()):
            return None
        columns = {name: typed(given.values, self._plan.asked.dtype) for name, given in inputs.items()}
        results = program.results(columns, count, self._threads, self._most_limited)
        if (
            not results.failures
            and not results.absent
            and all(results.derivatives.get(key) is not None for key in self._keys)
        ):
            derivatives = {key: results.derivatives[key] for key in self._keys}
            found = {VALUE: results.value, **derivatives}
            return EvaluatedRows(found, np.zeros(count, "bool"), {}, inaccurate=results.inaccurate)
        gathered = _Found(count, self._keys, self._most_limited)
        gathered.put(results, None)
        return gathered.evaluated()

    def _by_text(self, texts: Texts, null: Any) -> dict[str, list[int]]:
        """The rows that are not `null`, grouped by the text of their program. Rows without a text become null."""
        groups: dict[str, list[int]] = {}
        for row, text in enumerate(texts(self._plan.asked.program_column or "")):
            if null[row]:
                continue
            if text is None or not text.strip():
                null[row] = True
            else:
                groups.setdefault(text, []).append(row)
        return groups

    def _of_text(self, text: str) -> _Program | GradcliError:
        """The program of a text from the cache, or the error of its compilation."""
        with self._lock:
            known = self._programs.pop(text, None)
            if known is not None:
                self._programs[text] = known
                return known
        made = self._parsed(text)
        with self._lock:
            self._programs[text] = made
        return made

    def _parsed(self, text: str) -> _Program | GradcliError:
        asked = self._plan.asked
        try:
            with limits.within(asked.max_steps, asked.max_elements), locating(text):
                program = parse_charged(text)
                scope.check_names(program, [*self._plan.columns, *self._shared])
                return self._made(program)
        except GradcliError as error:
            return error

    def _made(self, program: Module) -> _Program:
        """The program with the columns and values that it reads. Raises BindingError for a name without a value."""
        # Imported here, while another thread compiles and some readers read ahead.
        from gradcli.rows.row_programs import RowProgram

        asked, columns = self._plan.asked, self._plan.columns
        reads = scope.free_names(program)
        for name, read_at in reads.items():
            known = name in columns or name in self._shared or name in scope.CONSTANTS
            if not known and not read_at.maybe_assigned and not scope.is_function(name, ()):
                hint = did_you_mean(name, [*columns, *self._shared], "no column and no NAME=VALUE gives it a value")
                raise BindingError(
                    f"the row has no value for '{name}'", hint=hint, span=read_at.span, source=program.source
                )
        uncertain = tuple(name for name in self._plan.uncertain if name in reads)
        wrt = tuple(dict.fromkeys(n for n in (*self._plan.wrt, *uncertain) if n in reads))
        order = asked.order or bool(uncertain)
        key = program.source, wrt, int(order)
        run = None if self._known is None else self._known.get(key)
        if run is None:
            run = RowProgram(program, wrt, order, max_steps=asked.max_steps, max_elements=asked.max_elements)
            if self._known is not None:
                self._known[key] = run
        return _Program(
            run,
            {name: column for name, column in columns.items() if name in reads},
            {name: value for name, value in self._shared.items() if name in reads},
            {name: columns[PREFIX + name] for name in uncertain if PREFIX + name in columns},
            {name: self._shared[PREFIX + name] for name in uncertain if PREFIX + name in self._shared},
            asked.propagate,
        )

    def _evaluate(self, program: _Program, numbers: Numbers, rows: Any, found: _Found) -> None:
        """Put the results of some rows into `found`; `rows` is None for all."""
        np = arrays.numpy_namespace()
        inputs = _in_range(program.inputs(numbers), self._plan.asked.dtype)
        bad, asked = np.zeros(found.count, "bool"), np.full(found.count, rows is None)
        if rows is not None:
            asked[rows] = True
        for given in inputs.values():
            bad |= given.missing
        for name, given in inputs.items():
            for row, why in given.failing.items():
                if asked[row]:
                    bad[row] = True
                    found.gathered.fail(row, BindingError(f"'{name}': {why}", hint=hint_of(why)))
        asked[[row for given in inputs.values() for row in given.failing]] = False
        if self._texts_fail:
            for row, name, text in _words(inputs, asked):
                bad[row] = True
                found.gathered.fail(row, BindingError(text_for_number_message(name, text)))
        else:
            found.put_words(inputs, asked)
        if bad.any():
            rows = np.arange(found.count) if rows is None else rows
            found.null[rows[bad[rows]]] = True
            rows = rows[~bad[rows]]
        columns = {
            name: typed(given.values if rows is None else given.values[rows], self._plan.asked.dtype)
            for name, given in inputs.items()
        }
        there = found.count if rows is None else len(rows)
        found.put(program.results(columns, there, self._threads, self._most_limited), rows)


def _words(inputs: Mapping[str, Column], rows: Any) -> Iterator[TextCell]:
    """The first text in place of a number of each row that is marked in `rows` `[n]`."""
    left = rows.copy()
    for name, given in inputs.items():
        if given.words is not None:
            for row in (given.words.rows & left).nonzero()[0].tolist():
                left[row] = False
                yield TextCell(row, name, given.words.text(row))


class _Program(NamedTuple):
    """A program with the columns and shared values that it reads, by name, and those of their uncertainties."""

    run: RowProgram
    columns: Mapping[str, str]
    shared: Mapping[str, Any]
    uncertain_columns: Mapping[str, str]
    uncertain_shared: Mapping[str, Any]
    propagates: bool

    def inputs(self, numbers: Numbers) -> dict[str, Column]:
        """The columns that are needed; those of uncertainties as `u_x`."""
        found = {name: numbers(column) for name, column in self.columns.items()}
        return found | {PREFIX + name: checked(numbers(column)) for name, column in self.uncertain_columns.items()}

    def results(self, columns: Mapping[str, Any], count: int, threads: int | None, most_limited: int) -> RowResults:
        """The results of `count` rows, with the uncertainty of the value if requested."""
        read = {name: columns[name] for name in self.columns}
        with shortfalls.noting_rows():
            found = self.run.run(read, self.shared, rows=count, threads=threads, most_limited=most_limited)
        if not self.propagates:
            return found
        of_rows = {name: columns[PREFIX + name] for name in self.uncertain_columns}
        return combined(found, of_rows, self.uncertain_shared)


class _Found:
    """Collects the results of `count` rows."""

    def __init__(self, count: int, keys: Sequence[str], most_limited: int) -> None:
        self.count = count
        self.gathered = RowCollector(count, keys, most_limited)
        self.null = arrays.numpy_namespace().zeros(count, "bool")
        self._keys = keys
        self._absent: dict[str, Any] = {}
        self._words = arrays.numpy_namespace().zeros(count, "bool")
        self._first_word: TextCell | None = None
        # The errors of rows that could not be read.
        self.unread: dict[int, GradcliError] = {}

    def fail(self, rows: Sequence[int], error: GradcliError) -> None:
        for row in rows:
            self.gathered.fail(row, error)

    def put_words(self, inputs: Mapping[str, Column], rows: Any) -> None:
        """Note the texts in place of numbers in the rows marked by `rows` `[n]`."""
        for name, given in inputs.items():
            if given.words is None:
                continue
            there = given.words._replace(rows=given.words.rows & rows)
            if there.rows.any():
                self._words |= there.rows
                row, text = there.first()
                if self._first_word is None or row < self._first_word.row:
                    self._first_word = TextCell(row, name, text)

    def put(self, results: Any, rows: Any) -> None:
        """Add the results of a program for some rows; `rows` is None for all."""
        np = arrays.numpy_namespace()
        rows = np.arange(self.count) if rows is None else rows
        for failure in results.failures:
            self.gathered.fail(int(rows[failure.index]), failure.error)
        if not len(rows):
            return
        self.gathered.inaccurate.update(rows[[*results.inaccurate]].tolist())
        self.gathered.put(rows, results.value, {key: results.derivatives.get(key) for key in self._keys})
        for key, absent in results.absent.items():
            self._absent.setdefault(key, np.zeros(self.count, "bool"))[rows] = absent

    def evaluated(self) -> EvaluatedRows:
        np = arrays.numpy_namespace()
        results = self.gathered.results()
        failures = self.unread | {failure.index: failure.error for failure in results.failures}
        self.null[[*failures]] = True
        found = {VALUE: results.value}
        for key in self._keys:
            array = results.derivatives[key]
            absent = results.absent.get(key, self._absent.get(key))
            if key in results.absent and key in self._absent:
                absent = absent | self._absent[key]
            if array is None:
                array, absent = np.full(self.count, np.nan), np.ones(self.count, "bool")
            found[key] = array if absent is None else masked(array, absent)
        words = int(np.count_nonzero(self._words))
        return EvaluatedRows(found, self.null, failures, words, self._first_word, results.inaccurate)


def _pairs(program: Module) -> list[FunctionPair]:
    """The pairs of functions that a program calls."""
    called = {table.find(node.name) for node in tree.all_nodes(program) if isinstance(node, tree.Call)}
    return [pair for pair in PAIRS if not called.isdisjoint(pair.primitives)]


def _in_range(columns: Mapping[str, Column], dtype: str) -> dict[str, Column]:
    """The columns, in which numbers that overflow a dtype are marked as failing."""
    return {name: _column_in_range(column, dtype) for name, column in columns.items()}


def _column_in_range(column: Column, dtype: str) -> Column:
    np = arrays.numpy_namespace()
    if column.values.dtype.kind != "f" or np.can_cast(column.values.dtype, dtype):
        return column
    with arrays.quiet():
        beyond = np.isfinite(column.values) & np.isinf(column.values.astype(dtype))
    if not beyond.any():
        return column
    rows = np.unique(np.nonzero(beyond)[0]).tolist()
    numbers = {row: float(column.values[row][beyond[row]].flat[0]) for row in rows}
    failing = {row: f"{number!r} is a number too large for {dtype}" for row, number in numbers.items()}
    return column._replace(failing={**failing, **column.failing})


def typed(values: Any, dtype: str) -> Any:
    """An array of numbers in a dtype, or in the complex dtype of its precision; object arrays unchanged."""
    if values.dtype.kind == "O":
        return values
    return values.astype(arrays.complex_dtype(dtype) if values.dtype.kind == "c" else dtype, copy=False)
