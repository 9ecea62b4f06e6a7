"""The tables and messages that `gradcli fit` prints."""

from __future__ import annotations

import io
from collections.abc import Sequence

from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.model_report import members
from gradcli.cli.rendering.render import Table, number_text, show
from gradcli.models.fitting import group_tables
from gradcli.models.fitting.fit_results import Fit
from gradcli.models.fitting.fit_summaries import FitSummary
from gradcli.rows import new_tables


def tables(fit: Fit, level: float) -> list[Table]:
    """Tables of the estimates, of their correlations where there are several, and of the fit as a whole."""
    header = ("parameter", "estimate", "error", "t", f"{100 * level:.15g} % from", "to")
    rows = [
        (name, _ten(e.value), "fixed", "", "", "")
        if e.fixed
        else (name, _ten(e.value), *map(_six, (e.error, e.t, e.low, e.high)))
        for name, e in fit.estimates.items()
    ]
    found = [Table(header, rows), _correlations(fit), _whole(fit)]
    return found if len(rows) > 1 else [found[0], found[2]]


def _correlations(fit: Fit) -> Table:
    names = [*fit.estimates]
    rows = [
        (
            name,
            *(f"{number:.3f}" if number == number else number_text(None) for number in row[: place + 1]),
            *[""] * (len(names) - place - 1),
        )
        for place, (name, row) in enumerate(zip(names, fit.correlation.tolist()))
    ]
    return Table(("correlation", *names), rows)


def _whole(fit: Fit) -> Table:
    curvature = fit.curvature
    numbers = {
        "residual sum of squares": fit.rss,
        f"residual standard deviation{' (MAD)' if fit.loss_scale == fit.loss_scale else ''}": fit.s,
        "scale of the loss": fit.loss_scale,
        "reduced chi-square": fit.reduced_chi2,
        "R²": fit.r2,
        "log-likelihood": fit.loglik,
        "AIC": fit.aic,
        "BIC": fit.bic,
        # For least squares the deviance equals the residual sum of squares.
        "deviance": fit.deviance if fit.deviance != fit.rss else None,
        "condition": fit.condition,
        "curvature, intrinsic": None if curvature is None else curvature.intrinsic,
        "curvature, by parameters": None if curvature is None else curvature.parameter,
    }
    return members(
        {"rows": fit.n, "degrees of freedom": fit.dof}
        # Undefined quantities are nan.
        | {name: _six(number) for name, number in numbers.items() if number is not None and number == number}
        | {
            "iterations": fit.iterations,
            "evaluations": fit.evaluations,
            "starts": f"{fit.starts.tried}, of which {fit.starts.agreed} agreed" if fit.starts.tried > 1 else None,
            "ended": fit.message,
        }
    )


def _ten(value: float) -> str:
    """A number to 10 significant digits, which agree on all machines; `--json` prints all digits."""
    return f"{value:.10g}"


def _six(value: float) -> str:
    return f"{value:.6g}" if value == value else number_text(None)


def tell_groups(fits: Sequence[Fit], by: str, environment: Environment) -> None:
    """Write a table with a row for each group: formatted on a terminal, as CSV elsewhere."""
    columns = group_tables.columns_of(fits, by)
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
