"""Handlers of statements: assignments, branches, loops and `return`."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial

from gradcli import arrays, limits
from gradcli.autograd.modes import current_span
from gradcli.errors import EvaluationError, NotRecordableError, ShapeError, Span
from gradcli.language.interpreter import arithmetic_operators
from gradcli.language.interpreter.lists import ProgramList, changed_in_place, replace_item
from gradcli.language.interpreter.loop_policy import run_rolled
from gradcli.language.interpreter.machine import Evaluator, PendingExit, Scope, Task, block
from gradcli.language.interpreter.mutable_references import ElementwiseInput, MutableReference
from gradcli.language.interpreter.values import TENSOR_CONVERTIBLE, Value, as_bool, as_tensor_or_number, length_of
from gradcli.language.names import scope as scope_of_program
from gradcli.language.operations import EXACT_INTEGERS
from gradcli.language.syntax import tree
from gradcli.primitives.entries.indexing import check_order_of_axes, index
from gradcli.type_hints import Any

# Rounds after which a loop that takes more steps than are left is an error: earlier, there may be another one to report.
# A power of 2, as loops with a condition look for another execution path after powers of 2 of rounds.
_ROUNDS_WITHOUT_ERROR = 1024
# The evaluated items of an index.
Key = tuple[Any, ...]


def _evaluate(_machine: Evaluator, node: tree.Evaluate, _scope: Scope) -> Task:
    return (yield node.value)


def _assign(machine: Evaluator, node: tree.Assign, scope: Scope) -> Task:
    value = yield node.value
    for target in node.targets:
        if type(target) is tree.BoundName:
            machine.assign(target.name, value, scope)
        else:
            yield from _to_targets(machine, target, value, scope)
    if not isinstance(target, tree.Index):
        return value
    changed = yield target.value
    return (
        changed
        if isinstance(changed, MutableReference) and changed.by_rows
        else as_tensor_or_number(changed, "a tensor")
    )


def _to_targets(machine: Evaluator, target: tree.SyntaxNode, value: Value, scope: Scope) -> Task:
    """Assign to names and elements."""
    for within, part in _taken_apart(target, value):
        if isinstance(within, tree.Index):
            whole_value = yield within.value
            key = yield from evaluate_index(machine, within)
            _require_own(machine, whole_value)
            put(whole_value, key, part, within)
        else:
            bind(machine, within, part, scope)


def _require_own(machine: Evaluator, value: Value) -> None:
    """Raise NotRecordableError while the round of a loop is traced, and a value that outlives it is to be changed."""
    if machine.traced_loops and not machine.traced_loops[-1].owns(value):
        raise NotRecordableError("a round changes a list or a tensor")


def put(value: Value, key: Key, part: Value, node: tree.Index) -> None:
    """Replace elements of a tensor or a list. Raises EvaluationError for values without elements."""
    current_span.set(node.span)
    if isinstance(value, ProgramList):
        replace_item(value, key, part)
    elif isinstance(value, MutableReference):
        value.put(key, as_tensor_or_number(part, "an element"))
        changed_in_place()
    else:
        raise EvaluationError("only elements of a tensor or a list can be assigned to", span=node.value.span)


def bind(machine: Evaluator, target: tree.SyntaxNode, value: Value, scope: Scope) -> None:
    """Assign a value to the names of an assignment target or a loop target."""
    for within, part in _taken_apart(target, value):
        if isinstance(within, tree.BoundName):
            machine.assign(within.name, part, scope)


def _taken_apart(target: tree.SyntaxNode, value: Value) -> Iterator[tuple[tree.SyntaxNode, Value]]:
    """The single targets of a nested target, each with its part of the value."""
    pending: list[tuple[tree.SyntaxNode, Value]] = [(target, value)]
    while pending:
        target, value = pending.pop()
        if isinstance(target, tree.TargetList):
            pending += reversed([*zip(target.targets, _parts(value, len(target.targets)))])
        else:
            yield target, value


def _parts(value: Value, count: int) -> Sequence[Value]:
    """The `count` values of a list, a tuple of results, or a tensor along its first axis. Raises ShapeError."""
    if isinstance(value, MutableReference):
        value = value.value
    if isinstance(value, (tuple, ProgramList, range)):
        if isinstance(value, range):
            value = value[: count + 1]
        parts = value.items if isinstance(value, ProgramList) else [*value]
        if len(parts) != count:
            what = "tensors" if isinstance(value, tuple) else "values"
            raise ShapeError(f"{count} names do not fit {len(parts)} {what}")
        return parts
    shape = arrays.shape(as_tensor_or_number(value, "several names"))
    if shape[:1] != (count,):
        raise ShapeError(f"{count} names do not fit a tensor of shape {list(shape)}")
    return [index(value, i) for i in range(count)]


def _augment(machine: Evaluator, node: tree.Augment, scope: Scope) -> Task:
    before = yield node.target
    if isinstance(before, ElementwiseInput):
        before = before.value
    value = yield node.value
    if isinstance(before, (ProgramList, MutableReference)):
        _require_own(machine, before)
    if isinstance(before, ProgramList) and node.operator == "+":
        before.extend(iterated_list(value, node.value.span))
        return before
    what = f"'{node.operator}='"
    result = arithmetic_operators.exact_result(machine, node.operator, before, value)
    if result is None:
        operands = as_tensor_or_number(before, what), as_tensor_or_number(value, what)
        result = arithmetic_operators.applied(machine, node, *operands)
    if isinstance(node.target, tree.Index):
        yield from _to_targets(machine, node.target, result, scope)
    elif isinstance(before, MutableReference):
        _check_shape(before, result, node)
        before.set(result)
        changed_in_place()
    else:
        assert isinstance(node.target, tree.Name)
        machine.assign(node.target.id, result, scope)
    return result


def _check_shape(before: MutableReference, result: Value, node: tree.Augment) -> None:
    own, other = arrays.shape(before.value), arrays.shape(result)
    if own != other:
        raise ShapeError(
            f"'{node.operator}=' changes a tensor of shape {list(own)} in place, and the result has shape {list(other)}",
            hint=f"write name = name {node.operator} … to make a new one",
            span=node.span,
        )


def _return(machine: Evaluator, node: tree.Return, _scope: Scope) -> Task:
    value = None if node.value is None else (yield node.value)
    machine.leaving = PendingExit(tree.Return, value)
    return value


def _leave(machine: Evaluator, node: tree.Break | tree.Continue, _scope: Scope) -> Value:
    machine.leaving = PendingExit(type(node))


def _nothing(_machine: Evaluator, _node: tree.SyntaxNode, _scope: Scope) -> Value:
    return None


def _if(machine: Evaluator, node: tree.If, _scope: Scope) -> Task:
    test = yield node.test
    return (yield from block(machine, node.body if as_bool(test, node.test) else node.orelse))


def _for(machine: Evaluator, node: tree.For, scope: Scope) -> Task:
    value = None
    iterated = yield node.iterable
    rolled = run_rolled(machine, node, iterated, scope)
    if rolled is not None:
        return rolled[0]
    items = loop_values(iterated, node.iterable.span)
    machine.provenance.enter(node)
    for number, item in enumerate(items):
        if number == 1:
            # The first round may have brought values to the types and shapes that the others pass on.
            rolled = run_rolled(machine, node, iterated, scope, number)
            if rolled is not None:
                return rolled[0]
        elif number == _ROUNDS_WITHOUT_ERROR and isinstance(iterated, range) and not scope_of_program.may_be_left(node):
            limits.require_steps(length_of(iterated) - number)
        machine.provenance.repeat()
        bind(machine, node.target, item, scope)
        value = yield from block(machine, node.body)
        if machine.leaving is not None and not _goes_on(machine):
            break
    machine.provenance.leave()
    return value


def _is_always_true(test: tree.Expression) -> bool:
    return isinstance(test, (tree.Constant, tree.Number)) and bool(test.value)


def _goes_on(machine: Evaluator) -> bool:
    """Return whether the innermost loop continues after a `return`, `break` or `continue`."""
    assert machine.leaving is not None
    by = machine.leaving.by
    if by is not tree.Return:
        machine.leaving = None
    return by is tree.Continue


def loop_values(value: Value, place: Span) -> Iterator[Value]:
    """The values that a loop iterates over, charging a step for each. Raises ShapeError for a number."""
    return _charged(_elements(value, place))


def iterated_list(value: Value, place: Span) -> list[Value]:
    """The values that a loop iterates over, as a new list. Raises ShapeError for a number."""
    if isinstance(value, ProgramList):
        limits.charge(len(value.items))
        return value.items[:]
    return [*loop_values(value, place)]


def _charged(items: Iterable[Value]) -> Iterator[Value]:
    for item in items:
        limits.charge_steps()
        yield item


def _elements(value: Value, place: Span) -> Iterable[Value]:
    if isinstance(value, ProgramList):
        # As in Python, items that the loop body appends are iterated over too.
        return value.items
    if isinstance(value, range):
        # Beyond 2**53, counters are exact, as whole numbers are that no input changes.
        return map(float, value) if max(abs(value.start), abs(value.stop)) <= EXACT_INTEGERS else value
    if isinstance(value, tuple):
        return value
    if isinstance(value, MutableReference) and len(arrays.shape(value.value)) > 1:
        return (value.view(partial(index, place=i)) for i in range(arrays.shape(value.value)[0]))
    tensor = as_tensor_or_number(value, "a loop")
    if not arrays.shape(tensor):
        raise ShapeError(
            "a loop goes along a tensor, and this is a number",
            hint="range(n) has the numbers from 0 to n - 1",
            span=place,
        )
    return _rows(tensor, place)


def _rows(tensor: Value, place: Span) -> Iterator[Value]:
    for i in range(arrays.shape(tensor)[0]):
        current_span.set(place)
        yield index(tensor, i)


def _while(machine: Evaluator, node: tree.While, scope: Scope) -> Task:
    value = None
    machine.provenance.enter(node)
    rounds = 0
    while True:
        if not rounds & (rounds - 1):
            # Tried after 0, 1, 2, 4, 8, … rounds: how many there will be is not known.
            rolled = run_rolled(machine, node, None, scope, rounds)
            if rolled is not None:
                return rolled[0]
            if (
                rounds == _ROUNDS_WITHOUT_ERROR
                and _is_always_true(node.test)
                and not scope_of_program.may_be_left(node)
            ):
                limits.require_steps(math.inf)
        if not as_bool((yield node.test), node.test, of_loop=True):
            break
        rounds += 1
        limits.charge_steps()
        machine.provenance.repeat()
        value = yield from block(machine, node.body)
        if machine.leaving is not None and not _goes_on(machine):
            break
    machine.provenance.leave()
    return value


def evaluate_index(machine: Evaluator, node: tree.Index) -> Generator[Any, Value, Key]:
    """Evaluate the items of an index; a tuple as the only one is the whole index.

    Raises ShapeError where PyTorch and NumPy order the axes of the result differently, and the program has PyTorch's
    names.
    """
    items: Sequence[tree.SyntaxNode] = node.items
    if len(items) == 1 and isinstance(items[0], tree.Tuple):
        items = items[0].items
    key: list[Value] = []
    for item in items:
        key.append((yield from _index_item(item)))
    if items is node.items and len(key) == 1 and isinstance(key[0], ProgramList) and key[0].made == "tuple":
        key = key[0].items
    places = tuple(map(_position, key))
    if machine.dialect in ("torch", "both"):
        check_order_of_axes(places)
    return places


def _index_item(item: tree.SyntaxNode) -> Task:
    if isinstance(item, tree.Ellipsis):
        return Ellipsis
    if isinstance(item, tree.Slice):
        bounds = []
        for bound in (item.start, item.stop, item.step):
            bounds.append(None if bound is None else _position((yield bound)))
        return slice(*bounds)
    return (yield item)


def _position(value: Value) -> Value:
    return as_tensor_or_number(value, "an index") if isinstance(value, TENSOR_CONVERTIBLE) else value


HANDLERS: dict[type, Callable[..., Task]] = {
    tree.Evaluate: _evaluate,
    tree.Assign: _assign,
    tree.Augment: _augment,
    tree.Return: _return,
    tree.If: _if,
    tree.For: _for,
    tree.While: _while,
}

SIMPLE: dict[type, Callable[..., Value]] = {
    tree.Break: _leave,
    tree.Continue: _leave,
    tree.Pass: _nothing,
    tree.Import: _nothing,
}
