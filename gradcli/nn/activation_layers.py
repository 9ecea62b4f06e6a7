"""Activation functions and dropout as modules."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.nn import functional
from gradcli.nn.function_modules import REQUIRED, FunctionModule, defaults
from gradcli.nn.module import Module
from gradcli.nn.parameter import parameter


class _InPlace(FunctionModule):
    """An activation that changes its operand in place where `inplace` is true, and then shows that in its text."""

    settings = defaults(inplace=False)

    def extra_repr(self) -> str:
        own = [f"{name}={getattr(self, name)}" for name in self.settings if name != "inplace"]
        return ", ".join([*own, *(["inplace=True"] if self.inplace else [])])


class ReLU(_InPlace):
    """max(x, 0) of each element."""

    function = "relu"


class ReLU6(_InPlace):
    """min(max(x, 0), 6) of each element."""

    function = "relu6"


class ELU(_InPlace):
    """x where it is positive, else alpha*(exp(x) - 1)."""

    function = "elu"
    settings = defaults(alpha=1.0, inplace=False)


class CELU(_InPlace):
    """x where it is positive, else alpha*(exp(x/alpha) - 1)."""

    function = "celu"
    settings = defaults(alpha=1.0, inplace=False)


class SELU(_InPlace):
    """A scaled ELU that keeps normalised inputs normalised."""

    function = "selu"


class LeakyReLU(_InPlace):
    """x where it is positive, else negative_slope*x."""

    function = "leaky_relu"
    settings = defaults(negative_slope=0.01, inplace=False)


class SiLU(_InPlace):
    """x*sigmoid(x)."""

    function = "silu"


class Mish(_InPlace):
    """x*tanh(softplus(x))."""

    function = "mish"


class Hardtanh(_InPlace):
    """x clipped to [min_val, max_val]."""

    function = "hardtanh"
    settings = defaults(min_val=-1.0, max_val=1.0, inplace=False)


class RReLU(_InPlace):
    """x where it is positive, else a*x, with a random number a in training; see `functional.rrelu`."""

    function = "rrelu"
    settings = defaults(lower=1 / 8, upper=1 / 3, inplace=False)

    def forward(self, input: Tensor) -> Any:
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Hardsigmoid(_InPlace):
    """x/6 + 1/2, clipped to [0, 1]."""

    function = "hardsigmoid"


class Hardswish(_InPlace):
    """x*hardsigmoid(x)."""

    function = "hardswish"


class Threshold(_InPlace):
    """x where it is above the threshold, else `value`."""

    function = "threshold"
    settings = defaults(threshold=REQUIRED, value=REQUIRED, inplace=False)


class Sigmoid(FunctionModule):
    """1/(1 + exp(-x)) of each element."""

    function = "sigmoid"


class Tanh(FunctionModule):
    """tanh of each element."""

    function = "tanh"


class LogSigmoid(FunctionModule):
    """log(sigmoid(x)) of each element."""

    function = "logsigmoid"


class Softsign(FunctionModule):
    """x/(1 + abs(x)) of each element."""

    function = "softsign"


class Tanhshrink(FunctionModule):
    """x - tanh(x) of each element."""

    function = "tanhshrink"


class GELU(FunctionModule):
    """x times the standard normal distribution function of x; approximate="tanh" uses the formula with tanh."""

    function = "gelu"
    settings = defaults(approximate="none")

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(FunctionModule):
    """log(1 + exp(beta*x))/beta of each element, and x where beta*x is above the threshold."""

    function = "softplus"
    settings = defaults(beta=1.0, threshold=20.0)


class Softshrink(FunctionModule):
    """x moved towards 0 by lambd, and 0 where abs(x) <= lambd."""

    function = "softshrink"
    settings = defaults(lambd=0.5)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(FunctionModule):
    """x where abs(x) > lambd, else 0."""

    function = "hardshrink"
    settings = defaults(lambd=0.5)

    def extra_repr(self) -> str:
        return str(self.lambd)


class GLU(FunctionModule):
    """a*sigmoid(b) of the halves a and b of an axis."""

    function = "glu"
    settings = defaults(dim=-1)


class Softmax(FunctionModule):
    """exp(x)/sum(exp(x)) along an axis."""

    function = "softmax"
    settings = defaults(dim=None)


class LogSoftmax(FunctionModule):
    """The logarithm of softmax along an axis."""

    function = "log_softmax"
    settings = defaults(dim=None)


class Softmin(FunctionModule):
    """softmax(-x) along an axis."""

    function = "softmin"
    settings = defaults(dim=None)


class Softmax2d(Module):
    """softmax along the channels of images (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Any:
        return functional.softmax(input, -3)


class PReLU(Module):
    """x where it is positive, else weight*x, with one weight or one for each channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = parameter((num_parameters,), init, dtype=dtype, device=device)

    def forward(self, input: Tensor) -> Any:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class _Dropout(FunctionModule):
    """The base class of dropout modules, which are active in training only."""

    settings = defaults(p=0.5, inplace=False)

    def forward(self, input: Tensor) -> Any:
        return getattr(functional, self.function)(input, self.p, self.training, self.inplace)


class Dropout(_Dropout):
    """Dropout: in training, sets each element to 0 with probability p and divides the others by 1 - p."""

    function = "dropout"


class Dropout1d(_Dropout):
    """`Dropout` of whole channels of signals (N, C, L)."""

    function = "dropout1d"


class Dropout2d(_Dropout):
    """`Dropout` of whole channels of images (N, C, H, W)."""

    function = "dropout2d"


class Dropout3d(_Dropout):
    """`Dropout` of whole channels of volumes (N, C, D, H, W)."""

    function = "dropout3d"


class AlphaDropout(_Dropout):
    """`Dropout` for networks with SELU, which preserves mean and variance."""

    function = "alpha_dropout"


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels."""

    function = "feature_alpha_dropout"
