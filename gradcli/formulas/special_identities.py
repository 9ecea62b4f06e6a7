"""Rewrite rules for derivatives of special functions: recurrences that express them by functions with a name.

The rules have the form of those in `gradcli.formulas.identities`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from gradcli.arrays.shapes import broadcast
from gradcli.formulas.algebra import Algebra, Formula, Sum
from gradcli.primitives import table
from gradcli.primitives.primitive import Primitive

# _Named applies a primitive, by its name, to the operand; _First gives the derivatives of order 0 and 1.
_Named = Callable[[str], Formula]
_First = Callable[[Algebra, Formula, _Named], tuple[Formula, Formula]]
# From an algebra, an operand, an order n, and the derivatives of order n - 2 and n - 1: the derivative of order n.
_Next = Callable[[Algebra, Formula, int, Formula, Formula], Formula]


# The functions whose derivatives are primitives of the same name, with the order as parameter.
_FAMILIES = frozenset({"scaled_i", "k0e", "dawsn", "ellipk", "ellipe"})


def _primitive(name: str) -> Primitive:
    # The primitive is loaded already: a program contains its derivative.
    from gradcli.primitives.entries.bessel import scaled_i

    found = scaled_i if name == "scaled_i" else table.known(name)
    assert isinstance(found, Primitive)
    return found


def _by_recurrence(first: _First, following: _Next) -> Any:
    """The rule of a primitive whose parameter n is the order of its derivative."""

    def identity(algebra: Algebra, operands: Sequence[Formula], params: Mapping[str, Any]) -> Formula | None:
        x, n = operands[0], params["n"]
        if not n:
            return None

        def named(other: str) -> Formula:
            return algebra.function(_primitive(other), x, **({"n": 0} if other in _FAMILIES else {}))

        before, value = first(algebra, x, named)
        for k in range(2, n + 1):
            before, value = value, following(algebra, x, k, before, value)
        return value

    return identity


def _linear(algebra: Algebra, constant: Any, slope: Any, x: Formula) -> Formula:
    return algebra.add(algebra.number(Fraction(constant)), algebra.scale(Fraction(slope), x))


def _first_i(algebra: Algebra, _x: Formula, named: _Named) -> tuple[Formula, Formula]:
    return named("scaled_i"), algebra.add(named("scaled_i"), algebra.negative(named("i1e")))


def _next_i(algebra: Algebra, x: Formula, n: int, before: Formula, value: Formula) -> Formula:
    total = algebra.add(algebra.multiply(_linear(algebra, n - 1, 2, x), value), algebra.scale(3 - 2 * n, before))
    return algebra.divide(total, x)


def _first_k(algebra: Algebra, _x: Formula, named: _Named) -> tuple[Formula, Formula]:
    return named("k0e"), algebra.add(named("k1e"), algebra.negative(named("k0e")))


def _next_k(algebra: Algebra, x: Formula, n: int, before: Formula, value: Formula) -> Formula:
    total = algebra.add(algebra.multiply(_linear(algebra, n - 1, -2, x), value), algebra.scale(2 * n - 3, before))
    return algebra.divide(total, x)


def _first_dawsn(algebra: Algebra, x: Formula, named: _Named) -> tuple[Formula, Formula]:
    return named("dawsn"), algebra.add(algebra.one, algebra.scale(-2, algebra.multiply(x, named("dawsn"))))


def _next_dawsn(algebra: Algebra, x: Formula, n: int, before: Formula, value: Formula) -> Formula:
    return algebra.add(algebra.scale(-2, algebra.multiply(x, value)), algebra.scale(2 - 2 * n, before))


def _first_ellipk(algebra: Algebra, m: Formula, named: _Named) -> tuple[Formula, Formula]:
    of_second = algebra.divide(named("ellipe"), _linear(algebra, 1, -1, m))
    value = algebra.divide(algebra.add(of_second, algebra.negative(named("ellipk"))), algebra.scale(2, m))
    return named("ellipk"), value


def _next_ellipk(algebra: Algebra, m: Formula, n: int, before: Formula, value: Formula) -> Formula:
    total = algebra.add(
        algebra.scale(Fraction(2 * n - 3, 2) ** 2, before),
        algebra.multiply(_linear(algebra, 1 - n, 2 * n - 2, m), value),
    )
    return algebra.divide(total, algebra.multiply(m, _linear(algebra, 1, -1, m)))


def _first_ellipe(algebra: Algebra, m: Formula, named: _Named) -> tuple[Formula, Formula]:
    difference = algebra.add(named("ellipe"), algebra.negative(named("ellipk")))
    return named("ellipe"), algebra.divide(difference, algebra.scale(2, m))


def _next_ellipe(algebra: Algebra, m: Formula, n: int, before: Formula, value: Formula) -> Formula:
    total = algebra.add(
        algebra.scale(Fraction((n - 2) ** 2) - Fraction(1, 4), before),
        algebra.multiply(_linear(algebra, 1 - n, 2 * n - 3, m), value),
    )
    return algebra.divide(total, algebra.multiply(m, _linear(algebra, 1, -1, m)))


def _exponential_integral(algebra: Algebra, operands: Sequence[Formula], params: Mapping[str, Any]) -> Formula | None:
    """expn of order 0 and below: DLMF 8.19.12."""
    x, n = operands[0], params["n"]
    if n > 0:
        return None
    exponential = algebra.power(algebra.euler, algebra.negative(x))
    value = algebra.divide(exponential, x)
    for k in range(1, 1 - n):
        value = algebra.divide(algebra.add(exponential, algebra.scale(k, value)), x)
    return value


def _gamma_density(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula:
    a, x = operands
    gamma = algebra.function(_primitive("gamma"), a)
    power = algebra.power(x, algebra.add(a, algebra.number(-1)))
    return algebra.multiply(
        power, algebra.power(algebra.euler, algebra.negative(x)), algebra.power(gamma, algebra.number(-1))
    )


def _beta_density(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula:
    a, b, x = operands
    shape = broadcast([a.shape, b.shape])
    beta = algebra.call(_primitive("betaln"), [a, b], {}, shape, "float64")
    return algebra.multiply(
        algebra.power(x, algebra.add(a, algebra.number(-1))),
        algebra.power(algebra.add(algebra.one, algebra.negative(x)), algebra.add(b, algebra.number(-1))),
        algebra.power(algebra.euler, algebra.negative(beta)),
    )


def _ive_slope(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula:
    v, x = operands
    shape = broadcast([v.shape, x.shape])
    if isinstance(v, Sum) and v.terms.keys() == {algebra.one}:
        # Orders v - 1 and v + 1 are fractions in the rules; a decimal order would make them different nodes.
        v = algebra.number(Fraction(v.terms[algebra.one]))

    def of_order(step: int) -> Formula:
        return algebra.call(_primitive("ive"), [algebra.add(v, algebra.number(step)), x], {}, shape, "float64")

    there = algebra.multiply(algebra.function(_primitive("sign"), x), of_order(0))
    return algebra.add(
        algebra.scale(Fraction(1, 2), of_order(-1)),
        algebra.scale(Fraction(1, 2), of_order(1)),
        algebra.scale(-1, there),
    )


SPECIAL_IDENTITIES = {
    "scaled_i": _by_recurrence(_first_i, _next_i),
    "k0e": _by_recurrence(_first_k, _next_k),
    "dawsn": _by_recurrence(_first_dawsn, _next_dawsn),
    "ellipk": _by_recurrence(_first_ellipk, _next_ellipk),
    "ellipe": _by_recurrence(_first_ellipe, _next_ellipe),
    "expn": _exponential_integral,
    "gamma_density": _gamma_density,
    "beta_density": _beta_density,
    "ive_slope": _ive_slope,
}
