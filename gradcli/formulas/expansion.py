"""Multiplies out products of sums."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from gradcli.formulas.algebra import Algebra, Formula, Sum

# Limits on the expansion: number of terms of a product, and exponent of a power of a sum.
MOST_TERMS = 30
_LARGEST_POWER = 8


def expanded(algebra: Algebra, node: Formula) -> Formula:
    """A product of sums as a sum; returned unchanged if the result would have more than MOST_TERMS terms."""
    total: dict[Formula, Fraction] = {}
    for term, c in algebra.terms(node).items():
        for product, d in _expanded_product(algebra, term).items():
            total[product] = total.get(product, Fraction(0)) + c * d
        if len(total) > MOST_TERMS:
            return node
    return algebra.add(*[algebra.scale(c, t) for t, c in total.items()])


def _expanded_product(algebra: Algebra, term: Formula) -> Mapping[Formula, Fraction]:
    found: dict[Formula, Fraction] = {algebra.one: Fraction(1)}
    for base, exponent in algebra.powers(term).items():
        for part in _parts(algebra, base, exponent):
            found = _all_products(algebra, found, algebra.terms(part))
            if len(found) > MOST_TERMS:
                return {term: Fraction(1)}
    return found


def _parts(algebra: Algebra, base: Formula, exponent: Formula) -> list[Formula]:
    """A power of a sum as factors that can be multiplied out: u**(3/2) as u and sqrt(u)."""
    n = algebra.as_number(exponent)
    if not isinstance(base, Sum) or n is None or not 0 < n <= _LARGEST_POWER:
        return [algebra.power(base, exponent)]
    whole = int(n)
    return [base] * whole + [algebra.power(base, algebra.number(n - whole))] * (n != whole)


def _all_products(
    algebra: Algebra, first: Mapping[Formula, Fraction], second: Mapping[Formula, Fraction]
) -> dict[Formula, Fraction]:
    total: dict[Formula, Fraction] = {}
    for a, c in first.items():
        for b, d in second.items():
            for term, e in algebra.terms(algebra.multiply(a, b)).items():
                total[term] = total.get(term, Fraction(0)) + c * d * e
    return total
