"""Layers that pad, resize and rearrange signals, images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.nn import functional
from gradcli.nn.function_modules import REQUIRED, FunctionModule, defaults
from gradcli.nn.module import Module


class _Pad(Module):
    """The base class of padding layers: one padding for all ends, or a list with one for each, last axis first."""

    dimensions: ClassVar[int]
    mode: ClassVar[str] = "constant"
    value: float = 0.0

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.dimensions) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Any:
        return functional.pad(input, self.padding, self.mode, self.value if self.mode == "constant" else None)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad):
    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Pads signals with a value."""

    dimensions = 1


class ConstantPad2d(_ConstantPad):
    """Pads images with a value."""

    dimensions = 2


class ConstantPad3d(_ConstantPad):
    """Pads volumes with a value."""

    dimensions = 3


class ZeroPad1d(_Pad):
    """Pads signals with zeros."""

    dimensions = 1


class ZeroPad2d(_Pad):
    """Pads images with zeros."""

    dimensions = 2


class ZeroPad3d(_Pad):
    """Pads volumes with zeros."""

    dimensions = 3


class ReflectionPad1d(_Pad):
    """Pads signals by reflection at their ends."""

    dimensions, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Pads images by reflection at their edges."""

    dimensions, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Pads volumes by reflection at their faces."""

    dimensions, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Pads signals by repeating their end elements."""

    dimensions, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Pads images by repeating their edge elements."""

    dimensions, mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Pads volumes by repeating their face elements."""

    dimensions, mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Pads signals periodically."""

    dimensions, mode = 1, "circular"


class CircularPad2d(_Pad):
    """Pads images periodically."""

    dimensions, mode = 2, "circular"


class CircularPad3d(_Pad):
    """Pads volumes periodically."""

    dimensions, mode = 3, "circular"


class Upsample(FunctionModule):
    """Resizes to a size or by a factor; see `functional.interpolate`."""

    function = "interpolate"
    settings = defaults(size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None)

    def set(self, name: str, value: Any) -> None:
        if name == "scale_factor" and value is not None:
            value = tuple(map(float, value)) if isinstance(value, (tuple, list)) else float(value)
        super().set(name, value)

    def extra_repr(self) -> str:
        first = "size" if self.scale_factor is None else "scale_factor"
        return f"{first}={getattr(self, first)}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resizes images by nearest-neighbour interpolation."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """Resizes images by bilinear interpolation with aligned corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(FunctionModule):
    """Rearranges channels to the pixels of a larger image: (C*r*r, H, W) to (C, H*r, W*r)."""

    function = "pixel_shuffle"
    settings = defaults(upscale_factor=REQUIRED)


class PixelUnshuffle(FunctionModule):
    """Rearranges pixels to the channels of a smaller image; the inverse of `PixelShuffle`."""

    function = "pixel_unshuffle"
    settings = defaults(downscale_factor=REQUIRED)


class ChannelShuffle(FunctionModule):
    """Interleaves the channels of groups."""

    function = "channel_shuffle"
    settings = defaults(groups=REQUIRED)


class Unfold(FunctionModule):
    """Extracts windows of images as columns."""

    function = "unfold"
    settings = defaults(kernel_size=REQUIRED, dilation=1, padding=0, stride=1)
    shown = ("kernel_size", "dilation", "padding", "stride")


class Fold(FunctionModule):
    """Assembles images from columns, summing overlapping windows; the adjoint of `Unfold`."""

    function = "fold"
    settings = defaults(output_size=REQUIRED, kernel_size=REQUIRED, dilation=1, padding=0, stride=1)
    shown = ("output_size", "kernel_size", "dilation", "padding", "stride")
