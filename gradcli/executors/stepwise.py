"""Run a program primitive by primitive, as eager evaluation does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gradcli import arrays
from gradcli.primitives.bind import assume, bind
from gradcli.program.ir import Atom, Equation, Program, Variable, last_uses


def outputs(program: Program, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a program without guards for `inputs`, which may be of any kinds."""
    found = run(program, inputs)
    assert found is not None
    return found


def steps(program: Program, inputs: Sequence[Any]) -> Iterator[tuple[Equation, list[Any], Any]]:
    """The equations of a program, each with its operands and its result for `inputs`; guards are not looked at."""
    known: dict[Variable, Any] = dict(zip(program.inputs, inputs))
    for equation in program.equations:
        operands = [known[a] if isinstance(a, Variable) else a for a in equation.inputs]
        known[equation.output] = bind(equation.primitive, operands, equation.params)
        yield equation, operands, known[equation.output]


def run(program: Program, inputs: Sequence[Any]) -> list[Any] | None:
    """The outputs of `program` for `inputs`, which may be of any kinds, or None if a guard does not hold.

    Raises what its primitives raise.
    """
    known: dict[Variable, Any] = dict(zip(program.inputs, inputs))

    def value(atom: Atom) -> Any:
        return known[atom] if isinstance(atom, Variable) else atom

    freed = last_uses(program.equations, (*program.outputs, *program.guards))
    with arrays.quiet():
        for number, equation in enumerate(program.equations):
            known[equation.output] = bind(equation.primitive, [value(a) for a in equation.inputs], equation.params)
            for variable in freed.get(number, ()):
                known.pop(variable, None)
    if not all(assume(value(g)) for g in program.guards):
        return None
    return [value(a) for a in program.outputs]
