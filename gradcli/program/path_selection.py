"""Joins programs for different execution paths into one, which selects for each input the results of its own path."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.primitives.entries.comparisons import logical_and, logical_or, where
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable


def joined(programs: Sequence[Program]) -> Program | None:
    """Return a program with the outputs of the first of `programs` whose guards hold, valid for inputs for which there
    is one.

    None where not all programs can be evaluated for all numbers: they must be scalar and must not fail. The programs
    have inputs of the same names, equal numbers of outputs, and guards.
    """
    if not all(map(_is_of_numbers, programs)):
        return None
    inputs = {v.name: v for program in programs for v in program.inputs}
    equations: list[Equation] = []

    def apply(primitive: Primitive, *operands: Atom, dtype: str) -> Variable:
        result = Variable((), dtype)
        equations.append(Equation(primitive, operands, {}, result))
        return result

    def both(a: Atom, b: Atom) -> Variable:
        return apply(logical_and, a, b, dtype="bool")

    outputs: Sequence[Atom] = ()
    known: Atom = None
    for program in reversed(programs):
        own = {v: inputs[v.name] for v in program.inputs}
        equations += (e._replace(inputs=tuple(_among(own, a) for a in e.inputs)) for e in program.equations)
        held = functools.reduce(both, (_among(own, guard) for guard in program.guards))
        found = [_among(own, output) for output in program.outputs]
        if known is None:
            outputs, known = found, held
        else:
            outputs = [apply(where, held, a, b, dtype="float64") for a, b in zip(found, outputs)]
            known = apply(logical_or, held, known, dtype="bool")
    return Program(tuple(inputs.values()), tuple(equations), tuple(outputs), (known,))


def _is_of_numbers(program: Program) -> bool:
    atoms = [*program.inputs, *(e.output for e in program.equations), *program.outputs]
    return (
        bool(program.guards)
        and all(e.primitive.elementwise and not e.primitive.fails for e in program.equations)
        and not any(map(arrays.shape, atoms))
        and all(arrays.dtype_name(output) == "float64" for output in program.outputs)
    )


def _among(own: dict[Variable, Variable], atom: Any) -> Any:
    return own.get(atom, atom) if isinstance(atom, Variable) else atom
