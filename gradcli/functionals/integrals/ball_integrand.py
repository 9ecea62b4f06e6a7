"""The integrand of an integral with proved digits, on complex balls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

from flint import acb

from gradcli import arrays
from gradcli.arrays.flint import flint_names
from gradcli.arrays.flint.balls import precision
from gradcli.errors import BackendError
from gradcli.functionals.complex_programs import ComplexProgram, form
from gradcli.functionals.complex_rules import COMPLEX_RULES, UNDEFINED_BALL, Rule
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Equation, Program, Variable


class BallIntegrand:
    """A program of real numbers, also by way of complex ones, as a function of complex balls: where the inputs are real,
    its result is the real part of `factor` times the value of the function.

    Raises BackendError for a function that has no `rules`.
    """

    def __init__(self, program: Program, rules: Mapping[str, Rule]) -> None:
        self.program = program
        # Whether it is a part of a complex function, and its factor.
        self.is_part, self.factor = False, 1.0 + 0j
        try:
            part = _PartOfAnalytic(rules)
            self._compiled = ComplexProgram(program, part.rule_of)
            result = program.outputs[0]
            if isinstance(result, Variable) and result in part.factors:
                self.is_part, self.factor = True, part.factors[result]
        except _NeedsConjugatesError:
            self._compiled = ComplexProgram(program, _Pairs(rules).rule_of, of_complex=_constant_pair)
        # The cost of an evaluation in eighths of a step, by the precision.
        self._costs: dict[int, int] = {}

    @cached_property
    def form(self) -> Hashable:
        """What is equal for the real and the imaginary part of a complex function."""
        return form(self.program, name=lambda e: "part" if e.primitive.name in _FACTORS else e.primitive.name)

    def __call__(self, inputs: Sequence[acb], analytic: bool) -> acb:
        """The value; not finite where it must be `analytic` and may be not, and where it is no real number for real
        balls."""
        bits = precision()
        cost = self._costs.get(bits)
        if cost is None:
            used = [equation.primitive for equation in self.program.equations]
            cost = self._costs[bits] = sum(flint_names.cost_of_complex(p.name, p.time, bits) for p in used)
        return self._compiled.values(inputs, analytic=analytic, cost=cost)[self._compiled.outputs[0]]


def _found(rules: Mapping[str, Rule], equation: Equation) -> Rule:
    name = equation.primitive.name
    rule = COMPLEX_RULES.get(name, rules.get(name)) if arrays.is_complex(equation.output) else rules.get(name)
    if rule is None:
        raise BackendError(f"'{equation.primitive.called}' has no proved digits inside an integral")
    return rule


def _refuse_real_parts(equation: Equation) -> None:
    """Raise BackendError for an operation on complex numbers that is defined by their real parts."""
    if equation.primitive.name in _OF_REALS:
        called = equation.primitive.called
        raise BackendError(f"'{called}' of complex numbers has no proved digits inside an integral")


# --- parts of analytic functions


class _NeedsConjugatesError(Exception):
    """Raised for a program that is not linear in real and imaginary parts."""


class _PartOfAnalytic:
    """The rules of a program that is linear in the real and imaginary parts of complex numbers, which are analytic in the
    variable: a part is represented by the whole number."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules
        # By variable: it is the real part of this factor times the number that represents it.
        self.factors: dict[Variable, complex] = {}

    def rule_of(self, equation: Equation) -> Rule:
        name = equation.primitive.name
        factors = [self.factors.get(x) if isinstance(x, Variable) else None for x in equation.inputs]
        if any(factors):
            self.factors[equation.output] = _common_factor(equation, factors)
            return self._rules[name]
        if any(map(arrays.is_complex, equation.inputs)):
            if name in _FACTORS:
                self.factors[equation.output] = _FACTORS[name]
                return _represented
            if name in _OF_PAIRS:
                raise _NeedsConjugatesError
            _refuse_real_parts(equation)
        if name == "complex":
            return _joined
        rule = _found(self._rules, equation)
        is_real = name in _REAL_OF_REALS or arrays.is_complex(equation.output)
        return rule if is_real else _real_where_given_reals(rule)


def _common_factor(equation: Equation, factors: Sequence[complex | None]) -> complex:
    """The factor of a result, from those of the operands that are parts."""
    name, known = equation.primitive.name, {f for f in factors if f is not None}
    if name in ("add", "subtract", "negative"):
        # A real number is the real part of itself.
        is_linear = len(known) == 1 and (None not in factors or known == {1.0})
    else:
        is_linear = (name == "multiply" and None in factors) or (name == "divide" and factors[1] is None)
    if arrays.is_complex(equation.output) or not is_linear:
        raise _NeedsConjugatesError
    return known.pop()


