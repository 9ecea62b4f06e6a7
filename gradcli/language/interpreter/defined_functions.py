"""How functions that a program defines are created and called."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gradcli import limits
from gradcli.errors import LimitError
from gradcli.language.interpreter.machine import Evaluator, Scope, ScopedNode, Task, block
from gradcli.language.interpreter.values import Closure, Value
from gradcli.language.names import scope as scope_of_program
from gradcli.language.syntax import tree
from gradcli.primitives.signature import Parameter

# Cost of a call besides its body, in eighths of a step.
_CALL_COST = 2 * limits.UNITS_PER_STEP


def _define(machine: Evaluator, node: tree.Define, scope: Scope) -> Task:
    closure = yield from _closure(machine, node, scope)
    machine.assign(node.name, closure, scope)


def _closure(_machine: Evaluator, node: tree.Define | tree.Lambda, scope: Scope) -> Task:
    defaults = {}
    for parameter in node.parameters:
        if parameter.default is not None:
            defaults[parameter.name] = yield parameter.default
    own = scope_of_program.local_names(node) if isinstance(node.body, tree.Block) else ()
    # Parameters are described like those of the functions of the table, for error messages.
    parameters = tuple(
        Parameter(p.name, None if p.default is None else "…", False, p.keyword_only) for p in node.parameters
    )
    return Closure(node, scope, parameters, defaults, own)


def call(machine: Evaluator, closure: Closure, scope: Scope, named: Mapping[str, Value]) -> Task:
    """Call a function of the program with arguments by parameter name, and return its value."""
    if machine.depth == limits.MAX_DEPTH:
        raise LimitError(
            f"functions call each other more than {limits.MAX_DEPTH:,} deep", hint="a recursion may not end"
        )
    limits.charge_steps(_CALL_COST)
    machine.depth += 1
    try:
        return (yield from _body(machine, closure, scope, {**closure.defaults, **named}))
    finally:
        machine.depth -= 1


def _body(machine: Evaluator, closure: Closure, scope: Scope, named: Mapping[str, Value]) -> Task:
    node = closure.node
    if isinstance(node, tree.Lambda) or node.backward is None or not machine.clauses:
        return (yield ScopedNode(node.body, Scope(machine.local(named), closure.scope, scope.opaque, closure.own)))
    # Imported here as few programs have such functions.
    from gradcli.language.interpreter import hand_written

    return (yield from hand_written.call(machine, closure, named))


def _block(machine: Evaluator, node: tree.Block, _scope: Scope) -> Task:
    """Run the body of a `def` and return its value."""
    yield from block(machine, node.statements)
    leaving, machine.leaving = machine.leaving, None
    return None if leaving is None else leaving.value


HANDLERS: dict[type, Callable[..., Task]] = {
    tree.Define: _define,
    tree.Lambda: _closure,
    tree.Block: _block,
}
