"""Programs on numbers and arrays of NumPy: those of numbers as a Python function, the others in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.executors import functions, scalars, stepwise
from gradcli.program.ir import Executable, Program


def executable(program: Program, _namespace: Any) -> Executable:
    """A function that runs `program`. It raises what the primitives raise.

    Raises MissingFunctionError where neither NumPy nor SciPy has a function.
    """
    if not scalars.fits(program):
        # NumPy is loaded for it.
        from gradcli.executors.blocks import Blocks

        functions.require(program, arrays.numpy_namespace())
        return Blocks(program).run
    functions.require(program, arrays.floats)
    run = scalars.function(
        program, _as_list, raised=lambda *inputs: stepwise.run(program, inputs), refused=lambda *_inputs: None
    )
    return lambda inputs: run(*inputs)


def _as_list(outputs: Sequence[str]) -> str:
    return f"[{', '.join(outputs)}]"
