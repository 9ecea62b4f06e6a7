"""Text to tokens as they stand."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from typing import NamedTuple, NoReturn

from gradcli.errors import ProgramSyntaxError, Span
from gradcli.language.syntax.parse_tables import Tables

MAX_LENGTH = 1_000_000
# Normalising a name takes time that is quadratic in its combining marks.
MAX_NAME = 1_000


class Token(NamedTuple):
    """The names are those of Lark's tokens; `module` is the prefix of a name, which the token begins with."""

    type: str
    value: str
    start_pos: int
    end_pos: int
    module: str = ""


END = "$END"

# What libraries are called without an import, and which they are.
PREFIXES = {
    "np": "numpy",
    "numpy": "numpy",
    "jnp": "jax.numpy",
    "jax": "jax",
    "scipy": "scipy",
    "math": "math",
    "sympy": "sympy",
    "torch": "torch",
    "nn": "torch.nn",
    "special": "scipy.special",
    "F": "torch.nn.functional",
}


def check_text(source: str) -> None:
    """Raise ProgramSyntaxError for text that is too long or holds control characters."""
    if len(source) > MAX_LENGTH:
        raise ProgramSyntaxError(
            f"the program is longer than {MAX_LENGTH} characters",
            span=Span(MAX_LENGTH, len(source)),
        )
    if source.isprintable():
        return
    strange = [c for c in set(source) if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\t\n\r\f"]
    if strange:
        _unexpected(source, min(map(source.index, strange)))


def scan(source: str, tables: Tables) -> Iterator[Token]:
    """Every token of the text as it stands, newlines and prefixes included."""
    literals = tables.literals
    for match in re.compile(tables.pattern).finditer(source):
        kind = match.lastgroup
        if kind is None:
            continue
        text = match.group()
        kind = literals.get(text, kind)
        if kind == "SINGLE":
            _unexpected(source, match.start())
        token = Token(kind, text, match.start(), match.end())
        if kind == "NAME":
            _check_name(source, token, literals)
        yield token


def _check_name(source: str, token: Token, words: Collection[str]) -> None:
    text = token.value
    if not text.isidentifier():
        continues = (("_" + character).isidentifier() for character in text[1:])
        bad = list(continues).index(False) + 1 if text[0].isidentifier() else 0
        _unexpected(source, token.start_pos + bad)
    if len(text) > MAX_NAME:
        raise ProgramSyntaxError(f"the name is longer than {MAX_NAME} characters", span=place(token))
    if not text.isascii() and (plain := unicodedata.normalize("NFKC", text)) in words:
        raise ProgramSyntaxError(
            f"{text!r} is the reserved word '{plain}'", hint="choose another name", span=place(token)
        )


def _unexpected(source: str, place: int) -> NoReturn:
    # Only a wrong program pays for the import.
    from gradcli.language.syntax.characters import unexpected_character

    raise unexpected_character(source, place)


def place(token: Token) -> Span:
    return Span(token.start_pos, token.end_pos)
