"""Every error and warning a user can see: what, where, and what to do about it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple, Self


class ExitStatus(IntEnum):
    SUCCESS = 0
    FAILURE = 1
    USAGE = 2
    INTERRUPTED = 130


class Span(NamedTuple):
    """A half-open range of character offsets into a source text."""

    start: int
    end: int


class Position(NamedTuple):
    """Line and column as a person counts them, from 1."""

    line: int
    column: int


def position(source: str, span: Span) -> Position:
    line_start = source.rfind("\n", 0, span.start) + 1
    return Position(source.count("\n", 0, span.start) + 1, span.start - line_start + 1)


_WINDOW = 96


def caret_text(source: str, span: Span) -> str:
    """The source line of `span` and a line of carets under it, cut to a window around the carets.

    Where the source has several lines, the number of this one stands before it.
    """
    line_start = source.rfind("\n", 0, span.start) + 1
    line_end = source.find("\n", span.start)
    line = source[line_start : line_end if line_end >= 0 else len(source)]
    start = span.start - line_start
    end = max(start + 1, min(span.end - line_start, len(line)))
    line, start, end = _window(line, start, end)
    shown = [c if c.isprintable() else " " for c in line]
    marks = " " * sum(map(_width, shown[:start]))
    carets = "^" * max(1, sum(map(_width, shown[start:end])))
    number = f"{position(source, span).line} " if "\n" in source.strip() else "  "
    return f"{number}| {''.join(shown)}\n{' ' * len(number)}| {marks}{carets}"


def _window(line: str, start: int, end: int) -> tuple[str, int, int]:
    if len(line) <= _WINDOW:
        return line, start, end
    left = max(0, min(start - _WINDOW // 3, len(line) - _WINDOW))
    right = min(len(line), left + _WINDOW)
    head, tail = "…" if left else "", "…" if right < len(line) else ""
    shift = len(head) - left
    return head + line[left:right] + tail, start + shift, min(end, right) + shift


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def with_word_replaced(text: str, word: str, by: str) -> str:
    """A text with something else in the place of a whole word, wherever that stands."""
    return re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _: by, text)


class Proposal(str):
    """A hint that says what to write: each of `texts` in place of `span` of the source, or of what the error points at
    where that is None; with `word` in place of this word in it, and with `whole` in place of the whole program.

    `otherwise` is the hint where a program that comes of it does not run.
    """

    texts: tuple[str, ...]
    span: Span | None
    word: str | None
    whole: bool
    otherwise: str | None

    def __new__(
        cls,
        hint: str,
        *texts: str,
        span: Span | None = None,
        word: str | None = None,
        whole: bool = False,
        otherwise: str | None = None,
    ) -> Self:
        made = super().__new__(cls, hint)
        made.texts, made.span, made.word, made.whole, made.otherwise = texts, span, word, whole, otherwise
        return made

    def programs(self, source: str, pointed_at: Span) -> Iterator[tuple[str, Span]]:
        """Each program that comes of it, and the place in that of what is new."""
        start, end = (0, len(source)) if self.whole else self.span or pointed_at
        for text in self.texts:
            part = source[start:end]
            new = text if self.word is None else with_word_replaced(part, self.word, text)
            yield source[:start] + new + source[end:], Span(start, start + len(new))

    def moved(self, offset: int) -> Proposal:
        """The same for a text that stands at an offset of another one."""
        moved = self.saying(str(self))
        moved.span = self.span and Span(self.span.start + offset, self.span.end + offset)
        return moved

    def saying(self, hint: str) -> Proposal:
        """The same in other words."""
        return Proposal(hint, *self.texts, span=self.span, word=self.word, whole=self.whole, otherwise=self.otherwise)


# Comparing words takes time with the product of their lengths.
_LONGEST_WORD = 64
_MOST_WORDS = 2_000
# The share of letters in which words are alike that may be meant for each other.
_LEAST_ALIKE = 0.5
# Letters of an abbreviation, and those that it leaves out: `matrix` is none of `matrix_exp`.
_SHORTEST_BEGINNING, _LONGEST_REST = 3, 3
# Candidates whose letters are compared one by one, and those that are proposed, each where the one before does not run.
_MOST_ALIKE, _MOST_PROPOSED = 10, 3


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `word` is a misspelling of, as far as its letters say, or None where there is none, or too
    many to look through."""
    return next(iter(alike(word, candidates)), None)


