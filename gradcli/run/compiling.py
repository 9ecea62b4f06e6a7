"""`gradcli.compile`: a program of a text or of a function, in this process or in one of its own for each use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from gradcli import limits
from gradcli.errors import UsageError, expect
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.run.programs import CompiledProgram, parsed

if TYPE_CHECKING:
    from gradcli.run.compiled_functions import CompiledFunction


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
    """Parse `program`, or take a function of tensors, also as a decorator: see `CompiledFunction`.

    This, and whatever is asked of it then, a value or derivatives, may take so many steps and compute so many array
    elements at a time; more is a LimitError.

    With `max_seconds`, or with `max_memory` in bytes or as a text such as "2GiB", this and all that is asked of it
    later take a process of its own each time, which is ended where it needs more: a LimitError too. Inputs are then
    numbers, lists and arrays of NumPy.

    Raises ProgramSyntaxError, with the place, where `program` is none, CallError for a function with arguments that
    have no names, and UsageError for a limit that is none, that this system cannot hold, or that is one of time or
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
        # The command compiles none.
        from gradcli.run.compiled_functions import CompiledFunction

        return CompiledFunction(program, max_steps, max_elements)
    expect(program, str, "a program is a text")
    if not apart:
        return parsed(program, max_steps, max_elements)
    # Few programs are, and the command has processes of its own.
    from gradcli.confined import Limits
    from gradcli.run.confined_programs import ConfinedProgram

    return ConfinedProgram(program, max_steps, max_elements, Limits.of(max_seconds, max_memory))
