"""Analytic functions of FLINT numbers, under the names that the namespace looks up.

`ANALYTIC` has those whose partial derivatives are computed directly, see `gradcli.arrays.flint.flint_partials`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flint import acb, arb, fmpq, fmpz

from gradcli.arrays.flint.balls import (
    INFINITY,
    NEGATIVE_INFINITY,
    UNDEFINED,
    Number,
    UndecidedError,
    is_nan,
    precision,
)
from gradcli.arrays.flint.flint_functions import less
from gradcli.arrays.flint.flint_numbers import HALF, ONE, ZERO, analytic, is_at, is_infinite, with_bounds
from gradcli.arrays.flint.flint_partials import Analytic, derivative

_HALF = acb(1) / 2
_FIRST, _FIRST_TWO = frozenset({0}), frozenset({0, 1})
# For larger arguments the series of Struve's functions would need too many terms.
_STRUVE_FAR = 10_000
# For larger orders or operands, the time that FLINT takes for polylogarithms is unbounded.
_LARGEST_ORDER, _LARGEST_OPERAND = 100, 10**6
# For smaller abs(t) the CDF of Student's distribution is computed around 0 instead of from its tail.
_STUDENT_NEAR = 0.5


def _bound_of_k(v: Any, x: Any) -> Any:
    """A bound of abs(K(v, x)), which is at most K(abs(Re v), Re x) by DLMF 10.32.9.

    That increases with the first argument and decreases with the second.
    """
    order, low = v.real.abs_upper(), x.real.lower()
    return low.bessel_k(order) if low > 0 else arb("nan")


def _of_gamma(a: Any, x: Any) -> Any:
    """A bound of the regularised lower incomplete gamma function.

    It follows from the integral of x**a*s**(a - 1)*exp(-x*s) over 0 < s < 1.
    """
    order, low = a.real.lower(), x.real.lower()
    if not (order > 0 and low > 0):
        return arb("nan")
    return ((a * x.log()).real.exp() * low**-order * low.gamma_lower(order) * abs(a.rgamma())).abs_upper()


def _of_beta(a: Any, b: Any, x: Any) -> Any:
    """A bound of the regularised incomplete beta function.

    It follows from the integral of x**a*s**(a - 1)*(1 - x*s)**(b - 1) over 0 < s < 1.
    """
    order, other, size = a.real.lower(), b.real - 1, abs(x).upper()
    if not (order > 0 and b.real > 0 and size < 1):
        return arb("nan")
    # The argument (angle) of 1 - x*s is below pi/2 in magnitude.
    factor = ((1 + size) ** other).max((1 - size) ** other) * (2 * abs(b.imag)).exp()
    return (abs((a * x.log()).exp()) / order * factor * abs(a.rgamma() * b.rgamma() * (a + b).gamma())).abs_upper()


def _of_kummer(a: Any, b: Any, x: Any) -> Any:
    """A bound of 1F1, from the magnitudes of the terms of its series."""
    low = b.real.lower()
    return abs(x).upper().hypgeom_1f1(abs(a).upper(), low) if low > 0 else arb("nan")


def _of_tricomi(a: Any, b: Any, x: Any) -> Any:
    """A bound of U, from its integral DLMF 13.4.4."""
    low, high, near, rise = a.real.lower(), a.real.upper(), x.real.lower(), (b.real - a.real).upper()
    if not (low > 0 and near > 0):
        return arb("nan")
    ends = sum((end.gamma() * near.hypgeom_u(end, rise + end) for end in (low, high)), arb(0))
    return (ends * abs(a.rgamma())).abs_upper()


def _of_gauss(a: Any, b: Any, c: Any, z: Any) -> Any:
    """A bound of 2F1, from the magnitudes of the terms of its series."""
    low, size = c.real.lower(), abs(z).upper()
    return size.hypgeom_2f1(abs(a).upper(), abs(b).upper(), low) if low > 0 and size < 1 else arb("nan")


def _of_polylog(s: Any, z: Any) -> Any:
    """A bound of a polylogarithm, from the magnitudes of the terms of its series."""
    size = abs(z).upper()
    return abs(acb(size).polylog(acb(s.real.lower()))).upper() if size < 1 else arb("nan")


def _struve(v: Any, x: Any, sign: int) -> Any:
    """Struve's function (sign -1) or the modified one (sign 1), DLMF 11.2.1 and 11.2.2.

    Raises UndecidedError for abs(x) > 10,000.
    """
    if abs(x).abs_lower() > _STRUVE_FAR:
        raise UndecidedError("Struve's functions are not computed so far out")
    series = (sign * x * x / 4).hypgeom([acb(1)], [3 * _HALF, v + 3 * _HALF])
    return (x / 2) ** (v + 1) * (v + 3 * _HALF).rgamma() * series * 2 / arb.pi().sqrt()


def _stdtr(df: Any, t: Any) -> Any:
    """The CDF of Student's distribution.

    It is computed by the incomplete beta function in the tails, DLMF 8.17.10, and by a hypergeometric function around
    0.
    """
    square = t * t / df
    if abs(t.real) > _STUDENT_NEAR:
        tail = (1 / (1 + square)).beta_lower(df / 2, _HALF, regularized=True) / 2
        return tail if t.real < 0 else 1 - tail
    scale = (df / 2 + _HALF).gamma() * (df / 2).rgamma() / (df * arb.pi()).sqrt()
    return _HALF + t * scale * (-square).hypgeom_2f1(_HALF, df / 2 + _HALF, 3 * _HALF)


def _right(*operands: Any) -> bool:
    return all(x.real > 0 for x in operands)


def _of_order(v: Any, x: Any) -> bool:
    """Return whether x**v is analytic in a neighbourhood of the ball x."""
    return bool(x.real > 0) or (v.is_exact() and v.contains_integer())


def _with_zeros(*operands: Any) -> bool:
    """Return whether the square roots of all operands are analytic, or the operand is exactly 0."""
    return all(x.is_zero() or x.real > 0 for x in operands)


def _falling(function: Callable[..., Any]) -> Callable[..., Any]:
    """A bound of an integral of inverse square roots, which is largest at the smallest real operands."""
    return lambda *operands: function(*(acb(x.real.lower()) for x in operands)).abs_upper()


def _in_modulus(phi: Any, m: Any) -> bool:
    return bool((1 - m * phi.sin() ** 2).real > 0)


def _of_first_kind(phi: Any, m: Any) -> Any:
    """A bound of the elliptic integral of the first kind, by Carlson's form DLMF 19.25.5, for angles below pi/2."""
    if not abs(phi.real) < 1.5:
        return arb("nan")
    square = phi.sin() ** 2
    return (abs(phi.sin()) * _falling(acb.elliptic_rf)(1 - square, 1 - m * square, acb(1))).abs_upper()


