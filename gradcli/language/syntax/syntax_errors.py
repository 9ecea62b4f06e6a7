"""Explains syntax errors: finds the likely mistake that made the parser reject a token."""

from __future__ import annotations

import re

from gradcli.errors import ProgramSyntaxError, Proposal, Span
from gradcli.language.syntax.foreign_keywords import FOREIGN_COMMANDS, FOREIGN_WORDS
from gradcli.language.syntax.foreign_notations import FUNCTIONS_OF_TWO, FUNCTIONS_WITHOUT_PARENTHESES
from gradcli.language.syntax.lalr import UnexpectedToken
from gradcli.language.syntax.layout import CLOSING
from gradcli.language.syntax.lexer import END, Token, place, scan
from gradcli.language.syntax.parse_tables import load
from gradcli.named_tuples import NamedTuple


class SyntaxMistake(NamedTuple):
    message: str
    hint: str | None = None
    span: Span | None = None


def explain(source: str, unexpected: UnexpectedToken) -> ProgramSyntaxError:
    """The error for the token at which the parser stopped."""
    mistake = error_context(source, unexpected)
    finding = next(filter(None, (rule(mistake) for rule in _RULES)))
    return ProgramSyntaxError(finding.message, hint=finding.hint, span=finding.span or place(mistake.token))


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _quoted(token: Token) -> str:
    text = _cut(token.value)
    return text if token.type == "STRING" else f"'{text}'"


def _is_word(token: Token) -> bool:
    """Return whether a token is a keyword of the grammar."""
    return token.type != "NAME" and token.value.isidentifier()


def _is_value(token: Token) -> bool:
    return token.value in {"True", "False", "None"}


# Each rule recognizes one kind of mistake; the first that applies gives the message.


def _foreign_word(m: ErrorContext) -> SyntaxMistake | None:
    for token in (m.previous, m.token, *m.statement[:1]):
        if token is not None and token.type == "NAME" and token.value in FOREIGN_WORDS:
            return SyntaxMistake(
                f"'{token.value}' is not part of the language",
                FOREIGN_WORDS[token.value],
                place(token),
            )
    return None


def _backward_call(m: ErrorContext) -> SyntaxMistake | None:
    if m.token.value == "backward" and m.after("."):
        return SyntaxMistake(
            "'.backward()' is not part of the language",
            "leave it out: the gradients are computed anyway",
        )
    return None


def _reserved_word(m: ErrorContext) -> SyntaxMistake | None:
    word: Token | None = None
    if _is_word(m.token) and (m.wants_name or (m.following and m.following.value == "=")):
        word = m.token
    elif m.token.value == "=" and m.previous and _is_word(m.previous) and not _is_value(m.previous):
        word = m.previous
    if word is None:
        return None
    return SyntaxMistake(f"'{word.value}' is a reserved word", "choose another name", place(word))


_COMPOUND = {
    ":=": "write name = value, as a statement of its own",
    "->": "a function is written f(x) = …",
    "=>": "write '>=' to compare; a function is written f(x) = …",
    "=<": Proposal("write '<='", "<="),
    "<>": Proposal("write '!='", "!="),
    "===": Proposal("write '=='", "=="),
    "!==": Proposal("write '!='", "!="),
    "<<": "write '*2**n'",
    ">>": "write '//2**n'",
}


def _foreign_operator(m: ErrorContext) -> SyntaxMistake | None:
    for left, right in ((m.previous, m.token), (m.token, m.following)):
        if left is None or right is None or left.end_pos != right.start_pos:
            continue
        operator = left.value + right.value
        message = f"'{operator}' is not part of the language"
        span = Span(left.start_pos, right.end_pos)
        if operator in _COMPOUND:
            return SyntaxMistake(message, _COMPOUND[operator], span)
    return None


def _unpacking(m: ErrorContext) -> SyntaxMistake | None:
    star = m.previous if m.after("*") and m.token.type == "NAME" else m.token
    if star is None or star.value not in {"*", "**"}:
        return None
    if m.head in ("def", "lambda"):
        return SyntaxMistake(
            f"a function has no parameters for any number of arguments, as '{star.value}' has them in Python",
            "write the parameters one by one, or take a list",
            place(star),
        )
    target = not m.statement and _STARRED.match(m.source, star.start_pos)
    if m.wants_expression and (target or m.after("(", ",", "[", "=")):
        return SyntaxMistake(f"'{star.value}' cannot unpack here", "write the names, items or arguments one by one")
    return None


