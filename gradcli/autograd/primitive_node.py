"""The node of a recorded primitive: it saves what the vjp rules need and applies them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.autograd.modes import span_now
from gradcli.autograd.node import RELEASED, Edge, Node, named_class, next_sequence
from gradcli.autograd.operand_forms import UNDECIDED, ShapeOnly, form_of, shape_only
from gradcli.autograd.saved_values import (
    DETACHED,
    SAVED_INFERENCE,
    ModifiedResult,
    Pack,
    Packed,
    SavedTensor,
    Unpack,
    check_version,
    restored,
)
from gradcli.autograd.tensor_base import TensorBase
from gradcli.autograd.untaken_masks import has_zeros, mask_unless_plain, same_zeros, taken_of, zero_untaken
from gradcli.errors import DifferentiationError
from gradcli.primitives.bind import Kind, constant, readings
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.arithmetic import zeros_like
from gradcli.primitives.entries.comparisons import compares_with_itself, not_equal, where
from gradcli.primitives.entries.complex_parts import real_part
from gradcli.primitives.entries.reductions import sum_, sum_to
from gradcli.primitives.primitive import NodeName, Primitive, SavedForBackward
from gradcli.type_hints import Any

# The versions of up to four operands that were never changed in place. All nodes share this tuple to save memory.
UNCHANGED: Sequence[int | None] = (0,) * 4
# The most forms of operands for which a primitive keeps how it is recorded.
_MOST_RECORDINGS = 256


class PrimitiveNode(Node):
    """A recorded primitive, with the operands and the result that its rules need.

    Operands are stored as given. The result is stored without its place in the graph, as data or, if it is dual, as a
    Tensor, and as its `form` where the rules do not read it. The constructor takes the versions of the operands in
    `versions`; None if the version is not counted.

    A node gets the class of its name only when users see it: attributes of objects of one class are found faster.
    """

    __slots__ = ("params", "recording", "result", "saved", "selects", "stays_in", "versions")
    outputs = 1

    def __init__(
        self,
        recording: RecordingPlan,
        operands: Sequence[Any],
        params: Mapping[str, Any],
        edges: list[Edge | None],
        versions: Sequence[int | None],
        result: Any,
        form: ShapeOnly,
    ) -> None:
        needs = recording.needs
        saved = recording.placeholders
        if not needs.shapes:
            saved = [*operands]
        elif needs.operands:
            saved = [*saved]
            for i in needs.operands:
                saved[i] = operands[i]
        if versions is not UNCHANGED and None in versions:
            _keep_constants(saved, versions, needs)
        if needs.fixed:
            for i in needs.fixed:
                edges[i] = None
        # The assignments of Node.__init__, inlined, because the call would take 3% of the time of an operation on
        # numbers.
        self.edges: Sequence[Edge | None] = edges
        self.sequence: int = next_sequence()
        self.span: Any = span_now()
        self.guarded = False
        self.attached = None
        # For the last primitive of a composite function: the edge, shape and node name by which gradients stay in the
        # graph.
        self.stays_in: tuple[Edge, Shape, str] | None = None
        self.recording = recording
        self.selects = recording.selects
        self.params = params
        self.saved: list[Any] | None = saved
        self.versions = versions
        self.result = result if needs.result else shape_only(result) if form is UNDECIDED else form

    @property
    def name(self) -> NodeName:  # type: ignore[override]
        return self.recording.name_with(self.params)

    @property
    def primitive(self) -> Primitive:
        return self.recording.primitive

    def shown(self) -> PrimitiveNode:
        if type(self) is PrimitiveNode:
            self.rename(self.name)
        return self

    def rename(self, name: str) -> None:
        """Give the node the name of another function than the primitive."""
        self.__class__ = class_named(name)

    @property
    def operands(self) -> list[Any]:
        """The data of the operands, as far as it was saved; empty if it was freed."""
        return [constant(o.tensor(self) if type(o) is Packed else o) for o in self.saved or ()]

    def is_smooth(self) -> bool:
        smooth = self.primitive.smooth
        if smooth is None or self.saved is None or self.compares_with_itself:
            return True
        return smooth(*self.operands, **self.params)

    @property
    def compares_with_itself(self) -> bool:
        """True for the larger or the smaller of a value and itself."""
        values = [None if edge is None else edge[0] for edge in self.edges]
        places = {edge[1] for edge in self.edges if edge is not None}
        return compares_with_itself(self.primitive, values) and values[0] is not None and len(places) == 1

    def pull(
        self,
        cotangents: Sequence[Any],
        wanted: Sequence[object],
        *,
        lift: Callable[..., Any] | None,
        guarded: bool = False,
        mask: Any = None,
        masks: list[Any] | None = None,
    ) -> Sequence[Any]:
        # Read each attribute once, because another thread may release the node in between.
        result, operands = self.result, self.saved
        if operands is None:
            raise DifferentiationError(RELEASED)
        recording, params = self.recording, self.params
        needs = recording.needs
        if needs.operands:
            operands = self._saved_operands(operands, lift)
        if needs.result:
            result = self._saved_output(result, lift)
        of_result = cotangents[0]
        pulled: list[Any] = [None] * len(operands)
        for i, rule in needs.rules:
            if not wanted[i]:
                continue
            # A call without keywords is faster.
            cotangent = rule(of_result, result, *operands, **params) if params else rule(of_result, result, *operands)
            if guarded:
                cotangent = zero_untaken(recording.primitive, i, of_result, mask, cotangent, result, operands, params)
            numbers, like = cotangent, operands[i]
            if lift is not None:
                numbers = numbers.inner if isinstance(numbers, TensorBase) else numbers
                like = like.inner if isinstance(like, TensorBase) else like
            if type(numbers) in readings or type(like) in readings:
                if type(numbers) is not float or type(like) is not float:
                    cotangent = fit(cotangent, like)
            elif numbers.shape != like.shape or numbers.dtype is not like.dtype:
                cotangent = fit(cotangent, like)
            if lift is not None:
                cotangent = self._as_in_pytorch(i, cotangent, of_result)
            pulled[i] = cotangent
        if masks is not None:
            for i, cotangent in enumerate(pulled):
                masks[i] = self._mask_behind(i, of_result, mask, cotangent, result, operands)
        return pulled

    def _saved_operands(self, kept: Sequence[Any], lift: Callable[..., Any] | None) -> list[Any]:
        """The operands with those that the rules read as they were saved: as Tensors if the work is recorded."""
        operands, versions = [*kept], self.versions
        for i in self.recording.needs.operands:
            item = kept[i]
            if isinstance(item, TensorBase):
                if item.version != versions[i]:
                    check_version(item, versions[i])
                if item._node is None and (edge := self.edges[i]) is not None and isinstance(edge[0], Node):
                    raise DifferentiationError(DETACHED)
            elif type(item) is Packed:
                item = item.tensor(self)
            else:
                continue
            operands[i] = item.inner if lift is None and not item.dual else item
        return operands

    def _saved_output(self, result: Any, lift: Callable[..., Any] | None) -> Any:
        """The saved result, in the graph if the work is recorded."""
        if isinstance(result, ModifiedResult):
            result.refuse(self)
        if type(result) is Packed:
            result = result.tensor(self)
            return result if lift is not None or result.dual else result.inner
        if isinstance(result, TensorBase):
            return result if lift is None else result._as_output(self, 0)
        return result if lift is None else lift(result, self)

    def _as_in_pytorch(self, i: int, gradient: Any, cotangent: Any) -> Any:
        """The gradient with respect to an operand, with the place and node name that it has in PyTorch's graph."""
        if self.stays_in is not None:
            return with_zero_dependence(gradient, *self.stays_in)
        name = self.primitive.gradient_name
        if name is not None and not isinstance(name, str):
            name = name(**self.params)
        if name is None or i or not isinstance(gradient, TensorBase):
            return gradient
        if self.primitive.selects or gradient is cotangent:
            return with_zero_dependence(gradient, self.edges[0], gradient.shape, name)
        gradient.made_by(name, None, None)
        return gradient

    def _mask_behind(self, i: int, cotangent: Any, mask: Any, pulled: Any, result: Any, operands: Sequence[Any]) -> Any:
        """A mask of the elements of `pulled`, the cotangent of operand `i`, that were taken.

        It is None if none of the zeros in `pulled` were computed, or that is unknown. `mask` is the mask of the
        result's cotangent.
        """
        if pulled is None or not isinstance((self.edges[i] or (None,))[0], Node):
            return None
        if pulled is cotangent:
            return mask
        if mask is None and self.primitive.elementwise and same_zeros(cotangent, pulled):
            return None
        # Untaken zeros sent by a selecting primitive already mark everything that was not taken.
        if (self.primitive.selects and mask is None) or not has_zeros(pulled):
            return None
        operands = [o.inner if isinstance(o, TensorBase) else o for o in operands]
        result = result.inner if isinstance(result, TensorBase) else result
        taken = taken_of(self.primitive, i, cotangent, mask, result, operands, self.params)
        if taken is None:
            return None
        if isinstance(taken, Kind) or arrays.shape(taken) != arrays.shape(pulled):
            taken = not_equal(fit(where(taken, 1.0, 0.0), operands[i]), 0)
        return mask_unless_plain(taken, pulled)

    def release(self) -> None:
        # Shapes alone can be used by any number of passes.
        needs = self.recording.needs
        if needs.operands or needs.result:
            self.saved = self.result = None

    def output_modified(self, _number: int, version: int) -> None:
        if isinstance(self.result, ModifiedResult):
            self.result.version = version
        elif self.result is not None and type(self.result) is not Packed and self.keeps_results():
            self.result = ModifiedResult(self.result, version)

    def shape_of(self, _number: int) -> Shape:
        self.check_saved()
        return arrays.shape(self.result)

    def keeps_results(self) -> bool:
        # A result of a kind may be stored for its shape only.
        return self.recording.needs.result

    # --- what is saved, as users see it

    def is_released(self) -> bool:
        return self.saved is None

    def kept(self, place: int) -> Any:
        """The saved operand at a position, or for -1 the saved result; None if only its shape is saved."""
        if self.saved is None:
            raise DifferentiationError(RELEASED)
        if place >= len(self.saved):
            raise AttributeError(f"{self.name} has no such operand")
        kept = self.result if place < 0 else self.saved[place]
        return None if type(kept) is ShapeOnly else kept

    def pack(self, place: int, pack: Pack, unpack: Unpack) -> None:
        """Replace a saved tensor by the result of `pack`, if one is saved at this position."""
        kept = self.kept(place)
        if place < 0 and kept is not None and not isinstance(kept, (Packed, Kind)):
            self.result = Packed(self.leaf().made(kept), (None, 0), pack, unpack)
        elif isinstance(kept, TensorBase) and self.saved is not None:
            packed = Packed.saved_by(self, kept, pack, unpack)
            if place < 0:
                self.result = packed
            else:
                self.saved[place] = packed

    def pack_all(self, pack: Pack, unpack: Unpack) -> None:
        for place in range(-1, len(self.edges)):
            self.pack(place, pack, unpack)

    @property
    def _saved_self(self) -> Any:
        """The saved first operand; None if it was not saved."""
        return self._saved_tensor(0)

    @property
    def _saved_other(self) -> Any:
        return self._saved_tensor(1)

    @property
    def _saved_result(self) -> Any:
        return self._saved_tensor(-1)

    @property
    def _raw_saved_self(self) -> SavedTensor:
        return SavedTensor(self, 0)

    @property
    def _raw_saved_other(self) -> SavedTensor:
        return SavedTensor(self, 1)

    @property
    def _raw_saved_result(self) -> SavedTensor:
        return SavedTensor(self, -1)

    def _saved_tensor(self, place: int) -> Any:
        kept = self.kept(place)
        if isinstance(kept, ModifiedResult):
            kept.refuse(self)
        if place >= 0 or kept is None or type(kept) is Packed:
            return restored(kept, self.versions[place], self)
        return kept._as_output(self, 0) if isinstance(kept, TensorBase) else self.leaf().made(kept, self, 0)


