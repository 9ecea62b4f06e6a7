"""Records the value of a program and its derivatives of any order as programs, from which formulas are written."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients, jacobians
from gradcli.errors import DifferentiationError, NotRecordableError, ShapeError, locating
from gradcli.executors import stepwise
from gradcli.kinds.jets import Jet
from gradcli.language.interpreter.mutable_references import ElementwiseInput, SizeNeededError
from gradcli.language.interpreter.run import evaluate
from gradcli.language.names import scope
from gradcli.language.names.evaluator_functions import DETACH
from gradcli.language.names.resolution import resolve
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import assume, constant
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.arithmetic import add, multiply
from gradcli.primitives.entries.comparisons import isfinite
from gradcli.program.execution_paths import ExecutionPath, join_paths, record_paths
from gradcli.program.ir import Element, Key, Program, Variable, element_name
from gradcli.program.passes import optimise, split_outputs
from gradcli.program.record import Recorded, record

# Scales of the points at which names without a value are recorded, tried in turn until every number is finite. They are
# irrational, so that expressions that are equal there are most likely identical.
_SCALES = (0.5641895835477563, 1.6487212707001282, 0.1353352832366127, 3.0419241001047387, -0.5641895835477563)
_STEP = 0.0728771355234467

# The inputs of a derivative, each name repeated as often as the derivative is taken by it.
By = tuple[str, ...]


def derivation(
    program: tree.Module, bindings: Mapping[str, Any], wrt: Sequence[str], order: int
) -> Mapping[By, Program]:
    """Return the value of a program and its derivatives of `order` by the names in `wrt`, as recorded programs.

    The key of a derivative is the tuple of names that it is taken by; each mixed derivative appears once, and the value
    has the empty key. The point of recording is one where all of them are finite.

    A number in `bindings` replaces its name, unless the name is in `wrt`. Where the program reads a name in `wrt`
    element by element, the derivatives are taken by the elements.
    """
    whole: set[str] = set()
    while True:
        recorder = _DerivativeRecorder(program, bindings, wrt, order, whole)
        try:
            return recorder.derivation()
        except _ReadWholeError as error:
            whole.add(error.name)


def value_of(program: tree.Module, values: Mapping[str, Any]) -> Any:
    """Return the value of a program as a floating-point number."""
    value = evaluate(program, values, rewrite=False, rolling="never").value
    if arrays.is_complex(constant(value)):
        raise DifferentiationError(
            "formulas have complex numbers in the form a + 1j*b",
            hint="write a + 1j*b for complex(a, b), and gradcli eval for derivatives at a point",
        )
    return value if arrays.is_floating(constant(value)) else cast(value, "float64")


def example(shape: tuple[int, ...], i: int, scale: float = _SCALES[0]) -> Any:
    """The example value of the i-th name that has no value."""
    value = scale * (1.0 + i * _STEP)
    if not shape:
        return value
    xp = arrays.numpy_namespace()
    return xp.reshape(value + _STEP * xp.arange(math.prod(shape)), shape)


def _example_at(key: Key, value: Any) -> float:
    """The example value of an element; derived from the scalar where the tensor has no value of its own."""
    if arrays.shape(value):
        return float(value[key])
    return float(value * (1.0 + _STEP * sum((i + 1) / (axis + 3) for axis, i in enumerate(key))))


class _ReadWholeError(Exception):
    """An input that was taken as separate elements is also read as a whole."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


