"""Tests removable singularities against SymPy and mpmath, at the point and near it, and that poles are not removed."""

from __future__ import annotations

import itertools
import json
import math
import random

import mpmath
import numpy as np
import pytest

import gradcli
from gradcli.language.syntax import parse
from tests import removable_points

CASES = json.loads(removable_points.DATA.read_text())


def test_the_data_is_of_the_functions():
    assert [c["program"] for c in CASES] == [program for program, _ in removable_points.FUNCTIONS]


@pytest.mark.cases(6)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["program"])
def test_values_and_derivatives_at_the_point_and_beside_it(case):
    program = gradcli.compile(case["program"])
    for text, derivatives in case["derivatives"].items():
        x, expected = float(text), [float(d) for d in derivatives]
        np.testing.assert_allclose(program.derivatives({"x": x}, removable_points.ORDER), expected, rtol=1e-10)
        for _ in range(2):
            value, grad = program.value_and_grad({"x": x})
            np.testing.assert_allclose([value, grad["x"]], expected[:2], rtol=1e-10)


@pytest.mark.parametrize("case", CASES[::4], ids=lambda case: case["program"])
def test_elements_of_tensors_each_by_themselves(case):
    points = [*case["derivatives"]]
    x = np.array([*map(float, points), float(points[0]) + 0.9])
    program = gradcli.compile(f"sum({case['program']})")
    last = gradcli.compile(case["program"]).value_and_grad({"x": x[-1]})
    expected = [[float(d) for d in case["derivatives"][p][:2]] for p in points] + [[last[0], last[1]["x"]]]
    values, slopes = np.array(expected).T
    for _ in range(3):
        value, grad = program.value_and_grad({"x": x})
        np.testing.assert_allclose(value, values.sum(), rtol=1e-13)
        np.testing.assert_allclose(grad["x"], slopes, rtol=1e-10)
    second = np.diag(program.hessian({"x": x})["x,x"])[: len(points)]
    np.testing.assert_allclose(second, [float(case["derivatives"][p][2]) for p in points], rtol=1e-10)


@pytest.mark.cases(4)
@pytest.mark.parametrize("exponent", [-110, -50, -35, 35, 50, 110])
@pytest.mark.parametrize(("program", "power"), [("x/expm1(c*x)", -1), ("sin(c*x)/x", 1), ("(1 - cos(c*x))/x**2", 2)])
def test_variables_in_any_unit(program, power, exponent):
    def derivatives(c, x):
        return gradcli.compile(program.replace("c*x", f"{c!r}*x")).derivatives({"x": x}, 3)

    unit = 2.0**exponent
    for x in (0.0, 0.01, 0.4):
        expected = [d * unit ** (power + k) for k, d in enumerate(derivatives(1.0, x))]
        np.testing.assert_allclose(derivatives(unit, x / unit), expected, rtol=1e-12)


def test_the_law_of_planck_has_derivatives(run):
    program = "nu**3/expm1(6.62607015e-34*nu/(1.380649e-23*T))"
    grad = run("eval", program, "nu=2e13", "T=5000", "--json").json["grad"]
    u = 6.62607015e-34 * 2e13 / (1.380649e-23 * 5000)
    assert grad["T"] == pytest.approx(2e13**3 * u / 5000 * math.exp(u) / math.expm1(u) ** 2, rel=1e-13)


def test_the_current_of_goldman_hodgkin_and_katz_without_a_voltage():
    program = "P*z^2*V*F^2/(R*T)*(ci - co*exp(-z*V*F/(R*T)))/(1 - exp(-z*V*F/(R*T)))"
    given = {"P": 1e-6, "z": 2.0, "F": 96485.33, "R": 8.314, "T": 310.0, "ci": 0.14, "co": 0.005}
    value, grad = gradcli.compile(program).value_and_grad({**given, "V": 0.0})
    current = given["P"] * given["z"] * given["F"]
    slope = current * given["z"] * given["F"] / (given["R"] * given["T"]) * (given["ci"] + given["co"]) / 2
    np.testing.assert_allclose(value, current * (given["ci"] - given["co"]), rtol=1e-13)
    np.testing.assert_allclose([grad["V"], grad["ci"], grad["co"]], [slope, current, -current], rtol=1e-12)


