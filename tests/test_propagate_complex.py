"""Tests `gradcli propagate` of complex values: both parts with their covariance, modulus and angle."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradcli import propagate
from gradcli.errors import BindingError, EvaluationError, UsageError

DIVIDER = "1/(1 + 1j*w*R*C)"
# With x = w R C = 2 and the relative uncertainties 0.01 of R and of C.
X, U_X = 2.0, 2.0 * math.hypot(0.01, 0.01)
# The derivatives by x of both parts of 1/(1 + i x), of the modulus and of the angle.
SLOPES = {
    "real": -2 * X / (1 + X**2) ** 2,
    "imag": (X**2 - 1) / (1 + X**2) ** 2,
    "abs": -X / (1 + X**2) ** 1.5,
    "angle": -1 / (1 + X**2),
}
VALUES = {"real": 1 / (1 + X**2), "imag": -X / (1 + X**2), "abs": (1 + X**2) ** -0.5, "angle": -math.atan(X)}


def test_a_divider():
    found = propagate(DIVIDER, w=1000, R=(2000, 20), C=(1e-6, 1e-8))
    assert found.value == pytest.approx(VALUES, rel=1e-14)
    assert found.u == pytest.approx({name: abs(slope) * U_X for name, slope in SLOPES.items()}, rel=1e-13)
    parts = np.asarray([SLOPES["real"], SLOPES["imag"]]) * U_X
    assert found.covariance == pytest.approx(np.outer(parts, parts), rel=1e-13)
    assert found.budget["imag"][0].sensitivity == pytest.approx(SLOPES["imag"] * X / 2000)


def test_on_the_command_line(run):
    words = (DIVIDER, "w=1000", "R=2000±20", "C=1e-6±1e-8")
    found = run("propagate", *words, "--json").json
    assert found["value"] == pytest.approx(VALUES)
    assert np.shape(found["covariance"]) == (2, 2)
    table = run("propagate", *words, "--quiet").out
    assert "abs                   0.4472 ± 0.0051" in table
    assert (
        "covariance  real        imag\nreal        2.048e-05   -1.536e-05\nimag        -1.536e-05  1.152e-05" in table
    )


def test_independent_parts_and_their_correlation():
    """Of a + i b with a = 3 and b = 4, by the law of propagation."""
    found = propagate("complex(a, b)", a=(3, 0.1), b=(4, 0.2), correlation={"a,b": 0.5})
    covariance = np.asarray([[0.01, 0.01], [0.01, 0.04]])
    assert found.covariance == pytest.approx(covariance)
    assert found.u["abs"] == pytest.approx(math.sqrt(np.asarray([0.6, 0.8]) @ covariance @ [0.6, 0.8]))
    assert found.u["angle"] == pytest.approx(math.sqrt(np.asarray([-0.16, 0.12]) @ covariance @ [-0.16, 0.12]))


def test_several_complex_values():
    found = propagate("a = 1j*x; b = x + 2j; [a, b]", x=(3, 0.1))
    assert [*found.value] == [f"{part}({name})" for part in ("real", "imag", "abs", "angle") for name in "ab"]
    assert found.value["abs(b)"] == pytest.approx(math.sqrt(13))
    assert found.covariance == pytest.approx(0.01 * np.outer([0, 1, 1, 0], [0, 1, 1, 0]))
    table = found.report()[-1]
    assert [row[0] for row in table.rows] == ["real(a)", "real(b)", "imag(a)", "imag(b)"]
    found = propagate("v = exp(1j*[1, 2]*x)", x=(0.5, 0.1))
    assert found.value["angle(value[1])"] == pytest.approx(1.0)


def test_own_names_of_a_program_do_not_matter():
    found = propagate("real(x) = 7; abs(z) = 9; complex(x, 4)", x=(3, 0.1))
    assert found.value == pytest.approx({"real": 3, "imag": 4, "abs": 5, "angle": math.atan2(4, 3)})


def test_samples_agree():
    found = propagate(DIVIDER, w=1000, R=(2000, 20), C=(1e-6, 1e-8), samples=20_000)
    for name, u in found.u.items():
        assert found.monte_carlo[name].u == pytest.approx(u, rel=0.05)


def test_zero_has_no_linear_modulus_and_angle():
    found = propagate("complex(a, b)", a=(0, 0.1), b=(0, 0.1))
    assert found.u["real"] == pytest.approx(0.1)
    assert math.isnan(found.u["abs"])
    assert math.isnan(found.u["angle"])
    assert any(warning.code == "nonsmooth" for warning in found.warnings)


def test_a_jump_of_the_angle_is_warned_of():
    found = propagate("complex(a, b)", a=(-1, 0.1), b=(0.05, 0.1))
    assert any("jumps" in warning.message for warning in found.warnings)


@pytest.mark.parametrize("z", ["(1±0.1)+(2±0.1)j", "1+2j±0.1", "1±2j", "[1±0.1, 2j]", 1 + 2j, np.asarray([1j])])
def test_inputs_are_real(z):
    with pytest.raises(BindingError, match="inputs of a propagation are real") as caught:
        propagate("a*z", a=(1, 0.1), z=z)
    assert "complex(a, b)" in caught.value.hint


def test_what_is_not_propagated():
    with pytest.raises(UsageError, match="no proved digits of complex values"):
        propagate("1j*x", x="1±0.1", digits=20)
    with pytest.raises(EvaluationError, match="its last statement has no name"):
        propagate("if x > 0 { 1j*x } else { x + 0j }", x=(1, 0.1))
