"""Products without a sign: a number right before a name, a bracket or a root."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradcli.errors import ProgramSyntaxError, Proposal, Span
from gradcli.language.syntax.layout import within_brackets
from gradcli.language.syntax.lexer import Token
from gradcli.language.syntax.readings import two_readings

_FACTORS = {"NAME", "LPAR"}
_ROOTS = {"√", "∛"}
# What a number and letters behind it may be that is no product, in other notations of numbers.
_OTHER_NUMBER = r"0[xXoObB][0-9a-fA-F_]*|[\d._]+(?:[eEjJ_]|_\w*)|\d*\.\d*[fF]|[\d.]+[dD]\d+"
# Operators that bind a number tighter, or as tightly, from the left.
_BEFORE = {"/", "÷", "//", "%", "@", "**", "^", *_ROOTS}
_SIGNS = {"+", "-", "−"}


def with_products(raw: Iterator[Token], source: str) -> Iterator[Token]:
    """The tokens, with an IMPLICIT one between the factors of such products.

    Raises ProgramSyntaxError where one could be read in two ways.
    """
    operator: Token | None = None
    previous: Token | None = None
    # What stands before the operator.
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
    """Whether a power of a name is that of a function, as in `sin^2(x)`, and not of a factor."""
    # Loaded by wrong programs alone.
    from gradcli.language.syntax.notations import WITHOUT_BRACKETS

    return name in WITHOUT_BRACKETS or re.search(rf"(?<!\w){re.escape(name)}\(", source) is not None


def _either(span: Span, one: str, other: str, replaced: Span) -> ProgramSyntaxError:
    hint = Proposal(f"write {one} or {other}", one, other, span=replaced)
    return two_readings(span, one, other, hint)


def _between(first: Token, last: Token) -> Span:
    return Span(first.start_pos, last.end_pos)
