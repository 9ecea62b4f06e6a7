"""The result of a fit: its estimates, statistics and warnings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.io.text_tables import Table
from gradcli.models.fitting.problem.fit_units import Scaling
from gradcli.models.fitting.problem.problems import ResponseFit
from gradcli.models.fitting.results.fit_records import (
    Comparison,
    ConfidenceContour,
    CrossValidation,
    RandomEffects,
    Resampled,
)
from gradcli.models.fitting.search.estimation import SearchEnds, Starts
from gradcli.models.fitting.statistics.inference import Statistics
from gradcli.models.fitting.statistics.information import combination_text, correlation
from gradcli.models.results import MAY_BE_NULL, Reported
from gradcli.named_tuples import NamedTuple

# Curvature up to which linear intervals are good: D. M. Bates and D. G. Watts, Nonlinear Regression Analysis, 1988, 7.
_MAX_CURVATURE = 0.3
# Share of rounding errors in the residuals above which a fit has a warning.
_MAX_ROUNDING_SHARE = 1e-6


class ParameterEstimate(NamedTuple):
    """The estimate of a parameter: its value, standard error, `t` (the ratio of the two), confidence interval, and
    `p`, the probability of a larger `t` of either sign where the parameter is 0.

    The error is 0 for a parameter that is `fixed`, whose `p` is nan, and infinite for one that the data do not determine.
    The error and the interval of one at a bound are nan.
    """

    value: float
    error: float
    t: float
    low: float
    high: float
    fixed: bool
    p: float

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


class DerivedEstimate(NamedTuple):
    """A quantity derived from the estimates: its value, standard error, and confidence interval."""

    value: float
    error: float
    low: float
    high: float

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


@dataclass(frozen=True)
class Curvature:
    """Curvatures relative to the confidence region: 1 where the radius of curvature is that of the region; see
    `curvatures`."""

    intrinsic: float
    parameter: float


@dataclass(frozen=True, kw_only=True)
class Fit(Reported):
    """A fit to n rows. The names of its attributes are also its keys in JSON.

    `group` is None where there are no groups. `estimates` are by name, and `covariance` and `correlation` are matrices
    in their order. `loglik`, `aic`, `bic` and `deviance` are nan for a robust loss, `loss_scale` is nan for any other,
    and `curvature` is None for all but least squares. `left_out` is the number of rows that lack a number. `derived`
    are the derived quantities by name, None where none were asked for, and `random` are the random effects, None for a
    model without. `responses` says how well each of several responses is fitted, and is None for one. `errors` says what standard errors are from, None
    where it is the information, and `clusters` is the number of clusters of rows. `rows` is the number of rows of a
    complex response, each of which counts as two in `n`, and None for a real one. `contours` are those of confidence regions by pairs of
    parameters, as `a,b`. They, `comparison`, `bootstrap`,
    `jackknife` and `cross_validation` are None where they were not asked for.
    """

    group: Any = None
    n: int
    rows: int | None = None
    dof: float
    converged: bool
    message: str
    estimates: Mapping[str, ParameterEstimate]
    derived: Mapping[str, DerivedEstimate] | None = None
    random: RandomEffects | None = None
    responses: Mapping[str, ResponseFit] | None = None
    errors: str | None = None
    clusters: int | None = None
    covariance: Any
    correlation: Any
    rss: float
    s: float
    reduced_chi2: float
    r2: float
    loglik: float
    aic: float
    aicc: float
    bic: float
    deviance: float
    loss_scale: float
    condition: float
    curvature: Curvature | None = field(metadata=MAY_BE_NULL)
    left_out: int
    iterations: int
    evaluations: int
    starts: Starts
    undetermined: Sequence[str]
    contours: Mapping[str, ConfidenceContour] | None = None
    comparison: Comparison | None = None
    bootstrap: Resampled | None = None
    jackknife: Resampled | None = None
    cross_validation: CrossValidation | None = None
    warnings: Sequence[str]

    @classmethod
    def of(cls, told: _FitBatch, place: int, group: Any) -> Fit:
        """The fit at index `place` of `told`. Its attributes are computed when they are read, and not kept, because
        there may be many fits of which few attributes are used."""
        fit = object.__new__(cls)
        fit.__dict__.update(group=group, _told=told, _place=place)
        return fit

    def including(self, warnings: Sequence[str] = (), **members: Any) -> Fit:
        """The same fit with other members, and with further warnings."""
        fit = object.__new__(Fit)
        more = {"warnings": [*self.warnings, *warnings]} if warnings else {}
        fit.__dict__.update(self.__dict__, **members, **more)
        return fit

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            told = self.__dict__.get("_told")
            if told is None or name not in _MEMBERS:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            return told.said(name, self._place)

    def report(self) -> Sequence[Table]:
        from gradcli.models.fitting.results import fit_tables

        return fit_tables.brief(self)


_MEMBERS = frozenset(Fit.__dataclass_fields__)


def fitted(
    names: Sequence[str],
    fixed: Mapping[str, float],
    endings: SearchEnds,
    found: Statistics,
    *,
    intervals: tuple[Any, Any] | None = None,
    groups: Sequence[Any] | None = None,
    units: Scaling | None = None,
) -> list[Fit]:
    """The fits of g searches, all with the same free parameters, from their endings and the statistics `found`.

    `names` are those of all P parameters, and `fixed` has the numbers of those that were not varied. `intervals` are
    the lower and upper ends, `[g, P]` each, where they are not those of the standard errors. The endings and the
    statistics are in `units` where these are not None.
    """
    told = _FitBatch(names, fixed, endings, found, intervals, units)
    return [
        Fit.of(told, i, group) for i, group in enumerate([None] * len(endings.points) if groups is None else groups)
    ]


def _both_tails(t: Any, dof: Any) -> Any:
    """The probability that a larger value of either sign than `t` is seen: of Student's t distribution, or where `dof`
    is infinite of the normal one."""
    from scipy.special import ndtr, stdtr

    finite = np.broadcast_to(np.where(np.isfinite(dof) & (dof > 0), dof, 1.0), t.shape)
    found = 2 * np.where(np.isinf(dof), ndtr(-np.abs(t)), stdtr(finite, -np.abs(t)))
    return np.where(dof > 0, found, np.nan)


class _FitBatch:
    """The data of g fits, from which the attributes of each `Fit` are computed; see `fitted`."""

    def __init__(
        self,
        names: Sequence[str],
        fixed: Mapping[str, float],
        endings: SearchEnds,
        found: Statistics,
        intervals: tuple[Any, Any] | None,
        units: Scaling | None,
    ) -> None:
        self._names, self.endings, self._found, self._intervals = names, endings, found, intervals
        varied = np.array([name not in fixed for name in names], "bool")
        self._is_fixed = [name in fixed for name in names]
        self.points = np.tile([fixed.get(name, np.nan) for name in names], (len(endings.points), 1))
        self._units = units
        self._scales = np.ones(len(names))
        if units is not None:
            self._scales[varied] = units.parameters
        self.points[:, varied] = endings.points * self._scales[varied]
        free = varied.copy()
        free[varied] = endings.free
        self._free = np.flatnonzero(free)
        self._held = np.flatnonzero(varied & ~free)
        covariance = np.zeros((len(endings.points), len(names), len(names)))
        covariance[:, self._free[:, None], self._free] = (found.covariance + found.covariance.mT) / 2
        covariance[:, self._held] = np.nan
        covariance[:, :, self._held] = np.nan
        self._covariance = covariance
        self.errors = np.sqrt(np.einsum("gii->gi", covariance)) * self._scales

    @cached_property
    def covariance(self) -> Any:
        with np.errstate(all="ignore"):
            return self._covariance * self._scales[:, None] * self._scales

    @cached_property
    def estimates(self) -> list[dict[str, ParameterEstimate]]:
        points, errors, fixed = self.points, self.errors, self._is_fixed
        with np.errstate(all="ignore"):
            width = np.where(fixed, 0.0, errors * self._found.quantile[:, None])
            low, high = (points - width, points + width) if self._intervals is None else self._intervals
            t = points / errors
            numbers = np.stack([points, errors, t, low, high, _both_tails(t, self._found.tail[:, None])])
            numbers[5][:, fixed] = np.nan
        # Without calling the constructor, as there may be many estimates.
        estimate = partial(tuple.__new__, ParameterEstimate)
        columns = [
            map(estimate, zip(*numbers[:5, :, place].tolist(), repeat(is_fixed), numbers[5, :, place].tolist()))
            for place, is_fixed in enumerate(fixed)
        ]
        return [*map(dict, map(zip, repeat(self._names), zip(*columns)))]

    def said(self, name: str, i: int) -> Any:
        """The attribute `name` of `Fit` for the fit at index i."""
        own = _ATTRIBUTES.get(name)
        return self.statistics[name][i] if own is None else own(self, i)

    def column(self, name: str, places: Sequence[int]) -> list[Any]:
        """The attribute `name` of `Fit` for the fits at some indices."""
        own = _ATTRIBUTES.get(name)
        return [*map(self.statistics[name].__getitem__, places)] if own is None else [own(self, i) for i in places]

    def undetermined(self, i: int) -> list[str]:
        free = self._free
        return [
            combination_text(
                direction / self._scales[free], self.points[i, free], [self._names[place] for place in free.tolist()]
            )
            for direction in self._found.information.null[i]
            # Numbers that overflow give a direction of zeros.
            if direction.any()
        ]

    def warnings(self, i: int) -> list[str]:
        if not self._is_warned[i]:
            return [*self.endings.warnings]
        return [
            *self.endings.warnings,
            *self._at_bounds(i),
            *self._without_errors(i),
            *_rounding_warnings(self._found.rounding[i]),
            *(f"the data do not determine {text}" for text in self.undetermined(i)),
            *_curvature_warnings(self.curvature(i), profiled=self._intervals is not None),
        ]

    def curvature(self, i: int) -> Curvature | None:
        found = self._found.curvature
        return None if found is None else Curvature(float(found.intrinsic[i]), float(found.parameter[i]))

    @cached_property
    def _is_warned(self) -> list[bool]:
        """For each fit, whether it may have warnings of its own, beside those that all have."""
        found = self._found
        warned = ~found.information.is_determined | (found.dof <= 0) | bool(len(self._held))
        warned |= found.rounding > _MAX_ROUNDING_SHARE
        for bent in () if found.curvature is None else found.curvature:
            warned |= bent > _MAX_CURVATURE
        told: list[bool] = warned.tolist()
        return told

    @cached_property
    def statistics(self) -> dict[str, list[Any]]:
        numbers = {name: getattr(self._found, name) for name in ("n", "dof", *_NUMBERS)}
        if self._units is not None:
            numbers |= _without_units(numbers, self._units)
        return {name: column.tolist() for name, column in numbers.items()}

    @cached_property
    def conditions(self) -> list[float]:
        found: list[float] = self._found.information.condition.tolist()
        return found

    @cached_property
    def correlations(self) -> Any:
        return correlation(self._covariance)

    def _at_bounds(self, i: int) -> list[str]:
        what = (
            "the errors of the others are those with it held there" if len(self._free) else "it has no standard error"
        )
        what += "" if self._intervals is None else ", and its interval is one-sided"
        return [
            f"{self._names[place]} is at its bound {self.points[i, place]:g}: {what}" for place in self._held.tolist()
        ]

    def _without_errors(self, i: int) -> list[str]:
        if self._found.dof[i] > 0 or not np.isnan(self.errors[i, self._free]).any():
            return []
        return ["the rows are as many as the parameters: nothing is left to tell errors from"]


# Attributes of `Fit` that are not numbers of its statistics, and how they are computed.
_ATTRIBUTES: Mapping[str, Callable[[_FitBatch, int], Any]] = {
    "estimates": lambda told, i: told.estimates[i],
    "converged": lambda told, _: told.endings.converged,
    "message": lambda told, _: told.endings.message,
    "covariance": lambda told, i: told.covariance[i],
    "correlation": lambda told, i: told.correlations[i],
    "condition": lambda told, i: told.conditions[i],
    "curvature": lambda told, i: told.curvature(i),
    "left_out": lambda _told, _: 0,
    "iterations": lambda told, i: int(told.endings.iterations[i]),
    "evaluations": lambda told, i: int(told.endings.evaluations[i]),
    "starts": lambda told, _: told.endings.starts,
    "undetermined": lambda told, i: told.undetermined(i),
    "warnings": lambda told, i: told.warnings(i),
}


def failed(names: Sequence[str], fixed: Mapping[str, float], n: int, message: str, group: Any = None) -> Fit:
    """The fit of n rows that could not be fitted: all of its numbers are nan."""
    nothing, matrix = float("nan"), np.full((len(names), len(names)), np.nan)
    return Fit(
        group=group,
        dof=n - sum(name not in fixed for name in names),
        converged=False,
        message=f"not converged: {message}",
        estimates={
            name: ParameterEstimate(
                fixed.get(name, nothing), nothing, nothing, nothing, nothing, name in fixed, nothing
            )
            for name in names
        },
        derived=None,
        random=None,
        responses=None,
        errors=None,
        contours=None,
        comparison=None,
        bootstrap=None,
        jackknife=None,
        cross_validation=None,
        clusters=None,
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
        rows=None,
        **dict.fromkeys(_NUMBERS, nothing),
    )


class Numbers(NamedTuple):
    """The numbers of g fits for a table: values and errors of the estimates, `[g, P]` each, and attributes of `Fit` by
    name."""

    values: Any
    errors: Any
    members: Mapping[str, list[Any]]


def table_numbers(fits: Sequence[Fit], members: Sequence[str]) -> Numbers:
    """The numbers of fits with the same parameters; those of fits that share their data are read together."""
    parts: list[tuple[Any, Any]] = []
    found: Mapping[str, list[Any]] = {name: [] for name in members}
    for told, some in groupby(fits, key=lambda fit: fit.__dict__.get("_told")):
        alike = [*some]
        if told is None:
            of_each = [[(e.value, e.error) for e in fit.estimates.values()] for fit in alike]
            parts.append((*np.moveaxis(np.array(of_each), -1, 0),))
        else:
            places = [fit.__dict__["_place"] for fit in alike]
            parts.append((told.points[places], told.errors[places]))
        for name, column in found.items():
            column += [getattr(fit, name) for fit in alike] if told is None else told.column(name, places)
    values, errors = map(np.concatenate, zip(*parts))
    return Numbers(values, errors, found)


# Attributes of `Fit` that are numbers of its statistics.
_NUMBERS = ("rss", "s", "reduced_chi2", "r2", "loglik", "aic", "aicc", "bic", "deviance", "loss_scale")


def _without_units(numbers: Mapping[str, Any], units: Scaling) -> dict[str, Any]:
    """The statistics of responses in units, converted to those of the responses themselves; infinite where they are out
    of range."""
    shift = numbers["n"] * math.log(units.response)
    with np.errstate(all="ignore"):
        found = {name: numbers[name] * units.ratio for name in ("s", "loss_scale")}
        found |= {name: numbers[name] * units.ratio**2 for name in ("rss", "reduced_chi2", "deviance")}
    found["loglik"] = numbers["loglik"] - shift
    return found | {name: numbers[name] + 2 * shift for name in ("aic", "aicc", "bic")}


def _rounding_warnings(rounding: float) -> list[str]:
    """The warning where rounding errors are more than `_MAX_ROUNDING_SHARE` of the residuals; `rounding` is their
    share."""
    if not rounding > _MAX_ROUNDING_SHARE:
        return []
    digits = int(-math.log10(min(rounding, 1.0)))
    if not digits:
        return ["the residuals are rounding errors, and so are the standard errors"]
    return [f"rounding errors are a part of the residuals: digits of the standard errors that are right: {digits}"]


def _curvature_warnings(curvature: Curvature | None, *, profiled: bool) -> list[str]:
    """Warnings where the curvature is too large for linear intervals."""
    if curvature is None:
        return []
    found = []
    if curvature.intrinsic > _MAX_CURVATURE:
        found.append(
            f"the model is far from linear within the confidence region (intrinsic curvature {curvature.intrinsic:.2g}, "
            f"more than {_MAX_CURVATURE}): its size is not what it seems"
        )
    if not profiled and curvature.parameter > _MAX_CURVATURE:
        found.append(
            f"the linear intervals cannot be trusted (curvature by the parameters {curvature.parameter:.2g}, more than "
            f"{_MAX_CURVATURE}): --profile gives better ones"
        )
    elif not profiled and found:
        found.append("the linear intervals cannot be trusted either: --profile gives better ones")
    return found
