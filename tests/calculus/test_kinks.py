"""Tests derivatives where a program switches: at kinks that a smooth function removes, and where a comparison
decides."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import gradcli
from gradcli.calculus import kinks

SMOOTH = [
    # A program, its inputs, and the derivatives by x from order 1 on.
    ("abs(x)**2", 0.0, [0, 2, 0]),
    ("cosh(abs(x))", 0.0, [0, 1, 0, 1]),
    ("cos(abs(3*x - 3))", 1.0, [0, -9, 0, 81]),
    ("r = abs(x); r*r*exp(-r*r)", 0.0, [0, 2, 0, -24]),
    ("(1 + sqrt(5)*abs(x) + 5/3*x**2)*exp(-sqrt(5)*abs(x))", 0.0, [0, -5 / 3, 0, 25]),
    ("sqrt(x**4)", 0.0, [0, 2, 0]),
    ("sqrt(x*x)**2", 0.0, [0, 2, 0]),
    ("hypot(x, 0)**2", 0.0, [0, 2, 0]),
    ("max(x, -x)**2", 0.0, [0, 2, 0]),
    ("relu(x)**3 - relu(-x)**3", 0.0, [0, 0, 6, 0]),
    ("log1p(exp(-abs(x))) + relu(x)", 0.0, [0.5, 0.25, 0, -0.125]),
    ("where(x == 0, 0, x)", 0.0, [1, 0]),
    ("where(x != 0, sin(x)/x, 1)", 0.0, [0, -1 / 3, 0, 1 / 5]),
    ("1 if x == 0 else (exp(x) - 1)/x", 0.0, [1 / 2, 1 / 3, 1 / 4]),
    ("if x == 0 { 0 } else { x }", 0.0, [1, 0]),
    ("where(x < 0, -x**3, x**3)", 0.0, [0, 0]),
    ("where(x > 2, x**2 - 4, 4*x - 8)", 2.0, [4]),
    ("(x >= 0)*x**2", 0.0, [0]),
    ("x*sign(x)*x", 0.0, [0]),
    ("x**2*sign(x)", 0.0, [0]),
    ("x*sign(x)**2", 0.0, [1, 0]),
    ("(x - 1)**2*floor(x)", 1.0, [0]),
]  # fmt: skip


@pytest.mark.parametrize(("program", "x", "expected"), SMOOTH, ids=[program for program, *_ in SMOOTH])
class TestSmooth:
    def test_eval(self, run, program, x, expected):
        record = run("eval", program, f"x={x}", "--order", str(len(expected)), "--json").json
        found = [record["grad"]["x"], *record.get("derivatives", {}).values()]
        assert found == pytest.approx(expected, abs=1e-12)
        assert "warnings" not in record

    @pytest.mark.cases(4)
    def test_digits(self, run, program, x, expected):
        words = ("eval", program, f"x={x}", "--order", str(len(expected)), "--digits", "15", "--json")
        record = run(*words).json
        found = [record["grad"]["x"], *record.get("derivatives", {}).values()]
        # A number that may be 0 is given as a bound.
        assert [0.0 if "<" in number else float(number) for number in found] == pytest.approx(expected, abs=1e-13)

    def test_python(self, program, x, expected):
        compiled = gradcli.compile(program)
        for point in (x, x + 0.5, x):
            # A recording made at another point is not used here, nor the reverse.
            found = compiled.derivatives({"x": point}, len(expected))
        assert found[2:] == pytest.approx(expected[1:], abs=1e-12)

    def test_rows(self, run, program, x, expected):
        if len(expected) < 2 or "sqrt(x" in program:
            return
        table = f"x\n{x + 0.25}\n{x}\n{x - 0.25}\n"
        rows = run("map", program, "--from", "csv", "--order", "2", stdin=table).out.splitlines()
        assert float(rows[2].split(",")[3]) == pytest.approx(expected[1], abs=1e-12)


KINKS = [
    ("abs(x)", 0.0, [0, math.nan]), ("relu(x)", 0.0, [0, math.nan]), ("abs(x)**3", 0.0, [0, 0, math.nan]),
    ("x*abs(x)", 0.0, [0, math.nan]), ("exp(-abs(x))", 0.0, [0, math.nan]), ("clip(x, 0, 1)", 1.0, [1, math.nan]),
    ("elu(x)", 0.0, [1, math.nan]), ("celu(x)", 0.0, [1, math.nan]), ("softsign(x)", 0.0, [1, math.nan]),
    ("where(x < 0, x, x**2)", 0.0, [0, math.nan]), ("where(x == 0, 5, x)", 0.0, [0, math.nan]),
    ("max(x, 2*x)", 0.0, [1.5, math.nan]), ("floor(x)", 1.0, [0, math.nan]),
]  # fmt: skip


@pytest.mark.parametrize(("program", "x", "expected"), KINKS, ids=[program for program, *_ in KINKS])
def test_a_derivative_that_does_not_exist_is_no_number(run, program, x, expected):
    record = run("eval", program, f"x={x}", "--order", str(len(expected)), "--json").json
    found = [record["grad"]["x"], *record["derivatives"].values()]
    assert [float(number) for number in found] == pytest.approx(expected, nan_ok=True)
    assert [warning["code"] for warning in record["warnings"]] == ["nonsmooth"] * len(record["warnings"])


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("program", "x"),
    [
        ("relu6(x)", 6), ("hardtanh(x)", 1), ("hardsigmoid(x)", 3), ("hardswish(x)", -3), ("hardshrink(x, 1)", 1),
        ("softshrink(x, 1)", 1), ("threshold(x, 1, 2)", 1), ("fmax(x, 1)", 1), ("fmin(1, x)", 1), ("angle(x)", 0),
        ("interp(x, [-1, 0, 1], [1, 0, 2])", 0), ("atan2(x, 2*x)", 0), ("(x > 0)*x", 0), ("where(x < 0, -x, x)", 0),
        ("-x if x <= 0 else x", 0), ("if x > 1 { 2*x } else { x }", 1), ("cummax([x, 1])[0][1]", 1),
        ("x*sign(x)", 0), ("x*heaviside(x, 0.5)", 0), ("x*floor(x)", 0), ("x*copysign(1, x)", 0), ("x*(x % 1)", 0),
        ("x*atan2(x, x)", 0), ("x*acot(x)", 0), ("(x - 2)*(x//2)", 2),
    ],
)  # fmt: skip
def test_a_kink_of_order_1_is_told(run, program, x):
    (warning, *_) = run("eval", program, f"x={x}", "--json").json["warnings"]
    assert (warning["code"], warning["phase"]) == ("nonsmooth", "backward")
    assert run("eval", program, f"x={x + 0.25}", "--json").json.get("warnings") is None


def test_a_jump_that_a_factor_of_0_removes(run):
    record = run("eval", "x*sign(x)**2", "x=0", "--json").json
    assert record["grad"] == {"x": 1}
    assert "warnings" not in record


@pytest.mark.parametrize(
    "program",
    ["torch.max(x, dim=0)[0]", "torch.min(x, dim=0)[0]", "torch.sort(x)[0][0]", "torch.sort(x, descending=True)[0][0]",
     "F.max_pool1d([[x]], 2, return_indices=True)[0][0, 0, 0]", "cummin(x)[0][1]"],
)  # fmt: skip
def test_a_tie_of_elements_is_told(run, program):
    record = run("eval", f"{program}**2", "x=[1,1]", "--order", "2", "--json").json
    assert record["warnings"]
    assert np.isnan(np.array(record["derivatives"]["x,x"], float)).any()
    assert "warnings" not in run("eval", program, "x=[1,2]", "--json").json


@pytest.mark.parametrize(
    "program", ["torch.max(x, dim=0)[0]*torch.min(x, dim=0)[0]", "cummax(x)[0][1]*cummin(x)[0][1]"]
)
def test_ties_that_cancel(run, program):
    record = run("eval", program, "x=[1,1]", "--order", "2", "--json").json
    assert (record["grad"], record["derivatives"]) == ({"x": [1, 1]}, {"x,x": [[0, 1], [1, 0]]})
    assert "warnings" not in record


def test_an_equality_within_a_loop(run):
    program = "for i in range(2) { if p != 0 { p = p*x[i] } }; p"
    assert run("eval", program, "p=1", "x=[0,2]", "--json").json["grad"] == {"p": 0, "x": [2, 0]}


class TestSeveralNumbers:
    def test_distances(self, run):
        record = run("eval", "exp(-norm(a - b)**2)", "a=[1,2]", "b=[1,2]", "--order", "2", "--json").json
        two = [[2, 0], [0, 2]]
        minus_two = [[-2, 0], [0, -2]]
        assert record["derivatives"] == {"a,a": minus_two, "a,b": two, "b,b": minus_two}
        assert "warnings" not in record

    @pytest.mark.cases(2)
    @pytest.mark.parametrize(
        ("program", "expected"),
        [
            ("norm(x)**2", 2 * np.eye(3)), ("3*std(x)**2", 2 * np.eye(3) - 2 / 3), ("sum(cdist([x], [x + 0])**2)", 0 * np.eye(3)),
            ("matrix_norm([x])**2", 2 * np.eye(3)), ("cosh(norm(x))", np.eye(3)), ("sum(abs(x)**2*[1,2,3])", np.diag([2, 4, 6])),
            ("sqrt(x @ x)**2", 2 * np.eye(3)),
        ],
    )  # fmt: skip
    def test_hessians(self, program, expected):
        compiled = gradcli.compile(program)
        for point in (np.ones(3), np.zeros(3), np.arange(3.0), np.zeros(3)):
            found = compiled.hessian({"x": point})["x,x"]
        np.testing.assert_allclose(found, expected, atol=1e-12)

    def test_only_what_does_not_exist_is_nan(self, run):
        record = run("eval", "relu(x) + x*y + y**2", "x=0", "y=1", "--order", "2", "--json").json
        assert record["derivatives"] == {"x,x": "NaN", "x,y": "NaN", "y,y": 2}

    @pytest.mark.parametrize("program", ["abs(2*x - y)*abs(x)", "abs(x - 4*y)*abs(y)", "max(x, 3*y)*max(x, 9*y)"])
    def test_kinks_between_which_there_are_few_directions(self, run, program):
        record = run("eval", program, "x=0", "y=0", "--order", "2", "--json").json
        assert record["derivatives"]["x,y"] == "NaN"
        assert record["warnings"]

    @pytest.mark.parametrize("program", ["(x - 2*y)*abs(y)/(x - 2*y)", "x*y/(x*y)*abs(x)**2", "1/(1/abs(x - 2*y))"])
    def test_directions_that_have_no_value(self, run, program):
        outcome = run("eval", program, "x=0", "y=0", "--order", "2", "--json")
        assert outcome.json["warnings"] or outcome.json["derivatives"]["x,x"] == 2

    @pytest.mark.slow
    def test_branches_beside_a_removable_point(self, run):
        program = "((x - y)/((x - y) + (x - y)**2))*where(x**2 < x*y, x**2, x*y)"
        record = run("eval", program, "x=0", "y=0", "--order", "2", "--json").json
        assert (record["derivatives"], len(record["warnings"])) == ({"x,x": 0, "x,y": "NaN", "y,y": 0}, 1)

    def test_beside_a_tensor_without_elements(self, run):
        record = run("eval", "abs(y)**2 + sum(x)", "x=[]", "y=0", "--order", "2", "--json").json
        assert record["derivatives"]["y,y"] == 2

    def test_of_tensors_without_elements_alone(self):
        value, found = gradcli.compile("sum(log(x**q))").value_and_grad({"x": np.zeros(0), "q": np.zeros(0)})
        assert (value, {name: d.shape for name, d in found.items()}) == (0, {"x": (0,), "q": (0,)})

    def test_two_kinks_that_agree_along_half_of_all_directions(self, run):
        record = run("eval", "abs(x)*abs(y)", "x=0", "y=0", "--order", "2", "--json").json
        assert record["derivatives"] == {"x,x": 0, "x,y": "NaN", "y,y": 0}

    @pytest.mark.parametrize(
        ("program", "number", "expected"),
        [
            ("sum(abs(x)**2)", 40, 2 * np.eye(40)), ("sum(abs(x)**2)", 500, 2 * np.eye(500)),
            ("norm(x)**2", 200, 2 * np.eye(200)), ("exp(-norm(x)**2)", 100, -2 * np.eye(100)),
            ("sum(abs(x[1:] - x[:-1])**2)", 150, 2 * np.diff(np.eye(150), axis=0).T @ np.diff(np.eye(150), axis=0)),
            ("sum(relu(x)**3)", 120, 0 * np.eye(120)), ("sum(relu(x)**2)", 120, math.nan * np.eye(120)),
            ("norm(x)**2 + abs(x[3])*abs(x[4])", 120, math.nan * np.eye(120)),
        ],
    )  # fmt: skip
    def test_many_numbers(self, program, number, expected):
        found = gradcli.compile(program).hessian({"x": np.zeros(number)})["x,x"]
        np.testing.assert_allclose(found, expected, atol=1e-12)

    @pytest.mark.parametrize(("program", "expected"), [("x**2/(1/abs(x) + 1)", 0), ("1/(1/abs(x) + 1/x**2)", 2)])
    def test_a_pole_on_the_way(self, run, program, expected):
        record = run("eval", f"abs(x)*0 + {program}", "x=0", "--order", "2", "--json").json
        assert (record["grad"]["x"], record["derivatives"]["x,x"]) == (0, expected)

    def test_jacobians(self, run):
        record = run("eval", "where(x == 0, 0, x)*[1, 2]", "x=0", "--jacobian", "--json").json
        assert record["jacobian"] == {"x": [1, 2]}

    def test_a_cotangent(self, run):
        words = ("eval", "where(x == 0, 0, x)", "x=[0,1]", "--grad-output", "[3,5]", "--json")
        assert run(*words).json["grad"] == {"x": [3, 5]}


class TestPython:
    def test_an_equality_decides_no_jacobian(self):
        compiled = gradcli.compile("where(x == 0, 0, x)*[1, 2]")
        for x in (1.0, 0.0, 1.0):
            assert compiled.jacobian({"x": x})["x"].tolist() == [1, 2]

    def test_an_equality_decides_nothing(self):
        compiled = gradcli.compile("where(x == 0, 0, x)*q")
        for x in (0.0, 1.0, 0.0, 0.0):
            assert compiled.value_and_grad({"x": x, "q": 2.0}) == (2.0 * x, {"x": 2.0, "q": x})
        by_position = compiled.compiled(("x", "q"))
        assert [by_position(x, 2.0)[1] for x in (0.0, 1.0)] == [(2.0, 0.0), (2.0, 1.0)]

    def test_rows(self):
        compiled = gradcli.compile("where(x == 0, 0, x)*q")
        _, found = compiled.value_and_grad({"x": np.array([0.0, 1.0]), "q": 3.0}, rows=True)
        assert found["x"].tolist() == [3.0, 3.0]

    def test_sparse_second_derivatives_are_refused(self):
        with pytest.raises(gradcli.GradcliError, match="not smooth here"):
            gradcli.compile("sum(abs(x))").hessian({"x": np.zeros(20)}, sparse=True)


class TestModels:
    def test_second_order_of_an_uncertainty(self, run):
        second = run("propagate", "norm(v)**2", "v=[0,0]±0.1", "--json").json["second_order"]
        assert second == pytest.approx({"mean": 0.02, "u": 0.02})

    @pytest.mark.slow
    def test_a_minimum_of_many_numbers_at_a_removed_kink(self, run):
        record = run("minimize", "norm(x)**2", f"x={[0.0] * 200}", "--json").json
        assert (record["kind"], record["eigenvalues"]) == ("minimum", {"min": 2, "max": 2})

    def test_a_minimum_at_a_removed_kink(self, run):
        record = run("minimize", "norm(x - [1, 2])**2", "x=[0,0]", "--json").json
        assert (record["kind"], record["eigenvalues"]) == ("minimum", {"min": 2, "max": 2})


def test_diff_inside_a_program_knows_no_second_derivative_at_a_kink(run):
    outcome = run("eval", "diff(abs(x)**2, x, 2)", "x=0", "--json")
    assert outcome.json["value"] == "NaN"
    assert run("eval", "diff(abs(x)**2, x)", "x=0", "--json").json["grad"] == {"x": 2}


@pytest.mark.parametrize(
    "program",
    [
        "diff(diff(abs(x)**2, x), x)", "diff(diff(relu(x), x), x)", "z = 2*diff(x*abs(x), x) + 1; diff(z, x)",
        "jacobian(diff(abs(x)**2, x), x)", "hessian(diff(abs(x)**3, x), x)", "diff(diff(relu(x)*w, x), w)",
    ],
)  # fmt: skip
def test_derivatives_of_derivatives_inside_a_program_follow_the_rule_of_order_2(run, program):
    given = ("w=1",) if "w" in program else ()
    assert run("eval", program, "x=0", *given, "--json").json["value"] == "NaN"
    assert run("eval", program, "x=1", *given, "--json").json["value"] in (0, 1, 2, 4, 6)


def test_both_executors_see_a_tie(run, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(100))
    for executor, value in itertools.product(("eager", "compiled"), (f"x=@{tmp_path}/x.npy", "x=0")):
        record = run("eval", "sum(where(x < 0, -x, 2*x))", value, "--executor", executor, "--json").json
        assert [warning["operation"] for warning in record["warnings"]] == ["<"]


def test_the_search_for_limits_is_no_switch_of_the_program(monkeypatch):
    # Whether x/q**1.5 has a limit at q = 0 is found out by evaluating it there.
    monkeypatch.setattr(kinks, "derivatives_at_switch", None)
    program = gradcli.compile("q = x + s; sum(x/q[:]**1.5)")
    value, gradient = program.value_and_grad({"x": np.array([1.0, 0.0]), "s": 1.0})
    assert value == pytest.approx(2**-1.5)
    assert gradient["s"] == pytest.approx(-1.5 * 2**-2.5)
