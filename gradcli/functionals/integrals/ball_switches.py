"""Places at which an integrand jumps or bends, in ball arithmetic: all of them, proved.

The range is bisected until, on each part, a switch is excluded by an enclosure, or the function whose sign or whole number
decides it is monotone, by an enclosure of its slope. The interval Newton method narrows the places (R. E. Moore, R. B.
Kearfott and M. J. Cloud, Introduction to Interval Analysis, 2009, section 8.1).
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import Any

from flint import acb, arb

from gradcli.arrays.flint.balls import Balls, UndecidedError, precision
from gradcli.errors import BackendError
from gradcli.functionals.body import Body
from gradcli.functionals.complex_programs import form
from gradcli.functionals.complex_rules import complex_ball
from gradcli.functionals.integrals.ball_integrals import integrand_of
from gradcli.functionals.integrals.growth import distance, growth, negative
from gradcli.functionals.switches import (
    IntegralPiece,
    Place,
    Switch,
    all_switches,
    differentiable,
    minus,
    number_or_ball_of,
    without_switches,
)
from gradcli.loops.rolled_loop import BodyPath
from gradcli.primitives.bind import Kind
from gradcli.primitives.entries.arithmetic import subtract
from gradcli.program.ir import Equation

# The number of parts that are examined for one switch.
_MOST_PARTS = 20_000
# Where a part is divided: no simple fraction, at which switches often are.
_DIVISION = arb(0.4871)
# The binary logarithm of the distance from which on there must be no switch towards an infinite limit.
_FARTHEST = 60
# The distance up to which other values of what an integrand reads are examined.
_NEARBY = 2.0**-10
# The most steps that narrow a place, and the bits that a place may lack.
_MOST_STEPS, _GUARD = 200, 8


def proved_pieces(body: Body, low: Any, high: Any, reads: Sequence[Any]) -> list[IntegralPiece] | None:
    """The parts of the integral of a body between the switches; None where there are none, or their places are not
    proved."""
    found = [*{_form(switch): switch for switch in all_switches(body.program)}.values()]
    given = [*map(number_or_ball_of, (low, high, *reads))]
    if not found or None in given:
        return None
    first, last, *numbers = (complex_ball(x).real for x in given)
    try:
        first, last = (_finite(limit, found, numbers) for limit in (first, last))
        functions = [_Function(switch, numbers) for switch in found]
        for limit, end in ((low, first), (high, last)):
            moves = any(isinstance(x, Kind) for x in (limit, *reads))
            if moves and any(f.is_level(end) and not f.stays_level(end, limit) for f in functions):
                # The derivatives from both sides differ.
                return None
        places = _sorted([p for function in functions for p in _places(function, first, last)], first, last)
        edges = [low, *(differentiable(body, place, reads) for place in places), high]
        ends = [first, *(arb(p.at.numbers) for p in places), last]
        middles = [Balls(((a + b) / 2).mid()) for a, b in itertools.pairwise(ends)]
        bodies = [without_switches(body, [middle, *given[2:]]) for middle in middles]
    except (UndecidedError, BackendError, _UnknownPlaceError):
        return None
    return [IntegralPiece(*ends, between) for ends, between in zip(itertools.pairwise(edges), bodies)]


class _UnknownPlaceError(Exception):
    """The places of a switch are not proved."""


def _finite(limit: arb, switches: Sequence[Switch], reads: Sequence[arb]) -> arb:
    """A limit, or for an infinite one a place from which on no switch is. Raises _UnknownPlaceError."""
    if limit.is_finite():
        return limit
    for power in range(1, _FARTHEST):
        end = arb(2) ** power
        place = distance(end) if limit > 0 else negative(distance(end))
        if all(not s.step and growth(s.crossing, place, reads).sign for s in switches):
            return end if limit > 0 else -end
    raise _UnknownPlaceError


def _sorted(places: list[Place], first: arb, last: arb) -> list[Place]:
    """The places from the first limit to the last. Raises _UnknownPlaceError where their order is not proved."""
    rising = bool(first < last)
    ordered = sorted(places, key=lambda place: place.at.numbers.mid().fmpq(), reverse=not rising)
    ends = [first, *(place.at.numbers for place in ordered), last]
    if not all(a < b if rising else a > b for a, b in itertools.pairwise(ends)):
        raise _UnknownPlaceError
    return ordered


def _form(switch: Switch) -> Hashable:
    """What is equal for switches that are at the same places, as their functions are computed in the same way."""

    def only_sign_matters(equation: Equation) -> bool:
        is_last = equation.output is switch.crossing.outputs[0]
        return is_last and equation.primitive is subtract and not switch.step

    return form(switch.crossing, unordered=only_sign_matters), switch.step


def _places(function: _Function, first: arb, last: arb) -> list[Place]:
    """The places between two limits where a function decides a switch. Raises _UnknownPlaceError."""
    low, high = (first, last) if first < last else (last, first)
    parts = [(low.lower(), high.upper(), 0)]
    found = list[Place]()
    for _ in range(_MOST_PARTS):
        if not parts:
            return found
        start, end, depth = parts.pop()
        levels = function.levels(start, end)
        if levels is None:
            if depth > precision():
                break
            middle = (start + _DIVISION * (end - start)).mid()
            parts += [(middle, end, depth + 1), (start, middle, depth + 1)]
        for level in levels or ():
            if not (end == high and function.is_level(end)):
                place = Balls(function.crossing(level, start, end))
                found.append(Place(place, minus(function.switch.crossing, float(level))))
    raise _UnknownPlaceError


class _Function:
    """The function whose sign, or whole number, decides a switch."""

    def __init__(self, switch: Switch, reads: Sequence[arb]) -> None:
        self.switch, self._reads = switch, [*map(acb, reads)]
        self._crossing = integrand_of(switch.crossing)
        self._slope = integrand_of(Body([BodyPath(switch.crossing, ())], switch.crossing, 1).partial(0).program)

    def value(self, x: arb) -> arb:
        return self._crossing([acb(x), *self._reads], False).real

    def is_level(self, x: arb) -> bool:
        """Return whether a switch is known to be exactly at a place."""
        return self._is_level(x, self._reads)

    def stays_level(self, x: arb, place: Any) -> bool:
        """Return whether a switch is known to stay at a place, whose value is `x`, for other values of what is read."""
        return not isinstance(place, Kind) and self._is_level(x, [acb(r.real + arb(0, _NEARBY)) for r in self._reads])

    def _is_level(self, x: arb, reads: Sequence[acb]) -> bool:
        value = self._crossing([acb(x), *reads], False).real
        return bool(value.is_exact() and (value.is_integer() if self.switch.step else value.is_zero()))

    def slope(self, x: arb) -> arb:
        """The slope on a ball, where the function is smooth."""
        return self._slope([acb(x), *self._reads], True).real

    def levels(self, start: arb, end: arb) -> Sequence[int] | None:
        """The levels of the switches between two places, the latter included, of which there is at most one; None where
        that is not known. Raises _UnknownPlaceError where the function is not distinguished from a level at a place."""
        part = start.union(end)
        around = self._crossing([acb(part), *self._reads], True)
        value = around.real if around.is_finite() else self.value(part)
        if value.is_finite() and not (value.contains_integer() if self.switch.step else value.contains(0)):
            return ()
        slope = _sign(self.slope(part)) if around.is_finite() else 0
        if not slope:
            return None
        low, high = self.value(start), self.value(end)
        if not self.switch.step:
            return [0] if _decided_sign(low) * _decided_sign(high) <= 0 and low != 0 else []
        if slope > 0:
            levels = range(_whole(low.floor()) + 1, _whole(high.floor()) + 1)
        else:
            levels = range(_whole(high.ceil()), _whole(low.ceil()))
        return levels if len(levels) <= 1 else None

    def crossing(self, level: int, start: arb, end: arb) -> arb:
        """The place between two others where the function, which is monotone there, has a value."""
        place = start.union(end)
        for _ in range(_MOST_STEPS):
            middle = place.mid()
            value = self.value(middle) - level
            slope = self.slope(place)
            narrowed = place.intersection(middle - value / slope)
            if not narrowed.rad() < place.rad() / 2:
                if value.contains(0) or place.rel_accuracy_bits() > precision() - _GUARD:
                    return narrowed
                rises = (value < 0) == (slope > 0)
                half = middle.union(place.upper()) if rises else middle.union(place.lower())
                narrowed = narrowed.intersection(half)
            place = narrowed
        raise _UnknownPlaceError


def _sign(x: arb) -> int:
    """The sign of a ball, 0 where it is not known."""
    return 1 if x > 0 else -1 if x < 0 else 0


def _decided_sign(x: arb) -> int:
    sign = _sign(x)
    if not sign and x != 0:
        raise _UnknownPlaceError
    return sign


def _whole(x: arb) -> int:
    """A whole number that is known."""
    if not x.is_exact():
        raise _UnknownPlaceError
    return int(x.unique_fmpz())
