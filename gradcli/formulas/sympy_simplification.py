"""Simplifies formulas with SymPy in a separate process, because its time and memory cannot be predicted."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from gradcli import install_command, subprocess_calls
from gradcli.errors import LimitError, ProgramSyntaxError, UsageError
from gradcli.formulas.documents import Formulas
from gradcli.formulas.symbolic import parsed_formula
from gradcli.formulas.text_writer import UnsupportedPrimitiveError
from gradcli.primitives import table
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.subprocess_calls import Limits

LIMITS = Limits(seconds=6.0, memory=2 * 2**30)

# A program as it is sent to the process, with the names of its primitives instead of the primitives, which hold
# functions and cannot be pickled.
_Sent = tuple[tuple[Variable, ...], list[Any], tuple[Atom, ...], tuple[Variable, ...]]


def simplified(formulas: Formulas) -> Formulas | None:
    """Return the formulas with their derivatives simplified by `sympy.simplify`; None where that exceeds `LIMITS`.

    Raises UsageError where SymPy is not installed, and DifferentiationError for a formula with tensors or with
    functions that SymPy lacks.
    """
    if find_spec("sympy") is None:
        raise UsageError(
            "--simplify needs SymPy, which is not installed",
            hint=f"{install_command.install_command('sympy')} installs it",
        )
    sent = [_by_name(program) for program in formulas.derivatives.values()]
    try:
        found = subprocess_calls.call(LIMITS, _in_process, sent, linear_algebra=False)
    except LimitError:
        return None
    return formulas._replace(derivatives=dict(zip(formulas.derivatives, map(_by_entry, found))))


def _in_process(sent: Sequence[_Sent]) -> list[_Sent]:
    from gradcli.formulas.simplify import simplified

    programs = [_by_entry(program) for program in sent]
    try:
        return [_by_name(parsed_formula(simplified(program), like=program)) for program in programs]
    except (RecursionError, ProgramSyntaxError) as error:
        raise LimitError("what SymPy makes of the formula is too large") from error


def _by_name(program: Program) -> _Sent:
    for equation in program.equations:
        if "body" in equation.params:
            raise UnsupportedPrimitiveError(equation, "SymPy")
    equations = [(e.primitive.name, *e[1:]) for e in program.equations]
    return program.inputs, equations, program.outputs, program.guards


def _by_entry(sent: _Sent) -> Program:
    inputs, equations, outputs, guards = sent
    entries = {entry.name: entry for entry in table.entries() if isinstance(entry, Primitive)}
    return Program(inputs, tuple(Equation(entries[name], *rest) for name, *rest in equations), outputs, guards)
