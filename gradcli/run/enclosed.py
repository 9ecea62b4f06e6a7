"""What is proved of a program over intervals of its inputs, in decimals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement, product
from math import prod
from typing import Any, NamedTuple

from flint import fmpq

from gradcli.arrays import intervals
from gradcli.arrays.intervals import ALL, NOTHING, Bounds
from gradcli.arrays.shapes import Shape
from gradcli.language.syntax.tree import Module
from gradcli.run.boxes import Boxed
from gradcli.run.enclosures import Enclosed, enclosures
from gradcli.run.interval_inputs import Intervals, points

# Of each bound, unless it is said, and as many more as tell an interval from a number.
_DIGITS, _MORE, _MOST = 10, 3, 40
# A bound that is beyond the numbers found by less than this share of it, or of all of them, is not told to be.
_OVERLOOKED, _NARROW = fmpq(1, 1_000), fmpq(1, 1_000_000)


class Interval(NamedTuple):
    """The numbers from `low` to `high`, decimals that are rounded outward, texts or `decimal.Decimal`."""

    low: Any
    high: Any


class Enclosure:
    """Intervals of the value and its derivatives for all inputs in a box, nested lists of them for tensors; what they
    say of how the value rises and bends."""

    def __init__(self, shape: Shape, digits: int) -> None:
        self.shape = shape
        self.digits = digits
        self.box: dict[str, Any] = {}
        self.value: Any = None
        # Of a scalar, where its bounds may be wider than need be: numbers that it certainly has, the lowest and highest.
        self.reached: Interval | None = None
        self.grad: dict[str, Any] | None = None
        self.derivatives: dict[str, Any] | None = None
        # For each input that is an interval, how the value changes with it: None where that is not proved.
        self.monotonic: dict[str, str | None] = {}
        self.curvature: str | None = None


def enclose(
    program: Module,
    values: Mapping[str, Any],
    wrt: Sequence[str],
    *,
    order: int = 1,
    jacobian: bool = False,
    digits: int | None = None,
    number: Callable[[str], Any] = str,
) -> Enclosure:
    """Enclosures of the value, and of all derivatives by the names `wrt` up to an order, within `digits.computing`; a bound is
    what `number` makes of its text.

    Raises DifferentiationError for derivatives of a value that is no scalar unless a `jacobian` is asked for, and what
    `enclosures` raises.
    """
    given = {
        n: v if isinstance(v, Intervals) else points(v)
        for n, v in values.items()
        if isinstance(v, Intervals) or n in wrt
    }
    fixed = {n: v for n, v in values.items() if n not in given}
    box = tuple(part for interval in given.values() for part in interval.parts)
    boxed = Boxed(program, fixed, {n: interval.shape for n, interval in given.items()}, box)
    found = enclosures(boxed, order, digits or _DIGITS, jacobian=jacobian)
    made = Enclosure(boxed.shape, digits or _DIGITS)
    writer = _Writer(boxed, found, made.digits, exactly=digits is not None, number=number)
    made.box = {
        n: writer.nested(interval.shape, iter(interval.parts))
        for n, interval in given.items()
        if isinstance(values[n], Intervals)
    }
    made.value = writer.part(())
    if not boxed.shape:
        made.reached = writer.reached(found.found[0, ()], found.reached.get((0, ()), NOTHING))
    if order:
        made.grad = {name: writer.part((name,)) for name in wrt}
        keys = [k for n in range(2, order + 1) for k in combinations_with_replacement(wrt, n)]
        made.derivatives = {",".join(key): writer.part(key) for key in keys} if order > 1 else None
        if not boxed.shape:
            wide = [
                n
                for n in wrt
                if isinstance(values[n], Intervals) and any(part.low < part.high for part in given[n].parts)
            ]
            made.monotonic = {name: _monotonic(boxed, found, name) for name in wide if not given[name].shape}
            if len(wide) == 1 and not given[wide[0]].shape:
                made.curvature = _curvature(boxed, found, wide[0])
    return made


def _monotonic(boxed: Boxed, found: Enclosed, name: str) -> str | None:
    if not found.continuous[0]:
        return None
    return _said(found.found.get((0, (boxed.inputs[name][0],)), ALL), "increasing", "decreasing", "constant")


def _curvature(boxed: Boxed, found: Enclosed, name: str) -> str | None:
    if not all(found.continuous):
        return None
    i = boxed.inputs[name][0]
    bounds = found.found.get((0, (i, i)), ALL)
    if bounds.low == 0 == bounds.high:
        return "linear"
    return "convex" if bounds.low >= 0 else "concave" if bounds.high <= 0 else None


def _said(slope: Bounds, up: str, down: str, flat: str) -> str | None:
    if slope.low == 0 == slope.high:
        return flat
    if slope.low >= 0:
        return up if slope.low > 0 else f"not {down}"
    if slope.high <= 0:
        return down if slope.high < 0 else f"not {up}"
    return None


class _Writer:
    def __init__(self, boxed: Boxed, found: Enclosed, digits: int, *, exactly: bool, number: Any) -> None:
        self.boxed = boxed
        self.found = found.found
        self.digits = digits
        self.exactly = exactly
        self.number = number

    def part(self, names: Sequence[str]) -> Any:
        """The value, or its derivative by some leaves."""
        shape = self.boxed.shape + tuple(size for name in names for size in self.boxed.leaves[name])
        places = product(range(prod(self.boxed.shape)), *(self.boxed.inputs[name] for name in names))
        return self.nested(shape, (self.found.get((k, tuple(sorted(by))), ALL) for k, *by in places))

    def reached(self, value: Bounds, inner: Bounds) -> Interval | None:
        """The numbers that a value is known to have, where its bounds are wider by more than people would overlook."""
        if not inner.is_finite or inner == NOTHING:
            return None
        width = value.high - value.low
        gaps = ((abs(value.low), inner.low - value.low), (abs(value.high), value.high - inner.high))
        if not any(gap > _OVERLOOKED * size and gap > _NARROW * width for size, gap in gaps):
            return None
        low, high = (intervals.text(n, self.digits, upward=up) for n, up in zip(inner, (True, False)))
        return Interval(self.number(low), self.number(high))

    def nested(self, shape: Shape, parts: Any) -> Any:
        if shape:
            return [self.nested(shape[1:], parts) for _ in range(shape[0])]
        return self._interval(next(parts))

    def _interval(self, bounds: Bounds) -> Interval:
        digits = self.digits
        if not self.exactly and bounds.is_finite and bounds.low < bounds.high:
            size = max(abs(bounds.low), abs(bounds.high))
            ratio = size / (bounds.high - bounds.low)
            while digits < _MOST and ratio > fmpq(10) ** (digits - _MORE):
                digits += 1
        low, high = (intervals.text(n, digits, upward=up) for n, up in zip(bounds, (False, True)))
        return Interval(self.number(low), self.number(high))