@pytest.mark.parametrize("order", [20, 100])
def test_high_orders(order):
    found = gradcli.compile("sin(x)/x").derivatives({"x": 0.0}, order)
    expected = [(1, 0, -1, 0)[k % 4] / (k + 1) for k in range(order + 1)]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("program", "words", "value", "grad"),
    [
        ("sin(a*x)/(x*a)", ["a=2", "x=0"], 1.0, {"a": 0.0, "x": 0.0}),
        ("(1 - exp(-k*t))/(k*t)", ["k=2", "t=0"], 1.0, {"k": 0.0, "t": -1.0}),
        ("sin(x - y)/(y - x)", ["x=2", "y=2"], -1.0, {"x": 0.0, "y": 0.0}),
        ("sin(2*pi*f*t)/(2*pi*f*t)", ["f=2", "t=0"], 1.0, {"f": 0.0, "t": 0.0}),
        ("sin(pi*x)/x", ["x=0"], math.pi, {"x": 0.0}),
        ("(e**x - 1)/x", ["x=0"], 1.0, {"x": 0.5}),
        ("(e**x - 1)/x", ["x=0", "e=2"], math.log(2), {"x": math.log(2) ** 2 / 2, "e": 0.5}),
        ("np.sin(u)/u", ["u=0"], 1.0, {"u": 0.0}),
        ("import numpy as np\nu = a - b\nnp.expm1(u)/u", ["a=1", "b=1"], 1.0, {"a": 0.5, "b": -0.5}),
        ("def f(x):\n    return (1 - np.cos(x))/x**2\nf(y)", ["y=0"], 0.5, {"y": 0.0}),
        ("f = lambda x: x.sin()/x\nf(3*y)", ["y=0"], 1.0, {"y": 0.0}),
        ("sin(norm(v))/norm(v)", ["v=[0,0]"], 1.0, {"v": [0.0, 0.0]}),
        ("sin(x[0])/x[0] + x[1]", ["x=[0,2]"], 3.0, {"x": [0.0, 1.0]}),
        ("divide(sin(x), x)", ["x=0"], 1.0, {"x": 0.0}),
        ("sum(sin(x)/x)", ["x=[[0,1e-9],[1e-9,0]]"], 4.0, {"x": [[0.0, -1e-9 / 3], [-1e-9 / 3, 0.0]]}),
        ("diff(sin(x)/x, x, 2)", ["x=0"], -1 / 3, {"x": 0.0}),
        ("x*sin(x)/x**2", ["x=0"], 1.0, {"x": 0.0}),
        ("sin(a*x)/x", ["a=2", "x=0"], 2.0, {"a": 1.0, "x": 0.0}),
        ("sin(x*a)/x", ["a=2", "x=1e-12"], 2.0, {"a": 1.0, "x": -8e-12 / 3}),
        ("y*sin(x)/x", ["x=0", "y=3"], 3.0, {"x": 0.0, "y": 1.0}),
        ("sin(x)*cos(y)/(x*y)", ["x=0", "y=2"], math.cos(2) / 2, {"x": 0.0, "y": -math.sin(2) / 2 - math.cos(2) / 4}),
        ("(1 - exp(-k*t))/k", ["k=0", "t=2"], 2.0, {"k": -2.0, "t": 1.0}),
        ("sum((1 - exp(-k*t))/k)", ["k=[0,1e-10]", "t=2"], 4.0 - 2e-10, {"k": [-2.0, -2.0 + 8e-10 / 3], "t": 2 - 2e-10}),
        ("a*(1 - cos(a*x))/(b*x**2)", ["a=2", "b=4", "x=0"], 1.0, {"a": 1.5, "b": -0.25, "x": 0.0}),
        ("x/(1 - exp(-x/t))", ["x=0", "t=2"], 2.0, {"x": 0.5, "t": 1.0}),
        ("0.1*(v + 40)/(1 - exp(-(v + 40)/10))", ["v=-40"], 1.0, {"v": 0.05}),
        ("log(1 + a*x)/x", ["a=3", "x=0"], 3.0, {"a": 1.0, "x": -4.5}),
        ("-y*(sin(x)/x)*cos(x)", ["x=0", "y=2"], -2.0, {"x": 0.0, "y": -1.0}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", [[], ["--executor", "compiled"]], ids=["", "compiled"])
def test_the_variable_may_be_any_expression(run, program, words, value, grad, more):
    assert_evaluated(run("eval", program, *words, "--json", *more).json, value, grad)


@pytest.mark.parametrize(
    ("program", "words", "value", "grad"),
    [
        ("s = sin(x); s/x", ["x=0"], 1.0, {"x": 0.0}),
        ("c = 1 - cos(x); t = x*x; c/t", ["x=1e-9"], 0.5, {"x": -1e-9 / 12}),
        ("u = k*t; e1 = exp(-u); n = 1 - e1; n/u", ["k=2", "t=0"], 1.0, {"k": 0.0, "t": -1.0}),
        ("def f(x):\n    s = np.sin(x)\n    return s/x\nf(y)", ["y=0"], 1.0, {"y": 0.0}),
        ("y = 0\nfor t in x {\n    s = sin(t)\n    y = y + s/t\n}\ny", ["x=[0,1e-9]"], 2.0, {"x": [0.0, -1e-9 / 3]}),
        ("x = 2*x; s = sin(x); s/x", ["x=0"], 1.0, {"x": 0.0}),
        ("n = 1 - cos(x); sum(n/x**2)", ["x=[1e-8,0]"], 1.0, {"x": [-1e-8 / 12, 0.0]}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", [[], ["--executor", "compiled"]], ids=["", "compiled"])
def test_a_part_may_stand_behind_a_name(run, program, words, value, grad, more):
    assert_evaluated(run("eval", program, *words, "--json", *more).json, value, grad)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("s = sin(x); x = 2*x; s/x", ["x=0"]),
        ("s = sin(x); s = 2*s; s/x", ["x=0"]),
        ("s = sin(x); s += 0*x; s/x", ["x=0"]),
        ("s = sin(x)\ndef f(x):\n    return s/x\nf(y)", ["x=1", "y=0"]),
        ("s = sin(x)\nsum([s/x for x in y])", ["x=1", "y=[0,0]"]),
        ("s = 0.5*x\nfor t in y {\n    r = s/t\n    s = sin(t)\n}\nr", ["x=1", "y=[0,0]"]),
        ("s = sin(x); y = s/x; diff(y, s)", ["x=0"]),
        ("s = sin(x); s/x", ["x=0", "--retain", "s"]),
        ("s = x; s/x", ["x=0"]),
        ("s = sin(x) if x < 1 else x; s/x", ["x=0"]),
    ],
)
def test_a_name_that_may_be_something_else_stands_for_itself(run, program, words):
    plain = run("eval", program, *words, "--no-rewrite", "--json", "--quiet").json
    assert run("eval", program, *words, "--json", "--quiet").json == plain


def test_names_of_names_of_names_cost_no_time(run):
    lines = [f"s{k + 1} = s{k}*s{k}" for k in range(60)]
    assert run("eval", "; ".join(["s0 = x + 1", *lines, "s60/x"]), "x=0", "--json", "--quiet").status == 0


@pytest.mark.parametrize("more", [[], ["--executor", "compiled"]], ids=["", "compiled"])
def test_a_power_of_a_name_is_one_function_of_its_logarithm(run, more):
    """The Box-Cox transformation: (x**a - 1)/a is log(x) at a = 0."""
    log_2 = math.log(2)
    program = "sum((x**a - 1)/a)"
    for a in (0.0, 1e-12, -1e-9):
        value, slope = log_2 + a * log_2**2 / 2, log_2**2 / 2 + a * log_2**3 / 3
        record = run("eval", program, "x=2", f"a={a}", "--json", *more).json
        assert_evaluated(record, value, {"a": slope, "x": math.exp((a - 1) * log_2)})
    several = run("eval", program, "x=[2,4,0]", "a=[0,1,1]", "--json", *more).json
    assert_evaluated(several, log_2 + 2.0, {"a": [log_2**2 / 2, 8 * log_2 - 3, 1.0], "x": [0.5, 1.0, 1.0]})


EULER = 0.57721566490153286


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "point", "expected"),
    [
        ("x*gamma(x)", 0.0, [1.0, -EULER, 1.9781119906559451, -5.4448744564853177, 23.561474084025604]),
        ("(x + 2)*gamma(x)", -2.0, [0.5, 0.46139216754923357, 1.8732324979756733, 4.3229325100001701, 26.478937114159783]),
        ("x*digamma(x)", 0.0, [-1.0, -EULER, 3.2898681336964529, -7.2123414189575657, 25.975757609067317]),
        ("x**2*polygamma(1, x)", 0.0, [1.0, 0.0, 3.2898681336964529, -14.424682837915131, 77.92727282720195]),
        ("gamma(x)*sin(pi*x)/pi", -1.0, [1.0, 0.42278433509846714, -0.46618747284357348, -1.146546608326149, -0.5892597601296004]),
    ],
)  # fmt: skip
def test_poles_of_the_gamma_function_and_its_kin(program, point, expected):
    compiled = gradcli.compile(program)
    np.testing.assert_allclose(compiled.derivatives({"x": point}, 4), expected, rtol=1e-13, atol=1e-14)
    beside = compiled.derivatives({"x": point + 1e-9}, 3)
    np.testing.assert_allclose(beside, [f + 1e-9 * g for f, g in itertools.pairwise(expected)], rtol=1e-12, atol=1e-14)


def assert_evaluated(record, value, grad):
    np.testing.assert_allclose(record["value"], value, rtol=1e-14)
    for name, expected in grad.items():
        np.testing.assert_allclose(record["grad"][name], expected, rtol=1e-13)


def test_the_expression_may_stand_behind_a_choice_where_it_is_not_compiled(run):
    """A branch on a number is not recorded, so there is no compiled program."""
    words = ("eval", "sin(x)/x if x >= -1 else 0", "x=0", "--json")
    assert_evaluated(run(*words).json, 1.0, {"x": 0.0})
    refused = run(*words, "--executor", "compiled")
    assert refused.status == 1
    assert "--executor eager" in refused.error["hint"]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("x/x", ["x=0"]), ("1/x - 1/x", ["x=0"]), ("x/abs(x)", ["x=0"]), ("abs(x)/x", ["x=0"]), ("relu(x)/x", ["x=0"]), ("x/(x + y)", ["x=0", "y=0"]), ("1/x + 1/x**2", ["x=0"]), ("1/(x - x**2)", ["x=1"]),
        ("elu(x)/x", ["x=0"]), ("sin(x)/x**2", ["x=0"]), ("sin(x)/y", ["x=0", "y=0"]), ("v[0]/norm(v)", ["v=[0,0]"]),
        ("sin(x) = 2*x; sin(x)/x", ["x=0"]), ("sqrt(x)/x", ["x=0"]), ("(cos(a*x) - cos(b*x))/x**3", ["x=0", "a=1", "b=2"]), ("x**2*log(x)/x**3", ["x=0"]),
        ("x/sqrt(x**2)", ["x=0"]), ("floor(x)/x", ["x=0"]), ("where(x > 0, x, 0)/x", ["x=0"]), ("(x > 1)/x", ["x=0"]),
        ("sinc(x)/x - 1/abs(x)", ["x=0"]), ("log(x)/log(x)**2", ["x=1"]),
    ],
)  # fmt: skip
def test_what_has_no_value_stays_as_it_is(run, program, words):
    plain = run("eval", program, *words, "--no-rewrite", "--json", "--quiet").json
    found = run("eval", program, *words, "--json", "--quiet").json
    assert (found["value"], found["grad"]) == (plain["value"], plain["grad"])
    assert plain["value"] in ("NaN", "Infinity", "-Infinity")


