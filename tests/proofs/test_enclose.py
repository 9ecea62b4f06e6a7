"""Tests enclosures over intervals: `gradcli eval --enclose`."""

from __future__ import annotations

import itertools
import json
import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.errors import BindingError, EvaluationError
from gradcli.proofs import enclosures

# Formulas like those of the Feynman lectures, with boxes for their variables.
FORMULAS = {
    "m0/sqrt(1 - v**2/c**2)": {"m0": (1, 2), "v": (0.1, 0.8), "c": (1, 1.1)},
    "q1*q2/(4*pi*eps*r**2)": {"q1": (1, 2), "q2": (-1, 2), "eps": (0.5, 1), "r": (1, 1.5)},
    "w**3/(exp(w/t) - 1)": {"w": (1, 3), "t": (1, 2)},
    "2*pi*sqrt(l/g)": {"l": (0.9, 1.1), "g": (9.7, 9.9)},
    "1/(1/d1 + n/d2)": {"d1": (1, 2), "d2": (2, 3), "n": (1, 1.5)},
    "exp(-(x/s)**2/2)/(sqrt(2*pi)*s)": {"x": (-1, 2), "s": (1, 2)},
    "G*m*(1/r2 - 1/r1)": {"G": (1, 1), "m": (1, 2), "r1": (1, 2), "r2": (1, 2)},
    "k*x**2/2": {"k": (1, 3), "x": (-1, 2)},
    "(u + v)/(1 + u*v/c**2)": {"u": (0.1, 0.7), "v": (-0.5, 0.5), "c": (1, 1)},
    "sqrt(a**2 + b**2 - 2*a*b*cos(t))": {"a": (1, 2), "b": (3, 4), "t": (0, 3)},
    "asin(n*sin(t))": {"n": (0.5, 0.8), "t": (0, 1.5)},
    "sin(n*t/2)**2/sin(t/2)**2": {"n": (3, 3), "t": (0.5, 2)},
    "n*tanh(m*B/(k*T))": {"n": (1, 2), "m": (1, 1), "B": (-1, 1), "k": (1, 1), "T": (0.5, 1)},
    "1/(g - 1)*p*V": {"g": (1.3, 1.7), "p": (1, 2), "V": (1, 2)},
    "E*d**2*(1 + cos(a))/abs(q)": {"E": (1, 2), "d": (1, 1), "a": (-1, 4), "q": (1, 2)},
    "max(x, y)*exp(-abs(x - y))": {"x": (-1, 1), "y": (-0.5, 1)},
    "where(x > 0.3, x**2, -x)": {"x": (-1, 1)},
    "x - floor(x)": {"x": (0.2, 2.7)},
    "atan2(y, x)": {"x": (-1, 1), "y": (-1, 2)},
    "sin(x*y)/(x*y)": {"x": (-1, 1), "y": (-0.5, 1)},
    "(exp(a*x) - 1)/x + y": {"a": (1, 2), "x": (-1, 1), "y": (0, 1)},
    "where(x == 0, 1, sin(x)/x)": {"x": (-1, 1)},
    "1/x - 1/sin(x)": {"x": (-1, 1.5)},
}


def bounds(pair: list[str]) -> tuple[Any, Any]:
    return tuple(float(t) if "inf" in t else Fraction(t) for t in pair)


def holds(pair: list[str], number: float) -> bool:
    low, high = bounds(pair)
    allowance = Fraction(1e-12) * (1 + abs(Fraction(number)))
    return low - allowance <= number <= high + allowance


def outside(found: dict[str, Any], formula: str, box: dict[str, Any], points: int = 40) -> list[Any]:
    """The random points at which a value or derivative is outside its enclosure."""
    chance = random.Random(5)
    program = gradcli.compile(formula)
    columns = {
        name: [chance.choice((low, high, chance.uniform(low, high), chance.uniform(low, high))) for _ in range(points)]
        for name, (low, high) in box.items()
    }
    values, grad = program.value_and_grad({n: np.array(c) for n, c in columns.items()}, rows=True)
    slopes = {n: np.zeros(points) if g is None else g for n, g in grad.items()}
    wrong = []
    for k, point in enumerate(zip(*columns.values())):
        if not holds(found["value"], float(values[k])):
            wrong.append((point, values[k]))
        wrong += [(point, n) for n, g in slopes.items() if not holds(found["grad"][n], float(g[k]))]
    return wrong


