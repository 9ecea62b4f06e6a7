"""Tests inference mode, and views created while nothing is recorded, as in PyTorch."""

from __future__ import annotations

import pytest

import gradcli
from gradcli import inference_mode, no_grad
from gradcli.errors import DifferentiationError

SAVED = r"^Inference tensors cannot be saved for backward"
IN_PLACE = r"^Inplace update to inference tensor outside InferenceMode is not allowed"


def leaf(data):
    return gradcli.tensor(data, requires_grad=True)


def of_inference(data, requires_grad=False):
    with inference_mode():
        return gradcli.tensor(data, requires_grad=requires_grad)


class TestTheMode:
    def test_can_be_asked_for(self):
        assert not gradcli.is_inference_mode_enabled()
        with inference_mode():
            assert gradcli.is_inference_mode_enabled()
            with inference_mode(False):
                assert not gradcli.is_inference_mode_enabled()
                assert gradcli.is_grad_enabled()
            assert gradcli.is_inference_mode_enabled()
        assert not gradcli.is_inference_mode_enabled()

    def test_decorates(self):
        for decorate in (inference_mode, inference_mode(), inference_mode(mode=True)):
            assert decorate(gradcli.is_inference_mode_enabled)()
        assert not inference_mode(False)(gradcli.is_inference_mode_enabled)()

    def test_is_left_after_an_error(self):
        with pytest.raises(ZeroDivisionError), inference_mode():
            raise ZeroDivisionError
        assert not gradcli.is_inference_mode_enabled()
        assert gradcli.is_grad_enabled()

    def test_is_not_taken_back_by_enable_grad(self):
        x = leaf(2.0)
        for enable in (gradcli.enable_grad, lambda: gradcli.set_grad_enabled(True)):
            with inference_mode(), enable():
                y = x * 2
            assert not y.requires_grad
            assert y.is_inference()


class TestInferenceTensors:
    def test_are_what_is_made_in_the_mode(self):
        x = leaf([1.0, 2.0])
        with inference_mode():
            made = gradcli.tensor([1.0, 2.0])
            kept = [made, made * 2, made[0], made.detach(), made.data, made.clone(), x * 2, x.clone()]
            others = [x, x[0], x.detach(), x.data]
        assert all(gradcli.is_inference(t) for t in kept)
        assert not any(gradcli.is_inference(t) for t in others)
        assert not gradcli.is_inference(made * 2)
        assert gradcli.is_inference(made[0])

    def test_have_no_version(self):
        with pytest.raises(RuntimeError, match=r"^Inference tensors do not track version counter\.$"):
            _ = of_inference(1.0)._version

    def test_can_require_grad_if_they_are_told_in_the_mode(self):
        x = of_inference(1.0, requires_grad=True)
        assert x.requires_grad
        with pytest.raises(RuntimeError, match=r"^Setting requires_grad=True on inference tensor outside"):
            of_inference(1.0).requires_grad_()

    def test_alone_are_not_recorded(self):
        x = of_inference([1.0, 2.0], requires_grad=True)
        for y in (x * x, x + 1, x[0]):
            assert not y.requires_grad
            assert y.is_leaf
        assert not x[0]._is_view()

    def test_beside_others_get_a_gradient_where_they_need_not_be_saved(self):
        x, y = of_inference([1.0, 2.0], requires_grad=True), leaf([3.0, 4.0])
        (x + y).sum().backward()
        assert x.grad.tolist() == y.grad.tolist() == [1.0, 1.0]

    def test_cannot_be_saved_for_backward(self):
        x, y = of_inference([1.0, 2.0]), leaf([3.0, 4.0])
        for operation in (lambda: x * y, lambda: y / x, lambda: (y * 1).mul_(x)):
            with pytest.raises(RuntimeError, match=SAVED):
                operation()
        assert (x.clone() * y).requires_grad

    def test_cannot_be_saved_by_a_function_that_is_recorded(self):
        class Product(gradcli.Function):
            @staticmethod
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                return a * b

        x, y = of_inference([1.0, 2.0]), leaf([3.0, 4.0])
        with pytest.raises(RuntimeError, match=SAVED):
            Product.apply(x, y)
        assert Product.apply(x, y.detach()).tolist() == [3.0, 8.0]

    def test_change_in_place_within_the_mode(self):
        with inference_mode():
            x = gradcli.tensor([1.0, 2.0])
            x += 1
            x[0] = 5.0
            x[1:].mul_(2)
        assert x.tolist() == [5.0, 6.0]
        assert x.is_inference()

    @pytest.mark.parametrize("mode", [gradcli.enable_grad, no_grad])
    def test_do_not_change_in_place_outside(self, mode):
        x = of_inference([1.0, 2.0])
        changes = (
            lambda: x.add_(1),
            lambda: x.zero_(),
            lambda: x.copy_(x * 2),
            lambda: x.__setitem__(0, 1.0),
            lambda: x[0].add_(1),
        )
        for change in changes:
            with mode(), pytest.raises(RuntimeError, match=IN_PLACE):
                change()
        assert x.tolist() == [1.0, 2.0]


