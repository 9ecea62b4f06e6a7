"""Discrete Fourier transforms of balls, as products with matrices of roots of unity, whose rational parts are exact."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, fmpq

from gradcli import limits
from gradcli.arrays.flint.balls import Balls, precision
from gradcli.arrays.flint.complex_balls import Complex, ComplexBalls, as_complex, finished
from gradcli.arrays.flint.complex_numbers.flint_complex_arrays import objects
from gradcli.arrays.flint.complex_numbers.flint_complex_functions import multiply
from gradcli.arrays.flint.complex_numbers.flint_complex_matrices import matmul
from gradcli.arrays.flint.flint_elementary import cospi, sinpi

Array = Any
# The cost of a product of complex numbers, in eighths of a step, and the number of matrices that are kept.
_PRODUCT, _KEPT = 4, 8


def fft(x: Array, *, axis: int, norm: str) -> ComplexBalls:
    return ComplexBalls(_transform(_numbers(x), axis, norm, inverse=False))


def ifft(x: Array, *, axis: int, norm: str) -> ComplexBalls:
    return ComplexBalls(_transform(_numbers(x), axis, norm, inverse=True))


def rfft(x: Array, *, axis: int, norm: str) -> ComplexBalls:
    numbers = _numbers(x)
    whole = _transform(numbers, axis, norm, inverse=False)
    return ComplexBalls(np.take(whole, range(numbers.shape[axis] // 2 + 1), axis))


def irfft(x: Array, *, n: int, axis: int, norm: str) -> Balls:
    """The real numbers of which `rfft` is the transform; the other half of the frequencies has the conjugates."""
    half = np.moveaxis(_numbers(x), axis, -1)
    zero = Complex(fmpq(0), fmpq(0))
    whole = np.full((*half.shape[:-1], n), zero, object)
    for k in range(min(n // 2 + 1, half.shape[-1])):
        if k in (0, n - k):
            # The transform of real numbers is real there, and the imaginary part is not looked at.
            whole[..., k] = _each(lambda z: Complex(as_complex(z).real, fmpq(0)))(half[..., k])
        else:
            whole[..., k] = half[..., k]
            whole[..., n - k] = _each(lambda z: as_complex(z).conjugate())(half[..., k])
    found = _transform(whole, -1, norm, inverse=True)
    return Balls(np.moveaxis(_each(lambda z: as_complex(z).real)(found), -1, axis))


def _each(function: Callable[[Any], Any]) -> Callable[[Array], Array]:
    mapped = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(mapped(x), object)


def _numbers(x: Array) -> Array:
    return objects(x.numbers if isinstance(x, Balls) else np.asarray(x))


def _transform(x: Array, axis: int, norm: str, *, inverse: bool) -> Array:
    moved = np.moveaxis(x, axis, -1)
    n = moved.shape[-1]
    limits.charge_steps(_PRODUCT * moved.size * n)
    found = matmul(moved, _matrix(n, inverse, precision()))
    if norm == "ortho":
        scale = Complex(1 / arb(n).sqrt(), fmpq(0))
    else:
        scale = Complex(fmpq(1, n) if (norm == "forward") != inverse else fmpq(1), fmpq(0))
    return np.moveaxis(_each(lambda z: finished(multiply(z, scale)))(found), -1, axis)


@lru_cache(_KEPT)
def _matrix(n: int, inverse: bool, _precision: int) -> Array:
    """The matrix of exp(-2*pi*i*j*k/n), or of its conjugates, at the current precision."""
    sign = 1 if inverse else -1
    roots = [Complex(cospi(fmpq(2 * k, n)), sign * sinpi(fmpq(2 * k, n))) for k in range(n)]
    found = np.empty((n, n), object)
    for j in range(n):
        for k in range(n):
            found[j, k] = roots[j * k % n]
    return found
