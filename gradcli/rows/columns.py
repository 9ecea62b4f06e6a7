"""Columns as numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli.errors import beginning
from gradcli.io import by_polars
from gradcli.rows.blocks import Column, Words

_DATE = r"^\d{1,4}([-/.])\d{1,2}([-/.])\d{1,4}([T ].*)?$|^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$"
_DIGIT = r"\d"
# What has a mark between its thousands for certain, and what may have it: 1,234 is one thousand, or 1.234.
_THOUSANDS = (
    r"^[-+]?\d{1,3}((\.\d{3})+,\d*|(,\d{3})+\.\d*|(\.\d{3}){2,}|(,\d{3}){2,}|([ '\u2019\u00a0\u202f]\d{3})+([.,]\d*)?)$"
)
_EITHER = r"^[-+]?[1-9]\d{0,2}%s\d{3}$"
_MAY_BE = "may be a thousand or little more than one"
# What stands, in any case, in fields where a number is missing.
SAYS_NOTHING = ("", "na", "n/a", "n.a.", "#n/a", "<na>", "nan", "null", "none", "missing", "-", "--", ".", "?")


def of_floats(series: Any) -> Column | None:
    """The column of a series of Float64; None where texts must be looked at: nulls, and infinities, which a number
    may be that is too large."""
    import numpy

    if series.null_count():
        return None
    values = series.to_numpy()
    if numpy.isinf(values).any():
        return None
    return Column(values, numpy.zeros(len(values), numpy.bool), {})


class Fractions(NamedTuple):
    """What may stand before the fraction of a number: a comma too, or as a rule, where it is `known` that the numbers of
    the table have it."""

    comma: bool = False
    known: bool = False

    @property
    def either(self) -> str:
        """What a number looks like whose only mark may stand between its thousands as well."""
        return _EITHER % (r"\." if self.known else ",")


def of_texts(series: Any, fractions: Fractions) -> Column:
    """The column of a series of texts: numbers, with spaces around them; dates, numbers beyond float64 and those that
    have, or may have, marks between their thousands are failing, all else is missing."""
    polars = by_polars.needed("a table of rows")
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
    words = (missing & ~suspect & ~texts.str.to_lowercase().is_in(SAYS_NOTHING)).fill_null(False)
    found = Words(words.to_numpy(), texts.__getitem__) if words.any() else None
    return Column(values.fill_null(float("nan")).to_numpy(), missing.to_numpy(), failing, found)


def words_of(items: Sequence[Any], missing: Any) -> Words | None:
    """Where one of the items that are `missing` is a text: which are."""
    import numpy

    rows = numpy.fromiter(map(is_word, items), numpy.bool, len(items)) & missing if missing.any() else missing
    return Words(rows, lambda row: str(items[row])) if rows.any() else None


def is_word(item: Any) -> bool:
    """Whether a field without a number holds a text, rather than nothing."""
    return isinstance(item, str) and item.strip().lower() not in SAYS_NOTHING


def failing_text(text: str) -> str | None:
    """What to say of a text that is a date, a number beyond float64, or one that may have marks between its thousands;
    None for any other."""
    if not any(re.match(pattern, text) for pattern in (_DATE, _THOUSANDS, Fractions().either)):
        try:
            if not (math.isinf(float(text)) and re.search(_DIGIT, text)):
                return None
        except ValueError:
            return None
    return _failing(text)


def hint_of(failing: str) -> str | None:
    """How to have a field read of which this is said."""
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
    return f"{beginning(text)!r} {what}"
