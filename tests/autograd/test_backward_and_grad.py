"""Tests several roots, the options of `backward` and `grad`, and backward passes in several threads, as in PyTorch."""

from __future__ import annotations

import sys
import threading
import warnings

import numpy as np
import pytest

import gradcli
from gradcli import autograd
from gradcli.errors import ArgumentError, DifferentiationError


def leaf(data):
    return gradcli.tensor(data, requires_grad=True)


class TestBackward:
    def test_of_several_roots_is_that_of_their_weighted_sum(self):
        x, y = leaf([1.0, 2.0]), leaf(3.0)
        autograd.backward([x * y, x.sum()], [gradcli.tensor([1.0, 10.0]), None])
        assert x.grad.tolist() == [4.0, 31.0]
        assert y.grad.item() == 21.0

    def test_of_one_root_that_is_given_twice(self):
        x = leaf([1.0, 2.0])
        y = x * x
        autograd.backward((y, y), (gradcli.tensor([1.0, 1.0]), gradcli.tensor([0.0, 1.0])))
        assert x.grad.tolist() == [2.0, 8.0]

    def test_accumulates_in_the_inputs_alone(self):
        x, y = leaf(2.0), leaf(3.0)
        autograd.backward(x * y, inputs=x)
        assert x.grad.item() == 3.0
        assert y.grad is None
        with pytest.raises(RuntimeError, match=r"^`inputs` argument to `backward\(\)` cannot be empty\.$"):
            autograd.backward(x * y, inputs=[])

    def test_by_an_input_that_is_not_reached_leaves_it_alone(self):
        x, y = leaf(2.0), leaf(3.0)
        autograd.backward(x * 2, inputs=[y])
        assert y.grad is None

    def test_retains_and_creates_graphs(self):
        x = leaf(2.0)
        y = x**3
        autograd.backward(y, retain_graph=True)
        autograd.backward(y, create_graph=True)
        assert x.grad.item() == 24.0
        assert gradcli.grad(x.grad, x)[0].item() == 12.0

    def test_says_which_root_has_no_graph(self):
        x = leaf(2.0)
        with pytest.raises(RuntimeError, match=r"^element 1 of tensors does not require grad"):
            autograd.backward([x * 2, gradcli.tensor(1.0)])

    def test_wants_a_cotangent_for_each_root(self):
        x = leaf([1.0, 2.0])
        with pytest.raises(DifferentiationError, match=r"^got 2 tensors and 1 gradients$"):
            autograd.backward([x * 2, x * 3], [gradcli.tensor([1.0, 1.0])])
        with pytest.raises(DifferentiationError, match=r"^grad can be implicitly created only for scalar outputs$"):
            autograd.backward([x * 2], [None])

    def test_names_the_cotangent_of_another_shape(self):
        x = leaf([1.0, 2.0])
        with pytest.raises(RuntimeError, match=r"^Mismatch in shape: grad_output\[1\] has a shape of \[3\]"):
            autograd.backward([x * 2, x * 3], [gradcli.tensor([1.0, 1.0]), gradcli.tensor([1.0, 1.0, 1.0])])

    def test_a_gradient_is_by_something(self):
        x = leaf(1.0)
        with pytest.raises(RuntimeError, match=r"^`inputs` argument to `grad\(\)` cannot be empty\.$"):
            gradcli.grad(x * 2, [])


class TestMaterializedGradients:
    def test_are_zeros_that_can_be_differentiated_by_again(self):
        x, y = leaf([1.0, 2.0]), leaf(3.0)
        none, by_y = gradcli.grad(y * 2, (x, y), allow_unused=True)
        zeros, again = gradcli.grad(y * 2, (x, y), materialize_grads=True)
        assert none is None
        assert zeros.tolist() == [0.0, 0.0]
        assert by_y.item() == again.item() == 2.0
        assert gradcli.grad(zeros.sum(), y, materialize_grads=True)[0].item() == 0.0

    def test_are_at_odds_with_forbidden_unused_inputs(self):
        x = leaf(1.0)
        with pytest.raises(
            ArgumentError, match=r"^Expected allow_unused to be True or not passed when materialize_gra"
        ):
            gradcli.grad(x * 2, x, allow_unused=False, materialize_grads=True)
        with pytest.raises(ValueError, match="allow_unused=False"):
            gradcli.grad(x * 2, x, allow_unused=False, materialize_grads=True)


