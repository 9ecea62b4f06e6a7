"""Special functions of complex balls, by the name of their primitive; see `gradcli.functionals.complex_rules`.

On real balls where the primitive has no value, as left of a branch point, a result may be complex: that is no value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import acb, acb_series, arb

from gradcli.arrays.flint.complex_numbers import flint_complex_special as of_complex
from gradcli.arrays.flint.flint_analytic import ANALYTIC, spherical_first, spherical_modified_second
from gradcli.arrays.flint.flint_bessel import mean_of_powers
from gradcli.arrays.flint.flint_numbers import series_length

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
