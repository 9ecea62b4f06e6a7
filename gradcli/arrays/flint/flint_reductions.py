"""Reductions, sorting and searching of arrays of FLINT numbers: object arrays in and out; bool and integers plain.

Comparisons of balls either decide or raise UndecidedError. A maximum may be a ball that encloses both candidates, but
an index must be certain.
"""

from __future__ import annotations

import builtins
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cache, cmp_to_key
from typing import Any

import numpy as np
from flint import fmpq

from gradcli.arrays import numpy_arrays
from gradcli.arrays.flint import flint_functions
from gradcli.arrays.flint.balls import Number, bounded_height, checked_result, is_nan
from gradcli.arrays.flint.flint_names import of_numbers
from gradcli.arrays.flint.flint_shapes import objects, take_along_axis

Array = Any
_ZERO, _ONE = fmpq(0), fmpq(1)


@cache
def binary_ufunc(name: str, identity: Number | None = None) -> Any:
    """A function of two numbers as a NumPy ufunc, with `reduce`, `accumulate` and `at`."""
    function: Any = of_numbers(name)

    def of_two(x: Number, y: Number) -> Number:
        return checked_result(bounded_height(function(x, y)), (x, y))

    return np.frompyfunc(of_two, 2, 1, identity=identity)


@cache
def unary_ufunc(name: str) -> Any:
    """A function of one number as a NumPy ufunc."""
    function: Any = of_numbers(name)
    return np.frompyfunc(lambda x: checked_result(bounded_height(function(x)), (x,)), 1, 1)


# --- sums, products and extremes


def sum(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return binary_ufunc("add", _ZERO).reduce(objects(x), axis=axis, keepdims=keepdims)


def prod(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return binary_ufunc("multiply", _ONE).reduce(objects(x), axis=axis, keepdims=keepdims)


def scatter_add(values: Array, key: tuple[Any, ...], shape: Sequence[int]) -> Array:
    """Zeros of `shape` with `values` added at `key`; values at repeated positions accumulate."""
    if values.dtype != object:
        return numpy_arrays.scatter_add(values, key, tuple(shape))
    out = np.full(shape, _ZERO, object)
    if builtins.any(hasattr(item, "dtype") for item in key):
        binary_ufunc("add", _ZERO).at(out, key, values)
    else:
        # A 0-d array would itself become the element.
        out[key] = values if values.ndim else values.item()
    return out


def cumsum(x: Array, axis: int) -> Array:
    return binary_ufunc("add", _ZERO).accumulate(objects(x), axis=axis)


def cumprod(x: Array, axis: int) -> Array:
    return binary_ufunc("multiply", _ONE).accumulate(objects(x), axis=axis)


def max(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return _extreme("maximum", objects(x), axis, keepdims)


def min(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return _extreme("minimum", objects(x), axis, keepdims)


def _extreme(name: str, x: Array, axis: Any, keepdims: bool) -> Array:
    """The maximum or minimum, one axis at a time: a ufunc without an identity cannot reduce several axes at once."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for number in sorted(axes, reverse=True):
        x = binary_ufunc(name).reduce(x, axis=number, keepdims=keepdims)
    return x


def any(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return np.any(_truths(x), axis=axis, keepdims=keepdims)


def all(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return np.all(_truths(x), axis=axis, keepdims=keepdims)


_is_true = np.frompyfunc(lambda x: not flint_functions.is_zero(x), 1, 1)


def _truths(x: Array) -> Array:
    return np.asarray(_is_true(x), bool) if x.dtype == object else x


# --- places in an order


def _below(x: Number, y: Number) -> bool:
    """Return whether x sorts before y in ascending order, with nan last. The same ball object compares equal to
    itself."""
    if x is y or is_nan(x):
        return False
    return is_nan(y) or flint_functions.less(x, y)


_in_order = cmp_to_key(lambda x, y: -_below(x, y))


def argmax(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    return _position(lambda best, number: _below(best, number), x, axis, keepdims)


def argmin(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    return _position(lambda best, number: _below(number, best), x, axis, keepdims)


def _position(worse: Callable[[Number, Number], bool], x: Array, axis: int | None, keepdims: bool) -> Array:
    if not x.size:
        return np.argmax(np.zeros(x.shape), axis=axis, keepdims=keepdims)
    rows, along = (x.reshape(-1), 0) if axis is None else (x, axis)
    found = np.apply_along_axis(_best, along, objects(rows), worse)
    if not keepdims:
        return found
    return found.reshape((1,) * x.ndim) if axis is None else np.expand_dims(found, axis)


def _best(row: Array, worse: Callable[[Number, Number], bool]) -> int:
    """The index of the first best number, or of the first nan."""
    best = 0
    for place, number in enumerate(row):
        if is_nan(number):
            return place
        if worse(row[best], number):
            best = place
    return best


def argsort(x: Array, axis: int, stable: bool = True) -> Array:
    """The indices that sort the numbers in ascending order; the sort is stable."""
    return np.apply_along_axis(_rising, axis, objects(x)) if x.size else np.argsort(np.zeros(x.shape), axis=axis)


def _rising(row: Array) -> Array:
    numbers = row.tolist()
    fractions = builtins.all(type(number) is fmpq for number in numbers)
    keys = numbers if fractions else [*map(_in_order, numbers)]
    return np.asarray(sorted(range(len(keys)), key=keys.__getitem__))


def sort(x: Array, axis: int, stable: bool = True) -> Array:
    return take_along_axis(x, argsort(x, axis), axis)


def searchsorted(ordered: Array, values: Array, side: str = "left") -> Array:
    """The insertion points of `values` in an ascending vector: before equal numbers (`left`) or after them."""
    keys = [*map(_in_order, objects(ordered))]
    place = bisect_left if side == "left" else bisect_right
    return np.asarray(np.frompyfunc(lambda value: place(keys, _in_order(value)), 1, 1)(objects(values)), np.int64)