class TestArguments:
    def test_may_stand_in_the_places_that_they_have_in_pytorch(self):
        x, unused = (gradcli.tensor(2.0, requires_grad=True) for _ in range(2))
        first, nothing = autograd.grad(x**3, (x, unused), None, True, True, True, True)
        assert nothing is None
        assert autograd.grad(first, x)[0].item() == 12.0

    def test_only_inputs_says_what_is_so(self):
        x = gradcli.tensor(2.0, requires_grad=True)
        assert autograd.grad(x**2, x, only_inputs=True)[0].item() == 4.0
        with pytest.warns(FutureWarning, match="only_inputs argument is deprecated and is ignored now"):
            autograd.grad(x**2, x, only_inputs=False)
        assert x.grad is None


class TestBatchedCotangents:
    def test_give_gradients_with_their_first_axis(self):
        x, w = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf(2.0)
        y = w * x * x
        units = np.eye(4).reshape(4, 2, 2)
        by_x, by_w = gradcli.grad(y, (x, w), units, is_grads_batched=True)
        assert np.array_equal(by_x.numpy(), units * 4 * x.detach().numpy())
        assert by_w.tolist() == [1.0, 4.0, 9.0, 16.0]

    def test_of_a_scalar_and_of_integers(self):
        x = leaf([1.0, 2.0])
        (found,) = gradcli.grad(x.sum(), x, gradcli.tensor([1, 2, 3]), is_grads_batched=True)
        assert found.tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
        assert found.dtype == "float64"

    def test_of_several_outputs_one_of_them_without(self):
        x = leaf([1.0, 2.0])
        given = (gradcli.tensor([[1.0, 0.0], [0.0, 1.0]]), None)
        (found,) = gradcli.grad((x * 2, x.sum()), x, given, is_grads_batched=True)
        assert found.tolist() == [[3.0, 1.0], [1.0, 3.0]]

    def test_can_be_differentiated_again(self):
        x = leaf([1.0, 2.0])
        (jacobian,) = gradcli.grad(x**3, x, np.eye(2), is_grads_batched=True, create_graph=True)
        assert gradcli.grad(jacobian.sum(), x)[0].tolist() == [6.0, 12.0]

    def test_of_inputs_that_they_do_not_reach(self):
        x, y = leaf([1.0, 2.0]), leaf(3.0)
        options = {"is_grads_batched": True, "retain_graph": True}
        z = x * 2
        assert gradcli.grad(z, (y, x), np.eye(2), allow_unused=True, **options)[0] is None
        assert gradcli.grad(z, y, np.eye(2), materialize_grads=True, **options)[0].tolist() == [0.0, 0.0]
        with pytest.raises(DifferentiationError, match="appears to not have been used in the graph"):
            gradcli.grad(z, y, np.eye(2), **options)

    @pytest.mark.parametrize("shape", [(2,), (3, 3), ()])
    def test_have_one_axis_more_than_the_output(self, shape):
        x = leaf([1.0, 2.0])
        with pytest.raises(RuntimeError, match=r"^If `is_grads_batched=True`, we interpret the first dimension"):
            gradcli.grad(x * 2, x, np.ones(shape), is_grads_batched=True)

    def test_must_be_given(self):
        x = leaf([1.0, 2.0])
        with pytest.raises(ArgumentError, match="grad_outputs has the cotangents"):
            gradcli.grad(x.sum(), x, is_grads_batched=True)


