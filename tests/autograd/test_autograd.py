"""Tests details of the autograd engine that users of PyTorch rely on."""

from __future__ import annotations

import itertools
import math
import operator

import numpy as np
import pytest

import gradcli
from gradcli import Function, Tensor, grad, no_grad, tensor
from gradcli.autograd.targets import ancestors
from gradcli.errors import CallError, DifferentiationError, EvaluationError, GradcliError, ShapeError, UsageError

FREED = r"^Trying to backward through the graph a second time .* or autograd\.grad\(\)\. Specify retain_graph=True"
MODIFIED = "^one of the variables needed for gradient computation has been modified by an inplace operation"


def leaf(data, dtype=None):
    return tensor(data, dtype=dtype, requires_grad=True)


class TestHigherOrders:
    def test_three_orders_by_create_graph(self):
        x = leaf(0.7)
        y = gradcli.sin(x) * x**2
        (first,) = grad(y, x, create_graph=True)
        (second,) = grad(first, x, create_graph=True)
        (third,) = grad(second, x)
        s, c = math.sin(0.7), math.cos(0.7)
        assert first.item() == pytest.approx(c * 0.49 + s * 1.4, rel=1e-14)
        assert second.item() == pytest.approx(-s * 0.49 + 4 * 0.7 * c + 2 * s, rel=1e-14)
        assert third.item() == pytest.approx(-c * 0.49 - 6 * 0.7 * s + 6 * c, rel=1e-14)
        assert first.requires_grad
        assert not third.requires_grad

    def test_a_mixed_derivative_is_the_same_in_both_orders(self):
        x, y = leaf(1.2), leaf(0.4)
        z = gradcli.exp(x * y) * x
        by_x, by_y = grad(z, (x, y), create_graph=True)
        assert grad(by_x, y, retain_graph=True)[0].item() == pytest.approx(grad(by_y, x)[0].item(), rel=1e-14)

    def test_a_gradient_penalty(self):
        w, x = leaf([1.0, -2.0]), leaf([3.0, 0.5])
        y = gradcli.sum(w**2 * x)
        (by_x,) = grad(y, x, create_graph=True)
        gradcli.sum(by_x**2).backward()
        assert w.grad.tolist() == [4.0, -32.0]
        assert x.grad is None

    def test_create_graph_retains_the_graph(self):
        x = leaf(2.0)
        y = x**3
        y.backward(create_graph=True)
        y.backward()
        assert x.grad.item() == 24.0

    def test_retain_graph_false_overrides_create_graph(self):
        x = leaf(2.0)
        y = x**3
        grad(y, x, create_graph=True, retain_graph=False)
        with pytest.raises(DifferentiationError, match=FREED):
            y.backward()

    def test_accumulating_a_gradient_with_a_graph_keeps_the_graph(self):
        x = leaf(2.0)
        (x**3).backward(create_graph=True)
        (x**2).backward(create_graph=True)
        assert x.grad.item() == 16.0
        assert grad(x.grad, x)[0].item() == 14.0

    def test_a_hessian_vector_product(self):
        x = leaf([1.0, 2.0, 3.0])
        y = gradcli.prod(x)
        (g,) = grad(y, x, create_graph=True)
        (product,) = grad(g, x, grad_outputs=tensor([1.0, 0.0, 0.0]))
        assert product.tolist() == [0.0, 3.0, 2.0]

    def test_the_whole_powers_at_zero_have_every_derivative(self):
        x = leaf(0.0)
        value = x**4
        found = []
        for _ in range(5):
            (value,) = grad(value, x, create_graph=True)
            found.append(value.item())
        assert found == [0.0, 0.0, 0.0, 24.0, 0.0]

    def test_seeds_that_require_grad_are_differentiated_too(self):
        x, v = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        (product,) = grad(x**2, x, grad_outputs=v, create_graph=True)
        by_v, by_x = grad(product, (v, x), grad_outputs=tensor([1.0, 1.0]))
        assert by_v.tolist() == [2.0, 4.0]
        assert by_x.tolist() == [6.0, 8.0]


class TestHooks:
    def test_on_a_leaf_it_runs_once_on_the_sum_of_all_paths(self):
        x, seen = leaf([1.0, 2.0]), []
        x.register_hook(lambda g: seen.append(g.tolist()))
        gradcli.sum(x * x + x).backward()
        assert seen == [[3.0, 5.0]]

    def test_they_run_in_order_and_each_sees_what_the_one_before_returned(self):
        x, seen = leaf(1.0), []

        def double(g):
            seen.append(g.item())
            return g * 2

        def look(g):
            seen.append(g.item())

        x.register_hook(double)
        x.register_hook(look)
        (x * 3).backward()
        assert seen == [3.0, 6.0]
        assert x.grad.item() == 6.0

    def test_a_replacement_flows_on(self):
        x = leaf([1.0, 2.0])
        y = x * x
        y.register_hook(lambda g: g * tensor([10.0, 0.0]))
        y.sum().backward()
        assert x.grad.tolist() == [20.0, 0.0]

    def test_a_replacement_of_another_shape_is_refused(self):
        y = leaf([1.0, 2.0]) * 2

        def first(g):
            return g[0]

        y.register_hook(first)
        with pytest.raises(DifferentiationError, match=r"^hook 'first' has changed the size of value$"):
            y.sum().backward()

    def test_the_gradient_that_is_retained_is_the_replaced_one(self):
        x = leaf([1.0, 2.0])
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: g * 5)
        gradcli.sum(y * y).backward()
        assert y.grad.tolist() == [20.0, 40.0]
        assert x.grad.tolist() == [40.0, 80.0]

    def test_removing_one_leaves_the_others(self):
        x = leaf(1.0)
        y = x * 1
        first = y.register_hook(lambda g: g * 2)
        y.register_hook(lambda g: g * 3)
        first.remove()
        y.backward()
        assert x.grad.item() == 3.0

    def test_they_run_for_grad_as_well(self):
        x = leaf([1.0, 2.0])
        x.register_hook(lambda g: g * 5)
        assert grad(gradcli.sum(x * x), x)[0].tolist() == [10.0, 20.0]

    def test_a_replacement_can_be_differentiated(self):
        x = leaf(2.0)
        y = x * x
        y.register_hook(lambda g: g * g)
        (g,) = grad(y * 3, x, create_graph=True)
        assert g.item() == 36.0
        assert grad(g, x)[0].item() == 18.0

    def test_they_see_no_graph_unless_one_is_made(self):
        seen = []
        x = leaf(2.0)
        y = x * x
        y.register_hook(lambda g: seen.append((g.requires_grad, gradcli.is_grad_enabled())))
        z = y * y
        z.backward(retain_graph=True)
        z.backward(create_graph=True)
        assert seen == [(False, False), (True, True)]

    def test_they_are_refused_outside_of_a_graph(self):
        with pytest.raises(DifferentiationError, match=r"^cannot register a hook on a tensor that doesn't require"):
            tensor(1.0).register_hook(print)

    def test_a_backward_within_a_hook(self):
        x, w = leaf(2.0), leaf(3.0)
        y = x * x

        def inner(g):
            with gradcli.enable_grad():
                (w * w * g.item()).backward()

        y.register_hook(inner)
        (y * 5).backward()
        assert (x.grad.item(), w.grad.item()) == (20.0, 30.0)

    def test_hooks_stay_with_the_version_on_which_they_were_registered(self):
        seen = []
        x = leaf(2.0)
        y = x * x
        y.register_hook(lambda g: seen.append(g.item()))
        y.mul_(3.0)
        (y * y).backward()
        assert seen == [72.0]
        assert x.grad.item() == 288.0


