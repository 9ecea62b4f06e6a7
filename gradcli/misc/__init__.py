"""The contents of `autograd.misc`: flattening of containers to vectors, optimizers, and fixed points."""

from gradcli.misc import fixed_points, optimizers
from gradcli.misc.flatten import flatten

__all__ = ["fixed_points", "flatten", "optimizers"]
