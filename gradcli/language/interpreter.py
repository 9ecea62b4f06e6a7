"""Running a program: the syntax tree and bindings to Tensors.

Handlers are generators: `value = yield node` has a child evaluated. One loop drives them with a
stack of its own, so that neither deep trees nor recursive programs recurse in Python.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.autograd.function import Function
from gradcli.autograd.modes import current_span, enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus import inside
from gradcli.errors import (
    CallError,
    DifferentiationError,
    EvaluationError,
    GradcliError,
    LimitError,
    ShapeError,
    Span,
    UnknownNameError,
    nearest,
)
from gradcli.language import arguments, scope
from gradcli.language.operations import ATTRIBUTES, BINARY, COMPARE, place
from gradcli.language.provenance import UNKNOWN, Provenance
from gradcli.language.stable import Rewritten, rewrites
from gradcli.language.syntax import tree
from gradcli.language.values import check_arguments, in_dtype, number, one_of, truth
from gradcli.primitives import arithmetic, table
from gradcli.primitives.axes import whole
from gradcli.primitives.indexing import index
from gradcli.primitives.primitive import Parameter, parse_signature
from gradcli.primitives.shape import stack

Value = Any
# Called with each operation's place, name, operands and result.
Observer = Callable[[Span, str, tuple[Value, ...], Value], None]
Task = Generator[Any, Value, Value]


class Evaluation(NamedTuple):
    """The value of a program, every name with its last value, in the order of assignment, and the
    expressions that were evaluated in a stable form."""

    value: Value
    names: dict[str, Value]
    rewritten: tuple[Rewritten, ...] = ()


class Activation(NamedTuple):
    """A node to evaluate with names of its own: the body of a function."""

    node: tree.Expression
    names: dict[str, Value]
    # The innermost function with a hand-written derivative around it.
    opaque: str | None


def evaluate(
    program: tree.Module,
    bindings: Mapping[str, Value],
    *,
    max_steps: int = limits.MAX_STEPS,
    rewrite: bool = True,
    observe: Observer | None = None,
    provenance: Provenance = UNKNOWN,
) -> Evaluation:
    """Run `program` with its outer names bound to numbers, arrays or Tensors.

    With `rewrite` expressions that have a stable form (see `gradcli.language.stable`) are
    evaluated in it.

    Raises UnknownNameError and CallError for names and calls that cannot be right, LimitError
    past `max_steps`, and EvaluationError or DifferentiationError where an operation fails, each
    with its place in the text.
    """
    scope.check(program, bindings)
    stable = rewrites(program, scope.defined_functions(program)) if rewrite else {}
    with limits.max_steps(max_steps):
        return _Interpreter(program, bindings, stable, observe, provenance).run()


class _Interpreter:
    def __init__(
        self,
        program: tree.Module,
        bindings: Mapping[str, Value],
        stable: Mapping[tree.SyntaxNode, Rewritten],
        observe: Observer | None,
        provenance: Provenance,
    ) -> None:
        self.program = program
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

    def run(self) -> Evaluation:
        token = current_span.set(None)
        try:
            with arrays.quiet():
                value = self._drive(self._block(self.program.body), self.program)
        except RecursionError:
            raise LimitError("functions with hand-written derivatives are nested too deeply") from None
        finally:
            current_span.reset(token)
        if value is None:
            last = self.program.body[-1]
            raise EvaluationError(
                "the program ends without a value",
                hint="its value is that of its last statement",
                span=last.span,
                source=self.program.source,
            )
        self._check_value(value)
        return Evaluation(value, self.names, tuple(self.rewritten))

    def _check_value(self, value: Value) -> None:
        try:
            number(value, "the value of the program")
        except GradcliError as error:
            error.locate(self.program.body[-1].span, self.program.source)
            raise

    # --- the loop

    def _drive(self, task: Task, node: tree.SyntaxNode, names: dict[str, Value] | None = None) -> Value:
        """Run a task and everything it asks for."""
        tasks: list[tuple[Task, tree.SyntaxNode, dict[str, Value] | None, str | None]] = [(task, node, names, None)]
        value: Value = None
        while tasks:
            task, node, names, opaque = tasks[-1]
            try:
                asked = task.send(value)
                if type(asked) is Activation:
                    asked, names, inner = asked
                    opaque = inner or opaque
                simple = _SIMPLE.get(type(asked))
                if simple is not None:
                    node = asked
                    value = simple(self, asked, names, opaque)
                    continue
                if asked in self.held:
                    value = self.held[asked]
                    continue
                limits.charge_step()
                asked = self.stable.get(asked, asked)
                tasks.append((_HANDLERS[type(asked)](self, asked), asked, names, opaque))
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

    # --- names

    def _lookup(self, node: tree.Name, names: dict[str, Value] | None, opaque: str | None) -> Value:
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

    def _bind(self, name: str, value: Value) -> None:
        self.names.pop(name, None)
        self.names[name] = inside.tracked(value) if name in self.targets else value
        self.provenance.bind(name, self.names[name])

    # --- statements

    def _block(self, statements: Iterable[tree.Statement]) -> Task:
        value = None
        for statement in statements:
            value = yield statement
        return value

    def _evaluate_statement(self, node: tree.Evaluate) -> Task:
        return (yield node.value)

    def _assign(self, node: tree.Assign) -> Task:
        value = yield node.value
        self._bind(node.name, number(value, f"'{node.name}'"))
        return value

    def _unpack(self, node: tree.Unpack) -> Task:
        given = []
        for expression in node.values:
            given.append((yield expression))
        parts = self._parts(given[0], len(node.targets)) if len(given) == 1 else given
        for target, value in zip(node.targets, parts):
            self._bind(target.name, number(value, f"'{target.name}'"))
        return parts[-1]

    def _parts(self, value: Value, count: int) -> Sequence[Value]:
        """What a function gives, or a tensor along its first axis: `count` parts."""
        if isinstance(value, tuple) and len(value) == count:
            return value
        if isinstance(value, tuple):
            raise ShapeError(f"{count} names do not fit {len(value)} tensors")
        shape = arrays.shape(number(value, "several names"))
        if shape[:1] != (count,):
            raise ShapeError(f"{count} names do not fit a tensor of shape {list(shape)}")
        return [index(value, i) for i in range(count)]

    def _define(self, node: tree.Define, _names: object, _opaque: object) -> None:
        self.functions[node.name] = node

    def _if(self, node: tree.If) -> Task:
        test = yield node.test
        return (yield from self._block(node.body if truth(test, node.test) else node.orelse))

    def _for(self, node: tree.For) -> Task:
        value = None
        items = yield from self._items(node.iterable)
        self.provenance.enter(node)
        for item in items:
            limits.charge_step()
            self.provenance.repeat()
            self._bind(node.name, item)
            value = yield from self._block(node.body)
        self.provenance.leave()
        return value

    def _items(self, iterable: tree.Expression) -> Generator[Any, Value, Iterable[Value]]:
        """What a loop goes along; `range` is counted without making a tensor."""
        if isinstance(iterable, tree.Call) and iterable.name == "range" and "range" not in self.functions:
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
        return self._elements(tensor, iterable.span)

    def _elements(self, tensor: Value, place: Span) -> Iterator[Value]:
        for i in range(arrays.shape(tensor)[0]):
            current_span.set(place)
            yield index(tensor, i)

    def _while(self, node: tree.While) -> Task:
        value = None
        self.provenance.enter(node)
        while truth((yield node.test), node.test):
            limits.charge_step()
            self.provenance.repeat()
            value = yield from self._block(node.body)
        self.provenance.leave()
        return value

    # --- expressions

    def _apply(self, node: tree.Expression, name: str, operation: Callable[..., Value], *operands: Value) -> Value:
        current_span.set(place(node))
        result = operation(*operands)
        if self.observe is not None:
            self.observe(place(node), name, operands, result)
        return result

    def _list(self, node: tree.List) -> Task:
        items = []
        for item in node.items:
            items.append(number((yield item), "a tensor"))
        current_span.set(node.span)
        if items and all(type(i) is bool for i in items):
            return arrays.placed(arrays.asarray(items))
        if all(type(i) in arrays.PLAIN for i in items):
            return arrays.placed(arrays.asarray([float(i) for i in items], arrays.default_dtype()))
        return stack([in_dtype(i) for i in items])

    def _unary(self, node: tree.Unary) -> Task:
        value = yield node.operand
        if node.operator == "not":
            return not truth(value, node.operand)
        value = number(value, f"'{node.operator}'")
        return self._apply(node, "negative", arithmetic.negative, value) if node.operator == "-" else value

    def _binary(self, node: tree.Binary) -> Task:
        left = yield node.left
        right = yield node.right
        operation = BINARY[node.operator]
        left, right = number(left, f"'{node.operator}'"), number(right, f"'{node.operator}'")
        return self._apply(node, operation.name, operation, left, right)

    def _compare(self, node: tree.Compare) -> Task:
        left = yield node.operands[0]
        result: Value = True
        for operator, operand in zip(node.operators, node.operands[1:]):
            right = yield operand
            left, right = number(left, f"'{operator}'"), number(right, f"'{operator}'")
            result = self._apply(node, COMPARE[operator].name, COMPARE[operator], left, right)
            left = right
            if operand is not node.operands[-1] and not truth(result, node):
                break
        return result

    def _logical(self, node: tree.Logical) -> Task:
        left = yield node.left
        if truth(left, node.left) == (node.operator == "or"):
            return left
        return (yield node.right)

    def _conditional(self, node: tree.Conditional) -> Task:
        test = yield node.test
        return (yield node.body if truth(test, node.test) else node.orelse)

    def _stable_form(self, node: Rewritten) -> Task:
        when = node.rule.when
        if when is None:
            self.rewritten[node] = None
            return (yield node.stable)
        values = {}
        for name, part in node.parts.items():
            values[name] = number((yield part), f"'{node.rule.pattern}'")
        # Both forms read the parts again, which must not evaluate them again.
        self.held.update({part: values[name] for name, part in node.parts.items()})
        try:
            if when(**values):
                self.rewritten[node] = None
                return (yield node.stable)
            return (yield from _HANDLERS[type(node.original)](self, node.original))
        finally:
            for part in node.parts.values():
                del self.held[part]

    def _attribute(self, node: tree.Attribute) -> Task:
        value = number((yield node.value), f"'.{node.name}'")
        if node.name not in ATTRIBUTES:
            raise self._unknown_attribute(node)
        return self._apply(node, node.name, ATTRIBUTES[node.name], value)

    def _unknown_attribute(self, node: tree.Attribute) -> GradcliError:
        if table.find(node.name) is not None:
            hint = f"'{node.name}' is a method: call it, as in x.{node.name}()"
        else:
            close = nearest(node.name, ATTRIBUTES)
            hint = f"did you mean '.{close}'?" if close else f"attributes are .{', .'.join(ATTRIBUTES)}"
        return UnknownNameError(f"unknown attribute '{node.name}'", hint=hint, span=node.name_span)

    def _index(self, node: tree.Index) -> Task:
        value = yield node.value
        items: Sequence[tree.SyntaxNode] = node.items
        if len(items) == 1 and isinstance(items[0], tree.Tuple):
            items = items[0].items
        key = []
        for item in items:
            key.append((yield from self._index_item(item)))
        if isinstance(value, tuple):
            return one_of(value, key)
        value = number(value, "an index")
        return self._apply(node, "index", index, value, tuple(key))

    def _index_item(self, item: tree.SyntaxNode) -> Task:
        if isinstance(item, tree.Ellipsis):
            return Ellipsis
        if isinstance(item, tree.Slice):
            bounds = []
            for bound in (item.start, item.stop, item.step):
                bounds.append(None if bound is None else (yield bound))
            return slice(*bounds)
        return (yield item)

    # --- calls

    def _call(self, node: tree.Call) -> Task:
        parameters = self._signature(node.name)
        nodes = tree.positional(node)
        positional: list[Value] = []
        for i, argument in enumerate(nodes):
            if isinstance(argument, tree.List) and i == 0 and parameters[0].name == "tensors":
                positional.append((yield from self._tensors(argument)))
            else:
                positional.append((yield argument))
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            name = arguments.rename(keyword.name, parameters)
            if name in keywords:
                raise CallError(f"'{node.name}' got '{name}' twice", span=keyword.span)
            keywords[name] = yield keyword.value
        try:
            arguments.fit(node.name, parameters, positional, keywords)
        except CallError as error:
            error.locate(node.span)
            raise
        define = self.functions.get(node.name)
        self.provenance.enter(node)
        if define is not None:
            result = yield from self._call_defined(define, positional, keywords)
        else:
            result = self._call_builtin(node, positional, keywords)
        self.provenance.leave()
        return result

    def _signature(self, name: str) -> tuple[Parameter, ...]:
        define = self.functions.get(name)
        if define is not None:
            return tuple(Parameter(p.name, None, False) for p in define.parameters)
        if name in scope.DERIVATIVES:
            return parse_signature(scope.DERIVATIVES[name])
        if name in scope.DETACH:
            return parse_signature("x")
        operation = table.find(name)
        if operation is None:
            raise UnknownNameError(f"'{name}' is defined later, or in a branch that was not taken")
        return parse_signature(operation.signature)

    def _tensors(self, node: tree.List) -> Task:
        items = []
        for item in node.items:
            items.append(in_dtype(number((yield item), "a tensor")))
        return items

    def _call_builtin(self, node: tree.Call, positional: list[Value], keywords: dict[str, Value]) -> Value:
        if node.name in scope.DERIVATIVES:
            named = dict(zip(("y", "x", "n"), positional)) | keywords
            self._check_target(node, named["x"])
            return self._apply(node, node.name, functools.partial(getattr(inside, node.name), **named))
        if node.name in scope.DETACH:
            return inside.detach(number(positional[0], f"'{node.name}'"))
        operation = table.find(node.name)
        assert operation is not None
        check_arguments(operation, positional)
        return self._apply(node, operation.name, functools.partial(operation, **keywords), *positional)

    def _check_target(self, node: tree.Call, value: Value) -> None:
        named = [k.value for k in node.keywords if k.name == "x"]
        given = tree.positional(node)
        target = named[0] if named else given[1]
        if not isinstance(target, tree.Name) or not isinstance(value, Tensor):
            raise DifferentiationError(
                f"'{node.name}' differentiates by a name that the program was given or assigned, and this is none",
                hint=f"name it first: u = …; {node.name}(y, u)",
                span=target.span,
            )

    def _call_defined(self, define: tree.Define, positional: list[Value], keywords: dict[str, Value]) -> Task:
        names = [p.name for p in define.parameters]
        values = [number(v, f"'{define.name}'") for v in (dict(zip(names, positional)) | keywords).values()]
        named = dict(zip(dict.fromkeys([*names[: len(positional)], *keywords]), values))
        if self.depth == limits.MAX_DEPTH:
            raise LimitError(
                f"functions call each other more than {limits.MAX_DEPTH:,} deep", hint="a recursion may not end"
            )
        self.depth += 1
        try:
            return (yield from self._call_body(define, names, named))
        finally:
            self.depth -= 1

    def _call_body(self, define: tree.Define, names: Sequence[str], named: Mapping[str, Value]) -> Task:
        if define.backward is None:
            return (yield Activation(define.body, self._local(named), None))
        inputs = [named[name] for name in names]
        local = self._local({name: inside.detach(value) for name, value in named.items()})
        result = yield Activation(define.body, local, define.name)
        current_span.set(define.body.span)
        written = {"result": inside.detach(result), "gradients": functools.partial(self._gradients, define)}
        function: type[Function] = type(define.name, (_HandWritten,), written)
        return function.apply(*inputs)

    def _local(self, named: Mapping[str, Value]) -> dict[str, Value]:
        return {n: inside.tracked(v) if n in self.targets else v for n, v in named.items()}

    def _gradients(
        self, define: tree.Define, g: Value, inputs: tuple[Value, ...], wanted: Iterable[bool]
    ) -> list[Value]:
        """The expressions behind `backward(g) =`, with the parameters bound to `inputs`."""
        assert define.backward is not None
        named = dict(zip((p.name for p in define.parameters), inputs)) | {define.backward.cotangent.name: g}
        # A `diff` in there needs a graph, even where the backward pass itself records none.
        with enable_grad() if self.targets else nullcontext():
            local = self._local(named)
            return [
                self._drive(self._once(Activation(e, local, None)), e, local) if want else None
                for e, want in zip(define.backward.gradients, wanted)
            ]

    def _once(self, frame: Activation) -> Task:
        return number((yield frame), "a gradient")


class _HandWritten(Function):
    """A call of a function with a `backward` clause; its result was computed before."""

    result: Value
    gradients: Callable[[Value, tuple[Value, ...], tuple[bool, ...]], Sequence[Value]]
    takes_batches = True

    @classmethod
    def forward(cls, ctx: Any, *inputs: Value) -> Value:
        ctx.save_for_backward(*inputs)
        return cls.result

    @classmethod
    def backward(cls, ctx: Any, g: Value) -> Any:
        return tuple(cls.gradients(g, ctx.saved_tensors, ctx.needs_input_grad))


_SIMPLE: dict[type, Callable[..., Value]] = {
    tree.Number: lambda _self, node, _names, _opaque: node.value,
    tree.String: lambda _self, node, _names, _opaque: node.value,
    tree.Constant: lambda _self, node, _names, _opaque: node.value,
    tree.Name: _Interpreter._lookup,
    tree.Define: _Interpreter._define,
}

_HANDLERS: dict[type, Callable[..., Task]] = {
    tree.Evaluate: _Interpreter._evaluate_statement,
    tree.Assign: _Interpreter._assign,
    tree.Unpack: _Interpreter._unpack,
    tree.If: _Interpreter._if,
    tree.For: _Interpreter._for,
    tree.While: _Interpreter._while,
    tree.List: _Interpreter._list,
    tree.Tuple: _Interpreter._list,
    tree.Unary: _Interpreter._unary,
    tree.Binary: _Interpreter._binary,
    tree.Compare: _Interpreter._compare,
    tree.Logical: _Interpreter._logical,
    tree.Conditional: _Interpreter._conditional,
    tree.Attribute: _Interpreter._attribute,
    tree.Index: _Interpreter._index,
    tree.Call: _Interpreter._call,
    Rewritten: _Interpreter._stable_form,
}
