"""Tests compiled higher-order derivatives and Jacobians, which use recorded programs from the second call on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculus import jacobians as by_either_mode
from gradcli.calculus.derivatives import jacobians
from gradcli.kinds import batch

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


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [*(("hessian", *case) for case in OF_SEVERAL), *(("jacobian", *case) for case in JACOBIANS)],
)
def test_hessians_and_jacobians(kind, text, values):
    program = gradcli.compile(text)
    for scale in (1.0, 0.5, 2.0):
        given = {name: value * scale for name, value in values.items()}
        expected = getattr(gradcli.compile(text), kind)(given)
        found = getattr(program, kind)(given)
        assert [*found] == [*expected]
        for key in expected:
            assert_equal(found[key], expected[key])
    assert recorded(program)


def test_a_function_of_numbers_has_a_version_for_each_side_of_a_condition(monkeypatch):
    program = gradcli.compile("x**q")
    function = program.compiled(("x", "q"))
    # The derivative of a power has another form for exponents below 1/2.
    points = [{"x": 5.0, "q": q} for q in (3.0, 0.3)]
    expected = [gradcli.compile("x**q").value_and_grad(point) for point in points]
    for point in points * 3:
        program.value_and_grad(point)
        function(*point.values())
    monkeypatch.setattr(program, "_recordings", None)
    for point, (value, gradients) in zip(points * 2, expected * 2):
        assert program.value_and_grad(point) == (value, gradients)
        assert function(*point.values()) == (value, (*gradients.values(),))


def test_what_is_not_recorded_without_its_numbers_is_right_when_it_is_called_again():
    program = gradcli.compile("sum(sort(linspace(0, 1, 20001)*x))")
    for _ in range(3):
        value, gradients = program.value_and_grad({"x": 2.0})
        assert value == pytest.approx(20001.0)
        assert gradients["x"] == pytest.approx(10000.5)


def test_a_recording_may_take_half_of_the_steps():
    # Recording order 170 takes about half of the default step limit.
    program = gradcli.compile("cosh(x)*exp(x)", max_steps=200_000)
    for x in (1.25, 0.75):
        program.derivatives({"x": x}, 60)
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


# Programs whose value has more elements than a leaf.
CURVES = [
    ("a*exp(-b*t) + c[0]*t + c[1]*t**2", {"a": 1.0, "b": 2.0, "c": X[:2]}),
    ("outer(t, t)*c[:, None]", {"c": X}),
    ("t*detach(a) + 0*b", {"a": 1.0, "b": 2.0}),
    ("W@t[:3]", {"W": np.outer(X, X[:3])}),
    ("y = t\nif a > 0 { y = a*t }; y", {"a": 2.0}),
    ("f(u) = u**2 backward(g) = 2*g*u; f(a*t)", {"a": 2.0}),
    ("t*diff(a**3, a) + sum(c)", {"a": 2.0, "c": X[:2]}),
    ("jacobian(t*sum(c), c)", {"c": X[:3]}),
    ("relu(t*a)", {"a": 0.0}),
    ("t*sqrt(a)", {"a": 0.0}),
    ("max(outer(t, c), axis=1)", {"c": np.array([1.0, 1.0])}),
]


@pytest.mark.parametrize(("text", "values"), CURVES)
def test_jacobians_of_long_values_are_those_of_reverse_mode(text, values):
    program, t = gradcli.compile(text), np.linspace(0.1, 1.0, 6)
    leaves = {name: gradcli.tensor(value, requires_grad=True) for name, value in values.items()}
    expected = dict(zip(leaves, jacobians(program(t=t, **leaves), [*leaves.values()])))
    for _ in range(3):
        found = program.jacobian({**values, "t": t}, wrt=tuple(values))
        for name, wanted in expected.items():
            assert_equal(found[name], None if wanted is None else wanted.inner)


def test_a_leaf_with_few_elements_is_followed_forward(monkeypatch):
    def refuse(value, leaves, **_options):
        assert not leaves
        return ()

    monkeypatch.setattr(by_either_mode, "jacobians", refuse)
    found = gradcli.compile("exp(a*t)*c[0] + c[1]").jacobian({"a": 1.0, "c": X[:2], "t": X}, wrt=("a", "c"))
    np.testing.assert_allclose(found["a"], X * np.exp(X) * X[0])
    np.testing.assert_allclose(found["c"], np.stack([np.exp(X), np.ones(6)], axis=1))


def test_at_a_kink_no_leaf_is_followed_forward(monkeypatch):
    followed = []
    forward = by_either_mode._forward
    monkeypatch.setattr(by_either_mode, "_forward", lambda *given: followed.append(given) or forward(*given))
    for a, passes in ((0.0, 0), (2.0, 1)):
        a = gradcli.tensor(a, requires_grad=True)
        by_either_mode.jacobians_by_either_mode(lambda given: abs(given["a"]) * X, {"a": a}, abs(a) * X)
        assert len(followed) == passes


def test_directions_that_do_not_fit_into_memory_together_take_several_passes(monkeypatch):
    program, given = gradcli.compile("sin(outer(t, c))"), {"c": X[:5], "t": X}
    whole = program.jacobian(given, wrt=("c",))["c"]
    monkeypatch.setattr(batch, "MAX_ELEMENTS", 60)
    assert np.array_equal(gradcli.compile("sin(outer(t, c))").jacobian(given, wrt=("c",))["c"], whole)


def test_a_jacobian_of_a_long_value_on_the_command_line(run):
    record = run("eval", "a*t**2 + b", "a=3", "b=1", "t=[1,2,3]", "--wrt", "a,b", "--jacobian", "--json").json
    assert record["jacobian"] == {"a": [1.0, 4.0, 9.0], "b": [1.0, 1.0, 1.0]}
    warned = run("eval", "abs(a)*t", "a=0", "t=[1,2,3]", "--wrt", "a", "--jacobian")
    assert "'abs' is not differentiable here" in warned.err


def test_high_orders_of_a_number_come_from_one_function_for_numbers():
    # The generated expressions must not be nested more deeply than the parser allows.
    f = gradcli.compile("sin(x)*exp(x)*log(1 + x)")
    first, *again = (f.derivatives({"x": 0.7}, order=20) for _ in range(3))
    assert again == [first, first]
    chain = gradcli.compile("+".join(f"sin({k}*x)" for k in range(1, 150)))
    eager, *recorded = (chain.value_and_grad({"x": 0.1}) for _ in range(3))
    assert recorded == [eager, eager]
