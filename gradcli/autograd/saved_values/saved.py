"""Placeholders for operands and results that nodes save, and checks that they were not freed or modified."""

from __future__ import annotations

from typing import Any, NoReturn

from gradcli import arrays
from gradcli.autograd.node import Node
from gradcli.autograd.tensor_base import TensorBase
from gradcli.errors import DifferentiationError

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