class TestOthersInTheMode:
    def test_count_their_versions(self):
        x = leaf([1.0, 2.0])
        y = x * 1
        z = y * y
        with inference_mode():
            y.add_(2)
            y[0].mul_(2)
        assert y._version == 2
        assert y.requires_grad
        with pytest.raises(DifferentiationError, match="modified by an inplace operation"):
            z.sum().backward()

    def test_do_not_record_what_changes_them(self):
        x = leaf([1.0, 2.0])
        y = x * 3
        with inference_mode():
            x.mul_(2)
            y.add_(1)
        y.sum().backward()
        assert x.tolist() == [2.0, 4.0]
        assert x.grad.tolist() == [3.0, 3.0]


class TestViewsThatAreNotRecorded:
    @pytest.mark.parametrize("mode", [no_grad, inference_mode])
    def test_require_grad_as_their_base_does(self, mode):
        x = leaf([[1.0, 2.0]])
        for base in (x, x * 2):
            with mode():
                view = base.view(-1)
                again = view[:1]
            assert view.requires_grad
            assert again.requires_grad
            assert again.is_leaf
            assert again._is_view()
        with mode():
            assert not gradcli.tensor([1.0, 2.0])[0].requires_grad

    def test_are_leaves(self):
        x = leaf([1.0, 2.0])
        with no_grad():
            first = x[0]
        (first * 3).backward()
        assert first.grad.item() == 3.0
        assert x.grad is None

    @pytest.mark.parametrize(
        ("mode", "made", "outside", "block"),
        [
            (no_grad, "no_grad mode", "with grad mode enabled", "the no_grad block"),
            (inference_mode, "inference mode", "in normal mode", "the inference_mode block"),
        ],
    )
    def test_are_not_changed_in_place_outside_nor_seen_after_their_base_was(self, mode, made, outside, block):
        x = leaf([1.0, 2.0]) * 1
        with mode():
            view = x.view(-1)
        with pytest.raises(
            RuntimeError, match=f"^A view was created in {made} and is being modified inplace {outside}"
        ):
            view.add_(2)
        with pytest.raises(RuntimeError, match=block):
            view.view(2).add_(2)
        x.add_(2)
        assert view.requires_grad
        with pytest.raises(
            RuntimeError, match=f"^A view was created in {made} and its base or another view of its base"
        ):
            _ = view.grad_fn
        with mode():
            assert view.grad_fn is None

    @pytest.mark.parametrize("mode", [no_grad, inference_mode])
    def test_of_what_requires_no_grad_may_be_changed(self, mode):
        x = gradcli.tensor([1.0, 2.0])
        with mode():
            view = x.view(-1)
        view.add_(1)
        assert x.tolist() == [2.0, 3.0]
