"""Processes newlines, brackets and indentation: finds the ends of statements and the blocks after colons."""

from __future__ import annotations

from collections.abc import Iterator

from gradcli.errors import ProgramSyntaxError
from gradcli.language.syntax.lexer import END, Token, place
from gradcli.named_tuples import NamedTuple

# Deepest nesting of brackets.
MAX_NESTING = 1_000

CLOSING = {"(": ")", "[": "]", "{": "}"}
_OPENING = {closing: opening for opening, closing in CLOSING.items()}
# The first tokens of lines that continue the statement of the line before.
_CONTINUES_A_LINE = {"LBRACE", "BACKWARD"}
_CONTINUES_A_BLOCK = {"ELSE", "ELIF"}
# The first tokens of statements that may have a block after a colon.
_HEADS = {"IF", "ELIF", "ELSE", "FOR", "WHILE", "DEF"}
# Columns between tab stops, as in Python.
_TAB = 8


class _Suite(NamedTuple):
    """A block after a colon: the indentation of its lines (None if on the colon's line) and of the colon's line."""

    indent: int | None
    outer: int


def apply_layout(raw: Iterator[Token], source: str, *, lines: bool) -> Iterator[Token]:
    """The tokens of the grammar, with a final END.

    Newlines remain only where they separate statements (nowhere unless `lines`), and blocks after a colon are enclosed
    in INDENT and DEDENT. Raises ProgramSyntaxError for unmatched or too deeply nested brackets, and for inconsistent
    indentation.
    """
    return _Layout(source, lines=lines).run(raw)


