"""Interpolates all mixed derivatives from univariate Taylor series along directions.

A. Griewank, J. Utke and A. Walther, "Evaluating higher derivative tensors by forward propagation of univariate Taylor
series", Mathematics of Computation 69 (2000).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import Array, ratio

if TYPE_CHECKING:
    from fractions import Fraction

# A multi-index, of a derivative or a direction: sorted pairs of a variable and its multiplicity.
Counts = tuple[tuple[int, int], ...]

# Costs in eighths of steps: of a direction, and of a term of its weight.
_DIRECTION = 8
_TERM = 120


def counts(variables: Sequence[int]) -> Counts:
    return tuple(sorted(Counter(variables).items()))


def directions(variables: int, order: int) -> Iterator[Counts]:
    """Yield the directions whose series determine all derivatives by these variables up to `order`: all sums of `order`
    unit vectors."""
    return map(counts, combinations_with_replacement(range(variables), order))


def multiplicities(directions: Sequence[Counts], variables: range, dtype: str) -> Any:
    """A matrix with the multiplicity of each of `variables` in each direction."""
    rows = arrays.numpy_namespace().zeros((len(directions), len(variables)), dtype)
    for row, direction in zip(rows, directions):
        for variable, number in direction:
            if variable in variables:
                row[variable - variables.start] = number
    return rows


class Weights:
    """The weights that combine Taylor coefficients along `directions` of one order to mixed derivatives."""

    def __init__(self, order: int) -> None:
        self.order = order
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], Array] = {}

    def of(self, derivative: Counts) -> list[tuple[Counts, Array]]:
        """Return pairs of direction and weight: the derivative is the weighted sum of the coefficients of its order in
        the series along these directions."""
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
    """Yield the tuples of `parts` nonnegative integers with this sum."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in _compositions(total - first, parts - 1))


def _weight(j: tuple[int, ...], i: tuple[int, ...]) -> Fraction:
    """The coefficient gamma(j, i) of the paper."""
    # Imported on demand: it takes a while, and most runs do not need it.
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
