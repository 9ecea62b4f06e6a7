"""Check that a library has all functions that a program uses."""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.program.ir import Program


def require(program: Program, namespace: Any) -> None:
    """Look up every primitive that is a function of namespaces.

    Raises MissingFunctionError if the library lacks one.
    """
    for primitive in {e.primitive for e in program.equations}:
        # The namespace of floats has elementwise functions only; other primitives are not looked up in it.
        if primitive.function is not None and (primitive.elementwise or namespace is not arrays.floats):
            getattr(namespace, primitive.function)
