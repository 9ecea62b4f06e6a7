"""Elementwise elementary functions that are rarely used."""

from __future__ import annotations

import math
import sys
from typing import Any

from gradcli import arrays
from gradcli.arrays import mathematical_constants
from gradcli.arrays.definitions import common_definitions
from gradcli.errors import CallError
from gradcli.primitives.axes import boolean
from gradcli.primitives.bind import constant
from gradcli.primitives.entries.arithmetic import (
    absolute,
    add,
    copysign,
    divide,
    fmod,
    multiply,
    negative,
    round_to_even,
    subtract,
    zeros_like,
)
from gradcli.primitives.entries.comparisons import (
    clip,
    equal,
    greater_equal,
    isfinite,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_or,
    not_equal,
    where,
)
from gradcli.primitives.entries.elementwise.trigonometric import acos, asin, atan, cos, rad2deg, sin, sinh, tan, tanh
from gradcli.primitives.entries.exponential import exp2, share
from gradcli.primitives.entries.reductions import all_
from gradcli.primitives.families import complex_definition, elementwise, predicate
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "elementwise"

_ANYWHERE = (0.7, [-1.0, 2.0])
_PAIRS = ((0.7, 1.3), (-2.0, 0.5), ([[0.3, -1.2]], [[0.8], [2.5]]))
_rtol, _atol = mathematical_constants.decimal("1e-5"), mathematical_constants.decimal("1e-8")
_LARGEST = {"float32": (2.0 - 2.0**-23) * 2.0**127, "float64": sys.float_info.max}

clamp_min = Composite(
    "clamp_min", "x, min", "x, or min where x is less", lambda x, min: clip(x, min),
    node_name="ClampMinBackward0",
    derivative="g where x >= min, else 0; the rest to min",
    domain="smooth where x != min",
    samples=((0.7, 0.0), ([-1.0, 2.0], [0.5, 0.25])),
)  # fmt: skip

clamp_max = Composite(
    "clamp_max", "x, max", "x, or max where x is more", lambda x, max: clip(x, None, max),
    node_name="ClampMaxBackward0",
    derivative="g where x <= max, else 0; the rest to max",
    domain="smooth where x != max",
    samples=((0.7, 0.0), ([-1.0, 2.0], [0.5, 0.25])),
)  # fmt: skip

rsub = Composite(
    "rsub", "x, y, alpha=1", "y - alpha*x", lambda x, y, alpha=1.0: subtract(y, multiply(alpha, x)),
    derivative="-alpha*g, g, -sum(g*x)",
    samples=((0.7, 1.3), ([-1.0, 2.0], [0.5, 0.25], 2.0)),
)  # fmt: skip

sec = Composite(
    "sec", "x", "1/cos(x)", lambda x: divide(1.0, cos(x)),
    derivative="g*sec(x)*tan(x)",
    domain="x is no odd multiple of pi/2",
    samples=_ANYWHERE,
)  # fmt: skip

csc = Composite(
    "csc", "x", "1/sin(x)", lambda x: divide(1.0, sin(x)),
    derivative="-g*csc(x)*cot(x)",
    domain="x is no multiple of pi",
    edges=("csc(0) = inf, csc'(0) = -inf",),
    samples=_ANYWHERE,
)  # fmt: skip

cot = Composite(
    "cot", "x", "1/tan(x)", lambda x: divide(1.0, tan(x)),
    derivative="-g*(1 + cot(x)**2)",
    domain="x is no multiple of pi",
    edges=("cot(0) = inf, cot'(0) = -inf",),
    samples=_ANYWHERE,
)  # fmt: skip

csch = elementwise(
    "csch", "x", "1/sinh(x), without overflow",
    numbers="analytic",
    time=2,
    parity="odd", forward=common_definitions.csch,
    of_complex=complex_definition("csch"),
    vjp=(lambda g, y, x: -g * divide(y, tanh(x)),),
    spelling=names_elsewhere("sympy"),
    derivative="-g*csch(x)*coth(x)",
    domain="x != 0",
    edges=("csch(0) = inf, csch'(0) = -inf",),
    samples=_ANYWHERE,
)  # fmt: skip


def _coth_rule(g: Any, _y: Any, x: Any) -> Any:
    # csch(x)**2 overflows near 0, and of complex numbers sinh(x) far from it gives nan.
    return -g * (multiply(csch(x), csch(x)) if arrays.is_complex(x) else divide(csch(x), sinh(x)))


