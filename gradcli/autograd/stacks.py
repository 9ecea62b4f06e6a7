"""Run deeply nested calls on the stack of a new thread."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any


def run_in_new_thread(function: Callable[[], Any]) -> Any:
    """Call a function in a new thread with the current context, wait for it, and return or raise its outcome."""
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
