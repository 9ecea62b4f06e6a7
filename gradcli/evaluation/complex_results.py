"""The derivatives of complex values, and by complex inputs, as results of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.complex_derivatives import (
    Differentiate,
    complex_derivatives,
    higher_complex_derivatives,
    higher_wirtinger_derivatives,
    non_holomorphic_node,
    wirtinger_derivatives,
)
from gradcli.calculus.higher_orders import Function
from gradcli.errors import DifferentiationError, NonHolomorphicError
from gradcli.evaluation import holomorphy
from gradcli.language.interpreter.values import as_numpy
from gradcli.language.operations import operation_at
from gradcli.language.syntax.tree import Module
from gradcli.primitives.entries.arithmetic import add


class ComplexValue(NamedTuple):
    """A complex value, the program that it comes from, and its leaves, some of which may be real."""

    value: Any
    program: Module
    bindings: Mapping[str, Any]
    leaves: Mapping[str, Tensor]
    rewrite: bool = True

    def derivatives(self, differentiate: Differentiate) -> dict[str, Any]:
        """The derivatives as NumPy arrays, by name; None where the value does not depend on a leaf.

        `differentiate` gives gradients or Jacobians of real values. Raises as `check_holomorphic` does.
        """
        self.check_holomorphic()
        found = complex_derivatives(self.value, self.leaves, differentiate)
        return {name: _as_result(d) for name, d in found.items()}

    def higher_derivatives(self, function: Function, order: int) -> dict[str, Any]:
        """The derivatives of order 2 and more, of the function that computes the value. Raises as
        `check_holomorphic` does."""
        self.check_holomorphic()
        leaves = {name: leaf.inner for name, leaf in self.leaves.items()}
        found = higher_complex_derivatives(function, leaves, order)
        return {key: _as_result(d) for key, d in found.items() if "," in key}

    def check_holomorphic(self) -> None:
        """Raise DifferentiationError where the value is not proved to be holomorphic in its complex leaves."""
        node = non_holomorphic_node(self.value, [*self.leaves.values()])
        if node is None:
            return
        names = [name for name, leaf in self.leaves.items() if arrays.is_complex(leaf.inner)]
        if holomorphy.satisfies_cauchy_riemann(self.program, self.bindings, names, rewrite=self.rewrite):
            return
        name = operation_at(self.program, node.span) if node.span is not None else None
        called = f"'{name}'" if name else "this operation"
        raise NonHolomorphicError(
            f"the program is not holomorphic, or not known to be: {called} of a complex input is not",
            hint=f"--wirtinger gives the derivatives by {names[0]} and by conj({names[0]})",
            span=node.span,
        )


def derivatives_by_conjugates(
    value: Any, leaves: Mapping[str, Tensor], differentiate: Differentiate
) -> dict[str, dict[str, Any] | None]:
    """Wirtinger's derivatives by complex leaves as NumPy arrays, by name. Raises DifferentiationError if no leaf is
    complex."""
    given = complex_leaves(leaves)
    if not given:
        raise DifferentiationError(
            "Wirtinger's derivatives are those by complex inputs, and none is complex", hint="z=1+2j is a complex one"
        )
    return {
        name: None if d is None else {"by": _as_result(d.by), "by_conjugate": _as_result(d.by_conjugate)}
        for name, d in wirtinger_derivatives(value, given, differentiate).items()
    }


def higher_derivatives_by_conjugates(
    value: Any, leaves: Mapping[str, Tensor], function: Function, order: int
) -> dict[str, Any]:
    """The derivatives of order 2 and more by complex leaves, their conjugates and real leaves, as NumPy arrays."""
    found = higher_wirtinger_derivatives(function, value, leaves, order)
    return {key: _as_result(d) if d is not None and arrays.is_complex(d) else as_numpy(d) for key, d in found.items()}


def complex_leaves(leaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: leaf for name, leaf in leaves.items() if arrays.is_complex(leaf.inner)}


def _as_result(derivative: Any) -> Any:
    """A derivative of a complex value as a complex NumPy array, without signs of zeros that conjugation leaves."""
    if derivative is None:
        return None
    found = as_numpy(add(derivative, 0.0))
    return arrays.astype(found, arrays.complex_dtype(arrays.dtype_name(found)))
