"""Containers for user hooks, and checks of what hooks return."""

from __future__ import annotations

import itertools
from _weakref import ref
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

from gradcli import arrays
from gradcli.errors import CallError, DifferentiationError
from gradcli.primitives.operators import operand
from gradcli.type_hints import Any, Self

# A hook takes gradients as Tensors, or one Tensor, and returns replacements or None.
Hook = Callable[..., Any]

_next_number = itertools.count().__next__


class Hooks(dict[int, Hook]):
    """Hooks in order of registration."""

    __slots__ = ("__weakref__",)

    def register(self, hook: Hook, first: bool = False) -> HookHandle:
        """Add a hook behind the others, or before them."""
        number, others = _next_number(), dict(self)
        if first:
            self.clear()
        self[number] = hook
        self.update(others)
        return HookHandle(self, number)


class HookHandle:
    """Removes registered hooks by `remove` or at the end of a block. It holds weak references to them."""

    __slots__ = ("_places",)

    def __init__(self, hooks: Hooks, number: int) -> None:
        self._places = [(ref(hooks), number)]

    @classmethod
    def joined(cls, handles: Iterable[HookHandle]) -> HookHandle:
        """One handle that removes the hooks of several."""
        handle = cls.__new__(cls)
        handle._places = [place for part in handles for place in part._places]
        return handle

    def remove(self) -> None:
        for reference, number in self._places:
            hooks = reference()
            if hooks is not None:
                hooks.pop(number, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()


class Attached:
    """Hooks and data that users attach to a node.

    `tensors` has the tensor hooks by output number, `retained` the tensors whose gradient is retained, `before` and
    `after` the hooks of the node itself, and `metadata` arbitrary user data.
    """

    __slots__ = ("after", "before", "metadata", "retained", "tensors")

    def __init__(self) -> None:
        self.tensors: dict[int, Hooks] = {}
        self.retained: dict[int, ref[Any]] = {}
        self.before = Hooks()
        self.after = Hooks()
        self.metadata: dict[Any, Any] = {}

    def of_output(self, number: int) -> Hooks:
        return self.tensors.setdefault(number, Hooks())

    @property
    def acts(self) -> bool:
        """True if a backward pass has to do anything for it."""
        return bool(any(self.tensors.values()) or self.retained or self.before or self.after)


def replaced(hook: Hook, cotangents: Sequence[Any], *given: Sequence[Any]) -> Sequence[Any]:
    """The cotangents after calling a hook of a node with tuples of tensors.

    Raises CallError if the hook returns something else than a tuple or None, DifferentiationError for a tuple of
    another length or tensors of other shapes.
    """
    returned = hook(*map(tuple, given))
    if returned is None:
        return cotangents
    if not isinstance(returned, tuple):
        raise CallError(f"expected tuple, but hook returned '{type(returned).__name__}'")
    if len(returned) != len(cotangents):
        raise DifferentiationError(
            f"hook '{_name(hook)}' has returned an incorrect number of values "
            f"(got {len(returned)}, but expected {len(cotangents)})"
        )
    return [None if new is None else checked(hook, new, old) for new, old in zip(returned, cotangents)]


def checked(hook: Hook, new: Any, old: Any) -> Any:
    """The replacement that a hook returned for a cotangent. Raises DifferentiationError if its shape differs."""
    new = operand(new)
    if old is not None and arrays.shape(new) != arrays.shape(old):
        raise DifferentiationError(f"hook '{_name(hook)}' has changed the size of value")
    return new


def _name(hook: Hook) -> Any:
    return getattr(hook, "__name__", hook)
