"""Validation and conversion of Python arguments of models other than programs: numbers, names, mappings and paths."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import CallError, UsageError, expect
from gradcli.evaluation import python_values


def number(value: Any, what: str) -> float:
    """A number as a float; `what` names the argument in error messages. Raises CallError for a value that is not a
    number, and UsageError for one that is too large for a float."""
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except OverflowError:
        raise UsageError(f"{what} is too large for a float") from None
    except (TypeError, ValueError):
        pass
    raise CallError(f"{what} is a number, not {type(value).__name__}")


def integer(value: Any, what: str, least: int) -> int:
    """A whole number as an int. Raises CallError for a value that is not a whole number, and UsageError for one below
    `least`."""
    # bool is a subclass of int, but a truth value is not accepted as a number.
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise CallError(f"{what} is a whole number, not {type(value).__name__}")
    try:
        found = operator.index(value)
    except TypeError:
        # Arrays with several elements have `__index__` too.
        raise CallError(f"{what} is one whole number, not an array") from None
    if found < least:
        raise UsageError(f"{what} is {found}, and at least {least}")
    return found


def one_of(value: Any, known: Sequence[str], what: str) -> str:
    """A text that is one of the `known` words. Raises CallError for a value that is not a text, and UsageError for an
    unknown word."""
    expect(value, str, f"a {what} is a text")
    if value not in known:
        raise UsageError(f"there is no {what} {value!r}", hint=f"it is one of {', '.join(known)}")
    return str(value)


def names(value: Any, what: str) -> tuple[str, ...]:
    """A tuple of names from a single name, a list of names, or None (no names). Raises CallError for anything else."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        raise CallError(f"{what} is a name or a list of names, not a mapping")
    return python_values.names_tuple([value] if isinstance(value, str) else value)


def mapping_by_name(value: Any, what: str) -> dict[str, Any]:
    """A dict from a mapping by name, empty for None. Raises CallError for a value that is not a mapping, and for a key
    that is not a text."""
    if value is None:
        return {}
    expect(value, Mapping, f"{what} is a mapping of names")
    for name in value:
        expect(name, str, "a name is a text")
    return dict(value)


def pair(value: Any, what: str) -> tuple[float, float]:
    """A pair of numbers as floats. Raises CallError for anything else."""
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return number(value[0], what), number(value[1], what)
    raise CallError(f"{what} is a pair of numbers, not {type(value).__name__}")


def path(value: Any, what: str) -> str | None:
    """The path of a file as a text, or None for None. Raises CallError for a value that is not a path."""
    if value is None:
        return None
    expect(value, (str, os.PathLike), f"{what} is the path of a file")
    found = os.fspath(value)
    expect(found, str, f"{what} is the path of a file")
    return str(found)


def is_array(value: Any) -> bool:
    """Return whether a value has at least one axis, as columns of data have."""
    try:
        return bool(arrays.numpy_namespace().ndim(value))
    except ValueError:
        # NumPy refuses ragged lists.
        return True