@pytest.mark.parametrize("x", [1.7, -3.0, 12.5, 1e4, -700.0, math.inf, math.nan])
def test_elsewhere_it_is_evaluated_as_it_stands(run, x):
    for program in ("sin(x)/x", "tan(x)/x", "1/x-1/sin(x)"):
        words = [program, f"x={x}", "--json", "--quiet"]
        assert run("eval", *words).json["value"] == run("eval", *words, "--no-rewrite").json["value"]


def test_the_note_on_what_was_used(run):
    record = run("eval", "y = x + 1; sin(x)/x + y", "x=0", "--nodes", "--json").json
    assert record["rewrites"] == [{"from": "sin(x)/x", "to": "Taylor series at 0", "line": 1, "column": 12}]
    assert run("eval", "sin(x)/x", "x=1", "--nodes", "--json").json["rewrites"] == []


@pytest.mark.parametrize(
    "program",
    [
        "x/atanh(2)",
        "x/1e-320",
        "1/x/1e-320",
        "polygamma(x, 0.5)/x",
        "round(x, 0.5)/x",
        "atanh(2)/x",
        "x/inf",
        "x/nan*x",
        "x*digamma(x - 1e16)",
    ],
)
def test_whatever_is_looked_at_it_is_no_error_of_its_own(run, program):
    with_forms = run("eval", program, "x=0", "--json", "--quiet")
    plain = run("eval", program, "x=0", "--json", "--quiet", "--no-rewrite")
    assert (with_forms.status, with_forms.out) == (plain.status, plain.out)


