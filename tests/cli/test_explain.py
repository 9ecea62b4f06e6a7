"""Tests `gradcli explain`: the numbers are those of `gradcli eval`, each product and each equation holds."""

from __future__ import annotations

import io
import itertools
import math
import re

import numpy as np
import pytest

from gradcli.cli.main import main
from gradcli.cli.process.environment import Environment

# Programs with their values.
PROGRAMS = [
    ("log(x**q)", "x=5", "q=3"),
    ("y = x**q; z = log(y) + sqrt(y)", "x=5", "q=3"),
    ("sin(x)*exp(-x**2/2)", "x=1.3"),
    ("a*x/b*y - c/(x + y) + 3", "a=1.5", "b=2", "c=0.3", "x=1.1", "y=0.7"),
    ("x[0]**2 + 3*x[1]*x[0]", "x=[1,2]"),
    ("sum((X@w - y)**2)", "X=[[1,2],[3,4]]", "w=[1,2]", "y=[1,1]"),
    ("dot(x, y)/(norm(x)*norm(y))", "x=[1,2]", "y=[3,4]"),
    ("sum(a*x) + mean(a)", "a=[1,2,3]", "x=2"),
    ("f(t) = t**2; if x > 0 { y = f(x) } else { y = -x }; for i in range(3) { y = y*x + i }; y", "x=3"),
    ("x*exp(-abs(x)) if x < 1 else x**2", "x=-0.5"),
    ("f(n) = 1 if n < 1 else x*f(n - 1); f(3)", "x=2"),
    ("def f(t):\n  u = sin(t)\n  return u*t\nf(x) + f(2*x)", "x=0.4"),
    ("a, b = x*2, x*3; a*b", "x=2"),
    ("y = 2*x; y += x**2; x = y*y; x + y", "x=3"),
    ("y = zeros(2); y[0] = x; y[1] = x*x; sum(y)", "x=2"),
    ("sq(t) = t*t backward(g) = g*2*t; sq(x)*3", "x=2"),
    ("diff(x**3, x)*y", "x=2", "y=3"),
    ("where(x > 0, sqrt(x), 0) + y", "x=-1", "y=2"),
    ("max(x, y)*clip(x, 0, 1) + detach(x)*y", "x=2", "y=1"),
    ("y = x; for i in range(40) { y = cos(y)*q }; log(y)", "x=1", "q=0.9"),
    ("f(t) = sin(t)*t + exp(-t)/t; g(t) = f(t)*f(t + 1) + f(t/2)/f(3*t); g(x) + g(x**2) + g(x*3)", "x=0.7"),
    ("+".join(f"sin({i}*x)" for i in range(1, 90)), "x=0.3"),
    ("x = [v*v for v in x]; sum(x)*x[0]", "x=[1,2,3]"),
    ("integral(lambda t: sin(t*x), 0, x)*x", "x=2"),
]


def near(one, other):
    return np.allclose(np.asarray(one, float), np.asarray(other, float), rtol=1e-9, atol=1e-12, equal_nan=True)


