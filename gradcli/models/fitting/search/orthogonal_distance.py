"""Fits with errors in the predictors: orthogonal distance regression by odrpack, refined to full precision with exact
second derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.errors import BackendError, BindingError, did_you_mean
from gradcli.install_command import install_command
from gradcli.models.fitting.problem.batched_matrices import unpacked
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.search.convergence import largest_offset, relative_offset, root_mean_squares, terms
from gradcli.named_tuples import NamedTuple

# Limits of odrpack: iterations, and the relative changes of the sum of squares and of the parameters at which it ends.
_MAX_ODRPACK_ITERATIONS, _TOLERANCE = 500, 1e-14
# Largest number of Newton steps; odrpack leaves two or three to do.
_MAX_NEWTON_STEPS = 20


class DistanceFit(NamedTuple):
    """The end of an orthogonal distance regression: the parameters `point` `[p]`, which of them are `free` (not held by
    a bound), the `reason` why it is not known to be a minimum, None where it is, and the numbers of iterations and
    evaluations.

    `value`, `first` and `sigma` are those of an ordinary fit with the same residuals, information and sum of squares:
    the model's values `[n]` on the tangents at the nearest points, its derivatives `[n, p]` there, and the standard
    deviations `[n]` of the responses about these tangents.
    """

    point: Any
    free: Any
    reason: str | None
    iterations: int
    evaluations: int
    value: Any
    first: Any
    sigma: Any


def check_predictors(problem: Problem, x_sigma: Mapping[str, Any]) -> None:
    """Raise BindingError for a name that is no predictor of the model, and for standard deviations that are not finite
    and positive."""
    for name, deviations in x_sigma.items():
        if name not in problem.columns:
            hint = did_you_mean(name, problem.columns, f"it reads {', '.join(problem.columns) or 'no columns'}")
            raise BindingError(f"'{name}' has an error, and is no column that the model reads", hint=hint)
        bad = ~(np.isfinite(deviations) & (np.asarray(deviations) > 0))
        if bad.any():
            where = f" in row {int(problem.places[bad.argmax()]) + 1}" if np.ndim(deviations) else ""
            raise BindingError(
                f"an error of '{name}' is not above 0{where}", hint="leave out the error of what is known exactly"
            )


def distance_fit(problem: Problem, x_sigma: Mapping[str, Any], start: Any) -> DistanceFit:
    """Fit from a `start` `[p]` where the predictors have standard deviations `x_sigma`, numbers or `[n]`, by name.

    Raises BackendError where odrpack is not installed.
    """
    try:
        from odrpack import odr_fit
    except ImportError:
        raise BackendError(
            "errors in both variables need odrpack, which is not installed",
            hint=f"{install_command('odr')} installs it",
        ) from None
    distances = _Distances(problem, x_sigma)

    def model(x: Any, point: Any) -> _At:
        return distances.at(point, x.reshape(-1, problem.count).T - distances.x, 1)

    found = odr_fit(
        lambda x, point: model(x, point).value,
        distances.x.T.copy(),
        problem.response,
        start,
        weight_x=(distances.deviations**-2.0).T.copy(),
        weight_y=np.full(problem.count, np.asarray(problem.sigma, "float64") ** -2.0),
        bounds=(problem.low, problem.high),
        jac_beta=lambda x, point: model(x, point).by_parameters.T.copy(),
        jac_x=lambda x, point: model(x, point).by_predictors.T.copy(),
        maxit=_MAX_ODRPACK_ITERATIONS,
        sstol=_TOLERANCE,
        partol=_TOLERANCE,
    )
    return distances.polished(
        found.beta, found.delta.reshape(-1, problem.count).T, int(found.niter), int(found.nfev + found.njev)
    )


class _At(NamedTuple):
    """The model at the nearest points: its values `[n]`, derivatives by the parameters `[n, p]` and by the predictors
    `[n, m]`, and second derivatives `[n, p + m, p + m]`, None where these are not computed."""

    value: Any
    by_parameters: Any
    by_predictors: Any
    second: Any = None


class _Newton(NamedTuple):
    """A Newton step: the change of the parameters `[p]` and of the errors of the predictors `[n, m]`, which parameters
    are free, the length of the step in the metric of the Hessian, and whether the Hessian is positive definite."""

    step: Any
    shift: Any
    free: Any
    length: float
    is_convex: bool


class _Distances:
    """The least-squares problem in the parameters and the errors of the predictors."""

    def __init__(self, problem: Problem, x_sigma: Mapping[str, Any]) -> None:
        self._problem = problem
        self._names = [*x_sigma]
        self.x = np.stack([problem.columns[name] for name in self._names], axis=1)
        self.deviations = np.stack([np.broadcast_to(s, self.x.shape[:1]) for s in x_sigma.values()], axis=1)
        self._wrt = (*problem.parameters, *self._names)
        self._programs = [problem.program(self._wrt, order) for order in (1, 2)]

    def at(self, point: Any, deltas: Any, order: int) -> _At:
        problem, p = self._problem, len(self._problem.parameters)
        columns = {**problem.columns, **dict(zip(self._names, np.ascontiguousarray((self.x + deltas).T)))}
        shared = {**problem.fixed, **dict(zip(problem.parameters, map(float, point)))}
        program = self._programs[order - 1]
        found = program.run(columns, shared, rows=len(self.x))
        first = problem.stacked(found, self._wrt, len(self.x))
        second = None
        if order == 2:
            packed = problem.stacked(found, [key for key in program.keys if "," in key], len(self.x))
            second = unpacked(packed, len(self._wrt))
        return _At(np.asarray(found.value, "float64"), first[:, :p], first[:, p:], second)

    def polished(self, point: Any, deltas: Any, iterations: int, evaluations: int) -> DistanceFit:
        """Refine a point to the minimum near it by Newton's method."""
        newton = self._newton(point, deltas)
        for _ in range(_MAX_NEWTON_STEPS):
            if newton is None or not newton.is_convex:
                break
            moved = np.clip(point + newton.step, self._problem.low, self._problem.high)
            further = self._newton(moved, deltas + newton.shift)
            iterations, evaluations = iterations + 1, evaluations + 1
            if further is None or further.length >= newton.length:
                break
            point, deltas, newton = moved, deltas + newton.shift, further
        return self._ended(point, deltas, newton, iterations, evaluations + 2)

    def _newton(self, point: Any, deltas: Any) -> _Newton | None:
        """The Newton step at a point; None where it has no finite solution.

        The errors of each row's predictors enter no other row, so they are eliminated row by row (Schur complement).
        """
        problem, p, m = self._problem, len(point), len(self._names)
        here = self.at(point, deltas, 2)
        inverse = np.broadcast_to(np.asarray(problem.sigma, "float64"), problem.response.shape) ** -2.0
        epsilon = problem.response - here.value
        both = np.concatenate([here.by_parameters, here.by_predictors], axis=1)
        gradient = -(epsilon * inverse)[:, None] * both
        gradient[:, p:] += deltas * self.deviations**-2.0
        hessian = both[:, :, None] * both[:, None, :] - epsilon[:, None, None] * here.second
        hessian *= inverse[:, None, None]
        hessian[:, range(p, p + m), range(p, p + m)] += self.deviations**-2.0
        inner, across = hessian[:, p:, p:], hessian[:, p:, :p]
        try:
            eliminated = np.linalg.solve(inner, np.concatenate([across, gradient[:, p:, None]], axis=2))
            own = hessian[:, :p, p:] @ eliminated
            reduced = (hessian[:, :p, :p] - own[:, :, :p]).sum(axis=0)
            pull = (gradient[:, :p] - own[:, :, p]).sum(axis=0)
            free = ~(((point <= problem.low) & (pull > 0)) | ((point >= problem.high) & (pull < 0)))
            scales = np.sqrt(np.abs(np.diagonal(reduced)[free]))
            reduced = reduced[np.ix_(free, free)] / scales[:, None] / scales
            moved = -np.linalg.solve(reduced, pull[free] / scales)
            convex = bool(np.linalg.eigvalsh(reduced).min(initial=np.inf) > 0) and bool(
                (np.linalg.eigvalsh(inner) > 0).all()
            )
        except np.linalg.LinAlgError:
            return None
        step = np.zeros(p)
        step[free] = moved / scales
        shift = -eliminated[:, :, p] - (eliminated[:, :, :p] @ step[:, None])[:, :, 0]
        length = float(np.sqrt(max(moved @ reduced @ moved, 0.0)))
        return _Newton(step, shift, free, length, convex) if np.isfinite(length) else None

    def _ended(self, point: Any, deltas: Any, newton: _Newton | None, iterations: int, evaluations: int) -> DistanceFit:
        problem = self._problem
        here = self.at(point, deltas, 1)
        slopes = here.by_predictors
        sigma = np.sqrt(np.asarray(problem.sigma) ** 2.0 + ((slopes * self.deviations) ** 2).sum(axis=1))
        value = here.value - (slopes * deltas).sum(axis=1)
        reason: str | None = "the Hessian is not positive definite there"
        free = np.ones(len(point), "bool")
        if newton is not None and newton.is_convex:
            rest = float(np.sqrt((((problem.response - value) / sigma) ** 2).sum()))
            offset = float(relative_offset(newton.length, rest, len(point), problem.dof))
            both = np.concatenate([here.by_parameters, slopes * (self.x + deltas)], axis=1)
            ones = np.concatenate([point, np.ones(len(self._names))])
            size = root_mean_squares(terms(value, both, ones), sigma, problem.count)
            is_minimum = offset <= largest_offset(size, rest, problem.dof)
            reason = None if is_minimum else f"the relative offset is {offset:.1e}"
            free = newton.free
        return DistanceFit(point, free, reason, iterations, evaluations, value, here.by_parameters, sigma)
