"""The places of elements in tensors, counted from 0 row by row, and where a program puts them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.program.ir import Equation


def positions(shape: Shape) -> Any:
    """The place of each element of a tensor."""
    return arrays.numpy_namespace().arange(math.prod(shape)).reshape(shape)


def spread(given: Shape, wanted: Shape) -> Any:
    """The places of the elements of a tensor that is broadcast to a shape."""
    return arrays.numpy_namespace().broadcast_to(positions(given), wanted)


def moved(equation: Equation) -> Any:
    """Find out where the elements go by sending their numbers, counted from 1 through all operands; 0 is for a zero that
    comes in."""
    shapes = [arrays.shape(a) for a in equation.inputs]
    firsts = itertools.accumulate(map(math.prod, shapes), initial=1)
    numbers = [positions(shape) + first for shape, first in zip(shapes, firsts)]
    xp = arrays.numpy_namespace()
    return xp.asarray(equation.primitive.forward(xp, *numbers, **equation.params))


def targets(params: Mapping[str, Any]) -> Any:
    """Where a scatter with these parameters puts elements."""
    return arrays.numpy_namespace().asarray(positions(params["shape"])[params["key"]])
