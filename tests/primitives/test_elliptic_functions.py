"""Tests Weierstrass's elliptic function beside FLINT's values, and its derivatives by both operands beside proved ones."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from flint import acb, acb_series, arb

from gradcli.arrays.flint.balls import precise
from gradcli.primitives.entries.special_functions.elliptic import (
    eisenstein,
    elliptic_p,
    elliptic_p_prime,
    theta_slope,
)


def drawn(count: int) -> list[tuple[complex, complex]]:
    """Points, and ratios of periods down to the real axis, whose region is reached by many inversions."""
    source = random.Random(3)
    points = []
    for _ in range(count):
        z = complex(source.uniform(-1, 1), source.uniform(-1, 1)) * 10 ** source.uniform(-3, 1)
        points.append((z, complex(source.uniform(-3, 3), 10 ** source.uniform(-2, 1.5))))
    return points


def number(parts: dict[str, Any]) -> complex:
    return complex(float(parts["re"]), float(parts["im"]))


def expected(z: complex, tau: complex) -> dict[Any, complex]:
    with precise(300):
        point, ratio, pi = acb(z.real, z.imag), acb(tau.real, tau.imag), arb.pi()
        eta = 2 * acb(0.5).elliptic_zeta(ratio)
        g2, g3 = ratio.elliptic_invariants()
        p = acb_series([point, 1], prec=2).elliptic_p(ratio)
        found: dict[Any, Any] = {
            "p": p[0],
            "slope": p[1],
            "theta": point.elliptic_zeta(ratio) - eta * point,
            2: 3 * eta / pi**2,
            4: 3 * g2 / (4 * pi**4),
            6: 27 * g3 / (8 * pi**6),
        }
        return {name: complex(value) for name, value in found.items()}


@pytest.mark.parametrize("as_arrays", [False, True])
def test_values_are_those_of_flint(as_arrays: bool) -> None:
    points = drawn(60)
    wanted = [expected(*point) for point in points]
    if as_arrays:
        z, tau = (np.array(operand) for operand in zip(*points))
        names: dict[Any, Any] = {
            "p": elliptic_p(z, tau),
            "slope": elliptic_p_prime(z, tau),
            "theta": theta_slope(z, tau),
        }
        names |= {k: eisenstein(tau, k) for k in (2, 4, 6)}
        found = [{name: values[i] for name, values in names.items()} for i in range(len(points))]
    else:
        found = [
            {"p": elliptic_p(z, tau), "slope": elliptic_p_prime(z, tau), "theta": theta_slope(z, tau)}
            | {k: eisenstein(tau, k) for k in (2, 4, 6)}
            for z, tau in points
        ]
    for numbers, right in zip(found, wanted):
        for name, value in right.items():
            # Far from 0 a point is known to fewer digits of its cell.
            assert complex(numbers[name]) == pytest.approx(value, rel=1e-11), name


def test_it_has_the_periods_and_the_equation() -> None:
    z, tau = 0.31 + 0.17j, 0.2 + 0.9j
    p, slope = complex(elliptic_p(z, tau)), complex(elliptic_p_prime(z, tau))
    assert complex(elliptic_p(z + 3 - 2 * tau, tau)) == pytest.approx(p, rel=1e-13)
    assert complex(elliptic_p(-z, tau)) == p
    with precise(100):
        g2, g3 = (complex(g) for g in acb(tau.real, tau.imag).elliptic_invariants())
    assert slope**2 == pytest.approx(4 * p**3 - g2 * p - g3, rel=1e-13)


@pytest.mark.parametrize("tau", ["0.5", "-1j", "1+0j"])
def test_a_lattice_needs_a_ratio_above_the_real_axis(tau: str, run: Any) -> None:
    for words in ((), ("--digits", "20")):
        done = run("eval", "elliptic_p(0.3, tau)", f"tau={tau}", "--no-grad", *words)
        assert done.out in ("value  nan\n", "value  nan+nanj\n")
        assert "'elliptic_p' gives" in done.err


def test_a_pole_has_no_value(run: Any) -> None:
    for words in ((), ("--digits", "20")):
        assert (
            run("eval", "elliptic_p(z, tau)", "z=-2+2j", "tau=0.5+1j", "--no-grad", *words).out == "value  nan+nanj\n"
        )


@pytest.mark.parametrize(("z", "tau"), [("0.3+0.2j", "1j"), ("-0.7+0.45j", "0.4+0.8j"), ("0.4", "0.2+0.3j")])
def test_derivatives_are_those_of_differences_and_proved(z: str, tau: str, run: Any) -> None:
    """By z and by tau, to order 2: each of the rules, of the internal functions too."""
    words = ("elliptic_p(z, tau)", f"z={z}", f"tau={tau}")
    assert "no" not in run("check", *words).out.split()
    found = run("eval", *words, "--order", "2", "--json").json
    proved = run("eval", *words, "--order", "2", "--digits", "20", "--json").json

    for part in ("grad", "derivatives"):
        for key, value in proved[part].items():
            assert number(found[part][key]) == pytest.approx(number(value), rel=1e-11), key


def test_derivatives_by_the_ratio_are_those_of_differences(run: Any) -> None:
    with precise(400):
        z, h = acb("0.3", "0.2"), acb(arb(10) ** -20)
        tau = acb("0.1", "1.2")
        first = complex((z.elliptic_p(tau + h) - z.elliptic_p(tau - h)) / (2 * h))
        second = complex((z.elliptic_p(tau + h) - 2 * z.elliptic_p(tau) + z.elliptic_p(tau - h)) / (h * h))
    found = run("eval", "elliptic_p(z, tau)", "z=0.3+0.2j", "tau=0.1+1.2j", "--order", "2", "--json").json
    assert number(found["grad"]["tau"]) == pytest.approx(first, rel=1e-12)
    assert number(found["derivatives"]["tau,tau"]) == pytest.approx(second, rel=1e-12)


def test_derivatives_have_names_of_their_own_in_formulas(run: Any) -> None:
    words = ("diff", "elliptic_p(z, tau)", "--wrt", "z", "--to", "latex", "--order")
    assert run(*words, "1").out == "\\wp'\\left(z, \\tau\\right)\n"
    assert "\\mathrm{E}\\left(\\tau, \\mathrm{k}=\\text{4}\\right)" in run(*words, "2").out
    # Formulas of real numbers have no complex constants but 1j.
    assert (
        "these complex numbers have no formula"
        in run("diff", "elliptic_p(z, tau)", "--wrt", "tau", "--to", "latex").err
    )
    assert "cannot be written as text" in run("diff", "elliptic_p(z, tau)", "--wrt", "z").err


# The coefficient of z**10, by the integral along the edges of the square of periods: one of FLINT's examples.
COEFFICIENT = (
    "f(z) = elliptic_p(z, tau)/z**11; "
    "integrate(1j*f(0.5 + 1j*t) - f(t + 0.5j) - 1j*f(-0.5 + 1j*t) + f(t - 0.5j), t, -1/2, 1/2)/(2j*pi)"
)


@pytest.mark.slow
def test_a_laurent_coefficient_is_proved_by_its_integral(run: Any) -> None:
    value = run("eval", COEFFICIENT, "tau=1j", "--digits", "20", "--no-grad").out
    assert value.startswith("value  43.327339141107674122+(|…| < 1e-")
    moved = run("eval", COEFFICIENT, "tau=0.1+1.2j", "--digits", "20").out
    assert moved == (
        "value  23.258077250277573433+1.8536246831600864385j\n\nby   derivative\n"
        "tau  -19.534483500347225843+9.9893469630573397467j\n"
    )
