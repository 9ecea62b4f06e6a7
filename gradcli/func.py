"""Functions of Python functions, with the names and behaviour of `torch.func`, and containers as vectors."""

from gradcli.calculus.flattening import flatten
from gradcli.calculus.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from gradcli.calculus.mapping import vmap

__all__ = ["flatten", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap"]