def alike(word: str, candidates: Iterable[str]) -> list[str]:
    """The candidates that `word` may be a misspelling of, the most similar first."""
    import difflib

    known = [candidate for candidate in candidates if len(candidate) <= _LONGEST_WORD]
    if len(word) > _LONGEST_WORD or len(known) > _MOST_WORDS:
        return []
    # Letters in another case are no mistake, but count where two differ by them alone.
    folded = {f"{candidate.casefold()} {candidate}": candidate for candidate in sorted(known)}
    found = difflib.get_close_matches(f"{word.casefold()} {word}", folded, n=_MOST_ALIKE, cutoff=_LEAST_ALIKE)
    near = [folded[each] for each in found if _is_misspelt(word.casefold(), folded[each].casefold())]
    # Letters are swapped more often than left out: `tahn` is `tanh`.
    return sorted(near, key=lambda each: sorted(each.casefold()) != sorted(word.casefold()))


def _is_misspelt(word: str, candidate: str) -> bool:
    """Whether a word is another one but for a mistake in every third letter at most, or its beginning: what sounds alike
    and is further away is another word."""
    rest = candidate.removeprefix(word) if len(word) >= _SHORTEST_BEGINNING else candidate
    begins = rest != candidate and (len(rest) <= _LONGEST_REST or rest.startswith(" "))
    # Who knows a word has its first letter right, or swaps it with the second: `seq` is not `eq`, nor `rnorm` `norm`.
    first, wanted = word.strip("-_")[:2], candidate.strip("-_")[:2]
    alike = first[:1] == wanted[:1] or first == wanted[::-1]
    return begins or (alike and _edits(word, candidate) <= max(1, len(word) // 3))


def _edits(one: str, other: str) -> int:
    """How many letters are to be inserted, left out, replaced or swapped with the next one to make a word another one."""
    previous: list[int] = []
    before: list[int] = []
    row: list[int] = [*range(len(other) + 1)]
    for i, letter in enumerate(one, start=1):
        previous, before = before, row
        row = [i]
        for j, wanted in enumerate(other, start=1):
            edits = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and (letter, one[i - 2]) == (other[j - 2], wanted):
                edits = min(edits, previous[j - 2] + 1)
            row.append(edits)
    return row[-1]


def did_you_mean(word: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """The hint for a word that is not one of those `known`: the nearest of them, or else what is given."""
    hint = otherwise
    for close in reversed(alike(word, known)[:_MOST_PROPOSED]):
        hint = Proposal(f"did you mean '{close}'?", close, word=word, otherwise=hint)
    return hint


# Characters of a message: what a program names may be a megabyte long.
_LONGEST_MESSAGE = 1_000


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_MESSAGE:
        return text
    short = f"{text[: _LONGEST_MESSAGE // 2]} … {text[-_LONGEST_MESSAGE // 4 :]}"
    return text.saying(short) if isinstance(text, Proposal) else short


# Characters of a text, such as a field of a table, that a message shows.
_MOST_SHOWN = 40


def beginning(text: str) -> str:
    """What a message shows of a text."""
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"


class GradcliError(Exception):
    """The base of every error that gradcli raises on purpose.

    `source` is the text the error points into and `span` the place in it; both may be filled in
    by `locate` on the way up, by the first caller that knows them.
    """

    kind = "error"
    exit_status = ExitStatus.FAILURE

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        span: Span | None = None,
        source: str | None = None,
    ) -> None:
        self.message = _shortened(message)
        super().__init__(self.message)
        self.hint = hint and _shortened(hint)
        self.span = span
        self.source = source

    def locate(self, span: Span | None, source: str | None = None) -> None:
        """Fill in what is not known yet; an inner place is never overwritten by an outer one."""
        if self.span is None:
            self.span = span
        if self.source is None:
            self.source = source

    @property
    def position(self) -> Position | None:
        if self.source is None or self.span is None:
            return None
        return position(self.source, self.span)

    def report(self) -> str:
        """The error as people read it: the message, the place with a caret, the hint."""
        lines = [f"error: {self.message}"]
        if self.source is not None and self.span is not None:
            lines.append(caret_text(self.source, self.span))
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, object]:
        """The error as programs read it: kind, message, line, column, hint."""
        place = self.position
        return {
            "kind": self.kind,
            "message": self.message,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "hint": self.hint,
        }


@contextmanager
def pointing_into(source: str | None, span: Span | None = None) -> Iterator[None]:
    """Within the block, an error without a text gets `source`, if there is one, and one without a place gets `span`."""
    try:
        yield
    except GradcliError as error:
        error.locate(span, source)
        raise


def internal(error: BaseException) -> GradcliError:
    """The error that says of another, which nobody foresaw, that it is a fault of gradcli."""
    return GradcliError(
        f"internal error: {type(error).__name__}: {error}",
        hint="this is a fault of gradcli; --traceback shows where",
    )


class UsageError(GradcliError):
    """Wrong options or arguments."""

    kind = "usage"
    exit_status = ExitStatus.USAGE


class ProgramSyntaxError(GradcliError, ValueError):
    """Text that is not a program."""

    kind = "syntax"
    exit_status = ExitStatus.USAGE


class UnknownNameError(GradcliError, NameError):
    """A name, function, method or attribute that does not exist."""

    kind = "name"
    exit_status = ExitStatus.USAGE


class CallError(GradcliError, TypeError):
    """A function called with the wrong number or names of arguments."""

    kind = "call"
    exit_status = ExitStatus.USAGE


class ArgumentError(GradcliError, ValueError):
    """A function called with a value that it does not take, or with two that exclude each other."""

    kind = "call"
    exit_status = ExitStatus.USAGE


class BindingError(GradcliError, ValueError):
    """A NAME=VALUE that cannot be read or does not fit the program."""

    kind = "binding"
    exit_status = ExitStatus.USAGE


def expect(value: object, kinds: type | tuple[type, ...], what: str) -> None:
    """Raise CallError, which says `what` was to be given, where `value` is no instance of `kinds`."""
    if not isinstance(value, kinds):
        raise CallError(f"{what}, not {type(value).__name__}")


def expect_callable(value: object, what: str) -> None:
    """Raise CallError, which says `what` was to be given, where `value` cannot be called."""
    if not callable(value):
        raise CallError(f"{what}, not {type(value).__name__}")


def expect_function(value: object) -> None:
    """Raise CallError where what is to be differentiated, or mapped, cannot be called."""
    expect_callable(value, "the first argument is a function of tensors")


def flag(value: object, what: str) -> bool:
    """A truth value. Raises CallError for what is none, such as an array of several."""
    try:
        return bool(value)
    except Exception:
        raise CallError(f"{what} is True or False, not {type(value).__name__}") from None


class EvaluationError(GradcliError, RuntimeError):
    """A program that is right but has no value for these operands."""

    kind = "evaluation"


class ShapeError(EvaluationError, ValueError):
    """Operands whose shapes do not fit together, or an index or axis outside a shape."""

    kind = "shape"


class SeveralTensorsError(EvaluationError):
    """Several tensors, which a function gives, where one is needed; `names` are theirs, or their numbers."""

    names: tuple[str | int, ...] = ()
    # Whether they are the value of the program itself.
    of_program = False


class LimitError(EvaluationError):
    """A limit on steps, array elements, time or memory was reached."""

    kind = "limit"


class NotRecordableError(EvaluationError):
    """What happens next depends on numbers that a program, while it is recorded, does not know."""


class NotBatchableError(EvaluationError):
    """What happens next depends on numbers that are others in each row of a batch."""


class DifferentiationError(GradcliError, RuntimeError):
    """A value that cannot be differentiated as asked."""

    kind = "differentiation"


class DtypeError(DifferentiationError, ValueError):
    """Numbers of a dtype that has no derivatives."""


class CheckpointError(DifferentiationError):
    """A checkpoint that computes something else the second time, or is used where it cannot be."""


class GradcheckError(DifferentiationError):
    """A derivative that is not what a check says it is."""


class ExpectationError(DifferentiationError, AssertionError):
    """A function, or what is to be checked of it, that no check can be made of."""


class MissingRuleError(DifferentiationError, NotImplementedError):
    """A derivative that is not known."""


class BackendError(GradcliError):
    """An array library, one of its devices or functions that is not there."""

    kind = "backend"


class UndecidedError(GradcliError):
    """At a precision it cannot be told which of two numbers is larger, or whether one is in a domain.

    What runs programs catches it, and runs them again at a higher precision.
    """

    kind = "undecided"

    def at_most(self, digits: int) -> UndecidedError:
        """The same with the digits that were not enough."""
        return UndecidedError(
            f"{self.message} with {digits:,} digits",
            hint="--max-precision allows more; what is equal is not told apart by any",
            span=self.span,
            source=self.source,
        )


class AccuracyWarning(UserWarning):
    """Derivatives of which less than half of the digits are right."""


class RowWarning(UserWarning):
    """Rows of a table that failed, and have no results."""


class PipeClosed(Exception):
    """The reader of the results has gone; there is nobody to tell."""


class OutputError(GradcliError):
    """A result that could not be written."""

    kind = "output"
