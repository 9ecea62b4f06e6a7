"""The functions of the language that have another meaning in `numpy.linalg` and similar modules than without a
prefix."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from gradcli.primitives import table

    found = None if name.startswith("_") else table.find(name, "linalg")
    if found is None:
        raise AttributeError(f"module 'gradcli.linalg' has no attribute {name!r}{table.beyond(name)}")
    return found
