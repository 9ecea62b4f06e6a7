"""Tests functions with user-defined derivatives, as in `autograd.extend`, and functions built on them."""

from __future__ import annotations

import numpy
import pytest

import gradcli
import gradcli.numpy as np
from gradcli import elementwise_grad, grad, hessian, jacobian, make_jvp
from gradcli.errors import CallError, DifferentiationError, MissingRuleError
from gradcli.extend import (
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    notrace_primitive,
    primitive,
)
from gradcli.scipy.integrate import odeint
from gradcli.scipy.special import logsumexp as logsumexp_of_scipy

POINT = numpy.array([1.5, 0.7, 1e-10])


@primitive
def logsumexp(x):
    """Of arrays alone."""
    assert type(x) is numpy.ndarray
    largest = numpy.max(x)
    return largest + numpy.log(numpy.sum(numpy.exp(x - largest)))


defvjp(logsumexp, lambda ans, x: lambda g: np.full(x.shape, g) * np.exp(x - np.full(x.shape, ans)))


def test_a_primitive_is_given_arrays_and_differentiated_by_its_vjp():
    def own(x):
        return logsumexp(x**2)

    def reference(x):
        return logsumexp_of_scipy(x**2)

    assert numpy.allclose(grad(own)(POINT), grad(reference)(POINT), rtol=1e-14)
    assert numpy.allclose(hessian(own)(POINT), hessian(reference)(POINT), rtol=1e-12)
    assert numpy.allclose(make_jvp(own)(POINT)(POINT)[1], make_jvp(reference)(POINT)(POINT)[1])
    assert logsumexp(POINT) == pytest.approx(logsumexp_of_scipy(POINT))
    assert logsumexp.__doc__ == "Of arrays alone."
    x = gradcli.tensor(POINT, requires_grad=True)
    own(x).backward()
    assert numpy.allclose(x.grad.numpy(), grad(reference)(POINT), rtol=1e-14)


def test_a_vjp_of_one_derivative_may_be_any_code_of_arrays():
    @primitive
    def power(x, n=2):
        y = numpy.empty_like(x)
        return numpy.power(x, n, out=y)

    def vjp(ans, x, n=2):
        def pull(g):
            y = numpy.empty_like(x)
            return g * n * numpy.power(x, n - 1, out=y)

        return pull

    defvjp(power, vjp)
    assert numpy.allclose(elementwise_grad(lambda x: power(x, n=3))(POINT), 3 * POINT**2)
    assert numpy.allclose(jacobian(power)(POINT), numpy.diag(2 * POINT))


def product(a, b):
    return a * b


@pytest.mark.parametrize(
    "declare",
    [
        lambda f: defvjp(f, lambda ans, a, b: lambda g: g * b, lambda ans, a, b: lambda g: a * g),
        lambda f: defvjp_argnum(f, lambda argnum, ans, given, keywords: lambda g: g * given[1 - argnum]),
        lambda f: defvjp_argnums(f, lambda places, ans, given, keywords: lambda g: [g * given[1 - i] for i in places]),
        lambda f: defjvp(f, lambda g, ans, a, b: g * b, "same"),
        lambda f: defjvp_argnum(f, lambda argnum, g, ans, given, keywords: g * given[1 - argnum]),
        lambda f: defjvp_argnums(
            f, lambda places, gs, ans, given, keywords: sum(g * given[1 - i] for i, g in zip(places, gs))
        ),
    ],
    ids=["vjp", "vjp_argnum", "vjp_argnums", "jvp", "jvp_argnum", "jvp_argnums"],
)
def test_every_form_of_a_derivative(declare):
    f = primitive(product)
    declare(f)
    assert grad(f, (0, 1))(2.0, 3.0) == (3.0, 2.0)
    assert grad(grad(lambda a: f(a, f(a, a))))(2.0) == 12.0
    assert make_jvp(lambda a: f(a, a))(3.0)(1.0) == (9.0, 6.0)


def test_arguments_and_values_may_be_containers():
    @primitive
    def both(p):
        return {"product": p["a"] * p["b"], "difference": p["a"] - p["b"]}

    def vjp(ans, p):
        return lambda g: {
            "a": g["product"] * p["b"] + g["difference"],
            "b": g["product"] * p["a"] - g["difference"],
        }

    defvjp(both, vjp)
    assert grad(lambda p: both(p)["product"] * both(p)["difference"])({"a": 3.0, "b": 2.0}) == {"a": 8.0, "b": -3.0}


def test_what_has_no_derivative_says_so():
    with pytest.raises(MissingRuleError, match="product has no derivative"):
        grad(primitive(product))(2.0, 3.0)
    f = primitive(product)
    defvjp(f, lambda ans, a, b: lambda g: g * b)
    assert grad(f)(2.0, 3.0) == 3.0
    with pytest.raises(MissingRuleError, match="product has no vjp by argument 1"):
        grad(f, 1)(2.0, 3.0)
    defvjp(f, None, argnums=(1,))
    assert grad(f, 1)(2.0, 3.0) == 0.0
    with pytest.raises(CallError, match="what `primitive` made"):
        defvjp(product, None)


def test_a_gradient_that_would_be_lost_is_an_error():
    def of_outer(a):
        f = primitive(lambda x: a * x)
        defvjp(f, lambda ans, x: lambda g: g)
        return f(a)

    with pytest.raises(DifferentiationError, match="tensors from outside"):
        grad(of_outer)(2.0)
    with pytest.raises(DifferentiationError, match="tensors from outside"):
        grad(lambda a: grad(primitive(lambda x: a * x))(1.0))(2.0)


def test_a_function_that_is_not_traced_is_a_constant():
    above = notrace_primitive(lambda x: x > 1.0)
    assert grad(lambda x: np.sum(np.where(above(x), x**2, 0.0)))(POINT).tolist() == [3.0, 0.0, 0.0]


def test_an_initial_value_problem_has_derivatives_by_its_start_its_times_and_its_parameters():
    times, start, parameters = numpy.linspace(0.0, 1.0, 3), numpy.array([1.0, 0.2]), numpy.array([1.3, 0.4])

    def slope(y, t, p):
        return np.array([y[1], -p[0] * y[0] - p[1] * y[1] + np.sin(t)])

    def loss(y0, t, p):
        found = odeint(slope, y0, t, (p,), rtol=1e-9, atol=1e-9)
        return np.sum(found**2 * numpy.arange(1.0, 7.0).reshape(3, 2))

    given = [start, times, parameters]
    for place, x in enumerate(given):
        differences = []
        for step in 1e-5 * numpy.eye(x.size):
            above, below = ([*given[:place], x + sign * step, *given[place + 1 :]] for sign in (1, -1))
            differences.append((loss(*above) - loss(*below)) / 2e-5)
        assert numpy.allclose(grad(loss, place)(*given), differences, rtol=1e-5, atol=1e-5)
    along, h = numpy.array([1.0, 0.0]), 1e-4
    above, below = (grad(loss, 2)(start, times, parameters + sign * h * along) for sign in (1, -1))
    second = grad(lambda p: np.dot(grad(loss, 2)(start, times, p), along))(parameters)
    assert numpy.allclose(second, (above - below) / (2 * h), rtol=1e-4)
