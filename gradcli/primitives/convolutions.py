"""Windows that move over the last axes of a tensor: convolutions as layers of networks have them, and pooling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape
from gradcli.errors import ShapeError
from gradcli.primitives.arithmetic import add
from gradcli.primitives.axes import chosen, whole, whole_numbers
from gradcli.primitives.conversions import permute, reshape
from gradcli.primitives.indexing import along, index
from gradcli.primitives.linear import matmul
from gradcli.primitives.operation import Composite
from gradcli.primitives.reductions import max_, mean
from gradcli.primitives.sampling import padded
from gradcli.primitives.shape import matrix_transpose

_SIGNAL = [[1.0, 2.5, -3.0, 0.5, 2.0]]
_IMAGE = [[[1.0, 2.0, 3.5, -1.0], [4.0, -5.5, 6.0, 0.5], [0.25, 7.0, -2.0, 3.0]]]
_TAPS, _SQUARES = [[[0.5, -1.0]], [[2.0, 0.25]]], [[[[1.0, -0.5], [0.25, 2.0]]]]


def _of_each(value: Any, axes: int, what: str) -> Shape:
    """A whole number for each axis, of one for each or one for all."""
    numbers = whole_numbers(value, what)
    if len(numbers) not in (1, axes):
        raise ShapeError(f"{what} is one number or {axes}, not {len(numbers)}")
    return numbers * (axes // len(numbers))


def _places(last: int, size: int, step: int, distance: int) -> Any:
    """Where the elements of each window are along an axis, a row for a window."""
    return arrays.guard_memory(lambda xp: xp.arange(0, last, step)[:, None] + distance * xp.arange(size))


def _windows(x: Any, sizes: Shape, steps: Shape, distances: Shape) -> Any:
    """The windows over the last axes of `x`, in their order: each axis is that of the windows, and then, behind all of
    them, that of the elements in each. Those are `distances` apart and the windows `steps`."""
    axes, lead = len(sizes), len(arrays.shape(x)) - len(sizes)
    if min(*sizes, *steps, *distances) < 1:
        raise ShapeError("sizes, strides and dilations of windows are 1 or more")
    for number, (size, step, distance) in enumerate(zip(sizes, steps, distances)):
        axis = lead + 2 * number
        last = arrays.shape(x)[axis] - distance * (size - 1)
        if last < 1:
            raise ShapeError(
                f"windows of {distance * (size - 1) + 1} do not fit an axis of size {arrays.shape(x)[axis]}"
            )
        limits.charge(arrays.size(x) * size // step)
        places = _places(last, size, step, distance)
        x = index(x, along(axis, places))
    order = [*range(lead), *range(lead, lead + 2 * axes, 2), *range(lead + 1, lead + 2 * axes, 2)]
    return permute(x, order)


def _surrounded(x: Any, widths: Sequence[Sequence[int]], value: float) -> Any:
    lead = len(arrays.shape(x)) - len(widths)
    return padded(x, [(0, 0)] * lead + list(widths), "constant", value)


def _widths(padding: Any, spans: Shape, steps: Shape) -> list[tuple[int, int]]:
    """How much stands before and behind each axis, for windows of these spans."""
    if isinstance(padding, str) and chosen(padding, ("same", "valid"), "padding") == "same":
        if max(steps) > 1:
            raise ShapeError("padding='same' is for strides of 1")
        return [((span - 1) // 2, span // 2) for span in spans]
    if isinstance(padding, str):
        return [(0, 0)] * len(spans)
    return [(width, width) for width in _of_each(padding, len(spans), "'padding'")]


def _convolution(name: str, axes: int) -> Callable[..., Any]:
    def definition(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
    ) -> Any:
        given, kernel, count = arrays.shape(input), arrays.shape(weight), whole(groups, "'groups'")
        fits = len(given) in (axes + 1, axes + 2) and len(kernel) == axes + 2 and count > 0
        channels = given[-axes - 1] if fits else 0
        if not fits or kernel[1] * count != channels or kernel[0] % count:
            raise ShapeError(
                f"'{name}' of {list(given)} with a weight of {list(kernel)} in {count} groups does not fit",
                hint="input is (n, channels, sizes), weight (results, channels/groups, sizes of the window)",
            )
        steps, distances = _of_each(stride, axes, "'stride'"), _of_each(dilation, axes, "'dilation'")
        sizes = kernel[2:]
        spans = tuple(distance * (size - 1) + 1 for distance, size in zip(distances, sizes))
        windows = _windows(_surrounded(input, _widths(padding, spans, steps), 0.0), sizes, steps, distances)
        lead, places = given[: -axes - 1], arrays.shape(windows)[len(given) - axes : len(given)]
        # As products of matrices: a row for each place, in it the elements of its window in all the channels of a group.
        behind = len(lead) + 2
        windows = reshape(windows, (*lead, count, channels // count, *places, *sizes))
        windows = permute(
            windows,
            [*range(behind - 1), *range(behind, behind + axes), behind - 1, *range(behind + axes, behind + 2 * axes)],
        )
        rows = reshape(windows, (*lead, count, math.prod(places), math.prod(kernel[1:])))
        taps = reshape(weight, (count, kernel[0] // count, math.prod(kernel[1:])))
        result = reshape(matmul(taps, matrix_transpose(rows)), (*lead, kernel[0], *places))
        return result if bias is None else add(result, reshape(bias, (kernel[0],) + (1,) * axes))

    return definition


def _convolving(name: str, axes: int, samples: Sequence[Any]) -> Composite:
    return Composite(
        name, "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1",
        "bias plus the sum of weight*input over the channels and a window at each place of the last "
        + ("axis" if axes == 1 else f"{axes} axes"),
        _convolution(name, axes),
        derivative="g times weight added up where each element came from, g times the windows, sum(g)",
        edges=(
            "weight is not turned around, as in a correlation",
            "padding is a number of zeros, 'valid' for none, or 'same' for as many places as before",
        ),
        samples=samples,
    )  # fmt: skip


conv1d = _convolving(
    "conv1d", 1,
    (([_SIGNAL], _TAPS), (_SIGNAL, _TAPS, [0.5, -0.25], 2, 1), ([_SIGNAL], _TAPS, None, 1, 1, 2)),
)  # fmt: skip
conv2d = _convolving("conv2d", 2, (([_IMAGE], _SQUARES), (_IMAGE, _SQUARES, [0.5], (2, 1), 1)))


def _pooling(name: str, doc: str, axes: int, joined: Callable[..., Any], beside: float, **known: Any) -> Composite:
    def definition(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Any:
        sizes, rank = _of_each(kernel_size, axes, "'kernel_size'"), len(arrays.shape(input))
        if rank not in (axes + 1, axes + 2):
            raise ShapeError(f"'{name}' takes a tensor of {axes + 1} or {axes + 2} dimensions, not of {rank}")
        steps = sizes if stride is None else _of_each(stride, axes, "'stride'")
        widths = _of_each(padding, axes, "'padding'")
        if any(2 * width > size for width, size in zip(widths, sizes)):
            raise ShapeError("padding is at most the half of a window")
        x = _surrounded(input, [(width, width) for width in widths], beside)
        return joined(_windows(x, sizes, steps, (1,) * axes), tuple(range(-axes, 0)))

    place = "the last axis" if axes == 1 else f"the last {axes} axes"
    return Composite(
        name, "input, kernel_size, stride=None, padding=0", f"{doc} of each window over {place}", definition, **known
    )


_APART = "windows lie side by side where there is no stride"
_MEANS: dict[str, Any] = {
    "derivative": "g/n added up where each element came from",
    "edges": (_APART, "the zeros of padding count"),
}
_LARGEST: dict[str, Any] = {
    "derivative": "g at the largest element of each window, in equal shares where there are several",
    "edges": (_APART, "padding is below all numbers"),
}
avg_pool1d = _pooling("avg_pool1d", "mean", 1, mean, 0.0, samples=((_SIGNAL, 2), (_SIGNAL, 3, 1, 1)), **_MEANS)
avg_pool2d = _pooling("avg_pool2d", "mean", 2, mean, 0.0, samples=((_IMAGE, 2), (_IMAGE, (3, 2), 1, 1)), **_MEANS)
max_pool1d = _pooling(
    "max_pool1d", "largest element", 1, max_, -math.inf, samples=((_SIGNAL, 2), (_SIGNAL, 3, 1, 1)), **_LARGEST
)
max_pool2d = _pooling(
    "max_pool2d", "largest element", 2, max_, -math.inf, samples=((_IMAGE, 2), (_IMAGE, (3, 2), 1, 1)), **_LARGEST
)
