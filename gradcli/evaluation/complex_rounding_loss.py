"""Estimates how many digits of a complex value, or of derivatives by complex inputs, were lost to rounding.

The real and imaginary parts of complex inputs are leaves of their own. The errors of the parts of a number are compared
with its modulus: a part that is far smaller than the other may have lost more digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.accuracy import digits_of
from gradcli.calculus.derivatives import gradients
from gradcli.calculus.higher_orders import Function, leaf_with_shadow
from gradcli.evaluation.diagnose import Warning
from gradcli.evaluation.error_terms import ErrorTerms
from gradcli.evaluation.inner_derivative_accuracy import number_of
from gradcli.evaluation.rounding_estimate import RoundingErrorEstimate
from gradcli.evaluation.rounding_loss import LossEstimator, RoundingLoss, element, loss_warnings, units
from gradcli.kinds.perturbed_roundings import Perturbation
from gradcli.language.syntax import tree
from gradcli.primitives.entries.complex_numbers import from_parts, imag, real


def complex_losses(
    program: tree.Module,
    rounding_estimate: RoundingErrorEstimate,
    run: Function,
    bindings: Mapping[str, Any],
    wrt: Sequence[str],
) -> list[Warning]:
    """Return warnings where the scalar value or its derivatives lost more than half of the digits.

    `run` evaluates the program for given leaves, some of which are complex, or its value is.
    """
    roundings = Perturbation(spare_exact=True)
    terms = ErrorTerms({node.value for node in tree.all_nodes(program) if isinstance(node, tree.Number)})
    leaves = {n: _leaves(v, roundings) for n, v in bindings.items() if arrays.is_inexact(v)}
    with terms.recording():
        value = run({name: from_parts(*parts) if len(parts) > 1 else parts[0] for name, parts in leaves.items()})
        parts = [real(value), imag(value)] if arrays.is_complex(value) else [value]
        found = {name: _derivative(parts, leaves[name]) for name in wrt if name in leaves}
    judge = LossEstimator(terms, [leaf for both in leaves.values() for leaf in both])
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
