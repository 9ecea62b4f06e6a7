"""Carries out a posed fit, for all rows or for each group of rows, and assembles its estimates and statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.errors import EvaluationError, GradcliError
from gradcli.models.fitting.confidence_regions import contour_of, profile_points, radius_of
from gradcli.models.fitting.derived_quantities import DerivedQuantity, derived_of, profiled_ends
from gradcli.models.fitting.effects.factor_problems import FactorProblem
from gradcli.models.fitting.fit_requests import FitOutcome, FitSolution, Solutions
from gradcli.models.fitting.problem.batched_matrices import pairs
from gradcli.models.fitting.problem.fit_problems import PosedFit
from gradcli.models.fitting.problem.linearisations import linearised
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.problem.stacked_problems import Stacked, by_size, portions
from gradcli.models.fitting.responses.density_problems import DensityProblem
from gradcli.models.fitting.results.fit_results import Fit, failed, fitted
from gradcli.models.fitting.search.convergence import message_of
from gradcli.models.fitting.search.estimation import SearchEnd, SearchEnds, SearchOptions, Starts, estimate
from gradcli.models.fitting.search.group_fits import GroupSearch, fit_stacked, plan_groups
from gradcli.models.fitting.search.orthogonal_distance import DistanceFit, distance_fit
from gradcli.models.fitting.search.robust_fits import robust_fit
from gradcli.models.fitting.statistics.inference import (
    INFORMATION,
    FitRows,
    cluster_warnings,
    statistics,
    with_robust_errors,
)
from gradcli.models.results import ProgressCallback
from gradcli.named_tuples import NamedTuple
from gradcli.proofs import digits

if TYPE_CHECKING:
    from gradcli.models.fitting.problem.proved_residuals import ProvedResiduals

# Largest number of refits with priors rescaled by the estimated standard deviation of the rows, and the relative change
# of that standard deviation at which they stop.
_MAX_REFITS, _SCALE_TOLERANCE = 100, 1e-12
# Ratio of the lengths of residuals and responses below which residuals are recomputed in ball arithmetic, as floats
# leave them too few digits for standard errors; and the largest number of rows for which this is fast enough.
_MAX_RESIDUAL_RATIO, _MAX_PROVED_ROWS = 1e-9, 2**12


class FitJob(NamedTuple):
    """A posed fit with all else that determines its result.

    `deviations` are the standard deviations of predictors, `[n]` or one number, by name; `profile` says whether
    intervals come from the profile likelihood; `search` are the options of the search; `derived` are the quantities to
    derive from the estimates; `contours` are pairs of parameters whose confidence regions are wanted.
    """

    question: PosedFit
    deviations: Mapping[str, Any]
    profile: bool
    search: SearchOptions
    derived: Sequence[DerivedQuantity] = ()
    contours: Sequence[tuple[str, str]] = ()

    def with_rows(self, rows: Any) -> FitJob:
        """The same fit restricted to some rows, given as an index array or a slice."""
        question = self.question._replace(problem=self.question.problem.with_rows(rows))
        deviations = {name: s[rows] if np.ndim(s) else s for name, s in self.deviations.items()}
        return self._replace(question=question, deviations=deviations)


def run_fit(fitting: FitJob, group: str | None = None) -> FitOutcome:
    """Fit all rows together. Raises EvaluationError where the model has no finite value at the start."""
    problem, start, search = fitting.question.problem, fitting.question.start, fitting.search
    if fitting.deviations:
        ending = estimate(problem, start, search)
        solved = _distance_solution(problem, distance_fit(problem, fitting.deviations, ending.point), ending)
    else:
        problem, solved = solve(problem, start, search)
    ending = solved.ending._replace(warnings=[*fitting.question.warnings, *solved.ending.warnings])
    return _fit_outcome(fitting, problem, solved._replace(ending=ending), group)


def _has_unscaled_priors(problem: Problem) -> bool:
    """Return whether there are priors, which are in units of the parameters, while the standard deviations of the rows
    are known up to a factor only."""
    return problem.known.is_least_squares and problem.known.is_scaled and problem.has_priors


def solve(problem: Problem, start: Any, search: SearchOptions) -> tuple[Problem, FitSolution]:
    """The problem that is solved, and its solution.

    Priors are weighted against the estimated standard deviation of the rows where that is unknown: the fit is repeated
    until the estimate no longer changes.
    """
    if isinstance(problem, (FactorProblem, DensityProblem)):
        start = problem.begun(start, search)
    if problem.known.is_robust:
        robust = robust_fit(problem, start, search)
        return robust.problem, _solution(*robust)
    found = _solution(problem, estimate(problem, start, search))
    solved = problem
    if not _has_unscaled_priors(problem):
        return solved, found
    scale = 1.0
    for _ in range(_MAX_REFITS):
        before, scale = scale, float(found.statistics.s[0])
        if not (np.isfinite(scale) and scale > 0) or abs(scale - before) <= _SCALE_TOLERANCE * scale:
            break
        solved = problem.with_scaled_priors(scale)
        ending = found.ending
        again = estimate(solved, ending.point, search)
        ending = again._replace(
            iterations=ending.iterations + again.iterations,
            evaluations=ending.evaluations + again.evaluations,
            starts=ending.starts,
        )
        found = _solution(solved, ending)
    return solved, found


def _fit_outcome(fitting: FitJob, problem: Problem, solved: FitSolution, group: str | None) -> FitOutcome:
    """Build the fit from its solution, with intervals by the profile likelihood where these are requested. The solution
    in the result is that of this fit alone."""
    question = fitting.question
    fixed = problem.fixed
    intervals = of_derived = None
    if fitting.profile:
        ends, is_lower = _profiled(problem, solved, fitting.search.watch)
        if is_lower:
            reason = "the profile of the likelihood meets a lower minimum"
            solved = solved._replace(ending=solved.ending._replace(converged=False, message=message_of(reason)))
        varied = [name not in fixed for name in question.names]
        every = np.array([fixed.get(name, np.nan) for name in question.names])
        intervals = every[None].copy(), every[None].copy()
        for interval, end in zip(intervals, ends):
            interval[0, varied] = end if question.units is None else end * question.units.parameters
        of_derived = [_derived_ends(fitting, problem, solved)]
    one = solved.statistics
    groups = None if group is None else [group]
    endings = SearchEnds.of_one(solved.ending)
    fits = fitted(question.names, fixed, endings, one, intervals=intervals, groups=groups, units=question.units)
    if question.part is not None:
        fits = [fits[0].including(rows=problem.count // 2, r2=_r2_of_parts(problem.columns[question.part], solved))]
    responses = problem.of_responses(solved.ending.point)
    if responses is not None:
        fits = [fits[0].including(responses=responses)]
    if problem.known.errors != INFORMATION:
        count = None if problem.clusters is None else len(np.unique(problem.clusters))
        fits = [fits[0].including(errors=problem.known.errors, clusters=count)]
    fits = derived_of(fitting.derived, fits, one.quantile.tolist(), of_derived)
    if fitting.contours:
        fits = [_with_contours(fitting, problem, solved, fits[0])]
    return FitOutcome(fits[0], Solutions(endings, solved.rows, one))


def _r2_of_parts(part: Any, solved: FitSolution) -> float:
    """R² of a complex response, the squares about the complex mean; `part` `[n]` tells the real and the imaginary
    rows."""
    response, weights = solved.rows.response[solved.place], solved.rows.sigma[solved.place] ** -2.0
    about_mean = np.float64(0)
    for own in (part == 1, part == 0):
        mean = np.average(response[own], weights=weights[own])
        about_mean += (weights[own] * (response[own] - mean) ** 2).sum()
    with np.errstate(all="ignore"):
        return float(1 - solved.statistics.rss[solved.place] / about_mean)


def _with_contours(fitting: FitJob, problem: Problem, solved: FitSolution, fit: Fit) -> Fit:
    """The fit with the contours of the confidence regions of pairs of parameters."""
    names, units = problem.parameters, fitting.question.units
    scales = np.ones(len(names)) if units is None else units.parameters
    radius = radius_of(problem.known, float(solved.statistics.dof[solved.place]))
    found, warnings = {}, []
    for pair in fitting.contours:
        i, j = (names.index(name) for name in pair)
        told, doubts = contour_of(
            problem,
            solved.ending.point,
            _covariance(solved),
            (i, j),
            _scale(problem, solved),
            radius,
            fitting.search.watch,
        )
        points = [(x * float(scales[i]), y * float(scales[j])) for x, y in told.points]
        found[",".join(pair)] = told._replace(points=points)
        warnings += doubts
    return fit.including(warnings, contours=found)


def _covariance(solved: FitSolution) -> Any:
    """The covariances of all parameters, nan for those at bounds."""
    free = solved.ending.free
    covariance = np.full((len(free), len(free)), np.nan)
    covariance[np.ix_(free, free)] = solved.statistics.covariance[solved.place]
    return covariance


def _derived_ends(fitting: FitJob, problem: Problem, solved: FitSolution) -> dict[str, tuple[float, float]]:
    """The profile likelihood intervals of the derived quantities."""
    question, found = fitting.question, solved.statistics
    p = len(solved.ending.free)
    return profiled_ends(
        fitting.derived,
        problem,
        solved.ending.point,
        _covariance(solved),
        _scale(problem, solved),
        float(found.quantile[solved.place]),
        np.ones(p) if question.units is None else question.units.parameters,
    )


def _scale(problem: Problem, solved: FitSolution) -> float:
    """The factor of the standard deviations of the rows, where it is estimated."""
    return float(solved.statistics.s[solved.place]) if problem.known.is_scaled else 1.0


def _profiled(problem: Problem, solved: FitSolution, watch: ProgressCallback | None) -> tuple[tuple[Any, Any], bool]:
    """The lower and upper ends of the profile likelihood intervals, `[p]` each, and whether a lower minimum was met on
    the way."""
    ending, found, index = solved.ending, solved.statistics, solved.place
    errors = np.full(len(ending.point), np.nan)
    errors[ending.free] = np.sqrt(np.diagonal(found.covariance[index]))
    ends = profile(problem, ending.point, errors, _scale(problem, solved), float(found.quantile[index]), watch)
    return (ends.low, ends.high), ends.lower_found


def _solution(problem: Problem, ending: SearchEnd) -> FitSolution:
    """The solution where a search ended: the rows there, with the statistics of the estimates."""
    free = ending.free
    second, bent = None, None
    if problem.has_second:
        value, first, second = problem.second(ending.point)
    else:
        value, first, weighted = problem.hessian_terms(ending.point)
        bent = weighted(problem.cost(value).first)[np.ix_(free, free)][None]
    proved = _proved(problem, ending, value, first)
    if proved is not None:
        ending = ending._replace(point=proved.point)
    if not free.all():
        i, j = pairs(len(free))
        first, second = first[:, free], None if second is None else second[:, free[i] & free[j]]
    mean, u = problem.priors
    u = u / problem.loss_scale
    rows = FitRows(
        value[None],
        problem.response[None],
        np.broadcast_to(np.asarray(problem.sigma, "float64") / problem.loss_scale, value.shape)[None],
        np.ones((1, len(value)), "bool"),
        first[None],
        None if second is None else second[None],
        ((ending.point - mean)[None, free], u[None, free]) if problem.has_priors else None,
        None if proved is None else proved.residuals[None],
        problem.loss_scale if problem.known.is_robust else np.nan,
        bent,
    )
    found = with_robust_errors(statistics(rows, problem.known), rows, problem.known, problem.clusters)
    doubts = cluster_warnings(problem.known, problem.clusters, int(free.sum()))
    if isinstance(problem, DensityProblem):
        found = problem.with_deviance(found, ending.point)
        doubts += problem.doubts(ending.point)
    ending = ending._replace(warnings=[*ending.warnings, *doubts]) if doubts else ending
    return FitSolution(ending, rows._replace(second=None), found)


def _proved(problem: Problem, ending: SearchEnd, value: Any, first: Any) -> ProvedResiduals | None:
    """The residuals in ball arithmetic, where in floats they are little more than rounding errors; None where they are
    not needed or cannot be computed."""
    if problem.count > _MAX_PROVED_ROWS or not (
        problem.known.is_least_squares and problem.is_typed and problem.dof > 0
    ):
        return None
    with np.errstate(all="ignore"):
        size, left = (np.linalg.norm(part / problem.sigma) for part in (problem.response, problem.response - value))
    if not size < np.inf or left > _MAX_RESIDUAL_RATIO * size or not ending.converged or problem.has_priors:
        return None
    try:
        with digits.computing():
            from gradcli.models.fitting.problem.proved_residuals import proved_residuals

            return proved_residuals(problem, ending.point, ending.free, first)
    except GradcliError:
        # FLINT is not installed, or lacks a function that the model calls.
        return None


def _distance_solution(problem: Problem, found: DistanceFit, before: SearchEnd) -> FitSolution:
    """The solution of a fit with errors in the predictors; `before` is the ordinary fit from which it started."""
    rows = FitRows(
        found.value[None],
        problem.response[None],
        found.sigma[None],
        np.ones((1, problem.count), "bool"),
        found.first[None][..., found.free],
    )
    ending = SearchEnd(
        found.point,
        found.free,
        found.reason is None,
        message_of(found.reason),
        before.iterations + found.iterations,
        before.evaluations + found.evaluations,
        before.starts,
        (),
    )
    # The density of a response about a tangent is not a likelihood of the data.
    unknown = np.full(1, np.nan)
    said = statistics(rows, problem.known)._replace(loglik=unknown, aic=unknown, bic=unknown)
    return FitSolution(ending, rows, said)


def plan_of(fitting: FitJob) -> GroupSearch | None:
    """The common search of all groups, derived from all of their rows; None where each group must be searched
    alone."""
    question = fitting.question
    if (
        not question.problem.is_stackable
        or fitting.deviations
        or question.problem.known.is_robust
        or question.problem.known.errors != INFORMATION
        or _has_unscaled_priors(question.problem)
    ):
        return None
    try:
        return plan_groups(question.problem, question.start, fitting.search)
    except GradcliError:
        return None


def run_group_fits(fitting: FitJob, groups: Mapping[str | None, Any], plan: GroupSearch | None) -> list[FitOutcome]:
    """Fit each group, given as the indices of its rows by name. Groups are fitted together where possible, the others
    one by one."""
    names = [*groups]
    fits: list[FitOutcome] = []
    for start, end in portions([len(rows) for rows in groups.values()]):
        fits += run_portion(fitting, {name: groups[name] for name in names[start:end]}, plan)
    return fits


def run_portion(fitting: FitJob, groups: Mapping[str | None, Any], plan: GroupSearch | None) -> list[FitOutcome]:
    """Like `run_group_fits`, for one portion of the groups. Rounding errors depend on which groups are fitted
    together: fits have the same digits only where their portions are the same."""
    found = {} if plan is None else _joint_fits(fitting, groups, plan)
    return [found[group] if group in found else _of_group(fitting, rows, group) for group, rows in groups.items()]


def _of_group(fitting: FitJob, rows: Any, group: str | None) -> FitOutcome:
    """Fit one group alone. Where its rows cannot be fitted, the result says why; an error of the request itself is
    raised."""
    question = fitting.question
    least = question.least_rows
    if len(rows) >= least:
        try:
            return run_fit(fitting.with_rows(rows), group)
        except EvaluationError as error:
            reason = error.message
    else:
        count = len(question.start)
        reason = f"too few rows, {len(rows)} for {count} parameter{'s' * (count != 1)}"
    fit = failed(question.names, question.problem.fixed, len(rows), reason, group)
    return FitOutcome(derived_of(fitting.derived, [fit], [np.nan])[0])


def _joint_fits(fitting: FitJob, groups: Mapping[str | None, Any], plan: GroupSearch) -> dict[str | None, FitOutcome]:
    """The fits, by group, of those groups whose joint search is conclusive: it converged from the given start, or all
    of several starts ended at one minimum."""
    question, problem = fitting.question, fitting.question.problem
    found: dict[str | None, FitOutcome] = {}
    names, rows = [*groups], [*groups.values()]
    sizes = np.fromiter(map(len, rows), int, len(rows))
    enough = np.flatnonzero(sizes >= question.least_rows)
    for places in by_size(sizes[enough]):
        own = enough[places].tolist()
        fits = fit_stacked(Stacked.of(problem, [rows[place] for place in own]), plan, fitting.search.watch)
        free, starts = np.ones(len(question.start), "bool"), Starts(fits.starts, fits.starts)
        taken = fits.iterations, fits.evaluations, starts, question.warnings
        endings = SearchEnds(fits.points, free, True, message_of(None), *taken)
        of_these = [names[place] for place in own]
        told = fitted(question.names, problem.fixed, endings, fits.statistics, groups=of_these, units=question.units)
        if not fitting.profile:
            told = derived_of(fitting.derived, told, fits.statistics.quantile.tolist())
        all_of_them = map(FitOutcome, told, repeat(Solutions(endings, fits.rows, fits.statistics)), range(len(own)))
        found.update(compress(zip(of_these, all_of_them), fits.converged.tolist()))
    if fitting.profile:
        for name, own in found.items():
            solved = own.solved
            if solved is not None:
                found[name] = _fit_outcome(fitting, problem.with_rows(groups[name]), solved.alone(), name)
    return found


# --- confidence intervals by profile likelihood: how far a parameter can go, with the others refitted, until the fit

# Relative precision of an end, in the signed root of the likelihood ratio.
_END_TOLERANCE = 1e-9
# Largest number of steps to find the ends.
_STEPS = 60
# A parameter's interval has no end if the fit is still good at this multiple of the linear interval.
_MAX_WIDTHS = 1e4


class Profile(NamedTuple):
    """The ends of the intervals of p parameters, `[p]` each, infinite where there is none, and whether a lower minimum
    was met on the way."""

    low: Any
    high: Any
    lower_found: bool


def profile(
    problem: Problem, point: Any, errors: Any, scale: float, quantile: float, watch: ProgressCallback | None = None
) -> Profile:
    """The profile likelihood intervals around the minimum `point` `[p]`.

    `errors` `[p]` are the standard errors of the parameters, nan for one at a bound, whose interval is one-sided.
    `watch` is called with each iteration. An end is where the square root of twice the rise of the cost, divided by
    `scale`, is the `quantile`. Source: D. M. Bates and D. G. Watts, Nonlinear Regression Analysis, 1988, 6.1.2. It is
    found by Newton's method, as the derivative of the least cost by the parameter is the derivative of the cost there.
    """
    p = len(point)
    ends = _Ends(problem, point, errors, scale, quantile, watch)
    # The scale is 0 for exact data.
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            if not ends.step():
                break
    return Profile(ends.found[:p], ends.found[p:], ends.lower_found)


class _Ends:
    """The state of 2p simultaneous searches for ends: first the p lower ones, then the upper ones."""

    def __init__(
        self, problem: Problem, point: Any, errors: Any, scale: float, quantile: float, watch: ProgressCallback | None
    ) -> None:
        p = len(point)
        self._watch = watch
        self._problem, self._scale, self._quantile = problem, scale, quantile
        self._which = np.tile(np.arange(p), 2)
        self._sign = np.repeat([-1.0, 1.0], p)
        self._limit = np.concatenate([problem.low, problem.high])
        self._center = np.tile(point, 2)
        here = linearised(problem, point[None])
        self._least = here.cost[0]
        self._width = np.tile(np.where(np.isnan(errors), self._beside(here.factor[0]), errors), 2)
        self._points = np.tile(point, (2 * p, 1))
        # Distances that bracket each end: the fit is good at the first and too bad at the second.
        self._near, self._beyond = np.zeros(2 * p), np.full(2 * p, np.inf)
        self._next = np.where(np.isfinite(self._width), quantile * self._width, np.nan)
        self.found = np.full(2 * p, np.nan)
        endless = ~np.isfinite(self._width)
        self.found[endless] = self._sign[endless] * np.inf
        self.lower_found = False

    def _beside(self, factor: Any) -> Any:
        """The approximate distance that each parameter alone can go from a bound, where the cost has a slope, divided
        by the quantile."""
        columns, residuals = factor[:, :-1], factor[:, -1]
        slope, rise = np.abs(columns.T @ residuals), self._quantile * self._scale
        with np.errstate(all="ignore"):
            return self._quantile * self._scale**2 / (slope + np.sqrt(slope**2 + (columns**2).sum(axis=0) * rise**2))

    def step(self) -> bool:
        """Move each search that has not ended to its next parameter value; False where all have ended."""
        k = np.flatnonzero(np.isnan(self.found))
        if not len(k):
            return False
        at = self._center[k] + self._sign[k] * self._next[k]
        beyond = self._sign[k] * (at - self._limit[k]) >= 0
        at = np.where(beyond, self._limit[k], at)
        distance = np.abs(at - self._center[k])
        points, root, slope = self._profiled(k, at)
        good = root < self._quantile
        self._points[k[good]] = points[good]
        self._near[k] = np.where(good, distance, self._near[k])
        self._beyond[k] = np.where(good, self._beyond[k], distance)
        with np.errstate(all="ignore"):
            newton = distance + (self._quantile - root) / slope
        done = np.abs(root - self._quantile) <= _END_TOLERANCE * self._quantile
        done |= np.isfinite(self._beyond[k]) & (self._beyond[k] - self._near[k] <= 1e-12 * self._beyond[k])
        done |= beyond & good
        # Where the model fails further out, the end is the last value at which it does not.
        last = np.where(np.isfinite(newton), at, self._center[k] + self._sign[k] * self._near[k])
        self.found[k[done]] = np.where(beyond & good, self._limit[k], last)[done]
        endless = ~done & (distance > _MAX_WIDTHS * self._quantile * self._width[k]) & good
        self.found[k[endless]] = self._sign[k[endless]] * np.inf
        between = np.where(
            np.isfinite(self._beyond[k]), (self._near[k] + self._beyond[k]) / 2, 4 * np.maximum(distance, 1e-300)
        )
        fits = (newton > self._near[k]) & (newton < np.minimum(self._beyond[k], 4 * distance))
        self._next[k] = np.where(fits, newton, between)
        return True

    def _profiled(self, k: Any, at: Any) -> tuple[Any, Any, Any]:
        """The points of least cost of the searches `k` with their parameters held at `at`; and the root of the
        likelihood ratio there, with its derivative by the distance."""
        rows, own = np.arange(len(k)), self._which[k]
        starts = self._points[k].copy()
        starts[rows, own] = at
        held = np.zeros(starts.shape, bool)
        held[rows, own] = True
        found = profile_points(self._problem, starts, held, self._least, self._scale, self._watch)
        self.lower_found |= found.any_lower
        root = found.root
        with np.errstate(all="ignore"):
            slope = self._sign[k] * found.gradient[rows, own] / (root * self._scale**2)
        return found.points, root, slope
