"""Reductions that skip the elements that are nan."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.primitives.axes import boolean, normalize_axes, one_number_or_tensor
from gradcli.primitives.entries.arithmetic import add, divide, multiply, ones_like, remainder, subtract
from gradcli.primitives.entries.comparisons import equal, greater, isnan, nowhere, where
from gradcli.primitives.entries.elementwise.elementary import isinf
from gradcli.primitives.entries.powers import sqrt
from gradcli.primitives.entries.reductions import (
    SAMPLES,
    SIGNATURE,
    axes_last,
    count_along,
    keep_axes,
    max_,
    min_,
    order_statistic,
    prod,
    sum_,
)
from gradcli.primitives.entries.scans import cumsum
from gradcli.primitives.entries.shape import expand_dims
from gradcli.primitives.entries.statistics import median, std, var
from gradcli.primitives.operation import Composite

SUBJECT = "reductions"


def _present(x: Any, axis: Any, keepdims: Any) -> Any:
    """How many elements are not nan."""
    return sum_(where(isnan(x), 0.0, ones_like(x)), axis, keepdims)


def _nansum(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return sum_(where(isnan(x), 0.0, x), axis, keepdims)


nansum = Composite(
    "nansum", SIGNATURE, "sum over the axes of the elements that are not nan", _nansum,
    derivative="g for every element, 0 where it is nan",
    edges=("the sum of no elements is 0",),
    samples=SAMPLES,
)  # fmt: skip


def _nanmean(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return divide(_nansum(x, axis, keepdims), _present(x, axis, keepdims))


nanmean = Composite(
    "nanmean", SIGNATURE, "mean over the axes of the elements that are not nan", _nanmean,
    derivative="g/n for each of the n elements, 0 where it is nan",
    edges=("the mean of no elements is nan",),
    samples=SAMPLES,
)  # fmt: skip

nanprod = Composite(
    "nanprod", SIGNATURE, "product over the axes of the elements that are not nan",
    lambda x, axis=None, keepdims=False: prod(where(isnan(x), 1.0, x), axis, keepdims),
    derivative="g times the product of the other elements, 0 where it is nan",
    edges=("the product of no elements is 1",),
    samples=SAMPLES,
)  # fmt: skip


def _nan_extreme(of: Any, doc: str, replacement: float) -> Composite:
    def definition(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
        missing = isnan(x)
        if nowhere(missing):
            return of(x, axis, keepdims)
        found = of(where(missing, replacement, x), axis, keepdims)
        # Elements that are as infinite as the replacement would share their gradient with it. Where it is the result, the
        # mean of the elements that are not nan has the same value, and is nan where there are none.
        return where(equal(found, replacement), _nanmean(x, axis, keepdims), found)

    return Composite(
        f"nan{of.name}", SIGNATURE, doc, definition,
        derivative="g to the chosen element; ties share it evenly",
        domain="smooth where one element is chosen",
        edges=("n elements that tie get g/n each", "where all elements are nan, it is nan", "no elements are an error"),
        samples=SAMPLES,
    )  # fmt: skip


nanmax = _nan_extreme(max_, "the largest element that is not nan", -math.inf)
nanmin = _nan_extreme(min_, "the smallest element that is not nan", math.inf)


def _with_means(x: Any, axes: Shape) -> Any:
    """`x` with the mean of the others in place of each nan, which changes neither the mean nor the squares about it."""
    return where(isnan(x), _nanmean(x, axes, True), x)


def _spread(x: Any, axes: Shape, keepdims: Any, correction: Any) -> Any:
    """What the variance over all elements is multiplied by so that n - correction is its denominator; nan where that is
    not positive."""
    freedom = subtract(_present(x, axes, keepdims), one_number_or_tensor(correction, "a correction"))
    return divide(float(count_along(arrays.shape(x), axes)), where(greater(freedom, 0.0), freedom, math.nan))


def _nanvar(x: Any, axis: Any = None, keepdims: Any = False, correction: Any = 0) -> Any:
    axes = normalize_axes(axis, len(arrays.shape(x)))
    return multiply(var(_with_means(x, axes), axes, keepdims), _spread(x, axes, keepdims, correction))


nanvar = Composite(
    "nanvar", "x, axis=None, keepdims=False, correction=0",
    "variance over the axes of the n elements that are not nan, with n - correction in the denominator", _nanvar,
    derivative="2*g*(x - nanmean(x))/(n - correction), 0 where it is nan, and sum(g*y)/(n - correction) by the correction",
    edges=("nan where n <= correction",),
    samples=SAMPLES,
)  # fmt: skip


def _nanstd(x: Any, axis: Any = None, keepdims: Any = False, correction: Any = 0) -> Any:
    axes = normalize_axes(axis, len(arrays.shape(x)))
    return multiply(std(_with_means(x, axes), axes, keepdims), sqrt(_spread(x, axes, keepdims, correction)))


nanstd = Composite(
    "nanstd", "x, axis=None, keepdims=False, correction=0",
    "standard deviation over the axes of the elements that are not nan, the square root of nanvar", _nanstd,
    derivative="g*(x - nanmean(x))/((n - correction)*nanstd(x)), 0 where it is nan or nanstd(x) = 0",
    domain="smooth where nanstd(x) != 0",
    edges=("where all elements are equal, the derivative is 0", "nan where n <= correction"),
    samples=SAMPLES,
)  # fmt: skip


def _nanmedian(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    if nowhere(isnan(x)):
        return median(x, axis, keepdims)
    sizes = arrays.shape(x)
    axes = normalize_axes(axis, len(sizes))
    found = _middle_of_present(axes_last(x, axes))
    return keep_axes(found, sizes, axes) if boolean(keepdims, "'keepdims'") else found


def _middle_of_present(flat: Any) -> Any:
    """The median along the last axis of the elements that are not nan.

    inf and -inf take turns in place of nan: as many elements come before the middle as after it, or one more after it.
    """
    size, missing = arrays.shape(flat)[-1], isnan(flat)
    turn = remainder(cumsum(where(missing, 1.0, 0.0), -1), 2.0)
    filled = where(missing, where(equal(turn, 1.0), math.inf, -math.inf), flat)
    rank = (size - 1) // 2
    # The other of the two middle elements, if their number is even: if that of all is odd, one more is after them.
    other = rank + 1 if size % 2 == 0 else max(rank - 1, 0)
    middle = _among_present(flat, order_statistic(filled, rank))
    present = _present(flat, -1, False)
    mean = multiply(0.5, add(middle, _among_present(flat, order_statistic(filled, other))))
    found = where(equal(remainder(present, 2.0), 0.0), mean, middle)
    return where(greater(present, 0.0), found, math.nan)


def _among_present(flat: Any, value: Any) -> Any:
    """An order statistic; of infinite ones the mean of the elements along the last axis that equal it, so that those in
    place of nan have no share of the derivative."""
    infinite = isinf(value)
    if nowhere(infinite):
        return value
    alike = equal(flat, expand_dims(value, -1))
    count = sum_(where(alike, 1.0, 0.0), -1)
    shared = divide(sum_(where(alike, flat, 0.0), -1), where(equal(count, 0.0), 1.0, count))
    return where(infinite, shared, value)


nanmedian = Composite(
    "nanmedian", SIGNATURE, "the middle element of those that are not nan, or the mean of the two in the middle",
    _nanmedian,
    derivative="g to the middle elements; ties share it evenly",
    domain="smooth where one element is chosen",
    edges=(
        "elements equal to the middle one share its part of g evenly",
        "where all elements are nan, it is nan",
        "no elements are an error",
    ),
    samples=SAMPLES,
)  # fmt: skip
