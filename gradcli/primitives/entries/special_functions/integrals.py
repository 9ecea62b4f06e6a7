"""Elementwise special functions defined by integrals or sums: exponential integrals, incomplete gamma and beta, zeta,
Lambert W."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.definitions import integral_definitions as definitions
from gradcli.arrays.mathematical_constants import by_formula
from gradcli.errors import EvaluationError
from gradcli.primitives.axes import integer
from gradcli.primitives.bind import assume, bind, constant
from gradcli.primitives.costs import of_betainc, of_derivative
from gradcli.primitives.entries.arithmetic import divide
from gradcli.primitives.entries.comparisons import equal, less, logical_not, logical_or, not_equal, where
from gradcli.primitives.entries.complex_parts import any_complex
from gradcli.primitives.entries.elementwise.elementary import cospi, sinpi
from gradcli.primitives.entries.exponential import exp, xlog1py, xlogy
from gradcli.primitives.entries.powers import power
from gradcli.primitives.entries.special_functions.numerical_partials import derivative
from gradcli.primitives.entries.special_functions.special import betaln, digamma, digamma_rise, lgamma
from gradcli.primitives.families import complex_by_scipy, elementwise, keeping_float32
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "special"

_ANYWHERE = (0.7, [-1.0, 2.0])
_POSITIVE = (0.7, [0.4, 2.5])
_BELOW_ONE = (0.7, [-1.5, 0.2])
_HIGHEST_ORDER = 10_000
_log_2_pi, _half_pi = by_formula(lambda m: m.log(2.0 * m.pi)), by_formula(lambda m: 0.5 * m.pi)


def _value(*operands: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    return operands, {"n": 0}


def _exp_over(x: Any) -> Any:
    """exp(x)/x, finite also where exp(x) alone overflows."""
    half = exp(x * 0.5)
    return divide(half, x) * half


exp1 = elementwise(
    "exp1", "x", "exponential integral E1, that of exp(-t)/t from x on",
    numbers="analytic", of_complex=complex_by_scipy("exp1"),
    time=70,
    vjp=(lambda g, _y, x: g * _exp_over(-x),),
    spelling=names_elsewhere("scipy"),
    derivative="-g*exp(-x)/x",
    domain="x > 0",
    aliases=("E1",),
    samples=_POSITIVE,
)  # fmt: skip

expi = elementwise(
    "expi", "x", "exponential integral Ei, that of exp(t)/t up to x",
    numbers="analytic", of_complex=complex_by_scipy("expi"),
    time=70,
    forward=definitions.expi,
    vjp=(lambda g, _y, x: g * _exp_over(x),),
    spelling=names_elsewhere("scipy"),
    derivative="g*exp(x)/x",
    domain="x != 0",
    aliases=("Ei",),
    samples=_ANYWHERE,
)  # fmt: skip


def _expn_call(n: Any, x: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    order = integer(n, "the order of 'expn'")
    if not 0 <= order <= _HIGHEST_ORDER:
        raise EvaluationError(f"the order of 'expn' must be from 0 to {_HIGHEST_ORDER:,}")
    return (x,), {"n": order}


expn: Primitive = elementwise(
    "expn", "n, x", "exponential integral of order n, that of exp(-x*t)/t**n over t > 1, n whole",
    time=60,
    forward=keeping_float32(definitions.expn),
    vjp=(lambda g, _y, x, *, n: -g * bind(expn, (x,), {"n": n - 1}),),
    prepare=_expn_call,
    spelling=names_elsewhere("scipy"),
    derivative="-g*expn(n - 1, x)",
    domain="x > 0",
    samples=((1, 0.7), (3, [0.4, 2.5])),
)  # fmt: skip


def _complex_dawsn(xp: Any, x: Any, *, n: int) -> Any:
    # Imported here, because only programs with complex numbers need it.
    from gradcli.arrays.scipy_complex import dawsn_derivative

    return dawsn_derivative(xp, x, n)


dawsn: Primitive = elementwise(
    "dawsn", "x", "Dawson's integral, exp(-x**2) times that of exp(t**2) from 0 to x",
    time=5, surcharge=of_derivative(15),
    numbers="analytic", of_complex=_complex_dawsn,
    forward=definitions.dawsn,
    vjp=(lambda g, _y, x, *, n: g * bind(dawsn, (x,), {"n": n + 1}),),
    prepare=_value,
    spelling=names_elsewhere("scipy"),
    derivative="g*(1 - 2*x*dawsn(x))",
    samples=_ANYWHERE,
)  # fmt: skip


def _complete(name: str, doc: str, power: float, derivative: str, edge: str, aliases: Sequence[str] = ()) -> Primitive:
    made: Primitive = elementwise(
        name, "m", doc,
        time=6, surcharge=of_derivative(50),
        forward=lambda xp, m, *, n: definitions.elliptic(xp, m, n, power),
        vjp=(lambda g, _y, m, *, n: g * bind(made, (m,), {"n": n + 1}),),
        prepare=_value,
        spelling=names_elsewhere("scipy"),
        derivative=derivative,
        domain="m < 1",
        edges=(edge,),
        aliases=aliases,
        samples=_BELOW_ONE,
    )  # fmt: skip
    return made


ellipk = _complete(
    "ellipk",
    "complete elliptic integral of the first kind, of the parameter m = k**2",
    -0.5,
    "g*(ellipe(m)/(1 - m) - ellipk(m))/(2*m), g*pi/8 at 0",
    "ellipk(1) = inf",
    aliases=("elliptic_k",),
)
ellipe = _complete(
    "ellipe",
    "complete elliptic integral of the second kind, of the parameter m = k**2",
    0.5,
    "g*(ellipe(m) - ellipk(m))/(2*m), -g*pi/8 at 0",
    "ellipe(1) = 1, with derivative -inf",
)


def _slope_of_power(x: Any, p: Any) -> Any:
    """p*x**(p - 1), 0 where p is 0, also at x = 0."""
    return p * power(x, where(equal(p, 0), 1.0, p - 1.0))


def _gamma_density_by_x(g: Any, y: Any, a: Any, x: Any) -> Any:
    if assume(not_equal(constant(x), 0)):
        return g * (y * (divide(a - 1.0, x) - 1.0))
    at_zero = equal(x, 0)
    base, inside = where(at_zero, x, 1.0), where(at_zero, 1.0, x)
    rise = exp(-lgamma(a)) * _slope_of_power(base, a - 1.0) * exp(-base)
    return g * (where(at_zero, rise, y * divide(a - 1.0, inside)) - y)


gamma_density: Primitive = elementwise(
    "gamma_density", "a, x", "x**(a - 1)*exp(-x)/gamma(a)",
    internal=True, time=120, forward=keeping_float32(definitions.gamma_density),
    vjp=(
        lambda g, y, a, x: g * (xlogy(y, x) - y * digamma(a)),
        _gamma_density_by_x,
    ),
    derivative="g*y*(log(x) - digamma(a)), g*y*((a - 1)/x - 1)",
    domain="a > 0, x > 0",
    samples=((2.5, 0.7), ([1.5, 20.0], [0.4, 12.5])),
)  # fmt: skip


def _incomplete(name: str, alias: str, doc: str, sign: float) -> Primitive:
    minus = "-" if sign < 0.0 else ""
    return elementwise(
        name, "a, x", doc,
        time=60,
        forward=keeping_float32(lambda xp, a, x: getattr(xp, name)(a, x)),
        vjp=(
            derivative(name, 0, 2),
            lambda g, _y, a, x: g * (sign * gamma_density(a, x)),
        ),
        spelling=names_elsewhere("scipy"),
        derivative=f"by a computed by itself, {minus}g*x**(a - 1)*exp(-x)/gamma(a)",
        domain="a > 0, x > 0",
        aliases=(alias,),
        samples=((2.5, 0.7), (3, [0.4, 2.5])),
    )  # fmt: skip


gammainc = _incomplete("gammainc", "igamma", "regularised lower incomplete gamma function", 1.0)
gammaincc = _incomplete("gammaincc", "igammac", "regularised upper incomplete gamma function, 1 - gammainc(a, x)", -1.0)


def _beta_density_by_x(g: Any, y: Any, a: Any, b: Any, x: Any) -> Any:
    ends = logical_or(equal(constant(x), 0), equal(constant(x), 1))
    inside = x if assume(logical_not(ends)) else where(ends, 0.5, x)
    slope = y * divide((a - 1.0) - (a + b - 2.0) * inside, inside * (1.0 - inside))
    if inside is x:
        return g * slope
    base = where(ends, x, 0.5)
    rest = 1.0 - base
    rise = _slope_of_power(base, a - 1.0) * power(rest, b - 1.0)
    fall = power(base, a - 1.0) * _slope_of_power(rest, b - 1.0)
    return g * where(ends, exp(-betaln(a, b)) * (rise - fall), slope)


beta_density: Primitive = elementwise(
    "beta_density", "a, b, x", "x**(a - 1)*(1 - x)**(b - 1)/beta(a, b)",
    internal=True, time=250, forward=keeping_float32(definitions.beta_density),
    vjp=(
        lambda g, y, a, b, x: g * (xlogy(y, x) + y * digamma_rise(a, b)),
        lambda g, y, a, b, x: g * (xlog1py(y, -x) + y * digamma_rise(b, a)),
        _beta_density_by_x,
    ),
    derivative=(
        "g*y*(log(x) + digamma(a + b) - digamma(a)), g*y*(log(1 - x) + digamma(a + b) - digamma(b)), "
        "g*y*((a - 1)/x - (b - 1)/(1 - x))"
    ),
    domain="a > 0, b > 0, 0 < x < 1",
    samples=((2.5, 1.5, 0.7), (2, 30.0, [0.2, 0.5]), (20.0, 30.0, [0.2, 0.5])),
)  # fmt: skip


betainc = elementwise(
    "betainc", "a, b, x", "regularised incomplete beta function",
    time=150, surcharge=of_betainc,
    vjp=(
        derivative("betainc", 0, 3),
        derivative("betainc", 1, 3),
        lambda g, _y, a, b, x: g * beta_density(a, b, x),
    ),
    spelling=names_elsewhere("scipy"),
    derivative="by a and b computed by themselves, g*x**(a - 1)*(1 - x)**(b - 1)/beta(a, b)",
    domain="a > 0, b > 0, 0 < x < 1",
    samples=((2.5, 3.5, 0.7), (2, 3, [0.2, 0.5])),
)  # fmt: skip


def _complex_zeta(xp: Any, x: Any, _one: Any = 1.0, *, n: int = 0) -> Any:
    """The derivative of Riemann's function: `_zeta` refuses complex numbers beside another q than 1."""
    # Imported here, because only programs with complex numbers need it.
    from gradcli.arrays.scipy_complex import zeta_derivative

    return zeta_derivative(xp, x, n)


