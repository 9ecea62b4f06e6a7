"""Writes what interval evaluation proves about a program over a box of inputs: decimal bounds, monotonicity and
curvature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement, product
from math import prod
from typing import Any

from flint import fmpq

from gradcli.arrays.flint import intervals
from gradcli.arrays.flint.intervals import ALL, NOTHING, Bounds
from gradcli.arrays.shapes import Shape
from gradcli.language.syntax.tree import Module
from gradcli.named_tuples import NamedTuple
from gradcli.proofs.enclosures import Enclosed, enclosures
from gradcli.proofs.interval_evaluation import IntervalProgram
from gradcli.proofs.interval_inputs import Intervals, points

# Default digits of a bound; digits beyond those that two bounds share; and the most digits in all.
_DIGITS, _MORE, _MOST = 10, 3, 40
# An inner bound is reported only where its gap to the outer bound exceeds these shares: of the magnitude of the bound,
# and of the width of the interval.
_OVERLOOKED, _NARROW = fmpq(1, 1_000), fmpq(1, 1_000_000)


class Interval(NamedTuple):
    """The numbers from `low` to `high`: outward-rounded decimals, as texts or `decimal.Decimal`."""

    low: Any
    high: Any


class Enclosure:
    """Intervals of the value and its derivatives over a box (nested lists for tensors), with proved monotonicity and
    curvature."""

    def __init__(self, shape: Shape, digits: int) -> None:
        self.shape = shape
        self.digits = digits
        self.box: dict[str, Any] = {}
        self.value: Any = None
        # For a scalar whose bounds may be too wide: the lowest and highest numbers that it is known to take.
        self.reached: Interval | None = None
        self.grad: dict[str, Any] | None = None
        self.derivatives: dict[str, Any] | None = None
        # For each scalar input that ranges over an interval, how the value changes with it; None where that is not
        # proved.
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
    """Enclose the value and all its derivatives by the names in `wrt` up to `order`, within `digits.computing`.

    `number` converts the text of each bound. Raises DifferentiationError for derivatives of a non-scalar value without
    `jacobian`, and what `enclosures` raises.
    """
    given = {
        n: v if isinstance(v, Intervals) else points(v)
        for n, v in values.items()
        if isinstance(v, Intervals) or n in wrt
    }
    fixed = {n: v for n, v in values.items() if n not in given}
    box = tuple(part for interval in given.values() for part in interval.parts)
    boxed = IntervalProgram(program, fixed, {n: interval.shape for n, interval in given.items()}, box)
    found = enclosures(boxed, order, digits or _DIGITS, jacobian=jacobian)
    made = Enclosure(boxed.shape, digits or _DIGITS)
    writer = _EnclosureWriter(boxed, found, made.digits, exactly=digits is not None, number=number)
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


def _monotonic(boxed: IntervalProgram, found: Enclosed, name: str) -> str | None:
    if not found.continuous[0]:
        return None
    return _said(found.found.get((0, (boxed.inputs[name][0],)), ALL), "increasing", "decreasing", "constant")


def _curvature(boxed: IntervalProgram, found: Enclosed, name: str) -> str | None:
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


class _EnclosureWriter:
    def __init__(self, boxed: IntervalProgram, found: Enclosed, digits: int, *, exactly: bool, number: Any) -> None:
        self.boxed = boxed
        self.found = found.found
        self.digits = digits
        self.exactly = exactly
        self.number = number

    def part(self, names: Sequence[str]) -> Any:
        """The intervals of the value, or of its derivative by some leaves."""
        shape = self.boxed.shape + tuple(size for name in names for size in self.boxed.leaves[name])
        places = product(range(prod(self.boxed.shape)), *(self.boxed.inputs[name] for name in names))
        return self.nested(shape, (self.found.get((k, tuple(sorted(by))), ALL) for k, *by in places))

    def reached(self, value: Bounds, inner: Bounds) -> Interval | None:
        """Return the range that a value is known to take, where the enclosure is noticeably wider than that; else
        None."""
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
