"""Reductions of arrays of complex numbers in ball arithmetic: object arrays in and out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from gradcli.arrays.flint.complex_balls import finished
from gradcli.arrays.flint.complex_numbers import flint_complex_functions
from gradcli.arrays.flint.complex_numbers.flint_complex_arrays import objects
from gradcli.arrays.flint.flint_numbers import ONE, ZERO

Array = Any


@cache
def _ufunc(name: str, identity: Any) -> Any:
    """A function of two numbers as a NumPy ufunc."""
    function: Callable[..., Any] = getattr(flint_complex_functions, name)
    return np.frompyfunc(lambda x, y: finished(function(x, y)), 2, 1, identity=identity)


def sum(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return _ufunc("add", ZERO).reduce(objects(x), axis=axis, keepdims=keepdims)


def prod(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return _ufunc("multiply", ONE).reduce(objects(x), axis=axis, keepdims=keepdims)


def cumsum(x: Array, axis: int) -> Array:
    return _ufunc("add", ZERO).accumulate(objects(x), axis=axis)


def cumprod(x: Array, axis: int) -> Array:
    return _ufunc("multiply", ONE).accumulate(objects(x), axis=axis)


def scatter_add(values: Array, key: tuple[Any, ...], shape: Sequence[int]) -> Array:
    """Zeros of `shape` with `values` added at `key`; values at repeated positions accumulate."""
    out = np.full(shape, ZERO, object)
    if any_array(key):
        _ufunc("add", ZERO).at(out, key, values)
    else:
        # A 0-d array would itself become the element.
        out[key] = values if values.ndim else values.item()
    return out


def any_array(key: tuple[Any, ...]) -> bool:
    return True in [hasattr(item, "dtype") for item in key]


def any(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return np.any(_truths(x), axis=axis, keepdims=keepdims)


def all(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return np.all(_truths(x), axis=axis, keepdims=keepdims)


_is_true = np.frompyfunc(lambda x: flint_complex_functions.not_equal(x, ZERO), 1, 1)


def _truths(x: Array) -> Array:
    return np.asarray(_is_true(x), bool)
