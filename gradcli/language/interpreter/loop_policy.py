"""Decides which loops are rolled; what rolls them is loaded only for those."""

from __future__ import annotations

import functools
from typing import NamedTuple

from gradcli import arrays
from gradcli.autograd.modes import recording_program
from gradcli.errors import NotRecordableError
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.machine import Evaluator, Scope
from gradcli.language.interpreter.provenance import UNKNOWN
from gradcli.language.interpreter.values import Value, length_of
from gradcli.language.syntax import tree
from gradcli.primitives.bind import Kind
from gradcli.primitives.entries.indexing import index

# Fewer rounds are never rolled.
_FEWEST_ROUNDS = 12
# The numbers of nodes that a loop evaluates from which it is rolled. Where it is recorded: recording as many equations
# takes 0.1 s, and running them as long as the operations around a rolled loop. Else: tracing its round and the
# derivative of the round takes as long. Where its operations are diagnosed: more would not be, see
# `RoundingErrorEstimate`.
_WORTH_RECORDING, _WORTH_TRACING, _BEYOND_DIAGNOSIS = 1_000, 2_000, 20_000
# Within a round that is traced, loops of up to this number of rounds are part of it, round by round.
_MOST_INNER_ROUNDS = 64
# Bound on the rounds of a rolled `while`.
_MOST_ROUNDS = 10_000_000
# A loop that could not be rolled as often is not tried again: types and shapes settle in the first round.
_MOST_REFUSALS = 2

Loop = tree.For | tree.While


def run_rolled(
    machine: Evaluator, node: Loop, values: Value, scope: Scope, rounds_so_far: int = 0
) -> tuple[Value] | None:
    """Run a loop over `values` as one equation, and return its value.

    Of `while`, whose number of rounds is not known, `rounds_so_far` were run. None where it has to be run round by
    round, or rolling it does not pay.
    """
    count = _MOST_ROUNDS if isinstance(node, tree.While) else _count(values)
    if (
        count < _FEWEST_ROUNDS
        or machine.rolls == "never"
        or machine.provenance is not UNKNOWN
        or machine.observe is not None
    ):
        return None
    if machine.rolling:
        if count > _MOST_INNER_ROUNDS and isinstance(node, tree.For):
            raise NotRecordableError("a round has a long loop")
        return None
    size = _size(machine.program, node)
    expected = rounds_so_far if isinstance(node, tree.While) else count
    if expected * size.nodes < _least(machine, size):
        return None
    if arrays.default_dtype() != "float64" or arrays.chosen_namespace() is not None:
        return None
    if machine.refusals.get(node, 0) >= _MOST_REFUSALS:
        return None
    from gradcli.language.interpreter import rolled_loops

    return rolled_loops.run(machine, node, values, scope, count)


def _least(machine: Evaluator, size: _Size) -> int:
    """The number of nodes from which a loop is rolled."""
    if recording_program():
        # Round by round, a branch by numbers could not be recorded, or only for some of them.
        return 0 if size.branches else _WORTH_RECORDING
    return _BEYOND_DIAGNOSIS if machine.rolls == "late" else _WORTH_TRACING


def _count(values: Value) -> int:
    """The number of rounds of a loop over some values; 0 for those over which no loop is rolled."""
    if isinstance(values, range):
        return length_of(values)
    if isinstance(values, ProgramList):
        # A list that is zipped with others may have become longer, and is no tensor.
        return min(map(_count, values.beside), default=0)
    if values is not None and (isinstance(values, Kind) or arrays.is_array(values)):
        shape = arrays.shape(values)
        return shape[0] if shape else 0
    return 0


def without_first(values: Value) -> Value:
    """The values of a loop after the first one; None for those over which no loop is rolled."""
    if _count(values) < 2:
        return None
    if isinstance(values, ProgramList):
        others = ProgramList(values.items[1:], values.span, values.made)
        others.beside = tuple(map(without_first, values.beside))
        return others
    return values[1:] if isinstance(values, range) else index(values, slice(1, None))


class _Size(NamedTuple):
    """The number of nodes that a round evaluates, and whether some of them are branches."""

    nodes: int
    branches: bool


@functools.lru_cache(maxsize=128)
def _size(program: tree.Module, loop: Loop) -> _Size:
    """The size of a round with the functions that it calls, each branch counted once."""
    defined = {n.name: n for n in tree.all_nodes(program) if isinstance(n, tree.Define)}
    found: list[tree.SyntaxNode] = []
    waiting: list[tree.SyntaxNode] = [loop]
    while waiting:
        for node in tree.walk(waiting.pop()):
            found.append(node)
            if isinstance(node, tree.Call) and node.name in defined:
                # Each function is counted once, so that recursion ends.
                waiting.append(defined.pop(node.name))
    return _Size(len(found), any(isinstance(n, (tree.If, tree.While, tree.Conditional)) for n in found))
