"""What a namespace lacks of that which every library must have."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from gradcli.primitives import table
from gradcli.primitives.primitive import Primitive


def lacking(namespace: Any, protocol: Any) -> list[str]:
    """The members of a protocol that are not there, or are not called as it says."""
    return [name for name in dir(protocol) if not name.startswith("_") and not _has(namespace, protocol, name)]


def _has(namespace: Any, protocol: Any, name: str) -> bool:
    found, asked = getattr(namespace, name, None), getattr(protocol, name)
    if isinstance(asked, property):
        return found is not None
    if not callable(found):
        return False
    arguments, keywords = _arguments(asked)
    try:
        inspect.signature(found).bind(*arguments, **keywords)
    except TypeError:
        return False
    except ValueError:
        # What is written in C may not say how it is called.
        return inspect.isbuiltin(found)
    return True


def _arguments(method: Any) -> tuple[list[str], dict[str, str]]:
    """Something for every parameter of a method but `self`."""
    _, *parameters = inspect.signature(method).parameters.values()
    keywords = {p.name: "" for p in parameters if p.kind is p.KEYWORD_ONLY}
    return [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY], keywords


def lacking_functions(namespace: Any) -> list[str]:
    """The functions that entries ask a namespace for by name, and it has not."""
    return [name for name in _functions() if not callable(getattr(namespace, name, None))]


def _functions() -> Iterator[str]:
    for entry in table.entries():
        if isinstance(entry, Primitive) and entry.function is not None:
            yield entry.function
