"""The derivatives of complex values, and by complex inputs, as results of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.complex_derivatives import (
    Differentiate,
    complex_derivatives,
    non_holomorphic_node,
    wirtinger_derivatives,
)
from gradcli.errors import DifferentiationError
from gradcli.evaluation import holomorphy
from gradcli.language.interpreter.values import as_numpy
from gradcli.language.operations import operation_at

if TYPE_CHECKING:
    from gradcli.evaluation.session import EvaluationRequest


def derivatives_of_complex(
    request: EvaluationRequest, value: Any, leaves: Mapping[str, Tensor], differentiate: Differentiate
) -> dict[str, Any]:
    """The derivatives of a complex value as NumPy arrays, by name; None where it does not depend on a leaf.

    `differentiate` gives gradients or Jacobians of real values. Those by complex leaves are left out where Wirtinger's
    were requested. Raises DifferentiationError where the value is not proved to be holomorphic in complex leaves.
    """
    if request.retain:
        raise DifferentiationError(
            "intermediates have gradients of a real value, and this one is complex",
            hint="--grad-output EXPR weights it, and abs(…) is real",
        )
    if request.wirtinger:
        leaves = {name: leaf for name, leaf in leaves.items() if not arrays.is_complex(leaf.inner)}
    check_holomorphic(request, value, leaves)
    return {name: as_numpy(d) for name, d in complex_derivatives(value, leaves, differentiate).items()}


def check_holomorphic(request: EvaluationRequest, value: Any, leaves: Mapping[str, Tensor]) -> None:
    """Raise DifferentiationError where a value is not proved to be holomorphic in the complex ones of its leaves."""
    node = non_holomorphic_node(value, [*leaves.values()])
    if node is None:
        return
    names = [name for name, leaf in leaves.items() if arrays.is_complex(leaf.inner)]
    if holomorphy.satisfies_cauchy_riemann(request.program, request.bindings, names, rewrite=request.rewrite):
        return
    name = operation_at(request.program, node.span) if node.span is not None else None
    called = f"'{name}'" if name else "this operation"
    raise DifferentiationError(
        f"the program is not holomorphic, or not known to be: {called} of a complex input is not",
        hint=f"--wirtinger gives the derivatives by {names[0]} and by conj({names[0]})",
        span=node.span,
    )


def derivatives_by_conjugates(
    value: Any, leaves: Mapping[str, Tensor], differentiate: Differentiate
) -> dict[str, dict[str, Any] | None]:
    """Wirtinger's derivatives by complex leaves as NumPy arrays, by name. Raises DifferentiationError if no leaf is
    complex."""
    given = {name: leaf for name, leaf in leaves.items() if arrays.is_complex(leaf.inner)}
    if not given:
        raise DifferentiationError(
            "Wirtinger's derivatives are those by complex inputs, and none is complex", hint="z=1+2j is a complex one"
        )
    return {
        name: None if d is None else {"by": as_numpy(d.by), "by_conjugate": as_numpy(d.by_conjugate)}
        for name, d in wirtinger_derivatives(value, given, differentiate).items()
    }
