"""Tests every entry's derivatives beyond the first, at its own samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import Tensor, grad, tensor
from gradcli.primitives.bind import constant
from gradcli.primitives.families import elementwise
from tests.primitives.test_primitives import (
    Case,
    assert_second_derivative,
    case_of,
    differences,
    every_differentiable_case,
    leaf,
    leaves,
    slope,
    total,
)


def direction(operands: Sequence[Any], seed: int) -> list[Any]:
    """Random numbers, one for each element of the operands."""
    random = np.random.default_rng(seed)
    return [random.uniform(0.5, 1.5, np.shape(o)) * random.choice([-1, 1], np.shape(o)) for o in operands]


def along(value: Any, operands: Sequence[Tensor], way: Sequence[Any]) -> Tensor:
    """The derivative of a number along a direction, with its graph."""
    if not value.requires_grad:
        return tensor(0.0)
    found = grad(value, operands, create_graph=True, allow_unused=True)
    parts = [g * w for g, w in zip(found, way) if g is not None]
    return sum((p.sum() if p.shape else p for p in parts), tensor(0.0))


def bend(case: Case, operands: Sequence[Any], way: Sequence[Any]) -> Tensor:
    """The derivative of `slope` along a direction: second derivatives, weighted and summed."""
    return along(slope(case, operands), operands, way)


def assert_third_derivative(case: Case) -> None:
    way, other = direction(case.operands, 3), direction(case.operands, 4)
    operands = leaves(case.operands)
    found = along(bend(case, operands, way), operands, other).item()
    (expected,) = differences(lambda points: bend(case, [*map(leaf, points)], way), case.operands, [other])
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.cases(4)
@every_differentiable_case
def test_the_third_derivative(case):
    assert_third_derivative(case)


def assert_symmetric(case: Case) -> None:
    operands = leaves(case.operands)
    one, other = direction(operands, 1), direction(operands, 2)
    value = total(case, operands)
    there = along(along(value, operands, one), operands, other).item()
    back = along(along(value, operands, other), operands, one).item()
    np.testing.assert_allclose(there, back, rtol=1e-11, atol=1e-12)


@every_differentiable_case
def test_the_second_derivative_is_symmetric(case):
    assert_symmetric(case)


@every_differentiable_case
def test_a_leaf_without_influence_gets_none(case):
    apart = tensor(1.0, requires_grad=True)
    value = case.call(*leaves(case.operands))
    weighted = value.sum() if value.shape else value
    assert grad(weighted, apart, allow_unused=True) == (None,)


def exponential(rule: Any) -> Any:
    return elementwise("exponential", "x", "exp", forward=lambda xp, x: xp.exp(x), vjp=(rule,), derivative="g*exp(x)")


def test_a_third_derivative_that_alone_is_wrong_is_found():
    for error in (0.0, 1e-6):
        third = exponential(lambda g, y, _x, error=error: g * y * (1.0 + error))
        second = exponential(lambda g, _y, x, third=third: g * third(x))
        case = case_of(exponential(lambda g, _y, x, second=second: g * second(x)), [0.3, 0.7])
        assert_second_derivative(case)
        if error:
            with pytest.raises(AssertionError, match="Not equal to tolerance"):
                assert_third_derivative(case)
        else:
            assert_third_derivative(case)


def test_an_asymmetric_second_derivative_is_found():
    def case(rule: Any) -> Case:
        entry = elementwise(
            "product", "x, y", "x*y", forward=lambda xp, x, y: xp.multiply(x, y), derivative="g*y, g*x",
            vjp=(lambda g, _y, _a, b: g * b, rule),
        )  # fmt: skip
        return case_of(entry, (0.3, 0.7))

    assert_symmetric(case(lambda g, _y, a, _b: g * a))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        assert_symmetric(case(lambda g, _y, a, _b: g * constant(a)))


def test_the_square_of_a_large_number_is_not_taken_on_the_way():
    """The derivative of a logarithm divides by the number, and not by its square."""
    x = tensor([1.5, 2.0], requires_grad=True)
    (first,) = grad(((x**1000).log10()).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), -1000.0 / math.log(10) / np.array([1.5, 2.0]) ** 2, rtol=1e-12)


@pytest.mark.parametrize("x", [30.0, 300.0, 710.5])
@pytest.mark.parametrize(
    "program", ["logsumexp([2**x, 1])", "logsumexp([x, 2**x, 2**x - 100])", "logsumexp([x, 2**x], b=[0, 1])"]
)
def test_where_one_exponent_outweighs_the_others_its_derivatives_keep_their_digits(program, x):
    """The square of the first derivative must not swamp the second."""
    compiled = gradcli.compile(program)
    expected = [2.0**x * math.log(2) ** k for k in range(4)]
    assert compiled.derivatives({"x": x}, 3) == pytest.approx(expected, rel=1e-13)
    assert compiled.hessian({"x": x}) == {"x,x": pytest.approx(expected[2], rel=1e-13)}
