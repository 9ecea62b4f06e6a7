"""Removable singularities: at the point and beside it what SymPy and mpmath have, and nothing where there is a pole."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import gradcli
from gradcli.language.syntax import parse
from tests import removable_points

CASES = json.loads(removable_points.DATA.read_text())


def test_the_data_is_of_the_functions():
    assert [c["program"] for c in CASES] == [program for program, _ in removable_points.FUNCTIONS]


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
    """What depends on a number by an `if` is not recorded, and has no compiled program."""
    words = ("eval", "sin(x)/x if x >= 0 else 0", "x=0", "--json")
    assert_evaluated(run(*words).json, 1.0, {"x": 0.0})
    refused = run(*words, "--executor", "compiled")
    assert refused.status == 1
    assert "--executor eager" in refused.error["hint"]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("x/x", ["x=0"]), ("x**2/x", ["x=0"]), ("x**20/x", ["x=0"]), ("x**40/x**20", ["x=0"]), ("x*sin(x)/x", ["x=0"]), ("x/abs(x)", ["x=0"]), ("abs(x)/x", ["x=0"]), ("relu(x)/x", ["x=0"]),
        ("elu(x)/x", ["x=0"]), ("sin(x)/x**2", ["x=0"]), ("sin(x)/y", ["x=0", "y=0"]), ("v[0]/norm(v)", ["v=[0,0]"]),
        ("sin(x) = 2*x; sin(x)/x", ["x=0"]), ("1/x - 1/x", ["x=0"]), ("sqrt(x)/x", ["x=0"]),
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
        "sin(x)**40/x",
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
    from gradcli.language import removable
    from gradcli.language.interpreter import evaluate

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


@pytest.mark.parametrize("program", ["x*log(x)", "x**x"])
def test_a_warning_of_a_form_names_what_is_typed(run, program):
    (warning,) = run("eval", program, "x=0", "--json").json["warnings"]
    assert warning["message"] == f"the derivative of '{program}' is -inf"
