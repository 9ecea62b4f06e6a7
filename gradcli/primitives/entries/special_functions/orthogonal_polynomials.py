"""Orthogonal polynomials, associated Legendre functions and real spherical harmonics, by their recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.arrays.mathematical_constants import by_formula
from gradcli.errors import EvaluationError
from gradcli.primitives.axes import integer
from gradcli.primitives.entries.arithmetic import add, divide, multiply, ones_like, subtract
from gradcli.primitives.entries.elementwise.trigonometric import cos, one_minus_square, sin
from gradcli.primitives.entries.powers import power, sqrt
from gradcli.primitives.operation import Composite

SUBJECT = "special"

_HIGHEST_DEGREE = 1000
_over_4_pi, _sqrt_2 = by_formula(lambda m: 1.0 / (4.0 * m.pi)), by_formula(lambda m: m.sqrt(2.0))


def _degree(n: Any, name: str) -> int:
    degree = integer(n, f"the degree of '{name}'")
    if not 0 <= degree <= _HIGHEST_DEGREE:
        raise EvaluationError(f"the degree of '{name}' must be from 0 to {_HIGHEST_DEGREE:,}")
    return degree


def _by_recurrence(n: int, x: Any, first: Any, following: Callable[[int, Any, Any], Any]) -> Any:
    """p[n] from p[0] = 1, p[1] = `first` and p[k + 1] = following(k, p[k], p[k - 1])."""
    before, value = ones_like(x), first
    if not n:
        return before
    for k in range(1, n):
        before, value = value, following(k, value, before)
    return value


# The recurrences are those of DLMF 18.9.


def _hermite(n: int, x: Any) -> Any:
    return _by_recurrence(
        n, x, multiply(2.0, x), lambda k, p, q: subtract(multiply(multiply(2.0, x), p), multiply(2.0 * k, q))
    )


def _hermite_of_probability(n: int, x: Any) -> Any:
    return _by_recurrence(n, x, x, lambda k, p, q: subtract(multiply(x, p), multiply(float(k), q)))


def _chebyshev(first: float) -> Callable[[int, Any], Any]:
    def polynomial(n: int, x: Any) -> Any:
        return _by_recurrence(n, x, multiply(first, x), lambda _k, p, q: subtract(multiply(multiply(2.0, x), p), q))

    return polynomial


def _legendre(n: int, x: Any) -> Any:
    def following(k: int, p: Any, q: Any) -> Any:
        return divide(subtract(multiply(2.0 * k + 1.0, multiply(x, p)), multiply(float(k), q)), k + 1.0)

    return _by_recurrence(n, x, x, following)


def _laguerre(n: int, alpha: Any, x: Any) -> Any:
    first = subtract(add(alpha, 1.0), x)

    def following(k: int, p: Any, q: Any) -> Any:
        linear = subtract(add(alpha, 2.0 * k + 1.0), x)
        return divide(subtract(multiply(linear, p), multiply(add(alpha, float(k)), q)), k + 1.0)

    return _by_recurrence(n, first, first, following)


def _gegenbauer(n: int, alpha: Any, x: Any) -> Any:
    first = multiply(multiply(2.0, alpha), x)

    def following(k: int, p: Any, q: Any) -> Any:
        linear = multiply(multiply(2.0, add(alpha, float(k))), x)
        before = multiply(add(multiply(2.0, alpha), k - 1.0), q)
        return divide(subtract(multiply(linear, p), before), k + 1.0)

    return _by_recurrence(n, first, first, following)


def _jacobi(n: int, alpha: Any, beta: Any, x: Any) -> Any:
    total = add(alpha, beta)
    difference = subtract(alpha, beta)
    first = multiply(0.5, add(difference, multiply(add(total, 2.0), x)))

    def following(k: int, p: Any, q: Any) -> Any:
        # DLMF 18.9.2, multiplied by 2*(k + 1)*(k + 1 + alpha + beta)*s with s = 2*k + alpha + beta.
        s = add(total, 2.0 * k)
        linear = multiply(add(s, 1.0), add(multiply(multiply(s, add(s, 2.0)), x), multiply(difference, total)))
        before = multiply(multiply(2.0, multiply(add(alpha, float(k)), add(beta, float(k)))), add(s, 2.0))
        scale = multiply(multiply(2.0 * (k + 1.0), add(total, k + 1.0)), s)
        return divide(subtract(multiply(linear, p), multiply(before, q)), scale)

    return _by_recurrence(n, first, first, following)


def _polynomial(
    name: str, signature: str, doc: str, of: Callable[..., Any], derivative: str, *aliases: str, **fields: Any
) -> Composite:
    return Composite(
        name, signature, f"{doc} of degree n", lambda n, *operands: of(_degree(n, name), *operands),
        derivative=derivative, aliases=aliases, subject="special", **fields,
    )  # fmt: skip


_OF_ONE = ((2, 0.7), (3, [-1.0, 2.0]))

eval_hermite = _polynomial(
    "eval_hermite", "n, x", "Hermite polynomial", _hermite, "g*2*n*eval_hermite(n - 1, x)", "hermite", samples=_OF_ONE
)
eval_hermitenorm = _polynomial(
    "eval_hermitenorm", "n, x", "Hermite polynomial of probability theory", _hermite_of_probability,
    "g*n*eval_hermitenorm(n - 1, x)", "hermite_prob", samples=_OF_ONE,
)  # fmt: skip
eval_chebyt = _polynomial(
    "eval_chebyt", "n, x", "Chebyshev polynomial of the first kind", _chebyshev(1.0), "g*n*eval_chebyu(n - 1, x)",
    "chebyshevt", samples=_OF_ONE,
)  # fmt: skip
eval_chebyu = _polynomial(
    "eval_chebyu", "n, x", "Chebyshev polynomial of the second kind", _chebyshev(2.0),
    "g*2*eval_gegenbauer(n - 1, 2, x)", "chebyshevu", samples=_OF_ONE,
)  # fmt: skip
eval_legendre = _polynomial(
    "eval_legendre", "n, x", "Legendre polynomial", _legendre, "g*eval_gegenbauer(n - 1, 3/2, x)", "legendre",
    samples=_OF_ONE,
)  # fmt: skip
eval_laguerre = _polynomial(
    "eval_laguerre", "n, x", "Laguerre polynomial", lambda n, x: _laguerre(n, 0.0, x),
    "-g*eval_genlaguerre(n - 1, 1, x)", "laguerre", samples=_OF_ONE,
)  # fmt: skip
eval_genlaguerre = _polynomial(
    "eval_genlaguerre", "n, alpha, x", "generalised Laguerre polynomial", _laguerre,
    "by alpha that of the recurrence, -g*eval_genlaguerre(n - 1, alpha + 1, x)", "assoc_laguerre",
    samples=((2, 0.5, 0.7), (3, 1.5, [-1.0, 2.0])),
)  # fmt: skip
eval_gegenbauer = _polynomial(
    "eval_gegenbauer", "n, alpha, x", "Gegenbauer polynomial", _gegenbauer,
    "by alpha that of the recurrence, g*2*alpha*eval_gegenbauer(n - 1, alpha + 1, x)", "gegenbauer",
    samples=((2, 0.5, 0.7), (3, 1.5, [-1.0, 2.0])),
)  # fmt: skip
eval_jacobi = _polynomial(
    "eval_jacobi", "n, alpha, beta, x", "Jacobi polynomial", _jacobi,
    "by alpha and beta those of the recurrence, g*(n + alpha + beta + 1)/2*eval_jacobi(n - 1, alpha + 1, beta + 1, x)",
    "jacobi", samples=((2, 0.5, 1.2, 0.7), (3, 1.5, 0.3, [-1.0, 2.0])),
)  # fmt: skip


def _associated(m: int, n: int, x: Any, root: Any) -> Any:
    """P(n, m) with the Condon-Shortley phase for 0 <= m <= n, where `root` is sqrt(1 - x**2): DLMF 14.7.10, 18.9.19."""
    value = _gegenbauer(n - m, m + 0.5, x)
    for k in range(1, m + 1):
        value = multiply(value, 1.0 - 2.0 * k)
    return multiply(power(root, float(m)), value) if m else value


def _over_factorials(value: Any, low: int, high: int) -> Any:
    """value*low!/high!, for low <= high, without overflow of the factorials."""
    for k in range(low + 1, high + 1):
        value = divide(value, float(k))
    return value


def _lpmv(m: Any, v: Any, x: Any) -> Any:
    order, degree = integer(m, "the order of 'lpmv'"), _degree(v, "lpmv")
    if abs(order) > degree:
        return multiply(0.0, x)
    value = _associated(abs(order), degree, x, sqrt(one_minus_square(x)))
    if order >= 0:
        return value
    return multiply((-1.0) ** order, _over_factorials(value, degree + order, degree - order))


lpmv = Composite(
    "lpmv", "m, v, x", "associated Legendre function of whole order m and degree v, with the sign (-1)**m", _lpmv,
    derivative="g*((v + 1 - m)*lpmv(m, v + 1, x) - (v + 1)*x*lpmv(m, v, x))/(x**2 - 1)",
    domain="-1 < x < 1",
    samples=((1, 2, 0.7), (0, 3, [-0.3, 0.2])),
)  # fmt: skip

assoc_legendre = Composite(
    "assoc_legendre", "n, m, x", "lpmv(m, n, x)", lambda n, m, x: _lpmv(m, n, x),
    derivative=lpmv.derivative, domain=lpmv.domain, aliases=("assoc_legendre_p",),
    samples=((2, 1, 0.7), (3, 0, [-0.3, 0.2])),
)  # fmt: skip


def _of_angle(n: Any, m: Any, theta: Any) -> Any:
    order, degree = integer(m, "the order of 'sph_legendre_p'"), _degree(n, "sph_legendre_p")
    size = abs(order)
    if size > degree:
        return multiply(0.0, theta)
    norm = sqrt(_over_factorials(multiply(2.0 * degree + 1.0, _over_4_pi()), degree - size, degree + size))
    value = multiply(norm, _associated(size, degree, cos(theta), sin(theta)))
    return multiply((-1.0) ** order, value) if order < 0 else value


sph_legendre_p = Composite(
    "sph_legendre_p", "n, m, theta", "spherical harmonic of degree n and order m without exp(1j*m*phi), normalised",
    _of_angle,
    derivative="that of sqrt((2*n + 1)*(n - m)!/(4*pi*(n + m)!))*lpmv(m, n, cos(theta))",
    samples=((2, 1, 0.7), (3, 0, [-0.3, 0.2])),
)  # fmt: skip


def _real_harmonic(n: Any, m: Any, theta: Any, phi: Any) -> Any:
    order = integer(m, "the order of 'Znm'")
    value = _of_angle(n, order, theta)
    if not order:
        return multiply(value, ones_like(phi))
    wave = (cos if order > 0 else sin)(multiply(float(order), phi))
    return multiply(multiply(_sqrt_2(), value), wave)


Znm = Composite(
    "Znm", "n, m, theta, phi", "real spherical harmonic of degree n and order m, theta being the polar angle",
    _real_harmonic,
    derivative="that of sqrt(2)*sph_legendre_p(n, m, theta)*cos(m*phi), of sin(m*phi) where m < 0",
    samples=((2, 1, 0.7, 0.4), (3, -2, [-0.3, 0.2], 1.3)),
)  # fmt: skip
