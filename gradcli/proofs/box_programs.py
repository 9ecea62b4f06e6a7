"""Programs over many boxes at once: enclosures of values, gradients and second derivatives.

A program is recorded in ball arithmetic, so that its constants are enclosed as they were written, together with the
derivatives that the engine finds; the equations of the recording are then evaluated in interval arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any

import numpy as np
from flint import arb, fmpq

from gradcli import arrays, limits
from gradcli.arrays.flint.balls import Balls
from gradcli.arrays.shapes import element_ranges
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import jacobians
from gradcli.calculus.higher_orders import derivatives
from gradcli.errors import EvaluationError, NotRecordableError, locating
from gradcli.kinds.branch_points import BranchPointError
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax.tree import Module
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import add, multiply
from gradcli.primitives.entries.reductions import sum_
from gradcli.program.ir import Equation, Program, Variable
from gradcli.program.passes import without_dead_code
from gradcli.program.record import record
from gradcli.proofs import box_arithmetic, digits
from gradcli.proofs.box_arithmetic import BoxInterval, Truth, UnsupportedError
from gradcli.proofs.constraint_propagation import propagated
from gradcli.proofs.interval_evaluation import derivatives_are_honest

# The rows and the columns of a block of derivatives.
_Block = tuple[range, range]
# Steps that are charged for an equation over a batch of boxes, in eighths: about 20 calls of NumPy.
_EQUATION = 8
# The distance from an example at a kink to the example that replaces it, relative to its size. Multiples of the golden
# ratio give each variable a distance of its own, so that they do not meet at another kink.
_ASIDE, _GOLDEN = 1e-3, 0.5 + 0.5 * 5**0.5


class BoxBounds(NamedTuple):
    """Bounds `[boxes, …]` of numbers over boxes, and whether the numbers are defined and continuous there, for each
    box. Bounds are nan where there is no value in the box."""

    low: Any
    high: Any
    smooth: Any


@contextmanager
def needing_one_path(program: Module, what: str) -> Iterator[None]:
    """Within the block, raise EvaluationError in place of NotRecordableError, for control flow of a program that depends on
    `what`."""
    try:
        yield
    except NotRecordableError as error:
        raise EvaluationError(
            f"a proof needs the same operations in the whole box, and here they depend on {what}",
            hint="write where(condition, a, b) for an if",
            span=error.span,
            source=program.source,
        ) from None


class BoxProgram:
    """A program as a function of boxes of the vector of its varied names."""

    def __init__(
        self,
        program: Module,
        shapes: Mapping[str, tuple[int, ...]],
        constants: Mapping[str, Any],
        example: Any,
        terms: Sequence[tuple[Any, Module]] = (),
    ) -> None:
        """`shapes` are those of the varied names; `constants` has the values of the others. Recordings are made at the
        vector `example`. With `terms`, weights `[m]` and programs of m elements, the value is their weighted sum.

        Raises NotRecordableError where control flow depends on the varied names, and what the program
        raises."""
        for _, each in terms or [(1.0, program)]:
            require_honest_derivatives(each)
        self.terms = terms
        self.program, self.shapes, self.constants = program, shapes, constants
        self.example = example
        self.size = len(example)
        self.places = element_ranges({name: math.prod(shape) for name, shape in shapes.items()})
        self._value = self._recorded(self._value_of)
        self._first: tuple[_Recorded, Sequence[_Block]] | None = None
        self._second: tuple[_Recorded, Sequence[_Block]] | None = None
        self.count = math.prod(self._value.shapes_of_outputs()[0])

    def values(self, low: Any, high: Any) -> BoxBounds:
        """Bounds of the elements of the value `[boxes, m]`."""
        ((least, most),), smooth = self._value.run(low, high)
        return BoxBounds(least, most, smooth)

    def narrowed(self, low: Any, high: Any, least: float, most: float) -> tuple[Any, Any, Any]:
        """The boxes, narrowed to where all elements of the value may lie between `least` and `most`, and for which of
        them that may be somewhere."""
        return self._value.narrowed(low, high, least, most)

    def first_derivatives(self, low: Any, high: Any) -> BoxBounds:
        """Bounds of the first derivatives `[boxes, m, n]`. They are infinite where none are known."""
        if self._first is None:
            blocks: list[_Block] = []
            self._first = self._recorded(partial(self._jacobian, blocks)), blocks
        return self._assembled(self._first, low, high, self.count)

    def second_derivatives(self, low: Any, high: Any) -> BoxBounds:
        """Bounds of the second derivatives `[boxes, n, n]` of a scalar value."""
        if self._second is None:
            blocks: list[_Block] = []
            self._second = self._recorded(partial(self._hessian, blocks)), blocks
        return self._assembled(self._second, low, high, self.size)

    def _assembled(self, recorded: tuple[_Recorded, Sequence[_Block]], low: Any, high: Any, count: int) -> BoxBounds:
        found, smooth = recorded[0].run(low, high)
        ends = np.zeros((2, len(low), count, self.size))
        for (rows, columns), pair in zip(recorded[1], found):
            for end, part in zip(ends, pair):
                block = part.reshape(len(low), len(rows), len(columns))
                end[:, rows.start : rows.stop, columns.start : columns.stop] = block
                if recorded is self._second:
                    end[:, columns.start : columns.stop, rows.start : rows.stop] = block.transpose(0, 2, 1)
        unknown = np.isnan(ends).any(axis=0)
        ends[0][unknown], ends[1][unknown] = -np.inf, np.inf
        return BoxBounds(ends[0], ends[1], smooth)

    def _recorded(self, function: Callable[..., list[Any]]) -> _Recorded:
        example = np.asarray(self.example, float)
        try:
            return self._recorded_at(function, example)
        except BranchPointError as error:
            # At a kink there are no derivatives to record; next to it there are, by the same operations.
            shares = np.modf(np.arange(1, self.size + 1) * _GOLDEN)[0]
            try:
                return self._recorded_at(function, example + _ASIDE * shares * np.maximum(1.0, abs(example)))
            except (BranchPointError, EvaluationError):
                raise error from None

    def _recorded_at(self, function: Callable[..., list[Any]], example: Any) -> _Recorded:
        with digits.computing(), locating(self.program.source, self.program.body[-1].span):
            given = {}
            for name, shape in self.shapes.items():
                place = self.places[name]
                given[name] = arrays.in_default_namespace(example[place.start : place.stop].reshape(shape))
            program = _merged(without_dead_code(record(function, given).program))
        return _Recorded(program, self.shapes)

    def _function(self, leaves: Mapping[str, Any]) -> Any:
        constants = {name: _enclosed_constant(value) for name, value in self.constants.items()}
        given = {**constants, **leaves}
        if not self.terms:
            return evaluate(self.program, given, rewrite=False).value
        parts = [
            sum_(
                multiply(
                    arrays.in_default_namespace(weights), reshape(evaluate(each, given, rewrite=False).value, (-1,))
                )
            )
            for weights, each in self.terms
        ]
        return reduce(add, parts)

    def _value_of(self, **given: Any) -> list[Any]:
        return [self._function(given)]

    def _jacobian(self, blocks: list[_Block], **given: Any) -> list[Any]:
        with enable_grad():
            tensors = {name: Tensor(leaf).requires_grad_() for name, leaf in given.items()}
            found = jacobians(self._function(tensors), [*tensors.values()])
        known = {name: block for name, block in zip(given, found) if block is not None}
        blocks[:] = [(range(self.count), self.places[name]) for name in known]
        return [*known.values()]

    def _hessian(self, blocks: list[_Block], **given: Any) -> list[Any]:
        with enable_grad():
            _, found = derivatives(self._function, given, 2)
        known = {key: block for key, block in found.items() if "," in key and block is not None}
        blocks[:] = [(self.places[a], self.places[b]) for a, b in (key.split(",") for key in known)]
        return [*known.values()]


def require_honest_derivatives(program: Module) -> None:
    """Raise EvaluationError for a program whose derivatives may be those of another function."""
    if not derivatives_are_honest(program):
        raise EvaluationError(
            "a proof needs the derivatives of the value, which 'detach' and its like change",
            hint="leave them out",
            span=program.body[-1].span,
            source=program.source,
        )


class _Recorded:
    """A recorded program over boxes. Its outputs are those of a value, or blocks of derivatives."""

    def __init__(self, program: Program, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.program = program
        self.shapes = shapes
        self.constants = {
            id(atom): box_arithmetic.interval_of(atom)
            for atom in [*program.outputs, *(a for e in program.equations for a in e.inputs)]
            if not isinstance(atom, Variable)
        }
        # The operands of logarithms.
        self.logged = {e.output: e.inputs[0] for e in program.equations if e.primitive.name == "log"}
        outputs = [*program.outputs, *program.guards]
        # Equations after which a variable is no longer needed.
        self.last: dict[Variable, int] = {}
        for k, equation in enumerate(program.equations):
            for atom in equation.inputs:
                if isinstance(atom, Variable):
                    self.last[atom] = k
        for atom in outputs:
            if isinstance(atom, Variable):
                self.last[atom] = len(program.equations)

    def run(self, low: Any, high: Any) -> tuple[list[tuple[Any, Any]], Any]:
        """Bounds of each output, a pair of arrays `[boxes, elements]`, and whether all are smooth in each box."""
        with np.errstate(all="ignore"):
            known = self._inputs(low, high)
            for k, equation in enumerate(self.program.equations):
                known[equation.output] = _of_shape(self._applied(equation, known), equation.output.shape)
                for atom in equation.inputs:
                    if isinstance(atom, Variable) and self.last[atom] == k:
                        known.pop(atom, None)
            return self._outputs(known, len(low))

    def narrowed(self, low: Any, high: Any, least: float, most: float) -> tuple[Any, Any, Any]:
        """Boxes narrowed to where the only output may lie between two ends, and for which of them it may."""
        boxes = len(low)
        with np.errstate(all="ignore"):
            known = self._inputs(low, high)
            for equation in self.program.equations:
                known[equation.output] = _of_shape(self._applied(equation, known), equation.output.shape)
        if self.program.guards:
            # Where a guard may fail, the program is another one.
            return low, high, np.ones(boxes, bool)
        limits.charge_steps(_EQUATION * len(self.program.equations))
        limits.charge(boxes * len(self.program.equations))
        possible = propagated(self.program, known, partial(self._atom, known=known), least, most)
        ends = [known[variable] for variable in self.program.inputs]
        if not ends:
            return low, high, possible
        return (*(np.concatenate([end[k].reshape(boxes, -1) for end in ends], axis=1) for k in range(2)), possible)

    def _inputs(self, low: Any, high: Any) -> dict[Variable, Any]:
        """The intervals of the inputs, and the charge for evaluating all equations once."""
        boxes = len(low)
        limits.charge_steps(_EQUATION * len(self.program.equations))
        limits.charge(boxes * len(self.program.equations))
        known: dict[Variable, Any] = {}
        first = 0
        for variable, shape in zip(self.program.inputs, self.shapes.values()):
            size = math.prod(shape)
            part = slice(first, first + size)
            known[variable] = BoxInterval(low[:, part].reshape(boxes, *shape), high[:, part].reshape(boxes, *shape))
            first += size
        return known

    def _applied(self, equation: Equation, known: Mapping[Variable, BoxInterval | Truth]) -> BoxInterval | Truth:
        operands = [self._atom(a, known) for a in equation.inputs]
        if len(operands) == 2 and equation.inputs[0] is equation.inputs[1]:
            if equation.primitive.name == "multiply":
                return box_arithmetic.whole_power(operands[0], n=2.0)  # type: ignore[arg-type]
            if equation.primitive.name == "equal":
                # Only a number that is undefined differs from itself.
                return box_arithmetic.is_finite(operands[0])  # type: ignore[arg-type]
        if equation.primitive.name == "multiply":
            for k in (0, 1):
                x, y = equation.inputs[k], equation.inputs[1 - k]
                if isinstance(x, Variable) and isinstance(y, Variable) and self.logged.get(y) is x:
                    return box_arithmetic.times_logarithm(operands[k], operands[1 - k])  # type: ignore[arg-type]
        return box_arithmetic.apply(equation.primitive, operands, equation.params)

    def _atom(self, atom: Any, known: Mapping[Variable, BoxInterval | Truth]) -> BoxInterval | Truth:
        return known[atom] if isinstance(atom, Variable) else self.constants[id(atom)]

    def shapes_of_outputs(self) -> Sequence[tuple[int, ...]]:
        return [arrays.shape(atom) if not isinstance(atom, Variable) else atom.shape for atom in self.program.outputs]

    def _outputs(self, known: Mapping[Variable, BoxInterval | Truth], boxes: int) -> tuple[list[tuple[Any, Any]], Any]:
        smooth = np.ones(boxes, bool)
        found = []
        for atom in self.program.outputs:
            part = self._atom(atom, known)
            if isinstance(part, Truth):
                raise UnsupportedError("a truth value has no bounds")
            found.append((_rows(part.low, boxes).copy(), _rows(part.high, boxes).copy()))
            if part.rough is not None:
                smooth &= ~_rows(part.rough, boxes).any(axis=1)
        for guard in self.program.guards:
            truth = known[guard]
            held = _rows(truth.sure if isinstance(truth, Truth) else truth.low > 0, boxes)
            outside = ~held.all(axis=1)
            # Where a guard may fail, the program is another one.
            for low, high in found:
                low[outside], high[outside] = -np.inf, np.inf
            smooth &= ~outside
        return found, smooth


def _enclosed_constant(value: Any) -> Balls:
    """Balls around floats that contain the decimals which were read as these floats; whole numbers are exact."""
    numbers = np.asarray(value, float)
    made = np.frompyfunc(lambda x: fmpq(int(x)) if float(x).is_integer() else arb(x, abs(x) * 2.0**-53), 1, 1)(numbers)
    return Balls(made)


def _merged(program: Program) -> Program:
    """A program in which equal equations are computed once."""
    known: dict[Any, Variable] = {}
    become: dict[Variable, Variable] = {}
    equations = []
    for primitive, inputs, params, output in program.equations:
        atoms = tuple(become.get(a, a) if isinstance(a, Variable) else a for a in inputs)
        # Numbers are equal by their values, and arrays where they are the same.
        key = (
            primitive,
            tuple(a if isinstance(a, float) else id(a) for a in atoms),
            tuple(map(_key_of, params.items())),
        )
        if key in known:
            become[output] = known[key]
            continue
        known[key] = output
        equations.append(Equation(primitive, atoms, params, output))
    outputs = tuple(become.get(a, a) if isinstance(a, Variable) else a for a in program.outputs)
    guards = tuple(dict.fromkeys(become.get(g, g) for g in program.guards))
    return Program(program.inputs, tuple(equations), outputs, guards)


def _of_shape(found: BoxInterval | Truth, shape: tuple[int, ...]) -> BoxInterval | Truth:
    """A result with all axes of its shape, which constants may lack."""
    if all(part is None or part.shape[1:] == shape for part in found):
        return found
    return type(found)(*(None if part is None else np.broadcast_to(part, (len(part), *shape)) for part in found))


def _key_of(param: tuple[str, Any]) -> Any:
    try:
        hash(param)
    except TypeError:
        return param[0], id(param[1])
    return param


def _rows(array: Any, boxes: int) -> Any:
    return np.broadcast_to(array, (boxes, *array.shape[1:])).reshape(boxes, math.prod(array.shape[1:]))
