"""A column of a `.parquet` file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli import limits
from gradcli.io import by_polars, system
from gradcli.io.source import Source

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


def read_parquet(source: Source) -> NDArray[numpy.float64]:
    """One column, with shape (rows,) and nan for nulls.

    Raises BindingError where Polars is not installed, the file is damaged, there is no such column, or it
    holds something other than real numbers.
    """
    polars = by_polars.library(f"{source.path!r}, a .parquet file,")
    errors = polars.exceptions
    try:
        # Of a file that is damaged Polars writes there what its threads panic at.
        with system.without_standard_error():
            return _read_column(source, polars)
    except errors.DuplicateError as error:
        name = str(error).split("'")[1]
        raise source.error(f"it has more than one column {name!r}", "give the columns different names") from error
    except (errors.PolarsError, errors.PanicException, OSError) as error:
        if getattr(error, "errno", None):
            # Not what Polars found in the file: the system could not read it.
            raise
        raise source.error("it is damaged, or no .parquet file", "write it again") from error


def _read_column(source: Source, polars: Any) -> NDArray[numpy.float64]:
    import numpy

    file = polars.scan_parquet(source.stream)
    schema = file.collect_schema()
    name = source.choose("column", schema.names())
    kind = schema[name]
    if not (kind.is_numeric() or kind == polars.Boolean):
        raise source.error(f"column {name!r} holds {kind}, not real numbers", "choose a column of floats or integers")
    rows = file.select(polars.len()).collect().item()
    source.check_elements(rows)
    # The column as it is read, and the array.
    limits.charge(2 * rows)
    column = file.select(polars.col(name).cast(polars.Float64).fill_null(numpy.nan)).collect()
    return numpy.array(column.to_series().to_numpy(), dtype=numpy.float64)
