"""Expanded uncertainty: effective degrees of freedom, and the coverage factor of a level (GUM, annex G)."""

from __future__ import annotations

import math
from typing import Any

from gradcli.models.uncertainty.input_quantities import Quantities

# What the formula of Welch and Satterthwaite may lose in rounding is no whole degree of freedom.
_ROUNDING = 1e-9


def effective_dofs(quantities: Quantities, scaled: Any) -> list[float]:
    """Those of each result, by the formula of Welch and Satterthwaite (GUM, G.4.1), for their sensitivities `[m, n]` by
    independent quantities of variance 1. Numbers that are correlated with one another are one term of it, with the least
    degrees of freedom among them; infinite where no term has finite ones."""
    return [_effective_dof(quantities, (row / size_of(row)) ** 2) for row in scaled]


def size_of(numbers: Any) -> float:
    """The magnitude of the largest of some numbers, by which their squares are kept from going out of range; 1 where it is
    none to divide by."""
    largest = float(abs(numbers).max(initial=0.0))
    return largest if 0 < largest < math.inf else 1.0


def norm(numbers: Any) -> float:
    """The square root of the sum of squares, within the range of floats."""
    size = size_of(numbers)
    return size * math.sqrt(((numbers / size) ** 2).sum())


def _effective_dof(quantities: Quantities, squares: Any) -> float:
    total = float(squares.sum())
    if not total > 0:
        return math.nan if math.isnan(total) else math.inf
    weights = squares / total
    inverse = 0.0
    for block in quantities.blocks:
        inverse += float(weights[block.places].sum()) ** 2 / float(quantities.dof[block.places].min())
        weights[block.places] = 0.0
    inverse += float((weights**2 / quantities.dof).sum())
    return 1.0 / inverse if inverse > 0 else math.inf


def coverage_factor(level: float, dof: float) -> float:
    """The quantile of Student's distribution for an interval on both sides, of the normal one where `dof` is infinite; nan
    where it is."""
    from scipy import special

    if math.isnan(dof):
        return dof
    if math.isinf(dof):
        return float(special.ndtri((1 + level) / 2))
    return float(special.stdtrit(whole_dof(dof), (1 + level) / 2))


def whole_dof(dof: float) -> float:
    """Finite degrees of freedom, cut to a whole number where they are at least 1 (GUM, G.4.1)."""
    return math.floor(dof * (1 + _ROUNDING)) or dof
