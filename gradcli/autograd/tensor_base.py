"""The base class of tensors: the state and methods that nodes and the engine need."""

from __future__ import annotations

import warnings
from _weakref import ref
from collections.abc import Callable

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.autograd.hooks import HookHandle
from gradcli.autograd.modes import check_leaving_graph, inference
from gradcli.autograd.node import AccumulateGrad, Edge, Node, next_sequence
from gradcli.autograd.operand_forms import UNDECIDED, ShapeOnly
from gradcli.autograd.views import Counter, StoragePlace, attach_to, place_of, sharing_lock, write
from gradcli.errors import CallError, DifferentiationError, EvaluationError, NotBatchableError, ShapeError, as_bool
from gradcli.kinds.levels import TENSOR
from gradcli.primitives.axes import whole_numbers
from gradcli.primitives.bind import Kind, primal_and_tangents
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.arithmetic import identity
from gradcli.primitives.operators import Operators
from gradcli.type_hints import Any, ClassVar, Self

_NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't "
    "be populated during backward(). If you want it, call .retain_grad() on the non-leaf Tensor first."
)

_NO_DEEP_COPY = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
    "detach() gives a tensor without a history."
)

_ONE_FOR_ALL_ROWS = "a tensor that is the same in all rows of a batch is changed in place by what is another in each"
_IN_EACH_ROW = "what is computed anew may be another in each row: `y = x + r` for `x.add_(r)`"

_INFERENCE_REQUIRES_GRAD = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."


_SEQUENCES = frozenset({list, tuple})


def _numbers(data: Any) -> Any:
    """A list of numbers as an array of the default dtype."""
    return arrays.asarray(data, arrays.default_dtype())


def _zeros(first: Any, second: Any, *others: int) -> Any:
    """Zeros of a shape with two or more sizes.

    `others` is (0,) if it is the default output number of the constructor, which is no size.
    """
    sizes = (first, second, *(() if others == (0,) else others))
    return arrays.in_default_namespace(arrays.zeros(whole_numbers(sizes, "a size"), arrays.default_dtype()))


def _rank(array: Any) -> int:
    """0 for integers and truth values, 1 for floating numbers, 2 for complex ones: none is cast to one of a lower rank."""
    return 2 if arrays.is_complex(array) else int(arrays.is_floating(array))