class TestSteps:
    @pytest.mark.parametrize("words", PROGRAMS, ids=[p[0][:40] for p in PROGRAMS])
    @pytest.mark.parametrize("expand", [[], ["--expand"]], ids=["folded", "expanded"])
    def test_the_numbers_are_those_of_eval(self, run, words, expand):
        found = run("explain", *words, "--json", *expand).json
        expected = run("eval", *words, "--json", "--no-rewrite").json
        assert near(found["value"], expected["value"])
        assert found["grad"].keys() == expected["grad"].keys()
        for name, gradient in expected["grad"].items():
            assert near(found["grad"][name], gradient)

    @pytest.mark.parametrize("words", PROGRAMS, ids=[p[0][:40] for p in PROGRAMS])
    def test_the_products_add_up_to_each_gradient(self, run, words):
        found = run("explain", *words, "--json").json
        steps = [s for s in found["steps"] if "terms" in s]
        for item in [*steps, *found["gradients"].values()]:
            if not item["terms"]:
                continue
            assert near(sum(np.asarray(t["product"]) for t in item["terms"]), item["gradient"])
            for term in item["terms"]:
                numbers = [term.get("local"), term.get("gradient")]
                if all(isinstance(n, float) and math.isfinite(n) for n in numbers):
                    assert near(term["gradient"] * term["local"], term["product"])

    @pytest.mark.cases(4)
    @pytest.mark.parametrize("words", PROGRAMS, ids=[p[0][:40] for p in PROGRAMS])
    def test_each_formula_has_the_number_beside_it(self, run, words):
        found = run("explain", *words, "--json", "--expand").json
        known = dict(found["inputs"])
        for step in found["steps"]:
            if "label" not in step:
                continue
            for local in step["local"]:
                if "formula" in local and "value" in local and "[" not in local["formula"]:
                    names = {n: v for n, v in (known | step.get("with", {})).items() if n.isidentifier()}
                    reads = set(re.findall(r"[^\W\d]\w*", local["formula"]))
                    values = [f"{n}={v}" for n, v in names.items() if n in reads]
                    done = run("eval", local["formula"], *values, "--no-grad", "--json")
                    assert near(np.broadcast_to(done.json["value"], np.shape(local["value"])), local["value"])
            known[step["label"]] = step["value"]

    def test_what_is_printed(self, run):
        assert run("explain", "y = x**q; log(y)", "x=5", "q=3").out == (
            "x = 5.0\n"
            "q = 3.0\n"
            "f = 4.8283137373023015\n"
            "\n"
            "Steps, with their local derivatives\n"
            "  y = x**q = 125.0\n"
            "    ∂y/∂x = q*x**(q - 1) = 75.0\n"
            "    ∂y/∂q = x**q*log(x) = 201.17973905426254\n"
            "  f = log(y) = 4.8283137373023015\n"
            "    ∂f/∂y = 1/y = 0.008\n"
            "\n"
            "Gradients, back from f: a sum over the steps that use a value\n"
            "  df/dy = ∂f/∂y = 0.008\n"
            "  df/dx = df/dy · ∂y/∂x = 0.008 · 75.0 = 0.6\n"
            "  df/dq = df/dy · ∂y/∂q = 0.008 · 201.17973905426254 = 1.6094379124341003\n"
        )

    def test_names_are_those_of_the_program(self, run):
        found = run("explain", "f(t) = t*t; v1 = 2*x; y = f(v1); y = y + 1; y*x", "x=2", "--json").json
        assert [s["label"] for s in found["steps"]] == ["v1", "y", "y_2", "F"]
        assert [s["text"] for s in found["steps"]] == ["2*x", "v1*v1", "y + 1", "y_2*x"]

    def test_brackets_that_only_group_are_left_out(self, run):
        found = run("explain", "sin((x + 1))*(x - 2) + max((x), x**2)/2*x**3", "x=3", "--json").json
        assert [s["text"] for s in found["steps"]] == [
            "x + 1", "sin(v1)", "x - 2", "v2*v3", "x**2", "max(x, v5)", "x**3", "v6/2*v7", "v4 + v8",
        ]  # fmt: skip
        assert run("explain", "( (x + 1) )**2", "x=3", "--json").json["steps"][0]["text"] == "x + 1"

    def test_the_branch_that_was_taken(self, run):
        program = "if x > 0 { y = x**2 } else { y = -x }; y if y > 10 else 2*y"
        found = run("explain", program, "x=-3", "--json").json
        branches = [s for s in found["steps"] if s["kind"] == "branch"]
        assert [(b["text"], b["truth"], b["taken"]) for b in branches] == [
            ("x > 0", False, "y = -x"),
            ("y > 10", False, "2*y"),
        ]
        out = run("explain", program, "x=-3").out
        assert "x > 0 is false, so y = -x is computed" in out
        assert run("explain", "y = x; if x > 5 { y = 0 }; y", "x=2").out.count("so nothing is computed") == 1

    def test_the_rounds_of_a_loop(self, run):
        out = run("explain", "y = x; for i in range(2) { y = y*x + i }; y", "x=3").out
        assert "for i in range(2), round 2: i = 1.0" in out
        assert "with i = 1.0: y_2 = v2 + i" in out

    def test_long_programs_are_folded(self, run):
        loop = "y = x; for i in range(1000) { y = cos(y)*q }; log(y)"
        found = run("explain", loop, "x=1", "q=0.9", "--json").json
        assert [(s["kind"], s["label"]) for s in found["steps"]] == [("loop", "y"), ("step", "f")]
        assert found["steps"][0]["rounds"] == 1000
        calls = "f(t) = sin(t)*t + exp(-t)/t; " + "+".join(f"f({i}*x)" for i in range(1, 12))
        found = run("explain", calls, "x=0.5", "--json").json
        assert sum(s["kind"] == "function" for s in found["steps"]) == 11
        assert len(run("explain", calls, "x=0.5", "--json", "--expand").json["steps"]) > 50

    def test_only_the_names_asked_for(self, run):
        found = run("explain", "c = 2*q; x*c", "x=2", "q=3", "--wrt", "x", "--json").json
        assert [s["text"] for s in found["steps"]] == ["x*c"]
        assert found["steps"][0]["with"] == {"c": 6.0}
        assert found["grad"] == {"x": 6.0}

    def test_a_value_that_depends_on_nothing(self, run):
        assert run("explain", "3").out == "f = 3.0\n"
        assert run("explain", "x", "x=2").out.splitlines()[-1] == "  dx/dx = 1.0"
        assert run("explain", "0*2 + round(x)*0", "x=2", "--json").json["grad"] == {"x": 0.0}
        assert run("explain", "x > 1", "x=2", "--json").json["grad"] == {"x": None}
        assert run("explain", "2*y + (x > 1)", "x=2", "y=1").out.splitlines()[-2] == "  f does not depend on x"

    def test_a_branch_that_was_not_taken_counts_nothing(self, run):
        out = run("explain", "where(x > 0, sqrt(x), 0)", "x=-1").out
        assert "df/dx = df/dv1 · ∂v1/∂x = 0 = 0.0" in out

    def test_a_stable_form_of_eval_is_named(self, run):
        done = run("explain", "log(x**q)", "x=1e200", "q=3")
        assert "the value is inf by these steps, and 1381.5" in done.err
        assert run("explain", "abs(x)", "x=0").err.startswith("warning: 'abs' is not differentiable here")
        assert run("explain", "abs(x)", "x=0", "--quiet").err == ""


