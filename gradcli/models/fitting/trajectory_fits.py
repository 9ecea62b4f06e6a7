"""Builds the problem of a fit of differential equations from a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.errors import BindingError, UsageError, did_you_mean
from gradcli.language.names import scope
from gradcli.language.syntax.derivative_marks import readable
from gradcli.models.data import Data, DataTable
from gradcli.models.fitting.fit_problems import (
    PosedFit,
    check_count,
    check_settings,
    check_sigma,
    observed,
    point_of,
    sigmas_of,
)
from gradcli.models.fitting.fit_requests import FitRequest, refuse
from gradcli.models.fitting.inference import Assumptions
from gradcli.models.fitting.likelihoods import LOG_DENSITY
from gradcli.models.fitting.trajectory_models import (
    ResponseText,
    TrajectoryText,
    log_density,
    names_along,
    read_trajectory_model,
)
from gradcli.models.fitting.trajectory_problems import BEGIN, GROUP, RESPONSE, TrajectoryModel, TrajectoryProblem
from gradcli.models.ode.row_functions import RowFunctions
from gradcli.models.ode.trajectories import Dose
from gradcli.rows.new_tables import unused_name

# Steps of Newton's method from a response to the state at the start, and the relative change at which they end.
_STEPS, _CLOSE = 60, 1e-10


class _Names(NamedTuple):
    """The names in a model: `covariates`, the columns that the equations read; `of_rows`, those that only the values of
    the responses and their standard deviations read; `parameters`; and of states without a value at the start the
    parameters that have it."""

    covariates: tuple[str, ...]
    of_rows: tuple[str, ...]
    parameters: tuple[str, ...]
    starts: Mapping[str, str]


class _Measured(NamedTuple):
    """The measurements of a response: the indices of their rows in the data, their values, standard deviations, and
    warnings."""

    rows: Any
    values: Any
    sigma: Any
    warnings: Sequence[str]


class PosedTrajectories(NamedTuple):
    """A posed fit, and the data and the groups of its rows, of which there is one for each measurement of a response."""

    question: PosedFit
    everything: Data
    data: Data
    groups: Mapping[str | None, Any]


def posed_trajectories(request: FitRequest) -> PosedTrajectories:
    """Read the data, and build the problem.

    Raises BindingError for names and data that do not fit together, and UsageError for options that equations lack.
    """
    text = read_trajectory_model(request.model)
    _check_options(request)
    sigmas = sigmas_of(request.sigma, [response.name for response in text.responses])
    names = _classified(text, request, sigmas)
    known = _assumptions(request, sigmas)
    everything, data = _read(request, text, names, sigmas)
    measured = [_measured(*each, text, data, request) for each in zip(text.responses, sigmas)]
    rows = np.concatenate([each.rows for each in measured])
    values = np.concatenate([each.values for each in measured])
    given = request.parameters
    free = [name for name in names.parameters if name not in given.fixed]
    check_count(len(rows), data, given, free)
    start, bounds, priors = point_of(given, free)
    groups: Mapping[str | None, Any] = {None: np.arange(len(data.rows))}
    groups = groups if request.by is None else data.grouped(request.by)
    columns, programs = _columns(text, names, data, groups), [text.program(each) for each in text.responses]
    used = columns[text.equations.time] == columns[BEGIN]
    used[rows] = True
    columns = {name: column[rows] for name, column in columns.items()}
    columns[RESPONSE] = np.repeat(np.arange(len(measured)), [len(each.rows) for each in measured]).astype(float)
    if known.is_density:
        name = unused_name("measured", {*names.of_rows, *names.covariates, *names.parameters, *text.names})
        programs = [log_density(text, each, str(sigma), name) for each, sigma in zip(text.responses, sigmas)]
        columns[name] = values
        names = names._replace(of_rows=(*names.of_rows, name))
    doses = _doses(request, text, list(groups))
    fixed = {n: float(v) for n, v in given.start.items() if n in text.equations.states or n in given.fixed}
    problem = TrajectoryProblem(
        TrajectoryModel(text, programs, names.starts, names.covariates, names.of_rows, doses),
        columns,
        np.zeros(len(rows)) if known.is_density else values,
        free,
        known,
        sigma=np.concatenate([each.sigma for each in measured]),
        fixed=fixed,
        priors=priors,
        bounds=bounds,
        limits=request.limits,
        places=data.rows[rows],
        is_typed=False,
    )
    for state, parameter in names.starts.items():
        if parameter in free and np.isnan(start[free.index(parameter)]):
            start[free.index(parameter)] = _first_value(text, problem, values, state)
    places = {name: np.flatnonzero(np.isin(rows, own)) for name, own in groups.items()}
    named = ", ".join(each.name for each in text.responses)
    warnings = [warning for each in measured for warning in each.warnings]
    posed = PosedFit(problem, names.parameters, start, named, warnings)
    return PosedTrajectories(posed, everything, data.kept(used), places)


def _read(request: FitRequest, text: TrajectoryText, names: _Names, sigmas: Sequence[str | float]) -> tuple[Data, Data]:
    """The data of the rows that have a time and what the equations read, and of those among them with a text for their
    group. Some have no measurement."""
    needed = [text.equations.time, *names.covariates]
    columns = [name for response in text.responses for name in scope.free_names(response.response)]
    columns += [sigma for sigma in sigmas if isinstance(sigma, str)]
    optional = [name for name in (*columns, *names.of_rows) if name in request.table.columns and name not in needed]
    everything = request.table.taken(
        [*dict.fromkeys([*needed, *optional])], [request.by] if request.by else [], optional
    )
    with_texts = np.ones(len(everything.rows), "bool")
    for words in everything.texts.values():
        with_texts &= words.known
    return everything, everything.kept(with_texts)


def _measured(
    response: ResponseText, sigma: str | float, text: TrajectoryText, data: Data, request: FitRequest
) -> _Measured:
    """The measurements of a response, in the rows in which all of its numbers are known."""
    reads = {*scope.free_names(response.response), *scope.free_names(response.alone(request.model))}
    if isinstance(sigma, str):
        reads |= {sigma} if sigma in data.columns else {*_names_of_sigma(text, sigma)}
    there = np.ones(len(data.rows), "bool")
    for name in reads:
        if name in data.columns:
            there &= np.isfinite(data.columns[name])
    some = data.kept(there)
    deviations = some.columns[sigma] if isinstance(sigma, str) and sigma in some.columns else sigma
    if isinstance(deviations, str):
        deviations = 1.0
    check_sigma(deviations, some.rows)
    known = request.known.family
    found = observed(response.response, response.name, some, known, deviations, None, request.limits)
    return _Measured(np.flatnonzero(there), found.values, np.broadcast_to(found.sigma, len(some.rows)), found.warnings)


def _columns(text: TrajectoryText, names: _Names, data: Data, groups: Mapping[str | None, Any]) -> dict[str, Any]:
    """The columns of a problem for all rows of the data, but for the response."""
    group = np.zeros(len(data.rows))
    for k, rows in enumerate(groups.values()):
        group[rows] = k
    time = data.columns[text.equations.time]
    shared = np.stack([group, *(data.columns[name] for name in names.covariates)], axis=1)
    _, lane = np.unique(shared, axis=0, return_inverse=True)
    first = np.full(lane.max(initial=-1) + 1, np.inf)
    np.minimum.at(first, lane.ravel(), time)
    columns = {name: data.columns[name] for name in (text.equations.time, *names.covariates, *names.of_rows)}
    return {**columns, GROUP: group, BEGIN: first[lane.ravel()]}


def _assumptions(request: FitRequest, sigmas: Sequence[str | float]) -> Assumptions:
    """What is known of the rows: their log density where a standard deviation is an expression."""
    if not any(isinstance(sigma, str) and sigma not in request.table.columns for sigma in sigmas):
        return request.known
    if not request.known.is_least_squares:
        raise UsageError(
            "a standard deviation that is an expression is that of a normal distribution", hint="leave out --loss"
        )
    return request.known._replace(family=LOG_DENSITY)


def _check_options(request: FitRequest) -> None:
    options = {
        "--response": request.response,
        "--x-sigma": request.x_sigma,
        "--offset": request.offset,
        "--trials": request.trials,
    }
    refuse(options, "differential equations")


def _classified(text: TrajectoryText, request: FitRequest, sigmas: Sequence[str | float]) -> _Names:
    equations, table, given = text.equations, request.table, request.parameters
    if equations.time not in table.columns:
        raise BindingError(
            f"the data have no column '{equations.time}' of the times",
            hint=f"say which it is: {equations.time}='column:TITLE'; {_listed(table)}",
        )
    of_equations = [*equations.parameters]
    of_values = [name for each in text.responses for name in names_along(text, each.value)]
    reads = [*of_equations, *of_values]
    for sigma in sigmas:
        if isinstance(sigma, str) and sigma not in table.columns:
            own = _names_of_sigma(text, sigma)
            _check_sigma_names(own, sigma, reads, request)
            of_values += own
    covariates = dict.fromkeys(name for name in of_equations if name in table.columns)
    of_rows = dict.fromkeys(name for name in of_values if name in table.columns and name not in covariates)
    parameters = [
        name
        for name in dict.fromkeys([*of_equations, *of_values])
        if name not in table.columns and (name in given.start or name not in scope.CONSTANTS)
    ]
    starts = {state: f"{readable(state)}(0)" for state in equations.states if state not in given.start}
    parameters += starts.values()
    for response in text.responses:
        for name, read in scope.free_names(response.response).items():
            if name not in table.columns and name not in scope.CONSTANTS:
                hint = did_you_mean(name, table.columns, _listed(table))
                raise BindingError(
                    f"the response '{name}' is no column of the data",
                    hint=hint,
                    span=read.span,
                    source=response.response.source,
                )
    check_settings(given, parameters, table.columns, equations.states)
    if not [name for name in parameters if name not in given.fixed]:
        raise BindingError("the model has no parameters to fit", hint="give fewer of them a fixed value")
    return _Names(tuple(covariates), tuple(of_rows), tuple(dict.fromkeys(parameters)), starts)


def _names_of_sigma(text: TrajectoryText, sigma: str) -> list[str]:
    return names_along(text, text.equations.expression(sigma))


def _check_sigma_names(names: Sequence[str], sigma: str, known: Sequence[str], request: FitRequest) -> None:
    """Raise BindingError for a name in a standard deviation that is no column, no parameter of the model, and has no
    start: it may be a mistyped column."""
    columns = request.table.columns
    for name in names:
        if name not in (*columns, *known, *request.parameters.start, *scope.CONSTANTS):
            hint = did_you_mean(name, columns, f"with a start, {name}=1, it is a parameter")
            raise BindingError(f"--sigma {sigma!r}: the data have no column '{name}'", hint=hint)


def _listed(table: DataTable) -> str:
    return f"the data have {', '.join(table.columns)}" if table.columns else "there are no data"


def _first_value(text: TrajectoryText, problem: TrajectoryProblem, measured: Any, state: str) -> float:
    """The value of a state at the first time, where a response is an expression of this state alone; else 1."""
    time = problem.columns[text.equations.time]
    for k, response in enumerate(text.responses):
        module = response.alone(text.source)
        if {*scope.free_names(module)} - {*scope.CONSTANTS} != {state}:
            continue
        rows = np.flatnonzero(problem.columns[RESPONSE] == k)
        if not len(rows):
            continue
        wanted = float(measured[rows[time[rows].argmin()]])
        function = RowFunctions([module], [state], {})
        for guess in (1.0, max(abs(wanted), 1e-6)):
            found = _root(function, wanted, guess)
            if found is not None:
                return found
    return 1.0


def _root(function: RowFunctions, wanted: float, x: float) -> float | None:
    for _ in range(_STEPS):
        found = function.at(np.array([[x]]), 1)
        slope = float(found.first[0, 0, 0])
        step = (wanted - float(found.value[0, 0])) / slope if slope else np.nan
        if not np.isfinite(step):
            return None
        x += step
        if abs(step) <= _CLOSE * max(1.0, abs(x)):
            return x
    return None


# --- doses


def _doses(request: FitRequest, text: TrajectoryText, groups: Sequence[str | None]) -> dict[int, list[Dose]]:
    """The doses of each group by its number."""
    if request.events is None:
        return {}
    events: DataTable = request.events
    texts = ["state", *([request.by] if request.by else [])]
    found = events.taken(["time", "amount"], texts).complete()
    doses: dict[int, list[Dose]] = {k: [] for k in range(len(groups))}
    states = found.texts["state"].texts()
    whose = found.texts[request.by].texts() if request.by else [None] * len(states)
    for time, amount, state, group in zip(found.columns["time"], found.columns["amount"], states, whose):
        if state not in text.equations.states:
            known = [*map(readable, text.equations.states)]
            raise BindingError(
                f"a dose is given to '{state}', which is no state",
                hint=did_you_mean(str(state), known, f"the states are {', '.join(known)}"),
            )
        if group in groups:
            doses[groups.index(group)].append(Dose(float(time), str(state), float(amount)))
    return doses
