"""The table of stable forms: pairs of equal expressions, one of which may overflow or cancel and one of which does not.

A name in a pattern matches any expression, and the same expression at each occurrence. Numbers and functions match
themselves, functions under any of their names. The operands of sums and products match in either order.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import assume, constant
from gradcli.primitives.entries.arithmetic import absolute, multiply, subtract
from gradcli.primitives.entries.comparisons import (
    equal,
    greater,
    greater_equal,
    isfinite,
    less,
    logical_and,
    maximum,
    usable_divisor,
)
from gradcli.type_hints import Any


class StableForm(NamedTuple):
    """`pattern` may be evaluated as `stable`, provided that `when` holds for the values of its names.

    With `apart`, `when` is evaluated and the form chosen for each element. The first number of `apart` satisfies the
    condition, and is substituted in the stable form for elements that do not; the second does not satisfy it, and is
    substituted in the original form for elements that do.

    `of_complex` is the condition where a value is complex; without it, the form holds for real numbers alone, as
    log(exp(z)) is z for a strip of the plane alone.
    """

    pattern: str
    stable: str
    proof: str
    when: Callable[..., Any] | None = None
    apart: tuple[float, float] | None = None
    of_complex: Callable[..., Any] | None = None

    @property
    def adds_to_variable(self) -> bool:
        """True if 1 + x is a part of the pattern, whose imaginary part is +0 where that of x is -0."""
        return "1 + x" in self.pattern


def _positive_and_finite(x: Any, q: Any) -> bool:
    base, exponent = constant(x), constant(q)
    return assume(greater(base, 0)) and assume(isfinite(base)) and assume(isfinite(exponent))


def _nonzero_and_finite(x: Any) -> bool:
    return assume(usable_divisor(constant(x)))


def _above_minus_log_2(x: Any) -> Any:
    # In exact arithmetic both forms keep all digits; the original one is also right at the ends of the domain.
    return not is_exact() and greater(constant(x), -math.log(2))


def _near_0(x: Any) -> Any:
    return not is_exact() and less(absolute(constant(x)), 0.5)


def _one_axis(x: Any) -> bool:
    return len(arrays.shape(x)) == 1


def _above_1(x: Any) -> Any:
    return not is_exact() and greater(constant(x), 1.0)


def _above_1_for_x(x: Any, **_others: Any) -> Any:
    return _above_1(x)


def _small_x(x: Any, **_others: Any) -> Any:
    # For larger x fewer digits cancel; the power itself is then accurate, and exact where it can be.
    return not is_exact() and less(absolute(constant(x)), 0.1)


def _close(x: Any, y: Any) -> Any:
    return not is_exact() and less(absolute(subtract(constant(x), constant(y))), 0.5)


def _close_angles(x: Any, y: Any) -> Any:
    # The rounding error of a sum of large angles exceeds that of their functions.
    x = absolute(constant(x))
    return not is_exact() and less(multiply(absolute(subtract(x, absolute(constant(y)))), maximum(x, 1.0)), 0.5)


def _positive_x(x: Any, **_others: Any) -> Any:
    # In exact arithmetic the original form is used: its root is exact where it can be.
    return not is_exact() and greater(constant(x), 0.0)


def _small_and_positive(x: Any) -> Any:
    x = constant(x)
    return not is_exact() and logical_and(greater_equal(x, 0.0), less(x, 0.5))


def _within_pi(x: Any) -> Any:
    return not is_exact() and less(absolute(constant(x)), math.pi)


def _within_half_pi(x: Any) -> Any:
    return not is_exact() and less(absolute(constant(x)), math.pi / 2)


def _below_half(x: Any) -> Any:
    return not is_exact() and less(constant(x), 0.5)


def _above_half(x: Any) -> Any:
    return not is_exact() and greater(constant(x), 0.5)


def _above_minus_half(x: Any) -> Any:
    return not is_exact() and greater(constant(x), -0.5)


def _below_minus_half(x: Any) -> Any:
    return not is_exact() and less(constant(x), -0.5)


def _is_0(x: Any, **_others: Any) -> Any:
    return equal(constant(x), 0)


def _everywhere(**_values: Any) -> bool:
    """The condition of an identity of analytic functions."""
    return not is_exact()


def _always(**_values: Any) -> bool:
    return True


def _never(**_values: Any) -> bool:
    return False


# Rules by the function or operator at the root of an expression. The first one that matches, and whose condition holds,
# is used. Sums and products match in either order.
RULES_BY_ROOT = {
    "log": (
        # x*1 converts booleans to numbers.
        StableForm("log(exp(x))", "x*1", "log is the inverse of exp"),
        StableForm("log(x**2)", "2*log(abs(x))", "x**2 = abs(x)**2", _nonzero_and_finite),
        StableForm("log(x**q)", "q*log(x)", "x**q = exp(q*log(x)) for x > 0", _positive_and_finite),
        StableForm("log(sum(exp(x)))", "logsumexp(x)", "the definition of logsumexp"),
        StableForm("log(sum(exp(x), axis=a))", "logsumexp(x, axis=a)", "the definition of logsumexp"),
        StableForm(
            "log(sum(exp(x), axis=a, keepdims=k))", "logsumexp(x, axis=a, keepdims=k)", "the definition of logsumexp"
        ),
        StableForm("log(softmax(x))", "log_softmax(x)", "the definition of log_softmax"),
        StableForm("log(softmax(x, axis=a))", "log_softmax(x, axis=a)", "the definition of log_softmax"),
        StableForm("log(sigmoid(x))", "logsigmoid(x)", "the definition of logsigmoid"),
        StableForm("log(1 - sigmoid(x))", "logsigmoid(-x)", "1 - 1/(1 + exp(-x)) = 1/(1 + exp(x))"),
        StableForm("log(1/(1 + exp(x)))", "logsigmoid(-x)", "the definition of logsigmoid"),
        StableForm("log(1 + exp(x))", "softplus(x)", "the definition of softplus"),
        StableForm("log(exp(x) + exp(y))", "logaddexp(x, y)", "the definition of logaddexp"),
        StableForm("log(1 - exp(x))", "log(-expm1(x))", "the definition of expm1", _above_minus_log_2, (-0.1, -1.0)),
        StableForm("log(exp(x) - 1)", "x + log(-expm1(-x))", "exp(x) - 1 = exp(x)*(1 - exp(-x))"),
        StableForm("log(expm1(x))", "x + log(-expm1(-x))", "exp(x) - 1 = exp(x)*(1 - exp(-x))"),
        StableForm("log(cosh(x))", "logcosh(x)", "the definition of logcosh"),
        StableForm("log(sinh(x))", "x + log(-expm1(-2*x)/2)", "sinh(x) = exp(x)*(1 - exp(-2*x))/2"),
        StableForm("log(1 - tanh(x)**2)", "-2*logcosh(x)", "1 - tanh(x)**2 = cosh(x)**-2"),
        StableForm("log(ndtr(x))", "log_ndtr(x)", "the definition of log_ndtr"),
        StableForm("log(1 - ndtr(x))", "log_ndtr(-x)", "the normal distribution is symmetric"),
        StableForm("log(erfc(x))", "log(erfcx(x)) - x*x", "the definition of erfcx", _above_1, (2.0, 0.0)),
        StableForm("log(1 - erf(x))", "log(erfcx(x)) - x*x", "the definition of erfcx", _above_1, (2.0, 0.0)),
        StableForm("log(1 - erf(x))", "log(erfc(x))", "the definition of erfc"),
        StableForm(
            "log(1 - tanh(x))", "log(2) - softplus(2*x)", "1 - tanh(x) = 2/(1 + exp(2*x))", _above_half, (1.0, 0.0)
        ),
        StableForm(
            "log(1 + tanh(x))",
            "log(2) - softplus(-2*x)",
            "1 + tanh(x) = 2/(1 + exp(-2*x))",
            _below_minus_half,
            (-1.0, 0.0),
        ),
        StableForm("log(1 + x)", "log1p(x)", "the definition of log1p", apart=(0.0, 1.0), of_complex=_near_0),
        StableForm("log(1 - x)", "log1p(-x)", "the definition of log1p", apart=(0.0, 1.0), of_complex=_near_0),
    ),
    "sqrt": (
        StableForm("sqrt(x**2 + y**2)", "hypot(x, y)", "the definition of hypot"),
        StableForm("sqrt(x*x + y*y)", "hypot(x, y)", "the definition of hypot"),
        StableForm("sqrt(sum(x**2))", "norm(x)", "the definition of norm"),
        StableForm("sqrt(sum(x**2, axis=a))", "norm(x, axis=a)", "the definition of norm"),
        StableForm("sqrt(sum(x*x))", "norm(x)", "the definition of norm"),
    ),
    # Near the ends of their domain, the inverse functions lose half of the digits of their argument.
    "acos": (
        StableForm("acos(cos(x))", "abs(x)", "cos is even, and falls from 0 to pi", _within_pi, (1.0, 4.0)),
        StableForm("acos(sin(x))", "acos(0) - x", "sin(x) = cos(pi/2 - x)", _within_half_pi, (1.0, 2.0)),
        StableForm("acos(sqrt(1 - x**2))", "asin(abs(x))", "sin(y)**2 + cos(y)**2 = 1"),
        StableForm("acos(1 - x)", "2*asin(sqrt(x/2))", "1 - 2*sin(y/2)**2 = cos(y)", _small_and_positive, (0.1, 1.0)),
    ),
    "asin": (
        StableForm("asin(sin(x))", "x*1", "asin is the inverse of sin", _within_half_pi, (1.0, 2.0)),
        StableForm("asin(cos(x))", "acos(0) - abs(x)", "cos(x) = sin(pi/2 - abs(x))", _within_pi, (1.0, 4.0)),
        StableForm("asin(sqrt(1 - x**2))", "acos(abs(x))", "sin(y)**2 + cos(y)**2 = 1"),
        StableForm(
            "asin(1 - x)", "acos(0) - 2*asin(sqrt(x/2))", "1 - 2*sin(y/2)**2 = cos(y)", _small_and_positive, (0.1, 1.0)
        ),
    ),
    "atan": (StableForm("atan(tan(x))", "x*1", "atan is the inverse of tan", _within_half_pi, (1.0, 2.0)),),
    "asinh": (StableForm("asinh(sinh(x))", "x*1", "asinh is the inverse of sinh"),),
    "acosh": (
        StableForm("acosh(cosh(x))", "abs(x)", "cosh is even, and rises from 0 on"),
        StableForm("acosh(sqrt(1 + x**2))", "asinh(abs(x))", "cosh(y)**2 - sinh(y)**2 = 1"),
        StableForm(
            "acosh(1 + x)", "2*asinh(sqrt(x/2))", "1 + 2*sinh(y/2)**2 = cosh(y)", _small_and_positive, (0.1, 1.0)
        ),
    ),
    "atanh": (
        StableForm("atanh(tanh(x))", "x*1", "atanh is the inverse of tanh"),
        StableForm(
            "atanh(1 - x)", "log((2 - x)/x)/2", "atanh(y) = log((1 + y)/(1 - y))/2", _small_and_positive, (0.1, 1.0)
        ),
    ),
    "-": (
        StableForm("exp(x) - 1", "expm1(x)", "the definition of expm1", of_complex=_everywhere),
        StableForm("exp(x) - exp(y)", "exp(y)*expm1(x - y)", "exp(x) = exp(y)*exp(x - y)", _close, of_complex=_close),
        StableForm("1 - exp(x)", "-expm1(x)", "the definition of expm1", of_complex=_everywhere),
        StableForm(
            "sqrt(1 + x) - 1", "expm1(log1p(x)/2)", "sqrt(x) = exp(log(x)/2)", _near_0, (0.0, 1.0), of_complex=_near_0
        ),
        StableForm(
            "(1 + x)**q - 1", "expm1(q*log1p(x))", "x**q = exp(q*log(x))", _small_x, (0.0, 1.0), of_complex=_small_x
        ),
        StableForm(
            "1 - (1 + x)**q", "-expm1(q*log1p(x))", "x**q = exp(q*log(x))", _small_x, (0.0, 1.0), of_complex=_small_x
        ),
        StableForm("1 - tanh(x)**2", "sech(x)**2", "1 - tanh(x)**2 = cosh(x)**-2", of_complex=_everywhere),
        StableForm("1 - tanh(x)*tanh(x)", "sech(x)**2", "1 - tanh(x)**2 = cosh(x)**-2", of_complex=_everywhere),
        StableForm("1 - sigmoid(x)", "sigmoid(-x)", "1 - 1/(1 + exp(-x)) = 1/(1 + exp(x))", of_complex=_everywhere),
        StableForm("1 - ndtr(x)", "ndtr(-x)", "the normal distribution is symmetric"),
        StableForm("1 - erf(x)", "erfc(x)", "the definition of erfc", of_complex=_everywhere),
        StableForm("1 - erfc(x)", "erf(x)", "the definition of erfc", of_complex=_everywhere),
        StableForm("1 - cos(x)", "2*sin(x/2)**2", "cos(x) = 1 - 2*sin(x/2)**2", of_complex=_everywhere),
        StableForm("cosh(x) - 1", "2*sinh(x/2)**2", "cosh(x) = 1 + 2*sinh(x/2)**2", of_complex=_everywhere),
        StableForm("cosh(x)**2 - 1", "sinh(x)**2", "cosh(x)**2 - sinh(x)**2 = 1", of_complex=_everywhere),
        StableForm(
            "cos(x) - cos(y)",
            "-2*sin((x + y)/2)*sin((x - y)/2)",
            "the sum of angles",
            _close_angles,
            of_complex=_close_angles,
        ),
        StableForm(
            "sin(x) - sin(y)",
            "2*cos((x + y)/2)*sin((x - y)/2)",
            "the sum of angles",
            _close_angles,
            of_complex=_close_angles,
        ),
        StableForm("x - sqrt(x**2 - y)", "y/(x + sqrt(x**2 - y))", "(a - b)*(a + b) = a**2 - b**2", _positive_x),
        StableForm("x - sqrt(x*x - y)", "y/(x + sqrt(x*x - y))", "(a - b)*(a + b) = a**2 - b**2", _positive_x),
    ),
    "+": (
        StableForm("1 + cos(x)", "2*cos(x/2)**2", "cos(x) = 2*cos(x/2)**2 - 1", of_complex=_everywhere),
        StableForm("1 + erf(x)", "erfc(-x)", "the definition of erfc", of_complex=_everywhere),
    ),
    "/": (
        StableForm("1/(1 + exp(-x))", "sigmoid(x)", "the definition of sigmoid", of_complex=_everywhere),
        StableForm(
            "exp(x)/(1 + exp(x))", "sigmoid(x)", "exp(x)/(1 + exp(x)) = 1/(exp(-x) + 1)", of_complex=_everywhere
        ),
        # exp(x), or its square, may overflow.
        StableForm("exp(x)/(exp(x) - 1)", "-1/expm1(-x)", "exp(x) - 1 = exp(x)*(1 - exp(-x))"),
        StableForm("y*exp(x)/(exp(x) - 1)", "-y/expm1(-x)", "exp(x) - 1 = exp(x)*(1 - exp(-x))"),
        StableForm(
            "y/(exp(x) - 1)",
            "y*exp(-x)/-expm1(-x)",
            "1/(exp(x) - 1) = exp(-x)/(1 - exp(-x))",
            _above_1_for_x,
            (2.0, 1.0),
        ),
        StableForm(
            "y/expm1(x)", "y*exp(-x)/-expm1(-x)", "1/(exp(x) - 1) = exp(-x)/(1 - exp(-x))", _above_1_for_x, (2.0, 1.0)
        ),
        StableForm(
            "exp(x)/(exp(x) - 1)**2", "csch(x/2)**2/4", "exp(x) - 1 = 2*exp(x/2)*sinh(x/2)", _above_1_for_x, (2.0, 1.0)
        ),
        StableForm(
            "y*exp(x)/(exp(x) - 1)**2",
            "y*csch(x/2)**2/4",
            "exp(x) - 1 = 2*exp(x/2)*sinh(x/2)",
            _above_1_for_x,
            (2.0, 1.0),
        ),
        StableForm(
            "y/(1 - exp(x))",
            "y*exp(-x)/expm1(-x)",
            "1/(1 - exp(x)) = exp(-x)/(exp(-x) - 1)",
            _above_1_for_x,
            (2.0, 1.0),
        ),
        StableForm("exp(x)/(q*(1 + exp(x))**2)", "sech(x/2)**2/(4*q)", "1 + exp(x) = 2*exp(x/2)*cosh(x/2)"),
        StableForm(
            "exp(x)/(1 + exp(x))**2", "sech(x/2)**2/4", "1 + exp(x) = 2*exp(x/2)*cosh(x/2)", of_complex=_everywhere
        ),
        StableForm(
            "y*exp(x)/(1 + exp(x))**2", "y*sech(x/2)**2/4", "1 + exp(x) = 2*exp(x/2)*cosh(x/2)", of_complex=_everywhere
        ),
        StableForm(
            "(exp(x) - 1)/(exp(x) + 1)", "tanh(x/2)", "tanh(x) = (exp(2*x) - 1)/(exp(2*x) + 1)", of_complex=_everywhere
        ),
        StableForm("(1 - exp(x))/(1 + exp(x))", "-tanh(x/2)", "tanh(x) = (exp(2*x) - 1)/(exp(2*x) + 1)"),
        StableForm("y/(1 + exp(-x))", "y*sigmoid(x)", "the definition of sigmoid", of_complex=_everywhere),
        StableForm("y/(1 + exp(x))", "y*sigmoid(-x)", "the definition of sigmoid", of_complex=_everywhere),
        StableForm("1/cosh(x)", "sech(x)", "the definition of sech", of_complex=_everywhere),
        StableForm("1/cosh(x)**2", "sech(x)**2", "the definition of sech", of_complex=_everywhere),
        StableForm("2/(exp(x) + exp(-x))", "sech(x)", "cosh(x) = (exp(x) + exp(-x))/2", of_complex=_everywhere),
        StableForm("(exp(x) - exp(-x))/2", "sinh(x)", "the definition of sinh", of_complex=_everywhere),
        StableForm(
            "(exp(x) - exp(-x))/(exp(x) + exp(-x))", "tanh(x)", "the definition of tanh", of_complex=_everywhere
        ),
        StableForm("exp(x)/sum(exp(x))", "softmax(x)", "the definition of softmax", _one_axis),
    ),
    "*": (
        StableForm(
            "sigmoid(x)*(1 - sigmoid(x))", "sech(x/2)**2/4", "sigmoid(x) = (1 + tanh(x/2))/2", of_complex=_everywhere
        ),
        StableForm("exp(x**2)*erfc(x)", "erfcx(x)", "the definition of erfcx"),
        StableForm("exp(x*x)*erfc(x)", "erfcx(x)", "the definition of erfcx"),
        StableForm("exp(-abs(x))*i0(x)", "i0e(x)", "the definition of i0e"),
        StableForm("exp(-abs(x))*i1(x)", "i1e(x)", "the definition of i1e"),
        StableForm("x*log(x)", "0 - entr(x)", "the definition of entr", _is_0, (0.0, 1.0)),
        StableForm("-x*log(x)", "entr(x) + 0", "the definition of entr", _is_0, (0.0, 1.0)),
        StableForm("y*x*log(x)", "y*(0 - entr(x))", "the definition of entr", _is_0, (0.0, 1.0)),
        StableForm("x*log2(x)", "0 - entr(x)/log(2)", "log2(x) = log(x)/log(2)", _is_0, (0.0, 1.0)),
        StableForm("-x*log2(x)", "entr(x)/log(2) + 0", "log2(x) = log(x)/log(2)", _is_0, (0.0, 1.0)),
    ),
    "**": (
        # The modulus has no derivatives at 0, and its root is rounded.
        StableForm("abs(x)**2", "real(x)**2 + imag(x)**2", "the definition of the modulus", _never, of_complex=_always),
        # The derivatives of both sides have the same limits at 0.
        StableForm("x**x", "1 - entr(x)", "x**x = 1 + x*log(x) + o(x)", _is_0, (0.0, 1.0)),
    ),
}

# Patterns of the forms at 0 whose derivatives are those of the limit, in all orders.
COMPLETE_AT_0 = frozenset({"x*log(x)", "-x*log(x)", "x*log2(x)", "-x*log2(x)", "x**x"})

# Replacements for rules where the sum inside the logarithm has a stable form of its own: the logarithm of that form is
# used where the sum is near 0, and log1p elsewhere.
RULES_FOR_STABLE_SUMS = {
    "log(1 - x)": StableForm("log(1 - x)", "log1p(-x)", "the definition of log1p", _below_half, (0.0, 0.9), _near_0),
    "log(1 + x)": StableForm(
        "log(1 + x)", "log1p(x)", "the definition of log1p", _above_minus_half, (0.0, -0.9), _near_0
    ),
}
