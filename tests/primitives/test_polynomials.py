"""Tests polynomials: their values are NumPy's, and the derivatives of their roots those of differences."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from gradcli import func, roots, tensor
from tests.complex_checks import check_gradients

CUBIC, COMPLEX = np.array([1.0, -6.0, 11.0, -6.5]), np.array([1 + 1j, 2, 0.5j, 3])


def curved(p):
    return (abs(roots(p) - 0.3) ** 3).sum()


def ordered(x):
    return np.sort_complex(np.round(np.asarray(x), 12))


@pytest.mark.parametrize(
    "p", [CUBIC, COMPLEX, [0.0, 0.0, *CUBIC], [1.0, 2.0, 3.0, 0.0], [2.0, 1.0], [5.0], [0.0, 0.0], []]
)
def test_roots_are_numpys(p):
    found = roots(tensor(np.array(p)))
    assert found.dtype == "complex128"
    np.testing.assert_allclose(ordered(found), ordered(np.roots(p)), atol=1e-11)


def test_roots_are_polished():
    found = np.sort(np.asarray(roots(tensor(np.poly(np.arange(1.0, 16.0))))).real)
    assert np.abs(found - np.arange(1, 16)).max() < 3e-6


@pytest.mark.parametrize("p", [CUBIC, COMPLEX])
def test_derivatives_of_roots(p):
    check_gradients(curved, p, 1e-4)
    v, step = np.roll(p, 1), 1e-6
    after, before = (np.asarray(roots(tensor(p + sign * step * v))) for sign in (1, -1))
    found = func.jvp(roots, (tensor(p),), (tensor(v),))[1]
    np.testing.assert_allclose(found, (after - before) / (2 * step), rtol=1e-6)


def test_a_leading_coefficient_0_has_the_derivative_of_the_other_roots():
    p = tensor([0.0, 1.0, -3.0, 2.0], requires_grad=True)
    gradcli.real(roots(p)).sum().backward()
    # The roots 1 and 2 move by -root**k/p'(root), where p' is -1 and 1.
    np.testing.assert_allclose(p.grad, [1 - 8, 1 - 4, 1 - 2, 1 - 1], atol=1e-12)


def test_rows_have_their_own_roots():
    both = np.stack([CUBIC, 2 * CUBIC + [1, 0, -1, 3]])
    for row, found in zip(both, func.vmap(roots)(tensor(both))):
        np.testing.assert_allclose(ordered(found), ordered(np.roots(row)), atol=1e-11)


@pytest.mark.parametrize("p", ["[1,-2,1]", "[1,-3,3,-1]", "[0,1,-7,18,-20,8]"])
def test_a_multiple_root_has_a_warning(run, p):
    done = run("eval", "sum(abs(roots(p)))", f"p={p}", "--json")
    assert set(np.ravel(done.json["grad"]["p"])) == {"NaN"}
    assert "the derivative of 'roots' is nan" in done.json["warnings"][0]["message"]


def test_close_roots_have_derivatives(run):
    done = run("eval", "real(max(real(roots([1, -b, c]))))", "b=2.0001", "c=1", "--json")
    assert done.json["grad"]["b"] == pytest.approx(0.5 + 2.0001 / (2 * np.sqrt(2.0001**2 - 4)), rel=1e-9)


def test_a_program(run):
    done = run("eval", "sum(abs(np.roots([1, -b, c]))**2)", "b=3", "c=2", "--json")
    # The sum of the squares of the real roots is b**2 - 2*c.
    assert done.json["value"] == pytest.approx(5)
    assert done.json["grad"] == pytest.approx({"b": 6, "c": -2})


def test_polynomials_with_tensors_among_their_coefficients():
    a = tensor(2.0, requires_grad=True)
    value = gradcli.polyval([a, 1.0, 3.0], tensor(2.0))
    value.backward()
    assert (float(value.detach()), float(a.grad)) == (13.0, 4.0)
    np.testing.assert_array_equal(np.polyval(tensor([2.0, 1.0, 3.0]), tensor([1.0, 2.0])), [6.0, 13.0])


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("roots([x, x])", "'roots' needs a vector of coefficients, and the tensor has shape [2, 2]"),
        ("polyfit(x, x, -1)", "the degree of 'polyfit' must not be negative"),
        ("polyder(x, -1)", "the order of 'polyder' must not be negative"),
        ("polyint(x, 3, [1, 2])", "'polyint' needs one constant of integration, or 3"),
    ],
)
def test_errors(run, program, message):
    assert run("eval", program, "x=[1,2]").err.startswith(f"error: {message}\n")
