"""Functions of complex matrices in ball arithmetic, over the last two axes: object arrays in and out.

Products and linear systems are those of real matrices of twice the size, see `gradcli.arrays.flint.flint_matrices`:
fractions stay exact, and a singular matrix of fractions is recognised.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import acb_mat, fmpq

from gradcli import limits
from gradcli.arrays.flint import flint_matrices
from gradcli.arrays.flint.balls import Balls
from gradcli.arrays.flint.complex_balls import NOWHERE, Complex, as_complex, finished, of_ball
from gradcli.arrays.flint.complex_numbers.flint_complex_arrays import objects
from gradcli.arrays.flint.complex_numbers.flint_complex_functions import abs as modulus
from gradcli.arrays.flint.complex_numbers.flint_complex_functions import divide, multiply, ones_like, subtract
from gradcli.arrays.flint.flint_elementary import log
from gradcli.arrays.flint.flint_numbers import ZERO
from gradcli.arrays.flint.flint_reductions import binary_ufunc

Array = Any

_real_of = np.frompyfunc(lambda x: as_complex(x).real, 1, 1)
_imag_of = np.frompyfunc(lambda x: as_complex(x).imag, 1, 1)
_joined = np.frompyfunc(Complex, 2, 1)


def _parts(x: Array) -> tuple[Array, Array]:
    numbers = objects(x)
    return np.asarray(_real_of(numbers), object), np.asarray(_imag_of(numbers), object)


def _of_parts(real: Array, imag: Array) -> Array:
    return np.asarray(_joined(real, imag), object)


# --- products


def matmul(a: Array, b: Array) -> Array:
    return _by_parts(flint_matrices.matmul, a, b)


def einsum(*operands: Array, subscripts: str) -> Array:
    return _by_parts(lambda *parts: flint_matrices.einsum(*parts, subscripts=subscripts), *operands)


def _by_parts(product: Callable[..., Array], *operands: Array) -> Array:
    """A multilinear function of complex arrays from that of real ones: the sum over the parts of all operands."""
    found: list[Array] = [None, None]
    for chosen in itertools.product((0, 1), repeat=len(operands)):
        parts = [_parts(x)[part] for x, part in zip(operands, chosen)]
        # i to the power of the number of imaginary parts: 1, i, -1, -i.
        turns = sum(chosen)
        name = "subtract" if turns % 4 >= 2 else "add"
        term, place = product(*parts), turns % 2
        so_far = np.full(np.shape(term), ZERO, object) if found[place] is None else found[place]
        found[place] = np.asarray(binary_ufunc(name)(so_far, term), object)
    return _of_parts(*found)


# --- functions of square matrices


def inv(x: Array) -> Array:
    return solve(x, np.eye(x.shape[-1]))


def solve(a: Array, b: Array) -> Array:
    """The x with a@x = b, for a vector or the columns of each matrix; raises as that of real matrices does.

    (A + i*B)@(X + i*Y) = C + i*D is a system of real numbers, with the rows A@X - B@Y = C and B@X + A@Y = D.
    """
    columns = objects(b)[:, None] if b.ndim == 1 else objects(b)
    (a_real, a_imag), (b_real, b_imag) = _parts(a), _parts(columns)
    minus = np.asarray(np.frompyfunc(lambda x: -x, 1, 1)(a_imag), object)
    whole = np.concat([np.concat([a_real, minus], axis=-1), np.concat([a_imag, a_real], axis=-1)], axis=-2)
    found = flint_matrices.solve(whole, np.concat([b_real, b_imag], axis=-2))
    real, imag = np.split(found, 2, axis=-2)
    joined = _of_parts(real, imag)
    return joined[..., 0] if b.ndim == 1 else joined


def pinv(x: Array) -> Array:
    """The pseudo-inverse of each matrix, which must have full rank: inv(x.H@x)@x.H, or the transpose of that of x.T."""
    rows, columns = x.shape[-2:]
    if rows < columns:
        return np.matrix_transpose(pinv(np.matrix_transpose(objects(x))))
    adjoint = np.frompyfunc(lambda z: as_complex(z).conjugate(), 1, 1)(np.matrix_transpose(objects(x)))
    try:
        return solve(matmul(adjoint, x), adjoint)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError("there are proved digits for full rank alone") from None


def det(x: Array) -> Array:
    """The determinant of each matrix."""
    return _of_each(_determinant, x)


def slogdet(x: Array) -> tuple[Array, Any]:
    """The phase of each determinant, and the logarithm of its modulus."""
    found = det(x)
    size = np.asarray(np.frompyfunc(modulus, 1, 1)(found), object)
    phase = np.frompyfunc(lambda z, r: Complex(ZERO, ZERO) if r == 0 else divide(z, r), 2, 1)(found, size)
    logarithm = np.asarray(np.frompyfunc(log, 1, 1)(size), object)
    return np.asarray(phase, object), Balls(logarithm if logarithm.ndim else logarithm.item())


def expm(x: Array) -> Array:
    """The exponential of each matrix."""

    def exponential(a: Array) -> Sequence[Complex]:
        limits.charge_steps(4 * len(a) ** 3)
        return [of_ball(number) for number in _matrix(a).exp().entries()]

    return _of_each(exponential, x, x.shape[-2:])


def _of_each(function: Callable[[Array], Any], x: Array, shape: Sequence[int] = ()) -> Array:
    """Apply a function to each matrix of a batch; the last axes of the result have the sizes `shape`."""
    numbers = objects(x)
    found = np.empty((*x.shape[:-2], math.prod(shape)), object)
    for place in np.ndindex(x.shape[:-2]):
        given = numbers[place]
        if all(as_complex(number).is_finite() for number in given.ravel()):
            made = function(given)
            found[place] = [finished(made)] if not shape else [*map(finished, made)]
        else:
            found[place] = [NOWHERE] * math.prod(shape)
    return found.reshape((*x.shape[:-2], *shape))


def _matrix(a: Array) -> Any:
    return acb_mat(*a.shape, [as_complex(number).ball() for number in a.ravel()])


def _determinant(a: Array) -> Complex:
    numbers = [[as_complex(number) for number in row] for row in a]
    if any(type(part) is not fmpq for row in numbers for z in row for part in z.parts):
        return of_ball(_matrix(a).det())
    return _exact_determinant(numbers)


def _exact_determinant(rows: list[list[Complex]]) -> Complex:
    """The determinant of a matrix of fractions by Gaussian elimination."""
    found = ones_like(None)
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if any(part != 0 for part in rows[i][k].parts)), None)
        if pivot is None:
            return Complex(ZERO, ZERO)
        if pivot != k:
            rows[k], rows[pivot] = rows[pivot], rows[k]
            found = found.negative()
        found = multiply(found, rows[k][k])
        for i in range(k + 1, len(rows)):
            factor = divide(rows[i][k], rows[k][k])
            rows[i] = [subtract(x, multiply(factor, y)) for x, y in zip(rows[i], rows[k])]
            limits.charge_steps(4 * len(rows))
    return found
