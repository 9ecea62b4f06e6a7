"""What a linear propagation neglects: the mean and the variance to the next order (GUM, 5.1.2, note)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gradcli import arrays, limits
from gradcli.calculus.gradient_series import DirectionalDerivatives, gradients_along
from gradcli.calculus.higher_orders import derivatives
from gradcli.errors import EvaluationError, LimitError, NotBatchableError, NotRecordableError, ShapeError
from gradcli.kinds.branch_points import BranchPointWatcher, watching
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax.tree import Module
from gradcli.models.uncertainty.coverage import scale_of
from gradcli.models.uncertainty.input_quantities import Quantities
from gradcli.primitives.conversions import reshape


@dataclass(frozen=True)
class SecondOrder:
    """The mean to second order, and the standard uncertainty to fourth order in those of the inputs."""

    mean: float
    u: float


def second_order(program: Module, quantities: Quantities, value: Any, scaled: Any) -> list[SecondOrder] | None:
    """The next order of each result `value` `[m]`; None where a derivative cannot be computed, or would take more than
    the limits of the run. `scaled` `[m, n]` are the sensitivities g by independent quantities z of variance 1.

    With H the Hessian and T the third derivatives by z, the mean is f + tr H / 2. The variance is |g|² + tr H² / 2 +
    sum over i, k of g_i T_ikk, which are the GUM's terms for normal inputs, extended to correlated ones; to these is
    added, with the skewness s_i and the excess kurtosis e_i of z_i, the sum over i of s_i g_i H_ii + e_i (H_ii² / 4 +
    g_i T_iii / 3).
    """
    np = arrays.numpy_namespace()

    known = {**quantities.exact, **quantities.named_exactly}

    def function(point: Any) -> Any:
        return evaluate(program, {**_parts(quantities, point), **known}).value

    switching = BranchPointWatcher()

    try:
        with limits.optional_budget():
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
    # Derivatives by exact inputs do not contribute.
    is_exact = quantities.u == 0
    parts = (np.where(is_exact, 0.0, derivatives) for derivatives in (along.second, along.third))
    for f, g, second, third in zip(value.tolist(), scaled[:, with_numbers], *parts):
        hessian = second @ directions[with_numbers].T
        size = scale_of(np.append(g, hessian))
        g, hessian = g / size, hessian / size
        step = g @ directions[with_numbers]
        own, own_third = np.diagonal(hessian), (third / size * directions[with_numbers]).sum(1)
        variance = (g**2).sum() + 0.5 * (hessian**2).sum() + (third @ step).sum() / size
        variance += (skewness * g * own + excess * (own**2 / 4 + g * own_third / 3)).sum()
        # The expansion is useless where its third-order terms make the variance negative.
        u = size * math.sqrt(variance) if variance >= 0 else math.nan
        found.append(SecondOrder(f + 0.5 * size * float(np.trace(hessian)), u))
    return found


def _where_smooth(function: Callable[[Any], Any], point: Any, directions: Any, size: int) -> DirectionalDerivatives:
    """As `gradients_along`, at a point where the function has several branches: nan where its derivatives do not
    exist."""
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
    return DirectionalDerivatives(second, third)


def _parts(quantities: Quantities, point: Any) -> Mapping[str, Any]:
    """The inputs by name, from a vector of all."""
    shapes = quantities.packing.shapes
    return {name: reshape(point[place], shapes[name]) for name, place in quantities.packing.places().items()}
