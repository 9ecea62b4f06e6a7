"""Parse tables from the grammar, by Lark.

The build of a wheel loads this file by itself, so it imports nothing of gradcli.
"""

from __future__ import annotations

import re
from importlib.util import source_hash
from typing import Any

# Counted up when the form of the tables changes, so that older prepared tables are not used.
FORMAT = 2

START = ("program", "expression")


def fingerprint(grammar: bytes) -> str:
    """What prepared tables must have recorded to be those of this grammar."""
    return f"{FORMAT}:{source_hash(grammar).hex()}"


def generate(grammar: bytes) -> dict[str, Any]:
    """The fields of `parse_tables.Tables`. Takes a tenth of a second, most of it in Lark."""
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
    # What `Lark.save` writes; each rule stands in it as a number.
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
    """A module that holds the tables of `grammar`, for `parse_tables.load` to find."""
    fields = {"fingerprint": fingerprint(grammar), **generate(grammar)}
    return "".join(f"{name} = {value!r}\n" for name, value in fields.items())


def _states(table: dict[str, Any], rules: list[int]) -> dict[int, dict[str, int]]:
    """For each of Lark's states its shifts and gotos as the next state, its reductions as ~rule."""
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
    """A row as text: the number of each symbol, and where it leads."""
    return " ".join(f"{symbols.index(symbol)} {order[n] if n >= 0 else n}" for symbol, n in moves.items())


def _order(states: dict[int, dict[str, int]], starts: dict[str, int]) -> dict[int, int]:
    """New numbers for the states, as Lark's differ from run to run: by the shortest way there."""
    order = {starts[name]: index for index, name in enumerate(START)}
    queue = list(order)
    for state in queue:
        for following in states[state].values():
            if following >= 0 and following not in order:
                order[following] = len(order)
                queue.append(following)
    return order


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

    The pattern's groups are the terminals, `LITERAL` for fixed texts of several characters that are no word, and
    `SINGLE` for one character, be it a text of the language or not. What is ignored has no group.
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
