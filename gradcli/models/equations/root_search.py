"""Roots of systems of equations by damped Newton steps and by SciPy's hybrid and least-squares methods, from several
starts.

A damped step is accepted where the next Newton step with the same Jacobian would be smaller (natural monotonicity test:
P. Deuflhard, Newton Methods for Nonlinear Problems, 2004, section 3.3). This test does not depend on the scales of the
equations nor on linear combinations of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import LimitError
from gradcli.models import dense_matrices
from gradcli.models.equations.rounding_noise import exceeds_rounding
from gradcli.models.equations.sign_changes import (
    ScalarEquation,
    SearchScale,
    ZeroInterval,
    changes_sign,
    isolated_zeros,
    root_or_jump_between,
    zeros_around,
)
from gradcli.models.equations.systems import EquationSystem
from gradcli.models.results import Iteration, ProgressCallback
from gradcli.named_tuples import NamedTuple

_MOST_STEPS = 100
# The least damping factor, and the least one where longer steps lead to values that are not finite.
_SMALLEST_DAMPING, _LEAST_DAMPING = 1e-8, 1e-300
# A point is a root where the next Newton step is at most this share of the unknowns; it is then improved by at most
# `_MOST_POLISHING` full Newton steps.
_SMALL_STEP = 1e-9
_MOST_POLISHING = 6
# At most `_MOST_EXTRAPOLATIONS` extrapolations of geometrically decreasing Newton steps. Their ratio must be above
# `_SHRINKS`, and the second step may deviate from a multiple of the first by this share of its length.
_MOST_EXTRAPOLATIONS, _SHRINKS = 10, 0.3
# At a root with a singular Jacobian, residuals are at most `_TOUCHING` times the changes of the equations where the
# unknowns change by the share `_NEARBY` of their sizes.
_TOUCHING = 1e-13
_NEARBY = 0.1
# A Jacobian that seems singular by changes at this distance is judged once more at this share of it: tan(x) has poles on
# both sides of 5*pi at a tenth of it, beside which its slope seems to be 0.
_NEARER = 0.7
# A point is no root where changing the unknowns by a unit in the last place changes residuals by more than the share
# `_ROUNDING` of their changes nearby: only rounding errors are left of them.
_EPSILON, _ROUNDING = 2.0**-52, 0.1
# A sign change this near to a point with a singular Jacobian, as a share of the point or its start, is the same root.
_CLOSE = 1e-4
# The Jacobian, scaled by the changes of the equations nearby, counts as singular where its least singular value is
# smaller.
_SINGULAR = 1e-5
# The size of an unknown near 0 is multiplied by 10 at most `_GROWTHS` times, as long as the change of the equations is
# at most `_NONLINEARITY` times what the derivatives predict. The smallest size tried changes the equations by
# `_SINGULAR` of what the other unknowns change.
_GROWTHS, _NONLINEARITY = 5, 10.0
# Smaller residuals may be due to underflow.
_NOTHING = 1e-290
# Upper bound of the unknowns along which other zeros are looked for beside a root.
_MOST_DIRECTIONS = 10
# The distances along a line at which a value that is not 0 is looked for, in sizes of the unknowns.
_DISTANCES = (1e-6, 1e-3, 0.1, 1.0, 1e3, 1e6, 1e12)
# The least size of an unknown, as a share of its start, or, where that is 0, of the largest number of the start and the
# point.
_FLOOR = 1e-6
# The number of further starts, which are tried where the given one leads to no root.
_STARTS = 16


class Candidate(NamedTuple):
    """A point at which a search ended, and its classification.

    `residual` is the largest of the `residuals`. `is_singular` says whether the Jacobian is singular there.
    `is_rounded` says that the residuals are 0 by rounding only, so that the point is no root; `is_isolated` is False
    where other roots adjoin it along the null direction of the Jacobian. `limit` is the message of the limit that ended
    the search for a better point.
    """

    point: Any
    residuals: Any
    residual: float
    is_root: bool
    is_singular: bool = False
    is_rounded: bool = False
    is_isolated: bool = True
    limit: str | None = None


class _ScaledJacobian(NamedTuple):
    """The `sizes` of the unknowns, the `derivatives` times these, the `changes` of the equations nearby, and the
    `quotient` of derivatives and changes."""

    sizes: Any
    derivatives: Any
    changes: Any
    quotient: Any
    is_singular: bool


def search(system: EquationSystem, start: Any, seed: int, watch: ProgressCallback = lambda _: None) -> Candidate:
    """A root found from a start, or from others around it; else the point with the least residual."""
    best: Candidate | None = None
    with arrays.quiet():
        try:
            for found in _candidates(system, start, seed, watch):
                if found.is_root:
                    return found
                if best is None or found.residual < best.residual or best.residual != best.residual:
                    best = found
        except LimitError as error:
            if best is None:
                raise
            return best._replace(limit=error.message)
    assert best is not None
    return best


def _candidates(system: EquationSystem, start: Any, seed: int, watch: ProgressCallback) -> Iterator[Candidate]:
    """The candidate of each method from each start."""
    for point in _starts(start, seed):
        for method in _METHODS:
            found = _found(system, _polished(system, method(system, point, watch), start), start)
            yield _sharpened(system, found, start) if found.is_root and found.is_singular else found
        if point is start:
            yield from _candidates_by_sign_changes(system, start)


def _candidates_by_sign_changes(system: EquationSystem, start: Any) -> Iterator[Candidate]:
    """The candidates for one equation in one unknown from sign changes and zeros anywhere among the floats."""
    if system.is_of_one_number:
        for zero in far_zeros(ScalarEquation(system), float(start[0])):
            point = arrays.numpy_namespace().asarray([zero.point])
            found = _without_rounded(system, classified(system, point, point, zero.changes_sign), start)
            if found.is_root and (zero.changes_sign or not found.is_singular):
                yield found


def _found(system: EquationSystem, point: Any, start: Any) -> Candidate:
    """The candidate at the point where a search ended, or at the extrapolated limit of its steps, where that is a root
    and the first is none, or has no smaller residual."""
    found = _without_rounded(system, classified(system, point, start), start)
    if found.is_root and not found.is_singular:
        return found
    further = _extrapolated(system, point)
    if further is None:
        return found
    beyond = _without_rounded(system, classified(system, further, start), start)
    return beyond if beyond.is_root and not (found.is_root and found.residual < beyond.residual) else found


def _without_rounded(system: EquationSystem, found: Candidate, start: Any) -> Candidate:
    """The candidate, classified as no root where values around it are only rounding errors."""
    if not found.is_root or exceeds_rounding(system, found.point, start):
        return found
    return found._replace(is_root=False, is_rounded=True)


def _sharpened(system: EquationSystem, found: Candidate, start: Any) -> Candidate:
    """The candidate at the sign change next to a singular root, where there is one: it has more digits, and may be
    regular."""
    if not system.is_of_one_number:
        return found
    near = _CLOSE * float(max(abs(found.point[0]), abs(start[0])))
    zero = next(far_zeros(ScalarEquation(system), float(found.point[0])), None)
    if zero is None or abs(zero.point - found.point[0]) > near:
        return found
    point = arrays.numpy_namespace().asarray([zero.point])
    beside = classified(system, point, point if zero.changes_sign else start, zero.changes_sign)
    return beside if beside.is_root else found


def classified(system: EquationSystem, point: Any, start: Any, changes_sign: bool = False) -> Candidate:
    """The candidate at a point. Where signs are known to change there, small residuals nearby do not speak against a
    root."""
    xp = arrays.numpy_namespace()
    residuals = system.residual(point)
    residual = float(xp.max(xp.abs(residuals)))
    if not xp.all(xp.isfinite(point)):
        return Candidate(point, residuals, math.inf, False, is_singular=True)
    sizes = sizes_of(point, start)
    jacobian = system.scaled_jacobian(point, sizes)
    if not xp.isfinite(residual) or not xp.all(xp.isfinite(jacobian)):
        is_zero = residual == 0.0
        zeros = _zeros_between(system, start, point) if is_zero else None
        is_rounded = zeros is not None and zeros.rounded
        return Candidate(point, residuals, residual, is_zero and not is_rounded, True, is_rounded)
    sizes, jacobian, changes, scaled, singular = _judged_jacobian(system, point, sizes, jacobian, residuals)
    own = _by_own_sizes(system, point, sizes) if singular else None
    touches = bool(xp.all(xp.abs(residuals) <= _TOUCHING * changes))
    if touches and residual < _NOTHING and not changes_sign:
        reach = xp.maximum(xp.abs(point), xp.abs(start))
        is_open = singular and bool(xp.all(xp.isfinite(scaled)))
        directions = [_null_direction(scaled)] if is_open else xp.eye(len(point))[:_MOST_DIRECTIONS]
        lines = [_zeros_along(system, point, each * xp.where(reach > 0.0, reach, 1.0)) for each in directions]
        # The way from the start is tested too, since a root may be many powers of 2 away from it.
        from_start = _zeros_between(system, start, point)
        if any(zeros is not None and zeros.rounded for zeros in [from_start, *lines]):
            return Candidate(point, residuals, residual, False, singular, is_rounded=True)
        if singular and own is None:
            isolated = lines[0] is not None and lines[0].is_point
            return Candidate(point, residuals, residual, True, True, is_isolated=isolated)
    if own is not None:
        return own
    if singular:
        return Candidate(point, residuals, residual, touches and _is_near(system, point, sizes, residuals), True)
    if xp.any(xp.abs(jacobian) @ xp.abs(point / sizes) * _EPSILON > _ROUNDING * changes):
        # Only rounding errors are left of the residuals.
        return Candidate(point, residuals, residual, False)
    step = _solved(jacobian, -residuals)
    # At a root at 0, rounding errors are not small relative to the root.
    is_rounding = touches and _norm(step) <= _SMALL_STEP
    return Candidate(point, residuals, residual, is_rounding or _is_small(step * sizes, point))


def _judged_jacobian(system: EquationSystem, point: Any, sizes: Any, jacobian: Any, residuals: Any) -> _ScaledJacobian:
    """The Jacobian scaled by the given sizes, or by `balanced_sizes` where only these make it regular."""
    found = _scaled(system, point, sizes, jacobian, residuals)
    if found.is_singular:
        nearer = _scaled(system, point, sizes, jacobian, residuals, _NEARER)
        if not nearer.is_singular:
            return nearer
        balanced = balanced_sizes(system, point, sizes, jacobian)
        other = _scaled(system, point, balanced, jacobian * (balanced / sizes), residuals)
        return found if other.is_singular else other
    return found


def _scaled(
    system: EquationSystem, point: Any, sizes: Any, jacobian: Any, residuals: Any, share: float = 1.0
) -> _ScaledJacobian:
    """The Jacobian scaled by the changes of the equations where the unknowns change by a share of their sizes."""
    xp = arrays.numpy_namespace()
    changes = _changes(system, point, share * sizes, residuals)
    scaled = jacobian / changes[:, None]
    # Matrices with infinite elements have no singular values.
    singular = not xp.all(xp.isfinite(scaled)) or bool(dense_matrices.singular_values(scaled)[-1] < _SINGULAR)
    return _ScaledJacobian(sizes, jacobian, changes, scaled, singular)


def balanced_sizes(system: EquationSystem, point: Any, sizes: Any, jacobian: Any) -> Any:
    """The sizes of the unknowns, with those of unknowns at or near 0 replaced by sizes that change the equations as
    much as the other unknowns do. Such an unknown has no scale of its own, and the scales of its start and of other
    unknowns may be in other units. `jacobian` is scaled by the given sizes."""
    xp = arrays.numpy_namespace()
    small = xp.abs(point) < sizes
    if not small.any():
        return sizes
    balanced, changes = xp.array(sizes), xp.zeros(len(jacobian))
    for unknown in [*xp.flatnonzero(~small), *xp.flatnonzero(small)]:
        if small[unknown]:
            factor = _balance(system, point, unknown, sizes[unknown], jacobian[:, unknown], changes)
            balanced[unknown] = factor * sizes[unknown]
        changes = xp.maximum(changes, _changes_by(system, point, unknown, balanced[unknown]))
    return balanced


def _balance(system: EquationSystem, point: Any, unknown: int, size: float, derivatives: Any, changes: Any) -> float:
    """The factor for the size of an unknown that makes it change the equation with its largest share as much as the
    other unknowns do, as long as the change stays near the linear prediction; 1 where no equation depends on the
    unknown. An unknown that is at a multiple root changes the equations by far more than predicted, unless its size is
    negligible."""
    xp = arrays.numpy_namespace()
    linear = _NEARBY * xp.abs(derivatives)
    shares = xp.where(changes > 0.0, linear / xp.where(changes > 0.0, changes, 1.0), 0.0)
    equation = int(xp.argmax(shares))
    if not 0.0 < shares[equation] < math.inf:
        return 1.0
    factor = _SINGULAR / float(shares[equation])
    for _ in range(_GROWTHS):
        change = _changes_by(system, point, unknown, 10.0 * factor * size)[equation]
        if not 0.0 < change <= _NONLINEARITY * 10.0 * factor * linear[equation]:
            break
        factor *= 10.0
    return factor


def _by_own_sizes(system: EquationSystem, point: Any, sizes: Any) -> Candidate | None:
    """The regular root at a point where unknowns that are far smaller than at the start are scaled by their own sizes;
    None where the point is then no root or a singular one."""
    xp = arrays.numpy_namespace()
    if not (xp.abs(point) < sizes).any() or not point.all():
        return None
    found = classified(system, point, point)
    return found if found.is_root and not found.is_singular else None


def _is_near(system: EquationSystem, point: Any, sizes: Any, residuals: Any) -> bool:
    """Return whether a point with a singular Jacobian is next to a root: its residuals are small relative to what the
    unknowns by their own sizes change, or become smaller where small unknowns are halved."""
    xp = arrays.numpy_namespace()
    size, small = xp.abs(residuals), xp.abs(point) < sizes
    own = xp.where(point != 0.0, xp.abs(point), sizes)
    if not small.any() or xp.all(size <= _TOUCHING * _changes(system, point, own, residuals)):
        return True
    return bool(xp.all(xp.abs(system.residual(xp.where(small, point / 2.0, point))) <= 0.75 * size))


def _null_direction(scaled: Any) -> Any:
    """The right singular vector of the least singular value: the null direction of a singular Jacobian."""
    return dense_matrices.right_singular_vectors(scaled)[1][-1]


def _zeros_along(system: EquationSystem, point: Any, direction: Any) -> ZeroInterval | None:
    """The interval of steps along a direction from a root in which all residuals are 0 in floats; None where they are 0
    at all distances."""
    xp = arrays.numpy_namespace()

    def value(step: float) -> float:
        largest = float(xp.max(xp.abs(system.residual(point + step * direction))))
        return 0.0 if largest < _NOTHING else largest

    ends = [v for v in (value(-1.0), value(1.0)) if math.isfinite(v)]
    low, high = (next((s * d for d in _DISTANCES if math.isfinite(v := value(s * d)) and v), None) for s in (-1.0, 1.0))
    if low is None and high is None:
        return None
    return zeros_around(value, 0.0, 0.0, low, high, SearchScale(1.0, max(ends, default=0.0)))


def _zeros_between(system: EquationSystem, start: Any, point: Any) -> ZeroInterval | None:
    """The interval of shares of the way from a start to a root in which all residuals are 0; None where they are 0 or
    not finite at the start."""
    xp = arrays.numpy_namespace()

    def value(share: float) -> float:
        return float(xp.max(xp.abs(system.residual(start + share * (point - start)))))

    at_start = value(0.0)
    if not 0.0 < at_start < math.inf or value(1.0):
        return None
    return zeros_around(value, 1.0, 1.0, _LEAST_DAMPING, None, SearchScale(1.0, at_start))


def _changes(system: EquationSystem, point: Any, sizes: Any, residuals: Any) -> Any:
    """The change of each equation at points nearby, and at least its residual; 1 where that is 0."""
    xp = arrays.numpy_namespace()
    largest = xp.abs(residuals)
    for unknown in range(len(point)):
        largest = xp.maximum(largest, _changes_by(system, point, unknown, sizes[unknown]))
    # Products of unknowns that are all 0 change only where several unknowns change at once.
    largest = xp.maximum(largest, _changes_along(system, point, sizes / len(point)))
    return xp.where(largest > 0.0, largest, 1.0)


def _changes_by(system: EquationSystem, point: Any, unknown: int, size: float) -> Any:
    """The change of each equation where one unknown changes by the share `_NEARBY` of its size."""
    xp = arrays.numpy_namespace()
    return _changes_along(system, point, size * (xp.arange(len(point)) == unknown))


def _changes_along(system: EquationSystem, point: Any, sizes: Any) -> Any:
    """The change of each equation by the share `_NEARBY` of a step: the smaller change of both directions, since the
    larger one of an exponential says little about the other side."""
    xp = arrays.numpy_namespace()
    sides = [xp.abs(system.residual(point + sign * _NEARBY * sizes)) for sign in (-1.0, 1.0)]
    sides = [xp.where(xp.isfinite(side), side, 0.0) for side in sides]
    both = (sides[0] > 0.0) & (sides[1] > 0.0)
    return xp.where(both, xp.minimum(*sides), xp.maximum(*sides))


def sizes_of(point: Any, start: Any) -> Any:
    """The scales of the unknowns, which may be in different units: their absolute values, and at least `_FLOOR` times
    those at the start."""
    xp = arrays.numpy_namespace()
    begun = xp.where(
        start != 0.0, xp.abs(start), max(float(xp.max(xp.abs(start))), float(xp.max(xp.abs(point))), 1e-290)
    )
    return xp.maximum(xp.abs(point), _FLOOR * begun)


def _is_small(step: Any, point: Any) -> bool:
    """Return whether a step is small relative to each unknown."""
    xp = arrays.numpy_namespace()
    return bool(xp.all(xp.abs(step) <= _SMALL_STEP * xp.abs(point)))


def _starts(start: Any, seed: int) -> Iterator[Any]:
    """The given start, and random ones around it, nearer ones first."""
    yield start
    xp = arrays.numpy_namespace()
    generator = xp.random.default_rng(seed)
    sizes = xp.maximum(xp.abs(start), 0.1 * max(float(xp.max(xp.abs(start))), 1.0))
    for spread in xp.geomspace(0.1, 100.0, _STARTS):
        yield start + spread * sizes * generator.uniform(-1.0, 1.0, len(start))


def _by_newton(system: EquationSystem, start: Any, watch: ProgressCallback) -> Any:
    xp = arrays.numpy_namespace()
    point, residuals = start, system.residual(start)
    for number in range(_MOST_STEPS):
        jacobian = system.jacobian(point)
        if not xp.all(xp.isfinite(residuals)) or not xp.all(xp.isfinite(jacobian)):
            return point
        watch(Iteration(number, float(xp.max(xp.abs(residuals)))))
        step = _solved(jacobian, -residuals)
        sizes = sizes_of(point, start)
        size = _norm(step / sizes)
        damping = 1.0
        while True:
            tried = point + damping * step
            found = system.residual(tried)
            if xp.all(xp.isfinite(found)) and _norm(_solved(jacobian, found) / sizes) <= (1.0 - damping / 4.0) * size:
                break
            damping /= 2.0
            # A step that is too long may lead to values that are not finite, and may be shortened further.
            if damping < (_SMALLEST_DAMPING if xp.all(xp.isfinite(found)) else _LEAST_DAMPING):
                return point
        point, residuals = tried, found
        if _is_small(step, point) or not xp.any(residuals):
            return point
    return point


def _by_hybrid(system: EquationSystem, start: Any, _: ProgressCallback) -> Any:
    return _by_scipy(system, start, "hybr")


def _by_least_squares(system: EquationSystem, start: Any, _: ProgressCallback) -> Any:
    return _by_scipy(system, start, "lm")


def _by_scipy(system: EquationSystem, start: Any, method: str) -> Any:
    from scipy.optimize import root

    xp = arrays.numpy_namespace()
    if not xp.all(xp.isfinite(system.residual(start))):
        return start
    try:
        found = root(system.residual, start, jac=system.jacobian, method=method).x
    except (ValueError, ArithmeticError, xp.linalg.LinAlgError):
        # The method met nan.
        return start
    return found if xp.all(xp.isfinite(found)) else start


_METHODS: Sequence[Callable[[EquationSystem, Any, ProgressCallback], Any]] = (_by_newton, _by_hybrid, _by_least_squares)


def _polished(system: EquationSystem, point: Any, start: Any) -> Any:
    """The point after full Newton steps, as long as these become smaller."""
    xp = arrays.numpy_namespace()
    smallest = xp.inf
    for _ in range(_MOST_POLISHING):
        jacobian, residuals = system.jacobian(point), system.residual(point)
        if not xp.all(xp.isfinite(jacobian)) or not xp.all(xp.isfinite(residuals)) or not xp.any(residuals):
            break
        try:
            step = dense_matrices.solve(jacobian, -residuals)
        except xp.linalg.LinAlgError:
            break
        size = _norm(step / sizes_of(point, start))
        if not size < smallest / 2.0 or size > _FLOOR:
            break
        tried = point + step
        found = system.residual(tried)
        if not xp.all(xp.isfinite(found)):
            break
        point, smallest = tried, size
    return point


def _extrapolated(system: EquationSystem, point: Any) -> Any:
    """The limit of Newton steps that shrink geometrically, as steps to a root of multiplicity m do by the ratio 1 - 1/m
    (E. Schröder, Math. Ann. 2 (1870) 317); None where they do not."""
    xp = arrays.numpy_namespace()
    best, least = None, math.inf
    for _ in range(_MOST_EXTRAPOLATIONS):
        steps, at = [], point
        for _ in range(2):
            jacobian, residuals = system.jacobian(at), system.residual(at)
            if not (xp.all(xp.isfinite(jacobian)) and xp.all(xp.isfinite(residuals)) and xp.any(residuals)):
                return best
            steps.append(_solved(jacobian, -residuals))
            at = at + steps[-1]
        first, second = steps
        square = float(first @ first)
        ratio = float(first @ second) / square if square > 0.0 else 0.0
        if not _SHRINKS < ratio < 1.0 or _norm(second - ratio * first) > _SHRINKS * _norm(second):
            return best
        point = point + first / (1.0 - ratio)
        size = float(xp.max(xp.abs(system.residual(point))))
        if not size < least:
            return best
        best, least = point, size
    return best


def _solved(jacobian: Any, right: Any) -> Any:
    """The solution of a linear system, or the least-squares solution of minimum norm where the matrix is singular."""
    xp = arrays.numpy_namespace()
    try:
        found = dense_matrices.solve(jacobian, right)
        if xp.all(xp.isfinite(found)):
            return found
    except xp.linalg.LinAlgError:
        pass
    try:
        return dense_matrices.least_squares(jacobian, right)
    except xp.linalg.LinAlgError:
        # The numbers are too large for the method.
        return xp.zeros(len(right))


def _norm(vector: Any) -> float:
    xp = arrays.numpy_namespace()
    return float(xp.max(xp.abs(vector)))


# --- sign changes and zeros anywhere among the floats

# The least and the greatest exponent of the powers of 2 that are floats.
_LEAST, _MOST = -1074, 1023


class FarZero(NamedTuple):
    """A point that may be a root, and whether the sign changes there."""

    point: float
    changes_sign: bool


def far_zeros(curve: ScalarEquation, start: float) -> Iterator[FarZero]:
    """The points that may be roots, those with the fewest powers of 2 between them and a start first: isolated zeros,
    and sign changes between neighbouring powers of 2 that are not at a pole."""
    xp = arrays.numpy_namespace()
    powers = 2.0 ** xp.arange(_LEAST, _MOST + 1)
    points = xp.unique(xp.concatenate([-powers, powers, [0.0, start]]))
    values = curve.sampled(points)[0]
    place = int(xp.searchsorted(points, start))
    zeros = isolated_zeros(values)
    changes = xp.flatnonzero(changes_sign(values))
    found = [(abs(int(n) - place), int(n), True) for n in zeros] + [
        # The distance of a sign change is that of its end nearer to the start.
        (abs(int(n) + (n < place) - place), int(n), False)
        for n in changes
    ]
    for _, n, is_zero in sorted(found):
        if is_zero:
            yield FarZero(float(points[n]), False)
            continue
        crossing = root_or_jump_between(
            curve, float(points[n]), float(points[n + 1]), float(values[n]), float(values[n + 1])
        )
        if crossing.kind == "root":
            yield FarZero(crossing.point, True)