class _DerivativeRecorder:
    """Records the value of a program and its derivatives. Names in `whole` are not split into elements."""

    def __init__(
        self,
        program: tree.Module,
        bindings: Mapping[str, Any],
        wrt: Sequence[str],
        order: int,
        whole: set[str],
    ) -> None:
        self.program = program
        self.bindings = bindings
        self.wrt = wrt
        self.order = order
        self.by = frozenset(wrt)
        # Scalars that replace their names.
        self.fixed = {n: v for n, v in bindings.items() if n not in self.by and not arrays.shape(v)}
        given = {*bindings, *wrt}
        reads = [
            n
            for n, r in scope.free_names(program).items()
            if n in given or not (n in scope.CONSTANTS or r.maybe_assigned)
        ]
        self.names = [n for n in reads if n not in self.fixed]
        if resolve(program).has_imaginary_literals or any(map(arrays.is_complex, bindings.values())):
            # First, so that it is the first factor of products.
            self.names.insert(0, scope.IMAGINARY_UNIT)
        self.places = {n: i for i, n in enumerate(self.names)}
        self.shapes = {n: arrays.shape(bindings[n]) for n in self.names if n in bindings}
        # A target of a gradient within the program must stay whole.
        targets = resolve(program).targets(self.names)
        indexes = any(isinstance(node, (tree.Index, tree.For, tree.Comprehension)) for node in tree.all_nodes(program))
        self.in_parts = {
            n
            for n in self.names
            if indexes
            and n != scope.IMAGINARY_UNIT
            and n not in targets
            and n not in whole
            and (n not in self.shapes or (n in self.by and self.shapes[n]))
        }
        # The element keys that any execution path reads.
        self.read: dict[str, set[Key]] = {n: set() for n in self.in_parts}
        # The inputs that the last recorded path reads, and their example values.
        self.leaves: dict[str, Tensor] = {}
        self.examples: dict[str, Any] = {}

    def derivation(self) -> Mapping[By, Program]:
        """Return the programs. Raises _ReadWholeError for a tensor that cannot be split into elements."""
        tensors = any(self.shapes.get(n) and n not in self.in_parts for n in self.wrt)
        series = self._by_series() if self.order > 2 and not tensors and _is_plain(self.program) else None
        return series or self._by_reverse_mode()

    def _by_series(self) -> Mapping[By, Program] | None:
        """Derivatives by Taylor series, whose formulas have like terms collected already.

        None where an operation has no series or is not smooth everywhere, or where control flow depends on the numbers.
        """
        for scale in _SCALES:
            (recorded, *others) = self._recorded_paths(lambda **given: {(): self._value(given)}, scale)
            if others:
                return None
            value = self._without_split_tensors(optimise(recorded.program))
            # Elements have example values only where they are read.
            known = self._point(scale) | self.examples
            point = {v.name or "": known[v.name or ""] for v in value.inputs}
            names = [name for name in self._names_by() if name in point]
            try:
                with arrays.quiet():
                    found = [*_partials(value, point, names, self.order)]
            except NotImplementedError:
                return None
            if all(assume(isfinite(p.value)) for p in found):
                break
        partial = dict(zip(itertools.combinations_with_replacement(names, self.order), found))
        wanted = itertools.combinations_with_replacement(self._names_by(), self.order)
        nothing = value._replace(equations=(), outputs=(0.0,))
        return {(): value} | {by: partial[by].program if by in partial else nothing for by in wanted}

    def _by_reverse_mode(self) -> Mapping[By, Program]:
        def run(**given: Any) -> Mapping[By, Any]:
            with enable_grad():
                value = self._value(given)
                by = {name: self.leaves[name] for name in self._names_by() if name in self.leaves}
                return {(): value} | _derivatives(value, by, self.order)

        keys, program = join_paths(self._recorded_paths(run, *_SCALES))
        program = self._without_split_tensors(program)
        outputs = dict(zip(keys, program.outputs))
        wanted = [(), *itertools.combinations_with_replacement(self._names_by(), self.order)]
        program = program._replace(outputs=tuple(outputs.get(by, 0.0) for by in wanted))
        return dict(zip(wanted, split_outputs(program)))

    def _recorded_paths(self, run: Callable[..., Mapping[By, Any]], *scales: float) -> Sequence[ExecutionPath]:
        try:
            with arrays.quiet(), locating(self.program.source, self.program.body[-1].span):
                return record_paths(run, map(self._point, scales))
        except NotRecordableError as error:
            error.message = "there is no single formula: what is computed here depends on the numbers"
            error.hint = (
                "where(condition, a, b) chooses inside a formula; a name that counts something needs a value, as in n=3"
            )
            raise
        except SizeNeededError:
            raise
        except ShapeError as error:
            free = [n for n in self.names if n not in self.shapes]
            if free:
                error.hint = f"'{free[0]}' stands for a number; a tensor gives it a shape, as in {free[0]}=[1,2]"
            raise

    def _point(self, scale: float) -> dict[str, Any]:
        return {n: self._example(n, i, scale) for i, n in enumerate(self.names)}

    def _example(self, name: str, i: int, scale: float) -> Any:
        given = self.bindings.get(name)
        # The formula for a complex number is recorded at a real one.
        real = given is not None and not arrays.is_complex(given)
        return given if real else example(self.shapes.get(name, ()), i, scale)

    # --- recording one execution path

    def _value(self, given: Mapping[str, Recorded]) -> Any:
        """Record the scalar value. Raises DifferentiationError for a non-scalar value."""
        self.leaves, self.examples = {}, {}

        def read(name: str, key: Key) -> Tensor:
            return self._part(given[name], name, key)

        values = {
            n: ElementwiseInput(n, self.shapes.get(n), read) if n in self.in_parts else self._leaf(n, n, recorded)
            for n, recorded in given.items()
        }
        fixed = {
            n: _with_unit(v, values[scope.IMAGINARY_UNIT]) if arrays.is_complex(v) else v for n, v in self.fixed.items()
        }
        value = value_of(self.program, {**values, **fixed})
        if arrays.shape(value):
            raise DifferentiationError(
                f"a formula is the derivative of a scalar, and the value has shape {list(arrays.shape(value))}",
                hint="sum(…) of it is a number, and so is an element, as in (…)[0]",
            )
        return value

    def _leaf(self, name: str, of: str, recorded: Recorded) -> Tensor:
        leaf = self.leaves[name] = Tensor(recorded).requires_grad_(of in self.by)
        self.examples[name] = recorded.example
        return leaf

    def _part(self, recorded: Recorded, name: str, key: Key) -> Tensor:
        """Return the leaf at a key of a split input: the input itself for the empty key, or an element as an input of
        its own.

        Raises _ReadWholeError where fewer indices are given than a tensor of known shape has axes, and SizeNeededError
        where the number of indices differs between reads.
        """
        shape = self.shapes.get(name)
        if shape and len(key) < len(shape):
            raise _ReadWholeError(name)
        ranks = {len(key), *map(len, self.read[name])}
        if len(ranks) > 1:
            few, many = sorted(ranks)[:2]
            what = "a number" if not few else f"a tensor of {few} axes"
            raise SizeNeededError(
                f"'{name}' is read as {what}, and by {many} {'index' if many == 1 else 'indices'}",
                hint=f"give it a value for its shape, as in {name}=[1,2,3]",
            )
        element = Element(recorded.variable, key) if key else recorded.variable
        called = element.name or ""
        if called not in self.leaves:
            self.read[name].add(key)
            if key:
                recorded = recorded.tape.input(element, _example_at(key, recorded.example))
            self._leaf(called, name, recorded)
        return self.leaves[called]

    # --- combining the execution paths

    def _is_tensor(self, name: str) -> bool:
        return any(self.read[name])

    def _without_split_tensors(self, program: Program) -> Program:
        """Drop the tensor inputs that are replaced by their elements, and sort the rest."""
        gone = {n for n in self.in_parts if self._is_tensor(n)}
        inputs = [v for v in program.inputs if v.name not in gone]
        return program._replace(inputs=tuple(sorted(inputs, key=self._order)))

    def _order(self, variable: Variable) -> tuple[int, Key]:
        if isinstance(variable, Element):
            return self.places[variable.base.name or ""], variable.key
        return self.places[variable.name or ""], ()

    def _names_by(self) -> Sequence[str]:
        """The leaves to differentiate by. A split tensor stands for all its elements where its shape is known, else for
        those that are read."""
        return [leaf for name in self.wrt for leaf in self._parts_of(name)]

    def _parts_of(self, name: str) -> Sequence[str]:
        if name not in self.in_parts or not self._is_tensor(name):
            return [name]
        shape = self.shapes.get(name)
        keys = itertools.product(*map(range, shape)) if shape else sorted(self.read[name])
        return [element_name(name, key) for key in keys]


