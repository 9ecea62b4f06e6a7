"""The tables that drive the lexer and the parser: prepared ones where they fit the grammar."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from os import path
from typing import NamedTuple

from gradcli.language.syntax.generate import fingerprint, generate


class Production(NamedTuple):
    """`action` names a function of `build`; "" hands the only child on, None gathers a list.

    Such lists are spliced into their parent's children, at the places `spliced`.
    """

    origin: str
    size: int
    action: str | None
    spliced: tuple[int, ...]


class Tables(NamedTuple):
    """`rows` maps, for each state, a symbol to the next state, or to ~rule where one is complete.

    `starts` gives the first and the last state of each start symbol. `pattern` matches one token,
    whose terminal is the group's name, or in `literals` for words and operators.
    """

    pattern: str
    literals: dict[str, str]
    rows: tuple[dict[str, int], ...]
    rules: tuple[Production, ...]
    starts: dict[str, tuple[int, int]]


@cache
def load() -> Tables:
    """The prepared tables if they were made from this very grammar, else freshly generated ones."""
    grammar = read_grammar()
    try:
        prepared = vars(import_module("gradcli.language.syntax._lalr"))
    except ImportError:
        prepared = {}
    if prepared.get("fingerprint") == fingerprint(grammar):
        return Tables(*(prepared[field] for field in Tables._fields))
    return Tables(**generate(grammar))


def read_grammar() -> bytes:
    """The grammar, from inside the package, or from beside it when that is installed editable."""
    package = path.dirname(path.dirname(path.dirname(path.abspath(__file__))))
    inside = path.join(package, "grammar", "gradcli.lark")
    beside = path.join(path.dirname(package), "grammar", "gradcli.lark")
    with open(inside if path.exists(inside) else beside, "rb") as file:
        return file.read()
