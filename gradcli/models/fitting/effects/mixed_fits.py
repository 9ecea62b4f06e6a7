"""Maximises the likelihood of fits with random effects, and assembles the result."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from gradcli.errors import EvaluationError, UsageError
from gradcli.models.fitting.derived_quantities import derived_of
from gradcli.models.fitting.effects.effect_structure import Covariances, Levels
from gradcli.models.fitting.effects.factor_problems import FactorProblem
from gradcli.models.fitting.effects.marginal_search import CONVERGED, Box, MarginalMinimum, inverse, minimised
from gradcli.models.fitting.effects.mixed_linear_likelihood import LinearLikelihood
from gradcli.models.fitting.effects.mixed_problems import (
    MixedFit,
    PosedEffects,
    laplace_likelihood,
    numbers_of,
    posed_effects,
    row_problem,
)
from gradcli.models.fitting.effects.mixed_profiles import MixedProfiles, profiled
from gradcli.models.fitting.problem.linear_parameters import linear_parameters
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.responses.density_problems import DensityProblem
from gradcli.models.fitting.results.fit_records import RandomEffects, RandomGroup, RandomSpread
from gradcli.models.fitting.results.fit_results import Fit, ParameterEstimate
from gradcli.models.fitting.search.estimation import Starts, estimate
from gradcli.models.fitting.statistics.information import correlation
from gradcli.named_tuples import NamedTuple

# The standard deviations of effects from which a search begins, relative to those with which the effects matter as much
# as the deviation of a row from the model.
_STARTS = (1.0, 0.3, 3.0, 0.1)
# With more rows the first of them at which the likelihood is finite is taken.
_MANY_ROWS = 2**14
# A standard deviation is 0 below this share of that one, as in lme4, and written so below the smaller share.
_SINGULAR, _ZERO = 1e-4, 1e-6
# Fewer levels than this say little about a standard deviation.
_FEW_LEVELS = 5
MAXIMUM, RESTRICTED, LAPLACE = "maximum likelihood", "REML", "Laplace's approximation"


class _Marginal(NamedTuple):
    """The maximum of the likelihood: the parameters `[p]` and their covariances, the residual standard deviation, nan
    where there is none, the effects `[Q]`; and the `factors` of the covariances, with the `uncertainty` of these and,
    where `is_relative`, of the logarithm of the residual standard deviation, to which they are relative. `free`
    `[p]` are the parameters that no bound holds. `failure` says why the search is not at a maximum, where that is plain
    from the rows."""

    estimates: Any
    covariance: Any
    s: float
    effects: Any
    factors: Any
    uncertainty: Any
    is_relative: bool
    sizes: Any
    minimum: MarginalMinimum
    method: str
    free: Any
    failure: str | None = None

    @property
    def point(self) -> Any:
        """The point of Laplace's approximation of the likelihood: the parameters, the logarithm of the residual standard
        deviation where there is one, and the factors of the covariances."""
        scale = self.s if self.is_relative else 1.0
        spread = [] if math.isnan(self.s) else [math.log(self.s)]
        return np.array([*self.estimates, *spread, *(self.factors * scale)])


def mixed_fit(job: MixedFit, level: float) -> Fit:
    """Fit, with confidence intervals of a `level`.

    Raises EvaluationError where the model has no finite value at the start, UsageError for REML of a model that is not
    linear.
    """
    posed = posed_effects(job)
    gaussian = job.question.problem.known.family == "gaussian"
    rows = row_problem(job, posed) if gaussian else None
    problem = job.question.problem
    if rows is not None and len(linear_parameters(rows, np.ones(len(rows.parameters)))) < len(rows.parameters):
        rows = None
    found = None if rows is None or problem.has_priors else _linear_maximum(job, posed, rows)
    if found is None or not ((problem.low <= found.estimates) & (found.estimates <= problem.high)).all():
        if job.restricted:
            raise UsageError("REML is for models that are linear in their parameters", hint="leave out --reml")
        # Laplace's approximation of a linear model's likelihood is exact.
        found = _laplace_maximum(job, posed, rows is not None)
    return _fit(job, posed, found, level)


def _box(problem: Problem, size: int) -> Box:
    """The bounds of a point of the likelihood, of which the parameters may have some."""
    p, endless = len(problem.parameters), np.full(size, np.inf)
    low, high = -endless, endless
    low[:p], high[:p] = problem.low, problem.high
    return Box(low, high)


def _linear_maximum(job: MixedFit, posed: PosedEffects, rows: Problem) -> _Marginal:
    problem, design = job.question.problem, posed.design
    n, p = design.rows, design.count
    origin = np.zeros(len(rows.parameters))
    value, first = rows.rows(origin)
    if not (np.isfinite(value).all() and np.isfinite(first).all()):
        raise rows.failure(origin, "") or EvaluationError("the model has no finite value in some rows")
    sigma = np.broadcast_to(np.asarray(problem.sigma, "float64"), n)
    slopes = np.zeros((len(design.names), n))
    slopes[: len(rows.parameters)] = first.T / sigma
    known = design.values(numbers_of(problem, np.zeros(p), 0.0), np.zeros(design.structure.count))
    offset = value / sigma + sum(slope * known[name] for name, slope in zip(design.names, slopes))
    predictors = np.stack([(slopes * design.direct(i)).sum(axis=0) for i in range(p)], axis=1)
    likelihood = LinearLikelihood(
        design,
        posed.covariances,
        slopes,
        predictors,
        problem.response / sigma - offset,
        problem.parameters,
        float(np.log(sigma).sum()),
        restricted=job.restricted,
    )
    sizes = np.array([_inverse_root(np.mean((slopes[a.variable] * a.factors) ** 2)) for a in design.addends])
    start = _factors(posed.covariances, sizes)
    endless = np.full(len(start), np.inf)
    minimum = minimised(likelihood, start, Box(-endless, endless), job.search.watch)
    estimates, covariance, s, effects = likelihood.estimates(minimum.point)
    _, joint = likelihood.joint_slopes(minimum.point)
    method = RESTRICTED if job.restricted else MAXIMUM
    uncertainty = inverse(joint)
    free = np.ones(p, "bool")
    return _Marginal(estimates, covariance, s, effects, minimum.point, uncertainty, True, sizes, minimum, method, free)


def _inverse_root(square: float) -> float:
    return 1 / math.sqrt(square) if square > 0 else 1.0


def _factors(covariances: Covariances, sizes: Any) -> Any:
    """The parameters of covariances with these standard deviations and no correlations."""
    found = np.zeros(len(covariances.entries))
    found[covariances.diagonal] = sizes
    return found


def _laplace_maximum(job: MixedFit, posed: PosedEffects, is_linear: bool) -> _Marginal:
    problem, design, covariances = job.question.problem, posed.design, posed.covariances
    p, start = design.count, job.question.start
    if isinstance(problem, (FactorProblem, DensityProblem)):
        start = problem.begun(start, job.search)
    start = estimate(problem, start, job.search).point
    spread = 0.0
    if posed.spread is not None:
        value, _ = problem.rows(start)
        residuals = (problem.response - value) / problem.sigma
        spread = math.log(max(float(np.sqrt(np.mean(residuals**2))), 1e-300))
    likelihood = laplace_likelihood(job, posed, start, spread)
    begin = np.array([*start, spread] if posed.spread is not None else start)
    sizes = likelihood.sizes(begin)
    points, values = [], []
    for share in _STARTS:
        points.append(np.append(begin, _factors(covariances, sizes * share)))
        values.append(likelihood.value(points[-1]))
        if design.rows > _MANY_ROWS and np.isfinite(values[-1]):
            break
    if not np.isfinite(values).any():
        raise EvaluationError(
            "the likelihood has no finite value at any of the starts that were tried",
            hint="give start values near the estimates, as in b1=1",
        )
    begun = points[int(np.argmin(values))]
    minimum = minimised(likelihood, begun, _box(problem, len(begun)), job.search.watch)
    minimum = minimum._replace(
        value=minimum.value - likelihood.of_priors(minimum.point), evaluations=likelihood.evaluations
    )
    uncertainty = minimum.inverse()
    s = math.nan if posed.spread is None else math.exp(minimum.point[p])
    count = len(begin)
    kept = [*range(count, len(minimum.point)), *([p] if posed.spread is not None else [])]
    return _Marginal(
        minimum.point[:p],
        # Errors of a linear model are those for the covariances that are found, as where it has no bounds and no priors.
        minimum.inverse(slice(p) if is_linear else slice(None))[:p, :p],
        s,
        likelihood.effects(minimum.point),
        minimum.point[count:],
        uncertainty[np.ix_(kept, kept)],
        False,
        sizes,
        minimum,
        MAXIMUM if is_linear else LAPLACE,
        minimum.free[:p],
        likelihood.failure(minimum, problem),
    )


# --- the result


def _fit(job: MixedFit, posed: PosedEffects, found: _Marginal, level: float) -> Fit:
    from scipy.special import ndtri

    problem, question = job.question.problem, job.question
    quantile = float(ndtri((1 + level) / 2))
    warnings = [*question.warnings, *_few_levels(job.levels)]
    singular = _singular(posed, found, job.profile)
    warnings += [*_at_bounds(job, found), *singular.warnings]
    reason = found.failure or _reason(posed, found, {t for t, _ in singular.effects})
    profiles = None
    if job.profile and reason is None:
        box = _box(problem, len(found.point))
        profiles = profiled(job, posed, found.point, box, singular.effects, quantile)
        reason = "the profile of the likelihood meets a higher maximum" if profiles.any_lower else None
        warnings += _without_ends(job, profiles)
    n = problem.count
    count = int(found.free.sum()) + len(posed.covariances.entries) + (posed.spread is not None)
    loglik = -found.minimum.value
    estimates = _estimates(job, found, quantile, profiles)
    covariance = _with_fixed(job, found.covariance)
    nothing = math.nan
    fit = Fit(
        n=n,
        dof=n - count + int(np.isfinite(problem.priors[1]).sum()),
        converged=reason is None,
        message=f"not converged: {reason}" if reason else _CONVERGED,
        estimates=estimates,
        random=_random(job, posed, found, singular.effects, quantile, profiles),
        covariance=covariance,
        correlation=correlation(covariance),
        rss=nothing,
        s=found.s,
        reduced_chi2=nothing,
        r2=nothing,
        loglik=loglik,
        aic=2 * count - 2 * loglik,
        aicc=2 * count - 2 * loglik + 2 * count * (count + 1) / (n - count - 1) if n > count + 1 else nothing,
        bic=count * math.log(n) - 2 * loglik,
        deviance=nothing,
        loss_scale=nothing,
        condition=nothing,
        curvature=None,
        left_out=0,
        iterations=found.minimum.iterations,
        evaluations=found.minimum.evaluations,
        starts=Starts(1, 1),
        undetermined=[],
        warnings=warnings,
    )
    return derived_of(job.derived, [fit], [quantile])[0]


_CONVERGED = f"converged: the step left is below {CONVERGED:.0e} standard errors, positive-definite Hessian"


def _reason(posed: PosedEffects, found: _Marginal, singular: Collection[int]) -> str | None:
    """Why the search is not known to have come to a maximum of the likelihood; None where it has. Of the terms that are
    `singular` the covariances are at the end of their range, where the likelihood may be flat."""
    size, entries = len(found.minimum.point), posed.covariances.entries
    at_end = [size - len(entries) + i for i, (t, _, _) in enumerate(entries) if t in singular]
    free = np.flatnonzero(found.minimum.free).tolist()
    inside = [i for i in free if i not in at_end]
    if found.minimum.least_curvature(free) < 0 or (inside and found.minimum.least_curvature(inside) < 0):
        return "the Hessian is not positive definite there"
    if inside and found.minimum.least_curvature(inside) == 0:
        return "the data do not determine all parameters there"
    if not found.minimum.left <= CONVERGED:
        return "the likelihood still rises there, and no step leads higher"
    return None


def _few_levels(levels: Sequence[Levels]) -> list[str]:
    groups = {each.term.group: len(each.names) for each in levels}
    return [
        f"'{group}' has {count} levels, too few to say much about a standard deviation"
        for group, count in groups.items()
        if count < _FEW_LEVELS
    ]


class _Singular(NamedTuple):
    """Warnings of standard deviations of 0 and correlations of 1, and the term and index of the effects that have one."""

    warnings: Sequence[str]
    effects: set[tuple[int, int]]


def _without_ends(job: MixedFit, profiles: MixedProfiles) -> list[str]:
    """The warning of ends that were not found, as where rounding errors hide the changes of the likelihood."""
    spreads = {
        f"the standard deviation of '{each.term.effects[i].label}' by '{each.term.group}'": profiles.deviations[t, i]
        for t, each in enumerate(job.levels)
        for i in range(len(each.term.effects))
    }
    if profiles.residual is not None:
        spreads["the residual standard deviation"] = profiles.residual
    lost = [name for name, ends in {**profiles.parameters, **spreads}.items() if np.isnan(ends).any()]
    if not lost:
        return []
    return [f"the likelihood has too few digits for the profile of {', '.join(lost)}: other units or origins may help"]


def _at_bounds(job: MixedFit, found: _Marginal) -> list[str]:
    what = "the errors of the others are those with it held there" if found.free.any() else "it has no standard error"
    what += ", and its interval is one-sided" if job.profile else ""
    names, values = job.question.problem.parameters, found.estimates
    return [f"{names[i]} is at its bound {values[i]:g}: {what}" for i in np.flatnonzero(~found.free)]


def _singular(posed: PosedEffects, found: _Marginal, profile: bool) -> _Singular:
    warnings, effects = [], set()
    begin = 0
    for t, each in enumerate(posed.design.structure.levels):
        factor = posed.covariances.of_term(t, found.factors)
        sizes = found.sizes[begin : begin + len(factor)]
        begin += len(factor)
        for i, effect in enumerate(each.term.effects):
            if not abs(factor[i, i]) <= _SINGULAR * sizes[i]:
                continue
            effects.add((t, i))
            if np.linalg.norm(factor[i]) <= _SINGULAR * sizes[i]:
                what = f"the standard deviation of '{effect.label}' by '{each.term.group}' is 0: the fit is singular"
            else:
                what = (
                    f"the random effects of '{each.term.group}' determine that of '{effect.label}': the fit is singular"
                )
            what += "" if profile else ", and has no intervals there"
            warnings.append(f"{what}; a model without this effect fits as well")
    return _Singular(warnings, effects)


def _estimates(
    job: MixedFit, found: _Marginal, quantile: float, profiles: MixedProfiles | None
) -> dict[str, ParameterEstimate]:
    from scipy.special import ndtr

    problem = job.question.problem
    free = {name: i for i, name in enumerate(problem.parameters)}
    estimates = {}
    for name in job.question.names:
        if name not in free:
            value = float(problem.fixed[name])
            t = math.copysign(math.inf, value) if value else math.nan
            estimates[name] = ParameterEstimate(value, 0.0, t, value, value, True, math.nan)
            continue
        value = float(found.estimates[free[name]])
        with np.errstate(all="ignore"):
            error = float(np.sqrt(found.covariance[free[name], free[name]]))
            t = float(np.float64(value) / error)
        ends = value - quantile * error, value + quantile * error
        if profiles is not None:
            ends = profiles.parameters[name]
        estimates[name] = ParameterEstimate(value, error, t, *ends, False, 2 * float(ndtr(-abs(t))))
    return estimates


def _with_fixed(job: MixedFit, covariance: Any) -> Any:
    """The covariances of all parameters, 0 for fixed ones."""
    names, problem = [*job.question.names], job.question.problem
    found = np.zeros((len(names), len(names)))
    places = [names.index(name) for name in problem.parameters]
    found[np.ix_(places, places)] = (covariance + covariance.T) / 2
    return found


def _random(
    job: MixedFit,
    posed: PosedEffects,
    found: _Marginal,
    singular: set[tuple[int, int]],
    quantile: float,
    profiles: MixedProfiles | None,
) -> RandomEffects:
    structure = posed.design.structure
    groups: dict[str, RandomGroup] = {}
    for t, each in enumerate(structure.levels):
        labels = [effect.label for effect in each.term.effects]
        spreads = _spreads(posed.covariances, t, found, {i for term, i in singular if term == t}, quantile)
        if profiles is not None:
            spreads = _with_profiles(spreads, t, profiles)
        values = found.effects[structure.places[t]].tolist()
        effects = {name: dict(zip(labels, own)) for name, own in zip(each.names, values)}
        deviations = dict(zip(labels, spreads[0]))
        correlations = {f"{labels[i]},{labels[j]}": told for (i, j), told in spreads[1].items()}
        before = groups.get(each.term.group)
        if before is not None:
            deviations, correlations = {**before.deviations, **deviations}, {**before.correlations, **correlations}
            effects = {name: {**before.effects[name], **own} for name, own in effects.items()}
        groups[each.term.group] = RandomGroup(len(each.names), deviations, correlations, effects)
    residual = None
    if posed.spread is not None:
        width = quantile * float(np.sqrt(found.uncertainty[-1, -1]))
        ends = found.s * math.exp(-width), found.s * math.exp(width)
        if profiles is not None and profiles.residual is not None:
            ends = profiles.residual
        residual = RandomSpread(found.s, *ends)
    return RandomEffects(found.method, groups, residual)


# Standard deviations of the effects of a term, and their correlations by pairs of indices.
_Spreads = tuple[list[RandomSpread], dict[tuple[int, int], RandomSpread]]


def _with_profiles(spreads: _Spreads, term: int, profiles: MixedProfiles) -> _Spreads:
    """The same with intervals by the profile of the likelihood."""
    deviations = [RandomSpread(own.value, *profiles.deviations[term, i]) for i, own in enumerate(spreads[0])]
    correlations = {
        (i, j): RandomSpread(own.value, *profiles.correlations[term, i, j]) for (i, j), own in spreads[1].items()
    }
    return deviations, correlations


def _spreads(covariances: Covariances, term: int, found: _Marginal, singular: set[int], quantile: float) -> _Spreads:
    """The standard deviations of the effects of a term, and their correlations by pairs, with intervals that are
    symmetric about the logarithm of the one and the inverse hyperbolic tangent of the other."""
    factor = covariances.of_term(term, found.factors)
    k, count = len(factor), len(found.factors)
    scale = found.s if found.is_relative else 1.0
    product = factor @ factor.T
    roots = np.sqrt(np.diagonal(product))
    # The derivatives of the covariances by the parameters.
    bends = np.zeros((len(found.uncertainty), k, k))
    for number, (t, i, j) in enumerate(covariances.entries):
        if t == term:
            bends[number, i] += factor[:, j]
            bends[number, :, i] += factor[:, j]
    deviations, logs = [], []
    for i in range(k):
        size = found.sizes[sum(len(each.term.effects) for each in covariances.structure.levels[:term]) + i]
        with np.errstate(all="ignore"):
            slope = bends[:, i, i] / (2 * product[i, i])
        if found.is_relative:
            slope[count] = 1.0
        logs.append(slope)
        value = float(roots[i]) * scale if roots[i] > _ZERO * size else 0.0
        with np.errstate(all="ignore"):
            width = float(np.exp(quantile * np.sqrt(slope @ found.uncertainty @ slope)))
        is_open = i in singular or not value
        deviations.append(RandomSpread(value, *([math.nan] * 2 if is_open else [value / width, value * width])))
    correlations = {}
    for j in range(k):
        for i in range(j):
            with np.errstate(all="ignore"):
                value = float(product[i, j] / (roots[i] * roots[j]))
                slope = bends[:, i, j] / (roots[i] * roots[j]) - value * (logs[i] + logs[j])
                if found.is_relative:
                    slope[count] = 0.0
                slope = slope / (1 - value**2)
                width = quantile * float(np.sqrt(slope @ found.uncertainty @ slope))
                ends = [math.tanh(math.atanh(value) + side * width) for side in (-1, 1)] if abs(value) < 1 else []
            is_open = bool({i, j} & singular) or not ends
            correlations[i, j] = RandomSpread(value, *([math.nan] * 2 if is_open else ends))
    return deviations, correlations
