"""Choose the executor for the library of a program's arrays."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gradcli import arrays
from gradcli.arrays import backends
from gradcli.arrays.protocol import Namespace
from gradcli.program.ir import Executable, Program
from gradcli.timing import phase


@phase("compile")
def executable(program: Program, namespace: Namespace | None = None) -> Executable:
    """A function that runs `program` on arrays of a namespace; on NumPy arrays and numbers if it is None.

    That function raises what the primitives raise, and BackendError if the library cannot compile the program. Raises
    MissingFunctionError if the library lacks a function.
    """
    if namespace is not None:
        require_functions(program, namespace)
    backend = backends.of_namespace(namespace)
    assert backend is not None
    run: Executable = import_module(f"gradcli.executors.{backend.executor}").executable(program, namespace)
    return run


def require_functions(program: Program, namespace: Any) -> None:
    """Look up every primitive that is a function of namespaces.

    Raises MissingFunctionError if the library lacks one.
    """
    for primitive in {e.primitive for e in program.equations}:
        # The namespace of floats has elementwise functions only; other primitives are not looked up in it.
        if primitive.function is not None and (primitive.elementwise or namespace is not arrays.floats):
            getattr(namespace, primitive.function)
