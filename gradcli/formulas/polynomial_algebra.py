"""Multivariate polynomials with integer coefficients: division, greatest common divisors, square-free factors.

A polynomial maps tuples of exponents, one for each variable, to nonzero coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

Exponents = tuple[int, ...]
Polynomial = Mapping[Exponents, int]

# Limits of the algorithms: evaluation points per gcd, bits of evaluated numbers, and terms of a quotient.
_TRIALS = 4
_MOST_DIGITS = 10_000
_MOST_TERMS = 200


def primitive_part(f: Polynomial) -> Polynomial:
    """The primitive part: coefficients without a common divisor, the leading one positive."""
    divisor = math.gcd(*f.values()) * (1 if f[max(f)] > 0 else -1)
    return {exponents: c // divisor for exponents, c in f.items()}


def exact_quotient(f: Polynomial, g: Polynomial) -> Polynomial | None:
    """The exact quotient f/g; None where it is not a polynomial with integer coefficients, or has too many terms."""
    lead = max(g)
    left = dict(f)
    quotient: dict[Exponents, int] = {}
    while left:
        top = max(left)
        c, remainder = divmod(left[top], g[lead])
        step = tuple(map(int.__sub__, top, lead))
        if remainder or min(step, default=0) < 0 or len(quotient) > _MOST_TERMS:
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
    is that of polynomials in one variable fewer, and its digits in that base are the coefficients."""
    if not f or not g:
        return f or g
    number = math.gcd(*f.values(), *g.values())
    if not next(iter(f)):
        return {(): number}
    f, g = primitive_part(f), primitive_part(g)
    x = 2 * min(max(map(abs, f.values())), max(map(abs, g.values()))) + 29
    degree = max(exponents[0] for p in (f, g) for exponents in p)
    for _ in range(_TRIALS):
        if (degree + 1) * x.bit_length() > _MOST_DIGITS:
            break
        found = common_divisor(_evaluated_at(f, x), _evaluated_at(g, x))
        if found is None:
            break
        candidate = primitive_part(_with_digits(found, x))
        if exact_quotient(f, candidate) is not None and exact_quotient(g, candidate) is not None:
            return {exponents: c * number for exponents, c in candidate.items()}
        x = x * 73794 // 27011
    return None


def _evaluated_at(f: Polynomial, x: int) -> Polynomial:
    """The polynomial evaluated at x in its first variable."""
    total: dict[Exponents, int] = {}
    for (n, *rest), c in f.items():
        total[tuple(rest)] = total.get(tuple(rest), 0) + c * x**n
    return {exponents: c for exponents, c in total.items() if c}


def _with_digits(f: Polynomial, x: int) -> Polynomial:
    """The polynomial whose value at x in the first variable is `f`, with coefficients from -x/2 to x/2."""
    found: dict[Exponents, int] = {}
    for exponents, c in f.items():
        n = 0
        while c:
            digit = (c + x // 2) % x - x // 2
            if digit:
                found[n, *exponents] = digit
            c, n = (c - digit) // x, n + 1
    return found


def factors(f: Polynomial) -> Iterator[tuple[Polynomial, int]]:
    """The factors of a primitive polynomial with their multiplicities. Factors of the same multiplicity that depend on
    the same variables may be returned as one. Yields nothing where they are not found within the limits."""
    variable = next((i for i in range(len(next(iter(f)))) if any(exponents[i] for exponents in f)), None)
    if variable is None:
        return
    coefficients = _coefficients(f, variable)
    constant: Polynomial | None = coefficients[0]
    for coefficient in coefficients[1:]:
        constant = None if constant is None else common_divisor(constant, coefficient)
    rest = None if constant is None else exact_quotient(f, constant)
    if constant is None or rest is None:
        return
    yield from _square_free_factors(rest, variable)
    yield from factors(primitive_part(constant))


def _coefficients(f: Polynomial, i: int) -> Sequence[Polynomial]:
    """The coefficients of the powers of variable i."""
    found: dict[int, dict[Exponents, int]] = {}
    for exponents, c in f.items():
        found.setdefault(exponents[i], {})[(*exponents[:i], 0, *exponents[i + 1 :])] = c
    return list(found.values())


def _square_free_factors(f: Polynomial, i: int) -> Iterator[tuple[Polynomial, int]]:
    """The factors by multiplicity: Yun's algorithm (1976)."""
    slope = _derivative(f, i)
    common = common_divisor(f, slope)
    if common is None:
        return
    b, c = exact_quotient(f, common), exact_quotient(slope, common)
    n = 1
    while b is not None and c is not None and any(map(any, b)):
        d = _difference(c, _derivative(b, i))
        found = common_divisor(b, d)
        if found is None:
            return
        if any(map(any, found)):
            yield primitive_part(found), n
        b, c, n = exact_quotient(b, found), exact_quotient(d, found), n + 1


def _derivative(f: Polynomial, i: int) -> Polynomial:
    return {(*e[:i], e[i] - 1, *e[i + 1 :]): c * e[i] for e, c in f.items() if e[i]}


def _difference(f: Polynomial, g: Polynomial) -> Polynomial:
    total = dict(f)
    for exponents, c in g.items():
        total[exponents] = total.get(exponents, 0) - c
    return {exponents: c for exponents, c in total.items() if c}