coth = elementwise(
    "coth", "x", "1/tanh(x)",
    numbers="analytic",
    parity="odd",
    forward=lambda xp, x: xp.divide(1.0, xp.tanh(x)),
    vjp=(_coth_rule,),
    spelling=names_elsewhere("sympy latex"),
    derivative="-g*csch(x)**2",
    domain="x != 0",
    edges=("coth(0) = inf, coth'(0) = -inf",),
    samples=_ANYWHERE,
)  # fmt: skip

sinpi: Primitive = elementwise(
    "sinpi", "x", "sin(pi*x), 0 at whole numbers",
    time=2,
    numbers="analytic", of_complex=complex_definition("sinpi"),
    parity="odd", forward=common_definitions.sinpi,
    vjp=(lambda g, _y, x: g * (mathematical_constants.pi() * cospi(x)),),
    derivative="g*pi*cospi(x)",
    samples=_ANYWHERE,
)  # fmt: skip

cospi: Primitive = elementwise(
    "cospi", "x", "cos(pi*x), 0 halfway between whole numbers",
    time=2,
    numbers="analytic", of_complex=complex_definition("cospi"),
    parity="even", forward=common_definitions.cospi,
    vjp=(lambda g, _y, x: g * (-mathematical_constants.pi() * sinpi(x)),),
    derivative="-g*pi*sinpi(x)",
    samples=_ANYWHERE,
)  # fmt: skip


_HALF_TURN, _TURN = 180.0, 360.0
# One degree in radians.
_DEGREE = "pi/180"


def _within_quarters(x: Any) -> tuple[Any, Any, Any, Any]:
    """Reduce an angle x in degrees by multiples of 180 without rounding.

    Returns the remainder in [-90, 90], 90 minus its magnitude, whether its magnitude is at most 45, and whether the
    number of half turns is odd, so that sine and cosine change sign.
    """
    angle = constant(x)
    within = fmod(angle, _TURN)
    half_turns = round_to_even(divide(within, _HALF_TURN))
    known = subtract(within, multiply(_HALF_TURN, half_turns))
    # Add x - constant(x), so that the remainder has the derivative of x.
    left = add(subtract(x, angle), known)
    to_quarter = subtract(90.0, where(less(known, 0.0), negative(left), left))
    return left, to_quarter, less_equal(absolute(known), 45.0), equal(absolute(half_turns), 1.0)


def _sine_of_degrees(x: Any) -> Any:
    if mathematical_constants.is_exact():
        return sinpi(divide(x, _HALF_TURN))
    left, to_quarter, is_low, turned = _within_quarters(x)
    high = cospi(divide(to_quarter, _HALF_TURN))
    sine = where(is_low, sinpi(divide(left, _HALF_TURN)), where(less(constant(left), 0.0), negative(high), high))
    # 30/180 is rounded in binary; the sine of 30 degrees is corrected to exactly 1/2.
    off = subtract(divide(constant(left), 60.0), constant(sine))
    sine = add(sine, where(equal(absolute(constant(left)), 30.0), off, 0.0))
    return where(turned, negative(sine), sine)


def _cosine_of_degrees(x: Any) -> Any:
    if mathematical_constants.is_exact():
        return cospi(divide(x, _HALF_TURN))
    left, to_quarter, is_low, turned = _within_quarters(x)
    cosine = where(is_low, cospi(divide(left, _HALF_TURN)), sinpi(divide(to_quarter, _HALF_TURN)))
    off = subtract(0.5, constant(cosine))
    cosine = add(cosine, where(equal(absolute(constant(left)), 60.0), off, 0.0))
    return where(turned, negative(cosine), cosine)


def _of_degrees(name: str, doc: str, function: Any, derivative: str, **known: Any) -> Composite:
    return Composite(
        name, "x", f"{doc} of an angle in degrees", function,
        derivative=derivative, samples=((30.0,), ([-50.0, 110.0],)), **known,
    )  # fmt: skip


sind = _of_degrees("sind", "sine", _sine_of_degrees, f"g*{_DEGREE}*cosd(x)")
cosd = _of_degrees("cosd", "cosine", _cosine_of_degrees, f"-g*{_DEGREE}*sind(x)")
tand = _of_degrees(
    "tand", "tangent", lambda x: divide(_sine_of_degrees(x), _cosine_of_degrees(x)), f"g*{_DEGREE}*(1 + tand(x)**2)",
    domain="x is no odd multiple of 90",
)  # fmt: skip


