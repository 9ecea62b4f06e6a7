"""Compares gradients of functions of complex arrays with differences along the real and the imaginary axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli import grad, real, tensor

_STEP = 1e-6


def differences(function: Callable[[Any], float], x: np.ndarray) -> np.ndarray:
    """dL/da + i*dL/db for each element a + i*b of `x`, by central differences; dL/da where `x` is real."""
    found = np.zeros(x.shape, x.dtype)
    for place in np.ndindex(x.shape):
        for axis in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
            moved = [x.copy(), x.copy()]
            moved[0][place] += _STEP * axis
            moved[1][place] -= _STEP * axis
            found[place] += axis * (function(moved[0]) - function(moved[1])) / (2 * _STEP)
    return found


def check_gradients(function: Callable[[Any], Any], x: Any, rtol: float = 1e-5) -> None:
    """Compare the first and second derivatives of `function`, a tensor with a real number as value, with differences."""

    def first(point: Any) -> Any:
        leaf = tensor(point, requires_grad=True)
        return leaf, *grad(function(leaf), [leaf], create_graph=True)

    def along(gradient: Any) -> Any:
        parts = gradient * tensor(weights)
        return real(parts).sum()

    x = np.asarray(x)
    weights = np.cos(np.arange(x.size)).reshape(x.shape) * (1.0 + 0.5j if x.dtype.kind == "c" else 1.0)
    leaf, gradient = first(x)
    wanted = differences(lambda p: float(function(tensor(p))), x)
    np.testing.assert_allclose(np.asarray(gradient.detach()), wanted, rtol=rtol, atol=rtol)
    (second,) = grad(along(gradient), [leaf])
    wanted = differences(lambda p: float(along(first(p)[1])), x)
    np.testing.assert_allclose(np.asarray(second), wanted, rtol=rtol, atol=rtol)
