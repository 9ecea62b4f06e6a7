"""The texts of the boxes of a graph, independent of the output format, which escapes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradcli import arrays, limits
from gradcli.errors import Span
from gradcli.evaluation.graph_view import Graph, GraphRequest, Vertex
from gradcli.evaluation.outline import GraphBox, outline
from gradcli.io.text_tables import number_text
from gradcli.language.stable.stable_expressions import stable_text
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import Any

# The maximum number of characters of a piece of program text.
_LONGEST = 48
# Arrays with more elements are abbreviated to the first two and the last.
_FEW_ELEMENTS = 6
# Cost of describing and writing one box, in eighths of a step.
_BOX = 40


class Label(NamedTuple):
    """A box of a drawing. Texts are empty where there is nothing to say, and contain no line ends, control characters
    or lone surrogates.

    `kind` is `leaf`, `operation` or `group`; `operands` are indices of labels.
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
        """The texts of the box as lines."""
        titled = {"": self.title, "shape ": self.shape, "value ": self.value, "gradient ": self.gradient}
        written = [before + text for before, text in titled.items() if text]
        return [written[0], self.program, *written[1:]] if self.program else written


class Picture(NamedTuple):
    """The subject of a drawing: a graph, the request and the namespace that computed it, and whether groups are
    expanded."""

    graph: Graph
    request: GraphRequest
    expand: bool
    namespace: arrays.Namespace | None

    def labels(self) -> list[Label]:
        """The labels of the boxes in topological order, operands first."""
        texts = Texts(self.graph)
        boxes = outline(self.graph, expand=self.expand)
        limits.charge_steps(_BOX * len(boxes))
        return [_label(box, self.graph, texts, self.request) for box in boxes]


def _label(box: GraphBox, graph: Graph, texts: Texts, request: GraphRequest) -> Label:
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


def _title(box: GraphBox) -> str:
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


def _program(box: GraphBox, results: Sequence[Vertex], texts: Texts) -> str:
    text = texts.at(box.span)
    if box.kind in ("leaf", "loop", "rest"):
        return text
    names = ", ".join(vertex.name for vertex in results if vertex.name is not None)
    return f"{names} = {text}" if names and text else names or text


class Texts:
    """Looks up the program text at a span, or the text of the stable form that was evaluated instead."""

    def __init__(self, graph: Graph) -> None:
        self.source = graph.program.source
        self.stable: Mapping[Span, str] = {r.span: stable_text(r, self.source) for r in graph.rewritten}
        # Cached because all rounds of a loop have the same span.
        self.lines: dict[Span | None, str] = {None: ""}

    def at(self, span: Span | None) -> str:
        """The text as one line of at most _LONGEST characters; a longer one ends in `…`."""
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
    """A value on one line: a number in full, array elements to six digits, long arrays abbreviated."""
    if value is None or not getattr(value, "shape", ()):
        return number_text(value)
    if value.size <= _FEW_ELEMENTS:
        # An array without elements may have any number of axes.
        return _nested(value.tolist()) if value.size else "[]"
    first, second, last = (f"{v:.6g}" for v in (*value.reshape(-1)[:2], value.reshape(-1)[-1]))
    return f"{first}, {second}, …, {last}"


def _nested(value: Any) -> str:
    return f"[{', '.join(map(_nested, value))}]" if isinstance(value, list) else f"{value:.6g}"
