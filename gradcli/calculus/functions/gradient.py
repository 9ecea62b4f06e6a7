"""`grad` with the signature of `torch.autograd.grad`, including batched cotangents."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd import engine
from gradcli.autograd.targets import as_tuple
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.functions.mapping import vmap
from gradcli.errors import ArgumentError, DifferentiationError
from gradcli.primitives.operators import operand

_NOT_BATCHED = (
    "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
    "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch "
    "was detected: grad_output[{}] has a shape of {} and output[{}] has a shape of {}."
)

_ONLY_INPUTS = (
    "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of "
    "the graph, please use torch.autograd.backward."
)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradient of `outputs` (of their sum, weighted by `grad_outputs`) by each of `inputs`, in the shape of
    the input.

    Nothing is accumulated in `.grad`; `only_inputs` has no effect. With `create_graph` the gradients can be
    differentiated again; with `allow_unused` an unused input has the gradient None, and with `materialize_grads` zeros.
    With `is_grads_batched` each of `grad_outputs` has an additional first axis of cotangents, which are propagated
    together; the gradients have that axis too. Raises DifferentiationError where an input or output has no graph, an
    input is unused or a cotangent does not have the shape of its output, and ArgumentError where there are no inputs,
    and for `materialize_grads` with `allow_unused=False`.
    """
    if not only_inputs:
        warnings.warn(_ONLY_INPUTS, FutureWarning, stacklevel=2)

    def found(cotangents: Any) -> tuple[Tensor | None, ...]:
        return engine.grad(
            outputs,
            inputs,
            cotangents,
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )

    return _of_each(found, outputs, grad_outputs) if is_grads_batched else found(grad_outputs)


def _of_each(found: Callable[[Any], tuple[Any, ...]], outputs: Any, grad_outputs: Any) -> tuple[Any, ...]:
    """Apply `found` to the cotangents of each row; None for an input that no cotangent reaches."""
    roots, cotangents = as_tuple(outputs), as_tuple(grad_outputs)
    for i, (root, cotangent) in enumerate(zip(roots, cotangents)):
        shape = arrays.shape(operand(cotangent)) if cotangent is not None else (0, *root.shape)
        if not shape or shape[1:] != root.shape:
            raise DifferentiationError(_NOT_BATCHED.format(i, list(shape), i, list(root.shape)))
    if all(cotangent is None for cotangent in cotangents):
        raise ArgumentError("with is_grads_batched, grad_outputs has the cotangents of each row along a first axis")
    reached: list[bool] = []

    def of_one(*row: Any) -> tuple[Any, ...]:
        gradients = found(row)
        reached[:] = [g is not None for g in gradients]
        return tuple(g for g in gradients if g is not None)

    rows = iter(vmap(of_one, in_dims=tuple(None if c is None else 0 for c in cotangents))(*cotangents))
    return tuple(next(rows) if r else None for r in reached)
