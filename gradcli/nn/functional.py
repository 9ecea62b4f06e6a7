"""The functions of `torch.nn.functional`: those of the language, with PyTorch's arguments where they differ, and
functions that are random or update running statistics."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from gradcli.autograd.creation.factory import as_tensor
from gradcli.autograd.modes import no_grad
from gradcli.autograd.operations import tensor_functions
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError
from gradcli.nn.ctc import ctc_loss
from gradcli.nn.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    gumbel_softmax,
    rrelu,
)
from gradcli.nn.embedding_bags import embedding_bag
from gradcli.nn.folding import fold, unfold
from gradcli.nn.grid_sampling import affine_grid, grid_sample
from gradcli.primitives import table
from gradcli.primitives.entries.layers.margin_losses import triplet_loss
from gradcli.primitives.entries.statistics import var

__all__ = [
    "affine_grid",
    "alpha_dropout",
    "batch_norm",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "grid_sample",
    "gumbel_softmax",
    "instance_norm",
    "rrelu",
    "triplet_margin_with_distance_loss",
    "unfold",
]

# Functions that have an argument `inplace` after their own in PyTorch.
_IN_PLACE = frozenset(
    [
        "celu",
        "elu",
        "hardsigmoid",
        "hardswish",
        "hardtanh",
        "leaky_relu",
        "mish",
        "relu",
        "relu6",
        "selu",
        "silu",
        "threshold",
    ]
)
_WITH_DTYPE = frozenset({"softmax", "log_softmax", "softmin"})
# Functions that return arrays in the expression language, and tensors here.
_AS_TENSORS = frozenset({"one_hot"})
# Functions that also return indices on request.
_WITH_PLACES = frozenset([f"{kind}_pool{axes}d" for kind in ("max", "adaptive_max") for axes in (1, 2, 3)])


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Batch normalisation; in training the running statistics move towards those of the batch by `momentum`."""
    axes = (0, *range(2, input.ndim))
    if training and math.prod(input.shape[axis] for axis in axes) == 1:
        raise ArgumentError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    found = _known("batch_norm")(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if training:
        _move_statistics(input, axes, running_mean, running_var, momentum)
    return found


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Instance normalisation; with `use_input_stats` the running statistics move towards the means over the batch by
    `momentum`."""
    found = _known("instance_norm")(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
    if use_input_stats:
        axes = tuple(range(2, input.ndim))
        _move_statistics(input, axes, running_mean, running_var, momentum)
    return found


def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """`triplet_margin_loss` with the distances that a function gives, by default those of `pairwise_distance`."""
    distance = _known("pairwise_distance") if distance_function is None else distance_function
    return triplet_loss(anchor, positive, negative, distance, margin, swap, reduction)


def _move_statistics(
    input: Tensor, axes: tuple[int, ...], running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> None:
    with no_grad():
        if running_mean is not None:
            _move(running_mean, input.mean(axes), momentum)
        if running_var is not None:
            _move(running_var, var(input, axes, correction=1), momentum)


def _move(running: Tensor, found: Any, momentum: float) -> None:
    found = found.mean(0) if found.ndim > 1 else found
    running.copy_(running * (1 - momentum) + found * momentum)


def _with_inplace(function: Callable[..., Any]) -> Callable[..., Any]:
    """An activation with PyTorch's last argument `inplace`, which changes the operand."""
    name, own = function.name, len(function.parameters)  # type: ignore[attr-defined]

    @wraps(function.__call__)  # type: ignore[operator]
    def activation(input: Any, *options: Any, inplace: bool = False, **named: Any) -> Any:
        if len(options) == own:
            *options, inplace = options  # type: ignore[assignment]
        return getattr(input, f"{name}_")(*options, **named) if inplace else function(input, *options, **named)

    activation.__name__ = activation.__qualname__ = name
    return activation


def _with_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """A softmax with PyTorch's arguments, which converts its operand to `dtype` first."""

    def share(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        return function(input if dtype is None else input.to(dtype=dtype), dim)

    share.__name__ = share.__qualname__ = function.name  # type: ignore[attr-defined]
    return share


def _with_places(function: Callable[..., Any]) -> Callable[..., Any]:
    """A pooling function whose indices are returned as a tensor."""

    def pooled(*operands: Any, **options: Any) -> Any:
        found = function(*operands, **options)
        return (found[0], as_tensor(found[1])) if isinstance(found, tuple) else found

    pooled.__name__ = pooled.__qualname__ = function.name  # type: ignore[attr-defined]
    return pooled


def _known(name: str) -> Any:
    return tensor_functions.function(name) if name in _AS_TENSORS else table.find(name, "torch")


def __getattr__(name: str) -> Any:
    if name.endswith("_") and name[:-1] in _IN_PLACE:
        found: Any = _in_place(name)
    else:
        found = None if name.startswith("_") else _known(name)
        if found is not None and name in _IN_PLACE:
            found = _with_inplace(found)
        elif found is not None and name in _WITH_DTYPE:
            found = _with_dtype(found)
        elif found is not None and name in _WITH_PLACES:
            found = _with_places(found)
    if found is None:
        raise AttributeError(f"module 'gradcli.nn.functional' has no attribute {name!r}{table.reason_suffix(name)}")
    globals()[name] = found
    return found


def _in_place(name: str) -> Callable[..., Any]:
    def activation(input: Any, *options: Any, **named: Any) -> Any:
        return getattr(input, name)(*options, **named)

    activation.__name__ = activation.__qualname__ = name
    return activation
