"""The fits of groups as a table, with a line for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from gradcli.io import json_text
from gradcli.models.fitting.fitted import Fit
from gradcli.models.results import as_json
from gradcli.rows import new_tables


def columns_of(fits: Sequence[Fit], by: str) -> Mapping[str, list[Any]]:
    """What a table says of each fit: its group, the rows, the estimates with their errors, and how good it is."""
    columns: Mapping[str, list[Any]] = {by: [fit.group for fit in fits]}
    columns = new_tables.beside(columns, {"n": [fit.n for fit in fits]})
    for name in fits[0].estimates if fits else ():
        of_one = {name: [fit.estimates[name].value for fit in fits]}
        if not fits[0].estimates[name].fixed:
            of_one[f"{name}_error"] = [fit.estimates[name].error for fit in fits]
        columns = new_tables.beside(columns, of_one)
    whole = {name: [getattr(fit, name) for fit in fits] for name in ("rss", "s", "r2", "converged")}
    return new_tables.beside(columns, whole)


def write(fits: Sequence[Fit], model: str, by: str, format: str, stream: IO[bytes]) -> None:
    """Write the table as CSV, or, in the format `jsonl`, all that is known of each fit."""
    if format == "csv":
        new_tables.write(columns_of(fits, by), format, stream)
    else:
        stream.writelines(json_text.result_line({"model": model, **as_json(fit)}).encode() for fit in fits)
