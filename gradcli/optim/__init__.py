"""Steps that fit parameters by their gradients, with the names, arguments and behaviour of `torch.optim`."""

from gradcli.optim.adam import Adam, AdamW
from gradcli.optim.lbfgs import LBFGS
from gradcli.optim.optimizer import Optimizer
from gradcli.optim.rmsprop import RMSprop
from gradcli.optim.sgd import SGD

__all__ = ["LBFGS", "SGD", "Adam", "AdamW", "Optimizer", "RMSprop"]
