"""Draws a graph as a self-contained SVG picture."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

from gradcli import limits
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.drawing.node_labels import Label, Picture
from gradcli.errors import LimitError
from gradcli.named_tuples import NamedTuple

# Limits the time, which grows with the square of the number of boxes; more could not be read anyway.
_MOST_BOXES = 1000
_FONT = 13
# An upper bound of the width of common monospaced fonts, relative to their size.
_CHARACTER = 0.62 * _FONT
_LINE = 1.35 * _FONT
_PADDING = 8.0
_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}">
<style>
text {{ font: {2}px monospace; text-anchor: middle; fill: #1a1a1a; }}
.title {{ font-weight: bold; }}
rect {{ stroke: #4a5568; fill: #ffffff; }}
.leaf {{ fill: #d9ead3; }}
.group {{ fill: #dce6f5; stroke-width: 2; }}
path {{ fill: none; stroke: #4a5568; marker-end: url(#arrow); }}
</style>
<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<polygon points="0,1 8,4 0,7" fill="#4a5568"/>
</marker>
<rect width="100%" height="100%" style="stroke: none"/>
"""
# The space between neighbouring boxes, and between layers, where edges bend, in pixels.
_GAP, _LAYER_GAP = 24.0, 48.0
# The number of barycentric sweeps over the layers: the first half orders the boxes, the second half places them.
_SWEEPS = 8
# Cost of routing an edge through one layer, in eighths of a step.
_PASSED = 20


def draw(picture: Picture, environment: Environment) -> None:
    """Write the picture; edges lead downwards from operands to results.

    Raises LimitError for more than _MOST_BOXES boxes.
    """
    labels = picture.labels()
    if len(labels) > _MOST_BOXES:
        raise LimitError(
            f"a picture of {len(labels):,} boxes is too large", hint=f"draw at most {_MOST_BOXES:,}, or use --to dot"
        )
    sizes = [_size(label) for label in labels]
    placed = layout(sizes, [label.operands for label in labels])
    lines = [_path(points) for points in placed.lines]
    boxes = [_box(label, size, centre) for label, size, centre in zip(labels, sizes, placed.centres)]
    environment.write("".join([_head(placed), *lines, *boxes, "</svg>\n"]))


def _head(placed: Layout) -> str:
    return _HEAD.format(*placed.size, _FONT)


def _size(label: Label) -> BoxSize:
    columns = max(sum(map(_columns, line)) for line in label.lines)
    return BoxSize(columns * _CHARACTER + 2 * _PADDING, len(label.lines) * _LINE + 2 * _PADDING)


