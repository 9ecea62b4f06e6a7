"""What is equal for programs in balls that compute their first output in the same way, whatever their variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from flint import fmpq

from gradcli.arrays.flint.balls import Balls
from gradcli.program.ir import Equation, Program, Variable


def form(
    program: Program,
    *,
    name: Callable[[Equation], str] = lambda equation: equation.primitive.name,
    unordered: Callable[[Equation], bool] = lambda _: False,
) -> Hashable:
    """The form of a program. Equations with one `name` are taken for the same operation, whose operands may be exchanged
    where they are `unordered`.

    Forms are compared while both programs exist, as constants that are no fractions are compared by identity.
    """
    numbers: dict[Variable, int] = {v: i for i, v in enumerate(program.inputs)}

    def of_atom(atom: Any) -> Hashable:
        return ("variable", numbers[atom]) if isinstance(atom, Variable) else _of_constant(atom)

    equations = []
    for equation in program.equations:
        operands = [*map(of_atom, equation.inputs)]
        if unordered(equation):
            operands.sort(key=repr)
        params = tuple((key, _of_constant(value)) for key, value in equation.params.items())
        equations.append((name(equation), tuple(operands), params))
        numbers[equation.output] = len(numbers)
    return tuple(equations), of_atom(program.outputs[0])


def _of_constant(value: Any) -> Hashable:
    exact = value.numbers if isinstance(value, Balls) else value
    if hasattr(exact, "parts"):
        return tuple(map(_of_constant, exact.parts))
    return exact if isinstance(exact, (bool, int, float, complex, str, fmpq)) else id(value)
