"""Integrals in programs: values, derivatives, errors and warnings, beside closed forms."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import mpmath
import pytest

from gradcli.errors import DifferentiationError, EvaluationError
from gradcli.evaluation import session
from gradcli.language.syntax import parse

Run = Callable[..., Any]


def evaluated(program: str, order: int | None = None, **bindings: float) -> session.Result:
    request = session.EvaluationRequest(parse(program), bindings, tuple(bindings), order=order)
    return session.run(request)


PI = math.pi
# Integrals of FLINT's examples, mpmath's tests, QUADPACK's and Genz' families, with their values.
KNOWN = {
    "4/(1+x^2), x, 0, 1": PI,
    "sin(x+exp(x)), x, 0, 8": 0.3474001726652478,
    "abs(x**4+10*x**3+19*x**2-6*x-6)*exp(x), x, 0, 1": 11.14731055005714,
    "floor(x), x, 0, 100": 4950,
    "sech(10*(x-0.2))**2+sech(100*(x-0.4))**4+sech(1000*(x-0.6))**6, x, 0, 1": 0.21080273550054927738,
    "exp(-x**2), x, 0, inf": math.sqrt(PI) / 2,
    "sech(x), x, -inf, inf": PI,
    "1/(1+x**2), x, -inf, inf": PI,
    "exp(-x**2)*cos(x), x, inf, -inf": -math.sqrt(PI) * math.exp(-0.25),
    # A second peak far away, and a narrow one.
    "exp(-x**2) + exp(-(x-300)**2), x, -inf, inf": 2 * math.sqrt(PI),
    "exp(-x**2) + 1e-3*exp(-1e4*(x-2.3)**2), x, -inf, inf": math.sqrt(PI) * (1 + 1e-5),
    "abs(x)*exp(-abs(x-1)), x, -inf, inf": 2 + 2 * math.exp(-1),
    "1/sqrt(1-x**2), x, -1, 1": PI,
    "log(x)/(1+x), x, 0, 1": -(PI**2) / 12,
    "x**-0.75, x, 0, 1": 4,
    "exp(-x)*x**50, x, 0, inf": math.factorial(50),
    # The power overflows not far from where the product has vanished.
    "exp(-x)*x**105, x, 0, inf": math.factorial(105),
    "log(1+x**-2), x, 0, inf": PI,
    "x*sin(x)/(1+x**2), x, 0, inf": PI / (2 * math.e),
    "sin(x)/x, x, 0, inf": PI / 2,
    "sin(x)/sqrt(x), x, 0, inf": math.sqrt(PI / 2),
    "cos(x**2), x, 0, inf": math.sqrt(PI / 8),
    "cos(1000*x)*exp(-x), x, 0, inf": 1 / (1 + 10**6),
    "exp(cos(x)), x, 0, 2*pi": 7.95492652101284527,
    "exp(-1000*(x-0.3)**2), x, -10, 10": math.sqrt(PI / 1000),
    "x**x, x, 0, 1": 0.783430510712134407,
    "log(abs(x-0.5)), x, 0, 1": math.log(0.5) - 1,
    "exp(x)/(exp(2*x)+1), x, -inf, inf": PI / 2,
    "log(sin(x)), x, 0, pi/2": -PI / 2 * math.log(2),
    "1/sqrt(abs(x)), x, -1, 1": 4,
    "where(x<0.3, 0, 1)*exp(x), x, 0, 1": math.e - math.exp(0.3),
    "max(sin(x), cos(x)), x, 0, 2*pi": 2 * math.sqrt(2),
    "gamma(x), x, 1, 2": 0.922745950680665,
    "x/(exp(x)-1), x, 0, inf": PI**2 / 6,
    "1/(1+x)**1.1, x, 0, inf": 10,
    "exp(-(x-1e4)**2), x, -inf, inf": math.sqrt(PI),
    "exp(-1e8*(x-1)**2), x, -inf, inf": math.sqrt(PI) * 1e-4,
    # A node of a wide panel happens to be at the peak, and none of its halves.
    "exp(-1e10*(x-0.37)**2), x, 0, 1": math.sqrt(PI) * 1e-5,
    "exp(-x-1/x)/sqrt(x), x, 0, inf": math.sqrt(PI) * math.exp(-2),
    "sqrt(tan(x)), x, 0, pi/2": PI / math.sqrt(2),
    "x % 1, x, 0, 5.5": 2.625,
    "1e-300*x, x, 0, 1": 5e-301,
    "1e300*x, x, 0, 1": 5e299,
    "exp(-x), x, 700, inf": math.exp(-700),
    "sin(x), x, 2, -1": math.cos(2) - math.cos(1),
    "x, x, 3, 3": 0,
}


@pytest.mark.parametrize(("integral", "value"), KNOWN.items())
def test_an_integral_has_its_known_value(integral: str, value: float) -> None:
    result = evaluated(f"integrate({integral})")
    assert float(result.value) == pytest.approx(value, rel=1e-10, abs=1e-305)
    assert not result.warnings


# Values that are not reached: the warning says how far they may be off.
DOUBTFUL = {
    "x*sin(1/x), x, 0, 1": 0.378530017124161309882,
    "1/(x*log(x)**2), x, 2, inf": 1 / math.log(2),
    "(1-x)**-0.95, x, 0, 1": 20.0,
}


@pytest.mark.parametrize(("integral", "value"), DOUBTFUL.items())
def test_a_doubtful_integral_is_a_warning(integral: str, value: float) -> None:
    result = evaluated(f"integrate({integral})")
    (warning,) = result.warnings
    assert warning.code == "inaccurate"
    about = float(warning.message.split("about ")[1].split()[0])
    assert abs(float(result.value) - value) <= 3 * about


@pytest.mark.parametrize(
    ("integral", "place"),
    [
        ("1/x, x, 0, 1", "0"),
        ("1/x, x, 1, inf", "inf"),
        ("1/(x-1), x, 0, 2", "1"),
        ("tan(x), x, 0, pi/2", "1.5708"),
        ("exp(x), x, 0, inf", "inf"),
        ("cos(x), x, 0, inf", "inf"),
    ],
)
def test_an_integral_that_diverges_is_an_error(integral: str, place: str) -> None:
    with pytest.raises(EvaluationError, match=f"the integral diverges at {place}"):
        evaluated(f"integrate({integral})")


def test_an_integrand_that_is_undefined_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="the integrand is no number"):
        evaluated("integrate(sqrt(x), x, -1, 1)")


# Programs with parameters k and b, and their values as functions of them.
PARAMETRIC: dict[str, Callable[..., mpmath.mpf]] = {
    "integrate(exp(-k*t), t, 0, b)": lambda k, b: (1 - mpmath.exp(-k * b)) / k,
    "integrate(exp(-k*t)*t**2, t, 0, inf) + 0*b": lambda k, b: 2 / k**3,
    "integrate(cos(k*t), t, -b, b)": lambda k, b: 2 * mpmath.sin(k * b) / k,
    "integrate(t**k, t, 0, b)": lambda k, b: b ** (k + 1) / (k + 1),
    "integrate(1/(t**2+k**2), t, -inf, b)": lambda k, b: (mpmath.atan(b / k) + mpmath.pi / 2) / k,
    "integrate(exp(-k*t)*sin(b*t)/t, t, 0, inf)": lambda k, b: mpmath.atan(b / k),
    "integrate(exp(-k*x*y), (y, 0, x), (x, 0, b))": lambda k, b: mpmath.quad(
        lambda x: (1 - mpmath.exp(-k * x * x)) / (k * x), [0, b]
    ),
    "integrate(abs(t-k), t, 0, 2) + 0*b": lambda k, b: (k**2 + (2 - k) ** 2) / 2,
    "integrate(1 if t < k else b*t, t, 0, 2)": lambda k, b: k + b * (4 - k**2) / 2,
    "integrate(maximum(t, k*t**2), t, 0, 2) + 0*b": lambda k, b: 1 / (2 * k**2) + k * (8 - 1 / k**3) / 3,
    "integrate(floor(k*t), t, 0, 2) + 0*b": lambda k, b: sum(
        (2 - j / k) for j in range(1, int(mpmath.floor(2 * k)) + 1)
    ),
    "k*integrate(sqrt(b**2-t**2), t, 0, b)": lambda k, b: k * mpmath.pi * b * b / 4,
    "integrate(sqrt(b**2-t**2)*t, t, k*0.1, b)": lambda k, b: (b * b - (k / 10) ** 2) ** 1.5 / 3,
    "b*integrate(relu(t-k)**2, t, 0, 2)": lambda k, b: b * (2 - k) ** 3 / 3,
    "integrate(sign(t-k)*exp(b*t), t, 0, 2)": lambda k, b: (mpmath.exp(2 * b) - 2 * mpmath.exp(b * k) + 1) / b,
    "integrate(where(t*t > b, 1, k), t, -2, 2)": lambda k, b: 4 + 2 * (k - 1) * mpmath.sqrt(b),
    "integrate(log(k+b*cos(t)), t, 0, pi)": lambda k, b: mpmath.pi * mpmath.log((k + mpmath.sqrt(k * k - b * b)) / 2),
    "integrate(exp(-k*t-b/t)/sqrt(t), t, 0, inf)": lambda k, b: (
        mpmath.sqrt(mpmath.pi / k) * mpmath.exp(-2 * mpmath.sqrt(k * b))
    ),
    "integrate((t**k-t**b)/log(t), t, 0, 1)": lambda k, b: mpmath.log((1 + k) / (1 + b)),
    "b*integrate((1-t**k)/(1-t), t, 0, 1)": lambda k, b: b * mpmath.harmonic(k),
    "integrate(erfc(k*t)*exp(-b*t), t, 0, inf)": lambda k, b: (
        (1 - mpmath.exp(b * b / 4 / k / k) * mpmath.erfc(b / 2 / k)) / b
    ),
    # Singular where something moves, in the interior and at limits.
    "b*integrate(log(abs(t-k)), t, 0, 2)": lambda k, b: b * ((2 - k) * mpmath.log(2 - k) + k * mpmath.log(k) - 2),
    "b*integrate(abs(t-k)**-0.5, t, 0, 2)": lambda k, b: 2 * b * (mpmath.sqrt(2 - k) + mpmath.sqrt(k)),
    "integrate(t*(t-b)**-0.5, t, b, 2) + 0*k": lambda k, b: 2 * (2 - b) ** 1.5 / 3 + 2 * b * mpmath.sqrt(2 - b),
    "b*integrate(where(t > k, log(t-k), 1), t, 0, 2)": lambda k, b: b * (k + (2 - k) * (mpmath.log(2 - k) - 1)),
    "b*integrate(sqrt(maximum(t*t-k, 0)), t, 0, 2)": lambda k, b: (
        b * (2 * mpmath.sqrt(4 - k) - k * mpmath.acosh(2 / mpmath.sqrt(k))) / 2
    ),
    "integrate((t-b)**-0.5*exp(-k*t), t, b, inf)": lambda k, b: mpmath.exp(-k * b) * mpmath.sqrt(mpmath.pi / k),
    "b*quad(lambda t: t**2*k, 0, b)[0]": lambda k, b: k * b**4 / 3,
    "dblquad(lambda y, x: k*x*y, 0, b, 0, lambda x: x)[0]": lambda k, b: k * b**4 / 8,
}


@pytest.mark.cases(4)
@pytest.mark.parametrize("program", PARAMETRIC)
def test_derivatives_of_an_integral(program: str) -> None:
    k, b = 1.3, 0.7
    value = PARAMETRIC[program]
    result = evaluated(program, 2, k=k, b=b)
    found = {**(result.grad or {}), **(result.derivatives or {})}
    with mpmath.workdps(30):
        assert float(result.value) == pytest.approx(float(value(mpmath.mpf(k), mpmath.mpf(b))), rel=1e-11)
        for key, derivative in found.items():
            orders = tuple(key.split(",").count(name) for name in "kb")
            expected = float(mpmath.diff(value, (k, b), orders))
            assert float(derivative) == pytest.approx(expected, rel=1e-8, abs=1e-9), key


@pytest.mark.slow
def test_a_choice_by_both_variables_of_a_double_integral() -> None:
    result = evaluated("integrate(where(x <= 0.4 and y <= 0.6, exp(x+y), 0), (x, 0, 1), (y, 0, 1))")
    assert float(result.value) == pytest.approx(math.expm1(0.4) * math.expm1(0.6), rel=1e-12)
    choice = evaluated("integrate(where(y <= w, exp(x+y), x), (x, 0, 1), (y, 0, 1))", w=0.6)
    assert float(choice.value) == pytest.approx(math.expm1(1) * math.expm1(0.6) + 0.2, rel=1e-12)
    assert choice.grad is not None
    assert float(choice.grad["w"]) == pytest.approx(math.expm1(1) * math.exp(0.6) - 0.5, rel=1e-12)


@pytest.mark.slow
def test_a_triple_integral_over_all_space_is_within_the_limits(run: Run) -> None:
    """The innermost integrals are those of 300 places times 300; far out they are 0, or too small to have all digits."""
    done = run("eval", "integrate(exp(-(x**2+2*y**2+3*z**2)), (x,-inf,inf), (y,-inf,inf), (z,-inf,inf))", "--json")
    assert done.json["value"] == pytest.approx(PI**1.5 / math.sqrt(6), rel=1e-11)
    assert "warnings" not in done.json


def test_derivatives_of_nested_integrals_cost_as_much_as_their_value(run: Run) -> None:
    """A derivative computes only those inner integrals that it reads, and the maximum of x**2*exp(-x**2) is no hidden peak.
    Without these two, three nested integrals of this kind are beyond the limits."""
    words = (
        "integrate(exp(-(a*x**2 + b*y**2)), (x,-inf,inf), (y,-inf,inf))",
        "a=1",
        "b=2",
        "--max-elements",
        "1500000",
    )
    done = run("eval", *words, "--json").json
    value = PI / math.sqrt(2)
    assert done["value"] == pytest.approx(value, rel=1e-12)
    assert done["grad"] == pytest.approx({"a": -value / 2, "b": -value / 4}, rel=1e-11)


def test_an_outer_integral_sees_a_second_peak() -> None:
    """Nothing bounds an integrand that is an integral itself."""
    inner = "integrate(exp(-a*y**2), y, -inf, inf)"
    found = evaluated(f"integrate({inner}*(exp(-x**2) + exp(-(x-30)**2)), x, -inf, inf)", a=1.0)
    assert found.value == pytest.approx(2 * PI, rel=1e-12)
    assert found.grad["a"] == pytest.approx(-PI, rel=1e-10)


def test_the_variable_may_stand_after_the_limits() -> None:
    assert float(evaluated("integrate(exp(-k*t), 0, b, t)", k=2.0, b=1.0).value) == pytest.approx(0.432332358381693654)


def test_a_tensor_is_integrated_by_its_elements() -> None:
    result = evaluated("sum(integrate([t, k*t**2], t, 0, 1))", k=3.0)
    assert float(result.value) == pytest.approx(1.5)
    assert result.grad is not None
    assert float(result.grad["k"]) == pytest.approx(1 / 3)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("integral", "closed"),
    [
        ("exp(-k*t**2), t, -inf, inf", "sqrt(pi/k)"),
        ("exp(-k*t)*sin(t), t, inf, 0", "-1/(1 + k**2)"),
        ("1/(k + t**2), t, 0, inf", "pi/(2*sqrt(k))"),
        ("1/t**k, t, b, inf", "b**(1 - k)/(k - 1)"),
        ("sech(k*t)**2, t, b, inf", "(1 - tanh(k*b))/k"),
        ("sech(k*t)**3, t, 0, inf", "pi/(4*k)"),
        # Exponentials in products, of which the factors grow.
        ("exp(-k*t)*cosh(t), t, 0, inf", "k/(k**2 - 1)"),
        ("t**2*exp(-t)*sinh(t/k), t, 0, inf", "1/(1 - 1/k)**3 - 1/(1 + 1/k)**3"),
        ("exp(t)/(exp(2*t) + 1), t, -inf, inf", "pi/2"),
        ("exp(-k*t)*besseli(0, t), t, 0, inf", "1/sqrt(k**2 - 1)"),
        ("t**3/(exp(k*t) - 1), t, 0, inf", "pi**4/(15*k**4)"),
        ("t/sinh(k*t), t, 0, inf", "pi**2/(4*k**2)"),
        ("log(t)/t**(k + 1), t, 1, inf", "1/k**2"),
        ("exp(-k*abs(t)), t, -inf, -b", "exp(-k*b)/k"),
        ("t*exp(-t)/(1 + exp(-t)), t, 0, inf", "pi**2/12"),
        ("besselj(0, t)*exp(-k*t), t, 0, inf", "1/sqrt(1 + k**2)"),
        ("lambertw(k*t), t, 0, 1", "lambertw(k) - 1 + 1/lambertw(k) - 1/k"),
        ("atan(k*t), t, 0, 1", "atan(k) - log(1 + k**2)/(2*k)"),
        ("tanh(k*t), t, 0, b", "log(cosh(k*b))/k"),
        ("abs(gamma(1/2 + 1j*t))**2, t, 0, 1", "2*atan(tanh(pi/2))"),
        ("t**b, t, 0, 1", "1/(b + 1)"),
        # Where the integrand is infinite, or 0*inf, at a limit.
        ("-log(t)*t**(k - 1), t, 0, 1", "1/k**2"),
        ("t**(b - 1)*exp(-t), t, 0, inf", "gamma(b)"),
        ("t**(b - 1)*(1 - t)**(b - 1), t, 0, 1", "beta(b, b)"),
        ("1/sqrt(1 - t**2), t, 0, 1", "pi/2"),
        ("log(1 - t)/t, t, 1/2, 1", "-pi**2/12 - log(2)**2/2"),
        ("log(sin(t)), t, 0, pi/2", "-pi*log(2)/2"),
        ("1/((k + t)*sqrt(t)), t, inf, 0", "-pi/sqrt(k)"),
        ("(2 - t)**(-1/3), t, -6, 2", "6"),
    ],
)
def test_digits_of_improper_integrals_are_proved(integral: str, closed: str, run: Run) -> None:
    words = [word for word in ("k=3", "b=1/2") if re.search(rf"\b{word[0]}\b", integral)]
    found, expected = (
        json.loads(run("eval", p, *words, "--digits", "22", "--json").out) for p in (f"integrate({integral})", closed)
    )
    assert Decimal(found["value"]) == Decimal(expected["value"])
    for name, slope in expected["grad"].items():
        assert Decimal(found["grad"][name]) == Decimal(slope)


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("integral", "closed"),
    [
        # Up to infinity; the integral of cos(t)/(1 + t**2) is DLMF 1.14.
        ("sin(t)/t, t, 0, inf", "pi/2"),
        ("cos(k*t)/(1 + t**2), t, 0, inf", "pi/2*exp(-k)"),
        ("t*sin(t)/(1 + t**2), t, -inf, inf", "pi/e"),
        ("sin(t)*exp(-b*t)/t, t, 0, inf", "pi/2 - atan(b)"),
        ("sin(2*t)*sin(t)/t**2, t, 0, inf", "pi/2"),
        ("sin(t**2), t, -inf, 0", "sqrt(pi/8)"),
        ("cos(t)/sqrt(t), t, 0, inf", "sqrt(pi/2)"),
        ("cos(sqrt(t))/t, t, 1, inf", "-2*ci(1)"),
        ("1/t**2 + cos(t)/t, t, 1, inf", "1 - ci(1)"),
        # Ever faster at a limit.
        ("sin(1/t), t, 0, 1", "sin(1) - ci(1)"),
        ("t*sin(1/t), t, 1, 0", "-(sin(1) + cos(1) - pi/2 + si(1))/2"),
        ("sin(k/t), t, 0, 1", "sin(k) - k*ci(k)"),
        ("cos(1/(1 - t)), t, 0, 1", "cos(1) - pi/2 + si(1)"),
        ("sin(1/t**2)/t, t, 0, 1", "(pi/2 - si(1))/2"),
    ],
)
def test_digits_of_what_oscillates_are_proved(integral: str, closed: str, run: Run) -> None:
    words = [word for word in ("k=3/2", "b=1/2") if re.search(rf"\b{word[0]}\b", integral)]
    found, expected = (run("eval", p, *words, "--digits", "22", "--json") for p in (f"integrate({integral})", closed))
    assert Decimal(found.json["value"]) == Decimal(expected.json["value"])
    for name, slope in expected.json["grad"].items():
        assert Decimal(found.json["grad"][name]) == Decimal(slope)


@pytest.mark.parametrize(
    "integral",
    [
        # The limits are those of a distribution, or the amplitude has a pole, or a phase is no power.
        "cos(t)*t, t, 0, inf",
        "sin(t)/cos(t)/t, t, 1, inf",
        "sin(t*sin(t))/t, t, 1, inf",
        "sin(t)/(t + cos(t)), t, 1, inf",
        "sin(t**2 + t)/t, t, 1, inf",
    ],
)
def test_digits_of_what_oscillates_need_waves_that_vanish(integral: str, run: Run) -> None:
    done = run("eval", f"integrate({integral})", "--digits", "20")
    assert done.status == 1
    assert "the integrand is not known to decay fast enough" in done.err


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("integral", "closed"),
    [
        ("exp(z*t), t, 0, 1", "(exp(z) - 1)/z"),
        ("1/(t + 1j), t, 0, 1", "log(1 + 1j) - log(1j)"),
        ("sqrt(1 + 1j*t), t, 0, 1", "2/3*((1 + 1j)**1.5 - 1)/1j"),
        ("exp(-t**2)*exp(1j*t), t, 0, inf", "sqrt(pi)/2*exp(-1/4) + 1j*dawsn(1/2)"),
        ("log(z*t), t, 0, 1", "log(z) - 1"),
        # By the function and its conjugate, where real and imaginary parts are not known.
        ("erf(z*t), t, 0, 1", "erf(z) + (exp(-z**2) - 1)/(z*sqrt(pi))"),
        ("gamma(t + 1j)*digamma(t + 1j), t, 1, 2", "gamma(2 + 1j) - gamma(1 + 1j)"),
        ("-1j*zeta(1/2 + 1j*t, n=1)/zeta(1/2 + 1j*t), t, 1, 2", "log(zeta(1/2 + 2j)) - log(zeta(1/2 + 1j))"),
        # Constants are those in the text, and not the floats next to them.
        ("exp((0.1 + 0.3j)*t), t, 0, 1", "(exp(0.1 + 0.3j) - 1)/(0.1 + 0.3j)"),
        ("exp2(1j*t), t, 0, 1", "(2**1j - 1)/(1j*log(2))"),
        ("log2(1 + 1j*t), t, 0, 1", "((1 + 1j)*log(1 + 1j) - 1j)/(1j*log(2))"),
        ("log10(1 + 1j*t), t, 0, 1", "((1 + 1j)*log(1 + 1j) - 1j)/(1j*log(10))"),
    ],
)
def test_digits_of_complex_integrals_are_proved(integral: str, closed: str, run: Run) -> None:
    words = ["z=1+2j"] if re.search(r"\bz\b", integral) else []
    found, expected = (
        json.loads(run("eval", p, *words, "--digits", "22", "--json").out) for p in (f"integrate({integral})", closed)
    )
    for number, proved in (
        (found["value"], expected["value"]),
        *zip(found.get("grad", {}).values(), expected.get("grad", {}).values()),
    ):
        assert {part: Decimal(text) for part, text in number.items()} == {k: Decimal(v) for k, v in proved.items()}


@pytest.mark.parametrize(
    "integral", ["1/t, t, 0, 1", "sin(1/t)/t**2, t, 0, 1", "tan(t), t, 0, pi/2", "t**-1.5, t, 0, 1"]
)
def test_digits_of_what_is_infinite_need_known_bounds(integral: str, run: Run) -> None:
    done = run("eval", f"integrate({integral})", "--digits", "20")
    assert done.status
    assert "no proved digits" in done.err


@pytest.mark.parametrize(
    "integral",
    [
        *("sin(t), t, 1, inf", "1/t, t, 1, inf", "besselj(0, t), t, 0, inf"),
        *("exp(-t)*cosh(t), t, 0, inf", "exp(-t)*i0(t), t, 1, inf"),
    ],
)
def test_digits_up_to_infinity_need_a_known_decay(integral: str, run: Run) -> None:
    done = run("eval", f"integrate({integral})", "--digits", "20")
    assert done.status
    assert "is not known to decay" in done.err or "has no proved digits inside an integral" in done.err


@pytest.mark.parametrize(
    "integral",
    ["1/sqrt(t), t, -2, -1", "t**0.5, t, -2, -1", "sqrt(t), t, -1, 1", "asin(t), t, 0, 2", "log(t), t, -inf, -1"],
)
def test_digits_need_an_integrand_of_real_numbers(integral: str, run: Run) -> None:
    """Complex values, whose real parts have integrals, are none."""
    done = run("eval", f"integrate({integral})", "--digits", "20")
    assert done.status == 1
    assert "the integrand is no number at " in done.err


def test_a_value_that_is_not_selected_may_be_no_number(run: Run) -> None:
    done = run("eval", "integrate(where(t > 0, sqrt(t), t), t, -1, 1)", "--digits", "20")
    assert done.out == "value  0.16666666666666666667\n"


@pytest.mark.parametrize(
    ("integral", "digits"),
    [
        ("sin(t+exp(t)), t, 0, 8", "0.3474001726572478078795121591198931246574562549"),
        ("sech(10*(t-0.2))**2+sech(100*(t-0.4))**4+sech(1000*(t-0.6))**6, t, 0, 1", "0.21080273550054927738"),
        ("sqrt(1-t**2), t, 0, 1", "0.78539816339744830962"),
        ("x*y, (y, 0, x), (x, 0, 1)", "0.12500000000000000000"),
        ("rgamma(t), t, 0, inf", "2.8077702420285193652"),
        ("1/gamma(t), t, 0, inf", "2.8077702420285193652"),
        ("exp(-t)*besseli(0, t/3)**3, t, 0, 10", "1.2985522982771852520"),
        # Watson's integral of a simple cubic lattice.
        ("i0e(t/3)**3, t, 0, inf", "1.5163860591519780182"),
        ("exp(-t)*besseli(0, t/3)**3, t, 0, inf", "1.5163860591519780182"),
        ("cbrt(t), t, -1, 2", "1.1398815748423097472"),
        ("softsign(t), t, -1, 2", "0.59453489189183561802"),
    ],
)
def test_digits_of_an_integral_are_proved(integral: str, digits: str, run: Run) -> None:
    count = len(digits.removeprefix("0.").replace(".", ""))
    assert run("eval", f"integrate({integral})", "--digits", str(count)).out == f"value  {digits}\n"


def test_derivatives_of_an_integral_are_proved(run: Run) -> None:
    result = run("eval", "integrate(exp(-k*t), t, 0, b)", "k=2", "b=1", "--digits", "25", "--json")
    found = json.loads(result.out)
    with mpmath.workdps(40):
        expected = mpmath.diff(lambda k: (1 - mpmath.exp(-k)) / k, 2)
        assert mpmath.nstr(mpmath.mpf(found["grad"]["k"]), 25) == mpmath.nstr(expected, 25)


def test_derivatives_across_a_branch_cut_are_proved(run: Run) -> None:
    """The derivatives are multiples of the value."""
    words = ("eval", "imag(integrate(2j*sqrt(p*(2j*t - 1 - 1j)), t, 0, 1))", "p=1", "--order", "2", "--digits", "20")
    done = run(*words, "--max-precision", "30", "--json").json
    assert done["value"] == "0.47520766279255650035"
    assert (done["grad"]["p"], done["derivatives"]["p,p"]) == ("0.23760383139627825018", "-0.11880191569813912509")


def test_derivatives_of_a_scaled_bessel_function_up_to_infinity_are_proved(run: Run) -> None:
    done = run("eval", "integrate(i0e(k*t)**6, t, 0, inf)", "k=1", "--digits", "20", "--json").json
    assert done["grad"]["k"] == f"-{done['value']}"


@pytest.mark.parametrize(
    ("integral", "value"),
    [
        # Across the branch cut, where the balls of a square root surround 0.
        ("2j*sqrt(2j*t - 1 - 1j), t, 0, 1", "(|…| < 1e-124)+0.47520766279255650035j"),
        ("2j/sqrt(2j*t - 1 - 1j), t, 0, 1", "(|…| < 1e-124)+0.39473645387123986416j"),
        ("2j*pi*zeta(2j*t - 1 - 1j), t, 0, 1", "(|…| < 1e-125)-0.29484200524788625088j"),
    ],
)
def test_a_part_of_an_integral_that_is_0_has_a_bound(integral: str, value: str, run: Run) -> None:
    done = run("eval", f"integrate({integral})", "--digits", "20")
    assert (done.status, done.err, done.out) == (0, "", f"value  {value}\n")


def test_digits_that_the_limits_allow_are_stated(run: Run) -> None:
    done = run("eval", "integrate(sin(t)**3, t, -1, 1)", "--digits", "20", "--max-steps", "20000")
    assert "digits, a result is not told from 0 (more would take more than --max-steps)" in done.err


def test_constants_of_derivatives_of_an_integrand_are_proved(run: Run) -> None:
    found = json.loads(run("eval", "integrate(erf(k*t), t, 0, 1)", "k=1.3", "--digits", "30", "--json").out)
    closed = json.loads(run("eval", "erf(k) + (exp(-k**2) - 1)/(k*sqrt(pi))", "k=1.3", "--digits", "30", "--json").out)
    assert (found["value"], found["grad"]["k"]) == (closed["value"], closed["grad"]["k"])


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("program", "closed"),
    [
        ("integrate(abs(t - k), t, 0, 1)", "k**2/2 + (1 - k)**2/2"),
        ("integrate(1 if t < k else b*t, t, 0, 2)", "k + b*(4 - k**2)/2"),
        ("integrate(floor(t/sqrt(k)), t, b, 0)", "3*sqrt(k) - 2*b"),
        ("integrate(sign(t - k)*exp(b*t), t, 0, 2)", "(exp(2*b) - 2*exp(b*k) + 1)/b"),
        ("integrate(min(t, k, b*t**2), t, 0, 2)", "b*(k/b)**1.5/3 + k*(2 - sqrt(k/b))"),
        ("integrate(where(t*t > b, 1, k), t, -2, 2)", "4 + 2*(k - 1)*sqrt(b)"),
        ("integrate(relu(t - k)**2*exp(-b*t), t, 0, inf)", "2*exp(-b*k)/b**3"),
        ("integrate(abs(t + k)*exp(-b*t**2), t, -inf, inf)", "exp(-b*k**2)/b + k*sqrt(pi/b)*erf(k*sqrt(b))"),
        ("integrate(ceil(t)*t**b, t, 0, 2)", "(2*2**(b + 1) - 1)/(b + 1)"),
        ("integrate(1 if k < t < 2*k else 0, t, 0, b)", "k + 0*b"),
    ],
)
def test_digits_of_an_integral_over_places_that_move_are_proved(program: str, closed: str, run: Run) -> None:
    words = [word for word in ("k=1/3", "b=5/4") if re.search(rf"\b{word[0]}\b", program)]
    found, expected = (run("eval", p, *words, "--digits", "22", "--order", "2", "--json") for p in (program, closed))
    numbers, proved = ({"value": x.json["value"], **x.json["grad"], **x.json["derivatives"]} for x in (found, expected))
    assert {key: Decimal(numbers[key]) for key in proved} == {key: Decimal(text) for key, text in proved.items()}


@pytest.mark.slow
def test_digits_over_thousands_of_jumps_are_proved(run: Run) -> None:
    """One of FLINT's examples."""
    done = run("eval", "integrate((exp(x) - floor(exp(x)))*sin(x + exp(x)), x, 0, 8)", "--digits", "20")
    assert done.out == "value  0.098651704478365206120\n"


