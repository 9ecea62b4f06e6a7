"""The tables that a design is printed as; its class, whose method calls these, is not imported here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.io.text_tables import Table, number_text

# Significant digits of points and weights, about those that are exact; and the rounding error of an efficiency.
_DIGITS, _ROUNDING = 10, 1e-12


def tables(found: Any) -> list[Table]:
    """The tables of a design: how good it is, its points, and the standard errors to expect."""
    facts = [
        ("criterion", found.criterion),
        ("support points", str(len(found.support))),
        ("efficiency at least", f"{_bound_text(found.efficiency_bound)}, by a search on a grid"),
    ]
    if found.rows is not None:
        facts.append((f"efficiency of {found.rows:,} rows", _rounded(found.efficiency)))
    names = [*found.support[0].point]
    made = [
        Table((), facts),
        Table((*names, "weight"), [(*_numbers(each.point), _rounded(each.weight)) for each in found.support]),
    ]
    if found.exact is not None:
        made.append(Table((*names, "rows"), [(*_numbers(each.point), str(each.rows)) for each in found.exact]))
    made.append(_estimates("parameter", found.parameters, found.rows))
    if found.derived is not None:
        made.append(_estimates("derived", found.derived, found.rows))
    return made


def _numbers(point: Mapping[str, float]) -> Sequence[str]:
    return [_rounded(value) for value in point.values()]


def _rounded(number: float) -> str:
    """A number that was found by a search, which JSON has with all digits."""
    return f"{number:.{_DIGITS}g}"


def _bound_text(bound: float) -> str:
    """A lower bound, rounded down unless it is 1 up to rounding errors."""
    return _rounded(bound if bound > 1 - _ROUNDING else math.floor(bound * 10**_DIGITS) / 10**_DIGITS)


def _estimates(what: str, estimates: Mapping[str, Any], rows: int | None) -> Table:
    heading = "standard error" if rows is not None else "standard error, times root of rows"
    return Table(
        (what, "value", heading),
        [
            (name, number_text(each.value), "not determined" if math.isinf(each.error) else f"{each.error:.4g}")
            for name, each in estimates.items()
        ],
    )
