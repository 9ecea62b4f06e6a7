"""Parquet and Arrow files that are written block by block.

Polars asks for what it writes: it does so in a thread of its own, to which the blocks are handed.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import IO, TYPE_CHECKING, Any

from gradcli.errors import OutputError
from gradcli.io import by_polars
from gradcli.rows.absent import without
from gradcli.rows.blocks import Block, Column
from gradcli.rows.reading import Reader

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

# Rows of a row group, and of a batch of Arrow: so many whatever the blocks are.
_GROUP = 2**17
# Of zstd, as Apache Arrow has it: floats take no more room than by Polars' own, which is 3, and a fifth less time of a core;
# what repeats itself takes 5 percent more.
_LEVEL = 1
# Blocks that wait to be written, and seconds after which it is seen whether somebody still writes them.
_WAITING, _PATIENCE = 4, 0.1


class ColumnarWriter:
    """Writes Parquet and Arrow: the columns of such a table as they are, of text those that are needed as numbers and
    others as texts, and results as numbers, or lists of numbers where they are tensors."""

    def __init__(
        self, format: str, stream: IO[bytes], names: Sequence[str], like: Reader, kept: Sequence[str] | None
    ) -> None:
        self._polars = by_polars.needed("a table of rows")
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
        if block.kinds or series.dtype != self._polars.String or column is None:
            return series.alias(name)
        return self._numbers(name, column.values, column.missing)

    def _numbers(self, name: str, values: NDArray[Any], null: NDArray[numpy.bool]) -> Any:
        """A series of numbers, or of lists of them, with nulls."""
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
        """The frame with columns of the types of the first one: where all is null, any type will do."""
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
        """Let go of what was written, which is of no use any more."""
        self._sink.abandon()


class _Sink:
    """What writes frames to a stream."""

    def __init__(self, format: str, stream: IO[bytes]) -> None:
        self._format = format
        self._stream = _Remembering(stream)
        self._frames: queue.Queue[Any] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def begin(self, schema: Any) -> None:
        """Write frames of this schema from now on."""
        self._thread = threading.Thread(target=self._run, args=[schema], daemon=True)
        self._thread.start()

    def take(self, frame: Any) -> None:
        """Raises what the stream has raised, of an earlier frame perhaps; so does `end`."""
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
        """Stop, whatever has been written."""
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
            # Polars' panics are no Exceptions; none goes anywhere from here but to who hands over.
            self._error = error

    def _handed_over(self, *_: object) -> Iterator[Any]:
        while (frame := self._frames.get()) is not None:
            if isinstance(frame, _Abandoned):
                raise frame
            yield frame


class _Abandoned(Exception):
    """Nobody wants what is written."""


class _Remembering:
    """A stream that remembers what went wrong with it, which Polars says in words of its own."""

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
