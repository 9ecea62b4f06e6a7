"""Writes formulas as quotients of products over a common denominator and cancels common factors, by the algebra of
multivariate polynomials with integer coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from itertools import product as pairs
from typing import Any

from gradcli.formulas.simplification.algebra import Algebra, Formula, Product, Sum, Unit, is_constant, topological_order
from gradcli.formulas.simplification.numbers import TypedDecimal, content
from gradcli.formulas.simplification.trigonometric_identities import with_pythagorean_identities
from gradcli.named_tuples import NamedTuple

# Sums with more variables, larger exponents or larger coefficients are not read as polynomials.
_MOST_VARIABLES = 8
_LARGEST_EXPONENT = 64
_LARGEST_COEFFICIENT = 10**12
# Pairs of terms are only combined in sums of at most this many terms.
_MOST_PAIRED = 6
# Upper bound on cancellations in one product.
_MOST_STEPS = 20
_Exponents = tuple[int, ...]
# Limits on the expansion: number of terms of a product, and exponent of a power of a sum.
MOST_TERMS = 30
_LARGEST_POWER = 8


class _SharedPolynomials(NamedTuple):
    """Sums as polynomials in shared units: each is a number times the lowest power of every unit times a polynomial."""

    units: Sequence[Unit]
    # The denominator of each unit's exponents: 2 for x where sqrt(x) occurs, so that exponents are integers.
    parts: Sequence[int]
    numbers: list[Fraction]
    lowest: list[Sequence[int]]
    polynomials: list[Polynomial]


class Quotients:
    """Rewrites formulas over a common denominator; among several forms the one of least `length` is taken."""

    def __init__(self, algebra: Algebra, length: Callable[[Formula], Any]) -> None:
        self.algebra = algebra
        self.length = length
        self._flat: dict[Formula, Formula] = {}
        self._divisors: dict[tuple[Formula, Formula], tuple[Formula, Formula, Formula] | None] = {}

    def over_common_denominator(self, root: Formula) -> Formula:
        """A formula without fractions inside sums, with common divisors of numerators and denominators cancelled."""
        for node in topological_order(root):
            if node not in self._flat:
                self._flat[node] = self._as_one_fraction(node)
        return self._flat[root]

    def _as_one_fraction(self, node: Formula) -> Formula:
        """A node as one fraction; its children have been rewritten already."""
        algebra = self.algebra
        if isinstance(node, Sum):
            return self._sum_as_one_fraction(
                algebra.add(*[algebra.scale(c, self._flat[t]) for t, c in node.terms.items()])
            )
        if isinstance(node, Product):
            return self._cancelled(algebra.multiply(*[self._power_of_rewritten(b, e) for b, e in node.powers.items()]))
        return node

    def _power_of_rewritten(self, base: Formula, exponent: Formula) -> Formula:
        """A power: of the rewritten base where the exponent is an integer, else of the base itself."""
        return self.algebra.power(self._flat[base] if self._whole(exponent) else base, exponent)

    def _whole(self, exponent: Formula) -> int:
        """The value of an integer exponent, else 0."""
        n = self.algebra.as_number(exponent)
        return int(n) if n is not None and n.denominator == 1 else 0

    def _sum_as_one_fraction(self, node: Formula) -> Formula:
        """A sum of rewritten terms over their common denominator, with the shortest of the forms of its numerator."""
        algebra = self.algebra
        least: dict[Formula, Fraction] = {}
        for term in algebra.terms(node):
            for base, exponent in algebra.powers(term).items():
                n = algebra.as_number(exponent)
                if n is not None and n < 0 and base is not algebra.euler and not is_constant(base):
                    least[base] = min(n, least.get(base, n))
        if not least or not isinstance(node, Sum) or len(node.terms) == 1:
            return self._cancelled(node)
        denominator = algebra.multiply(*[algebra.power(b, algebra.number(-n)) for b, n in least.items()])
        terms = [algebra.multiply(algebra.scale(c, t), denominator) for t, c in node.terms.items()]
        numerator = expanded(algebra, algebra.add(*[expanded(algebra, t) for t in terms]))
        forms = dict.fromkeys([algebra.add(*terms), numerator, *with_pythagorean_identities(algebra, numerator)])
        return min((self._cancelled(algebra.divide(form, denominator)) for form in forms), key=self.length)

    def with_pairs_combined(self, node: Formula, best: Callable[[Formula], Formula]) -> Iterator[Formula]:
        """Sums in which two terms, one of them a fraction with a sum in its denominator, are combined;
        `best` returns the shortest form of a formula."""
        if not isinstance(node, Sum) or not 2 < len(node.terms) <= _MOST_PAIRED:
            return
        algebra = self.algebra
        for pair in combinations(node.terms, 2):
            if any(isinstance(b, Sum) and algebra.is_negative(e) for t in pair for b, e in algebra.powers(t).items()):
                two = algebra.sum({t: node.terms[t] for t in pair})
                yield algebra.add(algebra.sum({t: c for t, c in node.terms.items() if t not in pair}), best(two))

    def with_factors_multiplied_out(self, node: Formula) -> Iterator[Formula]:
        """Products in which factors of equal power are multiplied out to one sum: (x - 1)*(x + 1) as x**2 - 1."""
        algebra = self.algebra
        _, rest = algebra.split(node)
        groups: dict[int, list[Formula]] = {}
        for base, exponent in algebra.powers(rest).items():
            n = self._whole(exponent)
            if n and base is not algebra.euler:
                groups.setdefault(n, []).append(base)
        for n, bases in groups.items():
            if len(bases) > 1 and any(isinstance(b, Sum) for b in bases):
                inside = algebra.multiply(*bases)
                power = algebra.number(n)
                outside = algebra.divide(node, algebra.power(inside, power))
                yield algebra.multiply(outside, algebra.power(expanded(algebra, inside), power))

    def factored(self, node: Formula) -> Formula:
        """A product in which each sum is factored, as far as square-free factorisation finds factors."""
        algebra = self.algebra
        coefficient, rest = algebra.split(node)
        powers = [(self._factors(b) if isinstance(b, Sum) else b, e) for b, e in algebra.powers(rest).items()]
        return algebra.multiply(algebra.number(coefficient), *[algebra.power(b, e) for b, e in powers])

    def _factors(self, node: Sum) -> Formula:
        read = self._read(node)
        if read is None or len(node.terms) < 3:
            return node
        (polynomial,) = read.polynomials
        self.algebra.charge(len(polynomial) ** 2)
        found = factors(polynomial)
        if found is None or sum(n for _, n in found) < 2:
            return node
        whole = [self.algebra.power(self._formula(read, f), self.algebra.number(n)) for f, n in found]
        return self.algebra.multiply(self._outside(read, 0), *whole)

    # --- cancelling numerators and denominators

    def _cancelled(self, node: Formula) -> Formula:
        for _ in range(_MOST_STEPS):
            shorter = self._with_one_cancelled(self._with_common_powers_outside(node))
            if shorter is None:
                break
            node = shorter
        return node

    def _with_common_powers_outside(self, node: Formula) -> Formula:
        """A product with common powers taken out of its sums, where they cancel with another factor."""
        algebra = self.algebra
        coefficient, rest = algebra.split(node)
        powers = algebra.powers(rest)
        factors = [algebra.number(coefficient)]
        for base, exponent in powers.items():
            n = self._whole(exponent)
            read = self._read(base) if n and isinstance(base, Sum) and len(powers) > 1 else None
            if read is not None and any(
                low * n * (algebra.as_number(powers.get(b, algebra.zero)) or 0) < 0
                for (b, _), low in zip(read.units, read.lowest[0])
            ):
                base = algebra.multiply(self._outside(read, 0), self._formula(read, read.polynomials[0]))
            factors.append(algebra.power(base, exponent))
        return algebra.multiply(*factors)

    def _with_one_cancelled(self, node: Formula) -> Formula | None:
        algebra = self.algebra
        _, rest = algebra.split(node)
        numbers = {b: algebra.as_number(e) for b, e in algebra.powers(rest).items() if isinstance(b, Sum)}
        above = [(b, n) for b, n in numbers.items() if n is not None and n > 0]
        below = [(b, n) for b, n in numbers.items() if n is not None and n < 0]
        for (numerator, n), (denominator, m) in pairs(above, below):
            found = self._divisor(numerator, denominator)
            if found is None:
                continue
            divisor, first, second = found
            if all(k.denominator == 1 or b is divisor for b, k in ((numerator, n), (denominator, m))):
                powers = ((numerator, -n), (denominator, -m), (first, n), (second, m), (divisor, n + m))
                return algebra.multiply(node, *[algebra.power(b, algebra.number(k)) for b, k in powers])
        return None

    def _divisor(self, first: Formula, second: Formula) -> tuple[Formula, Formula, Formula] | None:
        """The greatest common divisor of two sums and their quotients by it; None if they have none."""
        key = first, second
        if key not in self._divisors:
            self._divisors[key] = self._found_divisor(first, second)
        return self._divisors[key]

    def _found_divisor(self, first: Formula, second: Formula) -> tuple[Formula, Formula, Formula] | None:
        read = self._read(first, second)
        if read is None:
            return None
        f, g = read.polynomials
        self.algebra.charge(len(f) * len(g))
        common = common_divisor(f, g)
        if common is None or not any(map(any, common)):
            return None
        sign, divisor = self.algebra.split(self._formula(read, common))
        first, second = (
            self.algebra.multiply(self._outside(read, i), self.algebra.scale(sign, self._formula(read, quotient)))
            for i, p in enumerate((f, g))
            if (quotient := exact_quotient(p, common)) is not None
        )
        return divisor, first, second

    # --- polynomials

    def _read(self, *nodes: Formula) -> _SharedPolynomials | None:
        """Sums as polynomials; None for sums over the limits."""
        units: dict[Unit, int] = {}
        rows = []
        for node in nodes:
            terms = [(self.units(term), c) for term, c in self.algebra.terms(node).items()]
            for powers, _ in terms:
                for unit, n in powers.items():
                    units[unit] = math.lcm(units.get(unit, 1), n.denominator)
            rows.append(terms)
        if not 0 < len(units) <= _MOST_VARIABLES:
            return None
        read = _SharedPolynomials([*units], [*units.values()], [], [], [])
        for terms in rows:
            if not _append(read, [([powers.get(u, 0) * k for u, k in units.items()], c) for powers, c in terms]):
                return None
        return read

    def units(self, term: Formula) -> dict[Unit, Fraction]:
        """The units of which a term is a product, and the number that multiplies the exponent of each."""
        powers = self.algebra.powers(term)
        return dict(unit for base, exponent in powers.items() for unit in self.algebra.units(base, exponent))

    def _outside(self, read: _SharedPolynomials, i: int) -> Formula:
        """The factor of the i-th sum outside its polynomial."""
        return self.algebra.scale(read.numbers[i], self._power_of(read, read.lowest[i]))

    def _formula(self, read: _SharedPolynomials, polynomial: Polynomial) -> Formula:
        algebra = self.algebra
        return algebra.add(*[algebra.scale(c, self._power_of(read, e)) for e, c in polynomial.items()])

    def _power_of(self, read: _SharedPolynomials, exponents: Sequence[int]) -> Formula:
        algebra = self.algebra
        units = zip(read.units, read.parts, exponents)
        return algebra.multiply(
            *[algebra.power(base, algebra.scale(Fraction(n, k), unit)) for (base, unit), k, n in units]
        )


def _append(read: _SharedPolynomials, terms: Sequence[tuple[Sequence[Fraction | int], Fraction]]) -> bool:
    """Append a sum of powers with coefficients to `read`; False if its numbers are too large."""
    lowest = [int(min(column)) for column in zip(*(exponents for exponents, _ in terms))]
    number = content([c for _, c in terms])
    if any(isinstance(c, TypedDecimal) for _, c in terms):
        number = TypedDecimal(number)
    polynomial: dict[tuple[int, ...], int] = {}
    for exponents, c in terms:
        key = tuple(int(n) - low for n, low in zip(exponents, lowest))
        polynomial[key] = polynomial.get(key, 0) + int(c / number)
    if not polynomial or not all(polynomial.values()):
        return False
    if polynomial[max(polynomial)] < 0:
        number, polynomial = -number, {key: -c for key, c in polynomial.items()}
    if max(map(max, polynomial)) > _LARGEST_EXPONENT or max(map(abs, polynomial.values())) > _LARGEST_COEFFICIENT:
        return False
    read.numbers.append(number)
    read.lowest.append(lowest)
    read.polynomials.append(polynomial)
    return True


Polynomial = Mapping[_Exponents, int]

# Limits of the algorithms: evaluation points per gcd, bits of evaluated numbers, and terms of a quotient.
_TRIALS = 4
_MOST_BITS = 10_000
_MOST_QUOTIENT_TERMS = 200


def _primitive_part(f: Polynomial) -> Polynomial:
    """The primitive part: coefficients without a common divisor, the leading one positive."""
    divisor = math.gcd(*f.values()) * (1 if f[max(f)] > 0 else -1)
    return {exponents: c // divisor for exponents, c in f.items()}


def exact_quotient(f: Polynomial, g: Polynomial) -> Polynomial | None:
    """The exact quotient f/g; None where it is not a polynomial with integer coefficients, or has too many terms."""
    lead = max(g)
    left = dict(f)
    quotient: dict[_Exponents, int] = {}
    while left:
        top = max(left)
        c, remainder = divmod(left[top], g[lead])
        step = tuple(map(int.__sub__, top, lead))
        if remainder or min(step, default=0) < 0 or len(quotient) > _MOST_QUOTIENT_TERMS:
            return None
        quotient[step] = c
        for exponents, d in g.items():
            key = tuple(map(int.__add__, exponents, step))
            left[key] = left.get(key, 0) - c * d
            if not left[key]:
                del left[key]
    return quotient


def common_divisor(f: Polynomial, g: Polynomial) -> Polynomial | None:
    """The greatest common divisor; None where it is not found within the limits.

    The heuristic algorithm of Char, Geddes and Gonnet (1989): with a large number in place of a variable, the divisor
    is that of polynomials in one variable fewer, and its digits in that base are the coefficients. The first number and
    the factor between the numbers that are tried are theirs.
    """
    if not f or not g:
        return f or g
    number = math.gcd(*f.values(), *g.values())
    if not next(iter(f)):
        return {(): number}
    f, g = _primitive_part(f), _primitive_part(g)
    x = 2 * min(max(map(abs, f.values())), max(map(abs, g.values()))) + 29
    degree = max(exponents[0] for p in (f, g) for exponents in p)
    for _ in range(_TRIALS):
        if (degree + 1) * x.bit_length() > _MOST_BITS:
            break
        found = common_divisor(_evaluated_at(f, x), _evaluated_at(g, x))
        if found is None:
            break
        candidate = _primitive_part(_with_digits(found, x))
        if exact_quotient(f, candidate) is not None and exact_quotient(g, candidate) is not None:
            return {exponents: c * number for exponents, c in candidate.items()}
        x = x * 73794 // 27011
    return None


def _evaluated_at(f: Polynomial, x: int) -> Polynomial:
    """The polynomial evaluated at x in its first variable."""
    total: dict[_Exponents, int] = {}
    for (n, *rest), c in f.items():
        total[tuple(rest)] = total.get(tuple(rest), 0) + c * x**n
    return {exponents: c for exponents, c in total.items() if c}


def _with_digits(f: Polynomial, x: int) -> Polynomial:
    """The polynomial whose value at x in the first variable is `f`, with coefficients from -x/2 to x/2."""
    found: dict[_Exponents, int] = {}
    for exponents, c in f.items():
        n = 0
        while c:
            digit = (c + x // 2) % x - x // 2
            if digit:
                found[n, *exponents] = digit
            c, n = (c - digit) // x, n + 1
    return found


Factors = Sequence[tuple[Polynomial, int]]


def factors(f: Polynomial) -> Factors | None:
    """The factors of a primitive polynomial with their multiplicities; None where they are not found within the limits.

    Factors of the same multiplicity that depend on the same variables may be returned as one.
    """
    variable = next((i for i in range(len(next(iter(f)))) if any(exponents[i] for exponents in f)), None)
    if variable is None:
        return []
    coefficients = _coefficients(f, variable)
    constant: Polynomial | None = coefficients[0]
    for coefficient in coefficients[1:]:
        constant = None if constant is None else common_divisor(constant, coefficient)
    rest = None if constant is None else exact_quotient(f, constant)
    if constant is None or rest is None:
        return None
    of_rest, of_constant = _square_free_factors(rest, variable), factors(_primitive_part(constant))
    return None if of_rest is None or of_constant is None else [*of_rest, *of_constant]


def _coefficients(f: Polynomial, i: int) -> Sequence[Polynomial]:
    """The coefficients of the powers of variable i."""
    found: dict[int, dict[_Exponents, int]] = {}
    for exponents, c in f.items():
        found.setdefault(exponents[i], {})[(*exponents[:i], 0, *exponents[i + 1 :])] = c
    return list(found.values())


def _square_free_factors(f: Polynomial, i: int) -> Factors | None:
    """The factors by multiplicity: Yun's algorithm (1976). None where they are not found within the limits."""
    slope = _derivative(f, i)
    common = common_divisor(f, slope)
    if common is None:
        return None
    found: list[tuple[Polynomial, int]] = []
    b, c = exact_quotient(f, common), exact_quotient(slope, common)
    n = 1
    while b is not None and c is not None and any(map(any, b)):
        d = _difference(c, _derivative(b, i))
        factor = common_divisor(b, d)
        if factor is None:
            return None
        if any(map(any, factor)):
            found.append((_primitive_part(factor), n))
        b, c, n = exact_quotient(b, factor), exact_quotient(d, factor), n + 1
    return None if b is None or c is None else found


def _derivative(f: Polynomial, i: int) -> Polynomial:
    return {(*e[:i], e[i] - 1, *e[i + 1 :]): c * e[i] for e, c in f.items() if e[i]}


def _difference(f: Polynomial, g: Polynomial) -> Polynomial:
    total = dict(f)
    for exponents, c in g.items():
        total[exponents] = total.get(exponents, 0) - c
    return {exponents: c for exponents, c in total.items() if c}


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
