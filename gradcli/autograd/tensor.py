"""The Tensor: an array with an optional place in the graph, which records operations on it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gradcli import arrays
from gradcli.arrays import chosen_namespace
from gradcli.arrays.index_keys import has_arrays
from gradcli.autograd.engine import backward
from gradcli.autograd.modes import check_leaving_graph, grad_enabled, inference, recorded_now
from gradcli.autograd.node import Edge, Node, recorders_now
from gradcli.autograd.operand_forms import ShapeOnly, form_of
from gradcli.autograd.primitive_node import UNCHANGED, PrimitiveNode, RecordingPlan, forms_decide
from gradcli.autograd.tensor_surface import TensorSurface
from gradcli.autograd.views import (
    find_history,
    find_numbers,
    note_one_of_several,
    note_view,
    recomputed_view,
    register_view,
)
from gradcli.errors import DifferentiationError, EvaluationError, MissingRuleError, ShapeError
from gradcli.kinds.branch_points import watcher_now
from gradcli.limits import budget as budget_now
from gradcli.limits import charge_steps
from gradcli.primitives import conversions
from gradcli.primitives.bind import (
    Kind,
    apply_to_numbers,
    bind,
    constant,
    mark_views,
    primal_and_tangents,
)
from gradcli.primitives.entries import arithmetic, comparisons, powers
from gradcli.primitives.entries.indexing import check_order_of_axes, index, normalize_key
from gradcli.primitives.entries.shape import iter_first_axis
from gradcli.primitives.operators import operand
from gradcli.primitives.primitive import Primitive
from gradcli.type_hints import Any

_INFERENCE_IN_PLACE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed. "
    "You can make a clone to get a normal tensor before doing inplace update."
)
# In-place operations that change the view of the memory instead of values.
_IN_PLACE_VIEWS = frozenset(
    ["as_strided_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_"],
)

# The cost of recording a node, in eighths of a step.
_RECORD = 6
# `bit` has at most this value while there are at most as many operands as UNCHANGED has versions.
_MOST_UNCHANGED = 1 << len(UNCHANGED)


class Tensor(TensorSurface):
    """An array with an optional place in the graph of recorded operations; made by `tensor` and by operations."""

    __slots__ = ()

    @staticmethod
    def made(data: Any, grad_fn: Node | None = None, output_nr: int = 0) -> Tensor:
        return Tensor(data, grad_fn, output_nr)

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Compute a primitive on the data of the operands, and record it if an operand requires grad."""
        data: list[Any] = []
        edges: list[Edge | None] = []
        # The forms of the operands, the type for a number that is no tensor, and which operands require grad.
        forms: list[Any] = []
        wanted, bit, unchanged = 0, 1, True
        for item in operands:
            # The identity test is faster than isinstance, and nearly always true.
            if type(item) is Tensor or isinstance(item, Tensor):
                data.append(item.inner)
                forms.append(item.form or _find_form(item))
                if item.version != 0:
                    unchanged = False
                node = item._node
                if node is not None:
                    edges.append((node, item.output_nr))
                    wanted |= bit
                elif item._leaf_requires_grad and (item.version is not None or _beside_normal(operands)):
                    edges.append((item, item.output_nr))
                    wanted |= bit
                else:
                    edges.append(None)
            else:
                data.append(item)
                edges.append(None)
                kind = type(item)
                forms.append(kind)
                if kind is not float and kind is not int:
                    unchanged = False
            bit += bit
        if wanted and not recorded_now():
            wanted = 0
        forms.append(wanted)
        key = tuple(forms)
        # In a chosen namespace the library of the result depends on more than the forms.
        chosen = chosen_namespace()
        recording = primitive.recordings.get(key) if chosen is None else None
        if recording is None:
            result = bind(primitive, data, params)
            if wanted:
                charge_steps(_RECORD)
            decided = chosen is None and forms_decide(key)
            if wanted or decided:
                recording = RecordingPlan(primitive, operands, params, data, wanted | bit, result)
            if decided and recording is not None:
                recording.keep(key, data, params)
        elif recording.of_numbers:
            result = apply_to_numbers(primitive, data, params, _RECORD if wanted else 0)
        elif recording.run is not None and budget_now() is None:
            try:
                result = recording.run(data, params)
            except Exception:
                # `bind` raises the error with its explanation.
                result = bind(primitive, data, params)
        else:
            result = bind(primitive, data, params)
            if wanted:
                charge_steps(_RECORD)
        if wanted and recording is not None:
            if recording.needs.rules:
                if recording.run is None and arrays.backend_of(type(result)) not in ("numpy", None):
                    operands = _moved(operands, result)
                form = recording.form or form_of(result)
                versions = UNCHANGED if unchanged and bit <= _MOST_UNCHANGED else [*map(_version, operands)]
                node = PrimitiveNode(recording, operands, params, edges, versions, result, form)
                recorders = recorders_now()
                if recorders:
                    for record in recorders:
                        record(node, result)
                made = Tensor(result, node)
                made.form = form
                if primitive.strides is not None:
                    note_view(made, operands[0], primitive, params)
                return made
            if primitive.truths or primitive.smooth is not None:
                see = watcher_now()
                if see is not None:
                    see(primitive, data, params)
        made = Tensor(result)
        if inference.get():
            made.version = None
        if primitive.strides is not None:
            note_view(made, operands[0], primitive, params)
        return made

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Accumulate the gradients of this tensor in the leaves, or in `inputs` only.

        `gradient` is the cotangent, in the shape of this tensor; it defaults to 1 for a scalar. With `create_graph` the
        gradients can be differentiated again. Raises DifferentiationError if there is no graph, the graph was freed, or
        a non-scalar has no `gradient`.
        """
        backward((self,), (gradient,), retain_graph, create_graph, inputs)

    # --- its numbers

    def item(self) -> Any:
        """The value of a tensor with one element, as a Python number."""
        if self.size != 1:
            raise ShapeError(f"a Tensor with {self.size} elements cannot be converted to Scalar")
        return arrays.to_numpy(constant(self.inner)).item()

    def tolist(self) -> Any:
        return arrays.tolist(constant(self.inner))

    def numpy(self) -> Any:
        """The values as a read-only NumPy array.

        Raises DifferentiationError if the tensor requires grad, except within `no_grad`.
        """
        if grad_enabled.get() and self.requires_grad:
            raise DifferentiationError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        check_leaving_graph(carried=len(primal_and_tangents(self.inner)) > 1)
        array = arrays.to_numpy(constant(self.inner)).view()
        array.flags.writeable = False
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        if copy is False and dtype is not None and array.dtype != dtype:
            raise ValueError("unable to avoid a copy while creating an array of another dtype")
        return array.astype(array.dtype if dtype is None else dtype, copy=bool(copy))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        # Imported here, because only programs that pass tensors to NumPy need it.
        from gradcli.autograd.operations.numpy_protocols import call_ufunc

        return call_ufunc(ufunc, method, inputs, keywords)

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Any:
        from gradcli.autograd.operations.numpy_protocols import call_function

        return call_function(function, types, arguments, keywords)

    def __dlpack__(self, **options: Any) -> Any:
        """Export a copy to another library.

        Raises DifferentiationError if the tensor requires grad, except within `no_grad`.
        """
        if self.requires_grad and grad_enabled.get():
            raise DifferentiationError("Can't export tensors that require gradient, use tensor.detach()")
        return arrays.owned(self._data_as_array()).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._data_as_array().__dlpack_device__()
        return device

    def _data_as_array(self) -> Any:
        """The data, of a Python number as a 0-d NumPy array."""
        return arrays.to_numpy(self.inner) if type(self.inner) in arrays.PYTHON_NUMBERS else self.inner

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.size != 1 or arrays.is_floating(self.inner):
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError("Boolean value of Tensor with more than one value is ambiguous")
        condition = constant(self.inner)
        # A condition that is being traced records how it was decided.
        return bool(condition if isinstance(condition, Kind) else self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(mark_views(iter_first_axis(self), "UnbindBackward0"))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Tensor):
            # Imported here, because only programs that index by tensors need it.
            from gradcli.primitives.entries.manipulation.batched_indexing import is_batched, take

            if is_batched(key) and key.dtype.startswith("int"):
                return take(self, key)
        elif type(key) is tuple:
            check_order_of_axes(key)
        return index(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Replace elements by a value that is broadcast to their shape and converted to this dtype.

        Raises ShapeError for an invalid key or a value of another shape.
        """
        if type(key) is tuple:
            check_order_of_axes(key)
        places, value = normalize_key(key, self), operand(value)
        if not has_arrays(places):
            part = self if places == (Ellipsis,) else index(self, places)
            extra = len(arrays.shape(value)) - part.ndim
            part.copy_(conversions.reshape(value, arrays.shape(value)[extra:]) if extra > 0 else value)
        else:
            # Imported here, because only programs that change tensors in place need it.
            from gradcli.primitives.entries.manipulation.functional_update import set_at

            self._in_place(lambda old, new: set_at(old, places, new), conversions.cast(value, self.dtype))

    def __repr__(self) -> str:
        text = _text(self.inner)
        try:
            node = self._node
        except DifferentiationError:
            return f"tensor({text}, grad_fn=<Invalid>)"
        if node is not None:
            return f"tensor({text}, grad_fn=<{node.name}>)"
        return f"tensor({text}, requires_grad=True)" if self.requires_grad else f"tensor({text})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    # --- functions as methods

    def where(self, condition: Any, other: Any) -> Any:
        """The elements of this tensor where the condition is true, else those of `other`."""
        return comparisons.where(operand(condition), self, operand(other))

    def __getattr__(self, name: str) -> Any:
        """Functions of one tensor are methods, and with a trailing underscore in-place methods.

        A function becomes a method of the class at its first use, because a failed lookup takes longer than most
        operations. The attributes `inner`, `version` and `_node` are found here after a change through another tensor;
        see `gradcli.autograd.views`.
        """
        if name == "inner" or name == "version":
            numbers, version = find_numbers(self)
            return numbers if name == "inner" else version
        if name == "_node":
            return find_history(self)
        found = _function(name)
        if found is not None:
            setattr(Tensor, name, _method(found))
            return getattr(self, name)
        if name.endswith("_") and not name.startswith("_"):
            found = _function(name[:-1])
            if found is not None:
                return functools.partial(self._see_otherwise if name in _IN_PLACE_VIEWS else self._in_place, found)
        raise AttributeError(f"'Tensor' object has no attribute {name!r}")

    # --- in-place operations

    def made_as_view(self, operand: Any, primitive: Primitive, params: Mapping[str, Any]) -> None:
        register_view(self, operand, primitive, params)

    def in_memory(self) -> Any:
        place = self.place
        if place is None or place.primitive is None:
            return None
        return place.positions()

    def made_together(self, number: int, node_name: str) -> None:
        if isinstance(self._node, PrimitiveNode):
            self._node.rename(node_name)
        note_one_of_several(self, number)

    def made_by(self, node_name: str, gradient_name: str | None, operand: Any) -> None:
        node = self._node
        if isinstance(node, PrimitiveNode):
            node.rename(node_name)
            if gradient_name is not None and isinstance(operand, Tensor) and operand.requires_grad:
                node.stays_in = operand.edge, operand.shape, gradient_name

    def _in_place(self, operation: Callable[..., Any], *arguments: Any, **params: Any) -> Tensor:
        given = [operand(a) for a in arguments]
        before = self._before_change(given)
        if self.place is not None:
            self.place.check_written()
        result = operation(before, *given, **params)
        if before.requires_grad and not result.requires_grad and grad_enabled.get():
            # The old values no longer matter, but the history stays in the graph.
            result = _with_old_history(before, result)
        return self._become(result)

    def _before_change(self, given: Sequence[Any]) -> Tensor:
        """A tensor with the present data and history, before an in-place change by an operation with further operands
        `given`.

        Raises DifferentiationError if the change is not allowed.
        """
        if grad_enabled.get():
            self._check_recorded(given)
        if self.version is None and not inference.get():
            raise DifferentiationError(_INFERENCE_IN_PLACE)
        node, number = self._node, self.output_nr
        if node is not None and node.attached is not None and self.place is not None and self.place.viewed is not None:
            # The hooks of a view apply to what is computed from it, not to the change of its base.
            seen = recomputed_view(self.place, self.place.viewed)
            node, number = seen._node, seen.output_nr
        return Tensor(self.inner, node, number)

    def _check_recorded(self, given: Sequence[Any]) -> None:
        """Raise DifferentiationError if a recorded change of this leaf or view by operands `given` is not allowed."""
        place, leaf = self.place, None
        if place is not None and place.base is not None:
            base = place.base
            wanted = base.requires_grad or self.requires_grad
            if wanted or any(isinstance(g, Tensor) and g.requires_grad for g in given):
                place.check_recorded()
            if wanted and base.is_leaf:
                leaf = "a view of a leaf Variable"
        if leaf is None and self._leaf_requires_grad and self._node is None:
            leaf = "a leaf Variable"
        if leaf is not None:
            raise DifferentiationError(
                f"{leaf} that requires grad is being used in an in-place operation.",
                hint="do it within `with no_grad():`",
            )

    def zero_(self) -> Tensor:
        """Set every element to 0."""
        return self.fill_(0.0)

    def fill_(self, value: Any) -> Tensor:
        """Set every element to `value`, also where several elements share memory."""
        return self._become(
            _with_old_history(self._before_change([value]), conversions.cast(operand(value), self.dtype))
        )

    def copy_(self, source: Any) -> Tensor:
        """Copy the values of `source`, broadcast to this shape and converted to this dtype."""
        if not grad_enabled.get() and self._takes_as_it_is(source):
            return self._in_place(lambda _before, numbers: Tensor(numbers), source.inner)
        return self._in_place(_with_old_history, conversions.cast(operand(source), self.dtype))

    def _takes_as_it_is(self, source: Any) -> bool:
        """Return whether the data of `source` can be taken without conversion, if nothing is recorded."""
        return type(source) is Tensor and source.shape == self.shape and source.dtype == self.dtype

    def set_(self, source: Tensor) -> Tensor:
        """Take and share the data of another tensor, as with `x.data = source`, but increment the version."""
        if grad_enabled.get():
            self._check_recorded(())
        self.data = source
        self._count_change()
        return self

    def take_result(self, name: str, operands: Sequence[Any], compute: Callable[[], Any]) -> Any:
        given = [o for o in (self, *operands) if isinstance(o, Tensor)]
        if any(tensor.dual for tensor in given):
            raise MissingRuleError(
                f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
            )
        if grad_enabled.get() and any(tensor.requires_grad for tensor in given):
            raise DifferentiationError(
                f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
                "arguments requires grad."
            )
        self._before_change(())
        result = compute()
        return self._become(result if isinstance(result, Tensor) else self.made(result))

    def __iadd__(self, other: Any) -> Tensor:
        return self._in_place(arithmetic.add, other)

    def __isub__(self, other: Any) -> Tensor:
        return self._in_place(arithmetic.subtract, other)

    def __imul__(self, other: Any) -> Tensor:
        return self._in_place(arithmetic.multiply, other)

    def __itruediv__(self, other: Any) -> Tensor:
        return self._in_place(arithmetic.divide, other)

    def __ipow__(self, other: Any) -> Tensor:
        return self._in_place(powers.power, other)