def _with_unit(number: complex, unit: Any) -> Any:
    """A complex number in terms of the imaginary unit."""
    return add(number.real, multiply(number.imag, unit))


def _is_plain(program: tree.Module) -> bool:
    """Return whether the derivatives are those of the computed value: nothing is detached, and no derivative is written
    by hand."""
    calls = (node for node in tree.all_nodes(program) if isinstance(node, tree.Call))
    return not any(call.name in DETACH for call in calls) and not resolve(program).with_backward


def _derivatives(value: Any, leaves: Mapping[str, Tensor], order: int) -> dict[By, Any]:
    """Differentiate by repeated reverse mode, so that each derivative is a formula of those of lower order."""
    names = [*leaves]
    # The derivatives of one order, each with the index of the last leaf that it is taken by.
    found: dict[By, tuple[Any, int]] = {(): (value, 0)}
    for _ in range(order):
        found = {
            (*by, names[place]): (derivative, place)
            for by, (below, last) in found.items()
            for place, derivative in enumerate(_differentiated(below, [leaves[n] for n in names[last:]]), last)
        }
    return {by: derivative for by, (derivative, _) in found.items()}


def _differentiated(value: Any, leaves: Sequence[Tensor]) -> list[Any]:
    shape = arrays.shape(value)
    differentiate = jacobians if shape else gradients
    found = differentiate(value, leaves, create_graph=True)
    return [arrays.zeros(shape + leaf.shape, leaf.dtype) if f is None else f for f, leaf in zip(found, leaves)]


