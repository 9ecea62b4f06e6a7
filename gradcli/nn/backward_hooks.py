"""Calls a module's backward hooks with the gradients of its outputs and inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.autograd.function import Function
from gradcli.autograd.hooks import Hooks
from gradcli.autograd.tensor import Tensor

Gradients = tuple[Any, ...]


class _Through(Function):
    """The identity of tensors; in backward their gradients pass through `show`, which may replace them."""

    @staticmethod
    def forward(ctx: Any, show: Callable[[Gradients], Gradients], *tensors: Tensor) -> Any:
        ctx.show = show
        return tuple(x.view_as(x) for x in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, *ctx.show(grads)


class BackwardCall:
    """One call of a module: keeps the gradients of its outputs until those of its inputs are known, then calls the
    hooks."""

    def __init__(self, module: Any, before: Hooks, after: Hooks) -> None:
        """`before` are called with the gradients of the outputs, `after` with those of the inputs too."""
        self._module, self._before, self._after = module, [*before.values()], [*after.values()]
        self._of_results: Gradients = ()
        self._has_arguments = False
        self._count = 0

    def arguments(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of the call, with tensors that require grad passed through `_Through`."""
        self._count = len(given)
        self._has_arguments = any(isinstance(x, Tensor) and x.requires_grad for x in given)
        return tuple(_through_hooks(given, self._show_arguments)) if self._has_arguments else given

    def results(self, found: Any) -> Any:
        """The results of the call, with tensors passed through `_Through`."""
        together = found if isinstance(found, tuple) else (found,)
        passed = tuple(_through_hooks(together, self._show_results))
        return passed if isinstance(found, tuple) else passed[0]

    def _show_results(self, gradients: Gradients) -> Gradients:
        for hook in self._before:
            changed = hook(self._module, gradients)
            if changed is not None:
                gradients = changed if isinstance(changed, tuple) else (changed,)
        self._of_results = gradients
        if not self._has_arguments:
            self._call((None,) * self._count)
        return gradients

    def _show_arguments(self, gradients: Gradients) -> Gradients:
        return self._call(gradients)

    def _call(self, gradients: Gradients) -> Gradients:
        for hook in self._after:
            changed = hook(self._module, gradients, self._of_results)
            if changed is not None:
                gradients = changed if isinstance(changed, tuple) else (changed,)
        return gradients


def _through_hooks(values: Sequence[Any], show: Callable[[Gradients], Gradients]) -> list[Any]:
    """Values with their tensors passed through `_Through`; `show` gets a gradient for each value, None for
    non-tensors."""
    places = [place for place, value in enumerate(values) if isinstance(value, Tensor)]

    def show_all(gradients: Gradients) -> Gradients:
        whole: list[Any] = [None] * len(values)
        for place, gradient in zip(places, gradients):
            whole[place] = gradient
        shown = show(tuple(whole))
        return tuple(shown[place] for place in places)

    passed = [*values]
    for place, tensor in zip(places, _Through.apply(show_all, *(values[place] for place in places))):
        passed[place] = tensor
    return passed