hurwitz_zeta: Primitive = elementwise(
    "hurwitz_zeta", "x, q", "the sum of (k + q)**-x over k = 0, 1, …, and its continuation to x < 1",
    internal="zeta", numbers="analytic", of_complex=_complex_zeta,
    time=60, surcharge=of_derivative(150),
    forward=keeping_float32(definitions.hurwitz),
    vjp=(
        lambda g, _y, x, q, *, n: -g * bind(hurwitz_zeta, (x, q), {"n": n + 1}),
        lambda g, _y, x, q, *, n: g * _zeta_by_q(x, q, n),
    ),
    prepare=_value,
    spelling=names_elsewhere(scipy="zeta", jax="zeta", torch="zeta", latex="zeta"),
    derivative="-g*sum(log(k + q)*(k + q)**-x), -g*x*zeta(x + 1, q)",
    domain="x != 1, q > 0",
    samples=((2.5, 0.7), ([1.5, 4.0], [0.4, 2.5])),
)  # fmt: skip


def _zeta_by_q(x: Any, q: Any, n: int) -> Any:
    """The derivative by q of the sum over k of log(k + q)**n*(k + q)**-x."""
    if n or assume(not_equal(constant(x), 0)):
        slope = -1.0 * x * bind(hurwitz_zeta, (x + 1.0, q), {"n": n})
    else:
        # Near x = 0 the sum with exponent x + 1 is 1/x to leading order, so that -x times it tends to -1.
        pole = equal(x, 0)
        slope = where(pole, -1.0, -1.0 * x * bind(hurwitz_zeta, (where(pole, 1.0, x) + 1.0, q), {"n": n}))
    return slope + float(n) * bind(hurwitz_zeta, (x + 1.0, q), {"n": n - 1}) if n else slope


