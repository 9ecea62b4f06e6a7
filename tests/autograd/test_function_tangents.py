"""Tests dual numbers in function transformations, and in operations with user-defined derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from gradcli import Function, func, grad, tensor
from gradcli.autograd.forward_ad import dual_level, make_dual, unpack_dual
from gradcli.errors import DifferentiationError

X, V = np.array([0.3, 0.7]), np.array([1.0, 2.0])


@pytest.fixture
def dual():
    with dual_level():
        yield make_dual(tensor(X), tensor(V))


def tangent(x):
    return unpack_dual(x).tangent


def curve(x):
    return gradcli.sin(x) * x


def square(x):
    return (curve(x) ** 2).sum()


ONES = tensor([1.0, 1.0])
# Function transformations, as functions of a point.
TRANSFORMS = {
    "grad": func.grad(square),
    "grad_and_value": lambda x: func.grad_and_value(square)(x)[0],
    "value of grad_and_value": lambda x: func.grad_and_value(square)(x)[1],
    "vjp": lambda x: func.vjp(curve, x)[1](ONES)[0],
    "jvp": lambda x: func.jvp(curve, (x,), (ONES,))[1],
    "linearize": lambda x: func.linearize(curve, x)[1](ONES),
    "jacrev": func.jacrev(curve),
    "jacfwd": func.jacfwd(curve),
    "hessian": func.hessian(square),
    "vmap": func.vmap(curve),
    "vmap of grad": func.vmap(func.grad(curve)),
    "grad of jvp": func.grad(lambda x: func.jvp(curve, (x,), (ONES,))[1].sum()),
    "jvp of grad": lambda x: func.jvp(func.grad(square), (x,), (ONES,))[1],
    "a cotangent": lambda c: func.vjp(curve, ONES)[1](c)[0],
    "a direction": lambda v: func.jvp(curve, (ONES,), (v,))[1],
    "captured by grad": lambda x: func.grad(lambda y: (y * x * x).sum())(ONES),
    "captured by jvp": lambda x: func.jvp(lambda y: y * x * x, (ONES,), (ONES,))[1],
    "captured by vmap": lambda x: func.vmap(lambda y: y * x[0] * x)(ONES),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_functions_of_functions_have_tangents(name, dual):
    function, step = TRANSFORMS[name], 1e-6
    ahead, behind = (np.asarray(function(tensor(X + h * V)).detach()) for h in (step, -step))
    made = function(dual)
    np.testing.assert_allclose(tangent(made).detach(), (ahead - behind) / (2 * step), rtol=1e-7)
    np.testing.assert_allclose(unpack_dual(made).primal.detach(), function(tensor(X)))


# --- user-defined functions


class Cube(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.factor = factor
        # Inside forward, no tangent is computed.
        assert tangent(x * 1) is None
        return factor * x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * ctx.factor * g * x**2, None

    @staticmethod
    def jvp(ctx, along, none):
        assert none is None
        (x,) = ctx.saved_tensors
        return 3 * ctx.factor * x**2 * along


def test_jvp_gives_the_tangent(dual):
    made = Cube.apply(dual, 2.0)
    np.testing.assert_allclose(made, 2 * X**3)
    np.testing.assert_allclose(tangent(made), 6 * X**2 * V)


def test_a_function_is_differentiated_backward_and_forward():
    x, v = tensor(X, requires_grad=True), tensor(V, requires_grad=True)
    with dual_level():
        made = Cube.apply(make_dual(x, v), 2.0)
        by_x, by_v = grad(tangent(made).sum(), (x, v))
        np.testing.assert_allclose(by_x, 12 * X * V)
        np.testing.assert_allclose(by_v, 6 * X**2)
        (slope,) = grad(made.sum(), x)
        np.testing.assert_allclose(tangent(slope), 12 * X * V)


class Exp(Function):
    """A function whose derivatives need its output."""

    @staticmethod
    def forward(ctx, x):
        y = gradcli.exp(x)
        ctx.save_for_backward(y)
        ctx.save_for_forward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, along):
        return along * ctx.saved_tensors[0]


def test_outputs_that_are_saved_keep_their_tangents():
    x = tensor(X, requires_grad=True)
    with dual_level():
        made = Exp.apply(make_dual(x, tensor(V)))
        for options in ({"retain_graph": True}, {"create_graph": True}):
            (slope,) = grad(made.sum(), x, **options)
            np.testing.assert_allclose(tangent(slope).detach(), np.exp(X) * V)


def with_jvp(forward, jvp, setup=lambda ctx: None):
    """A Function with this forward and jvp, and an unused backward."""

    def prepared(ctx, *inputs):
        setup(ctx)
        return forward(ctx, *inputs)

    return type("Made", (Function,), {"forward": staticmethod(prepared), "jvp": staticmethod(jvp)})


def test_inputs_without_a_tangent_have_zeros_or_none(dual):
    seen = []

    def jvp(ctx, *along):
        seen.append(along)
        return along[0]

    with_jvp(lambda ctx, x, *others: x * 1, jvp).apply(dual, tensor(3.0), tensor([1, 2]), "text")
    assert [v if v is None else v.tolist() for v in seen[0]] == [V.tolist(), 0.0, None, None]
    without_zeros = with_jvp(lambda ctx, x, *others: x * 1, jvp, lambda ctx: ctx.set_materialize_grads(False))
    made = without_zeros.apply(dual, tensor(3.0))
    assert seen[1][1] is None
    made *= 2
    assert tangent(dual).tolist() == V.tolist()


def test_what_is_saved_for_jvp_is_not_there_for_backward():
    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            ctx.save_for_backward(x * 2)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (double,) = ctx.saved_tensors
            return g * double

        @staticmethod
        def jvp(ctx, along):
            (x,) = ctx.saved_tensors
            return 2 * x * along

    x = tensor(X, requires_grad=True)
    np.testing.assert_allclose(grad(Half.apply(x).sum(), x)[0], 2 * X)
    with dual_level():
        made = Half.apply(make_dual(x, tensor(V)))
        np.testing.assert_allclose(tangent(made).detach(), 2 * X * V)
        np.testing.assert_allclose(grad(made.sum(), x)[0], 2 * X)


def test_what_is_saved_for_backward_alone_is_not_there_for_jvp(dual):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    def jvp(ctx, along):
        assert ctx.saved_tensors == ()
        return along

    assert tangent(with_jvp(forward, jvp).apply(dual)).tolist() == V.tolist()


def test_outputs_without_a_derivative(dual):
    def forward(ctx, x):
        constant = x * 2
        ctx.mark_non_differentiable(constant)
        return x * 1, constant, x > 0.5, "text", x * 3

    made = with_jvp(forward, lambda ctx, along: (along, None, None, None, None)).apply(dual)
    assert [tangent(y) is None for y in made if isinstance(y, gradcli.Tensor)] == [False, True, True, True]
    with pytest.raises(DifferentiationError, match=r"at position 1.*You should return None at that position instead"):
        with_jvp(forward, lambda ctx, along: (along, along, None, None, None)).apply(dual)


def test_an_input_that_is_changed_in_place_has_its_tangent_changed(dual):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = dual * 1
    along = tangent(x)
    made = with_jvp(forward, lambda ctx, v: v.mul_(2)).apply(x)
    assert made is x
    assert tangent(x) is along
    assert along.tolist() == [2.0, 4.0]
    for jvp, message in [
        (lambda ctx, v: 2 * v, "not modifying the forward mode gradients inplace"),
        (lambda ctx, v: v.mul_(2) * 1, "not modifying the forward mode gradients inplace"),
        (lambda ctx, v: v.mul_(2).add_(1).view(2), "not returning the forward mode gradients as-is"),
    ]:
        with pytest.raises(DifferentiationError, match=message):
            with_jvp(forward, jvp).apply(dual * 1)


def test_an_input_that_is_changed_in_place_gets_a_tangent(dual):
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        return x.mul_(y)

    base = tensor([5.0, 1.0, 1.0])
    x = base[1:]
    assert with_jvp(forward, lambda ctx, u, v: v).apply(x, dual) is x
    assert tangent(x).tolist() == V.tolist()
    assert tangent(base).tolist() == [0.0, *V]


VIEWS = {
    "as it is": (lambda x: x, lambda v: v.view(2)),
    "view": (lambda x: x[:1], lambda v: v[:1]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_have_views_of_the_tangent(name, dual):
    forward, viewed = VIEWS[name]
    made = with_jvp(lambda ctx, x: forward(x), lambda ctx, v: viewed(v)).apply(dual)
    assert tangent(made)._base is tangent(dual)
    with pytest.raises(
        DifferentiationError, match="a view \\(or an input as-is\\) but the jvp is not returning a view"
    ):
        with_jvp(lambda ctx, x: forward(x), lambda ctx, v: viewed(v) * 1).apply(dual)
    with pytest.raises(DifferentiationError, match="not returning a view of the given grad input"):
        with_jvp(lambda ctx, x: forward(x), lambda ctx, v: viewed(v * 1)).apply(dual)
    with pytest.raises(DifferentiationError, match="not returning a view of the same base as the given grad input"):
        with_jvp(lambda ctx, x: forward(x), lambda ctx, v: viewed(v * 1)).apply(dual.view(2))


def test_what_jvp_returns_is_checked(dual):
    with pytest.raises(DifferentiationError, match=r"invalid number of forward gradients \(expected 1 but got 2"):
        with_jvp(lambda ctx, x: x * 1, lambda ctx, v: (v, v)).apply(dual)
    with pytest.raises(DifferentiationError, match="has a different size than that of the original Tensor"):
        with_jvp(lambda ctx, x: x * 1, lambda ctx, v: v.sum()).apply(dual)


def test_without_jvp_there_is_no_tangent(dual):
    class Made(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        Made.apply(dual)
