"""Derivatives of Python functions at a point, with the names of `torch.autograd.functional`."""

from gradcli.calculus.functions.point_derivatives import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
