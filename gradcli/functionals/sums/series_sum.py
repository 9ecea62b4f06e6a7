"""The primitive of sums of series, whose derivatives are sums of the derivatives of their terms.

`series_sum(first, last, *reads, body=Body, rtol=…, atol=…)` sums the first result of the body for all whole numbers of its
bound variable from `first` to `last`, which may be infinite; the operands are broadcast.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.errors import EvaluationError
from gradcli.functionals import shortfalls
from gradcli.functionals.body import Body, coefficient_operands, of_each
from gradcli.functionals.interval_bounds import Range, has_ranges, ranges
from gradcli.functionals.sums.summation import SeriesTerms, SeriesTotal, check_limits, totals
from gradcli.functionals.switches import is_smooth
from gradcli.kinds.jets import Jet
from gradcli.primitives.bind import bind
from gradcli.primitives.families import elementwise
from gradcli.primitives.jet_rules import from_derivative
from gradcli.primitives.primitive import Primitive

# The cost of a sum, in array elements, beside that of the operations of its body.
_TIME = 400
# The relative error from which on a sum has few digits, and the multiple of its error from which on it is distinct from 0.
_FEWEST, _ZERO = 1e-10, 4.0
# The cost in steps of a term in balls.
_TERM = 4


def _computed(_xp: Any, *operands: Any, body: Body, rtol: float, atol: float) -> Any:
    if is_exact():
        return _proved(operands, body)
    with arrays.using_namespace(None):
        return of_each(operands, lambda rows: _of_rows(rows, body, rtol, atol))


def _proved(operands: Sequence[Any], body: Body) -> Any:
    """A sum in balls. Raises BackendError where the rest of an infinite one is not bounded."""
    first, last, *reads = operands
    low, high = (float(limit) for limit in (first, last))
    check_limits(low, high)
    if any(arrays.to_numpy(limit).dtype != "float64" for limit in (first, last)):
        raise EvaluationError("a sum goes from one whole number to another, which its limits are not known to be")
    if math.isinf(low) or math.isinf(high):
        return _infinite(low, high, reads, body)
    limits.require_steps(_TERM * (high - low))
    total: Any = arrays.default_namespace().asarray(0.0, "float64")
    for k in range(int(low), int(high) + 1):
        limits.charge_steps(_TERM * limits.UNITS_PER_STEP)
        total = total + body(float(k), *reads)[0]
    return total


def _infinite(low: float, high: float, reads: Sequence[Any], body: Body) -> Any:
    # Imported here as few programs are computed in balls.
    from gradcli.functionals.sums.ball_sums import infinite_sum

    if low > high or low == math.inf:
        return arrays.default_namespace().asarray(0.0, "float64")
    if math.isfinite(low):
        return infinite_sum(int(low), 1, reads, body)
    if math.isfinite(high):
        return infinite_sum(int(high), -1, reads, body)
    return infinite_sum(0, 1, reads, body) + infinite_sum(-1, -1, reads, body)


def _of_rows(rows: Any, body: Body, rtol: float, atol: float) -> list[float]:
    """The sums for rows of limits and reads, [rows, operands]."""
    np = arrays.numpy_namespace()
    first, last, *reads = rows.T

    def given(row: Any) -> list[Any]:
        return [r[row] if len(first) > 1 else float(r[0]) for r in reads]

    def terms(k: Any, row: Any) -> Any:
        return np.broadcast_to(body(k, *given(row))[0], k.shape)

    def expansion(k: Any, order: int, row: Any) -> Any:
        (found,) = body(Jet([k, np.ones_like(k)], order), *given(row))
        coefficients = map(found.coefficient, range(order + 1)) if isinstance(found, Jet) else [found]
        known = [np.broadcast_to(0.0 if c is None else c, k.shape) for c in coefficients]
        return np.stack(known + [np.zeros_like(k)] * (order + 1 - len(known)))

    def is_smooth_between(low: float, high: float, row: int) -> bool:
        return is_smooth(body, low, high, [float(r[row]) for r in reads])

    def bounds(low: Any, high: Any, row: Any) -> tuple[Any, Any]:
        least, most = ranges(body.program, [Range(low, high), *(Range(r, r) for r in given(row))])[0]
        return np.broadcast_to(least, low.shape), np.broadcast_to(most, low.shape)

    known = bounds if has_ranges(body.program) else None
    sums = totals(SeriesTerms(terms, expansion, is_smooth_between, known), first, last)
    return [_checked(found, body, rtol, atol) for found in sums]


def _checked(found: SeriesTotal, body: Body, rtol: float, atol: float) -> float:
    if found.fault is not None:
        return shortfalls.undefined(found.fault, is_derivative=body.is_derivative)
    size = abs(found.value)
    # A sum that is 0 up to its error has no digits to lose.
    is_small = found.error <= atol and (found.error <= _FEWEST * size or size <= _ZERO * found.error)
    if not (found.error <= rtol * size or is_small):
        shortfalls.report("nsum", found.error, is_derivative=body.is_derivative)
    return found.value


def _pulled_back(i: int, g: Any, _y: Any, *operands: Any, body: Body, **tolerances: float) -> Any:
    if i < 2:
        # A sum jumps where a limit passes a whole number, and is constant between.
        return 0.0 * g
    return g * bind(series_sum, operands, {"body": body.partial(i - 1), **tolerances})


def _coefficients(
    primitive: Primitive, y: Jet, first: Jet, last: Jet, *reads: Jet, body: Body, **tolerances: float
) -> Iterator[Any]:
    """The coefficients of the terms, summed."""
    if any(r.is_growing for r in reads):
        yield from from_derivative(primitive, y, first, last, *reads, body=body, **tolerances)
        return
    for order in itertools.count(1):
        operands = first.inner, last.inner, *coefficient_operands(reads, order)
        yield bind(series_sum, operands, {"body": body.coefficient(order), **tolerances})


series_sum = elementwise(
    "series_sum", "first, last, reads, body, rtol, atol", "the sum of a body over whole numbers",
    internal="nsum",
    forward=_computed,
    vjp=_pulled_back,
    variadic=True,
    jet=_coefficients,
    time=_TIME,
    fails=True,
    derivative="the sum of the derivatives of the terms",
)  # fmt: skip
