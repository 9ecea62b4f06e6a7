"""The primitives of one unknown of a system of equations, as functions of numbers, for functions inside functionals.

`solution_part(*start, *reads, body=Body, search=Search, number=…)` is unknown `number` of the root of a body.

`linear_solution_part(*matrix, *right, number=…)` is unknown `number` of a linear system, whose matrix is given row by row.

The operands are broadcast, and each element is a system of its own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from threading import Lock
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.functionals.body import Body, of_each, stacked_balls
from gradcli.functionals.roots.searches import Search, found_for_rows, found_in_balls
from gradcli.primitives.bind import bind
from gradcli.primitives.conversions import reshaped
from gradcli.primitives.entries.arithmetic import negative
from gradcli.primitives.entries.linear_algebra.matrices import solve
from gradcli.primitives.families import elementwise

# The cost of a solution, in array elements, beside that of the operations of its body, and that of a linear system.
_TIME, _LINEAR_TIME = 400, 40


def _computed(_xp: Any, *operands: Any, body: Body, search: Search, number: int) -> Any:
    if is_exact():
        return found_in_balls(stacked_balls(operands), body, search)[..., number]
    return of_each(operands, lambda rows: _found(rows, body, search)[:, number])


# Each unknown asks for the same solutions.
_known: dict[Hashable, Any] = {}
_MOST_KEPT = 8
_lock = Lock()


def _found(rows: Any, body: Body, search: Search) -> Any:
    key = (body, search, rows.tobytes())
    found = _known.get(key)
    if found is None:
        found = found_for_rows(rows, body, search)
        with _lock:
            _known[key] = found
            while len(_known) > _MOST_KEPT:
                del _known[next(iter(_known))]
    return found


def _pulled_back(i: int, g: Any, y: Any, *operands: Any, body: Body, search: Search, number: int) -> Any:
    """The cotangent of operand `i`, by the implicit function theorem; None for the start."""
    n, reads = body.bound, operands[body.bound :]
    if i < n:
        return None
    params = {"body": body, "search": search}
    unknowns = [y if k == number else bind(solution_part, operands, {**params, "number": k}) for k in range(n)]
    columns = [body.partial(k)(*unknowns, *reads) for k in range(n)]
    matrix = [columns[k][row] for row in range(n) for k in range(n)]
    right = body.partial(i)(*unknowns, *reads)
    return g * bind(linear_solution_part, [*matrix, *map(negative, right)], {"number": number})


def _solved(_xp: Any, *operands: Any, number: int) -> Any:
    if is_exact():
        n, given = _order(operands), stacked_balls(operands)
        shape = given.shape[:-1]
        matrix = reshaped(given[..., : n * n], (*shape, n, n))
        return solve(matrix, reshaped(given[..., n * n :], (*shape, n, 1)))[..., number, 0]
    return of_each(operands, lambda rows: _solved_rows(rows, number))


def _solved_rows(rows: Any, number: int) -> Any:
    np = arrays.numpy_namespace()
    n = _order(rows[0])
    matrix, right = rows[:, : n * n].reshape(-1, n, n), rows[:, n * n :, None]
    try:
        return np.linalg.solve(matrix, right)[:, number, 0]
    except np.linalg.LinAlgError:
        return np.full(len(rows), np.nan)


def _order(operands: Sequence[Any]) -> int:
    """The number of unknowns n of a system with n*n + n numbers."""
    return math.isqrt(len(operands))


def _linear_pulled_back(i: int, g: Any, y: Any, *operands: Any, number: int) -> Any:
    """An element of the inverse, and for an element of the matrix, its negative times an unknown."""
    n = _order(operands)
    row, column = divmod(i, n) if i < n * n else (i - n * n, None)
    matrix = operands[: n * n]
    units = [1.0 if k == row else 0.0 for k in range(n)]
    inverse = g * bind(linear_solution_part, [*matrix, *units], {"number": number})
    if column is None:
        return inverse
    unknown = y if column == number else bind(linear_solution_part, operands, {"number": column})
    return negative(inverse * unknown)


solution_part = elementwise(
    "solution_part", "start, reads, body, search, number", "an unknown where the results of a body are 0",
    internal="root",
    forward=_computed,
    vjp=_pulled_back,
    variadic=True,
    time=_TIME,
    fails=True,
    derivative="-f_y^-1 f_x, by the implicit function theorem",
)  # fmt: skip

linear_solution_part = elementwise(
    "linear_solution_part", "matrix, right, number", "an unknown of a linear system",
    internal="root",
    forward=_solved,
    vjp=_linear_pulled_back,
    variadic=True,
    time=_LINEAR_TIME,
    derivative="the inverse, and -inverse*x",
)  # fmt: skip
