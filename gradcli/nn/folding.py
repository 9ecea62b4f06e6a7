"""`unfold` and `fold` of `torch.nn.functional`: images to columns of windows and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ShapeError
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.indexing import index, scatter
from gradcli.primitives.entries.sampled_data.sampling import padded

Pair = int | Sequence[int]


def unfold(input: Tensor, kernel_size: Pair, dilation: Pair = 1, padding: Pair = 0, stride: Pair = 1) -> Any:
    """The windows of images (N, C, H, W) as columns (N, C*window elements, windows); N may be missing."""
    batched = _batched(input, 4)
    wider = padded(batched, [(0, 0), (0, 0), *((p, p) for p in _pair(padding))], "constant", 0.0)
    places = _places(arrays.shape(wider)[2:], kernel_size, dilation, stride)
    found = index(wider, (slice(None), slice(None), *places))
    number, channels, height, width, *windows = arrays.shape(found)
    columns = reshape(found, (number, channels * height * width, windows[0] * windows[1]))
    return columns if input.ndim == 4 else columns[0]


def fold(
    input: Tensor, output_size: Pair, kernel_size: Pair, dilation: Pair = 1, padding: Pair = 0, stride: Pair = 1
) -> Any:
    """Images of `output_size` from columns of windows; overlapping elements are summed. The adjoint of `unfold`."""
    batched, (above, left) = _batched(input, 3), _pair(padding)
    height, width = _pair(output_size)
    wider = (height + 2 * above, width + 2 * left)
    rows, columns = _places(wider, kernel_size, dilation, stride)
    window, windows = (rows.shape[0], columns.shape[1]), (rows.shape[2], columns.shape[3])
    number, size, count = arrays.shape(batched)
    if size % (window[0] * window[1]) or count != windows[0] * windows[1]:
        raise ShapeError(
            f"columns of shape {[size, count]} are not those of {windows[0] * windows[1]} windows of "
            f"{window[0] * window[1]} elements"
        )
    channels = size // (window[0] * window[1])
    parts = reshape(batched, (number, channels, *window, *windows))
    found = scatter(parts, (slice(None), slice(None), rows, columns), (number, channels, *wider))
    inner = (slice(None), slice(None), slice(above, above + height), slice(left, left + width))
    images = index(found, inner)
    return images if input.ndim == 3 else images[0]


def _pair(given: Pair) -> tuple[int, int]:
    first, second = (given, given) if isinstance(given, int) else given
    return int(first), int(second)


def _batched(x: Tensor, rank: int) -> Any:
    if x.ndim not in (rank - 1, rank):
        raise ShapeError(f"Expected {rank - 1}D or {rank}D input, got {x.ndim}D")
    return x if x.ndim == rank else x.unsqueeze(0)


def _places(sizes: Sequence[int], kernel_size: Pair, dilation: Pair, stride: Pair) -> tuple[Any, Any]:
    """The row and column indices of the elements of windows, broadcastable to (window height, window width, windows
    down, windows across)."""
    numpy = arrays.numpy_namespace()
    found = []
    for size, kernel, gap, step in zip(sizes, _pair(kernel_size), _pair(dilation), _pair(stride)):
        count = (size - gap * (kernel - 1) - 1) // step + 1
        if count < 1:
            raise ShapeError(f"windows of {kernel} do not fit an axis of size {size}")
        found.append(numpy.arange(kernel)[:, None] * gap + numpy.arange(count) * step)
    return found[0][:, None, :, None], found[1][None, :, None, :]
