"""Hooks on what is saved for backward: it can be kept elsewhere, or as something else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from gradcli import arrays
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.packed import Pack, Unpack
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError

# Why there must be none, where there must not.
_disabled: ContextVar[str | None] = ContextVar("gradcli_saved_hooks_disabled", default=None)


class _Packer:
    """Told of each operation as it is recorded, it packs what that saves; the innermost of several does."""

    def __init__(self, pack: Pack, unpack: Unpack) -> None:
        self.pack = pack
        self.unpack = unpack

    def __call__(self, node: Node, _result: Any) -> None:
        if isinstance(node, PrimitiveNode) and innermost() is self:
            node.pack_all(self.pack, self.unpack)


def innermost() -> _Packer | None:
    """The hooks for what is saved now."""
    return next((known for known in recorders.get() if isinstance(known, _Packer)), None)


class saved_tensors_hooks:
    """Within the block `pack_hook(tensor)` is called with every tensor that is saved for backward, and what it returns is
    kept; when the tensor is needed, `unpack_hook` makes one of that again.

    In place of a tensor that requires grad the hook is given one without a graph. It must not change it in place. What was
    packed is not known to be changed in place later.
    """

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        self._packer = _Packer(pack_hook, unpack_hook)

    def __enter__(self) -> None:
        message = _disabled.get()
        if message is not None:
            raise DifferentiationError(message)
        recorders.set((self._packer, *recorders.get()))

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        found = innermost()
        if found is not None:
            known = list(recorders.get())
            known.remove(found)
            recorders.set(tuple(known))


class save_on_cpu(saved_tensors_hooks):
    """Within the block what is saved for backward is kept in the memory of the CPU, and brought back to its device when it
    is needed. `pin_memory` and `device_type` are taken as PyTorch has them, and change nothing."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(_to_cpu, _from_cpu)


def _to_cpu(tensor: Tensor) -> tuple[Any, Any]:
    numbers = tensor.inner
    namespace = arrays.foreign_namespace((numbers,))
    if namespace is None:
        return numbers, None
    return arrays.to_numpy(numbers), arrays.zeros((0,), arrays.dtype_name(numbers), namespace)


def _from_cpu(kept: tuple[Any, Any]) -> Tensor:
    numbers, on_device = kept
    return Tensor(numbers if on_device is None else arrays.beside(numbers, on_device))


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within the block hooks for what is saved are a DifferentiationError that says `error_message`; so is the block
    within hooks."""
    if innermost() is not None:
        raise DifferentiationError(error_message)
    token = _disabled.set(error_message)
    try:
        yield
    finally:
        _disabled.reset(token)


def saved_tensors_hooks_is_enabled() -> bool:
    """Whether hooks for what is saved may be used here."""
    return _disabled.get() is None
