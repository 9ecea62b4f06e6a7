"""Soft keywords, which are keywords only at certain places of a statement, and names elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from gradcli.language.syntax.lexer import Token

_BEGINS_A_STATEMENT = {"SEPARATOR", "LBRACE", "RBRACE", "COLON"}
_ENDS_A_STATEMENT = {"SEPARATOR", "RBRACE", ""}
_BEGINS_AN_EXPRESSION = {
    "NAME", "NUMBER", "STRING", "LPAR", "LSQB", "PLUS", "MINUS", "TILDE", "NOT", "TRUE", "FALSE", "NONE", "LAMBDA",
}  # fmt: skip
_ENDS_AN_OPERAND = {"NAME", "NUMBER", "STRING", "RPAR", "RSQB", "TRUE", "FALSE", "NONE"}
_AT_THE_BEGINNING = {
    "DEF": {"NAME"},
    "IMPORT": {"NAME"},
    "FROM": {"NAME"},
    "RETURN": _BEGINS_AN_EXPRESSION | _ENDS_A_STATEMENT,
    "ELIF": _BEGINS_AN_EXPRESSION,
    "BREAK": _ENDS_A_STATEMENT,
    "CONTINUE": _ENDS_A_STATEMENT,
    "PASS": _ENDS_A_STATEMENT,
}
SOFT = {*_AT_THE_BEGINNING, "LAMBDA", "IS", "AS"}


def told_apart(raw: Iterator[Token]) -> Iterator[Token]:
    """The tokens, with soft keywords turned into names where they are used as such."""
    before = statement = ""
    token = next(raw, None)
    while token is not None:
        following = next(raw, None)
        if token.type in SOFT and not _is_word(token, before, following.type if following else "", statement):
            token = token._replace(type="NAME")
        if before in _BEGINS_A_STATEMENT or not before:
            statement = token.type
        yield token
        before = token.type
        token = following


def _is_word(token: Token, before: str, following: str, statement: str) -> bool:
    """Whether a soft keyword is used as a keyword; `statement` is the type of the first token of its statement."""
    if token.type == "LAMBDA":
        return following == "NAME" or (following == "COLON" and before != "LSQB")
    if token.type == "IS":
        return before in _ENDS_AN_OPERAND and following in ("NONE", "NOT")
    if token.type == "AS":
        return statement in ("IMPORT", "FROM")
    if token.type == "IMPORT" and statement == "FROM":
        return True
    return (not before or before in _BEGINS_A_STATEMENT) and following in _AT_THE_BEGINNING[token.type]