@pytest.mark.slow
def test_second_derivatives_of_what_oscillates_are_proved_within_the_limits(run: Run) -> None:
    """One of FLINT's examples, moved."""
    program = "integrate(sin((1/1000 + (1 - k*x)**2)**(-3/2)), x, 0, 3)"
    done = run("eval", program, "k=1", "--digits", "20", "--order", "2", "--json").json
    assert (done["value"], done["derivatives"]["k,k"]) == ("0.74997436852719477011", "-0.92111810753655077769")


# The number of zeros of zeta up to the height 1000, by the argument principle: one of FLINT's examples.
ZEROS = (
    "(imag(lgamma(1/4 + 500j)) - 500*log(pi) - imag(integrate(1j*zeta(100 + 1j*t, n=1)/zeta(100 + 1j*t), t, 0, 1000))"
    " - imag(integrate(zeta(s + 1000j, n=1)/zeta(s + 1000j), s, 100, 1/2)))/pi + 1"
)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "value"), [(("--digits", "20"), "649." + "0" * 17), ((), "649.0")])
def test_zeros_of_zeta_are_counted_within_the_limits(words: tuple[str, ...], value: str, run: Run) -> None:
    assert run("eval", ZEROS, *words).out == f"value  {value}\n"


@pytest.mark.parametrize(
    ("integral", "value"),
    [
        # The whole interval is one ball, in which the sum of zeta converges.
        ("zeta(t), t, 2, 100", "98.605521788882600448"),
        ("zeta(t, n=2), t, 2, 100", "0.93754825431584375370"),
        ("real(zeta(5 + 1j*t)), t, 0, 1000", "1000.0376710403872681"),
    ],
)
def test_integrals_of_zeta_over_wide_intervals_are_proved(integral: str, value: str, run: Run) -> None:
    assert run("eval", f"integrate({integral})", "--digits", "20").out == f"value  {value}\n"


