"""Functions with a derivative written by the user."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, NoReturn, TypeVar

from gradcli import limits
from gradcli.autograd.function_node import FunctionCtx, FunctionNode
from gradcli.autograd.function_outputs import attach
from gradcli.autograd.modes import grad_enabled, no_grad
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError
from gradcli.kinds.batch import nestings
from gradcli.primitives.bind import components, constant
from gradcli.primitives.node_name import NodeName

F = TypeVar("F", bound=Callable[..., Any])

# The batches that are computed row by row here, from the outermost to the innermost, and what applies a Function with
# a `vmap` of its own to one: that stands above this file.
mapped_rows: ContextVar[tuple[tuple[int, Callable[..., Any]], ...]] = ContextVar("gradcli_mapped_rows", default=())

# Of a function, its node and its way back, in eighths of steps.
_CALL = 72

_INSTANCE = (
    "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
    "with static forward method: {}.apply"
)
_TWO_RULES = "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."


class Function:
    """An operation with its own derivative.

    Subclasses write static methods `forward(ctx, *inputs)` and `backward(ctx, *grad_outputs)` (or, by its other name,
    `vjp`), the latter giving one gradient (or None) for each input; or `forward(*inputs)` with a separate
    `setup_context(ctx, inputs, output)`. `jvp(ctx, *tangents)` gives the tangents of the outputs for those of the
    inputs. Call `apply`, never `forward`.

    A static method `vmap(info, in_dims, *inputs)` computes all rows of `gradcli.func.vmap` at once, and returns the
    outputs and along which axis the rows of each stand. Without one, `forward` and `backward` are given the rows.

    `generate_vmap_rule` says that `backward` is written in functions of the language alone, so that it
    can be given all the cotangents of a Jacobian at once.
    """

    generate_vmap_rule: ClassVar[bool] = False
    # Whether `forward` reads a series whole, and says what becomes of its derivatives.
    takes_series: ClassVar[bool] = False
    # The class of the nodes of this Function.
    _backward_cls: ClassVar[type[FunctionNode]]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        name = NodeName(f"{cls.__name__}Backward")
        cls._backward_cls = type(name, (FunctionNode,), {"__slots__": (), "function": cls, "name": name})

    @staticmethod
    def forward(*_inputs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(_ctx: Any, _inputs: tuple[Any, ...], _output: Any) -> None:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(_ctx: Any, *_grad_outputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    # Another name of `backward`.
    vjp = backward

    @staticmethod
    def jvp(_ctx: Any, *_tangents: Any) -> Any:
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(_info: Any, _in_dims: tuple[Any, ...], *_inputs: Any) -> Any:
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    def __call__(self, *_arguments: Any) -> NoReturn:
        raise DifferentiationError(_INSTANCE.format(type(self).__name__))

    @classmethod
    def apply(cls, *inputs: Any, **keywords: Any) -> Any:
        """Run `forward` unrecorded on `inputs` and record this function as one operation.

        Returns what `forward` returns, with its tensors, of those in a tuple too, in the graph.
        """
        separate = cls.setup_context is not Function.setup_context
        if keywords or separate:
            inputs, keywords = _bound(cls.forward, inputs, keywords, separate)
        for item in () if cls.takes_series else inputs:
            data = item.inner if isinstance(item, Tensor) else item
            # What is made of functions of the language is good for a series that is a number and nothing else.
            if constant(data) is not data and not (cls.generate_vmap_rule and len(components(data)) == 1):
                raise NotImplementedError(f"{cls.__name__} has a derivative of its own, and no Taylor series")
        if any(isinstance(i, Tensor) and i.dual for i in inputs):
            # Loaded by programs that have duals alone.
            from gradcli.autograd.function_tangents import apply_to_duals

            return apply_to_duals(cls, inputs, keywords)
        if cls.vmap is not Function.vmap:
            for nesting, apply_to_rows in reversed(mapped_rows.get()):
                if any(isinstance(i, Tensor) and nesting in nestings(i.inner) for i in inputs):
                    return apply_to_rows(cls, inputs)
        return cls.applied(inputs, keywords)

    @classmethod
    def applied(
        cls,
        inputs: tuple[Any, ...],
        keywords: Mapping[str, Any],
        push: Callable[[FunctionCtx, Sequence[Any]], None] | None = None,
    ) -> Any:
        """What `apply` returns, `push` being told of the outputs before `backward` knows what was saved for it."""
        separate = cls.setup_context is not Function.setup_context
        limits.charge_steps(_CALL)
        edges = tuple(i.edge if isinstance(i, Tensor) and i.requires_grad else None for i in inputs)
        needs = tuple(edge is not None for edge in edges)
        context = FunctionCtx(needs)
        with no_grad():
            if separate:
                output = cls.forward(*inputs, **keywords)
                cls.setup_context(context, inputs, output)
            else:
                output = cls.forward(context, *inputs, **keywords)
        outputs = output if isinstance(output, tuple) else (output,)
        node = cls._backward_cls(context, edges, inputs, outputs) if any(needs) and grad_enabled.get() else None
        if node is not None:
            for record in recorders.get():
                record(node, output)
        attached = attach(outputs, inputs, context, node)
        if push is not None:
            push(context, attached)
        if node is not None:
            node.save(attached)
        return attached if isinstance(output, tuple) else attached[0]

    @classmethod
    def pulled_back(cls, context: FunctionCtx, *grads: Any) -> Any:
        """What `backward`, or `vjp`, returns."""
        if cls.vjp is Function.vjp:
            return cls.backward(context, *grads)
        if cls.backward is not Function.backward:
            raise DifferentiationError(_TWO_RULES)
        return cls.vjp(context, *grads)


class InplaceFunction(Function):
    """A Function that may change its inputs in place; any may, so this is for those that say so."""


def _bound(
    forward: Callable[..., Any], inputs: tuple[Any, ...], keywords: Mapping[str, Any], separate: bool
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of `forward`, those with names and defaults in their places."""
    context = () if separate else (None,)
    bound = inspect.signature(forward).bind(*context, *inputs, **keywords)
    bound.apply_defaults()
    return bound.args[len(context) :], bound.kwargs


def once_differentiable(backward: F) -> F:
    """A `backward` whose own work is not recorded, so that what it returns cannot be differentiated: as a decorator
    below `@staticmethod`. Where that is tried all the same, it is a DifferentiationError."""

    @functools.wraps(backward)
    def unrecorded(context: Any, *grads: Any) -> Any:
        with no_grad():
            returned = backward(context, *grads)
        if not grad_enabled.get() or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return returned
        outputs = returned if isinstance(returned, tuple) else (returned,)
        node = _Once(sum(isinstance(o, Tensor) for o in outputs))
        numbers = iter(range(len(outputs)))
        refusing = tuple(Tensor(o.inner, node, next(numbers)) if isinstance(o, Tensor) else o for o in outputs)
        return refusing if isinstance(returned, tuple) else refusing[0]

    return unrecorded  # type: ignore[return-value]


class _Once(Node):
    """What a `once_differentiable` backward came from."""

    __slots__ = ()
    name = NodeName("Error")

    def __init__(self, outputs: int) -> None:
        super().__init__((), outputs)

    def pull(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise DifferentiationError("trying to differentiate twice a function that was marked with @once_differentiable")

    def release(self) -> None:
        """Nothing is kept."""
