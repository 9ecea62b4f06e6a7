"""What is written on each box of a graph, as texts that any format can hold once it has escaped them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.cli.render import number_text
from gradcli.errors import Span
from gradcli.language.stable import stable_text
from gradcli.run.graph import Graph, GraphRequest, Vertex
from gradcli.run.outline import Box, outline

_LONGEST = 48
# Of an array with more elements only the first and the last are written.
_FEW_ELEMENTS = 6
# To say what is written on a box, and to write it, in eighths of steps.
_BOX = 40


class Label(NamedTuple):
    """A box as it is drawn. A text is empty where there is nothing to say; none has a line end, a
    control character or half a surrogate pair.

    `kind` is `leaf`, `operation` or `group`, `operands` are the numbers of labels.
    """

    kind: str
    title: str
    program: str
    shape: str
    value: str
    gradient: str
    operands: tuple[int, ...]

    @property
    def lines(self) -> list[str]:
        """The texts one under another."""
        titled = {"": self.title, "shape ": self.shape, "value ": self.value, "gradient ": self.gradient}
        written = [before + text for before, text in titled.items() if text]
        return [written[0], self.program, *written[1:]] if self.program else written


class Picture(NamedTuple):
    """What is drawn: a graph that `namespace` computed, every operation by itself where it is to `expand`."""

    graph: Graph
    request: GraphRequest
    expand: bool
    namespace: arrays.Namespace | None

    def labels(self) -> list[Label]:
        """The boxes, each after its operands."""
        texts = Texts(self.graph)
        boxes = outline(self.graph, expand=self.expand)
        limits.charge_steps(_BOX * len(boxes))
        return [_label(box, self.graph, texts, self.request) for box in boxes]


def _label(box: Box, graph: Graph, texts: Texts, request: GraphRequest) -> Label:
    results = [graph.vertices[i] for i in box.results]
    vertex = results[0] if len(results) == 1 else None
    value = gradient = ""
    if request.values and vertex is not None:
        value = _short(vertex.value)
        gradient = _short(vertex.grad) if request.gradient else ""
    return Label(
        kind=box.kind if box.kind in ("leaf", "operation") else "group",
        title=_title(box),
        program=_program(box, results, texts),
        shape=str(list(vertex.shape)) if vertex is not None and vertex.shape else "",
        value=value,
        gradient=gradient,
        operands=box.operands,
    )


def _title(box: Box) -> str:
    if box.kind == "leaf":
        return box.name or "constant"
    name = f"{box.name} × {box.times:,}" if box.kind in ("loop", "run") else box.name or "earlier"
    told = box.size == box.times and box.kind != "rest"
    counts = [] if told else [_count(box.size, "operation")]
    if box.inputs:
        counts.append(_count(box.inputs, "input"))
    return f"{name} ({', '.join(counts)})" if counts else name


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" + "s" * (n != 1)


def _program(box: Box, results: Sequence[Vertex], texts: Texts) -> str:
    text = texts.at(box.span)
    if box.kind in ("leaf", "loop", "rest"):
        return text
    names = ", ".join(vertex.name for vertex in results if vertex.name is not None)
    return f"{names} = {text}" if names and text else names or text


class Texts:
    """The text of the program at a place, or that of the stable form which was evaluated there."""

    def __init__(self, graph: Graph) -> None:
        self.source = graph.program.source
        self.stable: Mapping[Span, str] = {r.span: stable_text(r, self.source) for r in graph.rewritten}
        # Every round of a loop has the same.
        self.lines: dict[Span | None, str] = {None: ""}

    def at(self, span: Span | None) -> str:
        """At most a short line, the end of a longer one replaced by `…`."""
        line = self.lines.get(span)
        if line is None:
            assert span is not None
            text = self.stable.get(span) or self.source[span.start : min(span.end, span.start + 10 * _LONGEST)]
            line = self.lines[span] = _line(text)
        return line


def _line(text: str) -> str:
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _short(value: Any) -> str:
    """A value on one line: a number in full, the elements of an array to six digits, of many the ends."""
    if value is None or not getattr(value, "shape", ()):
        return number_text(value)
    if value.size <= _FEW_ELEMENTS:
        # Of none there may be any number of lists.
        return _nested(value.tolist()) if value.size else "[]"
    first, second, last = (f"{v:.6g}" for v in (*value.reshape(-1)[:2], value.reshape(-1)[-1]))
    return f"{first}, {second}, …, {last}"


def _nested(value: Any) -> str:
    return f"[{', '.join(map(_nested, value))}]" if isinstance(value, list) else f"{value:.6g}"
