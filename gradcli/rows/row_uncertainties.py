"""The standard uncertainty of each row's value, propagated from those of its independent inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli import arrays
from gradcli.errors import ShapeError
from gradcli.rows.formats.blocks import Column
from gradcli.rows.row_results import RowFailure, RowResults

# The prefix of the name of an input's uncertainty, and the result key of the value's uncertainty.
PREFIX, KEY = "u_", "±"


def checked(column: Column) -> Column:
    """A column of uncertainties in which negative ones are marked as failing."""
    np = arrays.numpy_namespace()
    if column.values.dtype.kind == "O":
        negative = [row for row, item in enumerate(column.values) if np.any(np.asarray(item) < 0)]
    else:
        below = column.values < 0
        if not below.any():
            return column
        negative = np.flatnonzero(below.reshape(len(below), -1).any(1)).tolist()
    why = dict.fromkeys(negative, "an uncertainty is not negative")
    return column._replace(failing=why | dict(column.failing))


def combined(results: RowResults, of_rows: Mapping[str, Any], of_all: Mapping[str, Any]) -> RowResults:
    """The results with the uncertainty of the value under KEY: the root of the sum of the squares of derivative times
    uncertainty, in the shape of the values (GUM, 5.1.2).

    `of_rows` are uncertainties by input name that rows have for themselves, `[n, …]` or n objects; `of_all` are numbers
    or arrays that all rows share. A row fails where an uncertainty is neither a number nor of its input's shape;
    ShapeError is raised where this holds for all rows.
    """
    np = arrays.numpy_namespace()
    given = {
        name: results.derivatives[name] for name in (*of_rows, *of_all) if results.derivatives.get(name) is not None
    }
    if not any(array.dtype.kind == "O" for array in (results.value, *given.values(), *of_rows.values())):
        shared = {name: np.asarray(u)[None] for name, u in of_all.items()}
        found = _combined(results.value, given, {**of_rows, **shared}, results.absent)
        return results._replace(derivatives={**results.derivatives, KEY: found})
    items: list[Any] = []
    failures = list(results.failures)
    for row in range(len(results.value)):
        one = {name: np.asarray(array[row], "float64")[None] for name, array in given.items()}
        u = {name: np.asarray(array[row], "float64")[None] for name, array in of_rows.items()}
        u |= {name: np.asarray(array)[None] for name, array in of_all.items()}
        absent = {name: mask[row : row + 1] for name, mask in results.absent.items()}
        try:
            items.append(_combined(np.asarray(results.value[row], "float64")[None], one, u, absent)[0])
        except ShapeError as error:
            items.append(np.nan)
            failures.append(RowFailure(row, error))
    found = np.empty(len(items), "object")
    found[:] = items
    return results._replace(derivatives={**results.derivatives, KEY: found}, failures=tuple(failures))


def _combined(value: Any, derivatives: Mapping[str, Any], uncertainties: Mapping[str, Any], absent: Any) -> Any:
    """The uncertainties of the `value` `[n, …]`, from derivatives `[n, …, …]` and uncertainties of n rows or of one for
    all. `hypot` avoids overflow and underflow of squares."""
    np = arrays.numpy_namespace()
    u_combined = np.zeros(value.shape)
    for name, derivative in derivatives.items():
        u = uncertainties[name]
        if u.ndim > 1 and u.shape[1:] != derivative.shape[value.ndim :]:
            raise ShapeError(
                f"'{PREFIX}{name}' has the shape {list(u.shape[1:])}, and '{name}' {list(derivative.shape[value.ndim :])}"
            )
        further = derivative.shape[value.ndim :] if u.ndim > 1 else (1,) * (derivative.ndim - value.ndim)
        with arrays.quiet():
            deviations = u.reshape(len(u), *[1] * (value.ndim - 1), *further)
            contributions = derivative * deviations
        # An input with uncertainty 0 contributes nothing, even where its derivative is infinite.
        is_finite = np.isfinite(value).reshape(*value.shape, *[1] * (contributions.ndim - value.ndim))
        contributions = np.where(is_finite & (deviations == 0), 0.0, contributions)
        if name in absent:
            contributions[absent[name]] = 0.0
        if derivative.ndim > value.ndim:
            contributions = np.hypot.reduce(contributions.reshape(*value.shape, -1), axis=-1)
        np.hypot(u_combined, contributions, out=u_combined)
    return u_combined