_STARRED = re.compile(r"\*\w+\s*,")


def _membership(m: ErrorContext) -> SyntaxMistake | None:
    within = m.following if m.token.value == "not" and m.following is not None else m.token
    if within.value != "in" or m.wants_expression or m.head == "for":
        return None
    return SyntaxMistake(
        "'in' asks for a value among others in Python, and is not part of the language",
        "write x == a or x == b, or any([x == a for a in ys])",
        Span(m.token.start_pos, within.end_pos),
    )


_DECORATOR = re.compile(r"@[ \t]*\w+(\.\w+)*[ \t]*(\(.*\))?[ \t]*(#.*)?$", re.MULTILINE)


def _decorator(m: ErrorContext) -> SyntaxMistake | None:
    if m.token.value != "@" or m.statement or not _DECORATOR.match(m.source, m.token.start_pos):
        return None
    return SyntaxMistake(
        "decorators are not part of the language", "leave it out, or write f = jax.jit(f) behind the function"
    )


def _equals(m: ErrorContext) -> SyntaxMistake | None:
    if m.token.value != "=":
        return None
    if m.bracket and m.bracket.value != "{":
        return SyntaxMistake("unexpected '='", "'==' compares")
    if not m.statement:
        cells = re.search(r"\b[A-Za-z]{1,3}\d+:[A-Za-z]{1,3}\d+", m.source)
        hint = "a range of cells is a tensor with a name, as in sum(x) with x=[1,2,3] or x=@data.csv:column"
        return SyntaxMistake("a name should stand before '='", hint if cells else "write name = value")
    if m.head in {"if", "while"} or "ELSE" in m.expected:
        return SyntaxMistake("'=' binds a name, it does not compare", Proposal("write '=='", "=="))
    return None


def _colon(m: ErrorContext) -> SyntaxMistake | None:
    if m.token.value != ":":
        return None
    if m.bracket and m.bracket.value == "[":
        hint = "an index has at most start:stop:step, as in x[1:9:2]"
    else:
        hint = "':' stands behind the head of a block, behind lambda, and in an index, as in x[1:3]"
    return SyntaxMistake("unexpected ':'", hint)


def _brace(m: ErrorContext) -> SyntaxMistake | None:
    if m.token.value != "{":
        return None
    following = m.following.type if m.following is not None else END
    elsewhere = re.search(r"(?<!\w)([A-Z]\w+)\[", m.source)
    if elsewhere is not None and elsewhere[1].casefold() in FOREIGN_COMMANDS:
        return SyntaxMistake("unexpected '{'", FOREIGN_COMMANDS[elsewhere[1].casefold()])
    if following == "STRING":
        return SyntaxMistake("dicts are not part of the language", "write a name for each value, as in a = 1; b = 2")
    return SyntaxMistake(
        "unexpected '{'",
        "braces hold the block of an if, for or while; [a, b] builds a tensor",
    )


_BLOCKS = {
    "if": "write if condition { … }, or ':' and the block",
    "elif": "write elif condition { … }, or ':' and the block",
    "else": "write else { … }, or ':' and the block",
    "for": "write for name in range(n) { … }, or ':' and the block",
    "while": "write while condition { … }, or ':' and the block",
    "def": "write def f(x): and the block",
}


def _no_block(m: ErrorContext) -> SyntaxMistake | None:
    if "LBRACE" not in m.expected:
        return None
    hint = _BLOCKS.get(m.head)
    return SyntaxMistake("a block { … } should follow here", hint, _gap(m))


def _no_in(m: ErrorContext) -> SyntaxMistake | None:
    if "IN" not in m.expected:
        return None
    return SyntaxMistake("'in' should follow the name of a loop", _BLOCKS["for"], _gap(m))


def _no_else(m: ErrorContext) -> SyntaxMistake | None:
    ends = {END, "SEPARATOR"}
    if "ELSE" not in m.expected or "SEPARATOR" in m.expected:
        return None
    if m.token.type in ends or m.token.value in {*CLOSING.values(), ",", ":"}:
        return SyntaxMistake("the condition has no 'else'", "write a if condition else b", _gap(m))
    return None


def _gap(m: ErrorContext) -> Span:
    """The span of the token, or the empty span after the last token where the text or line ends."""
    if m.token.type not in {END, "SEPARATOR"} or m.token.value == ";":
        return place(m.token)
    end = m.previous.end_pos if m.previous else 0
    return Span(end, end)


