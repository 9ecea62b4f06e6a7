"""A fit from what is asked of it to what is said of it, for all rows or for each group of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli import limits
from gradcli.errors import EvaluationError, GradcliError, UsageError
from gradcli.models.data import Data
from gradcli.models.fitting.convergence import message_of
from gradcli.models.fitting.distance_fits import DistanceFit, check_predictors, distance_fit
from gradcli.models.fitting.estimation import SearchOptions, estimated
from gradcli.models.fitting.fit_files import FitFiles, write
from gradcli.models.fitting.fit_problems import PosedFit, names_of, posed
from gradcli.models.fitting.fit_requests import Concluded, FitRequest, Performed, Solved, check, check_used
from gradcli.models.fitting.fitted import Ending, Starts, failed, fitted
from gradcli.models.fitting.group_fits import fit_stacked, planned
from gradcli.models.fitting.inference import Rows, statistics
from gradcli.models.fitting.model_texts import read_model
from gradcli.models.fitting.packed_hessians import pairs
from gradcli.models.fitting.problems import Problem
from gradcli.models.fitting.profiles import profile
from gradcli.models.fitting.stacked_problems import Stacked, by_size
from gradcli.models.results import Watcher

# How often a fit is done again with another scale of its rows, and when that is settled.
_ROUNDS, _SETTLED = 100, 1e-12


def performed(request: FitRequest, search: SearchOptions, files: FitFiles) -> Performed:
    """Fit as asked, and write the files that are asked for.

    Raises BindingError for names and data that do not fit together, UsageError for what cannot be asked together, and
    EvaluationError where the model has no finite value at the start.
    """
    check(request, search)
    files.check(request.table.sources)
    if request.by is not None and files.plot is not None:
        raise UsageError("a picture shows one fit, not those of groups", hint="leave out one of them")
    with limits.within(*request.limits):
        text = read_model(request.model, request.response)
        columns = [s for s in (request.sigma, *request.x_sigma.values()) if isinstance(s, str)]
        names = names_of(text, request.table, request.parameters, columns)
        check_used(request, names.needed)
    # A row without a response is no data, but the model has a value there.
    optional = [n for n in names.needed if n not in names.predictors] if files.predict is not None else []
    everything = request.table.taken(names.needed, [request.by] if request.by else [], optional)
    data = everything.complete()
    question = posed(text, names, data, request.parameters, request.known, _sigma(request.sigma, data), request.limits)
    check_predictors(question.problem, _deviations(request, data))
    if request.by is None:
        concluded = [_concluded(question, request, data, search)]
        groups = [np.arange(len(data.rows))]
    else:
        found = data.grouped(request.by)
        groups = [*found.values()]
        concluded = _of_groups(question, request, data, found, search)
    write(files, concluded, groups, question, request, everything, data)
    by_group = Counter(data.other_texts.get(request.by, ())) if request.by else {None: data.left_out}
    fits = [each.fit for each in concluded]
    if data.left_out:
        fits = [replace(fit, left_out=by_group[fit.group]) for fit in fits]
    return Performed(fits, data.left_out)


def _sigma(said: str | float | None, data: Data) -> Any:
    return data.columns[said] if isinstance(said, str) else 1.0 if said is None else float(said)


def _deviations(request: FitRequest, data: Data) -> dict[str, Any]:
    """The standard deviations of the predictors."""
    return {name: _sigma(said, data) for name, said in request.x_sigma.items()}


def _concluded(
    question: PosedFit,
    request: FitRequest,
    data: Data,
    search: SearchOptions,
    rows: Any = None,
    group: str | None = None,
) -> Concluded:
    """The fit of all rows, or of some."""
    problem = question.problem if rows is None else question.problem.with_rows(rows)
    if request.x_sigma:
        ending = estimated(problem, question.start, search)
        deviations = _deviations(request, data)
        if rows is not None:
            deviations = {name: s[rows] if np.ndim(s) else s for name, s in deviations.items()}
        solved = _of_distances(problem, distance_fit(problem, deviations, ending.point), ending)
    else:
        problem, solved = _of_rows(problem, question.start, search)
    return _told(question, request, problem, solved, group, search.watch)


def _has_unscaled_priors(problem: Problem) -> bool:
    """Whether what is known of parameters is in their units, while the rows' deviations are known up to a factor alone."""
    return problem.known.is_least_squares and problem.known.is_scaled and bool(np.isfinite(problem.priors[1]).any())


def _of_rows(problem: Problem, start: Any, search: SearchOptions) -> tuple[Problem, Solved]:
    """The problem that is solved, and its solution. A prior is weighed against rows whose
    standard deviation is the one that is estimated, again and again until that stays."""
    found = _solved(problem, estimated(problem, start, search))
    solved = problem
    if not _has_unscaled_priors(problem):
        return solved, found
    scale = 1.0
    for _ in range(_ROUNDS):
        before, scale = scale, float(found.statistics.s[0])
        if not (np.isfinite(scale) and scale > 0) or abs(scale - before) <= _SETTLED * scale:
            break
        solved = problem.with_scaled_priors(scale)
        ending = found.ending
        again = estimated(solved, ending.point, search)
        ending = again._replace(
            iterations=ending.iterations + again.iterations,
            evaluations=ending.evaluations + again.evaluations,
            starts=ending.starts,
        )
        found = _solved(solved, ending)
    return solved, found


