"""Functions of complex balls, by the name of their primitive.

A rule is told first whether its result must be analytic on its operands: where it may be not, that is not finite. Truth
values that the balls do not decide are None.

On real balls where the primitive has no value, as left of a branch point, a result may be complex: that is no value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import acb, acb_series, arb

from gradcli.arrays.flint.balls import real_ball
from gradcli.arrays.flint.complex_numbers import flint_complex_special as of_complex
from gradcli.arrays.flint.complex_numbers.flint_complex_special import zeta_derivative
from gradcli.arrays.flint.flint_analytic import ANALYTIC, spherical_first, spherical_modified_second
from gradcli.arrays.flint.flint_bessel import mean_of_powers
from gradcli.arrays.flint.flint_numbers import series_length
from gradcli.errors import BackendError

UNDEFINED_BALL = acb("nan")

Rule = Callable[..., Any]


def is_whole(x: acb) -> bool:
    """Return whether a ball is a known whole number."""
    return bool(x.is_exact() and x.imag.is_zero() and x.real.is_integer())


def _is_off_cut(x: acb) -> bool:
    """Return whether a ball does not meet the numbers from minus infinity to 0."""
    return bool(x.real > 0) or not x.imag.contains(0)


def _cut_below(compute: Callable[..., acb]) -> Rule:
    """A function of its last operand with a branch cut from minus infinity to 0, and meromorphic in the others."""
    return lambda analytic, *operands, **params: (
        UNDEFINED_BALL if analytic and not _is_off_cut(operands[-1]) else compute(*operands, **params)
    )


def meromorphic(compute: Callable[..., acb]) -> Rule:
    """A function that is analytic wherever it is finite."""
    return lambda _analytic, *operands, **params: compute(*operands, **params)


def _of_order(compute: Callable[[acb, acb], acb]) -> Rule:
    """A Bessel function of an order, which is entire for whole ones."""
    cut = _cut_below(compute)
    return lambda analytic, v, x: compute(v, x) if is_whole(v) else cut(analytic, v, x)


def _inside(name: str) -> Rule:
    """A function where it is known to be analytic."""
    function = ANALYTIC[name]
    return lambda _analytic, *operands: function.value(*operands) if function.inside(*operands) else UNDEFINED_BALL


def _even(compute: Callable[[acb], acb]) -> Rule:
    """A function of the magnitude of a real number, analytic on both sides of 0."""

    def rule(_analytic: bool, x: acb) -> acb:
        return compute(x) if x.real > 0 else compute(-x) if x.real < 0 else UNDEFINED_BALL

    return rule


def _expi(_analytic: bool, x: acb) -> acb:
    return x.ei() if x.real > 0 else -((-x).expint(1)) if x.real < 0 else UNDEFINED_BALL


def _ive(analytic: bool, v: acb, x: acb) -> acb:
    """exp(-abs(x)) times the modified Bessel function, which is at most 1 for orders from 0 on."""
    if x.real > 0:
        return x.bessel_i(v, scaled=True)
    if x.real < 0 and is_whole(v):
        return (-1) ** int(v.real.unique_fmpz()) * (-x).bessel_i(v, scaled=True)
    return UNDEFINED_BALL if analytic or not v.real >= 0 else acb(arb(0, 1))


def _ive_slope(analytic: bool, v: acb, x: acb) -> acb:
    if not (x.real > 0 or x.real < 0):
        return UNDEFINED_BALL
    mean = (_ive(analytic, v - 1, x) + _ive(analytic, v + 1, x)) / 2
    return mean - _ive(analytic, v, x) if x.real > 0 else mean + _ive(analytic, v, x)


def _scaled_i(x: acb, *, n: int) -> acb:
    """(-1)**n times the nth derivative of exp(-x) times the modified Bessel function of order 0."""
    if not n:
        return x.bessel_i(0, scaled=True)
    return 2**n * mean_of_powers(n) * (-2 * x).hypgeom_1f1(arb(n) + arb(0.5), n + 1)


def _k0e(x: acb, *, n: int) -> acb:
    """(-1)**n times the nth derivative of exp(x)*k0(x): DLMF 13.4.4."""
    if not n:
        return x.bessel_k(0, scaled=True)
    half = arb(n) + arb(0.5)
    return 2**n * half.gamma() * (2 * x).hypgeom_u(half, n + 1)


def _erfcx(x: acb, *, n: int) -> acb:
    """exp(x**2) times the nth repeated integral of erfc: DLMF 7.18.3."""
    with series_length(n + 1):
        t = acb_series([x, 1], prec=n + 1)
        return ((t * t).exp() * t.erfc())[n] * arb(-0.5) ** n


def _spherical_y(_analytic: bool, x: acb, *, n: int) -> acb:
    def value(x: acb) -> acb:
        return (arb.pi() / (2 * x)).sqrt() * x.bessel_y(arb(n) + arb(0.5))

    return value(x) if x.real > 0 else (-1) ** (n + 1) * value(-x) if x.real < 0 else UNDEFINED_BALL


def _elliptic(power: arb) -> Rule:
    """The nth derivative of a complete elliptic integral, 2F1(power, 1/2; 1; m)*pi/2, with a cut from 1 on."""

    def rule(analytic: bool, m: acb, *, n: int) -> acb:
        if analytic and not _is_off_cut(1 - m):
            return UNDEFINED_BALL
        rise = power.rising(n) * arb(0.5).rising(n) / arb(n + 1).gamma()
        return m.hypgeom_2f1(power + n, arb(n) + arb(0.5), n + 1) * rise * arb.pi() / 2

    return rule


def _hyp2f1(analytic: bool, a: acb, b: acb, c: acb, z: acb) -> acb:
    return UNDEFINED_BALL if analytic and not _is_off_cut(1 - z) else z.hypgeom_2f1(a, b, c)


def _lambertw(analytic: bool, x: acb, *, k: int) -> acb:
    """The real branches. The one with k = -1 is analytic about the numbers from -1/e to 0, and is FLINT's branch
    `middle`."""
    right = x.real > -arb(-1).exp()
    is_off_cut = not x.imag.contains(0) or (right and (k == 0 or x.real < 0))
    if analytic and not is_off_cut:
        return UNDEFINED_BALL
    return x.lambertw(middle=True) if k else x.lambertw()


def _complex_lambertw(analytic: bool, x: acb, *, k: int) -> acb:
    if k == 0:
        return _lambertw(analytic, x, k=0)
    return UNDEFINED_BALL if analytic and not _is_off_cut(x) else x.lambertw(k)


def _beta(_analytic: bool, a: acb, b: acb) -> acb:
    return a.gamma() * b.gamma() * (a + b).rgamma()


def _betaln(_analytic: bool, a: acb, b: acb) -> acb:
    if not (a.real > 0 and b.real > 0):
        return UNDEFINED_BALL
    return a.lgamma() + b.lgamma() - (a + b).lgamma()


def _gamma_density(analytic: bool, a: acb, x: acb) -> acb:
    if analytic and not _is_off_cut(x):
        return UNDEFINED_BALL
    return x.pow(a - 1) * (-x).exp() * a.rgamma()


def _beta_density(analytic: bool, a: acb, b: acb, x: acb) -> acb:
    if analytic and not (_is_off_cut(x) and _is_off_cut(1 - x)):
        return UNDEFINED_BALL
    return x.pow(a - 1) * (1 - x).pow(b - 1) * a.rgamma() * b.rgamma() * (a + b).gamma()


def _log_ndtr(analytic: bool, x: acb) -> acb:
    return ((-x / arb(2).sqrt()).erfc() / 2).log(analytic=analytic)


SPECIAL_RULES: dict[str, Rule] = {
    "lambertw": _lambertw,
    "exp1": _cut_below(lambda x: x.expint(1)),
    "expi": _expi,
    "expn": _cut_below(lambda x, n: x.expint(n)),
    "ci": _even(acb.ci),
    "chi": _even(acb.chi),
    "dawsn": meromorphic(of_complex.dawsn_derivative),
    "sinc": meromorphic(of_complex.sinc_derivative),
    "sinhc": meromorphic(of_complex.sinhc_derivative),
    "y0": _cut_below(lambda x: x.bessel_y(0)),
    "y1": _cut_below(lambda x: x.bessel_y(1)),
    "k0": _cut_below(lambda x: x.bessel_k(0)),
    "k1": _cut_below(lambda x: x.bessel_k(1)),
    "k0e": _cut_below(_k0e),
    "k1e": _cut_below(lambda x: x.bessel_k(1, scaled=True)),
    "yv": _cut_below(lambda v, x: x.bessel_y(v)),
    "kv": _cut_below(lambda v, x: x.bessel_k(v)),
    "kve": _cut_below(lambda v, x: x.bessel_k(v, scaled=True)),
    "jv_of_number": _of_order(lambda v, x: x.bessel_j(v)),
    "iv": _of_order(lambda v, x: x.bessel_i(v)),
    "ive": _ive,
    "ive_slope": _ive_slope,
    "i1e": lambda analytic, x: _ive(analytic, acb(1), x),
    "scaled_i": meromorphic(_scaled_i),
    "spherical_jn": meromorphic(lambda x, n: spherical_first(x, n, -1)),
    "spherical_in": meromorphic(lambda x, n: spherical_first(x, n, 1)),
    "spherical_kn": meromorphic(spherical_modified_second),
    "spherical_yn": _spherical_y,
    "ellipk": _elliptic(arb(0.5)),
    "ellipe": _elliptic(arb(-0.5)),
    "hyp0f1": meromorphic(lambda b, z: z.hypgeom_0f1(b)),
    "hyp1f1": meromorphic(lambda a, b, z: z.hypgeom_1f1(a, b)),
    "hyp2f1": _hyp2f1,
    "beta": _beta,
    "betaln": _betaln,
    "digamma_rise": meromorphic(lambda x, y: (x + y).digamma() - x.digamma()),
    "gamma_density": _gamma_density,
    "beta_density": _beta_density,
    "erfcx": meromorphic(_erfcx),
    "elliptic_p": meromorphic(of_complex.p_of_ball),
    "elliptic_p_prime": meromorphic(of_complex.p_prime_of_ball),
    "theta_slope": meromorphic(of_complex.theta_slope_of_ball),
    "eisenstein": meromorphic(of_complex.eisenstein_of_ball),
    "log_ndtr": _log_ndtr,
    **{
        name: _inside(name)
        for name in (
            *("struve", "modstruve", "gammainc", "gammaincc", "betainc", "betaincc", "stdtr", "hyperu", "polylog"),
            *("ellipkinc", "ellipeinc", "ellipkm1", "elliprf", "elliprc", "elliprd", "elliprg", "elliprj"),
        )
    },
}
# Functions of complex numbers that are others beside the real axis than the continuation from it.
COMPLEX_RULES: dict[str, Rule] = {
    "expi": _cut_below(acb.ei),
    "ci": _cut_below(acb.ci),
    "chi": _cut_below(acb.chi),
    "lambertw": _complex_lambertw,
}


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
    return UNDEFINED_BALL if analytic and not q.real > 0 else zeta_derivative(x, n, q)


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
    "riemann_zeta": meromorphic(zeta_derivative),
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