def _in_degrees(name: str, inverse: Primitive, of: str, derivative: str, **known: Any) -> Composite:
    return Composite(
        name, "x", f"the angle in degrees whose {of} is x", lambda x: rad2deg(inverse(x)),
        derivative=derivative, samples=((0.7,), ([-0.5, 0.25],)), **known,
    )  # fmt: skip


_BETWEEN = {"domain": "-1 <= x <= 1; smooth inside"}
asind = _in_degrees("asind", asin, "sine", "g*180/(pi*sqrt(1 - x**2))", **_BETWEEN)
acosd = _in_degrees("acosd", acos, "cosine", "-g*180/(pi*sqrt(1 - x**2))", **_BETWEEN)
atand = _in_degrees("atand", atan, "tangent", "g*180/(pi*(1 + x**2))")


def _chosen(wins: Any) -> Any:
    return lambda x, y: where(logical_or(wins(x, y), isnan(y)), x, y)


fmax = Composite(
    "fmax", "x, y", "the larger of x and y, or the one that is not nan", _chosen(greater_equal),
    node_name="FmaxBackward0",
    derivative="g where x >= y or y is nan, else 0; the rest to y",
    domain="smooth where x != y",
    edges=("where x = y, x gets all of g", "nan only where both are"),
    samples=_PAIRS,
)  # fmt: skip

fmin = Composite(
    "fmin", "x, y", "the smaller of x and y, or the one that is not nan", _chosen(less_equal),
    node_name="FminBackward0",
    derivative="g where x <= y or y is nan, else 0; the rest to y",
    domain="smooth where x != y",
    edges=("where x = y, x gets all of g", "nan only where both are"),
    samples=_PAIRS,
)  # fmt: skip

nextafter = elementwise(
    "nextafter", "x, y", "the number next to x in the direction of y",
    vjp=(lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: zeros_like(g)),
    spelling=names_elsewhere("c"),
    derivative="g, 0: x is moved by one unit in its last place",
    selects=True,
    samples=_PAIRS,
)  # fmt: skip

logaddexp2 = elementwise(
    "logaddexp2", "x, y", "log2(2**x + 2**y), without overflow",
    time=2,
    vjp=(lambda g, _y, a, b: share(g, a, b, mathematical_constants.log_2()), lambda g, _y, a, b: share(g, b, a, mathematical_constants.log_2())),
    derivative="g*sigmoid(log(2)*(x - y)), g*sigmoid(log(2)*(y - x))",
    edges=("a single infinite operand is the larger one, or has no share; each of two gets half of g",),
    samples=((0.7, 1.3), (-2.0, 0.5)),
)  # fmt: skip

isinf = predicate(
    "isinf", "x", "whether x is infinite",
    numbers="complex",
    spelling=names_elsewhere("c"), samples=_ANYWHERE,
)  # fmt: skip


isposinf = Composite(
    "isposinf", "x", "whether x is inf", lambda x: equal(x, math.inf),
    derivative="none", samples=_ANYWHERE,
)  # fmt: skip
isneginf = Composite(
    "isneginf", "x", "whether x is -inf", lambda x: equal(x, -math.inf),
    derivative="none", samples=_ANYWHERE,
)  # fmt: skip
signbit = Composite(
    "signbit", "x", "whether x is below 0, or -0", lambda x: less(copysign(1.0, x), 0.0),
    derivative="none", samples=_ANYWHERE,
)  # fmt: skip
logical_xor = Composite(
    "logical_xor", "x, y", "whether one of x and y is not 0, and the other is",
    lambda x, y: not_equal(not_equal(x, 0), not_equal(y, 0)),
    derivative="none", samples=((True, False), (2.0, [0.0, 3.0])),
)  # fmt: skip
ldexp = Composite(
    "ldexp", "x, y", "x*2**y", lambda x, y: multiply(x, exp2(y)),
    derivative="g*2**y, g*log(2)*x*2**y", samples=((0.7, 3.0), ([0.3, -1.2], [2.0, -1.0])),
)  # fmt: skip


