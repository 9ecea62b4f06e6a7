"""Interpolation of tensors to other sizes along their last axes, with PyTorch's semantics, as a matrix for each
axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import Shape
from gradcli.errors import CallError, EvaluationError, LimitError, ShapeError
from gradcli.primitives.axes import boolean, integer, integer_array, one_float, option, whole_numbers
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import permute
from gradcli.primitives.entries.arithmetic import divide
from gradcli.primitives.entries.indexing import axis_key, index
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.operation import Composite

SUBJECT = "layers"

# For each new position, the weights of old positions, by index.
Rows = Iterable[dict[int, Fraction]]

_SIGNAL, _IMAGE = [[[1.0, 2.5, -3.0, 0.5]]], [[[[1.0, 2.0, 3.5], [4.0, -5.5, 6.0]]]]
# The parameter a of the cubic convolution kernel, as in PyTorch.
_CUBIC = Fraction(-3, 4)
# Integers up to this bound are exact in a double.
_EXACT_INTEGERS = 2**53
# The largest new size of an axis: computing the weights of that many takes seconds.
_MAX_SIZE = 100_000
# The numbers of spatial axes, after those of batch and channels, that each mode accepts.
_AXES = {"linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}
_MODES = ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area")


def _sizes(given: Shape, size: Any, scale_factor: Any) -> tuple[Shape, list[float | None]]:
    """The new sizes of some axes, and the scale factors, None where sizes were given."""
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


def _step(old: int, new: int, factor: float | None) -> Fraction:
    """The distance between new positions, in old positions."""
    return 1 / Fraction(factor) if factor else Fraction(old, new)


def _sources(old: int, new: int, factor: float | None, aligned: bool) -> list[Fraction]:
    """The new positions, in coordinates of the old ones."""
    if aligned:
        return [Fraction(i * (old - 1), new - 1) if new > 1 else Fraction(0) for i in range(new)]
    step, half = _step(old, new, factor), Fraction(1, 2)
    return [(i + half) * step - half for i in range(new)]


def _lines(old: int, new: int, factor: float | None, aligned: bool) -> Rows:
    for source in _sources(old, new, factor, aligned):
        inside = max(source, Fraction(0))
        first = min(math.floor(inside), old - 1)
        share = min(inside - first, Fraction(1))
        yield {first: 1 - share, first + 1: share} if share and first + 1 < old else {first: Fraction(1)}


def _cubics(old: int, new: int, factor: float | None, aligned: bool) -> Rows:
    for source in _sources(old, new, factor, aligned):
        first = math.floor(source)
        row: dict[int, Fraction] = {}
        for tap in range(first - 1, first + 3):
            # Positions beyond the ends are clamped to the ends.
            place = min(max(tap, 0), old - 1)
            row[place] = row.get(place, Fraction(0)) + _cubic(abs(source - tap))
        yield row


def _cubic(d: Fraction) -> Fraction:
    """The cubic convolution kernel at a distance below 2."""
    if d <= 1:
        return ((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1
    return ((_CUBIC * d - 5 * _CUBIC) * d + 8 * _CUBIC) * d - 4 * _CUBIC


def _means(old: int, new: int, _factor: float | None = None, _aligned: bool = False) -> Rows:
    for i in range(new):
        first, last = i * old // new, -(-(i + 1) * old // new)
        yield dict.fromkeys(range(first, last), Fraction(1, last - first))


_WEIGHTS: dict[str, Callable[..., Rows]] = {
    "area": _means,
    "bicubic": _cubics,
    **dict.fromkeys(("linear", "bilinear", "trilinear"), _lines),
}


def _matrix(rows: Rows, old: int) -> Any:
    """The interpolation matrix `[old, new]`, as quotients of integers, which are exact in ball arithmetic too."""
    given = [*rows]
    limits.charge(len(given) * old)
    least = [math.lcm(*(weight.denominator for weight in row.values())) for row in given]
    if is_exact() and max(least) > _EXACT_INTEGERS:
        raise EvaluationError("with proved digits a factor must be a simple fraction", hint="size= says the new sizes")
    numbers = arrays.guard_memory(lambda xp: xp.zeros((old, len(given))))
    for i, (row, denominator) in enumerate(zip(given, least)):
        for place, weight in row.items():
            numbers[place, i] = float(weight * denominator)
    placed = arrays.in_default_namespace(arrays.astype(numbers, arrays.default_dtype()))
    return divide(
        placed, arrays.in_default_namespace(arrays.asarray([float(n) for n in least], arrays.default_dtype()))
    )


def _check_size(old: int, new: int) -> None:
    """Raise LimitError for a new size above the limit, before its weights are computed."""
    if new > _MAX_SIZE:
        raise LimitError(f"an axis is brought to no more than {_MAX_SIZE:,} elements, not to {new:,}")
    limits.charge(old * new)


def _times_along(x: Any, matrix: Any, axis: int) -> Any:
    rank = len(arrays.shape(x))
    order = [*range(axis), *range(axis + 1, rank), axis]
    moved = matmul(permute(x, order), matrix)
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
    shape, way = arrays.shape(input), option(mode, _MODES, "mode")
    old = shape[2:]
    if len(shape) < 3 or len(old) not in _AXES.get(way, (1, 2, 3)) or 0 in old:
        raise ShapeError(f"'interpolate' with mode={way!r} does not fit a tensor of {list(shape)}")
    if boolean(antialias, "'antialias'"):
        raise CallError("'interpolate' smoothes nothing before", hint="leave antialias out")
    new, factors = _sizes(old, size, scale_factor)
    if min(new) < 1:
        raise ShapeError(f"{list(old)} cannot become {list(new)}")
    if recompute_scale_factor is not None and boolean(recompute_scale_factor, "'recompute_scale_factor'"):
        factors = [None] * len(old)
    aligned = align_corners is not None and boolean(align_corners, "'align_corners'")
    for axis, (before, behind, factor) in enumerate(zip(old, new, factors), 2):
        _check_size(before, behind)
        if way.startswith("nearest"):
            exactly = way == "nearest-exact"
            places = arrays.guard_memory(lambda xp: _nearest_places(xp, before, behind, factor, exactly))  # noqa: B023
            input = index(input, axis_key(axis, places))
        else:
            input = _times_along(input, _matrix(_WEIGHTS[way](before, behind, factor, aligned), before), axis)
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


def adaptive_sizes(name: str, shape: Shape, output_size: Any, axes: int) -> Shape:
    """The sizes that the last `axes` axes of a shape are brought to; None keeps the size of an axis.

    Raises ShapeError for a shape without these axes and that of channels, and for sizes that do not fit them.
    """
    if len(shape) not in (axes + 1, axes + 2):
        raise ShapeError(f"'{name}' takes a tensor of {axes + 1} or {axes + 2} dimensions, not of {len(shape)}")
    parts = output_size if isinstance(output_size, (list, tuple)) else [output_size]
    if not isinstance(output_size, (list, tuple)) and arrays.shape(output_size):
        parts = integer_array(concrete(output_size), "a size").tolist()
    sizes = _of_each([None if part is None else integer(part, "a size") for part in parts], axes)
    for old, new in zip(shape[-axes:], sizes):
        if new is not None and new < 1:
            raise ShapeError("a size is 1 or more")
        if new is not None:
            _check_size(old, new)
    return tuple(old if new is None else new for old, new in zip(shape[-axes:], sizes))


def _adaptive(axes: int, *samples: Any) -> Composite:
    name = f"adaptive_avg_pool{axes}d"

    def definition(input: Any, output_size: Any) -> Any:
        shape = arrays.shape(input)
        for axis, size in enumerate(adaptive_sizes(name, shape, output_size, axes), len(shape) - axes):
            if size != shape[axis]:
                input = _times_along(input, _matrix(_means(shape[axis], size), shape[axis]), axis)
        return input

    return Composite(
        name, "input, output_size", f"means of output_size parts of the last {'axis' if axes == 1 else f'{axes} axes'}", definition,
        derivative="g/n to the elements of each part",
        samples=samples,
    )  # fmt: skip


adaptive_avg_pool1d = _adaptive(1, (_SIGNAL, 3))
adaptive_avg_pool2d = _adaptive(2, (_IMAGE, [1, 2]))
adaptive_avg_pool3d = _adaptive(3, ([_IMAGE], [1, 1, 2]))
