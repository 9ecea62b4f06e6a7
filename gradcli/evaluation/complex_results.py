"""The derivatives of complex values, and by complex inputs, as results of an evaluation; whether they exist, the
Cauchy-Riemann equations decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.complex_derivatives import (
    Differentiate,
    complex_derivatives,
    higher_complex_derivatives,
    higher_wirtinger_derivatives,
    non_holomorphic_node,
    wirtinger_derivatives,
)
from gradcli.calculus.derivatives import gradients
from gradcli.calculus.first_orders import Function
from gradcli.errors import DifferentiationError, GradcliError, NonHolomorphicError
from gradcli.language.interpreter.run import evaluate
from gradcli.language.interpreter.values import as_numpy
from gradcli.language.operations import operation_at
from gradcli.language.syntax.tree import Module
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.arithmetic import add, negative
from gradcli.primitives.entries.complex_parts import from_parts
from gradcli.primitives.entries.elementwise.complex_numbers import imag, real
from gradcli.program.ir import Atom, Variable
from gradcli.program.passes import optimise
from gradcli.program.record import record


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
        if _satisfies_cauchy_riemann(self.program, self.bindings, names, rewrite=self.rewrite):
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


def _satisfies_cauchy_riemann(
    program: Module, bindings: Mapping[str, Any], names: Sequence[str], *, rewrite: bool = True
) -> bool:
    """Return whether a program is proved to satisfy the Cauchy-Riemann equations by the complex inputs `names`.

    They are that the derivative by the conjugate of z, with z and it as independent variables, is 0. That is proved in
    exact arithmetic, or from real and imaginary parts.
    """
    given = {name: value for name, value in bindings.items() if name in names}
    if any(map(arrays.shape, given.values())) or arrays.shape(evaluate(program, bindings, rewrite=rewrite).value):
        # The equations would be those of each element by each element.
        return False
    with limits.optional_budget():
        return _by_conjugates(program, bindings, names) or _by_parts(program, bindings, given, rewrite)


def _by_conjugates(program: Module, bindings: Mapping[str, Any], names: Sequence[str]) -> bool:
    # Loaded on demand: few programs have conjugates.
    from gradcli.formulas.complex_variables.holomorphic_programs import is_holomorphic, is_regular

    def value(**recorded: Any) -> list[Any]:
        return [evaluate(program, {**bindings, **recorded}, rewrite=False, rolling="never").value]

    given = {name: value for name, value in bindings.items() if name in names}
    try:
        recorded = optimise(record(value, given).program)
        return is_regular(recorded, given) and is_holomorphic(recorded, names)
    except (GradcliError, NotImplementedError):
        return False


def _by_parts(program: Module, bindings: Mapping[str, Any], given: Mapping[str, Any], rewrite: bool) -> bool:
    """Return whether the equations hold for real and imaginary parts.

    With z = a + i*b and the value u + i*v, du/da and dv/db, and du/db and -dv/da, are recorded as programs of a and b,
    which are simplified. Where they are one and the same expression, or equal constants, the equations hold everywhere.
    """
    parts = {_part(name, i): part(value) for name, value in given.items() for i, part in enumerate((real, imag))}

    def equations(**recorded: Any) -> list[Any]:
        leaves = {key: Tensor(part).requires_grad_() for key, part in recorded.items()}
        inputs = {name: from_parts(leaves[_part(name, 0)], leaves[_part(name, 1)]) for name in given}
        value = evaluate(program, {**bindings, **inputs}, rewrite=rewrite).value
        sides = []
        for name in given:
            by = [leaves[_part(name, i)] for i in (0, 1)]
            (ua, ub), (va, vb) = ([_or_zero(d) for d in gradients(part(value), by)] for part in (real, imag))
            sides += [ua, vb, ub, negative(va)]
        return sides

    try:
        traced = record(equations, parts)
        simplified = optimise(traced.program, fast=True)
    except (GradcliError, NotImplementedError):
        return False
    sides = simplified.outputs
    return not simplified.guards and all(map(_are_equal, sides[::2], sides[1::2]))


def _part(name: str, i: int) -> str:
    """The name of the real or imaginary part of an input; the space keeps it apart from names of the language."""
    return f"{name} {('real', 'imag')[i]}"


def _or_zero(derivative: Any) -> Any:
    return 0.0 if derivative is None else derivative


def _are_equal(one: Atom, other: Atom) -> bool:
    if isinstance(one, Variable) or isinstance(other, Variable):
        return one is other
    return bool(one == other)
