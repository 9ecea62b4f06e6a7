"""Fits of differential equations: the model with its lines `column ~ expression of the states`, and its problem,
whose model is the solution at the times of the rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from gradcli.errors import (
    BindingError,
    DifferentiationError,
    EvaluationError,
    GradcliError,
    NotRecordableError,
    ProgramSyntaxError,
    Span,
    UsageError,
    did_you_mean,
)
from gradcli.evaluation.derivative_traces import Trace
from gradcli.evaluation.row_evaluation import keys
from gradcli.functionals.functional_calls import RTOL
from gradcli.language.differential_equations import DifferentialEquations, located, read_differential_equations
from gradcli.language.names import scope
from gradcli.language.names.resolution import resolve
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.language.syntax.derivative_marks import readable
from gradcli.language.syntax.tree import Module
from gradcli.models.data import Data, DataTable
from gradcli.models.fitting.fit_requests import FitRequest, refuse
from gradcli.models.fitting.notation.log_densities import HALF_LOG_TWO_PI
from gradcli.models.fitting.notation.model_texts import TILDE
from gradcli.models.fitting.problem.batched_matrices import pairs
from gradcli.models.fitting.problem.fit_problems import (
    PosedFit,
    check_count,
    check_settings,
    check_sigma,
    observed,
    point_of,
    sigmas_of,
)
from gradcli.models.fitting.problem.likelihoods import LOG_DENSITY, Assumptions
from gradcli.models.fitting.problem.problems import Problem, in_row
from gradcli.models.ode.row_functions import RowFunctions, ValueExpansion, constants, joined
from gradcli.models.ode.trajectories import Dose, Trajectories
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.new_tables import unused_name
from gradcli.rows.row_results import RowFailure, RowResults

# Steps of Newton's method from a response to the state at the start, and the relative change at which they end.
_STEPS, _CLOSE = 60, 1e-10
# The columns of a problem beside those of the data: which response a row is of, the number of its group, and the first
# time of its trajectory, which may be that of a row without a measurement.
_RESPONSE, _GROUP, _BEGIN = "response number", "group number", "first time"

# The relative tolerance of second derivatives, which direct the last steps of a search and tell the curvature.
_RTOL_OF_SECOND = 1e-7
# The step of differences of Jacobians, as a share of a parameter or, for one near 0, of the change by which it changes
# the values as much as they are large, at most of 1.
_STEP = 1e-5
_STATEMENT = re.compile(r"[^;\n]+")


class _Names(NamedTuple):
    """The names in a model: `covariates`, the columns that the equations read; `of_rows`, those that only the values of
    the responses and their standard deviations read; `parameters`; and `starts`, which maps each state without a given
    start to the parameter that is its value at the start."""

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
    """A posed fit, whose problem has a row for each measurement of a response.

    `everything` has the rows of the data with a time and all that the equations read, `data` those of them that the fit
    uses; `groups` has the indices of the measurements of each group.
    """

    question: PosedFit
    everything: Data
    data: Data
    groups: Mapping[str | None, Any]


def posed_trajectories(request: FitRequest) -> PosedTrajectories:
    """Read the data, and build the problem.

    Raises BindingError for names and data that do not fit together, and UsageError for options that equations lack.
    """
    text = _read_trajectory_model(request.model)
    _check_options(request)
    sigmas = sigmas_of(request.sigma, [response.name for response in text.responses])
    names = _classify_names(text, request, sigmas)
    assumptions = _assumptions(request, sigmas)
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
    used = columns[text.equations.time] == columns[_BEGIN]
    used[rows] = True
    columns = {name: column[rows] for name, column in columns.items()}
    columns[_RESPONSE] = np.repeat(np.arange(len(measured)), [len(each.rows) for each in measured]).astype(float)
    if assumptions.is_density:
        name = unused_name("measured", {*names.of_rows, *names.covariates, *names.parameters, *text.names})
        programs = [_log_density(text, each, str(sigma), name) for each, sigma in zip(text.responses, sigmas)]
        columns[name] = values
        names = names._replace(of_rows=(*names.of_rows, name))
    doses = _doses(request, text, list(groups))
    fixed = {n: float(v) for n, v in given.start.items() if n in text.equations.states or n in given.fixed}
    problem = TrajectoryProblem(
        TrajectoryModel(text, programs, names.starts, names.covariates, names.of_rows, doses),
        columns,
        np.zeros(len(rows)) if assumptions.is_density else values,
        free,
        assumptions,
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
    places = {name: np.flatnonzero(np.isin(rows, indices)) for name, indices in groups.items()}
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
    family = request.known.family
    found = observed(response.response, response.name, some, family, deviations, None, request.limits)
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
    return {**columns, _GROUP: group, _BEGIN: first[lane.ravel()]}


def _assumptions(request: FitRequest, sigmas: Sequence[str | float]) -> Assumptions:
    """The assumptions about the rows: their log density where a standard deviation is an expression."""
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


def _classify_names(text: TrajectoryText, request: FitRequest, sigmas: Sequence[str | float]) -> _Names:
    """Sort the names of a model into columns and parameters.

    Raises BindingError for a missing column of the times or of a response, for an unknown name in a standard deviation,
    for settings that `check_settings` refuses, and where there is no parameter to fit.
    """
    equations, table, given = text.equations, request.table, request.parameters
    if equations.time not in table.columns:
        raise BindingError(
            f"the data have no column '{equations.time}' of the times",
            hint=f"say which it is: {equations.time}='column:TITLE'; {_columns_hint(table)}",
        )
    of_equations = [*equations.parameters]
    of_values = [name for each in text.responses for name in _names_along(text, each.value)]
    reads = [*of_equations, *of_values]
    for sigma in sigmas:
        if isinstance(sigma, str) and sigma not in table.columns:
            of_sigma = _names_of_sigma(text, sigma)
            _check_sigma_names(of_sigma, sigma, reads, request)
            of_values += of_sigma
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
                hint = did_you_mean(name, table.columns, _columns_hint(table))
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
    return _names_along(text, text.equations.expression(sigma))


def _check_sigma_names(names: Sequence[str], sigma: str, of_model: Sequence[str], request: FitRequest) -> None:
    """Raise BindingError for a name in a standard deviation that is no column, no parameter of the model, and has no
    start: it may be a mistyped column."""
    columns = request.table.columns
    for name in names:
        if name not in (*columns, *of_model, *request.parameters.start, *scope.CONSTANTS):
            hint = did_you_mean(name, columns, f"with a start, {name}=1, it is a parameter")
            raise BindingError(f"--sigma {sigma!r}: the data have no column '{name}'", hint=hint)


def _columns_hint(table: DataTable) -> str:
    """A hint that lists the columns of the data."""
    return f"the data have {', '.join(table.columns)}" if table.columns else "there are no data"


def _first_value(text: TrajectoryText, problem: TrajectoryProblem, measured: Any, state: str) -> float:
    """The value of a state at the first time, where a response is an expression of this state alone; else 1."""
    time = problem.columns[text.equations.time]
    for k, response in enumerate(text.responses):
        module = response.alone(text.source)
        if {*scope.free_names(module)} - {*scope.CONSTANTS} != {state}:
            continue
        rows = np.flatnonzero(problem.columns[_RESPONSE] == k)
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
            known_states = [*map(readable, text.equations.states)]
            raise BindingError(
                f"a dose is given to '{state}', which is no state",
                hint=did_you_mean(str(state), known_states, f"the states are {', '.join(known_states)}"),
            )
        if group in groups:
            doses[groups.index(group)].append(Dose(float(time), str(state), float(amount)))
    return doses


class TrajectoryModel(NamedTuple):
    """A model of differential equations.

    `values` are the programs of the value of a row of each response. `starts` names the parameter of each state that has
    no value at the start; `covariates` are the columns that the equations read, `of_rows` those that only the values
    read; and `doses` are those of each group.
    """

    text: TrajectoryText
    values: Sequence[Module]
    starts: Mapping[str, str]
    covariates: Sequence[str]
    of_rows: Sequence[str]
    doses: Mapping[int, Sequence[Dose]]


class _Lane(NamedTuple):
    """Rows that lie on one trajectory, which begins at a time: their indices, and the numbers that they share."""

    rows: Any
    group: int
    begin: float
    numbers: Mapping[str, float]


class TrajectoryRows:
    """Computes the rows of a model, with derivatives by `wrt` up to an order, as a `RowProgram` does."""

    def __init__(self, model: TrajectoryModel, wrt: Sequence[str], order: int) -> None:
        self.model = model
        self.wrt = tuple(wrt)
        self.order = order
        self.keys = keys(self.wrt, order)
        self._state_of = {parameter: state for state, parameter in model.starts.items()}
        self._solvers: dict[Any, tuple[Trajectories, list[RowFunctions]]] = {}

    def run(self, columns: Mapping[str, Any], shared: Mapping[str, float], *, rows: int) -> RowResults:
        """The values of rows, and their derivatives; nan where a trajectory fails."""
        value = np.full(rows, np.nan)
        derivatives = {key: np.full(rows, np.nan) for key in self.keys}
        failures = []
        for lane in self._lanes(columns, shared, rows):
            try:
                self._put(lane, columns, value, derivatives)
            except EvaluationError as error:
                failures.append(RowFailure(int(lane.rows[0]), error))
        return RowResults(value, derivatives, failures)

    def _lanes(self, columns: Mapping[str, Any], shared: Mapping[str, float], rows: int) -> Iterator[_Lane]:
        of_lanes = (*self.model.covariates, _GROUP, _BEGIN)
        names = [name for name in columns if name in of_lanes or name in self.wrt]
        table = np.stack([columns[name] for name in names], axis=1)
        found, which = np.unique(table, axis=0, return_inverse=True)
        for k, numbers in enumerate(found):
            of_lane = dict(zip(names, numbers.tolist()))
            group, begin = int(of_lane.pop(_GROUP)), of_lane.pop(_BEGIN)
            yield _Lane(np.flatnonzero(which.ravel() == k), group, begin, {**shared, **of_lane})

    def _put(self, lane: _Lane, columns: Mapping[str, Any], value: Any, derivatives: Mapping[str, Any]) -> None:
        """Compute the rows of one trajectory."""
        equations = self.model.text.equations
        solver, functions = self._solver(lane.numbers)
        values = {self._state_of.get(name, name): number for name, number in lane.numbers.items()}
        doses = self.model.doses.get(lane.group, ())
        times, place = np.unique(columns[equations.time][lane.rows], return_inverse=True)
        begin = min([lane.begin, *(dose.time for dose in doses)])
        moments = times if begin == times[0] else np.concatenate([[begin], times])
        with located(self.model.text.source):
            states = solver.at(values, moments, self.order, doses).taken(slice(len(moments) - len(times), None))
            points = solver.along(times, states, values).taken(place.ravel())
            for k, function in enumerate(functions):
                is_of_response = columns[_RESPONSE][lane.rows] == k
                if is_of_response.any():
                    rows = lane.rows[is_of_response]
                    found = solver.composed(function, self._with_columns(points.taken(is_of_response), columns, rows))
                    self._write(found, rows, value, derivatives)

    def _with_columns(self, points: ValueExpansion, columns: Mapping[str, Any], rows: Any) -> ValueExpansion:
        """The values of names along a solution, followed by those of the columns that only the values of rows read."""
        numbers = np.array([columns[name][rows] for name in self.model.of_rows]).reshape(-1, len(rows)).T
        return joined([points, constants(numbers, len(self.wrt), self.order)])

    def _write(self, found: ValueExpansion, rows: Any, value: Any, derivatives: Mapping[str, Any]) -> None:
        value[rows] = found.value[:, 0]
        for key in self.keys:
            i, *rest = map(self.wrt.index, key.split(","))
            derivatives[key][rows] = found.second[:, 0, i, rest[0]] if rest else found.first[:, 0, i]

    def _solver(self, numbers: Mapping[str, float]) -> tuple[Trajectories, list[RowFunctions]]:
        """The solver of the equations and the functions of the responses, made once for each set of the numbers that
        are neither columns nor in `wrt`."""
        equations = self.model.text.equations
        wrt = [self._state_of.get(name, name) for name in self.wrt]
        # A column may be in `wrt`, too.
        columns = [name for name in self.model.covariates if name not in wrt]
        held = {self._state_of.get(name, name): number for name, number in numbers.items()}
        shared = {n: v for n, v in held.items() if n not in (*wrt, *columns, *equations.states)}
        key = tuple(sorted(shared.items()))
        if key not in self._solvers:
            rtol = RTOL if self.order < 2 else _RTOL_OF_SECOND
            solver = Trajectories(equations, wrt, shared, rtol=rtol, columns=columns)
            functions = [solver.functions([value], self.model.of_rows) for value in self.model.values]
            self._solvers[key] = solver, functions
        return self._solvers[key]


class TrajectoryProblem(Problem):
    """A problem whose columns are the time, those that the model reads, and those for the number of the response, the
    number of the group and the first time of the trajectory; see `Problem`."""

    # A trajectory costs much more than a row of a formula.
    is_stackable = False
    most_candidate_elements = 2**13

    def __init__(self, trajectories: TrajectoryModel, *given: Any, **options: Any) -> None:
        self.trajectories = trajectories
        super().__init__(trajectories.text.equations.slopes, *given, **options)

    def program(self, wrt: Sequence[str], order: int) -> Any:
        return TrajectoryRows(self.trajectories, wrt, order)

    def row_trace(self, inputs: Mapping[str, Any], wrt: Sequence[str], order: int) -> Trace:
        """Raises NotRecordableError: a trajectory is no program of one row."""
        raise NotRecordableError("a trajectory is no program of a row")

    def shape(self, point: Any) -> tuple[int, ...]:
        """The shape of a number, as every response is one."""
        return ()

    def sampled(self, most: int) -> Problem:
        """The problem itself, as fewer rows of a trajectory cost as much as all of them."""
        return self

    def second(self, point: Any) -> tuple[Any, Any, Any]:
        """As for `Problem`; the second derivatives are differences where two switches meet."""
        # The values and first derivatives have the digits of other evaluations.
        value, first = self.rows(point)
        try:
            return value, first, super().second(point)[2]
        except DifferentiationError:
            # They are not known where two switches meet. Those of exact Jacobians are good enough for the last steps of a
            # search, which end where exact first derivatives say so, and for the curvature.
            return value, first, self._second_by_differences(point, value, first)

    def _second_by_differences(self, point: Any, value: Any, first: Any) -> Any:
        """The second derivatives `[n, k]` of the rows, as central differences of the first ones."""
        p = len(point)
        found = np.empty((self.count, p, p))
        slopes = np.linalg.norm(first, axis=0)
        changes = np.linalg.norm(value) / np.where(slopes > 0, slopes, np.inf)
        changes = np.where(changes > 0, np.minimum(changes, 1.0), 1.0)
        for k, step in enumerate(_STEP * np.maximum(np.abs(point), changes)):
            low, high = (self.rows(point + sign * step * np.eye(p)[k])[1] for sign in (-1, 1))
            found[:, :, k] = (high - low) / (2 * step)
        i, j = pairs(p)
        return (found[:, i, j] + found[:, j, i]) / 2

    def failure(self, point: Any, when: str = "at the start, ") -> GradcliError | None:
        found = self.results(point)
        if found.failures:
            failed = found.failures[0]
            return in_row(when, self.places[failed.index], failed.error)
        if np.isfinite(found.value).all() and all(np.isfinite(d).all() for d in found.derivatives.values()):
            return None
        row = int((~np.isfinite(found.value)).argmax())
        error = EvaluationError("the model is not finite", hint="give other start values, or bounds")
        return in_row(when, self.places[row], error)


class ResponseText(NamedTuple):
    """A response: the program of its columns, and the expression of the states that it is compared with."""

    response: tree.Module
    value: tree.Expression

    @property
    def name(self) -> str:
        """The text to the left of `~`, which may be an expression of columns."""
        return self.response.source

    def alone(self, source: str) -> tree.Module:
        """The program of the value without the equations; `source` is the text of the model."""
        return _program_of(self.value, source)


class TrajectoryText(NamedTuple):
    """A model of differential equations with its responses."""

    source: str
    equations: DifferentialEquations
    responses: Sequence[ResponseText]

    def program(self, response: ResponseText) -> tree.Module:
        """The program of the value of a response along a solution."""
        return self.equations.program(response.value)

    @property
    def names(self) -> set[str]:
        """The names that the equations give a value, and those of the states and the time."""
        return {*self.equations.states, self.equations.time, *resolve(self.equations.slopes).bound}


def _read_trajectory_model(source: str) -> TrajectoryText:
    """Read the text of a model.

    Raises ProgramSyntaxError for invalid equations, and UsageError where there is no response.
    """
    lines: list[tuple[int, int, str]] = []
    text = source
    for statement in _STATEMENT.finditer(source):
        tilde = TILDE.search(source, *statement.span())
        if tilde is None:
            continue
        # Blanks in its place keep the places of the equations.
        text = text[: statement.start()] + " " * len(statement[0]) + text[statement.end() :]
        lines.append((tilde.end(), statement.end(), source[statement.start() : tilde.end() - 1].strip()))
        if not source[tilde.end() : statement.end()].strip():
            span = Span(tilde.end() - 1, tilde.end())
            raise ProgramSyntaxError("there is no model behind '~'", source=source, span=span)
    equations = read_differential_equations(text)
    if not lines:
        state = equations.states[0]
        raise UsageError(
            "the equations do not say what the data are of",
            hint=f"add a line for each column that is measured: column ~ {state}",
        )
    responses = []
    for behind, end, response in lines:
        with located(source):
            value = equations.expression(" " * behind + source[behind:end])
        responses.append(ResponseText(parse_charged(response), value))
    return TrajectoryText(source, equations, responses)


def _names_along(model: TrajectoryText, value: tree.Expression) -> list[str]:
    """The names that an expression of a solution reads, but not the states, the time and what the equations define."""
    return [name for name in scope.free_names(_program_of(value, model.source)) if name not in model.names]


def _program_of(value: tree.Expression, source: str) -> tree.Module:
    """The program of an expression alone, without the equations; `source` is the text of the model."""
    return tree.Module(value.span, source, (tree.Evaluate(value.span, value),))


def _log_density(model: TrajectoryText, response: ResponseText, deviation: str, measured: str) -> tree.Module:
    """The program of the log density of a response, whose distribution is normal with a standard deviation that is an
    expression of a solution; `measured` is the name of the column of what was measured."""
    found = model.equations.with_expression(deviation)
    *before, last = found.body
    assert isinstance(last, tree.Evaluate)
    density = _normal_log_density(response.value, last.value, measured)
    return tree.Module(found.span, f"{model.source}\n{deviation}", (*before, tree.Evaluate(density.span, density)))


def _normal_log_density(value: tree.Expression, deviation: tree.Expression, measured: str) -> tree.Expression:
    """The expression -log(sqrt(2*pi)) - log(deviation) - ((measured - value)/deviation)**2/2."""
    span = deviation.span

    def of(operator: Literal["-", "*", "/", "**"], left: tree.Expression, right: tree.Expression) -> tree.Expression:
        return tree.Binary(span, operator, span, left, right)

    def number(x: float) -> tree.Expression:
        return tree.Number(span, x, repr(x))

    off = of("/", of("-", tree.Name(span, measured, ""), value), deviation)
    square = of("*", number(0.5), of("**", off, number(2.0)))
    size = tree.Call(span, "log", span, None, (deviation,), (), "")
    return of("-", of("-", number(-HALF_LOG_TWO_PI), size), square)
