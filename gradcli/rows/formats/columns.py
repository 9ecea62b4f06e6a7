"""Conversion of columns of texts to numbers, and which texts are missing values or errors."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from gradcli.errors import abbreviated
from gradcli.io import by_polars
from gradcli.io.tables import complex_number
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.blocks import Column, TextCells

_DATE = r"^\d{1,4}([-/.])\d{1,2}([-/.])\d{1,4}([T ].*)?$|^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$"
_DIGIT = r"\d"
# Texts that certainly have thousands separators, and texts that may have one: 1,234 is either one thousand or 1.234.
_THOUSANDS = (
    r"^[-+]?\d{1,3}((\.\d{3})+,\d*|(,\d{3})+\.\d*|(\.\d{3}){2,}|(,\d{3}){2,}|([ '\u2019\u00a0\u202f]\d{3})+([.,]\d*)?)$"
)
_EITHER = r"^[-+]?[1-9]\d{0,2}%s\d{3}$"
_MAY_BE = "may be a thousand or little more than one"
# The texts, in lower case, that stand for a missing number.
MISSING_TEXTS = ("", "na", "n/a", "n.a.", "#n/a", "<na>", "nan", "null", "none", "missing", "-", "--", ".", "?")


def of_floats(series: Any) -> Column | None:
    """The column of a Float64 series; None where the texts must be examined: where there are nulls, or infinities,
    which may be overflowed numbers."""
    import numpy

    if series.null_count():
        return None
    values = series.to_numpy()
    if numpy.isinf(values).any():
        return None
    return Column(values, numpy.zeros(len(values), numpy.bool), {})


class Fractions(NamedTuple):
    """The decimal marks: `comma` says that a comma may be one, and `known` that the numbers of the table use it."""

    comma: bool = False
    known: bool = False

    @property
    def either(self) -> str:
        """A pattern of numbers whose only mark may be a decimal mark or a thousands separator."""
        return _EITHER % (r"\." if self.known else ",")


def of_texts(series: Any, fractions: Fractions) -> Column:
    """The column of a series of texts with surrounding spaces. Dates, numbers beyond float64, and numbers that have or
    may have thousands separators are failing; other texts that are not numbers are missing."""
    polars = by_polars.required("a table of rows")
    texts = series.str.strip_chars()
    values = texts.cast(polars.Float64, strict=False)
    if fractions.comma:
        values = values.fill_null(texts.str.replace(",", ".", literal=True).cast(polars.Float64, strict=False))
    either = texts.str.contains(fractions.either).fill_null(False)
    values = values.set(either, None)
    missing = values.is_null()
    odd = either | (missing & texts.str.contains(f"{_DATE}|{_THOUSANDS}"))
    suspect = (odd | (values.is_infinite() & texts.str.contains(_DIGIT))).fill_null(False)
    failing = {index: _failing(texts[index]) for index in suspect.arg_true().to_list()}
    words = (missing & ~suspect & ~texts.str.to_lowercase().is_in(MISSING_TEXTS)).fill_null(False)
    numbers, lacking, unread = values.fill_null(float("nan")).to_numpy(), missing.to_numpy(), words.to_numpy()
    if words.any() and (complex_numbers := _complex_numbers(texts, words.arg_true().to_list())):
        rows = [*complex_numbers]
        numbers = numbers.astype("complex128")
        numbers[rows] = [*complex_numbers.values()]
        lacking, unread = lacking.copy(), unread.copy()
        lacking[rows] = unread[rows] = False
    found = TextCells(unread, texts.__getitem__) if unread.any() else None
    return Column(numbers, lacking, failing, found)


def _complex_numbers(texts: Any, rows: Sequence[int]) -> dict[int, complex]:
    """The complex numbers among the texts of some rows, by row."""
    found = {row: complex_number(texts[row]) for row in rows}
    return {row: number for row, number in found.items() if number is not None}


def words_of(items: Sequence[Any], missing: Any) -> TextCells | None:
    """The rows of `missing` items in which the item is a text, None where there are none."""
    import numpy

    rows = numpy.fromiter(map(is_word, items), numpy.bool, len(items)) & missing if missing.any() else missing
    return TextCells(rows, lambda row: str(items[row])) if rows.any() else None


def is_word(item: Any) -> bool:
    """Return whether an item without a number is a text that does not stand for a missing value."""
    return isinstance(item, str) and item.strip().lower() not in MISSING_TEXTS


def failing_text(text: str) -> str | None:
    """The message for a text that is a date, a number beyond float64, or one that has or may have thousands separators;
    None for others."""
    if not any(re.match(pattern, text) for pattern in (_DATE, _THOUSANDS, Fractions().either)):
        try:
            if not (math.isinf(float(text)) and re.search(_DIGIT, text)):
                return None
        except ValueError:
            return None
    return _failing(text)


def hint_of(failing: str) -> str | None:
    """The hint for a field with this message, None where there is none."""
    if failing.endswith(_MAY_BE) and "," in failing:
        return "--decimal-comma has the comma stand before a fraction; a thousand is written without one"
    return None


def _failing(text: str) -> str:
    if re.match(_DATE, text):
        what = "is a date"
    elif re.match(_THOUSANDS, text):
        what = "has marks between its thousands"
    elif re.match(_EITHER % "[.,]", text):
        what = _MAY_BE
    else:
        what = "is a number too large for float64"
    return f"{abbreviated(text)!r} {what}"
