"""Functions composed of reductions: variance, median, norms, logsumexp."""

from __future__ import annotations

import math

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.errors import EvaluationError, ShapeError
from gradcli.primitives.axes import boolean, normalize_axes, one_float, one_number_or_tensor
from gradcli.primitives.bind import Kind, assume, constant, constant_for_branching, detached
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.entries.arithmetic import (
    absolute,
    add,
    divide,
    floor,
    is_normal,
    multiply,
    reciprocal,
    subtract,
)
from gradcli.primitives.entries.comparisons import (
    clip,
    equal,
    isfinite,
    less,
    logical_and,
    logical_not,
    maximum,
    not_equal,
    nowhere,
    smallest_normal,
    usable_divisor,
    where,
)
from gradcli.primitives.entries.complex_parts import imaginary_part, real_part, real_part_of
from gradcli.primitives.entries.exponential import exp, exp2, log, log2
from gradcli.primitives.entries.powers import power, square
from gradcli.primitives.entries.reductions import (
    SAMPLES,
    SIGNATURE,
    axes_last,
    count_along,
    keep_axes,
    max_,
    mean,
    min_,
    order_statistic,
    sum_,
)
from gradcli.primitives.families import elementwise
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere
from gradcli.type_hints import Any

SUBJECT = "reductions"

_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.5], [4.0, 5.5, 6.0]]


def squared_modulus(x: Any) -> Any:
    """abs(x)**2, by operations that are differentiable at 0."""
    if not arrays.is_complex(x):
        return square(x)
    return add(square(real_part(x)), square(imaginary_part(x)))


def _var(x: Any, axis: Any = None, keepdims: Any = False, correction: Any = 0) -> Any:
    sizes = arrays.shape(x)
    axes = normalize_axes(axis, len(sizes))
    deviation = subtract(x, mean(x, axes, True))
    correction = one_number_or_tensor(correction, "a correction")
    freedom = subtract(float(count_along(sizes, axes)), correction)
    freedom = maximum(freedom, 0.0) if isinstance(correction, Kind) else max(freedom, 0.0)
    return divide(sum_(squared_modulus(deviation), axes, keepdims), freedom)


var = Composite(
    "var", "x, axis=None, keepdims=False, correction=0",
    "variance over the axes, with n - correction in the denominator", _var,
    node_name="VarBackward0",
    derivative="2*g*(x - mean(x))/(n - correction), and sum(g*y)/(n - correction) by the correction",
    edges=("nan where n <= correction",),
    samples=SAMPLES,
)  # fmt: skip


def _flat_sqrt_rule(g: Any, y: Any, x: Any) -> Any:
    zero = equal(x, 0)
    return where(zero, 0.0, divide(g, 2.0 * where(zero, 1.0, y)))


# For lengths of vectors that may be zero.
flat_sqrt: Primitive = elementwise(
    "flat_sqrt", "x", "sqrt(x), taken as flat at 0",
    internal=True,
    forward="sqrt",
    vjp=(_flat_sqrt_rule,),
    spelling=names_elsewhere(c="sqrt", sql="sqrt"),
    derivative="g/(2*sqrt(x)), 0 at 0",
    domain="x >= 0; smooth where x > 0",
    selects=True,
    smooth=lambda x: nowhere(equal(x, 0)),
    samples=(0.7, [0.4, 2.5]),
)  # fmt: skip


def _flat_root_rule(g: Any, y: Any, x: Any, *, n: float) -> Any:
    zero = equal(x, 0)
    return where(zero, 0.0, divide(g * y, n * where(zero, 1.0, x)))


flat_root: Primitive = elementwise(
    "flat_root", "x, n", "x**(1/n), taken as 0 and flat at 0",
    internal=True,
    forward=lambda xp, x, *, n: xp.where(xp.equal(x, 0.0), 0.0, xp.pow(x, 1.0 / n)),
    vjp=(_flat_root_rule,),
    prepare=lambda x, n: ((x,), {"n": n}),
    derivative="g*x**(1/n)/(n*x), 0 at 0",
    domain="x >= 0; smooth where x > 0",
    selects=True,
    smooth=lambda x, **_params: nowhere(equal(x, 0)),
    samples=((0.7, 3.0), ([0.4, 2.5], -0.5)),
)  # fmt: skip


