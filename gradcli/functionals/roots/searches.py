"""Searches for roots and minima of bodies, for many starts and reads, by a damped Newton's method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import EvaluationError
from gradcli.functionals.body import Body
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

    return roots(values, slope, start)


def _of_row(np: Any, row: Any, body: Body, search: Search) -> Any:
    start, reads = row[: body.bound], row[body.bound :].tolist()
    if np.isnan(row).any():
        return np.full(body.bound, np.nan)

    def values(y: Any) -> Any:
        return np.array(body(*y, *reads), float)

    def jacobian(y: Any) -> Any:
        return np.array([body.partial(i)(*y, *reads) for i in range(body.bound)], float).T

    if search.bracket is not None:
        start = bracketed(values, *search.bracket)
    if search.objective is None:
        return root(values, jacobian, start)
    objective = search.objective

    def height(y: Any) -> float:
        return search.sign * float(objective(*y, *reads)[0])

    return minimum(height, lambda y: search.sign * values(y), lambda y: search.sign * jacobian(y), start)


Vector = Any
Matrix = Any

# Bounds on the number of steps, and of halvings of one step.
_MOST_STEPS, _MOST_HALVINGS = 200, 40
# A step this small, relative to the unknowns, ends the search; one that is larger than the second at the end is none of
# a method that converges.
_SMALLEST_STEP, _LARGEST_LAST_STEP = 4 * 2.0**-53, 1e-9
# The least unknown that such a step is relative to where rounding errors of the values end the search: they hide how small
# an unknown is.
_FLOOR = 1e-3
# From the largest float to the least one.
_BISECTIONS = 2_200


def root(function: Callable[[Vector], Vector], jacobian: Callable[[Vector], Matrix], start: Vector) -> Vector:
    """A root of a function of n variables with n results.

    Raises EvaluationError where none is found, and where the Jacobian is singular there.
    """
    np = arrays.numpy_namespace()
    y, values, step, stalls = np.array(start, float), function(start), np.full(len(start), np.inf), False
    for _ in range(_MOST_STEPS):
        limits.charge_steps()
        if not values.any():
            return _checked(y, jacobian(y))
        step = _step(np, jacobian(y), values)
        moved = _damped(np, function, y, values, step)
        stalls = moved is None
        if moved is None or _is_small(np, step, y, _SMALLEST_STEP):
            break
        y, values = moved
    matrix = jacobian(y)
    # Rounding errors of the values that a root has: those of the unknowns, times the derivatives.
    rounding = np.abs(matrix) @ np.maximum(np.abs(y), 1.0)
    if (np.abs(values) <= 1e-9 * rounding).all() and _is_small(np, step, y, _LARGEST_LAST_STEP, _FLOOR):
        found = _checked(y, matrix)
        if stalls or _is_small(np, step, y, _LARGEST_LAST_STEP):
            return found
    ends = _change_of_sign(np, function, start) if len(y) == 1 else None
    if ends is not None:
        found = bracketed(function, *ends)
        return _checked(found, jacobian(found))
    raise EvaluationError(f"no root was found: at {_told(y)} the residual is {float(np.abs(values).max()):.3g}")


def roots(function: Callable[[Vector], Vector], slope: Callable[[Vector], Vector], start: Vector) -> tuple[Vector, Any]:
    """Roots of many functions of one variable, by the same steps as `root` takes for one.

    The functions take and return arrays [n]. The second result is true for those that were found and are simple.
    """
    np = arrays.numpy_namespace()
    y = np.array(start, float)
    values, steps = function(y), np.zeros_like(y)
    moving, stalled = values != 0.0, np.zeros(len(y), bool)
    for _ in range(_MOST_STEPS):
        if not moving.any():
            break
        limits.charge_steps()
        steps = np.where(moving, -values / slope(y), steps)
        factor = np.ones_like(y)
        higher = moving
        for _ in range(_MOST_HALVINGS):
            found = function(y + factor * steps)
            higher = moving & ~(np.abs(found) < np.abs(values))
            if not higher.any():
                break
            factor = np.where(higher, 0.5 * factor, factor)
        small = np.abs(steps) <= _SMALLEST_STEP * np.abs(y)
        stalled |= higher
        moving = moving & ~higher & ~small
        y, values = np.where(moving, y + factor * steps, y), np.where(moving, found, values)
        moving = moving & (values != 0.0)
    slopes = np.abs(slope(y))
    known = np.abs(steps) <= _LARGEST_LAST_STEP * np.maximum(np.abs(y), np.where(stalled, _FLOOR, 0.0))
    known &= (np.abs(values) <= 1e-9 * slopes * np.maximum(np.abs(y), 1.0)) & np.isfinite(slopes)
    return y, known & (slopes >= 1e-7 * np.minimum(1.0, 1.0 / np.maximum(np.abs(y), 1e-300)))


def _step(np: Any, matrix: Matrix, values: Vector) -> Vector:
    if not np.isfinite(matrix).all():
        return np.full(len(values), np.nan)
    return -np.linalg.lstsq(matrix, values, rcond=None)[0]


def _damped(np: Any, function: Callable[[Vector], Vector], y: Vector, values: Vector, step: Vector) -> Any:
    """The next point with its values, such that the residual falls; None where none does."""
    before = float(np.linalg.norm(values))
    for _ in range(_MOST_HALVINGS):
        found = function(y + step)
        if float(np.linalg.norm(found)) < before:
            return y + step, found
        step = 0.5 * step
    return None


def _is_small(np: Any, step: Vector, y: Vector, relative: float, floor: float = 0.0) -> bool:
    return bool((np.abs(step) <= relative * np.maximum(np.abs(y), floor)).all())


def _checked(y: Vector, matrix: Matrix) -> Vector:
    """A solution, where the matrix of its derivatives is regular. Raises EvaluationError for a singular one."""
    np = arrays.numpy_namespace()
    sizes = np.linalg.svd(matrix, compute_uv=False) if np.isfinite(matrix).all() else np.zeros(1)
    if not sizes.min() > 1e-8 * max(sizes.max(), 1e-300) or sizes.max() < 1e-7 * _scale(np, y):
        raise EvaluationError(
            f"the Jacobian is singular at the solution {_told(y)}, which has no derivatives there",
            hint="a double root, or unknowns that are not determined",
        )
    return y


def _scale(np: Any, y: Vector) -> float:
    return 1.0 / max(1.0, float(np.abs(y).max()))


def _told(y: Vector) -> str:
    numbers = ", ".join(f"{float(v):.6g}" for v in y[:4])
    return numbers if len(y) == 1 else f"[{numbers}{', …' * (len(y) > 4)}]"


def _change_of_sign(np: Any, function: Callable[[Vector], Vector], start: Vector) -> tuple[float, float] | None:
    """Two places next to each other, at distances from the start that double, where the sign changes; or None."""
    for direction in (1.0, -1.0):
        before = float(start[0]), float(function(start)[0])
        for k in range(-20, 60):
            place = float(start[0]) + direction * 2.0**k
            value = float(function(np.array([place]))[0])
            if value * before[1] < 0:
                return before[0], place
            before = place, value
    return None


def bracketed(function: Callable[[Vector], Vector], low: float, high: float) -> Vector:
    """A root of a function of one variable between two places. Raises EvaluationError for values of one sign."""
    np = arrays.numpy_namespace()
    first, last = (float(function(np.array([x]))[0]) for x in (low, high))
    if first == 0.0 or last == 0.0:
        return np.array([low if first == 0.0 else high])
    if not first * last < 0:
        raise EvaluationError(f"the values at both ends, {first:.6g} and {last:.6g}, do not differ in sign")
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if float(function(np.array([middle]))[0]) * first > 0:
            low = middle
        else:
            high = middle
    found = np.array([0.5 * (low + high)])
    if not abs(float(function(found)[0])) <= min(abs(first), abs(last)):
        raise EvaluationError(f"no root was found: at {_told(found)} the sign changes at a pole or a jump")
    return found


def minimum(
    height: Callable[[Vector], float],
    gradient: Callable[[Vector], Vector],
    hessian: Callable[[Vector], Matrix],
    start: Vector,
) -> Vector:
    """A minimum of a function of n variables, by Newton's method with a line search.

    Raises EvaluationError where none is found, and where the Hessian is singular there.
    """
    np = arrays.numpy_namespace()
    y = np.array(start, float)
    value = height(y)
    step, stalls = np.full(len(start), np.inf), False
    for _ in range(_MOST_STEPS):
        limits.charge_steps()
        slope = gradient(y)
        if not slope.any() and np.linalg.eigvalsh(hessian(y)).min() > 0:
            return _checked(y, hessian(y))
        step = _descent(np, hessian(y), slope)
        if _is_small(np, step, y, _SMALLEST_STEP):
            break
        moved = _lower(np, height, y, value, step, float(slope @ step))
        stalls = moved is None
        if moved is None:
            break
        y, value = moved
    if _is_small(np, step, y, 1e-7, _FLOOR) and np.linalg.eigvalsh(hessian(y)).min() > 0:
        found = _checked(y + step, hessian(y))
        if stalls or _is_small(np, step, y, 1e-7):
            return found
    raise EvaluationError(
        f"no minimum was found: at {_told(y)} the slope is {float(np.abs(gradient(y)).max()):.3g}",
        hint="there may be none, or it is far from the start",
    )


def _descent(np: Any, matrix: Matrix, slope: Vector) -> Vector:
    """Newton's step, with the curvature made positive where it is not."""
    if not (np.isfinite(matrix).all() and np.isfinite(slope).all()):
        return np.full(len(slope), np.nan)
    curvatures, directions = np.linalg.eigh(matrix)
    floor = 1e-8 * max(float(np.abs(curvatures).max()), 1e-8)
    return -directions @ ((directions.T @ slope) / np.maximum(np.abs(curvatures), floor))


def _lower(np: Any, height: Callable[[Vector], float], y: Vector, value: float, step: Vector, slope: float) -> Any:
    """The next point with its height, which falls enough (L. Armijo, 1966); None where none does."""
    for _ in range(_MOST_HALVINGS):
        found = height(y + step)
        if found <= value + 1e-4 * slope and found < value:
            return y + step, found
        step, slope = 0.5 * step, 0.5 * slope
    return None