def _nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if type(nan) is bool:
        raise CallError(
            "the second argument of NumPy's 'nan_to_num' is 'copy', and here the number for nan",
            hint="nan_to_num(x, nan=0.0) names it",
        )
    largest = _LARGEST.get(arrays.dtype_name(x), sys.float_info.max)
    high, low = largest if posinf is None else posinf, -largest if neginf is None else neginf
    finite = where(equal(x, math.inf), high, where(equal(x, -math.inf), low, x))
    return where(isnan(x), nan, finite)


nan_to_num = Composite(
    "nan_to_num", "x, nan=0.0, posinf=None, neginf=None", "x, with numbers for nan and the infinities", _nan_to_num,
    node_name="NanToNumBackward0",
    derivative="g where x is finite, else 0; the rest to the number in its place",
    edges=("by default an infinity becomes the largest finite number with its sign",),
    samples=(0.7, [-1.0, 2.0]),
    example="'nan_to_num(x, nan=1)' x=nan",
)  # fmt: skip


def _isclose(x: Any, y: Any, rtol: Any = None, atol: Any = None, equal_nan: Any = False) -> Any:
    rtol, atol = _rtol() if rtol is None else rtol, _atol() if atol is None else atol
    near = less_equal(absolute(subtract(x, y)), add(atol, multiply(rtol, absolute(y))))
    close = logical_or(logical_and(near, isfinite(y)), equal(x, y))
    if boolean(equal_nan, "equal_nan"):
        close = logical_or(close, logical_and(isnan(x), isnan(y)))
    return close


isclose = Composite(
    "isclose", "x, y, rtol=1e-05, atol=1e-08, equal_nan=False", "whether abs(x - y) <= atol + rtol*abs(y)", _isclose,
    derivative="none",
    edges=("an infinity is close to itself alone; nan to nothing, or to nan where equal_nan",),
    samples=((0.7, 0.7000001), ([-1.0, 2.0], [-1.0, 2.5])),
)  # fmt: skip

allclose = Composite(
    "allclose", isclose.signature, "whether all elements are close, as isclose says of each",
    lambda *operands, **tolerances: all_(isclose(*operands, **tolerances)),
    derivative="none",
    subject="reductions",
    samples=(([-1.0, 2.0], [-1.0, 2.5]), ([-1.0, 2.0], [-1.0, 2.0])),
)  # fmt: skip

lerp = Composite(
    "lerp", "x, end, weight", "x + weight*(end - x)",
    lambda x, end, weight: add(x, multiply(weight, subtract(end, x))),
    node_name="LerpBackward0",
    derivative="g*(1 - weight), g*weight, g*(end - x)",
    samples=((0.7, 1.3, 0.25), ([[0.3, -1.2]], [[0.8], [2.5]], 0.6)),
)  # fmt: skip

addcmul = Composite(
    "addcmul", "x, tensor1, tensor2, value=1.0", "x + value*tensor1*tensor2",
    lambda x, tensor1, tensor2, value=1.0: add(x, multiply(multiply(value, tensor1), tensor2)),
    node_name="AddcmulBackward0",
    derivative="g, g*value*tensor2, g*value*tensor1, g*tensor1*tensor2",
    samples=((0.7, 1.3, -2.0), ([0.3, -1.2], [0.8, 2.5], [1.5, 0.4], 0.5)),
)  # fmt: skip

addcdiv = Composite(
    "addcdiv", "x, tensor1, tensor2, value=1.0", "x + value*tensor1/tensor2",
    lambda x, tensor1, tensor2, value=1.0: add(x, divide(multiply(value, tensor1), tensor2)),
    node_name="AddcdivBackward0",
    derivative="g, g*value/tensor2, -g*value*tensor1/tensor2**2, g*tensor1/tensor2",
    domain="tensor2 != 0",
    samples=((0.7, 1.3, -2.0), ([0.3, -1.2], [0.8, 2.5], [1.5, 0.4], 0.5)),
)  # fmt: skip

threshold = Composite(
    "threshold", "x, threshold, value", "x where it is above the threshold, else the value",
    lambda x, threshold, value: where(less_equal(x, threshold), value, x),
    node_name="ThresholdBackward0", gradient_name="ThresholdBackwardBackward0",
    derivative="g where x > threshold, else 0; the rest to value",
    domain="smooth where x != threshold",
    edges=("at the threshold the derivative by x is 0",),
    samples=((0.7, 0.5, 0.1), ([-1.0, 2.0], 0.5, 0.1)),
)  # fmt: skip
