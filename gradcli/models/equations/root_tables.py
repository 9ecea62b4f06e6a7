"""The tables that roots are printed as; their class, whose method calls these, is not imported here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gradcli.io.text_tables import Table, members, number_text

# Upper bound of the boxes in a table.
_MOST_LEFT = 20


def tables(found: Any, *, listed: bool = False, told: bool = False) -> Iterator[Table]:
    """The tables of the roots: a row for each where there are several or `listed` is true, and the message where `told`
    is, or where a root has no derivatives."""
    listed = listed or len(found.roots) > 1
    if listed and found.roots:
        rows = [_row(root) for root in found.roots]
        yield Table((*rows[0],), [(*row.values(),) for row in rows])
    if found.proof is not None and found.proof.left:
        yield _boxes_left(found.proof)
    for root in () if listed else found.roots:
        yield Table((), [(name, number_text(value)) for name, value in root.point.items()])
        yield members({"residual": root.residual, "condition": root.condition})
        if root.derivatives:
            yield Table(("of", "by", "derivative"), [*_derivatives(root)])
    if found.converged and (told or any(root.condition == math.inf for root in found.roots)):
        yield Table((), [("found", found.message)])


def _boxes_left(proof: Any) -> Table:
    """The boxes that may contain more roots, one a row."""
    rows = [tuple(f"{number_text(a)} to {number_text(b)}" for a, b in box.values()) for box in proof.left[:_MOST_LEFT]]
    more = len(proof.left) - len(rows) + proof.unlisted
    names = [f"perhaps {name}" for name in proof.left[0]]
    if more:
        rows.append((f"… {more:,} more", *[""] * (len(names) - 1)))
    return Table((*names,), rows)


def _row(root: Any) -> dict[str, str]:
    """A root of one unknown as a table row: cells by column title."""
    told = {**root.point, "residual": root.residual, "condition": root.condition}
    if root.box is not None:
        told["within"] = max(high - low for low, high in root.box.values())
    by = {f"{name} by {key}": text for name, key, text in _derivatives(root)}
    return {name: number_text(value) for name, value in told.items()} | by


def _derivatives(root: Any) -> Iterator[tuple[str, str, str]]:
    derivatives: Mapping[str, Mapping[str, Any]] = root.derivatives or {}
    for name, by in derivatives.items():
        for key, value in by.items():
            yield name, key, number_text(value)
