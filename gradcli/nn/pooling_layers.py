"""Max and average pooling layers, in one, two and three dimensions."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.nn.function_modules import REQUIRED, FunctionModule, defaults


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
