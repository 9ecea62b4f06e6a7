"""Tests in-place operations that reinterpret memory, strided views, and views that must not be modified."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
import gradcli.autograd.forward_ad as fwAD  # noqa: N812
from gradcli import no_grad, tensor
from gradcli.errors import DifferentiationError, ShapeError

ROWS = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def leaf(value):
    return tensor(value, requires_grad=True)


class TestSeenOtherwise:
    @pytest.mark.parametrize(
        ("edit", "same"),
        [
            (lambda x: x.t_(), lambda a: a.T),
            (lambda x: x.transpose_(0, 1), lambda a: a.T),
            (lambda x: x.swapaxes_(0, 1), lambda a: a.T),
            (lambda x: x.swapdims_(0, -1), lambda a: a.T),
            (lambda x: x.unsqueeze_(1), lambda a: a[:, None]),
            (lambda x: x.squeeze_(0), lambda a: a),
            (lambda x: x.as_strided_((3, 2), (1, 3)), lambda a: a.T),
        ],
    )
    def test_numbers_gradients_and_versions(self, edit, same):
        x = leaf(ROWS)
        y = x * 2
        assert edit(y) is y
        np.testing.assert_array_equal(
            y.numpy() if not y.requires_grad else y.detach().numpy(), same(np.array(ROWS) * 2)
        )
        assert y._version == 1
        weights = np.arange(1.0, 7.0).reshape(y.shape)
        (y * weights).sum().backward()
        np.testing.assert_array_equal(same(x.grad.numpy()), 2 * weights)

    def test_a_view_stays_a_view(self):
        x = leaf(ROWS)
        base = x * 1
        row = base[0]
        row.unsqueeze_(1)
        assert row.shape == (3, 1)
        assert row._base is base
        assert (row._version, base._version) == (1, 1)
        row.mul_(10)
        assert base.tolist() == [[10.0, 20.0, 30.0], [4.0, 5.0, 6.0]]
        base.sum().backward()
        assert x.grad.tolist() == [[10.0, 10.0, 10.0], [1.0, 1.0, 1.0]]

    def test_of_a_base_its_views_stay_where_they_are(self):
        x = leaf(ROWS)
        base = x * 1
        row = base[0]
        base.t_()
        assert (base.shape, row.shape) == ((3, 2), (3,))
        row.mul_(10)
        assert base.tolist() == [[10.0, 4.0], [20.0, 5.0], [30.0, 6.0]]
        (base * tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
        assert x.grad.tolist() == [[10.0, 30.0, 50.0], [2.0, 4.0, 6.0]]
        base = leaf(ROWS) * 1
        row = base[0]
        base.t_()
        base.add_(1)
        assert row.grad_fn.name == "IndexBackward0"
        assert row.tolist() == [2.0, 3.0, 4.0]

    def test_a_base_that_has_lost_elements(self):
        base = leaf(ROWS) * 1
        row = base[1]
        base.as_strided_((2,), (1,))
        with pytest.raises(DifferentiationError, match=r"has not all its elements any more"):
            row.mul_(2)

    def test_outside_of_the_graph(self):
        x = leaf(ROWS)
        with no_grad():
            x.t_()
        assert (x.shape, x.is_leaf) == ((3, 2), True)
        y = tensor(ROWS)
        z = y.detach()
        y.t_()
        assert z.shape == (2, 3)
        y[0] = 0.0
        assert z.tolist() == [[0.0, 2.0, 3.0], [0.0, 5.0, 6.0]]

    def test_what_may_not_be_edited(self):
        with pytest.raises(
            DifferentiationError, match=r"a leaf Variable that requires grad is being used in an in-place"
        ):
            leaf(ROWS).t_()
        first, _ = gradcli.unbind(leaf(ROWS) * 1)
        with pytest.raises(DifferentiationError, match=r"the output of a function that returns multiple views"):
            first.unsqueeze_(0)
        base = leaf(ROWS) * 1
        with no_grad():
            view = base[0]
        with pytest.raises(DifferentiationError, match=r"A view was created in no_grad mode"):
            view.unsqueeze_(0)
        with no_grad():
            view.unsqueeze_(0)
        with pytest.raises(DifferentiationError, match=r"A view was created in no_grad mode"):
            view.add_(1)

    def test_a_view_of_a_view_that_was_not_recorded(self):
        x = tensor([1.0, 2.0])
        for mode, name in ((gradcli.no_grad, "no_grad"), (gradcli.inference_mode, "inference_mode")):
            with mode():
                y = x.view(2)
            y.requires_grad_()
            z = y.view(2)
            message = rf"^Output 0 of ViewBackward0 is a view of a view which was created in .* the {name} block"
            with pytest.raises(DifferentiationError, match=message):
                z /= 2


class TestDuals:
    def test_the_tangent_is_seen_as_the_tensor_is(self):
        with fwAD.dual_level():
            x = fwAD.make_dual(tensor(ROWS), tensor(ROWS))
            y = x * 2
            y.t_()
            assert fwAD.unpack_dual(y).tangent.tolist() == [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]
            base = x * 1
            row = base[0]
            row.unsqueeze_(1)
            row.mul_(10)
            assert fwAD.unpack_dual(row).tangent.tolist() == [[10.0], [20.0], [30.0]]
            assert fwAD.unpack_dual(base).tangent.tolist() == [[10.0, 20.0, 30.0], [4.0, 5.0, 6.0]]


class TestAsStrided:
    def test_numbers(self):
        x = tensor([1.0, 2.0, 3.0, 4.0])
        assert x.as_strided((3, 2), (1, 1)).tolist() == [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]
        assert x.as_strided((2, 2), (1, 2)).tolist() == [[1.0, 3.0], [2.0, 4.0]]
        assert x.as_strided((2,), (2,), 1).tolist() == [2.0, 4.0]
        assert x.as_strided((1, 0), (2, 2)).shape == (1, 0)
        assert tensor(3.0).as_strided((2,), (0,)).tolist() == [3.0, 3.0]
        assert gradcli.as_strided(np.arange(4.0), (2,), (3,)).tolist() == [0.0, 3.0]

    def test_of_a_view_it_counts_in_the_memory(self):
        x = tensor(ROWS)
        assert x.T.as_strided((2, 3), (3, 1)).tolist() == ROWS
        assert x[1].as_strided((2,), (2,)).tolist() == [4.0, 6.0]
        assert x[:, 1:].as_strided((2, 2), (3, 1), 1).tolist() == [[2.0, 3.0], [5.0, 6.0]]
        with pytest.raises(ShapeError, match=r"are out of bounds for the 3 elements of the tensor"):
            x[1].as_strided((2,), (1,), 2)

    def test_it_is_a_view_in_the_graph(self):
        x = leaf([1.0, 2.0, 3.0])
        y = x * 1
        windows = y.as_strided((2, 2), (1, 1))
        windows.sum().backward(retain_graph=True)
        assert x.grad.tolist() == [1.0, 2.0, 1.0]
        ends = y.as_strided((2,), (2,))
        assert (ends._base is y, ends.stride()) == (True, (2,))
        ends.zero_()
        assert y.tolist() == [0.0, 2.0, 0.0]
        x.grad = None
        y.sum().backward()
        assert x.grad.tolist() == [0.0, 1.0, 0.0]

    def test_strides_that_are_none(self):
        with pytest.raises(ShapeError, match=r"are not as many numbers of at least 0"):
            tensor(ROWS).as_strided((2,), (1, 2))
        with pytest.raises(ShapeError, match=r"are not as many numbers of at least 0"):
            tensor(ROWS).as_strided((2,), (-1,))


class TestSeveralViews:
    @pytest.mark.parametrize(
        "parts",
        [lambda x: x.split(1), lambda x: x.chunk(2), lambda x: x.unbind(), lambda x: x.split_with_sizes((1, 1))],
    )
    def test_are_not_edited(self, parts):
        message = r"This view is the output of a function that returns multiple views. Such functions do not allow"
        first, _ = parts(leaf(ROWS) * 1)
        with pytest.raises(DifferentiationError, match=message):
            first.mul_(2)
        with pytest.raises(DifferentiationError, match=message):
            first.view(-1).mul_(2)
        plain, _ = parts(tensor(ROWS))
        plain.mul_(2)
        with pytest.raises(DifferentiationError, match=message):
            plain.copy_(leaf(1.0))

    @pytest.mark.parametrize(
        "parts",
        [lambda x: x.unsafe_split(1), lambda x: x.unsafe_chunk(2), lambda x: x.unsafe_split_with_sizes((1, 1))],
    )
    def test_unsafe_parts_have_memory_of_their_own(self, parts):
        x = leaf(ROWS)
        y = x * 2
        first, second = parts(y)
        first.mul_(second)
        first.sum().backward()
        assert y.tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]
        assert x.grad.tolist() == [[16.0, 20.0, 24.0], [4.0, 8.0, 12.0]]


def test_the_version_counter_outlives_the_numbers():
    x = tensor([[1.0, 2.0]])
    view = x[:]
    x.data = tensor([3.0])
    x.add_(1)
    assert x._version == view._version == 1
    view.add_(1)
    assert x._version == view._version == 2


def test_a_view_that_would_be_a_copy_is_refused():
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    for view in (lambda t: t.view(-1), lambda t: t.view_as(tensor([0.0, 0.0, 0.0, 0.0]))):
        with pytest.raises(ShapeError, match=r"^view size is not compatible with input tensor's size and stride"):
            view(x.T)
        view(x).mul_(2)
    assert x.T.reshape(-1).tolist() == [4.0, 12.0, 8.0, 16.0]
    x.T.view(2, 1, 2)[1].zero_()
    assert x.tolist() == [[4.0, 0.0], [12.0, 0.0]]
