"""The contents of `torch.utils`: checkpoints and data loading."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    # These submodules are available without an import statement of their own, as in PyTorch.
    if name not in ("checkpoint", "data"):
        raise AttributeError(f"module 'gradcli.utils' has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"gradcli.utils.{name}")


if __name__ != "gradcli.utils":
    from gradcli.package_aliases import alias_package

    alias_package(__name__, "gradcli.utils", ("checkpoint", "data"))
