"""Quantities derived from the estimates of a fit, with standard errors and intervals: by the delta method, or by the
profile of the likelihood."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli import arrays, limits
from gradcli.errors import BindingError, GradcliError, ShapeError, did_you_mean
from gradcli.evaluation.row_evaluation import evaluated
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models.fitting.problem.batched_matrices import unpacked
from gradcli.models.fitting.problem.linearisations import linearised
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.results.fit_results import DerivedEstimate, Fit
from gradcli.named_tuples import NamedTuple
from gradcli.rows.row_programs import RowProgram

# A second-order change of the mean above this fraction of the standard error makes linear intervals doubtful: an end is
# then off by about this fraction of the interval, times the quantile.
_MAX_SHIFT = 0.1
# The distance from its estimate, in linear intervals, at which a profile has no end.
_MAX_WIDTHS = 1e4
# Relative distance of the rise of the cost from its limit up to which an end is found, and the largest number of steps.
_TOLERANCE, _STEPS = 1e-6, 200


class DerivedQuantity(NamedTuple):
    """A quantity with its `name`, the `program` that computes it, and `reads`, which maps the names in that program to
    those of parameters."""

    name: str
    program: tree.Module
    reads: Mapping[str, str]


class _Values(NamedTuple):
    """A quantity for g fits: its values `[g]`, its first derivatives `[g, k]` by the k parameters that it reads, its
    second ones `[g, k, k]`, and the errors of the fits for which it has no value, by their index."""

    value: Any
    first: Any
    second: Any
    errors: Mapping[int, GradcliError]


def read_derived(texts: Mapping[str, str], parameters: Sequence[str]) -> list[DerivedQuantity]:
    """The quantities with these formulas, by name, of `parameters`.

    Raises BindingError for a name that is not a parameter and for the name of a parameter itself, ProgramSyntaxError
    for invalid formulas, and ShapeError for one whose value is not a number.
    """
    found = []
    aliases = _aliases(parameters)
    for name, text in texts.items():
        if name in parameters:
            raise BindingError(f"'{name}' is a parameter, and cannot be derived too", hint="give it another name")
        program = parse_charged(_with_aliases(text, aliases))
        reads = {}
        for read, where in scope.free_names(program).items():
            label = aliases.get(read, read)
            if label in parameters:
                reads[read] = label
            elif read not in scope.CONSTANTS:
                raise BindingError(
                    f"'{label}' in the derived '{name}' is no parameter of the model",
                    hint=did_you_mean(label, parameters, f"its parameters are {', '.join(parameters)}"),
                    span=where.span,
                    source=text,
                )
        found.append(DerivedQuantity(name, program, reads))
    return found


def _aliases(parameters: Sequence[str]) -> dict[str, str]:
    """The parameters that are no names, as H(0) and V[A+], by names of the same length, so that errors point at the
    right place."""
    found: dict[str, str] = {}
    for label in parameters:
        if label.isidentifier():
            continue
        parts = re.split(r"\W", label, flags=re.ASCII)
        # V[A+] and V[A-] differ in characters that no name has.
        fillings = itertools.product("_" + string.ascii_lowercase, repeat=len(parts) - 1)
        names = ("".join(itertools.chain(*zip(parts, filling))) + parts[-1] for filling in fillings)
        found[next(name for name in names if name not in found and name not in parameters)] = label
    return found


def _with_aliases(text: str, aliases: Mapping[str, str]) -> str:
    """The text with these names instead of the parameters."""
    names = {label: alias for alias, label in aliases.items()}
    labels = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"(?<!\w)(?:{labels})", lambda found: names[found[0]], text) if names else text


def derived_of(
    quantities: Sequence[DerivedQuantity],
    fits: Sequence[Fit],
    quantiles: Sequence[float],
    ends: Sequence[Mapping[str, tuple[float, float]]] | None = None,
) -> list[Fit]:
    """The same fits with these quantities, whose standard errors are those of the delta method.

    Intervals are as many standard errors wide as `quantiles` say, one for each fit, unless the `ends` are given.
    """
    if not quantities or not fits:
        return [*fits]
    points = {name: np.array([fit.estimates[name].value for fit in fits]) for name in fits[0].estimates}
    names = [*points]
    covariances = np.stack([fit.covariance for fit in fits])
    derived: list[dict[str, DerivedEstimate]] = [{} for _ in fits]
    for quantity in quantities:
        _check_shape(quantity, {name: numbers[0] for name, numbers in points.items()})
    doubts: list[list[str]] = [[] for _ in fits]
    for quantity in quantities:
        found = _values(quantity, points)
        places = [names.index(label) for label in quantity.reads.values()]
        own = covariances[:, places][:, :, places]
        for i, value in enumerate(found.value.tolist()):
            error = _error(value, found.first[i], own[i])
            with np.errstate(all="ignore"):
                low, high = value - quantiles[i] * error, value + quantiles[i] * error
                shift = 0.5 * float((found.second[i] * own[i]).sum()) if error else 0.0
            if ends is not None:
                low, high = ends[i][quantity.name]
            elif abs(shift) > _MAX_SHIFT * error:
                doubts[i].append(
                    f"the linear interval of {quantity.name} cannot be trusted: terms of second order change it by "
                    f"{abs(shift) / error:.2g} standard errors; --profile gives a better one"
                )
            if i in found.errors:
                doubts[i].append(f"{quantity.name} has no value: {found.errors[i].message}")
            elif not np.isfinite(value):
                doubts[i].append(f"{quantity.name} has no finite value at the estimates")
            derived[i][quantity.name] = DerivedEstimate(value, error, low, high)
    return [fit.including(more, derived=own) for fit, own, more in zip(fits, derived, doubts)]


def _check_shape(quantity: DerivedQuantity, point: Mapping[str, float]) -> None:
    """Raise ShapeError for a quantity that is not one number."""
    inputs = {name: float(point[label]) for name, label in quantity.reads.items()}
    try:
        value = evaluated(quantity.program, inputs, (), 0, (MAX_STEPS, MAX_ELEMENTS)).value
    except GradcliError:
        return
    if arrays.shape(value):
        raise ShapeError(
            f"the derived '{quantity.name}' has the shape {list(arrays.shape(value))}, and is one number",
            span=quantity.program.body[-1].span,
            source=quantity.program.source,
        )


def _error(value: float, first: Any, covariance: Any) -> float:
    """The standard error of a quantity with this value and these derivatives: infinite where it depends on a parameter
    that is not determined, nan where on one at a bound."""
    taking = first != 0
    covariance, first = covariance[taking][:, taking], first[taking]
    variances = np.diagonal(covariance)
    if np.isnan(variances).any() or np.isnan(value) or not np.isfinite(first).all():
        return float("nan")
    if np.isinf(variances).any():
        return float("inf")
    return float(np.sqrt(max(first @ covariance @ first, 0.0)))


def _values(quantity: DerivedQuantity, points: Mapping[str, Any]) -> _Values:
    """The quantity at the points of g fits, arrays `[g]` by parameter."""
    columns = {name: points[label] for name, label in quantity.reads.items()}
    count, k = len(next(iter(points.values()))), len(columns)
    run = RowProgram(quantity.program, tuple(columns), 2, max_steps=MAX_STEPS, max_elements=MAX_ELEMENTS)
    found = run.run(columns, {}, rows=count)
    first, second = np.zeros((count, k)), np.zeros((count, k * (k + 1) // 2))
    for target, keys in (
        (first, [key for key in run.keys if "," not in key]),
        (second, [key for key in run.keys if "," in key]),
    ):
        for place, key in enumerate(keys):
            target[:, place] = found.derivative(key)
    errors = {failed.index: failed.error for failed in found.failures}
    return _Values(np.broadcast_to(np.asarray(found.value, "float64"), count), first, unpacked(second, k), errors)


def values_of(quantity: DerivedQuantity, points: Mapping[str, Any]) -> Any:
    """The values `[g]` of a quantity at points, arrays `[g]` by parameter."""
    return _values(quantity, points).value


# --- intervals by the profile of the likelihood: the least and the greatest value of a quantity among the points that
# are as good as the ends of a profile


def profiled_ends(
    quantities: Sequence[DerivedQuantity],
    problem: Problem,
    point: Any,
    covariance: Any,
    scale: float,
    quantile: float,
    units: Any,
) -> dict[str, tuple[float, float]]:
    """The ends of the intervals of quantities by the profile of the likelihood; nan where none is found, infinite where
    there is none.

    `point` `[p]` is the minimum of the `problem`, whose parameters are `units` `[p]` times as large in the quantities;
    `covariance` `[p, p]` is that of the point, nan for parameters at a bound. The rise of the cost at an end is the one
    of `profile`, scale² quantile² / 2. Source: D. J. Venzon and S. H. Moolgavkar, Applied Statistics 37 (1988) 87.
    """
    if not quantities:
        return {}
    inside = _InsideRegion(problem, point, covariance, scale, quantile)
    return {quantity.name: inside.ends(_at_points(quantity, problem, units)) for quantity in quantities}


# Computes a quantity, and its derivatives [p], at a point [p].
_Function = Callable[[Any], tuple[float, Any]]


def _at_points(quantity: DerivedQuantity, problem: Problem, units: Any) -> _Function:
    def function(point: Any) -> tuple[float, Any]:
        numbers = {**problem.fixed, **dict(zip(problem.parameters, (point * units).tolist()))}
        found = _values(quantity, {label: np.array([number]) for label, number in numbers.items()})
        slope = dict(zip(quantity.reads.values(), found.first[0]))
        return float(found.value[0]), np.array([slope.get(name, 0.0) for name in problem.parameters]) * units

    return function


def _root(covariance: Any) -> Any:
    """A matrix A with AAᵀ equal to a covariance matrix, which is singular for exact data."""
    scales = np.sqrt(np.diagonal(covariance))
    scales = np.where(scales > 0, scales, 1.0)
    values, vectors = np.linalg.eigh(covariance / scales / scales[:, None])
    return scales[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))


class _InsideRegion:
    """The points whose cost is at most the one at the ends of a profile. Their coordinates z `[p]` are such that this
    region is nearly a ball with the radius `quantile`."""

    def __init__(self, problem: Problem, point: Any, covariance: Any, scale: float, quantile: float) -> None:
        self._problem, self._point, self._scale, self._quantile = problem, point, scale, quantile
        self._least = linearised(problem, point[None]).cost[0]
        held = np.isnan(np.diagonal(covariance))
        sizes = np.where(point == 0, 1.0, np.abs(point))
        spread = np.where(held[:, None] | held, np.diag(sizes**2), covariance)
        self._axes: Any = _root(spread) if np.isfinite(spread).all() else None

    def ends(self, function: _Function) -> tuple[float, float]:
        """The least and the greatest value of a quantity."""
        value, slope = function(self._point)
        if self._axes is None or not np.isfinite(value):
            return float("nan"), float("nan")
        along = self._axes.T @ slope
        size = float(np.linalg.norm(along))
        # The quantity does not depend on what was varied, or the rows are fitted exactly.
        if not size > 0 or not self._scale > 0:
            return value, value
        low, high = (self._end(function, value, along / size, size, sign) for sign in (-1.0, 1.0))
        return low, high

    def _end(self, function: _Function, center: float, along: Any, size: float, sign: float) -> float:
        from scipy.optimize import minimize

        def objective(z: Any) -> tuple[float, Any]:
            value, slope = function(self._point + self._axes @ z)
            if not (np.isfinite(value) and np.isfinite(slope).all()):
                return 1e300, np.zeros(len(z))
            return -sign * (value - center) / size, -sign * (self._axes.T @ slope) / size

        bounds = self._bounds()
        level = {"type": "ineq", "fun": lambda z: self._room(z)[0], "jac": lambda z: self._room(z)[1]}
        with np.errstate(all="ignore"):
            found = minimize(
                objective,
                sign * self._quantile * along,
                jac=True,
                method="SLSQP",
                constraints=[level, *bounds],
                options={"ftol": 1e-14, "maxiter": _STEPS},
            )
            end, _ = function(self._point + self._axes @ found.x)
        # Beyond a pole the quantity is on the other side of its estimate.
        if not 0 <= sign * (end - center) <= _MAX_WIDTHS * self._quantile * size:
            return sign * float("inf")
        room = self._room(found.x)[0]
        free = not bounds or min(float(bound["fun"](found.x).min()) for bound in bounds) > 0
        good = room >= -_TOLERANCE and (room <= _TOLERANCE or not free)
        return end if good else float("nan")

    def _room(self, z: Any) -> tuple[float, Any]:
        """The margin by which the rise of the cost is below the limit, relative to it, and its derivatives."""
        at = linearised(self._problem, (self._point + self._axes @ z)[None])
        if not np.isfinite(at.cost[0]):
            return -1e10, np.zeros(len(z))
        limit = (self._quantile * self._scale) ** 2
        gradient = at.factor[0, :, :-1].T @ at.factor[0, :, -1]
        return float(1 - 2 * (at.cost[0] - self._least) / limit), -2 * (self._axes.T @ gradient) / limit

    def _bounds(self) -> list[dict[str, Any]]:
        """The bounds of the parameters, as constraints."""
        found = []
        for limit, sign in ((self._problem.low, 1.0), (self._problem.high, -1.0)):
            known = np.isfinite(limit)
            if known.any():
                matrix, rest = sign * self._axes[known], sign * (self._point - limit)[known]
                found.append(
                    {"type": "ineq", "fun": lambda z, a=matrix, b=rest: a @ z + b, "jac": lambda z, a=matrix: a}
                )
        return found


def read_within(texts: Mapping[str, str], parameters: Sequence[str], budget: tuple[int, int]) -> list[DerivedQuantity]:
    """Call `read_derived` within the limits of a run."""
    with limits.within(*budget):
        return read_derived(texts, parameters)
