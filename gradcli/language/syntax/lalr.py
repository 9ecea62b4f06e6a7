"""The LALR(1) parser: turns tokens into the value of the start symbol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gradcli.language.syntax.lexer import END, Token
from gradcli.language.syntax.parse_tables import Tables
from gradcli.type_hints import Any


class UnexpectedToken(Exception):
    """A token that cannot follow the ones before it; `expected` are the terminals that could."""

    def __init__(self, token: Token, expected: frozenset[str]) -> None:
        super().__init__(token, expected)
        self.token = token
        self.expected = expected


def run(
    tables: Tables,
    start: str,
    stream: Iterable[Token],
    actions: Mapping[str, Callable[..., Any]],
) -> Any:
    """Parse the tokens, applying the action of each rule to its children as soon as the rule is complete.

    `stream` ends with an END token. Raises UnexpectedToken at the first token that cannot follow.
    """
    rows, rules = tables.rows, tables.rules
    first, last = tables.starts[start]
    states: list[int] = [first]
    values: list[Any] = []
    # Caches the state after a chain of unit rules, which pass on an only child: most of the rules are such.
    chains: dict[tuple[int, str, str], int] = {}
    for token in stream:
        kind = token.type
        while (move := rows[states[-1]].get(kind)) is not None:
            if move >= 0:
                states.append(move)
                values.append(token)
                break
            origin, size, action, spliced = rules[~move]
            if action == "":
                states.pop()
            else:
                children = values[len(values) - size :]
                if size:
                    del states[-size:], values[-size:]
                if spliced:
                    children = _splice(children, spliced)
                values.append(children if action is None else actions[action](*children))
            below = states[-1]
            state = chains.get((below, origin, kind))
            if state is None:
                state = chains[below, origin, kind] = _end_of_chain(tables, below, origin, kind)
            states.append(state)
        else:
            if kind == END and states[-1] == last:
                return values[0]
            raise UnexpectedToken(token, _acceptable(tables, states, last))
    raise ValueError("the tokens do not end with an END")


def _end_of_chain(tables: Tables, below: int, origin: str, kind: str) -> int:
    """The state that follows `below` after `origin` and all unit rules that apply before `kind`."""
    rows, rules = tables.rows, tables.rules
    state = rows[below][origin]
    while (move := rows[state].get(kind, 0)) < 0:
        origin, _, action, _ = rules[~move]
        if action != "":
            break
        state = rows[below][origin]
    return state


def _acceptable(tables: Tables, states: list[int], last: int) -> frozenset[str]:
    """The terminals that could follow.

    The row of a state is not enough: it also has reductions on terminals that no later state shifts.
    """
    terminals = filter(str.isupper, tables.rows[states[-1]])
    return frozenset(t for t in terminals if _accepts(tables, states, t, last))


def _accepts(tables: Tables, states: list[int], terminal: str, last: int) -> bool:
    kept = len(states)  # the number of states still on the stack, below `pushed`
    pushed: list[int] = []
    while True:
        top = pushed[-1] if pushed else states[kept - 1]
        move = tables.rows[top].get(terminal)
        if move is None:
            return terminal == END and top == last
        if move >= 0:
            return True
        origin, size, _, _ = tables.rules[~move]
        kept -= max(0, size - len(pushed))
        del pushed[len(pushed) - min(size, len(pushed)) :]
        pushed.append(tables.rows[pushed[-1] if pushed else states[kept - 1]][origin])


def _splice(children: list[Any], places: tuple[int, ...]) -> list[Any]:
    # The first list is extended in place, as left recursion would copy it at every step.
    result: list[Any] = children[0] if places[0] == 0 else children[:1]
    for place in range(1, len(children)):
        if place in places:
            result.extend(children[place])
        else:
            result.append(children[place])
    return result
