"""What the functions of the language are called in the array libraries. The entries of the table say it when they
are made; a namespace looks up a name once, so that none has a list of functions of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from gradcli.errors import BackendError


class Spelling(NamedTuple):
    """A function: its names in libraries, by library, where they are not the one that it has here; whether it is
    one of each element by itself, in which whole numbers become floats unless it `keeps_integers`; whether
    it gives truth values; its operator, if it is one between two operands; and what computes it, from a
    namespace and operands, where a library lacks it."""

    names: Mapping[str, str] = {}
    elementwise: bool = False
    keeps_integers: bool = False
    truths: bool = False
    operator: str | None = None
    fallback: Callable[..., Any] | None = None

    def within(self, library: str, name: str) -> str:
        """What a library calls the function `name`."""
        return self.names.get(library, name)


_UNKNOWN = Spelling()
# Functions of the libraries that entries are made of, and none is called, are here before all entries.
_declared = {
    name: Spelling({"scipy": name}, elementwise=True)
    for name in ("i0", "i0e", "i1", "i1e", "ive", "j0", "j1", "jv", "k1e", "zeta")
}
_declared["whole_iv"] = Spelling({"scipy": "iv"}, elementwise=True)


def declare(name: str, spelling: Spelling) -> None:
    _declared[name] = spelling


def of(name: str) -> Spelling:
    """What is known of the function of this name; nothing, where it is no entry's."""
    return _declared.get(name, _UNKNOWN)


class MissingFunctionError(BackendError, AttributeError):
    """A library was asked for a function that it does not have."""

    def __init__(self, library: str, name: str) -> None:
        super().__init__(f"the backend {library} has no function '{name}'", hint="the backend numpy has it")


def defined(namespace: Any, name: str) -> Callable[..., Any]:
    """A function that the library of a namespace lacks, as its entry defines it in others.

    Raises MissingFunctionError where it does not.
    """
    fallback = of(name).fallback
    if fallback is None:
        raise MissingFunctionError(namespace.name, name)
    return partial(fallback, namespace)
