"""The modules themselves: functions of the language with what they need to know."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.nn.module import Module
from gradcli.nn.parameter import Parameter
from gradcli.primitives.equations import linear
from gradcli.primitives.exponential import sigmoid
from gradcli.primitives.losses import mse_loss
from gradcli.primitives.special import relu
from gradcli.primitives.trigonometric import tanh


class Linear(Module):
    """`x @ weight.T + bias`, for `x` of shape (…, in_features).

    The parameters are drawn evenly from ±1/sqrt(in_features) by Python's `random`: after `random.seed(…)` they are the
    same again.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features, self.out_features = in_features, out_features
        bound = 1 / math.sqrt(in_features) if in_features else 0.0

        def drawn(count: int) -> list[float]:
            return [random.uniform(-bound, bound) for _ in range(count)]

        self.weight = Parameter([drawn(in_features) for _ in range(out_features)])
        self.bias = Parameter(drawn(out_features)) if bias else None

    def forward(self, x: Tensor) -> Any:
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class ModuleList(Module):
    """A list of modules, which are named by their numbers."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> None:
        setattr(self, str(len(self)), module)

    def __len__(self) -> int:
        return sum(isinstance(value, Module) for value in vars(self).values())

    def __iter__(self) -> Iterator[Module]:
        return (value for value in vars(self).values() if isinstance(value, Module))

    def __getitem__(self, place: int) -> Module:
        found: list[Module] = [*self]
        return found[place]


class Sequential(ModuleList):
    """Modules one after the other, each a function of what the one before gives."""

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    def forward(self, x: Any) -> Any:
        for module in self:
            x = module(x)
        return x


class ReLU(Module):
    """max(x, 0) of each element."""

    def forward(self, x: Tensor) -> Any:
        return relu(x)


class Tanh(Module):
    """tanh of each element."""

    def forward(self, x: Tensor) -> Any:
        return tanh(x)


class Sigmoid(Module):
    """1/(1 + exp(-x)) of each element."""

    def forward(self, x: Tensor) -> Any:
        return sigmoid(x)


class MSELoss(Module):
    """The mean of squared differences; with `reduction` "sum" their sum, with "none" each."""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Tensor, target: Tensor) -> Any:
        return mse_loss(x, target, reduction=self.reduction)
