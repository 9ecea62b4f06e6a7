"""Warnings where the results of a linear propagation cannot be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import compress
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.ancestors import ancestors
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.node import Node
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.tensor import Tensor
from gradcli.errors import EvaluationError, LimitError, Span
from gradcli.evaluation.diagnose import Warning
from gradcli.kinds.jets import Jet, perturbed_of
from gradcli.kinds.perturbed_roundings import Perturbation
from gradcli.language.interpreter.run import evaluate
from gradcli.language.operations import COMPARE, operation_at
from gradcli.language.syntax.tree import Module
from gradcli.models.uncertainty.input_quantities import Quantities
from gradcli.models.uncertainty.monte_carlo import Drawn, MonteCarlo, student_dofs
from gradcli.models.uncertainty.second_order import SecondOrder
from gradcli.models.uncertainty.significant_digits import stated_text, tolerance
from gradcli.models.uncertainty.singularities import Singularity
from gradcli.primitives.bind import bind, constant
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.comparisons import equal, where
from gradcli.primitives.jet_rules import locally_constant

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
    """Which operands the result is equal to, as for `abs` the operand where that is positive. The operands are moved
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