class TestSecondOrder:
    @pytest.mark.parametrize(
        "words",
        [
            ("log(x**q)", "x=5", "q=3"),
            ("y = sin(x)*q; y*exp(y)/x", "x=1.2", "q=0.3"),
            ("f(t) = t**3; f(sin(x)) + f(x*y)", "x=0.4", "y=2"),
            ("y = x; for i in range(3) { y = y*x + i*y**2 }; y", "x=0.7"),
        ],
    )
    def test_the_numbers_are_those_of_eval(self, run, words):
        found = run("explain", *words, "--order", "2", "--json").json
        expected = run("eval", *words, "--order", "2", "--json").json["derivatives"]
        seconds = {key: value for key, value in expected.items() if "," in key}
        assert found["derivatives"].keys() == seconds.keys()
        for key, value in seconds.items():
            assert near(found["derivatives"][key], value)
            for step in found["second"][key]:
                assert near(sum(t["product"] for t in step["terms"]), step["second"])
                for term in step["terms"]:
                    assert near(math.prod(f["value"] for f in term["factors"]), term["product"])

    def test_tensors_are_refused(self, run):
        done = run("explain", "sum(x*x)", "x=[1,2]", "--order", "2")
        assert done.status == 1
        assert "--order 2 explains formulas of numbers" in done.err


