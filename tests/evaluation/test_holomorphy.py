"""Tests which programs are proved to be holomorphic although operations in them are not, and that no others are."""

from __future__ import annotations

import cmath

import pytest

# Programs by the derivative that they have.
HOLOMORPHIC = [
    ("complex(real(z)**2 - imag(z)**2, 2*real(z)*imag(z))", lambda z: 2 * z),
    ("x = real(z); y = imag(z); complex(x**3 - 3*x*y**2, 3*x**2*y - y**3)", lambda z: 3 * z**2),
    ("conj(z)/abs(z)**2", lambda z: -1 / z**2),
    ("abs(z)**2/conj(z)", lambda _: 1),
    ("exp(real(z))*complex(cos(imag(z)), sin(imag(z)))", cmath.exp),
    ("complex(sin(real(z))*cosh(imag(z)), cos(real(z))*sinh(imag(z)))", cmath.cos),
    ("complex(sin(2*real(z)), sinh(2*imag(z)))/(cos(2*real(z)) + cosh(2*imag(z)))", lambda z: 1 / cmath.cos(z) ** 2),
    ("log(abs(z)) + 1j*angle(z)", lambda z: 1 / z),
    ("complex(log(hypot(real(z), imag(z))), atan2(imag(z), real(z)))", lambda z: 1 / z),
    ("polar(abs(z), angle(z))", lambda _: 1),
    ("polar(sqrt(abs(z)), angle(z)/2)", lambda z: 0.5 / cmath.sqrt(z)),
    ("abs(z)**1.5*exp(1.5j*angle(z))", lambda z: 1.5 * cmath.sqrt(z)),
    ("abs(z)*sgn(z)", lambda _: 1),
    ("conj(exp(conj(z)))", cmath.exp),
    ("(z*conj(z) + conj(z))/conj(z)", lambda _: 1),
    ("where(z == 0, 1, (real(z) + 1j*imag(z))**2)", lambda z: 2 * z),
]


@pytest.mark.parametrize(("program", "derivative"), HOLOMORPHIC)
@pytest.mark.parametrize("z", [1 + 2j, -0.3 + 0.7j, 0.4 - 1.1j, -1.5 - 0.2j])
def test_these_are_proved_to_be_holomorphic(run, program, derivative, z):
    grad = run("eval", program, f"z={z}", "--json").json["grad"]["z"]
    assert complex(grad["re"], grad["im"]) == pytest.approx(complex(derivative(z)), rel=1e-9)


def test_inputs_are_proved_together(run):
    program = "complex(real(z)*real(w) - imag(z)*imag(w), real(z)*imag(w) + imag(z)*real(w))*a"
    grad = run("eval", program, "z=1+2j", "w=3-1j", "a=2", "--json").json["grad"]
    assert grad == {"z": {"re": 6.0, "im": -2.0}, "w": {"re": 2.0, "im": 4.0}, "a": {"re": 5.0, "im": 5.0}}
    mixed = "complex(real(z)*real(w) + imag(z)*imag(w), real(z)*imag(w) - imag(z)*real(w))"
    assert "not holomorphic" in run("eval", mixed, "z=1+2j", "w=3-1j").err


@pytest.mark.parametrize(
    "program",
    [
        "z*conj(z)**2",
        "abs(z) + 0j",
        # Almost z**2.
        "complex(real(z)**2 - imag(z)**2, 2*real(z)*imag(z) + 1e-17*real(z))",
        "complex(real(z)/3, imag(z)*0.333333333333333)",
        # Piecewise holomorphic.
        "where(real(z) > 0, real(z) + 1j*imag(z), -z)",
        "where(imag(z) == 0, 5, real(z) + 1j*imag(z))",
        "where(z == conj(z), 1, real(z) + 1j*imag(z))",
        "z*floor(real(z))",
        "z*round(imag(z))",
        "(real(z) + 1j*imag(z))*int(abs(z))/abs(z)**2*conj(z)",
        "z*isreal(z) + conj(z)*iscomplex(z)",
        "z*sign(imag(z))",
        "z*abs(real(z))/real(z)",
        "maximum(real(z), 0)/real(z)*z",
        # The sum of the squares of sine and cosine of different arguments, which is 1 at 0 alone.
        "z*(sin(real(z))**2 + cos(imag(z))**2)",
        "sqrt(conj(z))**2",
        "log(conj(z)) + log(z)",
    ],
)
def test_nothing_is_claimed_of_others(run, program):
    done = run("eval", program, "z=0.5+0.5j")
    assert done.status == 1
    assert "error: the program is not holomorphic, or not known to be" in done.err


@pytest.mark.parametrize("program", ["abs(z)*sgn(z)", "polar(abs(z), angle(z))", "abs(z)*exp(1j*angle(z))"])
def test_there_is_no_proof_where_a_modulus_is_0(run, program):
    assert "not holomorphic, or not known to be" in run("eval", program, "z=0j").err