@functools.cache
def _function(name: str) -> Any:
    # Imported here, because programs of the language do not call methods.
    from gradcli.autograd.operations.tensor_functions import function

    return function(name)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Tensor, *arguments: Any, **keywords: Any) -> Any:
        return function(self, *arguments, **keywords)

    return method


def _find_form(tensor: Any) -> ShapeOnly:
    """The form of a tensor, which is also kept with it."""
    tensor.form = found = form_of(tensor.inner)
    return found


def _version(operand: Any) -> int | None:
    """The version of an operand; None if its changes are not counted."""
    if isinstance(operand, Tensor):
        return operand.version
    return 0 if type(operand) in (float, int) else None


def _beside_normal(operands: Sequence[Any]) -> bool:
    """Return whether some operand is not an inference tensor; operations on inference tensors alone are not
    recorded."""
    return any(isinstance(item, Tensor) and item.version is not None for item in operands)


def _with_old_history(old: Tensor, new: Any) -> Any:
    """`new` in the shape of `old`. The gradient flows to `new`, and zeros to `old`, which stays in the graph."""
    return comparisons.where(False, old, new)


def _moved(operands: Sequence[Any], result: Any) -> Sequence[Any]:
    """The operands with NumPy arrays moved to the library of `result`, for use by the rules.

    Raises EvaluationError for a NumPy tensor that requires grad: its gradient would be an array of another library.
    """
    moved = []
    for item in operands:
        data = item.inner if isinstance(item, Tensor) else item
        if type(data) in arrays.PYTHON_NUMBERS or arrays.backend_of(type(data)) != "numpy":
            moved.append(item)
            continue
        if isinstance(item, Tensor) and item.requires_grad:
            name = arrays.backend_of(type(result))
            raise EvaluationError(
                f"a tensor of numpy that is differentiated by meets one of {name}",
                hint=f"make both of one library: tensor(…, backend={name!r})",
            )
        array = arrays.like_library_of(data, result)
        if isinstance(item, Tensor):
            tensor = Tensor(array)
            tensor.version = item.version
            moved.append(tensor)
        else:
            moved.append(array)
    return moved


def _text(array: Any) -> str:
    if type(array) in arrays.PYTHON_NUMBERS or isinstance(array, Kind):
        return repr(array)
    text = repr(arrays.to_numpy(array))
    # Further lines are moved by one: `tensor(` is longer than `array(`.
    return text.removeprefix("array(").removesuffix(")").replace("\n" + " " * 6, "\n" + " " * 7)
