"""Columns as numbers."""

from __future__ import annotations

import math
import re
from typing import Any

from gradcli.io import by_polars
from gradcli.rows.blocks import Column

_DATE = r"^\d{1,4}([-/.])\d{1,2}([-/.])\d{1,4}([T ].*)?$|^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$"
_DIGIT = r"\d"
# What stands, in any case, in fields where a number is missing.
SAYS_NOTHING = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "missing", "-", "--", ".", "?")
_SHOWN = 40


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


def of_texts(series: Any, comma: bool) -> Column:
    """The column of a series of texts: numbers, with spaces around them, and where `comma` is true with a comma in
    the place of a point; dates and numbers beyond float64 are failing, all else is missing."""
    polars = by_polars.needed("a table of rows")
    texts = series.str.strip_chars()
    values = texts.cast(polars.Float64, strict=False)
    if comma:
        values = values.fill_null(texts.str.replace(",", ".", literal=True).cast(polars.Float64, strict=False))
    missing = values.is_null()
    suspect = (missing & texts.str.contains(_DATE)) | (values.is_infinite() & texts.str.contains(_DIGIT))
    failing = {index: _failing(texts[index]) for index in suspect.fill_null(False).arg_true().to_list()}
    words = (missing & ~suspect & ~texts.str.to_lowercase().is_in(SAYS_NOTHING)).fill_null(False).arg_max()
    word = (words, texts[words]) if words is not None and is_word(texts[words]) and missing[words] else None
    return Column(values.fill_null(float("nan")).to_numpy(), missing.to_numpy(), failing, word)


def is_word(item: Any) -> bool:
    """Whether a field without a number holds a text, rather than nothing."""
    return isinstance(item, str) and item.strip().lower() not in SAYS_NOTHING


def failing_text(text: str) -> str | None:
    """What to say of a text that is a date or a number beyond float64; None for any other."""
    if re.match(_DATE, text) is None:
        try:
            if not (math.isinf(float(text)) and re.search(_DIGIT, text)):
                return None
        except ValueError:
            return None
    return _failing(text)


def _failing(text: str) -> str:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return f"{shown!r} is {'a date' if re.match(_DATE, text) else 'a number too large for float64'}"
