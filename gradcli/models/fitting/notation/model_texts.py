"""Reads the text of a model, `y ~ f`, into the programs of its response and its formula."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gradcli.errors import GradcliError, ProgramSyntaxError, Span, UsageError
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple

# A '~' between two operands; before a single operand it negates truth values.
TILDE = re.compile(r"(?<=[\w)\]])[ \t]*~")
# What separates statements.
_STATEMENTS = re.compile(r"[;\n]")


class ModelText(NamedTuple):
    """The programs of the model's value and of the response, both for one row of the data. Spans in them refer to the
    text."""

    source: str
    model: tree.Module
    response: tree.Module

    @property
    def response_name(self) -> str:
        """The response as it is written."""
        return self.response.source[self.response.body[-1].span.start : self.response.body[-1].span.end]


def read_model(source: str, response: str | None = None, columns: Sequence[str] = ()) -> ModelText:
    """Read a text `y ~ f`, or a text `f` with the `response` given apart; `columns` are those of the data.

    Raises UsageError where the response is missing or given twice, and ProgramSyntaxError for invalid programs and for
    statements after the model.
    """
    found = TILDE.search(source)
    if found is None:
        if response is None:
            raise UsageError(
                "the model does not say what it is a model of", hint=_with_response(source.lstrip(" ~"), columns)
            )
        return ModelText(source, parse_charged(source), parse_charged(response))
    if response is not None:
        raise UsageError("the model says what its response is, and so does --response", hint="leave out one of them")
    start = statement_start(source, found.start())
    if not source[found.end() :].strip():
        raise ProgramSyntaxError("there is no model behind '~'", source=source, span=Span(found.end() - 1, found.end()))
    # Padding to the length of the text keeps the spans; blanks at the beginning of a line would be an indentation.
    behind = len(source) - len(source[found.end() :].lstrip(" \t"))
    first = start - source[:start].endswith("\n")
    padded = source[:first] + " " * (behind - start) + source[first:start] + source[behind:]
    try:
        program = parse_charged(padded)
    except GradcliError as error:
        error.source = source if error.source == padded else error.source
        raise
    model = tree.Module(program.span, source, program.body)
    after = next((statement for statement in program.body if statement.span.start > behind), None)
    if after is not None:
        raise ProgramSyntaxError(
            "the model ends before this",
            hint="a formula of several lines is in brackets",
            source=source,
            span=after.span,
        )
    return ModelText(source, model, parse_charged(source[start : found.start()].strip()))


def statement_start(source: str, end: int) -> int:
    """The start of the statement that contains the place `end`."""
    return max((m.end() for m in _STATEMENTS.finditer(source, 0, end)), default=0)


def has_several_responses(source: str) -> bool:
    """Return whether several statements of a model have a '~' between two operands."""
    return len({statement_start(source, tilde.start()) for tilde in TILDE.finditer(source)}) > 1


def _with_response(formula: str, columns: Sequence[str]) -> str:
    """A hint for a formula without a response, which is probably the name that it is assigned to, or the only column
    that it does not read."""
    assigned = re.fullmatch(r"\s*([^\W\d]\w*)\s*={1,2}(?!=)\s*(\S.*)", formula)
    if assigned is not None and (not columns or assigned[1] in columns):
        return f"write it as '{assigned[1]} ~ {assigned[2]}', or add --response {assigned[1]}"
    formula = formula if assigned is None else assigned[2]
    unread = [column for column in columns if not re.search(rf"(?<!\w){re.escape(column)}(?!\w)", formula)]
    if len(unread) == 1 and unread[0].isidentifier():
        return f"write it as '{unread[0]} ~ {formula}', or add --response {unread[0]}"
    return f"write the column that it is a model of in front, as in 'y ~ {formula}', or add --response y"


def rewritten(model: tree.Module, ends: Sequence[str], begins: Sequence[str] = ()) -> tree.Module:
    """A model with the statements `begins` added in front and the statements `ends` in place of its last expression,
    where `{value}` stands for that expression.

    Raises UsageError for a model that does not end with an expression.
    """
    *before, last = model.body
    if not isinstance(last, tree.Evaluate):
        raise UsageError("the model ends with no expression", hint="write its value behind it: if … else …; value")
    texts = [model.source[part.span.start : part.span.end] for part in (*before, last.value)]
    return parse_charged("\n".join([*begins, *texts[:-1], *(end.replace("{value}", f"({texts[-1]})") for end in ends)]))


class _Piece(NamedTuple):
    """A part of a composed program that is a part of the text of the model: both begin at these places."""

    start: int
    end: int
    source_start: int


class ComposedProgram:
    """A program that is composed of pieces of the text of a model and of what stands between them."""

    def __init__(self) -> None:
        self.source = ""
        self.pieces: list[_Piece] = []

    def add(self, text: str, source_start: int | None = None) -> ComposedProgram:
        if source_start is not None:
            self.pieces.append(_Piece(len(self.source), len(self.source) + len(text), source_start))
        self.source += text
        return self


class Relocation:
    """Lets errors in composed programs show the text of the model."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._composed: dict[str, ComposedProgram] = {}

    def parsed(self, composed: ComposedProgram) -> tree.Module:
        self._composed[composed.source] = composed
        return parse_charged(composed.source)

    @contextmanager
    def relocating(self) -> Iterator[None]:
        try:
            yield
        except GradcliError as error:
            composed = self._composed.get(str(error.source))
            if composed is not None:
                error.source = self._source
                error.span = self._of(composed, error.span)
            raise

    def _of(self, composed: ComposedProgram, span: Span | None) -> Span | None:
        """The place of a span in the text of the model; None where it is in no piece of that."""
        for piece in composed.pieces if span is not None else ():
            if span is not None and piece.start <= span.start and span.end <= piece.end:
                shift = piece.source_start - piece.start
                return Span(span.start + shift, span.end + shift)
        return None