class RecordingPlan:
    """How a primitive is recorded, for operands of certain forms.

    `placeholders` are what the node saves of operands of which it needs the shape only. `form` is that of the result;
    None if its shape may depend on more than the operands. `run` computes the primitive, called as run(data, params);
    None if `bind` must dispatch. `of_numbers` says that it is an elementwise function of floats.
    """

    __slots__ = ("_name", "form", "needs", "of_numbers", "placeholders", "primitive", "run", "selects")

    def __init__(
        self,
        primitive: Primitive,
        operands: Sequence[Any],
        params: Mapping[str, Any],
        data: Sequence[Any],
        wanted: int,
        result: Any,
    ) -> None:
        self.primitive = primitive
        self.selects = primitive.selects
        self.needs = needs = primitive.needs.get(wanted) or primitive.find_needs(wanted)
        name = primitive.node_name
        self._name: Any = name if type(name) is NodeName else name(operands, params)
        self.placeholders: list[Any] = [None] * len(data)
        for i in needs.shapes:
            self.placeholders[i] = shape_only(data[i])
        determined = (primitive.elementwise or primitive.multilinear) and not params
        self.form = form_of(result) if determined else None
        self.run: Callable[..., Any] | None = None
        self.of_numbers = False

    def name_with(self, params: Mapping[str, Any]) -> NodeName:
        """The name of the node of an operation with these params."""
        name: NodeName = self._name if type(self._name) is NodeName else self._name(params)
        return name

    def keep(self, key: tuple[Any, ...], data: Sequence[Any], params: Mapping[str, Any]) -> None:
        """Keep it for further operations with this key, whose forms must decide; see `forms_decide`. The params may be
        any."""
        if params and type(self.primitive.node_name) is not NodeName:
            self._name = partial(self.primitive.node_name, [*map(shape_only, data)])
        self.run = arrays.runner_of(self.primitive, data)
        self.of_numbers = self.primitive.elementwise and all(type(item) is float for item in data)
        known = self.primitive.recordings
        if len(known) >= _MOST_RECORDINGS:
            known.clear()
        known[key] = self


