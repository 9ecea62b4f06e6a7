"""Conversion of columns of Parquet and Arrow to the types of JSON: numbers, truth values, texts, lists and objects."""

from __future__ import annotations

from typing import Any

from gradcli.io import by_polars


def plain(series: Any) -> Any:
    """A column in which types that JSON lacks are texts, in lists and objects too: dates and times in ISO 8601, decimal
    numbers with all digits, bytes in hexadecimal."""
    polars = by_polars.required("a table of rows")
    return polars.select(_plain(polars.lit(series), series.dtype, polars)).to_series()


def _plain(column: Any, kind: Any, polars: Any) -> Any:
    if isinstance(kind, polars.Array):
        return _plain(column.arr.to_list(), polars.List(kind.inner), polars)
    if isinstance(kind, polars.List):
        return column.list.eval(_plain(polars.element(), kind.inner, polars))
    if isinstance(kind, polars.Struct):
        fields = [_plain(polars.field(field.name), field.dtype, polars) for field in kind.fields]
        return column.struct.with_fields(fields)
    if kind == polars.Binary:
        return column.bin.encode("hex")
    if kind.is_temporal():
        return column.dt.to_string("iso")
    return column.cast(polars.String) if kind.is_decimal() or kind in (polars.Categorical, polars.Enum) else column
