"""The errors and warnings that users can see, each with a message, a place in the source, and a hint what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum

from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import Self


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
    """Line and column, counted from 1."""

    line: int
    column: int


def position(source: str, span: Span) -> Position:
    line_start = source.rfind("\n", 0, span.start) + 1
    return Position(source.count("\n", 0, span.start) + 1, span.start - line_start + 1)


# Widest part of a source line that is shown with carets, in characters.
_WINDOW = 96


def caret_text(source: str, span: Span) -> str:
    """The source line of `span` with a line of carets under it, cut to a window around the carets.

    In a source of several lines, the line number comes first.
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
    # Imported here as only reports of errors need it.
    import unicodedata

    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def with_word_replaced(text: str, word: str, by: str) -> str:
    """A text with all occurrences of a whole word replaced."""
    return re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _: by, text)


class Proposal(str):
    """A hint that proposes replacements in the source.

    Each of `texts` is one alternative. It replaces the source at `span` (None: at the error's span), or only the word
    `word` in it, or with `whole` the whole program. `otherwise` is the hint to use where no proposed program runs.
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
        """Each proposed program, with the span of the new text in it."""
        start, end = (0, len(source)) if self.whole else self.span or pointed_at
        for text in self.texts:
            part = source[start:end]
            new = text if self.word is None else with_word_replaced(part, self.word, text)
            yield source[:start] + new + source[end:], Span(start, start + len(new))

    def moved(self, offset: int) -> Proposal:
        """The same proposal for a source in which this text starts at `offset`."""
        moved = self.with_message(str(self))
        moved.span = self.span and Span(self.span.start + offset, self.span.end + offset)
        return moved

    def with_message(self, hint: str) -> Proposal:
        """The same proposal with another message."""
        return Proposal(hint, *self.texts, span=self.span, word=self.word, whole=self.whole, otherwise=self.otherwise)


# Words are compared up to this length and number, as the time is proportional to the product of their lengths.
_LONGEST_WORD = 64
_MOST_WORDS = 2_000
# Least similarity of words, as difflib measures it.
_LEAST_ALIKE = 0.5
# The fewest letters of an abbreviation, and the most that it omits: `matrix` does not abbreviate `matrix_exp`.
_SHORTEST_BEGINNING, _LONGEST_REST = 3, 3
# The most candidates whose edit distance is computed, and the most that are proposed, in order until one of them runs.
_MOST_ALIKE, _MOST_PROPOSED = 10, 3


def closest_word(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `word` is most likely a misspelling of; None where there is none, or there are too many."""
    return next(iter(similar_words(word, candidates)), None)


def similar_words(word: str, candidates: Iterable[str]) -> list[str]:
    """The candidates that `word` may be a misspelling of, the most similar first."""
    import difflib

    known = [candidate for candidate in candidates if len(candidate) <= _LONGEST_WORD]
    if len(word) > _LONGEST_WORD or len(known) > _MOST_WORDS:
        return []
    # Compared without case first; the case decides between words that are otherwise equal.
    folded = {f"{candidate.casefold()} {candidate}": candidate for candidate in sorted(known)}
    found = difflib.get_close_matches(f"{word.casefold()} {word}", folded, n=_MOST_ALIKE, cutoff=_LEAST_ALIKE)
    near = [folded[each] for each in found if _is_misspelt(word.casefold(), folded[each].casefold())]
    # Candidates of the same letters come first: swapped letters are more frequent than missing ones, as in `tahn`.
    return sorted(near, key=lambda each: sorted(each.casefold()) != sorted(word.casefold()))


