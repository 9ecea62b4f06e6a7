"""Interval evaluation: encloses the value and derivatives of a program over a box of its inputs.

One run in ball arithmetic covers the whole box. Where a comparison is undecided over the box, both branches are run and
their enclosures are joined.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from flint import arb, fmpq

from gradcli import arrays
from gradcli.arrays.flint import intervals
from gradcli.arrays.flint.balls import Balls, Number, Undecided, UndecidedError, exact, interval_evaluation
from gradcli.arrays.flint.intervals import ALL, Bounds
from gradcli.arrays.shapes import Shape, element_ranges
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import jacobians
from gradcli.calculus.higher_orders import derivatives
from gradcli.errors import EvaluationError, LimitError, Span, locating
from gradcli.kinds.branch_points import EQUALITIES, is_at_branch_point, watching
from gradcli.kinds.laurent_range import LaurentRange
from gradcli.language.interpreter.run import evaluate
from gradcli.language.operations import error_span
from gradcli.language.stable.removable_over_balls import rewrites
from gradcli.language.stable.stable_expressions import RewrittenExpression
from gradcli.language.syntax.tree import Module, SyntaxNode
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import concrete
from gradcli.primitives.primitive import Primitive

# One interval for each input element; the elements of all leaves are concatenated.
Box = tuple[Bounds, ...]
# The index of an element of the value, and the indices of the inputs by which it is differentiated, in increasing
# order.
Entry = tuple[int, tuple[int, ...]]
Enclosures = dict[Entry, Bounds]
# Bound on the number of zeros that numerator and denominator of a removable singularity may share. Each zero costs one
# more series coefficient.
_MOST_ZEROS = 12
# The enclosure of a derivative about which nothing is known.
_UNKNOWN = arb("nan")
# Operations after which the derivatives of a program are not those of its value.
_LEAVES_THE_GRAPH = re.compile(r"detach|stop_gradient|backward|no_grad|\.\s*(?:data|item|numpy|tolist)\b")


def derivatives_are_honest(program: Module) -> bool:
    """Return whether the derivatives of a program are those of its value: nothing leaves the graph."""
    return _LEAVES_THE_GRAPH.search(unicodedata.normalize("NFKC", program.source)) is None


class ContinuousEnclosures(NamedTuple):
    """Enclosures over a box, and whether the enclosed quantities are known to be continuous there."""

    found: Enclosures
    continuous: bool

    def narrowed(self, other: ContinuousEnclosures) -> ContinuousEnclosures:
        """Intersect two readings of the same quantities; the result is continuous where either is known to be."""
        both = {
            entry: self.found.get(entry, ALL).narrowed(other.found.get(entry, ALL))
            for entry in {**self.found, **other.found}
        }
        return ContinuousEnclosures(both, self.continuous or other.continuous)


class _CertainEqualities:
    """Watcher that records whether differentiated numbers are compared with numbers that equal them over the whole box.

    Where they may be equal at some points only, the run takes both branches, and nothing needs to be recorded.
    """

    def __init__(self) -> None:
        self.seen = False

    def __call__(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> None:
        if primitive in EQUALITIES:
            with interval_evaluation(None):
                self.seen |= is_at_branch_point(primitive, operands, params)


class IntervalProgram:
    """A program, the values of its fixed names, and the shapes of its leaves, whose elements range over intervals."""

    def __init__(self, program: Module, fixed: Mapping[str, Any], leaves: Mapping[str, Shape], whole: Box) -> None:
        self.program = program
        self.fixed = fixed
        self.leaves = leaves
        self.whole = whole
        self.inputs = element_ranges({name: math.prod(shape) for name, shape in leaves.items()})
        self.shape: Shape = ()
        # Known bounds of operation results, by the source span of the operation.
        self.known: dict[Span, Bounds] = {}
        # Known bounds of the results of operations in loops: one entry for each iteration.
        self.known_in_rounds: Mapping[Span, Sequence[Bounds]] = {}
        self._rounds: dict[Span, int] = {}
        self._known_shape: Shape | None = None
        # Whether the derivatives are those of the value, that is, nothing leaves the graph.
        self.honest = derivatives_are_honest(program)
        # Series forms of the removable singularities, and whether a run used any of them.
        self._forms = rewrites(program, {*fixed, *leaves}) if self.honest else {}
        self._form_places = {error_span(node) for node in self._forms}
        self._by_forms = False

    def value_over_box(self) -> Any:
        """The array of the value over the whole box, in the interval evaluation that is in effect."""
        return concrete(self._value({name: self._leaf(self.whole, name) for name in self.leaves}, None))

    def read(self, box: Box, order: int, names: Collection[str] | None = None) -> ContinuousEnclosures:
        """Enclose the value over a box, and for `order` > 0 all derivatives up to that order by the leaves in `names`
        (None: all leaves).

        Raises UndecidedError where no bounds can be found, and whatever the program raises.
        """
        if not self._forms:
            return self._read(box, order, names)
        self._by_forms = False
        try:
            reading = self._read(box, order, names, self._forms)
        except UndecidedError:
            return self._read(box, order, names)
        if self._by_forms:
            with suppress(UndecidedError):
                return reading.narrowed(self._read(box, order, names))
        return reading

    def _read(
        self,
        box: Box,
        order: int,
        names: Collection[str] | None,
        forms: Mapping[SyntaxNode, RewrittenExpression] | None = None,
    ) -> ContinuousEnclosures:
        found: Enclosures = {}
        continuous = True
        for doubts in _branch_choices():
            with interval_evaluation(doubts), arrays.quiet():
                numbers = self._derived(box, order, names, forms)
            continuous = continuous and not doubts.jumped
            for entry, number in numbers:
                known = intervals.bounds(number)
                found[entry] = known.joined(found[entry]) if doubts.decisions and entry in found else known
        return ContinuousEnclosures(found, continuous)

    def enclose_taylor_coefficients(self, box: Box, name: str, point: fmpq, order: int) -> Sequence[Bounds]:
        """Enclose the Taylor coefficients up to `order` by the scalar leaf `name`, near a possible removable
        singularity.

        The enclosures hold for all values of that leaf in the convex hull of its interval in `box` and `point`. Empty
        where none are found.
        """
        part = box[self.inputs[name][0]]
        low, high = min(part.low - point, fmpq(0)), max(part.high - point, fmpq(0))
        distance = Balls(intervals.ball(low, high, at_high=low < 0))
        given = {n: self._leaf(box, n) for n in self.leaves if n != name}
        for zeros in range(1, _MOST_ZEROS + 1):
            x, doubts = LaurentRange.variable(Balls(point), distance, order + zeros), Undecided()
            try:
                with interval_evaluation(doubts), arrays.quiet(), locating(self.program.source):
                    value = evaluate(self.program, {**self.fixed, **given, name: x}, rewrite=False).value
                    known = value.taylor() if isinstance(value, LaurentRange) else ()
            except LimitError:
                raise
            except (EvaluationError, UndecidedError, NotImplementedError):
                return ()
            if len(known) > order:
                found = [intervals.bounds(_flat(c, 1)[0]) for c in known[: order + 1]]
                is_proved = all(b.is_finite for b in found) and not doubts.jumped and not doubts.decisions
                return found if is_proved else ()
        return ()

    def box_text(self, box: Box) -> str:
        """The box as text for messages."""
        places = []
        for name, inputs in self.inputs.items():
            for i in inputs:
                if self.whole[i].low < self.whole[i].high:
                    index = f"[{i - inputs.start}]" if self.leaves[name] else ""
                    low, high = (intervals.text(n, 6, upward=up) for n, up in zip(box[i], (False, True)))
                    places.append(f"{name}{index} = {low}..{high}")
        return f" of {', '.join(places)}" if places else ""

    def _derived(
        self,
        box: Box,
        order: int,
        names: Collection[str] | None,
        forms: Mapping[SyntaxNode, RewrittenExpression] | None,
    ) -> list[tuple[Entry, Number]]:
        """Return the enclosures of one run, as (entry, number) pairs.

        If an equality comparison holds over the whole box, the run takes the branch of equal numbers, and its
        derivatives may differ from those nearby. Derivatives by inputs that are points are then unknown.
        """
        switching = _CertainEqualities()
        with watching(switching):
            numbers = self._numbers(box, order, names, forms)
        if not switching.seen or not order:
            return numbers
        wide = [n for n in self.leaves if any(box[i].low < box[i].high for i in self.inputs[n])]
        wide = wide if names is None else [n for n in wide if n in names]
        known: dict[Entry, Number] = {}
        if len(wide) < len(self.leaves if names is None else names):
            known = dict(self._derived(box, order, wide, forms))
        return [(entry, number if not entry[1] else known.get(entry, _UNKNOWN)) for entry, number in numbers]

    def _numbers(
        self,
        box: Box,
        order: int,
        names: Collection[str] | None,
        forms: Mapping[SyntaxNode, RewrittenExpression] | None,
    ) -> list[tuple[Entry, Number]]:
        given = {name: self._leaf(box, name) for name in self.leaves}
        constants = {} if names is None else {name: given.pop(name) for name in self.leaves if name not in names}
        with enable_grad(), locating(self.program.source):
            if order > 1:
                value, by_key = derivatives(lambda leaves: self._value({**constants, **leaves}, forms), given, order)
                made = [*self._elements(value, ())]
                for key, derivative in by_key.items():
                    made += self._elements(derivative, key.split(","))
                return made
            tensors = {name: Tensor(leaf).requires_grad_(order > 0) for name, leaf in given.items()}
            value = self._value({**constants, **tensors}, forms)
            made = [*self._elements(value, ())]
            if order and tensors:
                last = self.program.body[-1]
                with locating(self.program.source, last.span):
                    found = jacobians(value, list(tensors.values()))
                for name, jacobian in zip(tensors, found):
                    made += self._elements(jacobian, (name,))
            return made

    def _value(self, given: Mapping[str, Any], forms: Mapping[SyntaxNode, RewrittenExpression] | None) -> Any:
        # Numerically stable rewrites serve rounded arithmetic; here only the series forms apply.
        observe = self._narrow if self.known or self.known_in_rounds else None
        self._rounds = {}
        made = evaluate(self.program, {**self.fixed, **given}, rewrite=forms or False, observe=observe)
        if any(self._rounds.get(span) != len(known) for span, known in self.known_in_rounds.items()):
            # The number of iterations differs from the number of recorded bounds, so the bounds do not apply.
            self.known_in_rounds = {}
            return self._value(given, forms)
        self._by_forms |= bool(made.rewritten)
        return made.value

    def _narrow(self, span: Span, _name: str, _operands: Any, result: Any) -> None:
        """Observer of the interpreter: shrink the ball of a result to the bounds that are known for it.

        Nodes with a series form are skipped: the number observed there may be only a part of the node's value.
        """
        if span in self._form_places:
            return
        bounds = self.known.get(span)
        if (rounds := self.known_in_rounds.get(span)) is not None:
            number = self._rounds.get(span, 0)
            self._rounds[span] = number + 1
            bounds = rounds[number] if number < len(rounds) else None
        array = concrete(result)
        if bounds is not None and type(array) is Balls and not array.shape:
            array.numbers = intervals.intersection(array.numbers, bounds)

    def _leaf(self, box: Box, name: str) -> Balls:
        numbers = [self._number(box[i], self.whole[i]) for i in self.inputs[name]]
        if not self.leaves[name]:
            return Balls(numbers[0])
        import numpy

        array = numpy.empty(len(numbers), object)
        array[:] = numbers
        return Balls(array.reshape(self.leaves[name]))

    def _number(self, part: Bounds, whole: Bounds) -> Number:
        return intervals.ball(part.low, part.high, at_high=part.high == whole.high and part.low != whole.low)

    def _elements(self, part: Any, names: Sequence[str]) -> Iterator[tuple[Entry, Number]]:
        """Yield (entry, number) for each element of a value, or of a derivative by the leaves `names`."""
        array = concrete(part)
        if not names:
            self.shape = arrays.shape(array)
            if self._known_shape not in (None, self.shape):
                shapes = " and ".join(str(list(s)) for s in (self._known_shape or (), self.shape))
                raise EvaluationError(
                    f"the value has one shape at some points and another at others: {shapes}",
                    hint="give narrower intervals, or a value of one shape",
                )
            self._known_shape = self.shape
        shape = self.shape + tuple(itertools.chain(*(self.leaves[n] for n in names)))
        numbers = _flat(array, math.prod(shape))
        places = itertools.product(range(math.prod(self.shape)), *(self.inputs[n] for n in names))
        for (output, *by), number in zip(places, numbers):
            yield (output, tuple(sorted(by))), number


def _flat(array: Any, count: int) -> Sequence[Number]:
    """The elements of an array as a flat sequence of `count` numbers; zeros where the array is None."""
    if array is None:
        return [fmpq(0)] * count
    balls = array if type(array) is Balls else arrays.in_default_namespace(arrays.astype(array, "float64"))
    numbers = balls.numbers if type(balls) is Balls else exact(balls)
    return [*numbers.ravel()] if getattr(numbers, "shape", ()) else [numbers]


def _branch_choices() -> Iterator[Undecided]:
    """Yield one `Undecided` for each path through undecided comparisons. The caller must run the program within each
    before it asks for the next."""
    waiting: list[list[bool]] = [[]]
    while waiting:
        known = waiting.pop()
        doubts = Undecided(known)
        yield doubts
        made = doubts.decisions
        waiting += [[*made[:i], not made[i]] for i in range(len(known), len(made))]
