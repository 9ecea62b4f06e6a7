"""The primitive of integrals, whose derivatives are integrals of the derivatives of their body (Leibniz' rule).

`integral(low, high, *reads, body=Body, points=…, rtol=…, atol=…)` is the integral of the first result of the body by its
bound variable from `low` to `high`; the operands are broadcast, and each element is an integral of its own.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import GOLDEN_RATIO, is_exact
from gradcli.errors import BackendError, DifferentiationError
from gradcli.functionals import shortfalls
from gradcli.functionals.body import Body, coefficient_operands, of_each
from gradcli.functionals.integrals import integration
from gradcli.functionals.integrals.integration import Integral
from gradcli.functionals.integrals.quadrature import Integrand, Tolerance
from gradcli.functionals.interval_bounds import Range, has_ranges, ranges
from gradcli.functionals.switches import IntegralPiece, moved_switches, places_of_rows
from gradcli.kinds.jets import Jet
from gradcli.primitives.bind import bind, constant
from gradcli.primitives.entries.arithmetic import add, negative
from gradcli.primitives.entries.comparisons import isfinite, where
from gradcli.primitives.families import elementwise
from gradcli.primitives.jet_rules import from_derivative, locally_constant
from gradcli.primitives.primitive import Primitive

# The cost of an integral, in array elements, beside that of the operations of its body.
_TIME = 400
# Error estimates are this much larger than errors where rounding limits them; less is not reported.
_SLACK = 10
# An integral is examined for rounding errors where that of the magnitude is larger by the first factor, or by the second
# one where warnings are not collected.
_CANCELLING, _CANCELLING_MUCH = 30.0, 1e6
# The distance by which nodes are moved for another rounding, in units in the last place.
_ROUNDED = 4
# The relative error up to which an integral that cancels is not computed otherwise, and that from which on it has few digits.
_ACCURATE, _FEWEST = 1e-11, 1e-10
# Multiples of an error by which two ways to compute an integral differ at most, and from which on it is distinct from 0.
_UNCERTAIN, _ZERO = 30.0, 8.0
# The part of the integral of the magnitude that is a small integral.
_SMALL = 1e-3
# Rounding errors of an integral, relative to that of the magnitude.
_ROUNDING = 4 * 2.0**-53
# What is far below them.
_BELOW_ROUNDING = 1e-20
# Relative distances from a switch at which an integrand that is singular there differs by these factors. A narrow pulse is
# as high at the first two.
_BESIDE, _GROWTHS = (1e-15, 1e-12, 1e-6), (1.05, 2.0)


def _computed(_xp: Any, *operands: Any, body: Body, points: Sequence[float], rtol: float, atol: float) -> Any:
    tolerance = Tolerance(rtol, atol)

    def computed(rows: Any) -> list[float]:
        found = _integrals(rows, body, points, tolerance)
        return [_checked(i, row, body, points, tolerance) for i, row in zip(found, rows)]

    return _of_each_integral(operands, body, points, computed)


def _checked(found: Integral, row: Any, body: Body, points: Sequence[float], tolerance: Tolerance) -> float:
    """The value of an integral, or that of a better way to compute it where it has few right digits; what falls short is
    reported."""
    if found.fault is not None:
        return shortfalls.undefined(found.fault, is_derivative=body.is_derivative)
    told, converged = shortfalls.is_collecting(), found.error
    if abs(found.value) * (_CANCELLING if told else _CANCELLING_MUCH) < found.size:
        found = _without_cancellation(found, row, body, points, tolerance)
    low, high = row[:2].tolist()
    # The mean of the integrand times the rounding of the limits, between which there may be few floats.
    width = abs(high - low)
    of_limits = 2.0**-52 * max(abs(low), abs(high)) * found.size / width if 0 < width < math.inf else 0.0
    # Rounding, which is not a failure to converge, matters where somebody is told.
    is_accurate = min(converged, found.error) <= _SLACK * tolerance.of(found.value, found.size) + of_limits
    is_rounding = found.error <= of_limits and not body.is_derivative
    if not is_accurate or (told and not is_rounding and _has_few_digits(found, row, body, tolerance)):
        shortfalls.report("integrate", found.error, is_derivative=body.is_derivative)
    return found.value


def _without_cancellation(
    found: Integral, row: Any, body: Body, points: Sequence[float], tolerance: Tolerance
) -> Integral:
    """An integral that is much smaller than that of the magnitude, with the error by rounding, or the same integral in
    coordinates in which it is not."""
    # Imported here as few integrals cancel.
    from gradcli.functionals.integrals.moving_coordinates import derivative_of, integral_in_moving_coordinates

    low, high, *reads = row.tolist()
    derivative, moved = derivative_of(body, reads), None
    if derivative is not None:
        negligible = _BELOW_ROUNDING * found.size + 0.1 * _ACCURATE * abs(found.value)
        with arrays.using_namespace(None), arrays.quiet():
            moved = integral_in_moving_coordinates(derivative, min(low, high), max(low, high), negligible)
        if moved is not None:
            value, error = math.copysign(1.0, high - low) * moved.value, moved.error + _ROUNDING * moved.size
            moved = Integral(value, error, found.size)
            if moved.error < found.error and _agree(moved, found):
                return moved
    (other,) = _integrals(row[None], body, points, tolerance, rounded_otherwise=True)
    apart = abs(other.value - found.value) if math.isfinite(other.value) else 0.0
    found = found._replace(error=found.error + apart + _ROUNDING * found.size)
    return found if moved is None or moved.error >= found.error or not _agree(moved, found) else moved


def _agree(one: Integral, other: Integral) -> bool:
    """Return whether two ways to compute an integral agree up to the error of the other one."""
    return abs(one.value - other.value) <= _UNCERTAIN * other.error + _ROUNDING * other.size


def _has_few_digits(found: Integral, row: Any, body: Body, tolerance: Tolerance) -> bool:
    """Return whether an integral has fewer digits than are asked for.

    One that is 0 up to its error has no digits to lose, unless it is a derivative whose error matters beside the integral
    that is differentiated. An error that does not matter at all beside that, or beside rounding, is none.
    """
    fewest = _FEWEST if body.is_derivative else _SLACK * _FEWEST
    if found.error <= max(fewest, _SLACK * tolerance.relative) * abs(found.value):
        return False
    from gradcli.functionals.integrals.moving_coordinates import derivative_of

    is_distinct = abs(found.value) > _ZERO * found.error
    low, high, *reads = row.tolist()
    derivative = derivative_of(body, reads)
    if derivative is None or not derivative.scale:
        return is_distinct and found.error > 2.0**-53 * found.size
    whole = arrays.numpy_namespace().array([[low, high, *derivative.reads[0]]])
    (integrated,) = _integrals(whole, derivative.body, (), tolerance)
    matters = (
        2.0**-53 * max(abs(integrated.value), _SMALL * integrated.size) if is_distinct else _FEWEST * integrated.size
    )
    return found.error * derivative.scale > matters


def _estimated(_xp: Any, *operands: Any, body: Body, points: Sequence[float], rtol: float, atol: float) -> Any:
    if is_exact():
        # The error is below the digits that are proved.
        return 0.0
    tolerance = Tolerance(rtol, atol)
    return _of_each_integral(
        operands, body, points, lambda rows: [i.error for i in _integrals(rows, body, points, tolerance)]
    )


def _of_each_integral(
    operands: Sequence[Any], body: Body, points: Sequence[float], results: Callable[[Any], list[float]]
) -> Any:
    """The `results` for rows of broadcast limits and reads, [rows, operands]."""
    if is_exact():
        # Imported here as few programs are computed in balls.
        from gradcli.functionals.integrals.ball_integrals import integral as proved
        from gradcli.functionals.integrals.ball_switches import proved_pieces

        low, high, *reads = operands
        parts = proved_pieces(body, low, high, reads) or [IntegralPiece(low, high, body)]
        return functools.reduce(add, [proved(p.low, p.high, reads, p.body, points) for p in parts])
    return of_each(operands, results)


def _integrals(
    rows: Any, body: Body, points: Sequence[float], tolerance: Tolerance, *, rounded_otherwise: bool = False
) -> list[Integral]:
    """The integrals for rows of limits and reads, [rows, operands]; if `rounded_otherwise`, places are moved by a few units
    in the last place, and with them all that is computed."""
    np = arrays.numpy_namespace()
    low, high, *reads = rows.T
    first, last = np.minimum(low, high), np.maximum(low, high)

    def function(t: Any, row: Any) -> Any:
        if rounded_otherwise:
            # Irregularly, as equal changes may cancel.
            changes = np.arange(1, len(t) + 1) * GOLDEN_RATIO % 1.0 - 0.5
            t = np.clip(t * (1.0 + _ROUNDED * 2.0**-52 * changes), first[row], last[row])
        (value,) = body(t, *(r[row] if len(low) > 1 else float(r[0]) for r in reads))
        return value if arrays.shape(value) else np.full(len(t), value)

    def bounds(first: Any, last: Any, row: Any) -> tuple[Any, Any]:
        inputs = [Range(first, last), *(Range(r[row], r[row]) for r in reads)]
        least, most = ranges(body.program, inputs)[0]
        return np.broadcast_to(least, row.shape), np.broadcast_to(most, row.shape)

    with arrays.using_namespace(None):
        switches = _without_singularities(np, function, *places_of_rows(body, low, high, reads))
        known = bounds if has_ranges(body.program) else None
        return integration.integrals(
            function, low, high, points, tolerance, known, switches, is_derivative=body.is_derivative
        )


def _without_singularities(np: Any, function: Integrand, row: Any, place: Any) -> tuple[Any, Any]:
    """The switches at which the integrand does not grow; singularities are located by their errors, to the last bit."""
    kept = np.ones(len(row), bool)
    with np.errstate(all="ignore"):
        for side in (-1.0, 1.0) if len(row) else ():
            near, *others = (np.abs(function(place + side * d * (1.0 + np.abs(place)), row)) for d in _BESIDE)
            grows = np.logical_and(*(near > growth * other for growth, other in zip(_GROWTHS, others)))
            kept &= np.isfinite(near) & ~grows
    return row[kept], place[kept]


def _pulled_back(i: int, g: Any, _y: Any, *operands: Any, body: Body, **params: Any) -> Any:
    low, high, *reads = operands
    if i == 0:
        return negative(_at_limit(g, low, reads, body))
    if i == 1:
        return _at_limit(g, high, reads, body)
    _require_fixed_switches(body, i - 1, 1, operands)
    return g * bind(integral, (low, high, *reads), {"body": body.partial(i - 1), **params})


def _require_fixed_switches(body: Body, number: int, order: int, operands: Sequence[Any]) -> None:
    """Raise DifferentiationError for an input of a body that moves a jump of the integrand, or, for orders from 2 on, a
    bend."""
    if number in moved_switches(body, jumps=order == 1, operands=operands):
        # As for any function without proved digits, a caller may fall back on floats.
        raise (BackendError if is_exact() else DifferentiationError)(
            "the derivative of this integral needs the places at which the integrand switches, which were not found",
            hint="split the integral there",
        )


def _at_limit(g: Any, limit: Any, reads: Sequence[Any], body: Body) -> Any:
    """`g` times the integrand at a limit, 0 at an infinite one."""
    finite = isfinite(constant(limit))
    (value,) = body(where(finite, limit, 1.0), *reads)
    return where(finite, g * value, 0.0)


def _coefficients(
    primitive: Primitive, y: Jet, low: Jet, high: Jet, *reads: Jet, body: Body, **params: Any
) -> Iterator[Any]:
    """The coefficients of order k of the integrand, integrated, where the limits are fixed."""
    if any(o.is_growing for o in (low, high, *reads)) or any(x.degree for x in (low, high)):
        yield from from_derivative(primitive, y, low, high, *reads, body=body, **params)
        return
    for order in itertools.count(1):
        for number, read in enumerate(reads, 1):
            if read.degree:
                _require_fixed_switches(body, number, order, (low, high, *reads))
        operands = low.inner, high.inner, *coefficient_operands(reads, order)
        yield bind(integral, operands, {"body": body.coefficient(order), **params})


def _asymptotic(primitive: Primitive, *operands: Any, **params: Any) -> Any:
    # Imported here as few programs have limits of integrals.
    from gradcli.functionals.integrals.asymptotic_integrals import integral_of_series

    return integral_of_series(primitive, *operands, **params)


integral = elementwise(
    "integral", "low, high, reads, body, points, rtol, atol", "the integral of a body between limits",
    internal="integrate",
    forward=_computed,
    vjp=_pulled_back,
    variadic=True,
    jet=_coefficients,
    asymptotic=_asymptotic,
    time=_TIME,
    fails=True,
    derivative="the integrand at the limits, and the integral of its derivatives",
)  # fmt: skip

integral_error = elementwise(
    "integral_error", "low, high, reads, body, points, rtol, atol", "the estimated error of such an integral",
    internal="quad",
    forward=_estimated,
    vjp=None,
    jet=locally_constant,
    time=_TIME,
    derivative="none",
)  # fmt: skip
