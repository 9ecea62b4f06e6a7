"""Elementwise exponentials and logarithms, and the functions that are made of them."""

from __future__ import annotations

import itertools

from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.dtypes import is_complex
from gradcli.arrays.mathematical_constants import by_formula, is_exact, log_2
from gradcli.primitives.bind import assume, constant
from gradcli.primitives.entries.arithmetic import absolute, divide, multiply, negative, sign, subtract
from gradcli.primitives.entries.comparisons import (
    equal,
    isfinite,
    less_equal,
    logical_and,
    logical_not,
    not_equal,
    nowhere,
    where,
)
from gradcli.primitives.families import complex_definition, elementwise
from gradcli.primitives.jet_rules import Coefficients, integrate_coefficients
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere
from gradcli.type_hints import Any

SUBJECT = "elementwise"

# Factors of the derivatives of log2 and log10. g/x*factor is used, as x*log(10) can overflow where its inverse does
# not.
_over_log_2, _over_log_10 = by_formula(lambda m: 1.0 / m.log(2)), by_formula(lambda m: 1.0 / m.log(10))
_logaddexp = complex_definition("logaddexp")
_ANYWHERE = (0.7, [-1.0, 2.0])
_POSITIVE = (0.7, [0.4, 2.5])
_POSITIVE_PAIRS = ((0.7, 1.3),)

exp = elementwise(
    "exp", "x", "e to the power x",
    numbers="analytic",
    vjp=(lambda g, y, _x: g * y,),
    spelling=names_elsewhere("c sql sympy polars"),
    derivative="g*exp(x)",
    samples=_ANYWHERE,
)  # fmt: skip

exp2 = elementwise(
    "exp2", "x", "2 to the power x",
    numbers="analytic",
    vjp=(lambda g, y, _x: g * (log_2() * y),),
    spelling=names_elsewhere("c"),
    derivative="g*log(2)*2**x",
    samples=_ANYWHERE,
)  # fmt: skip

expm1 = elementwise(
    "expm1", "x", "exp(x) - 1, accurate near 0",
    numbers="analytic",
    # exp(x) rather than y + 1, which cancels for large negative x.
    vjp=(lambda g, _y, x: g * exp(x),),
    spelling=names_elsewhere("c"),
    derivative="g*exp(x)",
    samples=_ANYWHERE,
)  # fmt: skip

log = elementwise(
    "log", "x", "natural logarithm",
    numbers="analytic",
    vjp=(lambda g, _y, x: divide(g, x),),
    spelling=names_elsewhere("c sympy latex polars", sql="ln"),
    derivative="g/x",
    domain="x > 0",
    edges=("log(0) = -inf, log'(0) = inf", "nan where x < 0"),
    aliases=("ln",),
    samples=_POSITIVE,
)  # fmt: skip

log2 = elementwise(
    "log2", "x", "logarithm to base 2",
    numbers="analytic",
    vjp=(lambda g, _y, x: divide(g * _over_log_2(), x),),
    spelling=names_elsewhere("c", latex="log_2"),
    derivative="g/(x*log(2))",
    domain="x > 0",
    edges=("log2(0) = -inf, log2'(0) = inf", "nan where x < 0"),
    samples=_POSITIVE,
)  # fmt: skip

log10 = elementwise(
    "log10", "x", "logarithm to base 10",
    numbers="analytic",
    vjp=(lambda g, _y, x: divide(g * _over_log_10(), x),),
    spelling=names_elsewhere("c polars", latex="log_{10}"),
    derivative="g/(x*log(10))",
    domain="x > 0",
    edges=("log10(0) = -inf, log10'(0) = inf", "nan where x < 0"),
    samples=_POSITIVE,
)  # fmt: skip

