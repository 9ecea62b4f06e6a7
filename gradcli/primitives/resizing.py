"""Tensors brought to other sizes along their last axes, with PyTorch's meanings. Along each axis that is a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape
from gradcli.errors import CallError, ShapeError
from gradcli.primitives.axes import chosen, one_float, truth, whole, whole_array, whole_numbers
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import permute
from gradcli.primitives.indexing import along, index
from gradcli.primitives.linear import matmul
from gradcli.primitives.operation import Composite

_SIGNAL, _IMAGE = [[[1.0, 2.5, -3.0, 0.5]]], [[[[1.0, 2.0, 3.5], [4.0, -5.5, 6.0]]]]
# The parameter of the cubic kernel, as PyTorch has it.
_CUBIC = -0.75
# How many axes behind those of the batch and the channels each mode is for.
_AXES = {"linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}
_MODES = ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area")


def _sizes(given: Shape, size: Any, scale_factor: Any) -> tuple[Shape, list[float | None]]:
    """The new sizes of some axes, and the factors where they were said by factors."""
    if (size is None) == (scale_factor is None):
        raise CallError("'interpolate' takes either 'size' or 'scale_factor'")
    if scale_factor is None:
        return _of_each(whole_numbers(size, "a size"), len(given)), [None] * len(given)
    value = concrete(scale_factor)
    parts = value if isinstance(value, (list, tuple)) else arrays.to_numpy(value).ravel().tolist()
    factors = _of_each([one_float(part, "'scale_factor'") for part in parts], len(given))
    return tuple(math.floor(old * factor) for old, factor in zip(given, factors)), [*factors]


def _of_each(numbers: Sequence[Any], axes: int) -> tuple[Any, ...]:
    if len(numbers) not in (1, axes):
        raise ShapeError(f"sizes and factors are one number or {axes}, not {len(numbers)}")
    return tuple(numbers) * (axes // len(numbers))


def _sources(xp: Any, old: int, new: int, factor: float | None, aligned: bool) -> Any:
    """Where the new places lie among the old ones."""
    if aligned:
        return xp.arange(new) * ((old - 1) / (new - 1) if new > 1 else 0.0)
    return (xp.arange(new) + 0.5) * (1.0 / factor if factor else old / new) - 0.5


def _matrix_of_taps(xp: Any, old: int, places: Any, weights: Any) -> Any:
    """A row for each new place, with the weights of the old ones; those beyond the ends count for the last ones."""
    matrix = xp.zeros((len(places), old))
    xp.add.at(matrix, (xp.arange(len(places))[:, None], xp.clip(places, 0, old - 1)), weights)
    return matrix


def _linear_matrix(xp: Any, old: int, new: int, factor: float | None, aligned: bool) -> Any:
    source = xp.maximum(_sources(xp, old, new, factor, aligned), 0.0)
    first = xp.minimum(xp.floor(source), old - 1).astype(int)
    share = xp.clip(source - first, 0.0, 1.0)
    return _matrix_of_taps(xp, old, xp.stack([first, first + 1], 1), xp.stack([1.0 - share, share], 1))


def _cubic_matrix(xp: Any, old: int, new: int, factor: float | None, aligned: bool) -> Any:
    source = _sources(xp, old, new, factor, aligned)
    first = xp.floor(source).astype(int)
    t = source - first

    def near(d: Any) -> Any:
        return ((_CUBIC + 2.0) * d - (_CUBIC + 3.0)) * d * d + 1.0

    def far(d: Any) -> Any:
        return ((_CUBIC * d - 5.0 * _CUBIC) * d + 8.0 * _CUBIC) * d - 4.0 * _CUBIC

    weights = xp.stack([far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)], 1)
    return _matrix_of_taps(xp, old, first[:, None] + xp.arange(-1, 3), weights)


def _mean_matrix(xp: Any, old: int, new: int, _factor: float | None = None, _aligned: bool = False) -> Any:
    numbers, places = xp.arange(new), xp.arange(old)
    first, last = (numbers * old) // new, -(-(numbers + 1) * old // new)
    within = (places >= first[:, None]) & (places < last[:, None])
    return within / (last - first)[:, None]


_MATRICES: dict[str, Callable[..., Any]] = {
    "area": _mean_matrix,
    "bicubic": _cubic_matrix,
    **dict.fromkeys(("linear", "bilinear", "trilinear"), _linear_matrix),
}


def _times_along(x: Any, matrix: Any, axis: int) -> Any:
    rank = len(arrays.shape(x))
    limits.charge(arrays.size(x) * matrix.shape[0])
    order = [*range(axis), *range(axis + 1, rank), axis]
    moved = matmul(permute(x, order), arrays.placed(arrays.astype(matrix.T, arrays.default_dtype())))
    return permute(moved, [order.index(a) for a in range(rank)])


def _nearest_places(xp: Any, old: int, new: int, factor: float | None, exactly: bool) -> Any:
    places = xp.floor((xp.arange(new) + 0.5 * exactly) * (1.0 / factor if factor else old / new))
    return xp.minimum(places, old - 1).astype(int)


def _interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: Any = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: Any = False,
) -> Any:
    shape, way = arrays.shape(input), chosen(mode, _MODES, "mode")
    old = shape[2:]
    if len(shape) < 3 or len(old) not in _AXES.get(way, (1, 2, 3)) or 0 in old:
        raise ShapeError(f"'interpolate' with mode={way!r} does not fit a tensor of {list(shape)}")
    if truth(antialias, "'antialias'"):
        raise CallError("'interpolate' smoothes nothing before", hint="leave antialias out")
    new, factors = _sizes(old, size, scale_factor)
    if min(new) < 1:
        raise ShapeError(f"{list(old)} cannot become {list(new)}")
    if recompute_scale_factor is not None and truth(recompute_scale_factor, "'recompute_scale_factor'"):
        factors = [None] * len(old)
    aligned = align_corners is not None and truth(align_corners, "'align_corners'")
    for axis, (before, behind, factor) in enumerate(zip(old, new, factors), 2):
        if way.startswith("nearest"):
            exactly = way == "nearest-exact"
            places = arrays.guard_memory(lambda xp: _nearest_places(xp, before, behind, factor, exactly))  # noqa: B023
            input = index(input, along(axis, places))
        else:
            matrix = arrays.guard_memory(lambda xp: _MATRICES[way](xp, before, behind, factor, aligned))  # noqa: B023
            input = _times_along(input, matrix, axis)
    return input


interpolate = Composite(
    "interpolate",
    "input, size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None, antialias=False",
    "the axes behind the first two brought to other sizes: by the nearest element, by lines, cubics or means", _interpolate,
    derivative="g to the elements, by their weights",
    edges=(
        "mode is 'nearest', 'nearest-exact', 'area', 'linear', 'bilinear', 'trilinear' or 'bicubic'",
        "align_corners=True has the corners where they were",
    ),
    aliases=("upsample",),
    samples=((_SIGNAL, 3), (_IMAGE, [3, 5], None, "bilinear"), (_IMAGE, None, 2, "bicubic", True), (_SIGNAL, 3, None, "area")),
)  # fmt: skip

upsample_nearest = Composite(
    "upsample_nearest", "input, size=None, scale_factor=None", "interpolate by the nearest element",
    lambda input, size=None, scale_factor=None: _interpolate(input, size, scale_factor),
    derivative=interpolate.derivative,
    samples=((_SIGNAL, 6),),
)  # fmt: skip
upsample_bilinear = Composite(
    "upsample_bilinear", "input, size=None, scale_factor=None", "interpolate by lines, with the corners where they were",
    lambda input, size=None, scale_factor=None: _interpolate(input, size, scale_factor, "bilinear", True),
    derivative=interpolate.derivative,
    samples=((_IMAGE, [3, 5]),),
)  # fmt: skip


def _adaptive(axes: int, *samples: Any) -> Composite:
    name = f"adaptive_avg_pool{axes}d"

    def definition(input: Any, output_size: Any) -> Any:
        shape = arrays.shape(input)
        if len(shape) not in (axes + 1, axes + 2):
            raise ShapeError(f"'{name}' takes a tensor of {axes + 1} or {axes + 2} dimensions, not of {len(shape)}")
        parts = output_size if isinstance(output_size, (list, tuple)) else [output_size]
        if not isinstance(output_size, (list, tuple)) and arrays.shape(output_size):
            parts = whole_array(concrete(output_size), "a size").tolist()
        sizes = _of_each([None if part is None else whole(part, "a size") for part in parts], axes)
        for axis, size in enumerate(sizes, len(shape) - axes):
            if size is not None and size < 1:
                raise ShapeError("a size is 1 or more")
            if size is not None:
                matrix = arrays.guard_memory(lambda xp: _mean_matrix(xp, shape[axis], size))  # noqa: B023
                input = _times_along(input, matrix, axis)
        return input

    return Composite(
        name, "input, output_size", f"means of so many parts of the last {'axis' if axes == 1 else f'{axes} axes'}", definition,
        derivative="g/n to the elements of each part",
        samples=samples,
    )  # fmt: skip


adaptive_avg_pool1d = _adaptive(1, (_SIGNAL, 3))
adaptive_avg_pool2d = _adaptive(2, (_IMAGE, [1, 2]))
adaptive_avg_pool3d = _adaptive(3, ([_IMAGE], [1, 1, 2]))