def _is_misspelt(word: str, candidate: str) -> bool:
    """Return whether `word` is `candidate` with at most one mistake in three letters, or is an abbreviation of it."""
    rest = candidate.removeprefix(word) if len(word) >= _SHORTEST_BEGINNING else candidate
    begins = rest != candidate and (len(rest) <= _LONGEST_REST or rest.startswith(" "))
    # A misspelling has the right first letter, or the first two are swapped: `seq` is not a misspelling of `eq`.
    first, wanted = word.strip("-_")[:2], candidate.strip("-_")[:2]
    alike = first[:1] == wanted[:1] or first == wanted[::-1]
    return begins or (alike and _edits(word, candidate) <= max(1, len(word) // 3))


def _edits(one: str, other: str) -> int:
    """The restricted Damerau-Levenshtein distance: how many letters are inserted, deleted, replaced or swapped."""
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
    """The hint for an unknown word, which proposes the nearest of the `known` words, or `otherwise`."""
    hint = otherwise
    for close in reversed(similar_words(word, known)[:_MOST_PROPOSED]):
        hint = Proposal(f"did you mean '{close}'?", close, word=word, otherwise=hint)
    return hint


# Longest message in characters: the names in a program may be a megabyte long.
_LONGEST_MESSAGE = 1_000


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_MESSAGE:
        return text
    short = f"{text[: _LONGEST_MESSAGE // 2]} … {text[-_LONGEST_MESSAGE // 4 :]}"
    return text.with_message(short) if isinstance(text, Proposal) else short


# Most characters of a text, such as a field of a table, that a message shows.
_MOST_SHOWN = 40


def abbreviated(text: str) -> str:
    """The beginning of a text, with an ellipsis where it is cut."""
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"


class GradcliError(Exception):
    """The base class of all errors that gradcli raises on purpose.

    `source` is the text that the error refers to, `span` the place in it. Both may be filled in by `locate`, by the
    first caller that knows them.
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
        """Set the span and the source where they are not known yet."""
        if self.span is None:
            self.span = span
        if self.source is None:
            self.source = source

    @property
    def position(self) -> Position | None:
        if self.source is None or self.span is None:
            return None
        return position(self.source, self.span)

    def report(self, first: str | None = None) -> str:
        """The error as text for people: the `first` line (None: the message), the source line with carets, the hint."""
        lines = [first or f"error: {self.message}"]
        if self.source is not None and self.span is not None:
            lines.append(caret_text(self.source, self.span))
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, object]:
        """The error as data for JSON: kind, message, line, column, hint."""
        place = self.position
        return {
            "kind": self.kind,
            "message": self.message,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "hint": self.hint,
        }


@contextmanager
def locating(source: str | None, span: Span | None = None) -> Iterator[None]:
    """Within the block, locate errors: those without a source get `source`, those without a span get `span`."""
    try:
        yield
    except GradcliError as error:
        error.locate(span, source)
        raise


def internal(error: BaseException) -> GradcliError:
    """The error that reports an unexpected exception as a fault of gradcli."""
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


class MissingProgramError(UsageError):
    """A command line without a program. The command adds an example as the hint."""


class UnknownNameError(GradcliError, NameError):
    """A name, function, method or attribute that does not exist."""

    kind = "name"
    exit_status = ExitStatus.USAGE


class CallError(GradcliError, TypeError):
    """A function called with the wrong number or names of arguments."""

    kind = "call"
    exit_status = ExitStatus.USAGE


class ArgumentError(GradcliError, ValueError):
    """A function called with a value that it does not accept, or with two that exclude each other."""

    kind = "call"
    exit_status = ExitStatus.USAGE


class BindingError(GradcliError, ValueError):
    """A NAME=VALUE that cannot be read or does not fit the program."""

    kind = "binding"
    exit_status = ExitStatus.USAGE


class WordError(BindingError):
    """A word after the program on a command line that is not NAME=VALUE, or whose NAME is not a name."""


def expect(value: object, kinds: type | tuple[type, ...], what: str) -> None:
    """Raise CallError, with `what` as the expectation, unless `value` is an instance of `kinds`."""
    if not isinstance(value, kinds):
        raise CallError(f"{what}, not {type(value).__name__}")


def expect_callable(value: object, what: str) -> None:
    """Raise CallError, with `what` as the expectation, unless `value` is callable."""
    if not callable(value):
        raise CallError(f"{what}, not {type(value).__name__}")


def expect_function(value: object) -> None:
    """Raise CallError unless a function to be differentiated or mapped is callable."""
    expect_callable(value, "the first argument is a function of tensors")


def as_bool(value: object, what: str) -> bool:
    """A value as a bool. Raises CallError where that is impossible, as for an array of several elements."""
    try:
        return bool(value)
    except Exception:
        raise CallError(f"{what} is True or False, not {type(value).__name__}") from None


class EvaluationError(GradcliError, RuntimeError):
    """A valid program that has no value for these operands."""

    kind = "evaluation"


class ShapeError(EvaluationError, ValueError):
    """Operands whose shapes do not fit together, or an index or axis that is out of bounds."""

    kind = "shape"


class SeveralTensorsError(EvaluationError):
    """Several tensors, the results of one function, where one is needed; `names` are their names or indices."""

    names: tuple[str | int, ...] = ()
    # Whether they are the value of the whole program.
    of_program = False


class LimitError(EvaluationError):
    """A limit on steps, array elements, time or memory was reached."""

    kind = "limit"


class NotRecordableError(EvaluationError):
    """While a program is recorded, control flow depends on numbers that are not known then."""


class NotBatchableError(EvaluationError):
    """Control flow depends on numbers that differ between the rows of a batch."""


class DifferentiationError(GradcliError, RuntimeError):
    """A value that cannot be differentiated as asked."""

    kind = "differentiation"


class NonHolomorphicError(DifferentiationError):
    """A complex value of complex inputs that is not proved to have a derivative by them."""


class NotRealError(DifferentiationError, TypeError):
    """A value that has no gradient because it is complex or a truth value."""


class DtypeError(DifferentiationError, ValueError):
    """A dtype that has no derivatives, such as integers."""


class CheckpointError(DifferentiationError):
    """A checkpoint whose recomputation differs from the first one, or that is used where it is not allowed."""


class GradcheckError(DifferentiationError):
    """A derivative that a check found to be wrong."""


class ExpectationError(DifferentiationError, AssertionError):
    """A function that cannot be checked as asked."""


class MissingRuleError(DifferentiationError, NotImplementedError):
    """A primitive or function whose derivative is not defined."""


class BackendError(GradcliError):
    """An array library, device or function of a backend that is missing."""

    kind = "backend"


class UndecidedError(GradcliError):
    """A comparison, or membership in a domain, that cannot be decided at the current precision.

    The code that runs programs catches this error and repeats the run at a higher precision.
    """

    kind = "undecided"

    def at_most(self, digits: int) -> UndecidedError:
        """The error where `digits` were the most that could be used."""
        return UndecidedError(
            f"{self.message} with {digits:,} digits",
            hint="--max-precision allows more; what is equal is not told apart by any",
            span=self.span,
            source=self.source,
        )


class AccuracyWarning(UserWarning):
    """Less than half of the digits of a derivative are right."""


class RowWarning(UserWarning):
    """Rows of a table failed and have no results."""


class PipeClosed(Exception):
    """The reader of standard output has closed the pipe, so that there is nobody to report to."""


class OutputError(GradcliError):
    """A result that could not be written."""

    kind = "output"