def _percent(m: ErrorContext) -> SyntaxMistake | None:
    """`x + 5%`, which on a calculator is 105 % of x."""
    if not (m.after("%") and m.wants_expression and len(m.statement) > 3):
        return None
    sign, number, percent = m.statement[-3:]
    if sign.value not in ("+", "-") or number.type != "NUMBER":
        return None
    one, other = f"{sign.value} {number.value}/100", f"*(1 {sign.value} {number.value}/100)"
    return SyntaxMistake(
        f"this can be read as {one} and as {other}",
        Proposal(f"write {one} for a number, {other} for a share of it all", one, other),
        Span(sign.start_pos, percent.end_pos),
    )


def _end(m: ErrorContext) -> SyntaxMistake | None:
    if m.token.type not in {END, "SEPARATOR"} or m.token.value == ";":
        return None
    if m.token.type == END and m.previous is None:
        return SyntaxMistake("the expression is empty", None, _gap(m))
    what = "a name" if m.wants_name else "an expression"
    where = "the program" if m.token.type == END else "the line"
    hint = "a line goes on inside brackets" if m.token.type != END else None
    if m.wants_name or m.wants_expression:
        return SyntaxMistake(f"{where} ends where {what} should follow", hint, _gap(m))
    return SyntaxMistake(f"{where} ends too early", _BLOCKS.get(m.head), _gap(m))


_WORDS = {
    "else": ("'else' without 'if'", "write if condition { … } else { … } or a if condition else b"),
    "in": ("unexpected 'in'", "it belongs to a loop: for name in range(n) { … }"),
    "for": ("unexpected 'for'", "a loop is a statement: for name in range(n) { … }"),
    "while": ("unexpected 'while'", "a loop is a statement: while condition { … }"),
    "if": ("unexpected 'if'", "within an expression, write a if condition else b"),
    "backward": ("unexpected 'backward'", "it follows a function: f(x) = … backward(g) = …"),
    "not": ("unexpected 'not'", "put brackets around it: (not x)"),
}


def _misplaced_word(m: ErrorContext) -> SyntaxMistake | None:
    return SyntaxMistake(*_WORDS[m.token.value]) if m.token.value in _WORDS else None


_NUMBER = re.compile(r"[\w.]+")


def _bad_number(m: ErrorContext) -> SyntaxMistake | None:
    if not (m.touching and m.previous and m.previous.type == "NUMBER"):
        return None
    match = _NUMBER.match(m.source, m.previous.start_pos)
    assert match is not None
    text, tail = match.group(), m.token.value
    if re.match(r"0[xXoObB][0-9a-fA-F]", text):
        hint = "numbers are decimal, as in 10 or 1e-3"
    elif tail in {"e", "E"}:
        hint = f"an exponent has digits, as in 1e-3; write {m.previous.value}*e to multiply by e"
    elif tail in {"f", "F"} and "." in m.previous.value:
        hint = Proposal(f"write {m.previous.value}", m.previous.value)
    elif tail in {"d", "D"} and m.following is not None and m.following.value in ("+", "-"):
        hint = f"an exponent is written with e, as in {m.previous.value}e-3"
    elif tail.startswith("_"):
        hint = "write single '_' between digits, as in 1_000"
    elif m.token.type == "NUMBER":
        hint = "a number has one '.', as in 1.5"
    else:
        return None
    return SyntaxMistake(f"'{_cut(text)}' is not a number", hint, Span(*match.span()))


def _bars(m: ErrorContext) -> SyntaxMistake | None:
    if m.token.value != "|" or not m.wants_expression:
        return None
    close = m.source.find("|", m.token.end_pos)
    within = (m.source[m.token.end_pos : close].strip() if close > 0 else "") or "x"
    hint: str = f"write abs({within}) for an absolute value"
    if close > 0:
        hint = Proposal(hint, f"abs({within})", span=Span(m.token.start_pos, close + 1))
    return SyntaxMistake("'|' stands between truth values", hint)


# Words of English sentences that are not usual names of variables.
_OF_SENTENCES = {
    "of",
    "from",
    "to",
    "wrt",
    "the",
    "root",
    "squared",
    "cubed",
    "base",
    "degrees",
    "between",
    "respect",
    "where",
}


