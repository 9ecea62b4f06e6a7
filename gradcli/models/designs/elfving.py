"""c-optimal designs, for the least variance of one quantity, by Elfving's theorem: they are linear programs, also where
the best information matrix is singular (G. Elfving, Annals of Mathematical Statistics 23 (1952) 255)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradcli.errors import EvaluationError
from gradcli.models.designs.approximate_designs import (
    TOLERANCE,
    ApproximateDesign,
    Candidates,
    climbed,
    distinct,
    greatest,
)

_MOST_ROUNDS = 40
# Steps of Remez' algorithm, which converges quadratically; and the condition number from which on a matrix is singular.
_MOST_POLISHES, _SINGULAR = 4, 1e12
# Coefficients below this, relative to the largest, are 0: the linear program has tolerances of this size.
_LEAST = 1e-7
# Points nearer to each other than this, relative to the widths of the region, are one.
_SAME = 1e-5


class ElfvingDesign(NamedTuple):
    """A c-optimal design, and the coefficients `[m]` with which the gradients at its points add up to c."""

    design: ApproximateDesign
    coefficients: Any


def c_optimal_design(candidates: Candidates, quantity: Any) -> ElfvingDesign:
    """The design with the least variance of a quantity whose derivatives by the combinations of parameters are `[p]`.

    Raises EvaluationError where no rows of the region determine the quantity.
    """
    points, gradients = candidates.points, candidates.gradients
    best: ElfvingDesign | None = None
    for _ in range(_MOST_ROUNDS):
        support, coefficients, direction = _linear_program(gradients, quantity)
        beyond, ratio = greatest(candidates, np.outer(direction, direction))
        size = float(np.abs(coefficients).sum())
        bound = min(1.0, (quantity @ direction / size) ** 2 / ratio)
        if best is not None and bound <= best.design.bound and bound >= 1 - TOLERANCE:
            break
        if best is None or bound > best.design.bound:
            found = ApproximateDesign(points[support], np.abs(coefficients) / size, bound)
            best = ElfvingDesign(found, coefficients)
        if not len(beyond):
            break
        points = np.concatenate([points, beyond])
        gradients = np.concatenate([gradients, candidates.gradients_at(beyond)])
    assert best is not None
    return _polished(_joined(best, candidates, quantity), candidates, quantity)


def _linear_program(gradients: Any, quantity: Any) -> tuple[Any, Any, Any]:
    """The indices `[m]` and coefficients `[m]` of the rows with the least sum of absolute coefficients whose gradients
    add up to the quantity, and h `[p]` with |gᵀh| at most 1 in all rows for which quantityᵀh is that sum."""
    from scipy.optimize import linprog

    count, size = len(gradients), float(np.abs(quantity).max())
    found = linprog(
        np.ones(2 * count),
        A_eq=np.concatenate([gradients, -gradients]).T,
        b_eq=quantity / size,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.x is None:
        raise EvaluationError(
            "no rows of this region determine the quantity", hint="give the inputs wider ranges, or --fix parameters"
        )
    signed = found.x[:count] - found.x[count:]
    support = np.flatnonzero(np.abs(signed) > _LEAST * np.abs(signed).max())
    chosen = gradients[support]
    coefficients = np.linalg.lstsq(chosen.T, quantity, rcond=None)[0]
    direction = found.eqlin.marginals
    if len(support) == len(quantity):
        direction = np.linalg.solve(chosen, np.sign(coefficients))
    return support, coefficients, direction


def _joined(found: ElfvingDesign, candidates: Candidates, quantity: Any) -> ElfvingDesign:
    """The same design in the order of the points; neighbours are one point, with the coefficients that it then has."""
    design = found.design
    points = design.points[
        distinct(design.points, np.argsort(-design.weights, kind="stable"), _SAME, candidates.region)
    ]
    points = points[np.lexsort(points.T[::-1])]
    coefficients = np.linalg.lstsq(candidates.gradients_at(points).T, quantity, rcond=None)[0]
    weights = np.abs(coefficients) / np.abs(coefficients).sum()
    return ElfvingDesign(ApproximateDesign(points, weights, design.bound), coefficients)


def _polished(found: ElfvingDesign, candidates: Candidates, quantity: Any) -> ElfvingDesign:
    """The same design with its points at the extrema of gᵀh, beyond the tolerances of the linear program: those of as
    many points as parameters determine h, as in Remez' algorithm."""
    points, coefficients = found.design.points, found.coefficients
    if len(points) != len(quantity):
        return found
    for _ in range(_MOST_POLISHES):
        direction = np.linalg.solve(candidates.gradients_at(points), np.sign(coefficients))
        slope = np.outer(direction, direction)
        points = np.stack([climbed(candidates, slope, point)[0] for point in points])
        gradients = candidates.gradients_at(points)
        if not np.linalg.cond(gradients) < _SINGULAR:
            return found
        coefficients = np.linalg.solve(gradients.T, quantity)
    direction = np.linalg.solve(gradients, np.sign(coefficients))
    _, ratio = greatest(candidates, np.outer(direction, direction))
    size = float(np.abs(coefficients).sum())
    bound = min(1.0, (quantity @ direction / size) ** 2 / ratio)
    if bound < found.design.bound:
        return found
    return ElfvingDesign(ApproximateDesign(points, np.abs(coefficients) / size, bound), coefficients)
