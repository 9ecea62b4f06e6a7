"""How many elements an operation computes, or the work that takes as long."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli.arrays.shapes import Shape, broadcast
from gradcli.errors import ShapeError


def broadcast_elements(shapes: Sequence[Shape], _params: Mapping[str, Any]) -> int:
    """The size of the result of broadcasting; 0 where the shapes do not fit, as the function will say."""
    if len(shapes) == 1:
        return math.prod(shapes[0])
    try:
        return math.prod(broadcast(shapes))
    except ShapeError:
        return 0


def work(multiplications: int) -> int:
    """How many elements take the time of this many multiplications in a product of matrices."""
    return multiplications // 64


def largest_operand(shapes: Sequence[Shape], _params: Mapping[str, Any]) -> int:
    return max((math.prod(s) for s in shapes), default=1)


def sorting(times: int = 1) -> Callable[[Sequence[Shape], Mapping[str, Any]], int]:
    """The work of sorting along an axis, the last one where there is no other, `times` as much where positions are
    found, or used."""

    def elements(shapes: Sequence[Shape], params: Mapping[str, Any]) -> int:
        size: int = shapes[0][params.get("axis", -1)]
        return math.prod(shapes[0]) * (1 + times * size.bit_length() // 2)

    return elements
