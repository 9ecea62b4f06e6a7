"""Conversion of JSON numbers and nested lists of numbers to floats and arrays."""

from __future__ import annotations

import io
import json
import math
import re
from itertools import chain
from typing import TYPE_CHECKING, Any

from gradcli import limits
from gradcli.errors import BindingError, Span
from gradcli.io import system
from gradcli.io.source import Source
from gradcli.timing import phase

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUMBERS_HINT = (
    'give a number, one of "NaN" "Infinity" "-Infinity", a complex {"re": 1, "im": 2}, or nested lists of these'
)
# The texts that stand in JSON for numbers that it cannot represent.
SPECIAL_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", re.ASCII)
_SPACE = re.compile(r"[ \t\n\r]*")
# The largest number of axes of a NumPy array.
_MOST_AXES = 64
# Upper bound of the characters of a JSON text: its values take ten times the memory, and seconds to decode.
MAX_TEXT = 50_000_000
# Characters that are decoded for 1/8 of a step, and the charge for each item of a list, in units of 1/8 of a step.
_CHARACTERS = 16
_ITEM = 1


class DecimalFloat(float):
    """A float that keeps the decimal text it was written as."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def read_json(source: Source) -> float | complex | NDArray[Any]:
    """The number or array of a `.json` file. Raises BindingError where the file holds anything else."""
    source.refuse_member()
    with io.TextIOWrapper(source.stream, encoding="utf-8-sig") as stream:
        text = system.text_of(stream, MAX_TEXT)
    charge_text(text)
    value, end = decode(text, 0, source.name, source.exact)
    expect_end(text, end, f"{source.name} goes on after its value", "put a single value in it")
    result = numbers(value, source.name, source.exact)
    source.check_elements(1 if isinstance(result, (float, complex)) else result.size)
    return result


def is_number(text: str) -> bool:
    """Return whether a text is a single JSON number, without spaces around it."""
    return _NUMBER.fullmatch(text) is not None


def charge_text(text: str) -> None:
    """Charge the decoding of a text against the limit of steps."""
    limits.charge_steps(len(text) // _CHARACTERS)


def expect_end(text: str, at: int, message: str, hint: str) -> None:
    """Raise BindingError where the text has anything but whitespace from offset `at` on."""
    at = skip_space(text, at)
    if at < len(text):
        raise BindingError(message, hint=hint, source=text, span=Span(at, at + 1))


def skip_space(text: str, at: int) -> int:
    """The offset of the first character at or after `at` that is not JSON whitespace."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def decode(text: str, at: int, what: str, exact: bool = False) -> tuple[object, int]:
    """The JSON value that starts at or after offset `at`, and the offset of its end. Every number is a float, or a
    `DecimalFloat` one where it is to be `exact`.

    Raises BindingError, which points into `text` and calls it `what`, where there is no value.
    """
    if len(text) > MAX_TEXT:
        raise BindingError(
            f"{what} is longer than {MAX_TEXT:,} characters",
            hint="save large arrays with numpy.save, for NAME=@PATH.npy",
        )
    at = skip_space(text, at)
    try:
        return (_EXACT_DECODER if exact else _DECODER).raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise BindingError(
            f"{what} is not JSON: {error.msg[0].lower()}{error.msg[1:]}",
            hint="check quotes, commas and brackets at this place",
            source=text,
            span=Span(error.pos, error.pos + 1),
        ) from error
    except RecursionError as error:
        raise BindingError(
            f"{what} is nested too deeply",
            hint=f"arrays have at most {_MOST_AXES} axes",
            source=text,
            span=Span(at, at + 1),
        ) from error


# Python and other programs write nan and infinities without quotes; they are accepted like quoted ones.
_DECODER = json.JSONDecoder(parse_int=float, parse_constant=str)
_EXACT_DECODER = json.JSONDecoder(parse_int=DecimalFloat, parse_float=DecimalFloat, parse_constant=str)


def numbers(value: object, what: str, exact: bool = False) -> float | complex | NDArray[Any]:
    """A decoded number as a float, and decoded nested lists as a C-contiguous float64 array, or an object array where
    they are to be `exact`.

    Complex numbers are objects {"re": …, "im": …} of numbers or of nested lists; they become `complex` and complex128.
    Raises BindingError, which calls the value `what`, for anything else, such as ragged lists.
    """
    if _is_complex(value):
        return _complex_numbers(value, what, exact)
    if not isinstance(value, list):
        number = _number(value)
        if number is None:
            raise _not_numbers(what, value)
        return number
    shape = _shape(value, what)
    items = _flatten(value, shape, what)
    values = [_number(item) for item in items]
    if None in values:
        at = values.index(None)
        raise _not_numbers(what + _index(at, shape), items[at], nested=True)
    with phase("import"):
        import numpy

    dtype = object if exact else numpy.complex128 if complex in map(type, values) else numpy.float64
    return numpy.array(values, dtype=dtype).reshape(shape)