def _of_second_kind(phi: Any, m: Any) -> Any:
    """A bound of the elliptic integral of the second kind, by Carlson's forms DLMF 19.25.9."""
    if not abs(phi.real) < 1.5:
        return arb("nan")
    square = phi.sin() ** 2
    rest = _falling(acb.elliptic_rd)(1 - square, 1 - m * square, acb(1))
    return (_of_first_kind(phi, m) + abs(m * phi.sin() ** 3) / 3 * rest).abs_upper()


# The functions whose partial derivatives are computed directly, by name.
ANALYTIC: Mapping[str, Analytic] = {
    "jv": Analytic(lambda v, x: x.bessel_j(v), _of_order, _FIRST),
    "yv": Analytic(lambda v, x: x.bessel_y(v), lambda _v, x: _right(x), _FIRST),
    "iv": Analytic(lambda v, x: x.bessel_i(v), _of_order, _FIRST),
    "kv": Analytic(lambda v, x: x.bessel_k(v), lambda _v, x: _right(x), bound=_bound_of_k),
    "ive": Analytic(lambda v, x: (-x).exp() * x.bessel_i(v), lambda _v, x: _right(x), _FIRST),
    "kve": Analytic(
        lambda v, x: x.bessel_k(v, scaled=True),
        lambda _v, x: _right(x),
        bound=lambda v, x: _bound_of_k(v, x) * x.real.upper().exp(),
    ),
    "struve": Analytic(lambda v, x: _struve(v, x, -1), _of_order, _FIRST),
    "modstruve": Analytic(lambda v, x: _struve(v, x, 1), _of_order, _FIRST),
    "gammainc": Analytic(lambda a, x: x.gamma_lower(a, regularized=1), _right, bound=_of_gamma),
    "gammaincc": Analytic(lambda a, x: x.gamma_upper(a, regularized=1), _right, bound=lambda a, x: 1 + _of_gamma(a, x)),
    "betainc": Analytic(
        lambda a, b, x: x.beta_lower(a, b, regularized=True), lambda a, b, x: _right(a, b, x, 1 - x), bound=_of_beta
    ),
    "betaincc": Analytic(
        lambda a, b, x: (1 - x).beta_lower(b, a, regularized=True),
        lambda a, b, x: _right(a, b, x, 1 - x),
        bound=lambda a, b, x: _of_beta(b, a, 1 - x),
    ),
    "stdtr": Analytic(
        _stdtr, lambda df, t: _right(df) and bool((t * t / df).real > (0 if abs(t.real) > _STUDENT_NEAR else -1))
    ),
    "ellipkinc": Analytic(lambda phi, m: acb.elliptic_f(phi, m), _in_modulus, bound=_of_first_kind),
    "ellipeinc": Analytic(lambda phi, m: acb.elliptic_e_inc(phi, m), _in_modulus, bound=_of_second_kind),
    "ellipkm1": Analytic(lambda p: acb.pi() / (2 * acb(1).agm(p.sqrt())), _right),
    "elliprf": Analytic(lambda x, y, z: acb.elliptic_rf(x, y, z), _with_zeros, bound=_falling(acb.elliptic_rf)),
    "elliprc": Analytic(lambda x, y: acb.elliptic_rc(x, y), _with_zeros, bound=_falling(acb.elliptic_rc)),
    "elliprd": Analytic(lambda x, y, z: acb.elliptic_rd(x, y, z), _with_zeros, bound=_falling(acb.elliptic_rd)),
    "elliprg": Analytic(
        lambda x, y, z: acb.elliptic_rg(x, y, z),
        _with_zeros,
        # R_G is the mean of the square root of a sum over the unit sphere.
        bound=lambda *operands: acb.elliptic_rg(*(acb(abs(x).upper()) for x in operands)).abs_upper(),
    ),
    "elliprj": Analytic(lambda x, y, z, p: acb.elliptic_rj(x, y, z, p), _with_zeros, bound=_falling(acb.elliptic_rj)),
    "polylog": Analytic(
        lambda s, z: z.polylog(s), lambda s, z: bool(abs(z) < 1 and abs(s) < _LARGEST_ORDER), bound=_of_polylog
    ),
    "hyp0f1": Analytic(lambda b, z: z.hypgeom_0f1(b), lambda _b, _z: True),
    "hyp1f1": Analytic(lambda a, b, z: z.hypgeom_1f1(a, b), lambda _a, _b, _z: True, frozenset({0, 2}), _of_kummer),
    "hyperu": Analytic(lambda a, b, z: z.hypgeom_u(a, b), lambda _a, _b, z: _right(z), _FIRST_TWO, _of_tricomi),
    "hyp2f1": Analytic(
        lambda a, b, c, z: z.hypgeom_2f1(a, b, c), lambda _a, _b, _c, z: _right(1 - z), _FIRST_TWO, _of_gauss
    ),
}


