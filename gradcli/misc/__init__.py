"""What `autograd.misc` has: containers as vectors, and optimizers of functions of them."""

from gradcli.misc import fixed_points, optimizers
from gradcli.misc.flatten import flatten

__all__ = ["fixed_points", "flatten", "optimizers"]
