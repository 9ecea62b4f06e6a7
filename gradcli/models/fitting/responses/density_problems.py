"""The problem of a fit whose cost is minus a log density, which is the program of a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.errors import BindingError, GradcliError, UsageError
from gradcli.language.names import scope
from gradcli.models.data import Data
from gradcli.models.fitting.notation.log_densities import Density, check_density_response
from gradcli.models.fitting.notation.model_texts import ModelText
from gradcli.models.fitting.problem.fit_problems import (
    ModelNames,
    Parameters,
    PosedFit,
    check_count,
    check_shape,
    point_of,
    response_of,
)
from gradcli.models.fitting.problem.likelihoods import Assumptions
from gradcli.models.fitting.problem.problems import Problem, row_program
from gradcli.models.fitting.search.estimation import SearchOptions, estimate
from gradcli.models.fitting.statistics.inference import Statistics


class DensityProblem(Problem):
    """A problem whose model is the log density of a row, of the responses of a family or one that the user wrote;
    `density` is None for the latter, which has no response: all of `response` is 0."""

    is_stackable = False
    density: Density | None = None

    def at(self, columns: Mapping[str, Any], count: int, point: Any) -> tuple[Any, Any]:
        """The values of the model of the mean, with their derivatives by all parameters."""
        if self.density is None:
            raise UsageError("a likelihood predicts nothing", hint="leave out --predict")
        run = row_program(self.density.model, self.parameters, 1, *self.limits)
        found = run.run(columns, self._shared(point), rows=count)
        return np.broadcast_to(self._values(found), count), self.stacked(found, self.parameters, count)

    @property
    def predictors(self) -> dict[str, Any]:
        """The columns that the model of the mean reads."""
        reads = scope.free_names(self.model if self.density is None else self.density.model)
        return {name: column for name, column in self.columns.items() if name in reads}

    def begun(self, start: Any, search: SearchOptions) -> Any:
        """A start `[p]` with all numbers, where the model is that of a family: near the fit of a family that needs no
        start. The `start` as it is where there is none."""
        density = self.density
        if density is None or not np.isnan(start).any():
            return start
        mean = [i for i, name in enumerate(self.parameters) if name not in density.parameters]
        own = [self.parameters[i] for i in mean]
        fixed = {name: value for name, value in self.fixed.items() if name not in density.parameters}
        near = Problem(
            density.model,
            self.predictors,
            self.response,
            own,
            Assumptions(density.near),
            sigma=self.sigma if density.near == "poisson" else 1.0,
            fixed=fixed,
            bounds=(self.low[mean], self.high[mean]),
            limits=self.limits,
            places=self.places,
        )
        point = start.copy()
        try:
            if own:
                point[mean] = estimate(near, start[mean], search).point
            with np.errstate(all="ignore"):
                value, _ = near.rows(point[mean])
                begin = density.begin(value, self.response)
        except GradcliError:
            return start
        for name, number in begin.items():
            i = self.parameters.index(name) if name in self.parameters else -1
            if i >= 0 and np.isnan(point[i]):
                point[i] = np.clip(number, self.low[i], self.high[i])
        return point if self._is_possible(point) else start

    def _is_possible(self, point: Any) -> bool:
        value, _ = self.rows(point)
        return bool(np.isfinite(value).all())

    def doubts(self, point: Any) -> list[str]:
        """Warnings about the family's own parameters."""
        if self.density is None:
            return []
        shared = self._shared(point)
        return self.density.doubts({name: shared[name] for name in self.density.parameters})

    def with_deviance(self, found: Statistics, point: Any) -> Statistics:
        """The statistics with the deviance, and R², its part that the model does not leave; as they are for families
        without a deviance."""
        density = self.density
        if density is None:
            return found
        shared = self._shared(point)
        factor = density.deviance_factor({name: shared[name] for name in density.parameters})
        if factor is None:
            return found
        weight = np.broadcast_to(1 / np.square(self.sigma), self.count)
        mean = float((weight * self.response).sum() / weight.sum())
        value, _ = self.at(self.predictors, self.count, point)
        run = row_program(density.of_value, (), 0, *self.limits)
        reads = {n: c for n, c in self.columns.items() if n in scope.free_names(density.of_value)}
        with np.errstate(all="ignore"):
            of_model, of_mean, most = (
                float((weight * run.run({**reads, density.value_name: at}, shared, rows=self.count).value).sum())
                for at in (value, np.full(self.count, mean), self.response)
            )
            share = (most - of_model) / (most - of_mean)
        return found._replace(deviance=np.array([2 * factor * (most - of_model)]), r2=np.array([1 - share]))


def posed_density(
    text: ModelText,
    density: Density | None,
    names: ModelNames,
    data: Data,
    given: Parameters,
    known: Assumptions,
    sigma: Any,
    limits: tuple[int, int],
) -> PosedFit:
    """Build the problem of a log density for some data; `sigma` is the inverse root of the weights of the rows.

    Raises BindingError for too few data, for a response that the family cannot have, and for a start outside its
    bounds.
    """
    free = [name for name in names.parameters if name not in given.fixed]
    if not names.columns:
        raise BindingError("the likelihood reads no column of the data", hint="it is the log density of a row")
    check_count(len(data.rows), data, given, free)
    start, bounds, priors = point_of(given, free)
    response = np.zeros(len(data.rows))
    if density is not None:
        response = response_of(text.response, data, limits)
        check_density_response(density.family, response, text.response_name, data.rows)
    problem = density_problem(
        text.model,
        {name: data.columns[name] for name in scope.free_names(text.model) if name in data.columns},
        response,
        free,
        known,
        sigma=sigma,
        fixed={name: float(given.start[name]) for name in given.fixed},
        priors=priors,
        bounds=bounds,
        limits=limits,
        places=data.rows,
        is_typed=False,
        density=density,
    )
    check_shape(problem, start)
    return PosedFit(problem, names.parameters, start, text.response_name)


def density_problem(*given: Any, density: Density | None, **options: Any) -> DensityProblem:
    """The problem of a log density; the other arguments are those of `Problem`."""
    problem = DensityProblem(*given, **options)
    problem.density = density
    return problem
