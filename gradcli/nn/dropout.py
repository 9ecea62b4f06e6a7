"""Random functions of `torch.nn.functional`: dropout, random activations and Gumbel softmax."""

from __future__ import annotations

import math
from typing import Any

from gradcli.autograd import generators
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, ShapeError
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.arithmetic import negative, zeros_like
from gradcli.primitives.entries.comparisons import less, where
from gradcli.primitives.entries.exponential import log
from gradcli.primitives.entries.scans import softmax

# The value of dropped units in alpha_dropout: the limit of SELU at minus infinity, -scale*alpha.
_SELU_LIMIT = -1.7580993408473766


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """0 with probability p for each element, else input/(1 - p); the input itself where `training` is False."""
    return _dropped(input, p, training, inplace, input.shape)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """`dropout` of whole channels (N, C, L)."""
    return _of_channels("dropout1d", input, p, training, inplace, 1)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """`dropout` of whole channels (N, C, H, W)."""
    return _of_channels("dropout2d", input, p, training, inplace, 2)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """`dropout` of whole channels (N, C, D, H, W)."""
    return _of_channels("dropout3d", input, p, training, inplace, 3)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Dropout for SELU networks: dropped elements take SELU's lowest value, and mean 0 and variance 1 are preserved.

    G. Klambauer, T. Unterthiner, A. Mayr and S. Hochreiter, "Self-Normalizing Neural Networks" (NeurIPS 2017).
    """
    return _alpha_dropped(input, p, training, inplace, input.shape)


def _alpha_dropped(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Any:
    _check(p)
    if not training or p == 0:
        return input
    kept = _kept(input, p, shape)
    scale = 1 / math.sqrt((1 - p) * (1 + p * _SELU_LIMIT**2)) if p < 1 else 0.0
    made = (input * kept + (1.0 - kept) * _SELU_LIMIT - p * _SELU_LIMIT) * scale
    return input.copy_(made) if inplace else made


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """`alpha_dropout` of whole channels (N, C, …)."""
    return _alpha_dropped(input, p, training, inplace, (*input.shape[:2], *[1] * (input.ndim - 2)))


def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Any:
    """x where it is positive, else a*x with a uniform number a from `lower` to `upper`, which is drawn for each element
    in training, and else is the mean of both.

    B. Xu, N. Wang, T. Chen and M. Li, "Empirical Evaluation of Rectified Activations in Convolution Network" (2015).
    """
    if not lower <= upper:
        raise ArgumentError(
            f"Lower bound should be less than or equal to the upper bound, and {lower} is above {upper}"
        )
    slope: Any = (lower + upper) / 2
    if training:
        slope = generators.uniform(input.shape, input.dtype, lower, upper)
    made = where(less(0.0, input), input, input * slope)
    return input.copy_(made) if inplace else made


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """The softmax of (logits + noise)/tau with Gumbel noise; with `hard`, 1 at the largest element and else 0, with the
    gradient of the softmax.

    E. Jang, S. Gu and B. Poole, "Categorical Reparameterization with Gumbel-Softmax" (ICLR 2017).
    """
    noise = negative(log(generators.exponential(logits.shape, logits.dtype)))
    soft: Any = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    fixed = soft.detach()
    ones = zeros_like(fixed).scatter(dim, fixed.argmax(dim, True), 1.0)
    return ones - fixed + soft


def _of_channels(name: str, input: Tensor, p: float, training: bool, inplace: bool, dimensions: int) -> Any:
    if input.ndim not in (dimensions + 1, dimensions + 2):
        raise ShapeError(
            f"'{name}' takes a tensor of {dimensions + 1} or {dimensions + 2} dimensions, not of {input.ndim}"
        )
    channels = input.ndim - dimensions
    return _dropped(input, p, training, inplace, (*input.shape[:channels], *[1] * dimensions))


def _dropped(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Any:
    _check(p)
    if not training or p == 0:
        return input
    factors = _kept(input, p, shape) * (1 / (1 - p) if p < 1 else 0.0)
    return input.mul_(factors) if inplace else input * factors


def _check(p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"dropout probability has to be between 0 and 1, but got {p}")


def _kept(input: Tensor, p: float, shape: tuple[int, ...]) -> Any:
    """1 with probability 1 - p, else 0, in the dtype of the input."""
    return cast(less(generators.uniform(shape, input.dtype), 1.0 - p), input.dtype)
