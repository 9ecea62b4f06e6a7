"""Elementwise activations and special functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.mathematical_constants import by_formula, decimal, is_exact, sqrt_2_pi
from gradcli.errors import EvaluationError
from gradcli.primitives.axes import integer, option
from gradcli.primitives.bind import assume, constant
from gradcli.primitives.costs import of_bessel_i, of_bessel_j, of_digamma, of_digamma_rise
from gradcli.primitives.entries.arithmetic import add, divide, multiply
from gradcli.primitives.entries.comparisons import (
    equal,
    greater,
    logical_and,
    not_equal,
    nowhere,
    where,
)
from gradcli.primitives.entries.exponential import exp, expm1, sigmoid
from gradcli.primitives.families import complex_by_scipy, elementwise, keeping_float32
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "special"

_ANYWHERE = (0.7, [-1.0, 2.0])
_INSIDE = (0.7, [-0.3, 0.2])
_POSITIVE = (0.7, [0.4, 2.5])
_POSITIVE_PAIRS = ((0.7, 1.3), ([[0.3, 1.2]], [[0.8], [2.5]]))
_minus_sqrt_half, _gelu_scale = by_formula(lambda m: -m.sqrt(0.5)), by_formula(lambda m: m.sqrt(8.0 / m.pi))
_two_over_sqrt_pi = by_formula(lambda m: 2.0 / m.sqrt(m.pi))
_half_sqrt_pi = by_formula(lambda m: 1.0 / (2.0 / m.sqrt(m.pi)))
# Beyond this point polygamma(n, x) equals (n - 1)!/x**n up to its sign, to double precision.
_FAR = 1e17
_gelu_cubic, _leak = decimal("0.044715"), decimal("0.01")


def _smooth(x: Any, slope: Any) -> bool:
    """Return whether a function with slope 1 on the right of 0 and `slope` on its left is differentiable at x."""
    return nowhere(logical_and(equal(x, 0), not_equal(slope, 1)))


leaky_relu = elementwise(
    "leaky_relu", "x, negative_slope=0.01", "x where it is positive, else negative_slope*x",
    forward=lambda xp, x, slope: xp.where(xp.greater(x, 0.0), x, xp.multiply(slope, x)),
    vjp=(
        lambda g, _y, x, slope: where(greater(x, 0), g, g * slope),
        lambda g, _y, x, _slope: where(greater(x, 0), 0.0, g * x),
    ),
    prepare=lambda x, negative_slope=None: ((x, _leak() if negative_slope is None else negative_slope), {}),
    gradient_name="LeakyReluBackwardBackward0",
    derivative="g where x > 0, else g*negative_slope; by negative_slope 0 where x > 0, else g*x",
    domain="smooth where x != 0 or negative_slope = 1",
    edges=("leaky_relu'(0) = negative_slope",),
    selects=True,
    smooth=_smooth,
    samples=(*_ANYWHERE, ([-1.0, 2.0], 0.3)),
)  # fmt: skip


def _not_above_zero(x: Any) -> Any:
    """min(x, 0), for which exp does not overflow."""
    return where(greater(x, 0), 0.0, x)


elu = elementwise(
    "elu", "x, alpha=1.0", "x where it is positive, else alpha*(exp(x) - 1)",
    forward=lambda xp, x, alpha: xp.where(
        xp.greater(x, 0.0), x, xp.multiply(alpha, xp.expm1(xp.where(xp.greater(x, 0.0), 0.0, x)))
    ),
    vjp=(
        lambda g, _y, x, alpha: where(greater(x, 0), g, g * (alpha * exp(_not_above_zero(x)))),
        lambda g, _y, x, _alpha: where(greater(x, 0), 0.0, g * expm1(_not_above_zero(x))),
    ),
    prepare=lambda x, alpha=1.0: ((x, alpha), {}),
    derivative="g where x > 0, else g*alpha*exp(x); by alpha 0 where x > 0, else g*(exp(x) - 1)",
    domain="smooth where x != 0 or alpha = 1",
    edges=("elu'(0) = alpha",),
    selects=True,
    smooth=_smooth,
    samples=(*_ANYWHERE, ([-1.0, 2.0], 0.3)),
)  # fmt: skip

silu = Composite(
    "silu", "x", "x*sigmoid(x)", lambda x: multiply(x, sigmoid(x)),
    node_name="SiluBackward0",
    derivative="g*sigmoid(x)*(1 + x*(1 - sigmoid(x)))",
    aliases=("swish",),
    samples=_ANYWHERE,
)  # fmt: skip


def _gelu(x: Any, approximate: Any = "none") -> Any:
    if option(approximate, ("none", "tanh"), "'approximate'") == "none":
        return multiply(x, ndtr(x))
    # (1 + tanh(u))/2 as sigmoid(2*u), which does not cancel.
    inner = multiply(x, add(1.0, multiply(_gelu_cubic(), multiply(x, x))))
    return multiply(x, sigmoid(multiply(_gelu_scale(), inner)))


gelu = Composite(
    "gelu", "x, approximate='none'", "x*ndtr(x); by a tanh where approximate='tanh'", _gelu,
    node_name="GeluBackward0",
    derivative="g*(ndtr(x) + x*exp(-x**2/2)/sqrt(2*pi))",
    samples=(*_ANYWHERE, ([-1.0, 2.0], "tanh")),
)  # fmt: skip

erf = elementwise(
    "erf", "x", "error function",
    numbers="analytic", of_complex=complex_by_scipy("erf"),
    parity="odd",
    vjp=(lambda g, _y, x: g * (_two_over_sqrt_pi() * exp(-x * x)),),
    spelling=names_elsewhere("c scipy sympy"),
    derivative="g*2*exp(-x**2)/sqrt(pi)",
    samples=_ANYWHERE,
)  # fmt: skip

erfc = elementwise(
    "erfc", "x", "1 - erf(x), accurate for large x",
    numbers="analytic", of_complex=complex_by_scipy("erfc"),
    vjp=(lambda g, _y, x: -g * (_two_over_sqrt_pi() * exp(-x * x)),),
    spelling=names_elsewhere("c scipy sympy"),
    derivative="-g*2*exp(-x**2)/sqrt(pi)",
    samples=_ANYWHERE,
)  # fmt: skip

erfinv = elementwise(
    "erfinv", "x", "inverse of erf",
    time=2,
    parity="odd",
    vjp=(lambda g, y, _x: g * (exp(y * y) * _half_sqrt_pi()),),
    spelling=names_elsewhere("scipy cuda"),
    derivative="g*sqrt(pi)/2*exp(erfinv(x)**2)",
    domain="-1 < x < 1",
    edges=("erfinv(1) = inf and erfinv(-1) = -inf, with derivative inf",),
    samples=_INSIDE,
)  # fmt: skip

ndtr: Composite = Composite(
    "ndtr", "x", "standard normal distribution function", lambda x: multiply(0.5, erfc(multiply(x, _minus_sqrt_half()))),
    derivative="g*exp(-x**2/2)/sqrt(2*pi)",
    samples=_ANYWHERE,
)  # fmt: skip

ndtri = elementwise(
    "ndtri", "p", "inverse of ndtr",
    time=2,
    vjp=(lambda g, y, _x: g * (exp(0.5 * (y * y)) * sqrt_2_pi()),),
    spelling=names_elsewhere("scipy", cuda="normcdfinv"),
    derivative="g*sqrt(2*pi)*exp(ndtri(p)**2/2)",
    domain="0 < p < 1",
    edges=("ndtri(0) = -inf and ndtri(1) = inf, with derivative inf",),
    samples=(0.7, [0.2, 0.5]),
)  # fmt: skip

gamma = elementwise(
    "gamma", "x", "gamma function",
    numbers="analytic", of_complex=complex_by_scipy("gamma"),
    time=3,
    fallback=common_definitions.gamma,
    vjp=(lambda g, y, x: g * (y * digamma(x)),),
    spelling=names_elsewhere("scipy sympy", c="tgamma", latex="Gamma"),
    derivative="g*gamma(x)*digamma(x)",
    domain="x is no whole number <= 0",
    samples=_POSITIVE,
)  # fmt: skip

lgamma = elementwise(
    "lgamma", "x", "logarithm of the magnitude of gamma(x)",
    numbers="analytic", of_complex=complex_by_scipy("lgamma"),
    time=4,
    vjp=(lambda g, _y, x: g * digamma(x),),
    spelling=names_elsewhere("c", scipy="gammaln", sympy="loggamma", latex=r"log\Gamma"),
    derivative="g*digamma(x)",
    domain="x is no whole number <= 0",
    aliases=("gammaln",),
    samples=_POSITIVE,
)  # fmt: skip

digamma: Primitive = elementwise(
    "digamma", "x", "derivative of lgamma",
    numbers="analytic", of_complex=complex_by_scipy("digamma"),
    time=4, surcharge=of_digamma,
    vjp=(lambda g, _y, x: g * polygamma(1, x),),
    spelling=names_elsewhere("scipy sympy", latex="psi"),
    derivative="g*polygamma(1, x)",
    domain="x is no whole number <= 0",
    aliases=("psi",),
    samples=_POSITIVE,
)  # fmt: skip


def _polygamma_call(n: Any, x: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    order = integer(n, "the order of 'polygamma'")
    if order < 0:
        raise EvaluationError("the order of 'polygamma' must not be negative")
    return (x,), {"n": order}


def _polygamma_vjp(g: Any, y: Any, x: Any, *, n: int) -> Any:
    if n and not is_exact() and not arrays.is_complex(x) and assume(greater(constant(x), _FAR)):
        # polygamma(n + 1, x) may underflow where g is correspondingly large, so it is expressed by y.
        return divide(g, x) * (-n * y)
    return g * polygamma(n + 1, x)


polygamma: Primitive = elementwise(
    "polygamma", "n, x", "the nth derivative of digamma, n whole",
    numbers="analytic", of_complex=lambda xp, x, *, n: complex_by_scipy("polygamma")(xp, n, x) if n else complex_by_scipy("digamma")(xp, x),
    time=60,
    # SciPy's polygamma returns double precision for single-precision arguments too.
    forward=keeping_float32(lambda xp, x, *, n: xp.polygamma(n, x) if n else xp.digamma(x)),
    vjp=(_polygamma_vjp,),
    prepare=_polygamma_call,
    spelling=names_elsewhere("scipy"),
    derivative="g*polygamma(n + 1, x)",
    domain="x is no whole number <= 0",
    samples=((1, 0.7), (2, [0.4, 2.5])),
)  # fmt: skip

digamma_rise = elementwise(
    "digamma_rise", "x, y", "digamma(x + y) - digamma(x), without cancellation",
    internal=True, forward=common_definitions.digamma_rise, time=30, surcharge=of_digamma_rise,
    vjp=(
        lambda g, _y, x, y: g * (polygamma(1, x + y) - polygamma(1, x)),
        lambda g, _y, x, y: g * polygamma(1, x + y),
    ),
    derivative="g*(polygamma(1, x + y) - polygamma(1, x)), g*polygamma(1, x + y)",
    domain="neither x nor x + y is a whole number <= 0",
    samples=_POSITIVE_PAIRS,
)  # fmt: skip

betaln = elementwise(
    "betaln", "a, b", "logarithm of beta(a, b)",
    forward=common_definitions.betaln,
    time=50,
    vjp=(
        lambda g, _y, a, b: -g * digamma_rise(a, b),
        lambda g, _y, a, b: -g * digamma_rise(b, a),
    ),
    spelling=names_elsewhere("scipy"),
    derivative="g*(digamma(a) - digamma(a + b)), g*(digamma(b) - digamma(a + b))",
    domain="a > 0, b > 0",
    samples=_POSITIVE_PAIRS,
)  # fmt: skip


# Bessel functions of integer order: DLMF 10.29.1 and 10.6.1, with I(-n) = I(n) and J(-n) = (-1)**n J(n).
bessel_i: Primitive = elementwise(
    "bessel_i", "x, n", "modified Bessel function of the first kind and whole order n",
    numbers="analytic", of_complex=lambda xp, x, *, n: complex_by_scipy("iv")(xp, float(n), x),
    time=8, surcharge=of_bessel_i,
    internal=True,
    forward=lambda xp, x, *, n: (xp.i0, xp.i1)[n](x) if n < 2 else xp.whole_iv(n, x),
    vjp=(
        lambda g, _y, x, *, n: g * (0.5 * (bessel_i(x, abs(n - 1)) + bessel_i(x, n + 1))),
    ),
    prepare=lambda x, n: ((x,), {"n": n}),
    spelling=names_elsewhere(scipy="iv"),
    derivative="g*(I(n-1, x) + I(n+1, x))/2",
    samples=((0.7, 0), ([-1.0, 2.0], 3)),
)  # fmt: skip


def _bessel_j_rule(g: Any, _y: Any, x: Any, *, n: int) -> Any:
    before = bessel_j(x, n - 1) if n else -bessel_j(x, 1)
    return g * (0.5 * (before - bessel_j(x, n + 1)))


bessel_j = elementwise(
    "bessel_j", "x, n", "Bessel function of the first kind and whole order n",
    numbers="analytic", of_complex=lambda xp, x, *, n: complex_by_scipy("jv")(xp, float(n), x),
    time=8, surcharge=of_bessel_j,
    internal=True,
    forward=lambda xp, x, *, n: (xp.j0, xp.j1)[n](x) if n < 2 else xp.jv(n, x),
    vjp=(_bessel_j_rule,),
    prepare=lambda x, n: ((x,), {"n": n}),
    spelling=names_elsewhere(scipy="jv"),
    derivative="g*(J(n-1, x) - J(n+1, x))/2",
    samples=((0.7, 0), ([-1.0, 2.0], 3)),
)  # fmt: skip


def _bessel(name: str, doc: str, function: Any, n: int, derivative: str) -> Composite:
    alias = f"bessel_{name}" if name[0] == "j" else f"modified_bessel_{name}"
    return Composite(
        name, "x", doc, lambda x: function(x, n), derivative=derivative, aliases=(alias,), samples=_ANYWHERE
    )


i0 = _bessel("i0", "modified Bessel function of order 0", bessel_i, 0, "g*i1(x)")
i1 = _bessel("i1", "modified Bessel function of order 1", bessel_i, 1, "g*(i0(x) - i1(x)/x), g/2 at 0")
j0 = _bessel("j0", "Bessel function of order 0", bessel_j, 0, "-g*j1(x)")
j1 = _bessel("j1", "Bessel function of order 1", bessel_j, 1, "g*(j0(x) - j1(x)/x), g/2 at 0")
