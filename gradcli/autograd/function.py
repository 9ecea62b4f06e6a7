"""Operations with a user-defined derivative."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, NoReturn, TypeVar

from gradcli import arrays, limits
from gradcli.autograd.function_node import FunctionCtx, FunctionNode, among
from gradcli.autograd.modes import grad_enabled, no_grad
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.tensor import Tensor
from gradcli.autograd.views import forbid_in_function, note_one_of_several
from gradcli.errors import DifferentiationError
from gradcli.kinds.batch import nestings
from gradcli.primitives.bind import constant, primal_and_tangents
from gradcli.primitives.conversions import reshape
from gradcli.primitives.primitive import NodeName

F = TypeVar("F", bound=Callable[..., Any])

# The batches over which a function is mapped row by row, outermost first, each with the function that applies a
# Function with its own `vmap` to it. The latter is injected, because its module depends on this one.
mapped_rows: ContextVar[tuple[tuple[int, Callable[..., Any]], ...]] = ContextVar("gradcli_mapped_rows", default=())

# The cost of calling a Function, with its node and its backward, in eighths of a step.
_CALL = 72

_INSTANCE = (
    "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
    "with static forward method: {}.apply"
)
_TWO_RULES = "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."


class Function:
    """An operation with a user-defined derivative.

    Subclasses define static methods `forward(ctx, *inputs)` and `backward(ctx, *grad_outputs)` (also called `vjp`),
    which returns one gradient or None for each input; or `forward(*inputs)` with a separate `setup_context(ctx, inputs,
    output)`. `jvp(ctx, *tangents)` returns the tangents of the outputs given those of the inputs. Call `apply`, never
    `forward`.

    A static method `vmap(info, in_dims, *inputs)` computes all rows of `gradcli.func.vmap` at once, and returns the
    outputs and the batch axis of each. Without it, `forward` and `backward` are called with batched inputs.

    `generate_vmap_rule` declares that `backward` uses functions of the language only, so that it can be given all
    cotangents of a Jacobian at once.
    """

    generate_vmap_rule: ClassVar[bool] = False
    # Whether `forward` accepts a Taylor series as input and handles its coefficients itself.
    takes_series: ClassVar[bool] = False
    # The node class of this Function.
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

    # An alternative name for `backward`.
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
        """Run `forward` without recording it and record this function as one operation.

        Returns what `forward` returns; its tensors, also those in a tuple, are in the graph.
        """
        separate = cls.setup_context is not Function.setup_context
        if keywords or separate:
            inputs, keywords = _bound(cls.forward, inputs, keywords, separate)
        for item in () if cls.takes_series else inputs:
            data = item.inner if isinstance(item, Tensor) else item
            # A Function composed of functions of the language also works on a kind with a single component, such as a
            # batch.
            if constant(data) is not data and not (cls.generate_vmap_rule and len(primal_and_tangents(data)) == 1):
                raise NotImplementedError(f"{cls.__name__} has a derivative of its own, and no Taylor series")
        if any(isinstance(i, Tensor) and i.dual for i in inputs):
            # Imported here, because only programs with duals need it.
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
        """The implementation of `apply`.

        `push` is called with the outputs before the node stores the tensors saved for `backward`.
        """
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
        """Call `backward` or `vjp`, whichever is defined."""
        if cls.vjp is Function.vjp:
            return cls.backward(context, *grads)
        if cls.backward is not Function.backward:
            raise DifferentiationError(_TWO_RULES)
        return cls.vjp(context, *grads)


class InplaceFunction(Function):
    """A Function that may change its inputs in place. Any Function may; the class exists for compatibility."""


def _bound(
    forward: Callable[..., Any], inputs: tuple[Any, ...], keywords: Mapping[str, Any], separate: bool
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of `forward`, with keyword arguments and defaults in their positions."""
    # Imported here because formulas import this module, and `inspect` takes longer to import than some to print.
    import inspect

    context = () if separate else (None,)
    bound = inspect.signature(forward).bind(*context, *inputs, **keywords)
    bound.apply_defaults()
    return bound.args[len(context) :], bound.kwargs


def once_differentiable(backward: F) -> F:
    """A decorator, below `@staticmethod`, for a `backward` that is not recorded.

    Differentiating what it returns raises DifferentiationError.
    """

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
    """The node of the results of a `once_differentiable` backward; it refuses to be differentiated."""

    __slots__ = ()
    name = NodeName("Error")

    def __init__(self, outputs: int) -> None:
        super().__init__((), outputs)

    def pull(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise DifferentiationError("trying to differentiate twice a function that was marked with @once_differentiable")


# --- the outputs of a Function

_NOT_RETURNED = (
    "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
    "modified inplace must all be outputs of the Function."
)
_SEVERAL = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
    "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
    "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
    "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
    "operations)."
)
_NO_INPUT = (
    "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need to pass it "
    "to mark_dirty()."
)


def attach(
    outputs: Sequence[Any], inputs: Sequence[Any], context: FunctionCtx, node: FunctionNode | None
) -> tuple[Any, ...]:
    """The outputs in the graph of `node`, or outside of the graph if it is None.

    Values that are not tensors are returned unchanged. A tensor made by `forward` stays the same object; an input
    returned unchanged becomes a view of the input, and an input changed in place stays itself, with the node as its
    history.
    """
    if not all(among(tensor, outputs) for tensor in context.dirty_tensors):
        raise DifferentiationError(_NOT_RETURNED)
    attached = tuple(
        _attached(output, number, len(outputs), inputs, context, node) if isinstance(output, Tensor) else output
        for number, output in enumerate(outputs)
    )
    differentiable = [output for output in attached if isinstance(output, Tensor) and output._node is not None]
    for output in differentiable if len(differentiable) > 1 else ():
        if output.place is not None and output.place.refusal is not None:
            note_one_of_several(output, output.output_nr)
    return attached


def _attached(
    output: Tensor,
    number: int,
    count: int,
    inputs: Sequence[Any],
    context: FunctionCtx,
    node: FunctionNode | None,
) -> Tensor:
    given, dirty = among(output, inputs), among(output, context.dirty_tensors)
    if not arrays.is_inexact(output.inner) or among(output, context.non_differentiable):
        node = None
    if dirty:
        _changed(output, number, count, given, node)
        return output
    if given:
        output = _as_it_is(output)
    elif output.requires_grad and node is None and not output._is_view():
        output = output.detach()
    if node is not None:
        output.move_to(node, number)
    forbid_in_function(output)
    return output


def _changed(tensor: Tensor, number: int, count: int, given: bool, node: FunctionNode | None) -> None:
    """Make the node the history of a tensor that `forward` changed in place."""
    if node is not None:
        tensor._check_recorded(())
        if not given:
            warnings.warn(_NO_INPUT, UserWarning, stacklevel=5)
        if count > 1 and tensor._is_view():
            raise DifferentiationError(_SEVERAL)
    # The data is already changed; this increments the version and notifies the tensors that share it.
    tensor._become(Tensor(tensor.inner) if node is None else Tensor(tensor.inner, node, number))


def _as_it_is(given: Tensor) -> Tensor:
    """A view of a whole input."""
    view = Tensor(given.inner)
    view.made_as_view(given, reshape, {"shape": given.shape})
    return view
