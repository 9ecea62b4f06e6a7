"""Polynomials as vectors of their coefficients, that of the highest power first, as NumPy has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import Shape
from gradcli.errors import EvaluationError, ShapeError
from gradcli.primitives import batching
from gradcli.primitives.axes import integer, one_number
from gradcli.primitives.bind import assume, bind, concrete, constant
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import absolute, add, divide, multiply, negative, subtract, zeros_like
from gradcli.primitives.entries.comparisons import equal, less_equal, not_equal, nowhere, where
from gradcli.primitives.entries.elementwise.complex_numbers import real
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.linear_algebra.eigenvalues import eigvals
from gradcli.primitives.entries.linear_algebra.linear_systems import lstsq, vander
from gradcli.primitives.entries.reductions import min_, sum_
from gradcli.primitives.entries.sampled_data.sampling import convolve
from gradcli.primitives.entries.shape import concat, expand_dims, stack
from gradcli.primitives.entries.statistics import norm
from gradcli.primitives.jet_rules import Coefficients, integrate_coefficients
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive

SUBJECT = "polynomials"

_CUBIC, _QUADRATIC, _VECTOR = [1.0, -6.0, 11.0, -6.5], [2.0, -1.0, 0.5], [0.5, 2.0, -1.0]

# The largest degree: the roots are the eigenvalues of a matrix of that many rows.
_MOST_ROOTS = 1_000
# Newton steps that remove the error of the eigenvalues, which is some roundings of the largest coefficient.
_STEPS = 2


def _vector(p: Any, name: str) -> Any:
    """Coefficients as a vector; a number is a constant polynomial."""
    sizes = arrays.shape(p)
    if len(sizes) > 1:
        raise ShapeError(f"'{name}' needs a vector of coefficients, and the tensor has shape {list(sizes)}")
    return p if sizes else reshape(p, (1,))


def _coefficient(p: Any, k: int) -> Any:
    return index(p, (Ellipsis, slice(k, k + 1)))


def _value(p: Any, x: Any) -> Any:
    """The values of polynomials, with coefficients along the last axis, at numbers along it, by Horner's scheme."""
    count = arrays.shape(p)[-1]
    found = add(_coefficient(p, 0), zeros_like(x))
    for k in range(1, count):
        found = add(multiply(found, x), _coefficient(p, k))
    return found


def _whole_numbers(first: int, p: Any) -> Any:
    """The numbers from `first` down to 1, in the precision of p."""
    dtype = arrays.real_dtype(arrays.dtype_name(p))
    falling = arrays.numpy_namespace().arange(first, 0, -1).astype(dtype if "float" in dtype else "float64")
    return arrays.like_library_of(falling, concrete(p))


def _derivative_coefficients(p: Any) -> Any:
    degree = arrays.shape(p)[-1] - 1
    return multiply(index(p, (Ellipsis, slice(0, degree))), _whole_numbers(degree, p))


def _slope(p: Any, x: Any) -> Any:
    return _value(_derivative_coefficients(p), x)


# --- roots


def _horner(p: Any, x: Any) -> tuple[Any, Any]:
    """The values and the derivatives of polynomials."""
    value, slope = p[..., :1] + 0 * x, 0 * x
    for k in range(1, p.shape[-1]):
        value, slope = value * x + p[..., k : k + 1], slope * x + value
    return value, slope


def _roots_forward(xp: Any, p: Any, *, leading: int) -> Any:
    if is_exact():
        return xp.polynomial_roots(p, leading=leading)
    p = p[..., leading:]
    degree = p.shape[-1] - 1
    batch = tuple(p.shape[:-1])
    dtype = arrays.dtype_name(p)
    below = xp.broadcast_to(
        xp.asarray(arrays.numpy_namespace().eye(degree - 1, degree), dtype), (*batch, degree - 1, degree)
    )
    companion = xp.concat([xp.reshape(-p[..., 1:] / p[..., :1], (*batch, 1, degree)), below], axis=-2)
    x = xp.linalg.eigvals(companion)
    x = x if arrays.is_complex(x) else xp.astype(x, arrays.complex_dtype(dtype))
    value, slope = _horner(p, x)
    for _ in range(_STEPS):
        moved = x - value / slope
        after, slope_after = _horner(p, moved)
        closer = xp.less(xp.abs(after), xp.abs(value))
        x, value, slope = (xp.where(closer, a, b) for a, b in ((moved, x), (after, value), (slope_after, slope)))
    return x


# Roots closer than this many times the rounding error of either count as equal: those of a multiple root differ by it.
_ERRORS = 8.0


def _are_multiple(p: Any, y: Any) -> Any:
    """Return whether each root counts as equal to another, within the error that rounding the coefficients' terms gives
    it."""
    p, y = constant(p), constant(y)
    terms = _value(absolute(p), absolute(y))
    error = divide(multiply(arrays.epsilon(arrays.dtype_name(y)), terms), absolute(_slope(p, y)))
    itself = arrays.numpy_namespace().eye(arrays.shape(y)[-1], dtype=bool)
    gaps = where(itself, math.inf, absolute(subtract(expand_dims(y, -1), expand_dims(y, -2))))
    return less_equal(min_(gaps, -1), multiply(_ERRORS, error))


