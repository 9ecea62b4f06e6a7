"""Index arithmetic for elements of tensors: flat positions in row-major order, and where primitives move elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.program.ir import Equation


def positions(shape: Shape) -> Any:
    """The flat position of each element of a tensor."""
    return arrays.numpy_namespace().arange(math.prod(shape)).reshape(shape)


def broadcast_positions(given: Shape, wanted: Shape) -> Any:
    """The flat positions of the source elements of a tensor that is broadcast to a shape."""
    return arrays.numpy_namespace().broadcast_to(positions(given), wanted)


def source_positions(equation: Equation) -> Any:
    """Return the source of each element of the result, by applying the primitive to element numbers.

    Numbers count from 1 through all operands; 0 marks a new zero.
    """
    shapes = [arrays.shape(a) for a in equation.inputs]
    firsts = itertools.accumulate(map(math.prod, shapes), initial=1)
    numbers = [positions(shape) + first for shape, first in zip(shapes, firsts)]
    xp = arrays.numpy_namespace()
    return xp.asarray(equation.primitive.forward(xp, *numbers, **equation.params))


def targets(params: Mapping[str, Any]) -> Any:
    """The flat positions in the result to which a scatter with these parameters moves elements."""
    return arrays.numpy_namespace().asarray(positions(params["shape"])[params["key"]])
