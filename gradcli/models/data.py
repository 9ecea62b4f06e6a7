"""Data for models: columns of numbers and texts from tables and vectors, without the rows in which a required number is
missing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import IO, Any

from gradcli import arrays
from gradcli.errors import BindingError, ShapeError, abbreviated, did_you_mean
from gradcli.named_tuples import NamedTuple
from gradcli.rows.failures import failure_of
from gradcli.rows.formats.blocks import Column
from gradcli.rows.formats.columns import hint_of
from gradcli.rows.formats.opening import ConcatenatedTables
from gradcli.rows.formats.outputs import STDIN
from gradcli.rows.formats.reading import ColumnSelection, TableReadOptions
from gradcli.rows.formats.sources import files
from gradcli.rows.frames import column_of, frame_of, numbers_of

# A number as it is written where the comma stands before the fraction.
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")


class Data(NamedTuple):
    """The n complete rows of a table.

    `columns` are float64 `[n]` and `texts` are categories, both by name. `rows` `[n]` are indices into the table,
    counted from 0. `left_out` is the number of dropped rows, and `other_texts` are their texts.
    """

    columns: Mapping[str, Any]
    rows: Any
    left_out: int
    texts: Mapping[str, Categories]
    other_texts: Mapping[str, Sequence[str | None]] = {}

    def complete(self) -> Data:
        """The rows in which optional numbers and texts are not missing either."""
        whole = arrays.numpy_namespace().ones(len(self.rows), "bool")
        for column in self.columns.values():
            whole &= column == column
        for words in self.texts.values():
            whole &= words.known
        return self.kept(whole)

    def grouped(self, name: str) -> dict[str | None, Any]:
        """The indices of the rows with each text of a column, in order of first appearance, followed by an empty array
        for each text that only dropped rows have."""
        found = self.texts[name].grouped()
        others, nothing = self.other_texts.get(name, ()), arrays.numpy_namespace().empty(0, int)
        return found | {text: nothing for text in others if text is not None and text not in found}

    def kept(self, mask: Any) -> Data:
        """The rows that a `mask` `[n]` selects; the others count as left out."""
        if mask.all():
            return self
        places, others = mask.nonzero()[0], (~mask).nonzero()[0]
        return Data(
            {name: column[places] for name, column in self.columns.items()},
            self.rows[places],
            self.left_out + len(self.rows) - len(places),
            {name: words.at(places) for name, words in self.texts.items()},
            {name: [*self.other_texts.get(name, ()), *words.at(others).texts()] for name, words in self.texts.items()},
        )


class _Read(NamedTuple):
    """The columns that were read from a whole table with `height` rows."""

    height: int
    numbers: Mapping[str, Column]
    texts: Mapping[str, Categories]


# Reads the columns of numbers and the columns of texts with the given names.
_Reader = Callable[[Sequence[str], Sequence[str]], _Read]


class DataTable:
    """A table whose rows are read on demand; a stream can be read only once."""

    def __init__(self, columns: Sequence[str], read: _Reader | None, sources: Sequence[str] = ()) -> None:
        self._read = read
        # The paths of the files of the table.
        self.sources = sources
        self._titles = {column: column for column in columns}
        self._vectors: dict[str, Any] = {}

    @property
    def columns(self) -> Sequence[str]:
        """The names of all columns and vectors."""
        return [*self._titles, *self._vectors]

    @property
    def given(self) -> Sequence[str]:
        """The names that are not in the table itself: aliases of its columns, and vectors."""
        return [*(name for name, title in self._titles.items() if name != title), *self._vectors]

    def with_names(self, titles: Mapping[str, str]) -> DataTable:
        """The table with aliases: `titles` maps each new name to a column. Raises BindingError for a column that does
        not exist, and for an alias that is the name of another column."""
        found = DataTable([], self._read, self.sources)
        for name, title in titles.items():
            if title not in self._titles:
                hint = did_you_mean(title, self._titles, self._listed())
                raise BindingError(f"the data have no column '{title}'", hint=hint)
            if name in self._titles and name != title:
                raise BindingError(
                    f"'{name}' is a column of the data, and '{title}' is to be called so",
                    hint="call it another name in the model",
                )
        found._titles = {**self._titles, **titles}
        found._vectors = dict(self._vectors)
        return found

    def with_vectors(self, vectors: Mapping[str, Any]) -> DataTable:
        """The table with additional columns, arrays or lists of n elements. Raises BindingError for the name of an
        existing column, and what `column_of` raises."""
        for name in vectors:
            if name in self._titles:
                raise BindingError(
                    f"'{name}' is given a value and is a column of the data", hint=f"leave out {name}=…, or the column"
                )
        found = self.with_names({})
        found._vectors |= {name: column_of(name, vector) for name, vector in vectors.items()}
        return found

    def taken(
        self,
        names: Sequence[str],
        texts: Sequence[str] = (),
        optional: Sequence[str] = (),
        may_be_complex: Collection[str] = (),
    ) -> Data:
        """The columns `names` as numbers and `texts` as texts, without rows in which a number is missing. In `optional`
        columns a missing number is nan and its row is kept. Those that `may_be_complex` keep their complex numbers.

        Raises BindingError for a column that does not exist, for complex numbers in another column, and, with the row,
        for a field in one of `names` that is neither a number nor missing; ShapeError for columns of different lengths.
        """
        for name in (*names, *texts):
            if name not in self._titles and name not in self._vectors:
                hint = did_you_mean(name, self.columns, self._listed())
                raise BindingError(f"the data have no column '{name}'", hint=hint)
        titled = [name for name in (*names, *texts) if name in self._titles]
        read = _Read(-1, {}, {})
        if self._read is not None and (titled or not self._vectors):
            read = self._read(
                [*dict.fromkeys(self._titles[name] for name in names if name in self._titles)],
                [*dict.fromkeys(self._titles[name] for name in texts if name in self._titles)],
            )
        numbers = {name: read.numbers[self._titles[name]] for name in names if name in self._titles}
        columns = numbers | {name: _numbers(self._vectors[name], None) for name in names if name in self._vectors}
        count = read.height
        for name, column in columns.items():
            if count not in (-1, len(column.values)):
                raise ShapeError(f"'{name}' has {len(column.values):,} rows, and the other data have {count:,}")
            count = len(column.values)
        words = {name: read.texts[self._titles[name]] for name in texts if name in self._titles}
        words |= {name: Categories.of_values(self._vectors[name], None) for name in texts if name in self._vectors}
        for name, items in words.items():
            rows = len(items.codes)
            if count not in (-1, rows):
                raise ShapeError(f"'{name}' has {rows:,} rows, and the other data have {count:,}")
            count = rows
        return _complete_rows(max(count, 0), columns, words, optional, may_be_complex)

    def _listed(self) -> str:
        return f"they have {', '.join(self.columns)}" if self.columns else "there are none: give a file, or x=[1,2,3]"


def table_of(data: Any, reading: TableReadOptions | None = None, stream: IO[bytes] | None = None) -> DataTable:
    """The table for `data`: an empty one for None; the path of a file, or a list of paths, patterns and folders, where
    `-` is the `stream`; a data frame of Polars or pandas, an Arrow table, or a mapping of columns to arrays.

    Raises BindingError where the data cannot be read, and CallError for another type.
    """
    if data is None:
        return DataTable([], None)
    if isinstance(data, (str, os.PathLike)):
        data = [data]
    if isinstance(data, (list, tuple)) and not data:
        raise BindingError("there are no files in the list of data", hint="give the path of one, or a table")
    if isinstance(data, (list, tuple)) and all(isinstance(item, (str, os.PathLike)) for item in data):
        return _of_files([os.fspath(item) for item in data], reading or TableReadOptions(), stream)
    frame = frame_of(data)

    def read(numbers: Sequence[str], texts: Sequence[str]) -> _Read:
        found = {name: _numbers(*frame.column(name)) for name in numbers}
        return _Read(frame.rows(), found, {name: Categories.of_values(*frame.column(name)) for name in texts})

    return DataTable(frame.columns, read)


def _of_files(words: Sequence[str], reading: TableReadOptions, stream: IO[bytes] | None) -> DataTable:
    sources = [STDIN] if words == [STDIN] else files(words)
    together = ConcatenatedTables(sources, reading, stream)

    def read(numbers: Sequence[str], texts: Sequence[str]) -> _Read:
        np = arrays.numpy_namespace()
        blocks = []
        count = 0
        for reader in together:
            for piece in reader.pieces(ColumnSelection(numbers, (), texts)):
                block = piece.block()
                for row, why in block.failed.items():
                    raise failure_of(count + row + 1, reader.name, {}, BindingError(why)).error()
                for name, column in block.numbers.items():
                    _check(name, column, count)
                count += block.rows
                blocks.append(block)
        found = {
            name: Column(
                np.concatenate([b.numbers[name].values for b in blocks] or [np.empty(0)]),
                np.concatenate([b.numbers[name].missing for b in blocks] or [np.empty(0, "bool")]),
                {},
            )
            for name in numbers
        }
        return _Read(count, found, {name: Categories.of([t for b in blocks for t in b.texts[name]]) for name in texts})

    return DataTable(together.columns or [], read, [] if sources == [STDIN] else sources)


def _numbers(values: Any, missing: Any) -> Column:
    """The column of an array of numbers, which may be complex, of texts or of objects."""
    np = arrays.numpy_namespace()
    if values.dtype.kind != "c":
        return numbers_of(values, missing)
    return Column(values, np.zeros(len(values), "bool") if missing is None else missing, {})


def _check(name: str, column: Column, before: int) -> None:
    """Raise BindingError for the first field that is infinite, or neither a number nor missing. `before` is the number
    of rows that precede these."""
    np = arrays.numpy_namespace()
    if column.words is not None:
        row, text = column.words.first()
        missing = "data are numbers; an empty field or NA is a missing one, and its row is left out"
        raise BindingError(
            f"the column '{name}' is no column of numbers: row {before + row + 1} has {abbreviated(text)!r}",
            hint="--decimal-comma reads 1,5 as 1.5" if _DECIMAL_COMMA.fullmatch(text) else missing,
        )
    if column.failing:
        row = min(column.failing)
        raise BindingError(
            f"the column '{name}' is no column of numbers: row {before + row + 1}: {column.failing[row]}",
            hint=hint_of(column.failing[row]),
        )
    if column.values.ndim != 1 or column.values.dtype == object:
        raise BindingError(f"the column '{name}' has a list in a row, and data are one number in each")
    infinite = np.isinf(column.values) & ~column.missing
    if infinite.any():
        raise BindingError(f"the column '{name}' is infinite in row {before + int(infinite.argmax()) + 1}")


def _complete_rows(
    count: int,
    columns: Mapping[str, Column],
    texts: Mapping[str, Categories],
    optional: Sequence[str],
    may_be_complex: Collection[str],
) -> Data:
    """The rows in which no number is missing, except in `optional` columns. Raises BindingError for complex numbers in
    other columns than those that `may_be_complex`."""
    np = arrays.numpy_namespace()
    whole = np.ones(count, "bool")
    for name, column in columns.items():
        _check(name, column, 0)
        if column.values.dtype.kind == "c" and name not in may_be_complex:
            raise BindingError(
                f"the column '{name}' has complex numbers, and real ones are needed",
                hint="columns of their real and imaginary parts are real",
            )
        if name not in optional:
            whole &= ~(column.missing | np.isnan(column.values))
    found = {
        name: c.values.astype("complex128" if c.values.dtype.kind == "c" else "float64", copy=False)
        for name, c in columns.items()
    }
    return Data(found, np.arange(count), 0, texts).kept(whole)


# --- dictionary encoding of text columns: the distinct texts, and one integer code per row

# NumPy dtype kinds in which elements are equal exactly where their texts are. Floats are excluded, since 0.0 == -0.0
# and their texts differ.
_PLAIN = "biuU"


class Categories(NamedTuple):
    """The distinct texts `names`, in which None stands for a missing text, and the integer `codes` `[n]`, the index
    into `names` of each row."""

    names: Sequence[str | None]
    codes: Any

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> Categories:
        """The categories of n rows, given their texts."""
        np = arrays.numpy_namespace()
        known: dict[str | None, int] = {}
        codes = np.array([known.setdefault(text, len(known)) for text in texts], int)
        return cls([*known], codes)

    @classmethod
    def of_values(cls, values: Any, missing: Any) -> Categories:
        """The categories of an array of n elements converted to texts; the mask `missing` `[n]` marks missing elements,
        and is None where there are none."""
        np = arrays.numpy_namespace()
        n = len(values)
        heads = np.arange(n)
        if missing is None and values.ndim == 1 and values.dtype.kind in _PLAIN:
            # Each run of equal elements is converted to text only once.
            changes = np.ones(n, "bool")
            np.not_equal(values[1:], values[:-1], out=changes[1:])
            heads = changes.nonzero()[0]
        gone = [False] * len(heads) if missing is None else missing
        items = zip(values[heads].tolist(), gone)
        # nan, which is not equal to itself, counts as missing.
        found = cls.of([None if is_gone or item is None or item != item else str(item) for item, is_gone in items])
        return found if len(heads) == n else cls(found.names, np.repeat(found.codes, np.diff(heads, append=n)))

    @property
    def known(self) -> Any:
        """A mask `[n]` of the rows whose text is not missing."""
        return arrays.numpy_namespace().array([name is not None for name in self.names], "bool")[self.codes]

    def at(self, places: Any) -> Categories:
        """The categories of selected rows."""
        return Categories(self.names, self.codes[places])

    def texts(self) -> list[str | None]:
        """The text of each row."""
        return [self.names[code] for code in self.codes.tolist()]

    def grouped(self) -> dict[str | None, Any]:
        """The indices of the rows with each text, keyed by text in order of first appearance."""
        np = arrays.numpy_namespace()
        order = np.argsort(self.codes, kind="stable")
        counts = np.bincount(self.codes, minlength=len(self.names))
        there = counts.nonzero()[0]
        ends = np.cumsum(counts[there])
        starts = ends - counts[there]
        come = np.argsort(order[starts])
        bounds = zip(there[come].tolist(), starts[come].tolist(), ends[come].tolist())
        return {self.names[i]: order[start:end] for i, start, end in bounds}
