"""The problem of a fit whose model is the solution of differential equations at the times of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.errors import DifferentiationError, EvaluationError, GradcliError, NotRecordableError
from gradcli.evaluation.derivative_traces import Trace
from gradcli.evaluation.row_evaluation import keys
from gradcli.functionals.functional_calls import RTOL
from gradcli.language.differential_equations import located
from gradcli.language.syntax.tree import Module
from gradcli.models.fitting.packed_hessians import pairs
from gradcli.models.fitting.problems import Problem, in_row
from gradcli.models.fitting.trajectory_models import TrajectoryText
from gradcli.models.ode.expansions import Expansion, constants, joined
from gradcli.models.ode.row_functions import RowFunctions
from gradcli.models.ode.trajectories import Dose, Trajectories
from gradcli.rows.row_results import RowFailure, RowResults

# The columns of a problem beside those of the data: which response a row is of, the number of its group, and the first
# time of its trajectory, which may be that of a row without a measurement.
RESPONSE, GROUP, BEGIN = "response number", "group number", "first time"

# The relative tolerance of second derivatives, which direct the last steps of a search and tell the curvature.
_RTOL_OF_SECOND = 1e-7
# The relative step of differences of Jacobians.
_STEP = 1e-5


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
        of_lanes = (*self.model.covariates, GROUP, BEGIN)
        names = [name for name in columns if name in of_lanes or name in self.wrt]
        table = np.stack([columns[name] for name in names], axis=1)
        found, which = np.unique(table, axis=0, return_inverse=True)
        for k, numbers in enumerate(found):
            own = dict(zip(names, numbers.tolist()))
            group, begin = int(own.pop(GROUP)), own.pop(BEGIN)
            yield _Lane(np.flatnonzero(which.ravel() == k), group, begin, {**shared, **own})

    def _put(self, lane: _Lane, columns: Mapping[str, Any], value: Any, derivatives: Mapping[str, Any]) -> None:
        """Compute the rows of one trajectory."""
        equations = self.model.text.equations
        solver, functions = self._solver(lane.numbers)
        state_of = {parameter: state for state, parameter in self.model.starts.items()}
        values = {state_of.get(name, name): number for name, number in lane.numbers.items()}
        doses = self.model.doses.get(lane.group, ())
        times, place = np.unique(columns[equations.time][lane.rows], return_inverse=True)
        begin = min([lane.begin, *(dose.time for dose in doses)])
        moments = times if begin == times[0] else np.concatenate([[begin], times])
        with located(self.model.text.source):
            states = solver.at(values, moments, self.order, doses).taken(slice(len(moments) - len(times), None))
            points = solver.along(times, states, values).taken(place.ravel())
            for k, function in enumerate(functions):
                own = columns[RESPONSE][lane.rows] == k
                if own.any():
                    rows = lane.rows[own]
                    found = solver.composed(function, self._with_columns(points.taken(own), columns, rows))
                    self._write(found, rows, value, derivatives)

    def _with_columns(self, points: Expansion, columns: Mapping[str, Any], rows: Any) -> Expansion:
        """The values of names along a solution, followed by those of the columns that only the values of rows read."""
        own = np.array([columns[name][rows] for name in self.model.of_rows]).reshape(-1, len(rows)).T
        return joined([points, constants(own, len(self.wrt), self.order)])

    def _write(self, found: Expansion, rows: Any, value: Any, derivatives: Mapping[str, Any]) -> None:
        value[rows] = found.value[:, 0]
        for key in self.keys:
            i, *rest = map(self.wrt.index, key.split(","))
            derivatives[key][rows] = found.second[:, 0, i, rest[0]] if rest else found.first[:, 0, i]

    def _solver(self, numbers: Mapping[str, float]) -> tuple[Trajectories, list[RowFunctions]]:
        """The trajectories by the parameters and the columns, and the values of rows along them."""
        equations = self.model.text.equations
        state_of = {parameter: state for state, parameter in self.model.starts.items()}
        wrt = [state_of.get(name, name) for name in self.wrt]
        # Those of one column may be estimated too, as a bound name.
        columns = [name for name in self.model.covariates if name not in wrt]
        held = {state_of.get(name, name): number for name, number in numbers.items()}
        shared = {n: v for n, v in held.items() if n not in (*wrt, *columns, *equations.states)}
        key = tuple(sorted(shared.items()))
        if key not in self._solvers:
            rtol = RTOL if self.order < 2 else _RTOL_OF_SECOND
            solver = Trajectories(equations, wrt, shared, rtol=rtol, columns=columns)
            functions = [solver.functions([value], self.model.of_rows) for value in self.model.values]
            self._solvers[key] = solver, functions
        return self._solvers[key]


class TrajectoryProblem(Problem):
    """A problem whose columns are the time, those that the model reads, `RESPONSE`, `GROUP` and `BEGIN`; see `Problem`."""

    # A trajectory costs much more than a row of a formula.
    is_stackable = False
    most_candidate_elements = 2**13

    def __init__(self, trajectories: TrajectoryModel, *given: Any, **options: Any) -> None:
        self.trajectories = trajectories
        super().__init__(trajectories.text.equations.slopes, *given, **options)

    def program(self, wrt: Sequence[str], order: int) -> Any:
        return TrajectoryRows(self.trajectories, wrt, order)

    def row_trace(self, inputs: Mapping[str, Any], wrt: Sequence[str], order: int) -> Trace:
        raise NotRecordableError("a trajectory is no program of a row")

    def shape(self, point: Any) -> tuple[int, ...]:
        return ()

    def sampled(self, most: int) -> Problem:
        # Fewer rows of a trajectory cost as much as all of them.
        return self

    def second(self, point: Any) -> tuple[Any, Any, Any]:
        # The values and first derivatives have the digits of other evaluations.
        value, first = self.rows(point)
        try:
            return value, first, super().second(point)[2]
        except DifferentiationError:
            # They are not known where two switches meet. Those of exact Jacobians are good enough for the last steps of a
            # search, which end where exact first derivatives say so, and for the curvature.
            return value, first, self._second_by_differences(point)

    def _second_by_differences(self, point: Any) -> Any:
        p = len(point)
        found = np.empty((self.count, p, p))
        for k, step in enumerate(_STEP * np.maximum(np.abs(point), _STEP)):
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