def _mirrored_slope(x: Any) -> Any:
    """The derivative of zeta at x < 0, from zeta(x) = 2*(2*pi)**-t*cos(pi*t/2)*gamma(t)*zeta(t), t = 1 - x: DLMF
    25.4.1."""
    t = 1.0 - x
    scale = 2.0 * exp(lgamma(t) - t * _log_2_pi())
    value, slope = riemann_zeta(t), -bind(hurwitz_zeta, (t, 1.0), {"n": 1})
    wave = sinpi(0.5 * t) * _half_pi() * value
    return scale * (wave - cospi(0.5 * t) * ((digamma(t) - _log_2_pi()) * value + slope))


def _riemann_slope(x: Any) -> Any:
    if arrays.is_complex(x):
        return -bind(hurwitz_zeta, (x, 1.0), {"n": 1})
    negative = less(x, 0)
    right = -bind(hurwitz_zeta, (where(negative, 2.0, x), 1.0), {"n": 1})
    return where(negative, _mirrored_slope(where(negative, x, -1.0)), right)


riemann_zeta = elementwise(
    "riemann_zeta", "x", "Riemann's zeta function",
    internal="zeta", time=120,
    numbers="analytic", of_complex=_complex_zeta,
    fallback=definitions.riemann,
    vjp=(lambda g, _y, x: g * _riemann_slope(x),),
    spelling=names_elsewhere(scipy="zeta", latex="zeta"),
    derivative="-g*sum(log(k)*k**-x)",
    domain="x != 1",
    samples=(2.5, [1.5, -0.7]),
)  # fmt: skip


