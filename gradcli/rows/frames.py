"""Evaluation of rows of tables in memory, data frames and mappings of columns; results have the type of the input."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from warnings import warn

from gradcli import arrays
from gradcli.errors import BindingError, CallError, LimitError, RowWarning, ShapeError, UsageError, expect
from gradcli.limits import MAX_LIMITED_ROWS
from gradcli.named_tuples import NamedTuple
from gradcli.rows.evaluation import TableEvaluation
from gradcli.rows.failures import TextForNumber, failure_of
from gradcli.rows.formats.blocks import Column, numbers_at, without
from gradcli.rows.formats.columns import failing_text, words_of
from gradcli.rows.plan import COLUMN, RowRequest, make_plan

if TYPE_CHECKING:
    from gradcli.evaluation.recording_cache import BoundedCache
    from gradcli.rows.row_programs import RowProgram

ON_ERROR = ("null", "fail")


class Frame(Protocol):
    """The interface of tables in memory."""

    @property
    def columns(self) -> Sequence[str]: ...
    def rows(self) -> int: ...
    def column(self, name: str) -> tuple[Any, Any]:
        """An array of n numbers, texts or objects, and a mask of missing ones, None where there are none."""

    def with_results(self, results: Mapping[str, Any], null: Any) -> Any:
        """The table with additional columns, masked arrays `[n, …]`; `null` `[n]` marks the rows without results."""


def mapped(
    program: str,
    table: Any,
    values: Mapping[str, Any],
    limits: tuple[int, int],
    wrt: tuple[str, ...] | None,
    order: int,
    on_error: str,
    propagate: bool,
    known: BoundedCache[Hashable, RowProgram],
) -> Any:
    """The table with the results of each row; see `CompiledProgram.map`. `limits` are those of steps and of elements, and
    `known` the row programs of the tables before."""
    if type(order) is not int or order < 0:
        raise UsageError("'order' must be a whole number of 0 or more")
    expect(on_error, str, "on_error is a text")
    if on_error not in ON_ERROR:
        raise UsageError(f"there is no on_error={on_error!r}", hint="on_error is 'null' or 'fail'")
    frame = frame_of(table)
    named = {n: v.removeprefix(COLUMN) for n, v in values.items() if isinstance(v, str) and v.startswith(COLUMN)}
    shared = {name: value for name, value in values.items() if name not in named}
    max_steps, max_elements = limits
    asked = RowRequest(
        program,
        None,
        named,
        shared,
        wrt,
        order=order,
        propagate=propagate,
        max_steps=max_steps,
        max_elements=max_elements,
    )
    plan = make_plan(asked, frame.columns)
    numbers = {name: numbers_of(*frame.column(name)) for name in plan.needed}
    count = frame.rows()
    strict = on_error == "fail"
    evaluation = TableEvaluation(plan, None, 0 if strict else MAX_LIMITED_ROWS, texts_fail=strict, known=known)
    evaluated = evaluation.run(count, numbers.__getitem__, _no_texts, {})
    if evaluated.failures:
        limited = [row for row, error in sorted(evaluated.failures.items()) if isinstance(error, LimitError)]
        too_many = len(limited) > MAX_LIMITED_ROWS
        first = limited[0] if too_many else min(evaluated.failures)
        inputs = numbers_at({name: numbers[column] for name, column in plan.columns.items()}, first)
        error = failure_of(first + 1, "", inputs, evaluated.failures[first]).error(with_source=False)
        if strict or too_many:
            raise error
        warn(
            f"{len(evaluated.failures):,} of {count:,} rows failed and have no results; the first is {error.message}",
            RowWarning,
            stacklevel=3,
        )
    if (word := evaluated.first_word) is not None:
        said = TextForNumber(word.row + 1, "", word.name, word.text).message()
        have = f"{evaluated.words:,} of {count:,} rows have a text for a number and no results"
        warn(f"{have}; the first is {said}", RowWarning, stacklevel=3)
    if evaluated.inaccurate:
        found, first = len(evaluated.inaccurate), evaluated.inaccurate[0] + 1
        have = f"{found:,} of {count:,} rows have results with few right digits"
        warn(f"{have}; the first is row {first}", RowWarning, stacklevel=3)
    return frame.with_results({plan.results[key]: found for key, found in evaluated.results.items()}, evaluated.null)


def _no_texts(_: str) -> Sequence[str | None]:
    return ()


def numbers_of(values: Any, missing: Any) -> Column:
    """A column of numbers from an array of numbers, texts or objects."""
    np = arrays.numpy_namespace()
    missing = np.zeros(len(values), "bool") if missing is None else missing
    if values.dtype.kind in "fiubc":
        return Column(values, missing, {})
    if values.dtype.kind in "Mm":
        return Column(np.full(len(values), np.nan), missing, dict.fromkeys(np.flatnonzero(~missing).tolist(), _DATE))
    failing: dict[int, str] = {}
    missing = missing.copy()
    items: list[Any] = [np.nan] * len(values)
    for row, item in enumerate(values.tolist() if values.dtype.kind != "O" else values):
        if isinstance(item, (datetime.date, datetime.time, datetime.timedelta)):
            failing[row] = _DATE
        elif isinstance(item, Mapping):
            failing[row] = "it is an object"
        else:
            try:
                items[row] = np.asarray(item, "complex128" if isinstance(item, complex) else "float64")[()]
            except OverflowError:
                failing[row] = "it is too large for a float"
            except (TypeError, ValueError):
                missing[row] = True
                if isinstance(item, str) and (why := failing_text(item.strip())):
                    failing[row] = why
    words = words_of(values, missing)
    if all(np.ndim(item) == 0 for item in items):
        dtype = "complex128" if any(isinstance(item, complex) for item in items) else "float64"
        return Column(np.asarray(items, dtype), missing, failing, words)
    found = np.empty(len(items), "object")
    found[:] = [np.asarray(item) for item in items]
    return Column(found, missing, failing, words)


_DATE = "a date is no number"


class _Columns(NamedTuple):
    """A mapping of names to arrays, whose first axis is that of the rows."""

    table: Mapping[str, Any]
    arrays: Mapping[str, Any]

    @property
    def columns(self) -> Sequence[str]:
        return [*self.arrays]

    def rows(self) -> int:
        return len(next(iter(self.arrays.values()), ()))

    def column(self, name: str) -> tuple[Any, Any]:
        return self.arrays[name], None

    def with_results(self, results: Mapping[str, Any], null: Any) -> Any:
        return {**self.table, **{name: _with_nan(found, null) for name, found in results.items()}}


class _Polars(NamedTuple):
    table: Any

    @property
    def columns(self) -> Sequence[str]:
        return list(self.table.columns)

    def rows(self) -> int:
        return len(self.table)

    def column(self, name: str) -> tuple[Any, Any]:
        series = self.table[name]
        if str(series.dtype).startswith("Struct"):
            return arrays.numpy_namespace().asarray(series.to_list(), "object"), None
        return series.to_numpy(), series.is_null().to_numpy()

    def with_results(self, results: Mapping[str, Any], null: Any) -> Any:
        from polars import Float64, Series

        return self.table.with_columns(
            [
                Series(name, _with_none(found, null), Float64 if _is_flat(found) else None)
                for name, found in results.items()
            ]
        )


class _Pandas(NamedTuple):
    table: Any

    @property
    def columns(self) -> Sequence[str]:
        return [str(name) for name in self.table.columns]

    def rows(self) -> int:
        return len(self.table)

    def column(self, name: str) -> tuple[Any, Any]:
        series = self.table.iloc[:, self.columns.index(name)]
        missing = series.isna().to_numpy()
        if series.dtype.kind in "fiub":
            return series.to_numpy(dtype="float64", na_value=float("nan")), missing
        return series.to_numpy(), missing

    def with_results(self, results: Mapping[str, Any], null: Any) -> Any:
        found = {name: _with_nan(found, null) for name, found in results.items()}
        return self.table.assign(**{name: a if a.ndim == 1 else list(a) for name, a in found.items()})


class _Arrow(NamedTuple):
    table: Any

    @property
    def columns(self) -> Sequence[str]:
        return list(self.table.column_names)

    def rows(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> tuple[Any, Any]:
        column = self.table.column(name)
        return column.to_numpy(), column.is_null().to_numpy()

    def with_results(self, results: Mapping[str, Any], null: Any) -> Any:
        from pyarrow import array, float64

        table = self.table
        for name, found in results.items():
            table = table.append_column(name, array(_with_none(found, null), float64() if _is_flat(found) else None))
        return table


# The adapters of data frames, by module and name of their classes.
_FRAMES: dict[tuple[str, str], Callable[[Any], Frame]] = {
    ("polars", "DataFrame"): _Polars,
    ("pandas", "DataFrame"): _Pandas,
    ("pyarrow", "Table"): _Arrow,
}


def frame_of(table: Any) -> Frame:
    """The adapter of a table. Raises CallError for another object, BindingError and ShapeError for columns that do not
    form a table."""
    if isinstance(table, Mapping):
        columns = {name: column_of(name, column) for name, column in table.items()}
        if len({len(column) for column in columns.values()}) > 1:
            raise ShapeError("the columns of the table have different lengths")
        return _Columns(table, columns)
    kind = type(table)
    made = _FRAMES.get((kind.__module__.partition(".")[0], kind.__name__))
    if made is None:
        raise CallError(
            f"a table is a Polars or pandas data frame, an Arrow table or a mapping of columns, not {kind.__name__}",
            hint="collect() makes a data frame of what is lazy" if kind.__name__ == "LazyFrame" else None,
        )
    return made(table)


def column_of(name: str, column: Any) -> Any:
    """A column of a mapping as an array. Raises CallError for a name that is not a text, BindingError for a scalar, and
    ShapeError where rows have different shapes."""
    expect(name, str, "the name of a column is a text")
    try:
        found = arrays.numpy_namespace().asarray(column)
    except ValueError:
        raise ShapeError(f"the rows of the column '{name}' have different shapes") from None
    if not found.ndim:
        raise BindingError(
            f"'{name}' is a number in a table of columns", hint=f"what all rows share is given by name: {name}=…"
        )
    return found


def _is_flat(found: Any) -> bool:
    """Return whether results are one number per row."""
    return bool(found.ndim == 1 and found.dtype.kind == "f")


def _with_nan(found: Any, null: Any) -> Any:
    """Results as an array, with nan in rows without them."""
    np = arrays.numpy_namespace()
    values, null = without(found, null)
    if not null.any():
        return values
    array = np.array(values)
    array[null] = np.nan
    return array


def _with_none(found: Any, null: Any) -> Any:
    """Results as an array where they are complete numbers; else as a list, with None in rows without them."""
    values, null = without(found, null)
    if values.ndim == 1 and values.dtype != "object" and not null.any():
        return values
    return [None if gone else item.tolist() for gone, item in zip(null, values)]
