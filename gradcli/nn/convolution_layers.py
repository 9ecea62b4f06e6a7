"""Convolution layers and their transposes, in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, ShapeError
from gradcli.nn import functional
from gradcli.nn.linear_layers import reset_linear
from gradcli.nn.module import Module
from gradcli.nn.parameter import parameter

_MODES = ("zeros", "reflect", "replicate", "circular")
Sizes = int | Sequence[int]


class _Convolution(Module):
    """The base class of convolutions: weight and bias, drawn from U(±1/sqrt(fan_in)), and the kernel settings."""

    dimensions: ClassVar[int]
    transposed: ClassVar[bool] = False
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: Any
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str

    def _begin(
        self,
        channels: tuple[int, int],
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes | str,
        dilation: Sizes,
        output_padding: Sizes,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = channels
        if groups <= 0:
            raise ArgumentError("groups must be a positive integer")
        for name, count in zip(("in_channels", "out_channels"), channels):
            if count % groups:
                raise ArgumentError(f"{name} must be divisible by groups")
        if padding_mode not in _MODES or (self.transposed and padding_mode != "zeros"):
            if self.transposed:
                raise ArgumentError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
            raise ArgumentError(f"padding_mode must be one of {_MODES}, but got padding_mode='{padding_mode}'")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ArgumentError(f"Invalid padding string '{padding}', should be one of 'valid', 'same'")
            if padding == "same" and set(self._sizes(stride)) != {1}:
                raise ArgumentError("padding='same' is not supported for strided convolutions")
        self.kernel_size, self.stride = self._sizes(kernel_size), self._sizes(stride)
        self.padding = padding if isinstance(padding, str) else self._sizes(padding)
        self.dilation, self.output_padding = self._sizes(dilation), self._sizes(output_padding)
        self.groups, self.padding_mode = groups, padding_mode
        first, second = reversed(channels) if not self.transposed else channels
        self.weight = parameter((first, second // groups, *self.kernel_size), dtype=dtype, device=device)
        self.bias = parameter((self.out_channels,), dtype=dtype, device=device) if bias else None
        self.reset_parameters()

    def _sizes(self, given: Sizes) -> tuple[int, ...]:
        """One number for each dimension; a single number is repeated."""
        return (given,) * self.dimensions if isinstance(given, int) else tuple(given)

    def reset_parameters(self) -> None:
        """Draw weight and bias again."""
        reset_linear(self.weight, self.bias)

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}",
            f"padding={self.padding}" if isinstance(self.padding, str) or any(self.padding) else "",
            f"dilation={self.dilation}" if set(self.dilation) != {1} else "",
            f"output_padding={self.output_padding}" if any(self.output_padding) else "",
            f"groups={self.groups}" if self.groups != 1 else "",
            "bias=False" if self.bias is None else "",
            f"padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "",
        ]
        return ", ".join(filter(None, parts))


class _ForwardConvolution(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        channels = (in_channels, out_channels)
        self._begin(
            channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device, dtype
        )  # fmt: skip

    def forward(self, input: Tensor) -> Any:
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = functional.pad(input, self._around(), mode=self.padding_mode), 0
        return self._function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _around(self) -> list[int]:
        """The padding before and after each axis, last axis first, as `functional.pad` takes it."""
        if isinstance(self.padding, str):
            spans = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            pairs = [(span // 2, span - span // 2) if self.padding == "same" else (0, 0) for span in spans]
        else:
            pairs = [(width, width) for width in self.padding]
        return [width for pair in reversed(pairs) for width in pair]

    @property
    def _function(self) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(functional, f"conv{self.dimensions}d")
        return found


class Conv1d(_ForwardConvolution):
    """Convolution of signals (N, C, L); see `functional.conv1d`."""

    dimensions = 1


class Conv2d(_ForwardConvolution):
    """Convolution of images (N, C, H, W); see `functional.conv2d`."""

    dimensions = 2


class Conv3d(_ForwardConvolution):
    """Convolution of volumes (N, C, D, H, W); see `functional.conv3d`."""

    dimensions = 3


class _Transposed(_Convolution):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        channels = (in_channels, out_channels)
        self._begin(
            channels, kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, device, dtype
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Any:
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        function = getattr(functional, f"conv_transpose{self.dimensions}d")
        return function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )  # fmt: skip

    def _extra(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """The output padding that gives the requested output size. Raises ValueError if there is none."""
        wanted = tuple(output_size)[-self.dimensions :]
        least = [
            (length - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1
            for length, stride, padding, dilation, kernel in zip(
                input.shape[-self.dimensions :], self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        most = [size + stride - 1 for size, stride in zip(least, self.stride)]
        if not all(low <= size <= high for low, size, high in zip(least, wanted, most)):
            raise ShapeError(
                f"requested an output size of {list(output_size)}, but valid sizes range from {least} to {most} "
                f"(for an input of {list(input.shape[-self.dimensions :])})"
            )
        return tuple(size - low for size, low in zip(wanted, least))


class ConvTranspose1d(_Transposed):
    """The transpose of `Conv1d`; see `functional.conv_transpose1d`."""

    dimensions = 1


class ConvTranspose2d(_Transposed):
    """The transpose of `Conv2d`; see `functional.conv_transpose2d`."""

    dimensions = 2


class ConvTranspose3d(_Transposed):
    """The transpose of `Conv3d`; see `functional.conv_transpose3d`."""

    dimensions = 3