def enclosed(run: Any, formula: str, box: dict[str, Any], *options: str) -> dict[str, Any]:
    return run(
        "eval", formula, *(f"{n}={low!r}..{high!r}" for n, (low, high) in box.items()), "--enclose", "--json", *options
    ).json


@pytest.mark.cases(2)
@pytest.mark.parametrize("formula", FORMULAS)
def test_no_point_is_outside(run, monkeypatch, formula):
    # The enclosures hold with any amount of work.
    monkeypatch.setattr(enclosures, "_MOST_READINGS", 120)
    box = FORMULAS[formula]
    found = enclosed(run, formula, box)
    assert outside(found, formula, box) == []
    # The reported monotonicity is correct.
    program, chance = gradcli.compile(formula), random.Random(7)
    for name, word in found["monotonic"].items():
        for _ in range(20 if word else 0):
            at = {n: chance.uniform(*ends) for n, ends in box.items()}
            values = np.array(sorted(chance.uniform(*box[name]) for _ in range(5)))
            line = program(**{**at, name: values}).tolist()
            rising, falling = (all(a * s <= b * s + 1e-12 for a, b in itertools.pairwise(line)) for s in (1, -1))
            assert {"increasing": rising, "not decreasing": rising, "decreasing": falling}.get(word, falling)


def test_a_wrong_ball_is_caught(run, monkeypatch):
    from gradcli.arrays import backends
    from gradcli.arrays.flint.balls import Balls

    namespace = backends.namespace("flint")
    right = namespace.tanh

    def narrow(x: Any) -> Any:
        number = right(x).numbers
        return Balls(number.mid() + (number - number.mid()) / 2 if hasattr(number, "mid") else number)

    monkeypatch.setattr(namespace, "tanh", narrow)
    box = {"x": (-1.0, 2.0)}
    assert outside(enclosed(run, "tanh(x)*cos(x)", box), "tanh(x)*cos(x)", box)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("formula", "interval", "value", "word", "curvature"),
    [
        ("x*(1 - x)", "0..1", (0, 0.25), None, "concave"),
        ("x**2", "-1..2", (0, 4), None, "convex"),
        ("x**2", "0..2", (0, 4), "not decreasing", "convex"),
        ("sin(x)", "0..4", (math.sin(4), 1), None, None),
        ("x*exp(-x)", "0..3", (0, math.exp(-1)), None, None),
        ("x*exp(-x)", "2.5..3", (3 * math.exp(-3), 2.5 * math.exp(-2.5)), "decreasing", "convex"),
        ("sqrt(x)", "0..1", (0, 1), None, None),
        ("x**3 - 3*x", "-2..2", (-2, 2), None, None),
        ("log(x)", "1±0.5", (math.log(0.5), math.log(1.5)), "increasing", "concave"),
        ("3*x + 1", "1+-0.5", (2.5, 5.5), "increasing", "linear"),
        ("2 + 0*x", "1..2", (2, 2), "constant", "linear"),
        ("x - floor(x)", "0.5..1.5", (0, 1), None, None),
        ("abs(x)", "-1..1", (0, 1), None, None),
        ("abs(x)", "0.1..1", (0.1, 1), "increasing", "linear"),
        ("sign(x)", "-1..1", (-1, 1), None, None),
        ("where(x > 0, x - 1, x)", "-1..1", (-1, 0), None, None),
        ("detach(x)*x", "1..2", (1, 4), None, None),
        ("f(t) = t**2 backward(g) = g; f(x)", "-1..1", (0, 1), None, None),
        ("sin(x)", "0..7", (-1, 1), None, None),
        ("sqrt(x)", "1±0", (1, 1), None, None),
        ("sqrt(1 - x**2)", "0..1", (0, 1), None, None),
        ("sqrt(0.01 - x**2)", "-0.1..0.1", (0, 0.1), None, None),
        ("u = 1 - x*x; v = u; sqrt(v)", "0..1", (0, 1), None, None),
        ("sqrt(x - x**2)", "0..1", (0, 0.5), None, None),
        ("asin(x)", "0..1", (0, math.pi / 2), None, None),
        ("asin(x/3)", "0..3", (0, math.pi / 2), None, None),
        ("acos(x)", "-1..1", (0, math.pi), None, None),
        ("acosh(x)", "1..2", (0, math.acosh(2)), None, None),
        ("x**2.5", "0..1", (0, 1), None, None),
        ("x**0.3", "0..2", (0, 2**0.3), None, None),
        ("sin(x)/x", "-1..1", (math.sin(1), 1), None, "concave"),
        ("expm1(x)/x", "-1..1", (1 - math.exp(-1), math.e - 1), "increasing", "convex"),
        ("log1p(x)/x", "-0.5..1", (math.log(2), 2 * math.log(2)), "decreasing", "convex"),
        ("x**2/x", "-1..1", (-1, 1), "increasing", "linear"),
        ("(x**3 - 8)/(x - 2)", "0..4", (4, 28), "increasing", "convex"),
        ("n = sin(x); d = x; n/d", "-1..1", (math.sin(1), 1), None, "concave"),
        ("1/(1 + 1/x)", "0..1", (0, 0.5), "increasing", None),
        ("sin(x)/x", "0..1e-30", (1, 1), "not increasing", "concave"),
        ("sin(x)/x", "0±0", (1, 1), None, None),
        ("x*log(x)", "0..1", (-math.exp(-1), 0), None, None),
        ("-x*log(x) - (1 - x)*log(1 - x)", "0..1", (0, math.log(2)), None, None),
        ("-2*x**2*log(x)", "0..1", (0, math.exp(-1)), None, None),
        ("sqrt(1 - x*log(x))", "0..1", (1, math.sqrt(1 + math.exp(-1))), None, None),
    ],
)
def test_hulls(run, formula, interval, value, word, curvature):
    found = run("eval", formula, f"x={interval}", "--enclose", "--json").json
    low, high = map(float, found["value"])
    assert low == pytest.approx(value[0], abs=2e-8)
    assert high == pytest.approx(value[1], abs=2e-8)
    assert found["monotonic"].get("x") == word
    assert found["curvature"] == curvature


