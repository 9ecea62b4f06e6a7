"""Splits the text of a program into raw tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

from gradcli.errors import ProgramSyntaxError, Proposal, Span
from gradcli.language.syntax.parse_tables import Tables
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import NoReturn

# Longest program in characters.
MAX_LENGTH = 1_000_000
# Longest name in characters: normalising it takes time quadratic in the number of combining marks.
MAX_NAME = 1_000
_INSTEAD = {
    "!": "write 'not'; '!=' compares",
    "?": "write a if condition else b",
    "\\": "a line goes on inside brackets, or behind a '\\' at its end; \\frac{a}{b} is (a)/(b)",
    "∫": "write integrate(exp(-t), t, 0, 1) for the integral by t from 0 to 1",
    "∂": "write diff(y, x)",
    "∇": "write diff(y, x), or grad(f) of a function",
    "±": "write the number alone, without its uncertainty",
    "°": "write deg2rad(x)",
    "≈": "write isclose(a, b)",
    "∑": "write sum(…)",
    "∏": "write prod(…)",
    "“": "write '\"'",
    "”": "write '\"'",
    "„": "write '\"'",
    "‘": 'write "\'"',
    "’": 'write "\'"',
}
# The number of characters before and after one that are examined.
_AROUND = 1_000


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
    if source.isprintable():
        return
    strange = [c for c in set(source) if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\t\n\r\f"]
    if strange:
        _unexpected(source, min(map(source.index, strange)))


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
    raised = next((place for place, character in enumerate(text) if _is_raised_letter(character)), None)
    if raised is not None:
        # Normalised, `xⁿ` is the name xn, and `2ⁿ` the product 2n.
        _unexpected(source, token.start_pos + raised)
    if (plain := unicodedata.normalize("NFKC", text)) in words:
        raise ProgramSyntaxError(
            f"{text!r} is the reserved word '{plain}'", hint="choose another name", span=place(token)
        )


def _is_raised_letter(character: str) -> bool:
    return unicodedata.category(character) == "Lm" and unicodedata.decomposition(character).startswith("<super>")


def _unexpected(source: str, place: int) -> NoReturn:
    raise _unexpected_character(source, place)


def place(token: Token) -> Span:
    return Span(token.start_pos, token.end_pos)


def _unexpected_character(source: str, place: int) -> ProgramSyntaxError:
    """The error for the character at `place`, which may be a quote that is never closed."""
    character = source[place]
    if character in "'\"":
        before = re.search(r"[^\W\d]\w*$", source[:place])
        if character == "'" and before is not None and source[place + 1 : place + 2] in ("'", "("):
            return ProgramSyntaxError(
                "a derivative has no prime in the language",
                hint=f"write y = {before[0]}(x); diff(y, x)",
                span=Span(before.start(), place + 1),
            )
        line_end = place + len(source[place:].splitlines()[0])
        return ProgramSyntaxError(
            "the string is never closed",
            hint=f"close it with {character} on the same line",
            span=Span(place, line_end),
        )
    return ProgramSyntaxError(
        f"unexpected character {_shown(character)}",
        hint=_between(source, place) or _hint(character),
        span=Span(place, place + 1),
    )


def _between(source: str, place: int) -> str | None:
    """The hint for a character with a special meaning in its context, or None."""
    before, behind = source[max(0, place - _AROUND) : place], source[place + 1 : place + _AROUND].lstrip()
    if source[place] == "±" and behind and not (behind[0].isdigit() or behind[0] == "."):
        return "leave one of the two signs, + or -"
    name = re.search(r"[^\W\d]\w*$", before)
    if source[place] == "½" and name is not None:
        return f"no name has a fraction in it: call it {name[0]}_half, or write ({name[0]}/2)"
    return None


def _shown(character: str) -> str:
    name = unicodedata.name(character, "").lower()
    shown = f"'{character}'" if character.isprintable() else f"U+{ord(character):04X}"
    return f"{shown} ({name})" if name and not character.isascii() else shown


def _hint(character: str) -> str | None:
    if character in _INSTEAD:
        return _INSTEAD[character]
    if unicodedata.category(character) == "Zs":
        return Proposal("write a plain space", " ")
    if unicodedata.decomposition(character).startswith("<super>"):
        power = f"**{unicodedata.normalize('NFKC', character)}"
        return Proposal(f"write {power}", power)
    if unicodedata.decomposition(character).startswith("<fraction>"):
        fraction = f"({unicodedata.normalize('NFKC', character).replace('⁄', '/')})"
        return Proposal(f"write {fraction}", fraction)
    plain = unicodedata.normalize("NFKC", character)
    return Proposal(f"write '{plain}'", plain) if plain != character and plain.isascii() else None
