"""The right side of a system between two places where it bends or jumps, as a smooth program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import EvaluationError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind
from gradcli.primitives.entries import arithmetic, comparisons, exponential
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import needed_variables, optimise

# What the equations of a program that bend or jump are, by the number of the equation: the truth value of a comparison,
# the sign of a number or difference, or the whole number that something is rounded to.
Decisions = Mapping[int, Any]

_LESS = frozenset({comparisons.less, comparisons.less_equal})
_GREATER = frozenset({comparisons.greater, comparisons.greater_equal})
_SIGNED = frozenset({arithmetic.absolute, arithmetic.sign, exponential.relu, comparisons.maximum, comparisons.minimum})
# The whole number below, and the distance of the next one.
_ROUNDED: Mapping[Primitive, Any] = {
    arithmetic.floor: math.floor,
    arithmetic.ceil: math.ceil,
    arithmetic.trunc: math.trunc,
    arithmetic.round_to_even: round,
    arithmetic.remainder: math.floor,
    arithmetic.floor_divide: math.floor,
    arithmetic.fmod: math.trunc,
}
_QUOTIENTS = frozenset({arithmetic.remainder, arithmetic.floor_divide, arithmetic.fmod})
# What holds inside a piece: equality, for which derivatives at a bend ask, is that of a moment.
_INSIDE: Mapping[Primitive, bool] = {comparisons.equal: False, comparisons.not_equal: True}
_SWITCHING = _LESS | _GREATER | _SIGNED | frozenset(_ROUNDED) | frozenset(_INSIDE)


class Margin(NamedTuple):
    """A function that is positive inside a piece, and the decision about an equation where it becomes 0."""

    equation: int
    beyond: Any


class SmoothPiece(NamedTuple):
    """The outputs of `program` are the slopes of the states, followed by the margins."""

    program: Program
    margins: Sequence[Margin]


def sliding_error(time: float) -> EvaluationError:
    """The error of a solution that leads back to where the right side jumps, from both sides."""
    return EvaluationError(
        f"the right side switches back and forth at t = {time:.8g}",
        hint="the solution slides along a jump; a smooth step in its place is 2*sigmoid(x/0.01) - 1 for sign(x), and"
        " sigmoid((a - x)/0.01) for x < a",
    )


def switching(program: Program, varying: int) -> list[int]:
    """The numbers of the equations that may bend or jump where the first `varying` inputs vary."""
    moves = set(program.inputs[:varying])
    found = []
    for number, equation in enumerate(program.equations):
        if any(isinstance(a, Variable) and a in moves for a in equation.inputs):
            moves.add(equation.output)
            # The larger of two truth values is that one of them holds.
            is_logical = equation.primitive in _SIGNED and equation.output.dtype == "bool"
            if equation.primitive in _SWITCHING and not is_logical:
                found.append(number)
    return found


def decisions_at(program: Program, numbers: Sequence[int], inputs: Sequence[float]) -> dict[int, Any]:
    """The decisions of these equations at a point."""
    known: dict[Variable, Any] = dict(zip(program.inputs, inputs))
    needed = needed_variables(program.equations, [program.equations[n].output for n in numbers])
    wanted = set(numbers)
    found = {}
    with arrays.using_namespace(None), arrays.quiet():
        for number, (primitive, atoms, params, output) in enumerate(program.equations):
            if output not in needed:
                continue
            operands = [known[a] if isinstance(a, Variable) else a for a in atoms]
            known[output] = bind(primitive, operands, params)
            if number in wanted:
                found[number] = _decision(primitive, operands, known[output])
    return found


def _decision(primitive: Primitive, operands: Sequence[Any], value: Any) -> Any:
    if primitive in _INSIDE:
        return _INSIDE[primitive]
    if primitive in _LESS | _GREATER:
        return bool(value)
    if primitive in _SIGNED:
        difference = operands[0] - operands[1] if len(operands) > 1 else operands[0]
        return 1.0 if difference >= 0 else -1.0
    quotient = operands[0] / operands[1] if primitive in _QUOTIENTS and operands[1] else operands[0]
    return float(_ROUNDED[primitive](quotient)) if math.isfinite(quotient) else 0.0


def piece(program: Program, decisions: Decisions, results: int) -> SmoothPiece:
    """The piece where equations are decided so; the first `results` outputs are kept."""
    made = _Writer()
    for number, equation in enumerate(program.equations):
        made.add(number, equation, decisions)
    live = _live(program, made.meaning, results)
    kept = [(margin, atom) for margin, atom in made.margins if program.equations[margin.equation].output in live]
    outputs = (*map(made.atom, program.outputs[:results]), *(atom for _, atom in kept))
    smooth = optimise(Program(program.inputs, tuple(made.equations), outputs))
    left = [(m, o) for (m, _), o in zip(kept, smooth.outputs[results:]) if isinstance(o, Variable)]
    return SmoothPiece(
        smooth._replace(outputs=(*smooth.outputs[:results], *(o for _, o in left))), [m for m, _ in left]
    )


def _live(program: Program, meaning: Mapping[Variable, Atom], results: int) -> set[Atom]:
    """The variables that the results depend on; a `where` that is decided depends on one branch."""
    live: set[Atom] = set(program.outputs[:results])
    for primitive, inputs, _, output in reversed(program.equations):
        if output in live:
            condition = meaning.get(inputs[0], inputs[0]) if primitive is comparisons.where else None
            decided = condition is not None and not isinstance(condition, Variable)
            live.update((inputs[0], inputs[1] if condition else inputs[2]) if decided else inputs)
    return {a for a in live if isinstance(a, Variable)}


class _Writer:
    """Writes the equations of a piece."""

    def __init__(self) -> None:
        self.equations: list[Equation] = []
        self.margins: list[tuple[Margin, Atom]] = []
        # What became of the variables of the whole program that are not the same here.
        self.meaning: dict[Variable, Atom] = {}

    def atom(self, atom: Atom) -> Atom:
        """An atom of the whole program here."""
        return self.meaning.get(atom, atom) if isinstance(atom, Variable) else atom

    def add(self, number: int, equation: Equation, decisions: Decisions) -> None:
        """Add an equation of the whole program."""
        primitive, inputs, params, output = equation
        atoms = tuple(map(self.atom, inputs))
        if number in decisions and any(isinstance(a, Variable) for a in atoms):
            self.meaning[output] = self._decided(number, primitive, atoms, decisions[number], output)
        elif primitive is comparisons.where and not isinstance(atoms[0], Variable):
            self.meaning[output] = atoms[1] if atoms[0] else atoms[2]
        elif not any(isinstance(a, Variable) for a in atoms):
            with arrays.using_namespace(None), arrays.quiet():
                self.meaning[output] = bind(primitive, atoms, params)
        else:
            self.equations.append(Equation(primitive, atoms, params, output))

    def _decided(
        self, number: int, primitive: Primitive, atoms: Sequence[Atom], decision: Any, output: Variable
    ) -> Atom:
        """The result of an equation that is decided."""
        if primitive in _INSIDE:
            return decision
        if primitive in _LESS | _GREATER:
            first, second = atoms if (primitive in _GREATER) == decision else atoms[::-1]
            self._margin(number, self._applied(arithmetic.subtract, first, second), not decision)
            return decision
        if primitive in _SIGNED:
            first, second = (*atoms, 0.0)[:2]
            if decision < 0:
                first, second = second, first
            self._margin(number, self._applied(arithmetic.subtract, first, second), -decision)
            if primitive is arithmetic.sign:
                return decision
            if primitive is arithmetic.absolute:
                return self._applied(arithmetic.subtract, first, second)
            return second if primitive is comparisons.minimum else first
        return self._rounded(number, primitive, atoms, decision)

    def _rounded(self, number: int, primitive: Primitive, atoms: Sequence[Atom], whole: float) -> Atom:
        x = self._applied(arithmetic.divide, *atoms) if primitive in _QUOTIENTS else atoms[0]
        low, high = _bounds(primitive, whole)
        self._margin(number, self._applied(arithmetic.subtract, x, low), whole - 1)
        self._margin(number, self._applied(arithmetic.subtract, high, x), whole + 1)
        if primitive in (arithmetic.remainder, arithmetic.fmod):
            return self._applied(arithmetic.subtract, atoms[0], self._applied(arithmetic.multiply, whole, atoms[1]))
        return whole

    def _margin(self, number: int, atom: Atom, beyond: Any) -> None:
        self.margins.append((Margin(number, beyond), atom))

    def _applied(self, primitive: Primitive, first: Atom, second: Atom) -> Atom:
        if not isinstance(first, Variable) and not isinstance(second, Variable):
            return bind(primitive, (first, second), {})
        output = Variable((), "float64")
        self.equations.append(Equation(primitive, (first, second), {}, output))
        return output


def _bounds(primitive: Primitive, whole: float) -> tuple[float, float]:
    """The numbers between which something is rounded to a whole number."""
    rounding = _ROUNDED[primitive]
    if rounding is round:
        return whole - 0.5, whole + 0.5
    if rounding is math.trunc and whole == 0.0:
        return -1.0, 1.0
    down = rounding is math.floor or (rounding is math.trunc and whole > 0.0)
    return (whole, whole + 1) if down else (whole - 1, whole)
