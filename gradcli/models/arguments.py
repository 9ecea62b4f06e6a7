"""What Python gives to the models beside programs: numbers, names, mappings and paths, or an error that says what is expected."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import CallError, UsageError, expect
from gradcli.run import converted


def number(value: Any, what: str) -> float:
    """A number as a float; `what` it is stands in the error. Raises CallError for what is none, and UsageError for one
    that no float holds."""
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except OverflowError:
        raise UsageError(f"{what} is too large for a float") from None
    except (TypeError, ValueError):
        pass
    raise CallError(f"{what} is a number, not {type(value).__name__}")


def whole(value: Any, what: str, least: int) -> int:
    """A whole number. Raises CallError for what is none, and UsageError for one below `least`."""
    # A truth value is none, though Python counts it among them.
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise CallError(f"{what} is a whole number, not {type(value).__name__}")
    try:
        found = operator.index(value)
    except TypeError:
        # Arrays of more than one number have the method too.
        raise CallError(f"{what} is one whole number, not an array") from None
    if found < least:
        raise UsageError(f"{what} is {found}, and at least {least}")
    return found


def one_of(value: Any, known: Sequence[str], what: str) -> str:
    """A word of those that are known. Raises CallError for what is no text, and UsageError for another word."""
    expect(value, str, f"a {what} is a text")
    if value not in known:
        raise UsageError(f"there is no {what} {value!r}", hint=f"it is one of {', '.join(known)}")
    return str(value)


def names(value: Any, what: str) -> tuple[str, ...]:
    """Names, of which one may be given alone, and None is for none. Raises CallError for anything else."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        raise CallError(f"{what} is a name or a list of names, not a mapping")
    return converted.listed([value] if isinstance(value, str) else value)


def named(value: Any, what: str) -> dict[str, Any]:
    """A mapping of names, empty for None. Raises CallError for what is none, and for a key that is no text."""
    if value is None:
        return {}
    expect(value, Mapping, f"{what} is a mapping of names")
    for name in value:
        expect(name, str, "a name is a text")
    return dict(value)


def pair(value: Any, what: str) -> tuple[float, float]:
    """Two numbers. Raises CallError for what is no pair of them."""
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return number(value[0], what), number(value[1], what)
    raise CallError(f"{what} is a pair of numbers, not {type(value).__name__}")


def path(value: Any, what: str) -> str | None:
    """The path of a file as a text, None where there is none. Raises CallError for what is no path."""
    if value is None:
        return None
    expect(value, (str, os.PathLike), f"{what} is the path of a file")
    found = os.fspath(value)
    expect(found, str, f"{what} is the path of a file")
    return str(found)


def is_array(value: Any) -> bool:
    """Whether a value has more than one axis to go along, as columns of data have."""
    try:
        return bool(arrays.numpy_namespace().ndim(value))
    except ValueError:
        # A ragged list.
        return True
