"""Condenses the graph of a run for drawing: calls, long loops and long runs of one operation become one box each.

No path leaves a box and returns to it, so the boxes form an acyclic graph: calls and loops are intervals of time, a run
is used only through its last operation, and the remainder is the beginning of the program run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gradcli import limits
from gradcli.errors import Span
from gradcli.evaluation.graph_view import Graph, Vertex, sizes
from gradcli.named_tuples import NamedTuple

# A loop or a run of one operation with more operations than this becomes one box.
LONG = 20
# Bound on the number of operation boxes; if there are more, the earliest become one.
MANY = 100
# Cost of a vertex in eighths of a step.
_VERTEX = 6


class GraphBox(NamedTuple):
    """One box of the drawing: a leaf, an operation, or `size` operations and `inputs` leaves together.

    `kind` is `leaf`, `operation`, `function`, `loop`, `run` or `rest`. `times` is the number of iterations of a loop or
    of operations in a run, `results` are the vertices that other boxes use, and `operands` the indices of boxes.
    """

    kind: str
    name: str | None
    span: Span | None
    times: int
    size: int
    inputs: int
    results: tuple[int, ...]
    operands: tuple[int, ...]


class _BoxLabel(NamedTuple):
    """The common properties of the operations in one box."""

    kind: str
    name: str | None
    span: Span | None
    times: int


def outline(graph: Graph, *, expand: bool) -> list[GraphBox]:
    """Return the boxes of a graph, operands before their users and the value last; with `expand` one box for each
    vertex."""
    # The box of a vertex is identified by the last vertex in it.
    limits.charge_steps(_VERTEX * len(graph.vertices))
    box_of = [*range(len(graph.vertices))]
    together: dict[int, _BoxLabel] = {}
    if not expand:
        _join_groups(graph, box_of, together)
        _join_runs(graph.vertices, box_of, together)
        _join_earliest(graph.vertices, box_of, together)
        _join_leaves(graph.vertices, box_of, together)
    return _boxes(graph.vertices, box_of, together)


def _join_groups(graph: Graph, box_of: list[int], together: dict[int, _BoxLabel]) -> None:
    within = sizes((vertex.group for vertex in graph.vertices), graph.groups)
    outermost: list[int | None] = []
    for number, group in enumerate(graph.groups):
        around = None if group.parent is None else outermost[group.parent]
        joined = group.kind != "loop" or within[number] > LONG
        outermost.append(number if around is None and joined else around)
    last: dict[int, int] = {}
    for i in reversed(range(len(box_of))):
        inside = graph.vertices[i].group
        around = None if inside is None else outermost[inside]
        if around is not None:
            box_of[i] = last.setdefault(around, i)
    for number, i in last.items():
        group = graph.groups[number]
        together[i] = _BoxLabel(group.kind, group.name, group.span, group.times)


def _join_runs(vertices: Sequence[Vertex], box_of: list[int], together: dict[int, _BoxLabel]) -> None:
    """Join long runs of one operation, with all unnamed vertices that only such a run uses."""
    users = _users(vertices, box_of)
    drawn = [i for i in reversed(range(len(vertices))) if box_of[i] == i and vertices[i].operation is not None]
    run = _runs(vertices, [i for i in drawn if i not in together], users)
    lengths = Counter(run.values())
    joined: dict[int, int] = {}
    for i in drawn:
        around = {joined.get(user) for user in users[i]}
        only = around.pop() if len(around) == 1 and vertices[i].name is None else None
        if only is not None:
            joined[i] = only
        elif i in run and lengths[run[i]] > LONG:
            joined[i] = run[i]
    for last in {*joined.values()}:
        vertex = vertices[last]
        together[last] = _BoxLabel("run", vertex.operation, vertex.span, lengths[last])
    _rename(box_of, joined)


def _runs(vertices: Sequence[Vertex], drawn: Sequence[int], users: Sequence[set[int]]) -> dict[int, int]:
    """Return for each operation the last operation of its run. `drawn` has users before their operands."""
    run: dict[int, int] = {}
    for i in drawn:
        run[i] = i
        if len(users[i]) == 1 and vertices[i].name is None:
            (user,) = users[i]
            if user in run and vertices[user].operation == vertices[i].operation:
                run[i] = run[user]
    return run


def _join_earliest(vertices: Sequence[Vertex], box_of: list[int], together: dict[int, _BoxLabel]) -> None:
    drawn = sorted({box_of[i] for i, vertex in enumerate(vertices) if vertex.operation is not None})
    if len(drawn) <= MANY:
        return
    earliest = drawn[:-MANY]
    together[earliest[-1]] = _BoxLabel("rest", None, None, 1)
    _rename(box_of, dict.fromkeys(earliest, earliest[-1]))


def _join_leaves(vertices: Sequence[Vertex], box_of: list[int], together: dict[int, _BoxLabel]) -> None:
    """Move each leaf that only one joined box uses into that box, if there are many leaves."""
    leaves = [i for i, vertex in enumerate(vertices) if vertex.operation is None]
    if len(leaves) <= LONG:
        return
    users = _users(vertices, box_of)
    _rename(box_of, {i: user for i in leaves if len(users[i]) == 1 for user in users[i] if user in together})


def _users(vertices: Sequence[Vertex], box_of: Sequence[int]) -> list[set[int]]:
    """Return for each box the boxes that use it."""
    users: list[set[int]] = [set() for _ in vertices]
    for i, vertex in enumerate(vertices):
        for operand in vertex.operands:
            if box_of[operand] != box_of[i]:
                users[box_of[operand]].add(box_of[i])
    return users


def _rename(box_of: list[int], joined: dict[int, int]) -> None:
    for i, box in enumerate(box_of):
        box_of[i] = joined.get(box, box)


def _boxes(vertices: Sequence[Vertex], box_of: Sequence[int], together: dict[int, _BoxLabel]) -> list[GraphBox]:
    members: dict[int, list[int]] = {}
    for i, box in enumerate(box_of):
        members.setdefault(box, []).append(i)
    seen = {len(vertices) - 1}
    seen.update(o for i, v in enumerate(vertices) for o in v.operands if box_of[o] != box_of[i])
    order = sorted(members)
    numbers = {box: number for number, box in enumerate(order)}
    boxes = []
    for box in order:
        inside = members[box]
        operands = [numbers[box_of[o]] for i in inside for o in vertices[i].operands if box_of[o] != box]
        common = together.get(box)
        if common is None:
            boxes.append(_single(vertices[box], box, tuple(operands)))
            continue
        inputs = sum(vertices[i].operation is None for i in inside)
        boxes.append(
            GraphBox(
                *common,
                size=len(inside) - inputs,
                inputs=inputs,
                results=tuple(i for i in inside if i in seen),
                operands=tuple(dict.fromkeys(operands)),
            )
        )
    return boxes


def _single(vertex: Vertex, number: int, operands: tuple[int, ...]) -> GraphBox:
    if vertex.operation is None:
        return GraphBox("leaf", vertex.name, None, 1, 0, 1, (number,), ())
    return GraphBox("operation", vertex.operation, vertex.span, 1, 1, 0, (number,), operands)
