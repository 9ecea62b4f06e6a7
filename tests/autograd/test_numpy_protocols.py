"""Tests NumPy functions called with tensors, which dispatch to gradcli and are recorded."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import scipy.special

import gradcli
from gradcli import func, tensor
from gradcli.autograd import forward_ad
from gradcli.errors import CallError
from gradcli.primitives import table

A = np.array([[1.0, 2.0], [3.0, 4.5]])
B = np.array([[0.5, -1.0], [2.0, 1.5]])

CALLS = {
    "sin": lambda x, y: np.sin(x),
    "abs": lambda x, y: np.abs(y),
    "arctan2": lambda x, y: np.arctan2(x, y),
    "array * tensor": lambda x, y: A * y,
    "array - tensor": lambda x, y: A - y,
    "array / tensor": lambda x, y: A / y,
    "array ** tensor": lambda x, y: A**y,
    "array @ tensor": lambda x, y: A @ y,
    "number of NumPy * tensor": lambda x, y: np.float64(3.0) * x,
    "number of NumPy - tensor": lambda x, y: np.float64(3.0) - x,
    "sum": lambda x, y: np.sum(x, axis=0),
    "sum by position": lambda x, y: np.sum(x, 1, None, None, True),
    "std by position": lambda x, y: np.std(x, 0, None, None, 1),
    "var": lambda x, y: np.var(x, ddof=1, keepdims=True),
    "concatenate": lambda x, y: np.concatenate([x, y]),
    "concatenate with an array": lambda x, y: np.concatenate((A, x), 1),
    "stack": lambda x, y: np.stack([x, y], axis=1),
    "vstack": lambda x, y: np.vstack((x, A)),
    "where": lambda x, y: np.where(A > 2, x, y),
    "clip": lambda x, y: np.clip(x, a_min=1.5, a_max=4),
    "einsum": lambda x, y: np.einsum("ij,jk->ik", x, y, optimize=True),
    "tensordot": lambda x, y: np.tensordot(x, y, 2),
    "dot": lambda x, y: np.dot(x, y),
    "outer": lambda x, y: np.outer(x, y),
    "swapaxes": lambda x, y: np.swapaxes(x, 0, 1),
    "transpose": lambda x, y: np.transpose(x, (1, 0)),
    "reshape": lambda x, y: np.reshape(x, (4,), order="C"),
    "interp": lambda x, y: np.interp(x, np.arange(5.0) + 0.25, np.arange(5.0) ** 2),
    "linspace": lambda x, y: np.linspace(x[0, 0], x[1, 1], 4),
    "norm": lambda x, y: np.linalg.norm(x),
    "inv": lambda x, y: np.linalg.inv(x),
    "solve": lambda x, y: np.linalg.solve(x, y),
    "expit": lambda x, y: scipy.special.expit(x),
    "gammaln": lambda x, y: scipy.special.gammaln(x),
    "xlogy": lambda x, y: scipy.special.xlogy(x, 3.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_numpy_is_recorded(name):
    call = CALLS[name]
    x, y = tensor(A, requires_grad=True), tensor(B, requires_grad=True)
    found = call(x, y)
    assert isinstance(found, gradcli.Tensor)
    assert found.grad_fn is not None
    np.testing.assert_allclose(found.detach(), call(A, B))
    along = np.array([[0.3, -0.2], [0.7, 0.1]])
    slopes = gradcli.grad(found.sum(), [x, y], allow_unused=True)
    expected = sum((g * along).sum().item() for g in slopes if g is not None)
    h = 1e-6
    differences = (np.sum(call(A + h * along, B + h * along)) - np.sum(call(A - h * along, B - h * along))) / (2 * h)
    assert expected == pytest.approx(differences, rel=1e-6)


def functions_of_numpy():
    for module, name in ((np, ""), (np.linalg, "linalg.")):
        for key in dir(module):
            function = getattr(module, key)
            dispatched = isinstance(function, np.ufunc) or type(function).__name__ == "_ArrayFunctionDispatcher"
            found = table.find(key, *table.dialects_of(module.__name__)) if dispatched else None
            if found is not None:
                yield pytest.param(function, found, id=name + key)


def as_arrays(sample):
    if isinstance(sample, float):
        return np.array(sample)
    if isinstance(sample, list):
        try:
            found = np.array(sample)
            return found if found.dtype.kind == "c" else found.astype(float)
        except ValueError:
            return [as_arrays(item) for item in sample]
    return sample


def as_tensors(value):
    if isinstance(value, list):
        return [as_tensors(item) for item in value]
    return tensor(value) if isinstance(value, np.ndarray) else value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("function", "operation"), list(functions_of_numpy()))
def test_its_numbers_are_numpys(function, operation):
    """Compared at every sample of gradcli's function that NumPy accepts too."""
    for sample in operation.samples:
        arguments = [as_arrays(item) for item in (sample if isinstance(sample, tuple) else (sample,))]
        try:
            # NumPy multiplies the weights of `cov` in place.
            expected = function(*deepcopy(arguments))
        except (TypeError, ValueError, IndexError):
            continue
        try:
            found = function(*map(as_tensors, arguments))
        except CallError:
            # An option that gradcli lacks.
            continue
        if not isinstance(expected, (tuple, list)):
            expected, found = [expected], [found]
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, strict=False)
            assert np.shape(one) == np.shape(other)


