"""The base class of passes that rewrite a program equation by equation before code generation."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.primitives.entries.arithmetic import divide, multiply, negative
from gradcli.primitives.primitive import Primitive
from gradcli.program import program_constants
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import without_dead_code


class Rewriter:
    """Replaces each equation for which `replacement` returns an atom; subclasses define `replacement`."""

    def __init__(self) -> None:
        self.equations: list[Equation] = []
        # The equation that computes each variable, among those that remain.
        self.made: dict[Variable, Equation] = {}

    def rewritten(self, program: Program) -> Program:
        """The program after the pass, without dead code. An instance rewrites one program only, as it keeps the
        equations."""
        become: dict[Variable, Atom] = {}
        for equation in program.equations:
            inputs = tuple(become.get(a, a) if isinstance(a, Variable) else a for a in equation.inputs)
            equation = equation._replace(inputs=inputs)
            found = self.replacement(equation)
            if found is None:
                self._add(equation)
            else:
                become[equation.output] = found
        outputs = tuple(become.get(o, o) if isinstance(o, Variable) else o for o in program.outputs)
        return without_dead_code(program._replace(equations=tuple(self.equations), outputs=outputs))

    def replacement(self, equation: Equation) -> Atom | None:
        """The atom that replaces the output of an equation; None keeps the equation."""
        raise NotImplementedError

    def apply(self, primitive: Primitive, *inputs: Atom, dtype: str = "float64", **params: Any) -> Variable:
        """Append an elementwise function of operands and return its output."""
        return self.call(primitive, inputs, params, broadcast([arrays.shape(a) for a in inputs]), dtype)

    def call(
        self,
        primitive: Primitive,
        inputs: tuple[Atom, ...],
        params: Mapping[str, Any],
        shape: Shape,
        dtype: str = "float64",
    ) -> Variable:
        output = Variable(shape, dtype)
        self._add(Equation(primitive, inputs, params, output))
        return output

    def defining_equation(self, atom: Atom, *primitives: Primitive) -> Equation | None:
        """The equation that computes an operand, if it applies one of `primitives`; else None."""
        found = self.made.get(atom) if isinstance(atom, Variable) else None
        return found if found is not None and found.primitive in primitives else None

    def number(self, atom: Atom) -> float | None:
        """The value of an operand that is a number or a quotient of two numbers, else None."""
        made = self.defining_equation(atom, divide)
        if made is None:
            return finite_number(atom)
        above, below = map(finite_number, made.inputs)
        return above / below if above is not None and below else None

    def factors(self, atom: Atom, whole: Container[Atom] = ()) -> Sequence[Atom]:
        """The factors of a product in order; -x contributes -1 and x, and variables in `whole` are not taken apart."""
        found: list[Atom] = []
        waiting = [atom]
        while waiting:
            atom = waiting.pop()
            made = (
                None
                if isinstance(atom, Variable) and atom in whole
                else self.defining_equation(atom, multiply, negative)
            )
            if made is None:
                found.append(atom)
            else:
                waiting += [*reversed(made.inputs), *([-1.0] if made.primitive is negative else [])]
        return found

    def _add(self, equation: Equation) -> None:
        self.equations.append(equation)
        self.made[equation.output] = equation


def finite_number(atom: Atom) -> float | None:
    """The value of an operand that is a finite number (not a truth value), else None."""
    if isinstance(atom, Variable) or arrays.dtype_name(atom) == "bool":
        return None
    number = program_constants.number(atom)
    return number if number is not None and math.isfinite(number) else None
