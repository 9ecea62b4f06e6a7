"""The re-entrant checkpoint: a Function whose backward records its forward again and differentiates that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.autograd.engine import backward, current_pass
from gradcli.autograd.function import Function
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CheckpointError

_INCOMPATIBLE = (
    "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
    ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing "
    "the `inputs` argument."
)
_UNNECESSARY = "none of output has requires_grad=True, this checkpoint() is not necessary"


class ReentrantCheckpoint(Function):
    """A function that keeps only its arguments for backward."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], *args: Any) -> Any:
        ctx.function = function
        # Arguments that are not tensors are kept at their positions.
        ctx.args = [None if isinstance(x, Tensor) else x for x in args]
        ctx.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*(x for x in args if isinstance(x, Tensor)))
        return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        running = current_pass.get()
        if running is None or not running.accumulate or running.targets is not None:
            raise CheckpointError(_INCOMPATIBLE)
        args = list(ctx.args)
        for place, kept in zip(ctx.places, ctx.saved_tensors):
            args[place] = kept.detach().requires_grad_(kept.requires_grad)
        with enable_grad():
            returned = ctx.function(*args)
        outputs = returned if isinstance(returned, tuple) else (returned,)
        wanted = [(y, g) for y, g in zip(outputs, grads) if isinstance(y, Tensor) and y.requires_grad]
        if not wanted:
            raise CheckpointError(_UNNECESSARY)
        backward([y for y, _ in wanted], [g for _, g in wanted])
        return None, *(x.grad if isinstance(x, Tensor) else None for x in args)