class TensorBase(Operators):
    """An array with an optional place in the graph of recorded operations.

    `Tensor([1, 2])` makes a tensor of floats, `Tensor(2, 3)` one of a shape; `tensor` documents the other inputs.
    `inner` is a Python float (0-d float64), int, bool or an array. It is never written into: an in-place operation
    replaces it by a new array. If other tensors share it, `place` says how, see `gradcli.autograd.views`. `version`
    counts such changes, and is None for an inference tensor. `form` is that of `inner`, None until an operation on it
    is recorded. Operations on it return a
    `gradcli.autograd.tensor.Tensor`, the only direct subclass used. Operations that depend on a leaf have higher
    sequence numbers than its `since`. `_tangent` exists in `dual` tensors only, see `gradcli.autograd.dual`.
    """

    __slots__ = (
        "__weakref__",
        "_accumulator",
        "_grad",
        "_leaf_requires_grad",
        "_node",
        "_retained",
        "_tangent",
        "form",
        "inner",
        "output_nr",
        "place",
        "since",
        "version",
    )
    level = TENSOR
    differential = True
    fuses = True
    dual: ClassVar[bool] = False
    _tangent: Any

    def __init__(self, inner: Any = (), grad_fn: Any = None, output_nr: int = 0, *sizes: int) -> None:
        if type(inner) in _SEQUENCES or type(grad_fn) is int:
            # The constructor as users call it: with a list of numbers, or with sizes.
            inner = _numbers(inner) if grad_fn is None else _zeros(inner, grad_fn, output_nr, *sizes)
            grad_fn, output_nr = None, 0
        self.inner = inner
        self._node: Node | None = grad_fn
        self.output_nr = output_nr
        self.form: ShapeOnly | None = None
        self.version: int | None = 0
        self.since = 0
        self.place: StoragePlace | None = None
        self._leaf_requires_grad = False
        self._retained = False
        self._grad: Self | None = None
        self._accumulator: AccumulateGrad | None = None

    def __getstate__(self) -> Any:
        """Pickle as a leaf that shares no data and has no hooks."""
        state: Any = super().__getstate__()
        leaf = {"_node": None, "output_nr": 0, "_leaf_requires_grad": self.requires_grad, "_retained": False}
        return state[0], {**state[1], **leaf, "form": None, "place": None, "_accumulator": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A leaf with the same data, attributes and gradient. Raises DifferentiationError for a non-leaf."""
        if self._node is not None:
            raise DifferentiationError(_NO_DEEP_COPY)
        from copy import deepcopy

        reduced: Any = self.__reduce_ex__(2)
        make, arguments, state, *_ = reduced
        made: Self = make(*arguments)
        memo[id(self)] = made
        made.__setstate__(deepcopy(state, memo))
        return made

    def __setstate__(self, state: tuple[dict[str, Any] | None, dict[str, Any]]) -> None:
        """Unpickle as by default, but reset `since`, because a sequence number of another process is meaningless."""
        attributes, slots = state
        for name, value in {**(attributes or {}), **slots, "since": 0}.items():
            setattr(self, name, value)

    @property
    def shape(self) -> Shape:
        form = self.form
        return arrays.shape(self.inner) if form is None or form is UNDECIDED else form.shape

    @property
    def requires_grad(self) -> bool:
        return self._leaf_requires_grad or self._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        value = as_bool(value, "requires_grad")
        if self._node is not None:
            if not value:
                raise DifferentiationError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed "
                    "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
            return
        if value and not arrays.is_inexact(self.inner):
            raise DifferentiationError(
                f"only Tensors of floating point dtype can require gradients, and this one is {self.dtype}"
            )
        if value and self.version is None and not inference.get():
            raise DifferentiationError(_INFERENCE_REQUIRES_GRAD)
        if value and not self.since:
            self.since = next_sequence()
        self._leaf_requires_grad = value

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise DifferentiationError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` and return self. Raises DifferentiationError for integers and booleans."""
        self.requires_grad = requires_grad
        return self

    @property
    def grad_fn(self) -> Any:
        """The node of the operation that this tensor is a result of; None for a leaf."""
        node = self._node
        return None if node is None else node.shown()

    @property
    def edge(self) -> Edge:
        """The edge to which the cotangent of this tensor goes."""
        return self._node or self, self.output_nr

    @property
    def is_leaf(self) -> bool:
        return self._node is None

    @property
    def retains_grad(self) -> bool:
        return self._retained

    def retain_grad(self) -> None:
        """Make backward fill `.grad` of this tensor although it is not a leaf."""
        if not self.requires_grad:
            raise DifferentiationError("can't retain_grad on Tensor that has requires_grad=False")
        if self._node is None or self._retained:
            return
        self._retained = True
        # A weak reference: the tensor owns its node, and a cycle would keep both alive.
        self._node.attach().retained[self.output_nr] = ref(self)

    @property
    def grad(self) -> Self | None:
        """The gradient that backward accumulated here, or None."""
        if self._grad is None and self._node is not None and not self._retained:
            warnings.warn(_NON_LEAF_GRAD, UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Self | None) -> None:
        if value is not None and not isinstance(value, TensorBase):
            raise DifferentiationError(f"assigned grad expected to be a Tensor or None but got {type(value).__name__}")
        if value is not None and value.shape != self.shape:
            raise DifferentiationError(
                f"attempting to assign a gradient of size {list(value.shape)} to a tensor of size {list(self.shape)}. "
                "Please ensure that the gradient and the tensor are the same size"
            )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def accumulate_grad(self, cotangent: Self, create_graph: bool) -> None:
        """Add a cotangent to `.grad`.

        The first cotangent itself becomes `.grad`, and later ones are added in place, unless a graph is kept.
        """
        # Backward passes in several threads may reach the same leaf.
        with sharing_lock:
            known = self._grad
            if known is None:
                if cotangent.dual or (create_graph and cotangent.requires_grad):
                    # Other tensors may refer to the same cotangent.
                    cotangent = cotangent.clone()
                elif create_graph:
                    cotangent = self.made(cotangent.inner)
                self._grad = cotangent
            elif create_graph or known.requires_grad:
                self._grad = known + cotangent
            else:
                known._become(known + cotangent)

    def _accumulate_grad_node(self) -> AccumulateGrad:
        """The AccumulateGrad node of this leaf."""
        if self._accumulator is None:
            self._accumulator = AccumulateGrad(self)
        return self._accumulator

    def register_hook(self, hook: Callable[[Self], Self | None]) -> HookHandle:
        """Call `hook(grad)` when the gradient of this tensor is known; a tensor that it returns replaces the gradient.

        The handle's `remove()` removes the hook.
        """
        if not self.requires_grad:
            raise DifferentiationError("cannot register a hook on a tensor that doesn't require gradient")
        check_leaving_graph()
        node = self._node or self._accumulate_grad_node()
        return node.attach().of_output(self.output_nr).register(hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Self], None]) -> HookHandle:
        """Call `hook(tensor)` whenever backward has accumulated a gradient in `.grad` of this leaf.

        The handle's `remove()` removes the hook. Raises DifferentiationError for a non-leaf or a tensor that requires
        no gradient.
        """
        if not self.requires_grad:
            raise DifferentiationError("cannot register a hook on a tensor that doesn't require gradient")
        if self._node is not None:
            raise DifferentiationError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return self._accumulate_grad_node().accumulated.register(hook)

    def clone(self) -> Self:
        """A copy, in the same graph."""
        copy: Self = identity(self)
        return copy

    @staticmethod
    def made(data: Any, grad_fn: Node | None = None, output_nr: int = 0) -> Any:
        """Construct a Tensor, also if this object is of a user-defined subclass."""
        raise NotImplementedError

    def detach(self) -> Any:
        """A leaf without history that shares the data; in-place changes of either affect both, and their versions."""
        return self._alias(None)

    def detach_(self) -> Self:
        """Make this tensor a leaf without history. Raises DifferentiationError for a view."""
        if self.place is not None and self.place.base is not None:
            raise DifferentiationError("Can't detach views in-place. Use detach() instead.")
        self.leave_node()
        self._node, self.output_nr, self._leaf_requires_grad, self._retained = None, 0, False, False
        return self

    @property
    def data(self) -> Any:
        """A leaf without history that shares the data; in-place changes of it do not change this tensor's version."""
        return self._alias(Counter(None if self.version is None else 0))

    @data.setter
    def data(self, value: Self) -> None:
        if not isinstance(value, TensorBase):
            raise CallError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self.requires_grad and not arrays.is_inexact(value.inner):
            raise DifferentiationError(
                "data set to a tensor that requires gradients must be floating point or complex dtype"
            )
        own = self.place.counter if self.place is not None else Counter(self.version)
        own.watch(self._node, self.output_nr)
        self.inner, self.form = value.inner, None
        attach_to(self, place_of(value).alias(own))

    @data.deleter
    def data(self) -> None:
        raise DifferentiationError("Deleting tensor data is not allowed. Delete tensor instead!")

    @property
    def _base(self) -> Any:
        """The tensor that this is a view of in the graph; None if it is not a view."""
        return None if self.place is None else self.place.base

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def _version(self) -> int:
        version = self.version if self.place is None else self.place.counter.version
        if version is None:
            raise DifferentiationError("Inference tensors do not track version counter.")
        return version

    def is_inference(self) -> bool:
        """Return whether it is an inference tensor: made in `inference_mode`, and not a view of an outside tensor."""
        return self.version is None

    def _alias(self, counter: Counter | None) -> Any:
        check_leaving_graph(carried=len(primal_and_tangents(self.inner)) > 1)
        place, alias = place_of(self), self.made(self.inner)
        attach_to(alias, place.alias(counter or place.counter))
        return alias

    def _become(self, result: Any) -> Self:
        """Take over the data and the place of `result`, converted to this dtype, as an in-place operation does.

        Raises ShapeError for another shape, EvaluationError if floats would become integers, NotBatchableError if
        `result` is batched and this tensor is not.
        """
        if isinstance(result.inner, Kind):
            # Loaded on demand, as few programs have batches.
            from gradcli.kinds.batch import nestings

            if nestings(result.inner) - nestings(self.inner):
                raise NotBatchableError(_ONE_FOR_ALL_ROWS, hint=_IN_EACH_ROW)
        if result.dual:
            result._write_dual_to(self)
            return self
        form = self.form
        alike = form is not None and form is result.form and form is not UNDECIDED
        if not alike:
            self._check_replaced(result)
        if self.place is not None:
            write(self, result if result.dtype == self.dtype else cast(result, self.dtype))
            return self
        if alike:
            self.inner = result.inner
        else:
            self.inner, self.form = arrays.astype(result.inner, self.dtype), None
        self._count_change()
        if result._node is not None:
            self.move_to(result._node, result.output_nr)
        return self

    def _check_replaced(self, result: Any) -> None:
        """Raise ShapeError or EvaluationError if `result` does not fit into the memory of this tensor."""
        if result.shape != self.shape:
            raise ShapeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(result.shape)}"
            )
        if _rank(result.inner) > _rank(self.inner):
            raise EvaluationError(f"result type {result.dtype} can't be cast to the desired output type {self.dtype}")

    def _write_dual_to(self, _target: Any) -> None:
        """Make `target` become this dual tensor."""
        raise NotImplementedError

    def _without_graph(self) -> Any:
        """This dual tensor, outside of the graph."""
        raise NotImplementedError

    def _as_output(self, _node: Node, _number: int) -> Any:
        """This dual tensor as an output of a node."""
        raise NotImplementedError

    def _count_change(self) -> None:
        """Increment the version without changing the data."""
        if self.place is not None:
            self.place.count_change()
            return
        if self.version is None:
            return
        self.version += 1
        if self._node is not None:
            self._node.output_modified(self.output_nr, self.version)

    def move_to(self, node: Node | None, number: int) -> None:
        """Become output `number` of `node`; if the gradient is retained, it is now retained there."""
        self.leave_node()
        self._node, self.output_nr = node, number
        if self._retained and node is not None:
            self._retained = False
            self.retain_grad()

    def leave_node(self) -> None:
        """Stop retaining the gradient at the current node."""
        if self._retained and self._node is not None:
            self._node.attach().retained.pop(self.output_nr, None)