def _told(
    question: PosedFit,
    request: FitRequest,
    problem: Problem,
    solved: Solved,
    group: str | None,
    watch: Watcher | None,
) -> Concluded:
    """With the fit, whose intervals are by the profile where that is asked for."""
    fixed = problem.fixed
    intervals = None
    if request.profile:
        ends, is_lower = _profiled(problem, solved, watch)
        if is_lower:
            reason = "the profile of the likelihood meets a lower minimum"
            solved = solved._replace(ending=solved.ending._replace(converged=False, message=message_of(reason)))
        varied = [name not in fixed for name in question.names]
        every = np.array([fixed.get(name, np.nan) for name in question.names])
        intervals = every[None].copy(), every[None].copy()
        for interval, end in zip(intervals, ends):
            interval[0, varied] = end
    one = solved.statistics.chosen(solved.place)
    groups = None if group is None else [group]
    fits = fitted(question.names, fixed, [solved.ending], one, intervals=intervals, groups=groups)
    return Concluded(fits[0], solved)


def _profiled(problem: Problem, solved: Solved, watch: Watcher | None) -> tuple[tuple[Any, Any], bool]:
    """The ends of the intervals, and whether there is a lower minimum on the way to them."""
    ending, found, index = solved.ending, solved.statistics, solved.place
    errors = np.full(len(ending.point), np.nan)
    errors[ending.free] = np.sqrt(np.diagonal(found.covariance[index]))
    scale = float(found.s[index]) if problem.known.is_scaled else 1.0
    ends = profile(problem, ending.point, errors, scale, float(found.quantile[index]), watch)
    return (ends.low, ends.high), ends.lower_found


def _solved(problem: Problem, ending: Ending) -> Solved:
    """With what can be said of the estimates."""
    free = ending.free
    value, first, second = problem.second(ending.point)
    if not free.all():
        i, j = pairs(len(free))
        first, second = first[:, free], second[:, free[i] & free[j]]
    mean, u = problem.priors
    rows = Rows(
        value[None],
        problem.response[None],
        np.broadcast_to(np.asarray(problem.sigma, "float64"), value.shape)[None],
        np.ones((1, len(value)), "bool"),
        first[None],
        second[None],
        ((ending.point - mean)[None, free], u[None, free]) if np.isfinite(u).any() else None,
    )
    return Solved(ending, rows._replace(second=None), statistics(rows, problem.known))


def _of_distances(problem: Problem, found: DistanceFit, before: Ending) -> Solved:
    """Where a fit with errors of the predictors ended, which began where one without them did."""
    rows = Rows(
        found.value[None],
        problem.response[None],
        found.sigma[None],
        np.ones((1, problem.count), "bool"),
        found.first[None][..., found.free],
    )
    ending = Ending(
        found.point,
        found.free,
        found.reason is None,
        message_of(found.reason),
        before.iterations + found.iterations,
        before.evaluations + found.evaluations,
        before.starts,
        (),
    )
    # The density of a response about a tangent is none of the data.
    unknown = np.full(1, np.nan)
    said = statistics(rows, problem.known)._replace(loglik=unknown, aic=unknown, bic=unknown)
    return Solved(ending, rows, said)


def _of_groups(
    question: PosedFit, request: FitRequest, data: Data, groups: Mapping[str | None, Any], search: SearchOptions
) -> list[Concluded]:
    """A fit for each group: of all that can be together, and of the others one by one."""
    found: dict[str | None, Concluded] = {}
    if not request.x_sigma and not _has_unscaled_priors(question.problem):
        found = _together(question, request, groups, search)
    for group, rows in groups.items():
        if group not in found:
            found[group] = _of_group(question, request, data, search, rows, group)
    return [found[group] for group in groups]


def _of_group(
    question: PosedFit, request: FitRequest, data: Data, search: SearchOptions, rows: Any, group: str | None
) -> Concluded:
    """The fit of a group, or why its rows have none; what is wrong with the question is an error."""
    problem = question.problem
    least = max(1, problem.count - problem.dof)
    if len(rows) >= least:
        try:
            return _concluded(question, request, data, search, rows, group)
        except EvaluationError as error:
            reason = error.message
    else:
        count = len(question.start)
        reason = f"too few rows, {len(rows)} for {count} parameter{'s' * (count != 1)}"
    return Concluded(failed(question.names, problem.fixed, len(rows), reason, group), None)


def _together(
    question: PosedFit, request: FitRequest, groups: Mapping[str | None, Any], search: SearchOptions
) -> dict[str | None, Concluded]:
    """The fits of groups whose searches leave no doubt: from the start that is given, or else from several that all end
    at one minimum."""
    problem = question.problem
    try:
        plan = planned(problem, question.start, search)
    except GradcliError:
        return {}
    found: dict[str | None, Concluded] = {}
    least = max(1, problem.count - problem.dof)
    enough = {group: rows for group, rows in groups.items() if len(rows) >= least}
    every = [*enough]
    for places in by_size([*enough.values()]):
        names = [every[place] for place in places]
        fits = fit_stacked(Stacked.of(problem, [enough[name] for name in names]), plan, search.watch)
        free = np.ones(len(question.start), "bool")
        starts, message = Starts(fits.starts, fits.starts), message_of(None)
        endings = [
            Ending(point, free, True, message, iterations, evaluations, starts)
            for point, iterations, evaluations in zip(fits.points, fits.iterations.tolist(), fits.evaluations.tolist())
        ]
        told = fitted(question.names, problem.fixed, endings, fits.statistics, groups=names)
        for place in np.flatnonzero(fits.converged).tolist():
            name, solved = names[place], Solved(endings[place], fits.rows, fits.statistics, place)
            found[name] = Concluded(told[place], solved)
            if request.profile:
                found[name] = _told(question, request, problem.with_rows(enough[name]), solved, name, search.watch)
    return found
