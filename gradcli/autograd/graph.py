"""Access to the graph of recorded operations, under the names of `torch.autograd.graph`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal
from weakref import WeakKeyDictionary, WeakValueDictionary

from gradcli.autograd.engine import BackwardPass, current_pass
from gradcli.autograd.function import Function
from gradcli.autograd.hooks import HookHandle
from gradcli.autograd.node import AccumulateGrad, GradientEdge, Node
from gradcli.autograd.saved_hooks import (
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
    saved_tensors_hooks_is_enabled,
)
from gradcli.autograd.saved_values import SavedTensor
from gradcli.autograd.targets import as_tuple
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, DifferentiationError

__all__ = [
    "AccumulateGrad",
    "GradientEdge",
    "Node",
    "SavedTensor",
    "UndefinedGrad",
    "allow_mutation_on_saved_tensors",
    "current_graph_task_id",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "queue_callback",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "saved_tensors_hooks_is_enabled",
    "will_engine_execute_node",
]


class UndefinedGrad(Function):
    """The identity function without a gradient: the operations before it are reached, but get None."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(_ctx: Any, _grad: Tensor) -> None:
        return None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge to which the gradient of a tensor goes.

    `grad` and `backward` accept it instead of the tensor, even after the tensor was changed in place. Raises
    DifferentiationError if the tensor requires no gradient.
    """
    if not tensor.requires_grad:
        raise DifferentiationError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    return GradientEdge(tensor.grad_fn or tensor._accumulate_grad_node(), tensor.output_nr)


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Mark tensors as changed in place: backward then refuses to use values saved before."""
    for item in as_tuple(tensor):
        item._count_change()


def current_graph_task_id() -> int:
    """The number of the running backward pass, which increases by one with each pass; -1 if none is running."""
    running = current_pass.get()
    return -1 if running is None else running.number


def will_engine_execute_node(node: Node) -> bool:
    """Return whether the running backward pass visits a node.

    Raises DifferentiationError if no pass is running, or the argument is not a node.
    """
    running = current_pass.get()
    if running is None:
        raise DifferentiationError("will_engine_execute_node is to be called during the backward pass")
    if not isinstance(node, Node):
        raise DifferentiationError(f"will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    return running.visits(node)


def queue_callback(callback: Callable[[], object]) -> None:
    """Call `callback` at the end of the running backward pass. Raises DifferentiationError if none is running."""
    running = current_pass.get()
    if running is None:
        raise DifferentiationError("Final callbacks can only be installed during backward pass.")
    running.callbacks.append(callback)


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Any], None],
    *,
    mode: Literal["all", "any"] = "all",
) -> HookHandle:
    """Call `fn` in every backward pass that reaches some of `tensors`.

    In mode "all" it is called once all gradients that the pass computes are known, with a list of them and None for the
    others; in mode "any" with the first gradient only.

    The handle's `remove()` removes the hook. Raises ArgumentError for another mode, and in mode "all"
    DifferentiationError for a tensor that requires no gradient; mode "any" ignores such tensors.
    """
    if mode not in ("all", "any"):
        raise ArgumentError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        once = _first(fn)
        return HookHandle.joined(tensor.register_hook(once) for tensor in tensors if tensor.requires_grad)
    nodes = [get_gradient_edge(tensor).node for tensor in tensors]
    known: WeakKeyDictionary[BackwardPass, dict[int, Tensor]] = WeakKeyDictionary()

    def hook_of(place: int) -> Callable[[Tensor], None]:
        def hook(gradient: Tensor) -> None:
            running = _running()
            found = known.setdefault(running, {})
            found[place] = gradient
            if len(found) == sum(map(running.visits, nodes)):
                fn([found.get(i) for i in range(len(nodes))])

        return hook

    return HookHandle.joined(tensor.register_hook(hook_of(i)) for i, tensor in enumerate(tensors))


def _first(fn: Callable[[Tensor], None]) -> Callable[[Tensor], None]:
    """A hook that calls `fn` once in each backward pass."""
    seen: WeakKeyDictionary[BackwardPass, bool] = WeakKeyDictionary()

    def hook(gradient: Tensor) -> None:
        if not seen.setdefault(_running(), False):
            seen[_running()] = True
            fn(gradient)

    return hook


def _running() -> BackwardPass:
    running = current_pass.get()
    if running is None:
        raise DifferentiationError("expected this hook to be called inside a backward call")
    return running


# --- saved tensors that may be changed in place before backward


class _Saved:
    """The data and tangent of a tensor when it was saved, and an alias by which later changes are detected."""

    def __init__(self, tensor: Tensor) -> None:
        self.alias = tensor.detach()
        self.numbers = tensor.inner
        self.dual = tensor._without_graph() if tensor.dual else None
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
        return Tensor(saved.numbers) if saved.dual is None else saved.dual._without_graph()


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
