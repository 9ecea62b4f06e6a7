"""Reads values with standard uncertainties as people write them: `5.0±0.1`, `5.0+-0.1`, `5.0(1)`, `5.0±2%`, lists of
them."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.errors import BindingError
from gradcli.evaluation.constant_expressions import constant
from gradcli.evaluation.nested_lists import Read, nested, unreadable
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.shape import stack

_MARK = re.compile(r"±|\+-|\+/-")
# The digits in parentheses stand for the last places of the value; with a decimal point they are the uncertainty itself
# (GUM, 7.2.2).
_CONCISE = re.compile(r"\s*([-+]?)(?=\.?\d)(\d*)(?:\.(\d*))?\((\d+|\d+\.\d*|\d*\.\d+)\)([eE][-+]?\d+)?\s*")
# An imaginary number at the end of a text, such as (2±0.1)j.
_IMAGINARY = re.compile(r"[\d.)][ij]\s*$")
REAL_HINT = "write complex(a, b) in the program, with a=1.0±0.1 and b=2.0±0.1"
HINT = "write x=5.0±0.1, x=5.0+-0.1, x=5.0(1) or x=5.0±2%, or a list of them"


class Uncertain(NamedTuple):
    """A number or an array, and the standard uncertainty of each element, of the same shape."""

    value: Any
    u: Any


def in_floats(whole: str) -> Read:
    """A reader of expressions in the text `whole` as float64."""
    return lambda text, offset: constant(text, "float64", whole, offset)


def is_uncertain(text: str) -> bool:
    """Whether the text of a value has an uncertainty."""
    return _MARK.search(text) is not None or any(
        _CONCISE.fullmatch(part) for part in re.split(r"[\[\],]", text) if part.strip()
    )


def read_uncertain(text: str, offset: int, whole: str, read: Read) -> Uncertain:
    """The value and uncertainties of a text that starts at `offset` of `whole`; `read` reads the numbers in it. A
    number without an uncertainty has the uncertainty 0.

    Raises BindingError, with the place, for an uncertainty that is negative or not finite, and for a text of another
    form.
    """
    if not is_uncertain(text):
        value = _real(read(text, offset), text, offset, whole)
        return Uncertain(value, value * 0.0)
    at = _mark(text)
    if at is None:
        concise = _CONCISE.fullmatch(text)
        if concise is not None:
            value, u = _in_last_places(concise)
            return Uncertain(read(value, offset), read(u, offset))
        shape, parts = nested(text, offset, whole, "values with uncertainties", HINT)
        if not shape and _IMAGINARY.search(text):
            raise _not_real(text, offset, whole)
        if not shape:
            raise unreadable("this is no value with an uncertainty", text, offset, whole, HINT)
        found = [read_uncertain(part.text, part.offset, whole, read) for part in parts]
        if any(arrays.shape(each.value) for each in found):
            raise unreadable("the rows of a nested list have different lengths", text, offset, whole, HINT)
        return Uncertain(*(_tensor([each[i] for each in found], shape) for i in (0, 1)))
    before, behind = text[: at.start()], text[at.end() :]
    if _MARK.search(behind) or not before.strip() or not behind.strip():
        raise unreadable("this is no value with an uncertainty", text, offset, whole, HINT)
    value = _real(read(before, offset), text, offset, whole)
    relative = behind.rstrip().endswith("%")
    u = _real(read(behind.rstrip()[:-1] if relative else behind, offset + at.end()), text, offset, whole)
    u = abs(concrete(value)) * u / 100 if relative else u
    return _checked(value, u, text, offset, whole)


def _real(value: Any, text: str, offset: int, whole: str) -> Any:
    """The value that was read. Raises BindingError for a complex one."""
    if arrays.is_complex(value):
        raise _not_real(text, offset, whole)
    return value


def _not_real(text: str, offset: int, whole: str) -> Exception:
    return unreadable("inputs of a propagation are real", text, offset, whole, REAL_HINT)


def _mark(text: str) -> re.Match[str] | None:
    """The first ± sign outside brackets."""
    for mark in _MARK.finditer(text):
        before = text[: mark.start()]
        if sum(map(before.count, "([")) == sum(map(before.count, ")]")):
            return mark
    return None


def _in_last_places(concise: re.Match[str]) -> tuple[str, str]:
    """The texts of value and uncertainty in concise notation."""
    sign, whole, fraction, digits, exponent = (part or "" for part in concise.groups())
    value = f"{sign}{whole or 0}.{fraction}" if fraction else f"{sign}{whole or 0}"
    if "." not in digits:
        digits = digits.rjust(len(fraction) + 1, "0")
        digits = f"{digits[: len(digits) - len(fraction)]}.{digits[len(digits) - len(fraction) :]}"
    return value + exponent, f"0{digits}0{exponent}"


def _tensor(numbers: list[Any], shape: tuple[int, ...]) -> Any:
    return reshape(stack(numbers), shape)


def _checked(value: Any, u: Any, text: str, offset: int, whole: str) -> Uncertain:
    """Value and uncertainty, broadcast to one shape and checked."""
    try:
        u = u + value * 0.0
    except (ValueError, TypeError):
        raise unreadable("value and uncertainty have different shapes", text, offset, whole, HINT) from None
    if arrays.shape(u) != arrays.shape(value):
        raise unreadable("value and uncertainty have different shapes", text, offset, whole, HINT)
    numbers = floats(u)
    if (numbers < 0).any():
        raise unreadable("an uncertainty is not negative", text, offset, whole, HINT)
    if not all(map(math.isfinite, [*numbers, *floats(value)])):
        raise unreadable("a value and its uncertainty are finite numbers", text, offset, whole, HINT)
    return Uncertain(value, u)


def floats(value: Any) -> Any:
    """The flattened numbers of a value as floats of NumPy; balls are rounded to the nearest ones."""
    np = arrays.numpy_namespace()
    numbers = getattr(value, "numbers", value)
    return np.asarray([float(number) for number in np.ravel(np.asarray(numbers, "object"))])


def uncertain_of_value(value: Any, name: str) -> Uncertain | None:
    """The value and uncertainty of a Python input: a text, or a tuple of both; None for numbers.

    Raises BindingError for a text or a tuple of another form, and for a negative uncertainty.
    """
    if isinstance(value, str):
        return read_uncertain(value, 0, value, in_floats(value))
    if type(value) is not tuple:
        return None
    np = arrays.numpy_namespace()
    try:
        number, u = (np.asarray(part, "float64") for part in value)
    except (TypeError, ValueError, OverflowError):
        raise BindingError(f"'{name}' is neither numbers nor (value, uncertainty)", hint=f"{name}=(5.0, 0.1)") from None
    return _checked(number[()], u[()], repr(value), 0, f"{name}={value!r}")
