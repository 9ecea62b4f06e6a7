"""The tables that drive the lexer and the parser: prepared ones where they fit the grammar."""

from __future__ import annotations

from collections.abc import Sequence
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


class Rows(dict[int, dict[str, int]]):
    """For each state, what maps a symbol to the next state, or to ~rule where one is complete. It is read from its text
    when it is first asked for: a program needs few of them."""

    def __init__(self, symbols: Sequence[str], texts: Sequence[str]) -> None:
        self._symbols = symbols
        self._texts = texts

    def __missing__(self, state: int) -> dict[str, int]:
        numbers = [*map(int, self._texts[state].split())]
        row = self[state] = dict(zip(map(self._symbols.__getitem__, numbers[::2]), numbers[1::2]))
        return row


class Tables:
    """`rows` and `rules` are those of the automaton, `starts` gives the first and the last state of each start symbol.

    `pattern` matches one token, whose terminal is the group's name, or in `literals` for words and operators.
    """

    __slots__ = ("literals", "pattern", "rows", "rules", "starts")

    def __init__(
        self,
        pattern: str,
        literals: dict[str, str],
        symbols: Sequence[str],
        rows: Sequence[str],
        rules: Sequence[Production],
        starts: dict[str, tuple[int, int]],
    ) -> None:
        self.pattern = pattern
        self.literals = literals
        self.rows = Rows(symbols, rows)
        self.rules = rules
        self.starts = starts


_FIELDS = ("pattern", "literals", "symbols", "rows", "rules", "starts")


@cache
def load() -> Tables:
    """The prepared tables if they were made from this very grammar, else freshly generated ones."""
    grammar = read_grammar()
    try:
        prepared = vars(import_module("gradcli.language.syntax._lalr"))
    except ImportError:
        prepared = {}
    if prepared.get("fingerprint") == fingerprint(grammar):
        return Tables(*(prepared[field] for field in _FIELDS))
    return Tables(**generate(grammar))


def read_grammar() -> bytes:
    """The grammar, from inside the package, or from beside it when that is installed editable."""
    package = path.dirname(path.dirname(path.dirname(path.abspath(__file__))))
    inside = path.join(package, "grammar", "gradcli.lark")
    beside = path.join(path.dirname(package), "grammar", "gradcli.lark")
    with open(inside if path.exists(inside) else beside, "rb") as file:
        return file.read()
