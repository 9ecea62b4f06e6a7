"""Writes the fits of groups as a table with a line for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from gradcli.io import json_text
from gradcli.models.fitting.results.fit_results import Fit, table_numbers
from gradcli.models.results import as_json
from gradcli.rows import new_tables

# Attributes of `Fit` in the table: the first stands before the estimates, the others behind them.
_MEMBERS = ("n", "rss", "s", "r2", "converged")


def columns_of(fits: Sequence[Fit], by: str) -> Mapping[str, list[Any]]:
    """The columns of a table of at least one fit: the group, the number of rows, the estimates and what is derived
    from them with their errors, and the goodness of fit."""
    columns: Mapping[str, list[Any]] = {by: [fit.group for fit in fits]}
    numbers = table_numbers(fits, _MEMBERS)
    columns = new_tables.beside(columns, {"n": numbers.members["n"]})
    for place, (name, estimate) in enumerate(fits[0].estimates.items()):
        of_one = {name: numbers.values[:, place].tolist()}
        if not estimate.fixed:
            of_one[f"{name}_error"] = numbers.errors[:, place].tolist()
        columns = new_tables.beside(columns, of_one)
    for name in fits[0].derived or ():
        quantities = [(fit.derived or {})[name] for fit in fits]
        of_one = {name: [each.value for each in quantities], f"{name}_error": [each.error for each in quantities]}
        columns = new_tables.beside(columns, of_one)
    return new_tables.beside(columns, {name: numbers.members[name] for name in _MEMBERS[1:]})


def write(fits: Sequence[Fit], model: str, by: str, format: str, stream: IO[bytes]) -> None:
    """Write the table as CSV, or all attributes of each fit as JSON lines where the format is `jsonl`."""
    if format == "csv":
        new_tables.write(columns_of(fits, by), format, stream)
    else:
        stream.writelines(json_text.result_line({"model": model, **as_json(fit)}).encode() for fit in fits)
