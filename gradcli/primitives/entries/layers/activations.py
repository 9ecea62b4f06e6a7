"""Elementwise activation functions of neural networks that are rarely used."""

from __future__ import annotations

from typing import Any

from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.dtypes import is_complex
from gradcli.arrays.mathematical_constants import decimal
from gradcli.primitives.entries.arithmetic import absolute, add, divide, multiply, negative, sign, subtract
from gradcli.primitives.entries.comparisons import equal, greater, greater_equal, less_equal, where
from gradcli.primitives.entries.complex_parts import conjugate, real_part
from gradcli.primitives.entries.elementwise.trigonometric import tanh
from gradcli.primitives.entries.exponential import expm1, softplus
from gradcli.primitives.entries.scans import softmax
from gradcli.primitives.entries.shape import along_axis
from gradcli.primitives.entries.special_functions.special import elu
from gradcli.primitives.families import elementwise
from gradcli.primitives.jet_rules import Coefficients, from_derivative, jet_through_definition
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive

SUBJECT = "special"

_ANYWHERE = (0.7, [-1.0, 2.0])
# Constants of SELU to the digits that PyTorch uses: https://arxiv.org/abs/1706.02515
_selu_alpha, _selu_scale = decimal("1.6732632423543772848170429916717"), decimal("1.0507009873554804934193349852946")


def _softsign_rule(g: Any, _y: Any, x: Any) -> Any:
    """g/(1 + abs(x))**2, without overflow. For a complex x, this holds for the component of g along x; the component
    across it is divided by 1 + abs(x)."""
    size = absolute(x)
    below = 1.0 + size
    if not is_complex(x):
        return divide(divide(g, below), below)
    origin = equal(size, 0)
    direction = where(origin, 0.0, divide(x, where(origin, 1.0, size)))
    along = real_part(g * direction) * conjugate(direction)
    return divide(g - along + divide(along, below), below)


def _softsign_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    return (_of_definition if is_complex(x) else from_derivative)(primitive, y, x)


_of_definition = jet_through_definition(lambda x: divide(x, add(1.0, absolute(x))))

softsign = elementwise(
    "softsign", "x", "x/(1 + abs(x))",
    parity="odd",
    forward=lambda xp, x: xp.divide(x, xp.add(1.0, xp.abs(x))),
    numbers="complex",
    vjp=(_softsign_rule,),
    jet=_softsign_series,
    derivative="g/(1 + abs(x))**2",
    samples=_ANYWHERE,
)  # fmt: skip


def _held(x: Any, low: Any, high: Any) -> Any:
    """`x` clipped to [low, high], with the derivative 0 at the bounds themselves."""
    return where(less_equal(x, low), low, where(greater_equal(x, high), high, x))


hardtanh = Composite(
    "hardtanh", "x, min_val=-1.0, max_val=1.0", "x held between min_val and max_val",
    lambda x, min_val=-1.0, max_val=1.0: _held(x, min_val, max_val),
    node_name="HardtanhBackward0", gradient_name="HardtanhBackwardBackward0",
    derivative="g where min_val < x < max_val, else 0; the rest to the bound that holds",
    domain="smooth where x is on no bound",
    edges=("on a bound, the derivative by x is 0",),
    samples=(0.7, [-1.3, 0.5, 2.0], ([-1.3, 0.5, 2.0], -2.0, 0.4)),
)  # fmt: skip

relu6 = Composite(
    "relu6", "x", "x held between 0 and 6", lambda x: _held(x, 0.0, 6.0),
    node_name="HardtanhBackward0", gradient_name="HardtanhBackwardBackward0",
    derivative="g where 0 < x < 6, else 0",
    domain="smooth where x is neither 0 nor 6",
    edges=("relu6'(0) = relu6'(6) = 0",),
    samples=(0.7, [-1.0, 2.0, 7.0]),
)  # fmt: skip


def _hardsigmoid(x: Any) -> Any:
    return divide(_held(add(x, 3.0), 0.0, 6.0), 6.0)


hardsigmoid = Composite(
    "hardsigmoid", "x", "x/6 + 1/2 held between 0 and 1", _hardsigmoid,
    node_name="HardsigmoidBackward0",
    derivative="g/6 where -3 < x < 3, else 0",
    domain="smooth where abs(x) != 3",
    edges=("hardsigmoid'(-3) = hardsigmoid'(3) = 0",),
    samples=(0.7, [-1.0, 2.0, 5.0]),
)  # fmt: skip

