"""Tests truncated Taylor series: every entry of the table against repeated reverse mode, and other properties."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import Tensor, grad, tensor
from gradcli.calculus import higher_orders
from gradcli.errors import LimitError
from gradcli.kinds.jets import Jet
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.primitive import NotImplementedRule, not_implemented
from tests import high_orders, mixed_derivatives
from tests.language.test_conformance import CASES as CONFORMANCE
from tests.language.test_conformance import numbers
from tests.primitives.test_primitives import DIFFERENTIABLE, PRIMITIVES, Case, weights
from tests.samples import at_each, several

ORDER = 4

every_differentiable_case = at_each(DIFFERENTIABLE)


def total(case: Case, operands: list[Any]) -> Any:
    """The value as one number: its elements weighted and summed."""
    value = case.call(*operands)
    return sum_(multiply(value, weights(value)))


def moved(case: Case, t: Any) -> list[Any]:
    """The operands of a case, moved along fixed directions by `t`."""
    return [o + t * weights(o, 5 + i) for i, o in enumerate(case.operands)]


def taylor_derivatives(value: Any, order: int) -> list[Any]:
    """The derivatives by t from order 0 on, of a series or of a constant."""
    return value.derivatives() if isinstance(value, Jet) else [value] + [0.0] * order


def repeated_reverse_mode(function: Callable[[Any], Any], order: int) -> list[float]:
    """The derivatives of a number by t at 0, from order 0 on."""
    t = tensor(0.0, requires_grad=True)
    value = function(t)
    found = [value.item()]
    for _ in range(order):
        if value is not None and value.requires_grad:
            (value,) = grad(value, t, create_graph=True, allow_unused=True)
            found.append(0.0 if value is None else value.item())
    return found + [0.0] * (order + 1 - len(found))


@pytest.mark.cases(4)
@every_differentiable_case
def test_a_series_has_the_derivatives_of_repeated_reverse_mode(case):
    def along(t: Any) -> Any:
        return total(case, moved(case, t))

    expected = repeated_reverse_mode(along, ORDER)
    found = taylor_derivatives(along(Jet([0.0, 1.0], ORDER)), ORDER)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * max(map(abs, expected)))


@pytest.mark.all_cases
@several("entry", PRIMITIVES, lambda e: e.name)
def test_no_rule_is_missing(entry):
    assert not isinstance(entry.jet, NotImplementedRule)


@every_differentiable_case
def test_a_series_without_further_terms_gives_one_without(case):
    value = total(case, [Jet([o], ORDER) for o in case.operands])
    assert value.coefficients == (total(case, case.operands),)


# --- external reference values


@pytest.mark.parametrize("case", json.loads(high_orders.DATA.read_text()), ids=lambda case: case["program"])
def test_order_20_is_that_of_mpmath(case):
    found = gradcli.compile(case["program"]).derivatives({"x": case["x"]}, high_orders.ORDER)
    np.testing.assert_allclose(found, [float(d) for d in case["derivatives"]], rtol=1e-9)


def test_the_functions_of_order_20_are_those_of_the_script():
    cases = json.loads(high_orders.DATA.read_text())
    assert [(case["program"], case["x"]) for case in cases] == [*high_orders.FUNCTIONS]


@pytest.mark.parametrize("case", json.loads(mixed_derivatives.DATA.read_text()), ids=lambda case: case["program"])
def test_mixed_derivatives_are_those_of_sympy(case):
    found = gradcli.compile(case["program"]).derivatives(case["point"], mixed_derivatives.ORDER)
    assert found.keys() == case["derivatives"].keys()
    scale = max(abs(float(d)) for d in case["derivatives"].values())
    for key, expected in case["derivatives"].items():
        np.testing.assert_allclose(found[key] or 0.0, float(expected), rtol=1e-12, atol=1e-14 * scale)


# --- programs


@pytest.mark.parametrize("case", CONFORMANCE, ids=lambda case: case["id"])
def test_programs_along_a_direction_have_the_derivatives_of_repeated_reverse_mode(case):
    program = gradcli.compile(case["program"])
    read = {name: numbers(v) for name, v in case["bindings"].items() if name in program.inputs}
    point = {name: np.asarray(v, dtype=float) for name, v in read.items()}

    def along(t: Any) -> Any:
        t = t if isinstance(t, Tensor) else Tensor(t)
        value = program(**{name: v + t * weights(v, 3 + i) for i, (name, v) in enumerate(point.items())})
        return sum_(multiply(value, weights(value)))

    expected = np.array(repeated_reverse_mode(along, 2))
    found = np.array(taylor_derivatives(along(Jet([0.0, 1.0], 2)).inner, 2))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    scale = max([1.0, *abs(expected[finite])])
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-9, atol=1e-12 * scale)


def test_what_is_not_taken_stays_out_of_the_further_orders_of_a_gradient():
    program = gradcli.compile("diff(where(x > 0, x**1.5, x**2), x)")
    assert program.derivatives({"x": 0.0}, 3) == [0.0, 2.0, 0.0, 0.0]


@pytest.mark.parametrize("program", ["relu(x)**1.5", "sqrt(relu(x))", "sqrt(clip(x, 0, 1))", "maximum(x, 0)**2.5"])
def test_what_is_not_taken_stays_out_of_a_series(program):
    found = gradcli.compile(program).derivatives({"x": -1.0}, 4)
    assert found == [0.0] * 5


@pytest.mark.parametrize(
    "program", ["sqrt(maximum(x**2, -1))", "where(x > 0, x, x**2)**1.5", "sqrt(clip(x**2, -1, 1))"]
)
def test_zeros_that_are_computed_are_no_constants_of_a_series(program):
    compiled = gradcli.compile(program)
    for _ in range(3):
        assert np.isnan(compiled.derivatives({"x": 0.0}, 2)[2])


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("program", "function"),
    [
        ("sum(sqrt([0, x]))", "sqrt"),
        ("sum(diag([x, 0])**0.5)", "sqrt"),
        ("sum(sqrt(where([True, False], 0, x)))", "sqrt"),
        ("sum(sqrt(maximum([0, 0], [-x, x])))", "sqrt"),
        ("sum(sqrt(sum(diag([x, 0]), axis=1)))", "sqrt"),
        ("sum(sqrt(cumsum([0, x])))", "sqrt"),
        ("sum(sqrt(prod([[0, 1], [x, 1]], axis=1)))", "sqrt"),
        ("sum(sqrt(clip(0, diag([0, x]))).median(axis=0))*2", "sqrt"),
        ("sum(arcsin(sort([[1, x], [1, 1]], axis=1))[:, 0])", "arcsin"),
        ("sum(arcsin(min([[1, 1], [1, x]], axis=0)))", "arcsin"),
        ("log(x) + sum(sqrt([0, 1])*[0, 1])", "log"),
        ("sum(sqrt(diag([x, 0]) @ [1, 1]))", "sqrt"),
        ("sum(sqrt([x, 0]*[1, x]))", "sqrt"),
        ("sum([x, 0]**[0.5, x + 1])", "sqrt"),
        ("sum(multiply(sqrt([x, 0]), [1, x]))", "sqrt"),
    ],
)
def test_elements_that_do_not_vary_stay_out_of_a_series(program, function):
    """The derivatives of the constant elements' functions are infinite."""
    expected = gradcli.compile(f"{function}(x)").derivatives({"x": 0.25}, 4)[1:]
    compiled = gradcli.compile(program)
    for _ in range(3):
        np.testing.assert_allclose(compiled.derivatives({"x": 0.25}, 4)[1:], expected, rtol=1e-13)
    by_two = gradcli.compile(f"y*({program})").derivatives({"x": 0.25, "y": 1.0}, 3)
    np.testing.assert_allclose(by_two["x,x,x"], expected[2], rtol=1e-12)


