"""Errors for ambiguous syntax, with both readings as proposals."""

from __future__ import annotations

from gradcli.errors import ProgramSyntaxError, Proposal, Span


class AmbiguousSyntax(Exception):
    """Raised by semantic actions for ambiguous syntax. In the texts of both readings, `{0}`, `{1}` … stand for the
    source at `parts`."""

    def __init__(self, span: Span, one: str, other: str, *parts: Span, hint: str = "write {one} or {other}") -> None:
        super().__init__(span)
        self.span = span
        self.texts = (one, other)
        self.parts = parts
        self.hint = hint

    def error(self, source: str) -> ProgramSyntaxError:
        """The error to report, given the source of the program."""
        given = [source[p.start : p.end] for p in self.parts]
        one, other = (text.format(*given) for text in self.texts)
        programs = [text for text, mark in ((one, "{one}"), (other, "{other}")) if mark in self.hint]
        hint = Proposal(self.hint.format(*given, one=one, other=other), *programs, span=self.span)
        return two_readings(self.span, one, other, hint)


def two_readings(span: Span, one: str, other: str, hint: str | None = None) -> ProgramSyntaxError:
    """The error for a span that can be read in two ways."""
    return ProgramSyntaxError(
        f"this can be read as {one} and as {other}", hint=hint or f"write {one} or {other}", span=span
    )
