"""The check that what a model computes with is real."""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.errors import EvaluationError


def real_value(value: Any, what: str) -> Any:
    """The value of a program as a float64 array, where `what` needs real numbers. Raises EvaluationError for a complex
    one, whose imaginary part NumPy would drop."""
    if arrays.is_complex(value):
        raise EvaluationError(
            f"{what} takes real numbers, and the value of the program is complex",
            hint="its real(…), imag(…), abs(…) and angle(…) are real",
        )
    return arrays.numpy_namespace().asarray(value, "float64")