def _represented(_analytic: bool, x: acb) -> acb:
    return x


def _joined(_analytic: bool, a: acb, b: acb) -> acb:
    return a + acb(0, 1) * b


_FACTORS: Mapping[str, complex] = {"real_part": 1.0, "imaginary_part": -1j}


# --- pairs of conjugates


class ConjugatePair(NamedTuple):
    """A complex number as a function of a real variable, and its conjugate, which are analytic in the variable each."""

    number: acb
    conjugate: acb


class _Pairs:
    """The rules of a program that computes with complex numbers and their conjugates."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules

    def rule_of(self, equation: Equation) -> Rule:
        name = equation.primitive.name
        if name == "complex":
            return _complex
        if any(map(arrays.is_complex, equation.inputs)):
            if name in _OF_PAIRS:
                return _OF_PAIRS[name]
            _refuse_real_parts(equation)
            of_pair = _decided_by_both if name in _OF_NUMBERS else _of_pairs
            return of_pair(_found(self._rules, equation))
        rule = _found(self._rules, equation)
        return rule if name in _REAL_OF_REALS else _real_where_given_reals(rule)


def _real_where_given_reals(rule: Rule) -> Rule:
    """A rule whose result for real operands is real, and undefined where a function has none, as the square root below
    0."""

    def real(analytic: bool, *operands: Any, **params: Any) -> Any:
        found = rule(analytic, *operands, **params)
        if analytic or type(found) is not acb or found.imag.contains(0):
            return found
        return UNDEFINED_BALL if all(type(x) is not acb or x.imag.is_zero() for x in operands) else found

    return real


def _of_pairs(rule: Rule) -> Rule:
    """A rule of complex numbers for these and their conjugates."""

    def pairs(analytic: bool, *operands: Any, **params: Any) -> ConjugatePair:
        number = rule(analytic, *(x.number if type(x) is ConjugatePair else x for x in operands), **params)
        if not analytic:
            # The variable is real. On a branch cut, the function of a conjugate is not the conjugate.
            return ConjugatePair(number, number.conjugate())
        conjugate = rule(analytic, *(x.conjugate if type(x) is ConjugatePair else x for x in operands), **params)
        return ConjugatePair(number, conjugate)

    return pairs


def _decided_by_both(rule: Rule) -> Rule:
    """A question about complex numbers, for these and their conjugates."""
    of_both = _of_pairs(rule)

    def decided(_analytic: bool, *operands: Any) -> bool | None:
        number, conjugate = of_both(True, *operands)
        return number if number is conjugate else None

    return decided


def _constant_pair(number: acb) -> ConjugatePair:
    return ConjugatePair(number, number.conjugate())


def _complex(_analytic: bool, a: acb, b: acb) -> ConjugatePair:
    return ConjugatePair(a + acb(0, 1) * b, a - acb(0, 1) * b)


def _real_part(_analytic: bool, x: ConjugatePair) -> acb:
    return (x.number + x.conjugate) / 2


def _imaginary_part(_analytic: bool, x: ConjugatePair) -> acb:
    return (x.number - x.conjugate) / acb(0, 2)


def _modulus(analytic: bool, x: ConjugatePair) -> acb:
    return (x.number * x.conjugate).sqrt(analytic=analytic)


_OF_PAIRS: dict[str, Callable[..., Any]] = {
    "real_part": _real_part,
    "imaginary_part": _imaginary_part,
    "conjugate": lambda _, x: ConjugatePair(x.conjugate, x.number),
    "abs": _modulus,
}
# Operations that are defined by real parts.
_OF_REALS = frozenset(
    {"sign", "floor", "ceil", "maximum", "minimum", "relu", "clip", "hypot", "atan2", "cbrt", "softsign", "integral"}
    | {"less", "less_equal", "greater", "greater_equal"}
)
# Questions about complex numbers, which do not depend on the part.
_OF_NUMBERS = frozenset({"equal", "not_equal", "may_differ_from_zero", "isfinite", "isnan", "isinf"})
# Operations whose results are real for all real operands for which there are any.
_REAL_OF_REALS = frozenset(
    {"add", "subtract", "multiply", "divide", "negative", "reciprocal", "square", "whole_power", "where", "exp", "sin"}
    | {"cos", "tan", "sinh", "cosh", "tanh", "sech", "abs", "sign", "floor", "ceil", "maximum", "minimum", "relu"}
)
