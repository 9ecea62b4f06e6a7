"""The primitives of roots and minima, whose derivatives are those of the implicit function theorem.

`number_solution(start, *reads, body=Body, search=Search)` is a root of a body with one result and one bound variable;
the operands are broadcast, and each element is a root of its own.

`solution(given, body=Body, search=Search)` is a root of a body with as many results as bound variables. `given`, of shape
[..., unknowns + reads], holds where to search, and the values that the body reads; the result has shape [...,
unknowns].
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.functionals import newton
from gradcli.functionals.body import Body
from gradcli.functionals.row_results import of_each
from gradcli.kinds.jets import Jet
from gradcli.loops.loop_primitive import part
from gradcli.primitives.bind import bind, constant
from gradcli.primitives.entries.arithmetic import negative, zeros_like
from gradcli.primitives.entries.matrices import solve
from gradcli.primitives.entries.shape import matrix_transpose, stack
from gradcli.primitives.families import elementwise
from gradcli.primitives.primitive import Primitive

# The cost of a solution, in array elements, beside that of the operations of its body.
_TIME = 400


class Search(NamedTuple):
    """How a solution is searched for.

    `objective` is a body with one result whose gradient the body is, where a minimum is meant, or a maximum if `sign` is
    -1. `bracket` has two places between which a root of one unknown is.
    """

    objective: Body | None = None
    sign: float = 1.0
    bracket: tuple[float, float] | None = None


def _computed(_xp: Any, given: Any, *, body: Body, search: Search) -> Any:
    if is_exact():
        return _proved(given, body, search)
    found = _of_rows(arrays.to_numpy(given).reshape(-1, given.shape[-1]), body, search)
    return arrays.like_library_of(found.reshape(*given.shape[:-1], body.bound), given)


def _numbers(_xp: Any, *operands: Any, body: Body, search: Search) -> Any:
    if is_exact():
        xp: Any = arrays.default_namespace()
        shape = broadcast([arrays.shape(o) for o in operands])
        found = _proved(
            xp.stack([xp.broadcast_to(xp.asarray(o, "float64"), shape) for o in operands], -1), body, search
        )
        return found[..., 0] if shape else found[0]
    return of_each(operands, lambda rows: _of_rows(rows, body, search)[:, 0])


def _proved(given: Any, body: Body, search: Search) -> Any:
    """The solutions in balls."""
    # Imported here as few programs are computed in balls.
    from gradcli.functionals import ball_roots

    np = arrays.numpy_namespace()
    objective = None if search.objective is None else ball_roots.in_floats(search.objective)

    def found(row: Sequence[float], floats: Body) -> Any:
        with np.errstate(all="ignore"):
            return _of_row(np, np.array(row), floats, search._replace(objective=objective)).tolist()

    return ball_roots.roots(given, body, found)


def _of_rows(rows: Any, body: Body, search: Search) -> Any:
    """The solutions for rows of `given`, [rows, unknowns]."""
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

    return newton.roots(values, slope, start)


def _of_row(np: Any, row: Any, body: Body, search: Search) -> Any:
    start, reads = row[: body.bound], row[body.bound :].tolist()
    if np.isnan(row).any():
        return np.full(body.bound, np.nan)

    def values(y: Any) -> Any:
        return np.array(body(*y, *reads), float)

    def jacobian(y: Any) -> Any:
        return np.array([body.partial(i)(*y, *reads) for i in range(body.bound)], float).T

    if search.bracket is not None:
        start = newton.bracketed(values, *search.bracket)
    if search.objective is None:
        return newton.root(values, jacobian, start)
    objective = search.objective

    def height(y: Any) -> float:
        return search.sign * float(objective(*y, *reads)[0])

    return newton.minimum(height, lambda y: search.sign * values(y), lambda y: search.sign * jacobian(y), start)


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
    vjp=(_pulled_back,),
    jet=_coefficients,
    batch=_batched,
    result_shape=_shape,
    time=_TIME,
    fails=True,
    derivative="-f_y^-1 f_x, by the implicit function theorem",
)  # fmt: skip
