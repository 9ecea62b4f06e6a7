"""What statements do: names bound, blocks, branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.modes import current_span
from gradcli.errors import EvaluationError, ShapeError, Span
from gradcli.language.machine import Machine, Task, block
from gradcli.language.syntax import tree
from gradcli.language.values import Value, number, truth
from gradcli.primitives.axes import whole
from gradcli.primitives.indexing import index


def _evaluate(machine: Machine, node: tree.Evaluate) -> Task:
    return (yield node.value)


def _assign(machine: Machine, node: tree.Assign) -> Task:
    value = yield node.value
    machine.assign(node.name, number(value, f"'{node.name}'"))
    return value


def _unpack(machine: Machine, node: tree.Unpack) -> Task:
    given = []
    for expression in node.values:
        given.append((yield expression))
    parts = _parts(given[0], len(node.targets)) if len(given) == 1 else given
    for target, value in zip(node.targets, parts):
        machine.assign(target.name, number(value, f"'{target.name}'"))
    return parts[-1]


def _parts(value: Value, count: int) -> Sequence[Value]:
    """What a function gives, or a tensor along its first axis: `count` parts."""
    if isinstance(value, tuple) and len(value) == count:
        return value
    if isinstance(value, tuple):
        raise ShapeError(f"{count} names do not fit {len(value)} tensors")
    shape = arrays.shape(number(value, "several names"))
    if shape[:1] != (count,):
        raise ShapeError(f"{count} names do not fit a tensor of shape {list(shape)}")
    return [index(value, i) for i in range(count)]


def _define(machine: Machine, node: tree.Define, _names: object, _opaque: object) -> None:
    machine.functions[node.name] = node


def _if(machine: Machine, node: tree.If) -> Task:
    test = yield node.test
    return (yield from block(node.body if truth(test, node.test) else node.orelse))


def _for(machine: Machine, node: tree.For) -> Task:
    value = None
    items = yield from _items(machine, node.iterable)
    machine.provenance.enter(node)
    for item in items:
        limits.charge_steps()
        machine.provenance.repeat()
        machine.assign(node.name, item)
        value = yield from block(node.body)
    machine.provenance.leave()
    return value


def _items(machine: Machine, iterable: tree.Expression) -> Generator[Any, Value, Iterable[Value]]:
    """What a loop goes along; `range` is counted without making a tensor."""
    if isinstance(iterable, tree.Call) and iterable.name == "range" and "range" not in machine.functions:
        bounds = []
        for argument in iterable.arguments:
            bounds.append(whole((yield argument), "a bound of 'range'"))
        if iterable.receiver is None and not iterable.keywords and 1 <= len(bounds) <= 3:
            if bounds[2:] == [0]:
                raise EvaluationError("the step of 'range' must not be 0", span=iterable.span)
            return map(float, range(*bounds))
    tensor = number((yield iterable), "a loop")
    if not arrays.shape(tensor):
        raise ShapeError("a loop goes along a tensor, and this is a number", hint="range(n)", span=iterable.span)
    return _elements(tensor, iterable.span)


def _elements(tensor: Value, place: Span) -> Iterator[Value]:
    for i in range(arrays.shape(tensor)[0]):
        current_span.set(place)
        yield index(tensor, i)


def _while(machine: Machine, node: tree.While) -> Task:
    value = None
    machine.provenance.enter(node)
    while truth((yield node.test), node.test):
        limits.charge_steps()
        machine.provenance.repeat()
        value = yield from block(node.body)
    machine.provenance.leave()
    return value


HANDLERS: dict[type, Callable[..., Task]] = {
    tree.Evaluate: _evaluate,
    tree.Assign: _assign,
    tree.Unpack: _unpack,
    tree.If: _if,
    tree.For: _for,
    tree.While: _while,
}

SIMPLE: dict[type, Callable[..., Value]] = {tree.Define: _define}
