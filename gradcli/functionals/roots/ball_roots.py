"""Roots in ball arithmetic: Newton steps improve one that was found in floats, and Krawczyk's operator proves it.

Where the operator maps a box into its interior, there is exactly one root in the box (R. Krawczyk, Computing 4 (1969)
187).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpq

from gradcli import arrays, limits
from gradcli.arrays.flint.balls import Balls, Undecided, UndecidedError, exact, interval_evaluation, is_nan, precision
from gradcli.arrays.flint.flint_matrices import identity_matrix
from gradcli.autograd.untaken_masks import may_differ_from_zero
from gradcli.errors import EvaluationError
from gradcli.functionals.body import Body
from gradcli.loops.rolled_loop import BodyPath
from gradcli.primitives.entries.comparisons import not_equal
from gradcli.program.ir import Equation, Program

# Bounds on the number of Newton steps, and of boxes that are tried.
_MOST_STEPS, _MOST_BOXES = 60, 8
# The width of the first box relative to the last step, and of each box relative to the width that it needs.
_FIRST, _WIDER = 4, 1.5
# The largest denominator of a root that is tried as a fraction.
_LARGEST_DENOMINATOR = 1_000

# From a start and what a body reads, as floats, to a root.
FloatSearch = Callable[[Sequence[float], Body], Sequence[float]]


def roots(
    given: Any,
    body: Body,
    search: FloatSearch,
    *,
    bracket: tuple[float, float] | None = None,
    curvature: float = 0.0,
) -> Balls:
    """The roots of a body, of shape [..., unknowns], for `given` starts and reads [..., unknowns + reads].

    With a `bracket`, a root is between its ends, and with a `curvature` of 1 or -1, the Jacobian times it is positive
    definite there, as at a minimum or maximum. Raises EvaluationError where `search` finds none, or none that is proved
    to be such, and UndecidedError where the precision does not suffice.
    """
    rows = np.asarray(given.numbers if type(given) is Balls else given, object)
    floats = in_floats(body)
    found = np.empty((*rows.shape[:-1], body.bound), object)
    for place in np.ndindex(*rows.shape[:-1]):
        row = [exact(x) for x in rows[place]]
        found[place] = [arb("nan")] * body.bound if any(map(is_nan, row)) else _root(row, body, floats, search)
        if bracket is not None:
            _require_between(found[place][0], *bracket)
        if curvature:
            _require_definite([*found[place]], row[body.bound :], body, curvature)
    return Balls(found)


def _require_between(root: Any, low: float, high: float) -> None:
    """Raise EvaluationError for a root that is outside of a bracket, whose ends are rounded."""
    first, last = math.nextafter(min(low, high), -math.inf), math.nextafter(max(low, high), math.inf)
    if arb(root) < first or arb(root) > last:
        raise EvaluationError(
            f"no root is proved between {low:.6g} and {high:.6g}: there is one at {float(arb(root).mid()):.6g}"
        )


def _require_definite(root: Sequence[Any], reads: Sequence[Any], body: Body, sign: float) -> None:
    """Raise EvaluationError where the Jacobian times a sign is not positive definite, and UndecidedError where that is
    open."""
    n = body.bound
    columns = [body.partial(i)(*map(Balls, root), *map(Balls, reads)) for i in range(n)]
    left = [[arb(_number(columns[j][i])) * sign for j in range(n)] for i in range(n)]
    for k in range(n):
        # The pivots of a symmetric matrix are positive if and only if it is positive definite.
        pivot = left[k][k]
        if pivot <= 0:
            raise EvaluationError(
                f"no {'minimum' if sign > 0 else 'maximum'} is proved: the Hessian is not definite there"
            )
        if not pivot > 0:
            raise UndecidedError("it cannot be told whether a Hessian is definite")
        for i in range(k + 1, n):
            factor = left[i][k] / pivot
            left[i] = [x - factor * y for x, y in zip(left[i], left[k])]


def in_floats(body: Body) -> Body:
    """A body whose constants are floats."""

    def plain(program: Program) -> Program:
        equations = tuple(map(_float_equation, program.equations))
        return program._replace(equations=equations, outputs=tuple(map(_float, program.outputs)))

    paths = [BodyPath(plain(program), holds) for program, holds in body.paths]
    return Body(paths, plain(body.program), body.bound)


def _float_equation(equation: Equation) -> Equation:
    inputs = tuple(map(_float, equation.inputs))
    if equation.primitive is may_differ_from_zero:
        return equation._replace(primitive=not_equal, inputs=(*inputs, 0.0))
    return equation._replace(inputs=inputs)


def _float(atom: Any) -> Any:
    return float(arb(atom.numbers).mid()) if type(atom) is Balls and not atom.shape else atom


def _root(row: Sequence[Any], body: Body, floats: Body, search: FloatSearch) -> Sequence[Any]:
    n, reads = body.bound, [Balls(x) for x in row[body.bound :]]
    with arrays.using_namespace(None):
        start = search([float(arb(x).mid()) for x in row], floats)
    if not all(map(math.isfinite, start)):
        return [arb("nan")] * n

    def values(point: Sequence[Any]) -> list[Any]:
        return [_number(v) for v in body(*map(Balls, point), *reads)]

    def jacobian(point: Sequence[Any]) -> arb_mat:
        columns = [[_number(d) for d in body.partial(i)(*map(Balls, point), *reads)] for i in range(n)]
        return arb_mat(n, n, [arb(columns[j][i]) for i in range(n) for j in range(n)])

    point, step = _improved([arb(x) for x in start], values, jacobian)
    proved = _proved(point, step, values, jacobian)
    return _fractions(proved, values) or proved


def _number(value: Any) -> Any:
    return value.numbers if type(value) is Balls else exact(value)


def _improved(
    point: list[arb], values: Callable[..., Any], jacobian: Callable[..., arb_mat]
) -> tuple[list[arb], list[arb]]:
    """The midpoint that Newton's method comes to from a point, and bounds of the last step."""
    n, step = len(point), [arb(0)] * len(point)
    size = math.inf
    for _ in range(_MOST_STEPS):
        limits.charge_steps()
        try:
            moved = _midpoints(jacobian(point)).solve(arb_mat(n, 1, [arb(v) for v in values(point)])).entries()
        except ZeroDivisionError:
            raise UndecidedError("it cannot be told whether a Jacobian is singular") from None
        step = [abs(m).upper() for m in moved]
        least = max(float((s / (abs(p) + arb(2) ** -precision())).mid()) for s, p in zip(step, point))
        if not least < size:
            break
        size, point = least, [(p - m).mid() for p, m in zip(point, moved)]
    return point, step


