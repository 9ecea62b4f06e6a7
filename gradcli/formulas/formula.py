"""A program with one output as a short formula: simplified as people do, and a program again.

The identities hold for real numbers where the functions are smooth, so that results may differ in
rounding, and at single points where a function has a kink or a pole.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.formulas.algebra import Algebra, Application, Formula, Sum, Symbol, TooLongError, in_order, is_call
from gradcli.formulas.forms import Forms
from gradcli.formulas.identities import IDENTITIES, is_linear, number
from gradcli.formulas.matrix_products import outer_product, reshaped, special_product
from gradcli.formulas.numbers import Decimal, decimal
from gradcli.primitives.arithmetic import add, divide, multiply, negative, subtract
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.exponential import exp, log
from gradcli.primitives.linear import matmul
from gradcli.primitives.powers import general_power, sqrt, whole_power
from gradcli.primitives.primitive import Primitive
from gradcli.primitives.reductions import mean, sum_
from gradcli.program import constants
from gradcli.program.builder import frozen
from gradcli.program.checker import check
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import optimise, without_dead_code

# Functions for which it does not matter how many axes a single element has.
_RESHAPING = frozenset({reshape, broadcast_to})
_MOST_EQUATIONS = 2_500
# Fractions of larger numbers are written as decimals.
_LARGEST_FRACTION = 10**6
_HALF = Fraction(1, 2)
# In eighths of steps: to go through an equation in the passes of a program.
_EQUATION = 80


def formula(program: Program, typed: Collection[float] = ()) -> Program:
    """`program`, which has one output, as a program for the same formula in a short form. Numbers that come from those
    that were `typed` with a decimal point stay decimals, others are fractions.

    It has no guards: it is right where the guards of `program` hold, and, for formulas that are
    smooth, everywhere. A program that nobody would read as a formula only gets the rewrites that
    hold for real numbers: a sum of products may be much longer than what it is computed by.
    """
    limits.charge_steps(_EQUATION * len(program.equations) + len(program.inputs) // 4)
    atoms = {a for e in program.equations for a in e.inputs if isinstance(a, Variable)}
    read = atoms.union(o for o in program.outputs if isinstance(o, Variable))
    found = _formula(program._replace(inputs=tuple(v for v in program.inputs if v in read)), typed)
    return found._replace(inputs=program.inputs)


def _formula(program: Program, typed: Collection[float]) -> Program:
    program = optimise(program)
    if len(program.equations) <= _MOST_EQUATIONS:
        try:
            return _shortened(program, typed)
        except _NoFloatError:
            # The product of its factors is none; the factors, as the program has them, are.
            return without_dead_code(program._replace(guards=()))
        except TooLongError:
            pass
    return without_dead_code(optimise(program, fast=True)._replace(guards=()))


def _shortened(program: Program, typed: Collection[float]) -> Program:
    (output,) = program.outputs
    reader = _Reader(program, typed)
    shape = arrays.shape(output)
    node = reader.in_shape(reader.atom(output), shape)
    best = reader.in_shape(Forms(reader.algebra).shortest(node), shape)
    writer = _EquationWriter(reader.algebra)
    result = writer.write(best)
    return without_dead_code(check(Program(program.inputs, tuple(writer.equations), (result,))))


class _NoFloatError(Exception):
    """A number of a formula is too large or too small for a float with all its digits."""


def _as_float(number: Fraction | int) -> float:
    """Raises _NoFloatError."""
    try:
        value = float(number)
    except OverflowError:
        raise _NoFloatError from None
    if number and abs(value) < sys.float_info.min:
        raise _NoFloatError
    return value


class _Reader:
    """The equations of a program as expressions."""

    def __init__(self, program: Program, typed: Collection[float]) -> None:
        self.algebra = Algebra(typed)
        self.logarithms = {math.log(n): n for n in typed if n > 0}
        self.known: dict[Variable, Formula] = {v: self.algebra.symbol(v) for v in program.inputs}
        for equation in program.equations:
            self.known[equation.output] = self._equation(equation)

    def atom(self, atom: Atom) -> Formula:
        if isinstance(atom, Variable):
            return self.known[atom]
        if arrays.dtype_name(atom) == "bool" and not arrays.shape(atom):
            return self.algebra.true if atom else self.algebra.false
        value = constants.number(atom)
        if value is not None and math.isfinite(value) and arrays.dtype_name(atom) != "bool":
            return self._number(value)
        return self.algebra.array(atom, constants.key(atom), arrays.shape(atom), arrays.dtype_name(atom))

    def _number(self, value: float) -> Formula:
        algebra = self.algebra
        typed = decimal(value, algebra.typed)
        if typed is not None:
            return algebra.number(typed)
        if value in self.logarithms:
            base = decimal(self.logarithms[value], algebra.typed)
            assert base is not None
            return algebra.call(log, [algebra.number(base)], {}, (), "float64")
        return number(algebra, value)

    def _equation(self, equation: Equation) -> Formula:
        primitive, inputs, params, output = equation
        operands = [self.atom(a) for a in inputs]
        shape = output.shape
        if primitive.elementwise:
            operands = [o.children[0] if is_call(o, "broadcast_to") else o for o in operands]
        elif primitive not in _RESHAPING or math.prod(operands[0].shape) != 1:
            operands = [self.in_shape(o, arrays.shape(a)) for o, a in zip(operands, inputs)]
        if params.get("keepdims") and math.prod(shape) == 1:
            # How many axes a single element has does not matter.
            params, shape = {**params, "keepdims": False}, ()
        return self._applied(primitive, operands, params, shape, output.dtype)

    def in_shape(self, node: Formula, shape: Shape) -> Formula:
        """A node repeated to a shape; one with a single element may have had any number of axes."""
        if node.shape == shape:
            return node
        if math.prod(node.shape) == math.prod(shape) or len(node.shape) > len(shape):
            size = shape if math.prod(node.shape) == math.prod(shape) else ()
            return self.in_shape(self._call(reshape, [node], {"shape": size}, size, "float64"), shape)
        return self._call(broadcast_to, [node], {"shape": shape}, shape, "float64")

    def _applied(
        self, primitive: Primitive, operands: Sequence[Formula], params: Mapping[str, Any], shape: Shape, dtype: str
    ) -> Formula:
        identity = IDENTITIES.get(primitive.name)
        found = None if identity is None else identity(self.algebra, operands, params)
        if found is not None:
            return found
        if primitive.parity is not None and self.algebra.is_negative(operands[0]):
            positive = self._applied(primitive, [self.algebra.negative(operands[0])], params, shape, dtype)
            return self.algebra.negative(positive) if primitive.parity == "odd" else positive
        if is_linear(primitive):
            return self._linear(primitive, operands, params, shape, dtype)
        return self._call(primitive, operands, params, shape, dtype)

    def _linear(
        self, primitive: Primitive, operands: Sequence[Formula], params: Mapping[str, Any], shape: Shape, dtype: str
    ) -> Formula:
        """Factors that are one number come out of a linear function."""
        algebra = self.algebra
        special = self._special(primitive, operands, params, shape, dtype)
        if special is not None:
            return special
        pairs = [_factored(algebra, o) for o in operands]
        factors, rests = [factor for factor, _ in pairs], [rest for _, rest in pairs]
        if all(factor is algebra.one for factor in factors):
            outer = outer_product(algebra, *operands) if primitive is matmul else None
            return outer or self._call(primitive, operands, params, shape, dtype)
        return algebra.multiply(*factors, self._applied(primitive, rests, params, shape, dtype))

    def _special(
        self, primitive: Primitive, operands: Sequence[Formula], params: Mapping[str, Any], shape: Shape, dtype: str
    ) -> Formula | None:
        """A linear function of zero, of what has one element, or of a function that it undoes."""
        algebra = self.algebra
        if algebra.zero in operands:
            return algebra.zero
        if primitive is reshape:
            return reshaped(algebra, operands[0], shape, dtype)
        if primitive is matmul:
            return special_product(algebra, operands, shape)
        if primitive is mean and 0 not in operands[0].shape:
            total = self._applied(sum_, operands, params, shape, dtype)
            return algebra.scale(Fraction(math.prod(shape), math.prod(operands[0].shape)), total)
        if primitive is sum_ and math.prod(shape) == 1:
            return self._total(operands[0], params, dtype)
        if is_call(operands[0], "broadcast_to") and operands[0].children[0] is algebra.zero:
            return algebra.zero
        return None

    def _total(self, operand: Formula, params: Mapping[str, Any], dtype: str) -> Formula | None:
        """A sum of all elements, with the terms that have one element each outside."""
        algebra = self.algebra
        count = math.prod(operand.shape)
        if count == 1:
            return operand
        if is_call(operand, "broadcast_to") and math.prod(operand.children[0].shape) == 1:
            return algebra.scale(count, operand.children[0])
        terms = algebra.terms(operand)
        single = {t: c for t, c in terms.items() if math.prod(t.shape) == 1}
        others = algebra.sum({t: c for t, c in terms.items() if t not in single})
        if not single or others.shape != operand.shape:
            return None
        return algebra.add(algebra.scale(count, algebra.sum(single)), self._applied(sum_, [others], params, (), dtype))

    def _call(
        self, primitive: Primitive, operands: Sequence[Formula], params: Mapping[str, Any], shape: Shape, dtype: str
    ) -> Formula:
        if primitive.elementwise:
            shape = broadcast([o.shape for o in operands])
        return self.algebra.call(primitive, operands, params, shape, dtype)


def _factored(algebra: Algebra, node: Formula) -> tuple[Formula, Formula]:
    """A node as a factor that has one element, and the rest, which keeps the shape."""
    coefficient, rest = algebra.split(node)
    single = []
    for base, exponent in algebra.powers(rest).items():
        terms = algebra.terms(exponent) if math.prod(base.shape) == 1 else {}
        part = algebra.sum({t: c for t, c in terms.items() if math.prod(t.shape) == 1})
        if part is not algebra.zero:
            single.append(algebra.power(base, part))
    factor = algebra.multiply(*single)
    left = algebra.divide(rest, factor)
    if left.shape != node.shape:
        return algebra.one, node
    return algebra.scale(coefficient, factor), left


class _EquationWriter:
    """Expressions as equations, in the order in which people write them."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.equations: list[Equation] = []
        self._known: dict[Any, Variable] = {}
        self._written: dict[Formula, Atom] = {}

    def write(self, root: Formula) -> Atom:
        for node in in_order(root):
            self._written[node] = self._node(node)
        return self._written[root]

    def apply(
        self, primitive: Primitive, inputs: Sequence[Atom], params: Mapping[str, Any], shape: Shape, dtype: str
    ) -> Variable:
        key = (primitive, tuple(a if isinstance(a, Variable) else constants.key(a) for a in inputs), frozen(params))
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
        if isinstance(node, Application):
            return self._call(node)
        return self._sum(self.algebra.terms(node))

    def _call(self, node: Application) -> Atom:
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
        """Constants last, higher degrees first, then as the program has them."""
        powers = self.algebra.powers(term)
        exponents = [self.algebra.as_number(e) for b, e in powers.items() if isinstance(b, (Symbol, Application))]
        return not powers, -sum((e for e in exponents if e is not None), Fraction(0)), term.rank

    def _term(self, powers: Mapping[Formula, Formula], coefficient: Fraction) -> Atom:
        """A positive coefficient times a product: powers with negative exponents below the bar."""
        above: list[Atom] = []
        below: list[Atom] = []
        coefficient, powers = self._with_roots_below(coefficient, powers)
        for base, exponent in sorted(powers.items(), key=lambda pair: self._factor_order(*pair)):
            c, _ = self.algebra.split(exponent)
            if base is not self.algebra.euler and self.algebra.is_negative(exponent) and c < 0:
                below.append(self._power(base, self.algebra.negative(exponent)))
            else:
                above.append(self._power(base, exponent))
        p: Fraction | int
        if isinstance(coefficient, Decimal):
            p, q = coefficient.split()
        else:
            p, q = coefficient.numerator, coefficient.denominator
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
        """sqrt(2)/2 as 1/sqrt(2), and sqrt(2)/sqrt(pi) as 2/sqrt(2*pi)."""
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
        """A coefficient and powers without a sum of negative terms, and without a minus that a sum can take."""
        changed = dict(powers)
        for base, exponent in powers.items():
            n = self.algebra.as_number(exponent)
            if not isinstance(base, Sum) or len(base.terms) < 2 or n is None or n.denominator != 1 or n % 2 == 0:
                continue
            positive = [c > 0 for c in base.terms.values()]
            if not any(positive) or (coefficient < 0 and not all(positive)):
                del changed[base]
                changed[self.algebra.negative(base)] = exponent
                coefficient = -coefficient
        return coefficient, changed

    def _product(self, factors: Sequence[Atom]) -> Atom:
        first, *others = factors
        for factor in others:
            first = self._elementwise(multiply, first, factor)
        return first

    def _factor_order(self, base: Formula, exponent: Formula) -> tuple[int, int]:
        """Numbers, symbols, sums, powers with symbolic exponents, functions."""
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
        return self._elementwise(general_power, self._factor(base), self._factor(exponent))

    def _factor(self, node: Formula) -> Atom:
        found = self._written.get(node)
        # A negated exponent may be new.
        return self.write(node) if found is None else found
