"""Tests `gradcli.autograd.gradcheck` and `gradgradcheck`, with PyTorch's arguments and messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gradcli
from gradcli.autograd import gradcheck, gradgradcheck
from gradcli.errors import ArgumentError, ExpectationError, GradcheckError

both = pytest.mark.parametrize("fast", [False, True])


def leaf(data, dtype=None):
    return gradcli.tensor(data, requires_grad=True, dtype=dtype)


X = [[0.3, 1.2, -0.7], [2.0, 0.5, 1.1]]


def with_hook(hook):
    """A product whose gradient a hook changes."""

    def function(x):
        y = x * 2
        y.register_hook(hook)
        return y

    return function


@both
class TestAgreement:
    def test_of_one_input_and_one_output(self, fast):
        assert gradcheck(lambda x: gradcli.sin(x) * x, leaf(X), fast_mode=fast)
        assert gradgradcheck(lambda x: gradcli.sin(x) * x, leaf(X), fast_mode=fast)

    def test_of_several_inputs_and_outputs_with_other_arguments(self, fast):
        def function(x, factor, y, constant):
            return factor * x @ y, (x.sum() * constant, y)

        def flat(*arguments):
            product, (total, same) = function(*arguments)
            return product, total, same, gradcli.tensor([1, 2])

        inputs = (leaf(X), 3, leaf([1.0, -2.0, 0.5]), gradcli.tensor(2.0))
        assert gradcheck(flat, inputs, fast_mode=fast, check_batched_grad=True)
        assert gradgradcheck(flat, inputs, fast_mode=fast)

    def test_forward(self, fast):
        def function(x, y):
            return x * gradcli.exp(y), x.sum()

        inputs = (leaf([0.5, 2.0]), leaf([1.0, -1.0]))
        options = {"check_forward_ad": True, "check_batched_forward_grad": True, "fast_mode": fast}
        assert gradcheck(function, inputs, **options)
        assert gradcheck(function, inputs, check_backward_ad=False, **options)

    def test_of_a_view_and_an_edit_in_place(self, fast):
        def function(x):
            y = x.clone()
            y[0].mul_(x[1])
            return y

        assert gradcheck(function, leaf(X), fast_mode=fast)
        assert gradgradcheck(function, leaf(X), fast_mode=fast)

    def test_of_inputs_that_are_read_outside_of_the_arguments(self, fast):
        x = leaf(X)
        assert gradcheck(lambda _: x**2, x, fast_mode=fast)
        assert x.tolist() == X
        assert x._version == 0

    def test_under_given_cotangents(self, fast):
        assert gradgradcheck(lambda x: x**3, leaf([1.0, 2.0]), leaf([0.5, -1.0]), fast_mode=fast)


@both
class TestMismatch:
    def test_is_told_with_its_output_and_input(self, fast):
        def function(x, y):
            return x * y, with_hook(lambda g: g * 1.1)(y)

        inputs = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        with pytest.raises(
            GradcheckError, match=r"^Jacobian mismatch for output 1 with respect to input 1,\nnumerical:"
        ):
            gradcheck(function, inputs, fast_mode=fast)
        assert gradcheck(function, inputs, raise_exception=False, fast_mode=fast) is False
        assert gradcheck(function, inputs, rtol=0.2, check_undefined_grad=False, fast_mode=fast)

    def test_forward_is_told_as_such(self, fast):
        class Double(gradcli.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2

        def function(x):
            return Double.apply(x.detach()) + 0 * x

        with pytest.raises(
            RuntimeError, match=r"^Jacobian computed with forward mode mismatch for output 0 with respect"
        ):
            gradcheck(function, leaf(X), check_forward_ad=True, check_backward_ad=False, fast_mode=fast)

    def test_of_a_second_derivative(self, fast):
        class Cube(gradcli.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * 3 * x.detach() ** 2

        x = leaf([1.0, 2.0])
        assert gradcheck(Cube.apply, x, fast_mode=fast)
        with pytest.raises(GradcheckError, match=r"^Jacobian mismatch for output 0 with respect to input 0"):
            gradgradcheck(Cube.apply, x, fast_mode=fast)

    def test_of_what_cannot_be_differentiated_but_changes(self, fast):
        with pytest.raises(RuntimeError, match=r"^Numerical gradient for function expected to be zero$"):
            gradcheck(lambda x: x.detach() * 2, leaf(X), fast_mode=fast)
        assert gradcheck(lambda x: gradcli.tensor(3.0), leaf(X), fast_mode=fast)
        assert gradcheck(lambda x: (), leaf(X), fast_mode=fast)

    def test_between_two_passes(self, fast):
        numbers = itertools.count()

        def function(jitter):
            return with_hook(lambda g: g * (1 + jitter * next(numbers)))

        with pytest.raises(GradcheckError, match=r"^Backward is not reentrant, i.e., running backward with same input"):
            gradcheck(function(1e-9), leaf(X), fast_mode=fast)
        assert gradcheck(function(1e-9), leaf(X), nondet_tol=1e-5, check_undefined_grad=False, fast_mode=fast)

    def test_of_a_backward_that_is_not_linear_in_its_cotangent(self, fast):
        with pytest.raises(GradcheckError, match=r"^backward not multiplied by grad_output$"):
            gradcheck(with_hook(lambda g: g + 1e-2), leaf(X), atol=1e-1, fast_mode=fast)

    def test_of_a_backward_that_cannot_be_batched(self, fast):
        class Double(gradcli.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2 if g.sum() > 0 else 2 * g

        assert gradcheck(Double.apply, leaf(X), fast_mode=fast)
        with pytest.raises(GradcheckError, match=r"^gradcheck or gradgradcheck failed while testing batched gradient"):
            gradcheck(Double.apply, leaf(X), check_batched_grad=True, fast_mode=fast)


@both
class TestGradientsThatAreNotThere:
    def test_are_to_be_endured(self, fast):
        def hook(g):
            if g is None:
                raise RuntimeError("nothing came")

        with (
            pytest.warns(
                UserWarning, match=r"^Backwards compatibility: New undefined gradient support checking feature"
            ),
            pytest.raises(GradcheckError, match=r"^Expected backward function to handle undefined output grads"),
        ):
            gradcheck(with_hook(hook), leaf(X), fast_mode=fast)
        assert gradcheck(with_hook(hook), leaf(X), check_undefined_grad=False, fast_mode=fast)

    def test_give_none_or_zeros(self, fast):
        class Double(gradcli.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(False)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return gradcli.tensor(X) if g is None else g * 2

        with (
            pytest.warns(UserWarning, match=r"^Backwards compatibility"),
            pytest.raises(GradcheckError, match=r"^Expected all input grads to be undefined or zero when all output"),
        ):
            gradcheck(Double.apply, leaf(X), fast_mode=fast)


class TestRefusals:
    def test_of_inputs_none_of_which_requires_grad(self):
        with pytest.raises(ArgumentError, match=r"^gradcheck expects at least one input tensor to require gradient"):
            gradcheck(lambda x: x, gradcli.tensor(1.0), raise_exception=False)

    def test_of_inputs_whose_elements_lie_on_each_other(self):
        x = leaf([1.0])
        with pytest.raises(RuntimeError, match=r"^The 0th input has a dimension with stride 0"):
            gradcheck(lambda x: x, x.expand(2, 2), raise_exception=False)

    def test_of_nothing_to_check(self):
        with pytest.raises(AssertionError, match=r"^Expected at least one of check_forward_ad or check_backward_ad"):
            gradcheck(lambda x: x, leaf(1.0), check_backward_ad=False)
        with pytest.raises(AssertionError, match=r"^Setting check_batched_grad=True requires"):
            gradcheck(lambda x: x, leaf(1.0), check_backward_ad=False, check_forward_ad=True, check_batched_grad=True)
        with pytest.raises(AssertionError, match=r"^Setting check_batched_forward_grad=True requires"):
            gradcheck(lambda x: x, leaf(1.0), check_batched_forward_grad=True)

    def test_of_a_function_whose_shapes_depend_on_the_numbers(self):
        x = leaf([1.0])
        with pytest.raises(ExpectationError, match="with the same shape when inputs are perturbed on index 0"):
            gradcheck(lambda x: gradcli.cat([x, x]) if x[0] >= 1 else x, x, raise_exception=False)
        assert x.tolist() == [1.0]
        with pytest.raises(AssertionError, match="with the same dtype when inputs are perturbed on index 0"):
            gradcheck(lambda x: x * 1 if x[0] >= 1 else leaf([1.0], "float32"), x)

    def test_what_a_function_raises_is_not_caught(self):
        def fail(_x):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            gradcheck(fail, leaf(1.0), raise_exception=False)

    def test_single_precision_is_warned_of(self):
        with pytest.warns(
            UserWarning, match=r"^Input #1 requires gradient and is not a double precision floating point"
        ):
            assert gradcheck(lambda _, x: x * 1, (1, leaf(np.ones(1), "float32")), eps=1e-2, atol=1e-1)
