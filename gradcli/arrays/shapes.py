"""Shapes, without arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from gradcli.errors import ShapeError

Shape = tuple[int, ...]


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape of an elementwise function of operands of these shapes.

    Raises ShapeError where they do not fit: sizes, counted from the last axis, are equal or 1.
    """
    if not any(shapes):
        return ()
    sizes = []
    for others in map(set, zip_longest(*map(reversed, shapes), fillvalue=1)):
        others.discard(1)
        if len(others) > 1:
            text = " and ".join(str(list(shape)) for shape in shapes)
            raise ShapeError(f"shapes {text} do not broadcast together")
        sizes.append(others.pop() if others else 1)
    return tuple(reversed(sizes))
