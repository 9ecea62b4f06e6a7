"""The checks that the values of a program are the finite real numbers that a model computes with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import EvaluationError
from gradcli.evaluation import session
from gradcli.language.syntax.tree import Module


def nonfinite_error(program: Module, given: Mapping[str, Any], wrt: Sequence[str], otherwise: str) -> EvaluationError:
    """The error, with its place in the source, for a program whose value or derivative by `wrt` is not finite for the
    inputs `given`; `otherwise` is the message where the operation is not known."""
    seen = session.run(session.EvaluationRequest(program, given, wrt)).warnings
    warning = next((w for w in seen if w.code == "nonfinite"), None)
    error = EvaluationError(otherwise if warning is None else warning.message)
    error.locate(None if warning is None else warning.span, program.source)
    return error


def real_value(value: Any, what: str) -> Any:
    """The value of a program as a float64 array, where `what` needs real numbers. Raises EvaluationError for a complex
    one, whose imaginary part NumPy would drop."""
    if arrays.is_complex(value):
        raise EvaluationError(
            f"{what} takes real numbers, and the value of the program is complex",
            hint="its real(…), imag(…), abs(…) and angle(…) are real",
        )
    return arrays.numpy_namespace().asarray(value, "float64")
