"""`convolve` of `autograd.scipy.signal`: convolution along some axes, with products summed along others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gradcli import numpy as np
from gradcli.errors import ArgumentError, ShapeError

Axes = Sequence[Sequence[int]]


def convolve(A: Any, B: Any, axes: Axes | None = None, dot_axes: Axes = ((), ()), mode: str = "full") -> Any:  # noqa: N803
    """The convolution of A and B along `axes`, a list of axes of A and a list of the corresponding axes of B.

    Products are summed along `dot_axes`. The result has the remaining axes of A, then those of B, then the convolved
    ones. `mode` is "full", "valid" for positions where one array covers the other completely, or "same" for the centre
    of the full result, with the size of A. Raises ArgumentError for another mode, and ShapeError for "valid" where
    neither array is the larger one along all `axes`.
    """
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"the mode of a convolution is 'full', 'same' or 'valid', not {mode!r}")
    a, b = np.asarray(A), np.asarray(B)
    along, summed = axes or (range(a.ndim), range(b.ndim)), dot_axes
    # The axes in the order: kept, summed, convolved.
    left, right = (_ordered(x, summed[i], along[i]) for i, x in enumerate((a, b)))
    sizes, kernel = left.shape[len(left.shape) - len(along[0]) :], right.shape[len(right.shape) - len(along[1]) :]
    swapped = mode == "valid" and any(n < k for n, k in zip(sizes, kernel))
    if swapped:
        if any(n > k for n, k in zip(sizes, kernel)):
            raise ShapeError("one array must be larger than the other along all axes of a 'valid' convolution")
        left, right, sizes, kernel = right, left, kernel, sizes
    middle = [slice((k - 1) // 2, (k - 1) // 2 + n) for n, k in zip(sizes, kernel)]
    if mode != "valid":
        margins = [(0, 0)] * (left.ndim - len(sizes)) + [(k - 1, k - 1) for k in kernel]
        left = np.pad(left, margins, "constant")
        sizes = left.shape[left.ndim - len(sizes) :]
    found = _correlated(left, right, sizes, kernel, len(summed[0]), swapped)
    return found[(..., *middle)] if mode == "same" else found


def _correlated(left: Any, right: Any, sizes: Any, kernel: Any, summed: int, swapped: bool) -> Any:
    """The sum over kernel positions of the products of the kernel with the shifted input."""
    wide = [n - k + 1 for n, k in zip(sizes, kernel)]
    kept = left.ndim - summed - len(sizes), right.ndim - summed - len(sizes)
    total = None
    for place in itertools.product(*map(range, kernel)):
        met = left[(..., *(slice(k - 1 - p, k - 1 - p + n) for p, k, n in zip(place, kernel, wide)))]
        product = np.tensordot(
            right[(..., *place)], met, (range(kept[1], kept[1] + summed), range(kept[0], kept[0] + summed))
        )
        total = product if total is None else total + product
    if swapped:
        return total
    of_left = range(kept[1], kept[1] + kept[0])
    return np.transpose(total, (*of_left, *range(kept[1]), *range(kept[1] + kept[0], np.ndim(total))))


def _ordered(x: Any, summed: Sequence[int], along: Sequence[int]) -> Any:
    """The array with its axes in the order: kept, summed, convolved."""
    kept = [axis for axis in range(x.ndim) if axis not in {*summed, *along}]
    return np.transpose(x, (*kept, *summed, *along))
