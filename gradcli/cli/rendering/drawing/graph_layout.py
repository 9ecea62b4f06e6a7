"""Layout of a layered drawing: positions of boxes and routes of edges.

After Sugiyama, Tagawa and Toda (1981): every box has a layer above those that use it; an edge that crosses a layer has
a slot of its own there; the order within a layer follows the neighbours; and positions are as close to the neighbours
as that order and the widths allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from gradcli import limits

GAP = 24.0
LAYER_GAP = 48.0
_SWEEPS = 8
# Cost of routing an edge through one layer, in eighths of a step.
_PASSED = 20


class Size(NamedTuple):
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
    size: Size


class _Slot:
    """A slot in a layer: a box, or an edge that crosses it. `above` and `below` are its neighbours."""

    __slots__ = ("above", "below", "layer", "width", "x")

    def __init__(self, layer: int, width: float) -> None:
        self.layer = layer
        self.width = width
        self.x = 0.0
        self.above: list[_Slot] = []
        self.below: list[_Slot] = []


def layout(sizes: Sequence[Size], operands: Sequence[Sequence[int]]) -> Layout:
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
        # The first half of the sweeps determines the order, the second half the positions.
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
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + GAP)
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
    boxes: Sequence[_Slot], routes: Sequence[Sequence[_Slot]], layers: Sequence[Sequence[_Slot]], sizes: Sequence[Size]
) -> Layout:
    left = min(slot.x - slot.width / 2 for layer in layers for slot in layer) - GAP
    right = max(slot.x + slot.width / 2 for layer in layers for slot in layer) + GAP
    heights = [0.0] * len(layers)
    for slot, size in zip(boxes, sizes):
        heights[slot.layer] = max(heights[slot.layer], size.height)
    tops = [GAP]
    for height in heights:
        tops.append(tops[-1] + height + LAYER_GAP)
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
    return Layout(centres, lines, Size(right - left, tops[-1] - LAYER_GAP + GAP))