def _is_complex(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"re", "im"}


def _complex_numbers(value: Any, what: str, exact: bool) -> complex | NDArray[Any]:
    """The complex number or array of an object {"re": …, "im": …}."""
    real, imaginary = (numbers(value[part], f"{part!r} of {what}", exact) for part in ("re", "im"))
    for name, part in (("re", real), ("im", imaginary)):
        if isinstance(part, complex) or getattr(getattr(part, "dtype", None), "kind", "") == "c":
            raise _not_numbers(f"{name!r} of {what}", value[name])
    shapes = [list(getattr(part, "shape", ())) for part in (real, imaginary)]
    if shapes[0] != shapes[1]:
        raise BindingError(
            f"{what} has real parts of shape {shapes[0]} and imaginary parts of shape {shapes[1]}",
            hint="both have the same shape",
        )
    if not shapes[0]:
        return complex(real, imaginary)
    import numpy

    found = numpy.empty(shapes[0], object if exact else numpy.complex128)
    # Set part by part: a sum with 1j times an infinite part would have a real part of nan.
    if exact:
        found[...] = numpy.vectorize(complex, otypes=[object])(real, imaginary)
    else:
        found.real, found.imag = real, imaginary
    return found


def _number(value: object) -> float | complex | None:
    if isinstance(value, float):
        return value if math.isfinite(value) or type(value) is DecimalFloat else None
    if _is_complex(value):
        real, imaginary = (_number(value[part]) for part in ("re", "im"))  # type: ignore[index]
        return complex(real, imaginary) if isinstance(real, float) and isinstance(imaginary, float) else None
    return SPECIAL_NUMBERS.get(value) if isinstance(value, str) else None


def _shape(value: object, what: str) -> tuple[int, ...]:
    """The shape of nested lists according to the first item of each list."""
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else None
    if len(shape) > _MOST_AXES:
        raise BindingError(f"{what} is nested {len(shape)} deep", hint=f"arrays have at most {_MOST_AXES} axes")
    return tuple(shape)


def _flatten(value: list[object], shape: tuple[int, ...], what: str) -> list[object]:
    """The innermost items of nested lists. Raises BindingError where a list does not have the length that `shape`
    requires."""
    items = value
    limits.charge_steps(_ITEM * len(items))
    for depth, length in enumerate(shape[1:], 1):
        limits.charge_steps(_ITEM * len(items) * (1 + length))
        for at, item in enumerate(items):
            if not isinstance(item, list) or len(item) != length:
                place = what + _index(at, shape[:depth])
                if isinstance(item, list):
                    raise _ragged(place, len(item), length)
                raise _not_numbers(place, item, nested=True)
        items = list(chain.from_iterable(items))  # type: ignore[arg-type]
    return items


def _ragged(place: str, length: int, expected: int) -> BindingError:
    return BindingError(
        f"{place} has length {length} where the lists beside it have {expected}",
        hint="lists side by side must have the same length",
    )


def _index(at: int, shape: tuple[int, ...]) -> str:
    """The index, such as `[1][0]`, of the item at position `at` of the flattened array."""
    parts = []
    for length in reversed(shape):
        at, index = divmod(at, length)
        parts.append(f"[{index}]")
    return "".join(reversed(parts))


def _not_numbers(place: str, value: object, nested: bool = False) -> BindingError:
    if nested and isinstance(value, list):
        return BindingError(
            f"{place} is a list where the items beside it are numbers",
            hint="items side by side must have the same shape",
        )
    if nested and _number(value) is not None:
        return BindingError(
            f"{place} is a number where the items beside it are lists",
            hint="items side by side must have the same shape",
        )
    return BindingError(f"{place} is {_described(value)}, not a number", hint=NUMBERS_HINT)


def _described(value: object) -> str:
    if isinstance(value, float):
        return "too large for float64"
    if isinstance(value, dict):
        return "an object"
    text = json.dumps(value)
    return f"the string {text if len(text) <= 40 else text[:40] + '…'}" if isinstance(value, str) else text
