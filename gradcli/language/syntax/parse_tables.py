"""Loads the tables of the lexer and the parser: prepared ones if they match the grammar, else newly generated ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from os import path

from gradcli.named_tuples import NamedTuple


class Production(NamedTuple):
    """A rule of the grammar.

    `action` names a function in `build_expressions` or `build_statements`; "" passes on the only child, and None
    gathers a list, which is spliced into the children of the parent rule at the indices `spliced`.
    """

    origin: str
    size: int
    action: str | None
    spliced: tuple[int, ...]


class StateRows(dict[int, dict[str, int]]):
    """Map each state to a mapping from symbols to the next state, or to ~rule for a reduction.

    Rows are decoded from text on first access, as a program needs few of them.
    """

    def __init__(self, symbols: Sequence[str], texts: Sequence[str]) -> None:
        self._symbols = symbols
        self._texts = texts

    def __missing__(self, state: int) -> dict[str, int]:
        numbers = [*map(int, self._texts[state].split())]
        row = self[state] = dict(zip(map(self._symbols.__getitem__, numbers[::2]), numbers[1::2]))
        return row


class Tables:
    """The tables of the lexer and parser.

    `rows` and `rules` are those of the automaton; `starts` has the first and the last state of each start symbol.
    `pattern` matches one token: the terminal is the name of the matching group, or for words and operators their entry
    in `literals`.
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
        self.rows = StateRows(symbols, rows)
        self.rules = rules
        self.starts = starts


_FIELDS = ("pattern", "literals", "symbols", "rows", "rules", "starts")


@cache
def load() -> Tables:
    """The prepared tables if they were generated from this grammar, otherwise newly generated ones."""
    grammar = read_grammar()
    try:
        prepared = vars(import_module("gradcli.language.syntax._lalr"))
    except ImportError:
        prepared = {}
    if prepared.get("grammar") == grammar:
        return Tables(*(prepared[field] for field in _FIELDS))
    # Imported here as it is needed only where the grammar has changed since the installation.
    from gradcli.language.syntax.generate import generate

    return Tables(**generate(grammar))


def read_grammar() -> bytes:
    """The grammar file, from inside the package, or from the checkout where the package is installed editable."""
    package = path.dirname(path.dirname(path.dirname(path.abspath(__file__))))
    inside = path.join(package, "grammar", "gradcli.lark")
    beside = path.join(path.dirname(package), "grammar", "gradcli.lark")
    with open(inside if path.exists(inside) else beside, "rb") as file:
        return file.read()