def forms_decide(key: tuple[Any, ...]) -> bool:
    """Return whether all operations with this key run and are recorded alike: the forms of the operands, or the types of
    those that are no tensors, followed by a bit mask of those that require grad."""
    return all(form is float or form is int or (type(form) is ShapeOnly and form is not UNDECIDED) for form in key[:-1])


@cache
def class_named(name: str) -> type[PrimitiveNode]:
    """The class of the nodes of primitives that have this name."""
    return named_class(PrimitiveNode, name)


def _keep_constants(saved: list[Any], versions: Sequence[int | None], needs: SavedForBackward) -> None:
    """Make sure that saved operands which are not tensors cannot change any more.

    Raises DifferentiationError for a saved inference tensor.
    """
    for i in needs.operands:
        if not isinstance(saved[i], TensorBase):
            saved[i] = arrays.owned(saved[i])
        elif versions[i] is None:
            raise DifferentiationError(SAVED_INFERENCE)


def fit(cotangent: Any, like: Any) -> Any:
    """A cotangent unbroadcast to an operand.

    It is summed over broadcast axes, and over the rows of a batch that share the operand. Of the cotangent of a real
    operand only the real part matters.
    """
    numbers = cotangent.inner if isinstance(cotangent, TensorBase) else cotangent
    if isinstance(numbers, Kind) and (numbers.by_row or numbers.differential):
        # Loaded on demand, as few programs have batches.
        from gradcli.kinds.batch import sum_over_rows

        cotangent = numbers = sum_over_rows(cotangent, like)
    shape = like.shape if type(like) is ShapeOnly else arrays.shape(like)
    if arrays.shape(numbers) != shape:
        cotangent = sum_to(cotangent, shape)
    if arrays.is_complex(numbers) and not (like.is_complex if type(like) is ShapeOnly else arrays.is_complex(like)):
        return real_part(cotangent)
    return cotangent


