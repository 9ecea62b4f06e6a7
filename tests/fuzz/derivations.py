"""Texts that the grammar accepts, derived from its rules at random, so that no production goes untried."""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import Any, NamedTuple

from gradcli.language.syntax.parse_tables import read_grammar
from gradcli.primitives import table
from tests.fuzz import values
from tests.fuzz.case import Case

_NAMES = ("x", "x", "x", "y", "q", "v", "A", "i", "f", "g", "σ", "pi", "e", "T", "shape", "n", "diff", "sum")
# Where no blank may stand.
_TOUCHING = "\0"
_INDENT = "  "
_TERMINALS = {
    "NUMBER": ("0", "1", "2", "3", "0.5", "1e-3", "1_000", ".5", "1.", "1e400", "12"),
    "STRING": ("'ij->ji'", '"i,i"', "''", "'fro'"),
    "SEPARATOR": (";", "\n", "; "),
    "AUGMENTED": ("+=", "-=", "*=", "/=", "**=", "@="),
    "SUPERSCRIPT": ("²", "⁻¹", "¹²"),
    "IMPLICIT": (_TOUCHING,),
}
# So many symbols, and then the shortest way to an end.
_LONGEST = 60


class _Rules(NamedTuple):
    """The expansions of each rule, the shortest first, and the texts of fixed terminals."""

    expansions: dict[str, list[list[Any]]]
    # How many of the expansions are as short as can be.
    shortest: dict[str, int]
    literals: dict[str, str]


@cache
def _rules() -> _Rules:
    from lark import Lark

    lark = Lark(read_grammar().decode(), parser="lalr", lexer="basic", start="program", keep_all_tokens=True)
    expansions: dict[str, list[list[Any]]] = {}
    for rule in lark.rules:
        expansions.setdefault(rule.origin.name, []).append(list(rule.expansion))
    sizes = _sizes(expansions)
    shortest = {}
    for name, options in expansions.items():
        options.sort(key=lambda e: _size(e, sizes))
        shortest[name] = sum(_size(e, sizes) == _size(options[0], sizes) for e in options)
    literals = {t.name: t.pattern.value for t in lark.terminals if t.pattern.type == "str"}
    return _Rules(expansions, shortest, literals)


def _sizes(expansions: dict[str, list[list[Any]]]) -> dict[str, float]:
    """How many terminals the shortest text of each rule has."""
    sizes: dict[str, float] = dict.fromkeys(expansions, float("inf"))
    while True:
        found = {name: min(_size(e, sizes) for e in options) for name, options in expansions.items()}
        if found == sizes:
            return sizes
        sizes = found


def _size(expansion: list[Any], sizes: dict[str, float]) -> float:
    return sum(1 if symbol.is_term else sizes[symbol.name] for symbol in expansion)


def derived(rng: Random) -> Case:
    """A text of the grammar, with numbers for its names."""
    rules = _rules()
    left = rng.randint(5, _LONGEST)
    stack: list[Any] = ["program"]
    pieces: list[str] = []
    functions = table.names()
    depth = 0
    while stack:
        symbol = stack.pop()
        name = symbol if isinstance(symbol, str) else symbol.name
        if name in rules.expansions:
            options = rules.expansions[name]
            left -= 1
            stack += reversed(rng.choice(options if left > 0 else options[: rules.shortest[name]]))
        elif name == "NAME":
            follows = bool(stack) and getattr(stack[-1], "name", "") == "LPAR"
            pieces.append(rng.choice(functions) if follows or rng.random() < 0.1 else rng.choice(_NAMES))
        elif name in ("INDENT", "DEDENT"):
            depth += 1 if name == "INDENT" else -1
            pieces.append(f"\n{_INDENT * depth}")
        elif name == "SEPARATOR" and depth:
            pieces.append(f"\n{_INDENT * depth}")
        else:
            pieces.append(rng.choice(_TERMINALS[name]) if name in _TERMINALS else rules.literals[name])
    text = re.sub(rf"\s*{_TOUCHING}\s*", "", " ".join(pieces))
    policy = rng.choice(values.POLICIES)
    given = {n: values.tensor(rng, policy, values.any_shape(rng)) for n in ("x", "y", "q", "v", "A") if n in text}
    return Case(text, given, rng.getrandbits(32))