def _midpoints(matrix: arb_mat) -> arb_mat:
    return arb_mat(matrix.nrows(), matrix.ncols(), [x.mid() for x in matrix.entries()])


def _proved(
    point: list[arb], step: list[arb], values: Callable[..., Any], jacobian: Callable[..., arb_mat]
) -> list[arb]:
    """A box with exactly one root, around a point."""
    n, smallest = len(point), arb(2) ** -precision()
    radii = [_FIRST * s + smallest * (abs(p) + smallest) for s, p in zip(step, point)]
    try:
        inverse = _midpoints(_midpoints(jacobian(point)).inv())
    except ZeroDivisionError:
        raise UndecidedError("it cannot be told whether a Jacobian is singular") from None
    newton = inverse * arb_mat(n, 1, [arb(v) for v in values(point)])
    for _ in range(_MOST_BOXES):
        limits.charge_steps()
        box = [p + arb(0, r) for p, r in zip(point, radii)]
        slopes = _smooth(box, values, jacobian)
        rest = (identity_matrix(n) - inverse * slopes) * arb_mat(n, 1, [b - p for b, p in zip(box, point)])
        mapped = [p - m + r for p, m, r in zip(point, newton.entries(), rest.entries())]
        if all(b.contains_interior(m) for b, m in zip(box, mapped)):
            return mapped
        radii = [_WIDER * abs(m - p).upper() + r for m, p, r in zip(mapped, point, radii)]
        if not all(r.is_finite() for r in radii):
            break
    raise UndecidedError("no root is proved: the Jacobian may be singular, or the equations not smooth, there")


def _smooth(box: list[arb], values: Callable[..., Any], jacobian: Callable[..., arb_mat]) -> arb_mat:
    """The derivatives on a box. Raises UndecidedError where the function may jump or bend there."""
    doubts = Undecided()
    doubts.most = 0
    with interval_evaluation(doubts):
        values(box)
        found = jacobian(box)
    if doubts.jumped:
        raise UndecidedError("no root is proved: the equations jump or bend there")
    return found


def _fractions(found: Sequence[arb], values: Callable[..., Any]) -> list[fmpq] | None:
    """The root as simple fractions, if it is known to be that."""
    tried = []
    for x in found:
        simple = Fraction(float(x.mid())).limit_denominator(_LARGEST_DENOMINATOR)
        tried.append(fmpq(simple.numerator, simple.denominator))
    if not all(x.contains(arb(t)) for x, t in zip(found, tried)):
        return None
    return tried if all(v == 0 for v in values(tried)) else None