class TestRetainGrad:
    def test_gradients_accumulate(self):
        x = leaf(2.0)
        y = x * x
        y.retain_grad()
        z = y * 3
        z.backward(retain_graph=True)
        z.backward()
        assert y.grad.item() == 6.0

    def test_it_follows_a_tensor_that_is_modified_in_place(self):
        x = leaf(2.0)
        y = x * x
        y.retain_grad()
        y.mul_(3.0)
        assert y.retains_grad
        (y * y).backward()
        assert y.grad.item() == 24.0

    def test_on_a_leaf_it_changes_nothing(self):
        x = leaf(2.0)
        x.retain_grad()
        assert not x.retains_grad
        (x * x).backward()
        assert x.grad.item() == 4.0

    def test_outside_of_a_graph_it_is_refused(self):
        with pytest.raises(DifferentiationError, match=r"^can't retain_grad on Tensor that has requires_grad=False$"):
            tensor(1.0).retain_grad()


class TestGradients:
    def test_a_class_of_ones_own(self):
        class Named(Tensor):
            def __init__(self, data, name):
                super().__init__(data)
                self.name = name
                self.requires_grad = True

        x = Named(3.0, "x")
        (x * x).backward()
        (g,) = grad(x, x, create_graph=True)
        assert (x.name, x.grad.item(), g.item()) == ("x", 6.0, 1.0)
        assert {type(made) for made in (x.grad, g, x.detach(), x.clone())} == {Tensor}

    def test_the_tensor_that_holds_a_gradient_stays_the_same(self):
        x = leaf(2.0)
        y = x * x
        y.backward(retain_graph=True)
        first = x.grad
        y.backward()
        assert x.grad is first
        assert first.item() == 8.0

    def test_two_leaves_do_not_share_one(self):
        x, y = leaf(2.0), leaf(3.0)
        (x + y).backward(create_graph=True)
        x.grad.zero_()
        assert (x.grad.item(), y.grad.item()) == (0.0, 1.0)

    def test_it_is_not_the_array_that_was_given_as_a_seed(self):
        x, seed = leaf([1.0, 2.0]), np.ones(2)
        (x + 1).backward(seed)
        seed[:] = 7
        assert x.grad.tolist() == [1.0, 1.0]

    def test_it_can_be_assigned(self):
        x = leaf(2.0)
        x.grad = tensor(3.0)
        (x * x).backward()
        assert x.grad.item() == 7.0

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (tensor([3.0, 3.0]), r"^attempting to assign a gradient of size \[2\] to a tensor of size \[\]"),
            (3.0, "^assigned grad expected to be a Tensor or None but got float$"),
        ],
    )
    def test_what_does_not_fit_is_not_assigned(self, value, message):
        x = leaf(2.0)
        with pytest.raises(DifferentiationError, match=message):
            x.grad = value
        assert x.grad is None

    def test_a_leaf_frozen_after_the_forward_pass_gets_none(self):
        x, w = leaf(2.0), leaf(3.0)
        y = x * w
        x.requires_grad_(False)
        y.backward()
        assert x.grad is None
        assert w.grad.item() == 2.0

    def test_backward_on_a_leaf(self):
        x = leaf(2.0)
        x.backward()
        assert x.grad.item() == 1.0


class TestGrad:
    def test_it_accumulates_nothing(self):
        x = leaf(2.0)
        assert grad(x * x, x)[0].item() == 4.0
        assert x.grad is None

    def test_it_always_returns_a_tuple(self):
        x = leaf(2.0)
        assert isinstance(grad(x * x, x), tuple)
        assert isinstance(grad([x * x], [x]), tuple)

    def test_inputs_that_are_no_leaves(self):
        x = leaf(2.0)
        y = x * x
        by_y, by_x = grad(y * y, (y, x))
        assert (by_y.item(), by_x.item()) == (8.0, 32.0)

    def test_by_an_output_itself(self):
        x = leaf(2.0)
        y = x * x
        assert grad(y, y)[0].item() == 1.0
        assert grad(x, x)[0].item() == 1.0

    def test_nothing_behind_the_inputs_is_differentiated(self):
        x = leaf(2.0)
        y = x * x
        y.register_hook(lambda g: g)
        z = gradcli.exp(y)
        grad(z, y)
        w = y * 2
        w.backward()
        assert x.grad.item() == 8.0

    def test_an_unused_input_is_an_error_that_says_which(self):
        x, w = leaf(2.0), leaf(1.0)
        message = (
            "^The differentiated Tensor at index 1 appears to not have been used in the graph. "
            "Set allow_unused=True if this is the desired behavior.$"
        )
        with pytest.raises(DifferentiationError, match=message):
            grad(x * 2, (x, w))

    def test_allow_unused_gives_none(self):
        x, w = leaf(2.0), leaf(1.0)
        by_x, by_w = grad(x * 2, (x, w), allow_unused=True)
        assert by_x.item() == 2.0
        assert by_w is None

    @pytest.mark.parametrize("target", [tensor(1.0), 1.0, None])
    def test_an_input_that_requires_no_grad_is_refused(self, target):
        x = leaf(2.0)
        message = "^One of the differentiated Tensors does not require grad$"
        with pytest.raises(DifferentiationError, match=message):
            grad(x * 2, (x, target))
        with pytest.raises(DifferentiationError, match=message):
            (x * 2).backward(inputs=[target])

    @pytest.mark.parametrize("root", [tensor(1.0), 1.0])
    def test_an_output_without_a_graph_is_refused(self, root):
        with pytest.raises(DifferentiationError, match=r"^element 1 of tensors does not require grad"):
            grad([leaf(2.0) * 2, root], leaf(1.0))

    def test_several_outputs_add_up(self):
        x = leaf([1.0, 2.0])
        first, second = x * x, x * 3
        seeds = tensor([1.0, 2.0]), tensor([0.0, 1.0])
        assert grad((first, second), x, seeds)[0].tolist() == [2.0, 11.0]

    def test_none_is_a_seed_for_a_scalar(self):
        x = leaf([1.0, 2.0])
        found = grad((gradcli.sum(x * x), x * 3), x, (None, tensor([0.0, 1.0])))
        assert found[0].tolist() == [2.0, 7.0]

    def test_an_output_twice_counts_twice(self):
        x = leaf(3.0)
        y = x * x
        assert grad((y, y), x)[0].item() == 12.0

    def test_seeds_must_be_as_many_as_outputs(self):
        x = leaf([1.0, 2.0])
        with pytest.raises(DifferentiationError, match=r"^got 2 tensors and 1 gradients$"):
            grad((x * x, x * 3), x, (tensor([1.0, 2.0]),))

    def test_seeds_have_the_shape_of_their_output(self):
        x = leaf([1.0, 2.0])
        message = r"^Mismatch in shape: grad_output\[1\] has a shape of \[1\] and output\[1\] has a shape of \[\]\.$"
        with pytest.raises(DifferentiationError, match=message):
            grad((x.sum(), x.mean()), x, (None, tensor([1.0])))

    def test_a_single_element_counts_as_a_scalar(self):
        x = leaf([[5.0]])
        (x * 2).backward()
        assert x.grad.tolist() == [[2.0]]