def _std(x: Any, axis: Any = None, keepdims: Any = False, correction: Any = 0) -> Any:
    variance = _var(x, axis, keepdims, correction)
    axes = normalize_axes(axis, len(arrays.shape(x)))
    if is_exact() or count_along(arrays.shape(x), axes) == 0 or assume(is_normal(constant(variance))):
        return flat_sqrt(variance)
    # The squares overflow or underflow. Scaling by a power of 2 is exact for those that do not.
    largest_exponent = -math.log2(smallest_normal(x))
    exponent = floor(log2(finite_scale(x, axes)))
    scaled, scale = _scaled(x, axes, keepdims, exp2(clip(exponent, -largest_exponent, largest_exponent)))
    return multiply(scale, flat_sqrt(_var(scaled, axis, keepdims, correction)))


std = Composite(
    "std", "x, axis=None, keepdims=False, correction=0",
    "standard deviation over the axes, the square root of var, without overflow", _std,
    node_name="StdBackward0",
    derivative="g*(x - mean(x))/((n - correction)*std(x)), 0 where std(x) = 0",
    domain="smooth where std(x) != 0",
    edges=("where all elements are equal, the derivative is 0", "nan where n <= correction"),
    samples=SAMPLES,
)  # fmt: skip


def finite_scale(x: Any, axes: Shape) -> Any:
    """The largest magnitude over the axes as a constant, raised to the smallest normal number so that its reciprocal is
    finite; 1 where it is 0 or not finite."""
    largest = max_(absolute(constant(x)), axes, True)
    smallest = smallest_normal(x)
    scale = where(usable_divisor(largest), largest, 1.0)
    tiny = less(scale, smallest)
    return scale if nowhere(tiny) else where(tiny, smallest, scale)


def _order(ord: Any) -> Any:
    """The order of a norm as a float, or unchanged if it is a differentiated value or a ball that no float equals."""
    if isinstance(ord, str) and ord != "fro":
        raise EvaluationError(f"there is no norm {ord!r}", hint="ord is a number, inf, -inf, or 'fro' for 2")
    number = 2.0 if ord is None or isinstance(ord, str) else one_number_or_tensor(ord, "the order of a norm")
    has_powers = assume(logical_and(isfinite(constant(number)), not_equal(constant(number), 0)))
    return (
        number if has_powers and type(number) not in arrays.PYTHON_NUMBERS else one_float(number, "the order of a norm")
    )


def _norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: Any = False) -> Any:
    axes = normalize_axes(axis, len(arrays.shape(x)))
    if arrays.is_complex(x):
        x = absolute(x)
    order = _order(ord)
    if count_along(arrays.shape(x), axes) == 0:
        return sum_(absolute(x), axes, keepdims)
    if type(order) is not float:
        return _norm_of_varying_order(x, order, axes, keepdims)
    if order == math.inf:
        return max_(absolute(x), axes, keepdims)
    if order == -math.inf:
        return min_(absolute(x), axes, keepdims)
    if order == 0:
        return sum_(where(not_equal(x, 0), 1.0, 0.0), axes, keepdims)
    if order == 1:
        return sum_(absolute(x), axes, keepdims)
    scaled, scale = _scaled(x, axes, keepdims, finite_scale(x, axes))
    if order == 2:
        return multiply(scale, flat_sqrt(sum_(squared_modulus(scaled), axes, keepdims)))
    magnitudes = scaled if order % 2 == 0 and not arrays.is_complex(x) else absolute(scaled)
    return multiply(scale, flat_root(sum_(power(magnitudes, order), axes, keepdims), order))


def _norm_of_varying_order(x: Any, order: Any, axes: Shape, keepdims: Any) -> Any:
    scaled, scale = _scaled(x, axes, keepdims, finite_scale(x, axes))
    total = sum_(power(absolute(scaled), order), axes, keepdims)
    zero = equal(constant_for_branching(total), where(less(constant_for_branching(order), 0), math.inf, 0.0))
    return multiply(scale, where(zero, 0.0, power(where(zero, 1.0, total), reciprocal(order))))


def _scaled(x: Any, axes: Shape, keepdims: Any, scale: Any) -> tuple[Any, Any]:
    """x divided by `scale`, a number near its largest magnitude that keeps powers from overflowing, and `scale` in the
    reduced shape. It cancels in derivatives."""
    scaled = divide(x, scale)
    return scaled, scale if boolean(keepdims, "'keepdims'") else reshape(scale, _reduced(arrays.shape(x), axes))