FORMULAS = [
    "x**2*sin(3*x)", "log(x**q)", "a*exp(-x**2/2)", "(x + 1)/(x**2 + 1)", "1/(1 + exp(-x))", "x**x", "a**x", "2**x - sqrt(1 + x**2)",
    "-x**3/3 + 2x - 5", "x*(-a) - -x", "atan2(x**2, x)", "tan(x)/x", "x!", "x²·q", "sqrt(x)*sqrt(x + a)*(x - q)",
    "x**2 if x > 0 else -x", "where(x > 3, x, sin(x))", "y = x**q; log(y)/y", "f(t) = t**2*sin(t); f(2*x) + 3",
    "def f(t, n):\n  y = t\n  for i in range(3) { y = y*t + n }\n  return y\nf(x**2, q)*x", "z = x*log(x)", "hypot(x, 2*x)",
    "exp(sin(cos(x)))", "(x + a)**(q*x)", "log1p(x)*expm1(x/a)", "erf(x)/gamma(x + 1)", "x % 2 + floor(x)*x", "a - (x - (q - x))",
    "1/x", "a/x**2", "abs(x - 1)*sign(x)", "sigmoid(q*x)*tanh(x/2)", "(x**2 + 1)*(x - 1)/(x + 2)", "-(x + 1)**2", "-x*-x", "x**-2",
    "(a*x + q)**0.5", "np.sin(x)*math.pi", "max(x, a)*min(x, q)", "x.sin()*x", "e**(-x)", "asin(x/9)", "acosh(x + 2)",
]  # fmt: skip


class TestRules:
    """`--symbolic`."""

    @pytest.mark.cases(4)
    @pytest.mark.parametrize("program", FORMULAS)
    def test_each_line_is_an_equation_that_holds(self, run, program):
        names = {"x": 1.3, "q": 1.7, "a": 0.6}
        done = run("explain", program, "--symbolic", "--wrt", "x", "--order", "2", "--json")
        assert done.status == 0, done.err
        for derivation in done.json["derivations"]:
            before = "".join(f"{statement}\n" for statement in derivation["definitions"])
            for line in derivation["rules"]:
                sides = [value_of(run, before + line[side], names) for side in ("left", "right")]
                assert near(*sides), line

    def test_what_is_printed(self, run):
        assert run("explain", "x**2*sin(3*x)", "--symbolic", "x=2").out == (
            "The derivative by x\n"
            "  product rule: d/dx(x**2*sin(3*x)) = d/dx(x**2)*sin(3*x) + x**2*d/dx(sin(3*x))\n"
            "    power rule: d/dx(x**2) = 2*x\n"
            "    chain rule with the derivative of sin: d/dx(sin(3*x)) = cos(3*x)*d/dx(3*x)\n"
            "      constant factor rule: d/dx(3*x) = 3\n"
            "  together: d/dx(x**2*sin(3*x)) = x*(3*x*cos(3*x) + 2*sin(3*x))\n"
            "  at x = 2.0: d/dx(x**2*sin(3*x)) = 10.404381447008689\n"
        )

    @pytest.mark.parametrize(
        ("program", "rule"),
        [
            ("x + 1", "sum rule"),
            ("3*x", "constant factor rule"),
            ("x*sin(x)", "product rule"),
            ("x/sin(x)", "quotient rule"),
            ("x**3", "power rule"),
            ("2**x", "exponential rule"),
            ("sin(2*x)", "chain rule with the derivative of sin"),
            ("(2*x)**3", "chain rule with the power rule"),
        ],
    )
    def test_rules_have_the_names_of_textbooks(self, run, program, rule):
        found = run("explain", program, "--symbolic", "--wrt", "x", "--json")
        assert found.json["derivations"][0]["rules"][0]["rule"] == rule

    def test_a_name_that_the_program_does_not_read_is_refused(self, run):
        done = run("explain", "q", "q=1", "--symbolic", "--wrt", "x")
        assert "the program does not read 'x'" in done.err

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("y = x; for i in range(3) { y = y*y }; y",), "a branch, a loop or a change"),
            (("if x > 0 { y = x } else { y = -x }; y",), "a branch, a loop or a change"),
            (("x[0]**2",), "this is none"),
            (("x@y",), "'@' is no operator of them"),
            (("sum(x)", "x=[1,2]"), "'x' is a tensor"),
            (("f(t) = t*x; f(2)",), "'f' reads more than its parameters"),
            (("x = x + 1; x",), "'x' has two values"),
            (("sum([x, x**2])",), "this is no number"),
            (("diff(x**3, x)",), "'diff' is no function of numbers"),
            (("detach(x)*x",), "'detach' is no function of numbers"),
            (("grad(f)(x)",), "this is none"),
        ],
    )
    def test_what_is_no_formula_of_numbers(self, run, words, message):
        done = run("explain", *words, "--symbolic", "--wrt", "x")
        assert done.status != 0
        assert message in done.err


