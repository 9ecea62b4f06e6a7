"""Learning rate schedules, with the names and behaviour of `torch.optim.lr_scheduler`."""

from gradcli.optim.lr_scheduler.composed import ChainedScheduler, SequentialLR
from gradcli.optim.lr_scheduler.cycles import CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from gradcli.optim.lr_scheduler.multiplicative import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from gradcli.optim.lr_scheduler.plateau import ReduceLROnPlateau
from gradcli.optim.lr_scheduler.scheduler import LRScheduler

# The name of the base class before PyTorch 2.0.
_LRScheduler = LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
