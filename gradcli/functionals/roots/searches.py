"""Searches for roots and minima of bodies, for many starts and values that they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.functionals.body import Body
from gradcli.functionals.roots import newton_searches
from gradcli.named_tuples import NamedTuple


class Search(NamedTuple):
    """A search for the solution of equations, or for a minimum.

    `objective` is a body with one result whose gradient the body is, where a minimum is meant, or a maximum if `sign` is
    -1. `bracket` has two places between which a root of one unknown is.
    """

    objective: Body | None = None
    sign: float = 1.0
    bracket: tuple[float, float] | None = None


def found_in_balls(given: Any, body: Body, search: Search) -> Any:
    """The solutions in balls, [..., unknowns], for `given` starts and reads [..., unknowns + reads]."""
    # Imported here as few programs are computed in balls.
    from gradcli.functionals.roots import ball_roots

    np = arrays.numpy_namespace()
    objective = None if search.objective is None else ball_roots.in_floats(search.objective)

    def found(row: Sequence[float], floats: Body) -> Any:
        with np.errstate(all="ignore"):
            return _of_row(np, np.array(row), floats, search._replace(objective=objective)).tolist()

    curvature = 0.0 if objective is None else search.sign
    return ball_roots.roots(given, body, found, bracket=search.bracket, curvature=curvature)


def found_for_rows(rows: Any, body: Body, search: Search) -> Any:
    """The solutions for rows of starts and reads, [rows, unknowns]."""
    np = arrays.numpy_namespace()
    with arrays.using_namespace(None), np.errstate(all="ignore"):
        found, known = np.empty((len(rows), body.bound)), np.zeros(len(rows), bool)
        if body.bound == 1 and len(rows) > 1 and search == Search():
            found[:, 0], known = _at_once(np, rows, body)
        for i in np.flatnonzero(~known):
            found[i] = _of_row(np, rows[i], body, search)
    return found


def _at_once(np: Any, rows: Any, body: Body) -> tuple[Any, Any]:
    """The roots for all rows by Newton's method, and for which rows it has found them."""
    start, *reads = rows.T

    def values(y: Any) -> Any:
        return np.broadcast_to(body(y, *reads)[0], y.shape)

    def slope(y: Any) -> Any:
        return np.broadcast_to(body.partial(0)(y, *reads)[0], y.shape)

    return newton_searches.roots(values, slope, start)


def _of_row(np: Any, row: Any, body: Body, search: Search) -> Any:
    start, reads = row[: body.bound], row[body.bound :].tolist()
    if np.isnan(row).any():
        return np.full(body.bound, np.nan)

    def values(y: Any) -> Any:
        return np.array(body(*y, *reads), float)

    def jacobian(y: Any) -> Any:
        return np.array([body.partial(i)(*y, *reads) for i in range(body.bound)], float).T

    if search.bracket is not None:
        start = newton_searches.bracketed(values, *search.bracket)
    if search.objective is None:
        return newton_searches.root(values, jacobian, start)
    objective = search.objective

    def height(y: Any) -> float:
        return search.sign * float(objective(*y, *reads)[0])

    return newton_searches.minimum(
        height, lambda y: search.sign * values(y), lambda y: search.sign * jacobian(y), start
    )
