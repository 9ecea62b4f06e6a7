"""Programs that are composed of the text of a model, in whose errors the text is shown as it is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gradcli.errors import GradcliError, Span
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple


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
