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
        *(_of_proof(found.proof) if found.proof is not None else ()),
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


def _of_proof(proof: Any) -> list[Table]:
    """The proved bounds, and a row for each box that may contain global minimisers."""
    ends = [
        number_text(end) if end is not None else infinite
        for end, infinite in ((proof.low, "-inf"), (proof.high, "inf"))
    ]
    is_empty = proof.low is None and proof.high is None and not proof.minimisers
    bounds = members({"proved": None if is_empty else f"{ends[0]} to {ends[1]}", "boxes": proof.boxes})
    rows = []
    for minimiser in islice(proof.minimisers, _MOST_ROWS):
        parts = [f"{number_text(low)} to {number_text(high)}" for low, high in minimiser.box.values()]
        rows.append((*parts, "at most one" if minimiser.unique else "perhaps more"))
    left = len(proof.minimisers) - len(rows) + proof.left
    if not rows:
        return [bounds]
    names = [*proof.minimisers[0].box]
    if left:
        rows.append(("…", *[""] * (len(names) - 1), f"{left:,} more boxes"))
    return [bounds, Table((*names, "minimisers"), rows)]


def _number_rows(point: Mapping[str, Any]) -> dict[str, Any]:
    """The point by names; a variable called `value` is renamed, because the table has a row of that name."""
    return {("value " if name == "value" else name): value for name, value in point.items()}


def _range(eigenvalues: Mapping[str, float | None] | None) -> str | None:
    if eigenvalues is None:
        return None
    ends = ["unknown" if end is None else f"{end:.6g}" for end in eigenvalues.values()]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)
