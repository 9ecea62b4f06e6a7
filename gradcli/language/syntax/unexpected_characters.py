"""Characters that no program has: the errors that name them, with what to write instead."""

from __future__ import annotations

import re
import unicodedata

from gradcli.errors import ProgramSyntaxError, Proposal, Span

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


def first_strange(source: str) -> int | None:
    """The index of the first control character, other than those of white space; None where there is none."""
    strange = [c for c in set(source) if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\t\n\r\f"]
    return min(map(source.index, strange), default=None)


def first_raised(name: str) -> int | None:
    """The index of the first raised letter: normalised, `xⁿ` is the name xn, and `2ⁿ` the product 2n."""
    return next((place for place, character in enumerate(name) if _is_raised_letter(character)), None)


def _is_raised_letter(character: str) -> bool:
    return unicodedata.category(character) == "Lm" and unicodedata.decomposition(character).startswith("<super>")


def unexpected_character(source: str, place: int) -> ProgramSyntaxError:
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
