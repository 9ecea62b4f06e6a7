"""What can be read in two ways."""

from __future__ import annotations

from gradcli.errors import ProgramSyntaxError, Proposal, Span


class Readings(Exception):
    """That a place can be read in two ways. `{0}`, `{1}` … in the texts of these stand for the parts of the program's
    text that `parts` are the places of."""

    def __init__(self, span: Span, one: str, other: str, *parts: Span, hint: str = "write {one} or {other}") -> None:
        super().__init__(span)
        self.span = span
        self.texts = (one, other)
        self.parts = parts
        self.hint = hint

    def error(self, source: str) -> ProgramSyntaxError:
        """What to say of it, for the text of the program."""
        given = [source[p.start : p.end] for p in self.parts]
        one, other = (text.format(*given) for text in self.texts)
        programs = [text for text, mark in ((one, "{one}"), (other, "{other}")) if mark in self.hint]
        hint = Proposal(self.hint.format(*given, one=one, other=other), *programs, span=self.span)
        return two_readings(self.span, one, other, hint)


def two_readings(span: Span, one: str, other: str, hint: str | None = None) -> ProgramSyntaxError:
    """The error for a place in the text that can be read in two ways."""
    return ProgramSyntaxError(
        f"this can be read as {one} and as {other}", hint=hint or f"write {one} or {other}", span=span
    )