def test_a_program_is_looked_through_once(monkeypatch):
    from gradcli.language.interpreter.run import evaluate
    from gradcli.language.stable import removable

    looked = []
    points = removable._points
    monkeypatch.setattr(removable, "_points", lambda form: looked.append(form) or points(form))
    program = parse("sin(x)/x + a*x/(1 + x)")
    for x in (0.0, 1.0, 2.0):
        evaluate(program, {"x": x, "a": 1.0})
    assert 0 < len(looked) < 4
    looked.clear()
    evaluate(parse("a*x**2/3 + b"), {"x": 1.0, "a": 1.0, "b": 1.0})
    assert not looked


# Programs, their inputs, and the value and derivatives by names in the order of `--order 2`.
LIMITS = [
    ("x**2/x", ["x=0"], {"": 0.0, "x": 1.0, "x,x": 0.0}),
    ("x**40/x**20", ["x=0"], {"": 0.0, "x": 0.0, "x,x": 0.0}),
    ("x**50*sin(x)/x", ["x=0"], {"": 0.0, "x": 0.0, "x,x": 0.0}),
    ("sin(x)**40/x", ["x=0"], {"": 0.0, "x": 0.0, "x,x": 0.0}),
    ("x*y/x", ["x=0", "y=3"], {"": 3.0, "x": 0.0, "y": 1.0, "x,y": 0.0}),
    ("x*(1 - x**0.5)", ["x=0"], {"": 0.0, "x": 1.0, "x,x": -math.inf}),
    ("x**1.1*x", ["x=0"], {"": 0.0, "x": 0.0, "x,x": 0.0}),
    ("x**q*x", ["x=0", "q=1.1"], {"": 0.0, "x": 0.0, "q": 0.0, "x,x": 0.0, "x,q": 0.0, "q,q": 0.0}),
    ("x**q*x**(1 - q)", ["x=0", "q=0.25"], {"": 0.0, "x": 1.0, "q": 0.0, "x,x": 0.0}),
    ("sqrt(x)*sqrt(x)", ["x=0"], {"": 0.0, "x": 1.0, "x,x": 0.0}),
    ("sqrt(1 - x)*(1 - x)**1.5", ["x=1"], {"": 0.0, "x": 0.0, "x,x": 2.0}),
    ("x*sqrt(x)", ["x=0"], {"": 0.0, "x": 0.0, "x,x": math.inf}),
    ("x**2*log(x)", ["x=0"], {"": 0.0, "x": 0.0, "x,x": -math.inf}),
    ("x**3*log(a*x)**2", ["x=0", "a=2"], {"": 0.0, "x": 0.0, "a": 0.0, "x,x": 0.0, "x,a": 0.0, "a,a": 0.0}),
    ("x**n*log(x)", ["x=0", "n=2"], {"": 0.0, "x": 0.0, "n": 0.0, "x,n": 0.0, "n,n": 0.0, "x,x": -math.inf}),
    ("x**2*log2(x) + x", ["x=0"], {"": 0.0, "x": 1.0, "x,x": -math.inf}),
    ("1/(1/x)", ["x=0"], {"": 0.0, "x": 1.0, "x,x": 0.0}),
    ("1/(1 + 1/x)", ["x=0"], {"": 0.0, "x": 1.0, "x,x": -2.0}),
    ("1/(1/x + 1/(2*x))", ["x=0"], {"": 0.0, "x": 2 / 3, "x,x": 0.0}),
    ("1/(x**-2 + x**-3)", ["x=0"], {"": 0.0, "x": 0.0, "x,x": 0.0}),
    ("1/(1/a + 1/b)", ["a=0", "b=2"], {"": 0.0, "a": 1.0, "b": 0.0, "a,a": -1.0, "a,b": 0.0, "b,b": 0.0}),
    ("(1 + 1/x)**-2", ["x=0"], {"": 0.0, "x": 0.0, "x,x": 2.0}),
    ("w = 1/t; 1/(1 + w)", ["t=0"], {"": 0.0, "t": 1.0, "t,t": -2.0}),
    ("w = 1/t; v = w**2; (v + w)/(3*v + 1)", ["t=0"], {"": 1 / 3, "t": 1 / 3, "t,t": -2 / 9}),
    ("exp(-a/x**2)", ["x=0", "a=2"], {"": 0.0, "x": 0.0, "a": 0.0, "x,x": 0.0, "x,a": 0.0}),
    (
        "(cos(a*x) - cos(b*x))/x**2",
        ["x=0", "a=2", "b=3"],
        {"": 2.5, "x": 0.0, "a": -2.0, "b": 3.0, "x,x": -65 / 12, "x,a": 0.0, "a,a": -1.0, "a,b": 0.0, "b,b": 1.0},
    ),
    ("(cos(a*x) - cos(b*x))/x**2", ["x=0", "a=2", "b=2"], {"": 0.0, "x": 0.0, "a": -2.0, "b": 2.0, "a,a": -1.0}),
    (
        "(a*x + x**2)/(b*x)",
        ["x=0", "a=2", "b=4"],
        {"": 0.5, "x": 0.25, "a": 0.25, "b": -0.125, "x,x": 0.0, "x,b": -1 / 16, "a,b": -1 / 16, "b,b": 1 / 16},
    ),
    ("(exp(b*x) - 1)/atan(x)*2*x/sin(a*x)", ["x=0", "a=2", "b=3"], {"": 3.0, "x": 4.5, "a": -1.5, "b": 1.0}),
    ("(x**2 - a**2)/(x - a)", ["x=3", "a=3"], {"": 6.0, "x": 1.0, "a": 1.0, "x,x": 0.0, "x,a": 0.0, "a,a": 0.0}),
    (
        "(log(x) - log(a))/(x - a)",
        ["x=2", "a=2"],
        {"": 0.5, "x": -0.125, "a": -0.125, "x,x": 1 / 12, "x,a": 1 / 24, "a,a": 1 / 12},
    ),
    ("(x - a)/(log(x) - log(a))", ["x=2", "a=2"], {"": 2.0, "x": 0.5, "a": 0.5, "x,x": -1 / 12, "x,a": 1 / 12}),
    ("(x**n - 1)/(x - 1)", ["x=1", "n=5"], {"": 5.0, "x": 10.0, "n": 1.0, "x,x": 20.0, "x,n": 4.5, "n,n": 0.0}),
]


