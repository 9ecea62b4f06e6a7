"""Partial derivatives of any order, by parameters too, of the analytic functions that FLINT has.

A derivative is a coefficient of the Taylor series, computed as a mean of the function over a circle around the point
(Cauchy's formula by the trapezoidal rule). Its error is bounded by the largest magnitude of the function on a larger
circle, which ball arithmetic gives, so that the resulting ball is proved.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from flint import acb, arb, fmpz

from gradcli.arrays.flint.balls import UNDEFINED, Number, UndecidedError, precise, precision
from gradcli.arrays.flint.flint_numbers import with_bounds
from gradcli.named_tuples import NamedTuple

# The least working precision in bits for bounds of magnitudes, and the guard bits beyond those that are known to be
# lost.
_BOUND_BITS, _GUARD = 60, 20
# The search stops at a bound on the larger circles that exceeds the value by less than a factor of 2**_GOOD.
_GOOD = 64
# The maximum number of times that the larger circles are shrunk, and the factor.
_SHRINKS, _FACTOR = 30, Fraction(1, 4)
# The maximum number of times that the precision is raised until the error is small relative to the derivative.
_ROUNDS = 3
# The number of balls that cover a larger circle, and their radius relative to that of the circle: the chord of half
# their arc, rounded up.
_ARCS = 8
_ARC_RADIUS = 0.4


class Analytic(NamedTuple):
    """A function of complex balls.

    It is analytic on balls for which `inside` is true and its value is finite. `entire` has the positions of the
    operands in which it has no singularities, even if its formula has some. `bound` returns a bound of the magnitude on
    balls, not finite if there is none, where the direct evaluation is too wide to be useful.
    """

    value: Callable[..., Any]
    inside: Callable[..., bool]
    entire: frozenset[int] = frozenset()
    bound: Callable[..., Any] | None = None


class _Polydisc(NamedTuple):
    """The radii of discs around the operands in which a function is analytic, and a bound of its magnitude there."""

    radii: Sequence[Any]
    bound: Any

    def scale(self, orders: Sequence[int]) -> Any:
        """Cauchy's bound of a derivative at the centres of the discs."""
        return self.bound * math.prod((fmpz.fac_ui(n) / r**n for n, r in zip(orders, self.radii) if n), start=arb(1))


