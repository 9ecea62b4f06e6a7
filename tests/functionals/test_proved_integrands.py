"""Functions inside integrals with proved digits: values, and derivatives by a parameter, beside mpmath."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import mpmath
import pytest

Run = Callable[..., Any]

# Functions of the variable t, from 1/2 to 2.
FUNCTIONS: dict[str, Callable[[mpmath.mpf], mpmath.mpf]] = {
    "exp1(t)": mpmath.e1,
    "expi(t)": mpmath.ei,
    "expi(-t)": lambda t: mpmath.ei(-t),
    "expn(3, t)": lambda t: mpmath.expint(3, t),
    "ci(t)": mpmath.ci,
    "ci(-t)": lambda t: mpmath.ci(t),
    "chi(t)": mpmath.chi,
    "dawsn(t)": lambda t: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-t * t) * mpmath.erfi(t),
    "sinc(t)": mpmath.sincpi,
    "y0(t)": lambda t: mpmath.bessely(0, t),
    "y1(t)": lambda t: mpmath.bessely(1, t),
    "k0(t)": lambda t: mpmath.besselk(0, t),
    "k1(t)": lambda t: mpmath.besselk(1, t),
    "k0e(t)": lambda t: mpmath.exp(t) * mpmath.besselk(0, t),
    "k1e(t)": lambda t: mpmath.exp(t) * mpmath.besselk(1, t),
    "yv(0.3,t)": lambda t: mpmath.bessely(mpmath.mpf(3) / 10, t),
    "kv(0.3,t)": lambda t: mpmath.besselk(mpmath.mpf(3) / 10, t),
    "kve(0.3,t)": lambda t: mpmath.exp(t) * mpmath.besselk(mpmath.mpf(3) / 10, t),
    "jv(0.3,t)": lambda t: mpmath.besselj(mpmath.mpf(3) / 10, t),
    "iv(0.3,t)": lambda t: mpmath.besseli(mpmath.mpf(3) / 10, t),
    "jv(2,t-1)": lambda t: mpmath.besselj(2, t - 1),
    "iv(1,t-1)": lambda t: mpmath.besseli(1, t - 1),
    "ive(0.3,t)": lambda t: mpmath.exp(-t) * mpmath.besseli(mpmath.mpf(3) / 10, t),
    "ive(3,-t)": lambda t: -mpmath.exp(-t) * mpmath.besseli(3, t),
    "i1e(t)": lambda t: mpmath.exp(-t) * mpmath.besseli(1, t),
    "i1e(-t)": lambda t: -mpmath.exp(-t) * mpmath.besseli(1, t),
    "i0e(-t)": lambda t: mpmath.exp(-t) * mpmath.besseli(0, t),
    "spherical_jn(2,t)": lambda t: mpmath.sqrt(mpmath.pi / 2 / t) * mpmath.besselj(mpmath.mpf(5) / 2, t),
    "spherical_yn(2,t)": lambda t: mpmath.sqrt(mpmath.pi / 2 / t) * mpmath.bessely(mpmath.mpf(5) / 2, t),
    "spherical_yn(2,-t)": lambda t: -mpmath.sqrt(mpmath.pi / 2 / t) * mpmath.bessely(mpmath.mpf(5) / 2, t),
    "spherical_in(2,t)": lambda t: mpmath.sqrt(mpmath.pi / 2 / t) * mpmath.besseli(mpmath.mpf(5) / 2, t),
    "spherical_kn(2,t)": lambda t: mpmath.sqrt(mpmath.pi / 2 / t) * mpmath.besselk(mpmath.mpf(5) / 2, t),
    "ellipk(t-2)": lambda t: mpmath.ellipk(t - 2),
    "ellipe(t-2)": lambda t: mpmath.ellipe(t - 2),
    "hyp0f1(1.5,t)": lambda t: mpmath.hyp0f1(mpmath.mpf(3) / 2, t),
    "hyp1f1(0.5,1.5,t)": lambda t: mpmath.hyp1f1(mpmath.mpf(1) / 2, mpmath.mpf(3) / 2, t),
    "hyp2f1(0.5,1.5,2.5,-t)": lambda t: mpmath.hyp2f1(mpmath.mpf(1) / 2, mpmath.mpf(3) / 2, mpmath.mpf(5) / 2, -t),
    "hyperu(0.5,1.5,t)": lambda t: mpmath.hyperu(mpmath.mpf(1) / 2, mpmath.mpf(3) / 2, t),
    "beta(t,2)": lambda t: mpmath.beta(t, 2),
    "betaln(t,2)": lambda t: mpmath.log(mpmath.beta(t, 2)),
    "erfcx(t)": lambda t: mpmath.exp(t * t) * mpmath.erfc(t),
    "log_ndtr(t-2)": lambda t: mpmath.log(mpmath.ncdf(t - 2)),
    "struve(0.5,t)": lambda t: mpmath.struveh(mpmath.mpf(1) / 2, t),
    "modstruve(0.5,t)": lambda t: mpmath.struvel(mpmath.mpf(1) / 2, t),
    "gammainc(2.5,t)": lambda t: mpmath.gammainc(mpmath.mpf(5) / 2, 0, t, regularized=True),
    "gammaincc(2.5,t)": lambda t: mpmath.gammainc(mpmath.mpf(5) / 2, t, regularized=True),
    "gammaincc(t,1.5)": lambda t: mpmath.gammainc(t, mpmath.mpf(3) / 2, regularized=True),
    "betainc(2,3,t/3)": lambda t: mpmath.betainc(2, 3, 0, t / 3, regularized=True),
    "stdtr(3,t-1)": lambda t: (
        0.5
        + (t - 1)
        * mpmath.gamma(2)
        / mpmath.sqrt(3 * mpmath.pi)
        / mpmath.gamma(mpmath.mpf(3) / 2)
        * mpmath.hyp2f1(mpmath.mpf(1) / 2, 2, mpmath.mpf(3) / 2, -((t - 1) ** 2) / 3)
    ),
    "polylog(2.5,t/3)": lambda t: mpmath.polylog(mpmath.mpf(5) / 2, t / 3),
    "ellipkinc(t/2,0.5)": lambda t: mpmath.ellipf(t / 2, mpmath.mpf(1) / 2),
    "ellipeinc(t/2,0.5)": lambda t: mpmath.ellipe(t / 2, mpmath.mpf(1) / 2),
    "ellipkm1(t/4)": lambda t: mpmath.ellipk(1 - t / 4),
    "elliprf(t,1,2)": lambda t: mpmath.elliprf(t, 1, 2),
    "elliprc(1,t)": lambda t: mpmath.elliprc(1, t),
    "elliprd(t,1,2)": lambda t: mpmath.elliprd(t, 1, 2),
    "elliprg(t,1,2)": lambda t: mpmath.elliprg(t, 1, 2),
    "elliprj(t,1,2,3)": lambda t: mpmath.elliprj(t, 1, 2, 3),
    "logaddexp(t,2*t-1)": lambda t: mpmath.log(mpmath.exp(t) + mpmath.exp(2 * t - 1)),
    "logaddexp2(t,1)": lambda t: mpmath.log(2**t + 2) / mpmath.log(2),
    "logcosh(3*t-4)": lambda t: mpmath.log(mpmath.cosh(3 * t - 4)),
    "xlog1py(t,t)": lambda t: t * mpmath.log1p(t),
    "rel_entr(t,2)": lambda t: t * mpmath.log(t / 2),
    "tanhshrink(t)": lambda t: t - mpmath.tanh(t),
    "acot(t)": lambda t: mpmath.atan(1 / t),
    "asec(t+1)": lambda t: mpmath.acos(1 / (t + 1)),
    "acsc(t+1)": lambda t: mpmath.asin(1 / (t + 1)),
    "acoth(t+1)": lambda t: mpmath.atanh(1 / (t + 1)),
    "asech(t/3)": lambda t: mpmath.acosh(3 / t),
    "lambertw(-t/6,-1)": lambda t: mpmath.lambertw(-t / 6, -1).real,
    "real(lambertw(1j*t,1))": lambda t: mpmath.lambertw(1j * t, 1).real,
    "norm([t,1])": lambda t: mpmath.sqrt(t * t + 1),
    "log_softmax([t,1])[0]": lambda t: -mpmath.log(1 + mpmath.exp(1 - t)),
    "acsch(t)": lambda t: mpmath.asinh(1 / t),
    "real(expi(-t+1j))": lambda t: mpmath.ei(-t + 1j).real,
    "real(ci(-t+1j))": lambda t: mpmath.ci(-t + 1j).real,
    "imag(chi(-t+1j))": lambda t: mpmath.chi(-t + 1j).imag,
    "real(kv(0.3,t+1j))": lambda t: mpmath.besselk(mpmath.mpf(3) / 10, t + 1j).real,
    "real(k0(1j*t-1))": lambda t: mpmath.besselk(0, 1j * t - 1).real,
    "imag(yv(1.5,1-2j*t))": lambda t: mpmath.bessely(mpmath.mpf(3) / 2, 1 - 2j * t).imag,
    "real(jv(0.3,1j-t))": lambda t: mpmath.besselj(mpmath.mpf(3) / 10, 1j - t).real,
    "real(exp1(1j-t))": lambda t: mpmath.e1(1j - t).real,
    "real(hyp1f1(0.5,1.5,t*1j))": lambda t: mpmath.hyp1f1(mpmath.mpf(1) / 2, mpmath.mpf(3) / 2, t * 1j).real,
    "real(asec(t+1j))": lambda t: mpmath.acos(1 / (t + 1j)).real,
    "imag(dawsn(t+1j))": lambda t: (
        (mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-((t + 1j) ** 2)) * mpmath.erfi(t + 1j)).imag
    ),
}
# Derivatives that are not known inside integrals, as those by an order or of a Carlson form, or behind a scale that switches.
WITHOUT_DERIVATIVES = {"kve(0.3,t)", "norm([t,1])", "gammaincc(t,1.5)", "ellipkm1(t/4)", "elliprc(1,t)", "acot(t)"} | {
    f"ellipr{kind}" for kind in ("f(t,1,2)", "d(t,1,2)", "g(t,1,2)", "j(t,1,2,3)")
}


def assert_digits(text: str, expected: mpmath.mpf) -> None:
    unit = mpmath.mpf(10) ** (Decimal(text).adjusted() - 17)
    assert abs(mpmath.mpf(text) - expected) <= 2 * unit, mpmath.nstr(expected, 22)


@pytest.mark.cases(6)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_digits_of_integrals_of_functions_are_proved(function: str, run: Run) -> None:
    reference = FUNCTIONS[function]
    scaled = re.sub(r"\bt\b", "(k*t)", function)
    program = f"integrate({scaled}, t, 1/2, 2)"
    with_slope = function not in WITHOUT_DERIVATIVES
    done = run("eval", program, "k=1", "--digits", "18", "--json", *([] if with_slope else ["--no-grad"])).json
    with mpmath.workdps(30):
        value = mpmath.quad(reference, [0.5, 1, 2])
        assert_digits(done["value"], value)
        if with_slope:
            # By integration by parts of t*f'(t).
            assert_digits(done["grad"]["k"], 2 * reference(mpmath.mpf(2)) - reference(mpmath.mpf(0.5)) / 2 - value)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("integrand", "value"),
    [
        ("(3*t) % 1", "0.79166666666666666667"),
        ("(3*t)//1", "4.8333333333333333333"),
        ("trunc(3*t - 4)", "-0.33333333333333333333"),
        ("fmod(3*t - 4, 1)", "-0.041666666666666666667"),
        ("round(3*t)", "5.6666666666666666667"),
        ("elu(t - 1)", "0.39346934028736657640"),
        ("leaky_relu(t - 1)", "0.49875000000000000000"),
        ("heaviside(t - 1, 0)", "1"),
    ],
)
def test_digits_of_integrals_of_steps_are_proved(integrand: str, value: str, run: Run) -> None:
    assert run("eval", f"integrate({integrand}, t, 1/2, 2)", "--digits", "20").out == f"value  {value}\n"


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("integrand", "value"),
    [
        ("k0(t)", "0.64369380586374754578"),
        ("k1(t)*t", "1.1059033414775804767"),
        ("kv(1.5, t)*t**2", "2.4936798061764473485"),
        ("exp1(t)", "0.32664386232455301773"),
        ("expn(3, t)", "0.16524282585834806497"),
    ],
)
def test_digits_up_to_infinity_of_what_decays_are_proved(integrand: str, value: str, run: Run) -> None:
    assert run("eval", f"integrate({integrand}, t, 1/2, inf)", "--digits", "20").out == f"value  {value}\n"
