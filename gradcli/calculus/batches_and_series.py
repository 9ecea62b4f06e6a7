"""Converts tensors to batches and Taylor series and back, as differentiable operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from gradcli import arrays
from gradcli.autograd.function import Function
from gradcli.autograd.function_node import FunctionNode
from gradcli.autograd.node import Node
from gradcli.autograd.targets import ancestors
from gradcli.autograd.tensor import Tensor
from gradcli.kinds import batch
from gradcli.kinds.jets import Jet
from gradcli.primitives.entries.arithmetic import zeros_like


class _LinearFunction(Function):
    """A Function that only rearranges numbers, so that it accepts batches and series."""

    generate_vmap_rule = takes_series = True

    @classmethod
    def of(cls, *inputs: Any) -> Any:
        """Apply the Function, without recording where no input has a derivative."""
        if any(isinstance(i, Tensor) and (i.requires_grad or i.dual) for i in inputs):
            return cls.apply(*inputs)
        return cls.forward(SimpleNamespace(), *inputs)


class _Rows(_LinearFunction):
    """Convert the rows of a batch to slices along a new first axis."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, nesting: int, size: int) -> Any:
        ctx.nesting, ctx.size = nesting, size
        return Tensor(_unbatched(x.inner, nesting, size))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return batch_of(g, ctx.nesting), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Any:
        return rows_of(tangent, ctx.nesting, ctx.size)


class _Batch(_LinearFunction):
    """Convert the slices along the first axis to the rows of a batch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, nesting: int) -> Any:
        ctx.nesting, ctx.size = nesting, arrays.shape(x)[0]
        return Tensor(_each(x.inner, lambda array: batch.batched(array, nesting)))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return rows_of(g, ctx.nesting, ctx.size), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Any:
        return batch_of(tangent, ctx.nesting)


def batch_of(x: Tensor, nesting: int) -> Tensor:
    """Return the slices of a tensor along its first axis as the rows of a batch."""
    made: Tensor = _Batch.of(x, nesting)
    return made


def rows_of(x: Any, nesting: int, size: int) -> Any:
    """Return the `size` rows of a value along a new first axis, within the graph where it is a Tensor."""
    return _Rows.of(x, nesting, size) if isinstance(x, Tensor) else _unbatched(x, nesting, size)


def _unbatched(x: Any, nesting: int, size: int) -> Any:
    return _each(x, lambda array: batch.unbatched(array, nesting, size))


def _each(x: Any, function: Callable[[Any], Any]) -> Any:
    """Apply `function` to each coefficient of a series, or to an array."""
    return x.mapped(function) if isinstance(x, Jet) else function(x)


class _Series(_LinearFunction):
    """The Taylor series of order 1 of a value and its derivative.

    A cotangent is a series too, and the gradient is coefficient 1 of its product with the series; hence the
    coefficients are exchanged in the backward pass.
    """

    @staticmethod
    def forward(_ctx: Any, x: Tensor, derivative: Tensor) -> Any:
        return Tensor(Jet([x.inner, derivative.inner], 1))

    @staticmethod
    def backward(_ctx: Any, g: Tensor) -> Any:
        return coefficient_of(g, 1), coefficient_of(g, 0)

    @staticmethod
    def jvp(_ctx: Any, x: Tensor, derivative: Tensor) -> Any:
        return series_of(x, derivative)


class _Coefficient(_LinearFunction):
    """The coefficient 0 (value) or 1 (derivative) of a series of order 1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, number: int) -> Any:
        ctx.number = number
        if not isinstance(x.inner, Jet):
            return Tensor(zeros_like(x.inner) if number else x.inner)
        found = x.inner.coefficient(number)
        return Tensor(x.inner.zeros() if found is None else found)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        nothing = zeros_like(g)
        return series_of(g, nothing) if ctx.number else series_of(nothing, g), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Any:
        return coefficient_of(tangent, ctx.number)


def series_of(x: Tensor, derivative: Tensor) -> Tensor:
    """Return a tensor that is a series of order 1, from its value and its derivative of the same shape."""
    made: Tensor = _Series.of(x, derivative)
    return made


def depends_only_on_series(values: Iterable[Tensor]) -> bool:
    """Return whether tensors that are series depend on other tensors only through `series_of`.

    The cotangent of any other tensor would be a series instead of a number.
    """
    nodes = ancestors(*values, past=lambda node: not _is_series(node))
    met = (edge[0] for node in nodes if not _is_series(node) for edge in node.edges if edge is not None)
    return not any(isinstance(target, Tensor) for target in met)


def _is_series(node: Node) -> bool:
    return isinstance(node, FunctionNode) and node.function is _Series


def coefficient_of(x: Tensor, number: int) -> Tensor:
    """Return the value (0) or the derivative (1) of a tensor that is a series of order 1; the derivative of any other
    tensor is 0."""
    made: Tensor = _Coefficient.of(x, number)
    return made
