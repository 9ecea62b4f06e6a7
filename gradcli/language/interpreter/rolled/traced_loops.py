"""The tracing that loops of statements and loops of functions share."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import GradcliError, NotRecordableError
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.machine import Evaluator
from gradcli.language.interpreter.mutable_references import MutableReference
from gradcli.language.interpreter.values import Value, as_tensor_or_number, length_of
from gradcli.language.names import scope as scope_of_program
from gradcli.language.names.evaluator_functions import DETACH
from gradcli.language.names.resolution import resolve
from gradcli.language.syntax import tree
from gradcli.loops.body_tracing import RoundTrace, Traced, TracedPath, example_of, require_plain
from gradcli.loops.rolling import Carried, Rounds, TooManyRoundsError, constant_carries, rolled, traced_paths
from gradcli.primitives.bind import Kind, constant
from gradcli.primitives.entries.arithmetic import add, multiply, subtract
from gradcli.primitives.entries.indexing import index
from gradcli.program.ir import Variable

# Methods that change a list.
_CHANGING = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"})
# Names that make constants of tensors.
_DETACHING = frozenset({*DETACH, "data", "item", "no_grad"})
# The fewest steps that a round takes round by round: its own, that of a statement, and that of a condition.
_STEPS_PER_ROUND = 3


class NotRolledError(Exception):
    """A loop has to be run round by round."""


class ConstantPlacesError(Exception):
    """A loop has to be traced again, as its guards exclude ties of numbers that no input changes.

    `numbers` are the numbers of the places that have such numbers.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self.numbers = numbers


def attempt(machine: Evaluator, node: tree.SyntaxNode, run: Callable[[Collection[int]], Value]) -> tuple[Value] | None:
    """The result of tracing a loop, by `run` for the numbers of places that are known to have constants; None where it
    has to be run round by round."""
    try:
        try:
            return (run(()),)
        except ConstantPlacesError as known:
            machine.leaving = None
            return (run(known.numbers),)
    except (GradcliError, NotRolledError) as error:
        if isinstance(error, TooManyRoundsError):
            limits.require_steps(_STEPS_PER_ROUND * error.rounds)
        machine.leaving = None
        machine.refusals[node] = machine.refusals.get(node, 0) + 1
        return None


