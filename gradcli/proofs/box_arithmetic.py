"""Interval arithmetic in NumPy: the primitives of a recorded program over many boxes at once.

Ends are floats and are rounded outward. Sums, products, quotients and square roots of floats are correctly rounded, so
that the next float suffices. NumPy's elementary functions are taken to be right to `_ACCURACY`, which is about a hundred
times the error that NumPy documents. Functions that are not here are computed in ball arithmetic, box by box.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gradcli.arrays.dtypes import is_complex
from gradcli.arrays.flint import intervals
from gradcli.arrays.flint.balls import (
    Balls,
    Number,
    Undecided,
    UndecidedError,
    interval_evaluation,
    real_number_needed,
)
from gradcli.errors import EvaluationError
from gradcli.kinds.batch import Batched
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind, concrete
from gradcli.primitives.primitive import Primitive
from gradcli.proofs.digits import is_complex_number

# The relative error of NumPy's elementary functions; its documentation has at most 4 units in the last place, 2**-50.
_ACCURACY = 2.0**-44
_TINY = 5e-324
# Beyond this magnitude the arguments of sine and cosine are not reduced: their values are those from -1 to 1.
_LARGEST_ANGLE = 1e6
_INFINITY = math.inf


class BoxInterval(NamedTuple):
    """The numbers from `low` to `high`, arrays `[boxes, …]`; an end is nan where the program has no value in the box.

    `rough` is where the number may be undefined or discontinuous somewhere in the box; None stands for nowhere.
    """

    low: Any
    high: Any
    rough: Any = None

    def is_rough(self) -> Any:
        return np.zeros(self.low.shape, bool) if self.rough is None else self.rough


class Truth(NamedTuple):
    """Truth values, arrays `[boxes, …]`: whether they hold in the whole box, and whether they may hold in it."""

    sure: Any
    possible: Any


class UnsupportedError(EvaluationError):
    """There is no interval arithmetic for a primitive."""


def interval_of(value: Any) -> BoxInterval | Truth:
    """A constant of a program as an interval, with a leading axis of length 1.

    Raises EvaluationError for a complex one.
    """
    if isinstance(value, complex) or (isinstance(value, Balls) and is_complex(value)):
        raise real_number_needed()
    if isinstance(value, Balls):
        numbers = np.asarray(value.numbers, object)
        ends = [_float_ends(number) for number in numbers.ravel()]
        low, high = np.array(ends, float).reshape(-1, 2).T
        return BoxInterval(low.reshape(1, *numbers.shape), high.reshape(1, *numbers.shape))
    array = np.asarray(concrete(value))[None]
    if array.dtype == bool:
        return Truth(array, array)
    return BoxInterval(array.astype(float), array.astype(float))


def _float_ends(number: Number) -> tuple[float, float]:
    low, high = (
        float(end) if not hasattr(end, "p") else _nearest(end, upward=up)
        for end, up in zip(intervals.bounds(number), (False, True))
    )
    return low, high


def _nearest(number: Number, *, upward: bool) -> float:
    """The float next to a fraction, on the side requested."""
    numerator, denominator = int(number.p), int(number.q)
    try:
        found = numerator / denominator
    except OverflowError:
        found = math.copysign(_INFINITY, numerator)
    if math.isinf(found):
        return found if (found > 0) is upward else math.copysign(np.finfo(float).max, found)
    top, bottom = found.as_integer_ratio()
    order = top * denominator - numerator * bottom
    if order == 0 or (order > 0) is upward:
        return found
    return math.nextafter(found, _INFINITY if upward else -_INFINITY)


def down(x: Any) -> Any:
    """The next floats below."""
    return np.nextafter(x, -_INFINITY)


def up(x: Any) -> Any:
    """The next floats above."""
    return np.nextafter(x, _INFINITY)


def apply(
    primitive: Primitive, operands: Sequence[BoxInterval | Truth], params: Mapping[str, Any]
) -> BoxInterval | Truth:
    """The result of a primitive over boxes. Raises UnsupportedError where there is none."""
    name = primitive.name
    if primitive.elementwise:
        operands = _aligned(operands)
        if name in _ELEMENTWISE:
            found: BoxInterval | Truth = _ELEMENTWISE[name](*operands, **params)
            return found
        return _in_balls(primitive, operands, params)
    if primitive.moves:
        moved: BoxInterval | Truth = _moved(primitive, operands, params)
        return moved
    if name == "put_at":
        # Where a place occurs twice, its elements are added.
        low, high, rough = _moved(primitive, operands, params)
        return BoxInterval(_widened(low, -1.0), _widened(high, 1.0), rough)
    if name in _STRUCTURED:
        made: BoxInterval | Truth = _STRUCTURED[name](*operands, **params)
        return made
    raise UnsupportedError(
        f"bounds of '{name}' over many boxes are not known", hint="write it in sums, products and functions of numbers"
    )


def _aligned(operands: Sequence[BoxInterval | Truth]) -> Sequence[BoxInterval | Truth]:
    """The operands with as many axes: shapes are aligned at their ends, and the axis of the boxes comes first."""
    rank = max(parts[0].ndim for parts in operands)
    return [
        type(parts)(
            *(None if p is None else p.reshape(p.shape[:1] + (1,) * (rank - p.ndim) + p.shape[1:]) for p in parts)
        )
        for parts in operands
    ]


def _joined_rough(*parts: BoxInterval) -> Any:
    known = [part.rough for part in parts if part.rough is not None]
    if not known:
        return None
    found = known[0]
    for more in known[1:]:
        found = found | more
    return found


def _or(rough: Any, more: Any) -> Any:
    if not more.any():
        return rough
    return more if rough is None else rough | more


# --- arithmetic


def add(a: BoxInterval, b: BoxInterval) -> BoxInterval:
    low, high = a.low + b.low, a.high + b.high
    # A sum of floats that is 0 is exact.
    low, high = np.where(low == 0, 0.0, down(low)), np.where(high == 0, 0.0, up(high))
    low = np.where((a.low >= 0) & (b.low >= 0), np.maximum(low, 0.0), low)
    high = np.where((a.high <= 0) & (b.high <= 0), np.minimum(high, 0.0), high)
    return BoxInterval(low, high, _joined_rough(a, b))


def negative(a: BoxInterval) -> BoxInterval:
    return BoxInterval(-a.high, -a.low, a.rough)


def subtract(a: BoxInterval, b: BoxInterval) -> BoxInterval:
    return add(a, negative(b))


def multiply(a: BoxInterval, b: BoxInterval) -> BoxInterval:
    rough = _joined_rough(a, b)
    for one, other in ((a, b), (b, a)):
        if one.low.size == 1 and one.low.flat[0] == one.high.flat[0] and abs(one.low.flat[0]) == 1.0:
            # The shape is that of both, though the product changes nothing or the sign.
            zero = np.zeros(np.broadcast_shapes(one.low.shape, other.low.shape))
            same = other if one.low.flat[0] > 0 else negative(other)
            return BoxInterval(same.low + zero, same.high + zero, rough)
    least, most = _extremes(np.multiply, a, b)
    if np.isnan(least).any():
        least, most = _extremes(_product, a, b)
    alike = ((a.low >= 0) & (b.low >= 0)) | ((a.high <= 0) & (b.high <= 0))
    opposite = ((a.low >= 0) & (b.high <= 0)) | ((a.high <= 0) & (b.low >= 0))
    return _with_signs(least, most, alike, opposite, rough)


def _extremes(function: Callable[[Any, Any], Any], a: BoxInterval, b: BoxInterval) -> tuple[Any, Any]:
    """The least and the largest result for the ends of both intervals, nan where one of them is."""
    corners = [function(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    least = np.minimum(np.minimum(corners[0], corners[1]), np.minimum(corners[2], corners[3]))
    return least, np.maximum(np.maximum(corners[0], corners[1]), np.maximum(corners[2], corners[3]))


def _with_signs(least: Any, most: Any, alike: Any, opposite: Any, rough: Any) -> BoxInterval:
    """The interval rounded outward, but not beyond 0 where the signs of both operands are known to be `alike` or
    `opposite`."""
    low, high = down(least), up(most)
    low = np.where(alike, np.maximum(low, 0.0), low)
    high = np.where(opposite, np.minimum(high, 0.0), high)
    return BoxInterval(low, high, rough)


def _product(x: Any, y: Any) -> Any:
    """The product of ends, in which 0 times an infinity is 0."""
    found = x * y
    return np.where(np.isnan(found) & ~np.isnan(x) & ~np.isnan(y), 0.0, found)


def divide(a: BoxInterval, b: BoxInterval) -> BoxInterval:
    regular = (b.low > 0) | (b.high < 0)
    rough = _or(_joined_rough(a, b), ~regular)
    if regular.all():
        least, most = _extremes(np.divide, a, b)
        if not np.isnan(least).any():
            alike = ((a.low >= 0) & (b.low > 0)) | ((a.high <= 0) & (b.high < 0))
            opposite = ((a.low >= 0) & (b.high < 0)) | ((a.high <= 0) & (b.low > 0))
            return _with_signs(least, most, alike, opposite, rough)
    return multiply(a, reciprocal(b))._replace(rough=rough)


def reciprocal(b: BoxInterval) -> BoxInterval:
    positive, opposite = b.low >= 0, b.high <= 0
    low = np.where(positive | (b.high < 0), down(1.0 / b.high), -_INFINITY)
    high = np.where(opposite | (b.low > 0), up(1.0 / b.low), _INFINITY)
    low = np.where((b.high == 0) & (b.low < 0), -_INFINITY, np.where(positive, np.maximum(low, 0.0), low))
    high = np.where((b.low == 0) & (b.high > 0), _INFINITY, np.where(opposite, np.minimum(high, 0.0), high))
    nowhere = ((b.low == 0) & (b.high == 0)) | np.isnan(b.low)
    return BoxInterval(np.where(nowhere, np.nan, low), np.where(nowhere, np.nan, high))


def absolute(a: BoxInterval) -> BoxInterval:
    low = np.where(a.low > 0, a.low, np.where(a.high < 0, -a.high, 0.0))
    low = np.where(np.isnan(a.low), np.nan, low)
    return BoxInterval(low, np.maximum(abs(a.low), abs(a.high)), a.rough)


def whole_power(a: BoxInterval, *, n: float) -> BoxInterval:
    if n < 0:
        return divide(BoxInterval(np.ones_like(a.low), np.ones_like(a.low)), whole_power(a, n=-n))
    if n == 0:
        one = np.where(np.isnan(a.low), np.nan, 1.0)
        return BoxInterval(one, one, a.rough)
    if n == 1:
        return a
    base = absolute(a) if n % 2 == 0 else a
    if n == 2:
        low, high = down(base.low * base.low), up(base.high * base.high)
    else:
        low, high = (_widened(end**n, sign) for end, sign in ((base.low, -1.0), (base.high, 1.0)))
    if n % 2 == 0:
        low = np.maximum(low, 0.0)
    else:
        low = np.where(base.low >= 0, np.maximum(low, 0.0), low)
        high = np.where(base.high <= 0, np.minimum(high, 0.0), high)
    return BoxInterval(low, high, a.rough)


def _widened(found: Any, sign: float) -> Any:
    """An end moved outward by the error of a function of NumPy."""
    moved = found + sign * (abs(found) * _ACCURACY + _TINY)
    # inf - inf is nan. The lower end of what overflows is the largest float.
    return np.where(np.isinf(found), np.nextafter(found, sign * _INFINITY), moved)


def power(a: BoxInterval, b: BoxInterval) -> BoxInterval:
    if b.low.size == 1 and b.low.flat[0] == b.high.flat[0] and float(b.low.flat[0]).is_integer():
        zero = np.zeros(np.broadcast_shapes(a.low.shape, b.low.shape))
        found = whole_power(BoxInterval(a.low + zero, a.high + zero, a.rough), n=float(b.low.flat[0]))
        return found._replace(rough=_joined_rough(found, b))
    found = _power_of_positive(a, b)
    # Numbers below 0 have powers with whole exponents, of both signs.
    signed = (a.low < 0) & (np.ceil(b.low) <= b.high)
    if not signed.any():
        return found
    size = _power_of_positive(absolute(a), b).high
    low, high = np.where(signed, -size, found.low), np.where(signed, size, found.high)
    whole = signed & (b.low == b.high)
    for n in np.unique(np.broadcast_to(b.low, whole.shape)[whole]).tolist():
        exact, own = whole_power(a, n=n), whole & (b.low == n)
        low, high = np.where(own, exact.low, low), np.where(own, exact.high, high)
    return BoxInterval(low, high, _or(found.rough, signed))


def _power_of_positive(a: BoxInterval, b: BoxInterval) -> BoxInterval:
    """The powers of the part of an interval that is not below 0."""
    base, rough = _within(a, 0.0, _INFINITY)
    low, high = _extremes(operator.pow, base, b)
    rough = _or(_joined_rough(BoxInterval(low, high, rough), b), (base.low <= 0) & (b.low <= 0))
    nowhere = np.isnan(base.low) | np.isnan(b.low)
    low = np.where(nowhere, np.nan, np.maximum(np.where(np.isnan(low), 0.0, _widened(low, -1.0)), 0.0))
    high = np.where(nowhere, np.nan, np.where(np.isnan(high), _INFINITY, _widened(high, 1.0)))
    return BoxInterval(low, high, rough)


def _within(a: BoxInterval, least: float, most: float) -> tuple[BoxInterval, Any]:
    """The part of an interval in a domain, nan where there is none, and where the number may lie outside."""
    low, high = np.maximum(a.low, least), np.minimum(a.high, most)
    nowhere = (a.high < least) | (a.low > most)
    rough = _or(a.rough, ~((a.low >= least) & (a.high <= most)))
    return BoxInterval(np.where(nowhere, np.nan, low), np.where(nowhere, np.nan, high)), rough


# --- functions


def square_root(a: BoxInterval) -> BoxInterval:
    part, rough = _within(a, 0.0, _INFINITY)
    return BoxInterval(np.maximum(down(np.sqrt(part.low)), 0.0), up(np.sqrt(part.high)), rough)


def _increasing(function: Any, least: float = -_INFINITY, most: float = _INFINITY, *, positive: bool = False) -> Any:
    """An increasing function with a domain. At the ends of it the function may be infinite."""

    def rule(a: BoxInterval) -> BoxInterval:
        part, rough = (a, a.rough) if math.isinf(least) and math.isinf(most) else _within(a, least, most)
        low, high = _widened(function(part.low), -1.0), _widened(function(part.high), 1.0)
        if positive:
            low = np.maximum(low, 0.0)
        return BoxInterval(low, high, rough)

    return rule


def _open_increasing(function: Any, least: float, most: float = _INFINITY) -> Any:
    """An increasing function that is infinite at the ends of its domain, where it has no value."""
    rule = _increasing(function, least, most)

    def checked(a: BoxInterval) -> BoxInterval:
        found = rule(a)
        nowhere = (a.high <= least) | (a.low >= most)
        rough = _or(found.rough, (a.low <= least) | (a.high >= most))
        return BoxInterval(np.where(nowhere, np.nan, found.low), np.where(nowhere, np.nan, found.high), rough)

    return checked


def _decreasing(function: Any, least: float, most: float) -> Any:
    rule = _increasing(lambda x: -function(x), least, most)
    return lambda a: negative(rule(a))


def _even(function: Any) -> Any:
    rule = _increasing(function, 0.0)
    return lambda a: rule(absolute(a))._replace(rough=a.rough)


def _wave(function: Any, peak: float) -> Any:
    """Sine or cosine, whose first maximum is at `peak`."""

    def rule(a: BoxInterval) -> BoxInterval:
        ends = function(a.low), function(a.high)
        low = np.maximum(np.minimum(*ends) - _ACCURACY, -1.0)
        high = np.minimum(np.maximum(*ends) + _ACCURACY, 1.0)
        large = ~((abs(a.low) < _LARGEST_ANGLE) & (abs(a.high) < _LARGEST_ANGLE))
        high = np.where(large | _reaches(a, peak), 1.0, high)
        low = np.where(large | _reaches(a, peak + math.pi), -1.0, low)
        nowhere = np.isnan(a.low)
        return BoxInterval(np.where(nowhere, np.nan, low), np.where(nowhere, np.nan, high), a.rough)

    return rule


def _reaches(a: BoxInterval, place: float, period: float = 2 * math.pi) -> Any:
    """Return whether an interval may contain `place` plus a multiple of a period."""
    margin = 1e-9
    return np.floor((a.high - place) / period + margin) >= np.ceil((a.low - place) / period - margin)


def _tangent(a: BoxInterval) -> BoxInterval:
    pole = ~((abs(a.low) < _LARGEST_ANGLE) & (abs(a.high) < _LARGEST_ANGLE)) | _reaches(a, math.pi / 2, math.pi)
    low = np.where(pole, -_INFINITY, _widened(np.tan(a.low), -1.0) - _ACCURACY)
    high = np.where(pole, _INFINITY, _widened(np.tan(a.high), 1.0) + _ACCURACY)
    nowhere = np.isnan(a.low)
    return BoxInterval(np.where(nowhere, np.nan, low), np.where(nowhere, np.nan, high), _or(a.rough, pole & ~nowhere))


def _stepped(function: Any) -> Any:
    """A monotonic function with jumps."""

    def rule(a: BoxInterval) -> BoxInterval:
        low, high = function(a.low), function(a.high)
        return BoxInterval(low, high, _or(a.rough, low != high))

    return rule


def _extreme(function: Any) -> Any:
    return lambda a, b: BoxInterval(function(a.low, b.low), function(a.high, b.high), _joined_rough(a, b))


exponential = _increasing(np.exp, positive=True)
logarithm = _open_increasing(np.log, 0.0)


# The minimum of x*log(x), rounded down, which is at 1/e.
_LEAST_OF_TIMES_LOGARITHM = -0.3678794411714424


def times_logarithm(a: BoxInterval, logged: BoxInterval) -> BoxInterval:
    """x*log(x), where `logged` are the logarithms. Near 0 it is bounded, which the product of both factors is not."""
    product = multiply(a, logged)
    ends = []
    for end in (np.maximum(a.low, 0.0), a.high):
        point = BoxInterval(end, end)
        value = multiply(point, logarithm(point))
        ends.append([np.where(end == 0.0, 0.0, bound) for bound in (value.low, value.high)])
    least, most = np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])
    place = math.exp(-1.0)
    inside = (a.low < up(place)) & (a.high > down(place))
    least = np.where(inside, np.minimum(least, _LEAST_OF_TIMES_LOGARITHM), least)
    nowhere = np.isnan(logged.low)
    low = np.where(nowhere, product.low, np.fmax(product.low, least))
    return BoxInterval(low, np.where(nowhere, product.high, np.fmin(product.high, most)), product.rough)


def _expit(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def _softplus(x: Any) -> Any:
    return np.logaddexp(0.0, x)


# --- truth values


def _greater(a: BoxInterval, b: BoxInterval) -> Truth:
    return Truth(a.low > b.high, a.high > b.low)


def _at_least(a: BoxInterval, b: BoxInterval) -> Truth:
    return Truth(a.low >= b.high, a.high >= b.low)


def _equal(a: BoxInterval, b: BoxInterval) -> Truth:
    return Truth((a.low == a.high) & (b.low == b.high) & (a.low == b.low), (a.low <= b.high) & (b.low <= a.high))


def _not(a: Any) -> Truth:
    held = _truth(a)
    return Truth(~held.possible, ~held.sure)


def _truth(a: Any) -> Truth:
    return a if isinstance(a, Truth) else _not(_equal(a, BoxInterval(np.zeros(1), np.zeros(1))))


def _and(a: Any, b: Any) -> Truth:
    a, b = _truth(a), _truth(b)
    return Truth(a.sure & b.sure, a.possible & b.possible)


def _either(a: Any, b: Any) -> Truth:
    a, b = _truth(a), _truth(b)
    return Truth(a.sure | b.sure, a.possible | b.possible)


def is_finite(a: BoxInterval) -> Truth:
    # Where it has a value, a number is finite; whether it has one at each point is known for smooth ones alone.
    sure = np.isfinite(a.low) & np.isfinite(a.high) & ~a.is_rough()
    return Truth(sure, ~np.isnan(a.low))


def _never(a: BoxInterval) -> Truth:
    none = np.zeros(a.low.shape, bool)
    return Truth(none, a.is_rough() | np.isnan(a.low))


def _number(a: Any) -> BoxInterval:
    return BoxInterval(a.sure.astype(float), a.possible.astype(float)) if isinstance(a, Truth) else a


def where(condition: Any, a: Any, b: Any) -> BoxInterval | Truth:
    held = _truth(condition)
    if isinstance(a, Truth) and isinstance(b, Truth):
        return _either(_and(held, a), _and(_not(held), b))
    a, b = _number(a), _number(b)
    sure, never = held.sure, ~held.possible
    low = np.where(sure, a.low, np.where(never, b.low, np.fmin(a.low, b.low)))
    high = np.where(sure, a.high, np.where(never, b.high, np.fmax(a.high, b.high)))
    open_ = ~(sure | never) & ((a.low != b.low) | (a.high != b.high) | (a.low != a.high))
    rough = np.where(sure, a.is_rough(), np.where(never, b.is_rough(), a.is_rough() | b.is_rough())) | open_
    return BoxInterval(low, high, rough if rough.any() else None)


_ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: add(_number(a), _number(b)),
    "subtract": lambda a, b: subtract(_number(a), _number(b)),
    "multiply": lambda a, b: multiply(_number(a), _number(b)),
    "divide": divide,
    "negative": negative,
    "reciprocal": lambda a: divide(BoxInterval(np.ones_like(a.low), np.ones_like(a.low)), a),
    "abs": absolute,
    "whole_power": whole_power,
    "square": lambda a: whole_power(a, n=2.0),
    "pow": power,
    "sqrt": square_root,
    "flat_sqrt": square_root,
    "rsqrt": lambda a: divide(BoxInterval(np.ones_like(a.low), np.ones_like(a.low)), square_root(a)),
    "cbrt": _increasing(np.cbrt),
    "exp": exponential,
    "exp2": _increasing(np.exp2, positive=True),
    "expm1": _increasing(np.expm1),
    "log": logarithm,
    "log2": _open_increasing(np.log2, 0.0),
    "log10": _open_increasing(np.log10, 0.0),
    "log1p": _open_increasing(np.log1p, -1.0),
    "sin": _wave(np.sin, math.pi / 2),
    "cos": _wave(np.cos, 0.0),
    "tan": _tangent,
    "asin": _increasing(np.arcsin, -1.0, 1.0),
    "acos": _decreasing(np.arccos, -1.0, 1.0),
    "atan": _increasing(np.arctan),
    "sinh": _increasing(np.sinh),
    "cosh": _even(np.cosh),
    "tanh": _increasing(np.tanh),
    "asinh": _increasing(np.arcsinh),
    "acosh": _increasing(np.arccosh, 1.0),
    "atanh": _open_increasing(np.arctanh, -1.0, 1.0),
    "expit": _increasing(_expit, positive=True),
    "sigmoid": _increasing(_expit, positive=True),
    "softplus": _increasing(_softplus, positive=True),
    "sign": _stepped(np.sign),
    "floor": _stepped(np.floor),
    "ceil": _stepped(np.ceil),
    "trunc": _stepped(np.trunc),
    "maximum": _extreme(np.maximum),
    "minimum": _extreme(np.minimum),
    "where": where,
    "greater": _greater,
    "less": lambda a, b: _greater(b, a),
    "greater_equal": _at_least,
    "less_equal": lambda a, b: _at_least(b, a),
    "equal": _equal,
    "not_equal": lambda a, b: _not(_equal(a, b)),
    "may_differ_from_zero": _truth,
    "logical_and": _and,
    "logical_or": _either,
    "logical_not": _not,
    "isfinite": is_finite,
    "isnan": _never,
    "isinf": _never,
    "zeros_like": lambda a: interval_of(np.zeros(a.low.shape[1:])),
    "ones_like": lambda a: interval_of(np.ones(a.low.shape[1:])),
}


# --- shapes


def _moved(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """The result of a primitive that only moves elements, of the ends alike."""
    boxes = max(parts[0].shape[0] for parts in operands)

    def each(arrays: Sequence[Any]) -> Any:
        rows = [
            Batched(np.ascontiguousarray(np.broadcast_to(a, (boxes, *a.shape[1:])), float), nesting=0) for a in arrays
        ]
        return np.asarray(concrete(bind(primitive, rows, params).rows))

    if all(isinstance(parts, Truth) for parts in operands):
        return Truth(*(each([parts[k] for parts in operands]).astype(bool) for k in range(2)))
    numbers = [_number(parts) for parts in operands]
    rough = None
    if any(number.rough is not None for number in numbers):
        rough = each([number.is_rough() for number in numbers]) != 0
    return BoxInterval(each([n.low for n in numbers]), each([n.high for n in numbers]), rough)


def axes_of(rank: int, axis: Any) -> tuple[int, ...]:
    """The axes of an array with the axis of boxes in front, from those that a program gives."""
    given = range(rank - 1) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(1 + a % (rank - 1) for a in given)


def total(a: Any, *, axis: Any = None, keepdims: bool = False) -> BoxInterval:
    """The sum over axes."""
    a = _number(a)
    axes = axes_of(a.low.ndim, axis)
    count = math.prod(a.low.shape[k] for k in axes)
    if not count:
        axes_kept = np.zeros(a.low.shape).sum(axis=axes, keepdims=keepdims)
        return BoxInterval(axes_kept, axes_kept)
    found = []
    for end, sign in ((a.low, -1.0), (a.high, 1.0)):
        # The rounding errors of n - 1 sums in any order are below n units of the sum of the magnitudes.
        error = count * 2.0**-52 * abs(end).sum(axis=axes, keepdims=keepdims)
        moved = end.sum(axis=axes, keepdims=keepdims)
        moved = moved + sign * np.where(np.isfinite(moved), error, 0.0)
        found.append(np.nextafter(moved, sign * _INFINITY))
    low = np.where((a.low >= 0).all(axis=axes, keepdims=keepdims), np.maximum(found[0], 0.0), found[0])
    rough = None if a.rough is None else a.rough.any(axis=axes, keepdims=keepdims)
    return BoxInterval(low, found[1], rough)


def _mean(a: BoxInterval, *, axis: Any = None, keepdims: bool = False) -> BoxInterval:
    count = math.prod(a.low.shape[k] for k in axes_of(a.low.ndim, axis))
    summed = total(a, axis=axis, keepdims=keepdims)
    return divide(summed, BoxInterval(np.full((1,) * summed.low.ndim, count), np.full((1,) * summed.low.ndim, count)))


def _product_over(a: BoxInterval, *, axis: Any = None, keepdims: bool = False) -> BoxInterval:
    for k in sorted(axes_of(a.low.ndim, axis), reverse=True):
        count = a.low.shape[k]
        parts = [BoxInterval(*(None if p is None else np.take(p, [n], axis=k) for p in a)) for n in range(count)]
        shape = (*a.low.shape[:k], 1, *a.low.shape[k + 1 :])
        found = BoxInterval(np.ones(shape), np.ones(shape))
        for part in parts:
            found = multiply(found, part)
        a = (
            found
            if keepdims
            else BoxInterval(*(None if p is None else p.reshape(shape[:k] + shape[k + 1 :]) for p in found))
        )
    return a


def _extreme_over(function: Any) -> Any:
    def rule(a: BoxInterval, *, axis: Any = None, keepdims: bool = False) -> BoxInterval:
        axes = axes_of(a.low.ndim, axis)
        rough = None if a.rough is None else a.rough.any(axis=axes, keepdims=keepdims)
        low, high = (function(end, axis=axes, keepdims=keepdims) for end in (a.low, a.high))
        return BoxInterval(low, high, rough)

    return rule


def _over_truths(function: Any) -> Any:
    def rule(a: Any, *, axis: Any = None, keepdims: bool = False) -> Truth:
        held = _truth(a)
        axes = axes_of(held.sure.ndim, axis)
        return Truth(*(function(part, axis=axes, keepdims=keepdims) for part in held))

    return rule


def matrix_product(a: BoxInterval, b: BoxInterval) -> BoxInterval:
    """The product of matrices or vectors, with axes of NumPy's `matmul` after that of the boxes."""
    row, column = a.low.ndim == 2, b.low.ndim == 2
    a = BoxInterval(*(None if p is None else p[:, None, :] for p in a)) if row else a
    b = BoxInterval(*(None if p is None else p[:, :, None] for p in b)) if column else b
    left = BoxInterval(*(None if p is None else p[..., :, :, None] for p in a))
    right = BoxInterval(*(None if p is None else p[..., None, :, :] for p in b))
    left, right = (_number(part) for part in _aligned([left, right]))
    product = multiply(left, right)
    found = total(product, axis=(product.low.ndim - 3,))
    if row:
        found = BoxInterval(*(None if p is None else p[..., 0, :] for p in found))
    if column:
        found = BoxInterval(*(None if p is None else p[..., 0] for p in found))
    return found


