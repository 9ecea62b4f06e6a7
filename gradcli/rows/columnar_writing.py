"""Writing of Parquet and Arrow files block by block.

Polars pulls the data that it writes, so that it runs in a separate thread, to which blocks are passed through a queue.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import IO, TYPE_CHECKING, Any

from gradcli.errors import OutputError
from gradcli.io import by_polars
from gradcli.rows.blocks import Block, Column
from gradcli.rows.masked_results import without
from gradcli.rows.reading import Reader

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

# Rows of a Parquet row group and of an Arrow record batch, whatever the size of blocks.
_GROUP = 2**17
# The zstd level, that of Apache Arrow. Compared with Polars' default of 3, floats take no more space and a fifth less
# CPU time; repetitive data take 5 percent more space.
_LEVEL = 1
# Upper bound of the queued blocks, and seconds between checks of whether the writing thread failed.
_WAITING, _PATIENCE = 4, 0.1


class ColumnarWriter:
    """Writes Parquet and Arrow. Columns of a columnar input keep their types; of a text input those that are needed as
    numbers become numbers, and others stay texts. Results are numbers, or lists of numbers for tensors."""

    def __init__(
        self, format: str, stream: IO[bytes], names: Sequence[str], like: Reader, kept: Sequence[str] | None
    ) -> None:
        self._polars = by_polars.required("a table of rows")
        self._names = names
        self._kept = like.columns if kept is None else kept
        self._sink = _Sink(format, stream)
        self._schema: Any = None
        self.rows = 0

    def prepared(
        self,
        block: Block,
        results: Mapping[str, NDArray[Any]],
        null: NDArray[numpy.bool],
        skip: NDArray[numpy.bool] | None = None,
    ) -> Any:
        own = [self._own(name, series, block) for name, series in zip(self._kept, block.fields.get_columns())]
        frame = self._polars.DataFrame([*own, *(self._numbers(name, results[name], null) for name in self._names)])
        return frame if skip is None else frame.filter(~self._polars.Series(skip))

    def _own(self, name: str, series: Any, block: Block) -> Any:
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
        self._frames: queue.Queue[Any] = queue.Queue(_WAITING)
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
                return self._frames.put(frame, timeout=_PATIENCE)
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
                self._frames.put(_Abandoned(), timeout=_PATIENCE)
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
