"""Tests tensors that share memory: views, `detach`, `.data`, and in-place operations on them."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gradcli
from gradcli import Tensor, func, grad, no_grad, tensor
from gradcli.errors import DifferentiationError, ShapeError

MODIFIED = "^one of the variables needed for gradient computation has been modified by an inplace operation"
AMBIGUOUS = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or "
    "both outside (if you want the inplace to be tracked)."
)
SEVERAL = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)


def leaf(data):
    return tensor(data, requires_grad=True)


def matrix():
    return tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


# A view, and the positions of its elements in the matrix.
VIEWS = {
    "number": (lambda x: x[1, 2], (1, 2)),
    "row": (lambda x: x[0], 0),
    "last row": (lambda x: x[-1], 1),
    "slice": (lambda x: x[..., 1:3], (..., slice(1, 3))),
    "steps": (lambda x: x[:, ::2], (slice(None), slice(None, None, 2))),
    "new axis": (lambda x: x[None, 1], 1),
    "all": (lambda x: x[...], ...),
    "view of a view": (lambda x: x[1][1:][0], (1, 1)),
    "view of a slice": (lambda x: x[:, 1:].T[0], (slice(None), 1)),
    "reshaped slice": (lambda x: x[:, :2].reshape(2, 1, 2)[:, 0, 1], (slice(None), 1)),
    "view": (lambda x: x.view(6)[4:], (1, slice(1, 3))),
    "reshape": (lambda x: x.reshape(3, 2)[2], (1, slice(1, 3))),
    "T": (lambda x: x.T[2], (slice(None), 2)),
    "mT": (lambda x: x.mT[2], (slice(None), 2)),
    "transpose": (lambda x: x.transpose(0, 1)[2], (slice(None), 2)),
    "permute": (lambda x: x.permute(1, 0)[2], (slice(None), 2)),
    "swapaxes": (lambda x: x.swapaxes(0, 1)[2], (slice(None), 2)),
    "moveaxis": (lambda x: gradcli.moveaxis(x, 0, 1)[2], (slice(None), 2)),
    "squeeze": (lambda x: x[:1].squeeze(), 0),
    "unsqueeze": (lambda x: x.unsqueeze(1)[1, 0], 1),
    "expand": (lambda x: x.expand(4, 2, 3)[2, 1], 1),
    "ravel": (lambda x: x.ravel()[4:], (1, slice(1, 3))),
    "flatten": (lambda x: x.flatten()[4:], (1, slice(1, 3))),
    "diagonal": (lambda x: x.diagonal(), ([0, 1], [0, 1])),
    "another diagonal": (lambda x: gradcli.diagonal(x.T, -1)[1:], (1, 2)),
    "unflatten": (lambda x: gradcli.unflatten(x, 1, (3, 1))[1, 2, 0], (1, 2)),
    "unbind": (lambda x: x.unbind()[1], 1),
    "split": (lambda x: gradcli.split(x, 3, 1)[2], (slice(None), slice(2, 3))),
    "chunk": (lambda x: gradcli.chunk(x, 2, 1)[0], (slice(None), slice(0, 2))),
    "iteration": (lambda x: next(iter(x)), 0),
    "detach": (lambda x: x.detach()[1], 1),
    "data": (lambda x: x.data[1], 1),
    "detached view": (lambda x: x[1].detach(), 1),
    "view of a detached view": (lambda x: x[:, 1:].detach().T[0], (slice(None), 1)),
}
# Views that are not in the graph of their base, or may not be changed in it.
OUTSIDE = ("unbind", "split", "chunk", "iteration", "detach", "data", "detached view", "view of a detached view")
COPIES = {
    "clone": lambda x: x.clone(),
    "positions": lambda x: x[[0, 1]],
    "diag": lambda x: gradcli.diag(x),
    "mask": lambda x: x[x > 0],
    "reshaped transpose": lambda x: x.T.reshape(-1),
    "reshaped slice": lambda x: x[:, :2].reshape(-1),
    "reshaped expansion": lambda x: x.expand(2, 2, 3).reshape(12),
    "tile": lambda x: gradcli.tile(x, 2),
    "flip": lambda x: gradcli.flip(x),
    "sum": lambda x: x + 0,
    "concat": lambda x: gradcli.concat([x]),
    "tensor": lambda x: tensor(x),
    "deepcopy": copy.deepcopy,
}


class TestAView:
    @pytest.mark.parametrize("name", VIEWS)
    def test_of_what_is_changed_is_changed(self, name):
        view, places = VIEWS[name]
        x, array = matrix(), matrix().numpy().copy()
        seen = view(x)
        x.mul_(10)
        np.testing.assert_array_equal(seen.numpy(), (array * 10)[places].reshape(seen.shape))

    @pytest.mark.parametrize("name", VIEWS)
    def test_that_is_changed_changes_what_it_is_of(self, name):
        view, places = VIEWS[name]
        x, array = matrix(), matrix().numpy().copy()
        beside, seen = x.view(6), view(x)
        seen.mul_(10)
        array[places] *= 10
        np.testing.assert_array_equal(x.numpy(), array)
        np.testing.assert_array_equal(beside.numpy(), array.ravel())
        np.testing.assert_array_equal(seen.numpy(), array[places].reshape(seen.shape))

    @pytest.mark.parametrize("name", VIEWS)
    def test_counts_with_what_it_is_of(self, name):
        x = matrix()
        seen = VIEWS[name][0](x)
        for _ in range(2):
            seen.add_(1)
        x.add_(1)
        assert (x.version, seen.version) == ((1, 2) if name == "data" else (3, 3))

    @pytest.mark.parametrize("name", [n for n in VIEWS if n not in OUTSIDE])
    def test_gradients_are_those_of_the_same_without_it(self, name):
        view, places = VIEWS[name]
        start, w = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), leaf(0.5)
        x = start * 2
        before = x[1]
        seen = view(x)
        seen.mul_(seen.detach().clone() * w)
        ((x**2).sum() + (before * w).sum() + seen.sum()).backward()
        mask = np.zeros((2, 3), bool)
        mask[places] = True
        x, w0 = start.detach().numpy() * 2, 0.5
        after = np.where(mask, x * x * w0, x)
        by_after = 2 * after + mask
        by_after[1] += w0
        # The factor is a constant in the graph.
        np.testing.assert_allclose(start.grad.numpy(), 2 * np.where(mask, by_after * x * w0, by_after), rtol=1e-14)
        expected = (by_after * np.where(mask, x * x, 0.0)).sum() + after[1].sum()
        np.testing.assert_allclose(w.grad.item(), expected, rtol=1e-14)


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_does_not_change_with_what_it_is_of(name):
    x = matrix()
    made = COPIES[name](x)
    before = made.tolist()
    x.zero_()
    assert made.tolist() == before
    made.add_(1)
    assert x.tolist() == [[0.0] * 3] * 2


class TestHistory:
    def test_an_edit_through_a_view_is_in_the_gradient_of_its_base(self):
        x = leaf([1.0, 2.0])
        a = x * 1
        a.view(-1).mul_(3)
        a.sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]

    def test_nodes(self):
        a = leaf([[1.0, 2.0]]) * 1
        view = a.view(-1)
        view.mul_(2)
        assert (a.grad_fn.name, view.grad_fn.name) == ("CopySlices", "ViewBackward0")
        a.mul_(2)
        assert (a.grad_fn.name, view.grad_fn.name, view.tolist()) == ("MulBackward0", "ViewBackward0", [4.0, 8.0])

    def test_a_constant_base_becomes_part_of_the_graph_with_all_its_views(self):
        x, w = tensor([1.0, 1.0, 1.0]), leaf([2.0, 3.0])
        left, right = x[:2], x[1:]
        assert not right.requires_grad
        left.mul_(w * 3)
        assert (x.requires_grad, right.requires_grad) == (True, True)
        right.sum().backward()
        assert w.grad.tolist() == [0.0, 3.0]

    def test_what_was_replaced_gets_no_gradient_even_where_it_was_infinite(self):
        x = leaf([0.0, 4.0])
        y = gradcli.log(x)
        y[0] = 1.0
        y.sum().backward()
        assert x.grad.tolist() == [0.0, 0.25]

    def test_elements_of_other_tensors(self):
        w, x = leaf([1.0, 2.0, 3.0]), tensor([0.0, 0.0, 0.0])
        x[1:] = w[:2]
        x[0] = w[2] * 3
        assert x.tolist() == [9.0, 1.0, 2.0]
        x.sum().backward()
        assert w.grad.tolist() == [1.0, 1.0, 3.0]

    def test_without_grad_an_edit_leaves_the_gradient_as_it_is(self):
        a = leaf([1.0, 2.0]) * 3
        view = a[:1]
        with no_grad():
            view.mul_(5)
        assert (a.tolist(), a.grad_fn.name) == ([15.0, 6.0], "MulBackward0")
        view.sum().backward()

    def test_gradients_of_gradients(self):
        x = leaf([1.0, 2.0])
        y = x**3
        y[0] = y[1].clone() * x[0]
        (first,) = grad(y.sum(), x, create_graph=True)
        assert first.tolist() == [8.0, 24.0]
        assert grad(first[1], x)[0].tolist() == [12.0, 24.0]

    def test_a_retained_gradient_is_that_of_the_new_value(self):
        a = leaf([1.0, 2.0, 3.0]) * 1
        view = a[:2]
        view.retain_grad()
        a.retain_grad()
        view.mul_(2)
        (3 * view).sum().backward()
        assert (view.grad.tolist(), a.grad.tolist()) == ([3.0, 3.0], [3.0, 3.0, 0.0])

    def test_an_operation_without_a_derivative_ends_the_gradient(self):
        x = leaf([1.0, 2.0])
        for edit in (lambda t: t.greater_(1.5), lambda t: t.view(2).greater_(1.5)):
            y = x * 1
            edit(y)
            (y + 0 * x).sum().backward()
            assert (y.tolist(), x.grad.tolist()) == ([0.0, 1.0], [0.0, 0.0])

    def test_a_scalar(self):
        x = leaf(3.0)
        y = x * 1
        y.view(1)[0] = 2 * x
        y.backward()
        assert (y.item(), x.grad.item()) == (6.0, 2.0)


class TestRefusals:
    def test_a_view_of_a_leaf(self):
        x = leaf([1.0, 2.0])
        message = r"^a view of a leaf Variable that requires grad is being used in an in-place operation\.$"
        for edit in (lambda: x[0].zero_(), lambda: x.view(-1).add_(1), lambda: x.__setitem__(0, 3.0)):
            with pytest.raises(DifferentiationError, match=message):
                edit()
        with no_grad():
            x[0].zero_()
            x[1] = 5.0
        assert (x.tolist(), x.version) == ([0.0, 5.0], 2)

    def test_a_view_that_is_a_leaf_itself(self):
        view = tensor([1.0, 2.0])[:1].requires_grad_()
        with pytest.raises(DifferentiationError, match=r"^a view of a leaf Variable"):
            view.mul_(2)

    def test_elements_that_are_one_in_memory(self):
        x = tensor([1.0, 2.0])
        for view in (x.expand(3, 2), x.expand(3, 2).T, x[None].expand(2, 2)):
            with pytest.raises(DifferentiationError) as caught:
                view.add_(1)
            assert str(caught.value).splitlines()[0] == (
                "unsupported operation: more than one element of the written-to tensor refers to a single memory "
                "location. Please clone() the tensor before performing the operation."
            )
        assert x.tolist() == [1.0, 2.0]
        x.expand(1, 2).add_(1)
        assert x.tolist() == [2.0, 3.0]

    @pytest.mark.parametrize(
        ("made", "name"),
        [
            (lambda x: x.unbind(), "UnbindBackward0"),
            (lambda x: list(x), "UnbindBackward0"),
            (lambda x: gradcli.split(x, 2), "SplitBackward0"),
            (lambda x: gradcli.chunk(x, 2), "SplitBackward0"),
        ],
    )
    def test_one_of_several_views(self, made, name):
        x = leaf([[1.0], [2.0]]) * 1
        _, view = made(x)
        with pytest.raises(DifferentiationError) as caught:
            view.mul_(2)
        assert str(caught.value) == f"Output 1 of {name} is a view and is being modified inplace. {SEVERAL}"
        with pytest.raises(DifferentiationError) as caught:
            view[0].mul_(2)
        assert str(caught.value).startswith("Output 0 of SelectBackward0 is a view and is being modified inplace. This")
        x.mul_(2)
        with pytest.raises(DifferentiationError) as caught:
            view * 2
        assert str(caught.value) == (
            f"Output 1 of {name} is a view and its base or another view of its base has been modified inplace. {SEVERAL}"
        )
        assert view.detach().view(()).item() == 4.0

    def test_one_of_several_views_of_a_constant(self):
        x = tensor([1.0, 2.0])
        first, _ = x.unbind()
        first.add_(1)
        assert x.tolist() == [2.0, 2.0]
        with pytest.raises(DifferentiationError) as caught:
            first.mul_(leaf(2.0))
        assert str(caught.value) == (
            f"A view was created in no_grad mode and is being modified inplace with grad mode enabled. {SEVERAL}"
        )

    def test_a_view_that_was_made_without_grad(self):
        x = leaf([1.0, 2.0]) * 1
        with no_grad():
            view = x[:1]
        with pytest.raises(DifferentiationError) as caught:
            view.mul_(2)
        assert str(caught.value) == (
            f"A view was created in no_grad mode and is being modified inplace with grad mode enabled. {AMBIGUOUS}"
        )
        x.mul_(2)
        with pytest.raises(DifferentiationError) as caught:
            view * 2
        assert str(caught.value) == (
            "A view was created in no_grad mode and its base or another view of its base has been modified inplace "
            f"with grad mode enabled. {AMBIGUOUS}"
        )
        with no_grad():
            assert (view * 2).tolist() == [4.0]
            view.add_(1)
        assert x.tolist() == [3.0, 4.0]

    def test_without_anything_to_record_every_view_may_be_changed(self):
        x = tensor([1.0, 2.0])
        with no_grad():
            view = x[:1]
        view.mul_(2)
        assert x.tolist() == [2.0, 2.0]

    def test_what_backward_needs(self):
        y = leaf([1.0, 2.0, 3.0]) * 1
        z = y * y
        y[0].zero_()
        y[1:].zero_()
        message = (
            MODIFIED + r": \[float64 \[3\]\], which is output 0 of CopySlices, is at version 2; expected version 0"
        )
        with pytest.raises(DifferentiationError, match=message):
            z.sum().backward()

    def test_a_result_that_backward_needs_is_changed_through_what_was_detached(self):
        y = leaf([1.0, 2.0]).exp()
        detached, z = y.detach(), y.sum()
        del y
        detached.zero_()
        detached[0].zero_()
        message = (
            MODIFIED + r": \[float64 \[2\]\], which is output 0 of ExpBackward0, is at version 2; expected version 0"
        )
        with pytest.raises(DifferentiationError, match=message):
            z.backward()

    def test_a_result_of_an_operation_in_place_that_backward_needs(self):
        y = leaf([1.0, 2.0]) * 1
        y.view(-1)
        y.exp_()
        y.add_(1)
        message = MODIFIED + r".*which is output 0 of ExpBackward0, is at version 2; expected version 1"
        with pytest.raises(DifferentiationError, match=message):
            y.sum().backward()

    def test_a_view_is_not_detached_in_place(self):
        with pytest.raises(DifferentiationError, match=r"^Can't detach views in-place\. Use detach\(\) instead\."):
            leaf([1.0])[:1].detach_()

    @pytest.mark.parametrize(
        ("key", "value"), [(0, [1.0, 2.0]), (slice(2), [1.0, 2.0, 3.0]), ([0, 1], [1.0, 2.0, 3.0])]
    )
    def test_a_value_that_does_not_fit_changes_nothing(self, key, value):
        x = tensor([1.0, 2.0, 3.0])
        with pytest.raises(ShapeError):
            x[key] = value
        assert (x.tolist(), x.version) == ([1.0, 2.0, 3.0], 0)

    def test_a_key_that_there_is_not(self):
        x = tensor([1.0, 2.0])
        with pytest.raises(ShapeError):
            x[2] = 1.0


class TestElements:
    @pytest.mark.parametrize(
        ("key", "value", "expected"),
        [
            (0, 9.0, [[9.0, 9.0, 9.0], [4.0, 5.0, 6.0]]),
            ((1, -1), 9.0, [[1.0, 2.0, 3.0], [4.0, 5.0, 9.0]]),
            ((..., 0), [8.0, 9.0], [[8.0, 2.0, 3.0], [9.0, 5.0, 6.0]]),
            (slice(1), [[[7.0, 8.0, 9.0]]], [[7.0, 8.0, 9.0], [4.0, 5.0, 6.0]]),
            (([1, 0], [0, 2]), [8.0, 9.0], [[1.0, 2.0, 9.0], [8.0, 5.0, 6.0]]),
            (np.array([[True, False, False], [False, False, True]]), 0.0, [[0.0, 2.0, 3.0], [4.0, 5.0, 0.0]]),
            (slice(0, 0), 9.0, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        ],
    )
    def test_are_assigned_to(self, key, value, expected):
        x = matrix()
        x[key] = value
        assert x.tolist() == expected

    def test_in_place(self):
        x = tensor([1.0, 2.0])
        x[0] += 1
        assert (x.tolist(), x.version) == ([2.0, 2.0], 2)

    def test_are_converted(self):
        x = tensor([1, 2])
        x[0] = 2.7
        assert (x.tolist(), x.dtype) == ([2, 2], "int64")

    def test_nothing_of_a_tensor_of_the_graph(self):
        x = leaf([1.0, 2.0])
        y = x * 1
        y[2:] = 5.0
        y.sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]


class TestDetached:
    def test_what_is_detached_is_changed_together(self):
        x = leaf([1.0, 2.0])
        detached = x.detach()
        detached.zero_()
        assert (x.tolist(), x.version, detached.version) == ([0.0, 0.0], 1, 1)
        with no_grad():
            x.add_(3)
        assert detached.tolist() == [3.0, 3.0]

    def test_one_detached_from_another_outlives_it(self):
        x = tensor([1.0, 2.0]) * 1
        first, second = x.detach(), x[1:].detach()
        reference = weakref.ref(x)
        del x
        gc.collect()
        assert reference() is None
        first.mul_(10)
        assert second.tolist() == [20.0]

    def test_the_graph_is_not_kept_by_it(self):
        y = leaf([1.0, 2.0]).exp()
        reference = weakref.ref(y.grad_fn)
        detached = y.detach()
        del y
        gc.collect()
        assert reference() is None
        assert detached.tolist() == pytest.approx(np.exp([1.0, 2.0]).tolist())

    def test_in_place(self):
        x = leaf([1.0, 2.0])
        y = x * 1
        assert y.detach_() is y
        assert (y.is_leaf, y.requires_grad) == (True, False)


class TestData:
    def test_it_is_a_tensor_outside_the_graph_whose_edits_are_not_counted(self):
        x = leaf([1.0, 2.0])
        data = x.data
        assert isinstance(data, Tensor)
        data.add_(1)
        data[0] = 7.0
        assert (x.tolist(), x.version, data.version, data.requires_grad) == ([7.0, 3.0], 0, 2, False)

    def test_a_step_of_gradient_descent(self):
        w = leaf([1.0, 2.0])
        (w**2).sum().backward()
        w.data -= 0.25 * w.grad
        assert (w.tolist(), w.requires_grad, w.is_leaf) == ([0.5, 1.0], True, True)

    def test_what_is_saved_is_what_it_has_become(self):
        x = leaf([1.0, 1.0])
        y = x * 1
        z = y * y
        y.data.add_(2)
        z.sum().backward()
        assert x.grad.tolist() == [6.0, 6.0]

    def test_it_is_replaced(self):
        x, other = leaf([1.0, 2.0]), tensor([[0.0, 1.0]])
        x.data = other
        assert (x.tolist(), x.shape, x.version, x.requires_grad) == ([[0.0, 1.0]], (1, 2), 0, True)
        other.add_(1)
        assert x.tolist() == [[1.0, 2.0]]

    def test_what_cannot_be_it(self):
        x = leaf([1.0])
        with pytest.raises(TypeError, match=r"^Variable data has to be a tensor, but got int$"):
            x.data = 3
        message = "^data set to a tensor that requires gradients must be floating point"
        with pytest.raises(DifferentiationError, match=message):
            x.data = tensor([1])


class TestArrays:
    def test_those_of_numpy_are_not_written_into(self):
        x = tensor([1.0, 2.0])
        for array in (x.numpy(), np.asarray(x), x[:1].numpy(), tensor(1.0).numpy()):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 5.0
        copied = np.array(x)
        copied[0] = 5.0
        assert x.tolist() == [1.0, 2.0]

    def test_without_grad_the_graph_may_be_lost(self):
        x = leaf([1.0, 2.0])
        with no_grad():
            assert np.asarray(x).tolist() == x.numpy().tolist() == np.from_dlpack(x).tolist() == [1.0, 2.0]

    def test_dlpack_gives_copies(self):
        x = tensor([1.0, 2.0])
        for made in (np.from_dlpack(x), np.from_dlpack(x[1:])):
            x.add_(1)
            assert made.tolist() == [1.0, 2.0][-made.size :]
            if made.flags.writeable:
                made[...] = 7.0
        assert x.tolist() == [3.0, 4.0]
        assert np.from_dlpack(tensor(1.5)) == 1.5
        with pytest.raises(DifferentiationError, match=r"^Can't export tensors that require gradient"):
            np.from_dlpack(leaf([1.0]))

    def test_they_stay_as_they_were(self):
        x = tensor([1.0, 2.0])
        array = x.numpy()
        x.add_(1)
        x[0] = 9.0
        assert array.tolist() == [1.0, 2.0]

    def test_pickled_and_deeply_copied_each_is_a_tensor_of_its_own(self):
        x = tensor([1.0, 2.0])
        view = x[:1]
        x.add_(1)
        for made in (copy.deepcopy(view), pickle.loads(pickle.dumps(view)), copy.deepcopy(x)[:1]):
            made.add_(1)
            assert (made.tolist(), view.tolist()) == ([3.0], [2.0])


class TestGradients:
    def test_a_gradient_is_deleted(self):
        x = leaf([1.0])
        x.sum().backward()
        del x.grad
        assert x.grad is None

    def test_with_create_graph_the_former_gradient_stays_as_it_was(self):
        x = leaf([1.0, 2.0])
        y = x + 2
        y.sum().backward(retain_graph=True)
        former = x.grad
        y.sum().backward(create_graph=True)
        assert (former.tolist(), x.grad.tolist()) == ([1.0, 1.0], [2.0, 2.0])

    def test_a_view_of_a_gradient_sees_what_is_added(self):
        x = leaf([1.0, 2.0])
        (x * 3).sum().backward()
        view = x.grad[1:]
        (x * 2).sum().backward()
        assert (view.tolist(), x.grad.version) == ([5.0], 1)

    def test_over_batches(self):
        def function(x):
            y = x * 1
            y[0] = y[1].clone() * y[2].clone()
            y.view(-1)[1:].mul_(y[0].clone())
            return (y**2).sum()

        def same(x):
            first = x[1] * x[2]
            return first**2 + (x[1] * first) ** 2 + (x[2] * first) ** 2

        at = tensor([[1.0, 2.0, 3.0], [2.0, 1.0, 4.0]])
        for reading in (func.vmap, lambda f: func.vmap(func.grad(f)), lambda f: func.vmap(func.hessian(f))):
            assert reading(function)(at).tolist() == reading(same)(at).tolist()
        assert func.jvp(function, (at[0],), (at[1],))[1].item() == func.jvp(same, (at[0],), (at[1],))[1].item()


def test_what_there_is_to_see():
    x = leaf([1.0, 2.0]) * 1
    view = x[1:][0]
    assert (view._base is x, view._is_view(), x._base, x._is_view()) == (True, True, None, False)
    with no_grad():
        made = x[:1]
        made.mul_(2)
    assert repr(made) == "tensor([2.], grad_fn=<Invalid>)"
    assert x._version == made._version == 1


def test_many_views_of_views():
    x = matrix()
    view = x
    for _ in range(4000):
        view = view.T
    view.view(6)[0] = 7.0
    assert x[0, 0].item() == 7.0


def test_a_view_of_what_got_other_numbers_keeps_its_own_history():
    x = leaf([1.0, 2.0])
    y = x * 1
    view = y[:1]
    y.data = tensor([5.0, 6.0])
    view.mul_(3)
    assert (view.tolist(), y.tolist()) == ([3.0], [5.0, 6.0])
    (view + y[1]).sum().backward()
    assert x.grad.tolist() == [3.0, 1.0]


def test_views_that_are_gone_are_not_remembered():
    x = tensor([1.0, 2.0])
    for _ in range(1000):
        x[0]
    assert len(x.place.storage._fresh) < 100


@pytest.mark.parametrize("recorded", [False, True])
def test_threads_change_parts_of_one_tensor(recorded):
    whole, w = tensor([0.0] * 32), tensor(1.0, requires_grad=recorded)

    def fill(part):
        for _ in range(20):
            whole[8 * part : 8 * part + 8].add_(w)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(fill, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert whole.tolist() == [20.0] * 32
    if recorded:
        assert grad(whole.sum(), w)[0].tolist() == 20.0 * 32
