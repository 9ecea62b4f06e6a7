"""Examples of the documentation of SciPy, mpmath, QUADPACK, MATLAB and Maxima: values and derivatives beside closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import pytest

from gradcli.evaluation import session
from gradcli.language.syntax import parse

PI = mpmath.pi

# Programs of one parameter p, with their values as functions of it, and a place.
EXAMPLES: dict[str, tuple[Callable[[Any], Any], float]] = {
    # SciPy: quad, dblquad, tplquad, nquad, quad_vec, nsum.
    "quad(lambda x: x**2, 0, p)[0]": (lambda p: p**3 / 3, 4.0),
    "quad(lambda x: exp(-p*x), 0, inf)[0]": (lambda p: 1 / p, 1.0),
    "quad(lambda x, a: a*x, 0, 1, args=(p,))[0]": (lambda p: p / 2, 3.0),
    "quad(lambda x: p*besselj(2.5, x), 0, 4.5)[0]": (
        lambda p: p * mpmath.quad(lambda x: mpmath.besselj(2.5, x), [0, 4.5]),
        1.0,
    ),
    "dblquad(lambda y, x: p*x*y**2, 0, 2, 0, 1)[0]": (lambda p: p * 2 / 3, 1.0),
    "dblquad(lambda t, x: exp(-x*t)/t**p, 0, inf, 1, inf)[0]": (lambda p: 1 / p, 3.0),
    "dblquad(lambda x, y: p*x*y, 0, 0.5, lambda y: 0, lambda y: 1-2*y)[0]": (lambda p: p / 96, 1.0),
    "dblquad(lambda y, x: p*x*y, 0, 1, lambda x: x, lambda x: 2-x)[0]": (lambda p: p / 3, 1.0),
    "dblquad(lambda x, y: exp(-p*(x**2+y**2)), -inf, inf, -inf, inf)[0]": (lambda p: PI / p, 1.0),
    "tplquad(lambda z, y, x: p*x*y*z, 1, 2, lambda x: 2, lambda x: 3, lambda x, y: 0, lambda x, y: 1)[0]": (
        lambda p: p * 15 / 8,
        1.0,
    ),
    "sum(integrate([x**0.5, x, p*x**2], x, 0, 2))": (lambda p: mpmath.sqrt(2) * 4 / 3 + 2 + p * 8 / 3, 1.0),
    "nsum(1/k**p, k, 1, inf)": (mpmath.zeta, 2.0),
    "nsum(p**k, k, 1, 10)": (lambda p: p * (1 - p**10) / (1 - p), 0.5),
    # mpmath: quad, quadosc, nsum, nprod, limit, findroot.
    "integrate(sin(p*x), x, 0, pi)": (lambda p: (1 - mpmath.cos(p * PI)) / p, 1.0),
    "integrate(2*exp(-p*x)*log(x), x, 0, inf)": (lambda p: -2 * (mpmath.euler + mpmath.log(p)) / p, 1.0),
    "integrate(cos(p*x*y/2), (x, 0, pi), (y, -pi/2, pi/2))": (lambda p: 4 * mpmath.si(p * PI**2 / 4) / p, 1.0),
    "integrate(cos(p*x)/x**2, x, 1, inf)": (lambda p: mpmath.cos(p) + p * (mpmath.si(p) - PI / 2), 1.0),
    "integrate(sqrt(p**2-x**2), x, -p, p)": (lambda p: PI * p**2 / 2, 1.0),
    "integrate(sech(x-p)**2, x, -10, 10)": (lambda p: mpmath.tanh(10 - p) + mpmath.tanh(10 + p), 0.5),
    "nsum(exp(-p*k**2), k, -inf, inf)": (lambda p: mpmath.jtheta(3, 0, mpmath.exp(-p)), 1.0),
    "nsum((-1)**(k+1)*p/k, k, 1, inf)": (lambda p: p * mpmath.log(2), 1.0),
    "nsum(p*(-1)**k*log(k)/k, k, 1, inf)": (lambda p: p * mpmath.log(2) * (mpmath.euler - mpmath.log(2) / 2), 1.0),
    "exp(nsum(log(1-p/k**2), k, 2, inf))": (
        lambda p: mpmath.sin(PI * mpmath.sqrt(p)) / (PI * mpmath.sqrt(p)) / (1 - p),
        0.5,
    ),
    "limit((p*x-sin(p*x))/x**3, x, 0)": (lambda p: p**3 / 6, 1.0),
    "limit((1+p/n)**n, n, inf)": (mpmath.exp, 3.0),
    "root(lambda x: x**3+p*x-1, 0.5)": (lambda p: mpmath.findroot(lambda x: x**3 + p * x - 1, 0.5), 2.0),
    # QUADPACK: the families of its book (R. Piessens et al., 1983).
    "integrate(x**p*log(1/x), x, 0, 1)": (lambda p: (1 + p) ** -2, -0.5),
    "integrate(4**(-p)/((x-pi/4)**2+16**(-p)), x, 0, 1)": (
        lambda p: mpmath.atan((4 - PI) * 4 ** (p - 1)) + mpmath.atan(PI * 4 ** (p - 1)),
        3.0,
    ),
    "integrate(cos(2**p*sin(x)), x, 0, pi)": (lambda p: PI * mpmath.besselj(0, 2**p), 3.0),
    "integrate(abs(x-1/3)**p, x, 0, 1)": (
        lambda p: (mpmath.mpf(2) ** (p + 1) + 1) / (p + 1) / mpmath.mpf(3) ** (p + 1),
        -0.5,
    ),
    "integrate(1/sqrt(1-x**2)/(1+x+2**(-p)), x, -1, 1)": (lambda p: PI / mpmath.sqrt((1 + 2**-p) ** 2 - 1), 2.0),
    "integrate(sin(x)**(p-1), x, 0, pi/2)": (
        lambda p: 2 ** (p - 2) * mpmath.gamma(p / 2) ** 2 / mpmath.gamma(p),
        0.8,
    ),
    "integrate(log(1/x)**(p-1), x, 0, 1)": (mpmath.gamma, 0.7),
    "integrate(cos(2**p*x)/sqrt(x*(1-x)), x, 0, 1)": (
        lambda p: PI * mpmath.cos(2 ** (p - 1)) * mpmath.besselj(0, 2 ** (p - 1)),
        3.0,
    ),
    "integrate(x**2*exp(-2**(-p)*x), x, 0, inf)": (lambda p: 2 ** (3 * p + 1), 2.0),
    # MATLAB and Maxima.
    "integral(lambda x: exp(-p*x**2)*log(x)**2, 0, inf)": (
        lambda p: mpmath.sqrt(PI / p) * ((mpmath.euler + mpmath.log(4 * p)) ** 2 / 8 + PI**2 / 16),
        1.0,
    ),
    "integral(lambda x: 1/(x**3-2*x-p), 0, 2)": (lambda p: mpmath.quad(lambda x: 1 / (x**3 - 2 * x - p), [0, 2]), 5.0),
    "integrate(p*y*sin(x)+z*cos(x), (x, 0, pi), (y, 0, 1), (z, -1, 1))": (lambda p: 2 * p, 1.0),
    "integrate(x**(1/2)*log(1/x)*p, x, 0, 1)": (lambda p: p * 4 / 9, 1.0),
}


@pytest.mark.parametrize("program", EXAMPLES)
def test_values_and_derivatives(program: str) -> None:
    function, place = EXAMPLES[program]
    result = session.run(session.EvaluationRequest(parse(program), {"p": place}, ("p",)))
    assert result.grad is not None
    with mpmath.workdps(30):
        value, slope = (float(mpmath.re(mpmath.diff(function, place, n))) for n in (0, 1))
    assert float(result.value) == pytest.approx(value, rel=1e-10)
    assert float(result.grad["p"]) == pytest.approx(slope, rel=1e-9, abs=1e-11)