def test_what_says_something_of_a_tensor_takes_one_that_requires_grad():
    x = tensor(A, requires_grad=True)
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 2), 2, 4, 2)
    assert np.allclose(x, A)
    assert np.array_equal(x, x)
    assert np.array_repr(x) == repr(A)
    assert np.equal(A, x).tolist() == [[True, True], [True, True]]


def test_a_function_that_gradcli_lacks_is_numpys_where_no_gradient_is_lost():
    x = tensor([2.0, 1.0, 2.0], requires_grad=True)
    for call in (np.unique, np.spacing, np.add.reduce, np.emath.sqrt):
        with pytest.raises(gradcli.GradcliError, match=r"has no function '\S+', and NumPy's would lose the gradient"):
            call(x)
    np.testing.assert_array_equal(np.unique(x.detach()), [1.0, 2.0])
    assert np.add.reduce(x.detach()) == 5.0
    with gradcli.no_grad():
        np.testing.assert_array_equal(np.unique([x, x]), [1.0, 2.0])


def test_no_derivative_along_a_direction_is_lost():
    for function in (np.unique, np.spacing):
        with pytest.raises(gradcli.GradcliError, match="NumPy's would lose the gradient"):
            func.jvp(function, (A,), (B,))

    def twice(x):
        return x * np.shape(x)[0] if np.allclose(x, A) else x

    assert func.jvp(twice, (A,), (B,))[1].tolist() == (2 * B).tolist()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(tensor(A), tensor(B))
        assert forward_ad.unpack_dual(twice(dual)).tangent.tolist() == (2 * B).tolist()
        with pytest.raises(gradcli.GradcliError, match="NumPy's would lose the gradient"):
            np.unique(dual)


def test_the_diagonal_of_the_last_axes_is_not_taken_for_that_of_the_first():
    x = tensor(np.arange(12.0).reshape(3, 2, 2), requires_grad=True)
    np.testing.assert_array_equal(np.linalg.trace(x).detach(), [3.0, 11.0, 19.0])
    y = np.linalg.diagonal(x, offset=1)
    np.testing.assert_array_equal(y.detach(), [[1.0], [5.0], [9.0]])
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, [[[0.0, 1.0], [0.0, 0.0]]] * 3)