def test_a_constant_of_0_beside_a_removable_singularity(run):
    for program in ("(x*y + x)/x - y", "y - (y - x)/x"):
        found = run("eval", program, "x=-1..1", "y=0", "--enclose", "--no-grad", "--json").json
        assert [float(bound) for bound in found["value"]] == pytest.approx([1, 1], abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "box", "low", "high"),
    [
        ("for i in range(20) { x = 3.7*x*(1 - x) }; x", (0.3, 0.31), 0.2566874, 0.9250001),
        ("for i in range(20) { x *= 3.7*(1 - x) }; x", (0.3, 0.31), 0.2566874, 0.9250001),
        ("f(t) = 3.7*t*(1 - t)\nfor i in range(20) { x = f(x) }; x", (0.3, 0.31), 0.2566874, 0.9250001),
        ("y = x; for i in range(8) { y = (y + x/y)/2 }; y", (1.0, 2.0), 0.9999999, 1.4142137),
        ("y = 0.1; for i in range(10) { t = 1 - 1.4*x*x + y; y = 0.3*x; x = t }; x", (0.0, 0.1), -1.3, 1.3),
        # A round with several operations at one source position.
        ("for i in range(4) { x = sin(x)/x }; x", (-1.0, 1.0), 0.86, 0.89),
    ],
)
def test_iterated_maps(run, program, box, low, high):
    found = enclosed(run, program, {"x": box}, "--no-grad")
    assert low <= float(found["value"][0]) <= float(found["value"][1]) <= high
    numbers = gradcli.compile(program)(x=np.linspace(*box, 201)[1:-1])
    assert all(holds(found["value"], float(number)) for number in numbers)


