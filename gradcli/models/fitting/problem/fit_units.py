"""Scales a fit to units in which its numbers are of moderate size, so that squares of them do not overflow or
underflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.language.syntax import tree
from gradcli.models.fitting.notation.model_texts import rewritten
from gradcli.models.fitting.problem.magnitudes import magnitudes
from gradcli.models.fitting.problem.problems import Problem
from gradcli.named_tuples import NamedTuple

# Largest decimal exponent of numbers that need no units: squares of them, and of their products, are within the range
# of floats.
_MODERATE = 60
# Largest binary exponent of a unit.
_LARGEST = 1000


class Scaling(NamedTuple):
    """Powers of two by which the responses, their `sigma` and the p free parameters are divided."""

    response: float
    sigma: float
    parameters: Any

    @property
    def ratio(self) -> Any:
        """The factor of a residual over its `sigma`, from that in units to that without."""
        return np.float64(self.response) / self.sigma


def units_of(problem: Problem, start: Any, known_deviations: bool) -> Scaling | None:
    """The units for a problem, as its data suggest; None where its numbers are of moderate size.

    `start` `[p]`, nan where no value is given, is where the program can be recorded. With `known_deviations` residuals
    keep their size relative to `sigma`.
    """
    data = [_logarithm(numbers) for numbers in (problem.response, problem.sigma, *problem.columns.values())]
    if max(map(abs, data)) <= _MODERATE or not isinstance(problem.model.body[-1], tree.Evaluate):
        return None
    likely = magnitudes(problem, np.where(np.isnan(start), 1.0, start).tolist()).logarithms
    response, sigma = map(_power, data[:2]) if problem.known.family == "gaussian" else (1.0, 1.0)
    if known_deviations:
        sigma = response
    return Scaling(response, sigma, np.array([_power(logarithm) for logarithm in likely]))


def _logarithm(numbers: Any) -> float:
    """The decimal logarithm of the largest absolute value, 0 where all numbers are 0."""
    largest = float(np.abs(numbers).max())
    return float(np.log10(largest)) if 0 < largest < np.inf else 0.0


def _power(logarithm: float) -> float:
    """The power of two nearest to 10**logarithm."""
    return float(2.0 ** np.clip(np.round(logarithm / np.log10(2)), -_LARGEST, _LARGEST))


def in_units(problem: Problem, units: Scaling) -> Problem:
    """The same problem with its parameters, responses and standard deviations in these units."""
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
        # Scaled responses are not the decimals that the user wrote.
        is_typed=False,
    )


def _model_in_units(problem: Problem, units: Scaling) -> tree.Module:
    """The program of the model for parameters in their units, with the value divided by the unit of the responses."""
    own = [f"{name} = {name}*{unit!r}" for name, unit in zip(problem.parameters, units.parameters.tolist())]
    return rewritten(problem.model, [f"{{value}}/{units.response!r}"], own)