def _sentence(m: ErrorContext) -> SyntaxMistake | None:
    """A question in words, such as `derivative of x^2`."""
    first = re.match(r"\s*([A-Za-z]+)\s+[\w(|\\√]", m.source)
    if first is not None and m.previous is not None and first[1].casefold() in FOREIGN_COMMANDS:
        return SyntaxMistake("a program is a formula, and no sentence", FOREIGN_COMMANDS[first[1].casefold()])
    for token in (m.token, m.following, m.previous):
        if token is not None and token.type == "NAME" and token.value in _OF_SENTENCES:
            return SyntaxMistake("a program is a formula, and no sentence", "write it in signs, as in sqrt(2) + x^2")
    return None


def _side_by_side(m: ErrorContext) -> SyntaxMistake | None:
    values = {"NAME", "NUMBER", "STRING"}
    begins = m.token.type in values or _is_value(m.token) or m.token.value == "not"
    if m.previous is None or not begins or m.wants_expression or m.wants_name:
        return None
    factors = {"NAME", "NUMBER"}
    call = _call_without_brackets(m.previous, m.token, m.source)
    if call is not None:
        return call
    if m.previous.type in factors and m.token.type in factors:
        product = f"{_short(m.previous)}*{_short(m.token)}"
        both = Span(m.previous.start_pos, m.token.end_pos)
        hint: str = Proposal(f"write {product} to multiply", product, span=both)
    else:
        hint = "write '*' to multiply, ';' between statements"
    message = f"missing operator or separator between {_quoted(m.previous)} and {_quoted(m.token)}"
    return SyntaxMistake(message, hint)


# Two operands behind a function, with or without a comma between them.
_TWO_OPERANDS = re.compile(r"\s+([\w.]+)[\s,]+([\w.]+)")


def _call_without_brackets(function: Token, operand: Token, source: str) -> SyntaxMistake | None:
    """A function with its operands beside it, as in sin x and max x y; None for other names."""
    two = _TWO_OPERANDS.match(source, function.end_pos) if function.value in FUNCTIONS_OF_TWO else None
    if two is not None:
        arguments, end, what = f"{two[1]}, {two[2]}", two.end(), "arguments stand"
    elif function.value in FUNCTIONS_WITHOUT_PARENTHESES and function.type == "NAME":
        arguments, end, what = _short(operand), operand.end_pos, "argument stands"
    else:
        return None
    call = f"{function.value}({arguments})"
    message = f"'{function.value}' is a function, and its {what} in brackets"
    return SyntaxMistake(message, Proposal(f"write {call}", call), Span(function.start_pos, end))


def _short(token: Token) -> str:
    return token.value if len(token.value) <= 40 else "…"


def _no_expression(m: ErrorContext) -> SyntaxMistake | None:
    if m.wants_name:
        return SyntaxMistake(f"a name should stand before {_quoted(m.token)}")
    if not m.wants_expression:
        return None
    if m.previous is None or not m.statement:
        hint = f"an expression should stand before {_quoted(m.token)}"
    else:
        hint = f"an expression should follow {_quoted(m.previous)}"
    return SyntaxMistake(f"unexpected {_quoted(m.token)}", hint)


def _comma(m: ErrorContext) -> SyntaxMistake | None:
    if m.token.value != "," or (m.bracket and m.bracket.value != "{"):
        return None
    return SyntaxMistake("unexpected ','", "[a, b] builds a tensor")


def _anything(m: ErrorContext) -> SyntaxMistake:
    hint = f"'{m.bracket.value}' is still open" if m.bracket and m.bracket.value != "{" else None
    return SyntaxMistake(f"unexpected {_quoted(m.token)}", hint)


_RULES = (
    _foreign_word,
    _backward_call,
    _reserved_word,
    _foreign_operator,
    _unpacking,
    _membership,
    _decorator,
    _equals,
    _colon,
    _brace,
    _bad_number,
    _bars,
    _no_block,
    _no_in,
    _no_else,
    _percent,
    _end,
    _sentence,
    _side_by_side,
    _misplaced_word,
    _no_expression,
    _comma,
    _anything,
)


# --- the context of a syntax error: tokens before and after it, its statement, and the open bracket


class ErrorContext(NamedTuple):
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
        """True if the token follows the previous one without a space."""
        return self.previous is not None and self.previous.end_pos == self.token.start_pos


def error_context(source: str, unexpected: UnexpectedToken) -> ErrorContext:
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
    return ErrorContext(
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
