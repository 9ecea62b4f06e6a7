"""The creation and the calls of functions that a program defines."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from gradcli import limits
from gradcli.errors import LimitError, NotRecordableError
from gradcli.language.interpreter import call_arguments
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.loop_policy import MOST_ROUNDS, rolled_calls
from gradcli.language.interpreter.machine import Evaluator, Scope, ScopedNode, Task, block
from gradcli.language.interpreter.values import Closure, TailCall, Value
from gradcli.language.names import binders
from gradcli.language.names import scope as scope_of_program
from gradcli.language.syntax import tree
from gradcli.primitives.signature import SignatureParameter

# Cost of a call besides its body, in eighths of a step.
_CALL_COST = 2 * limits.UNITS_PER_STEP
# Within a round of a loop that is traced, tail calls up to this number are part of it.
_MOST_TRACED_CALLS = 64


def _define(machine: Evaluator, node: tree.Define, scope: Scope) -> Task:
    closure = yield from _closure(machine, node, scope)
    machine.assign(node.name, closure, scope)


def _closure(_machine: Evaluator, node: tree.Define | tree.Lambda, scope: Scope) -> Task:
    defaults = {}
    for parameter in node.parameters:
        if parameter.default is not None:
            defaults[parameter.name] = yield parameter.default
    own = binders.local_names(node) if isinstance(node.body, tree.Block) else ()
    # Parameters are described like those of the functions of the table, for error messages.
    parameters = tuple(
        SignatureParameter(p.name, None if p.default is None else "…", False, p.keyword_only) for p in node.parameters
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
        value = yield from _body(machine, closure, scope, {**closure.defaults, **named})
        if type(value) is TailCall:
            value = yield from _repeated(machine, closure, scope, value)
        return value
    finally:
        machine.depth -= 1


def _repeated(machine: Evaluator, closure: Closure, scope: Scope, made: TailCall) -> Task:
    """The value of a function that calls itself last: its body runs again and again, instead of within itself."""

    def run(named: Mapping[str, Value]) -> Task:
        return _body(machine, closure, scope, named)

    rounds, value = 0, made
    while type(value) is TailCall:
        rounds += 1
        if machine.traced_loops and rounds > _MOST_TRACED_CALLS:
            raise NotRecordableError("a round has a long recursion")
        named = value.named
        if not rounds & (rounds - 1):
            # Tried after 1, 2, 4, 8, … calls, as how many there will be is not known.
            named = _last_arguments(machine, closure.node, run, scope, value, rounds)
        value = yield from run(named)
    return value


def _last_arguments(
    machine: Evaluator,
    function: tree.Define | tree.Lambda,
    run_body: Callable[[Mapping[str, Value]], Task],
    scope: Scope,
    made: TailCall,
    calls_so_far: int,
) -> Mapping[str, Value]:
    """The arguments of the last of the calls that a function makes of itself from the call `made` on, which returns.

    `run_body` runs the body of the function for given arguments. Those of `made` itself where the calls have to be run
    one by one, or rolling them does not pay.
    """
    tail_calls = machine.tail_calls[function]
    if _calls_itself_within(function, frozenset(tail_calls)):
        return made.named
    rolled = rolled_calls(machine, function, None, calls_so_far)
    if rolled is None:
        return made.named
    fixed = _fixed_parameters(function, frozenset(tail_calls))
    kept = {n: v for n, v in made.named.items() if n in fixed}
    names = [n for n in made.named if n not in fixed]

    def packed(named: Mapping[str, Value]) -> ProgramList:
        return ProgramList([named[n] for n in names], made.node.span, "tuple")

    def one_call(_loop: object, state: ProgramList) -> tuple[Value, Value] | None:
        given = {**kept, **dict(zip(names, state.items))}
        value = machine.drive(run_body(given), made.node, scope)
        return (packed(value.named), None) if type(value) is TailCall else None

    found = rolled.run(machine, function, range(MOST_ROUNDS), packed(made.named), one_call, ends=True)
    return made.named if found is None else {**kept, **dict(zip(names, found.state.items))}


@functools.lru_cache(maxsize=128)
def _calls_itself_within(function: tree.Define | tree.Lambda, tail_calls: frozenset[tree.SyntaxNode]) -> bool:
    """Return whether a function may also call itself where its value is computed from that of the call."""
    names = {call.name for call in tail_calls if isinstance(call, tree.Call)}
    calls = (n for n in tree.walk(function.body) if isinstance(n, (tree.Call, tree.Name)) and n not in tail_calls)
    return any(name in names for name in scope_of_program.mentioned_names(calls))


@functools.lru_cache(maxsize=128)
def _fixed_parameters(function: tree.Define | tree.Lambda, tail_calls: frozenset[tree.SyntaxNode]) -> Collection[str]:
    """The parameters that each call of the function by itself passes on unchanged."""
    names = [p.name for p in function.parameters]
    assigned = {n.name for n in tree.walk(function.body) if isinstance(n, tree.BoundName)}
    fixed = {*names} - assigned
    for call in tail_calls:
        assert isinstance(call, tree.Call)
        given = dict(zip(names, call.arguments)) | {k.name: k.value for k in call.keywords}
        fixed = {n for n in fixed if isinstance(value := given.get(n), tree.Name) and value.id == n}
    return fixed


def repeated_call(
    machine: Evaluator,
    node: tree.Call,
    function: Value,
    scope: Scope,
    positional: Sequence[Value],
    keywords: Mapping[str, Value],
) -> TailCall | None:
    """The `TailCall` in place of a call whose value the function itself returns; None for any other call."""
    if (
        type(function) is not Closure
        or node not in machine.tail_calls.get(function.node, ())
        or scope.outer is not function.scope
    ):
        return None
    call_arguments.fit(function.name, function.parameters, positional, keywords)
    limits.charge_steps(_CALL_COST)
    given = zip((p.name for p in function.parameters), positional)
    return TailCall(node, {**function.defaults, **dict(given), **keywords})


def _tail_calls(machine: Evaluator, node: tree.Define | tree.Lambda) -> Collection[tree.SyntaxNode]:
    """The calls whose value is that of a function, and that may be calls of itself."""
    if isinstance(node, tree.Define) and node.backward is not None and machine.clauses:
        return ()
    return frozenset(
        e
        for e in _last_expressions(machine, node)
        if isinstance(e, tree.Call)
        and e.receiver is None
        and not e.module
        and (isinstance(node, tree.Lambda) or e.name == node.name)
    )


def _last_expressions(machine: Evaluator, node: tree.Define | tree.Lambda) -> Iterator[tree.SyntaxNode]:
    """The expressions one of which gives the value of a function."""
    waiting: list[tree.SyntaxNode] = [node.body]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tree.Conditional) and part not in machine.stable:
            waiting += [part.body, part.orelse]
        elif isinstance(part, tree.Return):
            waiting += [part.value] if part.value is not None else []
        elif isinstance(part, (tree.Block, tree.If, tree.For, tree.While)):
            waiting += [s for s in tree.children(part) if isinstance(s, tree.Statement)]
        elif isinstance(part, tree.Expression):
            yield part


def _body(machine: Evaluator, closure: Closure, scope: Scope, named: Mapping[str, Value]) -> Task:
    """Run the body of a function once."""
    node = closure.node
    if node not in machine.tail_calls:
        machine.tail_calls[node] = _tail_calls(machine, node)
    if isinstance(node, tree.Lambda) or node.backward is None or not machine.clauses:
        return (yield ScopedNode(node.body, Scope(machine.local(named), closure.scope, scope.opaque, closure.own)))
    # Imported here as few programs have such functions.
    from gradcli.language.interpreter.builtin_calls import hand_written

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