@pytest.mark.cases(6)
@pytest.mark.parametrize(("program", "words", "expected"), LIMITS, ids=[f"{p} {' '.join(w)}" for p, w, _ in LIMITS])
def test_limits_have_the_derivatives_that_exist(run, program, words, expected):
    record = run("eval", program, *words, "--order", "2", "--json").json
    found = {"": record["value"], **record["grad"], **record["derivatives"]}
    for key, number in expected.items():
        assert np.float64(found[key]) == pytest.approx(number, rel=1e-13, abs=1e-14)
    is_finite = all(map(math.isfinite, expected.values()))
    assert is_finite == (not [w for w in record.get("warnings", ()) if w["code"] == "nonfinite"])


@pytest.mark.parametrize(("program", "words", "expected"), LIMITS[5:7] + LIMITS[12:26:4] + LIMITS[-3:-1])
def test_limits_are_the_same_in_every_way(run, program, words, expected, tmp_path):
    numbers = dict(word.split("=") for word in words)
    first, *_others = numbers
    value, slope = expected[""], expected[first]
    for more in (["--executor", "compiled"], ["--digits", "12"]):
        record = run("eval", program, *words, "--json", *more).json
        assert float(record["value"]) == pytest.approx(value, rel=1e-12, abs=1e-14)
        assert float(record["grad"][first]) == pytest.approx(slope, rel=1e-12, abs=1e-14)
    jacobian = run("eval", program, *words, "--jacobian", "--json").json["jacobian"][first]
    assert jacobian == pytest.approx(slope, abs=1e-14)
    table = tmp_path / "table.csv"
    lines = [",".join(numbers), ",".join(numbers.values()), ",".join(str(0.5 + k) for k in range(len(numbers)))]
    table.write_text("\n".join(lines) + "\n")
    rows = [line.split(",") for line in run("map", program, str(table), "--wrt", first).out.splitlines()]
    assert [float(n) for n in rows[1][-2:]] == pytest.approx([value, slope], abs=1e-14)
    compiled = gradcli.compile(program)
    beside = {n: 0.5 + k for k, n in enumerate(numbers)}
    arrays = {n: np.array([float(numbers[n]), beside[n]]) for n in numbers}
    apart = compiled.value_and_grad(beside)
    if ";" not in program:
        total, gradient = gradcli.compile(f"sum({program})").value_and_grad(arrays)
        assert total == pytest.approx(value + apart[0], rel=1e-13)
        np.testing.assert_allclose(gradient[first], [slope, apart[1][first]], rtol=1e-13, atol=1e-14)


