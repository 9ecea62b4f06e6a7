"""The executor that suits a program and the library of its arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.executors import scalars, stepwise
from gradcli.program.ir import Executable, Program
from gradcli.timing import phase


@phase("compile")
def executable(program: Program, namespace: Any = None) -> Executable:
    """A function that runs `program` on the arrays of a namespace, NumPy's and numbers where that is None.

    It raises what the primitives raise, and BackendError where the library cannot compile the program.
    """
    if namespace is None:
        return _on_host(program)
    if namespace.name == "cupy":
        from gradcli.executors import cupy_kernels

        return cupy_kernels.executable(program, namespace)
    from gradcli.executors.whole_program import WholeProgram

    return WholeProgram(program, namespace).run


def _on_host(program: Program) -> Executable:
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
