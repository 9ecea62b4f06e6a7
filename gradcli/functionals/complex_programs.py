"""Programs of scalars evaluated on balls of complex numbers, each compiled once for many evaluations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flint import acb, arb

from gradcli import limits
from gradcli.errors import BackendError
from gradcli.functionals.integrals.ball_integrals import RULES, complex_ball
from gradcli.program.ir import Program, Variable

# The cost of an operation, in eighths of a step.
_OPERATION = 2
# Accurate bits of a ball from which no other bound is computed.
_THIN = 20


Rule = Callable[..., Any]


def _divided(_analytic: bool, x: acb, y: acb) -> acb:
    near = y.abs_lower()
    return _within(x / y, x.abs_upper() / near) if near > 0 else _UNDEFINED


def _reciprocal(_analytic: bool, x: acb) -> acb:
    near = x.abs_lower()
    return _within(1 / x, 1 / near) if near > 0 else _UNDEFINED


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
        return RULES["pow"](analytic, x, y)
    angle = (x.arg() * exponent).abs_upper()
    if not angle < 1.5:
        return RULES["pow"](analytic, x, y)
    sizes = x.abs_lower() ** exponent, x.abs_upper() ** exponent
    far = sizes[0].union(sizes[1])
    return acb(far * arb(angle).cos().union(arb(1)), far.abs_upper() * arb(0, arb(angle).sin().abs_upper()))


# Wide balls need bounds of their magnitude, which those of both parts exceed.
_WIDE_RULES: dict[str, Rule] = {
    **RULES,
    "divide": _divided,
    "reciprocal": _reciprocal,
    "pow": _power,
    "hypot": lambda analytic, x, y: _power(analytic, x * x + y * y, acb(0.5)),
}

_UNDEFINED = acb("nan")


class ComplexProgram:
    """A program as a list of what each equation computes from which numbers.

    Raises BackendError for a function that has no complex balls.
    """

    def __init__(self, program: Program) -> None:
        # The variables by their place in the list of values; constants follow.
        self.variables = [*program.inputs, *(e.output for e in program.equations)]
        self._places = {v: i for i, v in enumerate(self.variables)}
        self._constants: list[Any] = []
        self._steps = []
        for primitive, operands, params, _ in program.equations:
            rule = _WIDE_RULES.get(primitive.name)
            if rule is None:
                raise BackendError(f"'{primitive.called}' has no proved digits inside a differential equation")
            self._steps.append((rule, [self._place(o) for o in operands], params))
        self.outputs = [self._place(o) for o in program.outputs]

    def _place(self, atom: Any) -> int:
        """The place of a variable or constant; that of a constant counts from the end."""
        if isinstance(atom, Variable):
            return self._places[atom]
        self._constants.insert(0, atom if type(atom) is bool else complex_ball(atom))
        return -len(self._constants)

    def values(self, inputs: Sequence[acb], *, analytic: bool) -> list[Any]:
        """The values of all variables, followed by the constants: balls, and truth values, which are None where the balls
        do not decide.

        Balls are not finite where they must be `analytic` and may be not.
        """
        limits.charge_steps(_OPERATION * len(self._steps))
        found: list[Any] = [None] * len(self.variables) + self._constants
        found[: len(inputs)] = inputs
        place = len(inputs)
        for rule, operands, params in self._steps:
            found[place] = rule(analytic, *[found[o] for o in operands], **params)
            place += 1
        return found
