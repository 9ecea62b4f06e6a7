"""How is a gradient computed? Reverse-mode automatic differentiation, under the names of `torch.autograd`.

Begin with `tensor`, which records operations as nodes, and `engine`, the backward pass over them.
"""

from __future__ import annotations

# Nothing is imported here: importing one module of the package must not load the others.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.type_hints import Any

# The modules of the public names, which are imported at first use.
_HOMES = {
    "Function": "gradcli.autograd.function",
    "Variable": "gradcli.autograd.creation.factory",
    "SavedTensor": "gradcli.autograd.saved_values",
    "backward": "gradcli.autograd.engine",
    "detect_anomaly": "gradcli.autograd.anomaly",
    "enable_grad": "gradcli.autograd.modes",
    "grad": "gradcli.calculus.functions.gradient",
    "gradcheck": "gradcli.calculus.checks.pytorch_gradcheck",
    "gradgradcheck": "gradcli.calculus.checks.pytorch_gradcheck",
    "inference_mode": "gradcli.autograd.modes",
    "is_multithreading_enabled": "gradcli.autograd.modes",
    "no_grad": "gradcli.autograd.modes",
    "set_detect_anomaly": "gradcli.autograd.anomaly",
    "set_grad_enabled": "gradcli.autograd.modes",
    "set_multithreading_enabled": "gradcli.autograd.modes",
}
# The modules of this package that PyTorch has under the same names.
_MODULES = ("forward_ad", "function", "functional", "grad_mode", "graph")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        # Cached, so that later accesses do not call this function.
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
    if name in _MODULES:
        return import_module(f"gradcli.autograd.{name}")
    raise AttributeError(f"module 'gradcli.autograd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*_HOMES, *_MODULES})


if __name__ != "gradcli.autograd":
    from gradcli.package_aliases import alias_package

    alias_package(__name__, "gradcli.autograd", _MODULES)
