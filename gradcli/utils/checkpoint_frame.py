"""The frame of a checkpoint: its arguments, and slots for the tensors that its function saves."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from gradcli.autograd.graph import current_graph_task_id, saved_tensors_hooks
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.packed_tensors import Packed, restored
from gradcli.autograd.saved_hooks import innermost
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CheckpointError

_FEWER = (
    "A different number of tensors was saved during the original forward and recomputation.\n"
    "Number of tensors saved during forward: {}\nNumber of tensors saved during recomputation: {}"
)
_MORE = "trying to save more tensors during recomputation than during the original forward pass."
_OTHERS = "Recomputed values for the following tensors have different metadata than during the forward pass.\n{}"
_TWICE = (
    "Unpack is being triggered for a tensor that was already unpacked once. If you are calling ctx.saved_tensors in "
    "backward, make sure to do so only once."
)
_DEBUG = (
    "You are seeing this error because you passed `debug=True` to checkpoint and tensors that were saved during the "
    "original forward differ from those saved during recomputation. The operations of the original forward: {}; of the "
    "recomputation: {}.\n{}"
)

_RUNS = ("original", "recomputation")

# Pass ids for unpacking outside of a backward pass: unique negative numbers.
_pass_id_outside = itertools.count(-2, -1).__next__


class StopRecomputation(Exception):
    """Raised to end the recomputation when all saved tensors are known."""


class Slot:
    """The placeholder of a saved tensor: the recomputed tensor of each pass, None after it was unpacked."""

    __slots__ = ("__weakref__", "found")

    def __init__(self) -> None:
        self.found: dict[int, Tensor | None] = {}


class CheckpointFrame:
    """One call of a checkpointed function, of which only the arguments are kept."""

    def __init__(
        self, again: Callable[..., None], args: Sequence[Any], *, early_stop: bool, compares: bool, debug: bool
    ) -> None:
        self._again = again
        self._args = [_Argument(x) if isinstance(x, Tensor) else x for x in args]
        self.early_stop = early_stop
        self.compares = compares
        self._logs: dict[str, list[str]] | None = {} if debug else None
        # Slots that are garbage collected are not needed, for example after a backward pass within the function.
        self.slots: list[weakref.ref[Slot]] = []
        self.outlines: list[tuple[str, tuple[int, ...]]] = []
        self._recomputed: set[int] = set()
        self.complete = False

    def pack(self, tensor: Tensor) -> Slot:
        slot = Slot()
        self.slots.append(weakref.ref(slot))
        self.outlines.append(_outline(tensor))
        return slot

    def unpack(self, slot: Slot) -> Tensor:
        task = current_graph_task_id()
        task = _pass_id_outside() if task < 0 else task
        if task not in self._recomputed:
            try:
                self._recompute(task)
            except CheckpointError as error:
                raise self._explained(error) from None
            self._recomputed.add(task)
        found = slot.found[task]
        if found is None:
            raise CheckpointError(_TWICE)
        slot.found[task] = None
        return found

    def _recompute(self, task: int) -> None:
        run = _Recomputation(self, task)
        args = [x.tensor() if isinstance(x, _Argument) else x for x in self._args]
        with (
            suppress(StopRecomputation),
            self.logging("recomputation"),
            saved_tensors_hooks(run.pack, lambda tensor: tensor),
            enable_grad(),
        ):
            self._again(*args)
        run.check()

    @contextmanager
    def logging(self, run: str) -> Iterator[None]:
        """Record the names of the operations of a run, in debug mode."""
        if self._logs is None:
            yield
            return
        log: list[str] = []
        self._logs[run] = log

        def see(node: Node, _result: Any) -> None:
            log.append(node.name)

        token = recorders.set((see, *recorders.get()))
        try:
            yield
        finally:
            recorders.reset(token)

    def _explained(self, error: CheckpointError) -> CheckpointError:
        if self._logs is None:
            return CheckpointError(error.message, hint="checkpoint(…, debug=True) lists the operations of both runs")
        return CheckpointError(_DEBUG.format(*(", ".join(self._logs[run]) for run in _RUNS), error.message))


class _Recomputation:
    """The recomputation of a function for one backward pass."""

    def __init__(self, frame: CheckpointFrame, task: int) -> None:
        self._frame = frame
        self._task = task
        self._count = 0

    def pack(self, tensor: Tensor) -> Tensor:
        number, slots = self._count, self._frame.slots
        self._count += 1
        if number < len(slots):
            slot = slots[number]()
            if slot is not None:
                slot.found[self._task] = tensor
            if self._count == len(slots) and self._frame.early_stop:
                raise StopRecomputation
        elif self._frame.complete:
            raise CheckpointError(_MORE)
        return tensor

    def check(self) -> None:
        """Raise CheckpointError if the first run saved different tensors."""
        frame = self._frame
        if self._count != len(frame.slots) and (frame.complete or self._count < len(frame.slots)):
            raise CheckpointError(_FEWER.format(len(frame.slots), self._count))
        found = [None if slot is None else slot.found[self._task] for slot in (s() for s in frame.slots)]
        others = [
            f"tensor at position {i}: {_described(before)} was saved, and {_described(_outline(tensor))} recomputed"
            for i, (before, tensor) in enumerate(zip(frame.outlines, found))
            if tensor is not None and _outline(tensor) != before
        ]
        if frame.compares and others:
            raise CheckpointError(_OTHERS.format("\n".join(others)))


def _outline(tensor: Tensor) -> tuple[str, tuple[int, ...]]:
    return tensor.dtype, tensor.shape


def _described(outline: tuple[str, tuple[int, ...]]) -> str:
    return f"{outline[0]} {list(outline[1])}"


class _Argument:
    """A tensor argument, packed by surrounding saved-tensor hooks, or kept with a check that it is not modified."""

    def __init__(self, tensor: Tensor) -> None:
        packer = innermost()
        self._kept = tensor if packer is None else Packed.saved_by(None, tensor, packer.pack, packer.unpack)
        self._version = tensor.version

    def tensor(self) -> Tensor:
        found: Tensor = restored(self._kept, self._version, None)
        return found
