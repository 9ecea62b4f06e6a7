"""Tensors that share data: views, detached tensors and `.data`, and the version counters of in-place changes.

Arrays are never written into. An in-place operation replaces the data of the storage: the elements of the view that it
is applied to are replaced, which is the transpose of the primitives that made the view. All tensors that share the
storage then drop their data, and views their place in the graph; they look these up again at the next access. Tensors
that are never changed in place therefore have plain attributes.
"""

from __future__ import annotations

from _thread import RLock
from _weakref import ref
from collections.abc import Mapping, Sequence

from gradcli import arrays
from gradcli.autograd.modes import grad_enabled, inference
from gradcli.autograd.node import Node
from gradcli.errors import DifferentiationError
from gradcli.primitives import strides
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.operation import Operation
from gradcli.primitives.primitive import Primitive
from gradcli.primitives.strides import Layout, always
from gradcli.type_hints import Any

# Writing a part of shared data reads, changes and replaces all of it, which threads must not interleave.
sharing_lock = RLock()


class Counter:
    """The version counter of tensors that count in-place changes together; None if changes are not counted.

    `nodes` are the nodes that may have saved the data as a result, with the output numbers.
    """

    __slots__ = ("nodes", "version")

    def __init__(self, version: int | None) -> None:
        self.version = version
        self.nodes: list[tuple[ref[Node], int]] = []

    def watch(self, node: Node | None, number: int) -> None:
        if node is not None and node.keeps_results():
            self.nodes.append((ref(node), number))

    def count(self) -> None:
        if self.version is None:
            return
        self.version += 1
        for reference, number in self.nodes:
            node = reference()
            if node is not None:
                node.output_modified(number, self.version)


class Storage:
    """The data shared by tensors.

    The tensors in `_fresh` hold current data; those in `_forgetful` have dropped theirs and will fetch it again.
    """

    __slots__ = ("_forgetful", "_fresh", "_most", "numbers")

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers
        self._fresh: list[ref[Any]] = []
        self._forgetful: list[ref[Any]] = []
        self._most = 32

    def __len__(self) -> int:
        return arrays.size(self.numbers)

    def data_ptr(self) -> int:
        """A number that identifies the storage, followed by enough unused numbers for the positions in it."""
        return id(self) << 32

    def join(self, tensor: Any) -> None:
        """Register a tensor that holds data of this storage."""
        with sharing_lock:
            self._fresh.append(ref(tensor))
            if len(self._fresh) > self._most:
                self._fresh = _living(self._fresh)
                self._most = 32 + 2 * len(self._fresh)

    def sharing(self) -> list[Any]:
        """The tensors that share the storage."""
        known = (reference() for reference in _living(self._fresh + self._forgetful))
        return [tensor for tensor in known if tensor is not None and tensor.place.storage is self]

    def change(self, numbers: Any) -> None:
        """Replace the data; all tensors that share it drop theirs."""
        self.numbers = numbers
        known, self._fresh = self._fresh, []
        self._forgetful += known
        if len(self._forgetful) > 2 * self._most:
            self._forgetful = _living(self._forgetful)
            self._most = max(self._most, len(self._forgetful))
        for reference in _living(known):
            tensor = reference()
            if tensor is not None and tensor.place.storage is self:
                tensor.place.invalidate(tensor)


def _living(references: list[ref[Any]]) -> list[ref[Any]]:
    """The references to living tensors, without duplicates."""
    # Compared by id, because the equality of two references is that of their tensors, which is elementwise.
    return [*{id(known): known for known in references if known() is not None}.values()]


_NO_PARAMS: Mapping[str, Any] = {}
_OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)
_AMBIGUOUS = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the {0} block (if you don't want the inplace to be tracked) or both "
    "outside (if you want the inplace to be tracked)."
)
_SEVERAL = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)
_IN_FUNCTION = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
    "handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
    "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)
_GONE = "The base of this view was itself changed in place by as_strided_(), and has not all its elements any more."

