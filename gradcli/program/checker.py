"""Whether a program is well formed."""

from __future__ import annotations

from gradcli import arrays
from gradcli.program.ir import Atom, Program, Variable


class MalformedProgramError(AssertionError):
    """A recording or a pass made a program that cannot be right: a defect of gradcli."""


def check(program: Program) -> Program:
    """The program itself, if every variable is defined once, before it is used, with a known dtype,
    and every constant is an array. Raises MalformedProgramError."""
    known = set(program.inputs)
    _require(len(known) == len(program.inputs), "an input is there twice")
    for equation in program.equations:
        for atom in equation.inputs:
            _require(_is_known(atom, known), f"'{equation.primitive.name}' reads what was not defined: {atom!r}")
        _require(equation.output not in known, f"'{equation.primitive.name}' defines what is defined already")
        known.add(equation.output)
    for atom in (*program.outputs, *program.guards):
        _require(_is_known(atom, known), f"an output was not defined: {atom!r}")
    return program


def _is_known(atom: Atom, known: set[Variable]) -> bool:
    return atom in known if isinstance(atom, Variable) else arrays.is_array(atom)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise MalformedProgramError(message)