class TestCommand:
    def test_a_table(self, run):
        out = run("eval", "x*y", "x=1..2", "y=3", "--enclose").out
        assert (
            out == "value  [3, 6]\n\nby  gradient  value\nx   [3, 3]    increasing\ny   [1, 2]\n\ncurvature  linear\n"
        )

    def test_json_has_pairs_of_texts(self, run):
        found = run("eval", "x**2/3", "x=0.9..1.1", "--enclose", "--order", "2", "--digits", "5", "--json").json
        assert found == {
            "schema": "gradcli/1",
            "program": "x**2/3",
            "backend": "flint",
            "device": "cpu",
            "dtype": "arb",
            "digits": 5,
            "shape": [],
            "box": {"x": ["0.9", "1.1"]},
            "value": ["0.27", "0.40334"],
            "grad": {"x": ["0.6", "0.73334"]},
            "derivatives": {"x,x": ["0.66666", "0.66667"]},
            "monotonic": {"x": "increasing"},
            "curvature": "convex",
        }

    def test_lists_of_intervals(self, run):
        found = run("eval", "sum(x*x)", "x=[0..1, 2±0.1]", "--enclose", "--json").json
        assert found["value"] == ["3.61", "5.41"]
        assert found["grad"] == {"x": [["0", "2"], ["3.8", "4.2"]]}
        found = run("eval", "x*y", "x=[1..2, 3]", "y=0..1", "--enclose", "--jacobian", "--json").json
        assert found["value"] == [["0", "2"], ["0", "3"]]
        assert found["jacobian"]["x"][1] == [["0", "0"], found["jacobian"]["x"][0][0]]

    @pytest.mark.all_cases
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("x", "x=1..0", "--enclose"), "there is no number in this interval"),
            (("x", "x=1±-1", "--enclose"), "there is no number in this interval"),
            (("x", "x=1..", "--enclose"), "this is no interval"),
            (("1/x", "x=-1..1", "--enclose"), "there is no bound, or no value, at some point of x = "),
            (("abs(x)/x", "x=-1..1", "--enclose"), "there is no bound, or no value, at some point of x = "),
            (("sin(x)/x**2", "x=-1..1", "--enclose"), "there is no bound, or no value, at some point of x = "),
            (("log(x)", "x=-1..1", "--enclose"), "there is no bound, or no value, at some point of x = "),
            (("sqrt(x)", "x=-1e-30..1", "--enclose"), "there is no bound, or no value, at some point of x = "),
            (("x**2.5", "x=-1e-30..1", "--enclose"), "there is no bound, or no value, at some point of x = "),
            (
                ("sqrt(1 - x**2)", "x=0..1.0000001", "--enclose"),
                "there is no bound, or no value, at some point of x = ",
            ),
            (
                ("k = 0; sum([sqrt(1 - k*x) for k in range(3)])", "x=0..0.6", "--enclose"),
                "there is no bound, or no value, at some point of x = ",
            ),
            (("sum([1, 2], axis=n)", "n=0..1", "--enclose"), "an axis must be a whole number"),
            (("zeros(n)", "n=1..2", "--enclose"), "a size must be a whole number"),
            (("x*[1, 2]", "x=1..2", "--enclose"), "there are gradients of scalars alone"),
            (("x", "x=1..2", "--enclose", "--sparse", "--order", "2"), "--enclose and --sparse contradict each other"),
            (("x", "x=0.9..1.1"), "gradcli eval --enclose takes intervals"),
            (("x", "x=1±0.1"), "gradcli eval --enclose takes intervals"),
            (("x", "x=1+-0.1"), "gradcli eval --enclose takes intervals"),
            (("x", "x=5.0(1)"), "gradcli eval --enclose takes intervals"),
        ],
    )
    def test_errors(self, run, words, message):
        outcome = run("eval", *words)
        assert outcome.status
        assert message in outcome.err


class TestPython:
    def test_bounds_are_decimals(self):
        program = gradcli.compile("x*exp(-x) + y")
        found = program.enclose({"x": (0.25, "0.75"), "y": "1±0.5"}, ["x"], order=2, digits=4)
        assert found.value == (Decimal("0.6947"), Decimal("1.855"))
        assert found.grad == {"x": (Decimal("0.118"), Decimal("0.5842"))}
        assert found.monotonic == {"x": "increasing"}
        assert found.box["y"] == (Decimal("0.5"), Decimal("1.5"))

    def test_lists_and_arrays(self):
        found = gradcli.compile("sum(x*y)").enclose({"x": [("0.1", "0.2"), 3], "y": [1.0, 2.0]}, ["x"])
        assert found.value == (Decimal("6.1"), Decimal("6.2"))

    @pytest.mark.parametrize("value", [(1, 0), (1, "a"), object(), "1..", (1, math.inf), [(0, 1), [1, 2]]])
    def test_what_is_no_interval(self, value):
        with pytest.raises(BindingError):
            gradcli.compile("sum(x)").enclose({"x": value})


@pytest.mark.parametrize(
    ("formula", "box", "digits"),
    [("exp(-x)", (6861, 6862), 10), ("exp(-x)", (4200, 4201), 1000), ("exp(x)/10", (0, 1), 3000)],
)
def test_long_bounds_are_not_taken_for_tiny_ones(formula, box, digits):
    found = gradcli.compile(formula).enclose({"x": box}, digits=digits, order=0).value
    with localcontext(prec=50, Emin=-10_000):
        low, high = sorted(-end if "-x" in formula else end for end in box)
        scale = 10 if "/10" in formula else 1
        assert abs(found.low / (Decimal(low).exp() / scale) - 1) < Decimal("1e-8")
        assert abs(found.high / (Decimal(high).exp() / scale) - 1) < Decimal("1e-8")