# How a view was made, as a format with a slot for what is done to it, and why that is forbidden.
Refusal = tuple[str, str]
_UNRECORDED = "created in"
_NO_GRAD = (
    "A view was created in no_grad mode and {} inplace with grad mode enabled",
    _AMBIGUOUS.format("no_grad"),
)
_INFERENCE = (
    "A view was created in inference mode and {} inplace in normal mode",
    _AMBIGUOUS.format("inference_mode"),
)


class StoragePlace:
    """How a tensor gets its data from a storage.

    `primitive` computes it from the data of the place `parent`; the first place has the data of the storage itself. A
    view is also a part of the tensor `base` in the graph, whose place was `origin` when the view was made. `refusal`
    says how it was made and why recorded in-place changes of it are forbidden. `version` is the one at which its place
    in the graph was determined, None if it was dropped. `bearer`, which most places lack, refers to the tensor here if
    its tangent is separate from that of its base, although its data is not.
    """

    __slots__ = (
        "_layout",
        "base",
        "bearer",
        "counter",
        "origin",
        "params",
        "parent",
        "primitive",
        "refusal",
        "storage",
        "version",
    )

    def __init__(
        self,
        storage: Storage,
        counter: Counter,
        parent: StoragePlace | None = None,
        primitive: Primitive | None = None,
        params: Mapping[str, Any] = _NO_PARAMS,
        base: Any = None,
        origin: StoragePlace | None = None,
        refusal: Refusal | None = None,
    ) -> None:
        self.storage = storage
        self.counter = counter
        self.parent = parent
        self.primitive = primitive
        self.params = params
        self.base = base
        self.origin = origin
        self.refusal = refusal
        self.version: int | None = counter.version
        self._layout: Layout | None = None
        self.bearer: ref[Any]

    def alias(self, counter: Counter) -> StoragePlace:
        """A place with the same data, outside of the graph."""
        return StoragePlace(self.storage, counter, self.parent, self.primitive, self.params)

    @property
    def viewed(self) -> Any:
        """The tensor of which this is a part in the graph; None if there is none, or it has other data now."""
        base = self.base
        if base is None or base.place is self.origin:
            return base
        return base if base.place.storage is self.storage else None

    def layout(self) -> Layout:
        """The shape, strides and offset of the elements in the storage."""
        place, waiting = self, []
        while place._layout is None and place.parent is not None:
            waiting.append(place)
            place = place.parent
        found = place._layout or strides.contiguous(arrays.shape(self.storage.numbers))
        for place in reversed(waiting):
            step: Any = place.primitive
            place._layout = found = step.strides(found, **place.params)
        return found

    def applied_to(self, numbers: Any, origin: StoragePlace | None = None) -> Any:
        """The elements of this place, given the data `numbers` of the place `origin`, or of the storage if None."""
        steps = []
        place: StoragePlace | None = self
        while place is not origin and place is not None and place.primitive is not None:
            steps.append((place.primitive, place.params))
            place = place.parent
        for primitive, params in reversed(steps):
            numbers = bind(primitive, (numbers,), params)
        return numbers

    def positions(self) -> Any:
        """The indices of the elements of this place in the flattened storage."""
        # Imported here, because only programs that change tensors in place need it.
        from gradcli.primitives.entries.manipulation.functional_update import positions

        return arrays.to_numpy(self.applied_to(positions(arrays.shape(self.storage.numbers))))

    def invalidate(self, tensor: Any) -> None:
        """Make a tensor drop its data, and a view its place in the graph, so that they are looked up again."""
        del tensor.inner, tensor.version
        tensor.form = None
        if self.viewed is not None and self.version not in (None, self.counter.version):
            self.version = None
            tensor.leave_node()
            del tensor._node

    def count_change(self) -> None:
        """Increment the version of all tensors that share the data."""
        with sharing_lock:
            self.counter.count()
            self.storage.change(self.storage.numbers)

    def check_written(self) -> None:
        """Raise DifferentiationError if several elements share memory, so that an in-place change is ambiguous."""
        if self.primitive is not None and strides.overlaps(self.layout()):
            raise DifferentiationError(_OVERLAP)

    def check_recorded(self, indirectly: bool = False) -> None:
        """Raise DifferentiationError if a recorded operation must not change this view, or (`indirectly`) its base."""
        if self.refusal is not None:
            made, why = self.refusal
            what = "its base or another view of its base has been modified" if indirectly else "is being modified"
            raise DifferentiationError(f"{made.format(what)}. {why}")


