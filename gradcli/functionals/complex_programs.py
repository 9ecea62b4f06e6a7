"""Programs of scalars in complex balls: compiled for many evaluations, and compared whatever their variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache, partial
from types import CodeType
from typing import Any

from flint import acb, fmpq

from gradcli import arrays, limits
from gradcli.arrays.flint.balls import Balls, precision
from gradcli.functionals.complex_rules import Rule, complex_ball
from gradcli.program.ir import Atom, Equation, Program, Variable


@lru_cache(64)
def _compiled(source: str) -> CodeType:
    """Compiled source, which many pieces of one integral share."""
    return compile(source, "<program>", "exec")


class ComplexProgram:
    """A program as straight-line Python code that calls a rule for each equation, see `gradcli.functionals.complex_rules`.

    `rule_of` returns the rule of an equation; what it raises is raised here. `of_complex` returns what represents a
    complex constant in the rules; the default is its ball.
    """

    def __init__(
        self, program: Program, rule_of: Callable[[Equation], Rule], of_complex: Callable[[acb], Any] | None = None
    ) -> None:
        self._of_complex = of_complex
        # The variables by their place in the list of values; constants follow.
        self.variables = [*program.inputs, *(e.output for e in program.equations)]
        self._places = {v: i for i, v in enumerate(self.variables)}
        # A constant keeps its place from the end.
        self._constants: list[Atom] = []
        # The constants as balls, by the precision to which they are rounded.
        self._rounded: dict[int, list[Any]] = {}
        known: dict[str, Any] = {}
        lines = []
        for k, equation in enumerate(program.equations):
            rule, params = rule_of(equation), equation.params
            known[f"f{k}"] = partial(rule, **params) if params else rule
            operands = ", ".join(["analytic", *(self._name(o) for o in equation.inputs)])
            lines.append(f"    v{self._places[equation.output]} = f{k}({operands})")
        self.outputs = [self._places[o] if isinstance(o, Variable) else self._constant(o) for o in program.outputs]
        names = [f"v{k}" for k in range(len(self.variables))]
        lines = [
            "def values(analytic, constants, inputs):",
            f"    [{', '.join(names[: len(program.inputs)])}] = inputs",
            f"    [{', '.join(f'c{k}' for k in range(len(self._constants), 0, -1))}] = constants",
            *lines,
            f"    return [{', '.join([*names, '*constants'])}]",
        ]
        exec(_compiled("\n".join(lines)), known)
        self._values: Callable[[bool, Sequence[Any], Sequence[acb]], list[Any]] = known["values"]

    def _name(self, atom: Atom) -> str:
        if isinstance(atom, Variable):
            return f"v{self._places[atom]}"
        return f"c{-self._constant(atom)}"

    def _constant(self, atom: Atom) -> int:
        """The place of a constant, from the end."""
        self._constants.insert(0, atom)
        return -len(self._constants)

    def values(self, inputs: Sequence[acb], *, analytic: bool, cost: int) -> list[Any]:
        """The values of all variables, followed by the constants: balls, what represents complex numbers, and truth
        values, which are None where the balls do not decide. An evaluation costs `cost` eighths of a step.

        Balls are not finite where they must be `analytic` and may be not.
        """
        limits.charge_steps(cost)
        bits = precision()
        constants = self._rounded.get(bits)
        if constants is None:
            constants = self._rounded[bits] = [*map(self._number, self._constants)]
        return self._values(analytic, constants, inputs)

    def _number(self, atom: Atom) -> Any:
        if type(atom) is bool:
            return atom
        if not arrays.is_complex(atom):
            return complex_ball(atom)
        number = complex_ball(atom.real) + acb(0, 1) * complex_ball(atom.imag)
        return number if self._of_complex is None else self._of_complex(number)


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
