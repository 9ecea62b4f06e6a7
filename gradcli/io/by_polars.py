"""The door to Polars, which reads tables."""

from __future__ import annotations

from typing import Any

from gradcli import installing
from gradcli.errors import BindingError
from gradcli.timing import phase


@phase("import")
def library(what: str) -> Any:
    """Polars. Raises BindingError, which says that `what` needs it, where it is not installed."""
    try:
        import polars
    except ImportError as error:
        raise BindingError(f"{what} needs Polars, which is not installed", hint=installing.command("tables")) from error
    return polars
