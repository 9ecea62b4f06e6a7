"""Evaluates and differentiates a single row. Derivatives have the keys of the command line: `x`, and for order 2 `x,x`
and `x,q`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients, jacobians
from gradcli.calculus.first_orders import Derivatives, Function, first_derivatives, note_kinks
from gradcli.calculus.higher_orders import derivatives
from gradcli.calculus.jacobians import jacobians_by_either_mode
from gradcli.errors import locating
from gradcli.evaluation import python_values
from gradcli.kinds.branch_points import EQUALITIES, BranchPointWatcher, watching
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax import tree
from gradcli.primitives.bind import concrete
from gradcli.primitives.entries.arithmetic import add

if TYPE_CHECKING:
    from gradcli.evaluation.callables import Computation


def keys(wrt: Sequence[str], order: int) -> tuple[str, ...]:
    """Return the keys of the derivatives up to an order, each mixed one once."""
    return tuple(
        ",".join(names) for n in range(1, order + 1) for names in itertools.combinations_with_replacement(wrt, n)
    )


def differentiated(
    run: Function, inputs: Mapping[str, Any], wrt: Sequence[str], order: int, *, by_parts: bool = False
) -> Derivatives:
    """Return the value of `run` at `inputs` and its derivatives by `wrt`: Jacobians where the value is not scalar.

    A derivative is None where the value does not depend on the input. With `by_parts`, those of order 2 and more of a
    real value by complex inputs are by `real(z)` and `imag(z)`. Raises DifferentiationError for a non-scalar value with
    `order` above 1, without `by_parts` for those, and what `run` raises.
    """

    def function(given: Mapping[str, Any]) -> Any:
        return run({**inputs, **given})

    with enable_grad():
        leaves = {name: Tensor(inputs[name]).requires_grad_() for name in wrt}
        switching = BranchPointWatcher(EQUALITIES)
        with watching(switching):
            value = function(leaves)
            note_kinks(value)
        if not wrt:
            return Derivatives(value, {})
        points = {name: inputs[name] for name in wrt}
        if arrays.is_complex(value):
            return _complex_derivatives(function, value, leaves, points, order)
        in_parts = order > 1 and any(map(arrays.is_complex, points.values()))
        if in_parts and not by_parts:
            _refuse_complex_leaves(points, order)
        if arrays.shape(value) and order == 1:
            first: Mapping[str, Any] = jacobians_by_either_mode(function, leaves, value)
        else:
            # First derivatives are those of reverse mode, also at kinks.
            first = dict(zip(wrt, gradients(value, list(leaves.values()), retain_graph=False)))
        if switching:
            first = first_derivatives(function, points, value, first)
        if order < 2:
            return Derivatives(value, first)
        _, found = derivatives(*(_parts(function, points) if in_parts else (function, points)), order)
        return Derivatives(value, {**first, **{key: d for key, d in found.items() if "," in key}})


def _refuse_complex_leaves(points: Mapping[str, Any], order: int) -> None:
    from gradcli.calculus.complex_derivatives import check_real_leaves

    check_real_leaves(points, order)


def _parts(function: Function, points: Mapping[str, Any]) -> tuple[Function, Mapping[str, Any]]:
    from gradcli.calculus.complex_derivatives import FunctionOfParts

    found = FunctionOfParts.of(function, points)
    return found.function, found.leaves


def _complex_derivatives(
    function: Function, value: Any, leaves: Mapping[str, Tensor], points: Mapping[str, Any], order: int
) -> Derivatives:
    # Loaded on demand: few programs have complex numbers.
    from gradcli.calculus.complex_derivatives import (
        check_holomorphic,
        complex_derivatives,
        higher_complex_derivatives,
    )

    check_holomorphic(value, [*leaves.values()])
    found = complex_derivatives(value, leaves, jacobians)
    if order > 1:
        further = higher_complex_derivatives(function, points, order)
        found |= {key: d for key, d in further.items() if "," in key}
    # Conjugation leaves signs of zeros.
    return Derivatives(value, {key: None if d is None else add(d, 0.0) for key, d in found.items()})


def evaluated(
    program: Computation, inputs: Mapping[str, Any], wrt: Sequence[str], order: int, most: tuple[int, int]
) -> Derivatives:
    """Apply `differentiated` to one row, as arrays, within limits of its own: `most` steps and array elements.

    Raises what evaluating the program raises, with its position.
    """

    def run(given: Mapping[str, Any]) -> Any:
        if isinstance(program, tree.Module):
            return evaluate(program, given).value
        return program.value(given)

    with (
        limits.within(*most),
        arrays.using_dtype(python_values.dtype(inputs)),
        arrays.using_namespace(arrays.foreign_namespace(inputs.values())),
        locating(program.source, program.body[-1].span if isinstance(program, tree.Module) else None),
    ):
        value, found, _ = differentiated(run, inputs, wrt, order)
        return Derivatives(_plain(value), {key: None if d is None else _plain(d) for key, d in found.items()})


def _plain(value: Any) -> Any:
    """A number or an array; booleans become 0 and 1."""
    array = concrete(value)
    return array if arrays.is_inexact(array) else arrays.astype(array, arrays.default_dtype())
