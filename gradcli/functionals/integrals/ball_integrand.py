"""The integrand of an integral with proved digits, on complex balls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flint import acb

from gradcli import arrays
from gradcli.arrays.flint.balls import precision
from gradcli.errors import BackendError
from gradcli.functionals.complex_programs import ComplexProgram, ConjugatePair
from gradcli.functionals.complex_rules import UNDEFINED_BALL, Rule
from gradcli.program.ir import Equation, Program, Variable

# The cost of an operation in eighths of a step, and the precision up to which it hardly depends on that; beyond, an
# exponential takes about as much longer as there are more bits.
_OPERATION, _CHEAP_BITS = 4, 128


class BallIntegrand:
    """A program of real numbers, also by way of complex ones, as a function of complex balls.

    Raises BackendError for a function that has no `rules`.
    """

    def __init__(self, program: Program, rules: Mapping[str, Rule]) -> None:
        self.program = program
        self._rules = rules
        # The variables that are complex for a real variable of integration.
        self._pairs = set[Variable]()
        self._compiled = ComplexProgram(program, self._rule_of)

    def __call__(self, inputs: Sequence[acb], analytic: bool) -> acb:
        """The value; not finite where it must be `analytic` and may be not, and where it is no real number for real
        balls."""
        cost = _OPERATION * max(1, precision() // _CHEAP_BITS)
        return self._compiled.values(inputs, analytic=analytic, cost=cost)[self._compiled.outputs[0]]

    def _rule_of(self, equation: Equation) -> Rule:
        primitive, name = equation.primitive, equation.primitive.name
        # Results of other kinds, and parts of complex numbers, may be of complex operands.
        if (equation.output.dtype != "float64" or name in _COMPLEX_RULES) and (
            name == "complex" or any(self._is_pair(atom) for atom in equation.inputs)
        ):
            if name in _COMPLEX_RULES:
                if name in _OF_PAIRS:
                    self._pairs.add(equation.output)
                return _COMPLEX_RULES[name]
            if name in _OF_REALS:
                raise BackendError(f"'{primitive.called}' of complex numbers has no proved digits inside an integral")
            self._pairs.add(equation.output)
            return _of_pairs(self._rule(equation))
        rule = self._rule(equation)
        return rule if name in _REAL_OF_REALS else _real_where_given_reals(rule)

    def _is_pair(self, atom: Any) -> bool:
        return atom in self._pairs if isinstance(atom, Variable) else arrays.is_complex(atom)

    def _rule(self, equation: Equation) -> Rule:
        rule = self._rules.get(equation.primitive.name)
        if rule is None:
            raise BackendError(f"'{equation.primitive.called}' has no proved digits inside an integral")
        return rule


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


def _complex(_analytic: bool, a: acb, b: acb) -> ConjugatePair:
    return ConjugatePair(a + acb(0, 1) * b, a - acb(0, 1) * b)


def _real_part(_analytic: bool, x: ConjugatePair) -> acb:
    return (x.number + x.conjugate) / 2


def _imaginary_part(_analytic: bool, x: ConjugatePair) -> acb:
    return (x.number - x.conjugate) / acb(0, 2)


def _modulus(analytic: bool, x: ConjugatePair) -> acb:
    return (x.number * x.conjugate).sqrt(analytic=analytic)


_OF_PAIRS = frozenset({"complex", "conjugate"})
_COMPLEX_RULES: dict[str, Callable[..., Any]] = {
    "complex": _complex,
    "real_part": _real_part,
    "imaginary_part": _imaginary_part,
    "conjugate": lambda _, x: ConjugatePair(x.conjugate, x.number),
    "abs": _modulus,
}
# Operations that are defined by real parts.
_OF_REALS = frozenset(
    {"sign", "floor", "ceil", "maximum", "minimum", "relu", "clip", "hypot", "atan2", "cbrt", "softsign", "integral"}
    | {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "may_differ_from_zero", "isfinite"}
)
# Operations whose results are real for all real operands for which there are any.
_REAL_OF_REALS = frozenset(
    {"add", "subtract", "multiply", "divide", "negative", "reciprocal", "square", "whole_power", "where", "exp", "sin"}
    | {"cos", "tan", "sinh", "cosh", "tanh", "sech", "abs", "sign", "floor", "ceil", "maximum", "minimum", "relu"}
)
