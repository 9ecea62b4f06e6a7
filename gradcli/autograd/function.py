"""Functions with a derivative written by the user."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NoReturn

from gradcli import arrays
from gradcli.autograd.modes import grad_enabled, no_grad
from gradcli.autograd.node import RELEASED, Edge, Node
from gradcli.autograd.tensor import Tensor, check_version, operand
from gradcli.errors import DifferentiationError
from gradcli.primitives.reductions import sum_to


class Context:
    """What `forward` leaves for `backward`: saved tensors, and any attribute set on it."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._saved: tuple[Any, ...] | None = ()
        self._versions: tuple[int, ...] = ()
        self._outputs: tuple[Any, ...] = ()
        self._node: weakref.ref[FunctionNode] | None = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep inputs or outputs of `forward` for `backward`, where `saved_tensors` gives them back."""
        self._saved = tensors
        self._versions = tuple(t.version if isinstance(t, Tensor) else 0 for t in tensors)

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
                return Tensor(saved.data, node, number)
        return saved


class Function:
    """An operation with its own derivative.

    Subclasses write static methods `forward(ctx, *inputs)` and `backward(ctx, *grad_outputs)`,
    the latter giving one gradient (or None) for each input; or `forward(*inputs)` with a separate
    `setup_context(ctx, inputs, output)`. Call `apply`, never `forward`.
    """

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
        wrapped = tuple(
            Tensor(o.data if isinstance(o, Tensor) else operand(o), node, i) for i, o in enumerate(outputs)
        )
        return wrapped if isinstance(output, tuple) else wrapped[0]


class FunctionNode(Node):
    """A recorded call of a user's Function."""

    __slots__ = ("context", "function", "like", "shapes")

    def __init__(
        self, function: type[Function], context: Context, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        edges: list[Edge | None] = [
            (i.grad_fn or i, i.output_nr) if isinstance(i, Tensor) and i.requires_grad else None for i in inputs
        ]
        super().__init__(f"{function.__name__}Backward", tuple(edges), len(outputs))
        self.function = function
        self.context = context
        self.shapes = tuple(i.shape if isinstance(i, Tensor) else None for i in inputs)
        self.like = tuple(arrays.zeros_like(o.data if isinstance(o, Tensor) else o) for o in outputs)
        context._outputs = tuple(outputs)
        context._node = weakref.ref(self)

    def pull(self, cotangents: Sequence[Any], wanted: Sequence[bool], differentiable: bool) -> Sequence[Any]:
        grads = [
            c if isinstance(c, Tensor) else Tensor(zero if c is None else c)
            for c, zero in zip(cotangents, self.like)
        ]
        returned = self.function.backward(self.context, *grads)
        gradients = returned if isinstance(returned, tuple) else (returned,)
        if len(gradients) > len(self.edges) and all(g is None for g in gradients[len(self.edges) :]):
            gradients = gradients[: len(self.edges)]
        if len(gradients) != len(self.edges):
            raise DifferentiationError(
                f"function {self.name} returned an incorrect number of gradients "
                f"(expected {len(self.edges)}, got {len(gradients)})"
            )
        return [
            self._checked(i, g, differentiable) if want and g is not None else None
            for i, (g, want) in enumerate(zip(gradients, wanted))
        ]

    def _checked(self, i: int, gradient: Any, differentiable: bool) -> Any:
        shape = self.shapes[i]
        if shape is None:
            return None
        value = operand(gradient)
        have = arrays.shape(value)
        if have != shape:
            if not _sums_to(have, shape):
                raise DifferentiationError(
                    f"Function {self.name} returned an invalid gradient at index {i} - "
                    f"got {list(have)} but expected shape compatible with {list(shape)}"
                )
            value = sum_to(value, shape)
        if differentiable:
            return value
        return value.data if isinstance(value, Tensor) else value

    def release(self) -> None:
        self.context._saved = None
        self.context._outputs = ()


def _sums_to(have: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` broadcasts to `have`."""
    tail = have[len(have) - len(shape) :]
    return len(have) >= len(shape) and all(s in (1, h) for s, h in zip(shape, tail))
