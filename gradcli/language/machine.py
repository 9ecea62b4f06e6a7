"""The machine that runs programs: what is known while one runs, and the loop.

Handlers are generators: `value = yield node` has a child evaluated. One loop drives them with a
stack of its own, so that neither deep trees nor recursive programs recurse in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, NamedTuple

from gradcli import limits
from gradcli.autograd.modes import current_span
from gradcli.autograd.tensor import Tensor
from gradcli.calculus import inside
from gradcli.errors import DifferentiationError, GradcliError, Span
from gradcli.language import scope
from gradcli.language.operations import place
from gradcli.language.provenance import Provenance
from gradcli.language.stable import Rewritten
from gradcli.language.syntax import tree
from gradcli.language.values import Value

# Called with each operation's place, name, operands and result.
Observer = Callable[[Span, str, tuple[Value, ...], Value], None]
Task = Generator[Any, Value, Value]

# Of a name or a number, in eighths of steps.
_SIMPLE = 1


class Activation(NamedTuple):
    """A node to evaluate with names of its own: the body of a function."""

    node: tree.Expression
    names: dict[str, Value]
    # The innermost function with a hand-written derivative around it.
    opaque: str | None


class Machine:
    """A program at work. `handlers` evaluate the nodes of each type: with the machine and a node they give a
    task; the `simple` ones take the names and the opaque function around it too, and give the value at once."""

    def __init__(
        self,
        program: tree.Module,
        bindings: Mapping[str, Value],
        stable: Mapping[tree.SyntaxNode, Rewritten],
        observe: Observer | None,
        provenance: Provenance,
        handlers: Mapping[type, Callable[..., Task]],
        simple: Mapping[type, Callable[..., Value]],
    ) -> None:
        self.program = program
        self.handlers = handlers
        self.simple = simple
        self.stable = stable
        self.rewritten: dict[Rewritten, None] = {}
        # Values of expressions that are being evaluated in one of two forms.
        self.held: dict[tree.SyntaxNode, Value] = {}
        self.targets = scope.differentiation_targets(program)
        self.functions: dict[str, tree.Define] = {}
        self.names: dict[str, Value] = {}
        self.depth = 0
        self.observe = observe
        self.provenance = provenance
        for name, value in bindings.items():
            self.names[name] = inside.tracked_leaf(value) if name in self.targets else value
            provenance.bind(name, self.names[name])

    def drive(self, task: Task, node: tree.SyntaxNode, names: dict[str, Value] | None = None) -> Value:
        """Run a task and everything it asks for."""
        tasks: list[tuple[Task, tree.SyntaxNode, dict[str, Value] | None, str | None]] = [(task, node, names, None)]
        value: Value = None
        budget = limits.budget()
        while tasks:
            task, node, names, opaque = tasks[-1]
            try:
                asked = task.send(value)
                if type(asked) is Activation:
                    asked, names, inner = asked
                    opaque = inner or opaque
                simple = self.simple.get(type(asked))
                if simple is not None:
                    node = asked
                    if budget is not None:
                        budget.charge_steps(_SIMPLE)
                    value = simple(self, asked, names, opaque)
                    continue
                if asked in self.held:
                    value = self.held[asked]
                    continue
                if budget is not None:
                    budget.charge_steps()
                asked = self.stable.get(asked, asked)
                tasks.append((self.handlers[type(asked)](self, asked), asked, names, opaque))
                value = None
            except StopIteration as stop:
                tasks.pop()
                value = stop.value
            except GradcliError as error:
                error.locate(place(node), self.program.source)
                # What they hold must not outlive them: the backward pass that failed may be done in another way.
                for task, *_ in reversed(tasks):
                    task.close()
                raise
        return value

    def lookup(self, node: tree.Name, names: dict[str, Value] | None, opaque: str | None) -> Value:
        """The value of a name: a parameter of the function that runs, one of the program, or a constant."""
        if names is not None and node.id in names:
            return names[node.id]
        if node.id in self.names:
            value = self.names[node.id]
            if opaque is not None and isinstance(value, Tensor) and value.requires_grad:
                raise DifferentiationError(
                    f"'{opaque}' has a derivative of its own, which says nothing of '{node.id}'",
                    hint=f"make '{node.id}' a parameter of '{opaque}', or detach({node.id}) before",
                )
            return value
        if node.id in scope.CONSTANTS:
            return scope.CONSTANTS[node.id]
        raise scope.unknown_name(node.id, scope.known_names(self.program, self.names))

    def assign(self, name: str, value: Value) -> None:
        self.names.pop(name, None)
        self.names[name] = inside.tracked(value) if name in self.targets else value
        self.provenance.bind(name, self.names[name])

    def apply(self, node: tree.Expression, name: str, operation: Callable[..., Value], *operands: Value) -> Value:
        """The result of an operation, which stands at `node` in the text."""
        current_span.set(place(node))
        result = operation(*operands)
        if self.observe is not None:
            self.observe(place(node), name, operands, result)
        return result

    def local(self, named: Mapping[str, Value]) -> dict[str, Value]:
        """The names of a call; what is differentiated by is a node of its own."""
        return {n: inside.tracked(v) if n in self.targets else v for n, v in named.items()}


def block(statements: Iterable[tree.Statement]) -> Task:
    """The value of the last one."""
    value = None
    for statement in statements:
        value = yield statement
    return value
