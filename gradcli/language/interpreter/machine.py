"""The evaluation loop of programs, and the state of a running program.

Handlers of nodes are generators: `value = yield node` evaluates a child. One loop drives them with an explicit stack,
so that neither deep trees nor recursive programs use Python's recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence

from gradcli import arrays, limits
from gradcli.autograd.modes import current_span
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CallError, DifferentiationError, GradcliError, Span, UnknownNameError
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.mutable_references import MutableReference
from gradcli.language.interpreter.provenance import Provenance
from gradcli.language.interpreter.values import FUNCTIONS, BuiltinFunction, Value, as_tensor_or_number
from gradcli.language.names import dialects
from gradcli.language.names import scope as scope_of_program
from gradcli.language.names.call_meanings import call_meanings
from gradcli.language.names.resolution import resolve
from gradcli.language.operations import error_span
from gradcli.language.stable.stable_expressions import RewrittenExpression
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import Any, Literal

# Called for each operation with its span, name, operands and result.
Observer = Callable[[Span, str, tuple[Value, ...], Value], None]
Task = Generator[Any, Value, Value]
Rolling = Literal["early", "late", "never"]

# Cost of a name or a literal, in eighths of a step.
_LITERAL_COST = 1
# Raised where handlers call each other in Python frames and reach Python's recursion limit.
TOO_DEEP_MESSAGE = "functions with hand-written derivatives, or lists, are nested too deeply"


class Scope:
    """The names of the program, of one call of a function, or of a comprehension, with the enclosing scope.

    `opaque` is the name of the innermost enclosing function with a hand-written derivative. `own` are the local names
    of the function, which are not looked up in enclosing scopes.
    """

    __slots__ = ("names", "opaque", "outer", "own")

    def __init__(
        self,
        names: dict[str, Value],
        outer: Scope | None = None,
        opaque: str | None = None,
        own: Collection[str] = (),
    ) -> None:
        self.names = names
        self.outer = outer
        self.opaque = opaque
        self.own = own


class ScopedNode(NamedTuple):
    """A node to evaluate in a scope of its own, as the body of a function."""

    node: tree.SyntaxNode
    scope: Scope


class PendingExit(NamedTuple):
    """A pending `break`, `continue` or `return`: further statements of the loop or function are skipped."""

    by: type[tree.Statement]
    value: Value = None


class Evaluator:
    """A running program.

    `handlers` have for each type of node a generator function of machine, node and scope; those in `simple` are plain
    functions that return the value.
    """

    def __init__(
        self,
        program: tree.Module,
        bindings: Mapping[str, Value],
        stable: Mapping[tree.SyntaxNode, RewrittenExpression],
        observe: Observer | None,
        provenance: Provenance,
        handlers: Mapping[type, Callable[..., Task]],
        simple: Mapping[type, Callable[..., Value]],
        clauses: bool,
        rolling: Rolling,
    ) -> None:
        self.program = program
        # What the passes before found.
        self.resolution = resolve(program)
        # When loops are rolled, see `evaluate`.
        self.rolling = rolling
        # Whether `backward` clauses are used as the derivatives of their functions.
        self.clauses = clauses
        self.handlers = handlers
        self.simple = simple
        self.stable = stable
        self.rewritten: dict[RewrittenExpression, None] = {}
        # Values of subexpressions that are already known while the expression around them is evaluated in some form.
        self.held: dict[tree.SyntaxNode, Value] = {}
        # Makes the numbers written in the program, where these are not floats.
        self.scalars = arrays.chosen_scalars()
        # The names of inputs.
        self.inputs = scope_of_program.input_names(program, bindings)
        self.targets = self.resolution.targets(self.inputs)
        self.names: dict[str, Value] = {}
        self.scope = Scope(self.names)
        # The functions that calls run, where the text alone says so.
        self.meanings = call_meanings(program)
        self.dialect = dialects.dialect_of(program)
        self.imports = any(isinstance(n, tree.Import) for n in program.body)
        self._lossless: frozenset[tree.SyntaxNode] | None = None
        self._complex: bool | None = None
        # The loop whose round is being traced, if any, see `rolled.rolled_loops`.
        self.traced_loops: list[Any] = []
        # The number of failed attempts to roll each loop.
        self.refusals: dict[tree.SyntaxNode, int] = {}
        # The calls of themselves that functions make last, by the function, of those that were called.
        self.tail_calls: dict[tree.SyntaxNode, Collection[tree.SyntaxNode]] = {}
        # The pending `break`, `continue` or `return`, if any.
        self.leaving: PendingExit | None = None
        self.depth = 0
        self.observe = observe
        self.provenance = provenance
        for name, value in bindings.items():
            if name in self.targets and not (isinstance(value, Tensor) and value.requires_grad):
                value = self._tracked(value)
            self.names[name] = self.kept(value)
            provenance.bind(name, value)

    def drive(self, task: Task, node: tree.SyntaxNode, scope: Scope) -> Value:
        """Run a task and all tasks that it asks for."""
        tasks: list[tuple[Task, tree.SyntaxNode, Scope]] = [(task, node, scope)]
        value: Value = None
        held = self.held
        budget = limits.budget()
        while tasks:
            task, node, scope = tasks[-1]
            try:
                asked = task.send(value)
                if type(asked) is ScopedNode:
                    asked, scope = asked
                if held and asked in held:
                    value = held[asked]
                    continue
                simple = self.simple.get(type(asked))
                if simple is not None:
                    node = asked
                    if budget is not None:
                        budget.charge_steps(_LITERAL_COST)
                    value = simple(self, asked, scope)
                    continue
                if budget is not None:
                    budget.charge_steps()
                asked = self.stable.get(asked, asked)
                tasks.append((self.handlers[type(asked)](self, asked, scope), asked, scope))
                value = None
            except StopIteration as stop:
                tasks.pop()
                value = stop.value
            except GradcliError as error:
                error.locate(error_span(node), self.program.source)
                # Close the generators, which hold values: the caller may try another execution path after this error.
                for task, *_ in reversed(tasks):
                    task.close()
                raise
        return value

    def loses_no_gradient(self, node: tree.Call) -> bool:
        """Return whether this call of `item` or `float` loses no gradient, as only conditions and indices read its
        result."""
        if self._lossless is None:
            from gradcli.language.names import gradient_free_reads

            self._lossless = gradient_free_reads.gradient_free_calls(self.program)
        return node in self._lossless

    @property
    def rolls(self) -> bool:
        """True while a round of a loop is traced that becomes one operation."""
        return bool(self.traced_loops) and self.traced_loops[-1].rolls

    @property
    def may_be_complex(self) -> bool:
        """True if some value in the program may be complex."""
        if self._complex is None:
            given = (v for v in self.names.values() if not isinstance(v, _NO_TENSORS))
            self._complex = self.resolution.makes_complex or any(map(arrays.is_complex, given))
        return self._complex

    def assigns(self, name: str) -> bool:
        """Return whether some statement of the program assigns a name."""
        return name in self.resolution.assigned

    def lookup(self, node: tree.Name, scope: Scope) -> Value:
        """The value of a name in this scope or those around it, or of a constant.

        Raises UnknownNameError, and DifferentiationError where a function with a hand-written derivative reads a tensor
        from around it that requires a gradient.
        """
        name = node.id
        if node.module:
            if name in scope_of_program.LIBRARY_CONSTANTS:
                return self._constant(name, scope_of_program.LIBRARY_CONSTANTS[name])
            if scope_of_program.is_function(name, ()):
                return BuiltinFunction(name, node.module)
            raise UnknownNameError(
                f"unknown name '{name}'",
                hint="no constant and no function behind the prefixes of libraries is called so",
            )
        if name in scope.names:
            return scope.names[name]
        found = self.find(name, scope)
        if found is not None:
            value = found.names[name]
            tensor = value.value if isinstance(value, MutableReference) else value
            if scope.opaque is not None and isinstance(tensor, Tensor) and tensor.requires_grad:
                raise DifferentiationError(
                    f"'{scope.opaque}' has a derivative of its own, which says nothing of '{name}'",
                    hint=f"make '{name}' a parameter of '{scope.opaque}', or detach({name}) before",
                )
            return value
        if name in scope_of_program.CONSTANTS:
            return self._constant(name, scope_of_program.CONSTANTS[name])
        raise scope_of_program.unknown_name(
            name, self.resolution.assigned.union(self.names), self.program.source, node.span
        )

    def _constant(self, name: str, value: Value) -> Value:
        return value if self.scalars is None else self.scalars.constants.get(name, lambda: value)()

    def find(self, name: str, scope: Scope) -> Scope | None:
        """The innermost scope that binds a name, or None."""
        within: Scope | None = scope
        while within is not None:
            if name in within.names:
                return within
            # A local name of a function is not looked up outside of it.
            within = None if name in within.own else within.outer
        return None

    def assign(self, name: str, value: Value, scope: Scope) -> None:
        scope.names.pop(name, None)
        value = self._tracked(value) if name in self.targets else value
        scope.names[name] = self.kept(value)
        self.provenance.bind(name, value)

    def is_input(self, name: str, scope: Scope) -> bool:
        """Return whether a name refers to an input in this scope, not to a parameter or a local variable."""
        if name not in self.inputs:
            return False
        around: Scope | None = scope
        while around is not None and around.outer is not None:
            if name in around.names or name in around.own:
                return False
            around = around.outer
        return True

    def kept(self, value: Value) -> Value:
        """A value as names and lists hold it: a tensor as a mutable reference, if the program changes tensors."""
        if self.resolution.changes_in_place and not isinstance(value, _NO_TENSORS) and arrays.shape(value):
            return MutableReference(value)
        return value

    def apply(self, node: tree.SyntaxNode, name: str, operation: Callable[..., Value], *operands: Value) -> Value:
        """The result of an operation at `node`, reported to the observer."""
        current_span.set(error_span(node))
        result = operation(*operands)
        if self.observe is not None:
            self.observe(error_span(node), name, operands, result)
        return result

    def local(self, named: Mapping[str, Value]) -> dict[str, Value]:
        """The bindings of a call's parameters; those that are differentiated by become nodes of the graph."""
        return {n: self.kept(self._tracked(v) if n in self.targets else v) for n, v in named.items()}

    def _tracked(self, value: Value) -> Value:
        """A value as a tensor node of its own, by which one can differentiate; functions and strings unchanged."""
        if value is None or isinstance(value, (str, tuple, *FUNCTIONS)):
            return value
        # Imported here as only programs that differentiate need it.
        from gradcli.calculus.program_derivatives import tracked

        return tracked(as_tensor_or_number(value, "a name"))


