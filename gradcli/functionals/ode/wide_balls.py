"""The right side of a differential equation on wide balls of complex numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import acb, arb

from gradcli.errors import BackendError
from gradcli.functionals.complex_programs import ComplexProgram
from gradcli.functionals.complex_rules import UNDEFINED_BALL, Rule
from gradcli.functionals.integrals.ball_integrals import RULES_OF_INTEGRANDS
from gradcli.program.ir import Equation, Program

# The cost of an operation, in eighths of a step.
_OPERATION = 2
# Accurate bits of a ball from which no other bound is computed.
_THIN = 20


class WideProgram(ComplexProgram):
    """A program of an equation. Raises BackendError for a function that has no complex balls."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, _rule_of)

    def all_values(self, inputs: Sequence[acb], *, analytic: bool) -> list[Any]:
        """The values of all variables, and of the constants."""
        return self.values(inputs, analytic=analytic, cost=_OPERATION * len(self.variables))


def _rule_of(equation: Equation) -> Rule:
    rule = _RULES.get(equation.primitive.name)
    if rule is None:
        raise BackendError(f"'{equation.primitive.called}' has no proved digits inside a differential equation")
    return rule


def _divided(_analytic: bool, x: acb, y: acb) -> acb:
    near = y.abs_lower()
    return _within(x / y, x.abs_upper() / near) if near > 0 else UNDEFINED_BALL


def _reciprocal(_analytic: bool, x: acb) -> acb:
    near = x.abs_lower()
    return _within(1 / x, 1 / near) if near > 0 else UNDEFINED_BALL


def _within(x: acb, size: arb) -> acb:
    """A ball that is known to be of at most a size."""
    if x.is_finite() and (x.real.abs_upper() < size and x.imag.abs_upper() < size):
        return x
    around = arb(0, size)
    if not x.is_finite():
        return acb(around, around)
    return acb(x.real.intersection(around), x.imag.intersection(around))


def _power(analytic: bool, x: acb, y: acb) -> acb:
    """A power, by the polar form of a wide ball to the right of the imaginary axis."""
    exponent = y.real
    if x.real.rel_accuracy_bits() > _THIN or not (x.real > 0 and y.imag.is_zero()) or exponent.is_integer():
        return RULES_OF_INTEGRANDS["pow"](analytic, x, y)
    angle = (x.arg() * exponent).abs_upper()
    if not angle < 1.5:
        return RULES_OF_INTEGRANDS["pow"](analytic, x, y)
    sizes = x.abs_lower() ** exponent, x.abs_upper() ** exponent
    far = sizes[0].union(sizes[1])
    return acb(far * arb(angle).cos().union(arb(1)), far.abs_upper() * arb(0, arb(angle).sin().abs_upper()))


# Wide balls need bounds of their magnitude, which those of both parts exceed.
_RULES: dict[str, Rule] = {
    **RULES_OF_INTEGRANDS,
    "divide": _divided,
    "reciprocal": _reciprocal,
    "pow": _power,
    "hypot": lambda analytic, x, y: _power(analytic, x * x + y * y, acb(0.5)),
}
