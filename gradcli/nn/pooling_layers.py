"""Max, average and power-mean pooling layers, and the inverse of max pooling, in one, two and three dimensions."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.nn import functional
from gradcli.nn.function_modules import REQUIRED, FunctionModule, defaults
from gradcli.nn.module import Module


class _Pool(FunctionModule):
    """The base class of layers over windows, which lie side by side unless there is a stride."""

    def set(self, name: str, value: Any) -> None:
        super().set(name, self.kernel_size if name == "stride" and value is None else value)


class _MaxPool(_Pool):
    settings = defaults(kernel_size=REQUIRED, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False)
    shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")


class MaxPool1d(_MaxPool):
    """The largest element of each window; see `functional.max_pool1d`."""

    function = "max_pool1d"


class MaxPool2d(_MaxPool):
    """The largest element of each window; see `functional.max_pool2d`."""

    function = "max_pool2d"


class MaxPool3d(_MaxPool):
    """The largest element of each window; see `functional.max_pool3d`."""

    function = "max_pool3d"


class _AvgPool(_Pool):
    settings = defaults(
        kernel_size=REQUIRED, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    )
    shown: ClassVar[tuple[str, ...]] = ("kernel_size", "stride", "padding")


class AvgPool1d(_AvgPool):
    """The mean of each window; see `functional.avg_pool1d`."""

    function = "avg_pool1d"
    settings = defaults(**{name: value for name, value in _AvgPool.settings.items() if name != "divisor_override"})

    def set(self, name: str, value: Any) -> None:
        super().set(name, (value,) if type(value) is int and name in self.shown else value)


class AvgPool2d(_AvgPool):
    """The mean of each window; see `functional.avg_pool2d`."""

    function = "avg_pool2d"


class AvgPool3d(_AvgPool):
    """The mean of each window; see `functional.avg_pool3d`."""

    function = "avg_pool3d"


class _AdaptivePool(FunctionModule):
    settings = defaults(output_size=REQUIRED)


class AdaptiveAvgPool1d(_AdaptivePool):
    """The means of windows chosen to give `output_size`; see `functional.adaptive_avg_pool1d`."""

    function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptivePool):
    """The means of windows chosen to give `output_size`; see `functional.adaptive_avg_pool2d`."""

    function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptivePool):
    """The means of windows chosen to give `output_size`; see `functional.adaptive_avg_pool3d`."""

    function = "adaptive_avg_pool3d"


class _AdaptiveMaxPool(FunctionModule):
    settings = defaults(output_size=REQUIRED, return_indices=False)
    shown = ("output_size",)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of windows chosen to give `output_size`; see `functional.adaptive_max_pool1d`."""

    function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of windows chosen to give `output_size`; see `functional.adaptive_max_pool2d`."""

    function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of windows chosen to give `output_size`; see `functional.adaptive_max_pool3d`."""

    function = "adaptive_max_pool3d"


class _LPPool(FunctionModule):
    settings = defaults(norm_type=REQUIRED, kernel_size=REQUIRED, stride=None, ceil_mode=False)


class LPPool1d(_LPPool):
    """The norm of order `norm_type` of each window; see `functional.lp_pool1d`."""

    function = "lp_pool1d"


class LPPool2d(_LPPool):
    """The norm of order `norm_type` of each window; see `functional.lp_pool2d`."""

    function = "lp_pool2d"


class LPPool3d(_LPPool):
    """The norm of order `norm_type` of each window; see `functional.lp_pool3d`."""

    function = "lp_pool3d"


class _MaxUnpool(Module):
    """The base class of layers that put elements back at the positions where max pooling found them, among zeros."""

    function: ClassVar[str]
    axes: ClassVar[int]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = (
            (value,) * self.axes if type(value) is int else tuple(value)
            for value in (kernel_size, kernel_size if stride is None else stride, padding)
        )

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        unpool = getattr(functional, self.function)
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """The inverse of `MaxPool1d`; see `functional.max_unpool1d`."""

    function, axes = "max_unpool1d", 1


class MaxUnpool2d(_MaxUnpool):
    """The inverse of `MaxPool2d`; see `functional.max_unpool2d`."""

    function, axes = "max_unpool2d", 2


class MaxUnpool3d(_MaxUnpool):
    """The inverse of `MaxPool3d`; see `functional.max_unpool3d`."""

    function, axes = "max_unpool3d", 3