hardswish = Composite(
    "hardswish", "x", "x*hardsigmoid(x)", lambda x: multiply(x, _hardsigmoid(x)),
    node_name="HardswishBackward0",
    derivative="g*(x/3 + 1/2) where -3 < x < 3, 0 below and g above",
    domain="smooth where abs(x) != 3",
    edges=("hardswish'(-3) = 0, hardswish'(3) = 1",),
    aliases=("hard_swish",),
    samples=(0.7, [-1.0, 2.0, 5.0]),
)  # fmt: skip


def _celu(x: Any, alpha: Any = 1.0) -> Any:
    right = greater(x, 0)
    return where(right, x, multiply(alpha, expm1(divide(where(right, 0.0, x), alpha))))


celu = Composite(
    "celu", "x, alpha=1.0", "x where it is positive, else alpha*(exp(x/alpha) - 1)", _celu,
    node_name="CeluBackward0",
    derivative="g where x > 0, else g*exp(x/alpha); by alpha 0 where x > 0, else g*(exp(x/alpha)*(1 - x/alpha) - 1)",
    domain="alpha != 0",
    samples=(*_ANYWHERE, ([-1.0, 2.0], 0.3)),
)  # fmt: skip

selu = Composite(
    "selu", "x", "1.0507*x where it is positive, else 1.0507*1.67326*(exp(x) - 1)",
    lambda x: multiply(_selu_scale(), elu(x, _selu_alpha())),
    node_name="EluBackward0",
    derivative="1.0507*g where x > 0, else 1.0507*1.67326*g*exp(x)",
    domain="smooth where x != 0",
    edges=("selu'(0) is that on its left",),
    samples=_ANYWHERE,
)  # fmt: skip

mish = Composite(
    "mish", "x", "x*tanh(softplus(x))", lambda x: multiply(x, tanh(softplus(x))),
    node_name="MishBackward0",
    derivative="g*(tanh(softplus(x)) + x*sigmoid(x)/cosh(softplus(x))**2)",
    samples=_ANYWHERE,
)  # fmt: skip

tanhshrink = elementwise(
    "tanhshrink", "x", "x - tanh(x), accurate near 0",
    time=4,
    numbers="analytic",
    parity="odd", forward=common_definitions.tanhshrink,
    vjp=(lambda g, _y, x: g * (tanh(x) * tanh(x)),),
    derivative="g*tanh(x)**2",
    samples=_ANYWHERE,
)  # fmt: skip

softshrink = Composite(
    "softshrink", "x, lambd=0.5", "x moved by lambd towards 0, 0 where it would cross it",
    lambda x, lambd=0.5: where(less_equal(absolute(x), lambd), 0.0, subtract(x, multiply(lambd, sign(x)))),
    node_name="SoftshrinkBackward0", gradient_name="SoftshrinkBackwardBackward0",
    derivative="g where abs(x) > lambd, else 0; by lambd -g*sign(x) there",
    domain="lambd >= 0; smooth where abs(x) != lambd",
    edges=("where abs(x) = lambd, the derivatives are 0",),
    samples=(*_ANYWHERE, ([-1.0, 2.0, 0.1], 0.3)),
)  # fmt: skip

hardshrink = Composite(
    "hardshrink", "x, lambd=0.5", "x where abs(x) > lambd, else 0",
    lambda x, lambd=0.5: where(less_equal(absolute(x), lambd), 0.0, x),
    node_name="HardshrinkBackward0", gradient_name="HardshrinkBackwardBackward0",
    derivative="g where abs(x) > lambd, else 0; 0 by lambd",
    domain="lambd >= 0; smooth where abs(x) != lambd",
    edges=("where abs(x) = lambd, the derivative is 0",),
    samples=(*_ANYWHERE, ([-1.0, 2.0, 0.1], 0.3)),
)  # fmt: skip

softmin = Composite(
    "softmin", "x, axis=-1", "softmax(-x) along an axis", lambda x, axis=-1: along_axis(negative(x), axis, softmax),
    subject="reductions",
    derivative="softmin(x)*(sum(g*softmin(x)) - g)",
    samples=([1.0, 2.5, -3.0], ([[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]], 0)),
)  # fmt: skip