def _columns(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _path(points: Sequence[Point]) -> str:
    """An edge as an SVG path: straight through each layer, curved between layers."""
    _, start, *between = points
    parts = [f"M{start.x:.1f},{start.y:.1f}"]
    for above, below in zip(between[::2], between[1::2]):
        middle = (start.y + above.y) / 2
        parts.append(f"C{start.x:.1f},{middle:.1f} {above.x:.1f},{middle:.1f} {above.x:.1f},{above.y:.1f}")
        if below is not between[-1]:
            parts.append(f"V{below.y:.1f}")
        start = below
    return f'<path d="{"".join(parts)}"/>\n'


def _box(label: Label, size: BoxSize, centre: Point) -> str:
    left, top = centre.x - size.width / 2, centre.y - size.height / 2
    radius = 14 if label.kind == "leaf" else 4
    parts = [
        f'<rect class="{label.kind}" x="{left:.1f}" y="{top:.1f}" width="{size.width:.1f}" '
        f'height="{size.height:.1f}" rx="{radius}"/>\n'
    ]
    for i, line in enumerate(label.lines):
        style = ' class="title"' if i == 0 else ""
        base = top + _PADDING + _LINE * (i + 0.75)
        parts.append(f'<text x="{centre.x:.1f}" y="{base:.1f}"{style}>{escape(line)}</text>\n')
    return "".join(parts)


class BoxSize(NamedTuple):
    width: float
    height: float


class Point(NamedTuple):
    x: float
    y: float


class Layout(NamedTuple):
    """The centre of each box; for each edge its points in pairs, at the top and bottom of each box or layer; the total
    size."""

    centres: Sequence[Point]
    lines: Sequence[Sequence[Point]]
    size: BoxSize


class _Slot:
    """A slot in a layer: a box, or an edge that crosses it. `above` and `below` are its neighbours."""

    __slots__ = ("above", "below", "layer", "width", "x")

    def __init__(self, layer: int, width: float) -> None:
        self.layer = layer
        self.width = width
        self.x = 0.0
        self.above: list[_Slot] = []
        self.below: list[_Slot] = []


def layout(sizes: Sequence[BoxSize], operands: Sequence[Sequence[int]]) -> Layout:
    """Lay out boxes in topological order (operands first), with the last one at the bottom.

    Edges lead from operands to users, in the order of `operands`; a repeated pair is drawn once.
    """
    layer_of = _layers(operands)
    layers: list[list[_Slot]] = [[] for _ in range(max(layer_of) + 1)]
    boxes = [_slot(layers, layer, size.width) for layer, size in zip(layer_of, sizes)]
    routes = _routes(boxes, operands, layers)
    for layer in layers:
        _spread(layer, [slot.x for slot in layer])
    for sweep in range(_SWEEPS):
        _sweep(layers, down=sweep % 2 == 0, reorder=sweep < _SWEEPS // 2)
    return _placed(boxes, routes, layers, sizes)


def _layers(operands: Sequence[Sequence[int]]) -> list[int]:
    """The layer of each box, counted from the top: as low as its users allow."""
    height = [0] * len(operands)
    for user in reversed(range(len(operands))):
        for operand in operands[user]:
            height[operand] = max(height[operand], height[user] + 1)
    return [max(height) - h for h in height]


def _slot(layers: list[list[_Slot]], layer: int, width: float) -> _Slot:
    slot = _Slot(layer, width)
    layers[layer].append(slot)
    return slot


def _routes(boxes: Sequence[_Slot], operands: Sequence[Sequence[int]], layers: list[list[_Slot]]) -> list[list[_Slot]]:
    """The slots of each edge. Edges from one box share their slots in the layers that they cross."""
    passed: dict[tuple[int, int], _Slot] = {}
    routes = []
    for user, used in enumerate(operands):
        for operand in dict.fromkeys(used):
            limits.charge_steps(_PASSED * (boxes[user].layer - boxes[operand].layer))
            route = [boxes[operand]]
            for layer in range(boxes[operand].layer + 1, boxes[user].layer):
                slot = passed.get((operand, layer))
                if slot is None:
                    slot = passed[operand, layer] = _slot(layers, layer, 0.0)
                    _link(route[-1], slot)
                route.append(slot)
            _link(route[-1], boxes[user])
            routes.append([*route, boxes[user]])
    return routes


def _link(above: _Slot, below: _Slot) -> None:
    above.below.append(below)
    below.above.append(above)


def _sweep(layers: Sequence[list[_Slot]], *, down: bool, reorder: bool) -> None:
    for layer in layers if down else reversed(layers):
        wanted = []
        for slot in layer:
            neighbours = slot.above if down else slot.below
            wanted.append(sum(n.x for n in neighbours) / len(neighbours) if neighbours else slot.x)
        if reorder:
            order = sorted(range(len(layer)), key=wanted.__getitem__)
            layer[:] = [layer[i] for i in order]
            wanted = [wanted[i] for i in order]
        _spread(layer, wanted)


def _spread(layer: Sequence[_Slot], wanted: Sequence[float]) -> None:
    """Place the slots of a layer in their order, as close as possible to the wanted positions.

    The least-squares problem with minimum distances between neighbours is an isotonic regression of the wanted
    positions minus the cumulative distances, solved by the pool-adjacent-violators algorithm.
    """
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + _GAP)
    pools: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets):
        total, count = want - offset, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / count:
            before, members = pools.pop()
            total, count = total + before, count + members
        pools.append((total, count))
    places = [total / count for total, count in pools for _ in range(count)]
    for slot, place, offset in zip(layer, places, offsets):
        slot.x = place + offset


def _placed(
    boxes: Sequence[_Slot],
    routes: Sequence[Sequence[_Slot]],
    layers: Sequence[Sequence[_Slot]],
    sizes: Sequence[BoxSize],
) -> Layout:
    left = min(slot.x - slot.width / 2 for layer in layers for slot in layer) - _GAP
    right = max(slot.x + slot.width / 2 for layer in layers for slot in layer) + _GAP
    heights = [0.0] * len(layers)
    for slot, size in zip(boxes, sizes):
        heights[slot.layer] = max(heights[slot.layer], size.height)
    tops = [_GAP]
    for height in heights:
        tops.append(tops[-1] + height + _LAYER_GAP)
    centres = [Point(slot.x - left, tops[slot.layer] + heights[slot.layer] / 2) for slot in boxes]
    half_heights = {slot: size.height / 2 for slot, size in zip(boxes, sizes)}
    lines = []
    for route in routes:
        points = []
        for slot in route:
            middle = tops[slot.layer] + heights[slot.layer] / 2
            half = half_heights.get(slot, heights[slot.layer] / 2)
            points += [Point(slot.x - left, middle - half), Point(slot.x - left, middle + half)]
        lines.append(points)
    return Layout(centres, lines, BoxSize(right - left, tops[-1] - _LAYER_GAP + _GAP))
