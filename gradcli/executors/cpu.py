"""Run programs on the CPU: programs of scalars as a generated Python function, programs on NumPy arrays in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.executors import executor_choice, scalars, stepwise
from gradcli.program.ir import Executable, Program


def executable(program: Program, _namespace: Any = None, *, reproducible: bool = False) -> Executable:
    """A function that runs `program`, and that any number of threads may call at the same time.

    It raises what the primitives raise.

    If it is `reproducible`, its results do not depend on earlier runs; else they may change by rounding.

    Raises MissingFunctionError if neither NumPy nor SciPy has a function.
    """
    if not scalars.fits(program):
        # Imported here, because it loads NumPy.
        from gradcli.executors.blockwise import Blocks

        executor_choice.require_functions(program, arrays.numpy_namespace())
        return Blocks(program, reproducible=reproducible).run
    executor_choice.require_functions(program, arrays.floats)
    run = scalars.function(
        program, _as_list, raised=lambda *inputs: stepwise.run(program, inputs), refused=lambda *_inputs: None
    )
    return lambda inputs: run(*inputs)


def _as_list(outputs: Sequence[str]) -> str:
    return f"[{', '.join(outputs)}]"
