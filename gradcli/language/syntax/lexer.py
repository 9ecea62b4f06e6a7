"""Text to tokens: characters, brackets, lines, library prefixes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from typing import NamedTuple, NoReturn

from gradcli.errors import ProgramSyntaxError, Span
from gradcli.language.syntax.parse_tables import Tables

MAX_NESTING = 1_000
MAX_LENGTH = 1_000_000
# Normalising a name takes time that is quadratic in its combining marks.
MAX_NAME = 1_000

PREFIXES = frozenset({"np", "numpy", "torch", "jnp", "math"})
SUBMODULES = frozenset({"linalg", "special", "nn", "functional", "fft", "random"})

CLOSING = {"(": ")", "[": "]", "{": "}"}
_OPENING = {closing: opening for opening, closing in CLOSING.items()}
_CONTINUES_A_LINE = {"{", "backward"}


class Token(NamedTuple):
    """The names are those of Lark's tokens."""

    type: str
    value: str
    start_pos: int
    end_pos: int


END = "$END"


def tokens(source: str, tables: Tables, *, lines: bool = True) -> Iterator[Token]:
    """The tokens that the grammar is written over, then an END; no newlines among them unless `lines`.

    Raises ProgramSyntaxError for text and names that are too long, characters and strings that are
    no tokens, and brackets that do not match or nest too deep.
    """
    check_text(source)
    stream = _layout(scan(source, tables), len(source), lines=lines)
    prefixes = _prefixes(source, tables)
    return _without_prefixes(stream, prefixes) if prefixes else stream


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
        if kind == "UNKNOWN":
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


def _layout(raw: Iterator[Token], length: int, *, lines: bool) -> Iterator[Token]:
    """Match brackets, and leave newlines only where they separate statements."""
    brackets: list[Token] = []
    pending: Token | None = None
    closed_block = False
    for token in raw:
        text = token.value
        if token.type == "SEPARATOR" and text != ";":
            if lines and pending is None and not (brackets and brackets[-1].value != "{"):
                pending = token
            continue
        if pending is not None:
            if text not in _CONTINUES_A_LINE and not (closed_block and text == "else"):
                yield pending
            pending = None
        if text in CLOSING:
            _open(brackets, token)
        elif text in _OPENING:
            _close(brackets, token)
        yield token
        closed_block = text == "}"
        if closed_block:
            pending = Token("SEPARATOR", "", token.end_pos, token.end_pos)
    if brackets:
        raise ProgramSyntaxError(f"'{brackets[-1].value}' is never closed", span=place(brackets[-1]))
    yield Token(END, "", length, length)


def _open(brackets: list[Token], token: Token) -> None:
    if len(brackets) == MAX_NESTING:
        raise ProgramSyntaxError(f"nested more than {MAX_NESTING} deep", span=place(token))
    brackets.append(token)


def _close(brackets: list[Token], token: Token) -> None:
    if not brackets:
        raise ProgramSyntaxError(f"'{token.value}' closes nothing", span=place(token))
    opening = brackets.pop()
    if CLOSING[opening.value] != token.value:
        raise ProgramSyntaxError(
            f"'{opening.value}' is closed by '{token.value}'",
            hint=f"write '{CLOSING[opening.value]}' instead, or before it",
            span=place(token),
        )


def _prefixes(source: str, tables: Tables) -> Collection[str]:
    """The library names that the program does not use as names of its own."""
    present = {prefix for prefix in PREFIXES if prefix in source}
    if not present:
        return present
    last = ""
    for token in scan(source, tables):
        if token.type == "SEPARATOR":
            continue
        if token.value != ".":
            present.discard(last)
        last = token.value if token.type == "NAME" else ""
    present.discard(last)
    return present


def _without_prefixes(stream: Iterator[Token], prefixes: Collection[str]) -> Iterator[Token]:
    """Leave out `np.` and `np.linalg.` before a name."""
    held: list[Token] = []  # `np`, `np.`, `np.linalg`, …: a prefix if a name comes in the end
    after_dot = False
    for token in stream:
        if held and held[-1].value == ".":
            if token.value in SUBMODULES:
                held.append(token)
                continue
            if token.type != "NAME":
                yield from held
            held.clear()
        elif held:
            if token.value == ".":
                held.append(token)
                continue
            yield held.pop()
            held.clear()
        elif token.value in prefixes and token.type == "NAME" and not after_dot:
            held.append(token)
            continue
        after_dot = token.value == "."
        yield token


def place(token: Token) -> Span:
    return Span(token.start_pos, token.end_pos)
