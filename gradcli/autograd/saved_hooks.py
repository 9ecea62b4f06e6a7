"""Hooks that replace the tensors saved for backward, for example to keep them elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from gradcli import arrays
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.saved_values import Pack, Unpack
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError

# The error message if saved-tensor hooks are disabled, else None.
_disabled: ContextVar[str | None] = ContextVar("gradcli_saved_hooks_disabled", default=None)


class _Packer:
    """A recorder that packs the saved tensors of each recorded operation; of several, only the innermost acts."""

    def __init__(self, pack: Pack, unpack: Unpack) -> None:
        self.pack = pack
        self.unpack = unpack

    def __call__(self, node: Node, _result: Any) -> None:
        if isinstance(node, PrimitiveNode) and innermost() is self:
            node.pack_all(self.pack, self.unpack)


def innermost() -> _Packer | None:
    """The hooks that are applied to tensors saved now; None if there are none."""
    return next((known for known in recorders.get() if isinstance(known, _Packer)), None)


class saved_tensors_hooks:
    """Within the block, `pack_hook(tensor)` is called with every tensor saved for backward.

    Its result is stored, and `unpack_hook` maps it back to a tensor when it is needed.

    A tensor that requires grad is passed to the hook without its graph. The hook must not change it in place. Later
    in-place changes of a packed tensor are not detected.
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
    """Within the block, tensors saved for backward are kept in the memory of the CPU.

    They are moved back to their device when they are needed. `pin_memory` and `device_type` are accepted for
    compatibility with PyTorch and have no effect.
    """

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
    return Tensor(numbers if on_device is None else arrays.like_library_of(numbers, on_device))


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within the block, installing saved-tensor hooks raises DifferentiationError with `error_message`.

    Entering the block within such hooks raises it too.
    """
    if innermost() is not None:
        raise DifferentiationError(error_message)
    token = _disabled.set(error_message)
    try:
        yield
    finally:
        _disabled.reset(token)


def saved_tensors_hooks_is_enabled() -> bool:
    """Return whether saved-tensor hooks may be used in this context."""
    return _disabled.get() is None
