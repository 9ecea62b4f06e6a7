"""Pruning of networks: chosen elements of a parameter are held at 0, by a mask, as in `torch.nn.utils.prune`.

The parameter `weight` becomes `weight_orig`, the mask is the buffer `weight_mask`, and their product is computed before
each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.autograd.creation_functions import ones_like
from gradcli.autograd.modes import no_grad
from gradcli.autograd.random_tensors import rand_like
from gradcli.errors import ArgumentError, CallError
from gradcli.nn.module import Module
from gradcli.nn.utils.weight_hooks import WeightHook
from gradcli.primitives.entries.arithmetic import absolute
from gradcli.primitives.entries.order_statistics import topk


class _Pruning(WeightHook):
    def __init__(self, name: str) -> None:
        super().__init__(name, [f"{name}_orig", f"{name}_mask"])

    def compute(self, module: Any) -> Any:
        weight, mask = (getattr(module, name) for name in self.names)
        return mask.to(weight.dtype) * weight

    def end(self, module: Module) -> Module:
        # The parameter stays the same object, so that optimizers go on with it.
        parameter = getattr(module, self.names[0])
        with no_grad():
            values = self.compute(module)
        for name in (self.name, *self.names):
            delattr(module, name)
        parameter.data = values
        module.register_parameter(self.name, parameter)
        self.handle.remove()
        return module


def _pruning_of(module: Module, name: str) -> _Pruning | None:
    hooks = (hook for hook in module._forward_pre_hooks.values() if isinstance(hook, _Pruning))
    return next((hook for hook in hooks if hook.name == name), None)


def _pruned(module: Module, name: str, amount: Any, scores: Any, lowest: Callable[[Any, int], Any]) -> Module:
    """Prune what `lowest` chooses: the positions of a number of elements, by the scores of all that are left."""
    hook, weight = _pruning_of(module, name), getattr(module, name)
    scores = weight if scores is None else scores
    if tuple(scores.shape) != tuple(weight.shape):
        raise ArgumentError(
            f"importance_scores should have the same shape as parameter {name} of {module}, got {list(scores.shape)} "
            f"vs {list(weight.shape)}"
        )
    with no_grad():
        mask = ones_like(weight.detach()) if hook is None else getattr(module, f"{name}_mask").clone()
        left = scores.detach()[mask == 1]
        kept = ones_like(left)
        kept[lowest(left, _number_of(amount, left.numel()))] = 0
        mask[mask == 1] = kept
    if hook is None:
        hook = _Pruning(name)
        delattr(module, name)
        original, buffer = hook.names
        module.register_parameter(original, weight)
        module.register_buffer(buffer, mask)
        return hook.begin(module, hook.compute(module))
    module.register_buffer(f"{name}_mask", mask)
    hook(module, ())
    return module


def _number_of(amount: Any, size: int) -> int:
    """How many of `size` elements an amount is: a number of them, or a fraction from 0 to 1."""
    if not isinstance(amount, (int, float)):
        raise CallError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (isinstance(amount, float) and amount > 1):
        raise ArgumentError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
    count = amount if isinstance(amount, int) else round(amount * size)
    if count > size:
        raise ArgumentError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return count


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Any = None) -> Module:
    """Prune the elements of the parameter `name` whose absolute values, or those of `importance_scores`, are least.

    `amount` is the number of elements, or as a float the fraction of those that are not pruned yet. Raises ArgumentError
    for an amount that there is not, and for scores of another shape.
    """
    return _pruned(
        module, name, amount, importance_scores,
        lambda scores, count: topk(absolute(scores), count, largest=False).indices,
    )  # fmt: skip


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune random elements of the parameter `name`: a number of them, or as a float the fraction of those that are not
    pruned yet. Raises ArgumentError for an amount that there is not."""
    return _pruned(module, name, amount, None, lambda scores, count: topk(rand_like(scores), count).indices)


def remove(module: Module, name: str) -> Module:
    """Make the pruned tensor a parameter again, with zeros where it is pruned. Raises ArgumentError if it is not
    pruned."""
    hook = _pruning_of(module, name)
    if hook is None:
        raise ArgumentError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    return hook.end(module)


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module or of a module in it is pruned."""
    return any(
        isinstance(hook, _Pruning) for _, part in module.named_modules() for hook in part._forward_pre_hooks.values()
    )