class DerivativeProgram(NamedTuple):
    """A derivative as a program with one output, and its value at recording."""

    program: Program
    value: Any


def _partials(
    program: Program, point: Mapping[str, Any], names: Sequence[str], order: int
) -> Iterator[DerivativeProgram]:
    """Yield every derivative of `order` of a program with one output, by the scalar inputs `names`, each mixed one
    once.

    The order is that of `itertools.combinations_with_replacement`. `point` has the values of the inputs at recording.
    Raises NotImplementedError where an operation has no series or is not smooth everywhere, and LimitError for orders
    above 170.
    """
    # A series depends on the side of a kink that its point is on, while the rules of reverse mode cover both sides.
    if any(e.primitive.selects or e.primitive.smooth is not None for e in program.equations):
        raise NotImplementedError
    name, *others = names
    found = _SeriesProgram(program, point, name, order)
    yield found.derivative(order)
    for n in range(order - 1, -1, -1) if others else ():
        yield from _partials(found.derivative(n).program, point, others, order - n)


class _SeriesProgram:
    """The derivatives by one input up to an order."""

    def __init__(self, program: Program, point: Mapping[str, Any], name: str, order: int) -> None:
        def run(**given: Any) -> Sequence[Any]:
            given[name] = Jet([given[name], 1.0], order).followed()
            (value,) = stepwise.run(program._replace(guards=()), [*given.values()]) or (None,)
            return value.derivatives() if isinstance(value, Jet) else [value, *[0.0] * order]

        traced = record(run, point)
        self._program = optimise(traced.program)
        self._values = traced.values

    def derivative(self, n: int) -> DerivativeProgram:
        (found,) = split_outputs(self._program._replace(outputs=(self._program.outputs[n],)))
        return DerivativeProgram(found, self._values[n])
