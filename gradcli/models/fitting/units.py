"""Units in which the numbers of a fit are of moderate size, so that their squares are within the range of floats."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradcli.language.syntax import tree
from gradcli.models.fitting.magnitudes import magnitudes
from gradcli.models.fitting.model_texts import rewritten
from gradcli.models.fitting.problems import Problem

# Powers of ten that a sum of squares can have: the squares of so large numbers, and of their products, are floats.
_MODERATE = 60
# The largest powers of two that are taken.
_LARGEST = 1000


class Units(NamedTuple):
    """Powers of two: what the responses, their `sigma` and the p free parameters are divided by."""

    response: float
    sigma: float
    parameters: Any

    @property
    def ratio(self) -> Any:
        """What a residual over its `sigma` is to be multiplied by."""
        return np.float64(self.response) / self.sigma


def units_of(problem: Problem, start: Any, known_deviations: bool) -> Units | None:
    """Those that a problem takes, as its data suggest, whose program can be recorded at `start` `[p]`, nan where there is
    none; None where they are of moderate size. With `known_deviations` residuals keep their size over `sigma`."""
    data = [_logarithm(numbers) for numbers in (problem.response, problem.sigma, *problem.columns.values())]
    if max(map(abs, data)) <= _MODERATE or not isinstance(problem.model.body[-1], tree.Evaluate):
        return None
    likely = magnitudes(problem, np.where(np.isnan(start), 1.0, start).tolist()).logarithms
    response, sigma = map(_power, data[:2]) if problem.known.family == "gaussian" else (1.0, 1.0)
    if known_deviations:
        sigma = response
    return Units(response, sigma, np.array([_power(logarithm) for logarithm in likely]))


def _logarithm(numbers: Any) -> float:
    """The decimal logarithm of the largest of some numbers, 0 where all are 0."""
    largest = float(np.abs(numbers).max())
    return float(np.log10(largest)) if 0 < largest < np.inf else 0.0


def _power(logarithm: float) -> float:
    """The power of two next to a size that has a decimal logarithm."""
    return float(2.0 ** np.clip(np.round(logarithm / np.log10(2)), -_LARGEST, _LARGEST))


def in_units(problem: Problem, units: Units) -> Problem:
    """The same problem for parameters, responses and standard deviations in units."""
    known = problem.known
    if known.loss_scale is not None:
        known = known._replace(loss_scale=float(known.loss_scale / units.ratio))
    return Problem(
        _model_in_units(problem, units),
        problem.columns,
        problem.response / units.response,
        problem.parameters,
        known,
        sigma=problem.sigma / units.sigma,
        fixed=problem.fixed,
        priors=(problem.priors[0] / units.parameters, problem.priors[1] / units.parameters),
        bounds=(problem.low / units.parameters, problem.high / units.parameters),
        limits=problem.limits,
        places=problem.places,
        # The decimals that were typed are not these.
        is_typed=False,
    )


def _model_in_units(problem: Problem, units: Units) -> tree.Module:
    """The program of a model, of the parameters in their units, divided by that of the responses."""
    own = [f"{name} = {name}*{unit!r}" for name, unit in zip(problem.parameters, units.parameters.tolist())]
    return rewritten(problem.model, [f"{{value}}/{units.response!r}"], own)
