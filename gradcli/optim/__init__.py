"""Optimizers of parameters by their gradients, with the names, arguments and behaviour of `torch.optim`."""

from gradcli.optim import lr_scheduler, swa_utils
from gradcli.optim.adafactor import Adafactor
from gradcli.optim.adagrad import Adadelta, Adagrad
from gradcli.optim.adam import Adam, AdamW
from gradcli.optim.adam_variants import Adamax, NAdam, RAdam
from gradcli.optim.asgd import ASGD
from gradcli.optim.lbfgs import LBFGS
from gradcli.optim.optimizer import Optimizer
from gradcli.optim.rmsprop import RMSprop
from gradcli.optim.rprop import Rprop
from gradcli.optim.sgd import SGD

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]

if __name__ != "gradcli.optim":
    from gradcli.package_aliases import alias_package

    alias_package(__name__, "gradcli.optim")
