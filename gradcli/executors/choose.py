"""The executor that suits the library of a program's arrays."""

from __future__ import annotations

from importlib import import_module

from gradcli.arrays import backends
from gradcli.arrays.protocol import Namespace
from gradcli.executors import functions
from gradcli.program.ir import Executable, Program
from gradcli.timing import phase


@phase("compile")
def executable(program: Program, namespace: Namespace | None = None) -> Executable:
    """A function that runs `program` on the arrays of a backend's namespace, NumPy's and numbers where that is None.

    It raises what the primitives raise, and BackendError where the library cannot compile the program.
    Raises MissingFunctionError where the library lacks a function.
    """
    if namespace is not None:
        functions.require(program, namespace)
    backend = backends.of_namespace(namespace)
    assert backend is not None
    run: Executable = import_module(f"gradcli.executors.{backend.executor}").executable(program, namespace)
    return run
