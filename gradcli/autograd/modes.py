"""What surrounds an operation: whether it is recorded, and which text it comes from.

Both are context variables, so threads and tasks have their own, and both are restored on the way out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextvars import ContextVar, Token
from types import GeneratorType, TracebackType
from typing import Any, TypeVar

from gradcli.errors import Span

grad_enabled: ContextVar[bool] = ContextVar("gradcli_grad_enabled", default=True)
current_span: ContextVar[Span | None] = ContextVar("gradcli_span", default=None)

F = TypeVar("F", bound=Callable[..., Any])


class _GradMode:
    """A grad mode, as a block (`with no_grad():`) or as a decorator (`@no_grad()`)."""

    enabled: bool

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """As a decorator it may stand with or without parentheses."""
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._tokens.append(grad_enabled.set(self.enabled))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        grad_enabled.reset(self._tokens.pop())

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)():
                result = function(*args, **kwargs)
            return self._steps(result) if isinstance(result, GeneratorType) else result

        return wrapped  # type: ignore[return-value]

    def _steps(self, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """A decorated generator runs in the mode; whoever takes its items does not."""
        sent = None
        while True:
            with type(self)():
                try:
                    item = generator.send(sent)
                except StopIteration as stop:
                    return stop.value
            sent = yield item


class no_grad(_GradMode):
    """Within it operations are not recorded: results have requires_grad False and no grad_fn."""

    enabled = False


class enable_grad(_GradMode):
    """Within it operations are recorded, also inside `no_grad`."""

    enabled = True


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this context."""
    return grad_enabled.get()
