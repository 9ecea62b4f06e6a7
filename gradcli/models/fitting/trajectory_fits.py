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
    Observed,
    PosedFit,
    check_count,
    check_settings,
    check_sigma,
    observed,
    point_of,
)
from gradcli.models.fitting.fit_requests import FitRequest
from gradcli.models.fitting.trajectory_models import ResponseText, TrajectoryText, names_read, read_trajectory_model
from gradcli.models.fitting.trajectory_problems import GROUP, RESPONSE, TrajectoryModel, TrajectoryProblem
from gradcli.models.ode.row_functions import RowFunctions
from gradcli.models.ode.trajectories import Dose

# Steps of Newton's method from a response to the state at the start, and the relative change at which they end.
_STEPS, _CLOSE = 60, 1e-10


class _Names(NamedTuple):
    """The names in a model: `covariates`, the columns that the equations read; `columns`, all columns that are needed;
    `parameters`; and of states without a value at the start the parameters that have it."""

    covariates: tuple[str, ...]
    columns: tuple[str, ...]
    parameters: tuple[str, ...]
    starts: Mapping[str, str]


class PosedTrajectories(NamedTuple):
    """A posed fit, and the data and the groups of its rows, of which there is one for each response."""

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
    names = _classified(text, request)
    sigmas = _sigmas(request, text)
    needed = [*names.columns, *(sigma for sigma in sigmas if isinstance(sigma, str))]
    everything = request.table.taken([*dict.fromkeys(needed)], [request.by] if request.by else [])
    data = everything.complete()
    n, m = len(data.rows), len(text.responses)
    given = request.parameters
    free = [name for name in names.parameters if name not in given.fixed]
    check_count(n * m, data, given, free)
    start, bounds, priors = point_of(given, free)
    seen = [_observed(*each, data, request) for each in zip(text.responses, sigmas)]
    groups: Mapping[str | None, Any] = {None: np.arange(n)} if request.by is None else data.grouped(request.by)
    group = np.zeros(n)
    for k, rows in enumerate(groups.values()):
        group[rows] = k
    columns = {name: np.tile(data.columns[name], m) for name in (text.equations.time, *names.covariates)}
    columns |= {RESPONSE: np.repeat(np.arange(m), n).astype(float), GROUP: np.tile(group, m)}
    model = TrajectoryModel(text, names.starts, names.covariates, _doses(request, text, list(groups)))
    fixed = {n: float(v) for n, v in given.start.items() if n in text.equations.states or n in given.fixed}
    problem = TrajectoryProblem(
        model,
        columns,
        np.concatenate([each.values for each in seen]),
        free,
        request.known,
        sigma=np.concatenate([np.broadcast_to(each.sigma, n) for each in seen]),
        fixed=fixed,
        priors=priors,
        bounds=bounds,
        limits=request.limits,
        places=np.tile(data.rows, m),
        is_typed=False,
    )
    for state, parameter in names.starts.items():
        if parameter in free and np.isnan(start[free.index(parameter)]):
            start[free.index(parameter)] = _first_value(text, problem, state)
    stacked = {name: np.concatenate([rows + k * n for k in range(m)]) for name, rows in groups.items()}
    named = ", ".join(each.name for each in text.responses)
    warnings = [warning for each in seen for warning in each.warnings]
    return PosedTrajectories(PosedFit(problem, names.parameters, start, named, warnings), everything, data, stacked)


def _observed(response: ResponseText, sigma: str | float, data: Data, request: FitRequest) -> Observed:
    deviations = data.columns[sigma] if isinstance(sigma, str) else sigma
    check_sigma(deviations, data.rows)
    return observed(response.response, response.name, data, request.known.family, deviations, None, request.limits)


def _sigmas(request: FitRequest, text: TrajectoryText) -> list[str | float]:
    """The standard deviations of each response, columns or numbers. Raises BindingError for other names."""
    said = request.sigma
    if not isinstance(said, Mapping):
        return [1.0 if said is None else said] * len(text.responses)
    names = [response.name for response in text.responses]
    for name in said:
        if name not in names:
            hint = did_you_mean(name, names, f"the responses are {', '.join(names)}")
            raise BindingError(f"--sigma names '{name}', which is no response", hint=hint)
    missing = next((name for name in names if name not in said), None)
    if missing is not None:
        raise BindingError(f"--sigma names other responses, and not '{missing}'", hint=f"{missing}=1")
    return [said[name] for name in names]


def _check_options(request: FitRequest) -> None:
    for option, said in (
        ("--response", request.response),
        ("--x-sigma", request.x_sigma),
        ("--offset", request.offset),
        ("--trials", request.trials),
    ):
        if said:
            raise UsageError(f"{option} is not for differential equations", hint="leave it out")


def _classified(text: TrajectoryText, request: FitRequest) -> _Names:
    equations, table, given = text.equations, request.table, request.parameters
    if equations.time not in table.columns:
        raise BindingError(
            f"the data have no column '{equations.time}' of the times",
            hint=f"say which it is: {equations.time}='column:TITLE'; {_listed(table)}",
        )
    covariates, parameters = [], []
    for name in names_read(text):
        if name in table.columns:
            covariates.append(name)
        elif name in given.start or name not in scope.CONSTANTS:
            parameters.append(name)
    starts = {state: f"{readable(state)}(0)" for state in equations.states if state not in given.start}
    parameters += starts.values()
    columns = [equations.time, *covariates]
    for response in text.responses:
        for name, read in scope.free_names(response.response).items():
            if name in table.columns:
                columns.append(name)
            elif name not in scope.CONSTANTS:
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
    return _Names(tuple(covariates), tuple(dict.fromkeys(columns)), tuple(dict.fromkeys(parameters)), starts)


def _listed(table: DataTable) -> str:
    return f"the data have {', '.join(table.columns)}" if table.columns else "there are no data"


def _first_value(text: TrajectoryText, problem: TrajectoryProblem, state: str) -> float:
    """The value of a state at the first time, where a response is an expression of this state alone; else 1."""
    time = problem.columns[text.equations.time]
    for k, response in enumerate(text.responses):
        module = response.alone(text.source)
        if {*scope.free_names(module)} - {*scope.CONSTANTS} != {state}:
            continue
        rows = np.flatnonzero(problem.columns[RESPONSE] == k)
        wanted = float(problem.response[rows[time[rows].argmin()]])
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
