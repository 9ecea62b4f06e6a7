"""Checkpointing as in `torch.utils.checkpoint`: intermediate values are not kept for backward but recomputed.

Without re-entrance the saved tensors of the function are packed as slots of a frame, which keeps only the arguments.
When a backward pass unpacks the first of them, the function runs again under hooks that fill the slots in the same
order. Each pass recomputes, and unpacks each slot once.
"""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any

from gradcli.autograd.engine import backward, current_pass
from gradcli.autograd.function import Function
from gradcli.autograd.generators import fork_rng, get_rng_state, set_rng_state
from gradcli.autograd.graph import current_graph_task_id, saved_tensors_hooks
from gradcli.autograd.modes import enable_grad, is_grad_enabled
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.saved_hooks import innermost
from gradcli.autograd.saved_values import Packed, restored
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, CheckpointError, as_bool, expect_callable

__all__ = [
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

_EXPLICIT = (
    "gradcli.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
    "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True."
)
_ONLY_WITHOUT = "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
_CHECKS = ("default", "none")

_early_stop: ContextVar[bool | None] = ContextVar("gradcli_checkpoint_early_stop", default=None)
_debug: ContextVar[bool | None] = ContextVar("gradcli_checkpoint_debug", default=None)

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]
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


def noop_context_fn() -> Contexts:
    """Two contexts that do nothing."""
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, whose intermediate values are recomputed in backward.

    With `use_reentrant` (which should be given explicitly) the second run is recorded and differentiated inside the
    first pass: it takes no keyword arguments, and works only with `backward()` without `inputs`. Without it, arguments
    and results may be anything. Then `context_fn` returns the contexts of both runs, `early_stop` ends the second run
    as soon as all saved tensors are known, and tensors with other shapes or dtypes than in the first run are an error,
    unless `determinism_check` is "none"; `debug` adds the operations of both runs to that error. The function must
    compute the same again: with `preserve_rng_state` it draws the same random numbers, unless it uses its own
    generator.

    Raises ArgumentError for contradictory arguments, and CheckpointError where the runs differ.
    """
    expect_callable(function, "what is a checkpoint is a function of tensors")
    debug, early_stop = as_bool(debug, "debug"), as_bool(early_stop, "early_stop")
    if as_bool(preserve_rng_state, "preserve_rng_state"):
        function = _with_same_random_state(function)
    reentrant = _is_reentrant(use_reentrant)
    if reentrant:
        if kwargs:
            raise ArgumentError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ArgumentError(_ONLY_WITHOUT)
        if not any(isinstance(x, Tensor) and x.requires_grad for x in args):
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None", UserWarning, stacklevel=2
            )
        return ReentrantCheckpoint.apply(function, *args)
    if determinism_check not in _CHECKS:
        raise ArgumentError(f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check}")
    if not is_grad_enabled():
        return function(*args, **kwargs)
    around, around_again = context_fn()

    def again(*given: Any) -> None:
        with around_again:
            function(*given, **kwargs)

    frame = _CheckpointFrame(
        again,
        args,
        early_stop=_chosen(_early_stop, early_stop),
        compares=determinism_check == "default",
        debug=_chosen(_debug, debug),
    )
    with frame.logging("original"), saved_tensors_hooks(frame.pack, frame.unpack), around:
        returned = function(*args, **kwargs)
    frame.complete = True
    return returned


def _with_same_random_state(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose later runs draw the same random numbers as the first."""
    before: list[Any] = []

    def run(*args: Any, **kwargs: Any) -> Any:
        if not before:
            before.append(get_rng_state())
            return function(*args, **kwargs)
        with fork_rng():
            set_rng_state(before[0])
            return function(*args, **kwargs)

    return run


