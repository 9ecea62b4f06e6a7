"""Calls: of primitives, of derivatives, and of functions that the program defines."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from gradcli import limits
from gradcli.autograd.function import Function
from gradcli.autograd.modes import current_span, enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus import inside
from gradcli.errors import CallError, DifferentiationError, LimitError, UnknownNameError
from gradcli.language import arguments, scope
from gradcli.language.machine import Activation, Machine, Task
from gradcli.language.syntax import tree
from gradcli.language.values import Value, check_arguments, in_dtype, number
from gradcli.primitives import table
from gradcli.primitives.signature import Parameter, parse_signature, rename

# Each of them calls for another in a frame of Python's own.
TOO_DEEP = "functions with hand-written derivatives are nested too deeply"


def _call(machine: Machine, node: tree.Call) -> Task:
    parameters = _signature(machine, node.name)
    nodes = tree.positional(node)
    positional: list[Value] = []
    for i, argument in enumerate(nodes):
        if i == 0 and isinstance(argument, tree.List) and _takes_tensors(machine, node.name, parameters):
            positional.append((yield from _tensors(argument)))
        else:
            positional.append((yield argument))
    keywords: dict[str, Value] = {}
    known = {p.name for p in parameters} if node.keywords else ()
    for keyword in node.keywords:
        name = rename(keyword.name, known)
        if name in keywords:
            raise CallError(f"'{node.name}' got '{name}' twice", span=keyword.span)
        keywords[name] = yield keyword.value
    try:
        arguments.fit(node.name, parameters, positional, keywords)
    except CallError as error:
        error.locate(node.span)
        raise
    define = machine.functions.get(node.name)
    machine.provenance.enter(node)
    if define is not None:
        result = yield from _call_defined(machine, define, positional, keywords)
    else:
        result = _call_builtin(machine, node, positional, keywords)
    machine.provenance.leave()
    return result


def _signature(machine: Machine, name: str) -> tuple[Parameter, ...]:
    define = machine.functions.get(name)
    if define is not None:
        return tuple(Parameter(p.name, None, False) for p in define.parameters)
    if name in scope.DERIVATIVES:
        return parse_signature(scope.DERIVATIVES[name])
    if name in scope.DETACH:
        return parse_signature("x")
    operation = table.find(name)
    if operation is None:
        raise UnknownNameError(f"'{name}' is defined later, or in a branch that was not taken")
    return operation.parameters


def _takes_tensors(machine: Machine, name: str, parameters: Sequence[Parameter]) -> bool:
    """Whether the first argument may be a list of tensors of different shapes; to a function of the program it is one."""
    return name not in machine.functions and parameters[0].name == "tensors"


def _tensors(node: tree.List) -> Task:
    items = []
    for item in node.items:
        items.append(in_dtype(number((yield item), "a tensor")))
    return items


def _call_builtin(machine: Machine, node: tree.Call, positional: list[Value], keywords: dict[str, Value]) -> Value:
    if node.name in scope.DERIVATIVES:
        named = dict(zip(("y", "x", "n"), positional)) | keywords
        _check_target(node, named["x"])
        return machine.apply(node, node.name, functools.partial(getattr(inside, node.name), **named))
    if node.name in scope.DETACH:
        return inside.detach(number(positional[0], f"'{node.name}'"))
    operation = table.find(node.name)
    assert operation is not None
    check_arguments(operation, positional, keywords)
    return machine.apply(node, operation.name, functools.partial(operation, **keywords), *positional)


def _check_target(node: tree.Call, value: Value) -> None:
    named = [k.value for k in node.keywords if k.name == "x"]
    given = tree.positional(node)
    target = named[0] if named else given[1]
    if not isinstance(target, tree.Name) or not isinstance(value, Tensor):
        raise DifferentiationError(
            f"'{node.name}' differentiates by a name that the program was given or assigned, and this is none",
            hint=f"name it first: u = …; {node.name}(y, u)",
            span=target.span,
        )


def _call_defined(machine: Machine, define: tree.Define, positional: list[Value], keywords: dict[str, Value]) -> Task:
    names = [p.name for p in define.parameters]
    values = [number(v, f"'{define.name}'") for v in (dict(zip(names, positional)) | keywords).values()]
    named = dict(zip(dict.fromkeys([*names[: len(positional)], *keywords]), values))
    if machine.depth == limits.MAX_DEPTH:
        raise LimitError(
            f"functions call each other more than {limits.MAX_DEPTH:,} deep", hint="a recursion may not end"
        )
    machine.depth += 1
    try:
        return (yield from _call_body(machine, define, names, named))
    finally:
        machine.depth -= 1


def _call_body(machine: Machine, define: tree.Define, names: Sequence[str], named: Mapping[str, Value]) -> Task:
    if define.backward is None:
        return (yield Activation(define.body, machine.local(named), None))
    inputs = [named[name] for name in names]
    local = machine.local({name: inside.detach(value) for name, value in named.items()})
    result = yield Activation(define.body, local, define.name)
    current_span.set(define.body.span)
    written = {"result": inside.detach(result), "gradients": functools.partial(_gradients, machine, define)}
    function: type[Function] = type(define.name, (_HandWritten,), written)
    return function.apply(*inputs)


def _gradients(
    machine: Machine, define: tree.Define, g: Value, inputs: tuple[Value, ...], wanted: Iterable[bool]
) -> list[Value]:
    """The expressions behind `backward(g) =`, with the parameters bound to `inputs`."""
    assert define.backward is not None
    named = dict(zip((p.name for p in define.parameters), inputs)) | {define.backward.cotangent.name: g}
    # A `diff` in there needs a graph, even where the backward pass itself records none.
    with enable_grad() if machine.targets else nullcontext():
        local = machine.local(named)
        try:
            return [
                machine.drive(_once(Activation(e, local, None)), e, local) if want else None
                for e, want in zip(define.backward.gradients, wanted)
            ]
        except RecursionError:
            raise LimitError(TOO_DEEP) from None


def _once(frame: Activation) -> Task:
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


HANDLERS: dict[type, Callable[..., Task]] = {tree.Call: _call}
