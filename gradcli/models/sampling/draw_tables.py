"""The tables that draws are printed as; their class, whose method calls these, is not imported here."""

from __future__ import annotations

from itertools import islice
from typing import Any

from gradcli.io.text_tables import Table, members

# Upper bound of the rows of a table.
_MOST_ROWS = 60


def tables(found: Any) -> list[Table]:
    heads = ("name", "mean", "error", "sd", "5 %", "median", "95 %", "bulk ESS", "tail ESS", "R-hat")
    rows = [
        (name, _text(m.mean), _text(m.error, 2), *(_text(n) for n in (m.sd, m.low, m.median, m.high)),
         _whole(m.ess_bulk), _whole(m.ess_tail), "unknown" if m.r_hat is None else f"{m.r_hat:.3f}")
        for name, m in islice(found.posterior.items(), _MOST_ROWS)
    ]  # fmt: skip
    if len(found.posterior) > len(rows):
        rows.append(("…", f"{len(found.posterior) - len(rows):,} more", *[""] * (len(heads) - 2)))
    summary = members(
        {
            "chains": found.chains,
            "draws of each": found.count,
            "warm-up": found.warmup,
            "divergences": found.divergences,
            "rows left out": found.left_out,
            "gradients": sum(found.steps),
        }
    )
    return [Table(heads, rows), summary]


def _text(number: float | None, digits: int = 5) -> str:
    return "unknown" if number is None else f"{number:.{digits}g}"


def _whole(number: float | None) -> str:
    return "unknown" if number is None else f"{number:,.0f}"
