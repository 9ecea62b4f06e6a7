"""The request for a picture that the options of a command make."""

from __future__ import annotations

import math
import re

from gradcli.errors import UsageError
from gradcli.models.plotting import ranges
from gradcli.models.plotting.charts import Presentation
from gradcli.type_hints import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.cli.options import PictureRun

# The most dots along a side of a picture, which take a few hundred megabytes.
_MOST_DOTS = 10_000
# The defaults of a picture, as the help states them.
_USUAL_SIZE, _USUAL_DPI = (8.0, 5.0), 150
_SIZE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*[x×,]\s*(\d+\.?\d*|\.\d+)\s*")


def presentation(options: PictureRun) -> Presentation:
    """The looks of a picture. Raises UsageError for a size or ends of an axis that are none."""
    size = None if options.size is None else _size(options.size)
    width, height = size or _USUAL_SIZE
    dots = math.ceil(max(width, height) * (options.dpi or _USUAL_DPI))
    if dots > _MOST_DOTS:
        raise UsageError(f"a picture of {dots:,} dots is too large", hint=f"a side has at most {_MOST_DOTS:,}")
    return Presentation(
        options.title,
        options.xlabel,
        options.ylabel,
        _ends("--xlim", options.xlim),
        _ends("--ylim", options.ylim),
        size,
        options.dpi,
    )


def given(options: PictureRun) -> list[str]:
    """The options of pictures that are given."""
    names = ("title", "xlabel", "ylabel", "size", "dpi", "xlim", "ylim", "log")
    return [f"--{name}" for name in names if getattr(options, name) not in (None, "")]


def _size(text: str) -> tuple[float, float]:
    found = _SIZE.fullmatch(text)
    width, height = map(float, found.groups()) if found else (0.0, 0.0)
    if not (0.5 <= width <= 200 and 0.5 <= height <= 200):
        raise UsageError(f"--size {text!r} is no size", hint="--size 8x5 is 8 inches wide and 5 high")
    return width, height


def _ends(option: str, text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    found = ranges.value(text, "float64", text)
    if not isinstance(found, ranges.PlotRange):
        raise UsageError(f"{option} {text!r} is no range", hint=f"{option} 0..20")
    return found.low, found.high
