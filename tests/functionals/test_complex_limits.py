"""Limits of complex values, by complex parameters and at complex points, with their derivatives."""

from __future__ import annotations

import cmath

import mpmath
import pytest

A = 0.7 + 1.3j


def number(value):
    return complex(value["re"], value["im"]) if isinstance(value, dict) else value


# By the parameter a, limits as functions of it.
LIMITS = {
    "limit((exp(a*h) - 1)/h, h, 0)": lambda a: a,
    "limit(sin(a*h)/(a*h), h, 0)": lambda a: mpmath.mpc(1),
    "limit(log(1 + a*h)/h, h, 0)": lambda a: a,
    "limit((1 - cos(a*h))/h**2, h, 0)": lambda a: a**2 / 2,
    "limit((1 + a/n)**n, n, inf)": mpmath.exp,
    "limit((x + a)/(a*x - 1), x, inf)": lambda a: 1 / a,
    "limit((a**h - 1)/h, h, 0)": mpmath.log,
    "limit(cos(a*h)**(1/h**2), h, 0)": lambda a: mpmath.exp(-(a**2) / 2),
    "limit(tanh(a*h)/sin(h), h, 0)": lambda a: a,
    "limit(atan(a*h)/log1p(h), h, 0)": lambda a: a,
    "limit((sqrt(1 + a*h) - 1)/expm1(h), h, 0)": lambda a: a / 2,
    "limit(sqrt(n**2 + a*n) - n, n, inf)": lambda a: a / 2,
    "limit((exp(z*a) - 1)/z, z, 0j)": lambda a: a,
    "limit((z**2 + 1)/(z - 1j)*a, z, 1j)": lambda a: 2j * a,
    "limit((z**3 - 1)/(z**2 - 1)*exp(a*z), z, 1+0j)": lambda a: 1.5 * mpmath.exp(a),
    "limit(sigmoid(a*h)*log2(2 + h)*exp2(a), h, 0)": lambda a: mpmath.mpf(2) ** a / 2,
}


@pytest.mark.cases(4)
@pytest.mark.parametrize("program", LIMITS)
def test_values_and_derivatives(run, program):
    found = run("eval", program, f"a={A.real}+{A.imag}j", "--json")
    assert found.status == 0, found.err
    with mpmath.workdps(30):
        assert number(found.json["value"]) == pytest.approx(complex(LIMITS[program](mpmath.mpc(A))), rel=1e-9)
        slope = complex(mpmath.diff(LIMITS[program], mpmath.mpc(A)))
    assert number(found.json["grad"]["a"]) == pytest.approx(slope, rel=1e-8, abs=1e-9)


def test_they_are_the_values_nearby(run):
    for program in ("(exp(a*h) - 1 - a*h)/h**2", "(a**h - 1)/sin(h)", "log(1 + a*h)/(exp(h) - 1)"):
        words = (f"a={A.real}+{A.imag}j", "--no-grad", "--json")
        limit = number(run("eval", f"limit({program}, h, 0)", *words).json["value"])
        near = number(run("eval", program, "h=1e-5", *words).json["value"])
        assert limit == pytest.approx(near, rel=1e-4)


def test_a_real_limit_of_complex_numbers(run):
    found = run("eval", "limit(abs(exp(a*h) - 1)/h, h, 0, '+')", "a=3+4j", "--json").json
    assert (found["value"], number(found["grad"]["a"])) == pytest.approx((5.0, 0.6 + 0.8j))
    found = run("eval", "limit(imag(log(-1 + 1j*h)), h, 0, '-')", "--json").json
    assert found["value"] == pytest.approx(-cmath.pi)


def test_order_digits_and_directions(run):
    words = ("eval", "limit((1 - cos(a*h))/h**2, h, 0)", "a=1+2j", "--order", "2")
    found = run(*words, "--json").json
    assert number(found["derivatives"]["a,a"]) == pytest.approx(1)
    assert run(*words, "--digits", "20").out.startswith("value  -1.5+2j\n\nby  derivative\na   1+2j\n")
    assert run("eval", "limit(conj(a)*sin(h)/h, h, 0)", "a=1+2j", "--wirtinger").out.endswith("conj(a)  1.0+0.0j\n")


def test_a_difference_quotient_of_a_complex_number(run):
    """A term that is 0 for all numbers was told to be infinite for other ones."""
    found = run("eval", "limit((exp(a + h) - exp(a))/h, h, 0)", "a=1+2j", "--json").json
    assert number(found["value"]) == pytest.approx(cmath.exp(1 + 2j), rel=1e-12)
    assert number(found["grad"]["a"]) == pytest.approx(cmath.exp(1 + 2j), rel=1e-12)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("limit(conj(z)/z, z, 0j)", "the limits along different directions differ: 1+0j and -1+0j"),
        ("limit((z/conj(z))**2, z, 0j)", "the limits along different directions differ"),
        ("limit(abs(h)*a/h, h, 0)", "-1-2j from the left, 1+2j from the right"),
        ("limit(sin(z)/z, z, 0j, '+')", "a limit at a complex point is one from all sides"),
        ("limit(gamma(a*h)*h, h, 0)", "'gamma' is not known by these"),
        ("limit(exp(a/h), h, 0)", "no limit was found at 0"),
        ("limit([a*h, h], h, 0)", "a limit is that of a function whose value is a number"),
        ("limit(conj(a)*h, h, 1)", "the program is not holomorphic, or not known to be: 'limit' of a complex input"),
    ],
)
def test_what_is_refused(run, program, message):
    done = run("eval", program, "a=1+2j") if "a" in program.replace("abs", "") else run("eval", program)
    assert done.status
    assert message in done.err
    assert "internal" not in done.err


def test_digits_of_a_limit_are_not_those_of_floats(run):
    """Those of 1/log(2) differ from the ones that its float has from the 17th on."""
    done = run("eval", "limit(log2(1 + x)/x, x, 0, '+')", "--digits", "25")
    assert done.status == 1 or done.out == "value  1.442695040888963407359925\n"
