"""Whether a library has the functions that a program is made of."""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.program.ir import Program


def require(program: Program, namespace: Any) -> None:
    """Look up every primitive that is a function of namespaces.

    Raises MissingFunctionError for one that the library lacks.
    """
    for primitive in {e.primitive for e in program.equations}:
        # Plain floats have the elementwise ones alone; the rest are no functions of one number.
        if primitive.function is not None and (primitive.elementwise or namespace is not arrays.floats):
            getattr(namespace, primitive.function)