def test_a_tensor_is_put_into_a_tensor_and_no_array():
    x, array = tensor(A, requires_grad=True), np.zeros((2, 2))
    for call in (lambda out: np.add(A, 1.0, out=out), lambda out: np.sum([A, A], axis=0, out=out)):
        taken = tensor(B)
        assert call(taken) is taken
        np.testing.assert_array_equal(taken, call(np.zeros((2, 2))))
    for call in (
        lambda: np.add(x, 1.0, out=array),
        lambda: np.sum(x, axis=0, out=np.zeros(2)),
        lambda: np.concatenate([x, x], out=np.zeros((4, 2))),
        lambda: np.ndarray.__iadd__(array, x),
    ):
        with pytest.raises(gradcli.GradcliError, match=r"NumPy's \w+ cannot put tensors into an array"):
            call()
    with pytest.raises(gradcli.GradcliError, match="NumPy's add takes no 'where'"):
        np.add(x, 1.0, where=np.array([True, False]))
    with pytest.raises(gradcli.GradcliError, match="NumPy's sum takes no 'where'"):
        np.sum(x, where=np.array([True, False]))
    assert not array.any()


def test_an_option_that_gradcli_lacks_is_refused():
    with pytest.raises(gradcli.GradcliError, match="NumPy's sum takes no 'dtype' with tensors"):
        np.sum(tensor(A), 0, np.float32)
    with pytest.raises(gradcli.GradcliError, match="NumPy's reshape takes no 'order' with tensors"):
        np.reshape(tensor(A), -1, order="F")


class Labelled:
    """An array of another library that overrides NumPy functions itself."""

    def __init__(self, array):
        self.array = array

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return Labelled(getattr(ufunc, method)(*(i.array if isinstance(i, Labelled) else i for i in inputs)))

    def __array_function__(self, function, types, arguments, keywords):
        return "its own"


def test_an_array_of_another_library_has_its_own_way():
    x = tensor([1.0, 2.0], requires_grad=True)
    product = np.multiply(x, Labelled(np.array([3.0, 4.0])))
    assert isinstance(product, Labelled)
    product.array.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert np.concatenate([x, Labelled(A)]) == "its own"


def test_numpys_functions_within_functions_of_functions():
    def wave(x):
        return np.sum(np.sin(x) * x)

    x = A[0]
    slope = np.cos(x) * x + np.sin(x)
    np.testing.assert_allclose(func.grad(wave)(x), slope)
    np.testing.assert_allclose(func.hessian(wave)(x), np.diag(2 * np.cos(x) - np.sin(x) * x), atol=1e-12)
    np.testing.assert_allclose(func.jvp(wave, (x,), (B[0],))[1], slope @ B[0])
    np.testing.assert_allclose(func.vmap(func.grad(wave))(A), np.cos(A) * A + np.sin(A))
    assert func.vmap(lambda row: np.sum(row) / np.shape(row)[0])(A).tolist() == A.mean(axis=1).tolist()


COLUMN = np.array([0.5, -0.5])


@pytest.mark.parametrize(
    ("pasted", "numpys"),
    [
        (lambda x: gradcli.r_[x], lambda x: np.r_[x]),
        (lambda x: gradcli.r_[x, B, x], lambda x: np.r_[x, B, x]),
        (lambda x: gradcli.r_[x[0], 1.5, 2:8:3, COLUMN], lambda x: np.r_[x[0], 1.5, 2:8:3, COLUMN]),
        (lambda x: gradcli.c_[x, COLUMN, x], lambda x: np.c_[x, COLUMN, x]),
        (lambda x: gradcli.c_[x[0], :2], lambda x: np.c_[x[0], :2]),
    ],
)
def test_what_stands_in_brackets_is_joined(pasted, numpys):
    x = tensor(A, requires_grad=True)
    found = pasted(x)
    np.testing.assert_array_equal(found.detach(), numpys(A))
    (slope,) = gradcli.grad((found * found).sum(), x)
    np.testing.assert_allclose(slope, 2 * A * gradcli.grad(pasted(x).sum(), x)[0])
    np.testing.assert_array_equal(pasted(A), numpys(A))


@pytest.mark.parametrize("key", ["r", slice(0, 1, 5j), slice(None)])
def test_directives_in_brackets_are_refused(key):
    with pytest.raises(CallError, match="'r_' takes no"):
        gradcli.r_[key, A]
