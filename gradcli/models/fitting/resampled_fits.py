"""Errors and intervals of estimates from fits of other rows: of samples with replacement (the bootstrap), or of all rows
but one (the jackknife); and errors of prediction from fits without a part of the rows (cross-validation)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.errors import EvaluationError, GradcliError, UsageError
from gradcli.models.fitting.derived_quantities import values_of
from gradcli.models.fitting.fit_runs import FitJob, solve
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.problem.stacked_problems import Stacked, by_size, portions
from gradcli.models.fitting.responses.density_problems import DensityProblem
from gradcli.models.fitting.results.fit_records import CrossValidation, Resampled, ResampledEstimate
from gradcli.models.fitting.search.estimation import DESCENT_VARIANTS
from gradcli.models.fitting.search.group_fits import GroupSearch, fit_stacked
from gradcli.models.fitting.statistics.inference import INFORMATION

# Number of samples beyond an end of an interval below which that end is rough.
_FEW_BEYOND = 10
# Upper bound of the rows of all samples, which are kept in memory.
_MOST_ROWS = 10**8


# Fits samples, each of which is a list of units of rows, and returns the estimates `[g, p]`, nan for those that failed.
Refit = Callable[[Sequence[Sequence[Any]]], Any]


def bootstrapped(
    fitting: FitJob, point: Mapping[str, float], count: int, refit: Refit | None = None
) -> tuple[Resampled, list[str]]:
    """The bootstrap of a fit whose estimates are `point`, with warnings: `count` samples of rows with replacement, or of
    clusters where there are any, that the seed determines. Intervals are those of percentiles (B. Efron and R. J.
    Tibshirani, An Introduction to the Bootstrap, 1993, 13.3). `refit` fits the samples in another way than alone by the
    rows."""
    units = _units(fitting.question.problem)
    if count * sum(map(len, units)) > _MOST_ROWS:
        raise UsageError("the bootstrap has too many samples", hint=f"they have at most {_MOST_ROWS:,} rows together")
    rng = np.random.default_rng(fitting.search.seed)
    chosen = [[units[i] for i in rng.integers(0, len(units), len(units))] for _ in range(count)]
    found, failed = _good(_refitted(fitting, point, chosen, refit))
    level = fitting.question.problem.known.level

    def of_one(value: float, samples: Any) -> ResampledEstimate:
        low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
        return ResampledEstimate(float(samples.mean() - value), float(samples.std(ddof=1)), float(low), float(high))

    warnings = _failures(failed, count, "samples")
    if (count - failed) * (1 - level) / 2 < _FEW_BEYOND:
        warnings.append(f"the ends of the bootstrap's intervals are rough with {count - failed:,} samples")
    return _resampled(fitting, point, found, failed, of_one), warnings


def _refitted(fitting: FitJob, point: Mapping[str, float], chosen: Sequence[Sequence[Any]], refit: Refit | None) -> Any:
    if refit is not None:
        return refit(chosen)
    return _fits(fitting, point, [np.concatenate(own) for own in chosen])


def jackknifed(fitting: FitJob, point: Mapping[str, float], refit: Refit | None = None) -> tuple[Resampled, list[str]]:
    """The jackknife of a fit whose estimates are `point`, with warnings: a fit without each of the rows, or of the
    clusters where there are any. Intervals are symmetric, with Student's t (as above, 11.5)."""
    from scipy.special import stdtrit

    units = _units(fitting.question.problem)
    count = len(units)
    samples = [[*units[:i], *units[i + 1 :]] for i in range(count)] if count > 1 else []
    found, failed = _good(_refitted(fitting, point, samples, refit))
    known = fitting.question.problem.known

    def of_one(value: float, samples: Any) -> ResampledEstimate:
        m = len(samples)
        error = float(np.sqrt((m - 1) / m * np.square(samples - samples.mean()).sum()))
        width = float(stdtrit(m - 1, (1 + known.level) / 2)) * error
        return ResampledEstimate((m - 1) * float(samples.mean() - value), error, value - width, value + width)

    return _resampled(fitting, point, found, failed, of_one), _failures(failed, count, "fits without a row")


