"""Tests attributes and methods of PyTorch's tensors besides the functions of the table."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gradcli
from gradcli import tensor
from gradcli.errors import CallError, DifferentiationError, ShapeError

ROWS = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def leaf(value, **options):
    return tensor(value, requires_grad=True, **options)


class TestIndices:
    @pytest.mark.parametrize(
        "key",
        [(0, slice(None), [0, 1]), (slice(None), [0, 1], slice(None), 2), (slice(None), 0, None, np.array([1, 0]))],
    )
    def test_that_pytorch_and_numpy_order_differently_are_refused(self, key):
        x = tensor(np.arange(24.0).reshape(1, 2, 3, 4))
        with pytest.raises(ShapeError, match="PyTorch leaves the axis"):
            x[key]
        with pytest.raises(ShapeError, match="PyTorch leaves the axis"):
            x[key] = 1.0

    @pytest.mark.parametrize(
        "key",
        [(0, [0, 1]), (..., [0, 1], 0), ([0, 0], slice(None), 1), (0, slice(None), [0], slice(1, 3), [1])],
    )
    def test_that_they_read_alike(self, key):
        x = np.arange(48.0).reshape(1, 2, 3, 4, 2)
        np.testing.assert_array_equal(tensor(x)[key], x[key])


class TestSizes:
    def test_of_a_tensor(self):
        x = tensor(ROWS)
        assert (x.dim(), x.ndimension(), x.numel(), x.nelement()) == (2, 2, 6, 6)
        assert all(type(n) is int for n in (x.dim(), x.numel()))
        assert (x.is_floating_point(), x.is_complex(), x.is_sparse, x.is_cuda) == (True, False, False, False)
        assert not tensor([1]).is_floating_point()
        assert x.to_dense() is x
        assert tensor(2.0).numel() == 1
        assert [tensor([1], dtype=d).dtype.is_signed for d in ("float32", "int8", "uint8", "bool")] == [
            True,
            True,
            False,
            False,
        ]

    def test_in_memory(self):
        x = tensor(ROWS)
        assert (x.stride(), x.stride(0), x.stride(-1), x.storage_offset()) == ((3, 1), 3, 1, 0)
        assert (x.T.stride(), x[1, 1:].storage_offset()) == ((1, 3), 4)
        assert [v.is_contiguous() for v in (x, x.T, x[:, 1:], x[1:], x[:, :1].T)] == [True, False, False, True, False]
        assert x.contiguous() is x
        copy = x.T.contiguous()
        copy.zero_()
        assert copy.is_contiguous()
        assert x.tolist() == ROWS

    def test_other_sizes_in_place(self):
        x = tensor(ROWS)
        assert x.resize_(2, 2) is x
        assert (x.tolist(), x._version) == ([[1.0, 2.0], [3.0, 4.0]], 1)
        assert x.resize_((5,)).tolist() == [1.0, 2.0, 3.0, 4.0, 0.0]
        assert x.resize_as_(tensor(0.0)).tolist() == 1.0
        assert x.resize_(()).tolist() == 1.0
        assert x._version == 3
        with pytest.raises(DifferentiationError, match=r"cannot resize variables that require grad"):
            leaf(ROWS).resize_(2)
        with pytest.raises(DifferentiationError, match=r"shares its numbers"):
            tensor(ROWS)[0].resize_(2)


class TestParts:
    def test_are_views_in_the_graph(self):
        x = leaf(ROWS)
        y = x * 1
        for part, value in (
            (y.select(1, -1), [3.0, 6.0]),
            (y.narrow(1, 1, 2), [[2.0, 3.0], [5.0, 6.0]]),
            (y.narrow(0, -1, 1), [[4.0, 5.0, 6.0]]),
            (y.split(2, dim=1)[1], [[3.0], [6.0]]),
            (y.split([1, 2], 1)[1], [[2.0, 3.0], [5.0, 6.0]]),
            (y.chunk(2, 1)[0], [[1.0, 2.0], [4.0, 5.0]]),
            (y.unbind(1)[1], [2.0, 5.0]),
            (y.view_as(tensor([0.0] * 6)), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            (y[0].expand_as(y), [ROWS[0]] * 2),
        ):
            assert part.tolist() == value
            assert part._base is y
        y.narrow(1, 1, 1).zero_()
        y.sum().backward()
        assert x.grad.tolist() == [[1.0, 0.0, 1.0]] * 2

    def test_what_is_outside(self):
        with pytest.raises(ShapeError, match=r"start \(2\) \+ length \(2\) exceeds dimension size \(3\)"):
            tensor(ROWS).narrow(1, 2, 2)
        with pytest.raises(ShapeError, match=r"length must be non-negative"):
            tensor(ROWS).narrow(1, 0, -1)

    def test_repeat_is_that_of_pytorch(self):
        x = leaf([1.0, 2.0])
        y = x.repeat(2, 2)
        assert y.tolist() == [[1.0, 2.0, 1.0, 2.0]] * 2
        y.sum().backward()
        assert x.grad.tolist() == [4.0, 4.0]
        assert gradcli.repeat(x, 2).tolist() == [1.0, 1.0, 2.0, 2.0]

    def test_gather(self):
        x = leaf([1.0, 2.0, 3.0])
        y = x.gather(0, tensor([2, 2]), sparse_grad=True)
        y.sum().backward()
        assert (y.tolist(), x.grad.tolist()) == ([3.0, 3.0], [0.0, 0.0, 2.0])
        assert x.gather(0, tensor(1)).tolist() == 2.0
        assert tensor(5.0).gather(0, tensor([0, 0])).tolist() == [5.0, 5.0]
        assert tensor(5.0).gather(0, tensor(0)).tolist() == 5.0

    def test_a_list_with_slices_is_a_tuple(self):
        x = tensor(ROWS)
        assert x[[slice(None), [0, 2]]].tolist() == [[1.0, 3.0], [4.0, 6.0]]
        assert x[[[0, 1], Ellipsis]].tolist() == ROWS
        x[[slice(None), 0]] = 9.0
        assert x.tolist() == [[9.0, 2.0, 3.0], [9.0, 5.0, 6.0]]

    def test_comparisons(self):
        x = tensor([1.0, 2.0, 3.0])
        for name, expected in {
            "eq": [0, 1, 0], "ne": [1, 0, 1], "lt": [1, 0, 0], "le": [1, 1, 0], "gt": [0, 0, 1], "ge": [0, 1, 1],
        }.items():  # fmt: skip
            assert getattr(x, name)(2.0).tolist() == [bool(e) for e in expected]


class TestOthersLikeIt:
    def test_have_its_dtype(self):
        x = tensor(ROWS, dtype="float32")
        for made, value in (
            (x.new_zeros(2), [0.0, 0.0]), (x.new_ones((1, 2)), [[1.0, 1.0]]), (x.new_full((2,), 0.5), [0.5, 0.5]),
            (x.new_tensor([1, 2]), [1.0, 2.0]), (x.new_empty(()), 0.0), (x.new(2), [0.0, 0.0]), (x.new([2]), [2.0]),
        ):  # fmt: skip
            assert (made.tolist(), made.dtype, made.requires_grad) == (value, "float32", False)
        made = x.new_ones(2, dtype="int64")
        assert (made.tolist(), made.dtype) == ([1, 1], "int64")
        assert x.new_zeros(2, requires_grad=True).is_leaf


class TestConversions:
    def test_of_dtypes_are_in_the_graph(self):
        x = leaf([1.5, 2.5])
        y = x.float()
        assert (y.dtype, y.grad_fn.name) == ("float32", "ToCopyBackward0")
        (y.double() * tensor([1.0, 2.0])).sum().backward()
        assert (x.grad.tolist(), x.grad.dtype) == ([1.0, 2.0], "float64")
        assert x.to("float64") is x
        assert x.to(tensor(1.0, dtype="float32")).dtype == "float32"
        assert x.type_as(y).requires_grad
        assert x.to("cpu", "float32").dtype == "float32"
        assert x.to(dtype=np.float32).dtype == "float32"
        assert x.to("float64", copy=True) is not x

    def test_integers_have_no_gradient(self):
        x = leaf([1.5, 0.0])
        for made, value, dtype in (
            (x.long(), [1, 0], "int64"), (x.int(), [1, 0], "int32"), (x.bool(), [True, False], "bool"),
            (x.to("torch.long"), [1, 0], "int64"), (x.to(int), [1, 0], "int64"),
        ):  # fmt: skip
            assert (made.tolist(), made.dtype, made.requires_grad) == (value, dtype, False)
        assert tensor([1, 2]).double().tolist() == [1.0, 2.0]

    def test_devices(self):
        x = leaf(ROWS)
        assert x.device == "cpu"
        assert x.cpu() is x.to("cpu") is x.to(device="cpu", non_blocking=True) is x
        with pytest.raises(gradcli.GradcliError, match=r"no device 'cuda'"):
            x.detach().cuda()

    def test_what_there_is_not(self):
        with pytest.raises(CallError, match=r"there is no dtype 'complex256'"):
            tensor(1.0).to(dtype="complex256")


def test_what_cannot_be_deleted():
    x = leaf(ROWS)
    with pytest.raises(DifferentiationError, match=r"^Deleting tensor data is not allowed. Delete tensor instead!"):
        del x.data
    with pytest.raises(TypeError, match=r"^Variable data has to be a tensor, but got NoneType"):
        x.data = None
    with pytest.raises(DifferentiationError, match=r"^requires_grad must be a bool"):
        del x.requires_grad


class TestOut:
    def test_the_result_is_put_there(self):
        x, y = tensor([1.0, 2.0]), tensor([0.0, 0.0])
        view = y[:1]
        assert gradcli.multiply(x, 3.0, out=y) is y
        assert (y.tolist(), view.tolist(), y._version) == ([3.0, 6.0], [3.0], 1)
        assert gradcli.var(x, axis=0, out=tensor(0.0)).item() == 0.25
        with gradcli.no_grad():
            assert gradcli.exp(leaf([0.0, 0.0]), out=y).tolist() == [1.0, 1.0]

    @pytest.mark.parametrize("given", [(leaf([1.0]), tensor([0.0])), (tensor([1.0]), leaf([0.0]))])
    def test_nothing_is_recorded_of_it(self, given):
        x, out = given
        message = r"^multiply\(\): functions with out=... arguments don't support automatic differentiation, but one of"
        with pytest.raises(DifferentiationError, match=message):
            gradcli.multiply(x, x, out=out)

    def test_what_does_not_fit(self):
        with pytest.raises(ShapeError, match=r"output with shape \[2\] doesn't match the broadcast shape \[1\]"):
            gradcli.multiply(tensor([1.0]), 2.0, out=tensor([1.0, 2.0]))
        with pytest.raises(CallError):
            gradcli.multiply(tensor([1.0]), 2.0, out=np.zeros(1))


def test_two_statistics_at_once():
    x = leaf(ROWS)
    for both, one in ((gradcli.var_mean, gradcli.var), (gradcli.std_mean, gradcli.std)):
        spread, mean = both(x, dim=1, keepdim=True, correction=1)
        assert spread.tolist() == one(x, 1, True, 1).tolist()
        assert mean.tolist() == [[2.0], [5.0]]
        (spread * mean).sum().backward()
    both, mean = gradcli.var_mean(x)
    mean.backward()
    assert x.grad is not None


class TestMemory:
    def test_is_that_of_all_who_share_it(self):
        x = tensor([1.0, 2.0, 3.0])
        view, other = x[1:], x.clone()
        assert len(x.storage()) == len(view.storage()) == 3
        assert x.data_ptr() == x.detach().data_ptr() == x.view(3, 1).data_ptr() != other.data_ptr()
        assert view.data_ptr() == x.data_ptr() + 1

    def test_that_of_another_tensor(self):
        x, y = leaf([1.0, 2.0]), tensor([[3.0]])
        with pytest.raises(DifferentiationError, match=r"a leaf Variable that requires grad"):
            x.set_(y)
        with gradcli.no_grad():
            assert x.set_(y) is x
        y.add_(1)
        assert (x.tolist(), x._version, x.is_leaf) == ([[4.0]], 1, True)
        with gradcli.no_grad():
            x.set_(x[0])
            x.add_(1)
        assert (x.tolist(), y.tolist()) == ([5.0], [[5.0]])


def test_comparisons_in_place_give_numbers():
    x = tensor([1.0, 2.0])
    assert x.eq_(tensor([1.0, 3.0])).tolist() == [1.0, 0.0]
    assert x.gt_(0.5).tolist() == [1.0, 0.0]


class TestRandomNumbersInPlace:
    def test_of_a_bernoulli_distribution(self):
        x = tensor([2.0] * 4)
        assert x.bernoulli_(tensor([0.0, 1.0, 0.0, 1.0])) is x
        assert x.tolist() == [0.0, 1.0, 0.0, 1.0]
        drawn = gradcli.zeros(1000).bernoulli_(0.25)
        assert set(drawn.tolist()) == {0.0, 1.0}
        assert 150 < drawn.sum().item() < 350


CHANGES = {
    "unsqueeze_": lambda x: x.unsqueeze_(1),
    "t_": lambda x: x.t_(),
    "resize_": lambda x: x.resize_(5),
    "data": lambda x: setattr(x, "data", tensor([1, 2])),
    "copy_": lambda x: x.copy_(tensor(ROWS) + 1.0),
    "base": lambda x: x[0].fill_(7.0),
    "view": lambda x: x.view(-1).mul_(2.0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_operations_follow_a_change_in_place(name: str) -> None:
    x = tensor(ROWS)
    assert (2 * x).shape == (2, 3)
    CHANGES[name](x)
    again = tensor(x.numpy().copy())
    for operation in (lambda x: 2 * x, lambda x: x / 3, lambda x: x.sum(0), lambda x: x.reshape(-1) @ x.reshape(-1)):
        assert operation(x).tolist() == operation(again).tolist()
        assert operation(x).shape == operation(again).shape
        assert operation(x).dtype == operation(again).dtype
    assert x.shape == again.shape


def test_a_copy_by_pickle_has_the_operations_of_its_data() -> None:
    x = tensor(ROWS, requires_grad=True)
    assert (2 * x).shape == (2, 3)
    copied = pickle.loads(pickle.dumps(x))
    (copied * copied).sum().backward()
    assert copied.grad.tolist() == (2 * x).tolist()
