"""Parsing of names with values, `NAME=VALUE`."""

from __future__ import annotations

from gradcli.errors import BindingError, Span, WordError
from gradcli.named_tuples import NamedTuple

_RESERVED = frozenset(("if", "else", "for", "in", "while", "and", "or", "not", "True", "False", "None", "backward"))
# Upper bound of the length of a name, as in programs: normalisation takes time quadratic in the combining marks.
MAX_NAME = 1_000
_WORD_HINT = "write NAME=VALUE, such as x=5"


class Binding(NamedTuple):
    """A name, the text of its value, and the offset of that text in the whole word."""

    name: str
    value_text: str
    value_offset: int


def split_binding(text: str) -> Binding:
    """The parts of `NAME=VALUE`, with the name NFKC-normalised as in a program.

    Raises BindingError, which points into `text`, where a part is missing or the name is invalid.
    """
    before, equals, after = text.partition("=")
    at = len(before)
    if not equals:
        name, tilde, rest = text.partition("~")
        # `~` is written before a distribution in statistics, and before a start in `gradcli solve`.
        hint = (
            f"write {name}={tilde if rest[:1].isalpha() else ''}{rest}" if tilde and name.isidentifier() else _WORD_HINT
        )
        raise WordError(f"{text!r} gives no name a value", hint=hint, source=text, span=Span(0, len(text)))
    if after.startswith("="):
        raise _bad_word(text, at, at + 2, "'==' compares and gives no name a value", _WORD_HINT)
    if not before.strip():
        raise _bad_word(text, at, at + 1, "there is no name before '='", _WORD_HINT)
    if not after.strip():
        raise _bad_word(text, at, at + 1, "there is no value after '='", _WORD_HINT)
    start = at - len(before.lstrip())
    name = checked_name(before.strip(), text, Span(start, start + len(before.strip())))
    value = after.lstrip()
    return Binding(name, value, len(text) - len(value))


def _bad_word(text: str, start: int, end: int, message: str, hint: str) -> BindingError:
    return BindingError(message, hint=hint, source=text, span=Span(start, end))


def checked_name(written: str, source: str, span: Span) -> str:
    """A name, NFKC-normalised. Raises BindingError, which points at `span` of `source`, if it is invalid."""
    if len(written) > MAX_NAME:
        raise BindingError(
            f"the name is longer than {MAX_NAME:,} characters", hint="choose a shorter name", source=source, span=span
        )
    name = written if written.isascii() else _normalised(written)
    if name in _RESERVED:
        raise BindingError(
            f"{name!r} is a reserved word, not a name", hint="choose another name", source=source, span=span
        )
    if not name.isidentifier():
        raise WordError(
            f"{written!r} is not a name",
            hint="a name is letters, digits and '_', and does not start with a digit",
            source=source,
            span=span,
        )
    return name


def _normalised(name: str) -> str:
    # Imported here as few names need the tables of Unicode.
    import unicodedata

    return unicodedata.normalize("NFKC", name)
