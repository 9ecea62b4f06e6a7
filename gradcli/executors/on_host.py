"""Programs on numbers and arrays of NumPy: those of numbers as a Python function, the others in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.executors import functions, scalars, stepwise
from gradcli.program.ir import Executable, Program


def executable(program: Program, _namespace: Any = None, *, reproducible: bool = False) -> Executable:
    """A function that runs `program`, in any number of threads at a time. It raises what the primitives raise.

    What it gives is the same however often it ran before where it is `reproducible`, and else apart from rounding.

    Raises MissingFunctionError where neither NumPy nor SciPy has a function.
    """
    if not scalars.fits(program):
        # NumPy is loaded for it.
        from gradcli.executors.blocks import Blocks

        functions.require(program, arrays.numpy_namespace())
        return Blocks(program, reproducible=reproducible).run
    functions.require(program, arrays.floats)
    run = scalars.function(
        program, _as_list, raised=lambda *inputs: stepwise.run(program, inputs), refused=lambda *_inputs: None
    )
    return lambda inputs: run(*inputs)


def _as_list(outputs: Sequence[str]) -> str:
    return f"[{', '.join(outputs)}]"
