"""Functions of Python functions, with the names and behaviour of `torch.func`."""

from gradcli.calculus.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from gradcli.calculus.mapping import vmap

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap"]