def checkpoint_sequential(
    functions: Sequence[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Apply `functions`, a list or a `Sequential`, one after the other to `input`, as `segments` checkpoints except for
    the last segment. Keywords are those of `checkpoint`."""
    reentrant = _is_reentrant(use_reentrant)
    unknown = kwargs.keys() - {"preserve_rng_state"}
    if unknown:
        raise ArgumentError("Unexpected keyword arguments: " + ",".join(sorted(unknown)))
    if segments < 1:
        raise ArgumentError(f"there is at least one segment, not {segments}")
    parts = list(functions)
    size = len(parts) // segments
    for start in range(0, size * (segments - 1), size or 1):
        input = checkpoint(_one_after_the_other(parts[start : start + size]), input, use_reentrant=reentrant)
    return _one_after_the_other(parts[size * (segments - 1) :])(input)


def _one_after_the_other(functions: Sequence[Callable[..., Any]]) -> Callable[[Any], Any]:
    def composed(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return composed


def set_checkpoint_early_stop(enable: bool) -> AbstractContextManager[None]:
    """A context that sets early stopping for all checkpoints inside; the outermost one counts."""
    return _set(_early_stop, enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> AbstractContextManager[None]:
    """A context that sets `debug` for all checkpoints inside; None leaves it to their own argument."""
    return _set(_debug, enabled)


@contextmanager
def _set(variable: ContextVar[bool | None], value: bool | None) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def _chosen(variable: ContextVar[bool | None], own: bool) -> bool:
    value = variable.get()
    return own if value is None else value


def _is_reentrant(use_reentrant: bool | None) -> bool:
    use_reentrant = None if use_reentrant is None else as_bool(use_reentrant, "use_reentrant")
    if use_reentrant is None:
        warnings.warn(_EXPLICIT, UserWarning, stacklevel=3)
        return True
    return use_reentrant


# --- the re-entrant checkpoint: a Function whose backward records its forward again and differentiates that

_INCOMPATIBLE = (
    "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
    ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing "
    "the `inputs` argument."
)
_UNNECESSARY = "none of output has requires_grad=True, this checkpoint() is not necessary"


class ReentrantCheckpoint(Function):
    """A function that keeps only its arguments for backward."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], *args: Any) -> Any:
        ctx.function = function
        # Arguments that are not tensors are kept at their positions.
        ctx.args = [None if isinstance(x, Tensor) else x for x in args]
        ctx.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*(x for x in args if isinstance(x, Tensor)))
        return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        running = current_pass.get()
        if running is None or not running.accumulate or running.targets is not None:
            raise CheckpointError(_INCOMPATIBLE)
        args = list(ctx.args)
        for place, kept in zip(ctx.places, ctx.saved_tensors):
            args[place] = kept.detach().requires_grad_(kept.requires_grad)
        with enable_grad():
            returned = ctx.function(*args)
        outputs = returned if isinstance(returned, tuple) else (returned,)
        wanted = [(y, g) for y, g in zip(outputs, grads) if isinstance(y, Tensor) and y.requires_grad]
        if not wanted:
            raise CheckpointError(_UNNECESSARY)
        backward([y for y, _ in wanted], [g for _, g in wanted])
        return None, *(x.grad if isinstance(x, Tensor) else None for x in args)


class _StopRecomputation(Exception):
    """Raised to end the recomputation when all saved tensors are known."""


class _Slot:
    """The placeholder of a saved tensor: the recomputed tensor of each pass, None after it was unpacked."""

    __slots__ = ("__weakref__", "found")

    def __init__(self) -> None:
        self.found: dict[int, Tensor | None] = {}


class _CheckpointFrame:
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
        self.slots: list[weakref.ref[_Slot]] = []
        self.outlines: list[tuple[str, tuple[int, ...]]] = []
        self._recomputed: set[int] = set()
        self.complete = False

    def pack(self, tensor: Tensor) -> _Slot:
        slot = _Slot()
        self.slots.append(weakref.ref(slot))
        self.outlines.append(_outline(tensor))
        return slot

    def unpack(self, slot: _Slot) -> Tensor:
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
            suppress(_StopRecomputation),
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

    def __init__(self, frame: _CheckpointFrame, task: int) -> None:
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
                raise _StopRecomputation
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