# --- gradients whose values do not depend on an operand in whose graph they stay


class AddZero(Node):
    """A node that adds 0 times an operand to a gradient.

    Its edges lead to the history of the gradient and to the operand.
    """

    __slots__ = ("operand_shape", "shape")

    def __init__(self, gradient: Edge | None, operand: Edge, shape: Shape, operand_shape: Shape) -> None:
        super().__init__((gradient, operand))
        self.shape, self.operand_shape = shape, operand_shape

    def pull(
        self,
        cotangents: Sequence[Any],
        wanted: Sequence[object],
        *,
        lift: Callable[..., Any] | None,
        guarded: bool = False,
        mask: Any = None,
        masks: list[Any] | None = None,
    ) -> Sequence[Any]:
        (cotangent,) = cotangents
        if masks is not None:
            masks[0] = mask
        passed = zeros = None
        if wanted[0]:
            passed = (
                cotangent
                if lift is None
                else with_zero_dependence(cotangent, self.edges[1], self.operand_shape, self.name)
            )
        if wanted[1]:
            zeros = zeros_like(cotangent)
            if self.operand_shape != self.shape:
                zeros = broadcast_to(sum_(zeros), self.operand_shape)
        return [passed, zeros]

    def shape_of(self, _number: int) -> Shape:
        return self.shape

    def keeps_results(self) -> bool:
        return False


def with_zero_dependence(gradient: Any, operand: Edge | None, operand_shape: Shape, node_name: str) -> Any:
    """Put the gradient with respect to an operand into the graph of that operand, by a node with this name.

    Batches, series and recorded programs are left unchanged, because it does not matter there whether a gradient is
    None.
    """
    if operand is None or not isinstance(gradient, TensorBase) or isinstance(gradient.inner, Kind):
        return gradient
    edge = gradient.edge if gradient.requires_grad else None
    node = named_class(AddZero, node_name)(edge, operand, gradient.shape, operand_shape)
    return gradient._as_output(node, 0) if gradient.dual else gradient.made(gradient.inner, node, 0)
