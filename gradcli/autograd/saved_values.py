"""What nodes save: placeholders for operands and results, tensors packed by hooks, and checks that none was changed."""

from __future__ import annotations

from collections.abc import Callable

from gradcli import arrays
from gradcli.autograd.modes import grad_enabled
from gradcli.autograd.node import Node
from gradcli.autograd.operand_forms import ShapeOnly
from gradcli.autograd.tensor_base import TensorBase
from gradcli.errors import CallError, DifferentiationError
from gradcli.primitives.entries.arithmetic import identity
from gradcli.type_hints import Any, NoReturn

SAVED_INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
    "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or "
    "use `no_grad()` instead of `inference_mode()`."
)

DETACHED = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, please "
    "use out-of-place `.detach()` instead"
)

_MODIFIED = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: "
    "{} is at version {}; expected version {} instead."
)


class ModifiedResult:
    """A placeholder for a saved result that was modified in place and can no longer be used."""

    __slots__ = ("dtype", "number", "saved", "shape", "version")

    def __init__(self, result: Any, version: int, number: int = 0) -> None:
        self.dtype = arrays.dtype_name(result)
        self.shape = arrays.shape(result)
        self.number = number
        self.version = version
        self.saved = version - 1

    def refuse(self, node: Node) -> NoReturn:
        what = f"[{self.dtype} {list(self.shape)}], which is output {self.number} of {node.name},"
        raise DifferentiationError(_MODIFIED.format(what, self.version, self.saved))


class SavedOutput:
    """An output saved by its own node: its data without the graph, to avoid a reference cycle."""

    __slots__ = ("_modified", "_numbers", "number")

    def __init__(self, numbers: Any, number: int) -> None:
        self._numbers = numbers
        self._modified: ModifiedResult | None = None
        self.number = number

    def modified(self, version: int) -> None:
        """Record that the output was modified in place and is now at this version."""
        if self._modified is None:
            self._modified = ModifiedResult(self._numbers, version, self.number)
        self._modified.version = version

    def numbers(self, node: Node) -> Any:
        """The data. Raises DifferentiationError if the output was modified."""
        if self._modified is not None:
            self._modified.refuse(node)
        return self._numbers


def check_version(saved: TensorBase, version: int | None) -> None:
    """Raise DifferentiationError if a saved tensor was modified after it was saved."""
    if saved.version != version:
        what = f"[{saved.dtype} {list(saved.shape)}]"
        if saved._node is not None:
            what += f", which is output {saved.output_nr} of {saved._node.name},"
        raise DifferentiationError(_MODIFIED.format(what, saved.version, version))


# A pack hook maps a tensor to what is stored, an unpack hook maps that back to a tensor.
Pack = Callable[[Any], Any]
Unpack = Callable[[Any], Any]

_IN_PLACE = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
    "modified by in-place operations as this can lead to unexpected side-effects."
)
_FREED = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed "
    "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a "
    "second time or if you need to access saved tensors after calling backward."
)


class Packed(ShapeOnly):
    """The result of a pack hook for a saved tensor.

    The place of the tensor in the graph is stored separately as an edge, None if it has none. The edge of an output of
    the saving node has no target, because that would be a reference cycle.
    """

    __slots__ = ("_edge", "_held", "_is_itself", "_unpack", "_version")

    def __init__(self, tensor: Any, edge: tuple[Any, int] | None, pack: Pack, unpack: Unpack) -> None:
        super().__init__(arrays.shape(tensor.inner))
        self._edge = edge
        self._unpack = unpack
        if tensor.requires_grad:
            tensor = tensor._without_graph() if tensor.dual else tensor.detach()
        self._version = tensor.version
        token = grad_enabled.set(False)
        try:
            self._held = pack(tensor)
        finally:
            grad_enabled.reset(token)
        if tensor.version != self._version:
            raise DifferentiationError(_IN_PLACE)
        self._is_itself = self._held is tensor

    @classmethod
    def saved_by(cls, node: Node | None, tensor: TensorBase, pack: Pack, unpack: Unpack) -> Packed:
        """Pack a tensor that `node` saves, with its place in the graph."""
        edge: Any = None
        if tensor.requires_grad:
            edge = (None, tensor.output_nr) if node is not None and tensor._node is node else tensor.edge
        return cls(tensor, edge, pack, unpack)

    def tensor(self, node: Node | None) -> Any:
        """The unpacked tensor, with its place in the graph; `node` is the node that saved it, if any.

        Raises CallError if the unpack hook does not return a tensor.
        """
        if self._is_itself:
            check_version(self._held, self._version)
        found = self._unpack(self._held)
        if not isinstance(found, TensorBase):
            kind = type(found).__name__
            raise CallError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {kind}")
        if self._edge is None:
            return found
        target, number = self._edge
        if target is not None and not isinstance(target, Node):
            target = _alias_of(target)
        target = target or node
        assert target is not None
        return found._as_output(target, number) if found.dual else found.made(found.inner, target, number)


def _alias_of(leaf: TensorBase) -> Any:
    """An identity node through which a gradient reaches a leaf unchanged."""
    token = grad_enabled.set(True)
    try:
        return identity(leaf).grad_fn
    finally:
        grad_enabled.reset(token)


def restored(saved: Any, version: int | None, node: Node | None) -> Any:
    """Return what `node` saved, unpacked if it was packed. Raises DifferentiationError for a tensor that is no longer
    at this version."""
    if isinstance(saved, Packed):
        return saved.tensor(node)
    if isinstance(saved, TensorBase):
        check_version(saved, version)
    return saved


class SavedTensor:
    """A handle of a tensor that a node saves; `register_hooks` packs it."""

    __slots__ = ("_node", "_place")

    def __init__(self, *arguments: Any) -> None:
        if len(arguments) != 2:
            raise DifferentiationError("Trying to create a SavedTensor object from Python is forbidden")
        self._node, self._place = arguments

    def register_hooks(self, *hooks: Any) -> None:
        """`register_hooks(pack, unpack)`: store the result of `pack` from now on, and restore the tensor by `unpack`.

        Raises CallError for anything but two functions, DifferentiationError if the tensor was freed, is None, or has
        hooks already.
        """
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise CallError("register_hooks(): incompatible function arguments: it takes (pack_hook, unpack_hook)")
        if self._node.is_released():
            raise DifferentiationError(_FREED)
        kept = self._node.kept(self._place)
        if kept is None:
            raise DifferentiationError("Calling register_hooks on a saved tensor with value None is forbidden")
        if isinstance(kept, Packed):
            raise DifferentiationError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        self._node.pack(self._place, *hooks)
