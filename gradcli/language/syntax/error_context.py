"""Collects the context of a syntax error: tokens before and after it, its statement, and the open bracket."""

from __future__ import annotations

from typing import NamedTuple

from gradcli.errors import ProgramSyntaxError
from gradcli.language.syntax.lalr import UnexpectedToken
from gradcli.language.syntax.layout import CLOSING
from gradcli.language.syntax.lexer import Token, scan
from gradcli.language.syntax.parse_tables import load


class Mistake(NamedTuple):
    """The unexpected token and its context."""

    token: Token
    expected: frozenset[str]
    previous: Token | None
    following: Token | None
    statement: list[Token]  # the tokens of the same statement so far
    bracket: Token | None  # the innermost open one
    source: str

    @property
    def wants_name(self) -> bool:
        return "NAME" in self.expected and "NUMBER" not in self.expected

    @property
    def wants_expression(self) -> bool:
        return "NUMBER" in self.expected

    @property
    def head(self) -> str:
        """The text of the statement's first token."""
        return self.statement[0].value if self.statement else ""

    def after(self, *texts: str) -> bool:
        return self.previous is not None and self.previous.value in texts

    @property
    def touching(self) -> bool:
        """Whether the token follows the previous one without a space."""
        return self.previous is not None and self.previous.end_pos == self.token.start_pos


def surroundings(source: str, unexpected: UnexpectedToken) -> Mistake:
    token = unexpected.token
    previous: Token | None = None
    statement: list[Token] = []
    open_brackets: list[Token] = []
    raw = scan(source, load())
    for item in raw:
        if item.start_pos >= token.start_pos:
            break
        inside = bool(open_brackets) and open_brackets[-1].value != "{"
        if item.value in CLOSING:
            open_brackets.append(item)
        elif item.value in CLOSING.values():
            open_brackets.pop()
        if (item.type == "SEPARATOR" and not inside) or item.value in {"{", "}"}:
            statement = []
        elif item.type != "SEPARATOR":
            statement.append(item)
        if item.type != "SEPARATOR" or item.value == ";":
            previous = item
    return Mistake(
        token,
        unexpected.expected,
        previous,
        _next(raw),
        statement,
        open_brackets[-1] if open_brackets else None,
        source,
    )


def _next(raw: object) -> Token | None:
    try:
        return next(raw, None)  # type: ignore[call-overload,no-any-return]
    except ProgramSyntaxError:
        return None
