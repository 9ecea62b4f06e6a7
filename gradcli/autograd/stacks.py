"""Calls on a stack of their own, for those within each other that are more than one stack has room for."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any


def on_a_stack_of_its_own(function: Callable[[], Any]) -> Any:
    """What a function returns, or raises, that another thread calls in this context while this one waits."""
    context = contextvars.copy_context()
    outcome: list[Any] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            outcome.append(context.run(function))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]
