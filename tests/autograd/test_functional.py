"""Tests derivatives of Python functions at a point: `gradcli.autograd.functional`."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gradcli
from gradcli import grad, no_grad, tensor
from gradcli.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from gradcli.errors import CallError, DifferentiationError

X, V, Y = np.array([0.3, 0.7]), np.array([1.0, 2.0]), 3.0


def curve(x):
    return gradcli.sin(x) * x.sum()


def scalar(x):
    return (x**3).sum() * x[0]


def two(x, y):
    return x * y, (x * x).sum() * y


SLOPES = np.sin(X)[:, None] + np.diag(np.cos(X)) * X.sum()
CURVATURES = np.array([[12 * X[0] ** 2, 3 * X[1] ** 2], [3 * X[1] ** 2, 6 * X[0] * X[1]]])
BOTH = (tensor(X), tensor(Y))
# For each function at a point: what it returns besides the value.
PRODUCTS = {
    "vjp": (vjp, curve, V @ SLOPES),
    "jvp": (jvp, curve, SLOPES @ V),
    "vhp": (vhp, scalar, CURVATURES @ V),
    "hvp": (hvp, scalar, CURVATURES @ V),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("strict", [False, True])
def test_products_with_a_vector(name, strict):
    function, of, expected = PRODUCTS[name]
    x = tensor(X, requires_grad=True)
    value, found = function(of, x, tensor(V), strict=strict)
    np.testing.assert_allclose(value, of(tensor(X)))
    np.testing.assert_allclose(found, expected)
    assert not value.requires_grad
    assert not found.requires_grad


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_differentiated_again(name):
    function, of, _ = PRODUCTS[name]
    step = 1e-6

    def at(x):
        return function(of, tensor(x), tensor(V))[1].sum().item()

    for strict in (False, True):
        x, v = tensor(X, requires_grad=True), tensor(V, requires_grad=True)
        with no_grad():
            value, found = function(of, x, v, create_graph=True, strict=strict)
        (by_x,) = grad(found.sum(), x, retain_graph=True)
        np.testing.assert_allclose(by_x, [(at(X + h) - at(X - h)) / (2 * step) for h in step * np.eye(2)], rtol=1e-6)
        (by_v,) = grad(found.sum(), v, retain_graph=True)
        units = [function(of, tensor(X), tensor(unit))[1].sum().item() for unit in np.eye(2)]
        np.testing.assert_allclose(by_v, units)
        np.testing.assert_allclose(grad(value.sum(), x)[0], grad(of(x).sum(), x)[0])


def test_tuples_of_inputs_and_results():
    value, (by_x, by_y) = vjp(two, BOTH, (tensor(V), tensor(2.0)))
    assert isinstance(value, tuple)
    np.testing.assert_allclose(by_x, V * Y + 2 * 2 * X * Y)
    np.testing.assert_allclose(by_y, V @ X + 2 * X @ X)
    _, (first, second) = jvp(two, BOTH, (tensor(V), tensor(2.0)))
    np.testing.assert_allclose(first, V * Y + 2 * X)
    np.testing.assert_allclose(second, 2 * X @ V * Y + 2 * X @ X)
    _, (by_x, by_y) = hvp(lambda x, y: two(x, y)[1], BOTH, (tensor(V), tensor(2.0)))
    np.testing.assert_allclose(by_x, 2 * V * Y + 2 * X * 2)
    np.testing.assert_allclose(by_y, 2 * X @ V)
    for product, other in zip(vhp(lambda x, y: two(x, y)[1], BOTH, (tensor(V), tensor(2.0)))[1], (by_x, by_y)):
        np.testing.assert_allclose(product, other)
    for strategy in ("reverse-mode", "forward-mode"):
        ((xx, xy), (sx, sy)) = jacobian(two, BOTH, strategy=strategy, vectorize=True)
        np.testing.assert_allclose(xx, Y * np.eye(2))
        np.testing.assert_allclose(xy, X)
        np.testing.assert_allclose(sx, 2 * X * Y)
        np.testing.assert_allclose(sy, X @ X)
    (only,) = jacobian(curve, (tensor(X),))
    np.testing.assert_allclose(only, SLOPES)
    first, second = jacobian(lambda y: (y * 2, y * y), tensor(Y))
    assert (first.item(), second.item()) == (2.0, 6.0)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessians(strategy):
    np.testing.assert_allclose(hessian(scalar, tensor(X), outer_jacobian_strategy=strategy), CURVATURES)
    ((xx, xy), (yx, yy)) = hessian(lambda x, y: two(x, y)[1], BOTH, outer_jacobian_strategy=strategy)
    np.testing.assert_allclose(xx, 2 * Y * np.eye(2))
    np.testing.assert_allclose(xy, 2 * X)
    np.testing.assert_allclose(yx, 2 * X)
    assert yy.item() == 0.0
    assert hessian(lambda x: (x**3).sum().view(1), tensor(X), outer_jacobian_strategy=strategy).shape == (2, 2)


def test_jacobians_are_differentiated_again():
    for strategy in ("reverse-mode", "forward-mode"):
        x = tensor(X, requires_grad=True)
        found = jacobian(lambda x: x**3, x, create_graph=True, strategy=strategy)
        np.testing.assert_allclose(grad(found.sum(), x)[0], 6 * X)
        assert not jacobian(lambda x: x**3, x, strategy=strategy).requires_grad
        second = hessian(lambda x: (x**4).sum(), x, create_graph=True, outer_jacobian_strategy=strategy)
        np.testing.assert_allclose(grad(second.sum(), x)[0], 24 * X)


def test_what_is_captured_is_not_recorded_unless_asked_for():
    w = tensor(2.0, requires_grad=True)
    for function in (jacobian, lambda f, x: jvp(f, x, tensor(V))[1], lambda f, x: vjp(f, x, tensor(V))[0]):
        assert not function(lambda x: x * w, tensor(X)).requires_grad
    np.testing.assert_allclose(grad(jacobian(lambda x: x * w, tensor(X), create_graph=True).sum(), w)[0], 2.0)


def test_a_vector_may_be_left_out_for_one_element():
    assert vjp(lambda x: (x**2).sum(), tensor(X))[1].tolist() == [0.6, 1.4]
    assert jvp(lambda x: x**3, tensor(2.0))[1].item() == hvp(lambda x: x**3, tensor(2.0))[1].item() == 12.0
    assert vhp(lambda x: x**3, 2.0)[1].item() == 12.0
    # Tuples of one.
    assert vhp(lambda x: x**3, (tensor(2.0),), (tensor(1.0),))[1] == (12.0,)
    assert vjp(lambda x: (x**3,), tensor(2.0), (tensor(1.0),))[1].item() == 12.0


REFUSED = {
    "v of vjp": (
        lambda: vjp(curve, tensor(X)),
        "The vector v can only be None if the user-provided function returns a",
    ),
    "v of jvp": (lambda: jvp(curve, tensor(X)), "The vector v can only be None if the input to the user-provided"),
    "length": (
        lambda: vjp(two, BOTH, (tensor(V),)),
        "v is a tuple of invalid length: should be 2 but got 1",
    ),
    "several": (lambda: jvp(curve, tensor(X), (tensor(V), tensor(V))), "The given v should contain a single Tensor"),
    "size": (lambda: hvp(scalar, tensor(X), tensor(1.0)), r"v has invalid size: should be \[2\] but got \[\]"),
    "size of an entry": (
        lambda: jvp(two, BOTH, (tensor(V), tensor(V))),
        r"Entry 1 in v has invalid size: should be \[\] but got \[2\]",
    ),
    "no scalar": (lambda: vhp(curve, tensor(X), tensor(V)), "given to vhp should contain a single element"),
    "no scalar of hessian": (lambda: hessian(curve, tensor(X)), "given to hessian should contain a single element"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit(name):
    function, message = REFUSED[name]
    with pytest.raises(DifferentiationError, match=message):
        function()


def test_wrong_arguments():
    with pytest.raises(CallError, match="Expected strategy to be either"):
        jacobian(curve, tensor(X), strategy="sideways")
    with pytest.raises(CallError, match="Expected outer_jacobian_strategy to be either"):
        hessian(scalar, tensor(X), outer_jacobian_strategy="sideways")
    with pytest.raises(CallError, match="there is no input to differentiate by"):
        jacobian(curve, ())
    with pytest.raises(CallError, match="given to hvp should return a single Tensor"):
        hvp(lambda x: (x, x), tensor(X), tensor(V))
    with pytest.raises(CallError, match="what is differentiated returns tensors"):
        jacobian(lambda x: 3.0, tensor(X))


STRICT = {
    "constant": (lambda: vjp(lambda x: tensor(1.0), tensor(X), strict=True), "Output 0 .* does not require gradients"),
    "one constant": (
        lambda: jvp(lambda x: (x, tensor(1.0)), tensor(X), tensor(V), strict=True),
        "Output 1 of the user-provided function does not require gradients",
    ),
    "independent": (
        lambda: vjp(lambda x, y: y * 1, BOTH, strict=True),
        "The output of the user-provided function is independent of input 0. This is not allowed in strict mode",
    ),
    "one output": (
        lambda: jacobian(lambda x, y: (x * y, y * 1), BOTH, strict=True),
        "Output 1 of the user-provided function is independent of input 0. This is not allowed in strict mode",
    ),
    "linear, with a graph": (
        lambda: jacobian(lambda x: 2 * x, tensor(X), strict=True, create_graph=True),
        "The jacobian of .* is independent of input 0. This is not allowed in strict mode when create_graph=True",
    ),
    "linear": (
        lambda: hvp(lambda x: x.sum(), tensor(X), tensor(V), strict=True),
        "the jacobian of the user-provided function with respect to input 0 is independent of the input",
    ),
    "independent jacobian": (
        lambda: hessian(lambda x, y: (x * x).sum() + y, BOTH, strict=True),
        "the jacobian of the user-provided function with respect to input 1 is independent of the input",
    ),
    "quadratic, with a graph": (
        lambda: vhp(lambda x: (x * x).sum(), tensor(X), tensor(V), strict=True, create_graph=True),
        "The hessian of .* is independent of input 0. This is not allowed in strict mode when create_graph=True",
    ),
}


@pytest.mark.parametrize("name", STRICT)
def test_strict(name):
    function, message = STRICT[name]
    with pytest.raises(DifferentiationError, match=message):
        function()


def test_without_strict_there_are_zeros():
    assert jacobian(lambda x, y: y * 1, BOTH)[0].tolist() == [0.0, 0.0]
    assert jvp(lambda x: tensor(1.0), tensor(X), tensor(V))[1].item() == 0.0
    assert vjp(lambda x, y: y * 1, BOTH)[1][0].tolist() == [0.0, 0.0]
    assert hvp(lambda x: x.sum(), tensor(X), tensor(V))[1].tolist() == [0.0, 0.0]


def test_they_are_there_without_further_imports():
    line = "import gradcli; print(gradcli.autograd.functional.hvp.__name__, gradcli.autograd.forward_ad._current_level)"
    assert subprocess.run([sys.executable, "-c", line], capture_output=True, text=True).stdout == "hvp -1\n"


def test_they_are_those_of_gradcli():
    # Those of gradcli also have a form that takes a function only.
    assert (gradcli.jacobian.__wrapped__, gradcli.hessian.__wrapped__) == (jacobian, hessian)
    assert gradcli.autograd.functional.jacobian is jacobian
