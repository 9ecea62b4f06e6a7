"""Infinite sums with proved digits: terms that are added up, and a bound of those that follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import arb

from gradcli import limits
from gradcli.arrays.flint.balls import Balls, precision
from gradcli.errors import BackendError
from gradcli.functionals.body import Body
from gradcli.functionals.complex_rules import complex_ball
from gradcli.functionals.integrals.growth import add, constant, distance, growth, negative

# The first number of terms after which the rest is bounded, and the largest one.
_FIRST, _MOST_TERMS = 16, 100_000
# The cost of a term, in eighths of a step.
_TERM = 32


def infinite_sum(first: int, direction: int, reads: Sequence[Any], body: Body) -> Balls:
    """The sum of the terms `first`, `first` + `direction`, and so on without end.

    Raises BackendError where the terms are not known to decrease fast enough.
    """
    numbers = [complex_ball(read).real for read in reads]
    small, count = arb(2) ** -precision(), _FIRST
    while True:
        rest = _rest(body, first, direction, numbers, count)
        if rest is not None and rest < small:
            break
        count *= 2
        if count > _MOST_TERMS:
            raise BackendError(
                "there are no proved digits of an infinite sum whose terms are not known to decrease fast",
                hint="leave out --digits",
            )
    total: Any = Balls(arb(0))
    for k in range(count):
        limits.charge_steps(_TERM)
        total = total + body(float(first + direction * k), *reads)[0]
    return Balls(complex_ball(total).real + arb(0, rest))


def _rest(body: Body, first: int, direction: int, reads: Sequence[arb], count: int) -> arb | None:
    """A bound of the sum of the magnitudes of the terms from number `count` on: the integral, from the number before, of a
    bound that falls."""
    begin = arb(count - 1)
    d = distance(begin)
    place = add(constant(arb(first)), d if direction > 0 else negative(d))
    return growth(body.program, place, reads).rest(begin)
