"""Tests values and first to third derivatives at the edge cases of the language, through programs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest

import gradcli

# The accuracy of these derivatives is tested in test_accuracy.
pytestmark = pytest.mark.filterwarnings("ignore::gradcli.AccuracyWarning")

INF, NAN = math.inf, math.nan
LN2 = math.log(2)


class Edge(NamedTuple):
    """A program at a point: its value under "", and derivatives keyed by leaves, as in `derivatives`."""

    program: str
    at: Mapping[str, Any]
    expected: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.program} at {', '.join(f'{k}={v}' for k, v in self.at.items())}"


def of_x(program: str, x: Any, *orders: Any) -> Edge:
    """A program of x alone, with its value and derivatives."""
    return Edge(program, {"x": x}, {",".join("x" * n): expected for n, expected in enumerate(orders)})


def flat(*names: str) -> dict[str, float]:
    """Zero for each of the derivatives named."""
    return dict.fromkeys(names, 0.0)


ZEROS = [0.0, 0.0]
NO_HESSIAN = [ZEROS, ZEROS]
NO_THIRD = [NO_HESSIAN, NO_HESSIAN]
NAN_HESSIAN = [[NAN, NAN]] * 2
NAN_THIRD = [NAN_HESSIAN] * 2
# 1 where all three indices differ.
DIFFERENT = [[[float({i, j, k} == {0, 1, 2}) for k in range(3)] for j in range(3)] for i in range(3)]

POWERS = [
    # By x, with an integer exponent: exact everywhere.
    of_x("x**0", 0.0, 1.0, 0.0, 0.0, 0.0),
    of_x("x**1", 0.0, 0.0, 1.0, 0.0, 0.0),
    of_x("x**2", 0.0, 0.0, 0.0, 2.0, 0.0),
    of_x("x**3", 0.0, 0.0, 0.0, 0.0, 6.0),
    of_x("x**-1", 0.0, INF, -INF, INF, -INF),
    of_x("x**0", -2.0, 1.0, 0.0, 0.0, 0.0),
    of_x("x**3", -2.0, -8.0, 12.0, -12.0, 6.0),
    of_x("x**-2", -2.0, 0.25, 0.25, 0.375, 0.75),
    # With a fractional exponent: the right-hand limit at 0, and nan for negative numbers.
    of_x("x**0.5", 0.0, 0.0, INF, -INF, INF),
    of_x("x**1.5", 0.0, 0.0, 0.0, INF, -INF),
    of_x("x**2.5", 0.0, 0.0, 0.0, 0.0, INF),
    of_x("x**-0.5", 0.0, INF, -INF, INF, -INF),
    of_x("x**0.5", -2.0, NAN, NAN, NAN, NAN),
    # By both operands.
    Edge("x**q", {"x": 0.0, "q": 0.0}, {"": 1.0, **flat("x", "q", "x,x", "x,q", "q,q", "x,x,q", "x,q,q", "q,q,q")}),
    Edge("x**q", {"x": 0.0, "q": 1.0}, {"x": 1.0, **flat("", "q", "x,x", "x,q", "q,q", "x,x,x", "x,q,q", "q,q,q")}),
    Edge("x**q", {"x": 0.0, "q": 2.0}, {"x,x": 2.0, **flat("", "x", "q", "x,q", "q,q", "x,x,x", "x,x,q", "q,q,q")}),
    Edge("x**q", {"x": 0.0, "q": 0.5}, {"": 0.0, "x": INF, "q": 0.0, "x,x": -INF, "x,q": -INF, "q,q": 0.0}),
    Edge("x**q", {"x": 0.0, "q": 1.5}, {"x": 0.0, "x,x": INF, "x,q": 0.0, "x,x,q": -INF, "q,q,q": 0.0}),
    Edge("x**q", {"x": 0.0, "q": -1.0}, {"": INF, "x": -INF, "q": -INF, "x,x": INF, "x,q": INF, "q,q": INF}),
    Edge("x**q", {"x": -2.0, "q": 3.0}, {"x": 12.0, "x,x": -12.0, "x,x,x": 6.0, "q": NAN, "q,q": NAN}),
    Edge("x**q", {"x": -2.0, "q": 0.5}, {"": NAN, "x": NAN, "q": NAN, "x,x": NAN}),
    Edge("x**q", {"q": 0.5, "x": 0.0}, flat("q", "q,q", "q,x", "q,q,x")),
    Edge("0**q", {"q": 0.0}, {"": 1.0, **flat("q", "q,q", "q,q,q")}),
    Edge("0**q", {"q": 2.0}, flat("", "q", "q,q", "q,q,q")),
    Edge("(-2)**q", {"q": 2.0}, {"": 4.0, "q": NAN, "q,q": NAN}),
    Edge("sum(x**q)", {"x": [0.0, 2.0], "q": 2.0}, {"x": [0.0, 4.0], "q": 4 * LN2, "q,q": 4 * LN2**2}),
]  # fmt: skip

KINKS = [
    of_x("abs(x)", 0.0, 0.0, 0.0, NAN, NAN),
    of_x("abs(x)**3", 0.0, 0.0, 0.0, 0.0, NAN),
    of_x("relu(x)", 0.0, 0.0, 0.0, NAN, NAN),
    of_x("elu(x)", 0.0, 0.0, 1.0, NAN, NAN),
    of_x("clip(x, 0, 1)**3", 0.0, 0.0, 0.0, 0.0, NAN),
    of_x("clip(x, 0, 1)**3", 1.0, 1.0, 3.0, NAN, NAN),
    of_x("clip(x, 0, 1)**3", 2.0, 1.0, 0.0, 0.0, 0.0),
    Edge("clip(x, a, b)**2", {"x": 1.0, "a": 0.0, "b": 1.0}, {"x": 2.0, "x,x": NAN, "b,b": NAN, "x,b": NAN, **flat("a", "b", "a,a")}),
    Edge(
        "maximum(x, y)**3", {"x": 1.0, "y": 1.0},
        {"x": 1.5, "y": 1.5, **dict.fromkeys(("x,x", "x,y", "y,y", "x,x,x", "x,y,y"), NAN)},
    ),
    Edge("minimum(x, y)**2", {"x": 1.0, "y": 1.0}, {"x": 1.0, "y": 1.0, **dict.fromkeys(("x,x", "x,y", "x,x,y"), NAN)}),
    of_x("max(x)**2", [1.0, 1.0], 1.0, [1.0, 1.0], NAN_HESSIAN, NAN_THIRD),
    of_x("min(x)**2", [1.0, 1.0, 2.0], 1.0, [1.0, 1.0, 0.0], [[NAN] * 3, [NAN] * 3, [NAN, NAN, 0.0]]),
    of_x("median(x)**2", [1.0, 1.0], 1.0, [1.0, 1.0], [[0.5, 0.5], [0.5, 0.5]], NO_THIRD),
    of_x("median(x)**2", [3.0, 2.0, 1.0, 2.0], 4.0, [0.0, 2.0, 0.0, 2.0]),
    of_x("sum(sort(x)*[1, 2])", [1.0, 1.0], 3.0, [1.0, 2.0], NAN_HESSIAN, NAN_THIRD),
    *(of_x(f"norm(x, {p})", ZEROS, 0.0, ZEROS, NAN_HESSIAN, NAN_THIRD) for p in ("1", "2", "3", "4", "0.5", "inf")),
    of_x(
        "norm(x)", [0.0, 2.0],
        2.0, [0.0, 1.0], [[0.5, 0.0], ZEROS], [[[0.0, -0.25], [-0.25, 0.0]], [[-0.25, 0.0], ZEROS]],
    ),
    of_x("std(x)", [2.0, 2.0], 0.0, ZEROS, NAN_HESSIAN, NAN_THIRD),
    of_x("norm(x)*std(x)", 2.0, 0.0, 0.0, 0.0, 0.0),
    of_x("sqrt(x)", 0.0, 0.0, INF, -INF, INF),
    of_x("cbrt(x)", 0.0, 0.0, INF, -INF, INF),
    of_x("cbrt(x)", -0.0, 0.0, INF, INF, INF),
    of_x("log(x)", 0.0, -INF, INF, -INF, INF),
    of_x("log1p(x)", -1.0, -INF, INF, -INF, INF),
    of_x("asin(x)", 1.0, math.pi / 2, INF, INF, INF),
    of_x("asin(x)", -1.0, -math.pi / 2, INF, -INF, INF),
    of_x("acos(x)", 1.0, 0.0, -INF, -INF, -INF),
    of_x("acos(x)", -1.0, math.pi, -INF, INF, -INF),
    of_x("acosh(x)", 1.0, 0.0, INF, -INF, INF),
    of_x("atanh(x)", 1.0, INF, INF, INF, INF),
    of_x("atanh(x)", -1.0, -INF, INF, -INF, INF),
    Edge("atan2(y, x)", {"y": 0.0, "x": 0.0}, {**flat("", "y", "x"), **dict.fromkeys(("y,y", "y,x", "y,y,y", "y,y,x"), NAN)}),
    Edge("atan2(y, x)", {"y": 0.0, "x": -1.0}, {"": math.pi, "y": -1.0, "y,x": -1.0, "y,y,y": 2.0, **flat("x", "y,y")}),
    Edge("hypot(x, y)", {"x": 0.0, "y": 0.0}, {"": 0.0, "x": NAN, "y": NAN}),
    Edge("hypot(x, y)", {"x": 0.0, "y": 1.0}, {"x": 0.0, "y": 1.0, "x,x": 1.0, "x,y": 0.0, "y,y": 0.0, "x,x,y": -1.0}),
    Edge("fmod(x, y)", {"x": 1.0, "y": 1e-300}, {"x": 1.0, "y": -1e300, **flat("x,x", "x,y", "y,y", "y,y,y")}),
    Edge("fmod(x, y)", {"x": 3.0, "y": 1.5}, {"": 0.0, "x": 1.0, "y": -2.0, **dict.fromkeys(("x,x", "x,y", "y,y", "x,y,y"), NAN)}),
    Edge("heaviside(x, y)", {"x": 0.0, "y": 0.7}, {"": 0.7, "y": 1.0, "x,x": NAN, "x,y": NAN, **flat("x", "y,y", "y,y,y")}),
    Edge("heaviside(x, y)", {"x": -1.0, "y": 0.7}, flat("", "x", "y", "x,x", "x,y", "y,y")),
    Edge("copysign(x, y)", {"x": 0.0, "y": -1.0}, {"x,x": NAN, "x,y": NAN, "x,x,x": NAN, **flat("x", "y", "y,y")}),
]  # fmt: skip

UNTAKEN = [
    of_x("where(x > 0, log(x), x**3)", 0.0, 0.0, 0.0, 0.0, 6.0),
    of_x("where(x > 0, log(x), x**3)", -1.0, -1.0, 3.0, -6.0, 6.0),
    of_x("where(x > 1, 1/(x - 1), x**3)", 1.0, 1.0, 3.0, 6.0, 6.0),
    of_x("where(x > 0, x**x, exp(x))", -1.0, *[math.exp(-1)] * 4),
    of_x("where(x < 1, x**2, exp(exp(x)))", -800.0, 640000.0, -1600.0, 2.0, 0.0),
    of_x("where(x < 1, exp(-x), exp(exp(x)))", 800.0, INF, INF, INF, INF),
    of_x("x**3 if x < 1 else log(x - 1)", 0.0, 0.0, 0.0, 0.0, 6.0),
    of_x("clip(1/x, 0, 1)*x**3", 0.0, 0.0, 0.0, 0.0, 6.0),
    of_x(
        "sum(where(x > 0, log(x), 0))", [0.0, 1.0],
        0.0, [0.0, 1.0], [ZEROS, [0.0, -1.0]], [NO_HESSIAN, [ZEROS, [0.0, 2.0]]],
    ),
    Edge("where(True, x, y/0)", {"x": 2.0, "y": 0.0}, {"": 2.0, "x": 1.0, **flat("y", "x,x", "y,y", "x,y", "y,y,y")}),
]  # fmt: skip

LOGARITHMS = [
    Edge("xlogy(x, y)", {"x": 0.0, "y": 2.0}, {"x": LN2, "x,y": 0.5, "x,y,y": -0.25, **flat("", "y", "y,y", "x,x")}),
    Edge("xlogy(x, y)", {"x": 0.0, "y": 0.0}, flat("", "x", "y", "x,x", "x,y", "x,x,x")),
    Edge("xlogy(x, y)", {"x": 0.0, "y": -1.0}, flat("", "x", "y", "x,x", "x,y", "y,y", "x,y,y", "y,y,y")),
    Edge("xlogy(x, y)", {"x": 2.0, "y": 0.0}, {"": -INF, "x": -INF, "y": INF, "x,y": INF, "y,y": -INF, "y,y,y": INF}),
    Edge("xlog1py(x, y)", {"x": 0.0, "y": -1.0}, flat("", "x", "y", "x,x", "x,y", "x,x,x")),
    Edge("xlog1py(x, y)", {"x": 0.0, "y": 0.0}, {"x,y": 1.0, "x,y,y": -1.0, **flat("", "x", "y", "x,x", "y,y")}),
    of_x("logsumexp(x)", [750.0, -750.0], 750.0, [1.0, 0.0], NO_HESSIAN, NO_THIRD),
    of_x("logsumexp(x)", [1e308, -1e308], 1e308, [1.0, 0.0], NO_HESSIAN, NO_THIRD),
    of_x("logsumexp(x)", [-INF, 3.0], 3.0, [0.0, 1.0], NO_HESSIAN, NO_THIRD),
    of_x(
        "logsumexp(x)", [-INF, 0.0, 0.0],
        LN2, [0.0, 0.5, 0.5], [[0.0] * 3, [0.0, 0.25, -0.25], [0.0, -0.25, 0.25]],
    ),
    of_x("logsumexp(x)", [INF, 3.0], INF, [1.0, 0.0], NO_HESSIAN, NO_THIRD),
    of_x("logsumexp(x)", [INF, INF], INF, [0.5, 0.5], NO_HESSIAN, NO_THIRD),
    of_x("logsumexp(x)", [-INF, -INF], -INF, [0.5, 0.5], NO_HESSIAN, NO_THIRD),
    of_x("logsumexp(x)", [-INF], -INF, [1.0], [[0.0]], [[[0.0]]]),
    of_x("log(sum(exp(x)))", [1e308, 0.0], 1e308, [1.0, 0.0], NO_HESSIAN, NO_THIRD),
    of_x("sum(logsumexp(x, axis=1))", [[INF, 0.0], [0.0, 0.0]], INF, [[1.0, 0.0], [0.5, 0.5]]),
    of_x("log_softmax(x)[1]", [-INF, 0.0, 0.0], -LN2, [0.0, 0.5, -0.5]),
    of_x("log_softmax(x)[1]", [1e17, 1e17], -LN2, [-0.5, 0.5]),
    of_x("softmax(x)[0]", [1e308, -1e308], 1.0, ZEROS, NO_HESSIAN, NO_THIRD),
    Edge("logaddexp(x, y)", {"x": INF, "y": 0.0}, {"": INF, "x": 1.0, **flat("y", "x,x", "x,y", "y,y", "x,x,x")}),
    Edge("logaddexp(x, y)", {"x": INF, "y": INF}, {"": INF, "x": 0.5, "y": 0.5, **flat("x,x", "x,y", "y,y", "x,x,x")}),
    Edge("logaddexp(x, y)", {"x": 1e308, "y": 1e308}, {"": 1e308, "x": 0.5, "x,x": 0.25, "x,y": -0.25, "x,x,x": 0.0}),
    Edge("sum(logaddexp(x, y))", {"x": [INF, 1.0], "y": [INF, 1.0]}, {"x": [0.5, 0.5], "x,x": [ZEROS, [0.0, 0.25]]}),
]  # fmt: skip

SHAPES = [
    *(
        of_x(f"{function}(x)", [], value, [], np.zeros((0, 0)), np.zeros((0, 0, 0)))
        for function, value in {"sum": 0, "prod": 1, "norm": 0, "logsumexp": -INF, "mean": NAN}.items()
    ),
    of_x("sum(x**3, axis=1) @ ones(2)", np.zeros((2, 0)), 0.0, np.zeros((2, 0)), np.zeros((2, 0, 2, 0))),
    of_x("sum(concat([x, x]))", [], 0.0, [], np.zeros((0, 0))),
    of_x("sum(x @ x.T)", np.zeros((2, 0)), 0.0, np.zeros((2, 0)), np.zeros((2, 0, 2, 0))),
    of_x("prod(x)", [0.0, 0.0, 3.0], 0.0, [0.0] * 3, [[0.0, 3.0, 0.0], [3.0, 0.0, 0.0], [0.0] * 3], DIFFERENT),
    of_x("cumprod(x)[1]", ZEROS, 0.0, ZEROS, [[0.0, 1.0], [1.0, 0.0]], NO_THIRD),
    of_x(
        "sum(x[[0, 0, 1]]**3)", [1.0, 2.0],
        10.0, [6.0, 12.0], [[12.0, 0.0], [0.0, 12.0]], [[[12.0, 0.0], ZEROS], [ZEROS, [0.0, 6.0]]],
    ),
    of_x(
        "prod(x[[0, 0, 1]])", [0.0, 2.0],
        0.0, ZEROS, [[4.0, 0.0], ZEROS], [[[0.0, 2.0], [2.0, 0.0]], [[2.0, 0.0], ZEROS]],
    ),
    of_x("sum(take(x, [-1, 1])**2)", [1.0, 2.0], 8.0, [0.0, 8.0], [[0.0, 0.0], [0.0, 4.0]], NO_THIRD),
    of_x("sum(x[x > 5]**2)", [1.0, 2.0], 0.0, ZEROS, NO_HESSIAN, NO_THIRD),
    of_x("einsum('ii->', x)**2", [[1.0, 5.0], [5.0, 1.0]], 4.0, [[4.0, 0.0], [0.0, 4.0]]),
    of_x("sum(x)**3", np.asarray(2.0), 8.0, 12.0, 12.0, 6.0),
    of_x("max(x)*min(x)*median(x)", 2.0, 8.0, 12.0, 12.0, 6.0),
    of_x("softmax(reshape(x, 1))[0]", 2.0, 1.0, 0.0, 0.0, 0.0),
]  # fmt: skip

EDGES = [*POWERS, *KINKS, *UNTAKEN, *LOGARITHMS, *SHAPES]
every_edge = pytest.mark.parametrize("edge", EDGES, ids=str)


def same(found: Any, expected: Any) -> None:
    found = 0.0 if found is None else np.asarray(found)
    np.testing.assert_allclose(found, np.broadcast_to(expected, np.shape(found)), rtol=1e-13, atol=1e-14)


@every_edge
def test_the_value_and_the_derivatives(edge):
    program = gradcli.compile(edge.program)
    order = max(len(key.split(",")) for key in edge.expected)
    found = program.derivatives(edge.at, order)
    if isinstance(found, list):
        (name,) = edge.at
        found = {",".join([name] * n): d for n, d in enumerate(found)}
    found[""] = program(**edge.at)
    for key, expected in edge.expected.items():
        same(found[key], expected)


SCALAR = [edge for edge in EDGES if "" in edge.expected and all(np.ndim(v) == 0 for v in edge.at.values())]


@pytest.mark.parametrize("edge", SCALAR, ids=str)
def test_diff_inside_a_program(edge):
    """The same derivatives by nested `diff`; at a kink, derivatives of derivatives may be nan."""
    *statements, value = edge.program.split(";")
    for key, expected in edge.expected.items():
        expression = value
        for name in key.split(",") if key else ():
            expression = f"diff({expression}, {name})"
        found = gradcli.compile("; ".join([*statements, expression]))(**edge.at)
        if not (edge in KINKS and "," in key and np.isnan([found, expected]).any()):
            same(found, expected)


# --- comparison with series of 50 digits

_SERIES = {
    "sinc": mpmath.sincpi,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "logsigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "asin": mpmath.asin,
    "atanh": mpmath.atanh,
    "expm1": mpmath.expm1,
    "log1p": mpmath.log1p,
    "asinh": mpmath.asinh,
}
_SMALL = (0.0, 1e-9, -1e-9, 1e-5, -1e-5, 1e-3, 0.1, -0.1, 0.5)
_LARGE = (50.0, -50.0, 750.0, -750.0, 1e308, -1e308)
_NEAR = {
    "sinc": (0.75, 0.999, -0.9999999, 1.0, 1.5, 2.0, 100.0, 12345.678),
    "asin": (0.9999999, -0.999),
    "atanh": (0.9999999, -0.999),
}


def exact(name: str, x: float, order: int) -> list[float]:
    """Value and derivatives, by the coefficients of the series around x."""
    # Differences need far more digits than their result; 1 + exp(-750) needs 330 of them.
    with mpmath.workdps(1200 if abs(x) > 100 else 200):
        coefficients = mpmath.taylor(_SERIES[name], mpmath.mpf(x), order)
        return [float(c * mpmath.factorial(n)) for n, c in enumerate(coefficients)]


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", _SERIES)
def test_near_zero_and_singular_points(name):
    program = gradcli.compile(f"{name}(x)")
    for x in (*_SMALL, *_NEAR.get(name, ())):
        expected = exact(name, x, 4)
        # Derivatives that are tiny relative to the function are compared absolutely.
        np.testing.assert_allclose(program.derivatives({"x": x}, 4), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", ["sigmoid", "logsigmoid", "softplus", "silu"])
def test_far_out_nothing_overflows(name):
    program = gradcli.compile(f"{name}(x)")
    for x in _LARGE:
        expected = limits(name, x) if abs(x) > 1000 else exact(name, x, 3)
        np.testing.assert_allclose(program.derivatives({"x": x}, 3), expected, rtol=1e-12, atol=1e-300)


def limits(name: str, x: float) -> list[float]:
    """Value and derivatives where exp(-abs(x)) is 0."""
    if name == "sigmoid":
        return [float(x > 0), 0.0, 0.0, 0.0]
    kept = x < 0 if name == "logsigmoid" else x > 0
    return [x * kept, float(kept), 0.0, 0.0]
