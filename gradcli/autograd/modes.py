"""Modes of recording: whether operations are recorded, and which source text they come from.

All state is in context variables, so that each thread and task has its own, and is restored at the end of a block.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from types import GeneratorType, TracebackType

from gradcli.errors import MissingRuleError, Span, as_bool
from gradcli.type_hints import Any, TypeVar

grad_enabled: ContextVar[bool] = ContextVar("gradcli_grad_enabled", default=True)
inference: ContextVar[bool] = ContextVar("gradcli_inference", default=False)
multithreading_enabled: ContextVar[bool] = ContextVar("gradcli_multithreading_enabled", default=True)
current_span: ContextVar[Span | None] = ContextVar("gradcli_span", default=None)

# Bound once, because every operation calls them.
recorded_now = grad_enabled.get
span_now = current_span.get

# Whether derivatives are carried with the values, which leaving the graph would not drop.
_outside_refused: ContextVar[bool] = ContextVar("gradcli_outside_refused", default=False)

# Whether the running code is being recorded as a program, in which random numbers would never change.
_recording_program: ContextVar[bool] = ContextVar("gradcli_recording_program", default=False)
recording_program = _recording_program.get

_DECORATED_CLASS = (
    "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
    "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method "
    "and nothing else."
)

F = TypeVar("F", bound=Callable[..., Any])


@contextmanager
def refusing_to_leave_the_graph() -> Iterator[None]:
    """Within the block, `no_grad`, `detach`, `data` and hooks raise MissingRuleError.

    They act on derivatives by the graph only, not on derivatives that are carried with the values.
    """
    token = _outside_refused.set(True)
    try:
        yield
    finally:
        _outside_refused.reset(token)


@contextmanager
def recording() -> Iterator[None]:
    """Within the block, `recording_program` is true, and drawing random numbers raises NotRecordableError."""
    token = _recording_program.set(True)
    try:
        yield
    finally:
        _recording_program.reset(token)


def check_leaving_graph(*, carried: bool = False) -> None:
    """Raise MissingRuleError if leaving the graph is refused here, or derivatives are `carried` with the values."""
    if carried or _outside_refused.get():
        raise MissingRuleError("what leaves the graph has no Taylor series")


class _GradMode:
    """A grad mode, as a context manager (`with no_grad():`) or as a decorator (`@no_grad()`)."""

    enabled: bool

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Support the decorator with and without parentheses."""
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        if not self.enabled:
            check_leaving_graph()
        self._tokens.append(grad_enabled.set(self.enabled and not inference.get()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        grad_enabled.reset(self._tokens.pop())

    def __call__(self, function: F) -> F:
        return _decorated(function, type(self))


def _decorated(function: F, mode: Callable[[], AbstractContextManager[None]]) -> F:
    """A function that runs in a mode.

    For a generator, the mode is active only while it runs, not in its consumer; for a class, `__init__` is decorated.
    """
    if isinstance(function, type):
        warnings.warn(_DECORATED_CLASS, FutureWarning, stacklevel=3)
        function.__init__ = _decorated(function.__init__, mode)  # type: ignore[misc]
        return function

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with mode():
            result = function(*args, **kwargs)
        return _steps(result, mode) if isinstance(result, GeneratorType) else result

    return wrapped  # type: ignore[return-value]


def _steps(
    generator: Generator[Any, Any, Any], mode: Callable[[], AbstractContextManager[None]]
) -> Generator[Any, Any, Any]:
    step = functools.partial(generator.send, None)
    while True:
        with mode():
            try:
                item = step()
            except StopIteration as stop:
                return stop.value
        try:
            step = functools.partial(generator.send, (yield item))
        except GeneratorExit:
            with mode():
                generator.close()
            raise
        except BaseException as error:
            step = functools.partial(generator.throw, error)


class no_grad(_GradMode):
    """Within it operations are not recorded: results have requires_grad False and no grad_fn."""

    enabled = False


class enable_grad(_GradMode):
    """Within it operations are recorded, also inside `no_grad`."""

    enabled = True


class inference_mode(_GradMode):
    """A `no_grad` that `enable_grad` does not undo, and whose tensors stay out of every graph.

    A tensor created in it that is not a view of an outside tensor is an inference tensor: its version is not counted,
    and outside the mode it cannot be changed in place or saved for backward. `inference_mode(False)` suspends the mode
    within a block.
    """

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        return cls()(mode) if callable(mode) else object.__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = as_bool(mode, "the mode")
        self.enabled = not self._mode

    def __enter__(self) -> None:
        self._tokens.append(inference.set(self._mode))
        super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        inference.reset(self._tokens.pop())

    def __call__(self, function: F) -> F:
        return _decorated(function, functools.partial(inference_mode, self._mode))


class ModeSwitch:
    """Set a mode from the call on; as a context manager, until the end of the block."""

    variable: ContextVar[Any]

    def __init__(self, mode: bool) -> None:
        self._begin(as_bool(mode, "the mode"))

    def _begin(self, mode: Any) -> None:
        self._mode, self._before = mode, self.variable.get()
        self._set(mode)

    def _set(self, mode: Any) -> None:
        self.variable.set(mode)

    def __enter__(self) -> None:
        self._set(self._mode)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._set(self._before)


class set_grad_enabled(ModeSwitch):
    """Turn recording on or off from the call on.

    As a context manager (`with set_grad_enabled(False):`) the mode is restored at the end of the block; as a decorator
    it applies within the function only.
    """

    variable = grad_enabled

    def __init__(self, mode: bool) -> None:
        enabled = as_bool(mode, "the mode") and not inference.get()
        if not enabled:
            check_leaving_graph()
        super().__init__(enabled)

    def __call__(self, function: F) -> F:
        self._set(self._before)
        return _decorated(function, enable_grad if self._mode else no_grad)


class set_multithreading_enabled(ModeSwitch):
    """Set whether a backward pass may use several threads.

    It exists for compatibility: every pass runs in the calling thread.
    """

    variable = multithreading_enabled


def is_grad_enabled() -> bool:
    """Return whether operations are being recorded in this context."""
    return grad_enabled.get()


def is_inference_mode_enabled() -> bool:
    """Return whether this context is in `inference_mode`."""
    return inference.get()


def is_multithreading_enabled() -> bool:
    """The setting of `set_multithreading_enabled` in this context."""
    return multithreading_enabled.get()
