"""The tables that a minimum is printed as; its class, whose method calls these, is not imported here."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from gradcli.io.text_tables import Table, members, number_text

# The maximum number of active constraints in a table.
_MOST_ROWS = 20


def tables(found: Any) -> list[Table]:
    found_tables = [
        members({"value": found.value, **_number_rows(found.point)}),
        members(
            {
                "gradient norm": found.gradient_norm,
                "eigenvalues": _range(found.eigenvalues),
                "kind": found.kind,
                "minima": found.minima,
                "rows left out": found.left_out,
                "iterations": found.iterations,
                "evaluations": found.evaluations,
                "ended": found.message,
            }
        ),
    ]
    if found.multipliers:
        rows = [(text, number_text(m)) for text, m in islice(found.multipliers.items(), _MOST_ROWS)]
        if len(found.multipliers) > len(rows):
            rows.append(("…", f"{len(found.multipliers) - len(rows):,} more"))
        found_tables.append(Table(("active", "multiplier"), rows))
    for name, moved in (found.sensitivity or {}).items():
        derivatives = {"value": moved.value} if moved.value is not None else {}
        derivatives |= {n: d for n, d in moved.point.items() if d is not None}
        rows = [(n, number_text(d)) for n, d in derivatives.items()]
        if moved.reason is not None:
            rows.append(("point" if rows else "all", f"none: {moved.reason}"))
        found_tables.append(Table(("of", f"derivative by {name}"), rows))
    return found_tables


def _number_rows(point: Mapping[str, Any]) -> dict[str, Any]:
    """The point by names; a variable called `value` is renamed, because the table has a row of that name."""
    return {("value " if name == "value" else name): value for name, value in point.items()}


def _range(eigenvalues: Mapping[str, float | None] | None) -> str | None:
    if eigenvalues is None:
        return None
    ends = ["unknown" if end is None else f"{end:.6g}" for end in eigenvalues.values()]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)
