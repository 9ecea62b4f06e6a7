"""Run scalar programs as generated straight-line Python with operators and functions of `math`.

Each template gives the result of `gradcli.arrays.floats`, or raises an exception where that is infinite or nan; then
the program is run on `gradcli.arrays.floats` instead. The text contains only generated names and numbers, whatever the
program was made from.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gradcli import arrays
from gradcli.arrays.definitions import common_definitions
from gradcli.primitives import conversions
from gradcli.primitives.bind import bind
from gradcli.primitives.entries import arithmetic, comparisons, exponential, powers
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable

# The maximum nesting of expressions, because Python's parser has a limit.
_DEEPEST = 16
_DTYPES = frozenset({"float64", "bool"})
# `maximum` and `minimum` of `gradcli.arrays.floats`, which propagate nan.
_LARGER = "{0} if {0} > {1} or {0} != {0} else {1}"
_SMALLER = "{0} if {0} < {1} or {0} != {0} else {1}"

# Operands are variables or numbers; truth values are converted to floats where floats are required.
_TEMPLATES: dict[Primitive, str] = {
    arithmetic.negative: "-{0}",
    arithmetic.reciprocal: "1.0 / {0}",
    arithmetic.identity: "{0}",
    arithmetic.zeros_like: "0.0",
    arithmetic.ones_like: "1.0",
    comparisons.maximum: _LARGER,
    comparisons.minimum: _SMALLER,
    comparisons.logical_not: "not {0}",
    comparisons.logical_and: "bool({0}) and bool({1})",
    comparisons.logical_or: "bool({0}) or bool({1})",
    comparisons.where: "{1} if {0} else {2}",
    powers.rsqrt: "1.0 / sqrt({0})",
    exponential.exp2: "pow(2.0, {0})",
    # Beyond the logarithm of the largest float, exp(-x) overflows.
    exponential.sigmoid: "1.0 / (1.0 + exp(-{0})) if {0} > -709.782712893384 else exp({0})",
    exponential.relu: _LARGER.replace("{1}", "0.0"),
}

# Of primitives that are computed by a definition, by its function.
_OF_DEFINITIONS: dict[Any, str] = {
    common_definitions.sech: "((t := exp(-fabs({0}))) + t) / (1.0 + t * t)",
    # The result is 0 beyond 400, and `cosh` raises an error beyond 710.
    common_definitions.sech_square: "(t := 1.0 / cosh(min(fabs({0}), 400.0))) * t",
    common_definitions.over_one_plus_square: (
        f"{common_definitions.SMALL**2!r} / ({common_definitions.SMALL**2!r} + (t := {{0}} * {common_definitions.SMALL!r}) * t)"
    ),
}


def template(primitive: Primitive) -> str | None:
    """The template of an elementwise primitive; None if no expression gives the result of `arrays.floats`.

    Where that is infinite or nan, the expression may raise instead.
    """
    if primitive in _TEMPLATES or not primitive.elementwise or primitive.function is None:
        return _TEMPLATES.get(primitive) or _OF_DEFINITIONS.get(primitive.forward)
    function = arrays.floats.raising(primitive.function)
    if function is None:
        return None
    if primitive.operator is not None and function.__module__ == "_operator":
        return f"{{0}} {primitive.operator} {{1}}"
    operands = ", ".join(f"{{{i}}}" for i in range(len(primitive.parameters)))
    return f"{function.__name__}({operands})"


def _is_unchanged(primitive: Primitive) -> bool:
    """Return whether a primitive moves or selects elements, and thus leaves the single element of a scalar
    unchanged."""
    return not primitive.elementwise and (primitive.moves or primitive.selects)


def fits(program: Program) -> bool:
    """Return whether every variable of `program` is a float64 scalar or a truth value, and every constant a real
    number."""
    variables = (*program.inputs, *(e.output for e in program.equations))
    constants = (a for atoms in (*(e.inputs for e in program.equations), program.outputs) for a in atoms)
    return all(v.shape == () and v.dtype in _DTYPES for v in variables) and all(
        isinstance(a, Variable) or (type(a) in arrays.PYTHON_NUMBERS and type(a) is not complex) for a in constants
    )


def function(
    program: Program,
    result: Callable[[Sequence[str]], str],
    *,
    raised: Callable[..., Any],
    refused: Callable[..., Any],
    known: Mapping[str, Any] = MappingProxyType({}),
) -> Callable[..., Any]:
    """`program`, for which `fits` must hold, as a Python function of its inputs.

    `result` writes the expression that the function returns, given the texts of the outputs; it may use the names in
    `known`. If `math` raises an exception, the function returns the result of `raised`, and if an input is not a float
    or a guard does not hold, that of `refused`, with the same inputs.
    """
    return _FunctionWriter(program, {**known, "raised": raised, "refused": refused}).compiled(result)


class ScalarWriter:
    """Writes the equations of a program as statements, and collects the objects that the names in them refer to."""

    def __init__(self, program: Program) -> None:
        self.program = program
        # The name of a variable, or the expression that computes it, if it is read only once, in an operator.
        self.names: dict[Variable, str] = {v: f"v{i}" for i, v in enumerate(program.inputs)}
        self.known: dict[str, Any] = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
        # The templates of primitives that were looked up.
        self._templates: dict[Primitive, str] = {}

    def statements(self) -> list[str]:
        """The statements that compute all equations, and those that check guards."""
        within, tested = _within_operators(self.program), _only_tested(self.program)
        body: list[str] = []
        # The nesting depths of the expressions in `names`.
        depths: dict[Atom, int] = {}
        names, guards = self.names, {*self.program.guards}
        for equation in self.program.equations:
            text, output = self._equation(equation), equation.output
            if output in within:
                depth = 1 + max([depths.get(a, 0) for a in equation.inputs if isinstance(a, Variable)], default=0)
                if depth < _DEEPEST:
                    names[output], depths[output] = f"({text})", depth
                    continue
            if output in tested:
                body += self.check(f"({text})")
                continue
            name = names[output] = f"v{len(names)}"
            body.append(f"{name} = {text}")
            if output in guards:
                body += self.check(name)
        return body

    def defined(self, name: str, lines: Sequence[str]) -> Callable[..., Any]:
        """The function of this name that the lines define."""
        exec("\n".join(lines), self.known)
        made: Callable[..., Any] = self.known[name]
        return made

    def check(self, _condition: str) -> list[str]:
        """Statements that check a guard, the text of a condition."""
        return []

    def _equation(self, equation: Equation) -> str:
        primitive, inputs = equation.primitive, equation.inputs
        operands = [*map(self._atom if primitive.truths else self.number, inputs)]
        known = self._templates.get(primitive)
        if known is not None:
            return known.format(*operands)
        if primitive is powers.whole_power:
            n = equation.params["n"]
            if n == 1:
                return operands[0]
            return f"{operands[0]} * {operands[0]}" if n == 2 else f"pow({operands[0]}, {float(n)!r})"
        if _is_unchanged(primitive) or (primitive is conversions.cast and equation.output.dtype == "float64"):
            return self.number(inputs[0]) if equation.output.dtype == "float64" else operands[0]
        if primitive is conversions.cast and equation.output.dtype == "bool":
            return f"bool({operands[0]})"
        text = template(primitive)
        # `where` between a number and a truth value returns the kind of the operand that is chosen.
        mixed = primitive is comparisons.where and arrays.dtype_name(inputs[1]) != arrays.dtype_name(inputs[2])
        if text is None or mixed:
            return f"{self._named(_caller(primitive, equation.params))}({', '.join(operands)})"
        if primitive is not comparisons.where:
            self._templates[primitive] = text
        return text.format(*operands)

    def _named(self, function: Callable[..., Any]) -> str:
        name = f"f{len(self.known)}"
        self.known[name] = function
        return name

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Variable):
            return self.names[atom]
        return repr(bool(atom)) if arrays.dtype_name(atom) == "bool" else repr(float(atom))

    def number(self, atom: Atom) -> str:
        """The text of an atom as a float."""
        if isinstance(atom, Variable) and atom.dtype == "float64":
            return self.names[atom]
        text = self._atom(atom)
        return f"float({text})" if arrays.dtype_name(atom) == "bool" else text


class _FunctionWriter(ScalarWriter):
    """Writes the text of a function."""

    def __init__(self, program: Program, known: Mapping[str, Any]) -> None:
        super().__init__(program)
        self.known |= known
        self.inputs = ", ".join(self.names.values())

    def compiled(self, result: Callable[[Sequence[str]], str]) -> Callable[..., Any]:
        guards = [self.names[v] for v in self.program.inputs if v in self.program.guards]
        body = [line for guard in guards for line in self.check(guard)] + self.statements()
        outputs = [self.number(atom) for atom in self.program.outputs]
        lines = [
            f"def program({self.inputs}):",
            f"    if not ({self._are_floats()}): return refused({self.inputs})",
            "    try:",
            *(f"        {line}" for line in body),
            f"        return {result(outputs)}",
            "    except (ArithmeticError, ValueError):",
            f"        return raised({self.inputs})",
        ]
        return self.defined("program", lines)

    def check(self, condition: str) -> list[str]:
        return [f"if not {condition}: return refused({self.inputs})"]

    def _are_floats(self) -> str:
        types = [f"type({self.names[v]}) is" for v in self.program.inputs]
        return f"{' '.join(types)} float" if types else "True"


def _within_operators(program: Program) -> set[Variable]:
    """The variables that are read once, by an operator or `not`.

    Inlined into expressions, they need less time, and less memory, which also costs time in long programs.
    """
    uses = Counter(a for e in program.equations for a in e.inputs if isinstance(a, Variable))
    operators = [e for e in program.equations if e.primitive.operator or e.primitive is comparisons.logical_not]
    read = {a for e in operators for a in e.inputs if isinstance(a, Variable)}
    return {v for v in read if uses[v] == 1}.difference(program.guards, program.inputs, _variables(program.outputs))


def _only_tested(program: Program) -> set[Variable]:
    """The guards that nothing else reads."""
    read = {a for e in program.equations for a in e.inputs if isinstance(a, Variable)}
    return {*program.guards} - read - _variables(program.outputs)


def _variables(atoms: Sequence[Atom]) -> set[Variable]:
    return {a for a in atoms if isinstance(a, Variable)}


def _caller(primitive: Primitive, params: Mapping[str, Any]) -> Callable[..., Any]:
    """A primitive without a template as a function, evaluated as in eager mode."""
    if primitive.elementwise:
        return functools.partial(primitive.forward, arrays.floats, **params)
    return lambda *operands: bind(primitive, operands, params)
