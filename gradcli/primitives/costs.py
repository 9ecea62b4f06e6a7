"""The cost of an operation as a number of array elements, the unit of `limits.charge`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli.arrays.shapes import Shape, broadcast
from gradcli.errors import ShapeError


def broadcast_elements(shapes: Sequence[Shape], _params: Mapping[str, Any]) -> int:
    """The size of the broadcast result; 0 if the shapes do not broadcast, which the operation itself reports."""
    if len(shapes) == 1:
        return math.prod(shapes[0])
    try:
        return math.prod(broadcast(shapes))
    except ShapeError:
        return 0


def matmul_cost(multiplications: int) -> int:
    """The number of elements that take as long as `multiplications` multiplications of a matrix product, 64 of which
    cost as much as one element."""
    return multiplications // 64


def largest_operand_size(shapes: Sequence[Shape], _params: Mapping[str, Any]) -> int:
    """The number of elements of the largest operand, as the cost; 1 without operands."""
    return max((math.prod(s) for s in shapes), default=1)


def sort_cost(times: int = 1) -> Callable[[Sequence[Shape], Mapping[str, Any]], int]:
    """The cost of sorting along `axis` (default: the last); `times` is 2 or more where positions are computed or
    used."""

    def elements(shapes: Sequence[Shape], params: Mapping[str, Any]) -> int:
        size: int = shapes[0][params.get("axis", -1)]
        return math.prod(shapes[0]) * (1 + times * size.bit_length() // 2)

    return elements
