"""The right side of a system as recurrences of Taylor coefficients: order k of each operation from lower orders.

The recurrences are those of A. Griewank and A. Walther, "Evaluating Derivatives" (2nd edition, 2008), chapter 13. A
function u of operands x has u' = sum of v*x', where v are its derivatives, which are operations of their own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any

from gradcli.arrays.mathematical_constants import is_exact
from gradcli.errors import EvaluationError, NotRecordableError
from gradcli.loops.rolled_loop import EXAMPLE
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries import arithmetic, comparisons, powers
from gradcli.primitives.primitive import Primitive
from gradcli.program import program_constants
from gradcli.program.builder import frozen
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import optimise
from gradcli.program.record import record

# Bound on the operations that the derivatives of one operation add: those of some functions are ever new functions.
_MOST_ADDED = 200


class NoRecurrenceError(Exception):
    """An operation for which no recurrence is known."""


class Recurrence(NamedTuple):
    """The recurrence for the coefficient of order k > 0 of `output`, from those of its operands.

    The kinds, with their operands: "add", "subtract" and "negative"; "scale" and "shrink", the product with and the
    quotient by a constant, which is the second operand; "multiply"; "divide"; "choose", by a condition; "power", with a
    constant exponent; "chain", of pairs v, x one after another.
    """

    kind: str
    operands: tuple[Atom, ...]
    output: Variable


class Recurrences(NamedTuple):
    """A program that computes everything at order 0, and what follows for the other orders.

    The inputs of `program` are those of the body. Atoms that are no output of a recurrence, and neither the time nor a
    state, are constants. `rates` are the derivatives of the states, `others` further outputs.
    """

    program: Program
    recurrences: Sequence[Recurrence]
    rates: Sequence[Atom]
    others: Sequence[Atom]

    @property
    def time(self) -> Variable:
        return self.program.inputs[0]

    @property
    def states(self) -> Sequence[Variable]:
        return self.program.inputs[1 : 1 + len(self.rates)]

    def varying(self) -> list[Variable]:
        """The values that have coefficients: the time, the states and the outputs of the recurrences."""
        return [self.time, *self.states, *(r.output for r in self.recurrences)]

    def sloped(self) -> list[Variable]:
        """Those of them whose derivatives have coefficients too, which powers and the chain rule need."""
        varying, found = {*self.varying()}, dict[Any, None]()
        for kind, operands, output in self.recurrences:
            if kind == "chain":
                found |= {x: None for v, x in zip(operands[::2], operands[1::2]) if v in varying}
            elif kind == "power":
                found |= {operands[0]: None, output: None}
        return [*found]


def recurrences(program: Program, states: int) -> Recurrences:
    """The recurrences of a program whose inputs are the time, the states and constants, and whose first outputs are the
    derivatives of the states. Raises NoRecurrenceError."""
    made = _Expansion(program.inputs[: 1 + states])
    for equation in program.equations:
        made.add(equation)
    outputs = [made.renamed.get(o, o) if isinstance(o, Variable) else o for o in program.outputs]
    varying = [r.output for r in made.found]
    whole = Program(program.inputs, tuple(made.equations), (*outputs, *varying))
    return Recurrences(whole, made.found, outputs[:states], outputs[states:])


class _Expansion:
    """The operations of the right side and of the derivatives that its recurrences need, each once."""

    def __init__(self, varying: Sequence[Variable]) -> None:
        self.equations: list[Equation] = []
        self.found: list[Recurrence] = []
        self.varying = set(varying)
        self.renamed: dict[Variable, Atom] = {}
        self._known: dict[Hashable, Atom] = {}
        # What is a constant multiple of another value: that value, and the constant.
        self._scaled: dict[Variable, tuple[Atom, Atom]] = {}
        # What is the negative of another value. The derivative of sigmoid(x) has sigmoid(-x), and so on.
        self._negated: dict[Variable, Atom] = {}
        self._added = 0

    def add(self, equation: Equation) -> None:
        """Add an equation of the right side."""
        self._added = 0
        inputs = [self.renamed.get(a, a) if isinstance(a, Variable) else a for a in equation.inputs]
        self.renamed[equation.output] = self._applied(equation.primitive, inputs, equation.params, equation.output)

    def _applied(self, primitive: Primitive, inputs: Sequence[Atom], params: Any, output: Variable) -> Atom:
        keys = [*map(_key, inputs)]
        key = (primitive, frozenset(keys) if primitive is arithmetic.multiply else tuple(keys), frozen(params))
        known = self._known.get(key)
        if known is not None:
            return known
        self._added += 1
        if self._added > _MOST_ADDED:
            raise NoRecurrenceError(primitive.called)
        varied = [i for i, a in enumerate(inputs) if isinstance(a, Variable) and a in self.varying]
        if primitive is arithmetic.multiply and len(varied) == 2 and not self._scaled.keys().isdisjoint(inputs):
            result = self._scaled_product(inputs, output)
            self._known[key] = result
            return result
        if primitive is arithmetic.negative and isinstance(inputs[0], Variable):
            if inputs[0] in self._negated:
                return self._negated[inputs[0]]
            self._negated[output] = inputs[0]
        if primitive is powers.whole_power and varied:
            result = self._whole_power(inputs[0], params["n"])
            self._known[key] = result
            return result
        self._known[key] = output
        self.equations.append(Equation(primitive, tuple(inputs), params, output))
        mask = primitive.differentiable(len(inputs))
        if primitive is comparisons.where:
            varied = [i for i in varied if i]
        varied = [i for i in varied if mask >> i & 1 and primitive.rule(i) is not None]
        if varied:
            self.varying.add(output)
            self._recur(primitive, inputs, params, output, varied)
        return output

    def _recur(
        self, primitive: Primitive, inputs: Sequence[Atom], params: Any, output: Variable, varied: Sequence[int]
    ) -> None:
        kind = _KINDS.get(primitive)
        x = inputs[varied[0]]
        if kind is not None:
            self._put(kind, inputs, output)
        elif primitive is arithmetic.reciprocal:
            self._put("divide", (1.0, x), output)
        elif primitive is arithmetic.multiply:
            if len(varied) == 2:
                self._put("multiply", inputs, output)
            else:
                factor = inputs[1 - varied[0]]
                self._scaled[output] = x, factor
                self._put("scale", (x, factor), output)
        elif primitive is arithmetic.divide:
            self._put("shrink" if varied == [0] else "divide", inputs, output)
        elif primitive is powers.general_power and varied == [0]:
            self._put("power", inputs, output)
        elif primitive.elementwise and not primitive.endless:
            # The recurrence stands before those of the derivatives, which it needs at lower orders only.
            place = len(self.found)
            self.found.append(Recurrence("chain", (), output))
            pairs = [(self._derivative(primitive, i, inputs, params, output), inputs[i]) for i in varied]
            self.found[place] = Recurrence("chain", tuple(a for pair in pairs for a in pair), output)
        else:
            raise NoRecurrenceError(primitive.called)

    def _scaled_product(self, inputs: Sequence[Atom], output: Variable) -> Atom:
        """The product of multiples, as a multiple of a product that others may have in common."""
        factors: list[Atom] = []
        operands: list[Atom] = []
        for x in inputs:
            while isinstance(x, Variable) and x in self._scaled:
                x, factor = self._scaled[x]
                factors.append(factor)
            operands.append(x)
        factor = factors[0]
        for other in factors[1:]:
            factor = self._applied(arithmetic.multiply, [factor, other], {}, _number())
        product = self._applied(arithmetic.multiply, operands, {}, _number())
        return self._applied(arithmetic.multiply, [product, factor], {}, output)

    def _put(self, kind: str, operands: Sequence[Atom], output: Variable) -> None:
        self.found.append(Recurrence(kind, tuple(operands), output))

    def _derivative(self, primitive: Primitive, i: int, inputs: Sequence[Atom], params: Any, output: Variable) -> Atom:
        """The derivative of an operation by its operand `i`."""
        variables = [a for a in inputs if isinstance(a, Variable)]
        constants = tuple(None if isinstance(a, Variable) else a for a in inputs)
        # Constants of rules are balls of the working precision where digits are proved.
        rule = _rule.__wrapped__ if is_exact() else _rule
        program = rule(primitive, i, constants, tuple(params.items()))
        become: dict[Variable, Atom] = dict(zip(program.inputs, (output, *variables)))

        def value(atom: Atom) -> Atom:
            return become[atom] if isinstance(atom, Variable) else atom

        for e in program.equations:
            made = Variable(e.output.shape, e.output.dtype)
            become[e.output] = self._applied(e.primitive, [value(a) for a in e.inputs], e.params, made)
        return value(program.outputs[0])

    def _whole_power(self, x: Atom, n: int) -> Atom:
        if n < 0:
            return self._applied(arithmetic.reciprocal, [self._whole_power(x, -n)], {}, _number())
        if n == 0:
            return self._applied(arithmetic.ones_like, [x], {}, _number())
        if n == 1:
            return x
        half = self._whole_power(x, n // 2)
        even = self._applied(arithmetic.multiply, [half, half], {}, _number())
        return self._applied(arithmetic.multiply, [even, x], {}, _number()) if n % 2 else even


_KINDS = {
    arithmetic.add: "add",
    arithmetic.subtract: "subtract",
    arithmetic.negative: "negative",
    comparisons.where: "choose",
}


def _number() -> Variable:
    return Variable((), "float64")


def _key(atom: Atom) -> Hashable:
    return atom if isinstance(atom, Variable) else program_constants.key(atom)


@cache
def _rule(primitive: Primitive, i: int, constants: tuple[Any, ...], params: tuple[Any, ...]) -> Program:
    """The derivative of a primitive by operand `i`, as a program of its result and of its operands that are
    variables."""
    names = [f"{k}" for k, c in enumerate(constants) if c is None]

    def run(**given: Any) -> list[Any]:
        operands = [given[f"{k}"] if c is None else c for k, c in enumerate(constants)]
        return [primitive.rule(i)(1.0, given["y"], *operands, **dict(params))]

    try:
        recorded = record(run, dict.fromkeys(["y", *names], EXAMPLE))
    except (NotRecordableError, EvaluationError):
        raise NoRecurrenceError(primitive.called) from None
    return optimise(recorded.program._replace(guards=()))


def order_for(tolerance: float) -> int:
    """The order at which the least work reaches a relative error per step (À. Jorba and M. Zou, Experimental
    Mathematics 14 (2005), 99)."""
    return math.ceil(1 - math.log(tolerance) / 2)
