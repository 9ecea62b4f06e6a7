"""Reference derivatives of order 0 to 20 of functions that lose digits, and of some that do not, from mpmath.

`python -m tests.lost_digits` recomputes them and writes them to tests/data/lost-digits.json: Cauchy integrals along a
circle around the point, with 150 digits, checked with a smaller circle.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.high_orders import namespace

ORDER = 20
DATA = Path(__file__).parent / "data/lost-digits.json"
POINTS = (0.01, 0.1, 0.5, 0.85, 2.3, -0.6)
PROGRAMS = (
    *("sinh(x)/x", "sin(x)/x", "(exp(x)-1)/x", "(1-cos(x))/x**2", "tan(x/2)/x", "log(1+x)/x", "lgamma(exp(x))"),
    *("j0(x)/x", "j1(x)/x", "x/expm1(x)", "x/sinh(x)", "(x-sin(x))/(1-cos(x))", "exp(x)*exp(-x)"),
    *("sin(x)**2+cos(x)**2", "sin(2*x)-2*sin(x)*cos(x)", "exp(-x**2)*exp(x**2)", "(sqrt(1+x)-1)/x", "erf(x)/x"),
    *("atan(x)/x", "sinh(sin(x))/sin(x)", "(cosh(x)-1)/x**2", "(x**3-8)/(x-2)", "sin(x**2)/x", "cosh(x)-sinh(x)"),
    *("exp(x)", "sin(x)*exp(x)", "log(3+x)", "log((1+x)**2)", "1/(1+x**2)", "atan(x)", "tanh(x)", "exp(-x**2)"),
    *("sqrt(1+x**2)", "1/x", "sin(1/x)", "i0(x)", "sigmoid(x)", "gamma(1+x)", "cos(x)/(1+x)", "sin(exp(x))"),
)
_SAMPLES = 384


def _coefficients(function: Any, x: float, radius: Any) -> list[Any]:
    """Taylor coefficients of a real function, by sums along a circle, half of whose values are conjugates of the
    others."""
    import mpmath as mp

    circle = [mp.expjpi(mp.mpf(2 * j) / _SAMPLES) for j in range(_SAMPLES)]
    half = _SAMPLES // 2
    values = [function(mp.mpf(x) + radius * circle[j]) for j in range(half + 1)]
    found = []
    for k in range(ORDER + 1):
        inner = (2 * mp.re(values[j] * mp.conj(circle[j * k % _SAMPLES])) for j in range(1, half))
        total = mp.re(values[0]) + (-1) ** k * mp.re(values[half]) + mp.fsum(inner)
        found.append(total / _SAMPLES / radius**k)
    return found


def derivatives(program: str, x: float) -> list[str]:
    """The derivatives with 12 digits; numbers within the rounding error of 150 digits are 0."""
    import mpmath as mp

    mp.mp.dps = 150
    function = eval(f"lambda x: {program}", namespace(mp))
    radius = mp.mpf("0.4") * min(abs(mp.mpf(x)), 1)
    found, others = (_coefficients(function, x, r) for r in (radius, radius * mp.mpf("0.7")))
    texts = []
    for k, (coefficient, other) in enumerate(zip(found, others)):
        if abs(coefficient) * radius**k < mp.mpf(10) ** -100:
            coefficient = other = mp.mpf(0)
        assert abs(coefficient - other) <= mp.mpf(10) ** -20 * abs(coefficient), (program, x, k)
        texts.append(mp.nstr(coefficient * mp.factorial(k), 12))
    return texts


def main() -> None:
    cases = [{"program": p, "x": x, "derivatives": derivatives(p, x)} for p in PROGRAMS for x in POINTS]
    DATA.write_text("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n")


if __name__ == "__main__":
    main()
