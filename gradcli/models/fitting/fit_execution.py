"""Carries out a request to fit: reads the data, builds the problem, fits, and writes the requested files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli import limits
from gradcli.errors import BindingError, EvaluationError, UsageError
from gradcli.language.differential_equations import has_differential_equations
from gradcli.language.names import scope
from gradcli.models.data import Data
from gradcli.models.fitting.derived_quantities import read_within
from gradcli.models.fitting.fit_files import FitFiles, write
from gradcli.models.fitting.fit_requests import (
    FitOutcome,
    FitRequest,
    FitResults,
    Resampling,
    check,
    check_contours,
    check_used,
)
from gradcli.models.fitting.fit_runs import FitJob, plan_of, run_fit, run_group_fits
from gradcli.models.fitting.notation.model_texts import TILDE, has_several_responses
from gradcli.models.fitting.notation.random_terms import random_texts
from gradcli.models.fitting.problem.factors import base_of, factors_of, parted
from gradcli.models.fitting.problem.fit_problems import (
    ModelNames,
    Parameters,
    PosedFit,
    classify_names,
    posed_fit,
    sigma_of_weights,
)
from gradcli.models.fitting.problem.fit_texts import FitTexts, as_typed, texts_of
from gradcli.models.fitting.problem.likelihoods import CATEGORICAL, FAMILIES, LOG_DENSITY, Assumptions
from gradcli.models.fitting.responses.complex_fits import (
    MODULUS,
    Rewriting,
    as_written,
    is_complex,
    is_modulus,
    parts_of,
)
from gradcli.models.fitting.responses.density_problems import posed_density
from gradcli.models.fitting.results.fit_results import Fit, failed
from gradcli.models.fitting.search.estimation import SearchOptions
from gradcli.models.fitting.search.orthogonal_distance import check_predictors
from gradcli.models.fitting.statistics.inference import INFORMATION
from gradcli.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gradcli.models.fitting.effects.mixed_problems import MixedFit
    from gradcli.models.fitting.notation.model_texts import Relocation
    from gradcli.models.fitting.resampled_fits import Refit


class Prepared(NamedTuple):
    """The posed fit of a request, `everything` that was read for it, the `data` of the rows that have all numbers, and
    the indices of the rows of each group, by name; the name is None where there are no groups. For `rewritings` see
    `as_written`. `mixed` is the fit with random effects, None for a model without;
    for `relocation` see `Relocation`."""

    fitting: FitJob
    everything: Data
    data: Data
    groups: Mapping[str | None, Any]
    rewritings: Sequence[Rewriting] = ()
    mixed: MixedFit | None = None
    relocation: Relocation | None = None

    def left_out(self, by: str | None) -> Mapping[Any, int]:
        """The number of rows of each group that lack a number."""
        return {None: self.data.left_out} if by is None else Counter(self.data.other_texts.get(by, ()))


def prepare(request: FitRequest, search: SearchOptions, predicts: bool = False) -> Prepared:
    """Read the data, and build the problem; where the model `predicts`, rows without a response are read too.

    Raises BindingError for names and data that do not fit together, and UsageError for options that exclude each other.
    """
    check(request, search)
    has_equations = has_differential_equations(request.model)
    is_one = not has_several_responses(request.model) or request.known.family == LOG_DENSITY
    if request.correlated and (has_equations or is_one):
        raise UsageError("correlations are those of several responses of a row", hint="leave out --correlated")
    if has_equations:
        if request.restricted or random_texts(request.model, request.random, request.table.columns).terms:
            raise UsageError("random effects are not for differential equations", hint="leave them out")
        return _prepared_trajectories(request, search)
    if not is_one:
        if request.restricted or random_texts(request.model, request.random, request.table.columns).terms:
            raise UsageError("random effects are for one response", hint="leave them out")
        return _prepared_responses(request, search)
    if request.events is not None:
        raise UsageError("events are for differential equations", hint="leave out --events")
    if request.known.family in CATEGORICAL:
        if request.restricted or random_texts(request.model, request.random, request.table.columns).terms:
            raise UsageError(f"random effects are not for --family {request.known.family}", hint="leave them out")
        return _prepared_categories(request, search)
    if isinstance(request.sigma, Mapping):
        raise UsageError("a model of one response has one standard deviation in a row", hint="--sigma COLUMN")
    if request.against is None:
        return _prepared(request, search, [_read(request)], predicts)
    own, other = _parted_settings(request)
    return _prepared(own, search, [_read(own), _read(other)], predicts)


class _Reading(NamedTuple):
    """The parsed texts of a request: its programs; the settings of parameters as a whole, and of single `levels`; the
    names in the model; and the columns of texts."""

    texts: FitTexts
    whole: Parameters
    levels: Parameters
    names: ModelNames
    words: Sequence[str]


def _read(request: FitRequest) -> _Reading:
    with limits.within(*request.limits):
        about = request.offset, request.known, request.table.columns, request.random
        texts = texts_of(request.model, request.response, *about)
        if texts.random is not None or request.restricted:
            # Imported here because few models have random effects.
            from gradcli.models.fitting.effects.mixed_problems import check_random, random_columns

            check_random(request, texts)
        terms = [] if texts.random is None else texts.random.terms
        whole, levels = parted(request.parameters, texts.indexed)
        said = (request.sigma, request.trials, request.weights, *request.x_sigma.values())
        columns = [column for column in said if isinstance(column, str)]
        if is_modulus(request):
            columns.remove(MODULUS)
        if terms:
            columns += random_columns(terms, request.table.columns)
        with as_typed(texts.random, request.model):
            names = classify_names(texts.text, request.table, whole, columns, texts.indexed)
        _check_levels(request, texts)
    of_effects = [column for term in terms for column in term.columns]
    words = dict.fromkeys((request.by, request.clusters, *texts.indexed.values(), *of_effects))
    return _Reading(texts, whole, levels, names, [name for name in words if name is not None])


def _prepared(request: FitRequest, search: SearchOptions, readings: Sequence[_Reading], predicts: bool) -> Prepared:
    """The posed fit of the first of the readings, to the rows that have all that the readings need."""
    texts, _whole, _levels, names, _ = readings[0]
    needed = [*dict.fromkeys(name for reading in readings for name in reading.names.needed)]
    words = [*dict.fromkeys(name for reading in readings for name in reading.words)]
    check_used(request, [*needed, *words])
    # A row without a response cannot be fitted, but the model has a value there.
    predictors = names.predictors if texts.density is None else texts.density.predictors(request.table.columns)
    optional = [n for n in needed if n not in predictors] if predicts else []
    may_be_complex = [] if request.known.family != "gaussian" else set(needed) - _real_columns(request, readings)
    everything = request.table.taken(needed, words, optional, may_be_complex)
    return _of_rows(request, search, readings[0], everything)


def _real_columns(request: FitRequest, readings: Sequence[_Reading]) -> set[str]:
    """The names of the columns that hold real numbers: all but those that the response alone reads."""
    said = (request.sigma, request.weights, *request.x_sigma, *request.x_sigma.values())
    predictors = [name for reading in readings for name in reading.names.predictors]
    return {*predictors, *(name for name in said if isinstance(name, str))}


def _of_rows(request: FitRequest, search: SearchOptions, reading: _Reading, everything: Data) -> Prepared:
    texts, whole, levels, names, _ = reading
    data = everything.complete()
    part: str | None = None
    rewritings: Sequence[Rewriting] = ()
    if request.known.family == "gaussian" and is_complex(texts.text.response, data, request.limits):
        if texts.random is not None:
            raise UsageError("random effects are for real responses, and this one is complex")
        request, texts, data, part, rewritings = parts_of(request, texts, data)
    elif is_modulus(request):
        raise UsageError(
            f"--sigma {MODULUS} is for complex responses, and this one is real",
            hint="--sigma COLUMN; --weights for others",
        )
    with as_written(rewritings), as_typed(texts.random, request.model):
        question = _posed(request._replace(parameters=whole), texts, names, data)
    question = question._replace(part=part)
    if request.clusters is not None:
        question.problem.clusters = data.texts[request.clusters].codes
    elif part is not None:
        # Both parts of a number are sampled together.
        question.problem.clusters = data.rows
    if texts.indexed:
        # Imported here because few models have levels.
        from gradcli.models.fitting.effects.factor_problems import posed_factors

        question = posed_factors(question, whole, levels, factors_of(texts.indexed, data), data)
    deviations = {name: _numbers(said, data) for name, said in request.x_sigma.items()}
    check_predictors(question.problem, deviations)
    every: dict[str | None, Any] = {None: np.arange(len(data.rows))}
    groups = every if request.by is None else data.grouped(request.by)
    derived = read_within(request.derived, question.names, request.limits)
    fitting = FitJob(question, deviations, request.profile, search, derived)
    mixed = None
    if texts.random is not None:
        from gradcli.models.fitting.effects.mixed_problems import posed_mixed

        mixed = posed_mixed(question, texts, data, request, search, derived)
    return Prepared(fitting, everything, data, groups, rewritings, mixed)


def _posed(request: FitRequest, texts: FitTexts, names: ModelNames, data: Data) -> PosedFit:
    """The posed fit in which each parameter is one number."""
    sigma = _sigma(request, data)
    if request.known.is_density:
        about = request.parameters, request.known, sigma, request.limits
        return posed_density(texts.text, texts.density, names, data, *about)
    trials = None if request.trials is None else _numbers(request.trials, data)
    about_rows = request.parameters, request.known, sigma, trials, request.limits, bool(request.x_sigma)
    return posed_fit(texts.text, names, data, *about_rows)


def _check_levels(request: FitRequest, texts: FitTexts) -> None:
    """Raise UsageError for options that parameters with levels lack."""
    if not texts.indexed:
        return
    name, column = next(iter(texts.indexed.items()))
    if request.by is not None:
        raise UsageError(
            f"'{name}[{column}]' has a value for each group, and --by fits groups apart", hint="leave out one of them"
        )
    if request.x_sigma:
        raise UsageError("errors of the predictors are for parameters without levels", hint="leave out --x-sigma")


def _parted_settings(request: FitRequest) -> tuple[FitRequest, FitRequest]:
    """The request, and that of the model to compare with, each with the settings of its own parameters; a name in
    neither stays in the first.

    Raises UsageError for models of different responses.
    """
    columns, known = request.table.columns, request.known
    against, of_other = _other_model(request)
    texts = texts_of(request.model, request.response, request.offset, known, columns)
    response = None
    if TILDE.search(against) is None and known.family != LOG_DENSITY:
        response = texts.text.response.source
    others = texts_of(against, response, request.offset, of_other, columns)
    if others.text.response.source.strip() != texts.text.response.source.strip():
        raise UsageError(
            f"the models are of different responses, {texts.text.response_name} and {others.text.response_name}",
            hint="--against is another model of the same response",
        )
    own, other = (scope.free_names(each.text.model) for each in (texts, others))

    def of(keep: Callable[[str], bool]) -> Parameters:
        given = request.parameters
        start = {n: value for n, value in given.start.items() if keep(base_of(n))}
        bounds = {n: pair for n, pair in given.bounds.items() if keep(base_of(n))}
        fixed = [n for n in given.fixed if keep(base_of(n))]
        return Parameters(start, fixed, bounds, given.priors)

    first = request._replace(parameters=of(lambda name: name in own or name not in other))
    return first, request._replace(
        model=against, response=response, parameters=of(lambda name: name in other), derived={}, known=of_other
    )


def _other_model(request: FitRequest) -> tuple[str, Assumptions]:
    """The text of the model to compare with, and the assumptions about its rows: `poisson` is the same model with that
    family, and `poisson: exp(a)` another one with it.

    Raises UsageError for a family that has no such comparison.
    """
    against, known = request.against or "", request.known
    family, _, model = (part.strip() for part in against.partition(":"))
    if family not in FAMILIES:
        return against, known
    if known.family == LOG_DENSITY or family in CATEGORICAL:
        raise UsageError(f"there is no comparison with the family {family}", hint="--against MODEL is another model")
    if known.absolute or request.sigma is not None or request.trials is not None:
        raise UsageError("families that are compared have no --sigma and no --trials", hint="leave them out")
    return model or request.model, known._replace(family=family)


def _prepared_trajectories(request: FitRequest, search: SearchOptions) -> Prepared:
    # Imported here because few models are differential equations.
    from gradcli.models.fitting.responses.trajectory_fits import posed_trajectories

    if request.against is not None:
        raise UsageError("--against is not for differential equations", hint="leave it out")
    if request.resampling != Resampling():
        # Without its first row a solution would begin at another time.
        raise UsageError(
            "--bootstrap, --jackknife and --cross-validate are not for differential equations", hint="leave them out"
        )
    if request.known.is_density or request.weights is not None or request.known.errors != INFORMATION:
        option = "--weights" if request.weights is not None else "--errors"
        what = f"--family {request.known.family}" if request.known.is_density else option
        raise UsageError(f"{what} is not for differential equations", hint="leave it out")
    with limits.within(*request.limits):
        question, everything, data, groups = posed_trajectories(request)
    derived = read_within(request.derived, question.names, request.limits)
    return Prepared(FitJob(question, {}, request.profile, search, derived), everything, data, groups)


def _prepared_categories(request: FitRequest, search: SearchOptions) -> Prepared:
    # Imported here because few responses are categories.
    from gradcli.models.fitting.responses.categorical_fits import posed_categories

    with limits.within(*request.limits):
        posed = posed_categories(request)
    data = posed.data
    derived = read_within(request.derived, posed.question.names, request.limits)
    fitting = FitJob(posed.question, {}, request.profile, search, derived)
    return Prepared(fitting, data, data, {None: np.arange(len(data.rows))}, relocation=posed.relocation)


def _prepared_responses(request: FitRequest, search: SearchOptions) -> Prepared:
    # Imported here because few models have several responses.
    from gradcli.models.fitting.responses.several_responses import posed_responses

    if request.events is not None:
        raise UsageError("events are for differential equations", hint="leave out --events")
    with limits.within(*request.limits):
        posed = posed_responses(request)
    derived = read_within(request.derived, posed.question.names, request.limits)
    fitting = FitJob(posed.question, {}, request.profile, search, derived)
    return Prepared(fitting, posed.data, posed.data, posed.groups, relocation=posed.relocation)


def execute(request: FitRequest, search: SearchOptions, files: FitFiles) -> FitResults:
    """Fit as requested, and write the requested files.

    Raises BindingError for names and data that do not fit together, UsageError for options that exclude each other, and
    EvaluationError where the model has no finite value at the start.
    """
    files.check(request.table.sources)
    ready = prepare(request, search, files.predict is not None)
    check_contours(request.contours, ready.fitting.question.names, ready.fitting.question.problem.fixed)
    fitting, data = ready.fitting._replace(contours=request.contours), ready.data
    if fitting.question.part is not None and any(files[:3]):
        raise UsageError(
            "no files are written for complex responses", hint="gradcli map computes the model in each row"
        )
    if ready.mixed is not None and any(files[:3]):
        raise UsageError("no files are written for random effects", hint="--json prints the predictions of the effects")
    if has_differential_equations(request.model) and any(files[:3]):
        raise UsageError("no files are written for differential equations", hint="gradcli ode writes their solution")
    if ready.relocation is not None and any(files[:3]):
        what = "categories" if request.known.family in CATEGORICAL else "several responses"
        raise UsageError(f"no files are written for {what}", hint="gradcli map computes the model in each row")
    if request.known.is_density and (files.residuals is not None or files.plot is not None):
        option = "--plot" if files.residuals is None else "--residuals"
        raise UsageError(
            "the rows of a likelihood have no residuals",
            hint=f"leave out {option}" + "; --predict writes the fitted means" * (request.known.family != LOG_DENSITY),
        )
    if request.known.family == LOG_DENSITY and files.predict is not None:
        raise UsageError("a likelihood predicts nothing", hint="leave out --predict")
    if not fitting.question.problem.is_searched_widely and (files.predict is not None or files.plot is not None):
        raise UsageError("parameters with levels have no predictions", hint="--residuals writes the values of the rows")
    if fitting.question.units is not None and any(files[:3]):
        raise UsageError(
            "no files are written for numbers as large or small as these", hint="give the data in other units"
        )
    with as_written(ready.rewritings), nullcontext() if ready.relocation is None else ready.relocation.relocating():
        if ready.mixed is not None and request.by is None:
            found = [_mixed_outcome(ready.mixed, request)]
        elif ready.mixed is not None:
            found = _mixed_groups(request, search, ready)
        elif request.by is None:
            found = [run_fit(fitting)]
        else:
            found = run_group_fits(fitting, ready.groups, plan_of(fitting))
    write(files, found, [*ready.groups.values()], fitting, request, ready.everything, data)
    fits = [each.fit for each in found]
    if request.against is not None:
        fits = [_compared(request, search, ready, found[0])]
    if request.resampling != Resampling():
        refit = None if ready.mixed is None else _mixed_refit(request, search, ready, fits[0])
        fits = [_resampled(request.resampling, fitting, fits[0], refit)]
    if data.left_out:
        left_out = ready.left_out(request.by)
        fits = [replace(fit, left_out=left_out[fit.group]) if fit.group in left_out else fit for fit in fits]
    return FitResults(fits, data.left_out)


def _mixed_outcome(mixed: MixedFit, request: FitRequest) -> FitOutcome:
    from gradcli.models.fitting.effects.mixed_fits import mixed_fit

    with as_typed(mixed.texts.random, request.model):
        return FitOutcome(mixed_fit(mixed, request.known.level))


def _mixed_groups(request: FitRequest, search: SearchOptions, ready: Prepared) -> list[FitOutcome]:
    """The fits of the groups of rows, each as it would be alone; the result of one that cannot be fitted says why."""
    question, reading = ready.fitting.question, _read(request)
    found = []
    for group, rows in ready.groups.items():
        data = Data(
            {name: column[rows] for name, column in ready.data.columns.items()},
            ready.data.rows[rows],
            0,
            {name: texts.at(rows) for name, texts in ready.data.texts.items()},
        )
        try:
            alone = _of_rows(request._replace(by=None), search, reading, data)
            assert alone.mixed is not None
            fit = _mixed_outcome(alone.mixed, request).fit.including(group=group)
        except (EvaluationError, BindingError) as error:
            fit = failed(question.names, question.problem.fixed, len(rows), error.message, group)
        found.append(FitOutcome(fit))
    return found


def _mixed_refit(request: FitRequest, search: SearchOptions, ready: Prepared, fit: Fit) -> Refit:
    """The function that fits samples of the levels of the column within which random effects vary, from the
    estimates."""
    from gradcli.models.fitting.effects.mixed_problems import sampled_column, sampled_data

    problem, reading, texts = ready.fitting.question.problem, _read(request), ready.fitting.question.names
    random = reading.texts.random
    assert random is not None
    column = sampled_column(random.terms)
    problem.clusters = ready.data.texts[column].codes
    begin = {name: fit.estimates[name].value for name in texts if np.isfinite(fit.estimates[name].value)}
    given = request.parameters._replace(start={**request.parameters.start, **begin})
    whole, levels = parted(given, reading.texts.indexed)
    asked = request._replace(parameters=given, profile=False)

    def refit(samples: Sequence[Sequence[Any]]) -> Any:
        found = np.full((len(samples), len(problem.parameters)), np.nan)
        for place, units in enumerate(samples):
            data = sampled_data(ready.data, column, units)
            try:
                alone = _of_rows(asked, search, reading._replace(whole=whole, levels=levels), data).mixed
                assert alone is not None
                own = _mixed_outcome(alone, request).fit
            except (EvaluationError, BindingError):
                continue
            if own.converged and all(name in own.estimates for name in problem.parameters):
                found[place] = [own.estimates[name].value for name in problem.parameters]
        return found

    return refit


def _compared(request: FitRequest, search: SearchOptions, ready: Prepared, outcome: FitOutcome) -> Fit:
    """The fit with the comparison with the other model, fitted to the same rows."""
    from gradcli.models.fitting.model_comparisons import comparison_of

    _, other = _parted_settings(request)
    prepared = _of_rows(other, search, _read(other), ready.everything)
    with as_written(prepared.rewritings):
        of_other = run_fit(prepared.fitting)
    texts = request.model, request.against or ""
    found, warnings = comparison_of(texts, (outcome, of_other), (request.known, other.known))
    # The test compares rows: it does not apply where a complex number takes two rows, or a weight repeats one.
    counted = request.weights is not None and request.known.family != "gaussian"
    if counted or ready.fitting.question.part is not None or ready.fitting.question.units is not None:
        found = found._replace(vuong=None)
    return outcome.fit.including(warnings, comparison=found)


def _resampled(asked: Resampling, fitting: FitJob, fit: Fit, refit: Refit | None) -> Fit:
    """The fit with what fits of other rows say."""
    from gradcli.models.fitting.resampled_fits import bootstrapped, cross_validated, jackknifed

    if fitting.question.units is not None:
        raise UsageError("numbers as large or small as these are not resampled", hint="give the data in other units")
    point = {name: estimate.value for name, estimate in fit.estimates.items()}
    if asked.bootstrap:
        found, warnings = bootstrapped(fitting, point, asked.bootstrap, refit)
        fit = fit.including(warnings, bootstrap=found)
    if asked.jackknife:
        found, warnings = jackknifed(fitting, point, refit)
        fit = fit.including(warnings, jackknife=found)
    if asked.folds:
        predicted, warnings = cross_validated(fitting, point, asked.folds)
        fit = fit.including(warnings, cross_validation=predicted)
    return fit


def _sigma(request: FitRequest, data: Data) -> Any:
    """The standard deviations of the rows: those that are given, the inverse roots of the weights, or 1."""
    if request.weights is None:
        sigma = request.sigma
        return 1.0 if sigma is None or isinstance(sigma, Mapping) else _numbers(sigma, data)
    return sigma_of_weights(request.weights, data)


def _numbers(said: str | float, data: Data) -> Any:
    """The numbers of a column, or the one number of all rows."""
    return data.columns[said] if isinstance(said, str) else float(said)
