"""Writes expressions of the algebra as the equations of a program, in the conventional order of terms and factors."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.formulas.simplification.algebra import Algebra, Formula, OpaqueCall, Sum, Symbol, topological_order
from gradcli.formulas.simplification.numbers import numerator_and_denominator
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative, subtract
from gradcli.primitives.entries.exponential import exp
from gradcli.primitives.entries.powers import general_power, sqrt, whole_power
from gradcli.primitives.primitive import Primitive
from gradcli.program import program_constants
from gradcli.program.builder import frozen
from gradcli.program.ir import Atom, Equation, Variable

# Fractions with a larger numerator or denominator are written as decimals.
_LARGEST_FRACTION = 10**6
_HALF = Fraction(1, 2)


class NoFloatError(Exception):
    """A number of a formula overflows a float, or is too small for a normal one."""


def _as_float(number: Fraction | int) -> float:
    """The nearest float. Raises NoFloatError if it overflows or is subnormal."""
    try:
        value = float(number)
    except OverflowError:
        raise NoFloatError from None
    if number and abs(value) < sys.float_info.min:
        raise NoFloatError
    return value


def negated_sums(algebra: Algebra, coefficient: Fraction, powers: Mapping[Formula, Formula]) -> Sequence[Sum]:
    """The sums among the factors of a term that are written with opposite signs: those with negative terms only, and
    sums such as x - 1 that can absorb the minus sign of the coefficient."""
    found = []
    negative = coefficient < 0
    for base, exponent in powers.items():
        n = algebra.as_number(exponent)
        if not isinstance(base, Sum) or len(base.terms) < 2 or n is None or n.denominator != 1 or n % 2 == 0:
            continue
        if algebra.is_negative(base) or (negative and any(c < 0 for c in base.terms.values())):
            found.append(base)
            negative = not negative
    return found


class EquationWriter:
    """Writes expressions as equations. Raises NoFloatError for a number outside the range of normal floats."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.equations: list[Equation] = []
        self._known: dict[Any, Variable] = {}
        self._written: dict[Formula, Atom] = {}

    def write(self, root: Formula) -> Atom:
        for node in topological_order(root):
            self._written[node] = self._node(node)
        return self._written[root]

    def apply(
        self, primitive: Primitive, inputs: Sequence[Atom], params: Mapping[str, Any], shape: Shape, dtype: str
    ) -> Variable:
        key = (
            primitive,
            tuple(a if isinstance(a, Variable) else program_constants.key(a) for a in inputs),
            frozen(params),
        )
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Variable(shape, dtype)
            self.equations.append(Equation(primitive, tuple(inputs), params, found))
        return found

    def _elementwise(self, primitive: Primitive, *inputs: Atom, **params: Any) -> Variable:
        shape = broadcast([arrays.shape(a) for a in inputs])
        return self.apply(primitive, inputs, params, shape, "float64")

    def _node(self, node: Formula) -> Atom:
        if isinstance(node, Symbol):
            return node.value
        if isinstance(node, OpaqueCall):
            return self._call(node)
        return self._sum(self.algebra.terms(node))

    def _call(self, node: OpaqueCall) -> Atom:
        if node.primitive is None:
            return node.array
        inputs = [self._written[c] for c in node.children]
        return self.apply(node.primitive, inputs, node.params, node.shape, node.dtype)

    def _sum(self, terms: Mapping[Formula, Fraction]) -> Atom:
        products = [self._with_signs_outside(c, self.algebra.powers(t)) for t, c in self._in_order(terms)]
        if not products:
            return 0.0
        positive = next((i for i, (c, _) in enumerate(products) if c > 0), 0)
        products.insert(0, products.pop(positive))
        (c, first), *others = products
        total = self._term(first, abs(c))
        if c < 0:
            total = -total if not isinstance(total, Variable) else self._elementwise(negative, total)
        for c, powers in others:
            total = self._elementwise(add if c > 0 else subtract, total, self._term(powers, abs(c)))
        return total

    def _in_order(self, terms: Mapping[Formula, Fraction]) -> Sequence[tuple[Formula, Fraction]]:
        return sorted(terms.items(), key=lambda item: self._term_order(item[0]))

    def _term_order(self, term: Formula) -> tuple[bool, Fraction, int]:
        """The sort key of a term: constants last, higher degrees first, then the order of the program."""
        powers = self.algebra.powers(term)
        exponents = [self.algebra.as_number(e) for b, e in powers.items() if isinstance(b, (Symbol, OpaqueCall))]
        return not powers, -sum((e for e in exponents if e is not None), Fraction(0)), term.rank

    def _term(self, powers: Mapping[Formula, Formula], coefficient: Fraction) -> Atom:
        """A positive coefficient times a product; powers with negative exponents go into the denominator."""
        above: list[Atom] = []
        below: list[Atom] = []
        coefficient, powers = self._with_roots_below(coefficient, powers)
        for base, exponent in sorted(powers.items(), key=lambda pair: self._factor_order(*pair)):
            c, _ = self.algebra.split(exponent)
            if base is not self.algebra.euler and self.algebra.is_negative(exponent) and c < 0:
                below.append(self._power(base, self.algebra.negative(exponent)))
            else:
                above.append(self._power(base, exponent))
        p, q = numerator_and_denominator(coefficient)
        if max(p, q) > _LARGEST_FRACTION and q != 1:
            above.insert(0, _as_float(coefficient))
        else:
            above[:0] = [_as_float(p)] if p != 1 or not above else []
            below[:0] = [_as_float(q)] if q != 1 else []
        numerator = self._product(above)
        return numerator if not below else self._elementwise(divide, numerator, self._product(below))

    def _with_roots_below(
        self, coefficient: Fraction, powers: Mapping[Formula, Formula]
    ) -> tuple[Fraction, Mapping[Formula, Formula]]:
        """Rewrites sqrt(2)/2 as 1/sqrt(2), and sqrt(2)/sqrt(pi) as 2/sqrt(2*pi)."""
        algebra = self.algebra
        half, minus_half = algebra.number(_HALF), algebra.number(-_HALF)
        over_pi = powers.get(algebra.pi) is minus_half
        for base, exponent in powers.items():
            n = algebra.as_number(base)
            if not n or not (exponent is half or (exponent is minus_half and over_pi)):
                continue
            if exponent is half and coefficient.denominator % n and not over_pi:
                continue
            left = {b: e for b, e in powers.items() if b is not base and (b is not algebra.pi or not over_pi)}
            below = algebra.scale(n, algebra.pi) if over_pi else base
            return coefficient * (n if exponent is half else 1), left | {below: minus_half}
        return coefficient, powers

    def _with_signs_outside(
        self, coefficient: Fraction, powers: Mapping[Formula, Formula]
    ) -> tuple[Fraction, Mapping[Formula, Formula]]:
        """A coefficient and powers, with signs moved so that sums have positive terms and absorb a minus of the
        coefficient."""
        changed = dict(powers)
        for base in negated_sums(self.algebra, coefficient, powers):
            changed[self.algebra.negative(base)] = changed.pop(base)
            coefficient = -coefficient
        return coefficient, changed

    def _product(self, factors: Sequence[Atom]) -> Atom:
        first, *others = factors
        for factor in others:
            first = self._elementwise(multiply, first, factor)
        return first

    def _factor_order(self, base: Formula, exponent: Formula) -> tuple[int, int]:
        """The sort key of a factor: numbers, symbols, sums, powers with symbolic exponents, functions."""
        n = self.algebra.as_number(exponent)
        if n is not None and (self.algebra.as_number(base) is not None or base is self.algebra.pi):
            return 0, base.rank
        if isinstance(base, Symbol) and base is not self.algebra.euler:
            return (1 if n is not None else 3), base.rank
        if isinstance(base, Sum) and self.algebra.as_number(base) is None:
            return 2, base.rank
        return 4, max(base.rank, exponent.rank)

    def _power(self, base: Formula, exponent: Formula) -> Atom:
        n = self.algebra.as_number(exponent)
        if n == 1:
            return self._factor(base)
        if base is self.algebra.euler:
            return self._elementwise(exp, self._factor(exponent))
        if n == _HALF:
            return self._elementwise(sqrt, self._factor(base))
        if n is not None and n.denominator == 1:
            return self._elementwise(whole_power, self._factor(base), n=float(n))
        if n is not None and n.denominator == 2 and any((2 * t).is_integer() for t in self.algebra.typed):
            return self._elementwise(general_power, self._factor(base), float(n))
        return self._elementwise(general_power, self._factor(base), self._factor(exponent))

    def _factor(self, node: Formula) -> Atom:
        found = self._written.get(node)
        # A negated exponent may not have been written yet.
        return self.write(node) if found is None else found
