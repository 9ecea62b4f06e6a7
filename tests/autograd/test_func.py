"""Tests `gradcli.func`: function transformations, alone and nested."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import gradcli
from gradcli import func, grad, tensor
from gradcli.errors import DifferentiationError, NotBatchableError

X = np.array([0.3, -1.2, 2.0])
V = np.array([1.0, 0.5, -2.0])
ROWS = np.array([[0.3, -1.2, 2.0], [1.5, 0.1, -0.4]])
SIN, COS = np.sin(X), np.cos(X)


def wave(x):
    """sum(sin(x)*x)"""
    return (gradcli.sin(x) * x).sum()


def mixed(x):
    """sin(x)*sum(x)"""
    return gradcli.sin(x) * x.sum()


def slope(x):
    return np.cos(x) * x + np.sin(x)


def second(x):
    return 2 * np.cos(x) - np.sin(x) * x


def jacobian_of_mixed(x):
    return np.diag(np.cos(x) * x.sum()) + np.sin(x)[:, None]


def along(x, v):
    return jacobian_of_mixed(x) @ v


CASES = {
    "grad": (lambda: func.grad(wave)(tensor(X)), slope(X)),
    "grad of grad": (lambda: func.grad(lambda x: func.grad(wave)(x).sum())(tensor(X)), second(X)),
    "grad three times": (lambda: func.grad(func.grad(func.grad(lambda x: x**4)))(tensor(2.0)), 48.0),
    "grad inside grad of another": (
        lambda: func.grad(lambda x: x * func.grad(lambda y: x * y**2)(tensor(3.0)))(tensor(2.0)),
        24.0,
    ),
    "grad by two": (lambda: func.grad(lambda x, y: x**2 * y, argnums=(0, 1))(tensor(2.0), tensor(3.0)), (12.0, 4.0)),
    "grad by the last": (lambda: func.grad(lambda x, y: x**2 * y, argnums=-1)(tensor(2.0), tensor(3.0)), 4.0),
    "grad with a keyword": (lambda: func.grad(lambda x, n=1: x * n)(tensor(2.0), n=5.0), 5.0),
    "grad of a dict": (
        lambda: func.grad(lambda p: p["a"] * p["b"][0] ** 2)({"a": tensor(2.0), "b": (tensor(3.0),)}),
        {"a": 9.0, "b": (12.0,)},
    ),
    "grad of what does not depend": (lambda: func.grad(lambda _x: tensor(3.0))(tensor(X)), 0 * X),
    "grad with more": (
        lambda: func.grad(lambda x: (wave(x), {"twice": 2 * x}), has_aux=True)(tensor(X)),
        (slope(X), {"twice": 2 * X}),
    ),
    "grad and value": (lambda: func.grad_and_value(wave)(tensor(X)), (slope(X), (SIN * X).sum())),
    "vjp": (lambda: pulled(func.vjp(mixed, tensor(X))), (SIN * X.sum(), (jacobian_of_mixed(X).T @ V,))),
    "jvp": (lambda: func.jvp(mixed, (tensor(X),), (tensor(V),)), (SIN * X.sum(), along(X, V))),
    "jvp of jvp": (
        lambda: func.jvp(lambda x: func.jvp(lambda y: y**3, (x,), (x,))[1], (tensor(X),), (tensor(V),)),
        (3 * X**3, 9 * X**2 * V),
    ),
    "jvp inside jvp of another": (
        lambda: func.jvp(
            lambda x: x * func.jvp(lambda y: x * y**2, (tensor(X),), (tensor(V),))[1], (tensor(X),), (tensor(V),)
        )[1],
        4 * X**2 * V**2,
    ),
    "jvp of grad": (lambda: func.jvp(func.grad(wave), (tensor(X),), (tensor(V),))[1], second(X) * V),
    "grad of jvp": (
        lambda: func.grad(lambda x: func.jvp(wave, (x,), (tensor(V),))[1])(tensor(X)),
        second(X) * V,
    ),
    "grad of jvp by the direction": (
        lambda: func.grad(lambda v: func.jvp(mixed, (tensor(X),), (v,))[1].sum())(tensor(V)),
        jacobian_of_mixed(X).sum(0),
    ),
    "grad of jacfwd by something else": (
        lambda: func.grad(lambda w: func.jacfwd(lambda x: gradcli.sin(w * x) * w)(tensor(X)).sum())(tensor(2.0)),
        (4 * np.cos(2 * X) - 4 * X * np.sin(2 * X)).sum(),
    ),
    "linearize": (
        lambda: moved(func.linearize(mixed, tensor(X))),
        (SIN * X.sum(), along(X, V), 2 * along(X, V)),
    ),
    "jacrev": (lambda: func.jacrev(mixed)(tensor(X)), jacobian_of_mixed(X)),
    "jacfwd": (lambda: func.jacfwd(mixed)(tensor(X)), jacobian_of_mixed(X)),
    "jacrev of a dict": (
        lambda: func.jacrev(lambda p: {"y": p["a"] * p["b"]})({"a": tensor(2.0), "b": tensor(V)}),
        {"y": {"a": V, "b": 2 * np.eye(3)}},
    ),
    "jacfwd of a dict": (
        lambda: func.jacfwd(lambda p: {"y": p["a"] * p["b"]})({"a": tensor(2.0), "b": tensor(V)}),
        {"y": {"a": V, "b": 2 * np.eye(3)}},
    ),
    "jacfwd with more": (lambda: func.jacfwd(lambda x: (x * 2, x), has_aux=True)(tensor(X)), (2 * np.eye(3), X)),
    "hessian": (lambda: func.hessian(wave)(tensor(X)), np.diag(second(X))),
    "hessian by two": (
        lambda: func.hessian(lambda x, y: x**2 * y, argnums=(0, 1))(tensor(2.0), tensor(3.0)),
        ((6.0, 4.0), (4.0, 0.0)),
    ),
    "jacrev of jacfwd": (lambda: func.jacrev(func.jacfwd(lambda x: x**3))(tensor(X)).sum(-1).sum(-1), 6 * X),
    "vmap": (lambda: func.vmap(mixed)(tensor(ROWS)), np.sin(ROWS) * ROWS.sum(1, keepdims=True)),
    "vmap along the second axis": (lambda: func.vmap(wave, in_dims=1)(tensor(ROWS)), (np.sin(ROWS) * ROWS).sum(0)),
    "vmap with something whole": (
        lambda: func.vmap(lambda a, x: a @ x, in_dims=(None, 0), out_dims=1)(tensor(np.ones((2, 3))), tensor(ROWS)),
        np.ones((2, 3)) @ ROWS.T,
    ),
    "vmap of vmap": (
        lambda: func.vmap(func.vmap(lambda x, y: x * y, in_dims=(None, 0)), in_dims=(0, None))(tensor(X), tensor(V)),
        np.outer(X, V),
    ),
    "vmap of a constant": (lambda: func.vmap(lambda _x: 2.0)(tensor(ROWS)), np.array([2.0, 2.0])),
    "vmap of several": (
        lambda: func.vmap(lambda x: {"sum": x.sum(), "twice": (2 * x,)}, out_dims={"sum": 0, "twice": 1})(tensor(ROWS)),
        {"sum": ROWS.sum(1), "twice": (2 * ROWS.T,)},
    ),
    "vmap of grad": (lambda: func.vmap(func.grad(wave))(tensor(ROWS)), slope(ROWS)),
    "vmap of grad by what is whole": (
        lambda: func.vmap(func.grad(lambda a, x: a**2 * x.sum()), in_dims=(None, 0))(tensor(3.0), tensor(ROWS)),
        6 * ROWS.sum(1),
    ),
    "grad of vmap": (
        lambda: func.grad(lambda a: func.vmap(lambda x: a**2 * x.sum())(tensor(ROWS)).sum())(tensor(3.0)),
        6 * ROWS.sum(),
    ),
    "vmap of jvp of grad": (
        lambda: func.vmap(lambda x: func.jvp(func.grad(wave), (x,), (x,))[1])(tensor(ROWS)),
        second(ROWS) * ROWS,
    ),
    "vmap of hessian": (
        lambda: func.vmap(func.hessian(wave))(tensor(ROWS)),
        np.stack([np.diag(second(row)) for row in ROWS]),
    ),
    "jvp of vmap": (
        lambda: func.jvp(func.vmap(mixed), (tensor(ROWS),), (tensor(2 * ROWS),))[1],
        np.stack([along(row, 2 * row) for row in ROWS]),
    ),
    "vmap of a vjp": (lambda: func.vmap(func.vjp(mixed, tensor(X))[1])(tensor(ROWS))[0], ROWS @ jacobian_of_mixed(X)),
    "vmap chooses": (
        lambda: func.vmap(func.grad(lambda x: gradcli.where(x > 0, x**2, -x).sum()))(tensor(ROWS)),
        np.where(ROWS > 0, 2 * ROWS, -1.0),
    ),
    "arrays and numbers": (lambda: (func.grad(lambda x: x**3)(2.0), func.vmap(lambda x: 2 * x)(X)), (12.0, 2 * X)),
}


def pulled(result):
    value, pull = result
    return value, pull(tensor(V))


def moved(result):
    value, push = result
    return value, push(tensor(V)), push(tensor(2 * V))


def numbers(value):
    if isinstance(value, dict):
        return {key: numbers(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(numbers, value))
    assert isinstance(value, gradcli.Tensor)
    assert not value.requires_grad
    return value.numpy()


def check(found, expected):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            check(found[key], value)
    elif isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            check(one, other)
    else:
        np.testing.assert_allclose(found, expected, 1e-12, 1e-13)
        assert np.shape(found) == np.shape(expected)


@pytest.mark.parametrize("name", CASES)
def test_value(name):
    run, expected = CASES[name]
    check(numbers(run()), expected)


def test_what_depends_on_tensors_outside_is_differentiated_by_them():
    w, x = (tensor(v, requires_grad=True) for v in (2.0, 3.0))
    found = func.grad(lambda y: w * y**3)(x)
    found.backward()
    assert (found.item(), w.grad.item(), x.grad.item()) == (54.0, 27.0, 36.0)
    value, derivative = func.jvp(lambda y: w * y**3, (x,), (tensor(1.0),))
    w.grad = x.grad = None
    derivative.backward()
    assert (value.item(), w.grad.item(), x.grad.item()) == (54.0, 27.0, 36.0)


def test_without_a_graph_outside_there_is_one_inside():
    x = tensor(3.0, requires_grad=True)
    with gradcli.no_grad():
        found = func.grad(lambda y: y**3)(x)
    assert found.item() == 27.0
    assert not found.requires_grad
    assert x.grad is None


class Squared(gradcli.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


def test_a_function_with_a_derivative_of_its_own_goes_in_reverse():
    value, derivative = func.jvp(Squared.apply, (tensor(3.0),), (tensor(2.0),))
    assert (value.item(), derivative.item()) == (9.0, 12.0)
    assert func.hessian(lambda x: Squared.apply(x).sum())(tensor(X)).tolist() == (2 * np.eye(3)).tolist()


def test_at_kinks_forward_and_reverse_agree():
    def kinks(x):
        return gradcli.relu(x) + gradcli.abs(x) + gradcli.clip(x, -1, 0) + gradcli.max(x)

    x = tensor([0.0, -1.0, 1.0, 1.0])
    np.testing.assert_array_equal(func.jacfwd(kinks)(x).numpy(), func.jacrev(kinks)(x).numpy())


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: func.grad(lambda x: 2 * x)(tensor(X)), r"a gradient is that of a scalar, .* a tensor of shape \[3\]"),
        (lambda: func.grad(lambda _x: 3.0)(tensor(X)), "returns tensors, and containers of them, not float"),
        (lambda: func.grad(wave)(tensor([1, 2])), "only Tensors of floating point dtype can require gradients"),
        (lambda: func.grad(wave, argnums=2)(tensor(X)), "argnums names argument 2, and 1 are given"),
        (lambda: func.grad(wave, argnums=0.0)(tensor(X)), "argnums is the number of an argument"),
        (lambda: func.grad(lambda x: x, has_aux=True)(tensor(1.0)), "with has_aux, the function returns a tuple"),
        (lambda: func.grad(3.0), "the first argument is a function of tensors, not float"),
        (lambda: func.vjp(mixed, tensor(X))[1](tensor([1.0])), r"of shape \[1\] does not fit a value of shape \[3\]"),
        (lambda: func.vjp(mixed, tensor(X))[1](1.0, 2.0), r"\(·, ·\) does not have the structure of ·"),
        (lambda: func.jvp(mixed, (tensor(X),), (tensor(1.0),)), r"of shape \[\] does not fit a value of shape \[3\]"),
        (lambda: func.jvp(mixed, tensor(X), tensor(V)), "the primals are a tuple, of one value for each argument"),
        (lambda: func.jvp(lambda _x: tensor(2.0), (1.0,), (1.0,), strict=True), "does not depend on the primals"),
        (lambda: func.vmap(lambda x, y: x)(tensor(X), tensor(ROWS)), "different numbers of rows: 2, 3"),
        (lambda: func.vmap(wave)(tensor(1.0)), "a number has no rows"),
        (lambda: func.vmap(wave, in_dims=(None,))(tensor(X)), "nothing is sliced"),
        (lambda: func.vmap(wave, in_dims="a")(tensor(X)), "in_dims is a number, or a tuple"),
        (lambda: func.vmap(wave, out_dims=None)(tensor(ROWS)), "None is no axis"),
        (lambda: func.vmap(lambda x: x if x.sum() > 0 else -x)(tensor(ROWS)), "depends on the numbers, .* in each row"),
    ],
)
def test_errors(run, message):
    with pytest.raises(gradcli.GradcliError, match=message):
        run()


def test_a_gradient_frees_what_it_needs_no_more():
    kept = []

    class First(gradcli.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            kept.append(kept[0]())
            return g

    def energy(x):
        middle = gradcli.sin(First.apply(x))
        kept.append(weakref.ref(middle))
        return (middle * middle).sum()

    func.grad(energy)(tensor([1.0, 2.0]))
    assert kept[1] is None
    # With an outside tensor the gradient can be differentiated, so that nothing is freed.
    kept.clear()
    w = tensor(2.0, requires_grad=True)
    (slope,) = grad(func.grad(lambda x: energy(x * w))(tensor([1.0, 2.0])).sum(), w)
    assert slope.item() != 0.0


def test_a_container_is_a_vector_and_back():
    values = {"a": 1.5, "b": (ROWS, [X, 2.0], ()), "c": {}}
    vector, unflatten = func.flatten(values)
    assert vector.tolist() == [1.5, *ROWS.ravel(), *X, 2.0]
    again = unflatten(vector)
    assert (again["a"].item(), again["b"][1][1].item(), again["b"][2], again["c"]) == (1.5, 2.0, (), {})
    np.testing.assert_array_equal(again["b"][0], ROWS)
    np.testing.assert_array_equal(again["b"][1][0], X)
    assert func.flatten(())[0].shape == (0,)
    with pytest.raises(gradcli.GradcliError, match="a vector of 11 numbers is needed, not one of shape"):
        unflatten(vector[1:])


def test_the_gradient_by_a_vector_is_that_by_what_it_holds():
    values = {"w": ROWS, "b": X}
    vector, unflatten = func.flatten(values)

    def energy(values):
        return (gradcli.sin(values["w"]) * values["b"]).sum()

    slope, _ = func.flatten(func.grad(energy)(values))
    np.testing.assert_allclose(func.grad(lambda v: energy(unflatten(v)))(vector), slope)
    by_x = func.grad(lambda x: (func.flatten([x, {"y": x * x}])[0] ** 2).sum())
    np.testing.assert_allclose(by_x(X), 2 * X + 4 * X**3)


def test_a_gradient_goes_along_a_direction_in_one_run_of_the_function():
    calls = []

    def energy(x):
        calls.append(x)
        return (gradcli.sin(x) * x).sum()

    x, v = gradcli.tensor([0.3, 1.2]), gradcli.tensor([1.0, -2.0])
    both, (slopes, change) = func.jvp(func.grad_and_value(energy), (x,), (v,))
    assert len(calls) == 1
    assert change.item() == pytest.approx((both[0] * v).sum().item())
    a = x.numpy()
    np.testing.assert_allclose(slopes.numpy(), (2 * np.cos(a) - a * np.sin(a)) * v.numpy())


def test_what_is_detached_has_no_derivative_along_a_direction():
    x = gradcli.tensor([2.0, 3.0])
    for function in (lambda x: x * x.detach(), lambda x: x * x.data, lambda x: x * x.detach().numpy()):
        value, along = func.jvp(function, (x,), (x,))
        assert (value.tolist(), along.tolist()) == ([4.0, 9.0], [4.0, 9.0])
    with pytest.raises(DifferentiationError, match=r"^Can't call numpy\(\)"):
        func.jvp(lambda x: x * x.numpy(), (x,), (x,))


@pytest.mark.parametrize(
    "change",
    [
        lambda x, r: x.add_(r),
        lambda x, r: x.copy_(r),
        lambda x, r: x[:2].mul_(r[0]),
        lambda x, r: x.__setitem__(0, r[0]),
        lambda x, r: x.__setitem__([0], r[0]),
    ],
)
def test_what_all_rows_share_is_not_changed_in_place_by_one(change):
    x, rows = gradcli.tensor([1.0, 2.0, 3.0]), gradcli.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with pytest.raises(NotBatchableError, match="the same in all rows"):
        func.vmap(lambda r: change(x, r))(rows)
    assert x.tolist() == [1.0, 2.0, 3.0]
    assert func.vmap(lambda r: r.clone().add_(x))(rows).tolist() == [[2.0, 4.0, 6.0], [5.0, 7.0, 9.0]]


PLACES = gradcli.tensor([0, 2, -1])
ROWS_OF_THREE = gradcli.tensor([[1.0, 2.0, 4.0], [0.5, -1.0, 3.0], [2.5, 0.0, -2.0]])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x[i],
        lambda x, i: x.gather(0, i.reshape(1)),
        lambda x, i: gradcli.take_along_axis(x, i.reshape(1), 0),
        lambda x, i: gradcli.outer(x, x)[i],
        lambda x, i: gradcli.outer(x, x)[gradcli.stack([i, i])],
        lambda x, i: gradcli.outer(x, x).gather(1, gradcli.stack([i, i]).reshape(1, 2)),
        lambda x, i: gradcli.nll_loss(x, i % 3),
        lambda x, i: gradcli.nll_loss(x.unsqueeze(0), (i % 3).reshape(1), weight=gradcli.tensor([1.0, 2.0, 0.5])),
        lambda x, i: gradcli.cross_entropy(x.unsqueeze(0), (i % 3).reshape(1), label_smoothing=0.25),
        lambda x, i: gradcli.nll_loss(gradcli.stack([x, x]), gradcli.stack([i, i]), ignore_index=-1, reduction="sum"),
        lambda x, i: gradcli.one_hot(i % 3, 3) * x,
        lambda x, i: gradcli.embedding(i % 3, gradcli.outer(x, x)),
    ],
)
def test_places_of_each_row(function):
    """Labels and indices may differ between the rows of vmap, for the value and for the gradient by what they
    select."""
    expected = gradcli.stack([function(x, i) for x, i in zip(ROWS_OF_THREE, PLACES)])
    np.testing.assert_allclose(func.vmap(function)(ROWS_OF_THREE, PLACES).numpy(), expected.numpy(), 1e-12)
    slope = func.grad(lambda x, i: function(x, i).sum() if function(x, i).ndim else function(x, i))
    slopes = gradcli.stack([slope(x, i) for x, i in zip(ROWS_OF_THREE, PLACES)])
    np.testing.assert_allclose(func.vmap(slope)(ROWS_OF_THREE, PLACES).numpy(), slopes.numpy(), 1e-12)


def test_a_place_of_a_row_that_there_is_not():
    with pytest.raises(gradcli.errors.ShapeError, match="an index is out of bounds for an axis of size 3"):
        func.vmap(lambda x, i: x[i])(ROWS_OF_THREE, PLACES + 1)


def test_what_no_row_chooses_does_not_matter():
    x = gradcli.tensor([[1.0, float("nan")], [float("inf"), 2.0]])
    assert func.vmap(lambda row, i: row[i])(x, gradcli.tensor([0, 1])).tolist() == [1.0, 2.0]


def test_zeros_like_a_row_are_rows():
    def triangle(x):
        sums = x.new_zeros(3)
        sums += x.cumsum(0)
        sums[0] = x.prod()
        return sums + gradcli.zeros_like(x).add_(x)

    found = func.vmap(triangle)(ROWS_OF_THREE)
    assert found.tolist() == [triangle(x).tolist() for x in ROWS_OF_THREE]
