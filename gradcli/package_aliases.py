"""Registers packages in `sys.modules` under a second name, as `torch.nn` after `sys.modules["torch"] = gradcli`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module


def alias_package(name: str, package: str, parts: Sequence[str] = ()) -> None:
    """Register a package and its loaded modules under `name` as well, after importing `parts` of it.

    If they were loaded again from their files under the second name, they would have different classes, which are no
    subclasses of those of the package.
    """
    for module in (package, *(f"{package}.{part}" for part in parts)):
        import_module(module)
    for loaded, found in [*sys.modules.items()]:
        if loaded == package or loaded.startswith(f"{package}."):
            sys.modules[name + loaded.removeprefix(package)] = found


def alias_files(package: str, files: Mapping[str, str]) -> None:
    """Register modules of a package under PyTorch's names of its files: `files` has these names, separated by spaces, by
    the name of the module that has their contents; "" is the package."""
    for own, names in files.items():
        module = import_module(f"{package}.{own}" if own else package)
        for name in names.split():
            sys.modules.setdefault(f"{package}.{name}", module)