@pytest.mark.parametrize(
    "program",
    [
        # Bends that touch: there may be none, or two.
        "integrate(maximum((t - c)**2, 0), t, 0, 1)",
        "integrate(where(t < c, 1, 0), t, 0, 1/2)",
        "integrate(where(t < c, 1, 0)*where(t < 1/2, 1, 2), t, 0, 1)",
    ],
)
def test_derivatives_by_places_that_are_not_told_apart_are_refused(program: str, run: Run) -> None:
    done = run("eval", program, "c=1/2", "--digits", "20", "--order", "2", "--max-precision", "100")
    assert done.status == 1
    assert "the places at which the integrand switches" in done.err


def test_fail_on_inaccurate_is_a_status(run: Run) -> None:
    program = "integrate((1-t)**-0.95, t, 0, 1)"
    assert run("eval", program).status == 0
    assert run("eval", program, "--fail-on-inaccurate").status == 1


def test_integrals_stand_in_every_command(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n2,3\n")
    assert (
        run("map", "integrate(exp(-a*t), t, 0, b)", str(tmp_path / "rows.csv"))
        .out.splitlines()[1]
        .startswith("1,2,0.86466")
    )
    assert run("series", "integrate(exp(-t**2), t, 0, x)", "x=0").out.startswith("x - x**3/3 + x**5/10")
    assert "13" in run("check", "integrate(exp(-k*t), t, 0, b)", "k=1", "b=2").out
    fit = run("fit", "y ~ integrate(exp(-k*t), t, 0, x)", "x=[1,2,3]", "y=[0.63,0.86,0.95]", "k=2")
    assert fit.status == 0
    assert "1.0033" in fit.out


@pytest.mark.slow
def test_jumps_that_are_dense_are_all_found() -> None:
    """Of more than a thousand some were found, and derivatives were refused."""
    found = evaluated("integrate(where(t < k, 1, 0)*where(sin(1.3e4*t*k) > 0, 1, 2), t, 0, 1)", k=0.3)
    # By exact sums of half-waves.
    assert found.value == pytest.approx(0.449829803478898, rel=1e-12)
    assert found.grad is not None
    assert found.grad["k"] == pytest.approx(0.500567321737007, rel=1e-10)


@pytest.mark.slow
def test_a_jump_that_moves_is_refused_where_its_place_is_unknown() -> None:
    with pytest.raises(DifferentiationError, match="the places at which the integrand switches"):
        evaluated("integrate(where(t < k, 1, 0)*where(sin(1e5*t*k) > 0, 1, 2), t, 0, 1)", k=0.3)


# Jumps and bends just beside the middle of a panel, which no node of the rule sees.
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("c", [0.88, 1.148 + 1.6e-6, 1.148 - 1.6e-4, 1.98099])
def test_hidden_switches(c: float, order: int) -> None:
    a, b = 0.315, 1.981
    request = session.EvaluationRequest(
        parse("integrate(where(t < c, -1, 1), t, a, b)"), {"a": a, "b": b, "c": c}, ("c",), order=order
    )
    assert session.run(request).value == pytest.approx(a + b - 2 * c, rel=1e-13)
    bend = session.EvaluationRequest(parse("integrate(abs(t - c), t, a, b)"), {"a": a, "b": b, "c": c}, (), order=0)
    assert session.run(bend).value == pytest.approx(((b - c) ** 2 + (c - a) ** 2) / 2, rel=1e-13)


@pytest.mark.parametrize(
    "program", ["integrate(lambda x: (x, 2*x), 0, 1)", "nsum(lambda k: (k, 2*k), 1, 3)", "limit(lambda x: (x, x), 0)"]
)
def test_a_function_with_two_values_is_none_of_a_complex_number(run, program):
    done = run("eval", program)
    assert done.status == 1
    assert "the function has 2 values, and one is needed here" in done.err


def test_a_tail_that_has_not_begun_to_shrink_does_not_diverge(run: Run) -> None:
    done = run("eval", "integrate(x*sin(1e3*a*x)*exp(-x), x, 0, inf)", "a=1", "--no-grad", "--json")
    assert done.json["value"] == pytest.approx(2e3 / (1 + 1e6) ** 2, rel=1e-3)


def test_each_of_many_jumps_is_found(run: Run) -> None:
    done = run("eval", "integrate(floor(a*x)*exp(-x), x, 0, inf)", "a=2", "--json")
    root = math.exp(0.5)
    assert done.json["value"] == pytest.approx(1 / (root - 1), rel=1e-14)
    assert done.json["grad"]["a"] == pytest.approx(root / (4 * (root - 1) ** 2), rel=1e-13)
    assert not done.err


# The value and both derivatives by c where the function moves with it, by mpmath.
@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("function", "c", "expected"),
    [
        ("round(c*t)*t", 1.3, (11.78698224852071, 9.5584888484297, -22.0580511887)),
        ("trunc(c*(t - 1))", 1.3, (1.4615384615384615, 1.1834319526627219, -1.82066454255803)),
        ("mod(t, c)", 0.7, (1.0, 2.0, 20.0)),
        ("fmod(t, c)", 0.7, (1.0, 2.0, 20.0)),
        ("t // c", 0.7, (5.0, -10.0, 0.0)),
        ("frac(c*t)", 1.7, (1.4735294117647059, -0.69031141868512111, 6.10624872786485)),
        ("heaviside(t - c, 0.5)*t", 0.7, (4.255, -0.7, -1.0)),
        ("comb(t, c)", 0.7, (4.0794168843286741, 0.31901792658893519, -3.91239616711624)),
        ("clip(c*t, 0, 1)**2", 0.7, (2.0476190476190474, 1.3605442176870748, -3.887269193391642)),
    ],
)
def test_functions_that_round_or_clip(run: Run, function: str, c: float, expected: tuple[float, ...]) -> None:
    done = run("eval", f"integrate({function}, t, 0, 3)", f"c={c}", "--order", "2", "--json")
    found = [done.json["value"], done.json["grad"]["c"], done.json["derivatives"]["c,c"]]
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_a_singularity_at_the_end_of_its_panels(run: Run) -> None:
    """The logarithm of its distance from the end, 0, was an error."""
    maxwell = "integrate(x**2*exp(-x**2/(2*s**2))/s**3*sqrt(2/pi), x, 0, inf)"
    done = run("eval", maxwell, "s=1e-8", "--order", "2")
    assert done.out.startswith("value  0.99999999999")
    assert "the derivative by s has about 3 right digits" in done.err
    assert "s,s  0.0" in done.out


