"""Divides the operations of a run into units: an operation that the user wrote, a short sum or product, or, where a
program is long, a whole call, loop or statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from gradcli import limits
from gradcli.autograd.node import Node
from gradcli.language.interpreter.expression_trace import Event
from gradcli.language.syntax import tree

# A program with more steps is folded.
LONG = 30
# A sum or product of more operations is several steps.
_MOST_JOINED = 7
# Cost of an event, in eighths of a step.
_EVENT = 8
_FOLDED = (tree.Call, tree.Apply, tree.For, tree.While, tree.Comprehension)
_STATEMENTS = (tree.Assign, tree.Augment, tree.Evaluate, tree.Return)


class Unit:
    """Operations that are explained as one step, in the order in which they ran; `event` is the outermost evaluation,
    and `folded` says that it is more than one operation that the user wrote."""

    __slots__ = ("event", "folded", "nodes")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.nodes: list[Node] = []
        self.folded = False


class Units:
    """The units of a run: `of` each operation that the value depends on."""

    def __init__(self, root: Event, needed: frozenset[Node], *, expand: bool) -> None:
        self.of: dict[Node, Unit] = {}
        # The events whose operations are explained one by one, outermost first.
        self.open: list[Event] = []
        events = [*_with_depth(root)]
        limits.charge_steps(_EVENT * len(events))
        folded: set[int] = set()
        self._divide(root, needed, folded)
        for level in () if expand else _levels(events):
            if len({*self.of.values()}) <= LONG:
                break
            folded |= level
            self._divide(root, needed, folded)

    def _divide(self, root: Event, needed: frozenset[Node], folded: set[int]) -> None:
        self.of, self.open = {}, []
        waiting: list[tuple[Event, Unit | None]] = [(root, None)]
        joined: dict[Unit, _Joined] = {}
        while waiting:
            event, around = waiting.pop()
            unit = around
            if unit is None or not (unit.folded or _joins(event, joined[unit])):
                unit = Unit(event)
                unit.folded = id(event) in folded
                joined[unit] = _Joined(event)
            if not unit.folded:
                self.open.append(event)
            for node in event.recorded:
                if node in needed:
                    self.of[node] = unit
                    unit.nodes.append(node)
            waiting += [(child, _unit_around(unit, event, child)) for child in reversed(event.events)]
        for unit in joined:
            unit.nodes.sort(key=attrgetter("sequence"))


class _Joined:
    """The kind of operators of a unit that several operators may be part of, and how many there are."""

    def __init__(self, event: Event) -> None:
        self.kind = _kind(event.node)
        self.count = 1


def _unit_around(unit: Unit, event: Event, child: Event) -> Unit | None:
    """The unit that a nested evaluation may belong to."""
    if unit.folded:
        return unit
    direct = _kind(event.node) is not None and any(part is child.node for part, _ in event.parts)
    return unit if direct else None


def _joins(event: Event, joined: _Joined) -> bool:
    """Return whether an operand is part of the sum or product around it."""
    kind = _kind(event.node)
    if kind is None or joined.kind is None or joined.count >= _MOST_JOINED:
        return False
    if "sign" not in (kind, joined.kind) and kind != joined.kind:
        return False
    joined.kind = kind if joined.kind == "sign" else joined.kind
    joined.count += 1
    return True


def _kind(node: tree.SyntaxNode) -> str | None:
    if isinstance(node, tree.Unary) and node.operator == "-":
        return "sign"
    if isinstance(node, tree.Binary):
        return {"+": "sum", "-": "sum", "*": "product", "/": "product"}.get(node.operator)
    return None


def _with_depth(root: Event) -> Iterator[tuple[int, Event]]:
    """All events, each with the number of calls and loops around it."""
    waiting = [(0, root)]
    while waiting:
        depth, event = waiting.pop()
        yield depth, event
        inner = depth + isinstance(event.node, _FOLDED)
        waiting += [(inner, child) for child in event.events]


def _levels(events: Sequence[tuple[int, Event]]) -> Iterator[set[int]]:
    """The groups of steps that are folded into one where a program is long: the innermost calls and loops first,
    statements last."""
    deepest = max((depth for depth, _ in events), default=0)
    for level in range(deepest, -1, -1):
        found = {id(e) for depth, e in events if depth == level and isinstance(e.node, _FOLDED) and _runs_code(e)}
        if found:
            yield found
    yield {id(e) for _, e in events if isinstance(e.node, _STATEMENTS)}


def _runs_code(event: Event) -> bool:
    """Return whether an event is a loop, or calls a function of the program."""
    if isinstance(event.node, (tree.For, tree.While, tree.Comprehension)):
        return True
    arguments: set[Any] = {id(n) for n in tree.children(event.node)}
    return any(id(part) not in arguments and id(part) not in _keyword_values(event.node) for part, _ in event.parts)


def _keyword_values(node: tree.SyntaxNode) -> set[int]:
    return {id(keyword.value) for keyword in getattr(node, "keywords", ())}
