"""Elementwise arithmetic and rounding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from gradcli.arrays import mathematical_constants
from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.dtypes import is_complex
from gradcli.errors import EvaluationError
from gradcli.primitives.axes import integer
from gradcli.primitives.bind import constant
from gradcli.primitives.costs import of_quotients
from gradcli.primitives.entries.comparisons import (
    equal,
    greater_equal,
    isfinite,
    less_equal,
    logical_and,
    logical_or,
    not_equal,
    nowhere,
    smallest_normal,
    where,
)
from gradcli.primitives.entries.complex_parts import conjugate, real_part
from gradcli.primitives.families import elementwise
from gradcli.primitives.jet_rules import Coefficients, from_derivative, linear, locally_constant, products
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere
from gradcli.primitives.strides import always
from gradcli.type_hints import Any

SUBJECT = "elementwise"

# The largest number of decimals that is accepted: 10**309 overflows a double.
_MOST_DECIMALS = 300
_PAIRS = ((0.7, 1.3), (-2.0, 0.5), ([[0.3, -1.2]], [[0.8], [2.5]]))


def _sum_series(_primitive: Primitive, y: Any, a: Any, b: Any) -> Coefficients:
    return (y.total((a.coefficient(k), b.coefficient(k))) for k in itertools.count(1))


add = elementwise(
    "add", "x, y", "x + y",
    numbers="analytic",
    commutative=True, rounds_alike=True, keeps_integers=True, operator="+",
    vjp=(lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: g),
    jet=_sum_series,
    derivative="g, g",
    samples=_PAIRS,
)  # fmt: skip


def minus(a: Any, b: Any) -> Any:
    """a - b, where None stands for 0."""
    if b is None:
        return a
    return negative(b) if a is None else subtract(a, b)


def _difference_series(_primitive: Primitive, _y: Any, a: Any, b: Any) -> Coefficients:
    return (minus(a.coefficient(k), b.coefficient(k)) for k in itertools.count(1))


subtract: Primitive = elementwise(
    "subtract", "x, y", "x - y",
    numbers="analytic",
    rounds_alike=True, keeps_integers=True, operator="-",
    vjp=(lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: -g),
    jet=_difference_series,
    derivative="g, -g",
    node_name="SubBackward0",
    aliases=("sub",),
    samples=_PAIRS,
)  # fmt: skip


def _times(a: Any, b: Any) -> Any:
    """a * b; two floats are multiplied directly, which saves the overhead of `bind`."""
    return a * b if type(a) is float and type(b) is float else multiply(a, b)


def _products() -> Any:
    """The function that multiplies coefficients of a series: `multiply` where numbers are exact, as float products
    round."""
    return multiply if mathematical_constants.is_exact() else _times


def _product_series(_primitive: Primitive, y: Any, a: Any, b: Any) -> Coefficients:
    times = _products()
    return (y.total(products(times, a, b, k)) for k in itertools.count(1))


multiply: Primitive = elementwise(
    "multiply", "x, y", "x * y",
    numbers="analytic",
    commutative=True, rounds_alike=True, keeps_integers=True, operator="*",
    vjp=(lambda g, _y, _a, b: g * b, lambda g, _y, a, _b: g * a),
    jet=_product_series,
    derivative="g*y, g*x",
    node_name="MulBackward0",
    aliases=("mul",),
    samples=_PAIRS,
)  # fmt: skip


def _quotient_series(_primitive: Primitive, y: Any, a: Any, b: Any) -> Coefficients:
    """Coefficients of y = a/b from y*b = a: term k of the product contains the unknown y[k] times b[0]."""
    times = _products()
    for k in itertools.count(1):
        rest = minus(a.coefficient(k), y.total(products(times, b, y, k, first=1)))
        yield None if rest is None else divide(rest, b.inner)


divide: Primitive = elementwise(
    "divide", "x, y", "x / y",
    numbers="analytic",
    rounds_alike=True, operator="/",
    vjp=(lambda g, _y, _a, b: divide(g, b), lambda g, y, _a, b: -divide(g, b) * y),
    jet=_quotient_series,
    derivative="g/y, -g*x/y**2",
    domain="y != 0",
    edges=("x/0 is inf or -inf, 0/0 is nan",),
    node_name="DivBackward0",
    aliases=("div", "true_divide"),
    samples=_PAIRS,
)  # fmt: skip

negative: Primitive = elementwise(
    "negative", "x", "-x",
    numbers="analytic",
    rounds_alike=True, operator="-", keeps_integers=True, jet=linear,
    vjp=(lambda g, _y, _x: -g,),
    derivative="-g",
    node_name="NegBackward0",
    aliases=("neg",),
    samples=(0.7, [-1.0, 2.0]),
)  # fmt: skip

identity = elementwise(
    "identity", "x", "x, as a tensor of its own in the graph",
    numbers="analytic",
    internal=True, rounds_alike=True, jet=linear, truths=True,
    forward=lambda _xp, x: x,
    view=always,
    vjp=(lambda g, _y, _x: g,),
    derivative="g",
    node_name="CloneBackward0",
    samples=(0.7, [-1.0, 2.0]),
)  # fmt: skip

zeros_like = elementwise(
    "zeros_like", "x", "zeros in the shape of x",
    numbers="complex",
    subject="creation", keeps_integers=True,
    vjp=None,
    derivative="none",
    samples=(0.7, [-1.0, 2.0]),
)  # fmt: skip

ones_like = elementwise(
    "ones_like", "x", "ones in the shape of x",
    numbers="complex",
    subject="creation", keeps_integers=True,
    vjp=None,
    derivative="none",
    samples=(0.7, [-1.0, 2.0]),
)  # fmt: skip


reciprocal = elementwise(
    "reciprocal", "x", "1/x",
    numbers="analytic",
    rounds_alike=True,
    forward=lambda xp, x: xp.divide(1.0, x),
    vjp=(lambda g, y, _x: -g * (y * y),),
    derivative="-g/x**2",
    domain="x != 0",
    edges=("1/0 is inf, with derivative -inf",),
    samples=(0.7, [-1.0, 2.0]),
)  # fmt: skip

remainder: Primitive = elementwise(
    "remainder", "x, y", "x - y*floor(x/y), with the sign of y; the operator %",
    keeps_integers=True, operator="%", time=2, surcharge=of_quotients,
    vjp=(lambda g, _y, _a, _b: g, lambda g, _y, a, b: -g * floor_divide(a, b)),
    derivative="g, -g*floor(x/y)",
    domain="y != 0; smooth where x/y is not whole",
    piecewise=True,
    edges=("where x/y is whole, the derivative by y is -x/y", "remainder(x, 0) is nan"),
    smooth=lambda x, y: nowhere(equal(remainder(x, y), 0)),
    jumps=True,
    aliases=("mod",),
    samples=((0.7, 0.3), (-2.2, 0.5), ([[0.3, -1.2]], [[0.7], [2.5]])),
)  # fmt: skip

fmod: Primitive = elementwise(
    "fmod", "x, y", "x - y*trunc(x/y), with the sign of x",
    keeps_integers=True, time=2, surcharge=of_quotients,
    vjp=(lambda g, _y, _a, _b: g, lambda g, _y, a, b: -g * trunc(divide(constant(a), constant(b)))),
    spelling=names_elsewhere("c"),
    derivative="g, -g*trunc(x/y)",
    domain="y != 0; smooth where x/y is not whole, or is 0",
    piecewise=True,
    edges=("where x/y is whole, the derivative by y is -x/y", "fmod(x, 0) is nan"),
    smooth=lambda x, y: nowhere(logical_and(equal(fmod(x, y), 0), not_equal(x, 0))),
    jumps=True,
    samples=((0.7, 0.3), (-2.2, 0.5), ([[0.3, -1.2]], [[0.7], [2.5]])),
)  # fmt: skip

floor_divide: Primitive = elementwise(
    "floor_divide", "x, y", "floor(x/y); the operator //",
    keeps_integers=True, operator="//", time=2, surcharge=of_quotients,
    vjp=(lambda g, _y, _a, _b: zeros_like(g), lambda g, _y, _a, _b: zeros_like(g)),
    jet=locally_constant,
    derivative="0, 0",
    domain="y != 0; smooth where x/y is not whole",
    edges=("the derivatives are 0 at the jumps too", "x//0 is inf or -inf, 0//0 is nan"),
    selects=True,
    smooth=lambda x, y: nowhere(equal(remainder(x, y), 0)),
    jumps=True,
    samples=((0.7, 0.3), (-2.2, 0.5)),
)  # fmt: skip


def _modulus_rule(g: Any, y: Any, x: Any) -> Any:
    if not is_complex(x):
        return g * sign(x)
    origin = equal(x, 0)
    return g * where(origin, 0.0, divide(y, where(origin, 1.0, x)))


def _modulus_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    """Coefficients of y = abs(x); of a complex x from y*y = real(x*conj(x)), and 0 where x is 0."""
    if not is_complex(x):
        yield from from_derivative(primitive, y, x)
    times, square, origin = _products(), real_part(x * conjugate(x)), equal(y.inner, 0)
    divisor = where(origin, 1.0, multiply(2.0, y.inner))
    for k in itertools.count(1):
        rest = minus(square.coefficient(k), y.total(products(times, y, y, k, first=1, last=1)))
        yield None if rest is None else where(origin, 0.0, divide(rest, divisor))


absolute: Primitive = elementwise(
    "abs", "x", "absolute value",
    numbers="complex",
    parity="even", rounds_alike=True, keeps_integers=True,
    vjp=(_modulus_rule,),
    jet=_modulus_series,
    spelling=names_elsewhere("sql polars", c="fabs", sympy="Abs"),
    derivative="g*sign(x), 0 at 0",
    domain="smooth where x != 0",
    edges=("abs'(0) = 0",),
    smooth=lambda x: nowhere(equal(x, 0)),
    aliases=("absolute", "fabs"),
    samples=(0.7, [-1.0, 2.0]),
)  # fmt: skip


def _piecewise_constant(name: str, doc: str, jumps: Any, edges: Sequence[str] = (), **fields: Any) -> Any:
    return elementwise(
        name, "x", doc,
        keeps_integers=True,
        vjp=(lambda _g, _y, x: zeros_like(x),),
        jet=locally_constant,
        derivative="0",
        # Selecting, so that 0 times an infinite or nan derivative of the operand counts as 0.
        selects=True,
        smooth=lambda x: nowhere(jumps(x)),
        jumps=True,
        edges=("the derivative is 0 at the jumps too", *edges),
        samples=(0.7, [-1.3, 2.2]),
        **fields,
    )  # fmt: skip


sign: Primitive = _piecewise_constant(
    "sign", "-1, 0 or 1", lambda x: equal(x, 0),
    parity="odd", spelling=names_elsewhere("sql sympy polars"), edges=("sign(0) = 0",),
)  # fmt: skip
floor: Primitive = _piecewise_constant(
    "floor", "the largest whole number <= x", lambda x: equal(x, floor(x)),
    spelling=names_elsewhere("c sql sympy polars"),
)  # fmt: skip
ceil = _piecewise_constant(
    "ceil", "the smallest whole number >= x", lambda x: equal(x, floor(x)),
    spelling=names_elsewhere("c sql polars", sympy="ceiling"),
)  # fmt: skip
round_to_even = _piecewise_constant(
    "round", "the nearest whole number, halves to even", lambda x: equal(x - floor(x), 0.5),
    internal=True, spelling=names_elsewhere(c="nearbyint"),
)  # fmt: skip


def _round_call(x: Any, decimals: Any = 0) -> Any:
    digits = integer(decimals, "a number of decimals")
    if not digits:
        return round_to_even(x)
    if abs(digits) > _MOST_DECIMALS:
        raise EvaluationError(f"{digits} is no number of decimals between {-_MOST_DECIMALS} and {_MOST_DECIMALS}")
    scale = mathematical_constants.ratio(10 ** abs(digits))
    if digits > 0:
        return divide(round_to_even(multiply(x, scale)), scale)
    return multiply(round_to_even(divide(x, scale)), scale)


round_ = Composite(
    "round", "x, decimals=0", "the nearest number with that many decimals, halves to even", _round_call,
    derivative="0",
    domain="smooth where x is not halfway between two of them",
    edges=(
        "the derivative is 0 at the jumps too",
        "round(0.5) = 0, round(1.5) = 2, round(2.5) = 2",
    ),
    aliases=("around",),
    samples=(0.7, [-1.3, 2.2], ([-1.31, 22.2], 1), (-131.0, -1)),
)  # fmt: skip

rint = Composite(
    "rint", "x", "the nearest whole number, halves to even", lambda x: round_to_even(x),
    derivative="0",
    domain="smooth where x is not halfway between two of them",
    edges=("rint(0.5) = 0, rint(1.5) = 2, rint(2.5) = 2",),
    samples=(0.7, [-1.3, 2.2]),
)  # fmt: skip

trunc: Primitive = _piecewise_constant(
    "trunc", "x without its fraction",
    lambda x: logical_and(equal(x, floor(x)), not_equal(x, 0)),
    spelling=names_elsewhere("c"), aliases=("fix",),
)  # fmt: skip

frac = Composite(
    "frac", "x", "the fraction of x, with its sign", lambda x: subtract(x, trunc(x)),
    node_name="FracBackward0",
    derivative="g",
    domain="smooth where x is not whole",
    edges=("frac'(x) = 1, also where x is whole",),
    samples=(0.7, [-1.3, 2.2]),
)  # fmt: skip


heaviside = elementwise(
    "heaviside", "x, y", "0 where x < 0, y where x = 0, 1 where x > 0",
    fallback=common_definitions.heaviside,
    vjp=(
        lambda g, _y, _a, _b: zeros_like(g),
        lambda g, _y, a, _b: where(equal(a, 0), g, 0.0),
    ),
    derivative="0, g where x = 0",
    domain="smooth where x != 0",
    selects=True,
    smooth=lambda x, _y: nowhere(equal(x, 0)),
    jumps=True,
    samples=((0.7, 0.5), ([-1.0, 2.0], 0.5)),
)  # fmt: skip

copysign = elementwise(
    "copysign", "x, y", "the magnitude of x with the sign of y",
    vjp=(
        lambda g, y, a, _b: g * (sign(a) * sign(y)),
        lambda g, _y, _a, _b: zeros_like(g),
    ),
    spelling=names_elsewhere("c"),
    derivative="g*sign(x)*sign(y), 0",
    domain="smooth where x != 0 and y != 0",
    edges=("the sign of -0.0 is negative", "where x = 0, the derivative is 0"),
    selects=True,
    smooth=lambda x, y: nowhere(logical_or(equal(x, 0), equal(y, 0))),
    jumps=True,
    samples=_PAIRS,
)  # fmt: skip


def is_normal(x: Any) -> Any:
    """Return whether x is finite and not subnormal or 0, so that it has full precision; of complex numbers their
    modulus."""
    smallest = smallest_normal(x)
    size = absolute(x) if is_complex(x) else x
    return logical_and(isfinite(x), logical_or(greater_equal(size, smallest), less_equal(size, -smallest)))
