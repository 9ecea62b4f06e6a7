"""Tables that are made here and written as files: by the ending of their name CSV, JSON lines, Parquet or Arrow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import IO, Any

from gradcli.errors import BindingError
from gradcli.io import by_polars, json_text
from gradcli.io.output import write_atomically
from gradcli.rows.sources import format_of
from gradcli.rows.targets import check_path, compressing

# Writes a file at a path by what is given a stream.
Save = Callable[[str, Callable[[IO[bytes]], object]], None]


def beside(columns: Mapping[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    """Columns and further ones behind them, of which none takes the place of another."""
    found = dict(columns)
    for name, column in further.items():
        found[free(name, found)] = column
    return found


def free(name: str, taken: Collection[str]) -> str:
    """A name, with as many `_` behind it as keep it apart from those that are taken."""
    while name in taken:
        name += "_"
    return name


def save(columns: Mapping[str, Any], path: str, save: Save = write_atomically) -> None:
    """Write the file `path` with these columns, arrays of n numbers or sequences of n numbers and texts.

    Raises UsageError for a name whose ending is that of no table, and BindingError for columns of one name or of
    different lengths.
    """
    check_path(path)
    format, compression = format_of(path)
    save(path, lambda stream: compressing(stream, lambda inner: write(columns, format or "csv", inner), compression))


def write(columns: Mapping[str, Any], format: str, stream: IO[bytes]) -> None:
    """Write columns in a format to a stream. Numbers are the shortest texts that read back as the same, where they are
    texts."""
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise BindingError("the columns of a table have different lengths")
    if format == "jsonl":
        stream.writelines(_line(dict(zip(columns, row))) for row in zip(*map(_listed, columns.values())))
        return
    polars = by_polars.needed("a table of rows")
    frame = polars.DataFrame([polars.Series(name, column, strict=False) for name, column in columns.items()])
    if format == "parquet":
        frame.write_parquet(stream)
    elif format == "arrow":
        frame.write_ipc(stream)
    else:
        texts = frame.select(_in_words(polars, series) for series in frame)
        texts.write_csv(stream, separator="\t" if format == "tsv" else ",")


def _listed(column: Any) -> Sequence[Any]:
    return column.tolist() if hasattr(column, "tolist") else column  # type: ignore[no-any-return]


def _line(row: Mapping[str, Any]) -> bytes:
    return json_text.dumps(row).encode() + b"\n"


def _in_words(polars: Any, series: Any) -> Any:
    """A series whose numbers are named where they are infinite, or none."""
    if not series.dtype.is_float():
        return series
    unusual = {"inf": "Infinity", "-inf": "-Infinity"}
    return series if series.is_finite().all() else series.cast(polars.String).replace(unusual)