class TestGradientsThatAreNotThere:
    """Leaves that are reached only through a Function that returns None."""

    class Nothing(gradcli.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    def double(self, materialize, seen):
        class Double(gradcli.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                seen.append(g if g is None else g.tolist())
                return g if g is None else g * 2

        return Double.apply

    def test_are_zeros_for_a_function_unless_it_wants_none(self):
        for materialize, expected in ((True, [0.0, 0.0]), (False, None)):
            x, seen = leaf([1.0, 2.0]), []
            self.Nothing.apply(self.double(materialize, seen)(x)).sum().backward()
            assert seen == [expected]
            assert (x.grad if x.grad is None else x.grad.tolist()) == expected

    def test_are_none_for_hooks(self):
        x, seen = leaf([1.0, 2.0]), []
        y = x * 3
        x.register_hook(lambda g: seen.append(("x", g)))
        y.register_hook(lambda g: seen.append(("y", g)))
        self.Nothing.apply(gradcli.exp(y)).sum().backward()
        assert seen == [("y", None), ("x", None)]
        assert x.grad is None

    def test_give_way_to_others(self):
        x = leaf([1.0, 2.0])
        y = x * 3
        (self.Nothing.apply(y) + y).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]

    def test_do_not_reach_beside_the_inputs(self):
        x, z, seen = leaf([1.0, 2.0]), leaf(2.0), []
        y = self.Nothing.apply(self.double(True, seen)(x)) * z
        assert gradcli.grad(y.sum(), z)[0].item() == 6.0
        assert seen == []


class TestModes:
    def test_a_decorated_class_is_made_in_the_mode_and_warned_of(self):
        with pytest.warns(FutureWarning, match=r"^Decorating classes is deprecated"):

            @gradcli.no_grad()
            class Model:
                def __init__(self, scale):
                    self.weight = leaf(1.0) * scale

                def __call__(self):
                    return leaf(1.0) * 2

        assert not Model(3.0).weight.requires_grad
        assert Model(3.0)().requires_grad

    def test_decorated_methods_are_not_warned_of(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")

            class Model:
                @gradcli.no_grad()
                def __call__(self):
                    return leaf(1.0) * 2

        assert not Model()().requires_grad

    def test_multithreading_is_said_from_here_on_or_within_a_block(self):
        assert autograd.is_multithreading_enabled()
        with autograd.set_multithreading_enabled(False):
            assert not autograd.is_multithreading_enabled()
            autograd.set_multithreading_enabled(True)
            assert autograd.is_multithreading_enabled()
        assert autograd.is_multithreading_enabled()
        autograd.set_multithreading_enabled(False)
        assert not autograd.is_multithreading_enabled()
        autograd.set_multithreading_enabled(True)


class TestThreads:
    @pytest.fixture
    def fast_switches(self):
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        yield
        sys.setswitchinterval(before)

    def run(self, work, threads=6):
        errors = []

        def guarded():
            try:
                work()
            except Exception as error:
                errors.append(error)

        running = [threading.Thread(target=guarded) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return errors

    @pytest.mark.usefixtures("fast_switches")
    def test_lose_no_gradient_of_a_leaf_that_they_share(self):
        x = leaf(np.ones(3))

        def work():
            for _ in range(100):
                (x * 2).sum().backward()

        assert self.run(work) == []
        assert x.grad.tolist() == [1200.0] * 3

    @pytest.mark.usefixtures("fast_switches")
    def test_that_share_a_graph_can_retain_it(self):
        x = leaf(np.ones(3))
        shared = x * x

        def work():
            for _ in range(20):
                (shared * 3).sum().backward(retain_graph=True)

        assert self.run(work) == []
        assert x.grad.tolist() == [720.0] * 3

    @pytest.mark.usefixtures("fast_switches")
    def test_that_share_a_graph_are_told_when_another_has_freed_it(self):
        for _ in range(20):
            x = leaf(np.ones(3))
            shared = gradcli.exp(x * x)
            errors = self.run(lambda y=shared: (y * 3).sum().backward())
            assert len(errors) < 6
            for error in errors:
                assert "Specify retain_graph=True" in str(error)
