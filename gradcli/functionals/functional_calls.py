"""Functionals of Python functions: what they are called with, and the primitives that they apply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.functionals.integral import integral
from gradcli.functionals.tracing import traced
from gradcli.primitives.bind import bind
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.shape import stack

# The defaults of the tolerances, relative to the value and to the integral of the magnitude.
RTOL, ATOL = 1e-12, 1e-14


def integrate(
    function: Callable[..., Any],
    low: Any,
    high: Any,
    *,
    points: Sequence[float] = (),
    rtol: float = RTOL,
    atol: float = ATOL,
) -> Any:
    """The integral of a function of one variable, in the shape of its value.

    Limits are numbers, which may be infinite. `points` are places to split at. Raises EvaluationError for an integral
    that diverges.
    """
    found = traced(function, [()])
    params = {"points": tuple(points), "rtol": rtol, "atol": atol}
    parts = [
        bind(integral, (low, high, *found.reads), {"body": found.body.result(k), **params})
        for k in range(found.body.results)
    ]
    shape = found.shapes[0]
    return reshape(stack(parts), shape) if shape else parts[0]
