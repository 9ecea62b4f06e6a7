"""The messages that `gradcli fit` prints."""

from __future__ import annotations

import io
from collections.abc import Sequence

from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.render import show
from gradcli.io.text_tables import Table, number_text
from gradcli.models.fitting.groups import group_reports
from gradcli.models.fitting.groups.group_reports import FitSummary
from gradcli.models.fitting.results.fit_results import Fit
from gradcli.rows.formats import new_tables


def tell_groups(fits: Sequence[Fit], by: str, environment: Environment) -> None:
    """Write a table with a row for each group: formatted on a terminal, as CSV elsewhere."""
    columns = group_reports.columns_of(fits, by)
    if environment.for_terminal:
        show([Table(tuple(columns), [tuple(map(number_text, row)) for row in zip(*columns.values())])], environment)
        return
    stream = io.BytesIO()
    new_tables.write(columns, "csv", stream)
    environment.write(stream.getvalue().decode())


def report_problems(account: FitSummary, left_out: int, by: str | None, environment: Environment) -> None:
    """Report rows that were left out, warnings, and fits that did not converge."""
    if left_out:
        rows = "row was" if left_out == 1 else "rows were"
        missing = "a number" if by is None else "a number, or the group,"
        environment.write_error(f"warning: {left_out:,} {rows} left out, as {missing} is missing there")
    for warning in account.told():
        environment.write_error(f"warning: {warning}")
    if account.first is not None and by is None:
        environment.write_error(f"error: {account.first.message}")
    elif account.first is not None:
        count = f"{account.open:,} of {account.fits:,} groups are"
        group, message = account.first
        environment.write_error(f"error: {count} not fitted; the first is {group!r}: {message}")
