"""Fits of models with random effects: poses the likelihood, maximises it, and assembles the result."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.errors import BindingError, EvaluationError, UsageError
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.models.data import Categories, Data
from gradcli.models.fitting.density_problems import DensityProblem
from gradcli.models.fitting.derived_quantities import DerivedQuantity, derived_of
from gradcli.models.fitting.effect_structure import Covariances, EffectStructure, Levels
from gradcli.models.fitting.estimation import SearchOptions, estimate
from gradcli.models.fitting.factor_problems import FactorProblem
from gradcli.models.fitting.factors import level_texts
from gradcli.models.fitting.fit_problems import PosedFit, program_values
from gradcli.models.fitting.fit_records import RandomEffects, RandomGroup, RandomSpread
from gradcli.models.fitting.fit_requests import FitRequest, refuse
from gradcli.models.fitting.fit_results import Fit, ParameterEstimate, Starts
from gradcli.models.fitting.fit_texts import FitTexts
from gradcli.models.fitting.information import correlation
from gradcli.models.fitting.laplace_likelihood import LaplaceLikelihood
from gradcli.models.fitting.linear_parameters import linear_parameters
from gradcli.models.fitting.marginal_search import CONVERGED, Minimum, inverse, minimised
from gradcli.models.fitting.mixed_linear_likelihood import LinearLikelihood
from gradcli.models.fitting.problems import Problem
from gradcli.models.fitting.random_terms import RandomTerm, check_varied
from gradcli.models.fitting.robust_errors import INFORMATION
from gradcli.models.fitting.row_costs import RowCosts, constant_cost
from gradcli.models.fitting.row_designs import RowDesign
from gradcli.named_tuples import NamedTuple
from gradcli.rows.new_tables import unused_name

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


class MixedFit(NamedTuple):
    """A posed fit with random effects: the one without them, `question`; the programs of the model; its data; the terms
    with their levels and the factors of their effects, `[n]` each; whether the likelihood is the restricted one; and
    what a `FitJob` has besides."""

    question: PosedFit
    texts: FitTexts
    data: Data
    levels: Sequence[Levels]
    factors: Sequence[Any]
    restricted: bool
    search: SearchOptions
    derived: Sequence[DerivedQuantity]


def check_random(request: FitRequest, texts: FitTexts) -> None:
    """Raise UsageError for options that random effects lack, and for `--reml` without them."""
    if texts.random is None:
        if request.restricted:
            raise UsageError("REML is for random effects", hint="write them into the model, as (1|column)")
        return
    known = request.known
    options = {
        "--x-sigma": request.x_sigma,
        "--prior": request.parameters.priors,
        "--bounds": request.parameters.bounds,
        "--loss": known.is_robust,
        "--errors": known.errors != INFORMATION,
        "--profile": request.profile,
        "--contour": request.contours,
        "--against": request.against is not None,
        "--cross-validate": request.resampling.folds,
        "--absolute-sigma": known.absolute,
    }
    refuse(options, "random effects")
    if request.resampling.bootstrap or request.resampling.jackknife:
        sampled_column(texts.random.terms)
    if request.restricted and known.family != "gaussian":
        raise UsageError("REML is for the family gaussian", hint="leave out --reml")


def sampled_column(terms: Sequence[RandomTerm]) -> str:
    """The column whose levels are sampled, within which all effects vary. Raises UsageError where there is none."""
    common = [name for name in terms[0].columns if all(name in term.columns for term in terms)]
    if not common:
        raise UsageError(
            "samples are of the levels of one column, and the random effects vary by several that are not nested",
            hint="leave out --bootstrap and --jackknife",
        )
    return common[0]


def sampled_data(data: Data, column: str, units: Sequence[Any]) -> Data:
    """The rows of some levels of a column, given as the indices of their rows, which are levels of their own where one is
    there more than once."""
    rows = np.concatenate(units)
    texts = {name: own.at(rows) for name, own in data.texts.items()}
    of_unit = np.repeat(np.arange(len(units)), [len(own) for own in units])
    texts[column] = Categories([f"{k}" for k in range(len(units))], of_unit)
    return Data({name: numbers[rows] for name, numbers in data.columns.items()}, data.rows[rows], 0, texts)


def random_columns(terms: Sequence[RandomTerm], columns: Sequence[str]) -> list[str]:
    """The columns of numbers that the effects are multiplied by.

    Raises BindingError for another name.
    """
    found: list[str] = []
    for term in terms:
        for effect in term.effects:
            if effect.factor is None:
                continue
            for name, read in scope.free_names(parse_charged(effect.factor)).items():
                if name in columns:
                    found.append(name)
                elif name not in scope.CONSTANTS:
                    raise BindingError(
                        f"'{name}' in a random effect of '{term.group}' is no column of the data",
                        hint="a parameter that varies stands in --random 'NAME|COLUMN'",
                        span=read.span,
                        source=effect.factor,
                    )
    return found


def posed_mixed(
    question: PosedFit,
    texts: FitTexts,
    data: Data,
    request: FitRequest,
    search: SearchOptions,
    derived: Sequence[DerivedQuantity],
) -> MixedFit:
    """Pose a fit with random effects, from the one without them.

    Raises BindingError for an effect on what is no parameter, and for levels that are too few, or more than the rows.
    """
    assert texts.random is not None
    if question.units is not None:
        raise UsageError(
            "numbers as large or small as these have no random effects", hint="give the data in other units"
        )
    problem = question.problem
    base = problem.base if isinstance(problem, FactorProblem) else (*problem.parameters, *problem.fixed)
    check_varied(texts.random.terms, texts.random.names, texts.text.model, base)
    levels = [_levels(term, data) for term in texts.random.terms]
    _check_levels(levels, request.known.is_scaled, len(data.rows))
    factors = [
        np.ones(len(data.rows)) if effect.factor is None else _factor(effect.factor, data, request.limits)
        for term in texts.random.terms
        for effect in term.effects
    ]
    return MixedFit(question, texts, data, levels, factors, request.restricted, search, derived)


def _factor(text: str, data: Data, limits: tuple[int, int]) -> Any:
    found = np.broadcast_to(np.asarray(program_values(parse_charged(text), data, limits), "float64"), len(data.rows))
    bad = ~np.isfinite(found)
    if bad.any():
        raise EvaluationError(
            f"{text}, the factor of a random effect, is not finite in row {data.rows[bad.argmax()] + 1}"
        )
    return found


def _levels(term: RandomTerm, data: Data) -> Levels:
    """The levels of a term, or the combinations of levels that there are, in the order of the rows."""
    own = [data.texts[column] for column in term.columns]
    key = np.zeros(len(data.rows), "int64")
    for texts in own:
        key = key * len(texts.names) + texts.codes
    _, first, codes = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    parts = [level_texts(texts.at(first[order]).texts()) for texts in own]
    names = [*map(":".join, zip(*parts))]
    if len({*names}) < len(names):
        raise BindingError(
            f"two combinations of levels of '{term.group}' have one text", hint="write the levels without ':'"
        )
    return Levels(term, names, np.argsort(order)[codes])


def _check_levels(levels: Sequence[Levels], is_scaled: bool, rows: int) -> None:
    for each in levels:
        count, group = len(each.names), each.term.group
        if count < 2:
            raise BindingError(
                f"'{group}' is the same in all rows, and a random effect varies by it",
                hint="leave out the random effect",
            )
        if is_scaled and count * len(each.term.effects) >= rows:
            raise BindingError(
                f"the rows, {rows:,}, are no more than the random effects of '{group}', {count:,} levels with "
                f"{len(each.term.effects)} each: they cannot be told from residuals",
                hint="leave out the random effect, or some of it",
            )


class _Posed(NamedTuple):
    """The design of the rows of a fit, its covariances, the row variables that are constant, and the place of the
    logarithm of the residual standard deviation, None for families without one."""

    design: RowDesign
    covariances: Covariances
    constants: Mapping[str, float]
    spread: str | None


class _Marginal(NamedTuple):
    """The maximum of the likelihood: the parameters `[p]` and their covariances, the residual standard deviation, nan
    where there is none, the effects `[Q]`; and the `factors` of the covariances, with the `uncertainty` of these and,
    where `is_relative`, of the logarithm of the residual standard deviation, to which they are relative. `failure` says why
    the search is not at a maximum, where that is plain from the rows."""

    estimates: Any
    covariance: Any
    s: float
    effects: Any
    factors: Any
    uncertainty: Any
    is_relative: bool
    sizes: Any
    minimum: Minimum
    method: str
    failure: str | None = None


def mixed_fit(job: MixedFit, level: float) -> Fit:
    """Fit, with confidence intervals of a `level`.

    Raises EvaluationError where the model has no finite value at the start, UsageError for REML of a model that is not
    linear.
    """
    posed = _posed(job)
    gaussian = job.question.problem.known.family == "gaussian"
    rows = _row_problem(job, posed) if gaussian else None
    if rows is not None and len(linear_parameters(rows, np.ones(len(rows.parameters)))) == len(rows.parameters):
        found = _linear_maximum(job, posed, rows)
    elif job.restricted:
        raise UsageError("REML is for models that are linear in their parameters", hint="leave out --reml")
    else:
        found = _laplace_maximum(job, posed)
    return _fit(job, posed, found, level)


def _posed(job: MixedFit) -> _Posed:
    problem = job.question.problem
    random = job.texts.random
    assert random is not None
    p, structure = len(problem.parameters), EffectStructure(job.levels)
    every = [*problem.parameters, *problem.fixed]
    slots = dict(problem.slots) if isinstance(problem, FactorProblem) else {name: i for i, name in enumerate(every)}
    varied = {effect.name for each in job.levels for effect in each.term.effects}
    constants = {
        name: float(problem.fixed[every[slot]])
        for name, slot in slots.items()
        if not np.ndim(slot) and slot >= p and name not in varied
    }
    names = [*(name for name in slots if name not in constants), *random.names]
    spread = None
    if problem.known.family == "gaussian":
        spread = unused_name("log_s", {*names, *constants, *job.data.columns, *re.findall(r"\w+", _mixed(job).source)})
        # Behind the free and fixed numbers, and that of unknown levels.
        slots[spread] = len(every) + 1
        names.append(spread)
    design = RowDesign(names, slots, p, problem.count, structure, job.factors)
    return _Posed(design, Covariances(structure), constants, spread)


def _numbers(problem: Problem, point: Any, spread: float) -> Any:
    """All numbers of the design: free parameters, fixed ones, nan for unknown levels, and `spread`."""
    return np.array([*point, *problem.fixed.values(), math.nan, spread])


def _row_problem(job: MixedFit, posed: _Posed) -> Problem:
    """The model of the mean as a problem whose parameters are the row variables."""
    problem = job.question.problem
    model = _mixed(job)
    reads = scope.free_names(model)
    return Problem(
        model,
        {name: column for name, column in job.data.columns.items() if name in reads},
        problem.response,
        [name for name in posed.design.names if name != posed.spread],
        problem.known,
        fixed=posed.constants,
        limits=problem.limits,
        places=problem.places,
    )


def _mixed(job: MixedFit) -> Any:
    assert job.texts.mixed is not None
    return job.texts.mixed.model


def _linear_maximum(job: MixedFit, posed: _Posed, rows: Problem) -> _Marginal:
    problem, design = job.question.problem, posed.design
    n, p = design.rows, design.count
    origin = np.zeros(len(rows.parameters))
    value, first = rows.rows(origin)
    if not (np.isfinite(value).all() and np.isfinite(first).all()):
        raise rows.failure(origin, "") or EvaluationError("the model has no finite value in some rows")
    sigma = np.broadcast_to(np.asarray(problem.sigma, "float64"), n)
    slopes = np.zeros((len(design.names), n))
    slopes[: len(rows.parameters)] = first.T / sigma
    known = design.values(_numbers(problem, np.zeros(p), 0.0), np.zeros(design.structure.count))
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
    minimum = minimised(likelihood, _factors(posed.covariances, sizes), job.search.watch)
    estimates, covariance, s, effects = likelihood.estimates(minimum.point)
    _, joint = likelihood.joint_slopes(minimum.point)
    method = RESTRICTED if job.restricted else MAXIMUM
    return _Marginal(estimates, covariance, s, effects, minimum.point, inverse(joint), True, sizes, minimum, method)


def _inverse_root(square: float) -> float:
    return 1 / math.sqrt(square) if square > 0 else 1.0


def _factors(covariances: Covariances, sizes: Any) -> Any:
    """The parameters of covariances with these standard deviations and no correlations."""
    found = np.zeros(len(covariances.entries))
    found[covariances.diagonal] = sizes
    return found


def _laplace_maximum(job: MixedFit, posed: _Posed) -> _Marginal:
    problem, design, covariances = job.question.problem, posed.design, posed.covariances
    p, start = design.count, job.question.start
    if isinstance(problem, (FactorProblem, DensityProblem)):
        start = problem.begun(start, job.search)
    start = estimate(problem, start, job.search).point
    free = [*range(p)]
    spread = 0.0
    weight = 1 / np.square(problem.sigma)
    if posed.spread is not None:
        weight = problem.sigma
        value, _ = problem.rows(start)
        residuals = (problem.response - value) / problem.sigma
        spread = math.log(max(float(np.sqrt(np.mean(residuals**2))), 1e-300))
        free.append(design.slots[posed.spread])
    costs = RowCosts(
        _mixed(job),
        problem.known.family,
        design.names,
        design.varied,
        job.data.columns,
        posed.constants,
        problem.response,
        weight,
        problem.limits,
        posed.spread,
    )
    constant = constant_cost(problem.known.family, problem.response, np.broadcast_to(weight, design.rows))
    likelihood = LaplaceLikelihood(design, covariances, costs, constant, _numbers(problem, start, spread), free)
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
    minimum = minimised(likelihood, points[int(np.argmin(values))], job.search.watch)
    minimum = minimum._replace(evaluations=likelihood.evaluations)
    uncertainty = inverse(minimum.hessian)
    s = math.nan if posed.spread is None else math.exp(minimum.point[p])
    count = len(free)
    kept = [*range(count, len(minimum.point)), *([p] if posed.spread is not None else [])]
    return _Marginal(
        minimum.point[:p],
        uncertainty[:p, :p],
        s,
        likelihood.effects(minimum.point),
        minimum.point[count:],
        uncertainty[np.ix_(kept, kept)],
        False,
        sizes,
        minimum,
        LAPLACE,
        likelihood.failure(minimum, problem),
    )


# --- the result


def _fit(job: MixedFit, posed: _Posed, found: _Marginal, level: float) -> Fit:
    from scipy.special import ndtri

    problem, question = job.question.problem, job.question
    quantile = float(ndtri((1 + level) / 2))
    warnings = [*question.warnings, *_few_levels(job.levels)]
    singular = _singular(posed, found)
    warnings += singular.warnings
    reason = found.failure or _reason(posed, found, {t for t, _ in singular.effects})
    n = problem.count
    count = len(problem.parameters) + len(posed.covariances.entries) + (posed.spread is not None)
    loglik = -found.minimum.value
    estimates = _estimates(job, found, quantile)
    covariance = _with_fixed(job, found.covariance)
    nothing = math.nan
    fit = Fit(
        n=n,
        dof=n - count,
        converged=reason is None,
        message=f"not converged: {reason}" if reason else _CONVERGED,
        estimates=estimates,
        random=_random(job, posed, found, singular.effects, quantile),
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


def _reason(posed: _Posed, found: _Marginal, singular: Collection[int]) -> str | None:
    """Why the search is not known to have come to a maximum of the likelihood; None where it has. Of the terms that are
    `singular` the covariances are at the end of their range, where the likelihood may be flat."""
    size, entries = len(found.minimum.point), posed.covariances.entries
    at_end = [size - len(entries) + i for i, (t, _, _) in enumerate(entries) if t in singular]
    inside = [i for i in range(size) if i not in at_end]
    if found.minimum.least_bend(range(size)) < 0 or (inside and found.minimum.least_bend(inside) < 0):
        return "the Hessian is not positive definite there"
    if inside and found.minimum.least_bend(inside) == 0:
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


def _singular(posed: _Posed, found: _Marginal) -> _Singular:
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
            warnings.append(f"{what}, and has no intervals there; a model without this effect fits as well")
    return _Singular(warnings, effects)


def _estimates(job: MixedFit, found: _Marginal, quantile: float) -> dict[str, ParameterEstimate]:
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
    job: MixedFit, posed: _Posed, found: _Marginal, singular: set[tuple[int, int]], quantile: float
) -> RandomEffects:
    structure = posed.design.structure
    groups: dict[str, RandomGroup] = {}
    for t, each in enumerate(structure.levels):
        labels = [effect.label for effect in each.term.effects]
        spreads = _spreads(posed.covariances, t, found, {i for term, i in singular if term == t}, quantile)
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
        residual = RandomSpread(found.s, found.s * math.exp(-width), found.s * math.exp(width))
    return RandomEffects(found.method, groups, residual)


def _spreads(
    covariances: Covariances, term: int, found: _Marginal, singular: set[int], quantile: float
) -> tuple[list[RandomSpread], dict[tuple[int, int], RandomSpread]]:
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
