"""`convolve` as `autograd.scipy.signal` has it: along some axes, with products summed along others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gradcli import numpy as np
from gradcli.errors import ArgumentError, ShapeError

Axes = Sequence[Sequence[int]]


def convolve(A: Any, B: Any, axes: Axes | None = None, dot_axes: Axes = ((), ()), mode: str = "full") -> Any:  # noqa: N803
    """The convolution of A and B along `axes`, a list of axes of A and one of those of B that go with them.

    Products are summed along `dot_axes`, and the axes that are left of A stand first in the result, then those of B,
    then those that are convolved. `mode` is "full", "valid" for the places where one covers the other whole, or "same"
    for the middle of the full one, as large as A.
    Raises ArgumentError for another mode, and ShapeError where neither is the larger along all `axes`.
    """
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"the mode of a convolution is 'full', 'same' or 'valid', not {mode!r}")
    a, b = np.asarray(A), np.asarray(B)
    along, summed = axes or (range(a.ndim), range(b.ndim)), dot_axes
    # As matrices of blocks: what is kept, what is summed, what is convolved.
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
    found = _slid(left, right, sizes, kernel, len(summed[0]), swapped)
    return found[(..., *middle)] if mode == "same" else found


def _slid(left: Any, right: Any, sizes: Any, kernel: Any, summed: int, swapped: bool) -> Any:
    """The sum over the places of a kernel of their products with what they meet."""
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
    """Its axes that are kept, then those that are summed, then those that are convolved."""
    kept = [axis for axis in range(x.ndim) if axis not in {*summed, *along}]
    return np.transpose(x, (*kept, *summed, *along))
