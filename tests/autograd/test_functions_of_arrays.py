"""Tests derivatives of functions of arrays, with the names and behaviour of HIPS autograd."""

from __future__ import annotations

import math

import numpy
import pytest

import gradcli
import gradcli.numpy as np
from gradcli import (
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_vector_product,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
)
from gradcli.errors import CallError, DifferentiationError
from gradcli.misc import flatten
from gradcli.misc.fixed_points import fixed_point
from gradcli.misc.flatten import flatten_func
from gradcli.misc.optimizers import adam, rmsprop, sgd

POINT = numpy.array([0.3, -1.2, 2.0])
SQUARED = 1.0 / numpy.cosh(POINT) ** 2


def tanh(x):
    return (1.0 - np.exp(-2 * x)) / (1.0 + np.exp(-2 * x))


@pytest.mark.parametrize("function", [tanh, np.tanh, gradcli.tanh], ids=["own", "of NumPy", "of the library"])
def test_a_function_alone_has_derivatives_of_any_order(function):
    y = math.tanh(0.5)
    assert grad(function)(0.5) == pytest.approx(1 - y**2, rel=1e-14)
    assert grad(grad(function))(0.5) == pytest.approx(-2 * y * (1 - y**2), rel=1e-13)
    assert grad(grad(grad(function)))(0.5) == pytest.approx((1 - y**2) * (6 * y**2 - 2), rel=1e-12)
    assert grad(function).__name__ == "grad_of_tanh"


def test_numbers_and_arrays_give_numbers_and_arrays_that_may_be_edited():
    slope = grad(tanh)(1)
    assert isinstance(slope, float)
    gradient = grad(lambda w: np.sum(w**2))(POINT)
    assert type(gradient) is numpy.ndarray
    gradient *= 2
    assert gradient.tolist() == (4 * POINT).tolist()
    assert type(value_and_grad(lambda w: np.sum(w**2))(POINT)[0]) is numpy.float64


def test_tensors_give_tensors_with_a_graph():
    a = gradcli.tensor(3.0, requires_grad=True)
    slope = grad(lambda b: a * b**2)(2.0)
    slope.backward()
    assert a.grad.item() == 4.0
    assert grad(lambda a: grad(lambda b: a * b**2)(2.0) * a)(3.0) == 24.0


def test_containers_come_back_as_they_are():
    value, slopes = value_and_grad(lambda p: np.sum(p["a"] * p["b"][0]))({"a": POINT, "b": [POINT + 1]})
    assert value == pytest.approx(numpy.sum(POINT * (POINT + 1)))
    assert slopes["a"].tolist() == (POINT + 1).tolist()
    assert [g.tolist() for g in slopes["b"]] == [POINT.tolist()]


def test_argnum_chooses_arguments():
    def product(a, b, scale=1.0):
        return np.dot(a, b) * scale

    assert grad(product, 1)(POINT, POINT + 1, scale=2.0).tolist() == (2 * POINT).tolist()
    first, second = grad(product, (0, 1))(POINT, POINT + 1)
    assert (first.tolist(), second.tolist()) == ((POINT + 1).tolist(), POINT.tolist())
    assert jacobian(lambda a, b: a * b, 1)(POINT, POINT + 1).tolist() == numpy.diag(POINT).tolist()
    assert grad_named(product, "b")(POINT, POINT).tolist() == POINT.tolist()
    with pytest.raises(CallError, match="argnum names argument 2, and 1 are given"):
        grad(tanh, 2)(1.0)
    with pytest.raises(CallError, match="argnum is the number of an argument"):
        grad(tanh, gradcli.tensor(1.0))
    with pytest.raises(CallError, match="no argument 'c'"):
        grad_named(product, "c")


def test_every_operator_agrees_with_the_formula():
    assert numpy.allclose(elementwise_grad(tanh)(POINT), SQUARED)
    assert numpy.allclose(jacobian(np.tanh)(POINT), numpy.diag(SQUARED))
    assert numpy.allclose(hessian(lambda x: np.sum(np.tanh(x)))(POINT), numpy.diag(-2 * numpy.tanh(POINT) * SQUARED))
    pull, value = make_vjp(np.tanh)(POINT)
    assert numpy.allclose(pull(POINT), POINT * SQUARED)
    assert numpy.allclose(value, numpy.tanh(POINT))
    assert numpy.allclose(make_jvp(np.tanh)(POINT)(POINT)[1], POINT * SQUARED)
    assert numpy.allclose(make_hvp(lambda x: np.sum(x**3))(POINT)[0](POINT), 6 * POINT**2)
    assert numpy.allclose(make_ggnvp(np.tanh)(POINT)(POINT), SQUARED**2 * POINT)
    assert numpy.allclose(hessian_vector_product(lambda x: np.sum(x**3))(POINT, POINT), 6 * POINT**2)
    assert numpy.allclose(tensor_jacobian_product(np.tanh)(POINT, POINT), POINT * SQUARED)
    assert numpy.allclose(deriv(lambda t: np.array([t, t**2]))(3.0), [1.0, 6.0])
    assert multigrad_dict(lambda a, *, c: a**2 * c)(2.0, c=3.0) == {"a": 12.0, "c": 4.0}
    assert grad_and_aux(lambda x: (x**2, "as it is"))(3.0) == (6.0, "as it is")


