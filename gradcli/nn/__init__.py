"""Networks: parameters in modules, with the names and behaviour of the few of `torch.nn` that stand here."""

from gradcli.nn import functional
from gradcli.nn.layers import Linear, ModuleList, MSELoss, ReLU, Sequential, Sigmoid, Tanh
from gradcli.nn.module import Module
from gradcli.nn.parameter import Parameter

__all__ = [
    "Linear",
    "MSELoss",
    "Module",
    "ModuleList",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Tanh",
    "functional",
]
