"""The forms in which NumPy and SciPy call functions: keywords, axes, lists for tensors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import gradcli
from gradcli import grad, tensor
from gradcli.errors import CallError, ShapeError

CUBE = np.arange(24.0).reshape(2, 3, 4) ** 1.5
SQUARE = np.array([[1.0, 2.5], [-3.0, 0.5]])


def assert_same(found, wanted):
    np.testing.assert_allclose(np.asarray(found.detach()), wanted, rtol=1e-13, atol=1e-14)
    assert found.shape == np.shape(wanted)


class TestAxes:
    @pytest.mark.parametrize("offset", [-1, 0, 2])
    @pytest.mark.parametrize("axes", [(0, 1), (1, 0), (-1, 0), (1, 2)])
    def test_diagonals(self, offset, axes):
        first, second = axes
        named = {"offset": offset, "axis1": first, "axis2": second}
        assert_same(gradcli.trace(tensor(CUBE), **named), np.trace(CUBE, **named))
        assert_same(gradcli.diagonal(tensor(CUBE), **named), np.diagonal(CUBE, **named))
        assert_same(gradcli.diagonal(tensor(CUBE), offset, dim1=first, dim2=second), np.diagonal(CUBE, **named))

    def test_a_diagonal_of_one_axis(self):
        with pytest.raises(ShapeError, match="two different axes"):
            gradcli.trace(tensor(CUBE), axis1=1, axis2=-2)

    def test_a_diagonal_stays_a_view(self):
        x = tensor(np.zeros((2, 2, 2)))
        x.diagonal(0, 1, 2)[:, 1] += 1
        assert x[:, 1, 1].tolist() == [1.0, 1.0]

    def test_swapaxes(self):
        assert_same(gradcli.swapaxes(tensor(CUBE), axis1=0, axis2=-1), np.swapaxes(CUBE, 0, -1))

    @pytest.mark.parametrize("named", [{"axisa": 0, "axisb": 1, "axisc": 0}, {"axis": 0, "axisa": 1}, {"axis": None}])
    def test_cross(self, named):
        a, b = CUBE[:, :, :3][0], CUBE[:, :, 1:][1]
        assert_same(gradcli.cross(tensor(a), tensor(b), **named), np.cross(a, b, **named))

    def test_flatten(self):
        assert tensor(CUBE).flatten(1).shape == (2, 12)
        assert tensor(CUBE).flatten(start_dim=0, end_dim=1).shape == (6, 4)
        assert tensor(1.0).flatten().shape == (1,)
        with pytest.raises(ShapeError, match="start_dim cannot come after end_dim"):
            tensor(CUBE).flatten(2, 1)

    def test_scans_of_all_elements(self):
        x = tensor(SQUARE, requires_grad=True)
        for function, wanted in ((gradcli.cumsum, np.cumsum), (gradcli.cumprod, np.cumprod)):
            assert_same(function(x), wanted(SQUARE))
        assert_same(gradcli.sort(x, axis=None), np.sort(SQUARE, axis=None))
        assert grad(gradcli.cumsum(x).sum(), x)[0].tolist() == [[4.0, 3.0], [2.0, 1.0]]


class TestEinsum:
    def test_numbers_for_letters(self):
        a, b = tensor(SQUARE), tensor(CUBE[0, :2])
        assert_same(gradcli.einsum(a, [0, 1], b, [1, 2], [0, 2]), SQUARE @ CUBE[0, :2])
        assert_same(gradcli.einsum(a, (0, 1), b, (1, 30)), np.einsum(SQUARE, [0, 1], CUBE[0, :2], [1, 30]))
        assert_same(gradcli.einsum(a, (1, 0)), SQUARE.T)
        assert_same(gradcli.einsum(tensor(CUBE), (..., 5), (5, ...)), np.einsum("...f->f...", CUBE))

    def test_in_the_language(self):
        run = gradcli.compile("sum(einsum(a, [0, 1], a, [1, 2], [0, 2]))")
        assert run(a=SQUARE) == pytest.approx((SQUARE @ SQUARE).sum())


class TestWhatSaysNothing:
    @pytest.mark.parametrize("name", ["sum", "mean", "prod", "std", "var", "cumsum"])
    def test_dtype_and_out(self, name):
        found = getattr(gradcli, name)(tensor(SQUARE), axis=None, dtype=None, out=None)
        assert_same(found, getattr(np, name)(SQUARE))

    def test_numpy_calls_so(self):
        assert_same(np.sum(tensor(SQUARE)), SQUARE.sum())
        assert_same(np.sum(tensor(SQUARE), axis=0), SQUARE.sum(axis=0))

    def test_what_says_something(self):
        with pytest.raises((CallError, TypeError)):
            gradcli.sum(tensor(SQUARE), out=np.zeros(2))


class TestListsOfTensors:
    @pytest.mark.parametrize("made", [list, tuple])
    def test_a_list_is_those_stacked(self, made):
        x = tensor(2.0, requires_grad=True)
        assert grad(gradcli.mean(made([x, x * x, 3.0])), x)[0].item() == pytest.approx(5 / 3)
        assert grad(gradcli.norm(made([x, 0.0])), x)[0].item() == 1.0

    def test_lists_in_lists(self):
        x = tensor(2.0, requires_grad=True)
        assert gradcli.sum([[x, 1.0], [x, x]], axis=0).tolist() == [4.0, 3.0]
        assert gradcli.matmul([[x, 1.0], (0.0, x)], [1.0, 1.0]).tolist() == [3.0, 2.0]

    def test_inside_maps(self):
        found = gradcli.func.vmap(lambda x: gradcli.std([x, x + 2.0]))(tensor([1.0, 5.0]))
        assert found.tolist() == [1.0, 1.0]


class TestWeightedLogsumexp:
    @pytest.mark.parametrize("axis", [None, 0, 1])
    def test_it_is_that_of_scipy(self, axis):
        x, b = CUBE[0], np.linspace(0.0, 2.0, 12).reshape(3, 4)
        for keepdims in (False, True):
            found = gradcli.logsumexp(tensor(x), axis=axis, b=tensor(b), keepdims=keepdims)
            assert_same(found, scipy.special.logsumexp(x, axis=axis, b=b, keepdims=keepdims))

    def test_what_has_no_weight_may_be_large(self):
        x, b = tensor([1000.0, 1.0], requires_grad=True), tensor([0.0, 2.0], requires_grad=True)
        value = gradcli.logsumexp(x, b=b)
        assert value.item() == pytest.approx(1 + np.log(2))
        assert grad(value, x)[0].tolist() == [0.0, 1.0]

    def test_the_derivative_by_weights_of_zero(self):
        x, b = tensor([1.0, 2.0]), tensor([0.0, 1.0], requires_grad=True)
        np.testing.assert_allclose(grad(gradcli.logsumexp(x, b=b), b)[0].numpy(), [np.exp(-1.0), 1.0])
