"""Writing of a table, block by block: the rows of the input with the columns of results, as text, Parquet or Arrow."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import IO, TYPE_CHECKING, Any, Protocol

from gradcli.errors import BindingError, LimitError, OutputError
from gradcli.io import by_polars, json_text
from gradcli.rows.formats import columnar
from gradcli.rows.formats.blocks import Column, RowBlock, without
from gradcli.rows.formats.json_line_rows import FORMAT as LINES
from gradcli.rows.formats.json_line_rows import LinesWriter, plain
from gradcli.rows.formats.reading import TableReader

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


# Upper bound of the columns of a Parquet or Arrow file: each takes 60 µs and 7 KB to write, even for few rows.
_MOST_COLUMNS = 100_000
# Rows of a Parquet row group and of an Arrow record batch, whatever the size of blocks.
_GROUP = 2**17
# The zstd level, that of Apache Arrow. Compared with Polars' default of 3, floats take no more space and a fifth less
# CPU time; repetitive data take 5 percent more space.
_LEVEL = 1
# Upper bound of the queued blocks, and seconds between checks of whether the writing thread failed.
_MOST_QUEUED, _CHECK_INTERVAL = 4, 0.1


class Writer(Protocol):
    """Writes rows in the order of the calls of `write`; their blocks may be `prepared` by any thread. `rows` is the
    number of rows written."""

    rows: int

    def prepared(
        self,
        block: RowBlock,
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
    format: str, stream: IO[bytes], names: Sequence[str], like: TableReader, kept: Sequence[str] | None = None
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


def check_width(format: str, like: TableReader, kept: Sequence[str] | None) -> None:
    """Raise LimitError for more columns than a format supports, before any row is read."""
    width = len(like.columns if kept is None else kept)
    if format in columnar.FORMATS and width > _MOST_COLUMNS:
        raise LimitError(
            f"the output has {width:,} columns of the table, and a .{format} file has at most {_MOST_COLUMNS:,}",
            hint="--keep and --only leave columns out, --to csv and --to jsonl have room for all",
        )


def _check_names(names: Sequence[str], format: str, like: TableReader) -> None:
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
        self, format: str, stream: IO[bytes], names: Sequence[str], like: TableReader, kept: Sequence[str] | None
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

    def _write_header(self, like: TableReader, kept: Sequence[str] | None, alike: bool) -> None:
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
        block: RowBlock,
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


class ColumnarWriter:
    """Writes Parquet and Arrow. Columns of a columnar input keep their types; of a text input those that are needed as
    numbers become numbers, and others stay texts. Results are numbers, or lists of numbers for tensors."""

    def __init__(
        self, format: str, stream: IO[bytes], names: Sequence[str], like: TableReader, kept: Sequence[str] | None
    ) -> None:
        self._polars = by_polars.required("a table of rows")
        self._names = names
        self._kept = like.columns if kept is None else kept
        self._sink = _Sink(format, stream)
        self._schema: Any = None
        self.rows = 0

    def prepared(
        self,
        block: RowBlock,
        results: Mapping[str, NDArray[Any]],
        null: NDArray[numpy.bool],
        skip: NDArray[numpy.bool] | None = None,
    ) -> Any:
        own = [self._own(name, series, block) for name, series in zip(self._kept, block.fields.get_columns())]
        frame = self._polars.DataFrame([*own, *(self._numbers(name, results[name], null) for name in self._names)])
        return frame if skip is None else frame.filter(~self._polars.Series(skip))

    def _own(self, name: str, series: Any, block: RowBlock) -> Any:
        column: Column | None = block.numbers.get(name)
        if block.is_typed or series.dtype != self._polars.String or column is None:
            return series.alias(name)
        return self._numbers(name, column.values, column.missing)

    def _numbers(self, name: str, values: NDArray[Any], null: NDArray[numpy.bool]) -> Any:
        """A series of numbers, or of nested lists of them, with nulls."""
        import numpy

        polars, kind = self._polars, self._polars.Float64
        values, null = without(values, null)
        if values.dtype != numpy.object_ and values.ndim == 1:
            series = polars.Series(name, values, kind)
            return series.set(polars.Series(null), None) if null.any() else series
        for _ in range(max(map(numpy.ndim, compress(values, ~null)), default=0)):
            kind = polars.List(kind)
        rows = [None if gone else item.tolist() for gone, item in zip(null.tolist(), values)]
        return polars.Series(name, rows, kind)

    def write(self, prepared: Any) -> None:
        if self._schema is None:
            self._schema = prepared.schema
            self._sink.begin(self._schema)
        self._sink.take(self._fitted(prepared))
        self.rows += len(prepared)

    def _fitted(self, frame: Any) -> Any:
        """The frame cast to the column types of the first one; columns of nulls can be of any type."""
        if frame.schema == self._schema:
            return frame
        try:
            return frame.cast(self._schema)
        except self._polars.exceptions.PolarsError as error:
            raise OutputError(
                "results are numbers in some rows and tensors in others, which no column can be",
                hint="--to jsonl holds both",
            ) from error

    def close(self) -> None:
        if self._schema is None:
            self._sink.begin(
                dict.fromkeys(self._kept, self._polars.String) | dict.fromkeys(self._names, self._polars.Float64)
            )
        self._sink.end()

    def abandon(self) -> None:
        """Stop writing, and drop what is queued."""
        self._sink.abandon()


class _Sink:
    """Writes frames to a stream in a thread."""

    def __init__(self, format: str, stream: IO[bytes]) -> None:
        self._format = format
        self._stream = _Remembering(stream)
        self._frames: queue.Queue[Any] = queue.Queue(_MOST_QUEUED)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def begin(self, schema: Any) -> None:
        """Start the thread for frames of this schema."""
        self._thread = threading.Thread(target=self._run, args=[schema], daemon=True)
        self._thread.start()

    def take(self, frame: Any) -> None:
        """Queue a frame. Raises the error of the stream, possibly of an earlier frame; so does `end`."""
        while True:
            self._check()
            try:
                return self._frames.put(frame, timeout=_CHECK_INTERVAL)
            except queue.Full:
                continue

    def end(self) -> None:
        assert self._thread is not None
        self.take(None)
        self._thread.join()
        self._check()

    def abandon(self) -> None:
        """Stop the thread, whatever has been written."""
        while self._thread is not None and self._thread.is_alive():
            try:
                self._frames.put(_Abandoned(), timeout=_CHECK_INTERVAL)
            except queue.Full:
                continue
            self._thread.join()

    def _check(self) -> None:
        if self._error is not None:
            raise self._stream.error or OutputError(f"cannot write .{self._format}: {self._error}")

    def _run(self, schema: Any) -> None:
        from polars.io.plugins import register_io_source

        try:
            table = register_io_source(self._handed_over, schema=schema)
            if self._format == "parquet":
                table.sink_parquet(self._stream, row_group_size=_GROUP, compression="zstd", compression_level=_LEVEL)
            else:
                table.sink_ipc(self._stream, record_batch_size=_GROUP)
        except BaseException as error:
            # Panics of Polars are BaseExceptions; all errors are passed to the thread that queues frames.
            self._error = error

    def _handed_over(self, *_: object) -> Iterator[Any]:
        while (frame := self._frames.get()) is not None:
            if isinstance(frame, _Abandoned):
                raise frame
            yield frame


class _Abandoned(Exception):
    """The table will not be completed."""


class _Remembering:
    """A stream that keeps its exception, which Polars replaces by one of its own."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.error: Exception | None = None

    def write(self, data: bytes) -> int:
        try:
            return self._stream.write(data)
        except Exception as error:
            self.error = error
            raise

    def flush(self) -> None:
        self._stream.flush()
