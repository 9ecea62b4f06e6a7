"""Tests Functions with user-defined derivatives, as users of PyTorch write them."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import ClassVar

import numpy as np
import pytest

import gradcli
from gradcli import Function, func, grad, no_grad, tensor
from gradcli.autograd.function import InplaceFunction, once_differentiable
from gradcli.errors import DifferentiationError


def leaf(value):
    return tensor(value, requires_grad=True)


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(_ctx, g):
        return g * 2


class DoubleInPlace(InplaceFunction):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(_ctx, g):
        return g * 2


class TestWhatForwardReturns:
    def test_what_is_no_tensor_is_handed_through(self):
        seen = []

        class Mixed(Function):
            @staticmethod
            def forward(_ctx, x, scale):
                return scale, x * scale, None, True, "bar", {"a": 1}

            @staticmethod
            def backward(_ctx, *grads):
                seen.extend(grads)
                return grads[1] * 3, None

        x = leaf([1.0, 2.0])
        found = Mixed.apply(x, 3)
        assert (found[0], *found[2:]) == (3, None, True, "bar", {"a": 1})
        assert type(found[0]) is int
        found[1].sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
        assert [g is None for g in seen] == [True, False, True, True, True, True]

    def test_numbers_alone_stay_numbers(self):
        assert Double.apply(2.0) == 4.0
        assert type(Double.apply(2.0)) is float

    def test_one_tensor_twice_is_one_tensor(self):
        class Twice(Function):
            @staticmethod
            def forward(_ctx, x):
                y = x * 2
                return y, y

            @staticmethod
            def backward(_ctx, g, h):
                return g * 2 + h * 2

        x = leaf([1.0, 2.0])
        a, b = Twice.apply(x)
        assert a is b
        (a + b).sum().backward()
        assert x.grad.tolist() == [4.0, 4.0]

    def test_the_tensor_that_forward_made_comes_out(self):
        made = []

        class Keep(Function):
            @staticmethod
            def forward(_ctx, x):
                made.append(x * 3)
                return made[0]

            @staticmethod
            def backward(_ctx, g):
                return g * 3

        assert Keep.apply(leaf(1.0)) is made[0]
        assert made[0].requires_grad

    def test_an_input_comes_out_as_a_view_of_it(self):
        class Same(Function):
            @staticmethod
            def forward(_ctx, x):
                return x

            @staticmethod
            def backward(_ctx, g):
                return -g

        x = leaf([1.0, 2.0])
        y = Same.apply(x)
        assert y is not x
        assert y._base is x
        assert y.grad_fn.name == "SameBackward"
        y.sum().backward()
        assert x.grad.tolist() == [-1.0, -1.0]
        with no_grad():
            x.add_(1)
        assert y._version == 1

    def test_views_of_inputs_and_of_what_forward_made_are_not_edited(self):
        class Part(Function):
            @staticmethod
            def forward(_ctx, x, of_a_copy):
                part = (x.clone() if of_a_copy else x)[:1]
                if of_a_copy:
                    part += 2
                return part

            @staticmethod
            def backward(_ctx, g):
                return gradcli.concat([g, g * 0]), None

        message = "^Output 0 of PartBackward is a view and is being modified inplace. This view was created inside a"
        for of_a_copy in (False, True):
            part = Part.apply(leaf([1.0, 2.0]) * 1, of_a_copy)
            assert type(part.grad_fn).__name__ == part.grad_fn.name == "PartBackward"
            with pytest.raises(DifferentiationError, match=message):
                part.mul_(2)
        plain = Part.apply(tensor([1.0, 2.0]), False)
        with pytest.raises(
            DifferentiationError, match=r"^A view was created in no_grad mode and is being modified .* F"
        ):
            plain += leaf([1.0])
        plain += 1.0

    def test_whole_numbers_have_no_gradient(self):
        class Counted(Function):
            @staticmethod
            def forward(_ctx, x):
                return x * 2, tensor([1, 2])

            @staticmethod
            def backward(_ctx, g, h):
                assert h.tolist() == [0, 0]
                return g * 2

        y, count = Counted.apply(leaf(1.0))
        assert not count.requires_grad
        y.backward()

    def test_no_zeros_for_outputs_that_are_marked_where_they_are_not_wanted(self):
        class Marked(Function):
            @staticmethod
            def forward(ctx, x):
                second = x.clone()
                ctx.mark_non_differentiable(second)
                ctx._materialize_non_diff_grads = False
                return x.clone(), second

            @staticmethod
            def backward(_ctx, g, h):
                assert h is None
                return g

        x = leaf(1.0)
        Marked.apply(x)[0].backward()
        assert x.grad.item() == 1.0


class TestArguments:
    def test_defaults_and_keywords(self):
        class Power(Function):
            @staticmethod
            def forward(x, y=3):
                return x**y

            @staticmethod
            def setup_context(ctx, inputs, output):
                x, ctx.y = inputs
                ctx.save_for_backward(x)

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * ctx.y * x ** (ctx.y - 1), None

        for arguments, named in (((), {}), ((3,), {}), ((), {"y": 3})):
            x = leaf(2.0)
            Power.apply(x, *arguments, **named).backward()
            assert x.grad.item() == 12.0
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'z'"):
            Power.apply(x, z=1)

    def test_keywords_beside_a_context(self):
        class Scaled(Function):
            @staticmethod
            def forward(ctx, x, scale=1.0, *, shift=0.0):
                ctx.scale = scale
                return x * scale + shift

            @staticmethod
            def backward(ctx, g):
                return g * ctx.scale, None

        x = leaf(2.0)
        y = Scaled.apply(x, scale=3.0, shift=1.0)
        assert y.item() == 7.0
        y.backward()
        assert x.grad.item() == 3.0

    def test_class_methods(self):
        class Shared(Function):
            factor = 5.0

            @classmethod
            def forward(cls, _ctx, x):
                return x * cls.factor

            @classmethod
            def backward(cls, _ctx, g):
                return g * cls.factor

        x = leaf(1.0)
        Shared.apply(x).backward()
        assert x.grad.item() == 5.0


class TestChangedInPlace:
    def test_the_input_comes_out_itself(self):
        x = leaf([1.0, 2.0])
        y = x * 1
        z = DoubleInPlace.apply(y)
        assert z is y
        assert (y.tolist(), y._version) == ([2.0, 4.0], 2)
        assert type(y.grad_fn) is DoubleInPlace._backward_cls
        y += 1
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]

    def test_through_a_view(self):
        x = leaf([1.0, 2.0, 3.0])
        y = x * 1
        DoubleInPlace.apply(y[:2])
        assert y.tolist() == [2.0, 4.0, 3.0]
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0, 1.0]

    def test_where_nothing_is_recorded(self):
        y = tensor([1.0, 2.0])
        assert DoubleInPlace.apply(y) is y
        assert y.tolist() == [2.0, 4.0]
        assert not y.requires_grad

    def test_what_must_not_be_changed(self):
        with pytest.raises(
            DifferentiationError, match=r"^a leaf Variable that requires grad is being used in an in-pl"
        ):
            DoubleInPlace.apply(leaf([1.0]))
        with pytest.raises(DifferentiationError, match=r"^Output 0 of UnbindBackward0 is a view and is being modified"):
            DoubleInPlace.apply(gradcli.unbind(leaf([[1.0]]) * 1)[0])

    def test_what_a_node_has_saved_is_refused_afterwards(self):
        x = leaf([1.0])
        y = x * 1
        z = y * y
        DoubleInPlace.apply(y)
        with pytest.raises(DifferentiationError, match=r"modified by an inplace operation.*expected version 0"):
            z.sum().backward()

    def test_a_changed_input_can_be_saved(self):
        class Squared(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                x.exp_()
                ctx.save_for_backward(x)
                return x

            @staticmethod
            def backward(ctx, g):
                (y,) = ctx.saved_tensors
                return g * y

        x = leaf(0.5)
        y = x * 1
        Squared.apply(y)
        (slope,) = grad(y, x, create_graph=True)
        assert grad(slope, x)[0].item() == np.exp(0.5)
        y = x * 1
        Squared.apply(y)
        y.add_(1)
        with pytest.raises(DifferentiationError, match=r"output 0 of SquaredBackward.*is at version"):
            y.backward()

    def test_it_must_be_among_the_outputs_and_the_inputs(self):
        class Lost(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                x.mul_(2)
                return x.clone()

        class Other(Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2
                ctx.mark_dirty(y)
                return y

        with pytest.raises(
            DifferentiationError, match=r"^Some elements marked as dirty .* were not returned as output"
        ):
            Lost.apply(leaf([1.0]) * 1)
        with pytest.warns(UserWarning, match=r"^Only input Tensors should be given to ctx.mark_dirty"):
            Other.apply(leaf([1.0]))

    def test_a_view_is_the_only_output(self):
        class Two(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2), x * 3

        Two.apply(leaf([1.0]) * 1)
        with pytest.raises(DifferentiationError, match=r"modifies inplace an input that is a view of another Tensor"):
            Two.apply((leaf([1.0]) * 1)[:])


class TestBackward:
    def test_vjp_is_another_name_of_it(self):
        class Named(Function):
            @staticmethod
            def forward(_ctx, x):
                return x * 3

            @staticmethod
            def vjp(_ctx, g):
                return g * 3

        class Both(Named):
            @staticmethod
            def backward(_ctx, g):
                return g

        x = leaf(1.0)
        Named.apply(x).backward()
        assert x.grad.item() == 3.0
        with pytest.raises(DifferentiationError, match=r"^Implementing both 'backward' and 'vjp'"):
            Both.apply(x).backward()

    def test_once_differentiable(self):
        class Once(Function):
            @staticmethod
            def forward(ctx, x, n):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            @once_differentiable
            def backward(ctx, g):
                assert not gradcli.is_grad_enabled()
                (x,) = ctx.saved_tensors
                return 2 * g * x, None

        x, seed = leaf(3.0), leaf(1.0)
        assert grad(Once.apply(x, 2), x)[0].item() == 6.0
        # The second derivative is not declared, so the gradient does not require grad.
        assert not grad(Once.apply(x, 2), x, create_graph=True)[0].requires_grad
        (slope,) = grad(Once.apply(x, 2), x, seed, create_graph=True)
        assert slope.item() == 6.0
        with pytest.raises(
            DifferentiationError, match=r"^trying to differentiate twice a function that was marked with"
        ):
            slope.backward()

    def test_saved_variables_is_an_old_name(self):
        class Old(Double):
            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_variables
                return g * 2 + x * 0

        with pytest.warns(DeprecationWarning, match=r"'saved_variables' is deprecated; use 'saved_tensors'"):
            Old.apply(leaf(1.0)).backward()

    def test_the_node_has_what_the_context_has(self):
        x = leaf([1.0])
        y = Double.apply(x)
        assert y.grad_fn.saved_tensors[0] is x
        assert y.grad_fn.needs_input_grad == (True,)
        y.backward()
        with pytest.raises(DifferentiationError, match=r"after they have already been freed"):
            _ = y.grad_fn.saved_tensors
        with pytest.raises(AttributeError, match=r"nothing"):
            _ = y.grad_fn.nothing

    def test_any_attribute_can_be_set_on_the_context(self):
        class Named(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.name, ctx.edges, ctx.inputs, ctx.outputs, ctx.hooks, ctx.function = "mine", 1, 2, 3, 4, 5
                return x * 2

            @staticmethod
            def backward(ctx, g):
                assert (ctx.name, ctx.edges, ctx.inputs, ctx.outputs, ctx.hooks, ctx.function) == (
                    "mine",
                    1,
                    2,
                    3,
                    4,
                    5,
                )
                return g * 2

        x = leaf(1.0)
        Named.apply(x).backward()
        assert x.grad.item() == 2.0

    def test_saved_outputs_make_no_circle(self):
        class Exp(Function):
            @staticmethod
            def forward(ctx, x):
                y = gradcli.exp(x)
                ctx.save_for_backward(y)
                return y

        gc.disable()
        try:
            y = Exp.apply(leaf([1.0]))
            node = weakref.ref(y.grad_fn)
            del y
            assert node() is None
        finally:
            gc.enable()


def test_instances_are_of_no_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function = Double()
    with pytest.raises(
        DifferentiationError, match=r"^Legacy autograd function with non-static forward .* Double.apply$"
    ):
        function(tensor(1.0))


class _Down(Function):
    """A Function whose backward runs another backward pass, nested as deeply as its number says."""

    @staticmethod
    def forward(ctx, x):
        with gradcli.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()

    @staticmethod
    def backward(ctx, g):
        if ctx.x.item() < 0:
            return g
        with gradcli.enable_grad():
            _Down.apply(ctx.x).backward()
        return g


def test_passes_within_passes_within_passes():
    x = leaf(300.0)
    _Down.apply(x).backward()
    assert x.grad.item() == 1.0


def test_an_error_from_deep_within_comes_out():
    class Broken(_Down):
        @staticmethod
        def backward(ctx, g):
            if ctx.x.item() < 0:
                raise KeyError("mine")
            with gradcli.enable_grad():
                Broken.apply(ctx.x).backward()
            return g

    with pytest.raises(KeyError, match="mine"):
        Broken.apply(leaf(50.0)).backward()


class Cube(Function):
    """A Function computed by NumPy, which can be batched only by its own rule."""

    seen: ClassVar[list[object]] = []

    @staticmethod
    def forward(x, weight):
        return tensor(x.detach().numpy() ** 3 * weight)

    @staticmethod
    def setup_context(ctx, inputs, _output):
        x, ctx.weight = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x**2 * ctx.weight, None

    @staticmethod
    def vmap(info, in_dims, x, weight):
        Cube.seen.append((info.batch_size, info.randomness, in_dims, x.shape))
        return Cube.apply(x, weight), 0


class TestRows:
    def test_a_rule_of_its_own(self):
        Cube.seen.clear()
        x = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        y = func.vmap(lambda row: Cube.apply(row, 2.0).sum())(x)
        assert y.tolist() == [18.0, 182.0, 682.0]
        assert Cube.seen == [(3, "error", (0, None), (3, 2))]
        y.sum().backward()
        assert x.grad.tolist() == (6 * x.detach().numpy() ** 2).tolist()
        slopes = func.vmap(func.grad(lambda row: Cube.apply(row, 1.0).sum()))(x.detach())
        assert slopes.tolist() == (3 * x.detach().numpy() ** 2).tolist()

    def test_within_each_other(self):
        Cube.seen.clear()
        x = tensor(np.arange(6.0).reshape(2, 3))
        y = func.vmap(func.vmap(lambda v: Cube.apply(v, 1.0)))(x)
        assert y.tolist() == (x.numpy() ** 3).tolist()
        assert [dims for _, _, dims, _ in Cube.seen] == [(0, None), (0, None)]

    def test_rows_along_another_axis_and_outputs_that_all_rows_share(self):
        class Two(Function):
            @staticmethod
            def forward(_ctx, x):
                return x * 2, x * 0

            @staticmethod
            def vmap(_info, _in_dims, x):
                return (x.T * 2, tensor(7.0)), (1, None)

        double, seven = func.vmap(Two.apply)(tensor([[1.0, 2.0], [3.0, 4.0]]))
        assert double.tolist() == [[2.0, 4.0], [6.0, 8.0]]
        assert seven.tolist() == [7.0, 7.0]

    def test_by_default_there_is_none(self):
        assert not Double.generate_vmap_rule
        with pytest.raises(
            NotImplementedError, match=r"must either override the vmap staticmethod or set generate_vmap"
        ):
            Double.vmap(None, ())
        assert func.vmap(Double.apply)(tensor([1.0, 2.0])).tolist() == [2.0, 4.0]

    def test_what_is_wrong(self):
        class Both(Cube):
            generate_vmap_rule = True

        class Short(Double):
            @staticmethod
            def vmap(_info, _in_dims, x):
                return x

        with pytest.raises(
            DifferentiationError, match=r"both generate_vmap_rule=True and an overridden vmap staticmethod"
        ):
            func.vmap(lambda x: Both.apply(x, 1.0))(tensor([1.0]))
        with pytest.raises(TypeError, match=r"the vmap of Short returns its outputs, and along which axis"):
            func.vmap(Short.apply)(tensor([1.0]))
