"""Rewrites formulas for evaluation, not only reading: without cancellation, and without overflow of sums of
exponentials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce

from gradcli import arrays, limits
from gradcli.formulas.writing.documents import Formulas
from gradcli.formulas.writing.rewriting import Rewriter, finite_number
from gradcli.formulas.writing.root_sum_squares import without_squares
from gradcli.formulas.writing.text_writer import Language
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative, subtract
from gradcli.primitives.entries.elementwise.trigonometric import sech_square, tanh
from gradcli.primitives.entries.exponential import exp, log, logaddexp, softplus
from gradcli.primitives.entries.powers import whole_power
from gradcli.primitives.entries.reductions import SIGNATURE, max_, mean, sum_
from gradcli.primitives.entries.scans import softmax
from gradcli.primitives.primitive import Primitive, not_implemented
from gradcli.program import program_constants
from gradcli.program.ir import Atom, Equation, Program, Variable

# Cost of one term of a sum, in eighths of a step.
_TERM_STEPS = 16
# The logarithm of a longer sum would be too long in a language that cannot name its parts.
_MOST_SUMMED = 100
# An exponential raised to one of these powers is treated as a product of its factors.
_FEW = (2.0, 3.0, 4.0)


_LACKING = not_implemented("formulas alone have this function")


def stable(formulas: Formulas, language: Language) -> Formulas:
    """Formulas rewritten for a language so that they agree with what `gradcli eval` computes."""

    def scaled(program: Program) -> Program:
        return without_squares(_without_overflow(program), language, own=formulas.squares)

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


# Only generated code uses this primitive; programs compute the function by its parts.
_logsumexp = Primitive(
    "logsumexp", SIGNATURE, "logarithm of the sum of the exponentials over the axes",
    vjp=None, jet=_LACKING, batch=_LACKING,
    derivative="g*softmax(x)",
)  # fmt: skip


class _Term(NamedTuple):
    """factor*exp(exponent), or the number `factor` where the exponent is None."""

    factor: float
    exponent: Atom | None


def _without_overflow(program: Program) -> Program:
    """`program` with log(exp(x) + exp(y)) as logaddexp(x, y) and exp(x)/(exp(x) + exp(y)) as 1/(1 + exp(y - x)).

    This holds for any number of terms, with numeric terms and coefficients, and for products of such sums divided by a
    power of one; the results agree with the stable functions (sigmoid, softmax, logsumexp) that they stand for.
    """
    return _Sums().rewritten(program)


class _Sums(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        # The equations that compute a sum of exponentials and numbers, or one such term.
        self.sums: dict[Variable, Equation] = {}
        # The terms of the sums inside logarithms, by the result of the logarithm.
        self.logarithms: dict[Atom, Sequence[_Term]] = {}

    def replacement(self, equation: Equation) -> Atom | None:
        found = self._stable(equation)
        if found is None and self._is_sum(equation):
            self.sums[equation.output] = equation
        return found

    def _is_sum(self, equation: Equation) -> bool:
        primitive, inputs = equation.primitive, equation.inputs
        if primitive is exp:
            return not arrays.shape(inputs[0])
        known = [a in self.sums if isinstance(a, Variable) else bool(finite_number(a)) for a in inputs]
        if primitive in (add, subtract, negative):
            return all(known)
        numbers = sum(not isinstance(a, Variable) for a in inputs)
        return all(known) and (
            (primitive is multiply and numbers == 1) or (primitive is divide and not isinstance(inputs[1], Variable))
        )

    def _terms(self, atom: Atom) -> Sequence[_Term]:
        """The terms of a sum of exponentials, its numbers added up as the last one; empty for anything else."""
        number = 0.0
        others: list[_Term] = []
        waiting = [(1.0, atom)] if isinstance(atom, Variable) else []
        while waiting:
            if len(waiting) + len(others) > _MOST_SUMMED:
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
        limits.charge_steps(_TERM_STEPS * len(others))
        found = [*others, _Term(number, None)] if number else others
        return found if all(0 < abs(t.factor) < math.inf for t in found) else []

    def _positive_terms(self, atom: Atom) -> Sequence[_Term]:
        found = self._terms(atom)
        return found if all(t.factor > 0 for t in found) else []

    def _stable(self, equation: Equation) -> Atom | None:
        """The stable form of a logarithm or quotient of sums of exponentials; None for everything else."""
        if equation.primitive is log:
            total = self.defining_equation(equation.inputs[0], sum_)
            exponentials = None if total is None else self.defining_equation(total.inputs[0], exp)
            if total is not None and exponentials is not None and not self._is_shifted(exponentials.inputs[0]):
                return self.call(_logsumexp, exponentials.inputs, total.params, total.output.shape)
            terms = self._positive_terms(equation.inputs[0])
            if len(terms) < 2:
                return None
            found = self._logarithm([self._exponent(t) for t in terms])
            self.logarithms[found] = terms
            return found
        if equation.primitive is subtract:
            return self._minus_logarithm(*equation.inputs)
        if equation.primitive is not divide:
            return None
        return self._quotient(*equation.inputs) or self._softmax(*equation.inputs)

    def _is_shifted(self, exponent: Atom) -> bool:
        """Return whether the maximum is already subtracted from the exponent, so that nothing overflows."""
        made = self.defining_equation(exponent, subtract)
        return made is not None and self.defining_equation(made.inputs[1], max_) is not None

    def _minus_logarithm(self, first: Atom, second: Atom) -> Atom | None:
        """x - log(sum of exponentials that contains exp(x)), as minus the logarithm of the sum of exponentials of the
        differences from x, one of which is 0; this avoids subtracting large exponents. None if no match."""
        terms = self.logarithms.get(second, ()) if isinstance(second, Variable) else ()
        if not isinstance(first, Variable) or not any(t.exponent is first for t in terms):
            return None
        relative = [self._exponent(_Term(t.factor, self._difference(t.exponent, first))) for t in terms]
        return self.apply(negative, self._logarithm(relative))

    def _difference(self, exponent: Atom | None, other: Atom) -> Atom | None:
        if exponent is other:
            return None
        return self.apply(negative, other) if exponent is None else self.apply(subtract, exponent, other)

    def _quotient(self, above: Atom, below: Atom) -> Atom | None:
        """A product with sums of exponentials divided by a power of one: each such factor is divided by one factor of
        it."""
        power = self.defining_equation(below, whole_power)
        base, n = (below, 1) if power is None else (power.inputs[0], int(power.params["n"]))
        divisor = self._positive_terms(base)
        if len(divisor) < 2 or n < 1:
            return None
        found: list[Atom] = []
        left = n
        for factor in self.factors(above, self.sums):
            terms = self._terms(factor) if left else []
            if any(t.exponent is not None for t in terms):
                products = [self._product_of(t.exponent, divisor) for t in terms]
                degrees = {len(product) for product in products}
                degree = degrees.pop() if len(degrees) == 1 else 1
                if degree > left or degrees:
                    degree, products = 1, [[t.exponent] for t in terms]
                found.append(self._sum_of_quotients([t.factor for t in terms], products, divisor))
                left -= degree
            else:
                found.append(factor)
        if left == n:
            return None
        product = reduce(self._times, found)
        if not left:
            return product
        return self.apply(divide, product, base if left == 1 else self.apply(whole_power, base, n=float(left)))

    def _product_of(self, exponent: Atom | None, divisor: Sequence[_Term]) -> Sequence[Atom | None]:
        """The exponents whose exponentials multiply to exp(exponent), if each is a term of `divisor`; else
        [exponent]."""
        found: list[Atom] = []
        waiting = [] if exponent is None else [exponent]
        while waiting and len(waiting) + len(found) < _MOST_SUMMED:
            atom = waiting.pop()
            if any(_same(t.exponent, atom) for t in divisor):
                found.append(atom)
                continue
            made = self.defining_equation(atom, add, multiply)
            number = None if made is None or made.primitive is add else finite_number(made.inputs[0])
            if made is not None and made.primitive is add:
                waiting += reversed(made.inputs)
            elif made is not None and number in _FEW:
                waiting += [made.inputs[1]] * int(number)
            else:
                return [exponent]
        return found or [exponent]

    def _sum_of_quotients(
        self, factors: Sequence[float], products: Sequence[Sequence[Atom | None]], divisor: Sequence[_Term]
    ) -> Atom:
        """A sum of products of exponentials, each divided by as many factors of `divisor` as it has itself."""
        parts: list[Atom] = []
        for factor, exponents in zip(factors, products):
            first, *others = (self._total_over(exponent, divisor) for exponent in exponents)
            shares = (self.apply(divide, 1.0, total) for total in others)
            parts.append(reduce(self._times, shares, self.apply(divide, factor, first)))
        return reduce(lambda a, b: self.apply(add, a, b), parts)

    def _total_over(self, exponent: Atom | None, divisor: Sequence[_Term]) -> Atom:
        """The sum `divisor` divided by exp(exponent)."""
        first, *others = sorted(divisor, key=lambda t: not _same(t.exponent, exponent))
        total: Atom = first.factor if _same(first.exponent, exponent) else self._scaled(first, exponent)
        for term in others:
            total = self.apply(add, total, self._scaled(term, exponent))
        return total

    def _times(self, first: Atom, second: Atom) -> Atom:
        return self.apply(multiply, first, second)

    def _softmax(self, above: Atom, below: Atom) -> Atom | None:
        """exp(x)/sum(exp(x)) of a tensor, also as one factor of the numerator, as softmax(x)."""
        total = self.defining_equation(below, sum_)
        made = None if total is None else self.defining_equation(total.inputs[0], exp)
        if total is None or made is None or total.inputs[0] not in (factors := self.factors(above)):
            return None
        axes, ndim = total.params["axis"], len(made.output.shape)
        if len(axes) != 1 or not (total.params["keepdims"] or ndim == 1):
            return None
        share = self.call(softmax, made.inputs, {"axis": axes[0]}, made.output.shape)
        place = factors.index(total.inputs[0])
        return reduce(self._times, [*factors[:place], share, *factors[place + 1 :]])

    def _logarithm(self, exponents: Sequence[Atom]) -> Atom:
        """The logarithm of the sum of exponentials, by halves: nested logaddexp texts repeat their operands and would
        grow exponentially."""
        if len(exponents) == 1:
            return exponents[0]
        middle = (len(exponents) + 1) // 2
        first, second = self._logarithm(exponents[:middle]), self._logarithm(exponents[middle:])
        for zero, other in ((first, second), (second, first)):
            if not isinstance(zero, Variable) and zero == 0.0:
                return self.apply(softplus, other)
        return self.apply(logaddexp, first, second)

    def _exponent(self, term: _Term) -> Atom:
        shift = math.log(term.factor)
        if term.exponent is None or not shift:
            return shift if term.exponent is None else term.exponent
        return self.apply(add if shift > 0 else subtract, term.exponent, abs(shift))

    def _scaled(self, term: _Term, exponent: Atom | None) -> Atom:
        """A term divided by exp(exponent)."""
        if term.exponent is None:
            if exponent is None:
                return term.factor
            found = self.apply(exp, self.apply(negative, exponent))
        else:
            found = self.apply(
                exp, term.exponent if exponent is None else self.apply(subtract, term.exponent, exponent)
            )
        return found if term.factor == 1 else self.apply(multiply, term.factor, found)


def _parts(equation: Equation, factor: float) -> Sequence[tuple[float, Atom]]:
    """The operands of a sum, multiple or negation, each with the factor that multiplies it."""
    first, *others = equation.inputs
    if equation.primitive is negative:
        return ((-factor, first),)
    (second,) = others
    if equation.primitive in (add, subtract):
        return (factor if equation.primitive is add else -factor, second), (factor, first)
    if equation.primitive is divide:
        return ((factor / float(second), first),)
    if isinstance(first, Variable):
        first, second = second, first
    return ((factor * float(first), second),)


def _same(first: Atom | None, second: Atom | None) -> bool:
    if first is None or second is None or isinstance(first, Variable) or isinstance(second, Variable):
        return first is second
    return program_constants.key(first) == program_constants.key(second)
