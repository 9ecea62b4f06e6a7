"""`gradcli.compile`: compile source text or a Python function, with or without a separate process for each use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from gradcli import limits
from gradcli.compiled.programs import CompiledProgram, parsed
from gradcli.errors import UsageError, expect
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS

if TYPE_CHECKING:
    from gradcli.compiled.compiled_functions import CompiledFunction


@overload
def compile(
    program: str,
    *,
    max_steps: int = ...,
    max_elements: int = ...,
    max_seconds: float | None = ...,
    max_memory: int | str | None = ...,
) -> CompiledProgram: ...
@overload
def compile(
    program: Callable[..., Any],
    *,
    max_steps: int = ...,
    max_elements: int = ...,
    max_seconds: None = ...,
    max_memory: None = ...,
) -> CompiledFunction: ...
def compile(
    program: str | Callable[..., Any],
    *,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    max_seconds: float | None = None,
    max_memory: int | str | None = None,
) -> CompiledProgram | CompiledFunction:
    """Compile source text or a function of tensors; also a decorator (see `CompiledFunction`).

    Each use, the compilation as well as a later value or derivative, may take `max_steps` steps and compute
    `max_elements` array elements; beyond that it raises LimitError.

    With `max_seconds`, or `max_memory` in bytes or as text such as "2GiB", each use runs in a process of its own that
    is ended when it exceeds the limit, which raises LimitError as well. Inputs are then numbers, lists and NumPy
    arrays.

    Raises ProgramSyntaxError, with its position, for invalid source text, CallError for a function whose arguments have
    no names, and UsageError for a limit that is invalid, that this system cannot enforce, or that is one of time or
    memory for a function.
    """
    limits.check(max_steps=max_steps, max_elements=max_elements)
    apart = max_seconds is not None or max_memory is not None
    if callable(program):
        if apart:
            raise UsageError(
                "max_seconds and max_memory hold for a program that is a text",
                hint="a function of Python's runs in this process: max_steps and max_elements count what it computes",
            )
        # Loaded on demand: the command line compiles no functions.
        from gradcli.compiled.compiled_functions import CompiledFunction

        return CompiledFunction(program, max_steps, max_elements)
    expect(program, str, "a program is a text")
    if not apart:
        return parsed(program, max_steps, max_elements)
    # Loaded on demand: few programs are confined, and the command line manages its own processes.
    from gradcli.compiled.confined_programs import ConfinedProgram
    from gradcli.subprocess_calls import Limits

    return ConfinedProgram(program, max_steps, max_elements, Limits.of(max_seconds, max_memory))