# Maps functions to the index of an operand, and its values at which the function is constant in all other operands.
_CONSTANT_AT: Mapping[str, tuple[int, tuple[fmpq, ...]]] = {
    **dict.fromkeys(("jv", "iv", "ive", "struve", "modstruve"), (1, (ZERO,))),
    **dict.fromkeys(("gammainc", "gammaincc"), (1, (ZERO,))),
    **dict.fromkeys(("betainc", "betaincc"), (2, (ZERO, ONE))),
}
# Maps functions to tests for derivatives, of given orders at given operands, that are exactly 0. Other methods give
# balls around 0, so that the precision would be raised to its limit in vain.
_VANISHES: Mapping[str, Callable[[Sequence[Number], Sequence[int]], bool]] = {
    # K is even in its order.
    **dict.fromkeys(("kv", "kve"), lambda o, n: is_at(o[0], ZERO) and o[1] > 0 and n[0] % 2 == 1),
    # Around z = 0 a polylogarithm is z + z**2/2**s + …
    "polylog": lambda o, n: is_at(o[1], ZERO) and n[0] > 0 and n[1] < 2,
    # The CDF of Student's distribution less 1/2 is odd.
    "stdtr": lambda o, n: is_at(o[1], ZERO) and o[0] > 0 and n[1] % 2 == 0,
}
# A cache: higher-order derivatives ask for the same partial derivatives repeatedly. It is emptied when it has
# _MOST_KEPT entries.
_kept: dict[Any, Number] = {}
_MOST_KEPT = 1000
# For parameters larger than _LARGEST_PARAMETER, the time that FLINT takes for these functions is unbounded.
_SLOW_FOR_LARGE = frozenset({"gammainc", "gammaincc", "betainc", "betaincc"})
_LARGEST_PARAMETER = 50_000


