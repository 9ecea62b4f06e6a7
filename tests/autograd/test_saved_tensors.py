"""Tests tensors saved for backward: hooks, access from a node, and in-place changes, as in PyTorch."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import tensor
from gradcli.autograd import SavedTensor
from gradcli.autograd.function import once_differentiable
from gradcli.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
    saved_tensors_hooks_is_enabled,
)
from gradcli.errors import CallError, DifferentiationError


def leaf(value: Any = 2.0) -> Any:
    return tensor(value, requires_grad=True)


def same(x: Any) -> Any:
    return x


class Exp(gradcli.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = gradcli.exp(x)
        ctx.save_for_backward(x, y, None)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[1]


class TestHooks:
    def test_what_they_make_of_the_tensors_is_used(self):
        with saved_tensors_hooks(lambda x: ("kept", x * 2), lambda kept: kept[1]):
            x = leaf(3.0)
            y = x * x
        y.backward()
        assert x.grad.item() == 12.0

    def test_they_can_keep_them_elsewhere(self):
        shelf: dict[int, Any] = {}

        def put(x):
            shelf[len(shelf)] = x.numpy()
            return len(shelf) - 1

        with saved_tensors_hooks(put, lambda key: tensor(shelf[key])):
            x = leaf([1.0, 2.0])
            y = (x.exp() * x).sum()
        y.backward()
        assert len(shelf) == 3
        assert x.grad.tolist() == pytest.approx((np.exp([1.0, 2.0]) * [2.0, 3.0]).tolist())

    def test_each_tensor_is_packed_once_and_unpacked_once_in_a_pass(self):
        packed, unpacked = [], []

        def unpack(x):
            unpacked.append(x)
            return x

        with saved_tensors_hooks(lambda x: packed.append(x) or x, unpack):
            x, w = leaf([1.0, 2.0]), tensor([3.0, 4.0])
            y = gradcli.maximum(x * w, 5.0)
            assert (len(packed), len(unpacked)) == (2, 0)
            y.sum().backward()
        assert (len(packed), len(unpacked)) == (2, 2)
        assert x.grad.tolist() == [0.0, 4.0]

    def test_they_see_tensors_without_a_graph_and_none_that_are_numbers(self):
        seen = []
        with saved_tensors_hooks(lambda x: seen.append((x.requires_grad, gradcli.is_grad_enabled())) or x, same):
            x = leaf()
            ((x * 3) ** 2).backward()
        assert seen == [(False, False)]

    def test_of_results_and_of_functions_of_users(self):
        with saved_tensors_hooks(lambda x: x.item(), lambda kept: tensor(kept * 10)):
            x = leaf(0.0)
            y, z = x.exp(), Exp.apply(x)
        y.backward()
        assert x.grad.item() == 10.0
        z.backward()
        assert x.grad.item() == 20.0

    def test_second_derivatives_go_through_them(self):
        for function in (lambda x: x**3, lambda x: x * x * x, gradcli.exp, Exp.apply):
            x = leaf(1.5)
            with saved_tensors_hooks(lambda x: x.numpy(), lambda kept: tensor(kept)):
                y = function(x)
                (slope,) = gradcli.grad(y, x, create_graph=True)
            (second,) = gradcli.grad(slope, x)
            expected = np.exp(1.5) if y.item() == np.exp(1.5) else 9.0
            assert second.item() == pytest.approx(expected)

    def test_of_what_can_be_differentiated_once(self):
        class Once(gradcli.Function):
            @staticmethod
            def forward(_ctx, x):
                return x * 2

            @staticmethod
            @once_differentiable
            def backward(_ctx, g):
                return g * 2

        x = leaf()
        with saved_tensors_hooks(same, same):
            (slope,) = gradcli.grad(Once.apply(x) * x, x, create_graph=True)
            again = (slope * x).exp()
        with pytest.raises(DifferentiationError, match="once_differentiable"):
            again.backward()

    def test_the_inner_ones_apply_and_they_end_with_their_block(self):
        with saved_tensors_hooks(lambda x: x * 3, same):
            a = leaf(1.0)
            with saved_tensors_hooks(lambda x: x * 5, same):
                inner = a * a
            outer = a * a
        after = a * a
        found = [gradcli.grad(y, a)[0].item() for y in (inner, outer, after)]
        assert found == [10.0, 6.0, 2.0]

    def test_what_they_raise_comes_through(self):
        def fail(_):
            raise KeyError("the shelf is full")

        x = leaf()
        with saved_tensors_hooks(fail, same), pytest.raises(KeyError, match="full"):
            gradcli.sin(x)
        with saved_tensors_hooks(same, fail):
            y = gradcli.sin(x)
            with pytest.raises(KeyError, match="full"):
                y.backward()

    def test_what_they_must_not(self):
        def increased(x):
            x += 1
            return x

        x = leaf()
        with (
            saved_tensors_hooks(increased, same),
            pytest.raises(DifferentiationError, match=r"^A saved tensor pack hook is modifying its input in place"),
        ):
            gradcli.exp(x)
        with saved_tensors_hooks(same, lambda _: 1):
            y = x * x
        with pytest.raises(TypeError, match="Output of saved tensor unpack_hook expected to be a Tensor but got"):
            y.backward()

    def test_a_tensor_that_they_keep_as_it_is_must_not_be_changed(self):
        with saved_tensors_hooks(same, same):
            x = leaf([1.0, 2.0]).clone()
            y = (x * x).sum()
        x += 1
        with pytest.raises(DifferentiationError, match="modified by an inplace operation"):
            y.backward()

    def test_those_that_a_pass_leaves_behind_end_with_it(self):
        def entered():
            def unpack(x):
                known().__enter__()
                return x

            hooks = saved_tensors_hooks(same, unpack)
            known = weakref.ref(hooks)
            with hooks:
                leaf([1.0, 2.0]).sin().sum().backward()
            return weakref.ref(unpack)

        unpack = entered()
        gc.collect()
        assert unpack() is None

    def test_more_ends_than_beginnings_do_no_harm(self):
        hooks = saved_tensors_hooks(lambda x: x * 2, same)
        hooks.__exit__()
        with hooks:
            hooks.__exit__()
        x = leaf()
        (x * x).backward()
        assert x.grad.item() == 4.0

    def test_what_is_kept_is_freed_with_the_graph(self):
        class Kept:
            def __init__(self, x):
                self.x = x

        known = []

        def pack(x):
            kept = Kept(x)
            known.append(weakref.ref(kept))
            return kept

        x = leaf()
        with saved_tensors_hooks(pack, lambda kept: kept.x):
            y, z = x * x, Exp.apply(x)
            (y + z).backward()
        assert [reference() for reference in known] == [None] * 4

    def test_jacobians_by_rows(self):
        with saved_tensors_hooks(lambda x: x.numpy(), lambda kept: tensor(kept)):
            found = gradcli.jacobian(lambda x: x * x, leaf([1.0, 2.0]))
        assert np.asarray(found).tolist() == [[2.0, 0.0], [0.0, 4.0]]


class TestWhereThereMustBeNone:
    def test_a_block_without(self):
        with (
            disable_saved_tensors_hooks("not here"),
            pytest.raises(DifferentiationError, match=r"^not here$"),
            saved_tensors_hooks(same, same),
        ):
            pass
        assert saved_tensors_hooks_is_enabled()

    def test_within_hooks(self):
        with (
            saved_tensors_hooks(same, same),
            pytest.raises(DifferentiationError, match=r"^not here$"),
            disable_saved_tensors_hooks("not here"),
        ):
            pass
        assert saved_tensors_hooks_is_enabled()

    def test_nested(self):
        with disable_saved_tensors_hooks("outer"):
            with (
                disable_saved_tensors_hooks("inner"),
                pytest.raises(DifferentiationError, match=r"^inner$"),
                save_on_cpu(),
            ):
                pass
            assert not saved_tensors_hooks_is_enabled()


@pytest.mark.parametrize("pinned", [False, True])
def test_saving_on_the_cpu(pinned):
    with save_on_cpu(pin_memory=pinned):
        x = tensor([1.0, 2.0], dtype="float32", requires_grad=True)
        y = x * x
        assert (y.grad_fn._saved_self.tolist(), y.grad_fn._saved_self.dtype) == ([1.0, 2.0], "float32")
        y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


class TestFromANode:
    def test_operands_results_and_options(self):
        x = leaf([[1.0, 2.0]])
        y, z = x * 2, x.exp()
        product = y * x
        assert product.grad_fn._saved_self is y
        assert product.grad_fn._saved_other is x
        assert z.grad_fn._saved_result.tolist() == z.tolist()
        assert z.grad_fn._saved_result is not z
        assert z.grad_fn._saved_result.grad_fn is z.grad_fn
        assert (x * tensor(3.0)).grad_fn._saved_self is None
        with pytest.raises(AttributeError, match=r"^ExpBackward0 has no such operand$"):
            _ = z.grad_fn._saved_other

    def test_after_they_were_freed_or_changed(self):
        x = leaf([1.0, 2.0])
        y = x * 1
        product = y * y
        y += 1
        with pytest.raises(DifferentiationError, match="modified by an inplace operation"):
            _ = product.grad_fn._saved_self
        product = x * x
        raw = product.grad_fn._raw_saved_self
        product.sum().backward()
        with pytest.raises(DifferentiationError, match="after they have already been freed"):
            _ = product.grad_fn._saved_self
        with pytest.raises(DifferentiationError, match="after it has been freed"):
            raw.register_hooks(same, same)

    def test_of_a_function_of_the_user(self):
        x = leaf()
        y = Exp.apply(x)
        saved, result, nothing = y.grad_fn.saved_tensors
        assert (saved is x, result.item(), nothing) == (True, y.item(), None)
        raw = y.grad_fn._raw_saved_tensors
        assert all(isinstance(r, SavedTensor) for r in raw)
        with pytest.raises(DifferentiationError, match="with value None is forbidden"):
            raw[2].register_hooks(same, same)
        raw[1].register_hooks(lambda x: x * 2, same)
        y.backward()
        assert x.grad.item() == pytest.approx(2 * np.exp(2.0))
        with pytest.raises(DifferentiationError, match="after they have already been freed"):
            _ = y.grad_fn._raw_saved_tensors

    def test_hooks_on_one_tensor(self):
        for make in (leaf, lambda: leaf() + 1):
            x = make()
            y = x * x
            y.grad_fn._raw_saved_self.register_hooks(lambda x: 2 * x, same)
            assert y.grad_fn._saved_self.item() == 2 * x.item()
            if x.grad_fn is not None:
                assert y.grad_fn._saved_self.grad_fn is x.grad_fn
            assert gradcli.grad(y, x)[0].item() == 3 * x.item()

    def test_hooks_on_the_second_operand_and_on_the_result(self):
        x = leaf()
        y = (x + 1) * x
        y.grad_fn._raw_saved_other.register_hooks(lambda x: 3 * x, same)
        assert y.grad_fn._saved_other.item() == 3 * x.item()
        z = x.exp()
        z.grad_fn._raw_saved_result.register_hooks(lambda x: 2 * x, same)
        assert gradcli.grad(z, x)[0].item() == 2 * z.item()

    def test_hooks_that_cannot_be_registered(self):
        y = leaf() * leaf()
        raw = y.grad_fn._raw_saved_self
        for wrong in ((same,), (1, 1), (same, same, same)):
            with pytest.raises(CallError, match="incompatible function arguments"):
                raw.register_hooks(*wrong)
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            raw.register_hooks(lambda x, y: x, same)
        raw.register_hooks(same, same)
        with pytest.raises(DifferentiationError, match="hooks have already been set"):
            raw.register_hooks(same, same)
        with pytest.raises(
            DifferentiationError, match=r"^Trying to create a SavedTensor object from Python is forbidden"
        ):
            SavedTensor()

    def test_a_saved_tensor_that_was_detached_in_place(self):
        x = leaf().clone()
        y, z = x.sin(), x.exp()
        x.detach_()
        with pytest.raises(
            DifferentiationError, match=r"^Trying to use a saved tensor that has been detached in-place"
        ):
            y.backward()
        z.detach_()
        assert z.grad_fn is None


class TestMutation:
    def test_backward_uses_what_they_were(self):
        def gradient():
            x = leaf([1.0, 2.0])
            y = x.clone()
            view = y[:1]
            z = (y**2).sum() + (view**3).sum()
            y.sin_()
            view.zero_()
            z.backward()
            return x.grad.tolist()

        with pytest.raises(DifferentiationError, match="modified by an inplace operation"):
            gradient()
        with allow_mutation_on_saved_tensors():
            assert gradient() == [5.0, 4.0]

    def test_what_was_changed_can_be_seen(self):
        with allow_mutation_on_saved_tensors() as context:
            x = leaf([1.0, 2.0]).clone()
            y, z = x**2, x**2
            assert (len(context.tid_to_weakhandle), len(context.cloned)) == (1, 0)
            x.sin_()
            w = x**2
            x.sin_()
            assert next(t.tolist() for t in context.cloned.values()) == [1.0, 2.0]
            assert len(context.cloned) == 2
            del y, z
            assert len(context.cloned) == 1
            del w
            assert len(context.cloned) == 0

    def test_second_derivatives(self):
        with allow_mutation_on_saved_tensors():
            x = leaf([1.0, 2.0])
            y = x.clone()
            z = (y**3).sum()
            y.sin_()
            (slope,) = gradcli.grad(z, x, create_graph=True)
            assert gradcli.grad(slope.sum(), x)[0].tolist() == [6.0, 12.0]

    def test_outside_of_the_block(self):
        with allow_mutation_on_saved_tensors():
            y = leaf() ** 2
        with pytest.raises(
            AssertionError, match=r"^Trying to backward outside of the 'allow_mutation_on_saved_tensors'"
        ):
            y.backward()
        with (
            allow_mutation_on_saved_tensors(),
            pytest.raises(DifferentiationError, match=r"^allow_mutation_on_saved_tensors contexts cannot be nested$"),
            allow_mutation_on_saved_tensors(),
        ):
            pass
