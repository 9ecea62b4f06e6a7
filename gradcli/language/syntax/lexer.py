"""Splits the text of a program into raw tokens."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from gradcli.errors import ProgramSyntaxError, Span
from gradcli.language.syntax.parse_tables import Tables
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import NoReturn

# Longest program in characters.
MAX_LENGTH = 1_000_000
# Longest name in characters: normalising it takes time quadratic in the number of combining marks.
MAX_NAME = 1_000
# Removes the white space of programs that is not printable.
_WITHOUT_LINES = str.maketrans("", "", "\t\n\r\f")


class Token(NamedTuple):
    """A token; `type` is the name of a terminal in the grammar, `module` the library of a name that had a prefix."""

    type: str
    value: str
    start_pos: int
    end_pos: int
    module: str = ""


END = "$END"

# Usual prefixes of libraries, which need no import, and their modules.
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
    """Raise ProgramSyntaxError for text that is too long or has control characters."""
    if len(source) > MAX_LENGTH:
        raise ProgramSyntaxError(
            f"the program is longer than {MAX_LENGTH} characters",
            span=Span(MAX_LENGTH, len(source)),
        )
    if source.isprintable() or source.translate(_WITHOUT_LINES).isprintable():
        return
    # Imported here, and below, as most programs need no tables of Unicode.
    from gradcli.language.syntax.unexpected_characters import first_strange

    place = first_strange(source)
    if place is not None:
        _unexpected(source, place)


def scan(source: str, tables: Tables) -> Iterator[Token]:
    """All tokens of the text, including newlines and prefixes of names."""
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
    if text.isascii():
        return
    from gradcli.language.syntax.unexpected_characters import first_raised

    raised = first_raised(text)
    if raised is not None:
        _unexpected(source, token.start_pos + raised)
    if (plain := normalised(text)) in words:
        raise ProgramSyntaxError(
            f"{text!r} is the reserved word '{plain}'", hint="choose another name", span=place(token)
        )


def normalised(text: str) -> str:
    """A text in Unicode normal form NFKC, as Python compares names."""
    if text.isascii():
        return text
    import unicodedata

    return unicodedata.normalize("NFKC", text)


def _unexpected(source: str, place: int) -> NoReturn:
    from gradcli.language.syntax.unexpected_characters import unexpected_character

    raise unexpected_character(source, place)


def place(token: Token) -> Span:
    return Span(token.start_pos, token.end_pos)
