"""Writing of a table: the rows of the input with the columns of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Protocol

from gradcli.errors import BindingError, LimitError
from gradcli.io import by_polars, json_text
from gradcli.rows import columnar
from gradcli.rows.blocks import Block
from gradcli.rows.columnar_writing import ColumnarWriter
from gradcli.rows.json_line_rows import FORMAT as LINES
from gradcli.rows.json_line_rows import LinesWriter
from gradcli.rows.masked_results import without
from gradcli.rows.plain_columns import plain
from gradcli.rows.reading import Reader

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


# Upper bound of the columns of a Parquet or Arrow file: each takes 60 µs and 7 KB to write, even for few rows.
_MOST_COLUMNS = 100_000


class Writer(Protocol):
    """Writes rows in the order of the calls of `write`; their blocks may be `prepared` by any thread. `rows` is the
    number of rows written."""

    rows: int

    def prepared(
        self,
        block: Block,
        results: Mapping[str, NDArray[Any]],
        null: NDArray[numpy.bool],
        skip: NDArray[numpy.bool] | None = None,
    ) -> Any:
        """The rows of a block with their results, without those to `skip` `[n]`. Rows marked by `null` `[n]` have no
        results."""

    def write(self, prepared: Any) -> None:
        """Write prepared rows. Raises OSError where that fails, as `close` does."""

    def close(self) -> None:
        """Write the end of the table; the stream stays open."""

    def abandon(self) -> None:
        """Stop writing a table that will not be complete."""


def writer(
    format: str, stream: IO[bytes], names: Sequence[str], like: Reader, kept: Sequence[str] | None = None
) -> Writer:
    """The writer of the rows of the table `like` with the columns `kept`, None for all, and results with these names.
    Raises BindingError for duplicate column names in formats other than delimited text."""
    if format in (LINES, *columnar.FORMATS):
        _check_names([*(like.columns if kept is None else kept), *names], format, like)
    if format == LINES:
        return LinesWriter(stream, names, like.columns if kept is None else kept)
    if format in columnar.FORMATS:
        return ColumnarWriter(format, stream, names, like, kept)
    return DelimitedWriter(format, stream, names, like, kept)


def check_width(format: str, like: Reader, kept: Sequence[str] | None) -> None:
    """Raise LimitError for more columns than a format supports, before any row is read."""
    width = len(like.columns if kept is None else kept)
    if format in columnar.FORMATS and width > _MOST_COLUMNS:
        raise LimitError(
            f"the output has {width:,} columns of the table, and a .{format} file has at most {_MOST_COLUMNS:,}",
            hint="--keep and --only leave columns out, --to csv and --to jsonl have room for all",
        )


def _check_names(names: Sequence[str], format: str, like: Reader) -> None:
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise BindingError(
            f"{like.name} has several columns '{twice}', which no .{format} file can have",
            hint="give the columns different names, or choose others with --keep",
        )


class DelimitedWriter:
    """Writes delimited text: text of the input unchanged, and results as the shortest text that reads back as the same
    number."""

    def __init__(
        self, format: str, stream: IO[bytes], names: Sequence[str], like: Reader, kept: Sequence[str] | None
    ) -> None:
        self._polars = by_polars.required("a table of rows")
        self._stream = stream
        self._names = names
        alike = format == like.format
        self._separator = like.dialect.separator if alike else "\t" if format == "tsv" else ","
        self._line_end = like.dialect.line_end
        # Applies to results only; the fields of the table stay as they are.
        self._decimal_comma = like.dialect.decimal_comma
        self.rows = 0
        if like.dialect.head is not None:
            self._write_header(like, kept, alike)

    def _write_header(self, like: Reader, kept: Sequence[str] | None, alike: bool) -> None:
        whole = kept is None and alike
        names = [*([] if whole else like.columns if kept is None else kept), *self._names]
        text = self._separator.join(map(self._quoted, names))
        head = [like.dialect.head] if whole and like.dialect.head is not None else []
        self._stream.write((self._separator.join([*head, *([text] if names else [])]) + self._line_end).encode())

    def _quoted(self, name: str) -> str:
        if not any(mark in name for mark in (self._separator, '"', "\n", "\r")):
            return name
        return '"' + name.replace('"', '""') + '"'

    def prepared(
        self,
        block: Block,
        results: Mapping[str, NDArray[Any]],
        null: NDArray[numpy.bool],
        skip: NDArray[numpy.bool] | None = None,
    ) -> tuple[int, Sequence[bytes]]:
        polars = self._polars
        own = [block.lines] if block.lines is not None else [*map(self._field, block.fields.get_columns())]
        whole = block.lines is not None
        series = [self._result(place, results[name], null, whole) for place, name in enumerate(self._names)]
        frame = polars.DataFrame([column.alias(str(place)) for place, column in enumerate([*own, *series])])
        if skip is not None:
            frame = frame.filter(~polars.Series(skip))
        out = _Parts()
        frame.write_csv(
            out,
            include_header=False,
            separator=self._separator,
            line_terminator=self._line_end,
            decimal_comma=self._decimal_comma,
            quote_style="never" if whole else "necessary",
        )
        if block.line_break:
            mark = block.line_break.encode()
            return len(frame), [part.replace(mark, b"\n") for part in out.parts]
        return len(frame), out.parts

    def _field(self, series: Any) -> Any:
        """A column of the input; nested values become JSON, and types that Polars cannot write as CSV become texts."""
        if not series.dtype.is_nested():
            return plain(series) if series.dtype in (self._polars.Binary, self._polars.Duration) else series
        texts = [None if item is None else json_text.dumps(item) for item in plain(series).to_list()]
        return self._polars.Series(series.name, texts, self._polars.String)

    def _result(self, place: int, values: NDArray[Any], null: NDArray[numpy.bool], whole: bool) -> Any:
        """A series of floats, or of their texts where some are not finite. Lines that are `whole` are written without
        quoting, so that texts that need quotes bring their own."""
        import numpy

        polars = self._polars
        values, null = without(values, null)
        series = polars.Series(str(place), values)
        # Polars would quote nulls as well.
        quoted = self._decimal_comma and self._separator == ","
        if quoted or not numpy.isfinite(values).all():
            infinite = polars.when(series > 0).then(polars.lit("Infinity")).otherwise(polars.lit("-Infinity"))
            numbers = series.cast(polars.String)
            if self._decimal_comma:
                numbers = numbers.str.replace(".", ",", literal=True)
            if quoted and whole:
                numbers = '"' + numbers + '"'
            texts = polars.when(series.is_infinite()).then(infinite).otherwise(numbers)
            series = polars.select(texts.alias(str(place))).to_series()
        return series.set(polars.Series(null), None) if null.any() else series

    def write(self, prepared: tuple[int, Sequence[bytes]]) -> None:
        rows, parts = prepared
        for part in parts:
            self._stream.write(part)
        self.rows += rows

    def close(self) -> None:
        """Do nothing: the format has no end mark."""

    abandon = close


class _Parts:
    """A stream that keeps the pieces that Polars writes. Joining them would copy the text while holding the GIL."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, part: bytes) -> int:
        self.parts.append(part)
        return len(part)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""
