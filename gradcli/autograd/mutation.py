"""Allow saved tensors to be changed in place before backward uses them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakValueDictionary

from gradcli.autograd.saved_hooks import saved_tensors_hooks
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError


class _Saved:
    """The data and tangent of a tensor when it was saved, and an alias by which later changes are detected."""

    def __init__(self, tensor: Tensor) -> None:
        self.alias = tensor.detach()
        self.numbers = tensor.inner
        self.dual = tensor._apart() if tensor.dual else None
        self.version = self.alias.version

    @property
    def changed(self) -> bool:
        return bool(self.alias.version != self.version)


class Mutations:
    """The tensors saved within a block of `allow_mutation_on_saved_tensors`, for debugging.

    `tid_to_weakhandle` has them by storage and data, and `cloned` those that were changed since.
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
        # Tensors with the same data may have different tangents.
        numbers = saved.numbers if saved.dual is None else saved.dual
        # The ids are unique, because the saved object keeps both alive.
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
    """Within the block, tensors saved for backward may be changed in place: backward uses their former values.

    Backward must run within the block too. Raises DifferentiationError if nested.
    """
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
