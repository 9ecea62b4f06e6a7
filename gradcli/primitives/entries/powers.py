"""Elementwise powers and roots."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from gradcli import arrays
from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.primitives.bind import Kind, assume, bind, constant
from gradcli.primitives.conversions import cast
from gradcli.primitives.costs import of_powers
from gradcli.primitives.entries.arithmetic import absolute, divide, multiply, subtract, zeros_like
from gradcli.primitives.entries.comparisons import (
    equal,
    greater,
    greater_equal,
    less,
    logical_and,
    logical_not,
    usable_divisor,
    where,
)
from gradcli.primitives.entries.complex_parts import real_part
from gradcli.primitives.entries.exponential import log
from gradcli.primitives.families import elementwise
from gradcli.primitives.jet_rules import Coefficients, from_derivative, integrate_coefficients
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import NodeName, Primitive, names_elsewhere
from gradcli.type_hints import Any

SUBJECT = "elementwise"

_NO_PARAMS: Mapping[str, Any] = {}
_ANYWHERE = (0.7, [-1.0, 2.0])
_POSITIVE = (0.7, [0.4, 2.5])
_POSITIVE_PAIRS = ((0.7, 1.3), (2.0, -0.5), ([[0.3, 1.2]], [[0.8], [2.5]]))


def _has_magnitude(x: Any) -> Any:
    """Return whether x is neither 0 nor nan."""
    x = constant(x)
    # A float is tested directly, which saves the overhead of `bind`.
    return abs(x) > 0 if type(x) is float else greater(absolute(x), 0)


def _power_by_base(g: Any, y: Any, x: Any, q: Any) -> Any:
    # For exponents below 1/2, q - 1 is rounded, which is visible in a power of a very small or large x.
    exponent = constant(q)
    if arrays.is_complex(exponent):
        exact = True
    else:
        exact = exponent >= 0.5 if type(exponent) is float else is_exact() or _all(greater_equal(exponent, 0.5))
    if not exact and _all(less(exponent, 0.5)) and assume(usable_divisor(constant(x))):
        return g * divide(q * y, x)
    if (type(q) is float and q) or assume(_has_magnitude(x)):
        slope = q * general_power(x, q - 1)
    else:
        # x**0 has the derivative 0 also at x = 0, where q*x**(q-1) is 0*inf, so the base is replaced there beforehand.
        flat = logical_and(equal(q, 0), logical_not(_has_magnitude(x)))
        # At x = 0 the factor q is held constant: its derivative by q would give inf - inf with the logarithm.
        factor = where(equal(x, 0), constant(q), q)
        slope = factor * general_power(where(flat, 1.0, x), q - 1)
    if exact:
        return g * slope
    usable = usable_divisor(constant(x))
    rounded = logical_and(less(exponent, 0.5), usable)
    return g * where(rounded, divide(q * y, where(usable, x, 1.0)), slope)


def _all(condition: Any) -> bool:
    """Return whether a condition holds for every exponent.

    While a program is recorded it is false for tensors, whose elements may differ in this from one input to the next.
    """
    return not (isinstance(condition, Kind) and arrays.shape(condition)) and assume(condition)


def _power_by_exponent(g: Any, y: Any, x: Any, q: Any) -> Any:
    if arrays.is_complex(q) and not arrays.is_complex(x):
        # A negative base has a complex logarithm.
        x = cast(x, arrays.complex_dtype(arrays.dtype_name(x)))
    if assume(_has_magnitude(x)):
        return g * (y * log(x))
    # 0**q is 0 for all q > 0, so its derivative by q is 0; log(0) must not be evaluated.
    at_zero = equal(x, 0)
    # 0**q is 0 around a complex q whose real part is above 0, and has no derivative at others.
    right = greater(real_part(q), 0) if arrays.is_complex(q) else greater_equal(q, 0)
    flat = logical_and(at_zero, right)
    return g * where(flat, 0.0, y * log(where(flat, 1.0, x)))


_POWER, _POWER_OF_TENSORS, _POWER_OF_NUMBER = (NodeName(f"PowBackward{i}") for i in range(3))


def _power_node_name(operands: Any, _params: Any) -> NodeName:
    base, exponent = operands
    if type(exponent) is float or not hasattr(exponent, "grad_fn"):
        return _POWER
    return _POWER_OF_NUMBER if type(base) is float or not hasattr(base, "grad_fn") else _POWER_OF_TENSORS


def _power_series(primitive: Primitive, y: Any, x: Any, q: Any) -> Coefficients:
    if y.order <= 2 or not assume(_has_magnitude(x.inner)):
        # The recurrences divide by x[0]. Where it is 0 or nan the vjp rules are used, which are correct there.
        yield from from_derivative(primitive, y, x, q)
    elif q.coefficient(1) is None:
        yield from _with_constant_exponent(y, x, q.inner)
    else:
        yield from integrate_coefficients(y, (q * log(x)).derivative() * y)


def _with_constant_exponent(y: Any, x: Any, q: Any) -> Coefficients:
    """Coefficients of y = x**q from x*y' = q*x'*y."""
    for k in itertools.count(1):
        orders = range(1, min(k, x.degree) + 1)
        terms = (_power_term(x.coefficient(j), y.coefficient(k - j), q, j, k) for j in orders)
        total = y.total(terms)
        yield None if total is None else divide(total, y.scaled(x.inner, k))


def _power_term(x: Any, y: Any, q: Any, j: int, k: int) -> Any:
    if x is None or y is None:
        return None
    return multiply(subtract(multiply(q, float(j)), float(k - j)), multiply(x, y))


general_power: Primitive = elementwise(
    "pow", "x, q", "x to the power q, for any q",
    numbers="analytic",
    internal=True, operator="**", keeps_integers=True, surcharge=of_powers,
    vjp=(_power_by_base, _power_by_exponent),
    jet=_power_series, spelling=names_elsewhere("c", numpy="power", sql="power"),
    derivative="g*q*x**(q-1), g*x**q*log(x)",
    domain="x > 0; with a whole q everywhere",
    node_name=_power_node_name,
    samples=_POSITIVE_PAIRS,
)  # fmt: skip


def _whole_power_rule(g: Any, _y: Any, x: Any, *, n: float) -> Any:
    if n == 0:
        return zeros_like(g)
    return g if n == 1 else g * (n * whole_power(x, n=n - 1))


def _whole_power(xp: Any, x: Any, *, n: float) -> Any:
    # The power functions of CUDA round inexactly for exponents 1 and 2.
    if n == 1:
        return xp.multiply(x, 1.0)
    return xp.multiply(x, x) if n == 2 else xp.pow(x, n)


def by_squaring(product: Callable[[Any, Any], Any], x: Any, n: int) -> Any:
    """The product of `n` copies of `x`, for n > 0."""
    result = None
    while True:
        if n % 2:
            result = x if result is None else product(result, x)
        n //= 2
        if not n:
            return result
        x = product(x, x)


# Integer powers up to this exponent are repeated products in a series of any order, larger ones use a recurrence.
_MOST_PRODUCTS = 8


def _whole_power_series(_primitive: Primitive, y: Any, x: Any, *, n: float) -> Coefficients:
    if n == 0:
        yield from itertools.repeat(None)
    elif 0 < n <= max(y.order, _MOST_PRODUCTS) or (n > 0 and is_exact()):
        product = by_squaring(multiply, x, int(n))
        yield from map(product.coefficient, itertools.count(1))
    elif n < 0:
        yield from _with_constant_exponent(y, x, n)
    else:
        # n > y.order here: where x[0] is 0, all coefficients below n are 0.
        for coefficient in _with_constant_exponent(y, x, n):
            yield None if coefficient is None else where(equal(x.inner, 0), 0.0, coefficient)


whole_power = elementwise(
    "whole_power", "x, n", "x to the power of the whole number n",
    numbers="analytic",
    internal="pow",
    forward=_whole_power,
    surcharge=lambda x, *, n: 0 if n in (1, 2) else of_powers(abs(x), n),
    vjp=(_whole_power_rule,),
    jet=_whole_power_series,
    gradient_name=lambda *, n: "MulBackward0" if n == 1 else None,
    derivative="g*n*x**(n-1)",
    domain="everywhere; n < 0: x != 0",
    prepare=lambda x, n: ((x,), {"n": n}),
    node_name="PowBackward0",
    samples=((-1.5, 3.0), ([0.5, -2.0], 2.0), (1.5, -2.0)),
)  # fmt: skip


def raised(x: Any, q: Any) -> Any:
    """x**q: a `whole_power` if q is an integer below 2**53 in magnitude, else a `general_power`."""
    if type(q) in (int, float) and q == q // 1 and abs(q) < 2**53:
        return bind(whole_power, (x,), {"n": float(q)})
    return bind(general_power, (x, q), _NO_PARAMS)


power = Composite(
    "pow", "x, q", "x to the power q", raised,
    derivative="g*q*x**(q-1), g*x**q*log(x)",
    domain="x > 0; with a whole q everywhere",
    edges=(
        "0**0 = 1",
        "where q = 0, the derivative by x is 0, also at x = 0",
        "where x = 0 and q >= 0, the derivative by q is 0",
        "where x = 0, a derivative by x that is finite is flat in q, and one that is infinite is its limit from the right",
        "where x < 0, a whole q has its value and its derivative by x; that by q is nan",
        "nan where x < 0 and q is not whole",
        "where x**q is below 1e-307, the derivative by q has the digits that are left of x**q",
    ),
    aliases=("power", "float_power"),
    samples=_POSITIVE_PAIRS,
)  # fmt: skip

square = Composite(
    "square", "x", "x**2", lambda x: bind(whole_power, (x,), {"n": 2.0}),
    derivative="2*g*x",
    samples=(0.7, [-1.0, 2.0]),
)  # fmt: skip

sqrt = elementwise(
    "sqrt", "x", "square root",
    numbers="analytic",
    rounds_alike=True,
    vjp=(lambda g, y, _x: divide(g, 2.0 * y),),
    spelling=names_elsewhere("c sql sympy polars"),
    derivative="g/(2*sqrt(x))",
    domain="x >= 0; smooth where x > 0",
    edges=("sqrt'(0) = inf", "nan where x < 0"),
    samples=_POSITIVE,
)  # fmt: skip

rsqrt = elementwise(
    "rsqrt", "x", "1/sqrt(x)",
    numbers="analytic",
    forward=lambda xp, x: xp.divide(1.0, xp.sqrt(x)),
    vjp=(lambda g, y, _x: g * (-0.5 * (y * y * y)),),
    derivative="-g/(2*x**1.5)",
    domain="x > 0",
    edges=("rsqrt(0) = inf, rsqrt'(0) = -inf",),
    samples=_POSITIVE,
)  # fmt: skip

cbrt = elementwise(
    "cbrt", "x", "cube root, negative for negative x",
    parity="odd", fallback=common_definitions.cbrt,
    vjp=(lambda g, y, _x: divide(divide(g, y), 3.0 * y),),
    spelling=names_elsewhere("c polars"),
    derivative="g/(3*cbrt(x)**2)",
    domain="smooth where x != 0",
    edges=("cbrt'(0) = inf; higher derivatives at 0 are those on its right, at -0.0 those on its left",),
    samples=_ANYWHERE,
)  # fmt: skip