def test_a_series_where_poles_cancel(run):
    assert run("series", "1/(1 + 1/x)", "x=0", "--order", "3").out.startswith("x - x**2 + x**3\n")
    coefficients = run("series", "(cos(a*x) - cos(2*x))/x**2", "x=0", "a=3", "--order", "1", "--json").json[
        "coefficients"
    ]
    assert [c["value"] for c in coefficients] == [-2.5, 0.0, -3.0]


@pytest.mark.parametrize("order", [3, 12])
def test_high_orders_where_a_part_is_infinite(order):
    found = gradcli.compile("1/(1 + 2/x)").derivatives({"x": 0.0}, order)
    expected = [0.0, *(-((-0.5) ** k) * math.factorial(k) for k in range(1, order + 1))]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_minimum_at_a_limit(run):
    found = run("minimize", "x**2*log(x) + x**2*y/x + y**2 + 1", "x=0.3", "y=0", "--json").json
    assert found["value"] < 1.0
    assert run("minimize", "1/(1/x**2 + 1)", "x=0", "--json").json["value"] == 0.0


PARTS = ["sin(a*x)", "x**2", "(exp(x) - 1)", "x", "(1 - cos(b*x))", "log(1 + a*x)", "x*(1 + b*x)", "atan(x)"]
SINGULAR = ["sqrt(x)", "x**1.5", "log(x)", "1/x", "x**-2", "log(a*x)**2", "x**0.25", "1/x**2"]


