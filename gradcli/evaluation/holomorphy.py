"""A proof that a program is holomorphic although it has operations that are not, as in real(z) + 1j*imag(z)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients
from gradcli.errors import GradcliError
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax.tree import Module
from gradcli.primitives.entries.arithmetic import negative
from gradcli.primitives.entries.complex_numbers import from_parts, imag, real
from gradcli.program.ir import Atom, Variable
from gradcli.program.passes import optimise
from gradcli.program.record import record


def satisfies_cauchy_riemann(
    program: Module, bindings: Mapping[str, Any], names: Sequence[str], *, rewrite: bool = True
) -> bool:
    """Whether a program is proved to satisfy the Cauchy-Riemann equations by the complex inputs `names`.

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
    from gradcli.formulas.holomorphic_programs import is_holomorphic, is_regular

    def value(**recorded: Any) -> list[Any]:
        return [evaluate(program, {**bindings, **recorded}, rewrite=False, rolling="never").value]

    given = {name: value for name, value in bindings.items() if name in names}
    try:
        recorded = optimise(record(value, given).program)
        return is_regular(recorded, given) and is_holomorphic(recorded, names)
    except (GradcliError, NotImplementedError):
        return False


def _by_parts(program: Module, bindings: Mapping[str, Any], given: Mapping[str, Any], rewrite: bool) -> bool:
    """Whether the equations hold for real and imaginary parts.

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