class TestChosenInputs:
    def test_a_non_leaf_gets_its_gradient(self):
        x = leaf(2.0)
        y = x * x
        (y * y).backward(inputs=[y])
        assert y.grad.item() == 8.0
        assert x.grad is None

    def test_one_tensor_needs_no_list(self):
        x = leaf(2.0)
        (x * x).backward(inputs=x)
        assert x.grad.item() == 4.0

    def test_an_input_without_influence_gets_none(self):
        x, w = leaf(2.0), leaf(2.0)
        (x * x).backward(inputs=[w])
        assert w.grad is None
        assert x.grad is None

    def test_none_at_all_is_refused(self):
        with pytest.raises(DifferentiationError, match=r"^`inputs` argument to `backward\(\)` cannot be empty\.$"):
            (leaf(2.0) * 2).backward(inputs=[])


class TestReleasedGraphs:
    @pytest.mark.parametrize(
        "operation",
        [
            lambda x: x + 2, lambda x: x - 1, lambda x: -x, lambda x: x.sum(), lambda x: x.mean(),
            lambda x: x[0], lambda x: x.reshape(2, 1), lambda x: x + np.ones(2),
        ],
    )  # fmt: skip
    def test_what_saved_nothing_can_be_used_again(self, operation):
        x = leaf([1.0, 2.0])
        y = operation(x)
        seed = np.ones(y.shape)
        y.backward(seed)
        first = x.grad.tolist()
        y.backward(seed)
        assert x.grad.tolist() == [2 * g for g in first]

    @pytest.mark.parametrize(
        "operation",
        [
            lambda x: x * 2, lambda x: 2 * x, lambda x: x / 2, lambda x: x**2, gradcli.exp, gradcli.log,
            lambda x: x * np.ones(2), lambda x: gradcli.where(tensor([True, False]), x, 0.0),
        ],
    )  # fmt: skip
    def test_what_saved_something_cannot(self, operation):
        y = operation(leaf([1.0, 2.0]))
        y.backward(np.ones(2))
        with pytest.raises(DifferentiationError, match=FREED):
            y.backward(np.ones(2))

    def test_a_shared_part_that_saved_nothing(self):
        x = leaf(2.0)
        shared = x + 1
        first, second = shared * 3, gradcli.exp(shared)
        first.backward()
        second.backward()
        assert x.grad.item() == pytest.approx(3 + math.exp(3), rel=1e-15)

    def test_a_shared_part_that_saved_something(self):
        x = leaf(2.0)
        shared = gradcli.exp(x)
        first, second = shared * 2, shared * 3
        first.backward()
        with pytest.raises(DifferentiationError, match=FREED):
            second.backward()

    def test_a_pass_that_ends_before_the_shared_part_leaves_it_whole(self):
        x = leaf(2.0)
        shared = gradcli.exp(x)
        first, second = shared * 2, shared * 3
        grad(first, shared)
        second.backward()
        assert x.grad.item() == pytest.approx(3 * math.exp(2), rel=1e-15)