def _over_slope(x: Any, p: Any, y: Any) -> Any:
    """x divided by the derivatives of a polynomial at its roots; nan at a multiple root, and 0 where x is 0 there."""
    multiple = _are_multiple(p, y)
    slope = where(multiple, 1.0, _slope(p, y))
    return where(multiple, where(equal(x, 0), 0.0, math.nan), divide(x, slope))


def _roots_rule(g: Any, y: Any, p: Any, **_params: Any) -> Any:
    """A root moves by -dp(root)/p'(root), and dp(root) is the sum of its powers times the changes of coefficients."""
    count = arrays.shape(p)[-1]
    limits.charge(count * arrays.size(constant(y)))
    term = negative(_over_slope(g, p, y))
    terms = []
    for _ in range(count):
        terms.append(sum_(term, -1))
        term = multiply(term, y)
    return stack(terms[::-1], -1)


def _roots_series(primitive: Primitive, y: Any, p: Any, *, leading: int) -> Coefficients:
    (inner,) = y.inside_rule(primitive, (p,), {"leading": leading})
    yield from integrate_coefficients(y, negative(_over_slope(_value(p.derivative(), y), inner, y)))


def _roots_cost(shapes: Sequence[Shape], _params: Mapping[str, Any]) -> int:
    size = shapes[0][-1]
    batch = 1
    for n in shapes[0][:-1]:
        batch *= n
    return 2000 + batch * size * size * (8 + size // 3)


def _are_simple(p: Any, **_params: Any) -> bool:
    return nowhere(_are_multiple(p, bind(polynomial_roots, (p,), _params)))


polynomial_roots: Primitive = Primitive(
    "polynomial_roots", "p, leading", "the roots of a polynomial whose first coefficients, leading in number, are 0",
    internal="roots", numbers="analytic",
    forward=_roots_forward,
    vjp=(_roots_rule,),
    jet=_roots_series,
    batch=batching.trailing,
    elements=_roots_cost,
    fails=True,
    derivative="-sum(g*root**k/p'(root)) by the coefficient of the power k",
    domain="no two roots equal",
    smooth=_are_simple,
    nan_at_kinks=True,
)  # fmt: skip


def _roots(p: Any) -> Any:
    p = _vector(p, "roots")
    count = arrays.shape(p)[0]
    if count > _MOST_ROOTS:
        raise EvaluationError(f"'roots' takes at most {_MOST_ROOTS:,} coefficients, not {count:,}")
    leading = 0
    while leading < count and not assume(not_equal(index(constant(p), slice(leading, leading + 1)), 0)):
        leading += 1
    if leading and not assume(equal(index(constant(p), slice(0, leading)), 0)):
        raise EvaluationError("'roots' needs as many roots in each row of a batch")
    if count - leading < 2:
        return multiply(index(p, slice(0, 0)), 1.0 + 0.0j)
    return bind(polynomial_roots, (p,), {"leading": leading})


roots = Composite(
    "roots", "p", "the roots of the polynomial with the coefficients p, that of the highest power first, as complex numbers; coefficients 0 in front are left out",
    _roots,
    derivative="-sum(g*root**k/p'(root)) by the coefficient of the power k",
    domain="smooth where no two roots are equal",
    example="'sum(abs(roots(p)))' p='[1, -6, 11, -6.5]'",
)  # fmt: skip


# --- values and coefficients


def _polyval(p: Any, x: Any) -> Any:
    p = _vector(p, "polyval")
    count = arrays.shape(p)[0]
    limits.charge_steps(count)
    if not count:
        return zeros_like(x)
    found = add(index(p, 0), zeros_like(x))
    for k in range(1, count):
        found = add(multiply(found, x), index(p, k))
    return found


polyval = Composite(
    "polyval", "p, x", "the value at x of the polynomial with the coefficients p, that of the highest power first",
    _polyval,
    derivative="sum(g*x**k) by the coefficient of the power k, g*p'(x)",
    samples=((_QUADRATIC, 0.7), (_CUBIC, _VECTOR)),
)  # fmt: skip


def _poly(x: Any) -> Any:
    sizes = arrays.shape(x)
    if len(sizes) == 2:
        found = _poly(eigvals(x))
        return found if arrays.is_complex(x) else real(found)
    if len(sizes) > 1:
        raise ShapeError(f"'poly' needs a vector of roots or a square matrix, not a tensor of {list(sizes)}")
    limits.charge(arrays.size(x) ** 2)
    x = x if sizes else reshape(x, (1,))
    found = arrays.ones_like(arrays.zeros((1,), arrays.dtype_name(x)))
    for k in range(arrays.shape(x)[0]):
        nothing = zeros_like(index(found, slice(0, 1)))
        moved = multiply(index(x, k), found)
        found = subtract(concat([found, nothing], 0), concat([nothing, moved], 0))
    return found


poly = Composite(
    "poly", "x", "the coefficients of the polynomial with the roots x, or of the characteristic one of a matrix",
    _poly,
    derivative="-g times the coefficients of the polynomial of the other roots",
    domain="everywhere; of a matrix smooth where no two eigenvalues are equal",
    samples=((_VECTOR,), ([[2.0, 0.5], [-1.0, 3.0]],)),
)  # fmt: skip


def _aligned(a: Any, b: Any, name: str) -> tuple[Any, Any]:
    """Two polynomials with as many coefficients."""
    a, b = _vector(a, name), _vector(b, name)
    size = max(arrays.shape(a)[0], arrays.shape(b)[0])
    return _filled(a, size), _filled(b, size)


def _filled(p: Any, size: int) -> Any:
    missing = size - arrays.shape(p)[0]
    return concat([arrays.zeros((missing,), arrays.dtype_name(p)), p], 0) if missing else p


polyadd = Composite(
    "polyadd", "a1, a2", "the sum of two polynomials", lambda a1, a2: add(*_aligned(a1, a2, "polyadd")),
    derivative="g, without what is in front of the coefficients",
    samples=((_CUBIC, _QUADRATIC),),
)  # fmt: skip
polysub = Composite(
    "polysub", "a1, a2", "the difference of two polynomials", lambda a1, a2: subtract(*_aligned(a1, a2, "polysub")),
    derivative="g and -g, without what is in front of the coefficients",
    samples=((_QUADRATIC, _CUBIC),),
)  # fmt: skip
polymul = Composite(
    "polymul", "a1, a2", "the product of two polynomials",
    lambda a1, a2: convolve(_vector(a1, "polymul"), _vector(a2, "polymul")),
    derivative="the correlation of g with the other",
    samples=((_CUBIC, _QUADRATIC),),
)  # fmt: skip


def _times(m: Any, name: str) -> int:
    times = integer(m, "an order")
    if times < 0:
        raise EvaluationError(f"the order of '{name}' must not be negative")
    return times


def _polyder(p: Any, m: Any = 1) -> Any:
    p = _vector(p, "polyder")
    for _ in range(min(_times(m, "polyder"), arrays.shape(p)[0])):
        p = _derivative_coefficients(p)
    return p


polyder = Composite(
    "polyder", "p, m=1", "the m-th derivative of a polynomial", _polyder,
    derivative="g times the factors of the coefficients",
    samples=((_CUBIC,), (_CUBIC, 2)),
)  # fmt: skip


def _polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    p, times = _vector(p, "polyint"), _times(m, "polyint")
    if times > _MOST_ROOTS:
        raise EvaluationError(f"'polyint' integrates at most {_MOST_ROOTS:,} times")
    constants = arrays.zeros((1,), arrays.dtype_name(p)) if k is None else _vector(k, "polyint")
    if arrays.shape(constants)[0] not in (1, times):
        raise ShapeError(f"'polyint' needs one constant of integration, or {times}")
    for i in range(times):
        rising = _whole_numbers(arrays.shape(p)[0], p)
        last = index(constants, slice(i, i + 1)) if arrays.shape(constants)[0] > 1 else constants
        p = concat([divide(p, rising), last], 0)
    return p


polyint = Composite(
    "polyint", "p, m=1, k=None", "the m-th antiderivative of a polynomial, with the constants of integration k", _polyint,
    derivative="g divided by the factors of the coefficients",
    samples=((_QUADRATIC,), (_QUADRATIC, 2)),
)  # fmt: skip


def _polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False) -> Any:
    if one_number(full, "'full'") or one_number(cov, "'cov'"):
        raise EvaluationError("'polyfit' gives the coefficients alone", hint="gradcli fit has errors and residuals")
    count = integer(deg, "a degree") + 1
    if count < 1:
        raise EvaluationError("the degree of 'polyfit' must not be negative")
    powers, values = vander(x, count), y
    if w is not None:
        powers = multiply(powers, expand_dims(w, -1))
        values = multiply(values, w if len(arrays.shape(y)) == 1 else expand_dims(w, -1))
    # As NumPy does, so that the columns have the same size.
    scale = norm(powers, 2, 0)
    found = lstsq(divide(powers, scale), values, rcond)[0]
    return divide(found, scale if len(arrays.shape(y)) == 1 else expand_dims(scale, -1))


polyfit = Composite(
    "polyfit", "x, y, deg, rcond=None, full=False, w=None, cov=False",
    "the coefficients of the polynomial of a degree that makes the sum of (w*(y - polynomial at x))**2 smallest", _polyfit,
    derivative="that of lstsq(vander(x, deg + 1), y)",
    domain="more different numbers in x than deg",
    samples=(([0.0, 1.0, 2.0, 3.5], [1.0, 0.5, 2.0, -1.0], 2), ([0.0, 1.0, 2.0, 3.5], [1.0, 0.5, 2.0, -1.0], 1, None, False, [1.0, 2.0, 1.0, 0.5])),
)  # fmt: skip