def test_a_gradient_is_that_of_one_element():
    assert grad(lambda x: np.sum(x, keepdims=True))(POINT).tolist() == [1.0, 1.0, 1.0]
    assert grad(lambda x: 5.0)(2.0) == 0.0
    with pytest.raises(DifferentiationError, match=r"a tensor of shape \[3\]"):
        grad(np.sin)(POINT)
    with pytest.raises(DifferentiationError, match="a truth value"):
        grad(lambda x: np.allclose(x, x * 3.0 / 3.0))(POINT)


def test_jacobian_and_hessian_at_a_point_are_those_of_pytorch():
    x = gradcli.tensor([1.0, 2.0])
    assert type(gradcli.jacobian(np.sin, x)) is gradcli.Tensor
    assert type(gradcli.jacobian(np.sin, inputs=x)) is gradcli.Tensor
    assert gradcli.hessian(lambda x: np.sum(x**2), x).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert gradcli.jacobian(np.sin, 0.0).item() == 1.0


def test_arrays_of_tensors_are_recorded():
    def area(x):
        return np.linalg.det(np.array([[x[0], 1.0], [2.0, x[1]]])) + np.sum(np.full((2,), x[0]))

    assert numpy.allclose(grad(area)(numpy.array([2.0, 3.0])), [5.0, 2.0])
    assert np.array([1, 2]).dtype.kind == "i"


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (lambda x: np.mean([x, 3 * x]), 2.0),
        (lambda x: np.linalg.norm([3.0 * x, 4.0 * x]), 5.0),
        (lambda x: np.sum(np.append([[x]], [[x, x]], axis=1)), 3.0),
        (lambda x: np.sum(np.r_[x, np.ones(2), x]), 2.0),
        (lambda x: np.sum(np.concatenate([[x, 2.0], [x**2]])), 5.0),
        (lambda x: np.dot([x, x], [1.0, 2.0]), 3.0),
        (lambda x: np.make_diagonal(np.array([x, 1.0]), axis1=-1, axis2=-2)[0, 0], 1.0),
    ],
)
def test_tensors_are_found_in_lists(function, slope):
    assert grad(function)(2.0) == pytest.approx(slope, rel=1e-14)


def test_flatten_keeps_the_kind():
    vector, unflatten = flatten({"w": POINT, "b": [1.0, numpy.eye(2)]})
    assert type(vector) is numpy.ndarray
    # Dicts are ordered by key.
    assert vector.tolist() == [1.0, 1.0, 0.0, 0.0, 1.0, *POINT]
    assert unflatten(2 * vector)["b"][1].tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert grad(lambda p: np.sum(flatten(p)[0] ** 2))({"w": POINT})["w"].tolist() == (2 * POINT).tolist()
    of_vector, _, start = flatten_func(lambda p: {"y": p["w"] ** 2}, {"w": POINT})
    assert of_vector(start).tolist() == (POINT**2).tolist()


@pytest.mark.parametrize(
    ("optimize", "expected"),
    # From autograd 1.9.
    [
        (sgd, [0.11090642719448415, -0.4436257087779366]),
        (adam, [0.07637994686845814, -1.703843475972589]),
        (rmsprop, [4.149075449538839e-16, -1.152455462485571]),
    ],
    ids=["sgd", "adam", "rmsprop"],
)
def test_optimizers_step_as_those_of_autograd(optimize, expected):
    seen = []
    found = optimize(
        lambda p, i: {"a": 2 * p["a"]},
        {"a": numpy.array([1.5, -6.0])},
        callback=lambda p, i, g: seen.append((i, p["a"].tolist(), g["a"].tolist())),
        num_iters=50,
        step_size=0.1,
    )
    assert seen[0] == (0, [1.5, -6.0], [3.0, -12.0])
    assert len(seen) == 50
    assert found["a"] == pytest.approx(expected, rel=1e-12)


def test_an_optimizer_can_be_differentiated():
    def end(step_size):
        return sgd(grad(lambda x, i: np.sum(x**2)), np.ones(2), num_iters=10, step_size=step_size)[0]

    h = 1e-6
    assert grad(end)(0.1) == pytest.approx((end(0.1 + h) - end(0.1 - h)) / (2 * h), rel=1e-7)


@pytest.mark.parametrize(
    "step", [lambda a: lambda x: 0.5 * (x + a / x), lambda a: lambda x: x - 0.1 * (x**2 - a)], ids=["newton", "descent"]
)
def test_a_fixed_point_has_derivatives_by_its_parameter(step):
    def root(a):
        return fixed_point(step, a, 1.0, lambda x, y: np.abs(x - y), 1e-13)

    assert root(2.0) == pytest.approx(2**0.5, rel=1e-12)
    assert grad(root)(2.0) == pytest.approx(0.5 * 2**-0.5, rel=1e-11)
    assert grad(grad(root))(2.0) == pytest.approx(-0.25 * 2**-1.5, rel=1e-10)
