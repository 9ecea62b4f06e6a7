"""Simplifies a program with one output to a short formula, as people would write it, and returns it as a program.

The identities hold for real numbers where the functions are smooth, so that results may differ in
rounding, and at single points where a function has a kink or a pole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.formulas.simplification.algebra import (
    Algebra,
    Formula,
    OpaqueCall,
    Product,
    Sum,
    TooLongError,
    is_call,
    topological_order,
)
from gradcli.formulas.simplification.forms import Forms, outer_product, reshaped, simplified_product
from gradcli.formulas.simplification.identities import IDENTITIES, is_linear, number
from gradcli.formulas.simplification.numbers import typed_decimal
from gradcli.formulas.simplification.printed_equations import EquationWriter, NoFloatError
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.entries.comparisons import equal, greater, greater_equal, less, less_equal, where
from gradcli.primitives.entries.exponential import log
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.reductions import mean, sum_
from gradcli.primitives.primitive import Primitive
from gradcli.program import program_constants
from gradcli.program.ir import Atom, Equation, Program, Variable, check
from gradcli.program.passes import optimise, without_dead_code

# The strict comparison (false for equal operands) for each non-strict one.
_STRICT = {less_equal: less, greater_equal: greater}
# Functions that accept a single element with any number of axes.
_RESHAPING = frozenset({reshape, broadcast_to})
# Longer programs are not read as formulas.
_MOST_EQUATIONS = 2_500
# Cost of one equation in the passes of a program, in eighths of a step.
_EQUATION = 80


def formula(
    program: Program, typed: Collection[float] = (), *, equality: bool = False, finiteness: bool = False
) -> Program:
    """`program`, which has one output, as a program for the same formula in a short form.

    Numbers derived from those `typed` with a decimal point stay decimals, others become fractions. Operands that may be
    equal at single points only are taken as different, unless `equality` says that the text itself compares them;
    values are taken as finite, unless `finiteness` says that the text itself calls isfinite.

    The result has no guards: it is right where the guards of `program` hold, and everywhere if the formula is smooth. A
    program too long to be read as a formula only gets the rewrites that hold for real numbers, because its sum of
    products may be much longer than the program itself.
    """
    limits.charge_steps(_EQUATION * len(program.equations) + len(program.inputs) // 4)
    atoms = {a for e in program.equations for a in e.inputs if isinstance(a, Variable)}
    read = atoms.union(o for o in program.outputs if isinstance(o, Variable))
    # The algebra is created inside, where a budget too small for its constants is handled.
    algebra = partial(Algebra, typed, equality=equality, finiteness=finiteness)
    found = _shortened_or_optimised(program._replace(inputs=tuple(v for v in program.inputs if v in read)), algebra)
    return found._replace(inputs=program.inputs)


def _shortened_or_optimised(program: Program, algebra: Callable[[], Algebra]) -> Program:
    """A program in its shortest form, without guards; only optimised where it is too long, or where a product of its
    factors has no float value."""
    program = optimise(program)
    if len(program.equations) <= _MOST_EQUATIONS:
        try:
            return _shortened(program, algebra())
        except NoFloatError:
            # A product of factors has no float value, but the factors of the original program have.
            return without_dead_code(program._replace(guards=()))
        except TooLongError:
            pass
    return without_dead_code(optimise(program, fast=True)._replace(guards=()))


def _shortened(program: Program, algebra: Algebra) -> Program:
    (output,) = program.outputs
    reader = _ProgramReader(program, algebra)
    shape = arrays.shape(output)
    node = reader.centred(reader.in_shape(reader.atom(output), shape))
    best = reader.in_shape(Forms(reader.algebra).shortest(node), shape)
    writer = EquationWriter(reader.algebra)
    result = writer.write(best)
    return without_dead_code(check(Program(program.inputs, tuple(writer.equations), (result,))))


class _ProgramReader:
    """Reads the equations of a program as expressions of the algebra, when it is created: `known` has the expression of
    each variable, and `made` the equation."""

    def __init__(self, program: Program, algebra: Algebra) -> None:
        self.algebra = algebra
        self.logarithms = {math.log(n): n for n in algebra.typed if n > 0}
        self.known: dict[Variable, Formula] = {v: self.algebra.symbol(v) for v in program.inputs}
        self.made: dict[Atom, Equation] = {}
        for equation in program.equations:
            self.made[equation.output] = equation
            self.known[equation.output] = self._equation(equation)

    def atom(self, atom: Atom) -> Formula:
        if isinstance(atom, Variable):
            return self.known[atom]
        if arrays.dtype_name(atom) == "bool" and not arrays.shape(atom):
            return self.algebra.true if atom else self.algebra.false
        value = program_constants.number(atom)
        if value is not None and math.isfinite(value) and arrays.dtype_name(atom) != "bool":
            return self._number(value)
        return self.algebra.array(atom, program_constants.key(atom), arrays.shape(atom), arrays.dtype_name(atom))

    def _number(self, value: float) -> Formula:
        algebra = self.algebra
        typed = typed_decimal(value, algebra.typed)
        if typed is not None:
            return algebra.number(typed)
        if value in self.logarithms:
            base = typed_decimal(self.logarithms[value], algebra.typed)
            assert base is not None
            return algebra.function(log, algebra.number(base))
        return number(algebra, value)

    def _equation(self, equation: Equation) -> Formula:
        primitive, inputs, params, output = equation
        operands = [self.atom(a) for a in inputs]
        shape = output.shape
        if primitive is where:
            operands[0] = self._with_tie(operands[0], *inputs)
        if primitive.elementwise:
            operands = [self._without_broadcast(o) for o in operands]
        elif primitive not in _RESHAPING or math.prod(operands[0].shape) != 1:
            operands = [self.in_shape(o, arrays.shape(a)) for o, a in zip(operands, inputs)]
        elif primitive is broadcast_to and len(operands[0].shape) > len(shape):
            operands = [self.in_shape(operands[0], ())]
        if params.get("keepdims") and math.prod(shape) == 1:
            # The shape of a single element does not matter.
            params, shape = {**params, "keepdims": False}, ()
        return self._applied(primitive, operands, params, shape, output.dtype)

    def _with_tie(self, comparison: Formula, condition: Atom, if_true: Atom, _if_false: Atom) -> Formula:
        """The condition of a `where`, made strict where that shares a derivative at a tie.

        The derivative of max(x, y) by x is where(x <= y, where(x == y, g/2, 0), g). Formulas drop the equality, because
        it holds at single points only; but two formulas may round to the same number. For the one of x and y with the
        higher rank, x <= y becomes x < y, so that it gets all of g at a tie, and the other one none.
        """
        compared, shared = self._maker(condition), self._maker(if_true)
        if compared is None or compared.primitive not in _STRICT or shared is None or shared.primitive is not where:
            return comparison
        tie = self._maker(shared.inputs[0])
        if tie is None or tie.primitive is not equal or not isinstance(comparison, OpaqueCall):
            return comparison
        first, second = comparison.children
        if {self.atom(a) for a in tie.inputs} != {first, second} or first.rank <= second.rank:
            return comparison
        strict = _STRICT[compared.primitive]
        return self.algebra.call(strict, comparison.children, {}, comparison.shape, "bool")

    def _maker(self, atom: Atom) -> Equation | None:
        return self.made.get(atom) if isinstance(atom, Variable) else None

    def centred(self, root: Formula) -> Formula:
        """A formula with n*x - sum(x) as n*(x - mean(x)), which loses fewer digits and lets n be factored out of
        functions."""
        algebra = self.algebra
        new: dict[Formula, Formula] = {}
        for node in topological_order(root):
            found = node
            if isinstance(node, Sum):
                found = self._about_mean(node) or algebra.add(
                    *[algebra.scale(c, new[t]) for t, c in node.terms.items()]
                )
            elif isinstance(node, Product):
                found = algebra.multiply(*[algebra.power(new[b], new[e]) for b, e in node.powers.items()])
            elif isinstance(node, OpaqueCall) and node.primitive is not None:
                operands = [self.in_shape(new[c], c.shape) for c in node.children]
                if any(o is not c for o, c in zip(operands, node.children)):
                    found = self._applied(node.primitive, operands, node.params, node.shape, node.dtype)
            new[node] = found
        return new[root]

    def _about_mean(self, node: Sum) -> Formula | None:
        """A tensor minus a multiple of its sum, as a multiple of its deviation from the mean; None if no match."""
        algebra = self.algebra
        for total, c in node.terms.items():
            if not is_call(total, "sum") or not isinstance(total, OpaqueCall):
                continue
            (x,) = total.children
            factor = -c * math.prod(x.shape) / max(math.prod(total.shape), 1)
            terms = algebra.terms(x)
            if len(node.terms) == len(terms) + 1 and all(node.terms.get(t) == factor * n for t, n in terms.items()):
                middle = algebra.call(mean, [x], total.params, total.shape, total.dtype)
                return algebra.scale(factor, algebra.add(x, algebra.negative(middle)))
        return None

    def _without_broadcast(self, node: Formula) -> Formula:
        """An operand without its broadcast_to, which an elementwise function does itself; a number loses its shape."""
        inner = _in_one_shape(node)
        if self.algebra.as_number(inner) is not None:
            return inner
        return node.children[0] if is_call(node, "broadcast_to") else node

    def in_shape(self, node: Formula, shape: Shape) -> Formula:
        """A node reshaped or broadcast to a shape; a single element may have any number of axes before."""
        if node.shape == shape:
            return node
        if math.prod(node.shape) == math.prod(shape) or len(node.shape) > len(shape):
            size = shape if math.prod(node.shape) == math.prod(shape) else ()
            return self.in_shape(self._call(reshape, [node], {"shape": size}, size, "float64"), shape)
        return self._call(broadcast_to, [node], {"shape": shape}, shape, "float64")

    def _applied(
        self, primitive: Primitive, operands: Sequence[Formula], params: Mapping[str, Any], shape: Shape, dtype: str
    ) -> Formula:
        """A primitive of expressions, simplified by its identities, its parity and its linearity."""
        if primitive.elementwise and not primitive.selects and dtype != "bool":
            operands = [self._as_number(o) for o in operands]
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

    def _as_number(self, node: Formula) -> Formula:
        """The number 1 or 0 for the constant true or false; another formula unchanged."""
        if node is self.algebra.true:
            return self.algebra.one
        return self.algebra.zero if node is self.algebra.false else node

    def _linear(
        self, primitive: Primitive, operands: Sequence[Formula], params: Mapping[str, Any], shape: Shape, dtype: str
    ) -> Formula:
        """A linear function with single-element factors taken out of its operands."""
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
        """A shorter form of a reshape, a matrix product, a mean or a total, or 0 for an operand that is 0; None if no
        rule applies."""
        algebra = self.algebra
        if any(_in_one_shape(o) is algebra.zero for o in operands):
            return algebra.zero
        if primitive is reshape:
            return reshaped(algebra, operands[0], shape, dtype)
        if primitive is matmul:
            return simplified_product(algebra, operands, shape)
        if primitive is mean and 0 not in operands[0].shape:
            total = self._applied(sum_, operands, params, shape, dtype)
            return algebra.scale(Fraction(math.prod(shape), math.prod(operands[0].shape)), total)
        if primitive is sum_ and math.prod(shape) == 1:
            return self._total(operands[0], params, dtype)
        return None

    def _total(self, operand: Formula, params: Mapping[str, Any], dtype: str) -> Formula | None:
        """The sum of all elements, with single-element terms taken out; None if nothing can be taken out."""
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


def _in_one_shape(node: Formula) -> Formula:
    """The operand below broadcast_to and reshape."""
    while is_call(node, "broadcast_to") or is_call(node, "reshape"):
        node = node.children[0]
    return node


def _factored(algebra: Algebra, node: Formula) -> tuple[Formula, Formula]:
    """A node as (factor with a single element, rest); the rest keeps the shape."""
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
