"""What a fit gives: its estimates with all that is said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gradcli.models.fitting.curvatures import Curvatures
from gradcli.models.fitting.inference import Statistics
from gradcli.models.fitting.information import combination_text, correlation
from gradcli.models.results import MAY_BE_NULL

# Up to here a linear interval is good: D. M. Bates and D. G. Watts, Nonlinear Regression Analysis, 1988, 7.
_BENT = 0.3


@dataclass(frozen=True)
class ParameterEstimate:
    """Of a parameter: its value, standard error, their ratio, and the confidence interval. What is `fixed` has an error of
    0, what the data do not determine an infinite one, and what is at a bound has none: that and its interval are nan."""

    value: float
    error: float
    t: float
    low: float
    high: float
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

    `estimates` are by name, and `covariance` and `correlation` are matrices in their order.
    `loglik`, `aic` and `bic` are nan for a robust loss, and `curvature` is None for all but least squares. `left_out` are
    the rows that lack a number.
    """

    group: Any = None
    n: int
    dof: int
    converged: bool
    message: str
    estimates: Mapping[str, ParameterEstimate]
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
    curvature: Curvature | None = field(metadata=MAY_BE_NULL)
    left_out: int
    iterations: int
    evaluations: int
    starts: Starts
    undetermined: Sequence[str]
    warnings: Sequence[str]


class Ending(NamedTuple):
    """How the search for estimates ended: at which `point` of the p parameters that were varied, which of them are `free`,
    `[p]`, others being at a bound, and what is said of it."""

    point: Any
    free: Any
    converged: bool
    message: str
    iterations: int
    evaluations: int
    starts: Starts
    warnings: Sequence[str] = ()


def fitted(
    names: Sequence[str],
    fixed: Mapping[str, float],
    endings: Sequence[Ending],
    found: Statistics,
    *,
    intervals: tuple[Any, Any] | None = None,
    groups: Sequence[Any] | None = None,
) -> list[Fit]:
    """The g fits that ended so, all with the same parameters free, to which these statistics belong.

    `names` are those of all P parameters, with the numbers of those that were `fixed`; the others were varied.
    `intervals` are the ends of the intervals, `[g, P]` each, where they are known better than from the standard errors.
    """
    varied = np.array([name not in fixed for name in names], "bool")
    points = np.tile([fixed.get(name, np.nan) for name in names], (len(endings), 1))
    points[:, varied] = [ending.point for ending in endings]
    free = varied.copy()
    free[varied] = endings[0].free
    places = np.flatnonzero(free)
    free_names = [names[place] for place in places.tolist()]
    covariance = np.zeros((len(points), len(names), len(names)))
    covariance[:, places[:, None], places] = (found.covariance + np.swapaxes(found.covariance, 1, 2)) / 2
    held = varied & ~free
    covariance[:, held] = np.nan
    covariance[:, :, held] = np.nan
    errors = np.sqrt(np.einsum("gii->gi", covariance))
    with np.errstate(all="ignore"):
        unknown = np.isnan(errors[:, free]).any(axis=1) & (found.dof <= 0)
        width = np.where(varied, errors * found.quantile[:, None], 0.0)
        ratios = points / errors
        correlations = correlation(covariance)
    low, high = (points - width, points + width) if intervals is None else intervals
    of_each = np.stack([points, errors, ratios, low, high], axis=-1).tolist()
    numbers = [*zip(*(getattr(found, name).tolist() for name in _NUMBERS))]
    conditions = found.information.condition.tolist()
    curved = [None] * len(endings) if found.curvature is None else _of_each(found.curvature)
    counts = [*zip(found.n.tolist(), found.dof.tolist())]
    is_fixed = [name in fixed for name in names]
    at_bounds = np.flatnonzero(held).tolist()
    fits = []
    for i, ending in enumerate(endings):
        undetermined = [
            combination_text(direction, points[i, places], free_names)
            for direction in found.information.null[i]
            # Of numbers that overflow there is none.
            if direction.any()
        ]
        warnings = [
            *ending.warnings,
            *(
                f"{names[place]} is at its bound {points[i, place]:g}: the errors of the others are those with it held there"
                + ("" if intervals is None else ", and its interval is one-sided")
                for place in at_bounds
            ),
            *(["the rows are as many as the parameters: nothing is left to tell errors from"] if unknown[i] else []),
            *(f"the data do not determine {text}" for text in undetermined),
            *_bent(curved[i], profiled=intervals is not None),
        ]
        rss, s, reduced_chi2, r2, loglik, aic, bic = numbers[i]
        fits.append(
            Fit(
                group=None if groups is None else groups[i],
                n=counts[i][0],
                dof=counts[i][1],
                converged=ending.converged,
                message=ending.message,
                estimates={
                    name: ParameterEstimate(value, error, t, least, most, is_held)
                    for name, (value, error, t, least, most), is_held in zip(names, of_each[i], is_fixed)
                },
                covariance=covariance[i],
                correlation=correlations[i],
                rss=rss,
                s=s,
                reduced_chi2=reduced_chi2,
                r2=r2,
                loglik=loglik,
                aic=aic,
                bic=bic,
                condition=conditions[i],
                curvature=curved[i],
                left_out=0,
                iterations=ending.iterations,
                evaluations=ending.evaluations,
                starts=ending.starts,
                undetermined=undetermined,
                warnings=warnings,
            )
        )
    return fits


def _of_each(curvatures: Curvatures) -> list[Curvature | None]:
    return [*map(Curvature, curvatures.intrinsic.tolist(), curvatures.parameter.tolist())]


def failed(names: Sequence[str], fixed: Mapping[str, float], n: int, message: str, group: Any = None) -> Fit:
    """What is left to say of n rows that could not be fitted."""
    nothing, matrix = float("nan"), np.full((len(names), len(names)), np.nan)
    return Fit(
        group=group,
        dof=n - sum(name not in fixed for name in names),
        converged=False,
        message=f"not converged: {message}",
        estimates={
            name: ParameterEstimate(fixed.get(name, nothing), nothing, nothing, nothing, nothing, name in fixed)
            for name in names
        },
        covariance=matrix,
        correlation=matrix,
        condition=nothing,
        curvature=None,
        left_out=0,
        iterations=0,
        evaluations=0,
        starts=Starts(0, 0),
        undetermined=[],
        warnings=[],
        n=n,
        **dict.fromkeys(_NUMBERS, nothing),
    )


# What a fit has of its statistics as it is.
_NUMBERS = ("rss", "s", "reduced_chi2", "r2", "loglik", "aic", "bic")


def _bent(curvature: Curvature | None, *, profiled: bool) -> list[str]:
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
