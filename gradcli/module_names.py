"""Packages that are loaded under a second name, as `torch.nn` is after `sys.modules["torch"] = gradcli`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module


def share(name: str, package: str, parts: Sequence[str] = ()) -> None:
    """Let the name, and those of modules below it, stand for a package and its modules: those that are loaded, and the parts
    named here, which are loaded now. Loaded anew from their files, they had classes of their own, which
    are no subclasses of those of the package."""
    for module in (package, *(f"{package}.{part}" for part in parts)):
        import_module(module)
    for loaded, found in [*sys.modules.items()]:
        if loaded == package or loaded.startswith(f"{package}."):
            sys.modules[name + loaded.removeprefix(package)] = found
