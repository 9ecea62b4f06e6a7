"""Records the evaluation of a program: each expression and statement that ran, the parts it asked for, and its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gradcli.autograd.node import Node, next_sequence
from gradcli.language.interpreter.machine import Evaluator, Scope, ScopedNode, Task
from gradcli.language.interpreter.provenance import Provenance
from gradcli.language.interpreter.values import Value
from gradcli.language.syntax import tree


class Event:
    """The evaluation of one node of the syntax tree, which is neither a name nor a literal.

    `parts` are the nodes that it asked for, with their values, `events` the evaluations within it, and `recorded` the
    operations that it recorded itself. `bound` are the names and values that it assigned. The numbers in `times`, when
    each part was known, and in `rounds`, when each iteration of a loop began, compare with the sequence numbers of
    operations.
    """

    __slots__ = ("bound", "events", "node", "parts", "recorded", "rounds", "times", "value")

    def __init__(self, node: tree.SyntaxNode) -> None:
        self.node = node
        self.parts: list[tuple[tree.SyntaxNode, Value]] = []
        self.times: list[int] = []
        self.events: list[Event] = []
        self.recorded: list[Node] = []
        self.bound: list[tuple[str, Value]] = []
        self.rounds: list[int] = []
        self.value: Value = None


class ExpressionTrace(Provenance):
    """The evaluation of a whole program; `root` is the event of the program itself, `results` the results of all
    operations."""

    def __init__(self, program: tree.Module) -> None:
        self.root = Event(program)
        self.results: dict[Node, Any] = {}
        self._open = [self.root]

    def record(self, node: Node, result: Any) -> None:
        """Note that the innermost event recorded an operation."""
        self._open[-1].recorded.append(node)
        self.results[node] = result

    def bind(self, name: str, value: Value) -> None:
        self._open[-1].bound.append((name, value))

    def repeat(self) -> None:
        self._open[-1].rounds.append(next_sequence())

    def handlers(self, handlers: Mapping[type, Callable[..., Task]]) -> dict[type, Callable[..., Task]]:
        return {kind: self._recording(handler) for kind, handler in handlers.items()}

    def _recording(self, handler: Callable[..., Task]) -> Callable[..., Task]:
        def run(machine: Evaluator, node: tree.SyntaxNode, scope: Scope) -> Task:
            event = Event(node)
            self._open[-1].events.append(event)
            self._open.append(event)
            try:
                task = handler(machine, node, scope)
                value: Value = None
                while True:
                    try:
                        asked = task.send(value)
                    except StopIteration as stop:
                        event.value = stop.value
                        return stop.value
                    value = yield asked
                    event.parts.append((asked.node if isinstance(asked, ScopedNode) else asked, value))
                    event.times.append(next_sequence())
            finally:
                self._open.pop()

        return run
