"""Proved bounds of the remainder of a Taylor polynomial over an interval or a box."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

from flint import fmpq

from gradcli.arrays.flint import intervals
from gradcli.arrays.flint.balls import INFINITY, Number, UndecidedError, precise
from gradcli.arrays.flint.intervals import Bounds
from gradcli.errors import BindingError, LimitError, UsageError, did_you_mean
from gradcli.models.expansions.taylor_coefficients import SeriesRequest
from gradcli.named_tuples import NamedTuple
from gradcli.proofs import digits as proved
from gradcli.proofs.enclosures import UnboundedError
from gradcli.proofs.interval_evaluation import Box, IntervalProgram
from gradcli.proofs.interval_inputs import Intervals, given, points

_BITS = 128
# Decimal digits of a bound, which is rounded up.
_DIGITS = 6
# Upper bound of the subintervals into which the path from the centre is divided. The division stops earlier where the
# last one lowered the bound by less than the share `_GAIN`.
_MOST_PARTS = 96
_GAIN = fmpq(1, 1000)


def remainder_over(question: SeriesRequest, over: Mapping[str | None, Any]) -> float:
    """An upper bound of the distance of a program from its Taylor polynomial where its inputs are in the intervals
    `over` by name; the key None stands for the only input. An interval is a tuple of its ends, or a text such as
    "-0.5..0.5".

    The remainder is an integral of the derivatives of the next order along the path from the centre: R(c + h) = ∫ (N+1)
    (1-t)^N Σ f_α(c + t h) h^α/α! dt over t from 0 to 1. It is bounded on subintervals of t.

    Raises UnboundedError where there is no finite bound, BindingError for a range of an unknown input or one that does
    not name its input, and BackendError where python-flint is not installed.
    """
    with proved.computing(), precise(_BITS):
        way = _Path(question, over)
        bound = max(map(way.bound, way.sides()))
        value = float(intervals.text(bound, _DIGITS, upward=True))
        # A bound beyond the largest float becomes infinity.
        enough = math.isinf(value) or fmpq(*value.as_integer_ratio()) >= bound
        return value if enough else math.nextafter(value, math.inf)


class _Part(NamedTuple):
    """A subinterval of the path from `start` to `end`, both from 0 to 1, its contribution `share` to the bound, and the
    error that kept it from a finite one."""

    start: fmpq
    end: fmpq
    share: Number
    why: UndecidedError | None


class _Path:
    def __init__(self, question: SeriesRequest, over: Mapping[str | None, Any]) -> None:
        self.question = question
        values = question.bindings()
        leaves = {name: points(values[name]) for name in question.wrt}
        self.center = tuple(part.low for leaf in leaves.values() for part in leaf.parts)
        self.range = self._range(over, {name: leaf.shape for name, leaf in leaves.items()})
        fixed = {name: value for name, value in values.items() if name not in leaves}
        shapes = {name: leaf.shape for name, leaf in leaves.items()}
        self.boxed = IntervalProgram(question.program, fixed, shapes, self.range)
        variables = range(len(self.center))
        self.entries = [*combinations_with_replacement(variables, question.order + 1)]

    def _range(self, over: Mapping[str | None, Any], shapes: Mapping[str, Any]) -> Box:
        named: dict[str, Any] = {}
        for name, interval in over.items():
            if name is None and len(shapes) > 1:
                raise BindingError("a range says which input it is of", hint=f"write {next(iter(shapes))}=-1..1")
            if name is not None and name not in shapes:
                hint = did_you_mean(name, shapes, f"the series is in {', '.join(shapes)}")
                raise BindingError(f"there is a range of '{name}', in which the series is not", hint=hint)
            own = name or next(iter(shapes))
            range_of_own = given(interval, own)
            named[own] = range_of_own if isinstance(range_of_own, Intervals) else points(range_of_own)
        parts: list[Bounds] = []
        for name, shape in shapes.items():
            count = math.prod(shape)
            center = self.center[len(parts) : len(parts) + count]
            found = named[name].parts if name in named else [Bounds(c, c) for c in center]
            found = [*found] * count if len(found) == 1 else [*found]
            if len(found) != count:
                raise BindingError(f"the range of '{name}' has {len(found)} intervals for {count} numbers")
            parts += [Bounds(min(b.low, c), max(b.high, c)) for b, c in zip(found, center)]
        if not parts:
            raise UsageError("the series is in no number, so that it has no remainder")
        return tuple(parts)

    def sides(self) -> Sequence[Box]:
        """The boxes of steps h from the centre: for one variable, one box for each side of the centre."""
        steps = tuple(Bounds(b.low - c, b.high - c) for b, c in zip(self.range, self.center))
        if len(steps) > 1:
            return [steps]
        return [(Bounds(fmpq(0), steps[0].high),), (Bounds(steps[0].low, fmpq(0)),)]

    def bound(self, side: Box) -> Number:
        """A bound of the remainder for all steps in a box."""
        sizes = [max(abs(s.low), abs(s.high)) for s in side]
        if not any(sizes):
            return fmpq(0)
        parts = [self._part(side, sizes, fmpq(0), fmpq(1))]
        gained, total = INFINITY, parts[0].share
        while len(parts) < _MOST_PARTS and (not total < INFINITY or gained > _GAIN * total):
            worst = max(parts, key=lambda p: p.share)
            middle = (worst.start + worst.end) / 2
            try:
                halves = [self._part(side, sizes, worst.start, middle), self._part(side, sizes, middle, worst.end)]
            except LimitError:
                break
            parts.remove(worst)
            parts += halves
            gained = worst.share - sum(h.share for h in halves) if worst.share < INFINITY else INFINITY
            total = sum((p.share for p in parts), fmpq(0))
        if not total < INFINITY:
            raise self._unbounded(side, next(p for p in parts if not p.share < INFINITY))
        return total

    def _part(self, side: Box, sizes: Sequence[fmpq], start: fmpq, end: fmpq) -> _Part:
        order = self.question.order + 1
        weight = (1 - start) ** order - (1 - end) ** order
        # Next to a removable singularity, interval evaluation of the derivatives gives wide bounds; those of the series
        # are tighter.
        known = self._by_series(self._box(side, fmpq(0), end)) * sizes[0] ** order * weight
        try:
            reading = self.boxed.read(self._box(side, start, end), order)
        except UndecidedError as error:
            return _Part(start, end, known, error)
        if not reading.continuous:
            return _Part(start, end, known, None)
        share: Number = fmpq(0)
        for by in self.entries:
            found = reading.found[0, by]
            if not found.is_finite:
                return _Part(start, end, known, None)
            ways = math.prod(math.factorial(by.count(i)) for i in set(by))
            step = math.prod((sizes[i] for i in by), start=fmpq(1))
            share += max(abs(found.low), abs(found.high)) * step / ways
        return _Part(start, end, min(share * weight, known), None)

    @cached_property
    def is_singular(self) -> bool:
        """True if the program, of one variable, has a value at the centre only by its series: a removable
        singularity."""
        if len(self.center) > 1:
            return False
        try:
            (number,) = self.boxed.read((Bounds(self.center[0], self.center[0]),), 0).found.values()
        except UndecidedError:
            return False
        return not number.is_finite

    def _by_series(self, way: Box) -> Number:
        """A bound of the remainder coefficient on a path from a removable singularity at the centre; infinite where
        there is none or no bound."""
        if not self.is_singular:
            return INFINITY
        order = self.question.order + 1
        (name,), (center,) = self.boxed.leaves, self.center
        known = self.boxed.enclose_taylor_coefficients(way, name, center, order)
        return max(abs(known[order].low), abs(known[order].high)) if known else INFINITY

    def _box(self, side: Box, start: fmpq, end: fmpq) -> Box:
        """A box that contains the path between two values of t."""
        if len(side) > 1:
            return tuple(Bounds(c + end * s.low, c + end * s.high) for c, s in zip(self.center, side))
        step = side[0].high or side[0].low
        ends = sorted(self.center[0] + t * step for t in (start, end))
        return (Bounds(*ends),)

    def _unbounded(self, side: Box, part: _Part) -> UnboundedError:
        last, source = self.question.program.body[-1], self.question.program.source
        box = self._box(side, part.start, part.end)
        span = part.why.span if part.why is not None and part.why.span is not None else last.span
        return UnboundedError(
            f"the remainder has no bound, or the program no value, at some point{self.boxed.box_text(box)}",
            hint="give a narrower range: this may be a pole, a kink, a jump or the end of a domain",
            span=span,
            source=source,
        )