def _partial(*operands: Number, function: str, orders: Sequence[int]) -> Number:
    if any(is_nan(x) or is_infinite(x) for x in operands):
        return UNDEFINED
    place, ends = _CONSTANT_AT.get(function, (0, ()))
    if any(is_at(operands[place], end) for end in ends) and not orders[place]:
        return ZERO if all(x > 0 for i, x in enumerate(operands) if i != place) else UNDEFINED
    if function in _VANISHES and any(orders) and _VANISHES[function](operands, orders):
        return ZERO
    if function in _SLOW_FOR_LARGE and any(abs(x) > _LARGEST_PARAMETER for x in operands):
        raise UndecidedError("derivatives by large parameters are not computed")
    key = function, tuple(orders), precision(), tuple(map(_identity, operands))
    if key not in _kept:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[key] = derivative(ANALYTIC[function], operands, orders)
    return _kept[key]


def _identity(x: Number) -> Any:
    return x if type(x) is fmpq else (*x.mid().man_exp(), *x.rad().man_exp())


partial_of_one = partial_of_two = partial_of_three = partial_of_four = _partial


def _of(name: str, edge: Callable[..., Number | None]) -> Callable[..., Number]:
    """A function of real numbers, with its values at infinities and at the ends of its domain given by `edge`.

    `edge` returns None elsewhere.
    """

    def function(*operands: Number) -> Number:
        if any(map(is_nan, operands)):
            return UNDEFINED
        found = edge(*operands)
        return derivative(ANALYTIC[name], operands, (0,) * len(operands)) if found is None else found

    return function


# --- Bessel functions and their like


def _edge_of_k(v: Number, x: Number) -> Number | None:
    if less(x, ZERO):
        return UNDEFINED
    return INFINITY if is_at(x, ZERO) or is_infinite(v) else ZERO if is_infinite(x) else None


kv, kve = _of("kv", _edge_of_k), _of("kve", _edge_of_k)


def _edge_of_struve(v: Number, x: Number) -> Number | None:
    if is_infinite(v) or is_infinite(x) or less(x, ZERO):
        return UNDEFINED
    return ZERO if is_at(x, ZERO) and v > -1 else None


struve, modstruve = _of("struve", _edge_of_struve), _of("modstruve", _edge_of_struve)


def _spherical(
    value: Callable[[Any, int], Any], at_zero: Callable[[int], Number], far: Number
) -> Callable[..., Number]:
    def function(x: Number, *, n: int) -> Number:
        if is_nan(x) or is_infinite(x):
            return UNDEFINED if is_nan(x) or x < 0 else far
        return at_zero(n) if is_at(x, ZERO) else with_bounds(value(arb(x), n))

    return function


def spherical_first(x: Any, n: int, sign: int) -> Any:
    """The spherical Bessel function of the first kind (sign -1) or the modified one (sign 1), by its series.

    DLMF 10.53.1 and 10.53.3.
    """
    double = fmpz.fac_ui(2 * n + 1) // (fmpz(2) ** n * fmpz.fac_ui(n))
    return x**n / double * (sign * x * x / 4).hypgeom_0f1(arb(n) + arb(3) / 2)


spherical_jn = _spherical(lambda x, n: spherical_first(x, n, -1), lambda n: ZERO if n else ONE, ZERO)
spherical_in = _spherical(lambda x, n: spherical_first(x, n, 1), lambda n: ZERO if n else ONE, INFINITY)


def _spherical_y(x: Any, n: int) -> Any:
    size = abs(x)
    found = (arb.pi() / (2 * size)).sqrt() * size.bessel_y(arb(n) + arb(1) / 2)
    return found if x > 0 else found * (-1) ** (n + 1)


spherical_yn = _spherical(_spherical_y, lambda _n: NEGATIVE_INFINITY, ZERO)


