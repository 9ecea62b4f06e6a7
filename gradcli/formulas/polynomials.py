"""Polynomials with whole coefficients: quotients, greatest common divisors, repeated factors.

A polynomial is a mapping of exponents, a tuple with one for each variable, to coefficients that are not 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

Exponents = tuple[int, ...]
Polynomial = Mapping[Exponents, int]

# How many points are tried at which polynomials are looked at as numbers, binary digits that take too long, and terms.
_TRIALS = 4
_MOST_DIGITS = 10_000
_MOST_TERMS = 200


def primitive(f: Polynomial) -> Polynomial:
    """Without a number that divides all coefficients, the first of them positive."""
    divisor = math.gcd(*f.values()) * (1 if f[max(f)] > 0 else -1)
    return {exponents: c // divisor for exponents, c in f.items()}


def divided(f: Polynomial, g: Polynomial) -> Polynomial | None:
    """f/g; None where that is no polynomial with whole coefficients, or one of very many terms."""
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
    """The greatest common divisor; None where it is not found in the time that this may take.

    The heuristic algorithm of Char, Geddes and Gonnet (1989): at a large number in the place of a variable, the divisor
    is that of polynomials of one variable fewer, whose digits in that base are its coefficients.
    """
    if not f or not g:
        return f or g
    number = math.gcd(*f.values(), *g.values())
    if not next(iter(f)):
        return {(): number}
    f, g = primitive(f), primitive(g)
    x = 2 * min(max(map(abs, f.values())), max(map(abs, g.values()))) + 29
    degree = max(exponents[0] for p in (f, g) for exponents in p)
    for _ in range(_TRIALS):
        if (degree + 1) * x.bit_length() > _MOST_DIGITS:
            break
        found = common_divisor(_at(f, x), _at(g, x))
        if found is None:
            break
        candidate = primitive(_with_digits(found, x))
        if divided(f, candidate) is not None and divided(g, candidate) is not None:
            return {exponents: c * number for exponents, c in candidate.items()}
        x = x * 73794 // 27011
    return None


def _at(f: Polynomial, x: int) -> Polynomial:
    """A polynomial where its first variable is a number."""
    total: dict[Exponents, int] = {}
    for (n, *rest), c in f.items():
        total[tuple(rest)] = total.get(tuple(rest), 0) + c * x**n
    return {exponents: c for exponents, c in total.items() if c}


def _with_digits(f: Polynomial, x: int) -> Polynomial:
    """The polynomial that is `f` where its first variable is x, with coefficients from -x/2 to x/2."""
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
    """Factors of a primitive polynomial and how often each of them is there: those that are there as often, and depend
    on the same variables, may be one. Nothing where they are not found in the time that this may take."""
    variable = next((i for i in range(len(next(iter(f)))) if any(exponents[i] for exponents in f)), None)
    if variable is None:
        return
    coefficients = _coefficients(f, variable)
    constant: Polynomial | None = coefficients[0]
    for coefficient in coefficients[1:]:
        constant = None if constant is None else common_divisor(constant, coefficient)
    rest = None if constant is None else divided(f, constant)
    if constant is None or rest is None:
        return
    yield from _repeated(rest, variable)
    yield from factors(primitive(constant))


def _coefficients(f: Polynomial, i: int) -> Sequence[Polynomial]:
    """Those of the powers of a variable."""
    found: dict[int, dict[Exponents, int]] = {}
    for exponents, c in f.items():
        found.setdefault(exponents[i], {})[(*exponents[:i], 0, *exponents[i + 1 :])] = c
    return list(found.values())


def _repeated(f: Polynomial, i: int) -> Iterator[tuple[Polynomial, int]]:
    """Factors by how often they are there: Yun's algorithm (1976)."""
    slope = _derivative(f, i)
    common = common_divisor(f, slope)
    if common is None:
        return
    b, c = divided(f, common), divided(slope, common)
    n = 1
    while b is not None and c is not None and any(map(any, b)):
        d = _difference(c, _derivative(b, i))
        found = common_divisor(b, d)
        if found is None:
            return
        if any(map(any, found)):
            yield primitive(found), n
        b, c, n = divided(b, found), divided(d, found), n + 1


def _derivative(f: Polynomial, i: int) -> Polynomial:
    return {(*e[:i], e[i] - 1, *e[i + 1 :]): c * e[i] for e, c in f.items() if e[i]}


def _difference(f: Polynomial, g: Polynomial) -> Polynomial:
    total = dict(f)
    for exponents, c in g.items():
        total[exponents] = total.get(exponents, 0) - c
    return {exponents: c for exponents, c in total.items() if c}
