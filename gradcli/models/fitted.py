"""What a fit gives: its estimates with all that is said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gradcli.models.inference import Assumptions, Statistics
from gradcli.models.information import combination_text, correlation
from gradcli.models.packing import Packing

# Up to here a linear interval is good: D. M. Bates and D. G. Watts, Nonlinear Regression Analysis, 1988, 7.
_BENT = 0.3


@dataclass(frozen=True)
class Estimate:
    """Of a parameter, a number or an array: its value, standard error, their ratio, and the confidence interval. What is
    `fixed` has an error of 0; what the data do not determine has an infinite one."""

    value: Any
    error: Any
    t: Any
    low: Any
    high: Any
    fixed: bool


@dataclass(frozen=True)
class Starts:
    """From how many points a search began, and how many of them came to the same minimum."""

    tried: int
    agreed: int


@dataclass(frozen=True)
class Curvature:
    """See `curvatures`: at 1 it is as large as the confidence region."""

    intrinsic: float
    parameter: float


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A fit to n rows, whose keys in JSON its attributes are. `group` is None for one that is of no group.

    `estimates` are by name, and `covariance` and `correlation` are matrices in their order, arrays element by element.
    `loglik`, `aic` and `bic` are nan for a robust loss, and `curvature` is None for all but least squares.
    """

    group: Any = None
    n: int
    dof: int
    converged: bool
    message: str
    estimates: Mapping[str, Estimate]
    covariance: Any
    correlation: Any
    rss: float
    s: float
    reduced_chi2: float
    r2: float
    loglik: float
    aic: float
    bic: float
    condition: float
    curvature: Curvature | None
    iterations: int
    evaluations: int
    starts: Starts
    undetermined: Sequence[str]
    warnings: Sequence[str]


class Ending(NamedTuple):
    """How the search for an estimate ended: the vector of all parameters, which of them were estimated (neither fixed nor
    at a bound), `[P]` each, and what is said of the search."""

    point: Any
    free: Any
    converged: bool
    message: str
    iterations: int
    evaluations: int
    starts: Starts
    warnings: Sequence[str] = ()


def fitted(
    packing: Packing,
    fixed: Any,
    ending: Ending,
    found: Statistics,
    index: int,
    known: Assumptions,
    *,
    intervals: tuple[Any, Any] | None = None,
    group: Any = None,
) -> Fit:
    """The fit whose statistics stand at an `index` among some.

    `fixed` says of the P numbers of the parameters which were not varied; `intervals` are the ends of the intervals of
    all P, where they are known better than from the standard errors.
    """
    labels = packing.labels()
    free = np.flatnonzero(ending.free)
    covariance = np.zeros((packing.size, packing.size))
    covariance[np.ix_(free, free)] = found.covariance[index]
    errors = np.sqrt(np.diagonal(covariance))
    width = np.where(ending.free, errors * found.quantile[index], 0.0)
    low, high = (ending.point - width, ending.point + width) if intervals is None else intervals
    with np.errstate(all="ignore"):
        ratios = ending.point / errors
    of_each = zip(*(packing.named(part).values() for part in (ending.point, errors, ratios, low, high)))
    estimates = {
        name: Estimate(value, error, t, least, most, bool(fixed[place].all()))
        for (name, place), (value, error, t, least, most) in zip(packing.places().items(), of_each)
    }
    curvature = None
    if found.curvature is not None:
        curvature = Curvature(float(found.curvature.intrinsic[index]), float(found.curvature.parameter[index]))
    null = found.information.null[index]
    undetermined = [combination_text(direction, [labels[i] for i in free]) for direction in null]
    return Fit(
        group=group,
        n=int(found.n[index]),
        dof=int(found.dof[index]),
        converged=ending.converged,
        message=ending.message,
        estimates=estimates,
        covariance=covariance,
        correlation=correlation(covariance),
        rss=float(found.rss[index]),
        s=float(found.s[index]),
        reduced_chi2=float(found.reduced_chi2[index]),
        r2=float(found.r2[index]),
        loglik=float(found.loglik[index]),
        aic=float(found.aic[index]),
        bic=float(found.bic[index]),
        condition=float(found.information.condition[index]),
        curvature=curvature,
        iterations=ending.iterations,
        evaluations=ending.evaluations,
        starts=ending.starts,
        undetermined=undetermined,
        warnings=[
            *ending.warnings,
            *(f"the data do not determine {text}" for text in undetermined),
            *_bent(curvature, known, profiled=intervals is not None),
        ],
    )


def _bent(curvature: Curvature | None, known: Assumptions, *, profiled: bool) -> list[str]:
    """What to say where the linear intervals cannot be trusted."""
    if curvature is None:
        return []
    if curvature.intrinsic > _BENT:
        return [
            f"the model is far from linear within the confidence region (intrinsic curvature {curvature.intrinsic:.2g}, "
            f"more than {_BENT}): its size is not what it seems"
        ]
    if curvature.parameter > _BENT and not profiled:
        return [
            f"the linear intervals cannot be trusted (curvature by the parameters {curvature.parameter:.2g}, more than "
            f"{_BENT}): --profile gives better ones"
        ]
    return []
