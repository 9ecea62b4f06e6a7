"""Generates the parse tables from the grammar, with Lark.

The build of a wheel loads this file on its own, so it must not import gradcli.
"""

from __future__ import annotations

import re
from typing import Any

START = ("program", "expression")


def generate(grammar: bytes) -> dict[str, Any]:
    """The fields of `parse_tables.Tables`. Takes 0.1 s, most of it in Lark."""
    from lark import Lark
    from lark.grammar import Rule

    lark = Lark(
        grammar.decode(),
        parser="lalr",
        lexer="basic",
        start=list(START),
        keep_all_tokens=True,
        maybe_placeholders=False,
    )
    # The data that `Lark.save` writes; it refers to rules by number.
    saved, _ = lark.memo_serialize([Rule])
    table = saved["parser"]["parser"]
    starts, ends = table["start_states"], table["end_states"]
    states = _states(table, [rule["@"] for rule in saved["rules"]])
    order = _order(states, starts)
    pattern, literals = _lexicon(list(lark.terminals), lark.ignore_tokens)
    symbols = sorted({symbol for row in states.values() for symbol in row})
    return {
        "pattern": pattern,
        "literals": literals,
        "symbols": tuple(symbols),
        "rows": tuple(_row(states[state], symbols, order) for state in order),
        "rules": tuple(_rule(rule) for rule in lark.rules),
        "starts": {name: (order[starts[name]], order[ends[name]]) for name in START},
    }


def module_text(grammar: bytes) -> str:
    """The source of a module with the tables of `grammar` and with itself, which `parse_tables.load` imports."""
    fields = {"grammar": grammar, **generate(grammar)}
    return "".join(f"{name} = {value!r}\n" for name, value in fields.items())


def _states(table: dict[str, Any], rules: list[int]) -> dict[int, dict[str, int]]:
    """Lark's states, with shifts and gotos as the number of the next state, and reductions as ~rule."""
    places = {rule: ~place for place, rule in enumerate(rules)}
    return {
        state: dict(
            sorted(
                (table["tokens"][token], places[argument["@"]] if reduces else argument)
                for token, (reduces, argument) in actions.items()
            )
        )
        for state, actions in table["states"].items()
    }


def _row(moves: dict[str, int], symbols: list[str], order: dict[int, int]) -> str:
    """A row as text: pairs of the number of a symbol and its move."""
    return " ".join(f"{symbols.index(symbol)} {order[n] if n >= 0 else n}" for symbol, n in moves.items())


def _order(states: dict[int, dict[str, int]], starts: dict[str, int]) -> dict[int, int]:
    """New numbers of the states in breadth-first order, as Lark's numbers differ from run to run."""
    order = {starts[name]: index for index, name in enumerate(START)}
    queue = list(order)
    for state in queue:
        for following in states[state].values():
            if following >= 0 and following not in order:
                order[following] = len(order)
                queue.append(following)
    return order


def _rule(rule: Any) -> tuple[str, int, str | None, tuple[int, ...]]:
    """Origin, length, action, and the indices of children that are lists to splice in.

    The action is the name of a function, "" to pass on the only child, or None to gather a list that the parent rule
    splices in.
    """
    size = len(rule.expansion)
    spliced = tuple(
        place for place, symbol in enumerate(rule.expansion) if not symbol.is_term and symbol.name.startswith("_")
    )
    action: str | None = rule.alias or str(rule.origin.name)
    if rule.origin.name.startswith("_"):
        action = None
    elif rule.options.expand1 and not rule.alias and size == 1:
        action = ""
    return str(rule.origin.name), size, action, spliced


def _lexicon(terminals: list[Any], ignored: list[str]) -> tuple[str, dict[str, str]]:
    """A pattern that matches one token, and a mapping from fixed texts to their terminals.

    The groups of the pattern are terminals, `LITERAL` for fixed texts of several characters that are not words, and
    `SINGLE` for any other character, valid or not. Ignored tokens have no group.
    """
    literals = {t.pattern.value: t.name for t in terminals if t.pattern.type == "str"}
    groups = [
        t.pattern.to_regexp() if t.name in ignored else f"(?P<{t.name}>{t.pattern.to_regexp()})"
        for t in terminals
        if t.pattern.type == "re"
    ]
    several = (text for text in literals if len(text) > 1 and not text.isidentifier())
    groups.append(f"(?P<LITERAL>{'|'.join(map(re.escape, sorted(several, key=len, reverse=True)))})")
    return "|".join([*groups, "(?P<SINGLE>.)"]), literals