log1p = elementwise(
    "log1p", "x", "log(1 + x), accurate near 0",
    numbers="analytic", of_complex=complex_definition("log1p"),
    vjp=(lambda g, _y, x: divide(g, 1.0 + x),),
    spelling=names_elsewhere("c polars"),
    derivative="g/(1 + x)",
    domain="x > -1",
    edges=("log1p(-1) = -inf, log1p'(-1) = inf", "nan where x < -1"),
    samples=_POSITIVE,
)  # fmt: skip


def _sigmoid_series(_primitive: Primitive, y: Any, x: Any) -> Coefficients:
    # y' = x'*(1 - t**2)/4 with t = 2*y - 1 = tanh(x/2), computed such that neither t near 0 nor 1 - t**2 for large x
    # cancels.
    if is_exact() or is_complex(x):
        # The absolute value has a kink, which a ball around 0 would contain.
        first = subtract(multiply(2.0, y.inner), 1.0)
    else:
        size = absolute(x.inner)
        first = multiply(sign(x.inner), multiply(negative(expm1(negative(size))), sigmoid(size)))
    t = y.growing(first, (y.scaled(y.coefficient(k), 2) for k in itertools.count(1)))
    square = t * t
    slope = y.growing(
        multiply(sigmoid(x.inner), sigmoid(negative(x.inner))),
        (y.scaled(square.coefficient(k), -1, 4) for k in itertools.count(1)),
    )
    yield from integrate_coefficients(y, x.derivative() * slope)


sigmoid: Primitive = elementwise(
    "sigmoid", "x", "1/(1 + exp(-x))",
    numbers="analytic",
    subject="special",
    # sigmoid(-x) rather than 1 - y, which cancels for large x.
    vjp=(lambda g, y, x: g * (y * sigmoid(-x)),),
    jet=_sigmoid_series, spelling=names_elsewhere(scipy="expit", latex="sigma"), fallback=common_definitions.sigmoid,
    of_complex=complex_definition("sigmoid"),
    gradient_name="SigmoidBackwardBackward0",
    derivative="g*sigmoid(x)*sigmoid(-x)",
    aliases=("expit",),
    samples=_ANYWHERE,
)  # fmt: skip

logsigmoid = elementwise(
    "logsigmoid", "x", "log(sigmoid(x)), without overflow",
    time=2,
    numbers="analytic", of_complex=lambda xp, x: -_logaddexp(xp, 0.0, -x),
    subject="special",
    forward=lambda xp, x: xp.negative(xp.logaddexp(0.0, xp.negative(x))),
    vjp=(lambda g, _y, x: g * sigmoid(-x),),
    spelling=names_elsewhere(scipy="log_expit"),
    node_name="LogSigmoidBackward0", gradient_name="LogSigmoidBackwardBackward0",
    derivative="g*sigmoid(-x)",
    aliases=("log_sigmoid", "log_expit"),
    samples=_ANYWHERE,
)  # fmt: skip

softplus = elementwise(
    "softplus", "x", "log(1 + exp(x)), without overflow",
    time=2,
    numbers="analytic", of_complex=lambda xp, x: _logaddexp(xp, 0.0, x),
    subject="special",
    forward=lambda xp, x: xp.logaddexp(0.0, x),
    vjp=(lambda g, _y, x: g * sigmoid(x),),
    gradient_name="SoftplusBackwardBackward0",
    derivative="g*sigmoid(x)",
    samples=_ANYWHERE,
)  # fmt: skip

relu = elementwise(
    "relu", "x", "x where it is positive, else 0",
    subject="special",
    forward=lambda xp, x: xp.maximum(x, 0.0),
    # A nan does not compare <= 0, so it keeps its cotangent.
    vjp=(lambda g, _y, x: where(less_equal(x, 0), 0.0, g),),
    gradient_name="ThresholdBackwardBackward0",
    derivative="g where x > 0, else 0; 0 at 0",
    domain="smooth where x != 0",
    edges=("relu'(0) = 0",),
    selects=True,
    smooth=lambda x: nowhere(equal(x, 0)),
    samples=_ANYWHERE,
)  # fmt: skip


