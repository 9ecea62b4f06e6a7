"""Python functions with user-defined derivative rules, whose arguments and results may be containers of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.engine import grad
from gradcli.autograd.function import Function
from gradcli.autograd.modes import enable_grad, grad_enabled, set_grad_enabled
from gradcli.autograd.node import all_conjugated, conjugated
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import zeros
from gradcli.calculus.functions import pytrees
from gradcli.calculus.functions.function_calls import tensors_in
from gradcli.calculus.functions.mapping import as_tensor
from gradcli.errors import DifferentiationError

_FROM_OUTSIDE = "a function with a derivative of its own reads tensors from outside that require grad"


class Rule:
    """A function call with a user-defined vjp.

    `run` receives the arguments without their graph, and returns the value. `pull` receives the arguments, the value
    and the cotangents in the structure of the value; where the derivative is differentiated itself, the arguments and
    the value are within the graph. It returns a cotangent for each argument, in its structure, or None for zero.
    Cotangents of complex numbers are those of JAX and HIPS autograd, see `gradcli.autograd.node`.
    """

    def __init__(self, run: Callable[..., Any], pull: Callable[..., Sequence[Any]], arguments: Sequence[Any]) -> None:
        self.run, self.pull = run, pull
        self.arguments = tuple(arguments)
        self.value: Any = None
        self.recorded = True

    def computed(self, given: Sequence[Any]) -> Sequence[Tensor]:
        """Return the tensors in the value for arguments with the leaves `given`.

        Raises DifferentiationError where the value depends on outer tensors, whose gradients would be lost.
        """
        with set_grad_enabled(self.recorded):
            self.value = self.run(*pytrees.unflatten(self.arguments, given))
        found = [as_tensor(y) for y in pytrees.leaves(self.value)]
        if any(y.requires_grad for y in found):
            raise DifferentiationError(_FROM_OUTSIDE, hint="give it those tensors as arguments")
        # Wrap the outputs, as an argument may be returned unchanged.
        return tuple(Tensor(y.inner) for y in found)

    def applied(self, own_rows: bool = False) -> Any:
        """Return the value, recorded as one operation. With `own_rows`, one call computes all rows of a batch."""
        function = BatchedCustomRule if own_rows else CustomRule
        self.recorded = grad_enabled.get()
        outputs = function.apply(self, *pytrees.leaves(self.arguments))
        return pytrees.unflatten(self.value, outputs)


class CustomRule(Function):
    """A call with a user-defined rule as an autograd function."""

    @staticmethod
    def forward(ctx: Any, rule: Rule, *given: Any) -> Any:
        bare = [x.detach() if isinstance(x, Tensor) else x for x in given]
        outputs = rule.computed(bare)
        ctx.rule, ctx.given = rule, [None if isinstance(x, Tensor) else x for x in given]
        ctx.places = [i for i, x in enumerate(given) if isinstance(x, Tensor)]
        ctx.save_for_backward(*(given[i] for i in ctx.places), *outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        rule, saved, again = ctx.rule, ctx.saved_tensors, grad_enabled.get()
        if not again:
            saved = tuple(x.detach() for x in saved)
        given = list(ctx.given)
        for place, x in zip(ctx.places, saved):
            given[place] = x
        value = pytrees.unflatten(rule.value, saved[len(ctx.places) :])
        found = rule.pull(
            pytrees.unflatten(rule.arguments, given), value, pytrees.unflatten(rule.value, all_conjugated(cotangents))
        )
        slopes = [g for x, g in zip(rule.arguments, found) for g in _slopes(x, g)]
        needed = ctx.needs_input_grad[1:]
        return (
            None,
            *(conjugated(as_tensor(g)) if need and g is not None else None for g, need in zip(slopes, needed)),
        )


class BatchedCustomRule(CustomRule):
    generate_vmap_rule = True


def _slopes(argument: Any, found: Any) -> list[Any]:
    if found is None:
        return [None] * len(pytrees.leaves(argument))
    return pytrees.aligned(argument, found)


def transpose_linear(push: Callable[..., Any], arguments: Sequence[Any], cotangents: Any) -> tuple[Any, ...]:
    """Transpose the linear function `push` from tangents to value tangents: return the cotangents of `arguments`."""
    again = grad_enabled.get()
    with enable_grad():
        tangents = [_tangent(x) for x in pytrees.leaves(tuple(arguments))]
        pushed = tensors_in(pytrees.mapped(as_tensor, push(*pytrees.unflatten(tuple(arguments), tangents))))
        places = [i for i, t in enumerate(tangents) if t.requires_grad]
        pairs = [(y, as_tensor(g)) for y, g in zip(pushed, pytrees.leaves(cotangents)) if y.requires_grad]
        found = _gradients(pairs, [tangents[i] for i in places], again)
    filled: list[Any] = [None] * len(tangents)
    for place, g in zip(places, found):
        filled[place] = g
    transposes: tuple[Any, ...] = pytrees.unflatten(tuple(arguments), filled)
    return transposes


def _tangent(x: Any) -> Tensor:
    """A zero tangent of an argument that the linear function is differentiated by; a constant where the argument is not
    floating-point."""
    value = as_tensor(x)
    if not arrays.is_inexact(value.inner):
        return Tensor(0.0)
    tangent = zeros(value.shape, value)
    tangent.requires_grad = True
    return tangent


def _gradients(pairs: Sequence[tuple[Tensor, Tensor]], tangents: Sequence[Tensor], again: bool) -> Sequence[Any]:
    if not pairs or not tangents:
        return [None] * len(tangents)
    values, cotangents = zip(*pairs)
    return all_conjugated(
        grad([*values], [*tangents], all_conjugated(cotangents), create_graph=again, allow_unused=True)
    )
