"""Bounds of a body over intervals, by interval arithmetic: what lies between the nodes of a rule.

The bounds are rounded to nearest, so that they are a check of whether an integrand was resolved and no proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.elementwise.trigonometric import (
    logcosh,
    one_minus_square,
    over_one_plus_square,
    sech,
    sech_square,
)
from gradcli.primitives.entries.exponential import logsigmoid, sigmoid, softplus
from gradcli.primitives.entries.powers import cbrt
from gradcli.primitives.entries.special_functions.special import erf, erfc
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Program, Variable


class Range(NamedTuple):
    """Lower and upper bounds, arrays [n] or numbers."""

    low: Any
    high: Any


class NoBoundsError(Exception):
    """A primitive for which no bounds are known."""


def ranges(program: Program, inputs: Sequence[Range]) -> list[Range]:
    """The bounds of the outputs for all inputs in some ranges. Raises UnboundedError."""
    np = arrays.numpy_namespace()
    known: dict[Variable, Range] = dict(zip(program.inputs, inputs))

    def value(atom: Any) -> Range:
        return known[atom] if isinstance(atom, Variable) else Range(atom, atom)

    with np.errstate(all="ignore"):
        for primitive, operands, params, output in program.equations:
            square = primitive.name == "multiply" and operands[0] is operands[1]
            rule = _square if square else _RULES.get(primitive.name)
            if rule is None:
                raise NoBoundsError(primitive.name)
            low, high = rule(np, *map(value, operands), **params)
            # What is not defined on the whole range is not bounded.
            wild = np.isnan(low) | np.isnan(high)
            known[output] = Range(np.where(wild, -np.inf, low), np.where(wild, np.inf, high))
    return [value(o) for o in program.outputs]


def has_ranges(program: Program) -> bool:
    """Return whether `ranges` has bounds of a program."""
    return all(equation.primitive.name in _RULES for equation in program.equations)


Rule = Callable[..., Range]


def _increasing(name: str) -> Rule:
    return lambda np, x: Range(getattr(np, name)(x.low), getattr(np, name)(x.high))


def _monotone(primitive: Primitive) -> Rule:
    """The rule of a function that rises or falls all the time."""

    def rule(np: Any, x: Range) -> Range:
        ends = [bind(primitive, (end,), {}) for end in x]
        return Range(np.minimum(*ends), np.maximum(*ends))

    return rule


def _even_monotone(primitive: Primitive) -> Rule:
    """The rule of an even function that rises or falls all the time from 0 on."""
    rule = _monotone(primitive)
    return lambda np, x: rule(np, Range(*_magnitudes(np, x)))


def _hypot(np: Any, x: Range, y: Range) -> Range:
    return Range(*(np.hypot(a, b) for a, b in zip(_magnitudes(np, x), _magnitudes(np, y))))


def _even_increasing(name: str) -> Rule:
    """A function that is even and increases from 0 on."""

    def rule(np: Any, x: Range) -> Range:
        function = getattr(np, name)
        near, far = _magnitudes(np, x)
        return Range(function(near), function(far))

    return rule


def _magnitudes(np: Any, x: Range) -> tuple[Any, Any]:
    far = np.maximum(np.abs(x.low), np.abs(x.high))
    near = np.where((x.low <= 0) & (x.high >= 0), 0.0, np.minimum(np.abs(x.low), np.abs(x.high)))
    return near, far


def _of_corners(name: str) -> Rule:
    def rule(np: Any, x: Range, y: Range) -> Range:
        function = getattr(np, name)
        corners = [function(a, b) for a in x for b in y]
        if name == "multiply":
            # 0 times an unbounded factor.
            corners = [np.where(np.isnan(c), 0.0, c) for c in corners]
        return Range(np.minimum.reduce(np.broadcast_arrays(*corners)), np.maximum.reduce(np.broadcast_arrays(*corners)))

    return rule


def _reciprocal(np: Any, x: Range) -> Range:
    crosses = (x.low <= 0) & (x.high >= 0)
    return Range(np.where(crosses, -np.inf, 1 / np.asarray(x.high)), np.where(crosses, np.inf, 1 / np.asarray(x.low)))


def _divide(np: Any, x: Range, y: Range) -> Range:
    return _of_corners("multiply")(np, x, _reciprocal(np, y))


def _remainder(np: Any, x: Range, y: Range) -> Range:
    """The remainder: exact bounds where all quotients have the same whole part, else from 0 to the divisor."""
    low, high = (np.floor_divide(end, y.low) for end in x)
    same = (low == high) & (np.equal(y.low, y.high))
    zero, most = np.minimum(y.low, 0.0), np.maximum(y.high, 0.0)
    return Range(np.where(same, x.low - low * y.low, zero), np.where(same, x.high - high * y.low, most))


def _square(np: Any, x: Range, _same: Range | None = None) -> Range:
    near, far = _magnitudes(np, x)
    return Range(near * near, far * far)


def _periodic(name: str, first_maximum: float) -> Rule:
    """sin or cos, whose maxima are at `first_maximum` plus multiples of the period."""

    def rule(np: Any, x: Range) -> Range:
        function = getattr(np, name)
        low, high = function(x.low), function(x.high)

        def reaches(place: float) -> Any:
            turns = np.ceil((x.low - place) / (2 * np.pi))
            return ~(place + 2 * np.pi * turns > x.high)

        return Range(
            np.where(reaches((first_maximum + 1) * np.pi), -1.0, np.minimum(low, high)),
            np.where(reaches(first_maximum * np.pi), 1.0, np.maximum(low, high)),
        )

    return rule


def _whole_power(np: Any, x: Range, *, n: int) -> Range:
    if n < 0:
        return _reciprocal(np, _whole_power(np, x, n=-n))
    if n % 2:
        return Range(np.power(x.low, n), np.power(x.high, n))
    near, far = _magnitudes(np, x)
    return Range(np.power(near, n), np.power(far, n))


def _truth(holds: Callable[..., Any], fails: Callable[..., Any]) -> Rule:
    """The range of a comparison, where false is 0 and true is 1."""
    return lambda np, x, y: Range(np.where(holds(x, y), 1.0, 0.0), np.where(fails(x, y), 0.0, 1.0))


def _where(np: Any, condition: Range, x: Range, y: Range) -> Range:
    low = np.where(condition.low >= 1, x.low, np.where(condition.high <= 0, y.low, np.minimum(x.low, y.low)))
    high = np.where(condition.low >= 1, x.high, np.where(condition.high <= 0, y.high, np.maximum(x.high, y.high)))
    return Range(low, high)


_RULES: dict[str, Rule] = {
    "add": lambda np, x, y: Range(np.add(x.low, y.low), np.add(x.high, y.high)),
    "subtract": lambda np, x, y: Range(np.subtract(x.low, y.high), np.subtract(x.high, y.low)),
    "negative": lambda np, x: Range(-x.high, -x.low),
    "multiply": _of_corners("multiply"),
    "divide": _divide,
    "reciprocal": _reciprocal,
    "pow": _of_corners("power"),
    "whole_power": _whole_power,
    "square": _square,
    "remainder": _remainder,
    "abs": _even_increasing("abs"),
    "cosh": _even_increasing("cosh"),
    "sin": _periodic("sin", 0.5),
    "cos": _periodic("cos", 0.0),
    "maximum": lambda np, x, y: Range(np.maximum(x.low, y.low), np.maximum(x.high, y.high)),
    "minimum": lambda np, x, y: Range(np.minimum(x.low, y.low), np.minimum(x.high, y.high)),
    "less": _truth(lambda x, y: x.high < y.low, lambda x, y: x.low >= y.high),
    "less_equal": _truth(lambda x, y: x.high <= y.low, lambda x, y: x.low > y.high),
    "greater": _truth(lambda x, y: x.low > y.high, lambda x, y: x.high <= y.low),
    "greater_equal": _truth(lambda x, y: x.low >= y.high, lambda x, y: x.high < y.low),
    "where": _where,
    **{name: _increasing(name) for name in ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sinh", "tanh")},
    **{name: _increasing(name) for name in ("sign", "floor", "ceil")},
    "atan": _increasing("arctan"),
    "asinh": _increasing("arcsinh"),
    **{primitive.name: _monotone(primitive) for primitive in (erf, erfc, sigmoid, logsigmoid, softplus, cbrt)},
    **{
        primitive.name: _even_monotone(primitive)
        for primitive in (sech, sech_square, over_one_plus_square, one_minus_square, logcosh)
    },
    "hypot": _hypot,
}
