"""Trigonometric and hyperbolic identities that rewrite sines, cosines and tangents of one angle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from gradcli.formulas.simplification.algebra import (
    Algebra,
    Formula,
    OpaqueCall,
    Product,
    Sum,
    is_call,
    topological_order,
)
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.elementwise.trigonometric import cos, cosh, sin, sinh, tan, tanh
from gradcli.primitives.primitive import Primitive

_HALF = Fraction(1, 2)


class _Kind(NamedTuple):
    """The functions of circular or hyperbolic angles; `sign` is that of cosine**2 in sine**2 = sign*(cosine**2 - 1)."""

    sine: Primitive
    cosine: Primitive
    tangent: Primitive
    sign: int


_KINDS = (_Kind(sin, cos, tan, -1), _Kind(sinh, cosh, tanh, 1))


class _Square(NamedTuple):
    """The identity function(x)**power = constant + factor*other(x)**other_power."""

    function: Primitive
    power: int
    constant: int
    factor: int
    other: Primitive
    other_power: int


# tanh**2 is replaced by cosh**-2 and not the reverse: for large angles 1/cosh(x)**2 keeps more digits than 1 -
# tanh(x)**2.
_SQUARES = (
    _Square(sin, 2, 1, -1, cos, 2),
    _Square(cos, 2, 1, -1, sin, 2),
    _Square(cosh, 2, 1, 1, sinh, 2),
    _Square(sinh, 2, -1, 1, cosh, 2),
    _Square(tan, 2, -1, 1, cos, -2),
    _Square(cos, -2, 1, 1, tan, 2),
    _Square(tanh, 2, 1, -1, cosh, -2),
)


def with_pythagorean_identities(algebra: Algebra, node: Formula) -> Iterator[Formula]:
    """A sum in which the squares of one function are replaced by those of another, for each identity that applies."""
    if not isinstance(node, Sum):
        return
    called = {b.primitive for term in node.terms for b in algebra.powers(term) if isinstance(b, OpaqueCall)}
    for square in _SQUARES:
        if square.function in called:
            yield _replaced(algebra, node, square)


def _replaced(algebra: Algebra, node: Sum, square: _Square) -> Formula:
    parts = []
    for term, c in node.terms.items():
        found = next((b for b, e in algebra.powers(term).items() if _has_square(algebra, b, e, square)), None)
        if found is None:
            parts.append(algebra.scale(c, term))
            continue
        assert isinstance(found, OpaqueCall)
        rest = algebra.divide(term, algebra.power(found, algebra.number(square.power)))
        other = algebra.power(algebra.function(square.other, found.children[0]), algebra.number(square.other_power))
        parts += [
            algebra.scale(c * square.constant, rest),
            algebra.scale(c * square.factor, algebra.multiply(rest, other)),
        ]
    return algebra.add(*parts)


def _has_square(algebra: Algebra, base: Formula, exponent: Formula, square: _Square) -> bool:
    n = algebra.as_number(exponent)
    return is_call(base, square.function.name) and n is not None and n.denominator == 1 and n / square.power >= 1


def _arguments(kind: _Kind, bases: Iterable[Formula]) -> list[Formula]:
    """The distinct arguments of functions of a kind among `bases`."""
    names = [function.name for function in kind[:3]]
    return [*dict.fromkeys(b.children[0] for b in bases if any(is_call(b, name) for name in names))]


def with_double_angles(algebra: Algebra, node: Formula) -> Iterator[Formula]:
    """A sum in which the squares of an angle are replaced by the cosine of twice the angle, where no constant remains:
    1 - cos(2*x) would have fewer digits than 2*sin(x)**2."""
    if not isinstance(node, Sum):
        return
    for kind in _KINDS:
        for angle in _arguments(kind, (b for t in node.terms for b in algebra.powers(t))):
            yield from _doubled(algebra, node, kind, angle)


def _doubled(algebra: Algebra, node: Sum, kind: _Kind, angle: Formula) -> Iterator[Formula]:
    # cosine**2 = (cosine(2*x) + 1)/2, and sine**2 = (cosine(2*x) - 1)/2 up to the sign of the kind.
    twice = algebra.function(kind.cosine, algebra.scale(2, angle))
    squares = {
        algebra.function(kind.cosine, angle): (1, 1),
        algebra.function(kind.sine, angle): (kind.sign, -kind.sign),
    }
    numbers: dict[Formula, Fraction] = {}
    parts = []
    for term, c in node.terms.items():
        powers = algebra.powers(term)
        base = next((b for b in squares if b in powers and algebra.as_number(powers[b]) == 2), None)
        if base is None:
            numbers[term] = numbers.get(term, Fraction(0)) + c
            continue
        rest = algebra.divide(term, algebra.power(base, algebra.number(2)))
        factor, number = squares[base]
        numbers[rest] = numbers.get(rest, Fraction(0)) + c * number / 2
        parts.append((rest, algebra.scale(c * factor / 2, algebra.multiply(rest, twice))))
    if parts and not any(numbers[rest] for rest, _ in parts):
        yield algebra.add(algebra.sum(numbers), *[part for _, part in parts])


def with_combined_factors(algebra: Algebra, node: Formula) -> Iterator[Formula]:
    """A product with sine/cosine as tangent, tangent*cosine as sine, sine/tangent as cosine, and sine*cosine as
    sine(2*x)/2."""
    if not isinstance(node, Product):
        return
    for kind in _KINDS:
        for angle in _arguments(kind, node.powers):
            sine, cosine, tangent = (algebra.function(f, angle) for f in kind[:3])
            twice = algebra.scale(_HALF, algebra.function(kind.sine, algebra.scale(2, angle)))
            for first, second, one in (
                (sine, algebra.power(cosine, algebra.number(-1)), tangent),
                (tangent, cosine, sine),
                (sine, algebra.power(tangent, algebra.number(-1)), cosine),
                (sine, cosine, twice),
            ):
                n = _common_power(algebra, node, first, second)
                if n:
                    yield algebra.multiply(
                        node, *[algebra.power(f, algebra.number(m)) for f, m in ((one, n), (first, -n), (second, -n))]
                    )


def _common_power(algebra: Algebra, node: Product, *factors: Formula) -> Fraction:
    """The integer power to which a product of factors divides another product; 0 if it does not."""
    found = []
    for factor in factors:
        ((base, unit),) = algebra.powers(factor).items()
        n, sign = algebra.as_number(node.powers.get(base, algebra.zero)), algebra.as_number(unit)
        assert sign is not None
        if not n or n.denominator != 1:
            return Fraction(0)
        found.append(n * sign)
    return min(found, key=abs) if min(found) * max(found) > 0 else Fraction(0)


def with_tangents_as_quotients(algebra: Algebra, root: Formula) -> Formula:
    """A formula with tangents written as sine/cosine, so that they combine with the sines and cosines around them."""
    nodes = topological_order(root)
    found: dict[Formula, Formula] = {}
    for node in nodes:
        kind = next((k for k in _KINDS if is_call(node, k.tangent.name)), None)
        if kind is not None:
            (angle,) = node.children
            found[node] = algebra.divide(algebra.function(kind.sine, angle), algebra.function(kind.cosine, angle))
        elif isinstance(node, Sum):
            found[node] = algebra.add(*[algebra.scale(c, found[t]) for t, c in node.terms.items()])
        elif isinstance(node, Product):
            found[node] = algebra.multiply(*[algebra.power(found[b], found[e]) for b, e in node.powers.items()])
        else:
            found[node] = node
    return found[root]


def with_hyperbolic(algebra: Algebra, node: Formula) -> Iterator[Formula]:
    """A sum of exp(x) and exp(-x) with equal or opposite coefficients, by cosh or sinh."""
    if not isinstance(node, Sum):
        return
    for term, c in node.terms.items():
        exponent = algebra.powers(term).get(algebra.euler, algebra.zero)
        outside = algebra.divide(term, algebra.power(algebra.euler, exponent))
        other = algebra.divide(outside, algebra.power(algebra.euler, exponent))
        if other is not term and abs(node.terms.get(other, 0)) == abs(c) and not algebra.is_negative(exponent):
            function = cosh if node.terms[other] == c else sinh
            pair = algebra.multiply(outside, algebra.function(function, exponent))
            others = algebra.sum({t: k for t, k in node.terms.items() if t not in (term, other)})
            yield algebra.add(algebra.scale(2 * c, pair), others)


def with_exponential_inside_sum(algebra: Algebra, node: Formula) -> Iterator[Formula]:
    """A product with an exponential moved into a sum beside it: exp(-x)/(exp(-x) + 1) as 1/(exp(x) + 1)."""
    _, rest = algebra.split(node)
    powers = algebra.powers(rest)
    exponent = powers.get(algebra.euler)
    if exponent is None:
        return
    for base, power in powers.items():
        n = algebra.as_number(power)
        if isinstance(base, Sum) and n is not None and n.denominator == 1:
            factor = algebra.power(algebra.euler, algebra.scale(1 / n, exponent))
            inside = algebra.add(*[algebra.scale(c, algebra.multiply(t, factor)) for t, c in base.terms.items()])
            outside = algebra.divide(
                node, algebra.multiply(algebra.power(base, power), algebra.power(algebra.euler, exponent))
            )
            yield algebra.multiply(outside, algebra.power(inside, power))
