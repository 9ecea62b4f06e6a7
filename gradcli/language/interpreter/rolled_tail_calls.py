"""Rolls functions that call themselves last: a call runs once, on traced values, and the calls become one equation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping

from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.loop_policy import MOST_ROUNDS, rolled_calls
from gradcli.language.interpreter.machine import Evaluator, Scope, Task
from gradcli.language.interpreter.values import TailCall, Value
from gradcli.language.names import scope as scope_of_program
from gradcli.language.syntax import tree


def last_arguments(
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
    """Whether a function may also call itself where its value is computed from that of the call."""
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