_STRUCTURED: Mapping[str, Callable[..., Any]] = {
    "sum": total,
    "mean": _mean,
    "prod": _product_over,
    "max": _extreme_over(np.max),
    "min": _extreme_over(np.min),
    "all": _over_truths(np.all),
    "any": _over_truths(np.any),
    "matmul": matrix_product,
}


# --- other functions, in balls


def _in_balls(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> BoxInterval:
    """The result of a function of numbers, element by element in ball arithmetic."""
    numbers = [_number(parts) for parts in operands]
    shape = np.broadcast_shapes(*(number.low.shape for number in numbers))
    ends = [[np.broadcast_to(end, shape).ravel() for end in (number.low, number.high)] for number in numbers]
    low, high = np.full(math.prod(shape), -_INFINITY), np.full(math.prod(shape), _INFINITY)
    rough: Any = np.ones(math.prod(shape), bool)
    for k in range(len(low)):
        given = [(float(a[k]), float(b[k])) for a, b in ends]
        if all(math.isfinite(end) for pair in given for end in pair):
            doubts = Undecided()
            with suppress(UndecidedError, ZeroDivisionError), interval_evaluation(doubts):
                found = bind(primitive, [Balls(_ball(*pair)) for pair in given], params)
                low[k], high[k] = _float_ends(_only(found))
                rough[k] = doubts.jumped or bool(doubts.decisions) or not math.isfinite(high[k] - low[k])
                if doubts.decisions:
                    low[k], high[k] = -_INFINITY, _INFINITY
    known = _joined_rough(*numbers)
    rough = rough.reshape(shape)
    return BoxInterval(low.reshape(shape), high.reshape(shape), rough if known is None else rough | known)


def _ball(low: float, high: float) -> Number:
    from flint import fmpq

    return intervals.ball(*(fmpq(*end.as_integer_ratio()) for end in (low, high)))


def _only(found: Any) -> Number:
    array = concrete(found)
    if not isinstance(array, Balls) or array.shape:
        raise UndecidedError("there is no ball")
    if is_complex_number(array.numbers):
        raise real_number_needed()
    return array.numbers