class TestInPlace:
    def test_a_product_with_itself_many_times(self):
        x = leaf(2.0)
        y = x * 1
        same = y
        y *= x
        y *= x
        assert y is same
        assert y.item() == 8.0
        y.backward()
        assert x.grad.item() == 12.0

    @pytest.mark.parametrize(
        ("operation", "gradient"),
        [
            (operator.iadd, 1.0), (operator.isub, 1.0), (operator.imul, 3.0), (operator.itruediv, 1 / 3),
            (operator.ipow, 12.0),
        ],
    )  # fmt: skip
    def test_the_operators(self, operation, gradient):
        x = leaf(2.0)
        y = x * 1
        y = operation(y, 3)
        y.backward()
        assert x.grad.item() == pytest.approx(gradient, rel=1e-15)

    def test_a_function_with_an_underscore(self):
        x = leaf([0.5, 1.0])
        y = x * 2
        assert y.exp_() is y
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp([1.0, 2.0]), rtol=1e-15)

    def test_a_leaf_without_grad_joins_the_graph(self):
        a, x = tensor([1.0, 2.0]), leaf(3.0)
        a += x
        assert (a.requires_grad, a.is_leaf) == (True, False)
        gradcli.sum(a * a).backward()
        assert x.grad.item() == 18.0

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            ([3.0, 4.0, 5.0], "do not broadcast together in 'add'"),
            ([[3.0, 4.0], [1.0, 1.0]], r"^output with shape \[2\] doesn't match the broadcast shape \[2, 2\]$"),
        ],
    )
    def test_the_shape_stays(self, other, message):
        y = leaf([1.0, 2.0]) * 1
        with pytest.raises(ShapeError, match=message):
            y += tensor(other)
        assert y.tolist() == [1.0, 2.0]
        assert y.grad_fn.name == "MulBackward0"
        assert y.version == 0

    def test_the_dtype_stays(self):
        a = tensor([1, 2])
        with pytest.raises(
            EvaluationError, match=r"^result type float64 can't be cast to the desired output type int64$"
        ):
            a += 0.5
        a *= 2
        assert (a.tolist(), a.dtype) == ([2, 4], "int64")
        b = tensor([1.0], dtype="float32")
        b += tensor([1.0])
        assert b.dtype == "float32"

    @pytest.mark.parametrize("saves", [lambda y, x: y * x, lambda y, _x: y * y, lambda y, _x: gradcli.sin(y)])
    def test_an_operand_that_was_saved(self, saves):
        x = leaf(2.0)
        y = x * x
        z = saves(y, x)
        y.add_(1)
        message = MODIFIED + r".*which is output 0 of AddBackward0, is at version 1; expected version 0 instead\.$"
        with pytest.raises(DifferentiationError, match=message):
            z.backward()

    def test_a_result_that_was_saved(self):
        y = gradcli.exp(leaf([2.0, 1.0]))
        y += 1
        message = MODIFIED + (
            r": \[float64 \[2\]\], which is output 0 of ExpBackward0, is at version 1; expected version 0 instead\.$"
        )
        with pytest.raises(DifferentiationError, match=message):
            y.sum().backward()

    def test_a_result_that_was_saved_modified_without_grad(self):
        x = leaf(2.0)
        y = gradcli.sqrt(x)
        with no_grad():
            y.mul_(2)
            y.mul_(2)
        with pytest.raises(DifferentiationError, match="is at version 2; expected version 0"):
            y.backward()

    def test_a_result_that_was_not_saved(self):
        x = leaf(2.0)
        y = gradcli.sin(x)
        y *= 3
        y.backward()
        assert x.grad.item() == pytest.approx(3 * math.cos(2), rel=1e-15)

    def test_by_itself(self):
        y = leaf(2.0) * 1
        y *= y
        assert y.item() == 4.0
        with pytest.raises(DifferentiationError, match=MODIFIED):
            y.backward()

    def test_zero_stops_the_gradient(self):
        x = leaf([1.0, 2.0])
        y = x * 1
        y.zero_()
        assert y.requires_grad
        assert y.tolist() == [0.0, 0.0]
        gradcli.sum(y + x).backward()
        assert x.grad.tolist() == [1.0, 1.0]

    def test_fill_passes_the_gradient_to_the_value(self):
        x, v = leaf([1.0, 2.0]), leaf(3.0)
        y = x * 1
        y.fill_(v)
        gradcli.sum(y * y).backward()
        assert x.grad.tolist() == [0.0, 0.0]
        assert v.grad.item() == 12.0

    def test_copy_passes_the_gradient_to_the_source(self):
        x, v = leaf([1.0, 2.0]), leaf([3.0])
        y = x * 1
        y.copy_(v)
        gradcli.sum(y * y).backward()
        assert x.grad.tolist() == [0.0, 0.0]
        assert v.grad.tolist() == [12.0]

    def test_a_copy_that_does_not_fit_changes_nothing(self):
        y = leaf([1.0, 2.0]) * 1
        with pytest.raises(ShapeError):
            y.copy_(tensor([1.0, 2.0, 3.0]))
        assert y.requires_grad
        assert y.tolist() == [1.0, 2.0]

    def test_a_copy_converts(self):
        a = tensor([1, 2])
        a.copy_(tensor([1.5, 2.5]))
        assert (a.tolist(), a.dtype) == ([1, 2], "int64")
        a.fill_(7)
        assert a.tolist() == [7, 7]

    def test_without_grad_a_non_leaf_keeps_its_place(self):
        x = leaf([1.0, 2.0])
        y = x * 1
        with no_grad():
            y.zero_()
        gradcli.sum(y * y).backward()
        assert x.grad.tolist() == [0.0, 0.0]

    def test_the_array_it_was_made_from_does_not_change(self):
        data = np.ones(2)
        a = tensor(data)
        a += 1
        data -= 5
        assert a.tolist() == [2.0, 2.0]


class TestDetach:
    def test_it_is_a_leaf_with_the_same_values(self):
        y = leaf([1.0, 2.0]) * 2
        d = y.detach()
        assert (d.requires_grad, d.is_leaf, d.grad_fn) == (False, True, None)
        assert d.tolist() == y.tolist()

    def test_it_is_a_constant(self):
        x = leaf(3.0)
        (x * x.detach()).backward()
        assert x.grad.item() == 3.0

    def test_a_clone_stays_in_the_graph(self):
        x = leaf(3.0)
        y = x.clone()
        assert y.grad_fn.name == "CloneBackward0"
        y += 1
        assert x.item() == 3.0
        y.backward()
        assert x.grad.item() == 1.0


class TestRequiresGrad:
    def test_a_result_cannot_refuse_it(self):
        y = leaf(2.0) * 2
        with pytest.raises(DifferentiationError, match=r"^you can only change requires_grad flags of leaf variables"):
            y.requires_grad_(False)
        assert y.requires_grad_() is y

    def test_a_result_of_integers_has_no_graph(self):
        x = leaf([1.7, -2.3])
        assert not (x > 0).requires_grad
        assert not gradcli.argmax(x).requires_grad
        assert gradcli.floor(x).requires_grad

    def test_an_operand_that_does_not_require_it_gets_nothing(self):
        x, c = leaf(2.0), tensor(3.0)
        (x * c).backward()
        assert c.grad is None


class TestDtypes:
    def test_integers_stay_integers(self):
        a = tensor([1, 2])
        assert (a + a).dtype == (a * 2).dtype == (a**2).dtype.replace("float64", "int64") == "int64"
        assert (a / 2).dtype == (a * 2.5).dtype == "float64"

    def test_integers_beside_floats(self):
        x = leaf([1.0, 2.0])
        gradcli.sum(tensor([3, 4]) * x).backward()
        assert x.grad.tolist() == [3.0, 4.0]

    def test_integers_and_numbers_beside_single_precision(self):
        x = leaf([1.0, 2.0], "float32")
        whole, number = tensor([2, 3]), 2.5
        for y in (x * whole, whole - x, x / whole, x**whole, x * number, number**x, x * [2, 3], x @ [2, 3]):
            assert y.dtype == "float32"
        (x * whole).sum().backward()
        assert (x.grad.dtype, x.grad.tolist()) == ("float32", [2.0, 3.0])

    def test_single_beside_double_precision(self):
        a, b = leaf([1.0, 2.0], "float32"), leaf([3.0, 4.0], "float64")
        y = a * b
        assert y.dtype == "float64"
        y.sum().backward()
        assert (a.grad.dtype, a.grad.tolist()) == ("float32", [3.0, 4.0])
        assert (b.grad.dtype, b.grad.tolist()) == ("float64", [1.0, 2.0])

    def test_a_double_of_zero_dimensions_does_not_widen_an_array(self):
        a, b = leaf([1.0, 2.0], "float32"), leaf(3.0, "float64")
        y = a * b
        assert y.dtype == "float32"
        y.sum().backward()
        assert (a.grad.dtype, b.grad.dtype) == ("float32", "float64")

    def test_gradients_from_grad_have_the_dtype_of_their_input(self):
        a, b = leaf(2.0, "float32"), leaf([3.0, 4.0], "float64")
        y = gradcli.sum(a * b)
        assert [g.dtype for g in grad(y, (a, b), retain_graph=True)] == ["float32", "float64"]
        y.backward(create_graph=True)
        assert (a.grad.dtype, a.grad.item()) == ("float32", 7.0)

    def test_a_seed_of_another_dtype(self):
        a = leaf([1.0, 2.0], "float32")
        (a**2).backward(tensor([1.0, 1.0], dtype="float64"))
        assert (a.grad.dtype, a.grad.tolist()) == ("float32", [2.0, 4.0])

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.0, 5e-324])
    def test_a_number_stays_what_it_is(self, value):
        assert math.copysign(1, tensor(value).item()) == math.copysign(1, value)
        assert str(tensor(value).item()) == str(value)


