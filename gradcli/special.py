"""The special functions of the language, by their names in `torch.special` and `scipy.special`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from gradcli.primitives import table

    found = None if name.startswith("_") else table.find(name, "scipy.special")
    if found is None:
        raise AttributeError(f"module 'gradcli.special' has no attribute {name!r}{table.reason_suffix(name)}")
    return found
