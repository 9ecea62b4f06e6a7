"""Parses source text to a syntax tree, and turns parser failures into errors with hints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from gradcli.errors import GradcliError, ProgramSyntaxError, Proposal, Span
from gradcli.language.syntax import build_expressions, build_statements, lalr, layout, lexer, parse_tables, tree
from gradcli.language.syntax.build_expressions import AmbiguousSyntax, two_readings
from gradcli.language.syntax.layout import bracketed_text
from gradcli.language.syntax.lexer import Token
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import Any

_OPENING, _CLOSING = ("LPAR", "LSQB", "LBRACE", "INDENT"), ("RPAR", "RSQB", "RBRACE", "DEDENT")
# The semantic actions, by the names that the grammar gives them.
ACTIONS = {**vars(build_expressions), **vars(build_statements)}


# A function that parses a text. It raises GradcliError, AmbiguousSyntax and UnexpectedToken.
Read = Callable[[str], Any]


class ParsedStatement(NamedTuple):
    """A statement of a text that may have equations.

    `statements` are its meaning in a program, None where it has none, and `sides` those of its `=`, if it has one.
    """

    statements: tuple[tree.Statement, ...] | None
    sides: tuple[tree.Expression, tree.Expression] | None = None


def parse(source: str) -> tree.Module:
    """The syntax tree of a program. Raises ProgramSyntaxError, located in `source`."""
    return tree.Module(Span(0, len(source)), source, program_body(_parse(source, _whole_program), source))


def parse_equations(source: str) -> list[ParsedStatement]:
    """The statements of a text in which any expression may be on the left of `=`.

    Raises ProgramSyntaxError, located in `source`.
    """
    said: list[ParsedStatement] = _parse(source, _equations)
    return said


class TimedStatement(NamedTuple):
    """`at name = times: statements`, and its place in the text."""

    name: str
    times: tree.Expression
    statements: tuple[tree.Statement, ...]
    span: Span


def parse_timed_equations(source: str) -> list[ParsedStatement | TimedStatement]:
    """Parse equations as `parse_equations` does, and statements that run at given times: `at t = 12, 24: x += dose`.

    Raises ProgramSyntaxError, located in `source`.
    """
    said: list[ParsedStatement | TimedStatement] = _parse(source, _timed_equations)
    return said


def program_body(body: tuple[tree.Statement, ...], source: str) -> tuple[tree.Statement, ...]:
    """The statements of a program, with the call of a final `def` appended. Raises ProgramSyntaxError if empty."""
    if not body:
        raise ProgramSyntaxError(
            "the program is empty",
            hint="write an expression, as in log(x**q)",
            span=Span(len(source), len(source)),
            source=source,
        )
    return (*body, *_call_of_the_last(body))


def _call_of_the_last(body: tuple[tree.Statement, ...]) -> tuple[tree.Statement, ...]:
    """The call of a final `def` in a program that evaluates nothing, with inputs named like its parameters."""
    last = body[-1]
    if not (isinstance(last, tree.Define) and isinstance(last.body, tree.Block)):
        return ()
    if any(isinstance(s, tree.Evaluate) and not isinstance(s.value, tree.String) for s in body):
        return ()
    given = tuple(tree.Keyword(p.span, p.name, tree.Input(p.span, p.name, p.default)) for p in last.parameters)
    call = tree.Call(last.name_span, last.name, last.name_span, None, (), given, "")
    return (tree.Evaluate(last.name_span, call),)


def parse_expression(source: str) -> tree.Expression:
    """The syntax tree of a single expression. Raises ProgramSyntaxError, located in `source`."""
    expression: tree.Expression = _parse(source, lambda text: _read(text, "expression", lines=False))
    return expression


def _parse(source: str, read: Read) -> Any:
    try:
        return read(source)
    except GradcliError as found:
        error: GradcliError = found
    except AmbiguousSyntax as ambiguous:
        unclear = ambiguous.error(source)
        unclear.locate(None, source)
        raise unclear from None
    except lalr.UnexpectedToken as unexpected:
        error = _explained(source, unexpected)
    error.locate(None, source)
    _propose(error, source, read)
    raise error from None


def _whole_program(source: str) -> tuple[tree.Statement, ...]:
    body: tuple[tree.Statement, ...] = _read(source, "program", lines=True)
    return body


# A function that parses the tokens of one statement.
ReadTokens = Callable[[Sequence[lexer.Token]], tuple[tree.Statement, ...]]


def _equations(source: str) -> list[ParsedStatement]:
    parts, read = _parts(source)
    return [_parsed_statement(part, read) for part in parts]


def _timed_equations(source: str) -> list[ParsedStatement | TimedStatement]:
    parts, read = _parts(source)
    return [_timed(part, read) if _is_timed(part) else _parsed_statement(part, read) for part in parts]


def _parts(source: str) -> tuple[Iterator[list[lexer.Token]], ReadTokens]:
    """The tokens of each statement, and what reads them."""
    prepared = parse_tables.load()
    lexer.check_text(source)

    def read(part: Sequence[lexer.Token]) -> tuple[tree.Statement, ...]:
        end = lexer.Token(lexer.END, "", part[-1].end_pos, part[-1].end_pos)
        found: tuple[tree.Statement, ...] = lalr.run(prepared, "program", iter([*part, end]), ACTIONS)
        return found

    return _statements(tokens(source, prepared, lines=True)), read


def _is_timed(part: Sequence[lexer.Token]) -> bool:
    return part[0].value == "at" and len(part) > 1 and part[1].type == "NAME"


def _timed(part: Sequence[lexer.Token], read: ReadTokens) -> TimedStatement:
    whole = _between(part[0], part[-1])
    colon = next((i for i, token in enumerate(part) if token.type in ("COLON", "LBRACE")), len(part))
    times, does = part[3:colon], [*part[colon:]]
    if does and does[0].type == "COLON":
        del does[0]
    if does and does[0].type == "LBRACE" and does[-1].type == "RBRACE":
        does = does[1:-1]
    if part[2:3] == [] or part[2].type != "EQUAL" or not times or not does:
        raise ProgramSyntaxError(
            "'at' says at which times something happens, and what",
            hint="at t = 12, 24: x += 5",
            span=whole,
        )
    when, *more = read(times)
    if more or not isinstance(when, tree.Evaluate):
        raise ProgramSyntaxError(
            "the times are numbers", hint="at t = 12, 24: x += 5", span=_between(times[0], times[-1])
        )
    return TimedStatement(part[1].value, when.value, read(does), whole)


def _statements(found: Iterable[lexer.Token]) -> Iterator[list[lexer.Token]]:
    """The tokens of each top-level statement."""
    part: list[lexer.Token] = []
    depth = 0
    for token in found:
        depth += (token.type in _OPENING) - (token.type in _CLOSING)
        if token.type == lexer.END or (token.type == "SEPARATOR" and depth <= 0):
            if part:
                yield part
            part = []
        else:
            part.append(token)


def _parsed_statement(part: Sequence[lexer.Token], read: ReadTokens) -> ParsedStatement:
    """A statement, with both sides of its `=` where it is no other assignment and both are expressions."""
    places, depth = [], 0
    for i, token in enumerate(part):
        depth += (token.type in _OPENING) - (token.type in _CLOSING)
        if depth == 0 and token.type in ("EQUAL", "COLON", "BACKWARD"):
            places.append(i)
    if not places or part[places[0]].type != "EQUAL" or any(part[i].type != "COLON" for i in places[1:]):
        return ParsedStatement(read(part))
    left, right = part[: places[0]], part[places[0] + 1 :]
    sides = [read(side) for side in (left, right) if side]
    if len(sides) < 2 or not all(len(side) == 1 and isinstance(side[0], tree.Evaluate) for side in sides):
        return ParsedStatement(read(part))
    try:
        statements = read(part)
    except ProgramSyntaxError:
        statements = None
    return ParsedStatement(statements, (sides[0][0].value, sides[1][0].value))  # type: ignore[attr-defined]


def _read(source: str, start: str, *, lines: bool) -> Any:
    prepared = parse_tables.load()
    lexer.check_text(source)
    return lalr.run(prepared, start, tokens(source, prepared, lines=lines), ACTIONS)


def statement_spans(source: str) -> list[Span]:
    """The spans of the top-level statements as they were written, with library prefixes. Raises ProgramSyntaxError
    where text cannot be split into tokens, or its brackets or indentation are wrong; statements that are not grammatical
    have spans too."""
    prepared = parse_tables.load()
    lexer.check_text(source)
    parts = _statements(_laid_out(source, prepared, lines=True))
    return [Span(part[0].start_pos, max(token.end_pos for token in part if token.value)) for part in parts]


def tokens(source: str, prepared: parse_tables.Tables, *, lines: bool) -> Iterator[lexer.Token]:
    """The tokens of the grammar, with a final END; `lines` says whether newlines separate statements."""
    laid_out = _laid_out(source, prepared, lines=lines)
    if not any(word in source for word in ("import", *lexer.PREFIXES)):
        return laid_out
    # Imported here as only programs with prefixes need it.
    from gradcli.language.syntax.import_prefixes import resolve_prefixes

    return resolve_prefixes(laid_out)


def _explained(source: str, unexpected: lalr.UnexpectedToken) -> GradcliError:
    # Imported here as only wrong programs need it.
    from gradcli.language.syntax.syntax_errors import explain

    return explain(source, unexpected)


def _propose(error: GradcliError, source: str, read: Read) -> None:
    """Replace the hint of a syntax error by a correction, where the statement uses a known foreign notation."""
    from gradcli.language.syntax.foreign_notations import propose_correction

    def is_read(text: str, place: int) -> bool:
        try:
            read(text)
        except GradcliError as stopped:
            return stopped.span is not None and stopped.span.start > place
        except AmbiguousSyntax:
            return False
        except lalr.UnexpectedToken as stopped:
            return stopped.token.start_pos > place
        return True

    if isinstance(error, ProgramSyntaxError) and error.span is not None:
        proposed = propose_correction(source, error.span.start, is_read)
        if proposed is not None:
            proposed.otherwise = proposed.otherwise or error.hint
            error.hint = proposed


def _laid_out(source: str, prepared: parse_tables.Tables, *, lines: bool) -> Iterator[lexer.Token]:
    """The tokens with those of the layout, and the prefixes of libraries as they were written."""
    words = resolve_soft_keywords(lexer.scan(source, prepared))
    return layout.apply_layout(insert_implicit_products(words, source), source, lines=lines)


# --- soft keywords

_BEGINS_A_STATEMENT = {"SEPARATOR", "LBRACE", "RBRACE", "COLON"}
_ENDS_A_STATEMENT = {"SEPARATOR", "RBRACE", ""}
_BEGINS_AN_EXPRESSION = {
    "NAME", "NUMBER", "STRING", "LPAR", "LSQB", "PLUS", "MINUS", "TILDE", "NOT", "TRUE", "FALSE", "NONE",
    "LAMBDA",
}  # fmt: skip
_ENDS_AN_OPERAND = {"NAME", "NUMBER", "STRING", "RPAR", "RSQB", "TRUE", "FALSE", "NONE"}
# The types of the tokens that may follow a keyword at the beginning of a statement.
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
# The keywords that may be names.
SOFT = {*_AT_THE_BEGINNING, "LAMBDA", "IS", "AS"}


def resolve_soft_keywords(raw: Iterator[Token]) -> Iterator[Token]:
    """The tokens, with soft keywords turned into names where they are used as names."""
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
    """Return whether a soft keyword is used as a keyword; `statement` is the type of the first token of its
    statement."""
    if token.type == "LAMBDA":
        return following == "NAME" or (following == "COLON" and before != "LSQB")
    if token.type == "IS":
        return before in _ENDS_AN_OPERAND and following in ("NONE", "NOT")
    if token.type == "AS":
        return statement in ("IMPORT", "FROM")
    if token.type == "IMPORT" and statement == "FROM":
        return True
    return (not before or before in _BEGINS_A_STATEMENT) and following in _AT_THE_BEGINNING[token.type]


# --- implicit products: inserts a token between a number and a directly following name, parenthesis or root

_ROOTS = {"√", "∛"}
# Notations of numbers in other languages, whose letters are not factors.
_OTHER_NUMBER = r"0[xXoObB][0-9a-fA-F_]*|[\d._]+(?:[eE_]|_\w*)|\d*\.\d*[fF]|[\d.]+[dD]\d+"
# Operators that bind at least as tightly as the implicit product, so that a product after them is ambiguous.
_BEFORE = {"/", "÷", "//", "%", "@", "**", "^", *_ROOTS}
_SIGNS = {"+", "-", "−"}


def insert_implicit_products(raw: Iterator[Token], source: str) -> Iterator[Token]:
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
    factor = f"({bracketed_text(source[token.start_pos :])})" if token.type == "LPAR" else token.value
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
    if token.value == "i":
        # Both hold whether `i` has a value or is the imaginary unit.
        one, other = f"{written}({sign}{number.value}i)", f"{written}{sign}{number.value}*1i"
        return _either(_between(first, token), one, other, whole)
    return _either(_between(first, token), f"{written}({product})", f"{written}{product}", whole)


def _is_called(name: str, source: str) -> bool:
    """Return whether a name before an exponent is that of a function, as in `sin^2(x)`, rather than a factor."""
    # Imported here as only wrong programs need it.
    from gradcli.language.syntax.foreign_notations import FUNCTIONS_WITHOUT_PARENTHESES

    return name in FUNCTIONS_WITHOUT_PARENTHESES or re.search(rf"(?<!\w){re.escape(name)}\(", source) is not None


def _either(span: Span, one: str, other: str, replaced: Span) -> ProgramSyntaxError:
    hint = Proposal(f"write {one} or {other}", one, other, span=replaced)
    return two_readings(span, one, other, hint)


def _between(first: Token, last: Token) -> Span:
    return Span(first.start_pos, last.end_pos)
