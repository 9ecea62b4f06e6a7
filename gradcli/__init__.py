"""Exact derivatives of tensor expressions: an autograd with PyTorch's semantics, and a language for it.

Every function of the language is a function of this module: `gradcli.log(x)`, `gradcli.sum(x, axis=0)`.
"""

from __future__ import annotations

# Nothing is imported here, so that `import gradcli` costs nothing and the command can guard its start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.autograd.factory import from_dlpack, is_inference, tensor
    from gradcli.autograd.function import Function
    from gradcli.autograd.modes import (
        enable_grad,
        inference_mode,
        is_grad_enabled,
        is_inference_mode_enabled,
        no_grad,
        set_grad_enabled,
    )
    from gradcli.autograd.tensor import Tensor
    from gradcli.calculus.functional import hessian, jacobian
    from gradcli.calculus.gradient import grad
    from gradcli.errors import AccuracyWarning, GradcliError
    from gradcli.models.expansions.power_series import series
    from gradcli.models.fitting.fits import fit
    from gradcli.models.optima.minima import minimize
    from gradcli.models.plotting.pictures import plot
    from gradcli.models.uncertainty.uncertainties import propagate
    from gradcli.primitives.pasting import c_, r_
    from gradcli.run.check import gradcheck
    from gradcli.run.compiling import compile
    from gradcli.run.programs import CompiledProgram
    from gradcli.utils.checkpoint import checkpoint

__version__ = "0.1.0"

# Loaded when first asked for.
_HOMES = {
    "AccuracyWarning": "gradcli.errors",
    "CompiledProgram": "gradcli.run.programs",
    "Function": "gradcli.autograd.function",
    "GradcliError": "gradcli.errors",
    "Tensor": "gradcli.autograd.tensor",
    "c_": "gradcli.primitives.pasting",
    "checkpoint": "gradcli.utils.checkpoint",
    "compile": "gradcli.run.compiling",
    "enable_grad": "gradcli.autograd.modes",
    "fit": "gradcli.models.fitting.fits",
    "from_dlpack": "gradcli.autograd.factory",
    "grad": "gradcli.calculus.gradient",
    "gradcheck": "gradcli.run.check",
    "hessian": "gradcli.calculus.functional",
    "inference_mode": "gradcli.autograd.modes",
    "is_grad_enabled": "gradcli.autograd.modes",
    "is_inference": "gradcli.autograd.factory",
    "is_inference_mode_enabled": "gradcli.autograd.modes",
    "jacobian": "gradcli.calculus.functional",
    "minimize": "gradcli.models.optima.minima",
    "no_grad": "gradcli.autograd.modes",
    "plot": "gradcli.models.plotting.pictures",
    "propagate": "gradcli.models.uncertainty.uncertainties",
    "r_": "gradcli.primitives.pasting",
    "series": "gradcli.models.expansions.power_series",
    "set_grad_enabled": "gradcli.autograd.modes",
    "tensor": "gradcli.autograd.factory",
}

_MODULES = ("autograd", "func", "linalg", "models", "nn", "optim", "utils")

__all__ = [
    "AccuracyWarning",
    "CompiledProgram",
    "Function",
    "GradcliError",
    "Tensor",
    "c_",
    "checkpoint",
    "compile",
    "enable_grad",
    "fit",
    "from_dlpack",
    "grad",
    "gradcheck",
    "hessian",
    "inference_mode",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "jacobian",
    "minimize",
    "no_grad",
    "plot",
    "propagate",
    "r_",
    "series",
    "set_grad_enabled",
    "tensor",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module
    from importlib.machinery import PathFinder

    if name in _HOMES:
        # Kept here, where it is found from now on.
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
    if name in _MODULES:
        return import_module(f"gradcli.{name}")
    # A part of the package that is not loaded yet: the import statement that asks here finds it.
    reason = ""
    if not name.startswith("_") and PathFinder.find_spec(f"{__name__}.{name}", __path__) is None:
        from gradcli.primitives import table

        found = table.find(name) or table.shared(name)
        if found is not None:
            globals()[name] = found
            return found
        reason = table.beyond(name)
    raise AttributeError(f"module 'gradcli' has no attribute {name!r}{reason}")


def __dir__() -> list[str]:
    from gradcli.primitives import table

    return sorted({*__all__, *table.names()})