def derivative(function: Analytic, numbers: Sequence[Number], orders: Sequence[int]) -> Number:
    """The partial derivative of the given order in each operand; UNDEFINED if it certainly is not real.

    The ball may have fewer digits than the precision, where _ROUNDS attempts do not suffice. Raises UndecidedError if
    no discs around the operands are found in which the function is certainly analytic.
    """
    balls = [arb(x) for x in numbers]
    if not any(orders):
        return _real(function.value(*map(acb, balls)))
    discs = _best_polydisc(function, balls, orders)
    scale = discs.scale(orders)
    reach = scale * _relative_variation(balls, orders, discs.radii)
    middles = [ball.mid() for ball in balls]
    # More points than the order, so that no coefficient of a lower order contributes to the mean.
    counts = [n + 2 - n % 2 if n else 1 for n in orders]
    bits = precision()
    extra = 0
    for _ in range(_ROUNDS):
        # The radii of the small circles are those of the large ones times 2**-shift.
        shifts = [-(-(bits + extra + _GUARD) // count) if n else 0 for n, count in zip(orders, counts)]
        with precise(bits + extra + sum(n * shift for n, shift in zip(orders, shifts)) + _GUARD):
            small = [None if r is None else r * arb(2) ** -s for r, s in zip(discs.radii, shifts)]
            mean = _mean(function.value, middles, orders, counts, small)
            if not mean.imag.contains(0):
                return UNDEFINED
        # With c points, the coefficients of the orders n + c, n + 2*c, … contribute too. Cauchy's bound of each is that
        # of the one before times 2**(-shift*c).
        aliasing = (
            math.prod((1 / (1 - arb(2) ** (-s * c)) for s, c, n in zip(shifts, counts, orders) if n), start=arb(1)) - 1
        )
        found = mean.real + arb(0, (scale * aliasing).abs_upper())
        if found.rel_accuracy_bits() >= bits - _GUARD:
            break
        extra += bits - max(found.rel_accuracy_bits(), -4 * bits)
    return with_bounds(found + arb(0, reach.abs_upper()))


def _real(value: Any) -> Number:
    """A complex ball as a real number; UNDEFINED if its imaginary part is certainly nonzero."""
    return UNDEFINED if value.is_finite() and not value.imag.contains(0) else with_bounds(value.real)


def _relative_variation(balls: Sequence[Any], orders: Sequence[int], radii: Sequence[Any]) -> Any:
    """A bound of the relative variation of a derivative within the balls of the operands.

    It follows from Cauchy's bounds of the next derivatives.
    """
    shares = [b.rad() / r if r is not None else arb(0) for b, r in zip(balls, radii)]
    powers = [(1 - share) ** -(n + 1) for share, n in zip(shares, orders)]
    changes = (share * (n + 1) / (1 - share) for share, n in zip(shares, orders))
    return math.prod(powers, start=arb(1)) * sum(changes, arb(0))


def _best_polydisc(function: Analytic, balls: Sequence[Any], orders: Sequence[int]) -> _Polydisc:
    """The discs that give the smallest bound of the derivative, of those that are tried until the bound of the function
    is good enough. Raises UndecidedError if there are none."""
    found = None
    with precise(max(_BOUND_BITS, precision())):
        here = function.value(*(acb(b.mid()) for b in balls)).abs_upper()
        for radii in _candidates(balls, [n > 0 or not b.is_exact() for n, b in zip(orders, balls)]):
            if any(r is not None and not r > 2 * b.rad() for r, b in zip(radii, balls)):
                break
            bound = _bound(function, balls, radii)
            if bound is not None:
                discs = _Polydisc(radii, bound)
                if found is None or discs.scale(orders) < found.scale(orders):
                    found = discs
                if bound < here * arb(2) ** _GOOD:
                    break
    if found is None:
        raise UndecidedError("it cannot be told whether a function is differentiable")
    return found


def _candidates(balls: Sequence[Any], varied: Sequence[bool]) -> Iterator[list[Any]]:
    """Decreasing radii, None for operands that do not vary.

    They start at a quarter of the sizes of the operands, and then stay below their distances from 0 and 1, where most
    functions have their singularities.
    """
    sizes = [abs(b.mid()) for b in balls]
    near = [min((d for d in (s, abs(b.mid() - 1)) if not d.is_zero()), default=arb(1)) for s, b in zip(sizes, balls)]
    yield [(s.max(1) / 4).mid() if v else None for s, v in zip(sizes, varied)]
    for k in range(_SHRINKS):
        factor = arb(_FACTOR.numerator) / _FACTOR.denominator
        yield [(n.min(1) / 4 * factor**k).mid() if v else None for n, v in zip(near, varied)]


def _bound(function: Analytic, balls: Sequence[Any], radii: Sequence[Any]) -> Any:
    """A bound of the magnitude of a function on the discs around the operands, None if there is none.

    For the operands in `entire` it is taken on the circles around the discs, by the maximum principle.
    """
    wide = [acb(b) if r is None else _disc(b.mid(), r) for b, r in zip(balls, radii)]
    if not function.inside(*wide):
        return None
    if function.bound is not None:
        value = function.bound(*wide)
        if value.is_finite():
            return value
    whole = function.value(*wide)
    if whole.is_finite() or not function.entire:
        return whole.abs_upper() if whole.is_finite() else None
    covers = []
    for place, (ball, radius) in enumerate(zip(balls, radii)):
        if radius is None:
            covers.append([acb(ball)])
        elif place in function.entire:
            covers.append([_disc(ball.mid() + radius * _root(k, _ARCS), radius * _ARC_RADIUS) for k in range(_ARCS)])
        else:
            covers.append([_disc(ball.mid(), radius)])
    largest = arb(0)
    for discs in itertools.product(*covers):
        value = function.value(*discs)
        if not value.is_finite():
            return None
        largest = largest.max(value.abs_upper())
    return largest


def _disc(middle: Any, radius: Any) -> Any:
    width = arb(0, radius.abs_upper())
    return middle + acb(width, width)


def _mean(
    function: Callable[..., Any],
    middles: Sequence[Any],
    orders: Sequence[int],
    counts: Sequence[int],
    radii: Sequence[Any],
) -> Any:
    """The derivative at `middles` by the trapezoidal rule, with `counts` points on each circle."""
    circles = [
        [(m + r * _root(k, c), _root(-k * n, c)) for k in range(c)] if n else [(acb(m), acb(1))]
        for m, n, c, r in zip(middles, orders, counts, radii)
    ]
    total = acb(0)
    for points in itertools.product(*circles):
        total += function(*(acb(x) for x, _ in points)) * math.prod((w for _, w in points), start=acb(1))
    for n, c, r in zip(orders, counts, radii):
        if n:
            total *= fmpz.fac_ui(n) / (c * r**n)
    return total


def _root(k: int, count: int) -> Any:
    """exp(2*pi*i*k/count)"""
    return (acb(2 * k) / count).exp_pi_i()
