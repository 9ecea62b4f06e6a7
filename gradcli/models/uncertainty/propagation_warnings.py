"""Warnings where the results of a linear propagation cannot be trusted: neglected terms of the next order (GUM, 5.1.2,
note), and values that do not exist, poles and jumps within the uncertainties of inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from gradcli import arrays, limits
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.node import Node
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.targets import ancestors
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.higher_orders import DirectionalDerivatives, derivatives, gradients_along
from gradcli.errors import (
    EvaluationError,
    GradcliError,
    LimitError,
    NotBatchableError,
    NotRecordableError,
    ShapeError,
    Span,
)
from gradcli.evaluation.diagnose import Warning
from gradcli.kinds.branch_points import BranchPointWatcher, watching
from gradcli.kinds.jets import Jet, perturbed_of
from gradcli.kinds.perturbed_roundings import Perturbation
from gradcli.language.interpreter.run import evaluate
from gradcli.language.operations import COMPARE, operation_at
from gradcli.language.syntax.tree import Module
from gradcli.models.uncertainty.input_quantities import Quantities, scale_of
from gradcli.models.uncertainty.monte_carlo import Drawn, MonteCarlo, columns_of, student_dofs
from gradcli.models.uncertainty.propagation_tables import stated_text, tolerance
from gradcli.models.value_checks import nonfinite_error
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind, constant
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.comparisons import equal, where
from gradcli.primitives.jet_rules import locally_constant
from gradcli.rows.row_programs import RowProgram

# Relative difference of a value that may be a rounding error, and not an effect of the formula.
_ROUNDING = 1e-12
# Unit roundoff of a float.
_EPSILON = 2.0**-53
# The relative changes of operands that tell a selected one from an equal one are multiples of this.
_APART = 2.0**-20
# Degrees of freedom up to which Student's distribution has no standard deviation.
_NO_DEVIATION = 2.0

# Warnings, each as its code, the label of the result, and the text.
Messages = list[tuple[str, str, str]]
# Range of an input on each side of its estimate, in standard uncertainties.
_RANGE = 2.0
# Points of a range; and number of refinements, each of which divides the three intervals around the largest difference
# into as many points.
_POINTS, _DIVISIONS = 33, 6
# A difference is large where one interval has more than this fraction of the total variation along the range.
_MAX_VARIATION_SHARE = 0.2
# Limits of the ratio of the largest differences after all refinements and after half of them: the result is continuous
# below the first, has a pole above the second, and a jump in between.
_JUMP_RATIO, _POLE_RATIO = 0.25, 10.0
# Distance, relative to the range, at which a point without a value is evaluated beside it, where there may be a limit.
_BESIDE = 1e-9
# Precision of the places in warnings, relative to the range.
_TEXT_PRECISION = 1e-4
# With more inputs than this none is varied.
_MOST_VARIED = 50


def nonlinear(labels: Sequence[str], numbers: Sequence[tuple[float, float]], second: Sequence[SecondOrder]) -> Messages:
    """Warnings of the results whose stated digits differ to second order."""
    found = []
    for label, (value, u), other in zip(labels, numbers, second):
        enough = max(tolerance(u), _ROUNDING * abs(value))
        if not (abs(other.mean - value) <= enough and abs(other.u - u) <= enough):
            text = (
                f"the formula bends within the uncertainties: to second order '{label}' is "
                f"{stated_text(other.mean, other.u)}, and linearly {stated_text(value, u)}"
            )
            found.append(("nonlinear", label, text))
    return found


def rounded(
    labels: Sequence[str], numbers: Sequence[tuple[float, float]], module: Module, inputs: Quantities
) -> Messages:
    """Warnings of the results whose stated digits are not all right in floats."""
    few = [u > 0 and tolerance(u) < _EPSILON * abs(value) for value, u in numbers]
    if not any(few):
        return []
    text = "the uncertainty of '{}' is less than the rounding errors of its value: --digits 30 has the digits of it"
    wrong = [is_few and error > 0 for is_few, error in zip(few, _rounding_errors(module, inputs))]
    return [("rounded", label, text.format(label)) for label in compress(labels, wrong)]


def _rounding_errors(module: Module, inputs: Quantities) -> list[float]:
    """Differences between the results and the same with other rounding errors; empty where these are not known."""
    roundings = Perturbation()
    estimates = inputs.packing.named(inputs.mean)
    given = {name: Jet([value], 0).watched(roundings) for name, value in estimates.items()}
    with suppress(EvaluationError, NotImplementedError):
        found = evaluate(module, {**inputs.exact, **given}).value
        if isinstance(found, Jet):
            parts = (arrays.numpy_namespace().asarray(each.inner, "float64") for each in (found, perturbed_of(found)))
            value, other = (part.ravel() for part in parts)
            return abs(value - other).tolist()  # type: ignore[no-any-return]
    return []


def steps(module: Module, inputs: Quantities) -> list[Warning]:
    """Warnings of piecewise constant functions of the inputs, whose derivative is 0 although the uncertainties may
    reach a jump, and of comparisons and kinks that turn out differently within the uncertainties."""
    found: dict[Span, Warning] = {}
    nodes, usual = path_at(module, inputs, inputs.mean)
    for node in nodes:
        if isinstance(node, PrimitiveNode) and node.span is not None and node.primitive.jet is locally_constant:
            name = operation_at(module, node.span) or node.primitive.name
            text = (
                f"the derivative of '{name}' is 0 between its jumps, so that the uncertainty knows nothing of them: "
                "--samples 1e6 does"
            )
            found[node.span] = Warning("steps", "propagation", name, node.span, text)
    for span, label in changed_paths(module, inputs, usual).items():
        text = (
            f"within the uncertainty of {label} '{module.source[span.start : span.end]}' turns out differently, of which "
            "the linear propagation knows nothing: --samples 1e6 does"
        )
        found.setdefault(span, Warning("branches", "propagation", label, span, text))
    return [*found.values()]


# Texts of the warnings by kind of singularity.
_SINGULAR = {
    "no value": "there is no value at {near}, where {message}: the result has no mean and no standard deviation",
    "pole": "the value goes to infinity, near {near}: it has neither a mean nor a standard deviation",
    "jump": "the value jumps, near {near}, of which the linear propagation knows nothing",
}


def singular(found: Sequence[Singularity], label: str, span: Span, sampled: bool) -> list[Warning]:
    """Warnings of the singularities found; `sampled` says that there are Monte Carlo draws, which show a jump
    themselves."""
    warnings = []
    for each in found:
        if each.kind == "jump" and sampled:
            continue
        advice = "trust the interval of the samples alone" if sampled else "--samples 1e6 gives an interval"
        text = f"within the uncertainty of {each.inputs} " + _SINGULAR[each.kind].format(**each._asdict())
        where = each.span or span
        warnings.append(Warning("singular", "propagation", label, where, f"{text}; {advice}"))
    return warnings


def left_out(draws: Drawn, samples: int) -> Messages:
    """The warning of draws that have no finite value."""
    if not draws.left_out:
        return []
    reason = f": {draws.error.message}" if draws.error is not None else ""
    text = f"{draws.left_out:,} of {samples:,} samples have no finite value and are left out{reason}"
    return [("samples", "", text)]


def not_validated(
    labels: Sequence[str],
    numbers: Sequence[tuple[float, float]],
    intervals: Sequence[tuple[float, float]],
    sampled: Sequence[tuple[MonteCarlo, tuple[float, float]]],
) -> Messages:
    """Warnings of the results whose Monte Carlo interval differs in the stated digits (JCGM 101, 8.1), by more than the
    statistical errors of its ends."""
    found = []
    for label, (_, u), interval, (monte_carlo, errors) in zip(labels, numbers, intervals, sampled):
        apart = [abs(a - b) - 2 * error for a, b, error in zip(interval, monte_carlo.interval, errors)]
        if max(apart) > tolerance(u):
            low, high = monte_carlo.interval
            text = (
                f"Monte Carlo does not confirm the interval of '{label}': it gives [{low:.6g}, {high:.6g}], and the linear "
                f"propagation [{interval[0]:.6g}, {interval[1]:.6g}]"
            )
            found.append(("not_validated", label, text))
    return found


def without_deviation(quantities: Quantities) -> Messages:
    """The warning of inputs whose distribution has no standard deviation (JCGM 101, 6.4.9.4): that of the draws depends
    on their number, unless the program is bounded."""
    few = (student_dofs(quantities) <= _NO_DEVIATION) & (quantities.u > 0)
    labels = [label for label, is_few in zip(quantities.packing.labels(), few.tolist()) if is_few]
    if not labels:
        return []
    text = (
        f"Student's distribution of {', '.join(labels)}, with 2 degrees of freedom or fewer, has no standard deviation: "
        "trust the interval of the samples, and not their standard deviation"
    )
    return [("heavy_tails", "", text)]


# --- execution paths that change within the uncertainties of the inputs

# Distance from its estimate at which an input is probed, in standard uncertainties: within the first are about 95 % of
# a normal distribution; the second is the end of a uniform one.
_NORMAL, _ASSIGNED = 2.0, 3.0**0.5
# With more inputs than this none is probed, as each takes two runs.
_MOST_INPUTS = 50

_COMPARISONS = frozenset(operation.name for operation in COMPARE.values())

# The outcomes of comparisons, kinks and jumps in their order, by span.
Path = dict[Span, list[Any]]


def changed_paths(module: Module, inputs: Quantities, usual: Path) -> dict[Span, str]:
    """The spans at which the program takes another path than the `usual` one, with the label of an input whose
    uncertainty reaches that."""
    places = arrays.numpy_namespace().flatnonzero(inputs.u).tolist()
    found: dict[Span, str] = {}
    if usual and len(places) <= _MOST_INPUTS:
        # Exceeding the limits here must not keep the program from a result.
        with suppress(LimitError), limits.optional_budget():
            for place in places:
                for span in _differing(module, inputs, place, usual):
                    found.setdefault(span, inputs.packing.labels()[place])
    return found


def _differing(module: Module, inputs: Quantities, place: int, usual: Path) -> Iterator[Span]:
    reach = (_ASSIGNED if place in inputs.distributions else _NORMAL) * inputs.u[place]
    for sign in (-1.0, 1.0):
        point = inputs.mean.copy()
        point[place] += sign * reach
        # The program may fail there, which other warnings report.
        with suppress(EvaluationError):
            ways = path_at(module, inputs, point)[1]
            yield from (span for span in usual if ways.get(span) != usual[span])


def path_at(module: Module, inputs: Quantities, point: Any) -> tuple[list[Node], Path]:
    """The operations by which the value depends on the inputs at a point [n], and the execution path there."""
    found: Path = {}

    def see(span: Span, name: str, _operands: Sequence[Any], result: Any) -> None:
        if name in _COMPARISONS:
            found.setdefault(span, []).append(arrays.tolist(constant(result)))

    varied = {name: Tensor(value).requires_grad_() for name, value in inputs.packing.named(point).items()}
    with enable_grad(), arrays.quiet():
        given = {**inputs.exact, **varied, **inputs.named_exactly}
        nodes = ancestors(evaluate(module, given, observe=see).value)
    for node in nodes:
        if isinstance(node, PrimitiveNode) and node.span is not None and _has_kinks(node):
            found.setdefault(node.span, []).extend(_chosen(node))
    return nodes, found


def _has_kinks(node: PrimitiveNode) -> bool:
    primitive = node.primitive
    return primitive.elementwise and primitive.smooth is not None and primitive.jet is not locally_constant


def _chosen(node: PrimitiveNode) -> Iterator[Any]:
    """The operands that the result is equal to, as for `abs` the operand where that is positive. The operands are moved
    apart a little first, since a result may be equal to one by chance, as atan2(0, 1) is to 0."""
    operands = [*_moved_apart([constant(operand) for operand in node.operands])]
    result = bind(node.primitive, operands, node.params)
    for operand in operands:
        yield arrays.tolist(equal(result, operand))


def _moved_apart(operands: Sequence[Any]) -> Iterator[Any]:
    """The operands, each changed by a share of its own, which for zeros is one of the smallest of the other numbers."""
    np = arrays.numpy_namespace()
    sizes = np.concatenate([abs(np.ravel(arrays.to_numpy(operand))) for operand in operands])
    smallest = float(sizes[sizes > 0].min(initial=1.0))
    for number, operand in enumerate(operands, start=1):
        share = number * _APART
        yield where(equal(operand, 0), share * smallest, multiply(operand, 1 + share))


@dataclass(frozen=True)
class SecondOrder:
    """The mean to second order, and the standard uncertainty to fourth order in those of the inputs."""

    mean: float
    u: float


def second_order(program: Module, quantities: Quantities, value: Any, scaled: Any) -> list[SecondOrder] | None:
    """The next order of each result `value` `[m]`; None where a derivative cannot be computed, or would take more than
    the limits of the run. `scaled` `[m, n]` are the sensitivities g by independent quantities z of variance 1.

    With H the Hessian and T the third derivatives by z, the mean is f + tr H / 2. The variance is |g|² + tr H² / 2 +
    sum over i, k of g_i T_ikk, which are the GUM's terms for normal inputs, extended to correlated ones; to these is
    added, with the skewness s_i and the excess kurtosis e_i of z_i, the sum over i of s_i g_i H_ii + e_i (H_ii² / 4 +
    g_i T_iii / 3).
    """
    np = arrays.numpy_namespace()

    known = {**quantities.exact, **quantities.named_exactly}

    def function(point: Any) -> Any:
        return evaluate(program, {**_parts(quantities, point), **known}).value

    switching = BranchPointWatcher()

    try:
        with limits.optional_budget():
            limits.charge(quantities.packing.size**2)
            directions = quantities.deviations(np.eye(quantities.packing.size))
            with_numbers = directions.any(1)
            with watching(switching):
                along = gradients_along(function, quantities.mean, directions[with_numbers], len(value))
            if switching:
                along = _where_smooth(function, quantities.mean, directions[with_numbers], len(value))
    except (LimitError, NotBatchableError, NotImplementedError, NotRecordableError, EvaluationError, ShapeError):
        return None
    skewness, excess = (numbers[with_numbers] for numbers in quantities.moments())
    found = []
    # Derivatives by exact inputs do not contribute.
    is_exact = quantities.u == 0
    parts = (np.where(is_exact, 0.0, derivatives) for derivatives in (along.second, along.third))
    for f, g, second, third in zip(value.tolist(), scaled[:, with_numbers], *parts):
        hessian = second @ directions[with_numbers].T
        size = scale_of(np.append(g, hessian))
        g, hessian = g / size, hessian / size
        step = g @ directions[with_numbers]
        own, own_third = np.diagonal(hessian), (third / size * directions[with_numbers]).sum(1)
        variance = (g**2).sum() + 0.5 * (hessian**2).sum() + (third @ step).sum() / size
        variance += (skewness * g * own + excess * (own**2 / 4 + g * own_third / 3)).sum()
        # The expansion is useless where its third-order terms make the variance negative.
        u = size * math.sqrt(variance) if variance >= 0 else math.nan
        found.append(SecondOrder(f + 0.5 * size * float(np.trace(hessian)), u))
    return found


def _where_smooth(function: Callable[[Any], Any], point: Any, directions: Any, size: int) -> DirectionalDerivatives:
    """Like `gradients_along`, at a point where the function has several branches: nan where its derivatives do not
    exist."""
    np = arrays.numpy_namespace()
    second, third = np.full((2, size, *directions.shape), np.nan)
    for row in range(size):

        def element(given: Mapping[str, Any], row: int = row) -> Any:
            return reshape(function(given["point"]), (size,))[row]

        _, found = derivatives(element, {"point": point}, 3)
        hessian, tensor = found["point,point"], found["point,point,point"]
        if hessian is not None and tensor is not None:
            second[row] = directions @ np.asarray(hessian)
            third[row] = [np.asarray(tensor) @ d @ d for d in directions]
    return DirectionalDerivatives(second, third)


def _parts(quantities: Quantities, point: Any) -> Mapping[str, Any]:
    """The inputs by name, from a vector of all."""
    shapes = quantities.packing.shapes
    return {name: reshape(point[place], shapes[name]) for name, place in quantities.packing.places().items()}


class Singularity(NamedTuple):
    """A singularity at a point `near` the estimates: its `kind`, one of `no value`, `pole` and `jump`; the `inputs`
    that are varied, in words; the span of the operation, and the message of an error."""

    kind: str
    inputs: str
    near: str
    span: Span | None
    message: str = ""


def singularities(module: Module, inputs: Quantities, scaled: Any, most: tuple[int, int]) -> list[Singularity]:
    """The first singularity of each kind that is found.

    `scaled` `[m, n]` are the sensitivities of the results by independent quantities of variance 1, and `most` the
    largest numbers of steps and elements of a run.
    """
    found: dict[str, Singularity] = {}
    # Exceeding the limits here must not keep the program from a result.
    with suppress(LimitError, EvaluationError), limits.optional_budget():
        scan = _Scan(module, inputs, most)
        for label, ends in _lines(inputs, scaled):
            for each in scan.along(label, *ends):
                found.setdefault(each.kind, each)
    return [*found.values()]


def _lines(inputs: Quantities, scaled: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """The lines to scan: what is varied, in words, and the first and the last point, `[n]` each."""
    places = np.flatnonzero(inputs.u).tolist()
    if len(places) > _MOST_VARIED:
        return
    labels = inputs.packing.labels()
    for place in places:
        low, high = inputs.mean.copy(), inputs.mean.copy()
        assigned = inputs.distributions.get(place)
        reach = _RANGE * inputs.u[place]
        low[place], high[place] = (low[place] - reach, high[place] + reach) if assigned is None else assigned.reach
        yield labels[place], (low, high)
    if len(places) < 2 or any(place in inputs.distributions for place in places):
        return
    for row in scaled:
        length = float(np.sqrt(row @ row))
        if 0 < length < np.inf:
            deviations = _RANGE * inputs.deviations(row / length)
            yield "the inputs together", (inputs.mean - deviations, inputs.mean + deviations)


class _Scan:
    """Evaluates the program along lines, and finds singularities there."""

    def __init__(self, module: Module, inputs: Quantities, most: tuple[int, int]) -> None:
        self._module, self._inputs = module, inputs
        self._program = RowProgram(module, (), 0, max_steps=most[0], max_elements=most[1])

    def along(self, label: str, low: Any, high: Any) -> Iterator[Singularity]:
        """The singularities on the line from one point `[n]` to another."""
        shares = np.linspace(0.0, 1.0, _POINTS)
        values, lost = self._values(label, low, high, shares)
        if lost is not None:
            yield lost
            return
        for place in range(values.shape[1]):
            found = self._of_one(label, low, high, values[:, place], place)
            if found is not None:
                yield found

    def _of_one(self, label: str, low: Any, high: Any, values: Any, place: int) -> Singularity | None:
        """The singularity of the result at index `place`, with these `values` along the line; None where there is
        none."""
        steps = np.abs(np.diff(values))
        if not steps.max() > _MAX_VARIATION_SHARE * steps.sum():
            return None
        shares, differences = np.linspace(0.0, 1.0, _POINTS), []
        for _ in range(_DIVISIONS):
            widest = int(np.argmax(np.abs(np.diff(values))))
            start, end = max(0, widest - 1), min(_POINTS - 1, widest + 2)
            shares = np.linspace(shares[start], shares[end], _POINTS)
            every, lost = self._values(label, low, high, shares)
            if lost is not None:
                return lost
            values = every[:, place]
            differences.append(float(np.abs(np.diff(values)).max()))
        middle, last = differences[_DIVISIONS // 2 - 1], differences[-1]
        if not last > _JUMP_RATIO * middle:
            return None
        at = shares[int(np.argmax(np.abs(np.diff(values))))]
        kind = "pole" if last > _POLE_RATIO * middle else "jump"
        return Singularity(kind, label, self._said(low, high, at), self._module.body[-1].span)

    def _points(self, low: Any, high: Any, shares: Any) -> Any:
        return low + shares[:, None] * (high - low)

    def _values(self, label: str, low: Any, high: Any, shares: Any) -> tuple[Any, Singularity | None]:
        """The results `[k, m]` at points of a line, and the singularity at the first point that has no value, not even
        right beside it; None where all have one."""
        values, failures = self._run(low, high, shares)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        beside = _BESIDE * (shares[-1] - shares[0])
        for side in (-beside, beside):
            if len(bad):
                values[bad], _ = self._run(low, high, np.clip(shares[bad] + side, 0.0, 1.0))
                bad = bad[~np.isfinite(values[bad]).all(axis=1)]
        if not len(bad):
            return values, None
        return values, self._without_value(label, low, high, shares[bad[0]], failures.get(int(bad[0])))

    def _run(self, low: Any, high: Any, shares: Any) -> tuple[Any, dict[int, GradcliError]]:
        """The results `[k, m]` at points of a line, nan where the program fails, and the errors there by index."""
        found = self._program.run(
            columns_of(self._inputs, self._points(low, high, shares)), self._inputs.exact, rows=len(shares)
        )
        failures = {failed.index: failed.error for failed in found.failures}
        if found.value.dtype == object:
            raise EvaluationError("the value has other shapes elsewhere")
        return np.array(found.value, "float64").reshape(len(shares), -1), failures

    def _without_value(self, label: str, low: Any, high: Any, at: float, error: GradcliError | None) -> Singularity:
        if error is None:
            point = self._points(low, high, np.array([at]))[0]
            given = {**self._inputs.exact, **self._inputs.packing.named(point)}
            error = nonfinite_error(self._module, given, (), "it is not finite")
        return Singularity("no value", label, self._said(low, high, at), error.span, error.message)

    def _said(self, low: Any, high: Any, at: float) -> str:
        """A point of a line in words: the values of up to three inputs that are varied."""
        labels, varied = self._inputs.packing.labels(), np.flatnonzero(low != high).tolist()
        units = _TEXT_PRECISION * np.abs(high - low)
        near = self._points(low, high, np.array([at]))[0]
        return ", ".join(f"{labels[i]} = {round(near[i] / units[i]) * units[i]:.4g}" for i in varied[:3])
