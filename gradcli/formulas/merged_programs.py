"""Joins programs with the same inputs into one, in which common subexpressions are computed once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from gradcli import limits
from gradcli.program.builder import equation_key
from gradcli.program.ir import Atom, Equation, Program, Variable

# Cost of one equation, in eighths of a step.
_EQUATION = 8


def merge_programs(programs: Sequence[Program]) -> Program:
    """One program with the outputs of all programs and the inputs of the first; the others may have fewer inputs."""
    inputs = {variable.name: variable for variable in programs[0].inputs}
    equations: dict[Hashable, Equation] = {}
    outputs: list[Atom] = []
    for program in programs:
        limits.charge_steps(_EQUATION * len(program.equations))
        placed: dict[Variable, Variable] = {variable: inputs[variable.name] for variable in program.inputs}
        for equation in program.equations:
            operands = tuple(placed[a] if isinstance(a, Variable) else a for a in equation.inputs)
            key = equation_key(equation.primitive, operands, equation.params)
            found = equations.setdefault(key, equation._replace(inputs=operands))
            placed[equation.output] = found.output
        outputs += [placed[a] if isinstance(a, Variable) else a for a in program.outputs]
    return programs[0]._replace(equations=tuple(equations.values()), outputs=tuple(outputs), guards=())
