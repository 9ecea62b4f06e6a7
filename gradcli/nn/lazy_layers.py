"""Layers that take the number of their input features from the first input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.nn import convolution_layers, linear_layers, norm_layers
from gradcli.nn.module import Module
from gradcli.nn.parameter import UninitializedParameter


class _Lazy(Module):
    """A layer without the first argument of its class `becomes`, of which it is an instance after its first call.

    Its parameters exist from the beginning, so that an optimizer may be given them, but have no values until then.
    """

    becomes: ClassVar[type[Any]]
    # The axis of the input whose size the layer needs.
    axis: ClassVar[int]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(0, *arguments, **options)  # type: ignore[call-arg]
        self._given = arguments, options
        # Conversions to a dtype or device, for the parameters to be.
        self._conversions: list[Callable[[Tensor], Tensor]] = []
        for name, parameter in self._parameters.items():
            self._parameters[name] = None if parameter is None else UninitializedParameter()

    def has_uninitialized_params(self) -> bool:
        """Return whether the layer has not been called yet; its class has no such method afterwards."""
        return True

    def reset_parameters(self) -> None:
        """Does nothing: no random numbers are drawn before the sizes are known."""

    def forward(self, *inputs: Any) -> Any:
        self._initialize(inputs[0].shape[self.axis])
        return self.forward(*inputs)

    def _initialize(self, size: int) -> None:
        """Become the layer for inputs of this size; the parameters stay the same objects."""
        waiting = {name: parameter for name, parameter in self._parameters.items() if parameter is not None}
        (arguments, options), conversions = self._given, self._conversions
        del self._given, self._conversions
        self.__class__ = self.becomes
        self._parameters.clear()
        self._buffers.clear()
        self.__init__(size, *arguments, **options)  # type: ignore[misc]
        for name, parameter in waiting.items():
            parameter.materialize(self._parameters[name])
            self._parameters[name] = parameter
        for change in conversions:
            self._convert(change)

    def _convert(self, change: Callable[[Tensor], Tensor]) -> None:
        self._conversions.append(change)


def _lazy(layer: type[Any], axis: int) -> Any:
    """The lazy class of a class of layers."""
    doc = f"A `{layer.__name__}` that takes its first argument from the size of the first input."
    names = {"becomes": layer, "axis": axis, "__doc__": doc, "__module__": __name__}
    return type(f"Lazy{layer.__name__}", (_Lazy, layer), names)


LazyLinear = _lazy(linear_layers.Linear, -1)
LazyConv1d = _lazy(convolution_layers.Conv1d, -2)
LazyConv2d = _lazy(convolution_layers.Conv2d, -3)
LazyConv3d = _lazy(convolution_layers.Conv3d, -4)
LazyConvTranspose1d = _lazy(convolution_layers.ConvTranspose1d, -2)
LazyConvTranspose2d = _lazy(convolution_layers.ConvTranspose2d, -3)
LazyConvTranspose3d = _lazy(convolution_layers.ConvTranspose3d, -4)
LazyBatchNorm1d = _lazy(norm_layers.BatchNorm1d, 1)
LazyBatchNorm2d = _lazy(norm_layers.BatchNorm2d, 1)
LazyBatchNorm3d = _lazy(norm_layers.BatchNorm3d, 1)
LazyInstanceNorm1d = _lazy(norm_layers.InstanceNorm1d, -2)
LazyInstanceNorm2d = _lazy(norm_layers.InstanceNorm2d, -3)
LazyInstanceNorm3d = _lazy(norm_layers.InstanceNorm3d, -4)
