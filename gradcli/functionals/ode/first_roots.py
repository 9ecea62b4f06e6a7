"""The first root of a polynomial in an interval, by its Bernstein coefficients, so that none is missed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

# Halvings of the interval until a root is located.
_MOST_HALVINGS = 60
# Newton steps that follow, and how far they go at most, as a part of the interval.
_NEWTON_STEPS, _MOST_POLISHED = 2, 1e-9
# A constant coefficient is rounding if it is this part of what the others sum up to.
_ROUNDING = 1e-12


def first_root(coefficients: Sequence[float], end: float) -> float | None:
    """The first t from 0 to `end` at which a power series that begins positive becomes negative; None if there is none.

    If it begins with 0, but for rounding, its sign is that of what follows, and 0.0 is returned if that is negative.
    """
    scaled = [c * end**k for k, c in enumerate(coefficients)]
    size = sum(map(abs, scaled[1:]))
    if scaled[0] > size:
        return None
    while len(scaled) > 1 and abs(scaled[0]) <= _ROUNDING * sum(map(abs, scaled)):
        scaled = scaled[1:]
    if scaled[0] < 0:
        return 0.0
    place = _first(_bernstein(scaled), 0.0, 1.0, _MOST_HALVINGS)
    return None if place is None else _polished(scaled, place) * end


def _polished(coefficients: Sequence[float], place: float) -> float:
    """A root of a polynomial between 0 and 1 to the last bits, which Bernstein coefficients of a high degree lack."""
    for _ in range(_NEWTON_STEPS):
        value = slope = 0.0
        for c in reversed(coefficients):
            slope = slope * place + value
            value = value * place + c
        step = value / slope if slope else 0.0
        # A double root is where bisection has found it.
        if abs(step) > _MOST_POLISHED or not 0.0 < place - step <= 1.0:
            break
        place -= step
    return place


def _bernstein(coefficients: Sequence[float]) -> list[float]:
    n = len(coefficients) - 1
    return [sum(math.comb(j, k) / math.comb(n, k) * coefficients[k] for k in range(j + 1)) for j in range(n + 1)]


def _first(values: list[float], low: float, high: float, halvings: int) -> float | None:
    """The first place at which a polynomial with these Bernstein coefficients on low..high becomes negative."""
    if min(values) >= 0:
        return None
    middle = 0.5 * (low + high)
    if values[0] < 0:
        return low
    if not halvings or not low < middle < high:
        return high
    left, right = _halves(values)
    found = _first(left, low, middle, halvings - 1)
    return _first(right, middle, high, halvings - 1) if found is None else found


def _halves(values: list[float]) -> tuple[list[float], list[float]]:
    """The Bernstein coefficients on both halves of the interval."""
    left, right = [], []
    while values:
        left.append(values[0])
        right.append(values[-1])
        values = [0.5 * (a + b) for a, b in itertools.pairwise(values)]
    return left, right[::-1]