def _drawn(count):
    draw = random.Random(3)
    for _ in range(count):
        pick = [draw.choice(PARTS) for _ in range(4)]
        singular = [draw.choice(SINGULAR) for _ in range(2)]
        yield draw.choice(
            [
                f"({pick[0]} + {pick[1]})/({pick[2]} + {pick[3]})",
                f"{pick[0]}*{singular[0]}*cos(x)",
                f"1/({singular[0]} + {singular[1]} + b)",
                f"({singular[0]})*({singular[1]})*{pick[0]}*{pick[1]}",
                f"(cos(a*x) - cos(b*x))/({pick[0]}*{pick[1]})",
            ]
        )


def _beside(program, side, order):
    """The derivative of this order on one side of 0, if it has a limit there."""
    function = eval(f"lambda x, a, b: {program}", {n: getattr(mpmath, n) for n in MPMATH})
    found = []
    for exponent in (-60, -120):
        x = side * mpmath.mpf(10) ** exponent
        step = mpmath.mpf(10) ** (exponent - 20)
        points = [function(x + k * step, mpmath.mpf(1.7), mpmath.mpf(0.6)) for k in (-1, 0, 1)]
        found.append(
            [points[1], (points[2] - points[0]) / (2 * step), (points[2] - 2 * points[1] + points[0]) / step**2]
        )
    first, last = (numbers[order] for numbers in found)
    if isinstance(last, mpmath.mpc):
        return None
    return last if abs(first - last) < 1e-8 * (1 + abs(last)) else mpmath.nan


