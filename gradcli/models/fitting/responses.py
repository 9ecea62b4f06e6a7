"""Computes and checks the responses of rows, and the trials of which binomial responses are shares."""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.errors import BindingError, ShapeError, Span, UsageError
from gradcli.language.names import scope
from gradcli.language.syntax import tree
from gradcli.models.data import Data
from gradcli.models.fitting.problems import in_row
from gradcli.models.nonfinite_errors import nonfinite
from gradcli.rows.row_programs import RowProgram

# Distance of a share times its trials from a whole number up to which it is a count, as in R's glm; and the relative
# distance for a quotient of whole numbers.
_WHOLE, _ROUNDING = 1e-3, 1e-9


def response_of(response: tree.Module, data: Data, limits: tuple[int, int]) -> Any:
    """The response of each row.

    Raises UsageError where it reads no column, EvaluationError, with the operation, where it is not finite, and the
    error of the first row that fails.
    """
    np = arrays.numpy_namespace()
    if not any(name in data.columns for name in scope.outer_reads(response)):
        raise UsageError(
            "the response is no column of the data", span=Span(0, len(response.source)), source=response.source
        )
    found = _evaluated(response, data, limits)
    bad = ~np.isfinite(found)
    if bad.any():
        row = int(bad.argmax())
        given = {name: float(data.columns[name][row]) for name in scope.outer_reads(response) if name in data.columns}
        error = nonfinite(response, given, (), "the response is not finite")
        error.hint = "leave such rows out, or write the response otherwise"
        raise in_row("", data.rows[row], error)
    return found


def _evaluated(program: tree.Module, data: Data, limits: tuple[int, int]) -> Any:
    """The value of a program of columns in each row."""
    np = arrays.numpy_namespace()
    reads = {name: data.columns[name] for name in scope.outer_reads(program) if name in data.columns}
    name = program.source.strip()
    if name in reads:
        return reads[name]
    run = RowProgram(program, (), 0, max_steps=limits[0], max_elements=limits[1])
    found = run.run(reads, {}, rows=len(data.rows))
    for failed in found.failures:
        raise in_row("", data.rows[failed.index], failed.error)
    if np.ndim(found.value) > 1:
        raise ShapeError("the response is one number in a row", span=program.body[-1].span, source=program.source)
    return np.asarray(found.value, "float64")


def check_response(family: str, response: Any, name: str, places: Any) -> None:
    """Raise BindingError where a family cannot have such a response."""
    if family == "poisson" and not (response >= 0).all():
        raise BindingError(f"'{name}' has values below 0, which are no counts", hint="--family poisson is for counts")


def trials_of(response: tree.Module, shares: Any, said: Any, data: Data, limits: tuple[int, int]) -> Any:
    """The trials `[n]` of a binomial response: those that are `said`, the divisor of a quotient of whole numbers, or 1
    in each row.

    Raises BindingError for responses that are not shares of them, and for trials that are not positive whole numbers.
    """
    np = arrays.numpy_namespace()
    name = response.source.strip()
    trials = _divisor(response, shares, data, limits) if said is None else np.broadcast_to(said, shares.shape)
    outside = ~((shares >= 0) & (shares <= 1))
    if outside.any():
        row = int(outside.argmax())
        raise BindingError(
            f"'{name}' is {shares[row]:g} in row {data.rows[row] + 1}, outside 0 to 1",
            hint="a binomial response is 0 or 1, or a share of --trials; of counts it is written events/trials",
        )
    if trials is None:
        parts = (shares > 0) & (shares < 1)
        if parts.any():
            row = int(parts.argmax())
            raise BindingError(
                f"'{name}' is {shares[row]:g} in row {data.rows[row] + 1}, and it is not said of how many trials",
                hint="--trials COLUMN says so; counts are written as events/trials",
            )
        return np.ones(shares.shape)
    bad = ~((trials >= 1) & (trials == np.floor(trials)) & np.isfinite(trials))
    if bad.any():
        row = int(bad.argmax())
        raise BindingError(
            f"the trials are {trials[row]:g} in row {data.rows[row] + 1}, and they are a whole number from 1 on",
            hint="leave such rows out, or give a number for all of them",
        )
    return trials


def _divisor(response: tree.Module, shares: Any, data: Data, limits: tuple[int, int]) -> Any:
    """The divisor of a response that is a quotient of whole numbers; None for others."""
    np = arrays.numpy_namespace()
    last = response.body[-1]
    if not (isinstance(last, tree.Evaluate) and isinstance(last.value, tree.Binary) and last.value.operator == "/"):
        return None
    right = last.value.right
    below = tree.Module(response.span, response.source, (*response.body[:-1], tree.Evaluate(right.span, right)))
    trials = _evaluated(below, data, limits)
    events = shares * trials
    is_count = np.abs(events - np.round(events)) <= _ROUNDING * trials
    return trials if (is_count & (trials == np.floor(trials))).all() else None


def doubts(family: str, response: Any, trials: Any, name: str, said: bool) -> list[str]:
    """Warnings that a response may not be what its family takes it for; `said` tells that `trials` are given apart."""
    np = arrays.numpy_namespace()
    if family == "poisson" and (response != np.floor(response)).any():
        return [f"'{name}' has values that are no whole numbers: the standard errors are those of counts"]
    if family != "binomial" or not said:
        return []
    events = response * trials
    if (np.abs(events - np.round(events)) > _WHOLE).any():
        return [f"'{name}' times the trials is no whole number in some rows: the trials may be those of others"]
    if ((response == 0) | (response == 1)).all() and (trials > 1).any():
        return [f"'{name}' is 0 or 1 in all rows, and taken for the share of events: counts are written events/trials"]
    return []
