"""Reading of columnar formats, Parquet and Arrow, from a file, a URL that Polars reads, or a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any

from gradcli.errors import BindingError
from gradcli.io import by_polars
from gradcli.io.file_formats import columnar_format
from gradcli.rows.formats import columns, sources
from gradcli.rows.formats.blocks import Column, RowBlock, UnparsedPiece
from gradcli.rows.formats.json_lines import numbers
from gradcli.rows.formats.reading import ByteRange, ColumnSelection, TableReader, TableReadOptions, closed_on_error

FORMATS = ("parquet", "arrow")
# The first bytes of an Arrow stream, which only tables are read from.
_ARROW_STREAM = b"\xff\xff\xff\xff"
# Bytes of a block per field: a number, with its copies during the evaluation.
_FIELD = 16
# Rows of the first block, which is small because the pipeline processes it alone.
_FIRST = 2**12
_SHOWN = 40


def detected_format(head: bytes) -> str | None:
    """The format that the first bytes of a file name, None for other formats."""
    return "arrow" if head.startswith(_ARROW_STREAM) else columnar_format(head)


class ColumnarReader(TableReader):
    """A Parquet or Arrow file, whose `rows` rows are decoded on demand."""

    divisible = True

    def __init__(
        self,
        source: str,
        format: str,
        reading: TableReadOptions,
        part: ByteRange | None = None,
        file: IO[bytes] | None = None,
    ) -> None:
        """The table at `source`, or in a `file`, which is closed with the reader."""
        self._polars = by_polars.required(repr(source))
        self.name, self.format = source, format
        self._file = file if file is not None or sources.is_url(source) else sources.opened(source)
        self._block = reading.block
        with self._readable(), closed_on_error(self):
            self.size = None if self._file is None else self._file.seek(0, 2)
            self._table = self._scanned()
            self.columns = self._table.collect_schema().names()
            self.rows = int(self._table.select(self._polars.len()).collect().item())
        self._part = part or ByteRange(0, self.rows)

    def _scanned(self) -> Any:
        """The table as a lazy frame of Polars."""
        if self._file is None:
            return by_polars.scanned(self._polars, self.name, self.format)
        self._file.seek(0)
        if self._file.read(len(_ARROW_STREAM)) == _ARROW_STREAM:
            # Polars can read an Arrow stream only as a whole.
            return self._polars.read_ipc_stream(_ARROW_STREAM + self._file.read()).lazy()
        self._file.seek(0)
        return by_polars.scanned(self._polars, self._file, self.format)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """A context in which Polars' errors about the file become BindingErrors."""
        errors = self._polars.exceptions
        try:
            with sources.readable(self.name):
                yield
        except (errors.PolarsError, errors.PanicException) as error:
            said = f"it is damaged, or no {self.format} file"
            if isinstance(error, errors.DuplicateError):
                said = "it has several columns of one name"
            raise BindingError(f"cannot read {self.name!r}: {said}", hint="write it again") from error

    def pieces(self, chosen: ColumnSelection) -> Iterator[UnparsedPiece]:
        kept = self.columns if chosen.kept is None else chosen.kept
        names = dict.fromkeys([*kept, *chosen.needed, *chosen.texts])
        own = [self.columns[self.column_index(name)] for name in names]
        # Rows count even where none of their columns is needed.
        table = self._table.select(own or self.columns[:1]).slice(self._part.start, self._part.end - self._part.start)
        rows = max(1, self._block // (_FIELD * max(1, len(own))))
        with self._readable():
            # From here on Polars prefetches batches.
            frames = table.collect_batches(chunk_size=rows, maintain_order=True)
        return self._pieces(frames, chosen._replace(kept=kept))

    def _pieces(self, frames: Iterable[Any], chosen: ColumnSelection) -> Iterator[UnparsedPiece]:
        with self._readable():
            for frame in _beginning_apart(frames):
                size = (self.size or 0) * len(frame) // self.rows
                yield UnparsedPiece(size, partial(_block, frame, chosen))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _beginning_apart(frames: Iterable[Any]) -> Iterator[Any]:
    """The frames, with the first one split in two, so that its first rows are evaluated on their own."""
    for place, frame in enumerate(frames):
        if place or len(frame) <= _FIRST:
            yield frame
        else:
            yield from (frame[:_FIRST], frame[_FIRST:])


def _block(frame: Any, chosen: ColumnSelection) -> RowBlock:
    return RowBlock(
        rows=len(frame),
        numbers={name: _numbers(frame[name]) for name in chosen.needed},
        texts={name: frame[name].cast(str, strict=False).to_list() for name in chosen.texts},
        fields=frame.select(chosen.kept),
        is_typed=True,
    )


def _numbers(series: Any) -> Column:
    """A column of numbers from a series: numbers, truth values, texts of numbers, or lists of numbers, whose rows are
    tensors. Structs {re, im} are complex numbers. Values of other types are failing."""
    import numpy

    polars = by_polars.required("a table of rows")
    kind = series.dtype
    if kind.is_numeric() or kind in (polars.Boolean, polars.Null):
        return Column(_with_nan(series.cast(polars.Float64)), _missing(series), {})
    if kind in (polars.String, polars.Categorical, polars.Enum):
        return columns.of_texts(series.cast(polars.String), columns.Fractions())
    if parts := by_polars.parts_of_complex(kind):
        values, missing = numpy.empty(len(series), numpy.complex128), _missing(series)
        fields = [series.struct.field(part).cast(polars.Float64) for part in parts]
        values.real, values.imag = map(_with_nan, fields)
        for field in fields:
            missing = missing | _missing(field)
        return Column(values, missing, {})
    if kind in (polars.List, polars.Array):
        return _tensors(series) or numbers(series.to_list())
    what = "a date or a time" if kind.is_temporal() else f"a {kind.base_type()}"
    there = series.is_not_null().arg_true().to_list()
    failing = {index: f"{str(series[index])[:_SHOWN]!r} is {what}" for index in there}
    nothing = polars.repeat(None, len(series), dtype=polars.Float64, eager=True)
    return Column(_with_nan(nothing), _missing(series), failing)


def _tensors(series: Any) -> Column | None:
    """Lists of numbers of equal shapes as an array `[n, …]`; None where shapes differ or elements are missing."""
    import numpy

    polars = by_polars.required("a table of rows")
    count, shape, flat = len(series), [], series
    while flat.dtype in (polars.List, polars.Array):
        lengths = (flat.list if flat.dtype == polars.List else flat.arr).len()
        if flat.null_count() or lengths.n_unique() != 1 or not lengths[0]:
            return None
        shape.append(lengths[0])
        flat = flat.explode()
    if flat.null_count() or not flat.dtype.is_numeric():
        return None
    values = flat.cast(polars.Float64).to_numpy().reshape(count, *shape)
    return Column(values, numpy.zeros(count, numpy.bool), {})


def _with_nan(values: Any) -> Any:
    """A series of floats as an array with nan for nulls."""
    # Nulls are rare, and a query for them takes 20 times as long as the conversion.
    return (values.fill_null(float("nan")) if values.null_count() else values).to_numpy()


def _missing(series: Any) -> Any:
    """A mask of the nulls of a series."""
    import numpy

    return series.is_null().to_numpy() if series.null_count() else numpy.zeros(len(series), numpy.bool)
