"""Measures how long formulas are as text: in characters without spaces, to compare equivalent forms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from gradcli import arrays
from gradcli.formulas.algebra import Algebra, Application, Formula, Symbol, in_order
from gradcli.formulas.numbers import Decimal, over_bar
from gradcli.formulas.printed_equations import turned
from gradcli.formulas.text_writer import ATOM, POWER, PRODUCT, SUM, UNARY
from gradcli.primitives import table
from gradcli.program.ir import Variable

# Assumed characters per element of an array, and at most per array; arrays are the same in all forms.
_ELEMENT, _LONGEST_ARRAY = 3, 300
_OPERATORS = {name: len(symbol) for name, symbol in table.operators().items()}
_HALF = Fraction(1, 2)


class Length(NamedTuple):
    """The length of a text in characters, its number of names and numbers, its precedence level, and whether it
    contains a fraction."""

    characters: int
    parts: int = 1
    level: int = ATOM
    bars: bool = False

    def at(self, level: int) -> int:
        """The number of characters where an operand of precedence `level` is expected, with parentheses if needed."""
        return self.characters if self.level >= level else self.characters + 2


class Lengths:
    """The lengths of formulas in the expression language; lengths in other languages differ by little."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self._known: dict[Formula, Length] = {}

    def of(self, root: Formula) -> tuple[int, int]:
        """The sort key of a formula: its characters, then its number of names and numbers. A nested fraction, which is
        hard to read, counts as one more character and two more parts."""
        if root not in self._known:
            for node in in_order(root):
                if node not in self._known:
                    self._known[node] = self._length(node)
        return self._known[root][:2]

    def _length(self, node: Formula) -> Length:
        if isinstance(node, Symbol):
            return Length(len(node.value.name or "") if isinstance(node.value, Variable) else 2)
        if isinstance(node, Application):
            return self._call(node)
        return self._sum(self.algebra.terms(node).items())

    def _call(self, node: Application) -> Length:
        if node.primitive is None:
            return Length(min(_ELEMENT * arrays.size(node.array), _LONGEST_ARRAY))
        name, operands = node.primitive.name, [self._known[c] for c in node.children]
        parts = sum(o.parts for o in operands)
        if name == "permute":
            return Length(operands[0].at(ATOM) + 2, parts)
        if name in _OPERATORS and len(operands) == 2:
            return Length(sum(o.at(PRODUCT) for o in operands) + _OPERATORS[name], parts, PRODUCT)
        return Length(len(name) + 1 + sum(o.characters + 1 for o in operands), parts)

    def _sum(self, terms: Iterable[tuple[Formula, Fraction]]) -> Length:
        products = [(self._term(abs(c), t), self._has_sign(c, t)) for t, c in terms]
        if not products:
            return Length(1)
        signs = len(products) - (not all(negative for _, negative in products))
        if len(products) == 1 and not signs:
            return products[0][0]
        return Length(
            sum(product.at(PRODUCT) for product, _ in products) + signs,
            sum(product.parts for product, _ in products),
            SUM if len(products) > 1 else UNARY,
            any(product.bars for product, _ in products),
        )

    def _has_sign(self, coefficient: Fraction, term: Formula) -> bool:
        """Whether a term is written with a minus that no factor such as x - 1 can absorb."""
        signs = (coefficient < 0) + len(turned(self.algebra, coefficient, self.algebra.powers(term)))
        return signs % 2 == 1

    def _term(self, coefficient: Fraction, term: Formula) -> Length:
        """A positive coefficient times a product."""
        above: list[Length] = []
        below: list[Length] = []
        for base, exponent in self.algebra.powers(term).items():
            if base is self.algebra.euler and exponent is not self.algebra.one:
                known = self._known[exponent]
                above.append(Length(5 + known.characters, known.parts))
            elif self.algebra.is_negative(exponent):
                below.append(self._power(base, self.algebra.negative(exponent)))
            else:
                above.append(self._power(base, exponent))
        p, q = over_bar(coefficient)
        if q != 1:
            below.append(_digits(q))
        if p != 1 or not above:
            above.append(_digits(p))
        numerator = _product(above)
        if not below:
            return numerator
        denominator = _product(below)
        nested = numerator.bars + denominator.bars
        characters = numerator.at(PRODUCT) + 1 + denominator.at(UNARY) + nested
        return Length(characters, numerator.parts + denominator.parts + 2 * nested, PRODUCT, bars=True)

    def _power(self, base: Formula, exponent: Formula) -> Length:
        inner, n = self._known[base], self.algebra.as_number(exponent)
        if n == 1:
            return inner
        if n == _HALF:
            return Length(6 + inner.characters, inner.parts)
        written = self._sum(self.algebra.terms(exponent).items()) if n is None else _number(n)
        parts = inner.parts + written.parts
        return Length(inner.at(ATOM) + 2 + written.at(UNARY), parts, POWER, inner.bars)


# Numbers with more bits are not converted to text: Python limits integers to 4,300 digits, about 14,280 bits.
_LONGEST_NUMBER = 14_000


def _number(n: Fraction) -> Length:
    if isinstance(n, Decimal):
        return _digits(n)
    return Length(len(str(n)), 1, ATOM if n.denominator == 1 else PRODUCT)


def _digits(number: Fraction | int) -> Length:
    """A number that terminates as a decimal, as it is written: an integer, or a float unless it overflows."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _LONGEST_NUMBER:
        # At least as many characters as any number that is converted, so that this form is not chosen.
        return Length(_LONGEST_NUMBER)
    try:
        return Length(len(str(number if number.denominator == 1 else float(number))))
    except OverflowError:
        return Length(len(str(number)))


def _product(factors: Sequence[Length]) -> Length:
    if len(factors) == 1:
        return factors[0]
    characters = sum(f.at(PRODUCT) for f in factors) + len(factors) - 1
    return Length(characters, sum(f.parts for f in factors), PRODUCT, any(f.bars for f in factors))
