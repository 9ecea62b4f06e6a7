"""Sequences of numbers, the bins of numbers and rounding, beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from gradcli import grad, tensor
from gradcli.primitives import table

NAN = float("nan")


@pytest.mark.parametrize("name", ["linspace", "geomspace"])
@pytest.mark.parametrize("ends", [(1.0, 1000.0), (-2.0, -0.001), (5.0, 5.0), (1e-200, 1e200)])
@pytest.mark.parametrize("num", [0, 1, 2, 7])
@pytest.mark.parametrize("endpoint", [True, False])
def test_a_sequence_is_that_of_numpy(name, ends, num, endpoint):
    found = table.known(name)(*ends, num, endpoint)
    np.testing.assert_allclose(found, getattr(np, name)(*ends, num, endpoint), rtol=1e-12)


def test_a_geometric_sequence_has_the_ends_that_are_given():
    found = table.known("geomspace")(0.1, 0.7, 9)
    assert (found[0], found[-1]) == (0.1, 0.7)


@pytest.mark.parametrize("ends", [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (NAN, 1.0)])
def test_a_geometric_sequence_through_0_is_refused(ends):
    with pytest.raises(gradcli.errors.EvaluationError, match="two numbers of the same sign"):
        table.known("geomspace")(*ends)


@pytest.mark.parametrize("ends", [(2.0, 5.0), (-2.0, -5.0)])
def test_the_gradient_of_a_geometric_sequence(ends):
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    start, stop = (tensor(end, requires_grad=True) for end in ends)
    found = grad((tensor(weights) * table.known("geomspace")(start, stop, 4)).sum(), (start, stop))
    step = 1e-6
    for i, slope in enumerate(found):
        above, below = ([e + way * step * (i == j) for j, e in enumerate(ends)] for way in (1, -1))
        expected = weights @ (np.geomspace(*above, 4) - np.geomspace(*below, 4)) / (2 * step)
        assert slope.item() == pytest.approx(expected, rel=1e-8)


def test_a_range_of_tensors_without_its_end():
    found = gradcli.linspace(0, 1, 4, endpoint=False)
    assert found.tolist() == [0.0, 0.25, 0.5, 0.75]
    stop = tensor(1.0, requires_grad=True)
    assert grad(gradcli.linspace(0, stop, 4, endpoint=False).sum(), stop)[0].item() == 1.5


@pytest.mark.parametrize("bins", [[1.0, 2.0, 2.0, 4.0], [4.0, 2.0, 2.0, 1.0], [1.0], [2.0, 2.0]])
@pytest.mark.parametrize("right", [False, True])
def test_bins_are_those_of_numpy(bins, right):
    x = np.array([[0.0, 1.0, 1.5], [2.0, 4.0, 5.0], [-np.inf, np.inf, NAN]])
    assert np.array_equal(table.known("digitize")(x, bins, right), np.digitize(x, bins, right))
    assert gradcli.digitize(tensor(x), tensor(bins), right).dtype == "int64"


def test_bins_in_no_order_are_refused():
    with pytest.raises(gradcli.errors.EvaluationError, match="bins that rise or that fall"):
        table.known("digitize")([1.0], [1.0, 3.0, 2.0])


@pytest.mark.parametrize("arguments", [(3,), (2, 4), (3, 3, 1), (3, 2, -1), (0,)])
def test_ones_up_to_a_diagonal_are_those_of_numpy(arguments):
    assert np.array_equal(table.known("tri")(*arguments), np.tri(*arguments))


def test_halves_are_rounded_to_the_even_number():
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, NAN, np.inf, 1e300])
    for name in ("rint", "around"):
        assert np.array_equal(table.known(name)(x), getattr(np, name)(x), equal_nan=True)
    assert np.array_equal(table.known("around")([1.25, 15.0], -1), np.around([1.25, 15.0], -1))


@pytest.mark.parametrize("infinite", [np.inf, -np.inf])
@pytest.mark.parametrize("name", ["nanmax", "nanmin", "nanmedian"])
def test_infinities_beside_nan_share_the_gradient_without_it(name, infinite):
    x = gradcli.tensor([infinite, np.nan, infinite, infinite, np.nan], requires_grad=True)
    found = getattr(gradcli, name)(x)
    found.backward()
    assert found.item() == infinite
    np.testing.assert_allclose(x.grad.numpy(), [1 / 3, 0, 1 / 3, 1 / 3, 0])
    alone = gradcli.tensor([np.nan, np.nan], requires_grad=True)
    assert np.isnan(getattr(gradcli, name)(alone).item())
