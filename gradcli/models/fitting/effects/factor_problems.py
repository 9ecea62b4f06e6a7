"""The problem of a fit in which parameters have a value for each level of a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.errors import BindingError, GradcliError, NotRecordableError, UsageError
from gradcli.evaluation.derivative_traces import Trace
from gradcli.models.data import Data
from gradcli.models.fitting.problem.batched_matrices import pairs
from gradcli.models.fitting.problem.factors import Factor, base_of, by_level, labels_of
from gradcli.models.fitting.problem.fit_problems import Parameters, PosedFit, check_count, point_of
from gradcli.models.fitting.problem.problems import Problem, row_program
from gradcli.models.fitting.responses.density_problems import DensityProblem
from gradcli.models.fitting.search.estimation import SearchOptions, estimate
from gradcli.rows.row_results import RowResults

# Largest number of second derivatives of rows that are kept one by one, for the curvature.
_MOST_SECOND = 2**21


class FactorProblem(Problem):
    """A problem whose `parameters` are the values of all levels, while the program of a row reads one of each.

    `pooled` is the same problem with a single value for each parameter, whose names are `base`. The `slots` of these are
    indices into the free values followed by the fixed ones and nan: one number, or an array with one for each row.
    """

    is_stackable = False
    is_searched_widely = False
    pooled: Problem
    base: tuple[str, ...]
    slots: Mapping[str, Any]

    @classmethod
    def of(
        cls, pooled: Problem, given: Parameters, names: Sequence[str], factors: Mapping[str, Factor]
    ) -> FactorProblem:
        """The problem with a value for each level of the parameters `names`, with settings by label."""
        problem = cls.__new__(FactorDensityProblem if isinstance(pooled, DensityProblem) else FactorProblem)
        problem.__dict__.update(pooled.__dict__)
        labels = labels_of(names, factors)
        free = [label for label in labels if label not in given.fixed]
        problem.parameters = tuple(free)
        problem.fixed = {label: float(given.start[label]) for label in labels if label in given.fixed}
        _, (problem.low, problem.high), problem.priors = point_of(given, free)
        problem.pooled, problem.base, problem.is_typed = pooled, tuple(names), False
        place = {label: i for i, label in enumerate([*free, *problem.fixed])}
        problem.slots = {name: _slots(name, factors[name], place) if name in factors else place[name] for name in names}
        problem._first = row_program(pooled.model, problem.base, 1, *pooled.limits)
        problem._second = row_program(pooled.model, problem.base, 2, *pooled.limits)
        return problem

    def with_rows(self, rows: Any) -> Problem:
        found = super().with_rows(rows)
        assert isinstance(found, FactorProblem)
        found.slots = {name: slot[rows] if np.ndim(slot) else slot for name, slot in self.slots.items()}
        return found

    def sampled(self, most: int) -> Problem:
        # Fewer rows may lack a level.
        return self

    def row_trace(self, inputs: Mapping[str, Any], wrt: Sequence[str], order: int) -> Trace:
        raise NotRecordableError("the parameters of a row depend on its levels")

    def begun(self, start: Any, search: SearchOptions) -> Any:
        """A start `[p]` with all numbers: where none is given, the estimates of the pooled problem."""
        if not np.isnan(start).any():
            return start
        pooled = self.pooled
        at = dict(zip(self.parameters, start.tolist())) | self.fixed
        first = np.array([_shared_start(name, at) for name in pooled.parameters])
        if isinstance(pooled, DensityProblem):
            first = pooled.begun(first, search)
        point = dict(zip(pooled.parameters, estimate(pooled, first, search).point.tolist()))
        found = [point.get(base_of(label), np.nan) for label in self.parameters]
        return np.clip(np.where(np.isnan(start), found, start), self.low, self.high)

    def shape(self, point: Any) -> tuple[int, ...]:
        return ()

    def _shared(self, point: Any) -> dict[str, float]:
        every = self._every(point)
        return {name: float(every[slot]) for name, slot in self.slots.items() if not np.ndim(slot)}

    def _every(self, point: Any) -> Any:
        return np.concatenate([point, [*self.fixed.values()], [np.nan]])

    def _of_levels(self, point: Any) -> dict[str, Any]:
        every = self._every(point)
        return {name: every[slot] for name, slot in self.slots.items() if np.ndim(slot)}

    def results(self, point: Any) -> RowResults:
        """The values and the derivatives by the parameters of each row, under their own names."""
        return self._first.run({**self.columns, **self._of_levels(point)}, self._shared(point), rows=self.count)

    def rows(self, point: Any) -> tuple[Any, Any]:
        value, derivatives = self.columns_of(point[None])
        return value[0], np.stack([column[0] for column in derivatives]).T

    def at(self, columns: Mapping[str, Any], count: int, point: Any) -> tuple[Any, Any]:
        raise UsageError("parameters of levels predict no other rows", hint="leave out --predict")

    def columns_of(self, points: Any) -> tuple[Any, list[Any]]:
        values, tables = [], []
        for point in points:
            found = self.results(point)
            value, own = self._by_row(found, (1, self.count), self.base)
            values.append(value[0])
            tables.append(self._scattered([column[0] for column in own]))
        return np.stack(values), [*np.stack(tables, axis=1)]

    def _scattered(self, derivatives: Sequence[Any]) -> Any:
        """The derivatives by all free values `[p, n]`, from those by the parameters of each row."""
        p, every = len(self.parameters), np.arange(self.count)
        table = np.zeros((p, self.count))
        for derivative, slot in zip(derivatives, self.slots.values()):
            place = np.broadcast_to(slot, self.count)
            free = place < p
            table[place[free], every[free]] = derivative[free]
        return table

    def hessian_terms(self, point: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
        value, first, second = self._second_of_rows(point)
        p, size = len(self.parameters), len(self.parameters) + len(self.fixed) + 1
        places = [np.broadcast_to(slot, self.count) for slot in self.slots.values()]

        def weighted(factors: Any) -> Any:
            total = np.zeros(size * size)
            for i, j, column in zip(*pairs(len(places)), second):
                total += np.bincount(places[i] * size + places[j], factors * column, size * size)
                if i != j:
                    # The symmetric matrix has an element for each order of two different parameters.
                    total += np.bincount(places[j] * size + places[i], factors * column, size * size)
            return total.reshape(size, size)[:p, :p]

        return value, self._scattered(first).T, weighted

    def _second_of_rows(self, point: Any) -> tuple[Any, list[Any], list[Any]]:
        """The values, and the first and second derivatives by the parameters of each row."""
        columns = {**self.columns, **self._of_levels(point)}
        found = self._second.run(columns, self._shared(point), rows=self.count)
        value, every = self._by_row(found, (1, self.count), self._second.keys)
        flat = [column[0] for column in every]
        return value[0], flat[: len(self.base)], flat[len(self.base) :]

    @property
    def has_second(self) -> bool:
        p = len(self.parameters)
        return self.count * p * (p + 1) // 2 <= _MOST_SECOND

    def second(self, point: Any) -> tuple[Any, Any, Any]:
        value, first, own = self._second_of_rows(point)
        p, every = len(self.parameters), np.arange(self.count)
        second = np.zeros((self.count, p * (p + 1) // 2))
        index = np.zeros((p, p), int)
        index[pairs(p)] = np.arange(p * (p + 1) // 2)
        index = np.maximum(index, index.T)
        places = [np.broadcast_to(slot, self.count) for slot in self.slots.values()]
        for i, j, column in zip(*pairs(len(places)), own):
            free = (places[i] < p) & (places[j] < p)
            second[every[free], index[places[i][free], places[j][free]]] += column[free]
        return value, self._scattered(first).T, second

    def failure(self, point: Any, when: str = "at the start, ") -> GradcliError | None:
        found = self.results(point)
        if not found.failures and np.isfinite(found.value).all():
            return None
        row = found.failures[0].index if found.failures else int((~np.isfinite(found.value)).argmax())
        alone = self.pooled.with_rows(slice(row, row + 1))
        every = self._every(point)
        own = {name: every[slot[row] if np.ndim(slot) else slot] for name, slot in self.slots.items()}
        alone.fixed = {**alone.fixed, **{name: own[name] for name in alone.fixed}}
        return alone.failure(np.array([own[name] for name in alone.parameters]), when)


class FactorDensityProblem(FactorProblem, DensityProblem):
    """The same where the model is a log density."""

    def at(self, columns: Mapping[str, Any], count: int, point: Any) -> tuple[Any, Any]:
        density = self.density
        assert density is not None
        run = row_program(density.model, self.base, 1, *self.limits)
        found = run.run({**columns, **self._of_levels(point)}, self._shared(point), rows=count)
        value, own = self._by_row(found, (1, count), self.base)
        return value[0], self._scattered([column[0] for column in own]).T

    def begun(self, start: Any, search: SearchOptions) -> Any:
        return FactorProblem.begun(self, start, search)


def _slots(name: str, factor: Factor, place: Mapping[str, int]) -> Any:
    # The last place, of a row with an unknown level, is nan.
    table = np.array([place[label] for label in labels_of([name], {name: factor})] + [len(place)])
    return table[factor.codes]


def _shared_start(name: str, at: Mapping[str, float]) -> float:
    """The start of a parameter of the pooled problem: the mean of those of its levels, nan where none has one."""
    own = [value for label, value in at.items() if base_of(label) == name and value == value]
    return float(np.mean(own)) if own else float("nan")


def posed_factors(
    pooled: PosedFit, whole: Parameters, levels: Parameters, factors: Mapping[str, Factor], data: Data
) -> PosedFit:
    """The posed fit with a value for each level, from the one of a single value for each parameter.

    Raises BindingError for too few rows and for levels that the data do not have, and UsageError for numbers that need
    units.
    """
    if pooled.units is not None:
        raise UsageError("numbers as large or small as these have no levels", hint="give the data in other units")
    given = by_level(whole, levels, pooled.names, factors)
    labels = labels_of(pooled.names, factors)
    free = [label for label in labels if label not in given.fixed]
    if not free:
        raise BindingError("the model has no parameters to fit", hint="give fewer of them a fixed value")
    check_count(len(data.rows), data, given, free)
    start, _, _ = point_of(given, free)
    problem = FactorProblem.of(pooled.problem, given, pooled.names, factors)
    return pooled._replace(problem=problem, names=labels, start=start)
