"""Draws a graph as a tree of text lines, from the value down to the leaves.

A node that was written already is referred to by a number: `[1]`. A node that is nested too deeply gets a number too,
and is written further down.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence

from gradcli import limits
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.drawing.node_labels import Label, Picture
from gradcli.cli.rendering.render import show
from gradcli.io.text_tables import Table, number_text
from gradcli.named_tuples import NamedTuple

# Nodes below this depth are written further down.
_DEEPEST = 16
# Cost of writing one line of the tree, in eighths of a step.
_LINE = 30


class Line(NamedTuple):
    """A line of the tree; `number` is the index of its label, `first` is false for a reference to it."""

    text: str
    number: int
    first: bool


class _Row(NamedTuple):
    number: int
    before: str
    branch: str
    times: int
    depth: int


def draw(picture: Picture, environment: Environment) -> None:
    """Write a table whose rows have a line of the tree and the columns of its label."""
    graph, labels = picture.graph, picture.labels()
    columns = {"program": 2, "shape": 3, "value": 4, "gradient": 5}
    used = {name: i for name, i in columns.items() if any(label[i] for label in labels)}
    rows = []
    for line in _Tree(labels).lines():
        limits.charge_steps(_LINE)
        label = labels[line.number]
        # In the row of a reference, only the program text identifies the node.
        rows.append((line.text, *(str(label[i]) if line.first or i == 2 else "" for i in used.values())))
    tables = [Table((), [("value", number_text(graph.value))]), Table(("graph", *used), rows, drawn=True)]
    if graph.rewritten:
        tables.append(Table(("rewritten", "as"), [(r.rule.pattern, r.rule.stable) for r in graph.rewritten]))
    show(tables, environment)


class _Tree:
    def __init__(self, labels: Sequence[Label]) -> None:
        self.labels = labels
        users = Counter(operand for label in labels for operand in set(label.operands))
        self.shared = {n for n, count in users.items() if count > 1 and labels[n].operands}
        self.marks: dict[int, str] = {}
        self.written: set[int] = set()

    def lines(self) -> Iterator[Line]:
        later = deque([len(self.labels) - 1])
        while later:
            number = later.popleft()
            if number not in self.written:
                yield from self._below(number, later)

    def _below(self, number: int, later: deque[int]) -> Iterator[Line]:
        stack = [_Row(number, "", "", 1, 0)]
        while stack:
            place = stack.pop()
            label = self.labels[place.number]
            text = place.before + place.branch
            times = f" ({place.times:,} times)" if place.times > 1 else ""
            if place.number in self.written:
                yield Line(f"{text}{self._mark(place.number)}{times}", place.number, False)
            elif place.depth == _DEEPEST and label.operands:
                later.append(place.number)
                yield Line(f"{text}{self._mark(place.number)} below{times}", place.number, False)
            else:
                yield Line(f"{text}{self._title(place.number)}{times}", place.number, True)
                stack.extend(reversed([*self._operands(place)]))

    def _operands(self, place: _Row) -> Iterator[_Row]:
        label = self.labels[place.number]
        if label.operands:
            self.written.add(place.number)
        before = place.before + {"": "", "├── ": "│   ", "└── ": "    "}[place.branch]
        counts = Counter(label.operands)
        for left, (operand, times) in zip(reversed(range(len(counts))), counts.items()):
            yield _Row(operand, before, "├── " if left else "└── ", times, place.depth + 1)

    def _title(self, number: int) -> str:
        title = self.labels[number].title
        return f"{title} {self._mark(number)}" if number in self.shared or number in self.marks else title

    def _mark(self, number: int) -> str:
        return self.marks.setdefault(number, f"[{len(self.marks) + 1}]")
