"""Programs on numbers and arrays of NumPy: those of numbers as a Python function, the others in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.executors import scalars, stepwise
from gradcli.program.ir import Executable, Program


def executable(program: Program, _namespace: Any) -> Executable:
    """A function that runs `program`. It raises what the primitives raise."""
    if not scalars.fits(program):
        # NumPy is loaded for it.
        from gradcli.executors.blocks import Blocks

        return Blocks(program).run
    run = scalars.function(
        program, _as_list, raised=lambda *inputs: stepwise.run(program, inputs), refused=lambda *_inputs: None
    )
    return lambda inputs: run(*inputs)


def _as_list(outputs: Sequence[str]) -> str:
    return f"[{', '.join(outputs)}]"
