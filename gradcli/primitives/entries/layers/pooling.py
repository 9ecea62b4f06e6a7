"""Max pooling to a given number of parts, power means of windows, and the inverse of max pooling."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape
from gradcli.errors import ShapeError
from gradcli.primitives.axes import integer_array, whole_numbers
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import permute, reshape
from gradcli.primitives.entries.arithmetic import divide, multiply
from gradcli.primitives.entries.comparisons import where
from gradcli.primitives.entries.indexing import axis_key, index
from gradcli.primitives.entries.layers.convolutions import (
    SIDE_BY_SIDE,
    WITH_INDICES,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    largest,
    of_each,
)
from gradcli.primitives.entries.layers.resampling import adaptive_sizes
from gradcli.primitives.entries.manipulation.gather_scatter import scatter
from gradcli.primitives.entries.powers import power
from gradcli.primitives.operation import Composite

SUBJECT = "layers"

_SIGNAL = [[1.0, 2.5, -3.0, 0.5, 2.0]]
_IMAGE = [[[1.0, 2.0, 3.5, -1.0], [4.0, -5.5, 6.0, 0.5], [0.25, 7.0, -2.0, 3.0]]]
_POSITIVE = [[[1.0, 2.0, 3.5, 1.5], [4.0, 5.5, 6.0, 0.5], [0.25, 7.0, 2.0, 3.0]]]


def _parts(old: int, new: int) -> tuple[Any, Any]:
    """The positions of the elements of `new` parts of an axis, `[new, longest]`, and which of them are in the part."""
    numpy = arrays.numpy_namespace()
    numbers = numpy.arange(new)
    first, last = numbers * old // new, -(-(numbers + 1) * old // new)
    places = first[:, None] + numpy.arange((last - first).max())
    return numpy.minimum(places, old - 1), places < last[:, None]


def _in_parts(x: Any, sizes: Shape, beside: float) -> Any:
    """The parts of the last axes: the axes of parts, followed by those of the elements in each, shorter parts filled up
    with `beside`."""
    axes = len(sizes)
    lead = len(arrays.shape(x)) - axes
    for number in reversed(range(axes)):
        places, inside = _parts(arrays.shape(x)[lead + number], sizes[number])
        limits.charge(arrays.size(x) // arrays.shape(x)[lead + number] * places.size)
        of_axis = inside.reshape(*inside.shape, *[1] * (2 * (axes - number - 1)))
        x = where(of_axis, index(x, axis_key(lead + number, places)), beside)
    pairs = range(lead, lead + 2 * axes, 2)
    return permute(x, [*range(lead), *pairs, *(axis + 1 for axis in pairs)])


def _adaptive(axes: int, *samples: Any) -> Composite:
    name = f"adaptive_max_pool{axes}d"

    def definition(input: Any, output_size: Any, return_indices: Any = False) -> Any:
        sizes = adaptive_sizes(name, arrays.shape(input), output_size, axes)
        return largest(input, lambda x, beside: _in_parts(x, sizes, beside), axes, return_indices)

    return Composite(
        name, "input, output_size, return_indices=False",
        f"largest elements of output_size parts of the last {'axis' if axes == 1 else f'{axes} axes'}", definition,
        node_name=f"AdaptiveMaxPool{axes}DBackward0", gradient_name=f"AdaptiveMaxPool{axes}DBackwardBackward0",
        derivative="g at the largest element of each part, in equal shares where there are several",
        edges=(WITH_INDICES,), samples=samples,
    )  # fmt: skip


adaptive_max_pool1d = _adaptive(1, (_SIGNAL, 3))
adaptive_max_pool2d = _adaptive(2, (_IMAGE, [2, 3]))
adaptive_max_pool3d = _adaptive(3, ([_IMAGE], [1, 2, 2]))


def _power_mean(axes: int, mean: Composite, *samples: Any) -> Composite:
    def definition(input: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: Any = False) -> Any:
        sizes = of_each(kernel_size, axes, "'kernel_size'")
        total = mean(power(input, norm_type), sizes, stride, 0, ceil_mode)
        return power(multiply(total, float(math.prod(sizes))), divide(1.0, norm_type))

    return Composite(
        f"lp_pool{axes}d", "input, norm_type, kernel_size, stride=None, ceil_mode=False",
        "sum(x**norm_type)**(1/norm_type) of each window", definition,
        derivative="g*(x/y)**(norm_type - 1) added up where each element came from",
        domain="smooth where no sum is 0",
        edges=(SIDE_BY_SIDE,), samples=samples,
    )  # fmt: skip


lp_pool1d = _power_mean(1, avg_pool1d, ([[1.0, 2.5, 3.0, 0.5, 2.0]], 2.0, 2))
lp_pool2d = _power_mean(2, avg_pool2d, (_POSITIVE, 3.0, 2, 1))
lp_pool3d = _power_mean(3, avg_pool3d, ([_POSITIVE], 2.0, [1, 2, 2]))


def _inverse(axes: int, *samples: Any) -> Composite:
    name = f"max_unpool{axes}d"

    def definition(
        input: Any,
        indices: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Any:
        shape, places = arrays.shape(input), integer_array(concrete(indices), "a place")
        if places.shape != shape or len(shape) not in (axes + 1, axes + 2):
            raise ShapeError(f"'{name}' does not fit elements of {list(shape)} and places of {list(places.shape)}")
        if output_size is None:
            sizes = of_each(kernel_size, axes, "'kernel_size'")
            steps = sizes if stride is None else of_each(stride, axes, "'stride'")
            widths = of_each(padding, axes, "'padding'")
            last = [
                (old - 1) * step + size - 2 * width
                for old, step, size, width in zip(shape[-axes:], steps, sizes, widths)
            ]
        else:
            last = [*whole_numbers(output_size, "'output_size'")[-axes:]]
        count = math.prod(last)
        if places.size and not 0 <= places.min() <= places.max() < count:
            raise ShapeError(f"'{name}' has {count} places, from 0 to {count - 1}")
        lead = shape[:-axes]
        zeros = arrays.zeros((*lead, count), arrays.dtype_name(input))
        flat = scatter(zeros, -1, places.reshape(*lead, -1), reshape(input, (*lead, -1)))
        return reshape(flat, (*lead, *last))

    return Composite(
        name, "input, indices, kernel_size, stride=None, padding=0, output_size=None",
        f"the elements at the places that max_pool{axes}d(…, return_indices=True) found them at, among zeros", definition,
        derivative="g at the places",
        edges=("output_size is needed where windows left some elements over",), samples=samples,
    )  # fmt: skip


max_unpool1d = _inverse(1, ([[2.5, 0.5]], [[1, 3]], 2))
max_unpool2d = _inverse(2, ([[[4.0, 6.0]]], [[[4, 6]]], 2, None, 0, [3, 4]))
max_unpool3d = _inverse(3, ([[[[4.0, 6.0]]]], [[[[4, 6]]]], [1, 2, 2]))
