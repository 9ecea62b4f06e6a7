"""The import of Polars, which is optional, and the columnar files that it reads."""

from __future__ import annotations

from typing import IO, Any

from gradcli import install_command
from gradcli.errors import BindingError
from gradcli.timing import phase


@phase("import")
def installed() -> Any:
    """Polars, None where it is not installed."""
    try:
        import polars
    except ImportError:
        return None
    return polars


def required(what: str) -> Any:
    """Polars. Raises BindingError, which says that `what` needs it, where it is not installed."""
    polars = installed()
    if polars is None:
        raise BindingError(
            f"{what} needs Polars, which is not installed", hint=install_command.install_command("tables")
        )
    return polars


def scanned(polars: Any, file: str | IO[bytes], format: str) -> Any:
    """A Parquet or Arrow file as a lazy frame."""
    scan = polars.scan_parquet if format == "parquet" else polars.scan_ipc
    return scan(file)


def parts_of_complex(kind: Any) -> tuple[str, ...]:
    """The fields of a struct {re, im} of numbers, none for another type."""
    fields = {field.name: field.dtype for field in getattr(kind, "fields", ())}
    return ("re", "im") if fields.keys() == {"re", "im"} and all(f.is_numeric() for f in fields.values()) else ()
