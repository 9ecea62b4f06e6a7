"""Estimates how many digits of a value and its gradient were lost to rounding.

Two estimates are combined: first-order error bounds, and the differences from a second run with other roundings, which
also shows effects beyond first order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.accuracy import digits_of, first_digits_left, half_of_digits, largest, loss_of_value, loss_text
from gradcli.calculus.derivatives import gradients
from gradcli.calculus.first_orders import Function
from gradcli.calculus.higher_orders import leaf_with_shadow
from gradcli.evaluation.diagnose import Warning, inaccurate
from gradcli.evaluation.error_terms import ErrorTerms
from gradcli.evaluation.inner_derivative_accuracy import number_of, shadow_distance
from gradcli.evaluation.rounding_estimate import RoundingErrorEstimate
from gradcli.functionals import shortfalls
from gradcli.kinds.perturbed_roundings import Perturbation, is_short
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.elementwise.complex_numbers import from_parts, imag, real

# Assumed relative error of inputs that are not short decimals: 8 units in the last place.
_OF_INPUTS = 2.0**-49
# Bound on the ratio of the error of an operation in the second run to its ordinary rounding error.
_EXAGGERATED = 32.0
# Relative accuracy of the first-order sum of rounding errors with known signs.
_OF_TERMS = 2.0**-44
# Advice that ends each warning.
_MORE = "; --digits computes more, --certify proves how many are right"


def first_losses(
    program: tree.Module,
    rounding_estimate: RoundingErrorEstimate,
    run: Function,
    bindings: Mapping[str, Any],
    wrt: Sequence[str],
) -> list[Warning]:
    """Return warnings where the scalar value or its gradient lost more than half of the digits, at the operation with
    the largest error term.

    `run` evaluates the program for given leaves.
    """
    roundings = Perturbation(spare_exact=True)
    terms = _terms_of(program)
    leaves = {n: leaf_with_shadow(v, roundings) for n, v in bindings.items() if arrays.is_floating(v)}
    # Integrals and the like that only this estimate needs are not among the results.
    with shortfalls.ignoring(), terms.recording():
        value = run(leaves)
        wrt = [name for name in wrt if name in leaves]
        found = dict(zip(wrt, gradients(value, [leaves[name] for name in wrt], create_graph=True)))
    judge = LossEstimator(terms, [*leaves.values()])
    with shortfalls.ignoring():
        judged = {name: judge.digits(gradient) for name, gradient in found.items() if gradient is not None}
        return loss_warnings(program, rounding_estimate, judge.loss(value), judged)


def _terms_of(program: tree.Module) -> ErrorTerms:
    """The error terms of a run of a program, whose numbers are taken as exact."""
    return ErrorTerms({node.value for node in tree.all_nodes(program) if isinstance(node, tree.Number)})


def loss_warnings(
    program: tree.Module,
    rounding_estimate: RoundingErrorEstimate,
    loss: RoundingLoss | None,
    judged: Mapping[str, int | None],
) -> list[Warning]:
    """Return the warnings of the `loss` of a value, and of the right digits of its derivatives; None if there is none."""
    warnings = []
    if loss is not None:
        digits = digits_of(loss.relative)
        text = loss_of_value(digits if loss.told else None)
        warnings.append(_rounding_warning(program, rounding_estimate, "forward", text, {"value": digits}))
    left = {name: digits for name, digits in judged.items() if digits is not None}
    if left:
        warnings.append(_rounding_warning(program, rounding_estimate, "backward", loss_text(left), left))
    return warnings


def _rounding_warning(
    program: tree.Module, rounding_estimate: RoundingErrorEstimate, phase: str, text: str, left: Mapping[str, int]
) -> Warning:
    found = inaccurate(
        program, rounding_estimate.place, "the rounding error of '{}' is amplified: " + text + _MORE, left
    )
    return found._replace(phase=phase)


class RoundingLoss(NamedTuple):
    """The relative error of a number, and whether the number is distinguished from 0."""

    relative: float
    told: bool


class LossEstimator:
    """Judges the value of a run and its gradient by its rounding errors."""

    # Bound on the operations that all backward passes visit, with one pass for each element of a gradient.
    MOST_VISITS = 5_000

    def __init__(self, terms: ErrorTerms, leaves: Sequence[Tensor]) -> None:
        self.terms = terms
        self.leaves = leaves
        self.inputs = [number_of(leaf) for leaf in leaves]
        # Short inputs are taken as exact.
        self.short = all(map(is_short, self.inputs))

    def digits(self, gradient: Tensor) -> int | None:
        """Return how many digits of the worst element of a gradient are right; None where at least half are."""
        if arrays.size(gradient) * len(self.terms) > self.MOST_VISITS:
            distance = shadow_distance(gradient)
            return None if distance is None else first_digits_left(number_of(gradient), distance)
        losses = [loss for unit in units(gradient) for loss in [self.loss(gradient, unit)] if loss is not None]
        return min((digits_of(loss.relative) for loss in losses), default=None)

    def loss(self, result: Any, unit: Any = None, modulus: float | None = None) -> RoundingLoss | None:
        """Return the loss of a number, or of the gradient element that `unit` selects; with `modulus`, of a number with
        this modulus that it is a part of.

        None where less than half of the digits are lost, where the number is as close to 0 as the uncertainty of the
        inputs explains, or where no operation rounded.
        """
        if not isinstance(result, Tensor) or not result.requires_grad or not len(self.terms):
            return None
        number, distance = (element(numbers, unit) for numbers in (number_of(result), shadow_distance(result)))
        bound, cancelled, gradient, unknown = self.terms.bounds(result, unit, self.leaves)
        size = abs(number) if modulus is None else modulus
        if size == 0.0 < bound and cancelled <= _OF_TERMS * bound:
            # After correction by the known rounding errors, the number is 0 again.
            return None
        if modulus == distance == 0.0 and unknown > 0.5 * bound:
            # Complex numbers have bounds where their parts are exact, as the real part of x/2j is.
            return None
        # Errors cancel to first order only.
        error = min(bound, cancelled + bound * (bound / size)) if size > bound else bound
        error = max(error, distance / _EXAGGERATED)
        if error == 0.0 or error <= half_of_digits(number_of(result)) * (size - error):
            return None
        if not (self.short and size > 0.0) and max(size, error) <= self._by_inputs(gradient):
            return None
        return RoundingLoss(error / (size - error), True) if size > error else RoundingLoss(1.0, False)

    def _by_inputs(self, gradient: Sequence[Any]) -> float:
        """Bound the error of a number that is due to the rounding of the inputs."""
        shares = (largest(multiply(number_of(g), x)) for g, x in zip(gradient, self.inputs) if g is not None)
        return _OF_INPUTS * math.fsum(shares)


def units(gradient: Tensor) -> Iterator[Any]:
    """Yield one unit cotangent for each element of a gradient; None for a scalar."""
    if not gradient.shape:
        yield None
        return
    for row in arrays.numpy_namespace().eye(arrays.size(gradient)):
        yield row.reshape(gradient.shape)


def element(numbers: Any, unit: Any) -> float:
    """The number, or the array element that `unit` selects; 0 where there are no numbers or it is not finite."""
    if numbers is None:
        return 0.0
    number = float(numbers if unit is None else arrays.on_host(numbers)[unit == 1.0][0])
    return number if math.isfinite(number) else 0.0


def complex_losses(
    program: tree.Module,
    rounding_estimate: RoundingErrorEstimate,
    run: Function,
    bindings: Mapping[str, Any],
    wrt: Sequence[str],
) -> list[Warning]:
    """Return warnings where the scalar value or its derivatives lost more than half of the digits.

    `run` evaluates the program for given leaves; some of them, or the value, are complex. The real and imaginary parts
    of complex inputs are leaves of their own. The errors of the parts of a number are compared with its modulus: a part
    that is far smaller than the other may have lost more digits.
    """
    roundings = Perturbation(spare_exact=True)
    terms = _terms_of(program)
    leaves = {n: _leaves(v, roundings) for n, v in bindings.items() if arrays.is_inexact(v)}
    with shortfalls.ignoring(), terms.recording():
        value = run({name: from_parts(*parts) if len(parts) > 1 else parts[0] for name, parts in leaves.items()})
        parts = [real(value), imag(value)] if arrays.is_complex(value) else [value]
        found = {name: _derivative(parts, leaves[name]) for name in wrt if name in leaves}
    judge = LossEstimator(terms, [leaf for both in leaves.values() for leaf in both])
    with shortfalls.ignoring():
        judged = {name: _digits(judge, derivative) for name, derivative in found.items() if derivative}
        return loss_warnings(program, rounding_estimate, _loss(judge, parts, None), judged)


def _leaves(number: Any, roundings: Perturbation) -> list[Tensor]:
    """An input as a leaf, a complex one as two."""
    parts = [real(number), imag(number)] if arrays.is_complex(number) else [number]
    return [leaf_with_shadow(part, roundings) for part in parts]


def _derivative(parts: Sequence[Any], leaves: Sequence[Tensor]) -> list[Tensor]:
    """The parts of the derivative by an input, without those that are 0 everywhere.

    By the Cauchy-Riemann equations, the real part of a value determines its derivative by a complex input.
    """
    found = [gradients(part, leaves, create_graph=True) for part in (parts[:1] if len(leaves) > 1 else parts)]
    return [g for pair in found for g in pair if g is not None]


def _digits(judge: LossEstimator, parts: Sequence[Tensor]) -> int | None:
    """The number of correct digits of the worst element of a derivative; None where at least half are correct."""
    if sum(arrays.size(part) for part in parts) * len(judge.terms) > judge.MOST_VISITS:
        return None
    # An element that is exactly 0 has no digits to lose, though the derivative of z/z, for example, has error terms.
    losses = [
        loss
        for unit in units(parts[0])
        if any(element(number_of(part), unit) for part in parts)
        for loss in [_loss(judge, parts, unit)]
        if loss is not None
    ]
    return min((digits_of(loss.relative) for loss in losses), default=None)


def _loss(judge: LossEstimator, parts: Sequence[Any], unit: Any) -> RoundingLoss | None:
    """The loss of a number by its parts, of an element of them with `unit`."""
    modulus = math.hypot(*(element(number_of(part), unit) for part in parts))
    losses = [judge.loss(part, unit, modulus) for part in parts]
    return max((loss for loss in losses if loss is not None), key=lambda loss: loss.relative, default=None)
