"""Weights computed before each call of a module by a hook: the names `torch.nn.utils` has beside parametrizations."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.hooks import HookHandle
from gradcli.autograd.modes import no_grad
from gradcli.errors import ArgumentError
from gradcli.nn.module import Module
from gradcli.nn.parameter import Parameter
from gradcli.nn.utils.parametrizations import (
    as_rows,
    axis_of_outputs,
    improve,
    norms_except,
    over_singular_value,
    random_direction,
    with_norms,
)


class WeightHook:
    """A hook that computes the tensor `name` of a module before each call; `names` are the tensors that it reads."""

    handle: HookHandle

    def __init__(self, name: str, names: list[str]) -> None:
        self.name, self.names = name, names

    def compute(self, module: Any) -> Any:
        raise NotImplementedError

    def __call__(self, module: Any, _arguments: Any) -> None:
        setattr(module, self.name, self.compute(module))

    def begin(self, module: Module, weight: Any) -> Module:
        setattr(module, self.name, weight)
        self.handle = module.register_forward_pre_hook(self)
        return module

    def end(self, module: Module) -> Module:
        with no_grad():
            weight = self.compute(module)
        for name in (self.name, *self.names):
            delattr(module, name)
        module.register_parameter(self.name, Parameter(weight))
        self.handle.remove()
        return module


class _WeightNormHook(WeightHook):
    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name, [f"{name}_g", f"{name}_v"])
        self.dim = dim

    def compute(self, module: Any) -> Any:
        norms, direction = (getattr(module, name) for name in self.names)
        return with_norms(norms, direction, self.dim)


class _SpectralNormHook(WeightHook):
    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__(name, [f"{name}_orig", f"{name}_u", f"{name}_v"])
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps

    def __call__(self, module: Any, arguments: Any) -> None:
        if module.training:
            weight, left, right = (getattr(module, name) for name in self.names)
            improve(right, left, as_rows(weight.detach(), self.dim).T, self.n_power_iterations, self.eps)
        super().__call__(module, arguments)

    def compute(self, module: Any) -> Any:
        weight, left, right = (getattr(module, name) for name in self.names)
        return over_singular_value(weight, as_rows(weight, self.dim), left, right)


def _taken(module: Module, name: str) -> Any:
    """The parameter of a module, removed from it."""
    weight = getattr(module, name)
    delattr(module, name)
    return weight


def _removed(module: Module, kind: type[WeightHook], name: str, what: str) -> Module:
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, kind) and hook.name == name:
            return hook.end(module)
    raise ArgumentError(f"{what} of '{name}' not found in {module}")


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Compute a weight from the parameters `weight_g`, its norms, and `weight_v`, its directions."""
    hook, weight = _WeightNormHook(name, dim), _taken(module, name)
    with no_grad():
        values = norms_except(weight, dim), weight.clone()
    for part, value in zip(hook.names, values):
        module.register_parameter(part, Parameter(value))
    return hook.begin(module, hook.compute(module))


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight a parameter again. Raises ArgumentError if it is not normalised."""
    return _removed(module, _WeightNormHook, name, "weight_norm")


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Compute a weight from the parameter `weight_orig`, divided by its largest singular value; the buffers `weight_u`
    and `weight_v` follow its singular vectors.

    Raises ArgumentError for fewer than one power iteration.
    """
    if n_power_iterations <= 0:
        raise ArgumentError(
            f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
        )
    hook = _SpectralNormHook(name, n_power_iterations, axis_of_outputs(module) if dim is None else dim, eps)
    weight = _taken(module, name)
    matrix = as_rows(weight.detach(), hook.dim)
    original, *vectors = hook.names
    module.register_parameter(original, weight)
    for vector, size in zip(vectors, matrix.shape):
        module.register_buffer(vector, random_direction(matrix, size, eps))
    return hook.begin(module, weight.detach())


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight a parameter again. Raises ArgumentError if it is not normalised."""
    return _removed(module, _SpectralNormHook, name, "spectral_norm")