def place_of(tensor: Any) -> StoragePlace:
    """The place of a tensor; it is created at the first call."""
    place: StoragePlace | None = tensor.place
    return _first_place(tensor) if place is None else place


def _first_place(tensor: Any) -> StoragePlace:
    with sharing_lock:
        place: StoragePlace | None = tensor.place
        if place is None:
            counter = Counter(tensor.version)
            counter.watch(tensor._node, tensor.output_nr)
            place = StoragePlace(Storage(tensor.inner), counter)
            place.storage.join(tensor)
            tensor.place = place
        return place


def attach_to(tensor: Any, place: StoragePlace) -> None:
    """Put a tensor that has the data of a place at that place."""
    tensor.place = place
    tensor.version = place.counter.version
    place.storage.join(tensor)


def note_view(made: Any, operand: Any, primitive: Primitive, params: Mapping[str, Any]) -> None:
    """If `made`, the result of a primitive on a tensor, is a view of it, make it share in-place changes."""
    if primitive.shares is not always:
        parent = operand.place
        layout = None if parent is None or parent.primitive is None else parent.layout
        if not primitive.shares(layout, **params):
            return
    register_view(made, operand, primitive, params)


def register_view(made: Any, operand: Any, primitive: Primitive, params: Mapping[str, Any]) -> None:
    """Make `made`, a view of `operand` by a primitive, share in-place changes."""
    parent = operand.place or place_of(operand)
    if operand.version is None:
        # A view of an inference tensor shares its data, and is in no graph.
        attach_to(made, StoragePlace(parent.storage, parent.counter, parent, primitive, params))
        return
    base, origin = (operand, parent) if parent.base is None else (parent.base, parent.origin)
    recorded = grad_enabled.get()
    refusal = None if recorded and parent.refusal is None else _refusal_of(made, parent.refusal)
    attach_to(made, StoragePlace(parent.storage, parent.counter, parent, primitive, params, base, origin, refusal))
    if not recorded and operand.requires_grad:
        made.requires_grad = True


def _refusal_of(view: Any, inherited: Refusal | None) -> Refusal | None:
    if not grad_enabled.get():
        return _INFERENCE if inference.get() else _NO_GRAD
    if inherited is None:
        return None
    made, why = inherited
    if view._node is not None and _UNRECORDED in made:
        # The view is recorded, but the view that it was made from was not.
        mode = made[made.index(_UNRECORDED) :]
        return f"Output 0 of {view._node.name} is a view of a view which was {mode}", why
    return _refusal(view, why)


def note_one_of_several(view: Any, number: int) -> None:
    """Forbid recorded in-place changes of a view that was made together with others."""
    if view.place is not None and grad_enabled.get():
        view.place.refusal = _refusal(view, _SEVERAL, number)


def forbid_in_function(output: Any) -> None:
    """Forbid recorded in-place changes of an output of a user-defined Function that is a view."""
    if output.place is not None and output.place.base is not None:
        output.place.refusal = _refusal(output, _IN_FUNCTION, output.output_nr)


def _refusal(view: Any, why: str, number: int = 0) -> Refusal:
    if view._node is None:
        return _NO_GRAD[0], why
    return f"Output {number} of {view._node.name} is a view and {{}} inplace", why


def find_numbers(tensor: Any) -> tuple[Any, int | None]:
    """Restore the data that a tensor dropped.

    Returns it with its version, because other threads may change them again.
    """
    with sharing_lock:
        place = tensor.place
        tensor.inner = numbers = place.applied_to(place.storage.numbers)
        attach_to(tensor, place)
        return numbers, place.counter.version


