"""A proof that a program of numbers is holomorphic: its derivatives by the conjugates of its inputs are identically 0."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gradcli import arrays
from gradcli.errors import DifferentiationError
from gradcli.executors import stepwise
from gradcli.formulas.complex_variables.conjugate_variables import by_conjugates, conjugate_name
from gradcli.formulas.complex_variables.exact_identities import is_zero
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.arithmetic import absolute
from gradcli.primitives.entries.comparisons import equal, greater, isfinite, not_equal, where
from gradcli.primitives.entries.complex_parts import conjugate, imaginary_part, real_part
from gradcli.primitives.entries.elementwise.complex_numbers import from_parts, phase
from gradcli.program.ir import Equation, Program, Variable

_KNOWN = frozenset([conjugate, real_part, imaginary_part, phase, from_parts])


def is_holomorphic(program: Program, complex_names: Collection[str]) -> bool:
    """Return whether a program is proved to be holomorphic in its complex inputs, except at branch cuts and single
    points.

    Nothing is claimed of a program that is piecewise another function: one that chooses, rounds or takes the modulus of
    a real number.
    """
    program = _in_complex_numbers(program)
    if not _excludes_points(program) or not _is_one_function(program, complex_names):
        return False
    names = [name for name in complex_names if any(v.name == name for v in program.inputs)]
    try:
        found = by_conjugates(program, complex_names, names, keep=[absolute])
    except (DifferentiationError, NotImplementedError):
        return False
    derivatives = [found.by(conjugate_name(name)).outputs[0] for name in names]
    squares = {part.variable: (part.argument, part.conjugate) for part in found.kept}
    return _excludes_points(found.program) and is_zero(found.program._replace(outputs=tuple(derivatives)), squares)


def is_regular(program: Program, point: Mapping[str, Any]) -> bool:
    """Return whether a program of numbers has no modulus or angle of 0 at a point, where these have no derivative, and
    no test that holds there."""
    if any(arrays.shape(atom) for e in program.equations for atom in (*e.inputs, e.output)):
        return False
    with arrays.quiet():
        for equation, operands, result in stepwise.steps(program, [point[v.name or ""] for v in program.inputs]):
            primitive = equation.primitive
            if primitive in (absolute, phase, equal) and (result if primitive is equal else not operands[0]):
                return False
    return True


def _excludes_points(program: Program) -> bool:
    """Return whether a program is recorded for all inputs but those for which numbers are 0, have another single value,
    or are not finite."""
    made = {equation.output: equation for equation in program.equations}
    for guard in program.guards:
        primitive, inputs, _, _ = made[guard]
        if primitive is greater:
            modulus = made.get(inputs[0])
            known = modulus is not None and modulus.primitive is absolute
        else:
            known = primitive is isfinite or primitive is not_equal
        if not known or any(isinstance(a, Variable) for a in inputs[1:]):
            return False
    return True


def _in_complex_numbers(program: Program) -> Program:
    """A program with hypot and atan2 of parts of complex numbers as the modulus and the angle of a complex number."""
    equations = []
    for equation in program.equations:
        part = {"hypot": absolute, "atan2": phase}.get(equation.primitive.name)
        if part is not None and not any(map(arrays.shape, equation.inputs)):
            number = Variable((), "complex128")
            real, imaginary = equation.inputs if part is absolute else reversed(equation.inputs)
            equations.append(Equation(from_parts, (real, imaginary), {}, number))
            equation = equation._replace(primitive=part, inputs=(number,))
        equations.append(equation)
    return program._replace(equations=tuple(equations))


def _is_one_function(program: Program, complex_names: Collection[str]) -> bool:
    dependent: set[Variable] = {v for v in program.inputs if v.name in complex_names}
    # The tests whether an input has one value.
    tests: set[Variable] = set()
    for primitive, inputs, params, output in program.equations:
        read = [a for a in inputs if isinstance(a, Variable) and a in dependent]
        if not read:
            continue
        dependent.add(output)
        if primitive is where:
            # Functions such as sgn choose another number at the origin alone.
            known = inputs[0] in tests
        elif primitive is equal:
            known = read[0] in program.inputs and not all(isinstance(a, Variable) for a in inputs)
            tests.add(output)
        elif primitive is absolute:
            known = arrays.is_complex(inputs[0])
        elif primitive is cast:
            # To whole numbers it rounds.
            known = params["dtype"].startswith(("float", "complex"))
        else:
            known = primitive.numbers == "analytic" or primitive in _KNOWN
        if not known:
            return False
    return True
