"""Tests dual numbers: directional derivatives computed together with the values."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from contextlib import nullcontext
from contextvars import copy_context
from threading import Thread

import numpy as np
import pytest

import gradcli
import gradcli.autograd.forward_ad as fw
from gradcli import enable_grad, func, grad, no_grad, tensor
from gradcli.autograd.forward_ad import dual_level, make_dual, unpack_dual
from gradcli.autograd.graph import allow_mutation_on_saved_tensors, saved_tensors_hooks
from gradcli.errors import DifferentiationError, DtypeError, ShapeError
from gradcli.primitives import table
from gradcli.utils.checkpoint import checkpoint
from tests.autograd.test_function_tangents import Exp
from tests.samples import several

X, V = [0.3, 0.7], [1.0, 2.0]


@pytest.fixture
def level():
    with dual_level() as number:
        yield number


@pytest.fixture
def dual(level):
    return make_dual(tensor(X), tensor(V))


def tangent(x):
    return unpack_dual(x).tangent


# A function and its derivative along V at X.
FUNCTIONS = {
    "sin": (gradcli.sin, np.cos(X) * V),
    "exp, which keeps its result": (gradcli.exp, np.exp(X) * V),
    "cube": (lambda x: x**3, 3 * np.square(X) * V),
    "power 0": (lambda x: x**0, [0.0, 0.0]),
    "floor": (gradcli.floor, [0.0, 0.0]),
    "plus 1": (lambda x: x + 1, V),
    "product": (lambda x: x * x, 2 * np.multiply(X, V)),
    "minus itself": (lambda x: x - x, [0.0, 0.0]),
    "sum": (gradcli.sum, 3.0),
    "dot": (lambda x: x @ x, 2 * np.dot(X, V)),
    "broadcast": (lambda x: x * tensor([[1.0], [3.0]]), np.outer([1.0, 3.0], V)),
    "max": (lambda x: x.max(), 2.0),
    "where": (lambda x: gradcli.where(x > 0.5, x * x, x), [1.0, 2.8]),
    "index": (lambda x: x[1], 2.0),
    "permuted": (lambda x: x[[1, 0]], [2.0, 1.0]),
    "stack": (lambda x: gradcli.stack([x, 2 * x]), [[1.0, 2.0], [2.0, 4.0]]),
    "sorted": (lambda x: gradcli.sort(-x), [-2.0, -1.0]),
    "log_softmax": (lambda x: gradcli.log_softmax(x, axis=0)[0], 1 - (np.exp(X) @ V) / np.exp(X).sum()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_are_derivatives(name, dual):
    function, expected = FUNCTIONS[name]
    made = function(dual)
    np.testing.assert_allclose(tangent(made), expected, rtol=1e-6)
    np.testing.assert_array_equal(unpack_dual(made).primal, function(tensor(X)))


@pytest.mark.parametrize("function", [lambda x: x > 0.5, lambda x: x.argmax(), lambda x: x.detach(), lambda x: x.data])
def test_what_has_no_derivative_has_no_tangent(function, dual):
    assert tangent(function(dual)) is None


def test_a_dual_is_packed_and_unpacked(level):
    x, v = tensor(X), tensor(V)
    d = make_dual(x, v)
    made = unpack_dual(d)
    assert isinstance(made, fw.UnpackedDualTensor)
    assert made.tangent is v
    assert made.primal.tolist() == X
    assert made.primal is not unpack_dual(d).primal
    assert unpack_dual(x).tangent is None
    assert unpack_dual(made.primal).tangent is None
    assert level == fw._current_level == 0
    assert str(d) == "tensor([0.3, 0.7], tangent=tensor([1., 2.]))"
    assert str(make_dual(tensor(1.0, requires_grad=True), tensor(2.0)) * 3) == (
        "tensor(3.0, grad_fn=<MulBackward0>, tangent=tensor(6.0))"
    )


def test_tangents_end_with_their_level():
    x, v = tensor(X, requires_grad=True), tensor(V)
    with dual_level():
        d = make_dual(x, v)
        y = gradcli.exp(d)
        assert type(y).__name__ == "Dual"
        assert isinstance(y, gradcli.Tensor)
    assert fw._current_level == -1
    assert type(y) is type(d) is gradcli.Tensor
    assert unpack_dual(y) == (y, None)
    assert str(y).endswith("grad_fn=<ExpBackward0>)")
    np.testing.assert_allclose(grad(y.sum(), x)[0], np.exp(X))
    with dual_level():
        assert tangent(y) is None
        assert tangent(make_dual(x, v)) is v


def test_a_level_ends_with_an_error_too():
    with pytest.raises(ZeroDivisionError), dual_level():
        1 / 0  # noqa: B018
    assert fw._current_level == -1


def test_a_level_as_a_decorator_and_by_hand():
    @dual_level()
    def slope(x, v):
        return unpack_dual(make_dual(x, v) ** 2).tangent

    assert slope(tensor(3.0), tensor(1.0)).item() == slope(tensor(3.0), tensor(1.0)).item() == 6.0
    assert fw.enter_dual_level() == 0
    with pytest.raises(DifferentiationError, match="that was not the last one that was created"):
        fw.exit_dual_level(level=1)
    fw.exit_dual_level()
    with pytest.raises(DifferentiationError, match="that was not the last one that was created"):
        fw.exit_dual_level()


def test_a_dual_in_a_thread_without_a_level_is_a_tensor(dual):
    found = []

    def work():
        dual.mul_(2)
        found.append((dual * 2).tolist())
        x = tensor([1.0, 1.0])
        x += dual
        found.append(x.tolist())

    thread = Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_allclose(found, [[1.2, 2.8], [1.6, 2.4]])
    assert tangent(dual).tolist() == V


def test_a_level_is_of_its_context(level):
    assert copy_context().run(lambda: fw._current_level) == 0
    found = []
    thread = Thread(target=lambda: found.append(fw._current_level))
    thread.start()
    thread.join()
    assert found == [-1]


REFUSED = {
    "nested": (lambda d: fw.enter_dual_level(), DifferentiationError, "Nested forward mode AD is not supported"),
    "of a dual": (lambda d: make_dual(d, tensor(V)), DifferentiationError, "already has a forward gradient"),
    "by a dual": (lambda d: make_dual(tensor(X), d), DifferentiationError, "has a forward gradient at the same level"),
    "other size": (
        lambda d: make_dual(tensor(X), tensor(1.0)),
        DifferentiationError,
        r"has a different size than that of the original Tensor.*size \[2\] while .* of size \[\]",
    ),
    "whole primal": (lambda d: make_dual(tensor([1, 2]), tensor(V)), ValueError, "Expected primal to be floating"),
    "whole tangent": (lambda d: make_dual(tensor(X), tensor([1, 2])), DtypeError, "Expected tangent to be floating"),
    "no tensor": (lambda d: make_dual(tensor(X), 1.0), TypeError, "the tangent of a dual is a Tensor, not float"),
    "unpacked number": (lambda d: unpack_dual(3.0), TypeError, "must be Tensor, not float"),
    "detached view": (lambda d: d.detach_(), DifferentiationError, "Can't detach views in-place"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name, dual):
    function, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        function(dual)


def test_outside_of_a_level_there_are_no_duals():
    with pytest.raises(DifferentiationError, match="no level exists, make sure to enter_dual_level"):
        make_dual(tensor(X), tensor(V))


# --- in-place operations and views


def test_in_place_edits_are_done_on_the_tangent_too(level):
    x, v = tensor(X), tensor(V)
    d = make_dual(x, v)
    d *= 2
    assert tangent(d) is v
    assert v.tolist() == [2.0, 4.0]
    assert x.tolist() == [0.6, 1.4]
    assert tangent(x) is None
    x.zero_()
    assert d.tolist() == [0.0, 0.0]
    assert v.tolist() == [2.0, 4.0]
    v.fill_(5.0)
    assert tangent(d + 1).tolist() == [5.0, 5.0]
    d.fill_(1.0)
    assert v.tolist() == [0.0, 0.0]


def test_results_share_no_tangent_with_operands(dual):
    v = tangent(dual)
    for y in (dual + 1, dual + tensor([[1.0], [2.0]]), dual.clone(), dual.sum(axis=0, keepdims=True)):
        y *= 3
    assert v.tolist() == V


def test_views_of_duals_have_views_of_the_tangent(dual):
    part, other = dual[:1], dual.view(1, 2).T
    part *= 2
    assert tangent(dual).tolist() == [2.0, 2.0]
    assert tangent(part).tolist() == [2.0]
    assert tangent(other).tolist() == [[2.0], [2.0]]
    first, _ = dual.unbind()
    assert tangent(first).item() == 2.0


def test_a_tensor_becomes_a_dual_by_what_is_put_into_it(dual):
    x = tensor([1.0, 1.0])
    x *= dual
    assert tangent(x).tolist() == V
    x = tensor([1.0, 1.0])
    x.copy_(dual)
    assert tangent(x).tolist() == V
    assert tangent(x) is not tangent(dual)
    x = tensor([1.0, 1.0])
    x[0] = dual[1]
    assert tangent(x).tolist() == [2.0, 0.0]
    x = tensor([1.0, 1.0])
    x.detach().copy_(dual)
    assert tangent(x) is None
    assert x.tolist() == X


def test_all_views_of_what_becomes_a_dual_have_tangents(dual):
    x = tensor([[1.0, 1.0], [1.0, 1.0]])
    kept = [x[0, 1], x.T, x[1], x.detach(), x.view(4)[1:3]]
    # Views are invalidated, and not computed before.
    x += 1
    x[0].add_(1)
    x[0].copy_(dual)
    number, turned, other, detached, middle = map(tangent, kept)
    assert number.item() == 2.0
    assert turned.tolist() == [[1.0, 0.0], [2.0, 0.0]]
    assert other.tolist() == [0.0, 0.0]
    assert detached is None
    assert middle.tolist() == [2.0, 0.0]
    assert tangent(kept[0] * 3).item() == 6.0
    kept[1][0, 1] = 7.0
    assert tangent(x).tolist() == [[1.0, 2.0], [0.0, 0.0]]


def test_what_is_unpacked_is_a_tensor_of_its_own_in_the_same_memory(dual):
    primal = unpack_dual(dual).primal
    part = primal[0]
    part *= 2
    assert dual.tolist() == [0.6, 0.7]
    assert tangent(dual).tolist() == V
    other = tensor(2.0)
    primal[1] = make_dual(other, tensor(5.0))
    assert tangent(primal).tolist() == [0.0, 5.0]
    assert tangent(part).item() == 0.0
    assert tangent(dual).tolist() == V


@pytest.mark.parametrize("copied", [False, True])
def test_a_dual_that_is_seen_otherwise_in_place_has_its_tangent_seen_so(copied, level):
    d = make_dual(tensor([[1.0, 2.0, 3.0]]), tensor([[4.0, 5.0, 6.0]]))
    d = d * 1 if copied else d
    d.transpose_(0, 1)
    assert tangent(d * 2).tolist() == [[8.0], [10.0], [12.0]]
    d.squeeze_()
    d[0] = 0.0
    assert tangent(d * 2).tolist() == [0.0, 10.0, 12.0]


def test_a_tangent_that_lies_in_another_order_is_copied(level):
    v = tensor([[1.0, 2.0], [3.0, 4.0]])
    d = make_dual(tensor([[1.0, 1.0], [1.0, 1.0]]).T, v)
    assert tangent(d) is not v
    assert tangent(d).tolist() == v.tolist()
    flat = d.T.view(4)
    flat *= 2
    assert tangent(d).tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert v[0, 1].item() == 2.0
    assert tangent(make_dual(tensor(1.0).expand(3), tensor([1.0, 2.0, 3.0]))).tolist() == [1.0, 2.0, 3.0]


def test_a_tensor_of_a_users_class_keeps_it(dual):
    class Own(gradcli.Tensor):
        def double(self):
            return 2 * self

    x = Own(np.array([1.0, 1.0]))
    x *= dual
    assert isinstance(x, Own)
    assert tangent(x.double()).tolist() == [2.0, 4.0]


def test_detach_drops_the_tangent(dual):
    d = dual.clone()
    assert d.detach_() is d
    assert tangent(d) is None
    assert tangent(dual) is not None


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_copies_have_no_tangent(protocol, dual):
    for made in (pickle.loads(pickle.dumps(dual, protocol)), copy.deepcopy(dual)):
        assert type(made) is gradcli.Tensor
        assert made.tolist() == X


# --- with reverse mode


def test_tangents_are_differentiated_backward(level):
    x, v = tensor(X, requires_grad=True), tensor(V, requires_grad=True)
    primal, along = unpack_dual(gradcli.sin(make_dual(x, v)))
    found, unused = grad(primal.sum(), (x, v), allow_unused=True, retain_graph=True)
    np.testing.assert_allclose(found, np.cos(X))
    assert unused is None
    by_x, by_v = grad(along.sum(), (x, v))
    np.testing.assert_allclose(by_x, -np.sin(X) * V)
    np.testing.assert_allclose(by_v, np.cos(X))
    assert tangent(by_x) is None


def test_a_dual_is_differentiated_beside_tensors_that_are_none(level):
    x, w = tensor(X, requires_grad=True), tensor([2.0, 5.0], requires_grad=True)
    y = (make_dual(x, tensor(V)) * w).sum()
    assert [g.tolist() for g in grad(y, (x, w), retain_graph=True)] == [[2.0, 5.0], X]
    y.backward()
    assert w.grad.tolist() == X
    assert tangent(w.grad).tolist() == V
    (by_w,) = grad(tangent((make_dual(x, tensor(V)) * w).sum()), w)
    assert by_w.tolist() == V


@pytest.mark.parametrize("options", [{}, {"create_graph": True}])
@pytest.mark.parametrize(
    ("function", "second"),
    [
        (lambda x: (x**3).sum(), 6 * np.multiply(X, V)),
        (lambda x: gradcli.exp(x).sum(), np.exp(X) * V),
        (lambda x: x.prod(), [2.0, 1.0]),
        (lambda x: gradcli.maximum(x**2, 0.2).sum(), [0.0, 4.0]),
    ],
)
def test_gradients_of_duals_are_duals(function, second, options, level):
    x = tensor(X, requires_grad=True)
    d = make_dual(x, tensor(V))
    for target in (x, d):
        (found,) = grad(function(d), target, **options)
        np.testing.assert_allclose(tangent(found).detach(), second)
        assert found.requires_grad is bool(options)
    function(d).backward()
    np.testing.assert_allclose(tangent(x.grad), second)


@pytest.mark.parametrize("exp", [gradcli.exp, Exp.apply, lambda x: checkpoint(gradcli.exp, x, use_reentrant=False)])
@pytest.mark.parametrize("pack", [None, lambda x: x, lambda x: x.clone()])
def test_what_hooks_have_saved_has_its_tangent(exp, pack, level):
    x = tensor(X, requires_grad=True)
    with nullcontext() if pack is None else saved_tensors_hooks(pack, lambda y: y):
        y = exp(make_dual(x, tensor(V)))
    (found,) = grad(y.sum(), x)
    np.testing.assert_allclose(found, np.exp(X))
    np.testing.assert_allclose(tangent(found), np.exp(X) * V)


def test_what_was_saved_before_it_was_changed_has_the_tangent_of_then(level):
    x, w = tensor(X, requires_grad=True), tensor(V)
    with allow_mutation_on_saved_tensors():
        # Two duals of the same numbers, and a third without a tangent.
        first, second = make_dual(x, tensor(V)), make_dual(x, tensor([5.0, 7.0]))
        for_each = [first * 1, second * 1, x * 1]
        saved = [gradcli.sin(y) for y in for_each]
        for y in for_each:
            y.mul_(w)
        tangents = [tangent(grad(y.sum(), x)[0]) for y in saved]
    np.testing.assert_allclose(tangents[0], -np.sin(X) * V)
    np.testing.assert_allclose(tangents[1], -np.sin(X) * [5.0, 7.0])
    assert tangents[2] is None


def test_a_tangent_that_was_changed_in_place_is_differentiated_backward(level):
    x = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    dual = make_dual(x, tensor([[1.0, 3.0], [5.0, 7.0]]))
    y = dual * 1
    y[0].view(2)[1:].mul_(dual[1, 1])
    assert tangent(y).tolist() == [[1.0, 2 * 7 + 4 * 3.0], [5.0, 7.0]]
    assert grad(tangent(y).sum(), x)[0].tolist() == [[0.0, 7.0], [0.0, 3.0]]


def test_what_is_done_in_inference_mode_has_no_tangent(dual):
    with gradcli.inference_mode():
        assert tangent(dual * dual) is None
        with gradcli.inference_mode(False):
            assert tangent(dual * dual) is not None


def test_gradients_that_are_duals_are_accumulated_apart(level):
    x = tensor(X, requires_grad=True)
    dual = make_dual(x, tensor(V))
    dual.retain_grad()
    for power in (2, 3):
        (dual**power).sum().backward()
    for found in (x.grad, dual.grad):
        np.testing.assert_allclose(found, 2 * np.array(X) + 3 * np.square(X))
        np.testing.assert_allclose(tangent(found), 2 * np.array(V) + 6 * np.multiply(X, V))


def test_a_node_that_is_called_with_a_dual_gives_one(level):
    x, g = tensor(X, requires_grad=True), make_dual(tensor([1.0, 1.0]), tensor(V))
    node = gradcli.exp(x).grad_fn
    with no_grad():
        np.testing.assert_allclose(tangent(node(g)), np.exp(X) * V)
        node.next_functions[0][0](g)
    assert x.grad.tolist() == [1.0, 1.0]
    assert tangent(x.grad).tolist() == V


def test_gradients_by_a_leaf_that_is_a_dual(level):
    d = make_dual(tensor(X), tensor(V)).requires_grad_()
    (found,) = grad((d**3).sum(), d)
    np.testing.assert_allclose(found, 3 * np.square(X))
    np.testing.assert_allclose(tangent(found), 6 * np.multiply(X, V))
    (found,) = grad(tangent((d**3).sum()), d)
    np.testing.assert_allclose(found, 6 * np.multiply(X, V))


def test_tangents_are_there_in_no_grad(level):
    x = tensor(X, requires_grad=True)
    with no_grad():
        d = make_dual(x, tensor(V))
        y = d * d
        with enable_grad():
            assert not (y * 2).requires_grad
    assert not y.requires_grad
    assert not d._is_view()
    np.testing.assert_allclose(tangent(y), 2 * np.multiply(X, V))


def test_a_leaf_that_requires_grad_is_not_changed_through_a_dual(level):
    x = tensor(X, requires_grad=True)
    with pytest.raises(DifferentiationError, match="a view of a leaf Variable that requires grad is being used"):
        make_dual(x, tensor(V)).mul_(2)
    y = x * 1
    make_dual(y, tensor(V)).mul_(2)
    assert grad(y.sum(), x)[0].tolist() == [2.0, 2.0]


def test_what_is_done_with_forward_mode_off_has_no_tangent(dual):
    with fw._set_fwd_grad_enabled(False):
        assert not fw._is_fwd_grad_enabled()
        assert tangent(dual * 2) is None
    assert fw._is_fwd_grad_enabled()
    assert tangent(dual * 2) is not None


def test_a_level_keeps_no_tensor_alive(level):
    v = tensor(V, requires_grad=True)
    d = make_dual(tensor(X), v)
    known = weakref.ref(v)
    del v
    assert known() is not None
    del d
    assert known() is None


def test_no_circle_is_left_after_a_level():
    gc.collect()
    gc.disable()
    try:
        with dual_level():
            y = gradcli.exp(make_dual(tensor(X, requires_grad=True), tensor(V)))
            known = weakref.ref(y.grad_fn)
            del y
        assert known() is None
    finally:
        gc.enable()


# --- every function of the language


def is_real(value):
    try:
        return isinstance(value, (float, list)) and tensor(value).dtype == "float64"
    except ShapeError:
        return False


SAMPLED = {
    f"{operation.name} {i}": (operation, sample)
    for operations in table.subjects().values()
    for operation in operations
    if operation.derivative != "none"
    for i, sample in enumerate(operation.samples)
}


def reals_of(sample):
    operands = sample if isinstance(sample, tuple) else (sample,)
    return operands, [i for i, o in enumerate(operands) if is_real(o)]


@several("name", [name for name, (_, sample) in SAMPLED.items() if reals_of(sample)[1]])
def test_tangents_of_functions_are_those_of_jvp(name, level):
    function, sample = SAMPLED[name]
    operands, places = reals_of(sample)
    points = [tensor(operands[i]) for i in places]
    along = [tensor(np.linspace(0.5, 1.5, x.size).reshape(x.shape)) for x in points]

    def applied(*given):
        filled = dict(zip(places, given))
        return function(*[filled.get(i, o) for i, o in enumerate(operands)])

    _, expected = func.jvp(applied, tuple(points), tuple(along))
    made = applied(*map(make_dual, points, along))
    for one, other in zip(*[(m,) if isinstance(m, gradcli.Tensor) else m for m in (made, expected)], strict=True):
        found = tangent(one)
        np.testing.assert_allclose(np.zeros(one.shape) if found is None else found, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("columns", [slice(None), slice(1, 3)])
def test_each_row_of_a_batch_has_a_tangent_of_its_own_where_the_numbers_are_the_same(columns):
    """A tangent laid out like the numbers, and one given to a view of others, have the rows of the batch."""
    rows = tensor(np.arange(12.0).reshape(2, 2, 3))[:, :, columns]
    numbers, base = tensor(np.ones((3, 2))).transpose(0, 1)[:, columns], tensor(np.zeros((2, 3)))

    def along(direction):
        with dual_level():
            dual = make_dual(numbers, direction)
            view = base[:, columns]
            view.copy_(dual * 2.0)
            return unpack_dual(dual).tangent, unpack_dual(view).tangent, unpack_dual(base).tangent

    of_dual, of_view, of_base = func.vmap(along)(rows)
    expected = np.zeros((2, 2, 3))
    expected[:, :, columns] = 2 * rows.numpy()
    assert np.array_equal(of_dual.numpy(), rows.numpy())
    assert np.array_equal(of_view.numpy(), 2 * rows.numpy())
    assert np.array_equal(of_base.numpy(), expected)
