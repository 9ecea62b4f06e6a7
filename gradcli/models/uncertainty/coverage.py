"""Expanded uncertainty: effective degrees of freedom, and the coverage factor of a level (GUM, annex G)."""

from __future__ import annotations

import math
from typing import Any

from gradcli.models.uncertainty.input_quantities import Quantities

# Relative rounding error of the Welch-Satterthwaite formula that must not cost a whole degree of freedom.
_ROUNDING = 1e-9


def effective_dofs(quantities: Quantities, scaled: Any) -> list[float]:
    """The effective degrees of freedom of each result by the Welch-Satterthwaite formula (GUM, G.4.1), from the
    sensitivities `[m, n]` by independent quantities of variance 1.

    Inputs that are correlated with one another are one term of the formula, with the least degrees of freedom among
    them. The result is infinite where no term has finite ones.
    """
    return [_effective_dof(quantities, (row / scale_of(row)) ** 2) for row in scaled]


def scale_of(numbers: Any) -> float:
    """The largest absolute value, as a scale that keeps squares in the range of floats; 1 where it is 0 or not
    finite."""
    largest = float(abs(numbers).max(initial=0.0))
    return largest if 0 < largest < math.inf else 1.0


def norm(numbers: Any) -> float:
    """The square root of the sum of squares, without overflow or underflow."""
    size = scale_of(numbers)
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
    """The two-sided quantile of Student's t distribution at a level, of the normal distribution where `dof` is
    infinite; nan where `dof` is."""
    from scipy import special

    if math.isnan(dof):
        return dof
    if math.isinf(dof):
        return float(special.ndtri((1 + level) / 2))
    return float(special.stdtrit(whole_dof(dof), (1 + level) / 2))


def whole_dof(dof: float) -> float:
    """Finite degrees of freedom, rounded down to a whole number where they are at least 1 (GUM, G.4.1)."""
    return math.floor(dof * (1 + _ROUNDING)) or dof
