"""The table of the names that functions of the language have in the array libraries.

The entries of the language declare their spellings when they are defined. A namespace looks up each name once, and
needs no list of functions of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from gradcli.errors import BackendError
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import Any


class Spelling(NamedTuple):
    """The names under which libraries provide a function.

    `names` has its names by library, where they differ from the name in the language. `elementwise` functions convert
    integers to floats, unless `keeps_integers`. `truths` says that it returns truth values; `operator` is its binary
    operator, if any. `fallback` computes it from a namespace and the operands in a library that lacks it.
    """

    names: Mapping[str, str] = {}
    elementwise: bool = False
    keeps_integers: bool = False
    truths: bool = False
    operator: str | None = None
    fallback: Callable[..., Any] | None = None

    def within(self, library: str, name: str) -> str:
        """The name of the function `name` in a library."""
        return self.names.get(library, name)


_UNKNOWN = Spelling()
# Library functions that entries of the language are built from, without being entries themselves.
_declared = {
    name: Spelling({"scipy": name}, elementwise=True)
    for name in ("i0", "i0e", "i1", "i1e", "ive", "j0", "j1", "jv", "k1e", "zeta")
}
_declared["whole_iv"] = Spelling({"scipy": "iv"}, elementwise=True)


def declare(name: str, spelling: Spelling) -> None:
    _declared[name] = spelling


def of(name: str) -> Spelling:
    """The spelling declared for a function; an empty one if it is not declared."""
    return _declared.get(name, _UNKNOWN)


class MissingFunctionError(BackendError, AttributeError):
    """Raised if a library lacks a function."""

    def __init__(self, library: str, name: str) -> None:
        super().__init__(f"the backend {library} has no function '{name}'", hint="the backend numpy has it")


def defined(namespace: Any, name: str) -> Callable[..., Any]:
    """A function that the library of a namespace lacks, by the fallback of its entry.

    Raises MissingFunctionError if it has none.
    """
    fallback = of(name).fallback
    if fallback is None:
        raise MissingFunctionError(namespace.name, name)
    return partial(fallback, namespace)
