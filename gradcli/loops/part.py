"""The primitive that takes a part of the rows of a loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.primitives import batching
from gradcli.primitives.entries.indexing import normalize_key, scatter
from gradcli.primitives.families import permuting


def _part_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    np = arrays.numpy_namespace()
    return arrays.shape(np.broadcast_to(0.0, shapes[0])[params["key"]])


part = permuting(
    "part", "x, place", "x[place], whose derivative by the rest of x is an ordinary 0",
    internal=True,
    forward=lambda _xp, x, *, key: x[key],
    vjp=(lambda g, _y, _x, *, key: scatter(g, key, _x.shape),),
    prepare=lambda x, place: ((x,), {"key": normalize_key(place, x)}),
    batch=batching.index,
    view=lambda _x, *, key: True,
    result_shape=_part_shape,
    derivative="g put back at the place, 0 elsewhere",
)  # fmt: skip