def value_of(run, program, names):
    reads = set(re.findall(r"[^\W\d]\w*", program))
    values = [f"{n}={v}" for n, v in names.items() if n in reads]
    done = run("eval", program, *values, "--no-grad", "--json")
    assert done.status == 0, (program, done.err)
    return done.json["value"]


class TestFormats:
    @pytest.mark.parametrize("words", PROGRAMS, ids=[p[0][:40] for p in PROGRAMS])
    @pytest.mark.parametrize("form", ["latex", "markdown"])
    def test_braces_and_dollars_are_paired(self, run, words, form):
        out = run("explain", *words, "--to", form).out
        out = re.sub(r"\\[{}$\\]", "", out)
        for line in out.splitlines():
            assert line.count("{") == line.count("}")
            assert not line.count("$") % 2
        assert out.count(r"\left") == out.count(r"\right")

    def test_latex(self, run):
        lines = run("explain", "log(x**q)", "x=5", "q=3", "--to", "latex").out.splitlines()
        assert r"  \quad \frac{\partial f}{\partial v_{1}} &= \frac{1}{v_{1}} = 0.008" in lines
        out = run("explain", "x**2*sin(3*x)", "--symbolic", "--to", "latex").out
        assert r"\frac{\mathrm{d}}{\mathrm{d}x}\left(x^{2}\right) &= 2 x && \text{(power rule)}" in out

    def test_markdown(self, run):
        out = run("explain", "y_1 = x**2 if x > 0 else 0; y_1", "x=5", "--to", "markdown").out
        assert "### Steps, with their local derivatives\n" in out
        assert "- `x > 0` is true, so `x**2` is computed\n" in out
        assert r"- $y_{1} = x^{2} = 25.0$" in out
        out = run("explain", "y = x; if x > 0 { if x > 1 { y = x**2 } }; y", "x=5", "--to", "markdown").out
        assert "- `x > 0` is true, so `if x > 1 { y = x**2 }` is computed\n" in out

    @pytest.mark.parametrize("columns", [40, 80])
    def test_a_terminal_is_not_overrun(self, columns):
        words = ("explain", "y = sin(x)*x; z = y*log(y)/(1 + y**2); z + y", "x=1.3")
        out = io.StringIO()
        out.isatty = lambda: True  # type: ignore[method-assign]
        assert main(words, Environment(io.StringIO(), out, io.StringIO(), {"COLUMNS": str(columns)})) == 0
        assert max(map(len, out.getvalue().splitlines())) <= columns

    def test_other_encodings(self):
        out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        assert main(("explain", "x**2", "x=3", "--order", "2"), Environment(None, out, io.StringIO(), {})) == 0
        assert b"d^2f/dx^2" in out.buffer.getvalue()

    def test_wrong_usage(self, run):
        for words, message in (
            (("x", "x=1", "--to", "txt"), "there is no format 'txt'"),
            (("x", "x=1", "--json", "--to", "latex"), "--json and --to latex contradict each other"),
            (("x", "x=1", "--order", "3"), "--order is 1 or 2 here"),
            (("x*q", "x=1"), "unknown name 'q'"),
            (("x*2", "x=[1,2]"), "the value has shape [2]"),
        ):
            done = run("explain", *words)
            assert done.status
            assert message in done.err


