"""What a linear propagation leaves out: the mean and the variance to the next order (GUM, 5.1.2, note)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gradcli import arrays, limits
from gradcli.calculus.gradient_series import Along, gradients_along
from gradcli.calculus.higher_orders import derivatives
from gradcli.errors import EvaluationError, LimitError, NotBatchableError, NotRecordableError, ShapeError
from gradcli.kinds.switching import Switching, watching
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

    With H the Hessian and T the third derivative by those quantities z, the mean is f + tr H / 2, and the variance
    |g|² + tr H² / 2 + sum over i, k of g_i T_ikk, the GUM's terms for what is normal, for correlated inputs too, and, with
    the skewness s_i and the excess kurtosis e_i of z_i, the sum over i of s_i g_i H_ii + e_i (H_ii² / 4 + g_i T_iii / 3).
    """
    np = arrays.numpy_namespace()

    known = {**quantities.exact, **quantities.named_exactly}

    def function(point: Any) -> Any:
        return evaluate(program, {**_parts(quantities, point), **known}).value

    switching = Switching()

    try:
        with limits.attempt():
            limits.charge(quantities.packing.size**2)
            directions = quantities.deviations(np.eye(quantities.packing.size))
            with_numbers = directions.any(1)
            with watching(switching):
                along = gradients_along(function, quantities.mean, directions[with_numbers], len(value))
            if switching:
                along = _where_smooth(function, quantities.mean, directions[with_numbers], len(value))
    except (LimitError, NotBatchableError, NotImplementedError, NotRecordableError, EvaluationError, ShapeError):
        return None
    skewness, excess = (numbers[with_numbers] for numbers in quantities.moments())
    found = []
    # Derivatives by what is known exactly take no part.
    is_exact = quantities.u == 0
    parts = (np.where(is_exact, 0.0, derivatives) for derivatives in (along.second, along.third))
    for f, g, second, third in zip(value.tolist(), scaled[:, with_numbers], *parts):
        hessian = second @ directions[with_numbers].T
        size = size_of(np.append(g, hessian))
        g, hessian = g / size, hessian / size
        step = g @ directions[with_numbers]
        own, own_third = np.diagonal(hessian), (third / size * directions[with_numbers]).sum(1)
        variance = (g**2).sum() + 0.5 * (hessian**2).sum() + (third @ step).sum() / size
        variance += (skewness * g * own + excess * (own**2 / 4 + g * own_third / 3)).sum()
        # Where the third derivative takes more away than there is, the expansion says nothing.
        u = size * math.sqrt(variance) if variance >= 0 else math.nan
        found.append(SecondOrder(f + 0.5 * size * float(np.trace(hessian)), u))
    return found


def _where_smooth(function: Callable[[Any], Any], point: Any, directions: Any, size: int) -> Along:
    """As `gradients_along`, at a point where the function goes one of several ways: nan where it has no such derivatives."""
    np = arrays.numpy_namespace()
    second, third = np.full((2, size, *directions.shape), np.nan)
    for row in range(size):

        def element(given: Mapping[str, Any], row: int = row) -> Any:
            return reshape(function(given["point"]), (size,))[row]

        _, found = derivatives(element, {"point": point}, 3)
        hessian, tensor = found["point,point"], found["point,point,point"]
        if hessian is not None and tensor is not None:
            second[row] = directions @ np.asarray(hessian)
            third[row] = [np.asarray(tensor) @ d @ d for d in directions]
    return Along(second, third)


def _parts(quantities: Quantities, point: Any) -> Mapping[str, Any]:
    """The inputs in a vector of them."""
    shapes = quantities.packing.shapes
    return {name: reshape(point[place], shapes[name]) for name, place in quantities.packing.places().items()}
