"""Reductions that skip nan have the values of NumPy and the gradients of the same reductions without the nans."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli import grad, tensor
from gradcli.primitives import table

NAN = float("nan")
ROWS = [
    [2.0, NAN, -1.0, 5.0, 0.5],
    [NAN, 3.0, NAN, 1.0, NAN],
    [NAN, NAN, 4.0, NAN, NAN],
    [1.5, 1.0, -2.0, NAN, 8.0],
    [6.0, 2.0, 3.0, 7.0, 1.0],
]
PLAIN = ("max", "min", "median", "prod", "sum", "mean", "var", "std")


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_the_value_is_that_of_numpy(name, axis, keepdims):
    for width in (4, 5):
        x = np.array(ROWS)[:, :width]
        found = table.known(f"nan{name}")(x, axis, keepdims)
        np.testing.assert_allclose(found, getattr(np, f"nan{name}")(x, axis=axis, keepdims=keepdims), rtol=1e-13)


@pytest.mark.parametrize("name", PLAIN)
def test_the_gradient_is_that_of_the_elements_that_are_there(name):
    x = tensor(ROWS, requires_grad=True)
    (found,) = grad(table.known(f"nan{name}")(x, axis=1).sum(), x)
    for row, slopes in zip(ROWS, found.tolist()):
        kept = [i for i, number in enumerate(row) if number == number]
        present = tensor([row[i] for i in kept], requires_grad=True)
        (expected,) = grad(table.known(name)(present), present)
        np.testing.assert_allclose([slopes[i] for i in kept], expected.tolist(), rtol=1e-13, atol=1e-15)
        assert not any(slope for i, slope in enumerate(slopes) if i not in kept)


@pytest.mark.parametrize("name", ["nanvar", "nanstd"])
@pytest.mark.parametrize("correction", [1, 2, 5])
@pytest.mark.filterwarnings("ignore:Degrees of freedom")
def test_a_correction_is_that_of_numpy(name, correction):
    found = table.known(name)(np.array(ROWS), axis=1, correction=correction)
    np.testing.assert_allclose(found, getattr(np, name)(ROWS, axis=1, ddof=correction), rtol=1e-13)


def test_a_deviation_does_not_overflow():
    assert table.known("nanstd")([1e200, NAN, -1e200]) == pytest.approx(1e200)
