"""Tests the argument conventions of NumPy and SciPy: keywords, axes, lists for tensors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
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


class TestSplitting:
    @pytest.mark.parametrize("where", [2, [1], [1, 3]])
    @pytest.mark.parametrize("name", ["vsplit", "hsplit", "dsplit", "array_split"])
    def test_parts(self, name, where):
        x = np.concatenate([CUBE, CUBE], axis=1)
        for found, wanted in zip(getattr(gradcli, name)(tensor(x), where), getattr(np, name)(x, where), strict=True):
            assert_same(found, wanted)

    def test_unequal_parts(self):
        for found, wanted in zip(gradcli.array_split(tensor(CUBE), 3, 2), np.array_split(CUBE, 3, 2), strict=True):
            assert_same(found, wanted)
        assert [part.shape for part in gradcli.array_split(tensor([1.0]), 3)] == [(1,), (0,), (0,)]

    def test_too_few_axes(self):
        for name, x in (("vsplit", [1.0]), ("hsplit", 1.0), ("dsplit", SQUARE)):
            with pytest.raises(ShapeError, match="needs at least"):
                getattr(gradcli, name)(tensor(x), 1)
        assert len(gradcli.hsplit(tensor([1.0, 2.0]), 2)) == 2


class TestJoining:
    def test_rows_and_columns(self):
        x = tensor([1.0, 2.0])
        assert gradcli.row_stack([x, x]).shape == (2, 2)
        assert gradcli.column_stack([x, tensor(SQUARE)]).shape == (2, 3)

    def test_append(self):
        assert_same(gradcli.append(tensor(SQUARE), 1.0), np.append(SQUARE, 1.0))
        assert_same(gradcli.append(tensor(SQUARE), tensor(SQUARE), axis=1), np.append(SQUARE, SQUARE, axis=1))

    def test_the_method_is_of_lists_alone(self):
        with pytest.raises(CallError, match="method of lists"):
            gradcli.compile("x.append(1)")(x=SQUARE)


class TestSlopes:
    @pytest.mark.parametrize("order", [1, 2])
    def test_they_are_those_of_numpy(self, order):
        for spacing in ((), (0.5,), (0.5, [1.0, 1.5, 3.0], 2.0)):
            x = np.concatenate([CUBE, 2 * CUBE])
            found = gradcli.gradient(tensor(x), *spacing, edge_order=order)
            for one, wanted in zip(found, np.gradient(x, *spacing, edge_order=order), strict=True):
                assert_same(one, wanted)
        assert_same(
            gradcli.gradient(tensor(CUBE), axis=-1, edge_order=order), np.gradient(CUBE, axis=-1, edge_order=order)
        )

    def test_what_does_not_fit(self):
        for arguments in ((tensor(CUBE), 1.0, 2.0), (tensor([1.0]),)):
            with pytest.raises(ShapeError, match="'gradient'"):
                gradcli.gradient(*arguments)

    def test_the_word_alone_is_no_function_of_the_language(self):
        with pytest.raises(gradcli.GradcliError, match="'gradient' without a prefix"):
            gradcli.compile("gradient(x)")(x=[1.0, 2.0])
        assert gradcli.compile("np.gradient(x)[0]")(x=[1.0, 3.0]) == 2.0

    def test_differences(self):
        assert_same(gradcli.diff(tensor(CUBE), n=2, axis=1), np.diff(CUBE, n=2, axis=1))


class TestAxesThatAreMade:
    @pytest.mark.parametrize("name", ["atleast_1d", "atleast_2d", "atleast_3d"])
    def test_at_least(self, name):
        for x in (np.array(1.5), CUBE[0, 0], CUBE[0], CUBE):
            assert_same(getattr(gradcli, name)(tensor(x)), getattr(np, name)(x))
        assert len(getattr(gradcli, name)(tensor(1.0), tensor([1.0]))) == 2
        assert_same(getattr(gradcli, name)((tensor(1.0), tensor(2.0))), getattr(np, name)((1.0, 2.0)))
        with pytest.raises(gradcli.GradcliError, match="not tuple"):
            getattr(gradcli, name)((1.0, 2.0))

    def test_rollaxis(self):
        for axis in (0, 1, -1):
            for start in (-1, 0, 2, 3):
                assert_same(gradcli.rollaxis(tensor(CUBE), axis, start), np.rollaxis(CUBE, axis, start))


class TestRealNumbers:
    def test_they_are_as_numpy_has_them(self):
        x = np.array([-1.5, 0.0, 2.0, np.nan])
        for name in ("real", "real_if_close", "conj", "conjugate", "imag", "angle", "isreal", "iscomplex"):
            np.testing.assert_array_equal(np.asarray(getattr(gradcli, name)(tensor(x))), getattr(np, name)(x))

    @pytest.mark.parametrize("name", ["dct", "schur"])
    def test_what_is_not_there_says_why(self, name):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': .* (real|there|here)"):
            getattr(gradcli, name)
        with pytest.raises(gradcli.GradcliError) as caught:
            gradcli.compile(f"scipy.{name}(x)")(x=1.0)
        assert caught.value.hint
        assert "here" in caught.value.hint or "there" in caught.value.hint


class TestLinearAlgebra:
    def test_names_have_the_meaning_of_the_module(self):
        assert gradcli.linalg.norm(tensor(SQUARE), "nuc").item() == pytest.approx(np.linalg.norm(SQUARE, "nuc"))
        assert gradcli.linalg.norm(tensor(CUBE), ord="nuc", axis=(0, 2)).shape == (3,)
        with pytest.raises(AttributeError, match="'schur': "):
            gradcli.linalg.schur  # noqa: B018

    @pytest.mark.parametrize("triangle", ["L", "U"])
    def test_one_triangle(self, triangle):
        x = tensor(SQUARE, requires_grad=True)
        values, vectors = gradcli.numpy.linalg.eigh(x, UPLO=triangle)
        wanted = np.linalg.eigh(SQUARE, triangle)
        assert_same(values, wanted[0])
        assert_same(abs(vectors), abs(wanted[1]))
        unread = (0, 1) if triangle == "L" else (1, 0)
        assert grad(values[0], x)[0][unread].item() == 0.0

    def test_stacks_of_sylvester_equations(self):
        a, b, q = CUBE[:, :2, :2] + 5 * np.eye(2), CUBE[0, :, :3] + 7 * np.eye(3), CUBE[:, :2, :3]
        found = gradcli.linalg.solve_sylvester(tensor(a), tensor(b), tensor(q))
        for x, left, right in zip(found.numpy(), a, q, strict=True):
            np.testing.assert_allclose(x, scipy.linalg.solve_sylvester(left, b, right), rtol=1e-10)

    def test_bands(self):
        bands, b = np.arange(1.0, 21.0).reshape(4, 5) ** 0.5, np.arange(5.0)
        assert_same(
            gradcli.linalg.solve_banded((1, 2), tensor(bands), tensor(b)), scipy.linalg.solve_banded((1, 2), bands, b)
        )
        with pytest.raises(ShapeError, match="solve_banded"):
            gradcli.linalg.solve_banded((1, 1), tensor(bands), tensor(b))


class TestSpecialFunctions:
    @pytest.mark.parametrize("name", ["yv", "yn", "iv", "ive"])
    def test_the_derivative_is_that_of_scipy(self, name):
        x = tensor([0.7, 2.5], requires_grad=True)
        value = getattr(gradcli, name)(2, x)
        points, step = x.detach().numpy(), 1e-6
        function = getattr(scipy.special, name)
        np.testing.assert_allclose(value.detach().numpy(), function(2, points), rtol=1e-13)
        slope = (function(2, points + step) - function(2, points - step)) / (2 * step)
        np.testing.assert_allclose(grad(value.sum(), x)[0].numpy(), slope, rtol=1e-7)

    def test_at_poles_of_gamma(self):
        x = tensor([-2.0, -1.0, 0.0, 1.0], requires_grad=True)
        value = gradcli.rgamma(x)
        np.testing.assert_allclose(value.detach().numpy(), [0.0, 0.0, 0.0, 1.0], atol=1e-15)
        np.testing.assert_allclose(grad(value.sum(), x)[0].numpy(), [2.0, -1.0, 1.0, np.euler_gamma], rtol=1e-12)
        points = np.array([-2.5, -1.5, -0.5, 0.0, 3.0])
        assert_same(gradcli.gammasgn(tensor(points)), scipy.special.gammasgn(points))
