"""Reads values with standard uncertainties as people write them: `5.0±0.1`, `5.0+-0.1`, `5.0(1)`, `5.0±2%`, complex ones
as `(1±0.1)+(2±0.1)j`, lists of them."""

from __future__ import annotations

import math
import re
from typing import Any

from gradcli import arrays
from gradcli.errors import BindingError
from gradcli.evaluation.constant_expressions import constant
from gradcli.evaluation.nested_lists import Read, nested, unreadable
from gradcli.models.complex_inputs import parts_of
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.complex_parts import from_parts
from gradcli.primitives.entries.shape import stack

_MARK = re.compile(r"±|\+-|\+/-")
# The digits in parentheses stand for the last places of the value; with a decimal point they are the uncertainty itself
# (GUM, 7.2.2).
_CONCISE = re.compile(r"\s*([-+]?)(?=\.?\d)(\d*)(?:\.(\d*))?\((\d+|\d+\.\d*|\d*\.\d+)\)([eE][-+]?\d+)?\s*")
# A part of a complex number: in parentheses, or a number, with its digits in parentheses or without.
_PART = r"(?:\((?:[^()]|\([^()]*\))*\)|(?:\d+\.?\d*|\.\d+)(?:\([\d.]+\))?(?:[eE][-+]?\d+)?)"
_COMPLEX = re.compile(rf"\s*(?:(?P<real>[-+]?\s*{_PART})\s*(?=[-+]))?(?P<imag>[-+]?\s*{_PART})[ij]\s*")
# An imaginary number in a text, such as 1±0.1+2j±0.1.
_IMAGINARY = re.compile(r"[\d.)][ij]\b")
HINT = "write x=5.0±0.1, x=5.0+-0.1, x=5.0(1) or x=5.0±2%, or a list of them"
_COMPLEX_HINT = "both parts have their own, as in z=(1±0.1)+(2±0.1)j"


class Uncertain(NamedTuple):
    """A number or an array, and the standard uncertainty of each element, of the same shape. That of a complex element
    is complex: that of the real part, and that of the imaginary one."""

    value: Any
    u: Any


def in_floats(whole: str) -> Read:
    """A reader of expressions in the text `whole` as float64."""
    return lambda text, offset: constant(text, "float64", whole, offset)


def is_uncertain(text: str) -> bool:
    """Return whether the text of a value has an uncertainty."""
    return _MARK.search(text) is not None or any(_is_concise(part) for part in re.split(r"[\[\],]", text))


def _is_concise(text: str) -> bool:
    """Return whether a number, or a part of a complex one, has its uncertainty as digits in parentheses."""
    if _CONCISE.fullmatch(text):
        return True
    parts = _COMPLEX.fullmatch(text)
    return parts is not None and any(_CONCISE.fullmatch(_bare(part)) for part in parts.groups("0"))


def read_uncertain(text: str, offset: int, whole: str, read: Read) -> Uncertain:
    """The value and uncertainties of a text that starts at `offset` of `whole`; `read` reads the numbers in it. A
    number without an uncertainty has the uncertainty 0.

    Raises BindingError, with the place, for an uncertainty that is negative or not finite, and for a text of another
    form.
    """
    if not is_uncertain(text):
        value = read(text, offset)
        return Uncertain(value, value * 0.0)
    at = _mark(text)
    if at is None:
        concise = _CONCISE.fullmatch(text)
        if concise is not None:
            value, u = _in_last_places(concise)
            return Uncertain(read(value, offset), read(u, offset))
        parts = _COMPLEX.fullmatch(text)
        if parts is not None:
            return _of_parts(parts, offset, whole, read)
        shape, elements = nested(text, offset, whole, "values with uncertainties", HINT)
        if not shape:
            raise _unreadable(text, offset, whole)
        found = [read_uncertain(part.text, part.offset, whole, read) for part in elements]
        if any(arrays.shape(each.value) for each in found):
            raise unreadable("the rows of a nested list have different lengths", text, offset, whole, HINT)
        return Uncertain(*(_tensor([each[i] for each in found], shape) for i in (0, 1)))
    before, behind = text[: at.start()], text[at.end() :]
    if _MARK.search(behind) or not before.strip() or not behind.strip():
        raise _unreadable(text, offset, whole)
    value = _real(read(before, offset), text, offset, whole)
    relative = behind.rstrip().endswith("%")
    u = _real(read(behind.rstrip()[:-1] if relative else behind, offset + at.end()), text, offset, whole)
    u = abs(concrete(value)) * u / 100 if relative else u
    return _checked(value, u, text, offset, whole)


def _of_parts(parts: re.Match[str], offset: int, whole: str, read: Read) -> Uncertain:
    """The complex value whose parts are the groups of a match in the text at `offset` of `whole`."""
    real, imag = (_part(parts, name, offset, whole, read) for name in ("real", "imag"))
    return Uncertain(from_parts(real.value, imag.value), from_parts(real.u, imag.u))


def _part(parts: re.Match[str], name: str, offset: int, whole: str, read: Read) -> Uncertain:
    text = parts[name]
    if text is None:
        return Uncertain(read("0", offset), read("0", offset))
    start, bare = offset + parts.start(name), _bare(text)
    found = read_uncertain(bare, start + text.index(bare), whole, read)
    if arrays.shape(found.value) or arrays.is_complex(found.value):
        raise unreadable("the parts of a complex number are real numbers", text, start, whole, _COMPLEX_HINT)
    return found._replace(value=-found.value) if text.startswith("-") else found


def _bare(part: str) -> str:
    """A part of a complex number without its sign, and without the parentheses around it."""
    inner = part.lstrip("-+ ")
    return inner[1:-1] if inner.startswith("(") else inner


def _real(value: Any, text: str, offset: int, whole: str) -> Any:
    """The value that was read on a side of ±. Raises BindingError for a complex one."""
    if arrays.is_complex(value):
        raise unreadable("a complex number has no single uncertainty", text, offset, whole, _COMPLEX_HINT)
    return value


def _unreadable(text: str, offset: int, whole: str) -> Exception:
    hint = _COMPLEX_HINT if _IMAGINARY.search(text) else HINT
    return unreadable("this is no value with an uncertainty", text, offset, whole, hint)


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
    numbers = [number for part in parts_of(u) for number in floats(part)]
    if any(number < 0 for number in numbers):
        raise unreadable("an uncertainty is not negative", text, offset, whole, HINT)
    if not all(map(math.isfinite, [*numbers, *(number for part in parts_of(value) for number in floats(part))])):
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
        read = [np.asarray(part) for part in value]
        number, u = (part if arrays.is_complex(part) else np.asarray(part, "float64") for part in read)
    except (TypeError, ValueError, OverflowError):
        raise BindingError(f"'{name}' is neither numbers nor (value, uncertainty)", hint=f"{name}=(5.0, 0.1)") from None
    if arrays.is_complex(number) != arrays.is_complex(u):
        raise BindingError(
            f"of '{name}' either the value or the uncertainty is complex, and the other is real",
            hint=f"{name}=(1+2j, 0.1+0.3j) has the uncertainties 0.1 of the real part and 0.3 of the imaginary one",
        )
    return _checked(number[()], u[()], repr(value), 0, f"{name}={value!r}")
