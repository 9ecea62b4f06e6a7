"""Serialisation of results as one line of strict JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import accumulate
from operator import mul

from gradcli import limits
from gradcli.io.text_tables import ComplexText, has_complex_texts
from gradcli.type_hints import Any

# Array elements that are charged for each element written, which takes as long as computing that many.
_WRITTEN = 32
# Steps, in units of 1/8, that are charged for each array and for each of its axes.
_ARRAY, _AXIS = 12, 2
_SURROGATE = "[\ud800-\udfff]"
# The most members and items of a value that is written without `json`, whose import takes a thirtieth of a short run.
_FEW = 20


def dumps(value: object, ascii: bool = False) -> str:
    """`value` as one line of strict JSON without spaces, with object keys in insertion order.

    Accepts None, bools, ints, floats, complex numbers, strings, dicts, lists, tuples, and NumPy scalars and arrays,
    which become nested lists. A float is the shortest text that reads back as the same number in its own dtype; nan and
    infinities are the strings "NaN" "Infinity" "-Infinity". Complex numbers become {"re": …, "im": …}, of numbers or
    nested lists. With `ascii`, other characters are escaped. Arrays are charged. Raises TypeError for other values,
    LimitError for more numbers than a run may write.
    """
    plain = _plain(value)
    short = _short_text(plain)
    if short is not None:
        return short
    import json

    text = json.dumps(plain, ensure_ascii=ascii, allow_nan=False, separators=(",", ":"))
    # A lone surrogate, as in an argument that cannot be decoded, cannot be written as UTF-8.
    return text if text.isascii() else re.sub(_SURROGATE, lambda match: f"\\u{ord(match[0]):04x}", text)


def _short_text(value: object) -> str | None:
    """The JSON of numbers, plain texts and a few of them; None of any other value."""
    if isinstance(value, str):
        return f'"{value}"' if value.isascii() and value.isprintable() and not {*'"\\'} & {*value} else None
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if type(value) is int or type(value) is float:
        return repr(value)
    if isinstance(value, dict) and len(value) <= _FEW and all(isinstance(key, str) for key in value):
        keys, texts = [*map(_short_text, value)], [*map(_short_text, value.values())]
        members = ",".join(f"{key}:{text}" for key, text in zip(keys, texts))
        return None if None in (*keys, *texts) else "{" + members + "}"
    if isinstance(value, list) and len(value) <= _FEW:
        texts = [*map(_short_text, value)]
        return None if None in texts else f"[{','.join(map(str, texts))}]"
    return None


def result_line(members: Mapping[str, Any], ascii: bool = False) -> str:
    """A result as one line of JSON that begins with its schema; see `dumps`."""
    return dumps({"schema": "gradcli/1", **members}, ascii) + "\n"


def _plain(value: Any) -> object:
    """The value in types that `json` can write, without nan and infinities."""
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return _plain_array(value)
    if isinstance(value, float):
        return _plain_float(value)
    if isinstance(value, ComplexText):
        return {"re": _plain(value.real), "im": _plain(value.imag)}
    if isinstance(value, complex):
        return {"re": _plain_float(value.real), "im": _plain_float(value.imag)}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _plain_float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _plain_array(array: Any) -> object:
    import numpy

    array = numpy.asarray(array)
    limits.charge_steps(_ARRAY + _AXIS * array.ndim)
    # An array without elements may still have many lists.
    limits.charge(_WRITTEN * max(accumulate((1, *array.shape), mul)))
    if array.dtype.kind == "O":
        if has_complex_texts(array):
            parts = (
                numpy.frompyfunc(lambda number, part=part: getattr(number, part), 1, 1) for part in ("real", "imag")
            )
            return {name: _plain(part(array).tolist()) for name, part in zip(("re", "im"), parts)}
        return _plain(array.tolist())
    if array.dtype.kind == "c":
        return {"re": _plain_array(array.real), "im": _plain_array(array.imag)}
    if array.dtype.kind != "f":
        return array.tolist()
    if array.dtype.itemsize < 8:
        array = _widened(array)
    if numpy.isfinite(array).all():
        return array.tolist()
    named = array.astype(object)
    named[numpy.isnan(array)] = "NaN"
    named[array == numpy.inf] = "Infinity"
    named[array == -numpy.inf] = "-Infinity"
    return named.tolist()


def _widened(array: Any) -> Any:
    """Floats of fewer bits as the float64 numbers with the same shortest text."""
    import numpy

    values = [float(str(value)) for value in array.ravel()]
    return numpy.array(values, dtype=numpy.float64).reshape(array.shape)
