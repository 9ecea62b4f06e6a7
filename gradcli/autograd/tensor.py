"""The Tensor: an array, whether its gradient is wanted, and the operation that made it."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from gradcli import arrays
from gradcli.autograd.modes import grad_enabled
from gradcli.autograd.node import RELEASED, Edge, Hook, Node, ShapeOnly, recorder
from gradcli.autograd.selection import drop_untaken
from gradcli.errors import DifferentiationError, EvaluationError, ShapeError
from gradcli.kinds.order import TENSOR
from gradcli.primitives import arithmetic, conversions, exponential, table
from gradcli.primitives.bind import Kind, bind
from gradcli.primitives.operators import Operators, operand
from gradcli.primitives.primitive import Primitive
from gradcli.primitives.reductions import sum_to
from gradcli.primitives.shape import iter_first_axis

_NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't "
    "be populated during backward(). If you want it, call .retain_grad() on the non-leaf Tensor first."
)


_MODIFIED = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: "
    "{} is at version {}; expected version {} instead."
)


class Tensor(Operators):
    """An array with an optional place in the graph of recorded operations.

    `data` is a Python float (0-d float64), int, bool or an array; it is never written into, an
    in-place operation puts a new array in its place. Made by `tensor` and by operations.
    """

    __slots__ = (
        "__weakref__",
        "_grad",
        "_hooks",
        "_leaf_requires_grad",
        "_retained",
        "data",
        "grad_fn",
        "output_nr",
        "version",
    )
    level = TENSOR
    differential = True

    def __init__(self, data: Any, grad_fn: Node | None = None, output_nr: int = 0) -> None:
        self.data = data
        self.grad_fn = grad_fn
        self.output_nr = output_nr
        self.version = 0
        self._leaf_requires_grad = False
        self._retained = False
        self._grad: Tensor | None = None
        self._hooks: list[Hook] | None = None

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Run on `.data`, and record the operation where an operand requires grad."""
        data = []
        wanted = 0
        bit = 1
        for item in operands:
            if isinstance(item, Tensor):
                data.append(item.data)
                if item.grad_fn is not None or item._leaf_requires_grad:
                    wanted |= bit
            else:
                data.append(item)
            bit <<= 1
        result = bind(primitive, data, params)
        if wanted and grad_enabled.get():
            wanted &= primitive.differentiable(len(data))
            if wanted:
                if type(result) is not float and arrays.backend_of(type(result)) not in ("numpy", None):
                    operands = _moved(operands, result)
                node = PrimitiveNode(primitive, operands, params, result, wanted)
                record = recorder.get()
                if record is not None:
                    record(node, result)
                return Tensor(result, node)
        return Tensor(result)

    # --- its place in the graph

    @property
    def inner(self) -> Any:
        return self.data

    @property
    def requires_grad(self) -> bool:
        return self.grad_fn is not None or self._leaf_requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if self.grad_fn is not None:
            if not value:
                raise DifferentiationError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed "
                    "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
            return
        if value and not arrays.is_floating(self.data):
            raise DifferentiationError(
                f"only Tensors of floating point dtype can require gradients, and this one is {self.dtype}"
            )
        self._leaf_requires_grad = bool(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` and return self. Raises DifferentiationError for integers and booleans."""
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        return self.grad_fn is None

    @property
    def retains_grad(self) -> bool:
        return self._retained

    def retain_grad(self) -> None:
        """Have backward fill `.grad` of this tensor, which is no leaf."""
        if not self.requires_grad:
            raise DifferentiationError("can't retain_grad on Tensor that has requires_grad=False")
        if self.grad_fn is None or self._retained:
            return
        self._retained = True
        if self.grad_fn.retained is None:
            self.grad_fn.retained = {}
        # A weak reference: a tensor owns its node, and a cycle would outlive both.
        self.grad_fn.retained[self.output_nr] = weakref.ref(self)

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward accumulated here, or None."""
        if self._grad is None and self.grad_fn is not None and not self._retained:
            warnings.warn(_NON_LEAF_GRAD, UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise DifferentiationError(f"assigned grad expected to be a Tensor or None but got {type(value).__name__}")
        if value is not None and value.shape != self.shape:
            raise DifferentiationError(
                f"attempting to assign a gradient of size {list(value.shape)} to a tensor of size {list(self.shape)}. "
                "Please ensure that the gradient and the tensor are the same size"
            )
        self._grad = value

    def accumulate_grad(self, cotangent: Tensor) -> None:
        """Add a cotangent to `.grad`, which stays the same Tensor unless a graph is kept."""
        known = self._grad
        if known is None:
            self._grad = cotangent.clone() if cotangent.requires_grad else cotangent.detach()
        elif known.requires_grad or cotangent.requires_grad:
            self._grad = known + cotangent
        else:
            known._become(known + cotangent)

    def register_hook(self, hook: Hook) -> HookHandle:
        """Call `hook(grad)` when the gradient of this tensor is known; what it returns, if
        anything, replaces the gradient. The handle's `remove()` takes the hook away."""
        if not self.requires_grad:
            raise DifferentiationError("cannot register a hook on a tensor that doesn't require gradient")
        if self.grad_fn is None:
            if self._hooks is None:
                self._hooks = []
            return HookHandle(self._hooks, hook)
        if self.grad_fn.hooks is None:
            self.grad_fn.hooks = {}
        return HookHandle(self.grad_fn.hooks.setdefault(self.output_nr, []), hook)

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Accumulate the gradients of this tensor in the leaves (or in `inputs` alone).

        `gradient` is the cotangent, in the shape of this tensor; a scalar has 1. With
        `create_graph` the gradients can be differentiated again. Raises DifferentiationError
        where there is no graph, the graph was freed, or a non-scalar has no `gradient`.
        """
        from gradcli.autograd.engine import backward

        backward(self, gradient, retain_graph=retain_graph, create_graph=create_graph, inputs=inputs)

    def clone(self) -> Tensor:
        """The same values as a tensor of its own, in the same graph."""
        copy: Tensor = arithmetic.identity(self)
        return copy

    def detach(self) -> Tensor:
        """The same values as a leaf without a history."""
        return Tensor(self.data)

    # --- its numbers

    def item(self) -> Any:
        """The one element, as a Python number."""
        if self.size != 1:
            raise ShapeError(f"a Tensor with {self.size} elements cannot be converted to Scalar")
        return arrays.to_numpy(self.data).item()

    def tolist(self) -> Any:
        return arrays.tolist(self.data)

    def numpy(self) -> Any:
        """The values as a NumPy array. Raises DifferentiationError where that would lose the graph."""
        if self.requires_grad:
            raise DifferentiationError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        return arrays.to_numpy(self.data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        return array.astype(array.dtype if dtype is None else dtype, copy=bool(copy))

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(iter_first_axis(self))

    def __repr__(self) -> str:
        text = _text(self.data)
        if self.grad_fn is not None:
            return f"tensor({text}, grad_fn=<{self.grad_fn.name}>)"
        return f"tensor({text}, requires_grad=True)" if self.requires_grad else f"tensor({text})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    # --- functions as methods

    def where(self, condition: Any, other: Any) -> Any:
        """These elements where the condition is true, else those of `other`."""
        return arithmetic.where(operand(condition), self, operand(other))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Every function of one tensor is a method, and in place with an underscore behind its name."""
        found = table.find(name)
        if found is not None:
            return functools.partial(found, self)
        if name.endswith("_") and not name.startswith("_"):
            found = table.find(name[:-1])
            if found is not None:
                return functools.partial(self._in_place, found)
        raise AttributeError(f"'Tensor' object has no attribute {name!r}")

    # --- in-place operations

    def _in_place(self, operation: Callable[..., Any], *arguments: Any, **params: Any) -> Tensor:
        self._check_in_place()
        before = Tensor(self.data, self.grad_fn, self.output_nr)
        result = operation(before, *(operand(a) for a in arguments), **params)
        return self._become(result)

    def _check_in_place(self) -> None:
        if self.grad_fn is None and self._leaf_requires_grad and grad_enabled.get():
            raise DifferentiationError(
                "a leaf Variable that requires grad is being used in an in-place operation.",
                hint="do it within `with no_grad():`",
            )

    def _become(self, result: Any) -> Tensor:
        if result.shape != self.shape:
            raise ShapeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(result.shape)}"
            )
        if arrays.is_floating(result.data) and not arrays.is_floating(self.data):
            raise EvaluationError(f"result type {result.dtype} can't be cast to the desired output type {self.dtype}")
        self.data = arrays.astype(result.data, self.dtype)
        self.version += 1
        if self.grad_fn is not None:
            self.grad_fn.output_modified(self.output_nr)
        if result.grad_fn is not None:
            self._move_to(result.grad_fn, result.output_nr)
        return self

    def _move_to(self, node: Node, number: int) -> None:
        """Become output `number` of `node`, where the gradient is then retained, if it was."""
        if self._retained and self.grad_fn is not None and self.grad_fn.retained:
            self.grad_fn.retained.pop(self.output_nr)
        self.grad_fn, self.output_nr = node, number
        if self._retained:
            self._retained = False
            self.retain_grad()

    def zero_(self) -> Tensor:
        """Set every element to 0."""
        return self.fill_(0.0)

    def fill_(self, value: Any) -> Tensor:
        """Set every element to `value`."""
        return self.copy_(value)

    def copy_(self, source: Any) -> Tensor:
        """Take over the values of `source`, broadcast to this shape and converted to this dtype."""
        return self._in_place(_replaced, conversions.cast(operand(source), self.dtype))

    def __iadd__(self, other: Any) -> Tensor:
        return self._in_place(arithmetic.add, other)

    def __isub__(self, other: Any) -> Tensor:
        return self._in_place(arithmetic.subtract, other)

    def __imul__(self, other: Any) -> Tensor:
        return self._in_place(arithmetic.multiply, other)

    def __itruediv__(self, other: Any) -> Tensor:
        return self._in_place(arithmetic.divide, other)

    def __ipow__(self, other: Any) -> Tensor:
        return self._in_place(exponential.power, other)


def _replaced(old: Tensor, new: Any) -> Any:
    """`new` in the shape of `old`, to which no gradient flows."""
    return arithmetic.where(False, old, new)


def _moved(operands: Sequence[Any], result: Any) -> Sequence[Any]:
    """The operands with arrays of NumPy as those of the library of `result`, beside which rules will meet them.

    Raises EvaluationError for a tensor of NumPy that is differentiated by: its gradient would be
    an array of another library than its own.
    """
    moved = []
    for item in operands:
        data = item.data if isinstance(item, Tensor) else item
        if type(data) in arrays.PLAIN or arrays.backend_of(type(data)) != "numpy":
            moved.append(item)
            continue
        if isinstance(item, Tensor) and item.requires_grad:
            name = arrays.backend_of(type(result))
            raise EvaluationError(
                f"a tensor of numpy that is differentiated by meets one of {name}",
                hint=f"make both of one library: tensor(…, backend={name!r})",
            )
        array = arrays.beside(data, result)
        moved.append(Tensor(array) if isinstance(item, Tensor) else array)
    return moved


class HookHandle:
    """Removes a hook again."""

    def __init__(self, hooks: list[Hook], hook: Hook) -> None:
        self._hooks = hooks
        self._hook = hook
        hooks.append(hook)

    def remove(self) -> None:
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)


_SCALAR = ShapeOnly(())


class PrimitiveNode(Node):
    """A recorded primitive, with the operands and the result that its rules need."""

    __slots__ = ("params", "primitive", "result", "saved", "versions")

    def __init__(
        self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], result: Any, wanted: int
    ) -> None:
        keep_result, keep = primitive.saved(wanted, len(operands))
        edges: list[Edge | None] = []
        saved: list[Any] = []
        versions: list[int] = []
        for i, item in enumerate(operands):
            if isinstance(item, Tensor):
                edges.append((item.grad_fn or item, item.output_nr) if wanted >> i & 1 else None)
                versions.append(item.version)
                saved.append(item if keep[i] else shape_only(item.data))
            else:
                edges.append(None)
                versions.append(0)
                saved.append(arrays.owned(item) if keep[i] else shape_only(item))
        name = primitive.node_name
        Node.__init__(self, name if isinstance(name, str) else name(operands, params), tuple(edges))
        self.primitive = primitive
        self.params = params
        self.saved: list[Any] | None = saved
        self.versions = versions
        self.result = result if keep_result else shape_only(result)

    def pull(
        self, cotangents: Sequence[Any], wanted: Sequence[bool], *, differentiable: bool, guarded: bool
    ) -> Sequence[Any]:
        if self.saved is None:
            raise DifferentiationError(RELEASED)
        operands = []
        for item, version in zip(self.saved, self.versions):
            if isinstance(item, Tensor):
                check_version(item, version)
                item = item if differentiable else item.data
            operands.append(item)
        result = self.result
        if isinstance(result, ModifiedResult):
            result.refuse(self)
        if differentiable and not isinstance(result, ShapeOnly):
            result = Tensor(result, self)
        pulled: list[Any] = []
        for i, want in enumerate(wanted):
            if not want:
                pulled.append(None)
                continue
            cotangent = self.primitive.rule(i)(cotangents[0], result, *operands, **self.params)
            if guarded:
                cotangent = drop_untaken(self.primitive, i, cotangents[0], cotangent, result, operands, self.params)
            pulled.append(fit(cotangent, operands[i]))
        return pulled

    def release(self) -> None:
        for kept in (self.result, *(self.saved or ())):
            if type(kept) is not ShapeOnly:
                self.saved = self.result = None
                return

    def output_modified(self, _number: int) -> None:
        if isinstance(self.result, ModifiedResult):
            self.result.version += 1
        elif self.result is not None and not isinstance(self.result, ShapeOnly):
            self.result = ModifiedResult(self.result)


class ModifiedResult:
    """Stands for a saved result that was modified in place, and cannot be used any more."""

    __slots__ = ("dtype", "shape", "version")

    def __init__(self, result: Any) -> None:
        self.dtype = arrays.dtype_name(result)
        self.shape = arrays.shape(result)
        self.version = 1

    def refuse(self, node: Node) -> NoReturn:
        what = f"[{self.dtype} {list(self.shape)}], which is output 0 of {node.name},"
        raise DifferentiationError(_MODIFIED.format(what, self.version, 0))


def check_version(saved: Tensor, version: int) -> None:
    """Raise where a saved tensor was modified after it was saved."""
    if saved.version != version:
        what = f"[{saved.dtype} {list(saved.shape)}]"
        if saved.grad_fn is not None:
            what += f", which is output {saved.output_nr} of {saved.grad_fn.name},"
        raise DifferentiationError(_MODIFIED.format(what, saved.version, version))


def shape_only(array: Any) -> Any:
    """What stands for an operand that is not needed; one of another kind says more than its shape."""
    if type(array) in arrays.PLAIN:
        return _SCALAR
    return array if isinstance(array, Kind) else ShapeOnly(arrays.shape(array))


def fit(cotangent: Any, like: Any) -> Any:
    """A cotangent summed to the shape of an operand that was broadcast, or that the rows of a batch share."""
    if type(cotangent) is float and type(like) is float:
        return cotangent
    if isinstance(cotangent.data if type(cotangent) is Tensor else cotangent, Kind):
        from gradcli.autograd.batches import sum_over_rows

        cotangent = sum_over_rows(cotangent, like)
    shape = arrays.shape(like)
    return cotangent if arrays.shape(cotangent) == shape else sum_to(cotangent, shape)


def _text(array: Any) -> str:
    if type(array) in arrays.PLAIN or isinstance(array, Kind):
        return repr(array)
    text = repr(arrays.to_numpy(array))
    return text.removeprefix("array(").removesuffix(")").replace("\n" + " " * 6, "\n" + " " * 7)