def cross_validated(fitting: FitJob, point: Mapping[str, float], count: int) -> tuple[CrossValidation, list[str]]:
    """The cross-validation of a fit whose estimates are `point`, with warnings: the rows, or the clusters where there are
    any, are divided into `count` parts of nearly one size, by chance that the seed determines, and each part is predicted
    by a fit of the others.

    Raises UsageError for more parts than rows, and EvaluationError where no part can be predicted.
    """
    problem = fitting.question.problem
    if fitting.question.part is not None:
        raise UsageError("--cross-validate is for real responses, and this one is complex", hint="leave it out")
    units = _units(problem)
    if count > len(units):
        what = "rows" if problem.clusters is None else "clusters"
        raise UsageError(f"there are {len(units):,} {what}, fewer than {count:,} folds", hint="--cross-validate 5")
    shuffled = np.random.default_rng(fitting.search.seed).permutation(len(units))
    parts = [np.concatenate([units[i] for i in own]) for own in np.array_split(shuffled, count)]
    others = [np.setdiff1d(np.arange(problem.count), own) for own in parts]
    estimates = _fits(fitting, point, others)
    errors, about_mean = [], []
    failed = 0
    for own, rest, estimate in zip(parts, others, estimates):
        off = problem.response[own] - _predicted(problem.with_rows(own), estimate)
        if not np.isfinite(off).all():
            failed += 1
            continue
        errors.append(off)
        about_mean.append(problem.response[own] - problem.response[rest].mean())
    if not errors:
        raise EvaluationError(
            "no part of the rows can be predicted from the others", hint="the data are too few for this"
        )
    squares, sizes = (np.concatenate(errors) ** 2).mean(), np.abs(np.concatenate(errors)).mean()
    with np.errstate(all="ignore"):
        r2 = 1 - squares / (np.concatenate(about_mean) ** 2).mean()
    found = CrossValidation(count, failed, float(np.sqrt(squares)), float(sizes), float(r2))
    return found, _failures(failed, count, "parts of the rows")


def _predicted(problem: Problem, point: Any) -> Any:
    """The model's mean in the rows of a problem; nan for a point that is."""
    if not np.isfinite(point).all():
        return np.full(problem.count, np.nan)
    if isinstance(problem, DensityProblem):
        return problem.at(problem.predictors, problem.count, point)[0]
    return problem.rows(point)[0]


def _failures(failed: int, count: int, what: str) -> list[str]:
    return [f"{failed:,} of {count:,} {what} could not be fitted, and are left out"] if failed else []


def _units(problem: Problem) -> list[Any]:
    """The indices of the rows of each unit that is sampled: a row, or a cluster."""
    if problem.clusters is None:
        return [*np.arange(problem.count)[:, None]]
    codes = np.unique(problem.clusters, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes))[:-1])


def _resampled(fitting: FitJob, point: Mapping[str, float], found: Any, failed: int, of_one: Any) -> Resampled:
    """The results from the estimates `found` `[g, p]` of the samples that could be fitted.

    Raises EvaluationError where there are fewer than two.
    """
    problem = fitting.question.problem
    if len(found) < 2:
        raise EvaluationError(
            "fewer than two samples of the rows could be fitted", hint="the data are too few for this"
        )
    samples = dict(zip(problem.parameters, found.T))
    estimates = {name: of_one(point[name], samples[name]) for name in problem.parameters}
    derived = {}
    for quantity in fitting.derived:
        every = {name: samples.get(name, np.full(len(found), value)) for name, value in point.items()}
        values = values_of(quantity, every)
        at = float(values_of(quantity, {name: np.array([value]) for name, value in point.items()})[0])
        derived[quantity.name] = of_one(at, values)
    return Resampled(len(found) + failed, failed, estimates, derived or None)


def _good(found: Any) -> tuple[Any, int]:
    """The estimates of the samples that could be fitted, and the number of the others."""
    good = np.isfinite(found).all(axis=1)
    return found[good], int((~good).sum())


def _fits(fitting: FitJob, point: Mapping[str, float], samples: Sequence[Any]) -> Any:
    """The estimates `[g, p]` of the samples, given as indices of rows; nan for those that could not be fitted."""
    problem = fitting.question.problem
    start = np.array([point[name] for name in problem.parameters])
    found = np.full((len(samples), len(start)), np.nan)
    known = problem.known
    if problem.is_stackable and not known.is_robust and not problem.has_priors:
        plan = GroupSearch(start[None], (), DESCENT_VARIANTS[0].reach)
        for begin, end in portions([len(rows) for rows in samples]):
            sizes = np.array([len(rows) for rows in samples[begin:end]])
            for places in by_size(sizes):
                own = (begin + places).tolist()
                fits = fit_stacked(Stacked.of(problem, [samples[i] for i in own]), plan, fitting.search.watch)
                found[own] = np.where(fits.converged[:, None], fits.points, np.nan)
    # The others one by one, with all that a single fit tries. A sample may have one cluster alone, which gives no
    # standard errors of clusters, and none are needed.
    without_errors = copy.copy(problem)
    without_errors.known = known._replace(errors=INFORMATION)
    for i in np.flatnonzero(np.isnan(found).any(axis=1)).tolist():
        try:
            ending = solve(without_errors.with_rows(samples[i]), start, fitting.search)[1].ending
        except GradcliError:
            continue
        if ending.converged:
            found[i] = ending.point
    return found