MPMATH = ("sin", "cos", "exp", "log", "sqrt", "atan")


@pytest.mark.cases(4)
@pytest.mark.parametrize("program", [*dict.fromkeys(_drawn(24))])
def test_generated_programs_at_0(program):
    """A result is the limit from each side where the program has values; it is missing where these differ."""
    compiled = gradcli.compile(program)
    at = {name: {"x": 0.0, "a": 1.7, "b": 0.6}[name] for name in compiled.inputs}
    value, grad = compiled.value_and_grad(at)
    found = [value, grad["x"], compiled.hessian(at)["x,x"]]
    with mpmath.workdps(600):
        for order, number in enumerate(found):
            sides = [_beside(program, side, order) for side in (1, -1)]
            sides = [float(s) for s in sides if s is not None]
            if math.isfinite(number) and not (number == 0.0 and math.isnan(sides[0])):
                np.testing.assert_allclose(number, sides, rtol=1e-7, atol=1e-7)
            elif len({round(s, 6) for s in sides}) == 1 and abs(sides[0]) < 1e6:
                raise AssertionError(f"order {order} is {number}, and the limit is {sides[0]}")


@pytest.mark.parametrize("program", ["x*log(x)", "x**x"])
def test_a_warning_of_a_form_names_what_is_typed(run, program):
    (warning,) = run("eval", program, "x=0", "--json").json["warnings"]
    assert warning["message"] == f"the derivative of '{program}' is -inf"