class TracedLoop:
    """A loop of which a round is being traced.

    `constants` are the numbers of the places, in the order in which they are made, whose numbers no input changes.
    """

    rolls = True

    def __init__(self, machine: Evaluator, counters: range, constants: Collection[int] = ()) -> None:
        if length_of(counters) > sys.maxsize:
            raise NotRolledError
        self.machine, self.counters = machine, counters
        self.trace = RoundTrace(strict=machine.rolling == "late")
        self.counter = Traced(self.trace, self.trace.input(0.0).variable, float(counters.start), 0, counts=True)
        self.constants, self.places = constants, list[Variable]()
        # The lists that the round may change.
        self.owned: list[ProgramList] = []
        # Parts of tensors by the tensor and the key, so that each is the same object in all paths.
        self.parts: dict[tuple[int, str], tuple[Value, Value]] = {}

    def paths(self, one_round: Callable[[], Sequence[Value]]) -> list[TracedPath]:
        """All execution paths of a round, which `one_round` goes through and of which it returns the results."""
        self.machine.traced_loops.append(self)
        try:
            return traced_paths(self.trace, one_round)
        finally:
            self.machine.traced_loops.pop()

    def place(self, value: Value) -> Traced:
        """A value of the round for one that is passed on from round to round."""
        if not is_number(value) or type(value) is int:
            # Rounds would pass on an exact whole number as a float.
            raise NotRolledError
        require_plain(value)
        made = self.trace.input(example_of(value), constant=len(self.places) in self.constants)
        self.places.append(made.variable)
        return made

    def rolled(self, rounds: Rounds, carried: Sequence[Carried], paths: Sequence[TracedPath]) -> list[Value]:
        """The carried values after the last round, see `gradcli.loops.rolling.rolled`."""
        constants, is_fixed = constant_carries(self.trace, carried, paths)
        if self.trace.excluded and not self.constants:
            numbers = [i for i, variable in enumerate(self.places) if variable in constants]
            if numbers:
                raise ConstantPlacesError(numbers)
        found = rolled(self.trace, rounds, carried, paths)
        return [_as_constant(f, fixed=is_fixed) if c.variable in constants else f for c, f in zip(carried, found)]

    def item(self, along: Value) -> Value:
        """The value of a loop variable in a round; the loop iterates over a range or a tensor."""
        if not isinstance(along, range):
            places = subtract(self.counter, float(self.counters.start)) if self.counters.start else self.counter
            return self.row(along, places, ())
        if along is self.counters or along == self.counters:
            return self.counter
        steps = self.counter if along.step == 1 else multiply(self.counter, float(along.step))
        return add(steps, float(along.start)) if along.start else steps

    def row_at(self, sequence: Value, key: Sequence[Any]) -> Value | None:
        """The part of a tensor at a key whose first item is traced; None for other keys."""
        if not key or not isinstance(key[0], Traced):
            return None
        return self.row(as_tensor_or_number(sequence, "an index"), key[0], key[1:])

    def owns(self, value: Value) -> bool:
        """Return whether a list or a reference belongs to the round, which may change it."""
        traced = isinstance(value, MutableReference) and isinstance(value.value, Traced)
        return traced or any(value is own for own in self.owned)

    def row(self, sequence: Value, item: Traced, rest: Sequence[Any]) -> Value:
        """The row of a tensor from outside at a place that moves with the counter.

        Raises NotRecordableError for any other place.
        """
        if item.lag is None or item.trace is not self.trace or isinstance(sequence, Traced):
            raise NotRecordableError("a place in a tensor depends on numbers of a round")
        require_plain(sequence)
        if not arrays.shape(sequence):
            raise NotRecordableError("a number has no places")
        sequence, first = self.sequence_at(sequence, item.lag, rest)
        return self.trace.row(sequence, first, example_of(index(sequence, first)))

    def sequence_at(self, sequence: Value, lag: int, rest: Sequence[Any] = ()) -> tuple[Value, int]:
        """A tensor whose row `i` plus a number, which is returned too, is read in round i, from the tensor whose row at
        the counter plus `lag` is.

        Raises NotRecordableError if that is outside of the tensor in a round.
        """
        counters, first = self.counters, self.counters.start + lag
        last, length = first + counters.step * (len(counters) - 1), arrays.shape(sequence)[0]
        if not (0 <= first < length and 0 <= last < length):
            raise NotRecordableError("a place counts from the end")
        if counters.step == 1 and not rest:
            return sequence, first
        stop = last + (1 if counters.step > 0 else -1)
        places = slice(first, None if stop < 0 else stop, counters.step)
        return self.part(sequence, (places, *rest)), 0

    def part(self, sequence: Value, key: tuple[Any, ...]) -> Value:
        """The part of a tensor from outside at a key, the same object in all paths."""
        name = (id(sequence), repr(key))
        if name not in self.parts:
            self.parts[name] = sequence, index(sequence, key)
        return self.parts[name][1]


def _as_constant(value: Value, *, fixed: bool) -> Value:
    """A value after the last round that no input changes; as a number, if it is `fixed`, so that a recording may decide
    by it."""
    plain = example_of(value) if fixed and not arrays.shape(value) else None
    if plain is None or isinstance(plain, Kind):
        return constant(value)
    return complex(plain) if arrays.is_complex(plain) else float(plain)


def zeros(like: Traced) -> Any:
    if like.shape:
        return arrays.zeros(like.shape, like.dtype)
    return 0j if arrays.is_complex(like) else 0.0


def is_number(value: Value) -> bool:
    return isinstance(value, Kind) or arrays.is_array(value)


def changes_list(node: tree.SyntaxNode) -> bool:
    """Return whether a node calls a method that changes a list."""
    return isinstance(node, tree.Call) and node.receiver is not None and node.name in _CHANGING


@functools.lru_cache(maxsize=32)
def may_be_rolled(program: tree.Module) -> bool:
    """Return whether loops of a program may be rolled: not where it differentiates or detaches, or has functions with
    derivatives of their own."""
    return not (
        resolve(program).differentiates
        or resolve(program).with_backward
        or _DETACHING.intersection(scope_of_program.mentioned_names(tree.all_nodes(program)))
    )
