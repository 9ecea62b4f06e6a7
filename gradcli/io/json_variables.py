"""Parsing of JSON objects of variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gradcli.errors import BindingError, Span
from gradcli.io.json_numbers import charge_text, decode, expect_end, numbers, skip_space
from gradcli.io.variables import checked_name
from gradcli.named_tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_variables(text: str, where: str, exact: bool = False) -> dict[str, float | complex | NDArray[Any]]:
    """The variables of a JSON object of names to numbers or nested lists, in their order.

    Numbers become floats, and lists float64 arrays; where they are to be `exact`, numbers are `Written`, and arrays are
    object arrays. `where` is the name of the text in messages. Raises BindingError, which points into the text, where
    it is not JSON, a name is invalid or repeated, or a value is anything else.
    """
    variables: dict[str, float | complex | NDArray[Any]] = {}
    text = text.removeprefix("\ufeff")
    charge_text(text)
    for member in _members(text, where, exact):
        name = checked_name(member.name, text, member.name_span)
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
