"""Functions that compute with complex numbers, as functions that compute with the real and imaginary parts of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.arrays.mathematical_constants import log_2, log_10
from gradcli.errors import EvaluationError
from gradcli.functionals.body import Body
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative, subtract
from gradcli.primitives.entries.comparisons import not_equal
from gradcli.primitives.entries.elementwise.trigonometric import atan, atan2, cos, cosh, hypot, sin, sinh
from gradcli.primitives.entries.exponential import exp, expm1, log
from gradcli.primitives.entries.powers import sqrt, square
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Program
from gradcli.program.number_parts import SELECTING_RULES, Parts, both, computes_complex, outputs_by_parts

# Whole powers up to this one are products.
_MOST_FACTORS = 64


def in_real_parts(body: Body, what: str, *, near_zero: bool = False) -> Body:
    """A function of real numbers with real results that computes with real numbers alone.

    With `near_zero`, the parts of quotients, moduli, logarithms and angles are formulas that have series where a complex
    number vanishes; floats of extreme size may overflow in them. Raises EvaluationError, which says that `what` is by
    parts, for an operation that is not known by them.
    """
    if not any(computes_complex(path.program) for path in body.paths):
        return body

    rules = _RULES | _RULES_NEAR_ZERO if near_zero else _RULES

    def refusal(primitive: Primitive) -> EvaluationError:
        return EvaluationError(
            f"{what} for real and imaginary parts, and '{primitive.called}' is not known by these",
            hint="write the formulas of these parts",
        )

    def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
        return outputs_by_parts(program, inputs, rules, refusal)

    return body.derived(run, body.bound, body.reads)


# A part that is the float 0.0 is 0 whatever the inputs are.


def _is(x: Any, number: float) -> bool:
    return type(x) is float and x == number


def _sum(a: Any, b: Any) -> Any:
    return b if _is(a, 0.0) else a if _is(b, 0.0) else add(a, b)


def _difference(a: Any, b: Any) -> Any:
    return a if _is(b, 0.0) else _minus(b) if _is(a, 0.0) else subtract(a, b)


def _minus(a: Any) -> Any:
    return a if _is(a, 0.0) else negative(a)


def _product(a: Any, b: Any) -> Any:
    if _is(a, 0.0) or _is(b, 0.0):
        return 0.0
    return b if _is(a, 1.0) else a if _is(b, 1.0) else multiply(a, b)


def _quotient(a: Any, b: Any) -> Any:
    return a if _is(a, 0.0) else divide(a, b)


def _added(x: Any, y: Any) -> Parts:
    (a, b), (c, d) = both(x), both(y)
    return Parts(_sum(a, c), _sum(b, d))


def _subtracted(x: Any, y: Any) -> Parts:
    (a, b), (c, d) = both(x), both(y)
    return Parts(_difference(a, c), _difference(b, d))


def _multiplied(x: Any, y: Any) -> Parts:
    (a, b), (c, d) = both(x), both(y)
    return Parts(_difference(_product(a, c), _product(b, d)), _sum(_product(a, d), _product(b, c)))


def _divided(x: Any, y: Any) -> Parts:
    (a, b), (c, d) = both(x), both(y)
    if _is(d, 0.0):
        return Parts(_quotient(a, c), _quotient(b, c))
    # Without squares, which may overflow where the quotient does not.
    size = hypot(c, d)
    above = _multiplied(Parts(a, b), Parts(_quotient(c, size), _minus(_quotient(d, size))))
    return Parts(_quotient(above.real, size), _quotient(above.imag, size))


def _whole_power(x: Any, n: int) -> Parts:
    if not -_MOST_FACTORS <= n <= _MOST_FACTORS:
        return _power(x, float(n))
    found, factor, left = Parts(1.0, 0.0), both(x), abs(n)
    while left:
        found = _multiplied(found, factor) if left % 2 else found
        factor, left = _multiplied(factor, factor) if left > 1 else factor, left // 2
    return found if n >= 0 else _divided(1.0, found)


def _power(x: Any, y: Any) -> Parts:
    return _exp(_multiplied(y, _log(x)))


def _exp(x: Any) -> Parts:
    a, b = both(x)
    size = 1.0 if _is(a, 0.0) else exp(a)
    return Parts(_product(size, cos(b)), _product(size, sin(b)))


def _log(x: Any) -> Parts:
    a, b = both(x)
    return Parts(log(hypot(a, b)), atan2(b, a))


def _sqrt(x: Any) -> Parts:
    a, b = both(x)
    size, half = sqrt(hypot(a, b)), multiply(0.5, atan2(b, a))
    return Parts(multiply(size, cos(half)), multiply(size, sin(half)))


def _sinh(x: Any) -> Parts:
    a, b = both(x)
    return Parts(multiply(sinh(a), cos(b)), multiply(cosh(a), sin(b)))


def _cosh(x: Any) -> Parts:
    a, b = both(x)
    return Parts(multiply(cosh(a), cos(b)), multiply(sinh(a), sin(b)))


def _expm1(x: Any) -> Parts:
    a, b = both(x)
    less = multiply(2.0, square(sin(multiply(0.5, b))))
    return Parts(subtract(_product(expm1(a), cos(b)), less), _product(exp(a), sin(b)))


def _log1p(x: Any) -> Parts:
    return _log(_added(1.0, x))


def _atanh(x: Any) -> Parts:
    return _multiplied(0.5, _subtracted(_log1p(x), _log1p(Parts(*map(_minus, both(x))))))


def _atan(x: Any) -> Parts:
    a, b = _atanh(_rotated(x))
    return Parts(b, _minus(a))


def _rotated(x: Any) -> Parts:
    """The number times i."""
    a, b = both(x)
    return Parts(_minus(b), a)


def _sin(x: Any) -> Parts:
    a, b = _sinh(_rotated(x))
    return Parts(b, _minus(a))


def _cos(x: Any) -> Parts:
    return _cosh(_rotated(x))


_RULES: dict[str, Callable[..., Any]] = {
    **SELECTING_RULES,
    "conjugate": lambda x: Parts(both(x).real, _minus(both(x).imag)),
    "negative": lambda x: Parts(*map(_minus, both(x))),
    "add": _added,
    "subtract": _subtracted,
    "multiply": _multiplied,
    "divide": _divided,
    "reciprocal": lambda x: _divided(1.0, x),
    "whole_power": _whole_power,
    "pow": _power,
    "abs": lambda x: hypot(*both(x)),
    "phase": lambda x: atan2(both(x).imag, both(x).real),
    "exp": _exp,
    "exp2": lambda x: _exp(_multiplied(log_2(), x)),
    "expm1": _expm1,
    "log": _log,
    "log1p": _log1p,
    "log2": lambda x: _divided(_log(x), log_2()),
    "log10": lambda x: _divided(_log(x), log_10()),
    "sqrt": _sqrt,
    "rsqrt": lambda x: _divided(1.0, _sqrt(x)),
    "sigmoid": lambda x: _divided(1.0, _added(1.0, _exp(Parts(*map(_minus, both(x)))))),
    "sin": _sin,
    "cos": _cos,
    "tan": lambda x: _divided(_sin(x), _cos(x)),
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": lambda x: _divided(_sinh(x), _cosh(x)),
    "atan": _atan,
    "atanh": _atanh,
    "not_equal": lambda x, y: not_equal(hypot(*_subtracted(x, y)), 0.0),
}


# --- formulas that have series where a number vanishes


def _size(x: Any) -> Any:
    a, b = both(x)
    return sqrt(_sum(_product(a, a), _product(b, b)))


def _angle(x: Any) -> Any:
    """The angle of a number that is not on the negative real axis."""
    a, b = both(x)
    return multiply(2.0, atan(_quotient(b, _sum(_size(x), a))))


def _divided_by_square(x: Any, y: Any) -> Parts:
    (a, b), (c, d) = both(x), both(y)
    square = _sum(_product(c, c), _product(d, d))
    above = _multiplied(Parts(a, b), Parts(c, _minus(d)))
    return Parts(_quotient(above.real, square), _quotient(above.imag, square))


def _log_near_zero(x: Any) -> Parts:
    return Parts(log(_size(x)), _angle(x))


def _sqrt_near_zero(x: Any) -> Parts:
    size, half = sqrt(_size(x)), multiply(0.5, _angle(x))
    return Parts(multiply(size, cos(half)), multiply(size, sin(half)))


def _whole_power_near_zero(x: Any, n: int) -> Parts:
    found = _whole_power(x, abs(n))
    return found if n >= 0 else _divided_by_square(1.0, found)


_RULES_NEAR_ZERO: dict[str, Callable[..., Any]] = {
    "abs": _size,
    "phase": _angle,
    "divide": _divided_by_square,
    "reciprocal": lambda x: _divided_by_square(1.0, x),
    "whole_power": _whole_power_near_zero,
    "log": _log_near_zero,
    "log2": lambda x: _divided(_log_near_zero(x), log_2()),
    "log10": lambda x: _divided(_log_near_zero(x), log_10()),
    "sqrt": _sqrt_near_zero,
    "rsqrt": lambda x: _divided_by_square(1.0, _sqrt_near_zero(x)),
    "pow": lambda x, y: _exp(_multiplied(y, _log_near_zero(x))),
    "tan": lambda x: _divided_by_square(_sin(x), _cos(x)),
    "tanh": lambda x: _divided_by_square(_sinh(x), _cosh(x)),
}
