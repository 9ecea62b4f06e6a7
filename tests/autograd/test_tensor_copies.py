"""Tests pickling, deep copies and conversion of tensors to NumPy, and NumPy attributes of tensors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import gradcli
from gradcli import tensor

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def again(value, protocol):
    return pickle.loads(pickle.dumps(value, protocol))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_leaf_is_pickled_with_its_gradient(protocol):
    x = tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    x.register_hook(lambda g: None)
    found = again(x, protocol)
    assert (found.tolist(), found.grad.tolist(), found.requires_grad) == ([1.0, 2.0], [2.0, 4.0], True)
    (found * 3).sum().backward()
    assert found.grad.tolist() == [5.0, 7.0]
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("made", [lambda x: x * 3, lambda x: x[1:], lambda x: x.detach()[1:], lambda x: gradcli.sin(x)])
def test_what_is_no_leaf_is_pickled_as_one(made, protocol):
    x = tensor([1.0, 2.0], requires_grad=True)
    y = made(x)
    found = again(y, protocol)
    assert found.tolist() == y.tolist()
    assert (found.is_leaf, found.requires_grad) == (True, y.requires_grad)
    with gradcli.no_grad():
        found.zero_()
    assert y.tolist() == made(x).tolist()


def test_a_deep_copy_is_one_of_a_leaf():
    x = tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    one, other = copy.deepcopy([x, x])
    assert one is other
    assert one is not x
    with gradcli.no_grad():
        one += 1.0
    one.grad.zero_()
    assert (x.tolist(), x.grad.tolist()) == ([1.0, 2.0], [2.0, 4.0])
    with pytest.raises(
        RuntimeError, match=r"Only Tensors created explicitly by the user .* support the deepcopy protocol"
    ):
        copy.deepcopy({"y": x * 2})
    assert copy.deepcopy((x * 2).detach()).tolist() == [2.0, 4.0]


def test_a_copy_that_cannot_be_avoided_is_refused():
    x = tensor([1.0, 2.0])
    assert np.asarray(x, dtype="float64", copy=False).tolist() == [1.0, 2.0]
    assert np.asarray(x, dtype="float32").dtype == "float32"
    with pytest.raises(ValueError, match="unable to avoid a copy"):
        np.asarray(x, dtype="float32", copy=False)


def test_a_dtype_is_equal_to_that_of_numpy():
    x = tensor(3.0, requires_grad=True)
    assert x.dtype == np.float64 == x.dtype
    assert x.dtype == float == x.dtype
    assert x.dtype == np.dtype("float64") == x.dtype
    assert x.dtype == "float64"
    assert x.dtype in {"float64"}
    assert not x.dtype != np.float64  # noqa: SIM202
    assert x.dtype not in (np.float32, int, None, 3, "float32", np.dtype("int64"), list)
    assert (tensor([1]).dtype, tensor([True]).dtype) == (int, bool)
    assert np.zeros(2, (x > 2).dtype).dtype == np.bool_
    assert (x.shape, x.ndim, x.size, x.T.shape, repr(x.dtype)) == ((), 0, 1, (), "'float64'")


def test_astype_is_recorded():
    x = tensor([1.0, 2.0], dtype="float32", requires_grad=True)
    y = x.astype(np.float64)
    assert (x.dtype, y.dtype) == (np.float32, np.float64)
    gradcli.sin(y).sum().backward()
    assert x.grad.dtype == np.float32
    np.testing.assert_allclose(x.grad, np.cos([1.0, 2.0]), rtol=1e-6)
    assert x.astype(int).tolist() == [1, 2]
    assert x.astype("float32", copy=False) is x
    assert x.astype("float32") is not x


def test_a_whole_number_is_an_index():
    x = tensor([4.0, 5.0, 6.0])
    assert [7, 8, 9][tensor(1)] == 8
    assert list(range(tensor(2))) == [0, 1]
    assert x[tensor(1)].item() == 5.0
    for value in (tensor(1.0), tensor([1, 2])):
        with pytest.raises(TypeError, match="only integer tensors of a single element"):
            [7, 8, 9][value]


class Shared:
    """An array of a library that gradcli does not know."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("source", [np.asarray, Shared, tensor])
def test_dlpack_gives_copies_both_ways(source):
    array = np.array([1.0, 2.0], "float32")
    x = gradcli.from_dlpack(source(array))
    array[0] = 5.0
    assert (x.tolist(), x.dtype, x.is_leaf) == ([1.0, 2.0], "float32", True)
    other = np.from_dlpack(x)
    x.zero_()
    assert other.tolist() == [1.0, 2.0]
    with pytest.raises(gradcli.GradcliError, match="takes an array with '__dlpack__', not a list"):
        gradcli.from_dlpack([1.0])