def find_history(view: Any) -> Node | None:
    """Restore the place in the graph that a view dropped: as a part of the current base."""
    place = view.place
    base, node, number = place.viewed, None, 0
    if base is not None and base.requires_grad:
        if place.refusal is not None and not grad_enabled.get():
            return None
        place.check_recorded(indirectly=True)
        seen = recomputed_view(place, base)
        node, number = seen._node, seen.output_nr
    place.version = place.counter.version
    view._node = None
    view.move_to(node, number)
    return node


def recomputed_view(place: StoragePlace, base: Any) -> Any:
    """Recompute the view at a place from its current base, which requires grad, and record it."""
    token = grad_enabled.set(True)
    try:
        return _seen_of(base, place)
    finally:
        grad_enabled.reset(token)


def _put(whole: Any, places: Any, part: Any) -> Any:
    # Imported here, because only programs that change tensors in place need it.
    from gradcli.primitives.entries.manipulation.functional_update import set_at_positions

    return set_at_positions(whole, places, part)


def _seen_of(base: Any, place: StoragePlace) -> Any:
    """The elements at a place as a function of its base."""
    if base.place is place.origin:
        return place.applied_to(base, place.origin)
    key = arrays.numpy_namespace().unravel_index(_among_elements_of(base, place), base.shape)
    return bind(index, (base,), {"key": key})


def _among_elements_of(base: Any, place: StoragePlace) -> Any:
    """The indices of the elements of a place in the flattened base."""
    if base.place.primitive is None:
        return place.positions()
    from gradcli.primitives.entries.manipulation.functional_update import indices_in

    numbers = indices_in(base.place.positions(), place.positions())
    if (numbers < 0).any():
        raise DifferentiationError(_GONE)
    return numbers


def write(tensor: Any, part: Any) -> None:
    """Replace the data of `tensor` by that of `part`, for all tensors that share it."""
    with sharing_lock:
        _write(tensor, part)


def _write(tensor: Any, part: Any) -> None:
    place: StoragePlace = tensor.place
    changed, whole = (tensor, part) if place.viewed is None else (place.viewed, _recorded_in_base(place, part))
    if whole is not None and changed.place.primitive is None:
        numbers = whole.inner
    else:
        numbers = part.inner if place.primitive is None else _put(place.storage.numbers, place.positions(), part.inner)
    place.counter.count()
    place.counter.watch(part._node, part.output_nr)
    place.storage.change(numbers)
    if whole is not None and whole._node is not None:
        changed.move_to(whole._node, whole.output_nr)


def _recorded_in_base(place: StoragePlace, part: Any) -> Any:
    """The new base of a view after `part` replaced its elements; None if that is not to be recorded."""
    base = place.viewed
    if not grad_enabled.get() or not (part.requires_grad or base.requires_grad):
        return None
    before = base.made(base.inner, base._node, base.output_nr)
    whole = _put(before, _among_elements_of(base, place), part)
    if whole is not before:
        whole._node.rename("CopySlices")
    return whole


def change_view(tensor: Any, operation: Operation, arguments: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Turn a tensor into the view of it that an operation makes, with the same memory.

    A view of another tensor remains one; its history is recorded as the new view of the base.
    """
    before = tensor._before_change(())
    made = operation(before, *arguments, **params)
    place: StoragePlace | None = tensor.place
    if place is None:
        tensor.inner, tensor.form = made.inner, None
    else:
        tensor.place = _moved(place, made.place, before.place)
    tensor._count_change()
    if made._node is not None and (place is None or place.base is None):
        tensor.move_to(made._node, made.output_nr)
    return tensor


def _moved(place: StoragePlace, made: StoragePlace | None, before: StoragePlace | None) -> StoragePlace:
    """`place` followed by the view primitives that lead from `before` to `made`."""
    steps = []
    while made is not before and made is not None:
        steps.append((made.primitive, made.params))
        made = made.parent
    for primitive, params in reversed(steps):
        place = StoragePlace(
            place.storage, place.counter, place, primitive, params, place.base, place.origin, place.refusal
        )
    return place