class TestNumPy:
    @pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "matmul"])
    def test_an_array_on_either_side(self, name):
        operation = getattr(operator, name)
        array, data = np.array([1.5, 2.0]), np.array([3.0, 0.4])
        x = leaf(data)
        for found, expected in (
            (operation(array, x), operation(array, data)),
            (operation(x, array), operation(data, array)),
        ):
            assert isinstance(found, Tensor)
            assert found.requires_grad
            np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-15)

    def test_a_numpy_number_on_either_side(self):
        x = leaf([1.0, 2.0])
        for y in (np.float64(2) * x, x * np.float64(2), np.float32(2) * x, np.int64(2) * x):
            assert isinstance(y, Tensor)
            assert y.tolist() == [2.0, 4.0]

    def test_comparisons_with_an_array(self):
        x = tensor([1.0, 2.0])
        assert (np.array([1.5, 1.5]) < x).tolist() == [False, True]
        assert (x == np.array([1.0, 1.0])).tolist() == [True, False]

    def test_an_array_that_changes_later_does_not_change_the_gradient(self):
        x, array = leaf([1.0, 2.0]), np.array([3.0, 4.0])
        y = x * array
        array[:] = 0
        y.sum().backward()
        assert x.grad.tolist() == [3.0, 4.0]

    @pytest.mark.parametrize("convert", [Tensor.numpy, np.asarray, np.array, lambda x: np.ones(2) * [x[0], x[1]]])
    def test_a_graph_is_not_lost_without_a_word(self, convert):
        with pytest.raises(DifferentiationError, match=r"^Can't call numpy\(\) on Tensor that requires grad"):
            convert(leaf([1.0, 2.0]))

    def test_a_constant_is_an_array(self):
        x = tensor([1.0, 2.0])
        assert np.asarray(x).tolist() == [1.0, 2.0]
        assert np.array(x, dtype="float32").dtype == "float32"
        assert np.array(x) is not x.inner
        assert float(x.sum()) == 3.0


class TestZeroSizes:
    def test_sums_and_means(self):
        x = leaf(np.zeros((0, 3)))
        y = (x * 2).sum()
        y.backward()
        assert y.item() == 0.0
        assert x.grad.shape == (0, 3)
        assert math.isnan(x.mean().item())

    def test_broadcasting_from_nothing(self):
        x, empty = leaf(2.0), leaf(np.zeros((0,)))
        gradcli.sum(x * empty).backward()
        assert x.grad.item() == 0.0
        assert empty.grad.shape == (0,)

    def test_a_product_over_nothing(self):
        a, b = leaf(np.zeros((2, 0))), leaf(np.zeros((0, 3)))
        y = a @ b
        assert y.tolist() == [[0.0] * 3] * 2
        y.sum().backward()
        assert (a.grad.shape, b.grad.shape) == ((2, 0), (0, 3))


SHAPES = [(), (1,), (3,), (2, 3), (2, 1), (1, 3), (4, 2, 3), (4, 1, 1)]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(SHAPES, SHAPES)))
def test_gradients_have_the_shape_of_their_operand_and_sum_over_what_was_broadcast(first, second):
    draw = np.random.default_rng(3).uniform
    a, b = leaf(draw(0.5, 2, first)), leaf(draw(0.5, 2, second))
    c = tensor(draw(0.5, 2, np.broadcast_shapes(first, second)))
    gradcli.sum(c * a / b).backward()
    by_a = np.broadcast_to(c.numpy() / b.detach().numpy(), c.shape)
    by_b = -np.broadcast_to(c.numpy() * a.detach().numpy() / b.detach().numpy() ** 2, c.shape)
    for operand, full in ((a, by_a), (b, by_b)):
        assert operand.grad.shape == operand.shape
        lead = full.ndim - operand.ndim
        axes = (*range(lead), *(i + lead for i, size in enumerate(operand.shape) if size == 1))
        expected = full.sum(axis=axes).reshape(operand.shape)
        np.testing.assert_allclose(operand.grad.numpy(), expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("function", "point", "first", "second"),
    [
        (lambda x: gradcli.where(x > 0, gradcli.sqrt(x), 0 * x), [-1.0, 0.0, 4.0], [0, 0, 0.25], [0, 0, -1 / 32]),
        (lambda x: gradcli.where(x > 0, gradcli.log(x), 0.0), [-1.0, 0.0, 4.0], [0, 0, 0.25], [0, 0, -1 / 16]),
        (lambda x: gradcli.where(x == 0, 1.0, gradcli.sin(x) / x), [0.0], [0.0], [0.0]),
        (lambda x: gradcli.where(x > 0, x**1.5, 0.0), [0.0, 1.0], [0, 1.5], [0, 0.75]),
        # log(1) is a computed zero, which must not count as "not taken".
        (lambda x: gradcli.where(x > 0, x**0.5 * gradcli.log(x), 0.0), [0.0, 1.0], [0, 1], [0, 0]),
        (lambda x: gradcli.maximum(gradcli.log(x), -1.0), [0.0, 1.0], [0, 1], [0, -1]),
        (lambda x: gradcli.clip(1 / x, -2.0, 2.0), [0.0, 1.0], [0, -1], [0, 2]),
        (lambda x: gradcli.sqrt(x)[1:], [0.0, 4.0], [0, 0.25], [0, -1 / 32]),
        (lambda x: gradcli.max(gradcli.log(x)), [0.0, 4.0], [0, 0.25], [0, -1 / 16]),
    ],
)  # fmt: skip
def test_what_was_not_taken_does_not_poison_a_gradient(function, point, first, second):
    x = leaf(point)
    (g,) = grad(gradcli.sum(function(x)), x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), first, rtol=1e-14)
    if g.requires_grad:
        (h,) = grad(gradcli.sum(g), x)
        np.testing.assert_allclose(h.numpy(), second, rtol=1e-14)