def test_detach_in_other_letters():
    found = gradcli.compile("\uff44\uff45\uff54\uff41\uff43\uff48(x)*x").enclose({"x": (1, 2)})
    assert found.value.low <= 1
    assert found.value.high >= 4
    assert found.curvature is None


@pytest.mark.parametrize("other", ["[1, 2, 3]", "1"])
def test_a_value_of_two_shapes_is_an_error(other):
    with pytest.raises(EvaluationError, match="one shape at some points"):
        gradcli.compile(f"if x > 0.5 {{ y = [1, 2] }} else {{ y = {other} }}; y").enclose({"x": (0, 1)}, order=0)


def test_the_cube_root_of_an_interval_from_0():
    found = gradcli.compile("cbrt(x)").enclose({"x": (-8, 0)}, order=0)
    assert found.value.low == -2
    assert 0 <= found.value.high < Decimal("1e-9")


def test_a_number_beside_an_interval_is_finite():
    with pytest.raises(BindingError, match="must be finite"):
        gradcli.compile("x*y").enclose({"x": (0, 1), "y": math.inf})


def test_bounds_too_far_out_for_fractions_are_exact():
    found = gradcli.compile("erfc(x)").enclose({"x": (1e300, 1e300)}, order=1)
    assert found.value.low <= 0 <= found.value.high < Decimal("1e-999")


SIX_HUMP_CAMEL = "(4-2.1*x**2+x**4/3)*x**2 + x*y + (-4+4*y**2)*y**2"


@pytest.mark.slow
def test_second_derivatives_narrow_a_value_with_several_minima(run):
    found = run("eval", SIX_HUMP_CAMEL, "x=-3..3", "y=-2..2", "--enclose", "--no-grad", "--json").json
    low, high = map(float, found["value"])
    assert -1.05 < low <= -1.0316284534898774
    assert 162.9 <= high < 162.90001


def test_an_iterated_map_is_divided_until_its_bounds_are_those_of_its_numbers(run):
    outcome = run("eval", "for k in range(5) { x = 4*x*(1-x) }; x", "x=0.1..0.13", "--enclose", "--no-grad", "--json")
    low, high = map(float, outcome.json["value"])
    numbers = []
    for k in range(1001):
        x = 0.1 + 0.03 * k / 1000
        for _ in range(5):
            x = 4 * x * (1 - x)
        numbers.append(x)
    assert (low, high) == pytest.approx((min(numbers), max(numbers)), abs=1e-4)
    assert low <= min(numbers) < max(numbers) <= high


@pytest.mark.slow
def test_bounds_that_are_too_wide_are_told_to_be(run):
    words = ("eval", "sin(40*x)*sin(39*y) - x*y", "x=0..3", "y=0..3", "--enclose", "--no-grad")
    value, reached = run(*words).out.removeprefix("value").split("reaches")
    (low, high), (lowest, highest) = map(json.loads, (value, reached))
    assert low < lowest < highest < high


@pytest.mark.slow
@pytest.mark.parametrize(("y", "value", "slope"), [("2", (0, 4), (-2, 4)), ("3", (-1, 8), (0, 12))])
def test_a_number_in_the_exponent_is_one_where_there_is_no_derivative_by_it(run, y, value, slope):
    found = run("eval", "x**y", "x=-1..2", f"y={y}", "--enclose", "--json").json
    assert tuple(map(float, found["value"])) == value
    assert tuple(map(float, found["grad"]["x"])) == pytest.approx(slope, abs=1e-15)
    assert found["grad"]["y"] == ["-inf", "inf"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "words", "expected"),
    [
        ("where(x == 0, 0, x)", ["x=0"], {"x": ("-inf", "inf")}),
        ("if x == 0 { 0 } else { x }", ["x=0"], {"x": ("-inf", "inf")}),
        ("where(x == 1, 0, x)", ["x=0"], {"x": ("1", "1")}),
        ("where(x != 0, x*y, 0)", ["x=0", "y=1..2"], {"x": ("-inf", "inf"), "y": ("0", "0")}),
        ("where(n == 2, x, x**3)", ["x=0..1", "n=2"], {"x": ("1", "1"), "n": ("-inf", "inf")}),
    ],
)
def test_an_equality_that_is_certain_decides_no_derivative(run, program, words, expected):
    found = run("eval", program, *words, "--enclose", "--json").json["grad"]
    assert {name: tuple(found[name]) for name in expected} == expected