def test_orders_beyond_the_largest_factorial_are_refused():
    with pytest.raises(LimitError, match="factorial"):
        gradcli.compile("exp(x)").derivatives({"x": 0.0}, 171)
    assert gradcli.compile("exp(x)").derivatives({"x": 0.0}, 170) == pytest.approx([1.0] * 171)


def test_orders_that_are_refused_are_so_at_once():
    with pytest.raises(LimitError, match="factorial"):
        gradcli.compile("exp(sin(x))").derivatives({"x": 1.0}, 10**9)
    with pytest.raises(LimitError, match="right digits"):
        gradcli.compile("exp(x*y)").derivatives({"x": 1.0, "y": 2.0}, 60)


@pytest.mark.filterwarnings("ignore::gradcli.AccuracyWarning")
@pytest.mark.parametrize("program", ["lgamma(exp(x))", "j0(x**2)", "sinc(x)", "sin(cos(x))"])
def test_high_orders_do_not_recurse(program):
    assert len(gradcli.compile(program).derivatives({"x": 1.5}, 120)) == 121


def test_derivatives_by_tensors_of_order_3_are_those_of_repeated_reverse_mode(monkeypatch):
    program = gradcli.compile("sum(tanh(A@x)**2)*q + sum(x[1:]*x[:-1]**2)")
    point = {"A": [[0.5, -1.0, 0.25], [2.0, 0.1, -0.3]], "x": [1.0, 2.0, -0.5], "q": 2.0}
    by_series = program.derivatives(point, 3)
    monkeypatch.setattr(higher_orders, "_Directions", not_implemented("no series"))
    by_reverse_mode = program.derivatives(point, 3)
    assert by_series.keys() == by_reverse_mode.keys()
    for key, expected in by_reverse_mode.items():
        np.testing.assert_allclose(by_series[key], expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("order", [2, 3])
def test_the_determinant_of_a_matrix_that_is_singular_but_for_rounding(order):
    """The matrix has rank 2 for any vectors, so that all derivatives are 0; the inverse is of the order of 1e17."""
    leaves = {"x": 0.5, "v": np.array([0.5, 1.0, 0.5]), "w": np.array([0.43, 1.305, 1.791])}
    with pytest.warns(gradcli.AccuracyWarning):
        found = gradcli.compile("det(expand_dims(w, 1)*v - x)").derivatives(leaves, order)
    assert max(np.max(np.abs(numbers)) for numbers in found.values()) < 1e-13


def test_a_determinant_is_a_polynomial_of_the_order_of_its_matrix():
    """The samples of the table have two rows, and so no third derivative."""
    a, b = (
        np.array([[2.0, 0.5, 1.0], [0.3, 1.5, -0.4], [0.1, -0.2, 3.0]]),
        np.array([[0.7, 1.0, 0.2], [-1.0, 0.4, 0.6], [0.5, 0.9, -0.8]]),
    )
    found = gradcli.compile("det(A + t*B)").derivatives({"t": 0.0, "A": a, "B": b}, 4, wrt=("t",))
    characteristic = np.poly(-np.linalg.solve(b, a)) * np.linalg.det(b)
    np.testing.assert_allclose(found, [*(characteristic[::-1] * [1, 1, 2, 6]), 0.0], rtol=1e-12, atol=1e-13)