def test_a_zero_that_is_computed_is_no_shield():
    x = leaf(0.0)
    (0.0 * gradcli.log(x)).backward()
    assert math.isnan(x.grad.item())
    (g,) = grad(x**1.5, x, create_graph=True)
    assert math.isnan(grad(g * 0.0, x)[0].item())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: gradcli.maximum(gradcli.sqrt(x), -1.0)[0] ** 2,
        lambda x: gradcli.max(gradcli.sqrt(x)) ** 2,
        lambda x: gradcli.sqrt(x)[0] ** 2,
        lambda x: gradcli.sqrt(x - [0.0, 5.0])[0] ** 2,
        lambda x: gradcli.sum(gradcli.where(x < 1, gradcli.sqrt(x), 1.0) * [0.0, 1.0]),
        lambda x: gradcli.sum(gradcli.sqrt(x)[None, :1] @ [[0.0]]),
        lambda x: (lambda y: gradcli.sum(gradcli.where(x < 1, y, 1.0) - y))(gradcli.sqrt(x)),
    ],
)
def test_a_zero_that_is_computed_is_no_shield_of_what_was_taken(function):
    """Selecting functions send zeros to operands that they do not take; a computed zero is not one of these."""
    x = leaf([0.0, 0.0])
    function(x).backward()
    assert math.isnan(x.grad.numpy()[0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: gradcli.sqrt(x)[1] ** 2,
        lambda x: 0.0 * gradcli.max(gradcli.log(x)),
        lambda x: gradcli.sum(gradcli.where(x > 0, gradcli.sqrt(x), 0.0) * [0.0, 0.0]),
        lambda x: gradcli.sum(gradcli.sqrt(x)[None, 1:] @ [[0.0]]),
        lambda x: (lambda y: gradcli.sum(gradcli.where(x > 1, y, 0.0) - gradcli.where(x > 1, y, 2.0)))(gradcli.sqrt(x)),
    ],
)
def test_zeros_that_are_computed_leave_out_what_was_not_taken(function):
    x = leaf([0.0, 4.0])
    function(x).backward()
    assert x.grad.numpy()[0] == 0


