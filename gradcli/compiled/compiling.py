"""`gradcli.compile`: compile source text or a Python function, with or without a separate process for each use."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import TYPE_CHECKING, Any, overload

from gradcli import limits
from gradcli.arrays.backends import BACKENDS
from gradcli.compiled.programs import CompiledProgram, parsed
from gradcli.errors import CallError, UsageError, did_you_mean, expect
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
    **for_pytorch: Any,
) -> CompiledFunction: ...
@overload
def compile(*, max_steps: int = ..., max_elements: int = ..., **for_pytorch: Any) -> Callable[..., Any]: ...
def compile(
    program: str | Callable[..., Any] | EllipsisType = ...,
    *,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    max_seconds: float | None = None,
    max_memory: int | str | None = None,
    **for_pytorch: Any,
) -> Any:
    """Compile source text or a function of tensors; also a decorator (see `CompiledFunction`), with or without options.

    Each use, the compilation as well as a later value or derivative, may take `max_steps` steps and compute
    `max_elements` array elements; beyond that it raises LimitError.

    With `max_seconds`, or `max_memory` in bytes or as text such as "2GiB", each use runs in a process of its own that
    is ended when it exceeds the limit, which raises LimitError as well. Inputs are then numbers, lists and NumPy
    arrays.

    The options of `torch.compile`, `mode`, `fullgraph`, `dynamic`, `backend` and `options`, choose how PyTorch compiles
    a function, and change nothing here.

    Raises ProgramSyntaxError, with its position, for invalid source text, CallError for a function whose arguments have
    no names, and UsageError for a limit that is invalid, that this system cannot enforce, or that is one of time or
    memory for a function.
    """
    limits.check(max_steps=max_steps, max_elements=max_elements)
    _check_options_of_pytorch(program, for_pytorch)
    if isinstance(program, EllipsisType):
        return functools.partial(
            compile, max_steps=max_steps, max_elements=max_elements, max_seconds=max_seconds, max_memory=max_memory
        )
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


# The options of `torch.compile`.
_OF_PYTORCH = frozenset({"backend", "disable", "dynamic", "fullgraph", "mode", "options"})


def _check_options_of_pytorch(program: Any, given: Mapping[str, Any]) -> None:
    """Raise CallError for an option that `torch.compile` lacks, or that does not belong to a function."""
    for name in given:
        if name not in _OF_PYTORCH:
            raise CallError(
                f"compile() got an unexpected keyword argument '{name}'", hint=did_you_mean(name, _OF_PYTORCH)
            )
        if isinstance(program, str):
            raise CallError(f"'{name}' is an option for functions, and the program is a text")
    if given.get("backend") in ("numpy", *(backend.name for backend in BACKENDS)):
        raise CallError("a compiled function computes with the backend of its inputs")