def test_compositions_add_up(run):
    """Compositions of a few operators, in all ways that fit, have the gradient of eval."""
    parts = ["x", "sin({})", "({})*y", "({})**2", "exp(-({}))", "1/(1 + ({})**2)", "({} - y)/2"]
    for outer, inner in itertools.product(parts[1:], repeat=2):
        program = outer.format(inner.format("x")) + " + x"
        words = (program, "x=0.7", *(["y=1.1"] if "y" in program else []), "--json")
        found, expected = (run(command, *words).json["grad"] for command in ("explain", "eval"))
        assert all(near(found[name], value) for name, value in expected.items()), program


def test_without_values_the_rules_are_explained(run):
    outcome = run("explain", "x^2*sin(x)")
    assert outcome.out == run("explain", "x^2*sin(x)", "--symbolic").out
    assert outcome.err == "note: these are the rules; values, as in x=1, explain the steps of a run\n"
    assert run("explain", "x^2*sin(x)", "--quiet").err == ""
    assert "unknown name 'q'" in run("explain", "log(x**q)", "x=5").err
    assert "unknown name 'x'" in run("explain", "y = x; for i in range(3) { y = y*x }; y").err
    assert run("explain", "x^2", "--json").error["message"] == "unknown name 'x'"


class TestComplexNumbers:
    """The chain rule of a complex value, each step of which is analytic."""

    @pytest.mark.parametrize(
        ("program", "given"),
        [
            ("exp(1j*w*t)*z", {"w": 2.0, "t": 1.5, "z": 1 - 2j}),
            ("y = z*1j; for k in range(3) { y = y*z + k }; y", {"z": 1 + 1j}),
            ("log(z**2)/sinc(w*z)", {"z": -1 + 2j, "w": 0.3}),
        ],
    )
    def test_the_products_add_up_to_the_derivatives_of_eval(self, run, program, given):
        words = [f"{name}={value}".replace("(", "").replace(")", "") for name, value in given.items()]
        found = run("explain", program, *words, "--json").json
        expected = run("eval", program, *words, "--json").json
        assert "warnings" not in found
        assert _number(found["value"]) == pytest.approx(_number(expected["value"]))
        for name in given:
            total = found["gradients"][name]
            assert _number(total["gradient"]) == pytest.approx(_number(expected["grad"][name]))
            products = [_number(t["gradient"]) * _number(t["local"]) for t in total["terms"]]
            assert sum(products) == pytest.approx(_number(total["gradient"]))

    def test_what_is_written(self, run):
        text = run("explain", "1j*x**2", "x=1").out
        assert "  v1 = x**2 = 1.0+0.0j\n    ∂v1/∂x = 2*x = 2.0+0.0j\n" in text
        assert "df/dx = df/dv1 · ∂v1/∂x = (0.0+1.0j) · (2.0+0.0j) = 0.0+2.0j" in text
        assert "f &= \\mathrm{i} v_{1} = 0.0+1.0j" in run("explain", "1j*x**2", "x=1", "--to", "latex").out

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["abs(z)**2", "z=1+2j"], "the chain rule is explained for a complex value, and this one is real"),
            (["z*conj(z)**2", "z=1+2j"], "not holomorphic"),
            (["abs(w)*1j", "w=2"], "where each step is analytic, and 'abs' is not"),
            (["1j*x**2", "x=2", "--order", "2"], "of second order is explained for real numbers"),
        ],
    )
    def test_what_is_not_explained(self, run, words, message):
        outcome = run("explain", *words)
        assert outcome.status == 1
        assert message in outcome.err
        assert "internal" not in outcome.err


def _number(value):
    return complex(value["re"], value["im"]) if isinstance(value, dict) else value


def test_rules_of_a_name_that_a_loop_changes_are_refused(run):
    done = run("explain", "for i in range(3) { x = x*(i + 1) }; x", "--symbolic")
    assert "--symbolic explains formulas of numbers, and a branch, a loop or a change of a tensor is none" in done.err
