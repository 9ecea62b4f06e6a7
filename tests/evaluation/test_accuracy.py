"""Tests that derivatives which lost digits to rounding are reported, and no others."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import AccuracyWarning
from gradcli.calculus.accuracy import digits_left
from gradcli.calculus.higher_orders import derivatives_with_shadow
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax import parse
from tests import lost_digits, rounding_estimates

HALF = 2.0**-26
CASES = json.loads(lost_digits.DATA.read_text())


def judged(program: str, order: int, **leaves: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """The derivatives of a program, and the correct digits of those with a warning."""
    module = parse(program)
    value, found, deviations = derivatives_with_shadow(lambda given: evaluate(module, given).value, leaves, order)
    return dict(found), digits_left(found, deviations, value, leaves)


@pytest.mark.parametrize(("factor", "point"), [(8.0, 1e5), (1.0, 3e5), (1.0, 1e4)])
def test_digits_are_counted_whatever_the_unit_of_an_input(factor, point):
    """Beside first derivatives, second ones were 0 up to rounding, as if 1 were much at x = 3e5."""
    found, left = judged(f"sqrt(1 + {factor}*x**2)", 2, x=point)
    expected = factor * (1.0 + factor * point**2) ** -1.5
    off = abs(found["x,x"] / expected - 1.0)
    assert off < HALF or left["x,x"] <= 1.0 - math.log10(off)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['program']} at {case['x']}")
def test_no_digits_are_lost_without_a_word(case):
    found, left = judged(case["program"], lost_digits.ORDER, x=case["x"])
    expected = [abs(float(d)) for d in case["derivatives"]] + [0.0]
    for k, (key, derivative) in enumerate(found.items(), 1):
        error = abs((derivative or 0.0) - float(case["derivatives"][k]))
        # A derivative that is 0 is judged relative to its neighbours.
        scale = expected[k] or max(expected[k - 1] * k, expected[k + 1] / (k + 1))
        lost = error / scale if scale else math.inf if error else 0.0
        if k > 1 and lost > HALF:
            assert key in left, (k, derivative, case["derivatives"][k])
            if lost < 1:
                assert left[key] <= 2 - math.log10(lost)
        elif key in left and expected[k]:
            # About half of the digits are lost; the estimate is conservative.
            assert lost > 1e-13


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("program", "x"),
    [
        *(("exp(x)", x) for x in (-20.0, 0.0, 0.7, 30.0)),
        *(("sin(x)*exp(x)", x) for x in (-3.0, 0.3, 1.0)),
        *(("log(x**q)".replace("q", "3"), x) for x in (1e-9, 5.0, 1e9)),
        *((program, x) for program in ("sin(x)", "cos(x)") for x in (0.0, math.pi, 1e9)),
        *(("1/(1 + x**2)", x) for x in (0.0, 0.3, 1.0, 3.0)),
        *(("atan(x)", x) for x in (0.0, 0.5, 1.0)),
        *(("tanh(x)", x) for x in (0.0, 0.7, 3.0)),
        ("x**7 - 3*x**4 + x", 0.9),
        ("sqrt(1 + x**2)", 2.0),
        ("hypot(x, 3)", 1e-9),
        ("sum(sin(x*[1, 2, 3]))", 0.4),
        ("logsumexp([x, x**2, 1])", 0.4),
    ],
)
def test_what_keeps_its_digits_is_not_warned_of(program, x):
    assert not judged(program, 24, x=x)[1]


@pytest.mark.parametrize(
    ("program", "order", "leaves"),
    [
        ("x**2*y + sin(z)", 3, {"x": 1.3, "y": 0.7, "z": 0.4}),
        ("x**2*sin(y)*z", 6, {"x": 1.3, "y": 0.7, "z": 0.4}),
        ("hypot(x, y)", 2, {"x": 3.0, "y": 0.0}),
        ("sum(x**3*w)", 2, {"x": np.array([0.1, 0.2]), "w": np.array([2.0, 3.0])}),
        ("sum(exp(x)*y)", 3, {"x": np.array([0.1, 0.2]), "y": 0.3}),
    ],
)
def test_mixed_derivatives_that_are_0_but_for_rounding_are_not_warned_of(program, order, leaves):
    assert not judged(program, order, **leaves)[1]


@pytest.mark.parametrize(
    ("program", "order", "leaves", "key"),
    [
        ("f(t) = sinh(t); f(x*y)/(x*y)", 2, {"x": 1e-5, "y": 1e-2}, "x,y"),
        ("f(t) = cosh(t) - 1; 1e10*x**2 + f(y)/y**2", 2, {"x": 1.3, "y": 1e-5}, "y,y"),
        ("f(t) = sinh(t); sum(f(x)/x)", 2, {"x": np.array([1.0, 1e-7])}, "x,x"),
        ("f(t) = sinh(t); y*f(x)/x", 3, {"x": 1e-3, "y": 2.0}, "x,x,x"),
        # The pure derivatives by x are about 1e14.
        ("beta(x, y)", 6, {"x": 0.02, "y": 0.02}, "x,x,x,y,y,y"),
        ("inv([[x, 1], [1, x]])[0, 0]", 3, {"x": 1 + 1e-10}, "x,x,x"),
        # Within a few roundings the matrix is singular.
        ("cholesky([[x, 1], [1, x]])[1, 1]", 3, {"x": 1 + 2.0**-50}, "x,x,x"),
    ],
)
def test_derivatives_by_several_numbers_and_of_matrices_are_watched_too(program, order, leaves, key):
    assert key in judged(program, order, **leaves)[1]


def test_single_precision_has_half_as_many_digits_to_lose():
    x = np.float32(0.85)
    assert not judged("exp(x)", 12, x=x)[1]
    key = ",".join("x" * 6)
    assert key in judged("sinh(x)/x", 6, x=x)[1]
    assert key not in judged("sinh(x)/x", 6, x=0.85)[1]


@pytest.mark.parametrize(("kind", "near_0"), [(np.float16, 0.01), (np.longdouble, 1e-5)])
def test_numbers_of_other_precisions_are_judged_by_theirs(kind, near_0):
    """A longdouble has a mantissa of 64 bits on some machines, and that of a float on others."""
    found, left = judged("sin(x)*exp(x)", 3, x=kind(0.85))
    assert found["x,x,x"] == pytest.approx(2 * math.exp(0.85) * (math.cos(0.85) - math.sin(0.85)), rel=3e-2)
    assert not left
    assert "x,x" in judged("f(t) = cosh(t) - 1; f(x)/x**2", 2, x=kind(near_0))[1]
    if kind is np.longdouble:
        assert set(judged("f(t) = cosh(t) - 1; sum(f(x)/x**2)", 2, x=np.array([1.0, near_0], kind))[1]) == {"x,x"}


# --- where warnings are shown


def test_python_warns_each_time_also_from_a_recording():
    f = gradcli.compile("sinh(x)/x")
    for _ in range(3):
        with pytest.warns(AccuracyWarning, match=r"the derivative of order 20 by x has no right digit, 1\d others"):
            f.derivatives({"x": 0.85}, order=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f.derivatives({"x": 0.85}, order=5)
        f.derivatives({"x": 30.0}, order=20)


def test_the_command_warns_with_a_caret(run):
    outcome = run("eval", "y = 2*x; sinh(x)/x + y", "x=0.85", "--order", "12")
    assert outcome.status == 0
    lines = outcome.out.splitlines()
    assert [line.split() for line in lines if line.startswith("by")][1] == ["by", "derivative", "digits"]
    assert len(next(line for line in lines if line.startswith("x,x ")).split()) == 2
    assert int(lines[-1].split()[-1]) <= 4
    assert outcome.err.startswith("warning: 'divide' loses digits here: the derivative of order 12 by x has")
    assert outcome.err.splitlines()[2].index("^") == outcome.err.splitlines()[1].index("sinh")


def test_json_has_the_digits_that_are_left(run):
    outcome = run("eval", "sin(x)**2 + cos(x)**2", "x=0.7", "--order", "3", "--json")
    (warning,) = json.loads(outcome.out)["warnings"]
    assert warning["code"] == "inaccurate"
    assert warning["operation"] == "add"
    assert (warning["line"], warning["column"]) == (1, 1)
    assert warning["digits"] == {"x,x": 0}


def test_what_is_right_has_no_digits_beside_it(run):
    outcome = run("eval", "sin(x)*exp(x)", "x=1", "--order", "20")
    assert "digits" not in outcome.out
    assert outcome.err == ""


def test_a_derivative_written_by_hand_is_watched_too():
    program = "s(x) = sinh(x); f(x) = s(x)/x backward(g) = g*(cosh(x)/x - s(x)/x**2); f({})"
    assert not judged(program.format("x"), 2, x=0.85)[1]
    assert "x,x" in judged(program.format("x"), 2, x=1e-5)[1]


# --- derivatives inside programs


@pytest.mark.parametrize(
    ("program", "x", "operation", "digits"),
    [
        ("f(t) = sinh(t); diff(f(x)/x, x, 4)", "0.0035", "diff", "the derivative of order 4 has about 2 right digits"),
        (
            "f(t) = sinh(t); diff(diff(f(x)/x, x), x)",
            "1e-5",
            "diff",
            "the derivative of order 1 has about 3 right digits",
        ),
        (
            "f(t) = sinh(t); sum(hessian(sum(f(x)/x), x))",
            "[1, 1e-6]",
            "hessian",
            "the derivative of order 2 has one right digit",
        ),
        ("f(t) = sinh(t); diff(f(x)/x, x)", "1e-5", "diff", "the derivative by x has about"),
    ],
)
def test_derivatives_inside_a_program_and_their_gradients_are_watched(run, program, x, operation, digits):
    outcome = run("eval", program, f"x={x}", "--json")
    assert outcome.status == 0
    (warning,) = json.loads(outcome.out)["warnings"]
    assert (warning["code"], warning["operation"]) == ("inaccurate", operation)
    assert digits in warning["message"]


@pytest.mark.parametrize(
    ("program", "x"),
    [
        ("diff(sinh(x)/x, x, 3)", "0.85"),
        ("diff(sin(x)*x, x, 4)", "0.85"),
        ("diff(sin(x), x, 2) + sin(x)", "0.4"),
        ("diff(sin(x), x, 2)", "3.141592653589793"),
        ("diff(x*x, x, 4)", "3"),
        ("sum(hessian(sum(x**3), x))", "[1, 2]"),
    ],
)
def test_derivatives_inside_that_keep_their_digits_are_not_warned_of(run, program, x):
    outcome = run("eval", program, f"x={x}")
    assert (outcome.status, outcome.err) == (0, "")


# --- values and gradients

# The antiderivative of a rational function.
_PARTIAL_FRACTIONS = (
    "(-7/3)/(2+3*x)**7+(-77/3)/(2+3*x)**6+(-1133/5)/(2+3*x)**5+(-1870)/(2+3*x)**4+(-46475/3)/(2+3*x)**3"
    "+(-138875)/(2+3*x)**2+(-1615625)/(2+3*x)+(-378125)/(3+5*x)+9212500*log(2+3*x)-9212500*log(3+5*x)"
)


@pytest.mark.parametrize(
    ("program", "bindings", "lost"),
    [
        ("sqrt(x + 1) - sqrt(x)", "x=1e12", [("sqrt", {"value": 3}), ("sqrt", {"x": 4})]),
        ("sqrt(x + 1) - sqrt(x)", "x=1e30", [("sqrt", {"value": 0}), ("sqrt", {"x": 0})]),
        ("(a - b)/ln(a/b)", "a=10 b=10.0000001", [("divide", {"a": 0, "b": 0})]),
        ("mean(x**2) - mean(x)**2", "x=[100000000,100000001,100000003]", [("mean", {"value": 0}), ("mean", {"x": 6})]),
        (
            "s = 1.0; t = 1.0; for k in range(1, 90) { t = -t*x/k; s = s + t }",
            "x=20",
            [("divide", {"value": 0}), ("divide", {"x": 0})],
        ),
        ("1e9 + (exp(x) - exp(x - y))", "x=1 y=1e-13", [("add", {"x": 2})]),
        # A rounded intermediate and the rounded e enter both terms of the gradient.
        ("x*(1 + 1/x)**x - e*x", "x=1e8", [("multiply", {"value": 6}), ("multiply", {"x": 0})]),
        ("x*((x + 1)**2/x**2 - 1)", "x=1e9", [("add", {"value": 7}), ("add", {"x": 0})]),
        ("x*(sqrt(x**2 + 1) - x)", "x=1e7", [("sqrt", {"value": 2}), ("sqrt", {"x": 0})]),
        # The value is right, but its gradient has the wrong sign.
        (_PARTIAL_FRACTIONS, "x=0.506", [("multiply", {"x": 0})]),
        # A gradient that cancels in a sum, and one of a square of a rounded zero.
        ("sqrt(x**2 + 1) - x + 5", "x=1e9", [("sqrt", {"x": 0})]),
        # An error that overflows is an error, too.
        ("d = exp(x**2 + 3.18e-06) - exp(x**2); sin(d)", "x=23.4", [("add", {"value": 0}), ("add", {"x": 0})]),
        ("(sin(x) - x)**2", "x=1e-8", [("pow", {"value": 0}), ("pow", {"x": 0})]),
    ],
)
def test_a_value_or_gradient_that_lost_half_of_its_digits_is_warned_of(run, program, bindings, lost):
    warnings = run("eval", program, *bindings.split(), "--json").json["warnings"]
    assert [(w["operation"], w["digits"]) for w in warnings] == lost
    assert {w["code"] for w in warnings} == {"inaccurate"}


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("program", "bindings"),
    [
        ("x - x", "x=0.1"),
        ("2*x - x - x", "x=0.1"),
        ("x - y", "x=1.0000000001 y=1"),
        ("1 - cos(x)", "x=0"),
        ("exp(x) - 1 + sqrt(y) - 2", "x=0 y=4"),
        ("x**2 - 2", "x=1.4142135623730951"),
        ("(1 - x)**2 + 100*(y - x**2)**2", "x=1 y=1"),
        ("logit(x)", "x=0.5"),
        ("sum(x)", "x=[1,-1,0.5]"),
        ("sum(x) - 6", "x=[1,2,3]"),
        ("det(x)", "x=[[1,2],[2,4]]"),
        ("u = 1 + x; log(u)*x/(u - 1)", "x=1e-11"),
        ("diff(x**3, x)", "x=2"),
        ("sin(x)**2 + cos(x)**2", "x=0.7"),
        ("cosh(x)**2 - sinh(x)**2", "x=0.7"),
        ("0.3*x - 0.3*x", "x=0.7"),
        ("(x - 1)*(x - 3) - (x**2 - 4*x + 3)", "x=19.5"),
        ("(x - 1)**2 + (x - 2.3)**2", "x=1.65"),
    ],
)
def test_what_is_exact_or_as_good_as_its_inputs_is_not_warned_of(run, program, bindings):
    outcome = run("eval", program, *bindings.split())
    assert (outcome.status, outcome.err) == (0, "")


@pytest.mark.slow
def test_no_warning_claims_more_digits_than_are_proved():
    random, kinds = Random(0), Counter[str]()
    for _ in range(70):
        kinds.update(map(rounding_estimates.kind, rounding_estimates.estimates(rounding_estimates.cancelling(random))))
    assert kinds["exceeds"] == 0
    assert kinds["warned"] > 35
    assert kinds["missing"] <= 1
    assert kinds["groundless"] < 0.1 * kinds["warned"]


def test_programs_without_cancellation_are_not_warned_of():
    random = Random(0)
    for _ in range(50):
        estimates = [*rounding_estimates.estimates(rounding_estimates.plain(random))]
        assert all(estimate.warned is None for estimate in estimates)


def test_derivatives_of_i0_need_nothing_that_another_program_has_loaded():
    code = "import gradcli; print(gradcli.compile('i0(x)').derivatives({'x': 2.3}, 2)[2])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert float(done.stdout) == pytest.approx(1.91751863214175)


def test_tensors_of_whole_numbers_and_numbers_of_any_kind_are_looked_at(run):
    """The exponent 0, without a rounding error, beside numbers that lose digits."""
    outcome = run("eval", "sum((x**a - 1)/a) + 1e9 - 1e9", "x=[2,4,1]", "a=[0,1,1]", "--json")
    assert outcome.status == 0
    assert outcome.json["value"] == pytest.approx(3.6931471805599454, rel=1e-6)


def test_complex_numbers_whose_modulus_is_beyond_floats(run):
    outcome = run("eval", "x + x*1e-3", "x=1e308+1.7e308j", "--json")
    assert outcome.status == 0, outcome.err
    assert outcome.json["grad"]["x"] == {"re": 1.001, "im": 0.0}
