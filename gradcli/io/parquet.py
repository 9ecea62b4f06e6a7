"""A column of a `.parquet` file."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gradcli import installing, limits
from gradcli.io.source import Source
from gradcli.timing import phase

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


def read_parquet(source: Source) -> NDArray[numpy.float64]:
    """One column, with shape (rows,) and nan for nulls.

    Raises BindingError where pyarrow is not installed, the file is damaged, there is no such column, or it
    holds something other than real numbers.
    """
    arrow = _pyarrow(source)
    try:
        return _read_column(source, arrow)
    except (arrow.ArrowException, OSError) as error:
        if getattr(error, "errno", None):
            # Not what pyarrow found in the file: the system could not read it.
            raise
        raise source.error("it is damaged, or no .parquet file", "write it again") from error


@phase("import")
def _pyarrow(source: Source) -> Any:
    # pyarrow ships no types, so it is Any here.
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise source.error(
            "a .parquet file needs pyarrow, which is not installed", installing.command("parquet")
        ) from error


def _read_column(source: Source, arrow: Any) -> NDArray[numpy.float64]:
    import numpy

    file = arrow.parquet.ParquetFile(source.stream)
    schema = file.schema_arrow
    name = source.choose("column", schema.names)
    if schema.names.count(name) > 1:
        raise source.error(f"it has more than one column {name!r}", "give the columns different names")
    _check_type(source, arrow, name, schema.field(name).type)
    source.check_elements(file.metadata.num_rows)
    # The column as it is read, and the array.
    limits.charge(2 * file.metadata.num_rows)
    column = file.read(columns=[name]).column(0).cast(arrow.float64(), safe=False)
    return numpy.array(column.fill_null(numpy.nan).to_numpy(), dtype=numpy.float64)


def _check_type(source: Source, arrow: Any, name: str, kind: Any) -> None:
    is_a = arrow.types
    real = is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_decimal(kind) or is_a.is_boolean(kind)
    if not real:
        raise source.error(f"column {name!r} holds {kind}, not real numbers", "choose a column of floats or integers")
