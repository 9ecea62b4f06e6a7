"""Initialisation of parameters, with the names and formulas of `torch.nn.init`.

X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks" (AISTATS 2010) for
`xavier_…`; K. He, X. Zhang, S. Ren and J. Sun, "Delving Deep into Rectifiers" (ICCV 2015) for `kaiming_…`; A. M. Saxe,
J. L. McClelland and S. Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks"
(ICLR 2014) for `orthogonal_`.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from gradcli import arrays
from gradcli.autograd import generators
from gradcli.autograd.creation.random_tensors import randperm
from gradcli.autograd.modes import no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, expect
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import multiply, sign
from gradcli.primitives.entries.linear import diagonal
from gradcli.primitives.entries.linear_algebra.decompositions import qr
from gradcli.primitives.entries.shape import matrix_transpose
from gradcli.primitives.entries.special_functions.special import ndtr

# The share of a normal distribution in an interval from which on its own draws are used for the truncated one.
_MANY_INSIDE = 0.3
# The default slope of a leaky ReLU.
_LEAKY_SLOPE = 0.01
_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
_LINEAR = frozenset(
    ["linear", "sigmoid", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]
)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended gain for a nonlinearity. Raises ValueError for an unknown one."""
    if nonlinearity in _LINEAR:
        return 1.0
    if nonlinearity == "leaky_relu":
        slope = _LEAKY_SLOPE if param is None else param
        expect(slope, (int, float), "the slope of a leaky ReLU is a number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ArgumentError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from U(a, b)."""
    return _take(tensor, generators.uniform(tensor.shape, tensor.dtype, a, b, generator))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from a normal distribution."""
    return _take(tensor, generators.normal(tensor.shape, tensor.dtype, mean, std, generator))


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill with draws from a normal distribution truncated to [a, b].

    As in PyTorch, draws are rejected and drawn again, those of the normal distribution outside of the interval, or where
    these are most, those of a uniform distribution. Raises ArgumentError for an interval without any number.
    """
    if not a < b:
        raise ArgumentError(f"[{a}, {b}] is no interval")
    xp, shape, dtype = arrays.numpy_namespace(), tensor.shape, tensor.dtype
    inside = float(ndtr((b - mean) / std)) - float(ndtr((a - mean) / std))
    if inside > _MANY_INSIDE:
        drawn = xp.asarray(generators.normal(shape, dtype, mean, std, generator))
        while (missed := (drawn < a) | (drawn > b)).any():
            drawn = xp.where(missed, generators.normal(shape, dtype, mean, std, generator), drawn)
        return _take(tensor, arrays.tidy(drawn))
    highest = ((max(a, min(mean, b)) - mean) / std) ** 2
    drawn = candidates = xp.asarray(generators.uniform(shape, dtype, a, b, generator))
    missed = xp.ones(shape, bool)
    while True:
        drawn = xp.where(missed, candidates, drawn)
        chances = xp.log(xp.asarray(generators.uniform(shape, dtype, generator=generator)))
        missed = missed & (chances > -0.5 * (((candidates - mean) / std) ** 2 - highest))
        if not missed.any():
            return _take(tensor, arrays.tidy(drawn))
        candidates = xp.asarray(generators.uniform(shape, dtype, a, b, generator))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Set every element to a value."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Set every element to 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Set every element to 0."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity. Raises ValueError for a tensor that is not a matrix."""
    if tensor.ndim != 2:
        raise ArgumentError("Only tensors with 2 dimensions are supported")
    return _take(tensor, arrays.numpy_namespace().eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make the weight of a convolution preserve as many channels as possible, within each of the groups."""
    if tensor.ndim not in (3, 4, 5):
        raise ArgumentError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ArgumentError("dim 0 must be divisible by groups")
    weight = arrays.numpy_namespace().zeros(tensor.shape)
    middle = tuple(size // 2 for size in tensor.shape[2:])
    of_group = tensor.shape[0] // groups
    for group in range(groups):
        for channel in range(min(of_group, tensor.shape[1])):
            weight[(group * of_group + channel, channel, *middle)] = 1.0
    return _take(tensor, weight)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from U(±gain*sqrt(6/(fan_in + fan_out)))."""
    bound = gain * math.sqrt(6.0 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from a normal distribution with standard deviation gain*sqrt(2/(fan_in + fan_out))."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill with draws from U(±gain*sqrt(3/fan)), where the gain is that of the nonlinearity with slope `a`."""
    if not tensor.numel():
        warnings.warn("Initializing zero-element tensors is a no-op", UserWarning, stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill with draws from a normal distribution with standard deviation gain/sqrt(fan); see `kaiming_uniform_`."""
    if not tensor.numel():
        warnings.warn("Initializing zero-element tensors is a no-op", UserWarning, stacklevel=2)
        return tensor
    return normal_(tensor, 0.0, _kaiming_deviation(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with a random matrix with orthonormal rows or columns (whichever are fewer), multiplied by `gain`."""
    if tensor.ndim < 2:
        raise ArgumentError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel():
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    drawn = generators.normal((rows, columns), tensor.dtype, generator=generator)
    q, r = qr(matrix_transpose(drawn) if rows < columns else drawn)
    # The signs of QR are not random; normalising them makes the distribution uniform.
    q = multiply(q, sign(diagonal(r)))
    return _take(tensor, multiply(gain, reshape(matrix_transpose(q) if rows < columns else q, tensor.shape)))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix with draws from a normal distribution, and set a fraction `sparsity` of each column to 0."""
    if tensor.ndim != 2:
        raise ArgumentError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0.0, std, generator)
    with no_grad():
        for column in range(columns):
            tensor[randperm(rows, generator=generator)[:zeros], column] = 0.0
    return tensor


def fans(tensor: Tensor) -> tuple[int, int]:
    """fan_in and fan_out of a weight: how many inputs each output sums, and how many outputs each input reaches. Raises
    ValueError for a vector."""
    if tensor.ndim < 2:
        raise ArgumentError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _kaiming_deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = fans(tensor)[("fan_in", "fan_out").index(mode)]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _take(tensor: Tensor, numbers: Any) -> Tensor:
    with no_grad():
        return tensor.copy_(numbers)
