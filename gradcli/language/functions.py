"""Functions of the program: what a definition makes, and what a call of it does."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from gradcli import limits
from gradcli.autograd.function import Function
from gradcli.autograd.modes import current_span, enable_grad
from gradcli.calculus import inside
from gradcli.errors import LimitError
from gradcli.language import scope as scope_of_program
from gradcli.language.machine import Activation, Machine, Scope, Task, block
from gradcli.language.syntax import tree
from gradcli.language.values import Closure, Value, number
from gradcli.primitives.signature import Parameter

# Each of them calls for another in a frame of Python's own.
TOO_DEEP = "functions with hand-written derivatives, or lists, are nested too deeply"


def _define(machine: Machine, node: tree.Define, scope: Scope) -> Task:
    closure = yield from _closure(machine, node, scope)
    machine.assign(node.name, closure, scope)


def _closure(_machine: Machine, node: tree.Define | tree.Lambda, scope: Scope) -> Task:
    defaults = {}
    for parameter in node.parameters:
        if parameter.default is not None:
            defaults[parameter.name] = yield parameter.default
    own = scope_of_program.own_names(node) if isinstance(node.body, tree.Block) else ()
    return Closure(node, scope, defaults, own)


def signature(closure: Closure) -> tuple[Parameter, ...]:
    """The parameters of a function of the program, as those of the table are described."""
    return tuple(
        Parameter(p.name, None if p.default is None else "…", False, p.keyword_only) for p in closure.node.parameters
    )


def call(machine: Machine, closure: Closure, scope: Scope, named: Mapping[str, Value]) -> Task:
    """The value of a function of the program, where its parameters are `named`."""
    if machine.depth == limits.MAX_DEPTH:
        raise LimitError(
            f"functions call each other more than {limits.MAX_DEPTH:,} deep", hint="a recursion may not end"
        )
    machine.depth += 1
    try:
        return (yield from _body(machine, closure, scope, {**closure.defaults, **named}))
    finally:
        machine.depth -= 1


def _body(machine: Machine, closure: Closure, scope: Scope, named: Mapping[str, Value]) -> Task:
    node = closure.node
    if isinstance(node, tree.Lambda) or node.backward is None:
        return (yield Activation(node.body, Scope(machine.local(named), closure.scope, scope.opaque, closure.own)))
    given = {p.name: number(named[p.name], f"'{node.name}'") for p in node.parameters}
    local = machine.local({name: inside.detach(value) for name, value in given.items()})
    result = yield Activation(node.body, Scope(local, closure.scope, node.name, closure.own))
    current_span.set(node.body.span)
    gradients = functools.partial(_gradients, machine, closure)
    written = {"result": inside.detach(number(result, f"'{node.name}'")), "gradients": gradients}
    function: type[Function] = type(node.name, (_HandWritten,), written)
    return function.apply(*given.values())


def _gradients(
    machine: Machine, closure: Closure, g: Value, inputs: tuple[Value, ...], wanted: Iterable[bool]
) -> list[Value]:
    """The expressions behind `backward(g) =`, with the parameters bound to `inputs`."""
    node = closure.node
    assert isinstance(node, tree.Define)
    assert node.backward is not None
    named = dict(zip((p.name for p in node.parameters), inputs)) | {node.backward.cotangent.name: g}
    # A `diff` in there needs a graph, even where the backward pass itself records none.
    with enable_grad() if machine.targets else nullcontext():
        scope = Scope(machine.local(named), closure.scope)
        try:
            return [
                machine.drive(_once(Activation(e, scope)), e, scope) if want else None
                for e, want in zip(node.backward.gradients, wanted)
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


def _block(machine: Machine, node: tree.Block, _scope: Scope) -> Task:
    """The body of a `def`: what it returns."""
    yield from block(machine, node.statements)
    leaving, machine.leaving = machine.leaving, None
    return None if leaving is None else leaving.value


HANDLERS: dict[type, Callable[..., Task]] = {
    tree.Define: _define,
    tree.Lambda: _closure,
    tree.Block: _block,
}
