"""Discs of complex time around a place on which a solution is known to exist, with bounds of how far it moves.

If |f| <= g on the box of all states that are at most b from the start, then |y(s) - y(0)| <= b for |s| <= r if g*r <= b.
Discs are made larger step by step, each with the slopes on its box. By Cauchy's estimate the coefficient of order k of a
solution is at most b/r**k.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flint import acb, arb

from gradcli.functionals.ode.ball_series import ComplexField
from gradcli.named_tuples import NamedTuple

# Bounds on the number of discs at one place, and of attempts at one of them.
_MOST_DISCS, _MOST_ATTEMPTS = 40, 10
# The factor by which a disc adds more radius than the last.
_GROWTH = 1.25
# The width of the first box that is tried, relative to the movement by the slopes before it.
_ALLOWANCE = 1.25


class Disc(NamedTuple):
    """A radius, bounds of how far each state moves on the disc, and the box of states and of time there."""

    radius: arb
    moves: Sequence[arb]
    time: acb
    box: Sequence[acb]


def discs(field: ComplexField, time: arb, states: Sequence[arb], given: Sequence[arb], first: float) -> Iterator[Disc]:
    """Discs around a place, each larger than the one before, which begin with a radius of about `first` or less."""
    reads = [acb(g) for g in given]
    radius, moves = arb(0), [arb(0)] * len(states)
    slopes = field.sizes(acb(time), [acb(y) for y in states], reads)
    if not all(s.is_finite() for s in slopes):
        return
    more = first
    for _ in range(_MOST_DISCS):
        for attempt in range(_MOST_ATTEMPTS):
            wider = radius + arb(more)
            allowed = [(m + _ALLOWANCE * more * s).upper() for m, s in zip(moves, slopes)]
            place, box = _around(time, wider), [_around(y, a) for y, a in zip(states, allowed)]
            found = field.sizes(place, box, reads)
            moved = [(m + more * s).upper() for m, s in zip(moves, found)]
            if all(m <= a for m, a in zip(moved, allowed)):
                break
            # States that begin to move have boxes that are too small before they have any.
            finite = all(s.is_finite() for s in found)
            slopes = found if finite else slopes
            if attempt % 2 or not finite:
                more /= 2
        else:
            return
        radius, moves, slopes = wider.mid() if wider.is_exact() else wider.lower(), moved, found
        yield Disc(radius, moves, place, box)
        more *= _GROWTH


def _around(number: arb, distance: arb) -> acb:
    return acb(number + arb(0, distance), arb(0, distance))
