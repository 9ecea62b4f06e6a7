"""Decides which loops are rolled; what rolls them is loaded only for those."""

from __future__ import annotations

import functools
from types import ModuleType

from gradcli import arrays
from gradcli.autograd.modes import recording_program
from gradcli.errors import NotRecordableError
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.machine import Evaluator, Scope
from gradcli.language.interpreter.provenance import UNKNOWN
from gradcli.language.interpreter.values import Value, length_of
from gradcli.language.names import scope as scope_of_program
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
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
# Bound on the rounds of a rolled loop that ends by a condition.
MOST_ROUNDS = 10_000_000
# A loop that could not be rolled as often is not tried again: types and shapes settle in the first round.
_MOST_REFUSALS = 2

Loop = tree.For | tree.While


def run_rolled(
    machine: Evaluator, node: Loop, values: Value, scope: Scope, rounds_so_far: int = 0
) -> tuple[Value] | None:
    """Run the rest of a loop, over `values` if it is `for`, as one equation, and return its value.

    `rounds_so_far` were run. None where the rest has to be run round by round, or rolling it does not pay.
    """
    # The number of rounds of `while` is not known.
    count = None if isinstance(node, tree.While) else count_of(values) - rounds_so_far
    if not _pays(machine, node, count, rounds_so_far):
        return None
    from gradcli.language.interpreter.rolled import rolled_loops

    return rolled_loops.run(machine, node, without_first(values, rounds_so_far), scope, count or MOST_ROUNDS)


def rolled_calls(
    machine: Evaluator, node: tree.SyntaxNode, count: int | None, rounds_so_far: int = 0
) -> ModuleType | None:
    """The module that runs the rest of a loop of calls of functions as one equation, `count` rounds, None if that is
    not known.

    None where they have to be run round by round, or rolling them does not pay.
    """
    if machine.resolution.changes_in_place or not _pays(machine, node, count, rounds_so_far):
        return None
    from gradcli.language.interpreter.rolled import rolled_calls as module

    return module


def _pays(machine: Evaluator, node: tree.SyntaxNode, count: int | None, rounds_so_far: int) -> bool:
    """Return whether rolling the rest of a loop may be possible and pays."""
    if (
        (count is not None and count < _FEWEST_ROUNDS)
        or machine.rolling == "never"
        or machine.provenance is not UNKNOWN
        or machine.observe is not None
    ):
        return False
    if machine.traced_loops:
        if count is not None and count > _MOST_INNER_ROUNDS:
            raise NotRecordableError("a round has a long loop")
        return False
    size = _size(machine.program, node)
    size = size._replace(branches=size.branches or count is None)
    if (rounds_so_far if count is None else count) * size.nodes < _least(machine, size):
        return False
    if arrays.default_dtype() != "float64" or arrays.chosen_namespace() is not None:
        return False
    return machine.refusals.get(node, 0) < _MOST_REFUSALS


def _least(machine: Evaluator, size: _Size) -> int:
    """The number of nodes from which a loop is rolled."""
    if recording_program():
        # Round by round, a branch by numbers could not be recorded, or only for some of them.
        return 0 if size.branches else _WORTH_RECORDING
    return _BEYOND_DIAGNOSIS if machine.rolling == "late" else _WORTH_TRACING


def count_of(values: Value) -> int:
    """The number of rounds of a loop over some values; 0 for those over which no loop is rolled."""
    if isinstance(values, range):
        return length_of(values)
    if isinstance(values, ProgramList):
        # A list that is zipped with others may have become longer, and is not a tensor.
        return min(map(count_of, values.beside), default=0)
    if values is not None and (isinstance(values, Kind) or arrays.is_array(values)):
        shape = arrays.shape(values)
        return shape[0] if shape else 0
    return 0


def without_first(values: Value, number: int) -> Value:
    """The values of a loop after the first ones."""
    if values is None or not number:
        return values
    if isinstance(values, ProgramList):
        rest = ProgramList(values.items[number:], values.span, values.made)
        rest.beside = tuple(without_first(along, number) for along in values.beside)
        return rest
    return values[number:] if isinstance(values, range) else index(values, slice(number, None))


class _Size(NamedTuple):
    """The number of nodes that a round evaluates, and whether some of them are branches."""

    nodes: int
    branches: bool


@functools.lru_cache(maxsize=128)
def _size(program: tree.Module, loop: tree.SyntaxNode) -> _Size:
    """The size of a round with the functions that it calls, each branch counted once."""
    functions = scope_of_program.reached_functions(program, loop)
    found = [n for part in (loop, *functions) for n in tree.walk(part)]
    return _Size(len(found), any(isinstance(n, (tree.If, tree.While, tree.Conditional)) for n in found))