def _zeta(x: Any, q: Any = None, n: Any = 0) -> Any:
    power = integer(n, "the power of the logarithms in 'zeta'")
    if power < 0:
        raise EvaluationError("the power of the logarithms in 'zeta' must not be negative")
    if q is None and not power:
        return riemann_zeta(x)
    operands = x, 1.0 if q is None else q
    if q is not None and any_complex(operands):
        raise EvaluationError("'zeta' with q takes real numbers alone", hint="zeta(x) takes complex numbers, too")
    return bind(hurwitz_zeta, operands, {"n": power})


zeta = Composite(
    "zeta", "x, q=None, n=0",
    "Riemann's zeta function; with q the sum of log(k + q)**n*(k + q)**-x over k = 0, 1, …, and its continuation to x < 1; "
    "of complex x without q",
    _zeta,
    derivative="-g*sum(log(k + q)*(k + q)**-x), -g*x*zeta(x + 1, q)",
    domain="x != 1, q > 0",
    samples=(2.5, ([1.5, 4.0], [0.4, 2.5])),
)  # fmt: skip


def _lambertw_call(x: Any, k: Any = 0) -> tuple[Sequence[Any], Mapping[str, Any]]:
    branch = integer(k, "the branch of 'lambertw'")
    if branch not in (0, -1) and not arrays.is_complex(x):
        raise EvaluationError(
            f"the branch {branch} of 'lambertw' is complex", hint="k is 0 or -1, or x a complex number such as -1+0j"
        )
    return (x,), {"k": branch}


lambertw = elementwise(
    "lambertw", "x, k=0", "the w with w*exp(w) = x; of real x the real one, at least -1, or at most -1 where k = -1",
    numbers="analytic", of_complex=lambda xp, x, *, k: complex_by_scipy("lambertw")(xp, x, k),
    time=40,
    forward=definitions.lambertw,
    vjp=(lambda g, y, _x, *, k: g * divide(exp(-y), 1.0 + y),),
    prepare=_lambertw_call,
    spelling=names_elsewhere("scipy"),
    derivative="g*exp(-y)/(1 + y)",
    domain="x > -1/e; for k = -1 also x < 0",
    edges=("lambertw(0) = 0, and -inf where k = -1",),
    aliases=("LambertW",),
    samples=(0.7, [-0.2, 2.0], ([-0.2, -0.3], -1)),
)  # fmt: skip
