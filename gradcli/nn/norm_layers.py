"""Normalisation layers, with a weight and a bias for each feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from gradcli.autograd.creation.factory import tensor
from gradcli.autograd.modes import no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError
from gradcli.nn import functional, init
from gradcli.nn.function_modules import REQUIRED, FunctionModule, defaults
from gradcli.nn.module import Module
from gradcli.nn.parameter import filled, parameter


class _Affine(Module):
    """The base class of layers that multiply normalised features by a weight and add a bias; both may be None."""

    weight: Any
    bias: Any

    def _register_affine(self, shape: tuple[int, ...], affine: bool, bias: bool, dtype: Any, device: Any) -> None:
        self.register_parameter("weight", parameter(shape, 1.0, dtype=dtype, device=device) if affine else None)
        self.register_parameter("bias", parameter(shape, dtype=dtype, device=device) if affine and bias else None)

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """(x - mean)/sqrt(var + eps)*weight + bias over the last axes, whose sizes are `normalized_shape`."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._register_affine(self.normalized_shape, elementwise_affine, bias, dtype, device)

    def forward(self, input: Tensor) -> Any:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        return f"{self.normalized_shape}, eps={self.eps}, {affine}"


class RMSNorm(Module):
    """x/sqrt(mean(x**2) + eps)*weight over the last axes, whose sizes are `normalized_shape`."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        weight = parameter(self.normalized_shape, 1.0, dtype=dtype, device=device) if elementwise_affine else None
        self.register_parameter("weight", weight)

    def reset_parameters(self) -> None:
        """Set the weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Any:
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """(x - mean)/sqrt(var + eps)*weight + bias over the channels of each of `num_groups` groups."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ArgumentError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._register_affine((num_channels,), affine, bias, dtype, device)

    def forward(self, input: Tensor) -> Any:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = f"affine={self.affine}, bias={self.bias is not None}"
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, {affine}"


class _RunningNorm(_Affine):
    """The base class of layers that track running estimates of the mean and variance in training."""

    ranks: ClassVar[tuple[int, ...]]
    momentum: Any

    def _begin(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: Any,
        dtype: Any,
        bias: bool,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        shape = (num_features,)
        self._register_affine(shape, affine, bias, dtype, device)
        tracked = track_running_stats
        self.register_buffer("running_mean", filled(shape, dtype=dtype, device=device) if tracked else None)
        self.register_buffer("running_var", filled(shape, 1.0, dtype=dtype, device=device) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0) if tracked else None)

    def reset_running_stats(self) -> None:
        """Reset the running statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1.0)
            self.num_batches_tracked.fill_(0)

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0, and reset the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_rank(self, input: Tensor) -> None:
        if input.ndim not in self.ranks:
            ranks = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ArgumentError(f"expected {ranks} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNormalization(_RunningNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        self._begin(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Any:
        self._check_rank(input)
        by_batch = self.training or self.running_mean is None
        momentum = 0.0 if self.momentum is None else self.momentum
        tracked = self.training and self.num_batches_tracked is not None
        if tracked:
            with no_grad():
                self.num_batches_tracked.add_(1)
            if self.momentum is None:
                # The cumulative mean over all batches so far.
                momentum = 1.0 / self.num_batches_tracked.item()
        known = tracked or not self.training
        mean, variance = (self.running_mean, self.running_var) if known else (None, None)
        return functional.batch_norm(input, mean, variance, self.weight, self.bias, by_batch, momentum, self.eps)


class BatchNorm1d(BatchNormalization):
    """(x - mean)/sqrt(var + eps)*weight + bias for each channel of (N, C) or (N, C, L): with the statistics of the
    batch in training, else with the running ones."""

    ranks = (2, 3)


class BatchNorm2d(BatchNormalization):
    """`BatchNorm1d` for images (N, C, H, W)."""

    ranks = (4,)


class BatchNorm3d(BatchNormalization):
    """`BatchNorm1d` for volumes (N, C, D, H, W)."""

    ranks = (5,)


class _InstanceNorm(_RunningNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        self._begin(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Any:
        self._check_rank(input)
        batched = input if input.ndim == self.ranks[1] else input.unsqueeze(0)
        by_input = self.training or not self.track_running_stats
        found = functional.instance_norm(
            batched, self.running_mean, self.running_var, self.weight, self.bias, by_input, self.momentum, self.eps
        )
        return found if batched is input else found.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """(x - mean)/sqrt(var + eps) for each channel of each signal (N, C, L) or (C, L)."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` for images (N, C, H, W) or (C, H, W)."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` for volumes (N, C, D, H, W) or (C, D, H, W)."""

    ranks = (4, 5)


class LocalResponseNorm(FunctionModule):
    """x/(k + alpha*mean(x**2))**beta, where the mean is over `size` neighbouring channels."""

    function = "local_response_norm"
    settings = defaults(size=REQUIRED, alpha=1e-4, beta=0.75, k=1.0)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
