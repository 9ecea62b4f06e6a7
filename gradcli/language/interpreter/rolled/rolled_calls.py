"""Rolls loops of calls of functions, as `fori_loop` and `scan`, and comprehensions: a call runs once, on traced
values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from gradcli.errors import Span
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.machine import Evaluator
from gradcli.language.interpreter.rolled.traced_loops import (
    NotRolledError,
    TracedLoop,
    attempt,
    changes_list,
    is_number,
    may_be_rolled,
    zeros,
)
from gradcli.language.interpreter.values import Value
from gradcli.language.syntax import tree
from gradcli.loops.body_tracing import Traced, example_of
from gradcli.loops.rolling import Carried, Rounds, guards_held
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.comparisons import greater

# The structure of a nested value: True for a number or tensor, None for None, else what the list is made from and the
# structures of its items.
Structure = Any


class RolledCalls(NamedTuple):
    """The results of a loop: the state after the last round, and the results of all rounds, each leaf stacked."""

    state: Value
    results: Value

    def as_list(self, span: Span) -> ProgramList | None:
        """The list of the results of all rounds; None if some result is neither a number nor a tensor."""
        if self.results is None or isinstance(self.results, ProgramList):
            return None
        return ProgramList.of_rows(self.results, span)


# Computes a round from the loop and the state: the next state and a result, or None where the loop has ended.
Round = Callable[["CallLoop", Value], "tuple[Value, Value] | None"]


def run(
    machine: Evaluator, node: tree.SyntaxNode, counters: range, state: Value, one_round: Round, *, ends: bool = False
) -> RolledCalls | None:
    """Run the rounds of a loop as one equation; if it `ends`, it does so where `one_round` returns None.

    None where it has to be run round by round.
    """
    if not may_be_rolled(machine.program) or _changes_lists(machine.program):
        return None
    found = attempt(
        machine, node, lambda known: CallLoop(machine, node.span, counters, one_round, known, ends=ends).run(state)
    )
    return None if found is None else found[0]


class CallLoop(TracedLoop):
    """A loop of calls that is being traced."""

    def __init__(
        self,
        machine: Evaluator,
        span: Span,
        counters: range,
        one_round: Round,
        constants: Collection[int] = (),
        *,
        ends: bool,
    ) -> None:
        super().__init__(machine, counters, constants)
        self.one_round, self.span, self.ends = one_round, span, ends

    def item_of(self, along: Value) -> Value:
        """The value of a loop variable in a round; the loop iterates over a range, a tensor, or several of them in
        parallel."""
        if isinstance(along, ProgramList):
            return ProgramList(map(self.item, along.beside), along.span, "tuple")
        return self.item(along)

    def run(self, state: Value) -> RolledCalls:
        before, structure = _flattened(state)
        places = [self.place(value) for value in before]
        guard, active = self.trace.input(1.0, constant=True), self.trace.input(1.0, constant=True)
        # The structure of the result of a round, and its leaves as first computed.
        known: list[tuple[Structure, Sequence[Value]]] = []

        def path() -> list[Value]:
            if self.ends and not self.trace.decided(greater(active, 0.5)):
                return [*places, active, guard]
            made = self.one_round(self, _rebuilt(structure, iter(places), self.span))
            if made is None:
                return [*places, 0.0, guards_held(self.trace, guard)]
            after, own = _flattened(made[0])
            items, of_item = _flattened(made[1])
            known.append((of_item, items))
            if own != structure or of_item != known[0][0]:
                raise NotRolledError
            return [*after, *items, *([1.0] if self.ends else []), guards_held(self.trace, guard)]

        paths = self.paths(path)
        items = [self.trace.input(example_of(item)) for item in known[0][1]]
        carried = [
            *map(_carried, before, places),
            *(Carried(zeros(item), item.variable, stacked=True) for item in items),
            *([Carried(1.0, active.variable)] if self.ends else []),
            Carried(1.0, guard.variable),
        ]
        rounds = Rounds(self.counter.variable, self.counters, len(carried) - 2 if self.ends else None)
        found = iter(self.rolled(rounds, carried, paths))
        return RolledCalls(_rebuilt(structure, found, self.span), _rebuilt(known[0][0], found, self.span))


def _carried(before: Value, place: Traced) -> Carried:
    return Carried(before, place.variable)


def _flattened(value: Value) -> tuple[list[Value], Structure]:
    """The numbers and tensors of a nested value, and its structure. Raises NotRolledError for other values."""
    if value is None:
        return [], None
    if is_number(value):
        return [value], True
    if type(value) is not ProgramList or value.made == "grown":
        raise NotRolledError
    parts = [_flattened(item) for item in value.items]
    return [leaf for leaves, _ in parts for leaf in leaves], (value.made, tuple(structure for _, structure in parts))


def _rebuilt(structure: Structure, leaves: Iterator[Value], span: Span) -> Value:
    """The nested value with a structure, from its leaves."""
    if structure is None:
        return None
    if structure is True:
        return next(leaves)
    made, parts = structure
    return ProgramList([_rebuilt(part, leaves, span) for part in parts], span, made)


@functools.lru_cache(maxsize=32)
def _changes_lists(program: tree.Module) -> bool:
    """Return whether a program calls methods that change lists, as a function might change one that outlives a
    round."""
    return any(map(changes_list, tree.all_nodes(program)))
