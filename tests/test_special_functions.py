"""Special functions by the names of their libraries: values, gradients, formulas, and derivatives that are not known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import gradcli
from tests.test_pasted_code import value_and_grad

SPECIAL = [
    ("scipy.special.jv(2.5, x)", special.jv(2.5, 3.0), special.jvp(2.5, 3.0)),
    ("scipy.special.jv(-3, x)", special.jv(-3, 3.0), special.jvp(-3, 3.0)),
    ("torch.special.bessel_y0(x)", special.y0(3.0), -special.y1(3.0)),
    ("torch.special.scaled_modified_bessel_k1(x)", special.k1e(3.0), special.k1e(3.0) * 2 / 3 - special.k0e(3.0)),
    ("torch.igamma(2, x)", special.gammainc(2, 3.0), 3 * np.exp(-3.0)),
    ("jax.scipy.special.betainc(2, 3, x/6)", special.betainc(2, 3, 0.5), 12 * 0.5**3 / 6),
    ("scipy.special.zeta(x, 2) + zeta(4) - zeta(x, 1)", np.pi**4 / 90 - 1, 0.0),
    ("lambertw(x*exp(x))", 3.0, 4 / 4),
    ("lambertw(-x*exp(-x), -1)", -3.0, -1.0),
    ("scipy.special.expn(2, x)", special.expn(2, 3.0), -special.exp1(3.0)),
]


@pytest.mark.parametrize(("program", "value", "gradient"), SPECIAL)
def test_special_functions(program, value, gradient):
    found, by = value_and_grad(program, x=3.0)
    np.testing.assert_allclose(found, value, 1e-13)
    np.testing.assert_allclose(by["x"], gradient, 1e-12, 1e-15)


@pytest.mark.parametrize(("a", "b"), [(-0.4, 1.2), (1.2, -0.4), (-1.5, -1.2), (-2.5, -0.5), (-1.5, 0.5), (0.7, 1.3)])
def test_beta_has_its_sign_where_an_operand_is_negative(a, b):
    found = gradcli.compile("beta(a, b)")(a=a, b=b)
    np.testing.assert_allclose(found, special.beta(a, b), 1e-14)


@pytest.mark.parametrize("program", ["gammainc(a, x)", "gammaincc(a, x)", "betainc(a, 2, x)", "jv(a, x)"])
def test_a_derivative_that_is_not_known_is_an_error_unless_it_is_not_asked_for(run, program):
    outcome = run("eval", program, "a=1.5", "x=0.5", "--json")
    assert outcome.error["kind"] == "differentiation"
    assert "is not known" in outcome.error["message"]
    assert run("eval", program, "a=1.5", "x=0.5", "--wrt", "x").status == 0


@pytest.mark.parametrize(
    "program",
    ["k0e(x)", "i0e(x)", "i1e(x)", "k1e(x)", "dawsn(x)", "ellipk(x)", "ellipe(x)", "expn(1, x)", "gammainc(2, x)"],
)
def test_formulas_of_derivatives_that_cancel_are_in_functions_that_have_a_name(run, program):
    for order in ("1", "3"):
        found = run("diff", program, "--order", order).out.strip()
        expected = gradcli.compile(f"diff({program}, x, {order})")(x=0.7)
        assert gradcli.compile(found)(x=0.7) == pytest.approx(expected, rel=1e-10)


def test_bessel_functions_of_any_order_at_zero():
    assert [gradcli.iv(v, 0.0) for v in (0.0, 2.0, -0.6)] == [1.0, 0.0, np.inf]


def test_the_sign_of_gamma_is_smooth_between_whole_numbers(run):
    outcome = run("eval", "sum(gammasgn(x))", "x=[-2.5, -1.5, -0.5, 2]", "--json")
    assert outcome.json["value"] == 0.0
    assert "warnings" not in outcome.json
