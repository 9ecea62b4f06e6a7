"""What a linear propagation leaves out: the mean and the variance to the next order (GUM, 5.1.2, note)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradcli import arrays, limits
from gradcli.calculus.gradient_series import gradients_along
from gradcli.errors import EvaluationError, LimitError, NotBatchableError, NotRecordableError, ShapeError
from gradcli.language.interpreter import evaluate
from gradcli.language.syntax.tree import Module
from gradcli.models.uncertainty.coverage import size_of
from gradcli.models.uncertainty.input_quantities import Quantities
from gradcli.primitives.conversions import reshape


@dataclass(frozen=True)
class SecondOrder:
    """The mean, and the standard uncertainty to order 4 in those of the inputs."""

    mean: float
    u: float


def second_order(program: Module, quantities: Quantities, value: Any, scaled: Any) -> list[SecondOrder] | None:
    """For each result, `value` `[m]`, whose sensitivities by independent quantities of variance 1 are `scaled` `[m, n]`;
    None where something in the program has no series, or it would take more than the limits of the run.

    With H the Hessian and T the third derivative by those quantities z, which are normal, the mean is f + tr H / 2, and the
    variance |g|² + tr H² / 2 + sum over i, k of g_i T_ikk: the GUM's terms, for correlated inputs too.
    """
    np = arrays.numpy_namespace()

    def function(point: Any) -> Any:
        return evaluate(program, {**quantities.exact, **_parts(quantities, point)}).value

    try:
        with limits.attempt():
            limits.charge(quantities.packing.size**2)
            directions = quantities.deviations(np.eye(quantities.packing.size))
            with_numbers = directions.any(1)
            along = gradients_along(function, quantities.mean, directions[with_numbers], len(value))
    except (LimitError, NotBatchableError, NotImplementedError, NotRecordableError, EvaluationError, ShapeError):
        return None
    found = []
    for f, g, second, third in zip(value.tolist(), scaled[:, with_numbers], along.second, along.third):
        hessian = second @ directions[with_numbers].T
        size = size_of(np.append(g, hessian))
        step = (g / size) @ directions[with_numbers]
        variance = ((g / size) ** 2).sum() + 0.5 * ((hessian / size) ** 2).sum() + (third @ step).sum() / size
        # Where the third derivative takes more away than there is, the expansion says nothing.
        u = size * math.sqrt(variance) if variance >= 0 else math.nan
        found.append(SecondOrder(f + 0.5 * float(np.trace(hessian)), u))
    return found


def _parts(quantities: Quantities, point: Any) -> Mapping[str, Any]:
    """The inputs in a vector of them."""
    shapes = quantities.packing.shapes
    return {name: reshape(point[place], shapes[name]) for name, place in quantities.packing.places().items()}
