"""Sums of exponentials in code that is to be run: their logarithms and quotients, where the exponentials overflow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.arrays.shapes import broadcast
from gradcli.primitives.arithmetic import add, divide, multiply, negative, subtract
from gradcli.primitives.exponential import exp, log, logaddexp, softplus
from gradcli.primitives.primitive import Primitive
from gradcli.program import constants
from gradcli.program.ir import Atom, Equation, Program, Variable

# In eighths of steps, for each term of a sum.
_TERM = 16
# Of a sum of more the logarithm is too long for a language without names for parts.
_MOST_TERMS = 100


class _Term(NamedTuple):
    """factor*exp(exponent); without an exponent the factor alone."""

    factor: float
    exponent: Atom | None


def without_overflow(program: Program) -> Program:
    """`program` with log(exp(x) + exp(y)) as logaddexp(x, y), and exp(x)/(exp(x) + exp(y)) as 1/(1 + exp(y - x)), for
    any number of terms, and numbers among them and before them: as the functions that it stands for are evaluated."""
    return _Rewriter().rewritten(program)


class _Rewriter:
    def __init__(self) -> None:
        self.equations: list[Equation] = []
        # What gives a sum of exponentials and numbers, or one of them.
        self.sums: dict[Variable, Equation] = {}

    def rewritten(self, program: Program) -> Program:
        become: dict[Variable, Atom] = {}
        for equation in program.equations:
            inputs = tuple(become.get(a, a) if isinstance(a, Variable) else a for a in equation.inputs)
            equation = equation._replace(inputs=inputs)
            found = self._stable(equation)
            if found is not None:
                become[equation.output] = found
                continue
            self.equations.append(equation)
            if self._is_sum(equation):
                self.sums[equation.output] = equation
        outputs = tuple(become.get(o, o) if isinstance(o, Variable) else o for o in program.outputs)
        return program._replace(equations=tuple(self.equations), outputs=outputs)

    def _is_sum(self, equation: Equation) -> bool:
        primitive, inputs = equation.primitive, equation.inputs
        if primitive is exp:
            return True
        known = [a in self.sums if isinstance(a, Variable) else _is_positive(a) for a in inputs]
        if primitive is add:
            return all(known)
        numbers = sum(not isinstance(a, Variable) for a in inputs)
        return all(known) and (
            (primitive is multiply and numbers == 1) or (primitive is divide and not isinstance(inputs[1], Variable))
        )

    def _terms(self, atom: Atom) -> Sequence[_Term]:
        """The terms of a sum of exponentials, with its numbers added up as the last of them; none of anything else."""
        number = 0.0
        others: list[_Term] = []
        waiting = [(1.0, atom)] if isinstance(atom, Variable) else []
        while waiting:
            if len(waiting) + len(others) > _MOST_TERMS:
                return []
            factor, atom = waiting.pop()
            if not isinstance(atom, Variable):
                number += factor * float(atom)
            elif atom not in self.sums:
                return []
            elif self.sums[atom].primitive is exp:
                others.append(_Term(factor, self.sums[atom].inputs[0]))
            else:
                waiting += _parts(self.sums[atom], factor)
        limits.charge_steps(_TERM * len(others))
        found = [*others, _Term(number, None)] if number else others
        return found if all(0 < t.factor < math.inf for t in found) else []

    def _stable(self, equation: Equation) -> Atom | None:
        """What the logarithm or quotient of a sum of exponentials is computed as; None of everything else."""
        if equation.primitive is log:
            terms = self._terms(equation.inputs[0])
            return self._logarithm([self._exponent(t) for t in terms]) if len(terms) > 1 else None
        if equation.primitive is not divide:
            return None
        above, below = map(self._terms, equation.inputs)
        if len(above) != 1 or len(below) < 2:
            return None
        (factor, exponent) = above[0]
        place = next((i for i, t in enumerate(below) if _same(t.exponent, exponent)), None)
        if place is None:
            return None
        total: Atom = below[place].factor
        for term in (*below[:place], *below[place + 1 :]):
            total = self._apply(add, total, self._scaled(term, exponent))
        return self._apply(divide, factor, total)

    def _logarithm(self, exponents: Sequence[Atom]) -> Atom:
        """Of the exponentials of these, in halves: a text in which parts stand several times would grow without end."""
        if len(exponents) == 1:
            return exponents[0]
        middle = (len(exponents) + 1) // 2
        first, second = self._logarithm(exponents[:middle]), self._logarithm(exponents[middle:])
        for zero, other in ((first, second), (second, first)):
            if not isinstance(zero, Variable) and zero == 0.0:
                return self._apply(softplus, other)
        return self._apply(logaddexp, first, second)

    def _exponent(self, term: _Term) -> Atom:
        shift = math.log(term.factor)
        if term.exponent is None or not shift:
            return shift if term.exponent is None else term.exponent
        return self._apply(add if shift > 0 else subtract, term.exponent, abs(shift))

    def _scaled(self, term: _Term, exponent: Atom) -> Atom:
        """A term over an exponential."""
        if term.exponent is None:
            found = self._apply(exp, self._apply(negative, exponent))
        else:
            found = self._apply(exp, self._apply(subtract, term.exponent, exponent))
        return found if term.factor == 1 else self._apply(multiply, term.factor, found)

    def _apply(self, primitive: Primitive, *inputs: Atom) -> Variable:
        output = Variable(broadcast([arrays.shape(a) for a in inputs]), "float64")
        self.equations.append(Equation(primitive, inputs, _NONE, output))
        return output


_NONE: Mapping[str, Any] = {}


def _is_positive(constant: Any) -> bool:
    number = None if arrays.dtype_name(constant) == "bool" else constants.number(constant)
    return number is not None and 0 < number < math.inf


def _parts(equation: Equation, factor: float) -> Sequence[tuple[float, Atom]]:
    """The operands of a sum, or the one that a number is beside, and what they are multiplied with."""
    first, second = equation.inputs
    if equation.primitive is add:
        return (factor, second), (factor, first)
    if equation.primitive is divide:
        return ((factor / float(second), first),)
    if isinstance(first, Variable):
        first, second = second, first
    return ((factor * float(first), second),)


def _same(first: Atom, second: Atom) -> bool:
    if isinstance(first, Variable) or isinstance(second, Variable):
        return first is second
    return first is not None and constants.key(first) == constants.key(second)
