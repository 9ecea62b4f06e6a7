"""The primitives of roots and minima, whose derivatives are those of the implicit function theorem.

`number_solution(start, *reads, body=Body, search=Search)` is a root of a body with one result and one bound variable;
the operands are broadcast, and each element is a root of its own.

`solution(given, body=Body, search=Search)` is a root of a body with as many results as bound variables. `given`, of
shape [..., unknowns + reads], holds where to search, and the values that the body reads; the result has shape [...,
unknowns].

Functions inside functionals have numbers: `solution_part(*start, *reads, body=Body, search=Search, number=…)` is
unknown `number` of the root of a body.

`linear_solution_part(*matrix, *right, number=…)` is unknown `number` of a linear system, whose matrix is given row by
row.

The operands are broadcast, and each element is a system of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import Shape
from gradcli.functionals.body import Body, of_each, stacked_balls
from gradcli.functionals.roots.searches import Search, found_for_rows, found_in_balls
from gradcli.kinds.jets import Jet
from gradcli.loops.part import part
from gradcli.primitives.bind import bind, constant
from gradcli.primitives.conversions import reshaped
from gradcli.primitives.entries.arithmetic import negative, zeros_like
from gradcli.primitives.entries.linear_algebra.matrices import solve
from gradcli.primitives.entries.shape import matrix_transpose, stack
from gradcli.primitives.families import elementwise
from gradcli.primitives.primitive import Elements, Primitive

# The cost of a solution, in array elements, beside that of the operations of its body, and that of a linear system.
_TIME, _LINEAR_TIME = 400, 40


def _computed(_xp: Any, given: Any, *, body: Body, search: Search) -> Any:
    if is_exact():
        return found_in_balls(given, body, search)
    found = found_for_rows(arrays.to_numpy(given).reshape(-1, given.shape[-1]), body, search)
    return arrays.like_library_of(found.reshape(*given.shape[:-1], body.bound), given)


def _numbers(_xp: Any, *operands: Any, body: Body, search: Search) -> Any:
    if is_exact():
        found = found_in_balls(stacked_balls(operands), body, search)
        return found[..., 0] if found.ndim > 1 else found[0]
    return of_each(operands, lambda rows: found_for_rows(rows, body, search)[:, 0])


def _pulled_back(g: Any, y: Any, given: Any, *, body: Body, search: Search) -> Any:
    unknowns, reads = _elements(y), _elements(given)[body.bound :]
    multipliers = _solved(matrix_transpose(_jacobian(body, unknowns, reads)), g)
    zeros = zeros_like(unknowns[0])
    pulled = [zeros] * body.bound
    for i in range(len(reads)):
        slopes = body.partial(body.bound + i)(*unknowns, *reads)
        terms = [m * s for m, s in zip(_elements(multipliers), slopes)]
        pulled.append(negative(sum(terms[1:], terms[0])) + zeros)
    return stack(pulled, -1)


def implicit_derivative(i: int, g: Any, y: Any, *operands: Any, body: Body, **_search: Any) -> Any:
    """The cotangent of operand `i` of a root y of a body with one result; None for the start."""
    if i == 0:
        return None
    reads = operands[1:]
    (by_read,), (by_root,) = body.partial(i)(y, *reads), body.partial(0)(y, *reads)
    return negative(g * by_read / by_root)


def _coefficients(_primitive: Primitive, y: Jet, given: Jet, *, body: Body, search: Search) -> Iterator[Any]:
    """Coefficient k cancels that of the residual of the solution up to order k - 1."""
    first = _elements(y.inner), _elements(given.inner)[body.bound :]
    jacobian = _jacobian(body, *first)
    known = [y.inner]
    for order in itertools.count(1):
        solved = Jet(known, order)
        moved = Jet([given.coefficient(k) for k in range(order + 1)], order)
        residual = stack(body(*_elements(solved), *_elements(moved)[body.bound :]), -1)
        missing = residual.coefficient(order) if isinstance(residual, Jet) else None
        known.append(None if missing is None else negative(_solved(jacobian, missing)))
        yield known[-1]


def _jacobian(body: Body, unknowns: Sequence[Any], reads: Sequence[Any]) -> Any:
    """The derivatives of the results by the unknowns, [..., results, unknowns]."""
    shape = zeros_like(constant(unknowns[0]))
    columns = [[d + shape for d in body.partial(i)(*unknowns, *reads)] for i in range(body.bound)]
    return stack([stack(column, -1) for column in columns], -1)


def _solved(matrix: Any, right: Any) -> Any:
    return part(solve(matrix, part(right, (..., None))), (..., 0))


def _elements(x: Any) -> list[Any]:
    """The elements along the last axis."""
    return [part(x, (..., k)) for k in range(arrays.shape(x)[-1])]


def _batched(
    _primitive: Primitive, operands: Sequence[Any], _batched: Sequence[bool], params: Mapping[str, Any]
) -> Any:
    """Axes before the last one are independent solutions anyway."""
    return bind(solution, operands, params)


def _by_element(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Elements | None:
    """The unknowns of one system, each as a function of numbers."""
    (shape,) = shapes
    if len(shape) > 1:
        return None
    places = [(0, k) for k in range(shape[0])]
    return [(solution_part, places, {**params, "number": k}) for k in range(params["body"].bound)]


def _shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    body: Body = params["body"]
    return (*shapes[0][:-1], body.bound)


number_solution = elementwise(
    "number_solution", "start, reads, body, search", "where a body with one bound variable is 0",
    internal="root",
    forward=_numbers,
    vjp=implicit_derivative,
    variadic=True,
    time=_TIME,
    fails=True,
    derivative="-g*f_x/f_y, by the implicit function theorem",
)  # fmt: skip

solution = Primitive(
    "solution", "given, body, search", "where the results of a body are 0",
    internal="root",
    forward=_computed,
    by_element=_by_element,
    vjp=(_pulled_back,),
    jet=_coefficients,
    batch=_batched,
    result_shape=_shape,
    time=_TIME,
    fails=True,
    derivative="-f_y^-1 f_x, by the implicit function theorem",
)  # fmt: skip


def _computed_part(_xp: Any, *operands: Any, body: Body, search: Search, number: int) -> Any:
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


def _pulled_back_part(i: int, g: Any, y: Any, *operands: Any, body: Body, search: Search, number: int) -> Any:
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


def _computed_linear_part(_xp: Any, *operands: Any, number: int) -> Any:
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
    forward=_computed_part,
    vjp=_pulled_back_part,
    variadic=True,
    time=_TIME,
    fails=True,
    derivative="-f_y^-1 f_x, by the implicit function theorem",
)  # fmt: skip

linear_solution_part = elementwise(
    "linear_solution_part", "matrix, right, number", "an unknown of a linear system",
    internal="root",
    forward=_computed_linear_part,
    vjp=_linear_pulled_back,
    variadic=True,
    time=_LINEAR_TIME,
    derivative="the inverse, and -inverse*x",
)  # fmt: skip