class SumAndProduct(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b, a + b

    @staticmethod
    def backward(ctx, g, h):
        a, b = ctx.saved_tensors
        return g * b + h, g * a + h


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = gradcli.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class TestFunctions:
    def test_several_outputs(self):
        x, y = leaf(2.0), leaf(3.0)
        p, q = SumAndProduct.apply(x, y)
        assert p.grad_fn is q.grad_fn
        (p * q).backward()
        assert (x.grad.item(), y.grad.item()) == (21.0, 16.0)

    def test_an_output_that_was_not_used_sends_zeros(self):
        x, y = leaf(2.0), leaf(3.0)
        p, _ = SumAndProduct.apply(x, y)
        p.backward()
        assert (x.grad.item(), y.grad.item()) == (3.0, 2.0)

    def test_zeros_are_not_made_where_they_are_not_wanted(self):
        seen = []

        class Twice(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(False)
                return x * 2, x * 3

            @staticmethod
            def backward(_ctx, g, h):
                seen.append(h)
                return g * 2

        x = leaf([1.0, 2.0])
        Twice.apply(x)[0].sum().backward()
        assert seen == [None]
        assert x.grad.tolist() == [2.0, 2.0]

    def test_hooks_and_retained_gradients_of_one_of_several_outputs(self):
        x, y = leaf(2.0), leaf(3.0)
        p, q = SumAndProduct.apply(x, y)
        q.retain_grad()
        q.register_hook(lambda g: g * 10)
        (p + q).backward()
        assert q.grad.item() == 10.0
        assert x.grad.item() == 13.0

    def test_an_argument_that_is_no_tensor(self):
        class Power(Function):
            @staticmethod
            def forward(ctx, x, n):
                ctx.n = n
                ctx.save_for_backward(x)
                return x**n

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * ctx.n * x ** (ctx.n - 1), None

        x = leaf(2.0)
        (g,) = grad(Power.apply(x, 3), x, create_graph=True)
        assert g.item() == 12.0
        assert grad(g, x)[0].item() == 12.0

    def test_a_gradient_for_what_is_no_tensor_is_refused(self):
        class Scale(Function):
            @staticmethod
            def forward(_ctx, x, n):
                return x * n

            @staticmethod
            def backward(_ctx, g):
                return g * 2, g * 3

        message = (
            "^function ScaleBackward returned a gradient different than None at position 2, "
            "but the corresponding forward input was not a Variable$"
        )
        with pytest.raises(DifferentiationError, match=message):
            Scale.apply(leaf(2.0), 3).backward()

    def test_none_is_no_gradient(self):
        class First(Function):
            @staticmethod
            def forward(_ctx, a, b):
                return a * b

            @staticmethod
            def backward(_ctx, g):
                return g * 2, None

        x, w = leaf(2.0), leaf(3.0)
        First.apply(x, w).backward()
        assert x.grad.item() == 2.0
        assert w.grad is None

    def test_none_for_everything(self):
        class Nothing(Function):
            @staticmethod
            def forward(_ctx, x):
                return x * 1

            @staticmethod
            def backward(_ctx, _g):
                return None

        x = leaf(2.0)
        Nothing.apply(x * 2).backward()
        assert x.grad is None

    def test_more_gradients_than_inputs_where_the_rest_is_none(self):
        class Generous(Function):
            @staticmethod
            def forward(_ctx, x):
                return x * 2

            @staticmethod
            def backward(_ctx, g):
                return g * 2, None, None

        x = leaf(2.0)
        Generous.apply(x).backward()
        assert x.grad.item() == 2.0

    def test_a_saved_output_can_be_differentiated_again(self):
        x = leaf(2.0)
        value = Exp.apply(x)
        for _ in range(3):
            (value,) = grad(value, x, create_graph=True)
            assert value.item() == math.exp(2)

    def test_a_saved_output_modified_in_place(self):
        y = Exp.apply(leaf(2.0))
        y.add_(1)
        with pytest.raises(DifferentiationError, match=MODIFIED):
            y.backward()

    def test_a_saved_input_modified_in_place(self):
        y = leaf(2.0) * 1
        p, _ = SumAndProduct.apply(y, tensor(3.0))
        y.add_(1)
        with pytest.raises(DifferentiationError, match=MODIFIED + ".*is at version 1; expected version 0"):
            p.backward()

    def test_one_that_reads_no_saved_tensors_can_be_used_again(self):
        class Triple(Function):
            @staticmethod
            def forward(_ctx, x):
                return x * 3

            @staticmethod
            def backward(_ctx, g):
                return g * 3

        x = leaf(2.0)
        y = Triple.apply(x)
        y.backward()
        y.backward()
        assert x.grad.item() == 6.0

    @pytest.mark.parametrize(("shape", "fits"), [((3,), False), ((), False), ((3, 2), True), ((1, 2), True)])
    def test_a_gradient_is_summed_to_the_shape_of_its_input_where_it_can_be(self, shape, fits):
        class Total(Function):
            @staticmethod
            def forward(_ctx, x):
                return x.sum()

            @staticmethod
            def backward(_ctx, g):
                return g * np.ones(shape) if shape else g

        x = leaf([1.0, 2.0])
        y = Total.apply(x)
        if fits:
            y.backward()
            assert x.grad.tolist() == [float(shape[0])] * 2
        else:
            message = r"^Function TotalBackward returned an invalid gradient at index 0 - got .* compatible with \[2\]$"
            with pytest.raises(DifferentiationError, match=message):
                y.backward()

    def test_an_output_that_cannot_be_differentiated(self):
        class Marked(Function):
            @staticmethod
            def forward(ctx, x):
                triple = x * 3
                ctx.mark_non_differentiable(triple)
                return x * 2, triple, x > 1

            @staticmethod
            def backward(_ctx, g, _h, _k):
                return g * 2

        x = leaf([1.0, 2.0])
        double, triple, mask = Marked.apply(x)
        assert [t.requires_grad for t in (double, triple, mask)] == [True, False, False]
        assert mask.tolist() == [False, True]
        double.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]

    @pytest.mark.parametrize("block", [True, False])
    def test_nothing_is_recorded_where_nothing_requires_grad(self, block):
        with no_grad() if block else gradcli.enable_grad():
            y = Exp.apply(tensor(2.0, requires_grad=block))
        assert y.grad_fn is None

    def test_methods_that_are_missing(self):
        class Empty(Function):
            pass

        class OnlyForward(Function):
            @staticmethod
            def forward(_ctx, x):
                return x * 1

        with pytest.raises(NotImplementedError, match="You must implement the forward function"):
            Empty.apply(leaf(1.0))
        with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp"):
            OnlyForward.apply(leaf(1.0)).backward()

    def test_an_error_in_backward_comes_through_and_leaves_no_gradient(self):
        class Broken(Function):
            @staticmethod
            def forward(_ctx, x):
                return x * 1

            @staticmethod
            def backward(_ctx, _g):
                raise KeyError("mine")

        x = leaf(1.0)
        with pytest.raises(KeyError, match="mine"):
            (Broken.apply(x) + x).backward()
        assert x.grad is None
        assert gradcli.is_grad_enabled()


class TestMethodsAndOperators:
    def test_a_function_of_one_tensor_is_a_method(self):
        x = leaf([1.0, 4.0])
        assert x.sqrt().tolist() == [1.0, 2.0]
        assert x.sum(axis=0).item() == 5.0
        assert x.pow(2).tolist() == [1.0, 16.0]

    def test_where_as_a_method_keeps_the_tensor_where_the_condition_holds(self):
        x = leaf([1.0, 2.0])
        assert x.where(x > 1.5, x * 5).tolist() == [5.0, 2.0]

    @pytest.mark.parametrize(
        ("operation", "value"),
        [
            (lambda x: 2 + x, 5.0), (lambda x: 2 - x, -1.0), (lambda x: 2 * x, 6.0), (lambda x: 2 / x, 2 / 3),
            (lambda x: 2**x, 8.0), (lambda x: 7 % x, 1.0), (lambda x: 7 // x, 2.0), (lambda x: abs(-x), 3.0),
            (lambda x: +x, 3.0), (lambda x: -x, -3.0),
        ],
    )  # fmt: skip
    def test_numbers_on_the_left(self, operation, value):
        assert operation(leaf(3.0)).item() == value

    def test_comparisons_give_truth_values(self):
        x = leaf([1.0, 2.0])
        assert (x > 1).tolist() == [False, True]
        assert (x <= 1).dtype == "bool"
        assert (x == None) is False  # noqa: E711
        assert bool(tensor(1.0) == 1)

    def test_operands_by_name(self):
        x, y = leaf([1.0, 5.0]), leaf([3.0, 1.0])
        assert gradcli.maximum(x, y=y).tolist() == [3.0, 5.0]
        assert gradcli.atan2(x=x, y=y).tolist() == gradcli.atan2(y, x).tolist()

    @pytest.mark.parametrize(
        "call", [lambda _x: gradcli.log(), lambda x: gradcli.log(x, x), lambda x: gradcli.log(y=x)]
    )
    def test_operands_that_are_missing_or_too_many(self, call):
        with pytest.raises(CallError, match=r"^log\(x\) needs each of its operands once$"):
            call(leaf(1.0))

    def test_iteration_and_length(self):
        x = leaf([1.0, 2.0])
        first, second = x
        (first * second * 3).backward()
        assert x.grad.tolist() == [6.0, 3.0]
        assert len(x) == 2
        with pytest.raises(TypeError, match=r"len\(\) of a 0-d tensor"):
            len(first)

    def test_text(self):
        x = leaf(1.5)
        assert repr(x) == "tensor(1.5, requires_grad=True)"
        assert repr(x.detach()) == "tensor(1.5)"
        assert f"{x * 2:.2f}" == "3.00"
        assert f"{x * 2}" == "tensor(3.0, grad_fn=<MulBackward0>)"


class TestErrors:
    def test_those_of_the_engine_are_runtime_errors_with_a_kind(self):
        with pytest.raises(RuntimeError) as caught:
            tensor(1.0).backward()
        error = caught.value
        assert isinstance(error, DifferentiationError)
        assert isinstance(error, GradcliError)
        assert error.kind == "differentiation"
        assert error.message == str(error)
        assert (error.span, error.source, error.position) == (None, None, None)
        assert error.report() == f"error: {error.message}"
        assert error.as_json() == {
            "kind": "differentiation", "message": error.message, "line": None, "column": None, "hint": None,
        }  # fmt: skip

    def test_an_in_place_operation_on_a_leaf_says_what_to_do(self):
        x = leaf(1.0)
        with pytest.raises(DifferentiationError) as caught:
            x += 1
        assert caught.value.hint == "do it within `with no_grad():`"

    def test_shapes_are_named(self):
        with pytest.raises(ShapeError, match=r"^shapes \[2\] and \[3\] do not broadcast together in 'multiply'$"):
            leaf([1.0, 2.0]) * tensor([1.0, 2.0, 3.0])
        with pytest.raises(ShapeError, match=r"^shapes \[2\] and \[3\] do not fit in a matrix product$"):
            leaf([1.0, 2.0]) @ tensor([1.0, 2.0, 3.0])

    def test_values_that_do_not_work_are_not_blamed_on_their_shape(self):
        with pytest.raises(EvaluationError, match=r"^'pow' does not work on int64 and int64 values"):
            tensor([2]) ** tensor([-1])

    @pytest.mark.parametrize("data", ["a", None, [1, [2]], [["a"]], {}])
    def test_what_is_no_number(self, data):
        with pytest.raises(EvaluationError):
            tensor(data)

    @pytest.mark.parametrize("given", [{1.0}, "x", None])
    def test_an_operand_of_a_function_that_is_no_tensor(self, given):
        with pytest.raises(EvaluationError, match=r"^a number, an array or a tensor is needed, not "):
            gradcli.log(given)

    def test_backends_and_devices_that_are_not_there(self):
        with pytest.raises(UsageError, match="'tpu'"):
            tensor(1.0, backend="tpu")
        with pytest.raises(UsageError, match="'cuda'"):
            tensor(1.0, backend="numpy", device="cuda")

    @pytest.mark.parametrize("convert", [bool, float, int, Tensor.item])
    def test_several_elements_are_no_scalar(self, convert):
        with pytest.raises(ShapeError, match=r"2 elements|ambiguous"):
            convert(tensor([1.0, 2.0]))
        with pytest.raises(ShapeError, match="ambiguous"):
            bool(tensor([1.0, 2.0]))


class TestJacobiansAndHessians:
    def test_a_jacobian_of_two_inputs(self):
        by_x, by_y = gradcli.jacobian(lambda x, y: x * y, (tensor([1.0, 2.0]), tensor([3.0, 1.0])))
        assert by_x.tolist() == [[3.0, 0.0], [0.0, 1.0]]
        assert by_y.tolist() == [[1.0, 0.0], [0.0, 2.0]]

    def test_a_hessian_of_two_inputs(self):
        x, y = tensor([1.0, 2.0]), tensor(3.0)
        ((xx, xy), (yx, yy)) = gradcli.hessian(lambda x, y: gradcli.sum(x**2) * y**2, (x, y))
        assert xx.tolist() == [[18.0, 0.0], [0.0, 18.0]]
        assert xy.tolist() == yx.tolist() == [12.0, 24.0]
        assert yy.item() == 10.0

    def test_what_does_not_matter_gives_zeros(self):
        assert gradcli.jacobian(lambda _x: tensor(3.0), tensor([1.0, 2.0])).tolist() == [0.0, 0.0]
        assert gradcli.hessian(lambda x: x.sum(), tensor([1.0, 2.0])).tolist() == [[0.0, 0.0], [0.0, 0.0]]

    def test_they_work_without_grad_and_leave_no_trace(self):
        x = leaf([1.0, 2.0])
        with no_grad():
            found = gradcli.jacobian(lambda x: x**2, x)
        assert found.tolist() == [[2.0, 0.0], [0.0, 4.0]]
        assert not found.requires_grad
        assert x.grad is None

    def test_a_hessian_needs_a_scalar(self):
        with pytest.raises(
            DifferentiationError, match=r"given to hessian should contain a single element, and has shape \[2\]"
        ):
            gradcli.hessian(lambda x: x * 2, tensor([1.0, 2.0]))


class TestAncestors:
    def test_each_operation_comes_before_those_that_it_depends_on(self):
        x = leaf(2.0)
        early = gradcli.exp(x)
        late = gradcli.sin(x)
        value = early * late + early
        assert [n.name for n in ancestors(value)] == ["AddBackward0", "MulBackward0", "SinBackward0", "ExpBackward0"]
        assert ancestors(late, early, x, 3.0) == [late.grad_fn, early.grad_fn]

    def test_nothing_recurses(self):
        y = leaf(0.0)
        for _ in range(100_000):
            y = y + 1.0
        assert len(ancestors(y)) == 100_000

    def test_a_walk_stops_at_a_time(self):
        x = leaf(2.0)
        before = gradcli.exp(x)
        between = before * x
        after = gradcli.sin(between) + before
        found = ancestors(after, after=before.grad_fn.sequence)
        assert [node.name for node in found] == ["AddBackward0", "SinBackward0", "MulBackward0"]

    def test_a_walk_goes_past_what_it_may_go_past(self):
        x = leaf(2.0)
        hidden = gradcli.exp(x)
        wall = gradcli.sin(hidden)
        y = wall * gradcli.cos(x)
        found = ancestors(y, past=lambda node: node is not wall.grad_fn)
        assert [node.name for node in found] == ["MulBackward0", "CosBackward0", "SinBackward0"]


class TestRecording:
    """How an operation is recorded is decided once for operands of one form, and anew for those of another."""

    @pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
    def test_gradients_have_the_shape_and_the_dtype_of_each_operand(self, dtype):
        for shape, other in [((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((), (2, 3))]:
            x, y = leaf(np.ones(shape), dtype), leaf(np.ones(other), "float64")
            gradients = grad((x + y + x * y).sum().real, (x, y))
            assert [(g.shape, g.dtype) for g in gradients] == [(x.shape, dtype), (y.shape, "float64")]

    def test_the_name_of_a_node_depends_on_which_operands_are_tensors(self):
        x, q = leaf(2.0), tensor(1.5)
        powers = [x**1.5, x**q, 2.0 ** leaf(1.5), tensor(2.0) ** leaf(1.5)]
        names = ["PowBackward0", "PowBackward1", "PowBackward2", "PowBackward1"]
        assert [y.grad_fn.name for y in powers] == names
        assert [type(y.grad_fn).__name__ for y in powers] == names

    def test_a_node_has_the_class_of_its_name_wherever_it_is_seen(self):
        x = leaf([1.0, 2.0])
        y = gradcli.exp(x * x)
        ((before, _),) = y.grad_fn.next_functions
        assert type(before).__name__ == "MulBackward0"
        assert type(before) is type((x * 3.0).grad_fn)
        assert isinstance(before, gradcli.autograd.graph.Node)

    def test_which_gradients_are_wanted_decides_what_is_saved(self):
        constant = tensor([3.0, 4.0])
        for x, y in [(leaf([1.0, 2.0]), constant), (constant, leaf([1.0, 2.0])), (constant, constant + leaf(0.0))]:
            product = x * y
            saved = product.grad_fn._saved_self, product.grad_fn._saved_other
            assert [kept is not None for kept in saved] == [y.requires_grad, x.requires_grad]


class TestSmoothness:
    @pytest.mark.parametrize(
        ("function", "point", "smooth"),
        [
            (gradcli.abs, 0.0, False), (gradcli.abs, [1.0, -2.0], True), (gradcli.abs, [1.0, 0.0], False),
            (gradcli.max, [1.0, 2.0], True), (gradcli.max, [2.0, 2.0], False), (gradcli.sin, 0.0, True),
        ],
    )  # fmt: skip
    def test_of_a_node_at_its_operands(self, function, point, smooth):
        assert function(leaf(point)).grad_fn.is_smooth() is smooth

    def test_through_tensors_that_are_saved(self):
        x = leaf([1.0, 0.0])
        (g,) = gradcli.grad(gradcli.sum(gradcli.abs(x * x)), x, create_graph=True)
        assert [n.name for n in ancestors(g) if not n.is_smooth()] == ["SignBackward0"]

    def test_what_was_freed_is_not_known_to_have_a_kink(self):
        y = gradcli.abs(leaf(0.0))
        node = y.grad_fn
        y.backward()
        assert node.is_smooth()
