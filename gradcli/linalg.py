"""The functions of the language in the meaning that modules such as `numpy.linalg` have for their names."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from gradcli.primitives import table

    found = None if name.startswith("_") else table.find(name, "linalg")
    if found is None:
        raise AttributeError(f"module 'gradcli.linalg' has no attribute {name!r}{table.beyond(name)}")
    return found
