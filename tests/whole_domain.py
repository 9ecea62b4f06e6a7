"""Reference values and first derivatives of every elementwise function over its whole domain, from mpmath.

`python -m tests.whole_domain` recomputes them and writes them to tests/data/whole-domain.json, each rounded once. The
functions are those of tests/references.py, and formulas that users write. A derivative is a finite difference; the
number of digits is doubled until the result does not change.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
from mpmath import mpf

from tests.references import ELEMENTWISE

DATA = Path(__file__).parent / "data/whole-domain.json"
Point = tuple[float, ...]
NAMES = ("x", "y", "z", "w")

# Magnitudes over the whole range of doubles, with the thresholds of functions.
_TINY = (5e-324, 1e-310, 2.3e-308, 1e-300, 1e-200, 3e-162, 1e-154, 1e-100, 1e-30, 1e-17, 1.2e-16, 1e-12, 1e-9)
_SMALL = (1e-8, 2e-8, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.4769362762044699, 0.5, 0.6, 0.75)
_NEAR_ONE = (0.9, 0.99, 1 - 1e-6, 1 - 1e-12, 1 - 2.0**-53)
_MEDIUM = (1 + 2.0**-52, 1 + 1e-12, 1 + 1e-6, 1.01, 1.2, 1.3, 1.4616321449683622, 1.5, math.pi / 2, 1.7, 2.0, 2.1)
_LARGE = (2.404825557695773, 2.5, 3.0, math.pi, 3.5, 4.0, 4.71238898038469, 5.0, 6.5, 7.0, 8.3, 10.0, 12.5, 15.0)
_LARGER = (18.4, 19.5, 22.0, 26.0, 30.0, 36.8, 38.6, 40.0, 50.0, 70.0, 88.0, 100.0, 141.5, 170.5, 200.0, 320.0)
_HUGE = (355.0, 372.0, 600.0, 700.0, 709.7, 710.3, 711.0, 740.0, 745.1, 746.0, 1022.5, 1074.0, 1e4, 1e5 / 3, 1e6)
_VAST = (1048577.0, 1e7 / 3, 94906267.0, 1e10 / 3, 1e15, 1e16, 1e17, 1e22, 1e50, 1e100, 1e153, 1.4e154, 1e160)
_LAST = (1e200, 1e300, 1.7e308)

_BELOW_ONE = (*_TINY, *_SMALL, *_NEAR_ONE)
_ABOVE_ONE = (*_MEDIUM, *_LARGE, *_LARGER, *_HUGE, *_VAST, *_LAST)


def _both(magnitudes: Iterable[float]) -> tuple[float, ...]:
    return tuple(itertools.chain.from_iterable((x, -x) for x in magnitudes))


def _of_one(*points: float) -> tuple[Point, ...]:
    return tuple((x,) for x in points)


_MAGNITUDES = (*_BELOW_ONE, 1.0, *_ABOVE_ONE)
POSITIVE = _of_one(*_MAGNITUDES)
NONZERO = _of_one(*_both(_MAGNITUDES))
ANYWHERE = ((0.0,), *NONZERO)
INSIDE = _of_one(0.0, *_both(_BELOW_ONE))
FRACTION = _of_one(*_BELOW_ONE, *(1 - x for x in (1e-9, 1e-8, 1e-5, 1e-3, 0.05)))
ABOVE_ONE = _of_one(*_ABOVE_ONE)
ABOVE_MINUS_ONE = _of_one(0.0, *_MAGNITUDES, *(-x for x in _BELOW_ONE))
_NEGATIVE = (-1.5, -2.457024738220801, -2.747682646727413, -3.3, -10.1, -33.7, -150.5, -190.5)
GAMMA = _of_one(*_MAGNITUDES, *(-x for x in _BELOW_ONE), *_NEGATIVE)
# Neither integers nor half-integers.
STEPS = tuple((x,) for (x,) in NONZERO if x % 0.5)

_FEW = (1e-310, 1e-155, 1e-9, 1e-3, 0.5, 0.999999, 1.0, math.pi, 8.0, 40.0, 700.0, 1e9, 1e155)
_FEWER = (1e-300, 1e-17, 0.3, 1.0, 2.0, 10.25, 36.0, 720.0, 1e8, 1e300)
PAIRS = tuple(itertools.product(_both(_FEW), _both(_FEWER)))
SECOND_POSITIVE = tuple(itertools.product(_both(_FEW), _FEWER))
POSITIVE_PAIRS = tuple(itertools.product((*_FEW[2:-1], 1.5, 1e3, 1e5), (*_FEWER[:-1], 1e-3, 1e4, 3e5)))
_EXPONENTS = (0.5, -0.5, 1.5, 2.0, -3.0, 1e-20, 0.1, 40.0, -700.0, 1e9)
# Not subnormal powers, whose derivatives by the exponent have fewer digits.
POWERS = tuple(
    (x, q)
    for x, q in itertools.product((*_FEW, 1e-300, 1e300, 1.000001), _EXPONENTS)
    if not -330.0 < q * math.log10(x) < -300.0
)
# Pairs close to each other, or close to each other's negative; normal numbers.
CLOSE = tuple((x, sign * x * (1 + d)) for x in _FEW[1:] for d in (0.0, 1e-9, 0.25) for sign in (1, -1))


class Case(NamedTuple):
    """A program of x and y, the same function in mpmath, and the points of the comparison."""

    program: str
    function: Callable[..., Any]
    points: Sequence[Point]
    # Whether the tolerance of special functions applies, instead of that of elementary ones.
    special: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return NAMES[: len(self.points[0])]


# The points for functions that are not defined, smooth or interesting everywhere.
_POINTS: Mapping[str, Sequence[Point]] = {
    **dict.fromkeys(
        ("reciprocal", "abs", "sign", "relu", "cbrt", "csc", "cot", "csch", "coth", "selu", "celu", "relu6"), NONZERO
    ),
    **dict.fromkeys(("floor", "ceil", "round", "rint", "trunc", "frac"), STEPS),
    **dict.fromkeys(("sqrt", "rsqrt", "log", "log2", "log10", "polygamma"), POSITIVE),
    **dict.fromkeys(("gamma", "lgamma", "digamma"), GAMMA),
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv"), INSIDE),
    "logit": FRACTION,
    # Its reference solves an equation at each point.
    "ndtri": _of_one(1e-300, 1e-100, 1e-30, 1e-12, 1e-3, 0.05, 0.3, 0.4, 0.6, 0.9, 0.99, 1 - 1e-6, 1 - 1e-12),
    **dict.fromkeys(("beta", "betaln"), POSITIVE_PAIRS),
    **dict.fromkeys(("logaddexp", "hypot", "atan2"), (*PAIRS, *CLOSE)),
    "logaddexp2": PAIRS,
    **dict.fromkeys(("xlogy", "xlog1py"), SECOND_POSITIVE),
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), tuple((x, y) for x, y in PAIRS if x != y)),
    **dict.fromkeys(("remainder", "fmod", "floor_divide"), ((7.3, 2.1), (-7.3, 2.1), (1e-300, 3e-301), (1e10, -0.7))),
    **dict.fromkeys(("lerp", "addcmul", "addcdiv"), ((0.3, 1.7), (-2.5, 1e9), (1e155, 1e-9))),
    **dict.fromkeys(("comb", "perm"), tuple(itertools.product((3.0, 10.5, 33.3, 120.0), (1e-9, 0.5, 1.0, 2.7)))),
    "factorial": _of_one(*_MAGNITUDES),
    "multigammaln": _of_one(*(1 + x for x in _MAGNITUDES if 1e-9 < x < 1e15)),
    "erfcinv": _of_one(1e-300, 1e-100, 1e-12, 1e-3, 0.05, 0.3, 0.8, 1.1, 1.5, 1.9, 1.999, 2 - 1e-6),
    "entr": POSITIVE,
    # For larger arguments the reference is infinite.
    "erfcx": tuple((x,) for (x,) in ANYWHERE if abs(x) < 1e50),
    "rel_entr": POSITIVE_PAIRS,
    **dict.fromkeys(("i0e", "i1e"), tuple((x,) for (x,) in NONZERO if abs(x) < 1e6)),
    **dict.fromkeys(("y0", "y1", "jv"), _of_one(*(x for x in _MAGNITUDES if 1e-100 < x < 26))),
    **dict.fromkeys(("yv", "iv", "ive"), _of_one(*(x for x in _MAGNITUDES if 1e-30 < x < 26))),
    "rgamma": _of_one(*(x for x in _MAGNITUDES if x < 1e5)),
    "gammasgn": tuple((x,) for (x,) in STEPS if x > 0 or x != math.floor(x)),
    **dict.fromkeys(("k0", "k1"), _of_one(*(x for x in _MAGNITUDES if 1e-100 < x < 800))),
    "k0e": _of_one(*(x for x in _MAGNITUDES if 1e-100 < x < 1e6)),
    # Its reference takes a minute for one point beyond.
    "k1e": _of_one(*(x for x in _MAGNITUDES if 1e-10 < x < 20)),
    **dict.fromkeys(("exp1", "expn"), _of_one(*(x for x in _MAGNITUDES if 1e-20 < x < 705))),
    "expi": tuple((x,) for (x,) in NONZERO if 1e-100 < abs(x) < 800),
    "dawsn": tuple((x,) for (x,) in ANYWHERE if abs(x) < 100),
    **dict.fromkeys(("ellipk", "ellipe"), _of_one(*_BELOW_ONE, *(-x for x in _MAGNITUDES if 1e-30 < x < 1e6))),
    **dict.fromkeys(("gammainc", "gammaincc"), _of_one(*(x for x in _MAGNITUDES if 1e-30 < x < 600))),
    "betainc": FRACTION,
    "zeta": _of_one(
        *(x for x in (*_SMALL, *_NEAR_ONE[:3], *_ABOVE_ONE) if x < 60), *(-x for x in _MAGNITUDES if 0.01 < x < 30)
    ),
    "lambertw": _of_one(*_MAGNITUDES, *(-x for x in _BELOW_ONE if x < 0.36), -0.36, -0.367, -0.3678, -0.36787),
    **dict.fromkeys(
        ("kv", "kve"), tuple(itertools.product((0.3, 1.0, 2.5, 20.25), (1e-10, 1e-3, 0.5, 2.0, 10.0, 50.0, 600.0)))
    ),
    **dict.fromkeys(
        ("struve", "modstruve"), tuple(itertools.product((0.3, 1.0, 4.5), (1e-10, 1e-3, 0.5, 2.0, 10.0, 40.0)))
    ),
    **dict.fromkeys(
        ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"),
        _of_one(*(x for x in _MAGNITUDES if 1e-80 < x < 50)),
    ),
    **dict.fromkeys(
        ("airyai", "airyaiprime", "airybi", "airybiprime"), tuple((x,) for (x,) in ANYWHERE if abs(x) < 60)
    ),
    "erfi": tuple((x,) for (x,) in ANYWHERE if abs(x) < 50),
    **dict.fromkeys(("fresnels", "fresnelc", "si"), tuple((x,) for (x,) in ANYWHERE if abs(x) < 60)),
    "shi": tuple((x,) for (x,) in ANYWHERE if abs(x) < 60),
    "ci": _of_one(*(x for x in _MAGNITUDES if x < 60)),
    "chi": _of_one(*(x for x in _MAGNITUDES if x < 60)),
    "owens_t": tuple(itertools.product((0.1, 1.0, -4.0), (1e-6, 0.3, 2.5))),
    "polylog": tuple(itertools.product((0.5, 3.25), (-0.5, 1e-10, 0.5, 0.9))),
    **dict.fromkeys(
        ("ellipkinc", "ellipeinc"), tuple(itertools.product((1e-8, 0.3, 1.2, -1.5), (-100.0, -0.5, 1e-9, 0.5, 0.95)))
    ),
    "ellipkm1": _of_one(*(x for x in _MAGNITUDES if 1e-100 < x < 1e6)),
    "elliptic_e": _of_one(*_BELOW_ONE, *(-x for x in _MAGNITUDES if 1e-30 < x < 1e6)),
    "elliprc": tuple(itertools.product((1e-20, 0.7, 3.0, 1e10), (1e-20, 0.7, 2.0, 1e10))),
    **dict.fromkeys(("elliprf", "elliprd", "elliprg"), tuple(itertools.product((1e-10, 0.7, 1e5), repeat=3))),
    "elliprj": tuple(itertools.product((1e-5, 0.7), (0.7, 1e3), (0.4, 1e3), (1e-3, 3.0))),
    "hyp0f1": tuple(itertools.product((0.5, 3.25), (-100.0, -2.0, 1e-10, 5.0, 1e4))),
    "hyp1f1": tuple(itertools.product((-2.5, 0.5, 30.0), (0.7, 20.5), (-100.0, -2.0, 1e-10, 5.0, 300.0))),
    "hyperu": tuple(itertools.product((-2.5, 0.5, 30.0), (0.7, 20.5), (1e-3, 2.0, 50.0))),
    "hyp2f1": tuple(itertools.product((-2.5, 0.5), (0.7, 20.5), (1.25, 30.0), (-100.0, -2.0, 1e-10, 0.5, 0.95))),
    **dict.fromkeys(("gammaincinv", "gammainccinv"), tuple(itertools.product((0.5, 3.25, 100.0), (1e-10, 0.3, 0.9)))),
    **dict.fromkeys(
        ("betaincc", "betaincinv", "betainccinv"), tuple(itertools.product((0.5, 20.5), (0.7, 5.0), (0.1, 0.3, 0.9)))
    ),
    **dict.fromkeys(("acot", "acsch"), NONZERO),
    **dict.fromkeys(("asec", "acsc", "acoth"), ABOVE_ONE),
    "asech": FRACTION,
    **dict.fromkeys(
        (
            "eval_hermite",
            "eval_hermitenorm",
            "eval_chebyt",
            "eval_chebyu",
            "eval_legendre",
            "eval_laguerre",
        ),
        tuple((x,) for (x,) in ANYWHERE if abs(x) < 1e50),
    ),
    **dict.fromkeys(
        ("eval_genlaguerre", "eval_gegenbauer"), tuple(itertools.product((0.5, 3.25), (1e-10, -0.7, 0.3, 5.5, 1e10)))
    ),
    "eval_jacobi": tuple(itertools.product((0.5, 3.25), (0.7, 1.5), (1e-10, -0.7, 0.3, 5.5, 1e10))),
    **dict.fromkeys(("lpmv", "assoc_legendre"), INSIDE),
    "sph_legendre_p": _of_one(0.0, 1e-9, 0.3, 1.2, 2.0, 3.0, 50.0),
    "Znm": tuple(itertools.product((1e-9, 0.3, 2.0), (0.4, -1.3))),
    **dict.fromkeys(("Max", "Min"), tuple((x, y) for x, y in PAIRS if x != y)),
    "loggamma": POSITIVE,
    **dict.fromkeys(("lowergamma", "uppergamma"), tuple(itertools.product((0.5, 3.25), (1e-5, 0.7, 5.0, 30.0)))),
    "stdtr": tuple(itertools.product((0.5, 3.0, 100.0), (-100.0, -1.5, 1e-8, 0.3, 4.0))),
    "stdtrit": tuple(itertools.product((0.5, 3.0, 100.0), (1e-10, 0.3, 0.9))),
    "acosh": ABOVE_ONE,
    "log1p": ABOVE_MINUS_ONE,
    "pow": POWERS,
    "clamp_min": tuple((x,) for (x,) in ANYWHERE if x != -1.0),
    "clamp_max": tuple((x,) for (x,) in ANYWHERE if x != 2.0),
    "clip": tuple((x,) for (x,) in ANYWHERE if x not in (-1.0, 2.0)),
    "threshold": tuple((x,) for (x,) in ANYWHERE if x != 2.0),
    "hardtanh": tuple((x,) for (x,) in ANYWHERE if abs(x) != 1.0),
    **dict.fromkeys(("hardsigmoid", "hardswish"), tuple((x,) for (x,) in ANYWHERE if abs(x) != 3.0)),
    **dict.fromkeys(("softshrink", "hardshrink"), tuple((x,) for (x,) in ANYWHERE if abs(x) != 0.5)),
}
_PROGRAMS = {
    "clamp_min": "clamp_min(x, -1)",
    "clamp_max": "clamp_max(x, 2)",
    "clip": "clip(x, -1, 2)",
    "threshold": "threshold(x, 2, -1)",
    **{name: f"{name}(x, y, 0.25)" for name in ("lerp", "addcmul", "addcdiv")},
    "where": "where(True, x, y)",
    "polygamma": "polygamma(3, x)",
    "multigammaln": "multigammaln(x, 3)",
    **{name: f"{name}(2.5, x)" for name in ("jv", "yv", "iv", "ive")},
    "expn": "expn(3, x)",
    "gammainc": "gammainc(2.5, x)",
    "gammaincc": "gammaincc(2.5, x)",
    "betainc": "betainc(2.5, 1.5, x)",
    **{name: f"{name}(2, x)" for name in ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn")},
    **{
        name: f"{name}(3, x)"
        for name in ("eval_hermite", "eval_hermitenorm", "eval_chebyt", "eval_chebyu", "eval_legendre")
    },
    "eval_laguerre": "eval_laguerre(2, x)",
    "eval_genlaguerre": "eval_genlaguerre(2, x, y)",
    "eval_gegenbauer": "eval_gegenbauer(3, x, y)",
    "eval_jacobi": "eval_jacobi(3, x, y, z)",
    "lpmv": "lpmv(1, 2, x)",
    "assoc_legendre": "assoc_legendre(2, 1, x)",
    "sph_legendre_p": "sph_legendre_p(2, 1, x)",
    "Znm": "Znm(2, 1, x, y)",
}
# Functions without a derivative, written only inside other entries, or of complex numbers alone.
_LEFT_OUT = {
    "cast",
    "zeros_like",
    "ones_like",
    "identity",
    "nextafter",
    "airy",
    "fresnel",
    "sici",
    "shichi",
    "elliptic_p",
}

# Special functions as accurate as elementary ones; and an elementary one that is not, near its zeros and where x - y
# rounds.
_ELEMENTARY = {
    "sigmoid", "logsigmoid", "softplus", "relu", "leaky_relu", "elu", "logit", "xlogy", "xlog1py", "softsign", "relu6",
    "hardtanh", "hardsigmoid", "celu", "selu", "softshrink", "hardshrink",
}  # fmt: skip
_SPECIAL = {"logaddexp", "logaddexp2"}

FORMULAS = (
    Case("log(cosh(x))", lambda x: mpmath.log(mpmath.cosh(x)), ANYWHERE),
    Case("log(1 + exp(x))", lambda x: mpmath.log1p(mpmath.exp(x)), ANYWHERE),
    Case("log(1 - tanh(x)**2)", lambda x: 2 * mpmath.log(mpmath.sech(x)), ANYWHERE),
    Case("1 - tanh(x)**2", lambda x: mpmath.sech(x) ** 2, ANYWHERE),
    Case("1/cosh(x)", mpmath.sech, ANYWHERE),
    Case("1/cosh(x)**2", lambda x: mpmath.sech(x) ** 2, ANYWHERE),
    Case("sigmoid(x)*(1 - sigmoid(x))", lambda x: mpmath.sech(x / 2) ** 2 / 4, ANYWHERE),
    Case("1 - sigmoid(x)", lambda x: 1 / (1 + mpmath.exp(x)), ANYWHERE),
    Case("1/(1 + exp(-x))", lambda x: 1 / (1 + mpmath.exp(-x)), ANYWHERE),
    Case("1/(exp(x) + 1)", lambda x: 1 / (1 + mpmath.exp(x)), ANYWHERE),
    Case("exp(x) - 1", mpmath.expm1, ANYWHERE),
    Case("1 - exp(-x)", lambda x: -mpmath.expm1(-x), ANYWHERE),
    Case("1 - cos(x)", lambda x: 2 * mpmath.sin(x / 2) ** 2, ANYWHERE),
    Case("1 - erf(x)", mpmath.erfc, ANYWHERE, special=True),
    Case("x**3", lambda x: x**3, ANYWHERE),
    Case("x**-2", lambda x: x**-2, NONZERO),
    Case("x**0.3", lambda x: mpmath.power(x, mpf(0.3)), POSITIVE),
    Case("x**1.7", lambda x: mpmath.power(x, mpf(1.7)), POSITIVE),
    Case("2**x", lambda x: mpmath.power(2, x), ANYWHERE),
)


def cases() -> Iterator[Case]:
    """The functions of the language, each with its reference, and formulas."""
    from gradcli.primitives import table

    for subject in ("elementwise", "special"):
        special = {e.name for e in table.subjects()[subject]} - _ELEMENTARY if subject == "special" else _SPECIAL
        for entry in table.subjects()[subject]:
            if entry.derivative == "none" or entry.name in _LEFT_OUT:
                continue
            reference = ELEMENTWISE[entry.name]
            names = NAMES[: len(reference.domains)]
            points = _POINTS.get(entry.name, PAIRS[::7] if len(names) == 2 else ANYWHERE)
            program = _PROGRAMS.get(entry.name, f"{entry.name}({', '.join(names)})")
            yield Case(program, reference.function, points, entry.name in special)
    yield from FORMULAS


_FIRST_DIGITS, _MOST_DIGITS = 40, 2600
# Numbers beyond these are 0 and infinite; differences that are 0 to _DIGITS_OF_ZERO digits are 0.
_SMALLEST, _LARGEST, _DIGITS_OF_ZERO = mpf("1e-400"), mpf("1e400"), 1000


def converged(compute: Callable[[int], Any]) -> Any:
    """`compute(digits)` with enough digits that doubling them changes nothing; nan where that is never reached."""
    before, digits = mpf("nan"), _FIRST_DIGITS
    while digits <= _MOST_DIGITS:
        with mpmath.workdps(digits + 10):
            try:
                now = compute(digits)
            except (ArithmeticError, ValueError):
                now = mpf("nan")
            now = mpf(now) if not isinstance(now, mpmath.mpc) else mpf("nan")
            if abs(now) < _SMALLEST and abs(before) < _SMALLEST and digits > _DIGITS_OF_ZERO:
                return mpf(0)
            if abs(now) > _LARGEST and abs(before) > _LARGEST:
                return mpmath.sign(now) * mpmath.inf
            if abs(now) >= _SMALLEST and abs(now - before) <= abs(now) * mpf(10) ** -24:
                return now
        before, digits = now, 2 * digits
    return mpf("nan")


def value(function: Callable[..., Any], point: Sequence[Any]) -> Any:
    return converged(lambda _digits: function(*map(mpf, point)))


def slope(function: Callable[..., Any], point: Sequence[Any], i: int) -> Any:
    """The derivative by operand `i`."""

    def difference(digits: int) -> Any:
        below, above = list(map(mpf, point)), list(map(mpf, point))
        step = (abs(above[i]) or 1) * mpf(10) ** -(digits // 3)
        below[i] -= step
        above[i] += step
        return (function(*above) - function(*below)) / (2 * step)

    return converged(difference)


def condition(quantity: Callable[[Sequence[Any]], Any], point: Point) -> float:
    """The condition number: the relative change of a quantity per relative change of the operands."""
    with mpmath.workdps(60):
        there, total = quantity(point), mpf(0)
        for i in range(len(point)):
            moved = [mpf(x) * (1 + mpf(10) ** -14 * (i == j)) for j, x in enumerate(point)]
            total += abs(quantity(moved) - there)
        found = float(total / abs(there) * mpf(10) ** 14) if there else 0.0
    # For larger values the step of 1e-14 does not resolve the condition.
    return float(f"{found:.1e}") if found < 1e11 else math.inf


def _rounded(number: Any) -> float:
    """The number rounded once, also to subnormal floats: mpmath would round to 53 bits first."""
    if not mpmath.isfinite(number) or number == 0:
        return float(number)
    mantissa, exponent = number.man_exp
    try:
        return math.copysign(float(Fraction(int(mantissa)) * Fraction(2) ** int(exponent)), number)
    except OverflowError:
        return math.copysign(math.inf, number)


def rows(case: Case) -> Iterator[Sequence[float]]:
    """For each point the value and the derivatives, and for a special function the condition of each."""
    for point in case.points:
        quantities: list[Callable[[Sequence[Any]], Any]] = [lambda at: value(case.function, at)]
        quantities += [lambda at, i=i: slope(case.function, at, i) for i in range(len(point))]
        exact = [_rounded(q(point)) for q in quantities]
        yield [*exact, *(condition(q, point) for q in quantities)] if case.special else exact


def main() -> None:
    lines = []
    for case in cases():
        found = [[None if math.isnan(number) else number for number in row] for row in rows(case)]
        lines.append(f"{json.dumps(case.program)}: {json.dumps(found, separators=(',', ':'))}")
        print(case.program, flush=True)
    DATA.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
