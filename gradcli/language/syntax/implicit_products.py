"""Implicit products: inserts a token between a number and a directly following name, parenthesis or root."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradcli.errors import ProgramSyntaxError, Proposal, Span
from gradcli.language.syntax.ambiguities import two_readings
from gradcli.language.syntax.layout import within_brackets
from gradcli.language.syntax.lexer import Token

_FACTORS = {"NAME", "LPAR"}
_ROOTS = {"√", "∛"}
# Notations of numbers in other languages, whose letters are no factor.
_OTHER_NUMBER = r"0[xXoObB][0-9a-fA-F_]*|[\d._]+(?:[eEjJ_]|_\w*)|\d*\.\d*[fF]|[\d.]+[dD]\d+"
# Operators that bind at least as tightly as the implicit product, so that a product after them is ambiguous.
_BEFORE = {"/", "÷", "//", "%", "@", "**", "^", *_ROOTS}
_SIGNS = {"+", "-", "−"}


def with_products(raw: Iterator[Token], source: str) -> Iterator[Token]:
    """The tokens with an IMPLICIT token between the factors of implicit products.

    Raises ProgramSyntaxError where a product is ambiguous.
    """
    operator: Token | None = None
    previous: Token | None = None
    # The token before the operator.
    left: Token | None = None
    for token in raw:
        if previous is not None and previous.type == "NUMBER" and previous.end_pos == token.start_pos:
            if token.value == "!=":
                raise two_readings(_between(previous, token), f"{previous.value} != …", f"{previous.value}! == …")
            if _is_factor(previous, token, source):
                if operator is not None:
                    raise _unclear(source, left, operator, previous, token)
                yield Token("IMPLICIT", "", token.start_pos, token.start_pos)
        yield token
        if token.value in _BEFORE:
            left, operator = previous, token
        elif token.type != "NUMBER" and not (token.value in _SIGNS and operator is previous):
            operator = None
        previous = token


def _is_factor(number: Token, token: Token, source: str) -> bool:
    if token.value in _ROOTS or token.type == "LPAR":
        return True
    if token.type != "NAME":
        return False
    written = source[number.start_pos : token.end_pos]
    exponent = token.value in ("d", "D") and source[token.end_pos : token.end_pos + 1] in ("+", "-")
    return not exponent and not re.fullmatch(_OTHER_NUMBER, written)


def _unclear(source: str, left: Token | None, operator: Token, number: Token, token: Token) -> ProgramSyntaxError:
    factor = f"({within_brackets(source[token.start_pos :])})" if token.type == "LPAR" else token.value
    end = token.start_pos + len(factor)
    sign = source[operator.end_pos : number.start_pos].strip()
    product = f"{sign}{number.value}*{factor}"
    function = re.search(r"([^\W\d]\w*)\s*$", source[: operator.start_pos])
    if token.type == "LPAR" and operator.value in ("^", "**") and function is not None:
        name = function[1]
        power = f"^{sign}{number.value}"
        one = f"{name}{factor}{power}" if _is_called(name, source) else f"{name}{power}*{factor}"
        return _either(_between(operator, token), one, f"{name}^({product})", Span(function.start(), end))
    before = left.value if left is not None and left.type in ("NAME", "NUMBER") and operator.value not in _ROOTS else ""
    first = left if left is not None and before else operator
    written = f"{before}{operator.value}"
    whole = Span(first.start_pos, end)
    return _either(_between(first, token), f"{written}({product})", f"{written}{product}", whole)


def _is_called(name: str, source: str) -> bool:
    """Whether a name before an exponent is that of a function, as in `sin^2(x)`, rather than a factor."""
    # Imported here as only wrong programs need it.
    from gradcli.language.syntax.foreign_notations import WITHOUT_BRACKETS

    return name in WITHOUT_BRACKETS or re.search(rf"(?<!\w){re.escape(name)}\(", source) is not None


def _either(span: Span, one: str, other: str, replaced: Span) -> ProgramSyntaxError:
    hint = Proposal(f"write {one} or {other}", one, other, span=replaced)
    return two_readings(span, one, other, hint)


def _between(first: Token, last: Token) -> Span:
    return Span(first.start_pos, last.end_pos)
