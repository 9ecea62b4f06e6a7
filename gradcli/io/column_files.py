"""Reading of a column of a `.parquet`, `.arrow` or `.feather` file by Polars."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gradcli import limits
from gradcli.io import by_polars, system
from gradcli.io.source import Source

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


def read_columnar(source: Source, scan: str) -> NDArray[numpy.float64]:
    """One column, with shape (rows,) and nan for nulls, of a file that Polars opens with the function named `scan`.

    Raises BindingError where Polars is not installed, the file is damaged, there is no such column, or it holds
    something other than real numbers.
    """
    suffix = os.path.splitext(source.path)[1].lower()
    polars = by_polars.needed(f"{source.path!r}, a {suffix} file,")
    errors = polars.exceptions
    try:
        # For damaged files, panics of Polars' threads are printed to standard error.
        with system.without_standard_error():
            source.stream.seek(0)
            return _read_column(source, polars, getattr(polars, scan)(source.stream))
    except errors.DuplicateError as error:
        name = str(error).split("'")[1]
        raise source.error(f"it has more than one column {name!r}", "give the columns different names") from error
    except (errors.PolarsError, errors.PanicException, OSError) as error:
        if getattr(error, "errno", None):
            # The system could not read the file.
            raise
        raise source.error(f"it is damaged, or no {suffix} file", "write it again") from error


def _read_column(source: Source, polars: Any, file: Any) -> NDArray[numpy.float64]:
    import numpy

    schema = file.collect_schema()
    name = source.choose("column", schema.names())
    kind = schema[name]
    if not (kind.is_numeric() or kind == polars.Boolean):
        raise source.error(f"column {name!r} holds {kind}, not real numbers", "choose a column of floats or integers")
    rows = file.select(polars.len()).collect().item()
    source.check_elements(rows)
    # Charge the column that is read and its copy in the array.
    limits.charge(2 * rows)
    column = file.select(polars.col(name).cast(polars.Float64).fill_null(numpy.nan)).collect()
    return numpy.array(column.to_series().to_numpy(), dtype=numpy.float64)
