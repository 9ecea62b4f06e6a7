"""Images and volumes sampled at the points of a grid: the functions of spatial transformers.

M. Jaderberg, K. Simonyan, A. Zisserman and K. Kavukcuoglu, "Spatial Transformer Networks" (NeurIPS 2015).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.creation.creation_functions import linspace
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ShapeError
from gradcli.primitives.axes import option
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import absolute, fmod
from gradcli.primitives.entries.comparisons import clip, where
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.shape import matrix_transpose, moveaxis

# The parameter of the cubic convolution that interpolates, as in PyTorch.
_CUBIC = -0.75


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Any:
    """The grid of points for `grid_sample` that affine maps `theta` (N, 2, 3) make of an image of `size` (N, C, H, W),
    or (N, 3, 4) of a volume (N, C, D, H, W). -1 and 1 are the centres of the outermost elements with `align_corners`,
    else their outer edges.
    """
    rank = len(size) - 2
    if rank not in (2, 3) or theta.shape != (size[0], rank, rank + 1):
        raise ShapeError(
            f"Expected a batch of affine matrices of shape {size[0]}x{rank}x{rank + 1} for size {tuple(size)}. "
            f"Got {tuple(theta.shape)}."
        )
    xp = arrays.numpy_namespace()
    axes = [_positions(count, bool(align_corners)) for count in size[2:]]
    points = xp.stack([*reversed(xp.meshgrid(*axes, indexing="ij")), xp.ones(tuple(size[2:]))], axis=-1)
    given = arrays.astype(arrays.asarray(points.reshape(-1, rank + 1)), theta.dtype)
    return reshape(matmul(theta.made(given), matrix_transpose(theta)), (size[0], *size[2:], rank))


def _positions(count: int, align_corners: bool) -> Any:
    if count <= 1:
        return arrays.numpy_namespace().zeros(count)
    ends = linspace(-1.0, 1.0, count, dtype="float64").numpy()
    # In this order, rounding is PyTorch's, so that the points of the identity lie on the same sides of the elements.
    return ends if align_corners else ends * (count - 1) / count


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    """The values of images (N, C, H, W) at points (N, …, 2) in x and y, or of volumes (N, C, D, H, W) at points
    (N, …, 3), by linear, nearest or, of images, cubic interpolation. -1 and 1 are the outermost elements, see
    `affine_grid`; points outside are 0, or those of the border, or reflected.
    """
    rank = input.ndim - 2
    modes = ("bilinear", "nearest", "bicubic")[: 3 if rank == 2 else 2]
    way, padding = option(mode, modes, "mode"), option(padding_mode, ("zeros", "border", "reflection"), "padding_mode")
    if rank not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != rank or grid.shape[0] != input.shape[0]:
        raise ShapeError(
            f"grid_sampler(): expected grid to have size {rank} in last dimension and the batch of input, but got input "
            f"with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    corners = bool(align_corners)
    # From the first axis of the image on, where a grid begins with the last one.
    points = [_in_elements(grid[..., rank - 1 - axis], size, corners) for axis, size in enumerate(input.shape[2:])]
    if way != "bicubic":
        points = [_inside(x, n, padding, corners) for x, n in zip(points, input.shape[2:])]
    ways = {"bilinear": _linear, "nearest": _nearest, "bicubic": _cubic}
    total: Any = 0.0
    for terms in itertools.product(*map(ways[way], points)):
        weight: Any = 1.0
        places = []
        for (position, share), size in zip(terms, input.shape[2:]):
            place = _inside(position, size, padding, corners) if way == "bicubic" else position
            inside = (place >= 0) & (place < size)
            places.append(clip(place, 0, size - 1).astype("int64"))
            weight = weight * where(inside, share, 0.0)
        rows = arrays.numpy_namespace().arange(input.shape[0]).reshape(-1, *(1,) * rank)
        total = total + index(input, (rows, slice(None), *places)) * reshape(weight, (*grid.shape[:-1], 1))
    return moveaxis(total, -1, 1)


def _in_elements(x: Any, size: int, align_corners: bool) -> Any:
    """A coordinate between -1 and 1 as a position among `size` elements."""
    return (x + 1) * ((size - 1) / 2) if align_corners else ((x + 1) * size - 1) / 2


def _inside(x: Any, size: int, padding: str, align_corners: bool) -> Any:
    """A position moved to where the elements are."""
    if padding == "zeros":
        return x
    if padding == "reflection":
        first, last = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        span = last - first
        if not span:
            return x * 0.0
        distance = absolute(x - first)
        rest, turns = fmod(distance, span), _numbers(distance) // span
        x = where(turns % 2 == 0, rest + first, last - rest)
    return clip(x, 0.0, size - 1.0)


def _numbers(x: Any) -> Any:
    return arrays.to_numpy(concrete(x))


def _nearest(x: Any) -> list[tuple[Any, Any]]:
    """The nearest position, with its weight; of two as near the even one."""
    return [(arrays.numpy_namespace().round(_numbers(x)), 1.0)]


def _linear(x: Any) -> list[tuple[Any, Any]]:
    """The positions around, with their weights."""
    before = arrays.numpy_namespace().floor(_numbers(x))
    return [(before, before + 1 - x), (before + 1, x - before)]


def _cubic(x: Any) -> list[tuple[Any, Any]]:
    before = arrays.numpy_namespace().floor(_numbers(x))
    rest = x - before
    return [
        (before - 1, _far(rest + 1)),
        (before, _near(rest)),
        (before + 1, _near(1 - rest)),
        (before + 2, _far(2 - rest)),
    ]


def _near(t: Any) -> Any:
    """The weight of an element at a distance of at most 1."""
    return ((_CUBIC + 2) * t - (_CUBIC + 3)) * t * t + 1


def _far(t: Any) -> Any:
    """The weight of an element at a distance between 1 and 2."""
    return ((_CUBIC * t - 5 * _CUBIC) * t + 8 * _CUBIC) * t - 4 * _CUBIC
