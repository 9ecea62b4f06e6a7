"""Eigenvalues of matrices and roots of polynomials in ball arithmetic, in the order in which NumPy has them.

FLINT isolates them: each ball contains exactly one. It cannot tell equal ones apart, so that these are undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import acb_mat, acb_poly, arb, fmpq, fmpq_mat

from gradcli import limits
from gradcli.arrays.flint.balls import UndecidedError, precision
from gradcli.arrays.flint.complex_balls import Complex, as_complex, finished, of_ball
from gradcli.arrays.flint.complex_numbers.flint_complex_arrays import objects

Array = Any
# At this precision in bits, each of the cube of the number of rows is charged a further eighth of a step.
_BITS = 100
# More steps of Newton's method than any precision needs, as each doubles the accurate bits.
_STEPS = 64


def eigvals(x: Array) -> Array:
    """The eigenvalues of each matrix."""
    return _of_each(_eigenvalues, x, x.shape[-2:])


def polynomial_roots(p: Array, *, leading: int) -> Array:
    """The roots of each polynomial, without `leading` coefficients of the highest powers, which are 0."""
    coefficients = p[..., leading:]
    return _of_each(_roots, coefficients, coefficients.shape[-1:])


def _of_each(function: Callable[[Array], Sequence[Complex]], x: Array, sizes: Sequence[int]) -> Array:
    numbers, batch = objects(x), x.shape[: x.ndim - len(sizes)]
    rows = [[*map(finished, function(numbers[place]))] for place in np.ndindex(batch)]
    found = np.empty((len(rows), len(rows[0]) if rows else 0), object)
    for place, row in enumerate(rows):
        found[place, :] = row
    return found.reshape((*batch, found.shape[-1]))


def eigenbasis(x: Array) -> Array:
    """The eigenvectors of each matrix, as columns of length 1 with about the phases of NumPy's."""
    return _of_each(_eigenvectors, x, x.shape[-2:]).reshape(x.shape)


def _eigenvalues(a: Array) -> Sequence[Complex]:
    numbers = [as_complex(x) for x in a.ravel()]
    if not len(a):
        return []
    near = np.linalg.eig(_floats(numbers).reshape(a.shape))[0]
    if all(type(part) is fmpq for x in numbers for part in x.parts) and _are_real(numbers):
        polynomial = fmpq_mat(*a.shape, [x.real for x in numbers]).charpoly()
        return _roots_of([Complex(c, fmpq(0)) for c in reversed(polynomial.coeffs())], near, "eigenvalues")
    found = _decomposed(a, numbers)[0]
    return [_as_number(found[i], found, found[i], is_real=_are_real(numbers)) for i in _order(found, near)]


def _decomposed(a: Array, numbers: Sequence[Complex]) -> tuple[Sequence[Any], Any]:
    """The eigenvalues of a matrix, and the matrix of the eigenvectors."""
    _charge(len(a))
    try:
        return acb_mat(*a.shape, [x.ball() for x in numbers]).eig(right=True)  # type: ignore[no-any-return]
    except ValueError:
        raise _equal("eigenvalues") from None


def _eigenvectors(a: Array) -> Sequence[Complex]:
    numbers = [as_complex(x) for x in a.ravel()]
    if not len(a):
        return []
    near, vectors = np.linalg.eig(_floats(numbers).reshape(a.shape))
    found, columns = _decomposed(a, numbers)
    made = []
    for place, i in enumerate(_order(found, near)):
        column, largest = [columns[k, i] for k in range(len(a))], int(np.argmax(np.abs(vectors[:, place])))
        length = sum((abs(z) ** 2 for z in column), arb(0)).sqrt()
        # The largest component becomes real, with the sign that it has in NumPy.
        sign = -1 if np.real(vectors[largest, place]) < 0 else 1
        turn = column[largest].conjugate() / abs(column[largest]) / length * sign
        made.append([of_ball(z * turn) for z in column])
    return [made[place][k] for k in range(len(a)) for place in range(len(a))]


def _roots(p: Array) -> Sequence[Complex]:
    numbers = [as_complex(x) for x in p]
    return _roots_of(numbers, np.roots(_floats(numbers)), "roots")


def _roots_of(coefficients: Sequence[Complex], near: Array, what: str) -> Sequence[Complex]:
    _charge(len(coefficients))
    polynomial = acb_poly([x.ball() for x in reversed(coefficients)])
    try:
        found = polynomial.roots()
    except ValueError:
        raise _equal(what) from None
    if len(found) != len(near):
        raise _equal(what)
    every_other = any(all(x.real == 0 == x.imag for x in coefficients[start::2]) for start in (0, 1))
    real = _are_real(coefficients)
    slope = polynomial.derivative()
    return [
        _as_number(found[i], found, _refined(found[i], polynomial, slope), is_real=real, is_even=real and every_other)
        for i in _order(found, near)
    ]


def _refined(ball: Any, polynomial: Any, slope: Any) -> Any:
    """A ball around the root in an isolating ball, by steps of the interval Newton method.

    Each step encloses the root, because the mean slope between the root and the middle is in the hull of slopes.
    """
    for _ in range(_STEPS):
        middle = ball.mid()
        moved = middle - polynomial(middle) / slope(ball)
        if not moved.is_finite() or not moved.rel_accuracy_bits() > ball.rel_accuracy_bits():
            return ball
        ball = moved
    return ball


def _charge(n: int) -> None:
    limits.charge_steps(25 * n**3 * (1 + precision() // _BITS))


def _equal(what: str) -> UndecidedError:
    return UndecidedError(f"two {what} cannot be told apart")


def _are_real(numbers: Sequence[Complex]) -> bool:
    return all(x.imag == 0 for x in numbers)


def _floats(numbers: Sequence[Complex]) -> Array:
    made = [_float(x) for x in numbers]
    return np.array([x.real for x in made]) if _are_real(numbers) else np.array(made)


def _float(x: Complex) -> complex:
    return complex(*(float(arb(part).mid()) for part in x.parts))


def _order(found: Sequence[Any], near: Array) -> Sequence[int]:
    """The numbers of isolating balls in the order of the floats `near`.

    Raises UndecidedError where the floats do not tell the order.
    """
    middles = np.array([complex(float(ball.real.mid()), float(ball.imag.mid())) for ball in found])
    nearest = [int(i) for i in np.argmin(np.abs(middles[None, :] - near[:, None]), axis=1)]
    if sorted(nearest) != [*range(len(found))]:
        raise UndecidedError("the order of eigenvalues or roots is not certain")
    return nearest


def _as_number(ball: Any, found: Sequence[Any], refined: Any, *, is_real: bool, is_even: bool = False) -> Complex:
    """The number in one of several isolating balls, of which a smaller one is `refined`.

    Of real coefficients, a number whose ball meets no conjugate but its own is real. If only every other power occurs
    too, it is imaginary where the same holds for the negative of the conjugate.
    """
    mirrored = is_real and _meets_itself_alone(ball.conjugate(), ball, found)
    turned = is_even and _meets_itself_alone(-ball.conjugate(), ball, found)
    return Complex(arb(0) if turned else refined.real, arb(0) if mirrored else refined.imag)


def _meets_itself_alone(image: Any, ball: Any, found: Sequence[Any]) -> bool:
    return bool(ball.overlaps(image)) and sum(bool(other.overlaps(image)) for other in found) == 1
