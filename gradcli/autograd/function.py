"""Functions with a derivative written by the user."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.autograd.modes import grad_enabled, no_grad
from gradcli.autograd.node import Edge, Node, recorder
from gradcli.autograd.primitive_node import fit
from gradcli.autograd.saved import RELEASED, check_version, shape_only
from gradcli.autograd.selection import drop_if_untaken
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError, ShapeError
from gradcli.primitives.bind import components, constant
from gradcli.primitives.operators import operand

# Of a function, its node and its way back, in eighths of steps.
_CALL = 72


class Context:
    """What `forward` leaves for `backward`: saved tensors, and any attribute set on it."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._saved: tuple[Any, ...] | None = ()
        self._versions: tuple[int, ...] = ()
        self._outputs: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materialize_grads = True
        self._node: weakref.ref[FunctionNode] | None = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep inputs or outputs of `forward` for `backward`, where `saved_tensors` gives them back."""
        self._saved = tensors
        self._versions = tuple(t.version if isinstance(t, Tensor) else 0 for t in tensors)

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Have these outputs of `forward` come out as constants."""
        self._constant = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros, or None, for an output without a gradient."""
        self._materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved. Raises DifferentiationError where it was freed or modified since."""
        if self._saved is None:
            raise DifferentiationError(RELEASED)
        for saved, version in zip(self._saved, self._versions):
            if isinstance(saved, Tensor):
                check_version(saved, version)
        return tuple(self._restored(saved) for saved in self._saved)

    def _restored(self, saved: Any) -> Any:
        """An output comes back as a part of the graph, which it was not yet when it was saved."""
        node = self._node() if self._node is not None else None
        for number, output in enumerate(self._outputs):
            if saved is output and node is not None:
                return Tensor(saved.inner if isinstance(saved, Tensor) else operand(saved), node, number)
        return saved


class Function:
    """An operation with its own derivative.

    Subclasses write static methods `forward(ctx, *inputs)` and `backward(ctx, *grad_outputs)`,
    the latter giving one gradient (or None) for each input; or `forward(*inputs)` with a separate
    `setup_context(ctx, inputs, output)`. Call `apply`, never `forward`.

    `takes_batches` says that `backward` is written in functions of the language alone, so that it
    can be given all the cotangents of a Jacobian at once.
    """

    takes_batches: ClassVar[bool] = False
    # Whether `forward` reads a series whole, and says what becomes of its derivatives.
    takes_series: ClassVar[bool] = False

    @staticmethod
    def forward(*_inputs: Any) -> Any:
        raise NotImplementedError("a Function needs a static method 'forward'")

    @staticmethod
    def backward(_ctx: Any, *_grad_outputs: Any) -> Any:
        raise NotImplementedError("a Function needs a static method 'backward'")

    @staticmethod
    def setup_context(_ctx: Any, _inputs: tuple[Any, ...], _output: Any) -> None:
        raise NotImplementedError

    def __call__(self, *_arguments: Any) -> NoReturn:
        raise DifferentiationError(f"call {type(self).__name__}.apply, not an instance of {type(self).__name__}")

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """Run `forward` unrecorded on `inputs` and record this function as one operation.

        Returns a Tensor, or a tuple of them where `forward` returns a tuple.
        """
        for item in () if cls.takes_series else inputs:
            data = item.inner if isinstance(item, Tensor) else item
            # What is made of functions of the language is good for a series that is a number and nothing else.
            if constant(data) is not data and not (cls.takes_batches and len(components(data)) == 1):
                raise NotImplementedError(f"{cls.__name__} has a derivative of its own, and no Taylor series")
        limits.charge_steps(_CALL)
        needs = tuple(isinstance(i, Tensor) and i.requires_grad for i in inputs)
        context = Context(needs)
        with no_grad():
            if cls.setup_context is Function.setup_context:
                output = cls.forward(context, *inputs)
            else:
                output = cls.forward(*inputs)
                cls.setup_context(context, inputs, output)
        outputs = output if isinstance(output, tuple) else (output,)
        node = FunctionNode(cls, context, inputs, outputs) if any(needs) and grad_enabled.get() else None
        record = recorder.get()
        if node is not None and record is not None:
            record(node, output)
        wrapped = tuple(_wrapped(o, i, context, node) for i, o in enumerate(outputs))
        return wrapped if isinstance(output, tuple) else wrapped[0]


