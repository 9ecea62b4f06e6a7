"""Saved tensors that may be changed in place before backward uses them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakValueDictionary

from gradcli.autograd.saved_hooks import saved_tensors_hooks
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError


class _Saved:
    """The numbers of a tensor when it was saved, and its tangent, and the tensor, by which later changes of it are seen."""

    def __init__(self, tensor: Tensor) -> None:
        self.alias = tensor.detach()
        self.numbers = tensor.inner
        self.dual = tensor._apart() if tensor.dual else None
        self.version = self.alias.version

    @property
    def changed(self) -> bool:
        return bool(self.alias.version != self.version)


class Mutations:
    """What is saved within a block of `allow_mutation_on_saved_tensors`, for whoever looks for a fault.

    `tid_to_weakhandle` has it by the storage and the numbers, and `cloned` what of it was changed since.
    """

    def __init__(self) -> None:
        self.tid_to_weakhandle: WeakValueDictionary[tuple[int, int], _Saved] = WeakValueDictionary()

    @property
    def cloned(self) -> dict[_Saved, Tensor]:
        return {saved: Tensor(saved.numbers) for saved in self.tid_to_weakhandle.values() if saved.changed}

    def clear(self) -> None:
        self.tid_to_weakhandle.clear()

    def pack(self, tensor: Tensor) -> _Saved:
        saved = _Saved(tensor)
        # Those of the same numbers may have other tangents.
        numbers = saved.numbers if saved.dual is None else saved.dual
        # Both are alive as long as what is saved.
        return self.tid_to_weakhandle.setdefault((id(saved.alias.place.storage), id(numbers)), saved)

    def unpack(self, saved: _Saved) -> Tensor:
        assert _current.get() is self, (
            "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
            "originally recorded."
        )
        return Tensor(saved.numbers) if saved.dual is None else saved.dual._apart()


_current: ContextVar[Mutations | None] = ContextVar("gradcli_mutations", default=None)


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Mutations]:
    """Within the block tensors that were saved for backward may be changed in place: backward, which is to be within it
    too, uses what they were. Raises DifferentiationError within another such block."""
    if _current.get() is not None:
        raise DifferentiationError("allow_mutation_on_saved_tensors contexts cannot be nested")
    mutations = Mutations()
    token = _current.set(mutations)
    try:
        with saved_tensors_hooks(mutations.pack, mutations.unpack):
            yield mutations
    finally:
        _current.reset(token)
        mutations.clear()
