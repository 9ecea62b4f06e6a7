"""Parsing of names with values: `NAME=VALUE` words, and JSON objects of variables."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.errors import BindingError, Span
from gradcli.io.json_numbers import charge_text, decode, expect_end, numbers, skip_space

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        raise _bad_word(text, 0, len(text), f"{text!r} binds no value", hint)
    if after.startswith("="):
        raise _bad_word(text, at, at + 2, "'==' compares and binds nothing", _WORD_HINT)
    if not before.strip():
        raise _bad_word(text, at, at + 1, "there is no name before '='", _WORD_HINT)
    if not after.strip():
        raise _bad_word(text, at, at + 1, "there is no value after '='", _WORD_HINT)
    start = at - len(before.lstrip())
    name = _checked_name(before.strip(), text, Span(start, start + len(before.strip())))
    value = after.lstrip()
    return Binding(name, value, len(text) - len(value))


def _bad_word(text: str, start: int, end: int, message: str, hint: str) -> BindingError:
    return BindingError(message, hint=hint, source=text, span=Span(start, end))


def _checked_name(written: str, source: str, span: Span) -> str:
    if len(written) > MAX_NAME:
        raise BindingError(
            f"the name is longer than {MAX_NAME:,} characters", hint="choose a shorter name", source=source, span=span
        )
    name = unicodedata.normalize("NFKC", written)
    if name in _RESERVED:
        raise BindingError(
            f"{name!r} is a reserved word, not a name", hint="choose another name", source=source, span=span
        )
    if not name.isidentifier():
        raise BindingError(
            f"{written!r} is not a name",
            hint="a name is letters, digits and '_', and does not start with a digit",
            source=source,
            span=span,
        )
    return name


def read_variables(text: str, where: str, exact: bool = False) -> dict[str, float | NDArray[Any]]:
    """The variables of a JSON object of names to numbers or nested lists, in their order.

    Numbers become floats, and lists float64 arrays; where they are to be `exact`, numbers are `Written`, and arrays are
    object arrays. `where` is the name of the text in messages. Raises BindingError, which points into the text, where
    it is not JSON, a name is invalid or repeated, or a value is anything else.
    """
    variables: dict[str, float | NDArray[Any]] = {}
    text = text.removeprefix("\ufeff")
    charge_text(text)
    for member in _members(text, where, exact):
        name = _checked_name(member.name, text, member.name_span)
        if name in variables:
            raise BindingError(
                f"{where} gives variable {name!r} twice",
                hint="keep one of them",
                source=text,
                span=member.name_span,
            )
        try:
            variables[name] = numbers(member.value, f"variable {name!r} in {where}", exact)
        except BindingError as error:
            error.locate(member.value_span, text)
            raise
    return variables


class _Member(NamedTuple):
    name: str
    name_span: Span
    value: object
    value_span: Span


def _members(text: str, where: str, exact: bool) -> Iterator[_Member]:
    """The members of the JSON object `text`, with their places in it, which `json` does not report."""
    at = _expect("{", text, 0, where)
    if text[at : at + 1] == "}":
        _expect_end(text, at + 1, where)
        return
    separator = ","
    while separator == ",":
        name_start = at
        _expect('"', text, at, where, "a name in double quotes")
        name, name_end = decode(text, name_start, where)
        start = _expect(":", text, name_end, where)
        value, end = decode(text, start, where, exact)
        yield _Member(str(name), Span(name_start, name_end), value, Span(start, end))
        at = skip_space(text, end)
        separator = text[at : at + 1]
        if separator != "}":
            at = _expect(",", text, at, where, "',' or '}'")
    _expect_end(text, at + 1, where)


def _expect(character: str, text: str, at: int, where: str, wanted: str | None = None) -> int:
    """The offset after `character`, which must be the next non-space character, and after the space that follows it."""
    at = skip_space(text, at)
    if text[at : at + 1] != character:
        raise BindingError(
            f"{where} is no JSON object of variables: expected {wanted or repr(character)}",
            hint='give an object of names to values: {"x": 5, "W": [[1, 2], [3, 4]]}',
            source=text,
            span=Span(at, at + 1),
        )
    return skip_space(text, at + 1)


def _expect_end(text: str, at: int, where: str) -> None:
    lines = text[skip_space(text, at) :].startswith("{")
    hint = "gradcli map takes an object a line, for as many results" if lines else "put all variables in one object"
    expect_end(text, at, f"{where} goes on after its object", hint)
