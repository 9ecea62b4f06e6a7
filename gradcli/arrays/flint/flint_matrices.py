"""Functions of matrices in ball arithmetic, over the last two axes: from object arrays of FLINT numbers to such arrays.

If all numbers are fractions, and exact arithmetic takes no longer than balls with a few times the precision, the result
is exact, and a singular matrix is recognised. A matrix of balls is never proved to be singular: if FLINT finds no pivot
that is certainly nonzero, an UndecidedError asks for more digits. The enclosures are those of `arb_mat`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from flint import arb_mat, fmpq, fmpq_mat

from gradcli import limits
from gradcli.arrays.flint.balls import UNDEFINED, Number, UndecidedError, bounded_height, checked_result, precision
from gradcli.arrays.flint.flint_reductions import unary_ufunc
from gradcli.arrays.flint.flint_shapes import objects

Array = Any
# At this squared precision, each multiplication within a matrix exponential is charged a further eighth of a step.
_EXPONENTIAL = 130_000
# Exact arithmetic is used while the numbers of a result have at most this multiple of the working precision in bits.
_LARGEST = 16


def identity_matrix(n: int) -> arb_mat:
    return arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])


# --- products


def matmul(a: Array, b: Array) -> Array:
    """The matrix product over the last axis of `a` and the last but one of `b`; a vector is a row or a column."""
    left, right = objects(a), objects(b)
    left, right = left[None] if a.ndim == 1 else left, right[:, None] if b.ndim == 1 else right
    product = _of_each(_product, left.shape[-2:-1] + right.shape[-1:], left, right)
    product = product[..., 0] if b.ndim == 1 else product
    return product[..., 0] if a.ndim == 1 == b.ndim else product[..., 0, :] if a.ndim == 1 else product


def _product(a: Array, b: Array) -> Iterable[Number]:
    # The common denominator of a sum of fractions is at most the product of those of both matrices.
    kind = fmpq_mat if _height(a) + _height(b) <= _LARGEST * precision() else arb_mat
    return (_matrix(kind, a) * _matrix(kind, b)).entries()  # type: ignore[no-any-return]


def einsum(*operands: Array, subscripts: str) -> Array:
    """The sum of products given by `subscripts`, contracting two tensors at a time.

    Every letter of a term occurs in it once, and again in another term or in the result.
    """
    left, _, result = subscripts.partition("->")
    left_over = [*zip((objects(x) for x in operands), left.split(","))]
    for step in _order(subscripts, operands):
        taken = [left_over[i] for i in step]
        left_over = [pair for i, pair in enumerate(left_over) if i not in step]
        product = taken.pop(0)
        while taken:
            other = taken.pop(0)
            kept = set(result).union(*(term for _, term in (*taken, *left_over)))
            product = _contracted(*product, *other, kept)
        left_over.append(product)
    tensor, term = left_over[0]
    return np.transpose(tensor, [term.index(c) for c in result])


def _order(subscripts: str, tensors: Sequence[Array]) -> Sequence[Sequence[int]]:
    """The contraction path: the positions of the tensors to multiply in each step.

    Each product is appended to the remaining tensors.
    """
    if len(tensors) <= 2:
        return [range(len(tensors))]
    shapes = [np.broadcast_to(0.0, x.shape) for x in tensors]
    steps: Sequence[Sequence[int]] = np.einsum_path(subscripts, *shapes, optimize=True)[0][1:]
    return steps


def _contracted(a: Array, left: str, b: Array, right: str, kept: set[str]) -> tuple[Array, str]:
    """The product of two tensors as a matrix product, summed over the shared letters that are not in `kept`."""
    sizes: dict[str, int] = {}
    for letter, size in zip(left + right, a.shape + b.shape):
        # An axis of size 1 is broadcast.
        sizes[letter] = size if sizes.get(letter, 1) == 1 else sizes[letter]
    both = [c for c in left if c in right]
    shared, summed = [c for c in both if c in kept], [c for c in both if c not in kept]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    factors = []
    for x, term, order in ((a, left, (shared, rows, summed)), (b, right, (shared, summed, columns))):
        whole = np.broadcast_to(x, [sizes[c] for c in term])
        moved = np.transpose(whole, [term.index(c) for letters in order for c in letters])
        factors.append(moved.reshape([math.prod(sizes[c] for c in letters) for letters in order]))
    letters = (*shared, *rows, *columns)
    return matmul(*factors).reshape([sizes[c] for c in letters]), "".join(letters)


# --- functions of square matrices


def inv(x: Array) -> Array:
    """The inverse of each matrix.

    Raises LinAlgError for a singular matrix, UndecidedError for one that may be singular.
    """
    return solve(x, np.eye(x.shape[-1]))


def solve(a: Array, b: Array) -> Array:
    """The x with a@x = b, for a vector or the columns of each matrix. Raises as `inv` does."""
    columns = objects(b)[:, None] if b.ndim == 1 else objects(b)
    found = _of_each(_solved, columns.shape[-2:], objects(a), columns)
    return found[..., 0] if b.ndim == 1 else found


def _solved(a: Array, b: Array) -> Iterable[Number]:
    kind = fmpq_mat if _affordable(a, b) else arb_mat
    left, right = _matrix(kind, a), _matrix(kind, b)
    if kind is arb_mat and not all(x.is_finite() for x in left.entries()):
        return [UNDEFINED] * b.size
    try:
        return left.solve(right).entries()  # type: ignore[no-any-return]
    except ZeroDivisionError:
        if kind is arb_mat:
            raise UndecidedError("it cannot be told whether a matrix is singular") from None
        raise np.linalg.LinAlgError("Singular matrix") from None


def pinv(x: Array) -> Array:
    """The pseudo-inverse of each matrix, which must have full rank: inv(x.T@x)@x.T, or the transpose of that of x.T.

    Raises LinAlgError for a lower rank, UndecidedError if the rank is not certain.
    """
    rows, columns = x.shape[-2:]
    turned = np.matrix_transpose(objects(x))
    if rows < columns:
        return np.matrix_transpose(pinv(turned))
    try:
        return solve(matmul(turned, x), turned)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError("there are proved digits for full rank alone") from None


def det(x: Array) -> Array:
    """The determinant of each matrix."""
    return _of_each(lambda a: [_matrix(fmpq_mat if _affordable(a) else arb_mat, a).det()], (), objects(x))


def slogdet(x: Array) -> tuple[Array, Array]:
    """The sign of each determinant, and the logarithm of its magnitude."""
    found = det(x)
    return unary_ufunc("sign")(found), unary_ufunc("log")(unary_ufunc("abs")(found))


def expm(x: Array) -> Array:
    """The exponential of each matrix."""
    return _of_each(_exponential, x.shape[-2:], objects(x))


def _exponential(a: Array) -> Iterable[Number]:
    limits.charge_steps(len(a) ** 3 * (1 + precision() ** 2 // _EXPONENTIAL))
    return _matrix(arb_mat, a).exp().entries()  # type: ignore[no-any-return]


# --- numbers in and out


def _of_each(function: Callable[..., Iterable[Number]], shape: Sequence[int], *matrices: Array) -> Array:
    """Apply a function to each matrix of a batch, and collect the results in one array.

    The last axes of the result have the sizes `shape`.
    """
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in matrices))
    spread = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in matrices]
    found = np.empty((*batch, math.prod(shape)), object)
    for place in np.ndindex(batch):
        given = [x[place] for x in spread]
        found[place] = [_result(number, given) for number in function(*given)]
    return found.reshape((*batch, *shape))


def _result(number: Number, operands: Sequence[Array]) -> Number:
    if type(number) is fmpq or number.is_finite():
        return bounded_height(number)
    given = [x for operand in operands for x in operand.ravel()]
    if all(type(x) is fmpq or x.is_finite() for x in given):
        # FLINT returns no bounds for very large numbers.
        raise UndecidedError("a function of a matrix has no bounds")
    return checked_result(number, given)


def _matrix(kind: Any, x: Array) -> Any:
    return kind(*x.shape, x.ravel().tolist())


def _height(x: Array) -> float:
    """A bound of the bits of the common denominator plus the largest height of the numbers; infinite for balls."""
    most, bits = _LARGEST * precision(), 0
    denominators = set()
    for number in x.ravel():
        if type(number) is not fmpq:
            return math.inf
        bits = max(bits, number.height_bits())
        denominators.add(int(number.q))
    common = 1
    for denominator in denominators:
        common = math.lcm(common, denominator)
        if common.bit_length() > most:
            return math.inf
    return bits + common.bit_length()


def _affordable(a: Array, *others: Array) -> bool:
    """Return whether the determinants that occur in exact elimination of matrices of fractions stay short enough."""
    return len(a) * max(map(_height, (a, *others))) <= _LARGEST * precision()