def _reduced(shape: Shape, axes: Shape) -> Shape:
    return tuple(s for a, s in enumerate(shape) if a not in axes)


norm = Composite(
    "norm", "x, ord=2, axis=None, keepdims=False",
    "sum(abs(x)**ord)**(1/ord) over all the axes, also those of a matrix; ord=inf is the largest magnitude", _norm,
    node_name="LinalgVectorNormBackward0",
    derivative="g*x/norm(x) for ord=2, 0 where norm(x) = 0",
    domain="smooth where norm(x) != 0",
    edges=("where all elements are 0, the derivative is 0", "the norm of no elements is 0"),
    aliases=("vector_norm",),
    samples=((_VECTOR,), (_VECTOR, 3), (_MATRIX, 2, 1), (_VECTOR, 1), (_VECTOR, math.inf)),
)  # fmt: skip


def _logsumexp(x: Any, axis: Any = None, keepdims: Any = False, b: Any = None) -> Any:
    if b is not None:
        return _weighted_logsumexp(x, b, axis, keepdims)
    axes = normalize_axes(axis, len(arrays.shape(x)))
    if count_along(arrays.shape(x), axes) == 0:
        return log(sum_(exp(x), axes, keepdims))
    # The shift carries its Taylor coefficients, so that a large first derivative does not cancel the digits of the
    # second.
    largest = max_(real_part_of(detached(x)), axes, True)
    finite = isfinite(largest)
    shift = where(finite, largest, 0.0)
    total = log(sum_(exp(x - shift), axes, True)) + shift
    if not arrays.is_complex(x) and not assume(finite):
        total = where(equal(absolute(largest), math.inf), max_(x, axes, True), total)
    return total if boolean(keepdims, "'keepdims'") else reshape(total, _reduced(arrays.shape(x), axes))


def _weighted_logsumexp(x: Any, b: Any, axis: Any, keepdims: Any) -> Any:
    shape = broadcast([arrays.shape(x), arrays.shape(b)])
    x, axes = broadcast_to(x, shape), normalize_axes(axis, len(shape))
    # An element with weight 0 may be arbitrarily large.
    weightless = equal(constant(b), 0)
    known = where(weightless, -math.inf, real_part_of(detached(x)))
    largest = max_(known, axes, True) if count_along(shape, axes) else 0.0
    shift = where(isfinite(largest), largest, 0.0)
    lost = logical_and(weightless, logical_not(isfinite(exp(constant(x) - shift))))
    total = log(sum_(multiply(b, exp(where(lost, constant(shift), x) - shift)), axes, True)) + shift
    return total if boolean(keepdims, "'keepdims'") else reshape(total, _reduced(shape, axes))


logsumexp = Composite(
    "logsumexp", f"{SIGNATURE}, b=None", "log(sum(exp(x))) over the axes, or log(sum(b*exp(x))), without overflow", _logsumexp,
    node_name="LogsumexpBackward0",
    derivative="g*softmax(x), with weights g*b*exp(x - y), and g*exp(x - y) by them",
    edges=(
        "of no elements it is -inf",
        "where it is infinite, it is the maximum, and infinite elements that tie share the derivative evenly",
    ),
    samples=(*SAMPLES, (_MATRIX, 1, False, [[0.5, 1.0, 2.0], [0.7, 1.5, 3.0]])),
)  # fmt: skip


def _median(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    sizes = arrays.shape(x)
    axes = normalize_axes(axis, len(sizes))
    count = count_along(sizes, axes)
    if not count:
        raise ShapeError("an empty tensor has no 'median'")
    flat = axes_last(x, axes)
    low, high = (count - 1) // 2, count // 2
    middle = order_statistic(flat, low)
    if low != high:
        middle = multiply(0.5, add(middle, order_statistic(flat, high)))
    return keep_axes(middle, sizes, axes) if boolean(keepdims, "'keepdims'") else middle


median = Composite(
    "median", SIGNATURE, "the middle element, or the mean of the two in the middle", _median,
    derivative="g to the middle elements; ties share it evenly",
    domain="smooth where one element is chosen",
    edges=(
        "elements equal to the middle one share its part of g evenly",
        "where some are nan, those are chosen",
        "no elements are an error",
    ),
    samples=SAMPLES,
)  # fmt: skip
