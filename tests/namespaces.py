"""Finds the members and functions that an array namespace lacks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from gradcli.primitives import table
from gradcli.primitives.primitive import Primitive


def lacking(namespace: Any, protocol: Any) -> list[str]:
    """The members of a protocol that a namespace lacks, or has with another signature."""
    return [name for name in dir(protocol) if not name.startswith("_") and not _has(namespace, protocol, name)]


def _has(namespace: Any, protocol: Any, name: str) -> bool:
    found, asked = getattr(namespace, name, None), getattr(protocol, name)
    if isinstance(asked, property):
        return hasattr(namespace, name)
    if not callable(found):
        return False
    arguments, keywords = _arguments(asked)
    try:
        inspect.signature(found).bind(*arguments, **keywords)
    except TypeError:
        return False
    except ValueError:
        # C functions may not expose their signature.
        return inspect.isbuiltin(found)
    return True


def _arguments(method: Any) -> tuple[list[str], dict[str, str]]:
    """Placeholder arguments for all parameters of a method except `self`."""
    _, *parameters = inspect.signature(method).parameters.values()
    keywords = {p.name: "" for p in parameters if p.kind is p.KEYWORD_ONLY}
    return [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY], keywords


def lacking_functions(namespace: Any) -> list[str]:
    """The functions that entries request from a namespace by name and that it lacks."""
    return [name for name in _functions() if not callable(getattr(namespace, name, None))]


def _functions() -> Iterator[str]:
    for entry in table.entries():
        if isinstance(entry, Primitive) and entry.function is not None:
            yield entry.function


# The modules of each library that contain the functions named in entries.
LIBRARIES = {
    "numpy": ("numpy",),
    "standard": ("numpy",),
    "scipy": ("scipy.special",),
    "sympy": ("sympy",),
    "torch": ("torch", "torch.special"),
    "jax": ("jax.numpy", "jax.scipy.special"),
    "cupy": ("cupy", "cupyx.scipy.special"),
}


def misspelt(library: str) -> list[str]:
    """The spellings of entries that are not functions of a library, which must be installed."""
    modules = [import_module(name) for name in LIBRARIES[library]]
    spelled = [e.spelling[library] for e in table.entries() if isinstance(e, Primitive) and library in e.spelling]
    return [name for name in spelled if not any(_is_function(module, name) for module in modules)]


def _is_function(module: Any, name: str) -> bool:
    return callable(functools.reduce(lambda found, part: getattr(found, part, None), name.split("."), module))
