"""Quantiles of the distributions of inputs, as functions of probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import BindingError
from gradcli.models.uncertainty.input_quantities import Quantities


def uncertain_places(quantities: Quantities) -> Sequence[int]:
    """The indices of the inputs whose uncertainty is not 0."""
    np = arrays.numpy_namespace()
    found: Sequence[int] = np.flatnonzero(quantities.u).tolist()
    return found


def check_independent(quantities: Quantities, what: str) -> None:
    """Raise BindingError for correlated inputs, of which there are no `what`."""
    labels = quantities.packing.labels()
    for block in quantities.blocks:
        first, second, *_ = [labels[place] for place in block.places.tolist()]
        raise BindingError(
            f"'{first}' and '{second}' are correlated, and {what} are those of independent inputs",
            hint="leave out the correlation",
        )


def quantile(quantities: Quantities, place: int, probabilities: Any) -> Any:
    """The quantiles of an input by its index: of its assigned distribution, else of Student's where its degrees of
    freedom are finite (JCGM 101, 6.4.9), else of the normal one."""
    assigned = quantities.distributions.get(place)
    if assigned is not None:
        return assigned.quantile(probabilities)
    from scipy import special

    dof = float(quantities.dof[place])
    standard = special.stdtrit(dof, probabilities) if math.isfinite(dof) else special.ndtri(probabilities)
    return quantities.mean[place] + quantities.u[place] * standard
