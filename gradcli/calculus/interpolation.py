"""All mixed derivatives from Taylor series along directions.

A. Griewank, J. Utke and A. Walther, "Evaluating higher derivative tensors by forward propagation
of univariate Taylor series", Mathematics of Computation 69 (2000).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING

from gradcli import limits
from gradcli.arrays.constants import Array, ratio

if TYPE_CHECKING:
    from fractions import Fraction

# How often each variable is in a derivative, or in a direction: sorted pairs of variable and number.
Counts = tuple[tuple[int, int], ...]

# In eighths of steps: a direction that is looked at, and a term of its weight.
_DIRECTION = 8
_TERM = 120


def counts(variables: Sequence[int]) -> Counts:
    return tuple(sorted(Counter(variables).items()))


def directions(variables: int, order: int) -> Iterator[Counts]:
    """The directions along which series give all derivatives by so many variables up to `order`:
    all sums of `order` unit vectors."""
    return map(counts, combinations_with_replacement(range(variables), order))


class Weights:
    """What derivatives are made of, in series along the `directions` for one order."""

    def __init__(self, order: int) -> None:
        self.order = order
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], Array] = {}

    def of(self, derivative: Counts) -> list[tuple[Counts, Array]]:
        """Directions with weights: the derivative is the weighted sum of the coefficients of its own order
        in the series along these."""
        variables = [v for v, _ in derivative]
        numbers = tuple(n for _, n in derivative)
        limits.charge_steps(_DIRECTION * math.comb(self.order + len(numbers) - 1, len(numbers) - 1))
        found = ((n, self._weight(numbers, n)) for n in _compositions(self.order, len(numbers)))
        return [(tuple((v, n) for v, n in zip(variables, ns) if n), w) for ns, w in found if w]

    def _weight(self, j: tuple[int, ...], i: tuple[int, ...]) -> Array:
        known = self._known.get((j, i))
        if known is None:
            limits.charge_steps(_TERM * math.prod(n + 1 for n in j))
            known = self._known[j, i] = ratio(*_weight(j, i).as_integer_ratio())
        return known


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """The tuples of so many numbers with this sum."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in _compositions(total - first, parts - 1))


def _weight(j: tuple[int, ...], i: tuple[int, ...]) -> Fraction:
    """gamma(j, i) of the paper."""
    # Imported where it is needed: it takes a while, and most runs do without.
    from fractions import Fraction

    order, total = sum(i), Fraction(0)
    for k in product(*(range(n + 1) for n in j)):
        size = sum(k)
        if size:
            sign = (-1) ** (sum(j) - size)
            ways = math.prod(map(math.comb, j, k))
            share = math.prod(_binomial(Fraction(order * a, size), b) for a, b in zip(k, i))
            total += sign * ways * share * Fraction(size, order) ** sum(j)
    return total


def _binomial(n: Fraction, k: int) -> Fraction:
    return math.prod(((n - m) / (m + 1) for m in range(k)), start=n**0)
