"""Compiled derivatives of higher order and Jacobians: from the second call on by recorded programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli

X = np.linspace(0.5, 1.5, 6)
SCALARS = [
    "sin(x**2)*exp(x)/x",
    "x**x",
    "erf(x) + lgamma(x)",
    "detach(x)**2",
    "abs(x)*x",
    "y = x\nif x > 0 { y = x**3 }; y",
]
OF_SEVERAL = [
    ("x**2*q**3", {"x": 2.0, "q": 1.5}),
    ("sum(exp(x*q))", {"x": X, "q": 0.5}),
    ("logsumexp(x)", {"x": X}),
    ("sum(A@x)*sum(x)", {"A": np.outer(X, X), "x": X}),
    ("f(a) = a**3 backward(g) = 3*g*a**2; sum(f(x)*x)", {"x": X}),
    ("sum(sqrt(x))", {"x": np.array([0.0, 1.0])}),
]
JACOBIANS = [
    ("tanh(A@x)", {"A": np.outer(X, X), "x": X}),
    ("x/q", {"x": X, "q": 2.0}),
    ("sum(x)", {"x": X}),
    ("detach(x)", {"x": X}),
]


def assert_equal(found: Any, expected: Any) -> None:
    if expected is None:
        assert found is None
        return
    assert type(found) is type(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


def recorded(program: Any) -> bool:
    return any(known.versions for known in program._recordings._known.values())


@pytest.mark.parametrize("text", SCALARS)
def test_derivatives_by_one_number(text):
    program = gradcli.compile(text)
    for x in (1.25, 0.75, 1.5):
        expected = gradcli.compile(text).derivatives({"x": x}, 8)
        found = program.derivatives({"x": x}, 8)
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_equal(one, other)
    assert recorded(program) == ("if" not in text)


@pytest.mark.parametrize(("text", "values"), OF_SEVERAL)
def test_hessians(text, values):
    program = gradcli.compile(text)
    for scale in (1.0, 0.5, 2.0):
        given = {name: value * scale for name, value in values.items()}
        expected = gradcli.compile(text).hessian(given)
        found = program.hessian(given)
        assert [*found] == [*expected]
        for key in expected:
            assert_equal(found[key], expected[key])
    assert recorded(program)


@pytest.mark.parametrize(("text", "values"), JACOBIANS)
def test_jacobians(text, values):
    program = gradcli.compile(text)
    for scale in (1.0, 0.5, 2.0):
        given = {name: value * scale for name, value in values.items()}
        expected = gradcli.compile(text).jacobian(given)
        found = program.jacobian(given)
        assert [*found] == [*expected]
        for key in expected:
            assert_equal(found[key], expected[key])
    assert recorded(program)


def test_results_are_the_callers():
    program = gradcli.compile("x**2")
    for _ in range(3):
        found = program.jacobian({"x": X})["x"]
        found[...] = 0.0
    assert np.array_equal(program.jacobian({"x": X})["x"], np.diag(2 * X))


def test_the_orders_are_recorded_apart():
    program = gradcli.compile("exp(2*x)")
    for order in (2, 4, 2, 4, 2):
        assert program.derivatives({"x": 0.0}, order) == [2.0**k for k in range(order + 1)]
