"""Parse tables from the grammar, by Lark.

The build of a wheel loads this file by itself, so it imports nothing of gradcli.
"""

from __future__ import annotations

import re
from importlib.util import source_hash
from typing import Any

# Counted up when the form of the tables changes, so that older prepared tables are not used.
FORMAT = 1

START = ("program", "expression")


def fingerprint(grammar: bytes) -> str:
    """What prepared tables must have recorded to be those of this grammar."""
    return f"{FORMAT}:{source_hash(grammar).hex()}"


def generate(grammar: bytes) -> dict[str, Any]:
    """The fields of `tables.Tables`. Takes a tenth of a second, most of it in Lark."""
    from lark import Lark

    lark = Lark(
        grammar.decode(),
        parser="lalr",
        lexer="basic",
        start=list(START),
        keep_all_tokens=True,
        maybe_placeholders=False,
    )
    table = lark.parser.parser._parse_table
    order = _order(table)
    rules = {rule: index for index, rule in enumerate(lark.rules)}
    pattern, literals = _lexicon(list(lark.terminals), lark.ignore_tokens)
    return {
        "pattern": pattern,
        "literals": literals,
        "rows": tuple(_row(table.states[state], order, rules) for state in order),
        "rules": tuple(_rule(rule) for rule in lark.rules),
        "starts": {name: (order[table.start_states[name]], order[table.end_states[name]]) for name in START},
    }


def module_text(grammar: bytes) -> str:
    """A module that holds the tables of `grammar`, for `tables.load` to find."""
    fields = {"fingerprint": fingerprint(grammar), **generate(grammar)}
    return "".join(f"{name} = {value!r}\n" for name, value in fields.items())


def _order(table: Any) -> dict[int, int]:
    """New numbers for the states, as Lark's differ from run to run: by the shortest way there."""
    order = {table.start_states[name]: index for index, name in enumerate(START)}
    queue = list(order)
    for state in queue:
        for _, (action, argument) in sorted(table.states[state].items(), key=lambda item: item[0]):
            if action.name == "Shift" and argument not in order:
                order[argument] = len(order)
                queue.append(argument)
    return order


def _row(actions: dict[str, tuple[Any, Any]], order: dict[int, int], rules: dict[Any, int]) -> dict[str, int]:
    """A state's shifts and gotos as the next state, its reductions as ~rule."""
    return {
        symbol: order[argument] if action.name == "Shift" else ~rules[argument]
        for symbol, (action, argument) in sorted(actions.items(), key=lambda item: item[0])
    }


def _rule(rule: Any) -> tuple[str, int, str | None, tuple[int, ...]]:
    """Origin, length, action, and which children are lists to splice in.

    The action is the name of a function; "" hands the only child on; None gathers a list that the
    parent rule splices in.
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
    """One pattern for every token, and the terminals of fixed texts.

    The pattern's groups are the terminals, `LITERAL` for all fixed texts that are no word, and
    `UNKNOWN` for a character that begins none of them. What is ignored has no group.
    """
    literals = {t.pattern.value: t.name for t in terminals if t.pattern.type == "str"}
    groups = [
        t.pattern.to_regexp() if t.name in ignored else f"(?P<{t.name}>{t.pattern.to_regexp()})"
        for t in terminals
        if t.pattern.type == "re"
    ]
    symbols = sorted((text for text in literals if not text.isidentifier()), key=len, reverse=True)
    groups.append(f"(?P<LITERAL>{'|'.join(map(re.escape, symbols))})")
    return "|".join([*groups, "(?P<UNKNOWN>.)"]), literals
