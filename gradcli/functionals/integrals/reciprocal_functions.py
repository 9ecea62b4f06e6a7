"""Quotients by functions whose reciprocals are functions of their own: these are finite at the poles of the function, as
1/gamma(x) is at 0, and on balls that its values around a branch cut surround 0 for, as those of 1/sqrt(z)."""

from __future__ import annotations

from collections.abc import Mapping

from gradcli import arrays
from gradcli.functionals.body import Body
from gradcli.loops.rolled_loop import BodyPath, joined
from gradcli.primitives.entries.arithmetic import divide, multiply, reciprocal
from gradcli.primitives.entries.powers import rsqrt, sqrt
from gradcli.primitives.entries.special_functions.distributions import rgamma
from gradcli.primitives.entries.special_functions.special import gamma
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import without_dead_code


def with_reciprocal_functions(body: Body) -> Body:
    """The body with reciprocal functions in place of quotients by functions; the body itself where there are none."""
    paths = [BodyPath(in_reciprocal_functions(path.program), path.holds) for path in body.paths]
    if all(new.program is old.program for new, old in zip(paths, body.paths)):
        return body
    return Body(paths, joined(paths, body.results), body.bound)


def in_reciprocal_functions(program: Program) -> Program:
    """The program with reciprocal functions in place of quotients by functions, or by multiples of these; itself where
    there are none."""
    known = {equation.output: equation for equation in program.equations}
    equations = list[Equation]()
    for equation in program.equations:
        above, below = _quotient(equation)
        function, factor = _function_and_factor(below, known)
        primitive = None if function is None else _reciprocal_of(function)
        if function is None or primitive is None:
            equations.append(equation)
            continue
        output = equation.output
        found, product = (Variable((), output.dtype) for _ in range(2))
        equations.append(Equation(primitive, function.inputs, {}, found))
        equations.append(Equation(multiply, (above, found), {}, output if factor is None else product))
        if factor is not None:
            equations.append(Equation(divide, (product, factor), {}, output))
    if len(equations) == len(program.equations):
        return program
    return without_dead_code(program._replace(equations=tuple(equations)))


def _function_and_factor(atom: Atom, known: Mapping[Variable, Equation]) -> tuple[Equation | None, Atom]:
    """The equation of a function with a reciprocal function of which a value is a multiple, and the factor."""
    equation = known.get(atom) if isinstance(atom, Variable) else None
    if equation is not None and equation.primitive is multiply:
        for part, factor in (equation.inputs, equation.inputs[::-1]):
            function = known.get(part) if isinstance(part, Variable) else None
            if function is not None and _reciprocal_of(function) is not None:
                return function, factor
    return equation, None


def _reciprocal_of(equation: Equation) -> Primitive | None:
    """The primitive of the reciprocal of a result."""
    if equation.primitive is sqrt and arrays.is_complex(equation.output):
        return rsqrt
    return rgamma if equation.primitive is gamma else None


def _quotient(equation: Equation) -> tuple[Atom, Atom]:
    """What is divided by what in an equation; None by None where it is no quotient."""
    if equation.primitive is divide:
        return equation.inputs
    return (1.0, equation.inputs[0]) if equation.primitive is reciprocal else (None, None)
