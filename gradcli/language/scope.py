"""What a program says about names before it is run: which it reads, which it never defines."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import NamedTuple

from gradcli.errors import CallError, Span, UnknownNameError, did_you_mean, nearest
from gradcli.language.syntax import tree
from gradcli.primitives import table

CONSTANTS = {"pi": math.pi, "tau": math.tau, "e": math.e, "inf": math.inf, "nan": math.nan}

# Functions that the evaluator itself provides, with their signatures.
DERIVATIVES = {"diff": "y, x, n=1", "jacobian": "y, x", "hessian": "y, x"}
DETACH = ("detach", "stop_gradient")


class Read(NamedTuple):
    """A name that is read before the program has certainly assigned it."""

    name: str
    span: Span
    # Whether the program assigns it somewhere, so that it may be there when it is read.
    maybe_assigned: bool


class _Bind(NamedTuple):
    name: str
    certain: bool


def outer_reads(program: tree.Module) -> dict[str, Read]:
    """The names whose values must come from outside, each with its first place."""
    assigned: set[str] = set()
    found: dict[str, Read] = {}
    everywhere = _assigned(program)
    for event in _events(program):
        if isinstance(event, _Bind):
            if event.certain:
                assigned.add(event.name)
        elif event.id not in assigned:
            found.setdefault(event.id, Read(event.id, event.span, event.id in everywhere))
    return found


def _events(program: tree.Module) -> Iterator[tree.Name | _Bind]:
    """Reads and assignments in the order in which they happen."""
    stack: list[tuple[tree.SyntaxNode | _Bind, bool, frozenset[str]]] = [
        (s, True, frozenset()) for s in reversed(program.body)
    ]
    while stack:
        node, certain, parameters = stack.pop()
        if isinstance(node, _Bind):
            yield node
        elif isinstance(node, tree.Expression):
            yield from (n for n in tree.walk(node) if type(n) is tree.Name and n.id not in parameters)
        else:
            stack.extend(reversed([*_parts(node, certain, parameters)]))


def _parts(
    node: tree.SyntaxNode, certain: bool, parameters: frozenset[str]
) -> Iterator[tuple[tree.SyntaxNode | _Bind, bool, frozenset[str]]]:
    if isinstance(node, tree.Assign):
        yield node.value, certain, parameters
        yield _Bind(node.name, certain), certain, parameters
    elif isinstance(node, tree.Unpack):
        yield from ((v, certain, parameters) for v in node.values)
        yield from ((_Bind(t.name, certain), certain, parameters) for t in node.targets)
    elif isinstance(node, tree.Define):
        inner = parameters | {p.name for p in node.parameters}
        yield node.body, certain, inner
        if node.backward is not None:
            for gradient in node.backward.gradients:
                yield gradient, certain, inner | {node.backward.cotangent.name}
    elif isinstance(node, tree.For):
        yield node.iterable, certain, parameters
        # The loop variable is there in the body, though perhaps not after it.
        inner = parameters | {node.name}
        yield from ((s, False, inner) for s in node.body)
    elif isinstance(node, (tree.If, tree.While)):
        yield node.test, certain, parameters
        yield from ((s, False, parameters) for s in tree.children(node) if s is not node.test)
    else:
        yield from ((child, certain, parameters) for child in tree.children(node))


def defined_functions(program: tree.Module) -> frozenset[str]:
    return frozenset(n.name for n in tree.everything(program) if isinstance(n, tree.Define))


def hand_written(program: tree.Module) -> list[tree.Define]:
    """The functions of `program` that have a `backward` clause."""
    return [n for n in tree.everything(program) if isinstance(n, tree.Define) and n.backward is not None]


def differentiation_targets(program: tree.Module) -> frozenset[str]:
    """The names by which the program itself differentiates."""
    calls = (n for n in tree.everything(program) if isinstance(n, tree.Call) and n.name in DERIVATIVES)
    return frozenset(a.id for call in calls for a in _second_argument(call) if isinstance(a, tree.Name))


def _second_argument(call: tree.Call) -> Iterator[tree.Expression]:
    arguments = tree.positional(call)
    yield from arguments[1:2]
    yield from (k.value for k in call.keywords if k.name == "x")


def check(program: tree.Module, bound: Collection[str]) -> None:
    """Raise UnknownNameError where the program calls a function that is nowhere.

    `bound` are the names that get their values from outside. Names are looked up when they are
    read: a branch that is not taken may read one that has no value.
    """
    functions = defined_functions(program)
    for node in tree.everything(program):
        if isinstance(node, tree.Call) and not is_function(node.name, functions):
            raise _unknown_function(node, functions, bound, program.source)


def known_names(program: tree.Module, bound: Collection[str]) -> set[str]:
    return _assigned(program) | set(bound)


def _assigned(program: tree.Module) -> set[str]:
    statements = tree.everything(program)
    unpacked = {t.name for n in statements if isinstance(n, tree.Unpack) for t in n.targets}
    return unpacked | {n.name for n in statements if isinstance(n, (tree.Assign, tree.For))}


def is_function(name: str, functions: Collection[str]) -> bool:
    return name in functions or name in DERIVATIVES or name in DETACH or table.find(name) is not None


def unknown_name(name: str, known: Collection[str]) -> UnknownNameError:
    """The error for a name that has no value, where `known` are those that may have one."""
    if name in known:
        return UnknownNameError(
            f"'{name}' has no value yet", hint="it is assigned later, or in a branch that was not taken"
        )
    close = nearest(name, [*known, *CONSTANTS])
    if table.find(name) is not None:
        hint = f"'{name}' is a function: call it, as in {name}(x)"
    elif close is not None:
        hint = f"did you mean '{close}'?"
    else:
        hint = f"give it a value, as in {name}=1"
    return UnknownNameError(f"unknown name '{name}'", hint=hint)


def _unknown_function(
    call: tree.Call, functions: Collection[str], bound: Collection[str], source: str
) -> UnknownNameError | CallError:
    if call.receiver is None and call.name in bound:
        return CallError(
            f"'{call.name}' is a value, not a function",
            hint=f"write {call.name}*(…) for a product",
            span=call.name_span,
            source=source,
        )
    hint = did_you_mean(
        call.name, [*functions, *table.names(), *DERIVATIVES, *DETACH], "define it in the program, as in f(x) = x**2"
    )
    return UnknownNameError(f"unknown function '{call.name}'", hint=hint, span=call.name_span, source=source)
