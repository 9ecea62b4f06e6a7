"""Functions that compute with complex numbers, as functions that compute with the real and imaginary parts of these."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.errors import EvaluationError
from gradcli.functionals.body import Body
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative, subtract
from gradcli.primitives.entries.comparisons import equal, logical_and, not_equal, where
from gradcli.primitives.entries.exponential import exp, expm1, log
from gradcli.primitives.entries.powers import sqrt, square
from gradcli.primitives.entries.trigonometric import atan, atan2, cos, cosh, hypot, sin, sinh
from gradcli.program.ir import Atom, Program, Variable

# Whole powers up to this one are products.
_MOST_FACTORS = 64


class _Parts(NamedTuple):
    """A complex number by its parts. A part that is the float 0.0 is 0 whatever the inputs are."""

    real: Any
    imag: Any


def in_real_parts(body: Body, what: str, *, near_zero: bool = False) -> Body:
    """A function of real numbers with real results that computes with real numbers alone.

    With `near_zero`, the parts of quotients, moduli, logarithms and angles are formulas that have series where a complex
    number vanishes; floats of extreme size may overflow in them. Raises EvaluationError, which says that `what` is by
    parts, for an operation that is not known by them.
    """
    programs = [path.program for path in body.paths]
    if not any(map(_is_complex, (a for p in programs for e in p.equations for a in (*e.inputs, e.output)))):
        return body

    rules = _RULES | _RULES_NEAR_ZERO if near_zero else _RULES

    def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
        known: dict[Variable, Any] = dict(zip(program.inputs, inputs))
        for primitive, operands, params, output in program.equations:
            given = [known[a] if isinstance(a, Variable) else _constant(a) for a in operands]
            if not any(isinstance(x, _Parts) for x in given) and not _is_complex(output):
                known[output] = bind(primitive, given, params)
                continue
            rule = rules.get(primitive.name)
            if rule is None:
                raise EvaluationError(
                    f"{what} for real and imaginary parts, and '{primitive.called}' is not known by these",
                    hint="write the formulas of these parts",
                )
            known[output] = rule(*given, **params)
        return [known[a] if isinstance(a, Variable) else a for a in program.outputs]

    return body.derived(run, body.bound, body.reads)


def _is_complex(atom: Atom) -> bool:
    return arrays.is_complex(atom)


def _constant(atom: Any) -> Any:
    return _Parts(float(atom.real), float(atom.imag)) if _is_complex(atom) else atom


def _both(x: Any) -> _Parts:
    return x if isinstance(x, _Parts) else _Parts(x, 0.0)


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


def _added(x: Any, y: Any) -> _Parts:
    (a, b), (c, d) = _both(x), _both(y)
    return _Parts(_sum(a, c), _sum(b, d))


def _subtracted(x: Any, y: Any) -> _Parts:
    (a, b), (c, d) = _both(x), _both(y)
    return _Parts(_difference(a, c), _difference(b, d))


def _multiplied(x: Any, y: Any) -> _Parts:
    (a, b), (c, d) = _both(x), _both(y)
    return _Parts(_difference(_product(a, c), _product(b, d)), _sum(_product(a, d), _product(b, c)))


def _divided(x: Any, y: Any) -> _Parts:
    (a, b), (c, d) = _both(x), _both(y)
    if _is(d, 0.0):
        return _Parts(_quotient(a, c), _quotient(b, c))
    # Without squares, which may overflow where the quotient does not.
    size = hypot(c, d)
    above = _multiplied(_Parts(a, b), _Parts(_quotient(c, size), _minus(_quotient(d, size))))
    return _Parts(_quotient(above.real, size), _quotient(above.imag, size))


def _whole_power(x: Any, n: int) -> _Parts:
    if not -_MOST_FACTORS <= n <= _MOST_FACTORS:
        return _power(x, float(n))
    found, factor, left = _Parts(1.0, 0.0), _both(x), abs(n)
    while left:
        found = _multiplied(found, factor) if left % 2 else found
        factor, left = _multiplied(factor, factor) if left > 1 else factor, left // 2
    return found if n >= 0 else _divided(1.0, found)


def _power(x: Any, y: Any) -> _Parts:
    return _exp(_multiplied(y, _log(x)))


def _exp(x: Any) -> _Parts:
    a, b = _both(x)
    size = 1.0 if _is(a, 0.0) else exp(a)
    return _Parts(_product(size, cos(b)), _product(size, sin(b)))


def _log(x: Any) -> _Parts:
    a, b = _both(x)
    return _Parts(log(hypot(a, b)), atan2(b, a))


def _sqrt(x: Any) -> _Parts:
    a, b = _both(x)
    size, half = sqrt(hypot(a, b)), multiply(0.5, atan2(b, a))
    return _Parts(multiply(size, cos(half)), multiply(size, sin(half)))


def _sinh(x: Any) -> _Parts:
    a, b = _both(x)
    return _Parts(multiply(sinh(a), cos(b)), multiply(cosh(a), sin(b)))


def _cosh(x: Any) -> _Parts:
    a, b = _both(x)
    return _Parts(multiply(cosh(a), cos(b)), multiply(sinh(a), sin(b)))


def _expm1(x: Any) -> _Parts:
    a, b = _both(x)
    less = multiply(2.0, square(sin(multiply(0.5, b))))
    return _Parts(subtract(_product(expm1(a), cos(b)), less), _product(exp(a), sin(b)))


def _log1p(x: Any) -> _Parts:
    return _log(_added(1.0, x))


def _atanh(x: Any) -> _Parts:
    return _multiplied(0.5, _subtracted(_log1p(x), _log1p(_Parts(*map(_minus, _both(x))))))


def _atan(x: Any) -> _Parts:
    a, b = _atanh(_rotated(x))
    return _Parts(b, _minus(a))


def _rotated(x: Any) -> _Parts:
    """The number times i."""
    a, b = _both(x)
    return _Parts(_minus(b), a)


def _sin(x: Any) -> _Parts:
    a, b = _sinh(_rotated(x))
    return _Parts(b, _minus(a))


def _cos(x: Any) -> _Parts:
    return _cosh(_rotated(x))


_RULES: dict[str, Callable[..., Any]] = {
    "complex": lambda a, b: _Parts(a, b),
    "real_part": lambda x: _both(x).real,
    "imaginary_part": lambda x: _both(x).imag,
    "conjugate": lambda x: _Parts(_both(x).real, _minus(_both(x).imag)),
    "negative": lambda x: _Parts(*map(_minus, _both(x))),
    "add": _added,
    "subtract": _subtracted,
    "multiply": _multiplied,
    "divide": _divided,
    "reciprocal": lambda x: _divided(1.0, x),
    "whole_power": _whole_power,
    "pow": _power,
    "abs": lambda x: hypot(*_both(x)),
    "phase": lambda x: atan2(_both(x).imag, _both(x).real),
    "exp": _exp,
    "exp2": lambda x: _exp(_multiplied(math.log(2.0), x)),
    "expm1": _expm1,
    "log": _log,
    "log1p": _log1p,
    "log2": lambda x: _divided(_log(x), math.log(2.0)),
    "log10": lambda x: _divided(_log(x), math.log(10.0)),
    "sqrt": _sqrt,
    "rsqrt": lambda x: _divided(1.0, _sqrt(x)),
    "sigmoid": lambda x: _divided(1.0, _added(1.0, _exp(_Parts(*map(_minus, _both(x)))))),
    "sin": _sin,
    "cos": _cos,
    "tan": lambda x: _divided(_sin(x), _cos(x)),
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": lambda x: _divided(_sinh(x), _cosh(x)),
    "atan": _atan,
    "atanh": _atanh,
    "where": lambda condition, x, y: _Parts(*(where(condition, a, b) for a, b in zip(_both(x), _both(y)))),
    "equal": lambda x, y: logical_and(*map(equal, _both(x), _both(y))),
    "not_equal": lambda x, y: not_equal(hypot(*_subtracted(x, y)), 0.0),
}


# --- formulas that have series where a number vanishes


def _size(x: Any) -> Any:
    a, b = _both(x)
    return sqrt(_sum(_product(a, a), _product(b, b)))


def _angle(x: Any) -> Any:
    """The angle of a number that is not on the negative real axis."""
    a, b = _both(x)
    return multiply(2.0, atan(_quotient(b, _sum(_size(x), a))))


def _divided_by_square(x: Any, y: Any) -> _Parts:
    (a, b), (c, d) = _both(x), _both(y)
    square = _sum(_product(c, c), _product(d, d))
    above = _multiplied(_Parts(a, b), _Parts(c, _minus(d)))
    return _Parts(_quotient(above.real, square), _quotient(above.imag, square))


def _log_near_zero(x: Any) -> _Parts:
    return _Parts(log(_size(x)), _angle(x))


def _sqrt_near_zero(x: Any) -> _Parts:
    size, half = sqrt(_size(x)), multiply(0.5, _angle(x))
    return _Parts(multiply(size, cos(half)), multiply(size, sin(half)))


def _whole_power_near_zero(x: Any, n: int) -> _Parts:
    found = _whole_power(x, abs(n))
    return found if n >= 0 else _divided_by_square(1.0, found)


_RULES_NEAR_ZERO: dict[str, Callable[..., Any]] = {
    "abs": _size,
    "phase": _angle,
    "divide": _divided_by_square,
    "reciprocal": lambda x: _divided_by_square(1.0, x),
    "whole_power": _whole_power_near_zero,
    "log": _log_near_zero,
    "log2": lambda x: _divided(_log_near_zero(x), math.log(2.0)),
    "log10": lambda x: _divided(_log_near_zero(x), math.log(10.0)),
    "sqrt": _sqrt_near_zero,
    "rsqrt": lambda x: _divided_by_square(1.0, _sqrt_near_zero(x)),
    "pow": lambda x, y: _exp(_multiplied(y, _log_near_zero(x))),
    "tan": lambda x: _divided_by_square(_sin(x), _cos(x)),
    "tanh": lambda x: _divided_by_square(_sinh(x), _cosh(x)),
}
