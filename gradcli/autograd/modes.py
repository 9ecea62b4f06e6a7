"""What surrounds an operation: whether it is recorded, and which text it comes from.

All of it is in context variables, so threads and tasks have their own, and is restored on the way out.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from types import GeneratorType, TracebackType
from typing import Any, TypeVar

from gradcli.errors import MissingRuleError, Span, flag

grad_enabled: ContextVar[bool] = ContextVar("gradcli_grad_enabled", default=True)
inference: ContextVar[bool] = ContextVar("gradcli_inference", default=False)
multithreading_enabled: ContextVar[bool] = ContextVar("gradcli_multithreading_enabled", default=True)
current_span: ContextVar[Span | None] = ContextVar("gradcli_span", default=None)

# What they are here and now, for what is asked of every operation.
recorded_now = grad_enabled.get
span_now = current_span.get

# Whether derivatives go along with the numbers, so that what leaves the graph would still have them.
_outside_refused: ContextVar[bool] = ContextVar("gradcli_outside_refused", default=False)

# Whether what runs is recorded, to run again without being called: random numbers would be the same ever after.
draws_refused: ContextVar[bool] = ContextVar("gradcli_draws_refused", default=False)

_DECORATED_CLASS = (
    "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
    "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method "
    "and nothing else."
)

F = TypeVar("F", bound=Callable[..., Any])


@contextmanager
def refusing_to_leave_the_graph() -> Iterator[None]:
    """Within the block `no_grad`, `detach`, `data` and hooks raise MissingRuleError: what they do to derivatives they
    do to those by the graph alone."""
    token = _outside_refused.set(True)
    try:
        yield
    finally:
        _outside_refused.reset(token)


@contextmanager
def refusing_draws() -> Iterator[None]:
    """Within the block, random numbers raise NotRecordableError."""
    token = draws_refused.set(True)
    try:
        yield
    finally:
        draws_refused.reset(token)


def leave_graph(*, carried: bool = False) -> None:
    """Raise MissingRuleError where that is refused, or the numbers have derivatives that are `carried` along."""
    if carried or _outside_refused.get():
        raise MissingRuleError("what leaves the graph has no Taylor series")


class _GradMode:
    """A grad mode, as a block (`with no_grad():`) or as a decorator (`@no_grad()`)."""

    enabled: bool

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """As a decorator it may stand with or without parentheses."""
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        if not self.enabled:
            leave_graph()
        self._tokens.append(grad_enabled.set(self.enabled and not inference.get()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        grad_enabled.reset(self._tokens.pop())

    def __call__(self, function: F) -> F:
        return _decorated(function, type(self))


def _decorated(function: F, mode: Callable[[], AbstractContextManager[None]]) -> F:
    """A function that runs in a mode; of a generator, whoever takes its items does not; of a class, `__init__` alone."""
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
    """`no_grad` that is not taken back by `enable_grad`, and whose tensors stay out of every graph.

    A tensor that is made in it, and is no view of one from outside, is an inference tensor: its versions are not
    counted, and outside it is not to be changed in place or saved for backward. `inference_mode(False)` ends it
    within a block.
    """

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        return cls()(mode) if callable(mode) else object.__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = flag(mode, "the mode")
        self.enabled = not self._mode

    def __enter__(self) -> None:
        self._tokens.append(inference.set(self._mode))
        super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        inference.reset(self._tokens.pop())

    def __call__(self, function: F) -> F:
        return _decorated(function, functools.partial(inference_mode, self._mode))


class _Switch:
    """Sets a mode from here on; as a block, until its end."""

    variable: ContextVar[bool]

    def __init__(self, mode: bool) -> None:
        self._mode = flag(mode, "the mode")
        self._before = self.variable.get()
        self.variable.set(self._mode)

    def __enter__(self) -> None:
        self.variable.set(self._mode)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.variable.set(self._before)


class set_grad_enabled(_Switch):
    """Has operations recorded, or not, from here on; as a block (`with set_grad_enabled(False):`) until its end, as a
    decorator within the function alone."""

    variable = grad_enabled

    def __init__(self, mode: bool) -> None:
        enabled = flag(mode, "the mode") and not inference.get()
        if not enabled:
            leave_graph()
        super().__init__(enabled)

    def __call__(self, function: F) -> F:
        self.variable.set(self._before)
        return _decorated(function, enable_grad if self._mode else no_grad)


class set_multithreading_enabled(_Switch):
    """Says whether a backward pass may use several threads, from here on or within a block.

    It is there for programs that set it: every pass runs in the thread that asks for it.
    """

    variable = multithreading_enabled


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this context."""
    return grad_enabled.get()


def is_inference_mode_enabled() -> bool:
    """Whether this context is in `inference_mode`."""
    return inference.get()


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` says in this context."""
    return multithreading_enabled.get()
