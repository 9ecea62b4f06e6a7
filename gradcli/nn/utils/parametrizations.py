"""Weights with a norm of their own or a largest singular value of 1, as parametrizations of the weights."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.modes import no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError
from gradcli.nn.convolution_layers import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from gradcli.nn.module import Module
from gradcli.nn.utils.parametrize import register_parametrization
from gradcli.primitives.entries.layers.networks import normalize
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.statistics import norm

# The number of power iterations from which the singular vectors of a new parametrization start.
_FIRST_ITERATIONS = 15


def norms_except(weight: Any, dim: int | None) -> Any:
    """The Euclidean norms of a weight over all axes but `dim`, which are kept with size 1; over all axes for None."""
    if dim is None:
        return norm(weight)
    axes = tuple(axis for axis in range(weight.ndim) if axis != dim % weight.ndim)
    return norm(weight, 2, axes, keepdims=True)


def with_norms(norms: Any, direction: Any, dim: int | None) -> Any:
    """A weight scaled to these norms, as `norms_except` gives them."""
    return direction * (norms / norms_except(direction, dim))


class _WeightNorm(Module):
    """A weight as its norms times its directions, of T. Salimans and D. P. Kingma (2016)."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, *values: Any, **_keywords: Any) -> Any:
        norms, direction = values
        return with_norms(norms, direction, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return norms_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrize a weight by its norms, one for each index of `dim` or a single one for None, and its directions."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def as_rows(weight: Any, dim: int) -> Any:
    """A weight as a matrix with a row for each index of the axis `dim`."""
    return weight.movedim(dim, 0).flatten(1)


def improve(left: Any, right: Any, matrix: Any, iterations: int, eps: float) -> None:
    """Move two vectors towards the first singular vectors of a matrix by power iterations, in place."""
    with no_grad():
        for _ in range(iterations):
            left.copy_(normalize(matmul(matrix, right), 2.0, 0, eps))
            right.copy_(normalize(matmul(matrix.T, left), 2.0, 0, eps))


def over_singular_value(weight: Any, matrix: Any, left: Any, right: Any) -> Any:
    """A weight divided by the singular value of its matrix that belongs to the vectors as they are now."""
    return weight / matmul(left.clone(), matmul(matrix, right.clone()))


def random_direction(like: Any, size: int, eps: float) -> Any:
    return normalize(like.new_empty(size).normal_(0, 1), 2.0, 0, eps)


def axis_of_outputs(module: Module) -> int:
    """The axis of the weight of a layer along which its outputs are."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which power iterations follow from step to step, of T. Miyato and
    others (2018)."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if n_power_iterations <= 0:
            raise ArgumentError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps
        if weight.ndim > 1:
            matrix = as_rows(weight.detach(), dim)
            for name, size in zip(("_u", "_v"), matrix.shape):
                self.register_buffer(name, random_direction(matrix, size, eps))
            improve(self._u, self._v, matrix, _FIRST_ITERATIONS, eps)

    def forward(self, *values: Any, **_keywords: Any) -> Any:
        (weight,) = values
        if weight.ndim == 1:
            return normalize(weight, 2.0, 0, self.eps)
        matrix = as_rows(weight, self.dim)
        if self.training:
            improve(self._u, self._v, matrix.detach(), self.n_power_iterations, self.eps)
        return over_singular_value(weight, matrix, self._u, self._v)

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, as a matrix with a row for each index of `dim`, by default of each
    output.

    Raises ArgumentError for a name without a tensor, and fewer than one power iteration.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    axis = axis_of_outputs(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, axis, eps))