class _Layout:
    def __init__(self, source: str, *, lines: bool) -> None:
        self.source = source
        self.lines = lines
        self.brackets: list[Token] = []
        # For each open bracket, and for the outermost level, the number of lambdas whose colon is still to come.
        self.lambdas = [0]
        self.suites: list[_Suite] = []
        # The separator to emit before the next token, unless that continues the statement.
        self.pending: Token | None = None
        self.closed_block = False
        # The offset of the line, the indentation of the outermost statement, and whether the next token starts a line.
        self.line = 0
        self.base = 0
        self.begins = True
        # The offset whose column was computed last, and that column.
        self.measured = (0, 0)
        # The first token of the statement, None before it.
        self.head: Token | None = None
        # The colon whose block is still to come.
        self.colon: Token | None = None

    def run(self, raw: Iterator[Token]) -> Iterator[Token]:
        for token in raw:
            if token.type == "SEPARATOR" and token.value != ";":
                yield from self._newline(token)
                continue
            if self.colon is not None or self.pending is not None:
                yield from self._begun(token)
            yield from self._placed(token)
        yield from self._ended()

    def _newline(self, token: Token) -> Iterator[Token]:
        self.line = token.end_pos
        if not self.lines or (self.brackets and self.brackets[-1].value != "{"):
            return
        yield from self._end_of_one_line(token.start_pos)
        self.begins = True
        if self.pending is None:
            self.pending = token

    def _end_of_one_line(self, at: int) -> Iterator[Token]:
        if self.suites and self.suites[-1].indent is None:
            yield from self._dedent(at)

    def _begun(self, token: Token) -> Iterator[Token]:
        """Emit the tokens that precede the first token of a line or of a block."""
        separator, self.pending = self.pending, None
        begins, self.begins = self.begins, False
        if self.colon is not None:
            yield from self._indent(token, on_its_line=separator is None)
        elif separator is not None and token.type not in _CONTINUES_A_LINE:
            if begins and self.suites and not self.brackets:
                yield from self._outdent(token, separator.start_pos)
            if not (self.closed_block and token.type in _CONTINUES_A_BLOCK):
                self.head = None
                yield separator

    def _outdent(self, token: Token, at: int) -> Iterator[Token]:
        """Close the blocks that are indented more than the line of `token`."""
        indent, wanted = self._indentation(token), self._indent_of_block
        while self.suites and indent < self._indent_of_block:
            wanted = self.suites[-1].outer
            yield from self._dedent(at)
        self.pending = None
        if indent > wanted:
            raise ProgramSyntaxError(
                "the line is indented, and no block begins with it",
                hint="indent it as a line above; a line goes on inside brackets",
                span=place(token),
            )

    @property
    def _indent_of_block(self) -> int:
        return self.suites[-1].indent or 0 if self.suites else self.base

    def _indent(self, token: Token, *, on_its_line: bool) -> Iterator[Token]:
        colon, self.colon = self.colon, None
        assert colon is not None
        outer, indent = self._indent_of_block, None if on_its_line else self._indentation(token)
        if indent is not None and self.brackets:
            raise ProgramSyntaxError(
                "within '{ }' a block behind ':' stands on its line",
                hint="write { … } in place of ':'",
                span=place(colon),
            )
        if indent is not None and indent <= outer:
            raise _no_suite(colon)
        self.suites.append(_Suite(indent, outer))
        self.head = None
        yield Token("INDENT", "", token.start_pos, token.start_pos)

    def _indentation(self, token: Token) -> int:
        # Continues from the offset measured last: a scan from the start of the line would be quadratic for long lines.
        at, column = self.measured if self.measured[0] >= self.line else (self.line, 0)
        begun = column % _TAB
        part = " " * begun + self.source[at : token.start_pos]
        self.measured = token.start_pos, column - begun + len(part.expandtabs(_TAB))
        return self.measured[1]

    def _dedent(self, at: int) -> Iterator[Token]:
        self.suites.pop()
        yield Token("DEDENT", "", at, at)
        self.closed_block = True
        self.pending = Token("SEPARATOR", "", at, at)

    def _placed(self, token: Token) -> Iterator[Token]:
        if self.head is None or (self.closed_block and token.type in _CONTINUES_A_BLOCK):
            self.head = token
            if not self.suites and not self.brackets:
                self.base = self._indentation(token)
        self.closed_block = False
        if token.value in CLOSING:
            self._open(token)
        elif token.value in _OPENING:
            yield from self._close(token)
        elif token.type == "SEPARATOR":
            self.head = None
        elif token.type == "LAMBDA":
            self.lambdas[-1] += 1
        elif token.type == "COLON":
            self._coloned(token)
        yield token
        if token.type == "LBRACE":
            self.head = None
        if token.type == "RBRACE":
            self.closed_block = True
            self.pending = Token("SEPARATOR", "", token.end_pos, token.end_pos)

    def _coloned(self, token: Token) -> None:
        if self.lambdas[-1]:
            self.lambdas[-1] -= 1
        elif self._between_statements() and self.head is not None and self.head.type in _HEADS:
            if self.suites and self.suites[-1].indent is None:
                raise ProgramSyntaxError(
                    "a block on one line has no block of its own",
                    hint="begin a new line behind the first ':'",
                    span=place(token),
                )
            self.colon = token
        elif self._between_statements() and self.head is not None and self.head.type == "NAME":
            _check_head(self.head)

    def _between_statements(self) -> bool:
        return not self.brackets or self.brackets[-1].value == "{"

    def _open(self, token: Token) -> None:
        if len(self.brackets) == MAX_NESTING:
            raise ProgramSyntaxError(f"nested more than {MAX_NESTING} deep", span=place(token))
        self.brackets.append(token)
        self.lambdas.append(0)

    def _close(self, token: Token) -> Iterator[Token]:
        if not self.brackets:
            raise ProgramSyntaxError(f"'{token.value}' closes nothing", span=place(token))
        opening = self.brackets.pop()
        self.lambdas.pop()
        if CLOSING[opening.value] != token.value:
            raise ProgramSyntaxError(
                f"'{opening.value}' is closed by '{token.value}'",
                hint=f"write '{CLOSING[opening.value]}' instead, or before it",
                span=place(token),
            )
        if token.value == "}":
            yield from self._end_of_one_line(token.start_pos)

    def _ended(self) -> Iterator[Token]:
        length = len(self.source)
        if self.brackets:
            raise ProgramSyntaxError(f"'{self.brackets[-1].value}' is never closed", span=place(self.brackets[-1]))
        if self.colon is not None:
            raise _no_suite(self.colon)
        while self.suites:
            yield from self._dedent(length)
        yield Token(END, "", length, length)


def _check_head(head: Token) -> None:
    """Raise ProgramSyntaxError for a statement with a block that the language lacks, such as `try:`."""
    # Imported only where a name starts a line with a colon, which few programs have.
    from gradcli.language.syntax.foreign_keywords import FOREIGN_WORDS, foreign_word

    if head.value in FOREIGN_WORDS:
        raise foreign_word(head.value, place(head))


def _no_suite(colon: Token) -> ProgramSyntaxError:
    return ProgramSyntaxError(
        "an indented block should follow ':'", hint="write its lines with more blanks in front", span=place(colon)
    )


def bracketed_text(text: str) -> str:
    """The text inside the bracket that a text starts with, or an ellipsis where that is not closed."""
    steps = {text[0]: 1, CLOSING[text[0]]: -1}
    depth = 0
    for end, character in enumerate(text):
        depth += steps.get(character, 0)
        if not depth:
            return text[1:end]
    return "…"
