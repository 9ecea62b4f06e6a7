"""Rewrites formulas for evaluation, not only reading: without overflow and without cancellation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import reduce

from gradcli import limits
from gradcli.formulas.documents import Formulas
from gradcli.formulas.exponential_sums import without_overflow
from gradcli.formulas.rewriting import Rewriter, finite_number
from gradcli.formulas.root_sum_squares import without_squares
from gradcli.formulas.text_writer import Language
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative, subtract
from gradcli.primitives.entries.powers import whole_power
from gradcli.primitives.entries.reductions import mean
from gradcli.primitives.entries.trigonometric import sech_square, tanh
from gradcli.program.ir import Atom, Equation, Program, Variable


def stable(formulas: Formulas, language: Language) -> Formulas:
    """Formulas rewritten for a language so that they agree with what `gradcli eval` computes."""

    def scaled(program: Program) -> Program:
        return without_squares(without_overflow(program), language, own=formulas.squares)

    derivatives = {key: scaled(without_cancellation(program)) for key, program in formulas.derivatives.items()}
    return formulas._replace(value=scaled(formulas.value), derivatives=derivatives)


# --- sums whose terms cancel

# Sums of more terms are left as they are.
_MOST_TERMS = 100
# Cost of one term of a sum, in eighths of a step.
_TERM = 16


def without_cancellation(program: Program) -> Program:
    """`program` with sums rewritten so that cancelling terms do not lose digits.

    2*x - y - z becomes (x - y) + (x - z), for coefficients with the sum 0 where a single one has its sign: where x, y
    and z are nearly equal, these differences are exact. x - mean(x) has the mean of the result subtracted again, and
    1 - tanh(x)**2 becomes 1/cosh(x)**2.
    """
    uses = {a for e in program.equations if e.primitive in (add, subtract) for a in e.inputs if isinstance(a, Variable)}
    return _Differences(uses).rewritten(program)


class _Differences(Rewriter):
    def __init__(self, parts: set[Variable]) -> None:
        super().__init__()
        # Variables that are operands of sums; a sum among them is rewritten as part of the longer sum.
        self.parts = parts

    def replacement(self, equation: Equation) -> Atom | None:
        if equation.primitive not in (add, subtract):
            return None
        if equation.primitive is subtract and finite_number(equation.inputs[0]) == 1:
            return self._sech_square(equation.inputs[1])
        about_mean = self._about_mean(*equation.inputs) if equation.primitive is subtract else None
        if about_mean is not None or equation.output in self.parts:
            return about_mean
        terms = self._terms(equation)
        if sum(terms.values()) != 0:
            return None
        if len(terms) == 2:
            return self._multiple_about_mean(*terms.items())
        positive = [v for v, c in terms.items() if c > 0]
        alone = positive if len(positive) == 1 else [v for v in terms if v not in positive]
        if len(alone) != 1:
            return None
        (centre,) = alone
        return self._differences(centre, {v: -c for v, c in terms.items() if v is not centre})

    def _sech_square(self, atom: Atom) -> Atom | None:
        square = self.defining_equation(atom, whole_power)
        made = None if square is None or square.params["n"] != 2 else self.defining_equation(square.inputs[0], tanh)
        return None if made is None else self.apply(sech_square, made.inputs[0])

    def _terms(self, equation: Equation) -> Mapping[Variable, Fraction]:
        """The coefficients of the variables of a nested sum; empty if it has other operands or too many terms."""
        found: dict[Variable, Fraction] = {}
        waiting: list[tuple[Fraction, Equation]] = [(Fraction(1), equation)]
        seen = 0
        while waiting:
            factor, current = waiting.pop()
            first, second = current.inputs
            signs = (factor, -factor if current.primitive is subtract else factor)
            for c, atom in zip(reversed(signs), (second, first)):
                seen += 1
                if not isinstance(atom, Variable) or seen > _MOST_TERMS:
                    return {}
                below = self.defining_equation(atom, add, subtract)
                if below is not None:
                    waiting.append((c, below))
                    continue
                scale, base = self._scaled(atom)
                found[base] = found.get(base, Fraction(0)) + c * scale
        limits.charge_steps(_TERM * len(found))
        return {v: c for v, c in found.items() if c}

    def _scaled(self, atom: Variable) -> tuple[Fraction, Variable]:
        """An atom as (factor, variable), with constant factors, divisors and signs taken out."""
        factor = Fraction(1)
        while True:
            made = self.defining_equation(atom, multiply, divide, negative)
            if made is None:
                return factor, atom
            of_number, other = (-1.0, *made.inputs) if made.primitive is negative else made.inputs
            if made.primitive is divide:
                of_number, other = other, of_number
            number = finite_number(of_number)
            if not number or not isinstance(other, Variable) or other.shape != atom.shape:
                return factor, atom
            factor = factor / Fraction(number) if made.primitive is divide else factor * Fraction(number)
            atom = other

    def _differences(self, centre: Variable, others: Mapping[Variable, Fraction]) -> Atom:
        """The sum of multiples of the differences between `centre` and the other variables."""
        negated = next(iter(others.values())) < 0
        below = math.lcm(*(c.denominator for c in others.values()))
        counts = {v: int(abs(c) * below) for v, c in others.items()}
        above = math.gcd(*counts.values())
        # Keep the order of the terms in the formula.
        parts = [self._times(n // above, self._difference(centre, v, negated)) for v, n in counts.items()]
        total = self._times(above, reduce(lambda a, b: self.apply(add, a, b), parts))
        return total if below == 1 else self.apply(divide, total, float(below))

    def _difference(self, centre: Variable, other: Variable, negated: bool) -> Variable:
        return self.apply(subtract, *((other, centre) if negated else (centre, other)))

    def _times(self, factor: int, atom: Variable) -> Variable:
        return atom if factor == 1 else self.apply(multiply, float(factor), atom)

    def _about_mean(self, x: Atom, middle: Atom) -> Variable | None:
        """x - mean(x) minus the mean of that, which corrects the rounding error of the computed mean; None if no
        match."""
        made = self.defining_equation(middle, mean)
        if made is None or made.inputs[0] is not x:
            return None
        deviations = self.apply(subtract, x, middle)
        return self.apply(subtract, deviations, self.call(mean, (deviations,), made.params, made.output.shape))

    def _multiple_about_mean(self, first: tuple[Variable, Fraction], second: tuple[Variable, Fraction]) -> Atom | None:
        for (x, c), (middle, _) in ((first, second), (second, first)):
            found = self._about_mean(x, middle)
            if found is not None:
                total = found if abs(c.numerator) == 1 else self.apply(multiply, float(abs(c.numerator)), found)
                total = total if c.denominator == 1 else self.apply(divide, total, float(c.denominator))
                return total if c > 0 else self.apply(negative, total)
        return None