def _wrapped(output: Any, number: int, context: Context, node: FunctionNode | None) -> Tensor | None:
    """What `forward` returned as an output of `node`, or as a constant where it cannot be differentiated."""
    if output is None:
        return None
    data = output.inner if isinstance(output, Tensor) else operand(output)
    if not arrays.is_floating(data) or any(output is c for c in context._constant):
        return Tensor(data)
    return Tensor(data, node, number)


class FunctionNode(Node):
    """A recorded call of a user's Function."""

    __slots__ = ("context", "function", "inputs", "zeros")

    def __init__(
        self, function: type[Function], context: Context, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        edges: list[Edge | None] = [i.edge if isinstance(i, Tensor) and i.requires_grad else None for i in inputs]
        super().__init__(f"{function.__name__}Backward", tuple(edges), len(outputs))
        self.function = function
        self.context = context
        self.inputs = tuple(shape_only(i.inner) if isinstance(i, Tensor) else None for i in inputs)
        self.zeros = tuple(None if o is None else _zeros(constant(o)) for o in outputs)
        context._outputs = tuple(outputs)
        context._node = weakref.ref(self)

    def pull(
        self,
        cotangents: Sequence[Any],
        wanted: Sequence[bool],
        *,
        lift: Callable[..., Any] | None,
        guarded: bool,
        mask: Any,
    ) -> Sequence[Any]:
        grads = [self._cotangent(c, zeros) for c, zeros in zip(cotangents, self.zeros)]
        returned = self.function.backward(self.context, *grads)
        gradients = returned if isinstance(returned, tuple) else (returned,)
        if len(gradients) > len(self.edges) and all(g is None for g in gradients[len(self.edges) :]):
            gradients = gradients[: len(self.edges)]
        if len(gradients) != len(self.edges):
            raise DifferentiationError(
                f"function {self.name} returned an incorrect number of gradients "
                f"(expected {len(self.edges)}, got {len(gradients)})"
            )
        for i, (gradient, given) in enumerate(zip(gradients, self.inputs)):
            if gradient is not None and given is None:
                raise DifferentiationError(
                    f"function {self.name} returned a gradient different than None at position {i + 1}, "
                    "but the corresponding forward input was not a Variable"
                )
        pulled = [
            self._checked(i, g, lift is not None) if want and g is not None else None
            for i, (g, want) in enumerate(zip(gradients, wanted))
        ]
        if guarded and len(cotangents) == 1:
            return [None if p is None else drop_if_untaken(cotangents[0], mask, p) for p in pulled]
        return pulled

    def _cotangent(self, cotangent: Any, zeros: Callable[[], Any] | None) -> Tensor | None:
        if cotangent is None:
            return Tensor(zeros()) if zeros is not None and self.context._materialize_grads else None
        return cotangent if isinstance(cotangent, Tensor) else Tensor(cotangent)

    def _checked(self, i: int, gradient: Any, differentiable: bool) -> Any:
        value = operand(gradient)
        have, shape = arrays.shape(value), arrays.shape(self.inputs[i])
        if not _sums_to(have, shape):
            raise DifferentiationError(
                f"Function {self.name} returned an invalid gradient at index {i} - "
                f"got {list(have)} but expected shape compatible with {list(shape)}"
            )
        value = fit(value, self.inputs[i])
        if differentiable:
            return value
        return value.inner if isinstance(value, Tensor) else value

    def output_modified(self, number: int, _version: int) -> None:
        outputs = self.context._outputs
        if outputs and isinstance(outputs[number], Tensor):
            outputs[number].version += 1

    def release(self) -> None:
        self.context._saved = None
        self.context._outputs = ()


def _zeros(output: Any) -> Callable[[], Any]:
    """Zeros like an output, made when they are needed, without keeping the output."""
    namespace = arrays.foreign_namespace((output,))
    return functools.partial(arrays.zeros, arrays.shape(output), arrays.dtype_name(output), namespace)


def _sums_to(have: Shape, shape: Shape) -> bool:
    """Whether a tensor of `shape` broadcasts to `have`."""
    try:
        return broadcast([have, shape]) == have
    except ShapeError:
        return False