def share(g: Any, a: Any, b: Any, scale: Any = None) -> Any:
    """g*exp(a)/(exp(a) + exp(b)), g/2 where both are the same infinity; with `scale`, exp(scale*a) and exp(scale*b)."""
    difference = a - b
    if not assume(isfinite(constant(difference))):
        both = logical_and(equal(a, b), logical_not(isfinite(a)))
        difference = where(both, 0.0, difference)
    return g * sigmoid(difference if scale is None else scale * difference)


logaddexp = elementwise(
    "logaddexp", "x, y", "log(exp(x) + exp(y)), without overflow",
    time=2,
    numbers="analytic", of_complex=_logaddexp,
    vjp=(lambda g, _y, a, b: share(g, a, b), lambda g, _y, a, b: share(g, b, a)),
    derivative="g*sigmoid(x - y), g*sigmoid(y - x)",
    edges=(
        "a single infinite operand is the larger one, or has no share; each of two gets half of g",
        "near its zeros right to 2e-16; its derivatives relatively to 2e-16*(1 + abs(x) + abs(y))",
    ),
    samples=((0.7, 1.3), (-2.0, 0.5)),
)  # fmt: skip

logit = Composite(
    "logit", "x", "log(x/(1 - x))", lambda x: subtract(log(x), log1p(negative(x))),
    subject="special",
    derivative="g/(x*(1 - x))",
    domain="0 < x < 1",
    edges=("logit(0) = -inf and logit(1) = inf, with derivative inf",),
    samples=(0.7, [0.2, 0.5]),
)  # fmt: skip


def share_of_zero(a: Any, b: Any) -> Any:
    """a/b, and 0 where both are 0: the derivative by b of a*log(a/b), which is 0 for all b where a is 0."""
    if assume(not_equal(constant(b), 0)):
        return divide(a, b)
    nothing = logical_and(equal(a, 0), equal(b, 0))
    return where(nothing, 0.0, divide(a, where(nothing, 1.0, b)))


def _up_to(x: Any, end: float) -> Any:
    """Return whether x, where a logarithm has no derivative, is at most `end`; a complex x, whether it is that."""
    return equal(x, end) if is_complex(x) else less_equal(x, end)


xlogy = elementwise(
    "xlogy", "x, y", "x*log(y), 0 where x is 0",
    subject="special",
    numbers="analytic",
    forward=lambda xp, x, y: xp.multiply(
        x, xp.log(xp.where(xp.logical_and(xp.equal(x, 0), xp.equal(y, y)), 1.0, y))
    ),
    vjp=(
        lambda g, _y, a, b: g * log(where(logical_and(equal(a, 0), _up_to(b, 0)), 1.0, b)),
        lambda g, _y, a, b: g * share_of_zero(a, b),
    ),
    spelling=names_elsewhere("scipy"),
    derivative="g*log(y), g*x/y; by x it is 0 where x = 0 and y <= 0",
    domain="y > 0",
    edges=("0 where x = 0, also at y <= 0; there the derivatives are 0",),
    samples=_POSITIVE_PAIRS,
)  # fmt: skip

xlog1py = elementwise(
    "xlog1py", "x, y", "x*log(1 + y), 0 where x is 0",
    subject="special",
    numbers="analytic",
    forward=lambda xp, x, y: xp.multiply(
        x, xp.log1p(xp.where(xp.logical_and(xp.equal(x, 0), xp.equal(y, y)), 0.0, y))
    ),
    vjp=(
        lambda g, _y, a, b: g * log1p(where(logical_and(equal(a, 0), _up_to(b, -1)), 0.0, b)),
        lambda g, _y, a, b: g * share_of_zero(a, 1.0 + b),
    ),
    spelling=names_elsewhere("scipy"),
    derivative="g*log(1 + y), g*x/(1 + y); by x it is 0 where x = 0 and y <= -1",
    domain="y > -1",
    edges=("0 where x = 0, also at y <= -1; there the derivatives are 0",),
    samples=_POSITIVE_PAIRS,
)  # fmt: skip
