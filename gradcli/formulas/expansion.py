"""Products of sums as sums."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from gradcli.formulas.algebra import Algebra, Formula, Sum

# Products are expanded to at most this many terms, and powers up to this exponent.
MOST_TERMS = 30
_LARGEST_POWER = 8


def expanded(algebra: Algebra, node: Formula) -> Formula:
    """A product of sums as a sum; what has too many terms as it is."""
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
    """A power as factors, of which those that are sums are multiplied out: u**(3/2) is u*sqrt(u)."""
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