_NO_TENSORS = (MutableReference, ProgramList, *FUNCTIONS, range, str, tuple, float, bool, int, type(None))


def block(machine: Evaluator, statements: Iterable[tree.Statement]) -> Task:
    """Run statements, and return the value of the last one that ran."""
    value = None
    for statement in statements:
        value = yield statement
        if machine.leaving is not None:
            break
    return value


def arguments_of(
    given: Sequence[tree.Expression], named: Sequence[tree.Keyword]
) -> Generator[Any, Value, tuple[list[Value], dict[str, Value]]]:
    """The values of the positional and keyword arguments of a call."""
    positional, keywords = [], {}
    for argument in given:
        positional.append((yield argument))
    for keyword in named:
        keywords[keyword.name] = yield keyword.value
    return positional, keywords


class Caller(NamedTuple):
    """Calls functions of the program with values, as tasks, with errors located at `node`."""

    invoke: Callable[..., Task]
    machine: Evaluator
    node: tree.Call | tree.Apply
    scope: Scope

    def __call__(self, function: Value, /, *given: Value, **named: Value) -> Task:
        if not isinstance(function, FUNCTIONS):
            raise CallError("a function is needed here", hint="lambda x: … makes one", span=self.node.span)
        limits.charge_steps()
        return (yield from self.invoke(self.machine, self.node, function, given, named, self.scope))
