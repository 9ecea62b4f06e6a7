"""Where the boxes of a layered drawing stand and where its lines run.

After Sugiyama, Tagawa and Toda (1981): every box has a layer above those that use it; a line that
passes a layer has a place of its own in it; the order within a layer follows the neighbours; and
the places are as near to the neighbours as that order and the widths allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from gradcli import limits

GAP = 24.0
LAYER_GAP = 48.0
_SWEEPS = 8
# To lead a line through a layer, in eighths of steps.
_PASSED = 20


class Size(NamedTuple):
    width: float
    height: float


class Point(NamedTuple):
    x: float
    y: float


class Layout(NamedTuple):
    """The centre of each box; for each line between two boxes the points that it runs through, in
    pairs, the top and the bottom of a layer or box; and the size of it all."""

    centres: Sequence[Point]
    lines: Sequence[Sequence[Point]]
    size: Size


class _Slot:
    """A place in a layer: a box, or where a line passes. `above` and `below` are its neighbours."""

    __slots__ = ("above", "below", "layer", "width", "x")

    def __init__(self, layer: int, width: float) -> None:
        self.layer = layer
        self.width = width
        self.x = 0.0
        self.above: list[_Slot] = []
        self.below: list[_Slot] = []


def layout(sizes: Sequence[Size], operands: Sequence[Sequence[int]]) -> Layout:
    """Lay out boxes that come after their operands, the last at the bottom.

    Lines lead from operands to what uses them, in the order of `operands`, each pair once.
    """
    layer_of = _layers(operands)
    layers: list[list[_Slot]] = [[] for _ in range(max(layer_of) + 1)]
    boxes = [_slot(layers, layer, size.width) for layer, size in zip(layer_of, sizes)]
    routes = _routes(boxes, operands, layers)
    for layer in layers:
        _spread(layer, [slot.x for slot in layer])
    for sweep in range(_SWEEPS):
        # The order is settled in the first half, the places in the second.
        _sweep(layers, down=sweep % 2 == 0, reorder=sweep < _SWEEPS // 2)
    return _placed(boxes, routes, layers, sizes)


def _layers(operands: Sequence[Sequence[int]]) -> list[int]:
    """The layer of each box, counted from the top: as low as what uses it allows."""
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
    """The slots of each line. Lines from one box share their places in the layers that they pass."""
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
    """Place the slots of a layer in their order, as near as can be to where they are wanted.

    The least squares under the least distances between neighbours are an isotonic regression of
    the wanted places less the distances so far, solved by pooling neighbours that are in the
    wrong order.
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
