"""The functions of the language in the meaning that `torch.nn.functional` has for their names."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from gradcli.primitives import table

    found = None if name.startswith("_") else table.find(name, "torch")
    if found is None:
        raise AttributeError(f"module 'gradcli.nn.functional' has no attribute {name!r}{table.beyond(name)}")
    # Kept here, where it is found from now on.
    globals()[name] = found
    return found
