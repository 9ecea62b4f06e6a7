"""Checks that a program is well formed."""

from __future__ import annotations

from gradcli import arrays
from gradcli.program.ir import Program, Variable


class MalformedProgramError(AssertionError):
    """A recording or a pass made an invalid program: a defect of gradcli."""


def check(program: Program) -> Program:
    """Return the program if it is well formed.

    Every variable must be defined once, before its first use, and every constant must be an array. Raises
    MalformedProgramError otherwise.
    """
    known = set(program.inputs)
    if len(known) != len(program.inputs):
        raise MalformedProgramError("an input is there twice")
    for primitive, inputs, _, output in program.equations:
        for atom in inputs:
            if not (atom in known if isinstance(atom, Variable) else arrays.is_array(atom)):
                raise MalformedProgramError(f"'{primitive.name}' reads what was not defined: {atom!r}")
        if output in known:
            raise MalformedProgramError(f"'{primitive.name}' defines what is defined already")
        known.add(output)
    for atom in (*program.outputs, *program.guards):
        if not (atom in known if isinstance(atom, Variable) else arrays.is_array(atom)):
            raise MalformedProgramError(f"an output was not defined: {atom!r}")
    return program
