"""Sliding windows over the last axes of a tensor: convolution layers and pooling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape
from gradcli.errors import ShapeError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.axes import boolean, integer, option, whole_numbers
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import broadcast_to, permute, reshape
from gradcli.primitives.entries.arithmetic import add, divide, identity
from gradcli.primitives.entries.indexing import axis_key, index, take_along_key
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.reductions import argmax, max_, mean, sum_
from gradcli.primitives.entries.sampled_data.sampling import padded
from gradcli.primitives.entries.shape import expand_dims, flip, matrix_transpose
from gradcli.primitives.operation import Composite

SUBJECT = "layers"

_SIGNAL = [[1.0, 2.5, -3.0, 0.5, 2.0]]
_IMAGE = [[[1.0, 2.0, 3.5, -1.0], [4.0, -5.5, 6.0, 0.5], [0.25, 7.0, -2.0, 3.0]]]
_TAPS, _SQUARES = [[[0.5, -1.0]], [[2.0, 0.25]]], [[[[1.0, -0.5], [0.25, 2.0]]]]


def of_each(value: Any, axes: int, what: str) -> Shape:
    """`value`, one integer for all axes or one for each, as a tuple with an integer for each axis."""
    numbers = whole_numbers(value, what)
    if len(numbers) not in (1, axes):
        raise ShapeError(f"{what} is one number or {axes}, not {len(numbers)}")
    return numbers * (axes // len(numbers))


def _places(last: int, size: int, step: int, distance: int) -> Any:
    """Positions of the elements of each window along an axis, `[windows, size]`."""
    return arrays.guard_memory(lambda xp: xp.arange(0, last, step)[:, None] + distance * xp.arange(size))


def _windows(x: Any, sizes: Shape, steps: Shape, distances: Shape) -> Any:
    """The sliding windows over the last axes of `x`: the axes of the windows, followed by those of the elements in
    each.

    `steps` is the stride between windows, `distances` the dilation between elements.
    """
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
        x = index(x, axis_key(axis, places))
    order = [*range(lead), *range(lead, lead + 2 * axes, 2), *range(lead + 1, lead + 2 * axes, 2)]
    return permute(x, order)


def _surrounded(x: Any, widths: Sequence[Sequence[int]], value: float) -> Any:
    lead = len(arrays.shape(x)) - len(widths)
    return padded(x, [(0, 0)] * lead + list(widths), "constant", value)


def _widths(padding: Any, spans: Shape, steps: Shape) -> list[tuple[int, int]]:
    """The padding before and after each axis, for windows of these extents."""
    if isinstance(padding, str) and option(padding, ("same", "valid"), "padding") == "same":
        if max(steps) > 1:
            raise ShapeError("padding='same' is for strides of 1")
        return [((span - 1) // 2, span // 2) for span in spans]
    if isinstance(padding, str):
        return [(0, 0)] * len(spans)
    return [(width, width) for width in of_each(padding, len(spans), "'padding'")]


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
        given, kernel, count = arrays.shape(input), arrays.shape(weight), integer(groups, "'groups'")
        fits = len(given) in (axes + 1, axes + 2) and len(kernel) == axes + 2 and count > 0
        channels = given[-axes - 1] if fits else 0
        if not fits or kernel[1] * count != channels or kernel[0] % count:
            raise ShapeError(
                f"'{name}' of {list(given)} with a weight of {list(kernel)} in {count} groups does not fit",
                hint="input is (n, channels, sizes), weight (results, channels/groups, sizes of the window)",
            )
        steps, distances = of_each(stride, axes, "'stride'"), of_each(dilation, axes, "'dilation'")
        sizes = kernel[2:]
        spans = tuple(distance * (size - 1) + 1 for distance, size in zip(distances, sizes))
        windows = _windows(_surrounded(input, _widths(padding, spans, steps), 0.0), sizes, steps, distances)
        lead, places = given[: -axes - 1], arrays.shape(windows)[len(given) - axes : len(given)]
        # For the matrix products: a row for each window, with its elements in all channels of a group.
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


def _place(axes: int) -> str:
    return "the last axis" if axes == 1 else f"the last {axes} axes"


def _convolving(name: str, axes: int, samples: Sequence[Any]) -> Composite:
    return Composite(
        name, "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1",
        f"bias plus the sum of weight*input over the channels and a window at each place of {_place(axes)}",
        _convolution(name, axes),
        node_name="ConvolutionBackward0",
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
conv3d = _convolving("conv3d", 3, (([_IMAGE], [_SQUARES]),))


def _transposed(name: str, axes: int) -> Callable[..., Any]:
    """The transposed convolution: a convolution of the input with zeros inserted between its elements.

    It is the derivative of `_convolution` by its input.
    """
    convolve = _convolution(name, axes)

    def definition(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: Any = 1,
        dilation: Any = 1,
    ) -> Any:
        given, kernel, count = arrays.shape(input), arrays.shape(weight), integer(groups, "'groups'")
        if len(given) not in (axes + 1, axes + 2) or len(kernel) != axes + 2 or count < 1 or kernel[0] % count:
            raise ShapeError(
                f"'{name}' of {list(given)} with a weight of {list(kernel)} in {count} groups does not fit"
            )
        numbers = (
            ("'stride'", stride),
            ("'dilation'", dilation),
            ("'padding'", padding),
            ("'output_padding'", output_padding),
        )
        steps, distances, widths, further = (of_each(value, axes, what) for what, value in numbers)
        lead = len(given) - axes
        spaced = input
        for axis, step in enumerate(steps, lead):
            spaced = _with_zeros_between(spaced, axis, step)
        spans = [distance * (size - 1) for distance, size in zip(distances, kernel[2:])]
        pairs = [(span - width, span - width + more) for span, width, more in zip(spans, widths, further)]
        surrounded = padded(
            _cut(spaced, pairs), [(0, 0)] * lead + [(max(a, 0), max(b, 0)) for a, b in pairs], "constant", 0.0
        )
        turned = flip(reshape(weight, (count, kernel[0] // count, *kernel[1:])), tuple(range(3, 3 + axes)))
        turned = permute(turned, [0, 2, 1, *range(3, 3 + axes)])
        taps = reshape(turned, (count * kernel[1], kernel[0] // count, *kernel[2:]))
        return convolve(surrounded, taps, bias, 1, 0, list(distances), count)

    return definition


def _with_zeros_between(x: Any, axis: int, step: int) -> Any:
    sizes = arrays.shape(x)
    if step == 1 or not sizes[axis]:
        return x
    apart = padded(
        expand_dims(x, axis + 1),
        [(0, step - 1) if a == axis + 1 else (0, 0) for a in range(len(sizes) + 1)],
        "constant",
        0.0,
    )
    joined = reshape(apart, (*sizes[:axis], sizes[axis] * step, *sizes[axis + 1 :]))
    return index(joined, axis_key(axis, slice(0, (sizes[axis] - 1) * step + 1)))


def _cut(x: Any, pairs: Sequence[Sequence[int]]) -> Any:
    """`x` cropped by the negative widths in `pairs`."""
    key = tuple(slice(max(-before, 0), min(behind, 0) or None) for before, behind in pairs)
    return index(x, (Ellipsis, *key)) if min(map(min, pairs)) < 0 else x


def _convolving_back(name: str, axes: int, samples: Sequence[Any]) -> Composite:
    return Composite(
        name, "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1",
        f"bias plus each element of input times weight, added up in windows over {_place(axes)}, as backward of a convolution has it",
        _transposed(name, axes),
        node_name="ConvolutionBackward0",
        derivative="the convolution of g with weight, g times the windows, sum(g)",
        samples=samples,
    )  # fmt: skip


_BACK = [[[0.5, -1.0]], [[2.0, 0.25]]]
conv_transpose1d = _convolving_back(
    "conv_transpose1d", 1, (([[1.0, 2.0], [0.5, -1.0]], _BACK), ([[1.0, 2.0], [0.5, -1.0]], _BACK, [0.5], 2, 1, 1))
)
conv_transpose2d = _convolving_back(
    "conv_transpose2d", 2, ((_IMAGE, _SQUARES), (_IMAGE, _SQUARES, [0.5], (2, 1), (1, 0)))
)
conv_transpose3d = _convolving_back("conv_transpose3d", 3, (([_IMAGE], [_SQUARES]),))


class Places(NamedTuple):
    """Sliding windows over the last axes: sizes, strides, dilations and the padding on both sides; `further` is
    additional padding at the end, which completes the last window of each axis."""

    sizes: Shape
    steps: Shape
    distances: Shape
    widths: Shape
    further: Shape

    def windows(self, x: Any, beside: float) -> Any:
        pairs = [(width, width + more) for width, more in zip(self.widths, self.further)]
        return _windows(_surrounded(x, pairs, beside), self.sizes, self.steps, self.distances)


def _pooled_places(
    name: str, input: Any, axes: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any
) -> Places:
    shape, sizes = arrays.shape(input), of_each(kernel_size, axes, "'kernel_size'")
    if len(shape) not in (axes + 1, axes + 2):
        raise ShapeError(f"'{name}' takes a tensor of {axes + 1} or {axes + 2} dimensions, not of {len(shape)}")
    # PyTorch accepts an empty list for the default stride.
    steps = () if stride is None else whole_numbers(stride, "'stride'")
    steps = of_each(steps, axes, "'stride'") if steps else sizes
    widths, distances = of_each(padding, axes, "'padding'"), of_each(dilation, axes, "'dilation'")
    if any(2 * width > size for width, size in zip(widths, sizes)):
        raise ShapeError("padding is at most the half of a window")
    further = [0] * axes
    if boolean(ceil_mode, "'ceil_mode'"):
        for axis, length in enumerate(shape[len(shape) - axes :]):
            step, span = max(steps[axis], 1), distances[axis] * (sizes[axis] - 1) + 1
            left_over = length + 2 * widths[axis] - span
            last = -(-left_over // step) * step
            # A window that starts in the padding at the end is left out, as in PyTorch's ceil_mode.
            last -= step * (last >= length + widths[axis])
            further[axis] = max(last - left_over, 0)
    return Places(sizes, steps, distances, widths, tuple(further))


def _average(name: str, axes: int, samples: Sequence[Any]) -> Composite:
    def definition(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: Any = False,
        count_include_pad: Any = True,
        divisor_override: Any = None,
    ) -> Any:
        places = _pooled_places(name, input, axes, kernel_size, stride, padding, 1, ceil_mode)
        within = tuple(range(-axes, 0))
        windows = places.windows(input, 0.0)
        if divisor_override is not None:
            return divide(sum_(windows, within), float(integer(divisor_override, "'divisor_override'")))
        counts_padding = boolean(count_include_pad, "'count_include_pad'")
        if not any(places.further) and (counts_padding or not any(places.widths)):
            return mean(windows, within)
        shape = arrays.shape(input)[-axes:]
        ones = arrays.guard_memory(lambda xp: xp.ones(shape))
        if counts_padding:
            ones = _surrounded(ones, [(width, width) for width in places.widths], 1.0)
            places = places._replace(widths=(0,) * axes)
        return divide(sum_(windows, within), sum_(places.windows(ones, 0.0), within))

    return Composite(
        name,
        "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None",
        f"mean of each window over {_place(axes)}", definition,
        node_name=f"AvgPool{axes}DBackward0", gradient_name=f"AvgPool{axes}DBackwardBackward0",
        derivative="g/n added up where each element came from",
        edges=(SIDE_BY_SIDE, "the zeros of padding count unless count_include_pad=False", _LAST),
        samples=samples,
    )  # fmt: skip


class Largest(NamedTuple):
    """The largest element of each window, and its flat index over the axes that the windows move along."""

    values: Any
    indices: Any


def largest(input: Any, windows_of: Callable[[Any, float], Any], axes: int, return_indices: Any) -> Any:
    """The largest element of each window over the last `axes` axes, with `return_indices` as `Largest`.

    `windows_of(x, fill)` gives the windows of an array along its last `axes` axes, filled up with `fill`.
    """
    windows = windows_of(input, -math.inf)
    if not boolean(return_indices, "'return_indices'"):
        # A node of its own, because the result may be changed in place before backward, which needs that of `max_`.
        return identity(max_(windows, tuple(range(-axes, 0))))
    numbers = windows_of(_flat_numbers(arrays.shape(input), axes), 0.0)
    lead = arrays.shape(windows)[:-axes]
    flat = (*lead, math.prod(arrays.shape(windows)[-axes:]))
    windows, numbers = reshape(windows, flat), reshape(numbers, flat)
    where_largest = concrete(expand_dims(argmax(windows, -1), -1))
    key = take_along_key((*lead, 1), len(lead), where_largest)
    return Largest(*(reshape(index(part, key), lead) for part in (windows, numbers)))


def _flat_numbers(shape: Shape, axes: int) -> Any:
    """The flat index of each element over the last `axes` axes, in an array of this shape."""
    last = shape[-axes:]
    numbers = arrays.guard_memory(lambda xp: xp.reshape(xp.arange(math.prod(last)), last))
    return broadcast_to(numbers, shape)


def _largest(name: str, axes: int, samples: Sequence[Any]) -> Composite:
    def definition(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: Any = False,
        return_indices: Any = False,
    ) -> Any:
        places = _pooled_places(name, input, axes, kernel_size, stride, padding, dilation, ceil_mode)
        return largest(input, places.windows, axes, return_indices)

    return Composite(
        name, "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False",
        f"largest element of each window over {_place(axes)}", definition,
        node_name=f"MaxPool{axes}DWithIndicesBackward0", gradient_name=f"MaxPool{axes}DWithIndicesBackwardBackward0",
        derivative="g at the largest element of each window, in equal shares where there are several",
        edges=(SIDE_BY_SIDE, "padding is below all numbers", _LAST, WITH_INDICES),
        samples=samples,
    )  # fmt: skip


SIDE_BY_SIDE = "windows lie side by side where there is no stride"
WITH_INDICES = "return_indices=True gives their places too, and g goes to one"
_LAST = "ceil_mode=True has one more window where some elements are left over"
avg_pool1d = _average("avg_pool1d", 1, ((_SIGNAL, 2), (_SIGNAL, 3, 1, 1)))
avg_pool2d = _average("avg_pool2d", 2, ((_IMAGE, 2), (_IMAGE, (3, 2), 1, 1)))
avg_pool3d = _average("avg_pool3d", 3, (([_IMAGE], (1, 2, 2)),))
max_pool1d = _largest("max_pool1d", 1, ((_SIGNAL, 2), (_SIGNAL, 3, 1, 1)))
max_pool2d = _largest("max_pool2d", 2, ((_IMAGE, 2), (_IMAGE, (3, 2), 1, 1)))
max_pool3d = _largest("max_pool3d", 3, (([_IMAGE], (1, 2, 2)),))
