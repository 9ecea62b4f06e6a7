"""Narrows boxes to where the result of a program may lie between two ends.

The equations of the recorded program are evaluated in intervals, the result is cut to what is asked for, and then the
operands of each equation are cut to what its result allows, from the last equation to the first (HC4-revise: F. Benhamou,
F. Goualard, L. Granvilliers, J.-F. Puget, Revising hull and box consistency, 1999).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.primitives.bind import bind, concrete
from gradcli.program.ir import Equation, Program, Variable
from gradcli.proofs import box_arithmetic
from gradcli.proofs.box_arithmetic import BoxInterval, Truth, add, down, multiply, negative, subtract, up

# The relative error of roots of higher order, which are powers of rounded exponents: 745*2**-53 at most.
_OF_ROOTS = 2.0**-40
_TINY = 5e-324
_INFINITY = math.inf

# The parts of the operands that a result allows; None where nothing is known.
_Narrowed = Sequence[BoxInterval | None]


def propagated(
    program: Program,
    known: dict[Variable, Any],
    value_of: Callable[[Any], Any],
    least: Any,
    most: Any,
) -> Any:
    """Narrow the intervals `known` of all variables to where the result of the program may lie between `least` and
    `most`; returns the boxes `[boxes]` in which it may. `value_of` has the intervals of constants too.

    Variables on which such a result need not depend, as those of a branch that is not taken, keep their intervals.
    """
    (result,) = program.outputs
    bounds = value_of(result)
    boxes = max(len(part.low) for part in known.values() if not isinstance(part, Truth))
    possible = np.ones(boxes, bool)
    needed: set[Variable] = set()
    with np.errstate(all="ignore"):
        _narrow(result, BoxInterval(np.asarray(least, float), np.asarray(most, float)), bounds, known, needed, possible)
        for equation in reversed(program.equations):
            if equation.output not in needed:
                continue
            rule = _RULES.get(equation.primitive.name)
            if rule is None and equation.primitive.moves:
                rule = _moved
            operands = [value_of(atom) for atom in equation.inputs]
            if rule is None or any(isinstance(part, Truth) for part in operands):
                continue
            found = rule(known[equation.output], operands, equation)
            for atom, allowed, bounds in zip(equation.inputs, found, operands):
                if allowed is not None:
                    _narrow(atom, allowed, bounds, known, needed, possible)
    return possible


def _narrow(
    atom: Any, allowed: BoxInterval, bounds: Any, known: dict[Variable, Any], needed: set[Variable], possible: Any
) -> None:
    """Cut the interval of an atom to a part. An atom occurs twice where it is squared, for example."""
    if isinstance(atom, Variable):
        bounds = known[atom]
    if isinstance(bounds, Truth):
        return
    shape = bounds.low.shape[1:]
    low, high = (_of_shape(end, len(shape), shape) for end in (allowed.low, allowed.high))
    low, high = np.fmax(bounds.low, low), np.fmin(bounds.high, high)
    empty = (low > high) | np.isnan(bounds.low)
    if empty.any():
        possible &= ~np.broadcast_to(empty, (max(len(empty), 1), *shape)).reshape(len(empty), -1).any(axis=1)
        low, high = np.where(empty, bounds.low, low), np.where(empty, bounds.high, high)
    if isinstance(atom, Variable):
        known[atom] = BoxInterval(low, high, bounds.rough)
        needed.add(atom)


def _of_shape(end: Any, rank: int, shape: tuple[int, ...]) -> Any:
    """The ends `[boxes, …]` with as many axes as the operand, which was broadcast to the result: nothing is known of
    the elements that became several."""
    if end.ndim == 0 or end.shape[1:] == shape:
        return end
    return end.reshape(end.shape[:1] + (1,) * (rank + 1 - end.ndim) + end.shape[1:])


# --- rules: the parts of the operands that a result allows


def _elementwise(rule: Callable[..., _Narrowed]) -> Callable[..., _Narrowed]:
    """A rule for operands of the shape of the result; where one was broadcast, nothing is known of it."""

    def checked(result: BoxInterval, operands: Sequence[BoxInterval], equation: Equation) -> _Narrowed:
        shape = result.low.shape[1:]
        if any(part.low.shape[1:] not in (shape, ()) for part in operands):
            return [None] * len(operands)
        aligned = [
            part if part.low.shape[1:] == shape else BoxInterval(*(_scalar(end, shape) for end in part[:2]))
            for part in operands
        ]
        found = rule(result, *aligned, **equation.params)
        return [
            _common(allowed, shape) if allowed is not None and part.low.shape[1:] != shape else allowed
            for allowed, part in zip(found, operands)
        ]

    return checked


def _scalar(end: Any, shape: tuple[int, ...]) -> Any:
    return end.reshape(end.shape + (1,) * len(shape))


def _common(allowed: BoxInterval, shape: tuple[int, ...]) -> BoxInterval:
    """The interval that all elements of a result allow for a number that is an operand of each."""
    axes = tuple(range(1, 1 + len(shape)))
    with np.errstate(all="ignore"):
        return BoxInterval(np.fmax.reduce(allowed.low, axis=axes), np.fmin.reduce(allowed.high, axis=axes))


def _add(y: BoxInterval, a: BoxInterval, b: BoxInterval) -> _Narrowed:
    return subtract(y, b), subtract(y, a)


def _subtract(y: BoxInterval, a: BoxInterval, b: BoxInterval) -> _Narrowed:
    return add(y, b), subtract(a, y)


def _multiply(y: BoxInterval, a: BoxInterval, b: BoxInterval) -> _Narrowed:
    return _factor(y, b, a), _factor(y, a, b)


def _factor(product: BoxInterval, other: BoxInterval, own: BoxInterval) -> BoxInterval:
    """The part of a factor `own` for which the product with a number of the other may be as it is."""
    parts = []
    for sign in (1.0, -1.0):
        one = other if sign > 0 else negative(other)
        positive = BoxInterval(np.maximum(one.low, 0.0), one.high)
        found = multiply(product if sign > 0 else negative(product), box_arithmetic.reciprocal(positive))
        low, high = np.fmax(own.low, found.low), np.fmin(own.high, found.high)
        none = ~(one.high > 0) | (low > high)
        parts.append((np.where(none, _INFINITY, low), np.where(none, -_INFINITY, high)))
    low, high = np.minimum(parts[0][0], parts[1][0]), np.maximum(parts[0][1], parts[1][1])
    # A product with 0 allows everything.
    free = (other.low <= 0) & (other.high >= 0) & (product.low <= 0) & (product.high >= 0)
    return BoxInterval(np.where(free, -_INFINITY, low), np.where(free, _INFINITY, high))


def _divide(y: BoxInterval, a: BoxInterval, b: BoxInterval) -> _Narrowed:
    return _unless_infinite(multiply(y, b), y, b), _unless_infinite(_factor(a, y, b), y, b)


def _unless_infinite(found: BoxInterval, y: BoxInterval, denominator: BoxInterval) -> BoxInterval:
    """The interval that a quotient allows, and everything where its denominator may be infinite, as next to a pole: the
    quotient of floats is then 0."""
    free = (np.isinf(denominator.low) | np.isinf(denominator.high)) & (y.low <= 0) & (y.high >= 0)
    return BoxInterval(np.where(free, -_INFINITY, found.low), np.where(free, _INFINITY, found.high))


def _negative(y: BoxInterval, _a: BoxInterval) -> _Narrowed:
    return (negative(y),)


def _reciprocal(y: BoxInterval, a: BoxInterval) -> _Narrowed:
    one = np.ones((1,) * y.low.ndim)
    return (_unless_infinite(_factor(BoxInterval(one, one), y, a), y, a),)


def _absolute(y: BoxInterval, a: BoxInterval) -> _Narrowed:
    return (_signed(BoxInterval(np.maximum(y.low, 0.0), y.high), a),)


def _signed(size: BoxInterval, own: BoxInterval) -> BoxInterval:
    """The numbers of an interval with a magnitude in `size`."""
    above = np.fmax(own.low, size.low), np.fmin(own.high, size.high)
    below = np.fmax(own.low, -size.high), np.fmin(own.high, -size.low)
    low = np.where(below[0] <= below[1], below[0], above[0])
    high = np.where(above[0] <= above[1], above[1], below[1])
    return BoxInterval(low, high)


def _whole_power(y: BoxInterval, a: BoxInterval, *, n: float) -> _Narrowed:
    if n == 0:
        return (None,)
    if n < 0:
        one = np.ones((1,) * y.low.ndim)
        power = box_arithmetic.whole_power(BoxInterval(a.low, a.high), n=-n)
        return _whole_power(_unless_infinite(_factor(BoxInterval(one, one), y, power), y, power), a, n=-n)
    if n % 2 == 0:
        least = np.maximum(y.low, 0.0)
        return (_signed(BoxInterval(_root(least, n, -1.0), _root(np.maximum(y.high, 0.0), n, 1.0)), a),)
    ends = [
        np.where(end >= 0, _root(abs(end), n, sign), -_root(abs(end), n, -sign))
        for end, sign in ((y.low, -1.0), (y.high, 1.0))
    ]
    return (BoxInterval(*ends),)


def _root(x: Any, n: float, sign: float) -> Any:
    """A bound, below or above, of the root of numbers that are not negative."""
    if n == 1:
        return x
    if n == 2:
        found = np.sqrt(x)
        return np.maximum(down(found), 0.0) if sign < 0 else up(found)
    found = np.power(x, 1.0 / n)
    moved = found + sign * (found * _OF_ROOTS + _TINY)
    moved = np.where(np.isinf(found), found if sign > 0 else np.finfo(float).max, moved)
    return np.maximum(moved, 0.0) if sign < 0 else moved


def _square(y: BoxInterval, a: BoxInterval) -> _Narrowed:
    return _whole_power(y, a, n=2.0)


def _power(y: BoxInterval, a: BoxInterval, b: BoxInterval) -> _Narrowed:
    exponent = b.low.flat[0] if b.low.size == 1 else 0.0
    if not exponent > 0 or b.low.flat[0] != b.high.flat[0] or float(exponent).is_integer():
        return None, None
    # The number has a power only where it is not negative.
    one = np.ones((1,) * b.low.ndim)
    inverse = box_arithmetic.divide(BoxInterval(one, one), BoxInterval(b.low, b.high))
    positive = BoxInterval(np.maximum(y.low, 0.0), np.maximum(y.high, 0.0))
    found = box_arithmetic.power(positive, inverse)
    # The exponents are two floats, whose powers may be infinite.
    return BoxInterval(np.fmax(found.low, 0.0), np.where(np.isnan(found.high), _INFINITY, found.high)), None


def _square_root(y: BoxInterval, _a: BoxInterval) -> _Narrowed:
    return (box_arithmetic.whole_power(BoxInterval(np.maximum(y.low, 0.0), np.maximum(y.high, 0.0)), n=2.0),)


def _by(inverse: Callable[[BoxInterval], BoxInterval]) -> Callable[..., _Narrowed]:
    def rule(y: BoxInterval, _a: BoxInterval) -> _Narrowed:
        found = inverse(BoxInterval(y.low, y.high))
        return (BoxInterval(found.low, found.high),)

    return rule


def _maximum(y: BoxInterval, _a: BoxInterval, _b: BoxInterval) -> _Narrowed:
    most = BoxInterval(np.full_like(y.high, -_INFINITY), y.high)
    return most, most


def _minimum(y: BoxInterval, _a: BoxInterval, _b: BoxInterval) -> _Narrowed:
    least = BoxInterval(y.low, np.full_like(y.low, _INFINITY))
    return least, least


def _total(y: BoxInterval, operands: Sequence[BoxInterval], equation: Equation) -> _Narrowed:
    (a,) = operands
    axes = box_arithmetic.axes_of(a.low.ndim, equation.params.get("axis"))
    whole = box_arithmetic.total(a, axis=tuple(k - 1 for k in axes), keepdims=True)
    shape = tuple(1 if k in axes else size for k, size in enumerate(a.low.shape))
    low, high = (end.reshape((len(end), *shape[1:])) for end in (y.low, y.high))
    # The sum of the others; without a finite one nothing is known.
    others = BoxInterval(down(whole.low - a.low), up(whole.high - a.high))
    found = subtract(BoxInterval(low, high), others)
    return (
        BoxInterval(
            np.where(np.isfinite(others.high), found.low, -_INFINITY),
            np.where(np.isfinite(others.low), found.high, _INFINITY),
        ),
    )


def _moved(y: BoxInterval, operands: Sequence[BoxInterval], equation: Equation) -> _Narrowed:
    """A rule for operations that move elements: each element of the result narrows the operand's element it was moved
    from, which is found by moving numbered elements."""
    sizes = [math.prod(part.low.shape[1:]) for part in operands]
    first = np.concatenate([[0], np.cumsum(sizes)])
    # Elements that come from nowhere, as those of a padding, are 0.
    numbers = [
        np.arange(1.0 + begin, 1.0 + begin + size).reshape(part.low.shape[1:])
        for begin, size, part in zip(first, sizes, operands)
    ]
    place = np.asarray(concrete(bind(equation.primitive, numbers, equation.params)), float).ravel().astype(int) - 1
    boxes = len(y.low)
    low, high = np.full((boxes, first[-1]), -_INFINITY), np.full((boxes, first[-1]), _INFINITY)
    inside = place >= 0
    for end, own, extreme in ((low, y.low, np.fmax), (high, y.high, np.fmin)):
        flat = own.reshape(boxes, -1)
        extreme.at(end.T, place[inside], flat[:, inside].T)
    return [
        BoxInterval(*(end[:, begin : begin + size].reshape(boxes, *part.low.shape[1:]) for end in (low, high)))
        for begin, size, part in zip(first, sizes, operands)
    ]


_ELEMENTWISE: Mapping[str, Callable[..., _Narrowed]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "negative": _negative,
    "reciprocal": _reciprocal,
    "abs": _absolute,
    "whole_power": _whole_power,
    "square": _square,
    "pow": _power,
    "sqrt": _square_root,
    "exp": _by(box_arithmetic.logarithm),
    "log": _by(box_arithmetic.exponential),
    "maximum": _maximum,
    "minimum": _minimum,
}
_RULES: Mapping[str, Callable[..., _Narrowed]] = {
    **{name: _elementwise(rule) for name, rule in _ELEMENTWISE.items()},
    "sum": _total,
}
