"""Writing of new tables from columns to files: CSV, JSON lines, Parquet or Arrow by their extension."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import IO, Any

from gradcli.errors import BindingError
from gradcli.io import by_polars, json_text
from gradcli.io.output import Save, write_atomically
from gradcli.rows.formats.outputs import check_path, compressing
from gradcli.rows.formats.sources import format_of


def beside(columns: Mapping[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    """Columns with further ones after them, which are renamed where their names are taken."""
    found = dict(columns)
    for name, column in further.items():
        found[unused_name(name, found)] = column
    return found


def unused_name(name: str, taken: Collection[str]) -> str:
    """A name, extended by as many `_` as make it different from those that are taken."""
    while name in taken:
        name += "_"
    return name


def save(columns: Mapping[str, Any], path: str, save: Save = write_atomically) -> None:
    """Write a table file with these columns, arrays or sequences of n numbers or texts.

    Raises UsageError for a path without the extension of a table format, and BindingError for columns of different
    lengths.
    """
    check_path(path)
    format, compression = format_of(path)
    save(path, lambda stream: compressing(stream, lambda inner: write(columns, format or "csv", inner), compression))


def write(columns: Mapping[str, Any], format: str, stream: IO[bytes]) -> None:
    """Write columns to a stream in a format. In text formats, a number is the shortest text that reads back as the same
    number."""
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise BindingError("the columns of a table have different lengths")
    if format == "jsonl":
        stream.writelines(_line(dict(zip(columns, row))) for row in zip(*map(_listed, columns.values())))
        return
    polars = by_polars.required("a table of rows")
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
    """A series in which infinite and nan numbers are spelled out as texts."""
    if not series.dtype.is_float():
        return series
    unusual = {"inf": "Infinity", "-inf": "-Infinity"}
    return series if series.is_finite().all() else series.cast(polars.String).replace(unusual)
