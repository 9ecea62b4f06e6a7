"""Functions of complex balls, by the name of their primitive.

A rule is told first whether its result must be analytic on its operands: where it may be not, that is not finite. Truth
values that the balls do not decide are None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import acb, acb_series, arb, fmpz

from gradcli.arrays.flint.balls import real_ball
from gradcli.arrays.flint.flint_numbers import series_length
from gradcli.errors import BackendError
from gradcli.functionals.complex_special_rules import SPECIAL_RULES, meromorphic
from gradcli.functionals.complex_special_rules import UNDEFINED_BALL as UNDEFINED_BALL
from gradcli.functionals.complex_special_rules import Rule as Rule


def complex_ball(value: Any) -> acb:
    """A real number as a complex ball."""
    return acb(real_ball(value))


def rule_of(name: str, called: str | None = None) -> Rule:
    """The rule of a primitive. Raises BackendError where there is none."""
    rule = RULES.get(name)
    if rule is None:
        raise BackendError(f"'{called or name}' has no proved digits inside an integral")
    return rule


def _with_cut(compute: Callable[[acb], acb], touches: Callable[[acb], bool]) -> Rule:
    """A function with a branch cut; `touches` says whether a ball may meet it."""
    return lambda analytic, x: UNDEFINED_BALL if analytic and touches(x) else compute(x)


def _is_real(x: acb) -> bool:
    return bool(x.imag.contains(0))


def _is_imaginary(x: acb) -> bool:
    return bool(x.real.contains(0))


def _outside(part: arb) -> bool:
    """Return whether a part may be at least 1 in magnitude."""
    return not abs(part) < 1


def _whole_power(_analytic: bool, x: acb, *, n: float) -> acb:
    return x ** int(n)


def _power(analytic: bool, x: acb, y: acb) -> acb:
    exponent = y.unique_fmpz() if y.is_exact() else None
    return x ** int(exponent) if exponent is not None else x.pow(y, analytic=analytic)


def _compared(holds: Callable[[arb], bool], fails: Callable[[arb], bool]) -> Rule:
    """A comparison of real parts: whether it holds, None where the balls do not decide."""

    def rule(_analytic: bool, x: acb, y: acb) -> bool | None:
        difference = (x - y).real
        return True if holds(difference) else False if fails(difference) else None

    return rule


def _same(difference: acb) -> bool | None:
    return True if difference == 0 else None if difference.contains(0) else False


def _where(analytic: bool, condition: bool | None, x: acb, y: acb) -> acb:
    if condition is not None:
        return x if condition else y
    return UNDEFINED_BALL if analytic else x.union(y)


def _floor_divide(analytic: bool, x: acb, y: acb) -> acb:
    return (x / y).real_floor(analytic=analytic)


def _trunc(analytic: bool, x: acb) -> acb:
    """The nearest whole number towards 0, which is 0 between -1 and 1."""
    if x.real >= 0:
        return x.real_floor(analytic=analytic)
    if x.real <= 0:
        return x.real_ceil(analytic=analytic)
    return acb(0) if abs(x.real) < 1 else UNDEFINED_BALL if analytic else x.real_floor().union(x.real_ceil())


def _logaddexp(analytic: bool, x: acb, y: acb) -> acb:
    return x + _softplus(analytic, y - x)


def _logcosh(analytic: bool, x: acb) -> acb:
    if abs(x.real) > 1:
        size = x if x.real > 0 else -x
        return size + (1 + (-2 * size).exp()).log(analytic=analytic) - arb(2).log()
    return x.cosh().log(analytic=analytic)


def _of_reciprocal(name: str) -> Rule:
    """A function of the reciprocal of its operand."""
    return lambda analytic, x: RULES[name](analytic, 1 / x)


def _both(_analytic: bool, a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def _either(_analytic: bool, a: bool | None, b: bool | None) -> bool | None:
    return True if a or b else None if a is None or b is None else False


_atan = _with_cut(acb.atan, lambda x: _is_imaginary(x) and _outside(x.imag))


def _atan2(analytic: bool, y: acb, x: acb) -> acb:
    """The angle, analytic in both parts away from the negative real axis."""
    if x.real > 0:
        return _atan(analytic, y / x)
    if y.real > 0 or y.real < 0:
        right = acb.pi() / 2
        return (right if y.real > 0 else -right) - _atan(analytic, x / y)
    return UNDEFINED_BALL if analytic else acb(arb(0, arb.pi().upper()))


def _sigmoid(_analytic: bool, x: acb) -> acb:
    return 1 / (1 + (-x).exp()) if x.real > 0 else x.exp() / (1 + x.exp())


def _softplus(analytic: bool, x: acb) -> acb:
    """log(1 + exp(x)) = x + log(1 + exp(-x))."""
    return x + (1 + (-x).exp()).log(analytic=analytic) if x.real > 0 else (1 + x.exp()).log(analytic=analytic)


def _heaviside(analytic: bool, x: acb, y: acb) -> acb:
    if x.is_zero():
        return y
    return (
        acb(1)
        if x.real > 0
        else acb(0)
        if x.real < 0
        else UNDEFINED_BALL
        if analytic
        else acb(0).union(acb(1)).union(y)
    )


def _copysign(analytic: bool, x: acb, y: acb) -> acb:
    return x.real_abs(analytic=analytic) * y.real_sgn(analytic=analytic)


def _right_or_left(left: Rule) -> Rule:
    """The number itself right of 0, and a function of it left of 0 that is 0 there."""

    def rule(analytic: bool, x: acb, scale: acb) -> acb:
        if x.real > 0:
            return x
        value = left(x, scale)
        return value if x.real < 0 else UNDEFINED_BALL if analytic else x.union(value)

    return rule


def _hurwitz_zeta(analytic: bool, x: acb, q: acb, *, n: int) -> acb:
    """(-1)**n times the nth derivative by x, of which the sum is analytic in q to the right of 0."""
    if analytic and not q.real > 0:
        return UNDEFINED_BALL
    with series_length(n + 1):
        return acb_series([x, 1], prec=n + 1).zeta(q)[n] * fmpz.fac_ui(n) * (-1) ** n


def _cbrt(analytic: bool, x: acb) -> acb:
    """Odd, and analytic on both sides of 0."""
    third = acb(1) / 3
    if x.real > 0:
        return x.pow(third)
    if x.real < 0:
        return -((-x).pow(third))
    size = x.abs_upper().root(3).upper()
    return UNDEFINED_BALL if analytic else acb(arb(0, size), arb(0, size))


RULES: dict[str, Rule] = {
    "add": lambda _, x, y: x + y,
    "subtract": lambda _, x, y: x - y,
    "multiply": lambda _, x, y: x * y,
    "divide": lambda _, x, y: x / y,
    "negative": lambda _, x: -x,
    "reciprocal": lambda _, x: 1 / x,
    "square": lambda _, x: x * x,
    "whole_power": _whole_power,
    "pow": _power,
    "sqrt": lambda analytic, x: x.sqrt(analytic=analytic),
    "flat_sqrt": lambda analytic, x: x.sqrt(analytic=analytic),
    "rsqrt": lambda analytic, x: x.rsqrt(analytic=analytic),
    "log": lambda analytic, x: x.log(analytic=analytic),
    "log2": lambda analytic, x: x.log(analytic=analytic) / arb(2).log(),
    "log10": lambda analytic, x: x.log(analytic=analytic) / arb(10).log(),
    "log1p": lambda analytic, x: (1 + x).log(analytic=analytic),
    "abs": lambda analytic, x: x.real_abs(analytic=analytic),
    "sign": lambda analytic, x: x.real_sgn(analytic=analytic),
    "floor": lambda analytic, x: x.real_floor(analytic=analytic),
    "ceil": lambda analytic, x: x.real_ceil(analytic=analytic),
    "maximum": lambda analytic, x, y: x.real_max(y, analytic=analytic),
    "minimum": lambda analytic, x, y: x.real_min(y, analytic=analytic),
    "relu": lambda analytic, x: x.real_max(acb(0), analytic=analytic),
    "hypot": lambda analytic, x, y: (x * x + y * y).sqrt(analytic=analytic),
    "asin": _with_cut(acb.asin, lambda x: _is_real(x) and _outside(x.real)),
    "acos": _with_cut(acb.acos, lambda x: _is_real(x) and _outside(x.real)),
    "atanh": _with_cut(acb.atanh, lambda x: _is_real(x) and _outside(x.real)),
    "atan": _atan,
    "atan2": _atan2,
    "asinh": _with_cut(acb.asinh, lambda x: _is_imaginary(x) and _outside(x.imag)),
    "acosh": _with_cut(acb.acosh, lambda x: _is_real(x) and not x.real > 1),
    "lgamma": _with_cut(acb.lgamma, lambda x: _is_real(x) and not x.real > 0),
    **{
        name: meromorphic(getattr(acb, name))
        for name in (
            *("exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "erf", "erfc", "erfi", "gamma", "digamma"),
            *("sec", "csc", "cot", "sech", "csch", "coth", "si", "shi", "rgamma"),
        )
    },
    "sinpi": lambda _, x: x.sin_pi(),
    "cospi": lambda _, x: x.cos_pi(),
    "exp2": lambda _, x: (x * arb(2).log()).exp(),
    "one_minus_square": lambda _, x: (1 - x) * (1 + x),
    "over_one_plus_square": lambda _, x: 1 / (1 + x * x),
    "sech_square": lambda _, x: x.sech() ** 2,
    "clip": lambda analytic, x, low, high: x.real_max(low, analytic=analytic).real_min(high, analytic=analytic),
    "cbrt": _cbrt,
    "softsign": lambda analytic, x: x / (1 + x.real_abs(analytic=analytic)),
    "xlogy": lambda analytic, x, y: x * y.log(analytic=analytic),
    "entr": lambda analytic, x: -x * x.log(analytic=analytic),
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "logsigmoid": lambda analytic, x: -_softplus(analytic, -x),
    "airyai": lambda _, x: x.airy_ai(),
    "airyaiprime": lambda _, x: x.airy_ai(derivative=1),
    "airybi": lambda _, x: x.airy_bi(),
    "airybiprime": lambda _, x: x.airy_bi(derivative=1),
    "bessel_j": lambda _, x, n: x.bessel_j(n),
    "bessel_i": lambda _, x, n: x.bessel_i(n),
    "polygamma": lambda _, x, n: x.polygamma(n),
    "fresnels": lambda _, x: x.fresnel_s(),
    "fresnelc": lambda _, x: x.fresnel_c(),
    "ndtr": lambda _, x: (-x / arb(2).sqrt()).erfc() / 2,
    "riemann_zeta": lambda _, x: x.zeta(),
    "hurwitz_zeta": _hurwitz_zeta,
    "less": _compared(lambda d: d < 0, lambda d: d >= 0),
    "less_equal": _compared(lambda d: d <= 0, lambda d: d > 0),
    "greater": _compared(lambda d: d > 0, lambda d: d <= 0),
    "greater_equal": _compared(lambda d: d >= 0, lambda d: d < 0),
    "isfinite": lambda _, x: True if x.is_finite() else None,
    "equal": lambda _, x, y: _same(x - y),
    "not_equal": lambda _, x, y: None if _same(x - y) is None else not _same(x - y),
    "logical_and": _both,
    "logical_or": _either,
    "logical_not": lambda _, a: None if a is None else not a,
    "may_differ_from_zero": lambda _, x: not x.is_zero(),
    "where": _where,
    "floor_divide": _floor_divide,
    "remainder": lambda analytic, x, y: x - y * _floor_divide(analytic, x, y),
    "trunc": _trunc,
    "heaviside": _heaviside,
    "copysign": _copysign,
    "leaky_relu": _right_or_left(lambda x, slope: slope * x),
    "elu": _right_or_left(lambda x, alpha: alpha * x.expm1()),
    "frozen": lambda _, x: x,
    "identity": lambda _, x: x,
    "isnan": lambda _, x: False if x.is_finite() else None,
    "isinf": lambda _, x: False if x.is_finite() else None,
    "fmod": lambda analytic, x, y: x - y * _trunc(analytic, x / y),
    # Halves, which are single places, do not matter to an integral.
    "round": lambda analytic, x: (x + 0.5).real_floor(analytic=analytic),
    "logaddexp": _logaddexp,
    "logaddexp2": lambda analytic, x, y: _logaddexp(analytic, x * arb(2).log(), y * arb(2).log()) / arb(2).log(),
    "logcosh": _logcosh,
    "xlog1py": lambda analytic, x, y: x * (1 + y).log(analytic=analytic),
    "rel_entr": lambda analytic, x, y: x * (x / y).log(analytic=analytic),
    "tanhshrink": lambda _, x: x - x.tanh(),
    "acot": _of_reciprocal("atan"),
    "asec": _of_reciprocal("acos"),
    "acsc": _of_reciprocal("asin"),
    "acoth": _of_reciprocal("atanh"),
    "asech": _of_reciprocal("acosh"),
    "acsch": _of_reciprocal("asinh"),
    **SPECIAL_RULES,
}  # fmt: skip
