"""The functions of the language, with the meaning that their names have in `numpy.linalg` and similar modules."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from gradcli.primitives import table

    found = None if name.startswith("_") else table.find(name, "linalg")
    if found is None:
        raise AttributeError(f"module 'gradcli.linalg' has no attribute {name!r}{table.reason_suffix(name)}")
    return found
