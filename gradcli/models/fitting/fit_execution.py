"""Carries out a request to fit: reads the data, builds the problem, fits, and writes the requested files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gradcli import limits
from gradcli.errors import BindingError, UsageError
from gradcli.language.differential_equations import has_differential_equations
from gradcli.models.data import Data
from gradcli.models.fitting.density_problems import posed_density
from gradcli.models.fitting.derived_quantities import read_within
from gradcli.models.fitting.estimation import SearchOptions
from gradcli.models.fitting.fit_files import FitFiles, write
from gradcli.models.fitting.fit_problems import classify_names, posed_fit
from gradcli.models.fitting.fit_requests import FitRequest, FitResults, check, check_used
from gradcli.models.fitting.fit_runs import FitJob, plan_of, run_fit, run_group_fits
from gradcli.models.fitting.fit_texts import texts_of
from gradcli.models.fitting.likelihoods import LOG_DENSITY
from gradcli.models.fitting.orthogonal_distance import check_predictors


class Prepared(NamedTuple):
    """The posed fit of a request, `everything` that was read for it, the `data` of the rows that have all numbers, and
    the indices of the rows of each group, by name; the name is None where there are no groups."""

    fitting: FitJob
    everything: Data
    data: Data
    groups: Mapping[str | None, Any]

    def left_out(self, by: str | None) -> Mapping[Any, int]:
        """The number of rows of each group that lack a number."""
        return {None: self.data.left_out} if by is None else Counter(self.data.other_texts.get(by, ()))


def prepare(request: FitRequest, search: SearchOptions, predicts: bool = False) -> Prepared:
    """Read the data, and build the problem; where the model `predicts`, rows without a response are read too.

    Raises BindingError for names and data that do not fit together, and UsageError for options that exclude each other.
    """
    check(request, search)
    if has_differential_equations(request.model):
        return _prepared_trajectories(request, search)
    if request.events is not None:
        raise UsageError("events are for differential equations", hint="leave out --events")
    if isinstance(request.sigma, Mapping):
        raise UsageError("a model of one response has one standard deviation in a row", hint="--sigma COLUMN")
    with limits.within(*request.limits):
        text, density = texts_of(request.model, request.response, request.offset, request.known, request.table.columns)
        said = (request.sigma, request.trials, request.weights, *request.x_sigma.values())
        columns = [column for column in said if isinstance(column, str)]
        names = classify_names(text, request.table, request.parameters, columns)
        check_used(request, names.needed)
    # A row without a response cannot be fitted, but the model has a value there.
    predictors = names.predictors if density is None else density.predictors(request.table.columns)
    optional = [n for n in names.needed if n not in predictors] if predicts else []
    texts = [name for name in dict.fromkeys((request.by, request.clusters)) if name is not None]
    everything = request.table.taken(names.needed, texts, optional)
    data = everything.complete()
    sigma = _sigma(request, data)
    about = request.parameters, request.known, sigma
    if request.known.is_density:
        question = posed_density(text, density, names, data, *about, request.limits)
    else:
        trials = None if request.trials is None else _numbers(request.trials, data)
        question = posed_fit(text, names, data, *about, trials, request.limits, bool(request.x_sigma))
    if request.clusters is not None:
        question.problem.clusters = data.texts[request.clusters].codes
    deviations = {name: _numbers(said, data) for name, said in request.x_sigma.items()}
    check_predictors(question.problem, deviations)
    every: dict[str | None, Any] = {None: np.arange(len(data.rows))}
    groups = every if request.by is None else data.grouped(request.by)
    derived = read_within(request.derived, question.names, request.limits)
    return Prepared(FitJob(question, deviations, request.profile, search, derived), everything, data, groups)


def _prepared_trajectories(request: FitRequest, search: SearchOptions) -> Prepared:
    # Imported here because few models are differential equations.
    from gradcli.models.fitting.trajectory_fits import posed_trajectories

    with limits.within(*request.limits):
        question, everything, data, groups = posed_trajectories(request)
    derived = read_within(request.derived, question.names, request.limits)
    return Prepared(FitJob(question, {}, request.profile, search, derived), everything, data, groups)


def execute(request: FitRequest, search: SearchOptions, files: FitFiles) -> FitResults:
    """Fit as requested, and write the requested files.

    Raises BindingError for names and data that do not fit together, UsageError for options that exclude each other, and
    EvaluationError where the model has no finite value at the start.
    """
    files.check(request.table.sources)
    ready = prepare(request, search, files.predict is not None)
    fitting, data = ready.fitting, ready.data
    if has_differential_equations(request.model) and any(files[:3]):
        raise UsageError("no files are written for differential equations", hint="gradcli ode writes their solution")
    if request.known.is_density and (files.residuals is not None or files.plot is not None):
        raise UsageError(
            "the rows of a likelihood have no residuals", hint="--predict writes the fitted means of a family"
        )
    if request.known.family == LOG_DENSITY and files.predict is not None:
        raise UsageError("a likelihood predicts nothing", hint="leave out --predict")
    if fitting.question.units is not None and any(files[:3]):
        raise UsageError(
            "no files are written for numbers as large or small as these", hint="give the data in other units"
        )
    found = [run_fit(fitting)] if request.by is None else run_group_fits(fitting, ready.groups, plan_of(fitting))
    write(files, found, [*ready.groups.values()], fitting, request, ready.everything, data)
    fits = [each.fit for each in found]
    if data.left_out:
        left_out = ready.left_out(request.by)
        fits = [replace(fit, left_out=left_out[fit.group]) if fit.group in left_out else fit for fit in fits]
    return FitResults(fits, data.left_out)


def _sigma(request: FitRequest, data: Data) -> Any:
    """The standard deviations of the rows: those that are given, the inverse roots of the weights, or 1.

    Raises BindingError for weights that are not above 0.
    """
    if request.weights is None:
        sigma = request.sigma
        return 1.0 if sigma is None or isinstance(sigma, Mapping) else _numbers(sigma, data)
    weights = np.asarray(_numbers(request.weights, data))
    bad = ~((weights > 0) & np.isfinite(weights))
    if bad.any():
        where = f" in row {int(data.rows[bad.argmax()]) + 1}" if weights.ndim else ""
        raise BindingError(
            f"the weight is {np.atleast_1d(weights)[bad.argmax()]:g}{where}, and weights are above 0",
            hint="leave such rows out, or give a number for all of them",
        )
    return weights**-0.5


def _numbers(said: str | float, data: Data) -> Any:
    """The numbers of a column, or the one number of all rows."""
    return data.columns[said] if isinstance(said, str) else float(said)