@pytest.mark.parametrize("width", [1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("step", ["tanh((x-a)/{})", "2*sigmoid((x-a)/{})-1", "erf((x-a)/{})"])
def test_steep_steps(step: str, width: float) -> None:
    """They were taken for singularities, whose places were not found: values were off by the width, and derivatives 0."""
    result = evaluated(f"integrate({step.format(width)}, x, 0, 1)", a=0.123456)
    assert result.value == pytest.approx(1 - 2 * 0.123456, rel=1e-12)
    assert result.grad["a"] == pytest.approx(-2, rel=1e-10)
    assert not result.warnings


@pytest.mark.parametrize(
    ("integral", "value"),
    [
        ("tanh((1-x)/1e-8), x, 0, 1", 1 - 1e-8 * math.log(2)),
        ("tanh(x/1e-8), x, 0, 1", 1 - 1e-8 * math.log(2)),
        ("exp(-(1-x)/1e-6) + x, x, 0, 1", 0.500001),
    ],
)
def test_layers_at_a_limit(integral: str, value: float) -> None:
    """What is a small part of the integral was not looked for."""
    result = evaluated(f"integrate({integral})")
    assert result.value == pytest.approx(value, rel=1e-12)
    assert not result.warnings


def test_a_singularity_between_neighbouring_floats_is_none_that_is_resolved() -> None:
    assert evaluated("integrate(where(x > 0.3, (x-0.3)**-0.5, 0), x, 0, 1)").value == pytest.approx(
        2 * math.sqrt(0.7), rel=1e-11
    )


def test_a_modulus_bends_and_does_not_jump(run: Run) -> None:
    """Its first derivatives were refused, too. Where it is 0 between the limits, those of order 2 are."""
    program = "integrate(sqrt(w**2 + (x-a)**2), x, 0, 1)"
    words = ("eval", program, "a=0.25", "w=0.5")
    by_a = math.hypot(0.5, 0.25) - math.hypot(0.5, 0.75)
    by_w = 0.5 * (math.asinh(0.75 / 0.5) + math.asinh(0.25 / 0.5))
    assert run(*words, "--json").json["grad"] == pytest.approx({"a": by_a, "w": by_w}, rel=1e-12)
    by_a_a = 0.25 / math.hypot(0.5, 0.25) + 0.75 / math.hypot(0.5, 0.75)
    assert run(*words, "--order", "2", "--json").json["derivatives"]["a,a"] == pytest.approx(by_a_a, rel=1e-12)
    done = run("eval", program, "a=0.25", "w=0", "--order", "2")
    assert "the places at which the integrand switches" in done.err


# Closed forms of integrals whose integrands move much more than they do, by a first or only parameter.
MOVING: dict[str, tuple[dict[str, float], Callable[..., Any]]] = {
    # The second derivative was off by 7e-4 without a warning.
    "1/(1e-8+(x-a)**2), x, 0, 1": (
        {"a": 0.3},
        lambda a: 1e4 * (mpmath.atan(1e4 * (1 - a)) + mpmath.atan(1e4 * a)),
    ),
    # From the upper limit to the lower one.
    "1/(1e-8+(x-a)**2), x, 1, 0": (
        {"a": 0.3},
        lambda a: -1e4 * (mpmath.atan(1e4 * (1 - a)) + mpmath.atan(1e4 * a)),
    ),
    # By both parameters, 2e-5.
    "1/(c+(x-a)**2), x, 0, 1": (
        {"a": 0.3, "c": 1e-6},
        lambda a, c: (mpmath.atan((1 - a) / mpmath.sqrt(c)) + mpmath.atan(a / mpmath.sqrt(c))) / mpmath.sqrt(c),
    ),
    # The derivative by the frequency, 2e-6.
    "sin(a*x)*exp(-0.001*x), x, 0, inf": ({"a": 1.0}, lambda a: a / (a * a + mpmath.mpf(0.001) ** 2)),
    "exp(-(x-a)**2/s), x, -inf, inf": ({"a": 3.0, "s": 1e-4}, lambda a, s: mpmath.sqrt(mpmath.pi * s) + 0 * a),
    "1/((x-c)**2+4) + 1/((x-a)**2+1e-8), x, -1, 3": (
        {"a": 0.5, "c": 1.0},
        lambda a, c: sum(
            (mpmath.atan((3 - p) / w) + mpmath.atan((1 + p) / w)) / w for p, w in ((c, 2), (a, mpmath.mpf("1e-4")))
        ),
    ),
}


@pytest.mark.parametrize("integral", MOVING)
def test_derivatives_of_integrals_whose_integrands_move(integral: str) -> None:
    given, known = MOVING[integral]
    result = evaluated(f"integrate({integral})", order=2, **given)
    assert not result.warnings
    with mpmath.workdps(40):
        point = [mpmath.mpf(value) for value in given.values()]
        for key, found in {**(result.grad or {}), **(result.derivatives or {})}.items():
            orders = tuple(key.split(",").count(name) for name in given)
            right = float(mpmath.diff(known, tuple(point), orders))
            assert float(found) == pytest.approx(right, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize(
    ("integral", "given"),
    [
        ("exp(-b*x**2)*cos(a*x), x, 0, inf", {"a": 0.3, "b": 0.001}),
        ("sin(a*x)*exp(-c*x), x, 0, inf", {"a": 1.0, "c": 0.001}),
    ],
)
def test_derivatives_with_few_digits_are_reported(integral: str, given: dict[str, float]) -> None:
    """They were printed with 7 wrong digits and more, as their errors were small beside the magnitude of the integrand."""
    result = evaluated(f"integrate({integral})", order=2, **given)
    assert any(w.message.startswith("a derivative of 'integrate' is accurate to about") for w in result.warnings)


@pytest.mark.parametrize(
    "integral", ["x*cos(a*x), x, -1, 1", "exp(-(x-a)**2), x, -inf, inf", "sin(a*x)*exp(-x*x), x, -6, 6"]
)
def test_derivatives_that_are_0_are_not_reported(integral: str) -> None:
    for a in (0.0, 1.0, 2.0):
        assert not evaluated(f"integrate({integral})", order=2, a=a).warnings


@pytest.mark.parametrize(
    ("integral", "left"),
    [
        ("min(x, 2*a), x, -1, 2", (0.0, 0.0)),
        ("abs(x - 2*a), x, -1, 2", (6.0, 8.0)),
        ("where(x < 2*a, 1, 2), x, -1, 2", (-2.0, 0.0)),
    ],
)
def test_a_switch_at_a_limit_is_reported(integral: str, left: tuple[float, float]) -> None:
    """The derivatives of one side were printed without a warning."""
    result = evaluated(f"integrate({integral})", order=2, a=1.0)
    (warning,) = result.warnings
    assert warning.code == "nonsmooth"
    assert "switches at the limit 2" in warning.message
    assert [float((result.grad or {})["a"]), float((result.derivatives or {})["a,a"])] == pytest.approx(left)


@pytest.mark.parametrize("integral", ["abs(x - a), x, a, 3", "where(x < a, 1, 2), x, 0, a", "abs(x - a), x, -1, 2"])
def test_a_switch_that_a_limit_moves_with_is_not_reported(integral: str) -> None:
    assert not evaluated(f"integrate({integral})", order=2, a=1.0).warnings


@pytest.mark.parametrize(
    ("integrand", "value"),
    [
        ("where((t > 0.123456) & (t < 0.123457), 1e6, 0)", 1.0),
        ("where(abs(t - 0.123456) < 1e-7, 1e7, 0)", 2.0),
        ("where((t - 0.123456)**2 < 1e-12, 1e6, 0)", 2.0),
        ("where(abs(sin(200*t)) < 1e-6, 1e6, 0)", 0.635),
        ("maximum(0, 1 - 1e7*abs(t - 0.3))*1e7", 1.0),
    ],
)
def test_a_narrow_pulse_is_integrated(run, integrand, value):
    """The first one was 0, as a singularity that is located otherwise, and the second 2.000015."""
    found = run("eval", f"integrate({integrand}, t, 0, 1)", "--json").json
    assert found["value"] == pytest.approx(value, rel=1e-8)


# Derivatives that are improper integrals, or whose integrand is singular at a place that moves, by closed forms.
@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("program", "a", "expected"),
    [
        ("integrate(abs(x-a)**1.5, x, 0, 1)", 0.3, (-0.42134525132230305, 2.0765738760588625)),
        ("integrate(abs(x-a)**1.5, x, a, 1)", 0.3, (-0.58566201857385288, 1.2549900398011133)),
        ("integrate(abs(x-a)**0.5, x, 0, 1)", 0.3, (-0.2889374690289096, 1.5104852338424735)),
        ("integrate(1/sqrt(x**2+a**2), x, 0, 1)", 1e-8, (-1e8, 1e16)),
        ("integrate(1/sqrt(x**2+a**2), x, 0, 1)", 0.3, (-3.1927542840705046, 11.521253991447081)),
        ("integrate(hypot(x-0.5, a*x), x, 0, 1)", 0.1, (0.171945678348, 1.17791662893)),
        ("integrate(cos(a*x)/(1+x**2), x, 0, inf)", 1.0, (-PI / 2 / math.e, PI / 2 / math.e)),
        ("integrate(cos(a*x)/(1+x**2), x, -inf, inf)", 2.0, (-PI * math.exp(-2), PI * math.exp(-2))),
        ("integrate(cos(a*x**2), x, 0, inf)", 1.0, (-math.sqrt(PI / 32), 0.75 * math.sqrt(PI / 8))),
        ("integrate(sin(a*x)/x, x, 0, inf)", 1.0, (0.0, 0.0)),
    ],
)
def test_derivatives_that_are_improper(program, a, expected):
    """They were refused."""
    found = evaluated(program, 2, a=a)
    assert found.grad is not None
    assert found.derivatives is not None
    assert found.grad["a"] == pytest.approx(expected[0], rel=1e-10, abs=1e-12)
    assert found.derivatives["a,a"] == pytest.approx(expected[1], rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("program", ["cos(a*x)/(1+x**2), x, 0, inf", "sqrt((x-0.5)**2+a**2), x, 0, 1"])
def test_derivatives_that_do_not_exist_are_refused(run, program):
    done = run("eval", f"integrate({program})", "a=0", "--order", "2")
    assert done.status == 1
    assert "derivative" in done.err


@pytest.mark.parametrize(
    ("program", "s", "expected"),
    [
        ("nsum(1/k**s, k, 1, inf)", "1.05", -399.9276711917309877),
        ("nsum(1/k**s, k, 1, inf)", "1.1", -99.92816307577072242757215),
        ("integrate(log(x)*x**(s-2), x, 0, 1)", "1.05", 16000.0),
    ],
)
def test_slow_decay_with_logarithms_has_no_false_warning(run, program, s, expected):
    """Its error was said to be as large as the sum, or the sum to diverge."""
    done = run("eval", program, f"s={s}", "--json")
    assert done.json["grad"]["s"] == pytest.approx(expected, rel=1e-11)
    assert "warnings" not in done.json


def test_a_sum_whose_terms_grow_for_long_converges(run):
    done = run("eval", "nsum(log(k)**2/k**s, k, 1, inf)", "s=1.05", "--json")
    assert done.json["grad"]["s"] == pytest.approx(-960000.0019385624, rel=1e-9)
    assert "diverges" in run("eval", "nsum(log(k)**3/k, k, 1, inf)").err
