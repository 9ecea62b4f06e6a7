"""Elementwise Bessel functions: of the second kind, modified, scaled, and of real order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.definitions import bessel_definitions as definitions
from gradcli.primitives.bind import assume, bind, constant
from gradcli.primitives.costs import of_bessel_of_number, of_derivative
from gradcli.primitives.entries.arithmetic import absolute, divide, negative, sign
from gradcli.primitives.entries.comparisons import (
    equal,
    greater,
    isfinite,
    less,
    logical_and,
    logical_or,
    not_equal,
    where,
)
from gradcli.primitives.entries.complex_parts import check_real
from gradcli.primitives.entries.special_functions.numerical_partials import derivative, partial_of_two
from gradcli.primitives.entries.special_functions.special import bessel_j
from gradcli.primitives.families import complex_by_scipy, elementwise, keeping_float32
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, Vjp, names_elsewhere

SUBJECT = "special"

_ANYWHERE = (0.7, [-1.0, 2.0])
_POSITIVE = (0.7, [0.4, 2.5])


def _value(x: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    return (x,), {"n": 0}


def _derivative(primitive: Primitive, x: Any, n: int) -> Any:
    """(-1)**n times the nth derivative of a scaled function, which is positive."""
    return bind(primitive, (x,), {"n": n})


scaled_i: Primitive = elementwise(
    "scaled_i", "x", "exp(-x)*i0(x) for x >= 0",
    internal="i0e", time=8, surcharge=of_derivative(40),
    forward=definitions.scaled_i,
    vjp=(lambda g, _y, x, *, n: -g * _derivative(scaled_i, x, n + 1),),
    prepare=_value,
    spelling=names_elsewhere(scipy="i0e"),
    derivative="-g*exp(-x)*(i0(x) - i1(x))",
    domain="x >= 0",
    samples=_POSITIVE,
)  # fmt: skip

i0e = Composite(
    "i0e", "x", "exp(-abs(x))*i0(x), without overflow", lambda x: _derivative(scaled_i, absolute(x), 0),
    derivative="g*(i1e(x) - sign(x)*i0e(x))",
    domain="smooth where x != 0",
    edges=("i0e'(0) = 0",),
    samples=_ANYWHERE,
)  # fmt: skip

i1e = elementwise(
    "i1e", "x", "exp(-abs(x))*i1(x), without overflow",
    time=8, parity="odd",
    vjp=(lambda g, _y, x: g * (_derivative(scaled_i, absolute(x), 2) - _derivative(scaled_i, absolute(x), 1)),),
    spelling=names_elsewhere("scipy"),
    derivative="g*(i0e(x) - i1e(x)*(1/x + sign(x))), g/2 at 0",
    samples=_ANYWHERE,
)  # fmt: skip

y0: Primitive = elementwise(
    "y0", "x", "Bessel function of the second kind and order 0",
    numbers="analytic", of_complex=complex_by_scipy("y0"),
    time=10,
    vjp=(lambda g, _y, x: -g * y1(x),),
    spelling=names_elsewhere("scipy", torch="bessel_y0"),
    derivative="-g*y1(x)",
    domain="x > 0",
    aliases=("bessel_y0",),
    samples=_POSITIVE,
)  # fmt: skip

y1: Primitive = elementwise(
    "y1", "x", "Bessel function of the second kind and order 1",
    numbers="analytic", of_complex=complex_by_scipy("y1"),
    time=10,
    vjp=(lambda g, y, x: g * (y0(x) - divide(y, x)),),
    spelling=names_elsewhere("scipy", torch="bessel_y1"),
    derivative="g*(y0(x) - y1(x)/x)",
    domain="x > 0",
    aliases=("bessel_y1",),
    samples=_POSITIVE,
)  # fmt: skip

k0: Primitive = elementwise(
    "k0", "x", "modified Bessel function of the second kind and order 0",
    numbers="analytic", of_complex=complex_by_scipy("k0"),
    time=8,
    vjp=(lambda g, _y, x: -g * k1(x),),
    spelling=names_elsewhere("scipy", torch="modified_bessel_k0"),
    derivative="-g*k1(x)",
    domain="x > 0",
    aliases=("modified_bessel_k0",),
    samples=_POSITIVE,
)  # fmt: skip

k1: Primitive = elementwise(
    "k1", "x", "modified Bessel function of the second kind and order 1",
    numbers="analytic", of_complex=complex_by_scipy("k1"),
    time=8,
    vjp=(lambda g, y, x: -g * (k0(x) + divide(y, x)),),
    spelling=names_elsewhere("scipy", torch="modified_bessel_k1"),
    derivative="-g*(k0(x) + k1(x)/x)",
    domain="x > 0",
    aliases=("modified_bessel_k1",),
    samples=_POSITIVE,
)  # fmt: skip

k0e: Primitive = elementwise(
    "k0e", "x", "exp(x)*k0(x), without underflow",
    time=8, surcharge=of_derivative(40),
    forward=definitions.scaled_k,
    vjp=(lambda g, _y, x, *, n: -g * _derivative(k0e, x, n + 1),),
    prepare=_value,
    spelling=names_elsewhere("scipy", torch="scaled_modified_bessel_k0"),
    derivative="g*(k0e(x) - k1e(x))",
    domain="x > 0",
    aliases=("scaled_modified_bessel_k0",),
    samples=_POSITIVE,
)  # fmt: skip

k1e = elementwise(
    "k1e", "x", "exp(x)*k1(x), without underflow",
    time=8,
    vjp=(lambda g, _y, x: -g * (_derivative(k0e, x, 1) + _derivative(k0e, x, 2)),),
    spelling=names_elsewhere("scipy", torch="scaled_modified_bessel_k1"),
    derivative="g*(k1e(x) - k0e(x) - k1e(x)/x)",
    domain="x > 0",
    aliases=("scaled_modified_bessel_k1",),
    samples=_POSITIVE,
)  # fmt: skip


def _of_number(name: str, doc: str, by_x: Vjp, formula: str, by_order: Vjp = None, **fields: Any) -> Primitive:
    """A Bessel function of real order v; without a rule `by_order`, its derivative by v is a numerical partial
    derivative."""
    return elementwise(
        name, "v, x", doc,
        time=170, surcharge=of_bessel_of_number,
        vjp=(by_order or derivative(fields.get("internal", name), 0, 2), by_x),
        derivative=f"by v computed by itself, {formula}",
        domain="x > 0",
        samples=((2.5, 0.7), (3, [0.4, 2.5])),
        **fields,
    )  # fmt: skip


def _slope(function: Primitive, y: Any, v: Any, x: Any) -> Any:
    """The derivative by x of a Bessel function of order v, DLMF 10.6.1 and 10.6.2.

    For v < 1 only order v + 1 is used, which is at most as far from 0 as v - 1: near the zeros of cos(pi*v) the result
    is sensitive to the rounding of the order, and near -1 the function of order v - 1 cancels.
    """
    if _has_low_order(v, x):
        return _difference(divide(v * y, x), function(v + 1.0, x), -1.0)
    return 0.5 * _difference(function(v - 1.0, x), function(v + 1.0, x), v)


def _has_low_order(v: Any, x: Any) -> bool:
    return type(v) in arrays.PYTHON_NUMBERS and v < 1 and v != 0 and assume(not_equal(constant(x), 0))


def _difference(before: Any, after: Any, v: Any) -> Any:
    """before - after. Where both are infinite near 0, the dominant one is `before` if v < 0, else `after`."""
    finite = [isfinite(constant(value)) for value in (before, after)]
    if assume(logical_or(*finite)):
        return before - after
    some = logical_or(*finite)
    difference = where(some, before, 0.0) - where(some, after, 0.0)
    return where(some, difference, where(less(v, 0), before, -after))


jv_of_number: Primitive = _of_number(
    "jv_of_number", "Bessel function of the first kind and order v",
    lambda g, y, v, x: g * _slope(jv_of_number, y, v, x),
    "g*(jv(v - 1, x) - jv(v + 1, x))/2",
    internal="jv",
    numbers="analytic", of_complex=complex_by_scipy("jv"),
    spelling=names_elsewhere(scipy="jv"),
)  # fmt: skip
yv: Primitive = _of_number(
    "yv", "Bessel function of the second kind and order v",
    lambda g, y, v, x: g * _slope(yv, y, v, x),
    "g*(yv(v - 1, x) - yv(v + 1, x))/2",
    numbers="analytic", of_complex=complex_by_scipy("yv"),
    spelling=names_elsewhere("scipy"),
    aliases=("yn", "bessely"),
)  # fmt: skip
iv: Primitive = _of_number(
    "iv", "modified Bessel function of the first kind and order v",
    lambda g, y, v, x: (
        g * (divide(v * y, x) + iv(v + 1.0, x))
        if _has_low_order(v, x) and v > 0
        else g * (0.5 * (iv(v - 1.0, x) + iv(v + 1.0, x)))
    ),
    "g*(iv(v - 1, x) + iv(v + 1, x))/2",
    numbers="analytic", of_complex=complex_by_scipy("iv"),
    spelling=names_elsewhere("scipy"),
    aliases=("besseli",),
)  # fmt: skip
ive: Primitive = _of_number(
    "ive", "exp(-abs(x))*iv(v, x), without overflow",
    lambda g, _y, v, x: g * ive_slope(v, x),
    "g*((ive(v - 1, x) + ive(v + 1, x))/2 - sign(x)*ive(v, x))",
    spelling=names_elsewhere("scipy"),
)  # fmt: skip

ive_slope: Primitive = _of_number(
    "ive_slope",
    "the derivative of ive(v, x) by x",
    lambda g, y, v, x: g * (0.5 * (ive_slope(v - 1.0, x) + ive_slope(v + 1.0, x)) - sign(x) * y),
    "g*((ive_slope(v - 1, x) + ive_slope(v + 1, x))/2 - sign(x)*ive_slope(v, x))",
    # At x = 0 the derivative by v is 0 for every v > 1.
    by_order=lambda g, _y, v, x: where(
        logical_and(equal(x, 0), greater(v, 1)), 0.0, g * partial_of_two(v, x, "ive", (1, 1))
    ),
    internal=True,
    forward=keeping_float32(definitions.ive_slope),
)


def _jv(v: Any, x: Any) -> Any:
    check_real("jv", v)
    if type(v) in arrays.PYTHON_NUMBERS and abs(v) <= _HIGHEST and v == int(v):
        value = bessel_j(x, abs(int(v)))
        return negative(value) if v < 0 and v % 2 else value
    return jv_of_number(v, x)


# The highest integer order for which the primitive of integer order is used, which is valid for x <= 0 too.
_HIGHEST = 1000
jv = Composite(
    "jv", "v, x", "Bessel function of the first kind and order v", _jv,
    derivative="by v computed by itself, g*(jv(v - 1, x) - jv(v + 1, x))/2",
    domain="x > 0, or v a whole number",
    aliases=("jn", "besselj"),
    samples=((2.5, 0.7), (3, [-1.0, 2.0])),
    example="'jv(2.5, x)' x=0.7",
)  # fmt: skip
