"""Laurent series as operands: functions of one variable at points where they, or parts of them, have a pole."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact, ratio
from gradcli.errors import EvaluationError
from gradcli.kinds.jets import Jet
from gradcli.kinds.levels import PATTERN
from gradcli.kinds.perturbed_roundings import Perturbation
from gradcli.primitives.bind import assume, bind
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative, reciprocal, subtract
from gradcli.primitives.entries.comparisons import isfinite
from gradcli.primitives.entries.elementwise.elementary import coth, csch
from gradcli.primitives.entries.elementwise.trigonometric import sinh, tanh
from gradcli.primitives.entries.exponential import exp, log
from gradcli.primitives.entries.powers import general_power, whole_power
from gradcli.primitives.entries.special_functions.special import digamma, gamma, polygamma
from gradcli.primitives.operators import Operators
from gradcli.primitives.primitive import Primitive

_NO_PARAMS: Mapping[str, Any] = {}

# A coefficient counts as 0 if perturbations of the rounding errors change it by this fraction of its magnitude.
_NOISE_RATIO = 0.125
# The largest valuation that is represented by leading zero coefficients of a power series.
_MOST_ZEROS = 1000
# The largest distance from 0 of a pole of the gamma function, each unit of which takes a step of the recurrence.
_MOST_POLES = 50


class NoSeriesError(EvaluationError):
    """The function has no Laurent series with numbers as coefficients."""


class ZeroSeriesError(NoSeriesError):
    """All known coefficients are 0."""


class Laurent(Operators):
    """t**valuation times a power series in t whose first coefficient is not 0.

    The series, a `Jet` of numbers, has a rounding-error estimate (a shadow) by which coefficients that are 0 up to
    rounding are recognised; with exact numbers it has none.
    """

    __slots__ = ("jet", "valuation")
    level = PATTERN
    dtype = "float64"

    def __init__(self, valuation: int, jet: Jet) -> None:
        self.valuation = valuation
        self.jet = jet

    @property
    def inner(self) -> Any:
        # No rule may branch on the value at the point.
        raise NoSeriesError("a Laurent series is no number")

    @staticmethod
    def variable(point: float, order: int) -> Laurent:
        """The variable point + t, up to t**order."""
        return _normalized(0, _with_error_estimate(Jet([point, 1.0], order)))

    def taylor(self) -> list[float]:
        """The coefficients from t**0 on. Raises NoSeriesError if there is a pole."""
        if self.valuation < 0:
            raise NoSeriesError("the function has a pole")
        return _padded(self._shifted(0))

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Laurent:
        known = next(o for o in operands if isinstance(o, Laurent))
        series = [o if isinstance(o, Laurent) else known._constant(o) for o in operands]
        rule = _RULES.get(primitive)
        if rule is not None:
            return rule(*series, **params)  # type: ignore[no-any-return]
        if not primitive.elementwise or primitive.selects or primitive.vjp is None:
            raise NoSeriesError(f"'{primitive.called}' has no Laurent series")
        jets = [s._shifted(0) for s in series]
        if primitive.smooth is not None and not assume(primitive.smooth(*(j.inner for j in jets), **params)):
            raise NoSeriesError(f"'{primitive.called}' has a kink there")
        return _normalized(0, bind(primitive, jets, params))

    def _constant(self, value: Any) -> Laurent:
        if type(value) in arrays.PYTHON_NUMBERS:
            value = float(value)
        elif not (is_exact() and arrays.is_array(value) and not arrays.shape(value)):
            raise NoSeriesError("a Laurent series is one of numbers")
        return _normalized(0, _with_error_estimate(Jet([value], self.jet.order)))

    def _shifted(self, valuation: int) -> Jet:
        """The function divided by t**valuation, as a power series. Raises NoSeriesError if that is above its own
        valuation."""
        zeros = self.valuation - valuation
        if zeros < 0:
            raise NoSeriesError("a function of what has a pole")
        if not zeros:
            return self.jet
        if zeros > _MOST_ZEROS:
            nothing = [0.0] * _MOST_ZEROS
            return _watched(nothing, None if self.jet.shadow is None else [*nothing], self.jet)
        others = None if self.jet.shadow is None else [0.0] * zeros + _padded(self.jet.shadow)
        return _watched([0.0] * zeros + _padded(self.jet), others, self.jet)


def _padded(jet: Any) -> list[float]:
    found = [0.0 if c is None else c for c in jet.coefficients]
    return found + [0.0] * (jet.order + 1 - len(found))


def _with_error_estimate(jet: Jet) -> Jet:
    return jet if is_exact() else jet.watched(Perturbation())


def _watched(coefficients: list[float], others: list[float] | None, like: Jet) -> Jet:
    made = Jet(coefficients, len(coefficients) - 1)
    if others is None:
        return made
    made.shadow = Jet(others, len(others) - 1)
    made.shadow.roundings = like.shadow.roundings if like.shadow is not None else None
    return made


def _normalized(valuation: int, jet: Any) -> Laurent:
    """t**valuation*jet, with coefficients that are 0 up to rounding set to 0 and leading zeros removed."""
    found = _padded(jet)
    others = None if is_exact() else _padded(jet.shadow) if jet.shadow is not None else [*found]
    if not all(map(isfinite if is_exact() else math.isfinite, found)):
        raise NoSeriesError("a coefficient is no number")
    for k, (c, other) in enumerate(zip(found, others or ())):
        if others is not None and abs(c - other) >= _NOISE_RATIO * abs(c):
            found[k] = others[k] = 0.0
    is_zero = _is_zero if is_exact() else operator.not_
    zeros = next((k for k, c in enumerate(found) if not is_zero(c)), None)
    if zeros is None:
        raise ZeroSeriesError("a function that is 0 everywhere")
    return Laurent(valuation + zeros, _watched(found[zeros:], others and others[zeros:], jet))


def _is_zero(coefficient: Any) -> bool:
    """Return whether an exact number is 0. A ball that stands for all its numbers is not: keeping a zero coefficient in
    the series is correct."""
    from gradcli.arrays.flint.balls import exact, stands_for_others

    number = exact(coefficient) if type(coefficient) is float else coefficient.item()
    return not stands_for_others(number) and not coefficient


def _sum(primitive: Primitive) -> Any:
    def rule(a: Laurent, b: Laurent) -> Laurent:
        lowest = min(a.valuation, b.valuation)
        return _normalized(lowest, bind(primitive, (a._shifted(lowest), b._shifted(lowest)), _NO_PARAMS))

    return rule


def _negative(a: Laurent) -> Laurent:
    return _normalized(a.valuation, bind(negative, (a.jet,), _NO_PARAMS))


def _product(a: Laurent, b: Laurent) -> Laurent:
    return _normalized(a.valuation + b.valuation, bind(multiply, (a.jet, b.jet), _NO_PARAMS))


def _quotient(a: Laurent, b: Laurent) -> Laurent:
    return _normalized(a.valuation - b.valuation, bind(divide, (a.jet, b.jet), _NO_PARAMS))


def _whole_power(a: Laurent, *, n: float) -> Laurent:
    return _normalized(a.valuation * int(n), bind(whole_power, (a.jet,), {"n": n}))


def _power(a: Laurent, q: Laurent) -> Laurent:
    if q.valuation or q.jet.degree:
        return exp(q * log(a))  # type: ignore[no-any-return]
    return _normalized(0, bind(general_power, (a._shifted(0), q.jet.inner), _NO_PARAMS))


def _with_poles(primitive: Primitive, back: Any) -> Any:
    """The rule of a function with poles at 0, -1, -2, …: `back(f, a)` returns its value at a, given its value f at a +
    1."""

    def rule(a: Laurent, **params: Any) -> Laurent:
        jet = a._shifted(0)
        point = jet.inner
        if point > 0.0 or point % 1.0 != 0.0:
            return _normalized(0, bind(primitive, (jet,), params))
        if point < -_MOST_POLES:
            raise NoSeriesError("a pole too far from 0")
        further = [a, *(a + k for k in range(1, int(float(-point)) + 1))]
        found = bind(primitive, (further[-1] + 1.0,), params)
        for operand in reversed(further):
            found = back(found, operand, **params)
        return found  # type: ignore[no-any-return]

    return rule


_RULES: Mapping[Primitive, Any] = {
    add: _sum(add),
    subtract: _sum(subtract),
    negative: _negative,
    multiply: _product,
    divide: _quotient,
    reciprocal: lambda a: 1.0 / a,
    whole_power: _whole_power,
    general_power: _power,
    coth: lambda a: 1.0 / tanh(a),
    gamma: _with_poles(gamma, lambda f, a: f / a),
    digamma: _with_poles(digamma, lambda f, a: f - 1.0 / a),
    polygamma: _with_poles(polygamma, lambda f, a, *, n: f + (-a) ** (-n - 1) * ratio(math.factorial(n))),
    csch: lambda a: 1.0 / sinh(a),
}
