"""Tests `gradcli check` and `gradcli.gradcheck`: correct derivatives pass, wrong ones are found and named."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

import gradcli

# Programs as people write them, their inputs, and the order up to which they are checked.
RIGHT = [
    ("log(x**q)", {"x": 5.0, "q": 3.0}, 3),
    ("x**2*q**3", {"x": 2.0, "q": 3.0}, 3),
    ("sin(x)*exp(x)", {"x": 1.0}, 5),
    ("a*exp(-t/life)", {"a": 2.5, "t": 3.0, "life": 1.2}, 3),
    ("sum((X@w - y)**2)", {"X": [[1, 2], [3, 4], [5, 6]], "y": [1, 1, 1], "w": [0.5, -0.5]}, 2),
    ("-log(softmax(W@x)[1])", {"W": [[1, 0.2], [0.3, -1], [0.5, 2]], "x": [1, 2]}, 2),
    ("logsumexp(x)", {"x": [1, 2, 1000]}, 1),
    ("sigmoid(x) + softplus(x) + gelu(x) + silu(x)", {"x": 0.3}, 3),
    ("tanh(V@tanh(W@x + b))[0]", {"V": [[1, -1]], "W": [[0.1, 0.2], [0.3, -0.4]], "b": [0, 0], "x": [1, 2]}, 2),
    ("sum(relu(W@x))", {"W": [[1, -2], [3, 1], [0.5, 0.01]], "x": [0.7, 0.3]}, 1),
    ("det(A)", {"A": [[4, 1], [1, 3]]}, 3),
    ("logdet(A@A.T + eye(2))", {"A": [[1, 2], [3, 5]]}, 2),
    ("sum(inv(A))", {"A": [[4, 1], [1, 3]]}, 2),
    ("sum(solve(A, b))", {"A": [[1, 2], [2, 4.000001]], "b": [1, 2]}, 1),
    ("sum(cholesky((A + A.T)/2))", {"A": [[2, 1], [1, 3]]}, 2),
    ("trace(matrix_power(A, 5))", {"A": [[0.5, 0.1], [0.2, 0.3]]}, 2),
    ("norm(x) + std(x) + var(x) + mean(x)", {"x": [1, 2, 4, 8]}, 2),
    ("prod(x)", {"x": [1e-3, 2, 1e3]}, 3),
    ("cumsum(x)[2]*cumprod(x)[1]", {"x": [1, 2, 3]}, 2),
    ("x/sum(x)", {"x": [1, 2, 5]}, 2),
    ("x**2 + y", {"x": 1e8, "y": 1e-8}, 2),
    ("log(x) + 1/y", {"x": 1e-8, "y": 1e8}, 3),
    ("sqrt(x**2 + y**2)", {"x": 1e200, "y": 1e199}, 1),
    ("x + sin(x)", {"x": 1e8}, 1),
    ("sin(1e6*x)", {"x": 1.0}, 2),
    ("1 + x", {"x": 1e-20}, 1),
    ("log(1 + x)", {"x": 1e-18}, 1),
    ("(1e8 + x) - 1e8", {"x": 1.0}, 1),
    ("x**3", {"x": 0.0}, 3),
    ("abs(x)*x", {"x": -3.0}, 2),
    ("where(x > 0, x**2, -x)", {"x": [1, -1, 2]}, 2),
    ("sum(sort(x)*[1, 2, 3]) + median(x) + max(x)", {"x": [3, 1, 2.999]}, 2),
    ("f(n) = 1 if n < 1 else n*f(n - 1); f(x)", {"x": 4.5}, 3),
    ("y = x; while abs(y) < 100 { y = y*2 }; y", {"x": 3.0}, 2),
    ("angle = s*cos(sqrt(9.81/l)*t); diff(angle, t, 2)", {"s": 0.1, "l": 2.0, "t": 0.7}, 2),
    ("y = x; for i in range(5) { y = y - (y**3 - 2*y - a)/(3*y**2 - 2) }; y", {"x": 2.0, "a": 5.0}, 2),
    ("einsum('ij,jk->ik', A, B)", {"A": [[1, 2], [3, 4]], "B": [[1, -1], [2, 0.5]]}, 2),
    ("[r*cos(t), r*sin(t)]", {"r": 2.0, "t": 0.5}, 3),
    ("atan2(y, x) + hypot(x, y)", {"x": 1.0, "y": 2.0}, 3),
    ("sum(softmax(x))", {"x": [1, 2, 3]}, 2),
    ("floor(x) + 0*x", {"x": 2.3}, 1),
    ("maximum(x, y)", {"x": 1.0, "y": 1.0001}, 1),
    ("s*exp(-0.5*((x - m)/s)**2)", {"s": 1e-3, "m": 0.5, "x": 0.501}, 2),
    ("1/(x - 1)", {"x": 1.0001}, 2),
    ("8.314*T/(V - b) - a/V**2", {"T": 300.0, "V": 0.0248, "b": 4e-5, "a": 0.36}, 2),
    ("cube(t) = t**3 backward(g) = 3*g*t**2; sum(cube(x))", {"x": [1, 2]}, 3),
    ("x > 1", {"x": 2.0}, 1),
]


@pytest.mark.parametrize(("program", "inputs", "order"), RIGHT, ids=[case[0] for case in RIGHT])
def test_what_is_right_passes(program, inputs, order):
    report = gradcli.gradcheck(program, inputs, order)
    assert report.ok, report
    assert bool(report) is True
    assert [(row.leaf, row.order) for row in report.rows] == [(n, k) for k in range(1, order + 1) for n in inputs]


def test_a_smooth_program_agrees_to_many_digits():
    assert min(row.digits for row in gradcli.gradcheck("log(x**q)", {"x": 5.0, "q": 3.0}, 2).rows) >= 11


class Sine(gradcli.Function):
    """A Function whose derivative is wrong by `factor`."""

    factor = 1.001

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return gradcli.sin(x)

    @classmethod
    def backward(cls, ctx, g):
        (x,) = ctx.saved_tensors
        return g * gradcli.cos(x) * cls.factor


class Right(Sine):
    factor = 1.0


class TestWrongRules:
    @pytest.mark.parametrize("x", [0.3, -2.0, 1e-8, 1e-3, 40.0, 1e5, 1e8])
    def test_a_function_that_is_wrong_by_a_thousandth(self, x):
        (row,) = gradcli.gradcheck(Sine.apply, [x]).rows
        assert (row.problem, row.agrees) == ("mismatch", False)
        assert row.error == pytest.approx(1e-3, rel=0.01)
        assert row.digits in (2, 3)
        assert row.difference == pytest.approx(math.cos(x), rel=1e-5)
        assert gradcli.gradcheck(Right.apply, [x], 2)

    @pytest.mark.parametrize("around", [lambda y: y, lambda y: gradcli.exp(3 * y), lambda y: (y**2).sum()])
    def test_a_function_inside_another(self, around):
        x = [0.5, 0.2, -1.2]
        assert not gradcli.gradcheck(lambda x: around(Sine.apply(x)), [x])
        assert gradcli.gradcheck(lambda x: around(Right.apply(x)), [x])

    @pytest.mark.parametrize("body", ["cube(x)", "log(cube(x))", "sum(cube([x, 2*x])/x)", "cube(x)*y + y**2"])
    def test_a_clause_that_is_wrong_by_a_thousandth(self, body):
        inputs = {"x": 1.7, "y": 2.0} if "y" in body else {"x": 1.7}
        wrong = gradcli.gradcheck(f"cube(t) = t**3 backward(g) = 3.003*g*t**2; {body}", inputs)
        assert [row.leaf for row in wrong.rows if not row.agrees] == ["x"]
        assert gradcli.gradcheck(f"cube(t) = t**3 backward(g) = 3*g*t**2; {body}", inputs)

    def test_one_entry_of_many(self):
        def function(x, weights):
            return (Right.apply(x) * weights).sum() + Sine.apply(x[1, 0])

        report = gradcli.gradcheck(function, [[[1.0, 2.0], [0.5, 4.0]], np.ones((2, 2))])
        assert [(row.leaf, row.agrees) for row in report.rows] == [("0", False), ("1", True)]
        assert report.rows[0].entry == (1, 0)

    def test_only_the_second_derivative_is_wrong(self):
        class Constant(Sine):
            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * gradcli.cos(x).detach()

        report = gradcli.gradcheck(Constant.apply, [0.7], order=2)
        assert [(row.order, row.problem) for row in report.rows] == [(1, None), (2, "mismatch")]

    def test_a_constant_where_there_is_none(self):
        (row, other) = gradcli.gradcheck("detach(x)*y", {"x": 1.0, "y": 2.0}).rows
        assert (row.leaf, row.reverse, row.difference, row.problem) == ("x", None, 2.0, "mismatch")
        assert other.agrees

    def test_the_tolerance(self):
        assert gradcli.gradcheck(Sine.apply, [0.3], tolerance=0.01)
        assert not gradcli.gradcheck(Sine.apply, [0.3], tolerance=1e-4)


class TestWhereThereIsNoDerivative:
    @pytest.mark.parametrize(
        ("program", "x"),
        [
            ("abs(x)", 0.0), ("abs(x) + 100*x**2", 0.0), ("maximum(x, 2)", 2.0), ("relu(x - 1e5)", 1e5),
            ("norm(x)", [0.0, 0.0]), ("where(x > 1, 2*x, x + 1)", 1.0), ("max(x)", [3.0, 1.0, 3.0]),
            ("sum(abs(x))", [1.0, 0.0]),
        ],
    )  # fmt: skip
    def test_a_kink(self, program, x):
        (row,) = gradcli.gradcheck(program, {"x": x}).rows
        assert (row.problem, row.agrees) == ("kink", False)

    @pytest.mark.parametrize(("program", "x"), [("floor(x)", 2.0), ("sign(x)", 0.0), ("x % 3", 6.0)])
    def test_a_jump(self, program, x):
        (row,) = gradcli.gradcheck(program, {"x": x}).rows
        assert row.problem in ("kink", "unresolved")

    @pytest.mark.parametrize(
        ("program", "x"),
        [("sqrt(x)", 0.0), ("log(x)", 0.0), ("log(x)", -1.0), ("x*2", math.inf), ("x**2.5", 0.0), ("0/x", 0.0)],
    )
    def test_numbers_that_are_not_finite(self, program, x):
        (row,) = gradcli.gradcheck(program, {"x": x}).rows
        assert (row.problem, row.agrees) == ("nonfinite", False)

    @pytest.mark.parametrize(
        ("program", "x"), [("abs(x)", 1e-6), ("floor(x)", 2.0000001), ("log(x)", 1e-12), ("relu(x - 1)", 1.0001)]
    )
    def test_beside_such_a_point_all_is_well(self, program, x):
        assert gradcli.gradcheck(program, {"x": x})

    @pytest.mark.parametrize(
        ("program", "inputs"),
        [("sum(inv(A))", {"A": [[1, 1], [1, 1 + 1e-8]]}), ("sin(hypot(y, 2.35e6))", {"y": 0.18749518624602343})],
    )
    def test_what_no_difference_can_resolve_is_not_called_wrong(self, program, inputs):
        (row,) = gradcli.gradcheck(program, inputs).rows
        assert row.problem == "unresolved"


class TestCallables:
    def test_values_of_every_kind(self):
        def function(x, y, z):
            return (gradcli.exp(x) * y).sum() + z**2

        inputs = [gradcli.tensor([1.0, 2.0], dtype="float32"), np.array([[3], [4]]), 5]
        assert [row.leaf for row in gradcli.gradcheck(function, inputs).rows] == ["0", "1", "2"]
        assert gradcli.gradcheck(lambda x: x**3, 2.0, order=4)
        assert gradcli.gradcheck(lambda a, b: a / b, {"b": 2.0, "a": 1.0}).rows[0].leaf == "b"

    def test_a_compiled_program(self):
        assert gradcli.gradcheck(gradcli.compile("x*y"), {"x": 1.0, "y": gradcli.tensor([1.0, 2.0])})
        with pytest.raises(gradcli.GradcliError, match="a mapping of names"):
            gradcli.gradcheck("x*y", [1.0, 2.0])

    def test_within_no_grad(self):
        with gradcli.no_grad():
            assert gradcli.gradcheck(gradcli.sin, [1.0], order=2)

    def test_inputs_are_left_alone(self):
        array = np.array([1.0, 2.0])
        tensor = gradcli.tensor([1.0, 2.0], requires_grad=True)
        gradcli.gradcheck(lambda x, y: (x * y).sum(), [array, tensor])
        assert array.tolist() == [1.0, 2.0]
        assert tensor.grad is None

    def test_the_same_twice(self):
        inputs = {"x": [0.1, 0.2, 0.3]}
        assert gradcli.gradcheck("exp(x)*x", inputs, 3) == gradcli.gradcheck("exp(x)*x", inputs, 3)

    def test_nothing_to_check(self):
        for inputs in ({}, {"x": np.zeros((0, 2))}):
            with pytest.raises(gradcli.GradcliError, match="nothing to differentiate by"):
                gradcli.gradcheck("sum(x)" if inputs else "1 + 1", inputs)
        with pytest.raises(gradcli.GradcliError, match="an order of 1 or more"):
            gradcli.gradcheck("x", {"x": 1.0}, order=0)

    def test_an_error_at_the_point_is_raised(self):
        with pytest.raises(gradcli.GradcliError, match="do not fit"):
            gradcli.gradcheck("x@y", {"x": [1.0, 2.0], "y": [1.0, 2.0, 3.0]})

    def test_scalars_need_no_array_library(self):
        code = (
            "import sys, gradcli; assert gradcli.gradcheck('log(x**q)', {'x': 5.0, 'q': 3.0}, 2); "
            "assert 'numpy' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


class TestCommand:
    def test_the_table(self, run):
        outcome = run("check", "log(x**q)", "x=5", "q=3")
        lines = [line.split() for line in outcome.out.splitlines()]
        assert (outcome.status, outcome.err) == (0, "")
        assert lines[0] == ["leaf", "order", "index", "reverse", "difference", "digits", "agrees"]
        assert [line[0] for line in lines[1:]] == ["x", "q"]
        assert lines[1][3] == "0.6"
        assert {line[-1] for line in lines[1:]} == {"yes"}

    def test_a_clause_with_a_deliberate_error(self, run):
        outcome = run("check", "f(a, b) = a*b backward(g) = g*b, 1.001*g*a; f(x, y) + z", "x=2", "y=3", "z=1")
        assert outcome.status == 1
        rows = {line.split()[0]: line.split()[-1] for line in outcome.out.splitlines()[1:]}
        assert rows == {"x": "yes", "y": "no", "z": "yes"}
        assert outcome.err.startswith("error: reverse mode and differences disagree on the derivative by 'y'\n")
        assert "hint: check the 'backward' clause of 'f'" in outcome.err
        assert "^^^" in outcome.err

    def test_json(self, run):
        outcome = run("check", "log(x**q)", "x=5", "q=[3,4]", "--order", "2", "--json")
        record = outcome.json
        assert outcome.status == 0
        assert list(record) == ["schema", "program", "backend", "device", "agrees", "checks"]
        assert (record["schema"], record["program"], record["agrees"]) == ("gradcli/1", "log(x**q)", True)
        assert (record["backend"], record["device"]) == ("numpy", "cpu")
        assert [(c["leaf"], c["order"]) for c in record["checks"]] == [("x", 1), ("q", 1), ("x", 2), ("q", 2)]
        keys = ["leaf", "order", "index", "reverse", "difference", "error", "digits", "agrees"]
        assert all(list(check) == keys for check in record["checks"])
        assert record["checks"][0]["index"] == []
        assert len(record["checks"][1]["index"]) == 1

    def test_a_mismatch_in_json(self, run):
        outcome = run("check", "f(a) = a**2 backward(g) = g*a; f(x)", "x=3", "--json")
        (check,) = outcome.json["checks"]
        assert outcome.status == 1
        assert outcome.json["agrees"] is check["agrees"] is False
        assert (check["leaf"], check["reverse"], check["problem"]) == ("x", 3.0, "mismatch")
        assert check["difference"] == pytest.approx(6)
        assert check["error"] == pytest.approx(0.5)
        assert "'x'" in outcome.error["message"]
        assert (outcome.error["line"], outcome.error["column"]) == (1, 13)

    def test_what_is_not_finite_in_json(self, run):
        (check,) = run("check", "sqrt(x)", "x=0", "--json").json["checks"]
        assert (check["reverse"], check["difference"], check["problem"]) == ("Infinity", "NaN", "nonfinite")

    @pytest.mark.parametrize(
        ("program", "verdict", "message"),
        [
            ("y = x; abs(y)", "kink", "'abs' is not differentiable here"),
            ("sqrt(x)", "not finite", "the derivative of 'sqrt' is inf"),
            ("floor(x)", "unknown", "do not settle"),
        ],
    )
    def test_what_cannot_be_checked(self, run, program, verdict, message):
        outcome = run("check", program, "x=0")
        assert outcome.status == 1
        assert outcome.out.splitlines()[1].endswith(verdict)
        assert message in outcome.err

    def test_a_hand_written_clause_at_a_kink_of_an_array(self, run):
        outcome = run("check", "[sum(abs(x)), 1]", "x=[1,0]")
        assert (outcome.status, outcome.out.splitlines()[1].split()[2]) == (1, "[1]")

    def test_no_clause_to_blame(self, run):
        assert "'detach'" in run("check", "detach(x)*x", "x=2").err

    def test_quiet(self, run):
        outcome = run("check", "detach(x)*x", "x=2", "--quiet")
        assert (outcome.status, outcome.err) == (1, "")

    def test_wrt_const_and_files(self, run, tmp_path):
        path = tmp_path / "f.grad"
        path.write_text("x*q\n")
        (tmp_path / "v.json").write_text('{"x": 2, "q": 3}')
        words = ("check", "--file", str(path), "--vars", str(tmp_path / "v.json"), "--json")
        assert [c["leaf"] for c in run(*words).json["checks"]] == ["x", "q"]
        assert [c["leaf"] for c in run(*words, "--wrt", "q").json["checks"]] == ["q"]
        assert [c["leaf"] for c in run(*words, "--const", "q").json["checks"]] == ["x"]

    def test_a_program_may_start_with_a_minus(self, run):
        assert run("check", "-x**2", "x=3").status == 0

    def test_the_tolerance(self, run):
        words = ("check", "f(a) = a**2 backward(g) = 2.002*g*a; f(x)", "x=3")
        assert run(*words).status == 1
        assert run(*words, "--tolerance", "0.01").status == 0

    @pytest.mark.all_cases
    @pytest.mark.parametrize(
        "words",
        [
            (), ("x",), ("1 + 1",), ("x", "x=1", "--order", "0"), ("x", "x=1", "--tolerance", "0"),
            ("x", "x=1", "--tolerance", "2"), ("x", "x=1", "--const", "x"), ("x", "x=1", "y=2"), ("lgo(x)", "x=1"),
            ("x", "x=1", "--jacobian"), ("x +", "x=1"), ("x", "x=1", "--order", "two"), ("-", "--vars", "-"),
        ],
    )  # fmt: skip
    def test_wrong_usage(self, run, words):
        outcome = run("check", *words)
        assert (outcome.status, outcome.out) == (2, "")
        assert outcome.err.startswith("error: ")

    def test_limits(self, run):
        steps = run("check", "while x < 1 { x = x*1 }; x", "x=0", "--max-steps", "1000")
        assert (steps.status, "--max-steps" in steps.err) == (1, True)
        elements = run("check", "sum(x)", "x=zeros(1000)", "--max-elements", "100000")
        assert (elements.status, "--max-elements" in elements.err) == (1, True)

    def test_help(self, run):
        shown = run("check", "--help").out
        assert "gradcli check 'log(x**q)' x=5 q=3" in shown
        assert "--tolerance" in shown