def spherical_modified_second(x: Any, n: int) -> Any:
    """The modified spherical Bessel function of the second kind, in closed form by DLMF 10.49.12."""
    terms = (fmpz.fac_ui(n + k) // (fmpz.fac_ui(k) * fmpz.fac_ui(n - k)) / (2 * x) ** k for k in range(n + 1))
    return arb.pi() / 2 * (-x).exp() / x * sum(terms, arb(0))


spherical_kn = _spherical(spherical_modified_second, lambda _n: INFINITY, ZERO)

airyai = analytic(lambda x: x.airy()[0], below=ZERO, above=ZERO)
airyaiprime = analytic(lambda x: x.airy()[1], above=ZERO)
airybi = analytic(lambda x: x.airy()[2], below=ZERO, above=INFINITY)
airybiprime = analytic(lambda x: x.airy()[3], above=INFINITY)

# --- integrals

erfi = analytic(arb.erfi, zero=ZERO, below=NEGATIVE_INFINITY, above=INFINITY)
fresnels = analytic(lambda x: x.fresnel_s(), zero=ZERO, below=-HALF, above=HALF)
fresnelc = analytic(lambda x: x.fresnel_c(), zero=ZERO, below=-HALF, above=HALF)
si = analytic(arb.si, zero=ZERO, below=lambda: -arb.pi() / 2, above=lambda: arb.pi() / 2)
shi = analytic(arb.shi, zero=ZERO, below=NEGATIVE_INFINITY, above=INFINITY)


def ci(x: Number) -> Number:
    return NEGATIVE_INFINITY if is_at(x, ZERO) else _ci(x)


def chi(x: Number) -> Number:
    return NEGATIVE_INFINITY if is_at(x, ZERO) else _chi(x)


_ci = analytic(lambda x: abs(x).ci(), below=lambda: UNDEFINED, above=ZERO)
_chi = analytic(lambda x: abs(x).chi(), below=INFINITY, above=INFINITY)


def sinhc(x: Number, *, n: int) -> Number:
    """The nth derivative of sinh(x)/x = 0F1(; 3/2; x**2/4)."""
    if is_nan(x) or is_infinite(x):
        return UNDEFINED if is_nan(x) else INFINITY if x > 0 or n % 2 == 0 else NEGATIVE_INFINITY
    if is_at(x, ZERO):
        return ZERO if n % 2 else fmpq(1, n + 1)
    return with_bounds(derivative(_SINHC, (x,), (n,)))


_SINHC = Analytic(lambda x: (x * x / 4).hypgeom_0f1(3 * _HALF), lambda _x: True)


def owens_t(h: Number, a: Number) -> Number:
    """Owen's T: the integral of exp(-h**2*(1 + t**2)/2)/(1 + t**2) from 0 to a, divided by 2*pi."""
    if is_nan(h) or is_nan(a):
        return UNDEFINED
    if is_at(a, ZERO) or is_infinite(h):
        return ZERO
    if is_infinite(a):
        tail = (abs(arb(h)) / arb(2).sqrt()).erfc() / 4
        return with_bounds(tail if a > 0 else -tail)
    square = acb(arb(h)) ** 2 / 2

    def integrand(t: Any, _analytic: bool) -> Any:
        return (-square * (1 + t * t)).exp() / (1 + t * t)

    return with_bounds(acb.integral(integrand, acb(0), acb(arb(a))).real / (2 * arb.pi()))


def polylog(s: Number, z: Number) -> Number:
    if is_nan(s) or is_nan(z) or is_infinite(s) or less(ONE, z):
        return UNDEFINED
    if is_at(z, ZERO):
        return ZERO
    if is_infinite(z):
        return NEGATIVE_INFINITY if s > 0 else UNDEFINED
    if is_at(z, ONE) and not s > 1:
        return INFINITY
    if not (abs(s) < _LARGEST_ORDER and abs(z) < _LARGEST_OPERAND):
        raise UndecidedError("polylogarithms are computed for smaller operands")
    return derivative(ANALYTIC["polylog"], (s, z), (0, 0))


def stdtr(df: Number, t: Number) -> Number:
    if is_nan(df) or is_nan(t) or is_infinite(df) or not df > 0:
        return UNDEFINED
    if is_infinite(t):
        return ONE if t > 0 else ZERO
    return HALF if is_at(t, ZERO) else derivative(ANALYTIC["stdtr"], (df, t), (0, 0))


# --- elliptic integrals


def _edge_of_incomplete(phi: Number, m: Number) -> Number | None:
    if is_infinite(phi) or is_infinite(m):
        return UNDEFINED
    return ZERO if is_at(phi, ZERO) else None


ellipkinc, ellipeinc = _of("ellipkinc", _edge_of_incomplete), _of("ellipeinc", _edge_of_incomplete)


def ellipkm1(p: Number) -> Number:
    if is_nan(p) or less(p, ZERO):
        return UNDEFINED
    if is_at(p, ZERO):
        return INFINITY
    return ZERO if is_infinite(p) else derivative(ANALYTIC["ellipkm1"], (p,), (0,))


def _edge_of_carlson(*operands: Number) -> Number | None:
    return UNDEFINED if any(less(x, ZERO) or is_infinite(x) for x in operands) else None


elliprf, elliprc, elliprd, elliprg, elliprj = (
    _of(name, _edge_of_carlson) for name in ("elliprf", "elliprc", "elliprd", "elliprg", "elliprj")
)

# --- hypergeometric functions


def _finite(*operands: Number) -> Number | None:
    return UNDEFINED if any(map(is_infinite, operands)) else None


hyp0f1, hyp1f1, hyperu, hyp2f1 = (_of(name, _finite) for name in ("hyp0f1", "hyp1f1", "hyperu", "hyp2f1"))
