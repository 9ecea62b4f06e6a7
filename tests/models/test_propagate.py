"""Tests `gradcli propagate` and `gradcli.propagate`."""

from __future__ import annotations

import contextlib
import json
import math
import re

import mpmath
import numpy as np
import pytest

import gradcli
from gradcli import GradcliError


class TestValues:
    @pytest.mark.parametrize(
        ("text", "value", "u"),
        [
            ("5.0±0.1", 5.0, 0.1),
            ("5.0+-0.1", 5.0, 0.1),
            ("5.0+/-0.1", 5.0, 0.1),
            ("5.0 ± 0.1", 5.0, 0.1),
            ("5.0(1)", 5.0, 0.1),
            ("-5.00(12)", -5.0, 0.12),
            ("5(1)", 5.0, 1.0),
            ("1.2345(67)e-7", 1.2345e-7, 6.7e-10),
            ("100.02147(0.00035)", 100.02147, 0.00035),
            ("-5.0±2%", -5.0, 0.1),
            ("2*pi±1e-3", 2 * math.pi, 1e-3),
            ("sqrt(4)±1/10", 2.0, 0.1),
            ("~normal(5, 0.1)", 5.0, 0.1),
            ("~uniform(4, 10)", 7.0, 6 / math.sqrt(12)),
            ("~triangular(0, 6)", 3.0, math.sqrt(1.5)),
            ("~triangular(0, 6, 0)", 2.0, math.sqrt(2)),
            ("~trapezoidal(0, 6, 0.5)", 3.0, math.sqrt(1.875)),
            ("~curvilinear(0, 6, 0.3)", 3.0, math.sqrt(3.01)),
            ("~arcsine(0, 6)", 3.0, math.sqrt(4.5)),
            ("~lognormal(0, 0.5)", math.exp(0.125), math.sqrt(math.expm1(0.25) * math.exp(0.25))),
            ("~exponential(2)", 2.0, 2.0),
            ("~gamma(4, 0.5)", 2.0, 1.0),
            ("~student(10, 5, 2)", 5.0, 2 * math.sqrt(10 / 8)),
            ("~beta(2, 6)", 0.25, math.sqrt(12 / (64 * 9))),
            ("~beta(2, 6, 1, 5)", 2.0, 4 * math.sqrt(12 / (64 * 9))),
            ("~poisson(9)", 9.0, 3.0),
        ],
    )
    def test_a_number(self, run, text, value, u):
        found = run("propagate", "x", f"x={text}", "--json").json
        assert (found["value"], found["u"]) == (pytest.approx(value, rel=1e-15), pytest.approx(u, rel=1e-14))

    def test_students_distribution_needs_a_kurtosis(self, run):
        assert "it is student(dof above 4, location, scale)" in run("propagate", "x", "x=~student(3, 5, 0.1)").err

    @pytest.mark.parametrize("text", ["~student(4, 0, 1)", "~beta(0, 1)", "~beta(1, 2, 3, 3)", "~poisson(0)"])
    def test_parameters_that_a_family_does_not_have(self, run, text):
        done = run("propagate", "x", f"x={text}")
        assert (done.status, "distribution" in done.err) == (2, True)

    @pytest.mark.parametrize("text", ["[1±0.1, 2±0.2]", "[1.0(1), 2.0(2)]", "[1, 2]±10%", "[1, 2]±[0.1, 0.2]"])
    def test_an_array(self, run, text):
        found = run("propagate", "x[0]*x[1]", f"x={text}", "--json").json
        assert (found["value"], found["u"]) == (2.0, pytest.approx(math.hypot(2 * 0.1, 0.2)))
        assert [each["name"] for each in found["budget"]] == ["x[0]", "x[1]"]

    @pytest.mark.parametrize("family", ["triangular(0, 6, 1)", "trapezoidal(0, 6, 0.5)", "curvilinear(0, 6, 1)",
                                        "arcsine(0, 6)", "lognormal(0, 0.5)", "exponential(2)", "gamma(4, 0.5)",
                                        "normal(1, 2)", "uniform(1, 2)", "student(20, 1, 2)", "beta(2, 6, 1, 5)",
                                        "poisson(9)"])  # fmt: skip
    def test_draws_have_the_mean_and_the_variance_that_are_said(self, family):
        found = gradcli.propagate("x", {"x": f"~{family}"}, samples=1e5)
        assert found.monte_carlo.mean == pytest.approx(found.value, abs=0.02 * found.u)
        assert found.monte_carlo.u == pytest.approx(found.u, rel=0.02)
        # To second order the variance of a square includes all moments up to the fourth, and is exact.
        found = gradcli.propagate("x**2", {"x": f"~{family}"}, samples=1e5)
        assert found.monte_carlo.u == pytest.approx(found.second_order.u, rel=0.03)

    def test_observations_of_a_file(self, run, tmp_path):
        (tmp_path / "d.csv").write_text("x,y\n1,2\n2,4\n3,3\n4,\n")
        found = run("propagate", "x", f"x=@{tmp_path}/d.csv:y", "--json").json
        assert (found["value"], found["dof"]) == (3.0, 2.0)
        assert found["u"] == pytest.approx(1 / math.sqrt(3))
        found = run("propagate", "a, b = x; a*b", f"x=@{tmp_path}/d.csv:all", "--json").json
        assert [each["value"] for each in found["budget"]] == [2.0, 3.0]
        # The covariance of the means is 1/2/3, from rows without missing numbers.
        assert found["u"] ** 2 == pytest.approx((9 + 4 + 2 * 2 * 3 * 0.5) / 3)

    @pytest.mark.all_cases
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("x", "x=5±-1"), "an uncertainty is not negative"),
            (("x", "x=5±nan"), "a value and its uncertainty are finite numbers"),
            (("x", "x=5±"), "this is no value with an uncertainty"),
            (("x", "x=1±2±3"), "this is no value with an uncertainty"),
            (("x", "x=f(1±2)"), "this is no value with an uncertainty"),
            (("x", "x=[1±1, [2]]"), "the rows of a nested list have different lengths"),
            (("x", "x=[1,2]±[1,2,3]"), "value and uncertainty have different shapes"),
            (("x", "x=lgo(3)±1"), "unknown function 'lgo'"),
            (("x", "x=~unifrom(1,2)"), "did you mean 'uniform'?"),
            (("x", "x=~uniform(2,1)"), "there is no such 'uniform' distribution"),
            (("x", "x=~uniform(2)"), "'uniform' has other parameters"),
            (("x", "x=~lognormal(0, 1e5)"), "this 'lognormal' distribution is too wide"),
            (("x*y", "x=3", "y=4"), "no input has an uncertainty"),
            (("x", "x=3±1", "y=4±1"), "the program does not read 'y'"),
            (("x", "x=3±1", "--correlation", "x,y=0.5"), "--correlation names 'y', which has no uncertainty"),
            (("x+y", "x=3±1", "y=1±1", "--correlation", "x,y=1.5"), "the correlation of 'x' and 'y' is 1.5"),
            (("x+y", "x=3±1", "y=1±1", "--correlation", "x,x=1"), "that of a quantity with itself"),
            (("x+y", "x=3±1", "y=1±1", "--correlation", "x=1"), "'x=1' is no correlation of two inputs"),
            (("x+y", "x=3±1", "y=1±1", "--correlation", "x,y"), "'x,y' says no number"),
            (
                ("x+y+z", "x=3±1", "y=1±1", "z=1±1", "--correlation", "x,y=-0.9,y,z=-0.9,x,z=-0.9"),
                "the correlations of x, y, z contradict each other: their matrix has the eigenvalue -0.8",
            ),
            (
                ("x+y", "x=3±1", "y=1±1", "--correlation", "x,y=0.1", "--correlation", "y,x=0.2"),
                "the correlation of 'y' and 'x' is given twice",
            ),
            (("x+y", "x=3±1", "y=1±1", "--dof", "x=3,x=4"), "says again what was said already"),
            (("x", "x=3±1", "--dof", "x=0"), "the degrees of freedom of 'x' are more than 0"),
            (("x", "x=3±1", "--dof", "x=abc"), "'abc' in 'x=abc' is no number"),
            (("x", "x=3±1", "--level", "1"), "there is no level 1.0"),
            (("x", "x=3±1", "--samples", "1.5"), "1.5 is no number of samples"),
            (("x", "x=3±1", "--samples", "10"), "10 samples are too few"),
            (("x", "x=3±1", "--shortest"), "--shortest is for draws"),
            (
                ("x+y", "x=~uniform(0,1)", "y=~exponential(1)", "--correlation", "x,y=-0.9", "--samples", "1e3"),
                "'x' and 'y' cannot have the correlation -0.9 with their distributions",
            ),
            (("x", "x=3±1", "--samples", "1e4", "--adaptive", "2"), "--samples and --adaptive contradict each other"),
            (("x", "x=3±1", "--adaptive", "5"), "5 digits are too many for samples"),
            (("x", "x=3±1", "--adaptive", "2", "--digits", "9"), "--digits and --adaptive contradict each other"),
        ],
    )
    def test_errors(self, run, words, message):
        outcome = run("propagate", *words)
        assert outcome.status == 2
        assert message in outcome.err

    def test_elsewhere_an_uncertainty_is_an_error_that_names_the_command(self, run):
        for value in ("5.0±0.1", "5.0+-0.1", "5.0(1)", "5.0(12)e3", "0.5..3"):
            outcome = run("eval", "x", f"x={value}")
            assert outcome.status == 2
            assert "gradcli propagate and the --prior of gradcli fit take x=1±0.1" in outcome.err
            assert "None" not in outcome.err


class TestResults:
    def test_a_quotient(self, run):
        outcome = run("propagate", "V/I", "V=5.0±0.1", "I=0.020(1)", "--quiet")
        assert outcome.err == ""
        assert outcome.out.splitlines()[0].split() == ["value", "250", "±", "13"]
        found = run("propagate", "V/I", "V=5.0±0.1", "I=0.020(1)", "--json").json
        assert [*found] == [
            "schema", "program", "value", "u", "relative", "budget", "dof", "k", "level", "interval", "second_order",
            "monte_carlo", "warnings",
        ]  # fmt: skip
        assert found["u"] == pytest.approx(250 * math.hypot(0.02, 0.05))
        assert found["relative"] == pytest.approx(math.hypot(0.02, 0.05))
        assert [*found["budget"][0]] == ["name", "value", "u", "dof", "sensitivity", "contribution", "share"]
        assert [each["sensitivity"] for each in found["budget"]] == [50.0, -12500.0]
        assert [each["contribution"] for each in found["budget"]] == [5.0, 12.5]
        assert sum(each["share"] for each in found["budget"]) == pytest.approx(1)
        assert (found["dof"], found["k"]) == ("Infinity", pytest.approx(1.959963984540054))

    def test_repeated_and_correlated_inputs(self):
        for program, correlation in (("x - x", {}), ("x - y", {"x,y": 1})):
            names = ["x", "y"] if correlation else ["x"]
            found = gradcli.propagate(program, dict.fromkeys(names, "3.0±0.1"), correlation=correlation, samples=1e3)
            assert (found.value, found.u, found.monte_carlo.u) == (0.0, 0.0, 0.0)
            assert found.warnings is None
        found = gradcli.propagate("x + y", {"x": "3±0.1", "y": "4±0.2"}, correlation={("x", "y"): 0.3})
        assert found.u**2 == pytest.approx(0.01 + 0.04 + 2 * 0.3 * 0.02)
        assert [each.share for each in found.budget] == pytest.approx([0.016 / 0.062, 0.046 / 0.062])

    def test_several_results(self):
        program = "p = x*y; q = x + y; [p, q]"
        found = gradcli.propagate(program, {"x": "2±0.1", "y": "3±0.2"}, samples=1e4)
        assert found.value == {"p": 6.0, "q": 5.0}
        assert found.covariance == pytest.approx(np.array([[0.25, 0.11], [0.11, 0.05]]))
        assert found.u == pytest.approx({"p": 0.5, "q": math.sqrt(0.05)})
        assert [*found.monte_carlo] == [*found.second_order] == [*found.budget] == ["p", "q"]
        assert gradcli.propagate("x*2", {"x": ([1.0, 2.0], 0.1)}).u == {"value[0]": 0.2, "value[1]": 0.2}

    def test_degrees_of_freedom_by_welch_and_satterthwaite(self):
        values = {"x": "1±0.3", "y": "2±0.4", "z": "3±1"}
        found = gradcli.propagate("x + y + 0*z", values, dof={"x": 4, "y": 9, "z": 1}, level=0.9)
        assert found.dof == pytest.approx(0.5**4 / (0.3**4 / 4 + 0.4**4 / 9))
        # Of Student's t distribution with 12 degrees of freedom.
        assert found.k == pytest.approx(1.7822875556)
        # Correlated inputs are one term.
        two = {name: values[name] for name in ("x", "y")}
        found = gradcli.propagate("x + y", two, dof={"x": 4, "y": 4}, correlation={"x,y": 0.5})
        assert found.dof == pytest.approx(4)

    def test_second_order_of_correlated_inputs(self):
        values = {"x": "2±0.3", "y": "3±0.4"}
        found = gradcli.propagate("x*y", values, correlation={"x,y": 0.5})
        cov = 0.5 * 0.3 * 0.4
        assert found.second_order.mean == pytest.approx(6 + cov)
        # Exact for a product of normal quantities.
        assert found.second_order.u**2 == pytest.approx(9 * 0.09 + 4 * 0.16 + 2 * 6 * cov + 0.09 * 0.16 + cov**2)
        # To order 4 in u, for an exponential (GUM, 5.1.2, note).
        found = gradcli.propagate("exp(x)", {"x": (0.0, 0.1)})
        assert found.second_order.u**2 == pytest.approx(0.01 + 1.5e-4)

    @pytest.mark.parametrize(
        ("value", "mean", "u"),
        [
            ("~uniform(-1, 1)", 1 / 3, math.sqrt(4 / 45)),
            ("~arcsine(-1, 1)", 1 / 2, math.sqrt(1 / 8)),
            ("~exponential(1)", 2, math.sqrt(20)),
            ("~triangular(0, 1, 1)", 1 / 2, math.sqrt(1 / 3 - 1 / 4)),
            ("~lognormal(0, 0.5)", math.exp(0.5), math.sqrt(math.exp(2) - math.exp(1))),
            ("0±1", 1, math.sqrt(2)),
        ],
    )
    def test_the_second_order_of_a_square_is_exact_for_each_distribution(self, value, mean, u):
        found = gradcli.models.propagate("x**2", {"x": value}).second_order
        assert (found.mean, found.u) == (pytest.approx(mean), pytest.approx(u))

    def test_the_second_order_of_correlated_inputs_is_that_of_normal_ones(self):
        values = {"x": "~uniform(-1, 1)", "y": "0±1"}
        found = gradcli.models.propagate("x**2 + y", values, correlation={"x,y": 0.5}).second_order
        assert found.u**2 == pytest.approx(1 + 2 / 9)

    def test_what_has_no_value_has_no_uncertainty(self, run):
        for digits in ((), ("--digits", "5")):
            record = run("propagate", "log(x)", "x=-1±0.1", "--json", *digits).json
            assert (record["value"], record["u"], record["dof"], record["k"]) == ("NaN", "NaN", "NaN", "NaN")

    def test_warnings(self, run):
        found = run("propagate", "x**2", "x=0±1", "--json").json
        assert (found["u"], found["second_order"]["mean"]) == (0.0, 1.0)
        assert [warning["code"] for warning in found["warnings"]] == ["nonlinear"]
        assert "warning: 'abs' is not differentiable here" in run("propagate", "abs(x)", "x=0±1").err
        outcome = run("propagate", "sqrt(x)", "x=1±1", "--samples", "1e4")
        assert "samples have no finite value and are left out" in outcome.err
        assert "Monte Carlo does not confirm the interval" in outcome.err

    def test_there_is_no_second_order_at_a_kink_or_a_jump(self, run):
        for program in ("abs(x)", "floor(x)", "relu(x)"):
            found = run("propagate", program, "x=0±1", "--json").json
            assert found["second_order"] is None
            assert [warning["code"] for warning in found["warnings"]] == ["nonsmooth"]

    def test_draws_without_a_standard_deviation(self, run):
        outcome = run("propagate", "x + y", "x=0±1", "y=0±1", "--dof", "x=2,y=3", "--samples", "1e3")
        assert (
            "Student's distribution of x, with 2 degrees of freedom or fewer, has no standard deviation" in outcome.err
        )
        words = ("propagate", "x + y", "x=0±0", "y=~normal(0, 1)", "--dof", "x=1,y=1", "--samples", "1e3")
        assert "Student's" not in run(*words).err

    def test_levels_and_intervals_as_they_are(self, run):
        assert "interval of 0.999999  " in run("propagate", "x", "x=1±1", "--level", "0.999999").out
        # Rounded like the samples where the linear uncertainty is infinite; a rounded 0 has no sign.
        outcome = run("propagate", "sqrt(x)", "x=0±0.1", "--samples", "1e3")
        assert re.search(r"interval of 0.95 +\[0\.\d\d, 0\.\d\d\]", outcome.out)
        assert "value                 0 ± 10" in run("propagate", "x", "x=-0.01±10").out

    def test_draws_are_repeatable(self):
        def found(seed):
            return gradcli.propagate("exp(x)", {"x": "0±0.1"}, samples=1e4, seed=seed).monte_carlo

        assert found(1) == found(1) != found(2)

    def test_monte_carlo_lies_within_its_own_interval(self):
        values = {"x": "2±0.1", "y": "3±0.2"}
        found = gradcli.propagate("x - 2*y", values, correlation={"x,y": -0.7}, samples=1e5)
        of_mean = found.u / math.sqrt(1e5)
        assert abs(found.monte_carlo.mean - found.value) < 4 * of_mean
        assert found.monte_carlo.u == pytest.approx(found.u, rel=0.01)
        assert found.warnings is None

    def test_students_distribution_of_few_observations(self):
        found = gradcli.propagate("x + y", {"x": "0±1", "y": "0±1"}, dof={"x": 5, "y": 5}, samples=1e5)
        assert found.monte_carlo.u == pytest.approx(math.sqrt(2 * 5 / 3), rel=0.02)

    @pytest.mark.parametrize(
        ("words", "value"),
        [
            (("x=838.1±31.66",), "838 ± 32"),
            (("x=1.23456±0.00996",), "1.235 ± 0.010"),
            (("x=1.2345e-9±6.7e-12",), "(1.2345 ± 0.0067)e-09"),
            (("x=0±0.5",), "0.00 ± 0.50"),
            (("x=1e15±3e12",), "(1.0000 ± 0.0030)e+15"),
            (("x=0.01±1",), "0.0 ± 1.0"),
        ],
    )
    def test_values_are_stated_with_two_digits_of_the_uncertainty(self, run, words, value):
        assert run("propagate", "x", *words).out.splitlines()[0].removeprefix("value").strip() == value

    def test_uncertainties_whose_squares_are_out_of_range(self):
        for size in (1e-200, 1e250):
            found = gradcli.propagate("x + y", x=(2 * size, 0.3 * size), y=(size, 0.4 * size), dof={"x": 3})
            assert found.u == found.second_order.u == pytest.approx(0.5 * size)
            assert [each.share for each in found.budget] == pytest.approx([0.36, 0.64])
            assert found.dof == pytest.approx(3 / 0.36**2)
        assert gradcli.propagate("x", x=(1.0, 1e-320)).warnings is None

    @pytest.mark.filterwarnings("error")
    def test_uncertainties_out_of_range_are_infinite(self):
        assert gradcli.propagate("x*y", x=(1.0, 1e300), y=(1e300, 1.0)).u == math.inf

    def test_a_long_budget_shows_what_contributes_most(self, run):
        outcome = run("propagate", "sum(x)", "x=linspace(1, 2, 200)±1")
        assert "150 others" in outcome.out

    def test_limits(self, run):
        assert run("propagate", "x", "x=1±0.1", "--samples", "1e9").status == 1
        outcome = run("propagate", "x = 1; while x > 0 { x = x + y }; x", "y=1±0.1", "--max-steps", "1000")
        assert outcome.status == 1
        with pytest.raises(GradcliError):
            gradcli.propagate("x", {"x": (1.0, -0.1)})
        with pytest.raises(GradcliError):
            gradcli.propagate("x", {"x": ("a", "b")})


class TestDigits:
    def test_numbers_are_proved_of_the_decimals_that_are_typed(self, run):
        words = ("propagate", "V/I", "V=5.0±0.1", "I=0.020(1)", "--digits", "30", "--quiet")
        found = run(*words, "--json").json
        # 250*sqrt(29)/100, and the normal quantile by mpmath.
        assert found["u"] == "13.4629120178362600781267762289"
        assert found["k"] == "1.95996398454005423552459443052"
        assert (found["digits"], found["value"], found["budget"][1]["u"]) == (30, "250", "0.001")
        assert "13.4629120178362600781267762289" in run(*words).out
        assert [*found] == ["schema", "program", "digits", "value", "u", "relative", "budget", "dof", "k", "level",
                            "interval", "second_order", "monte_carlo", "warnings"]  # fmt: skip

    @pytest.mark.parametrize("dof", [1, 4, 9.7, 1e6])
    def test_quantiles_of_students_distribution(self, dof):
        found = gradcli.propagate("x", x="0±1", dof={"x": dof}, level=0.99, digits=40).k
        with mpmath.workdps(50):
            k, nu = mpmath.mpf(found), mpmath.mpf(math.floor(dof))
            inside = mpmath.betainc(mpmath.mpf(1) / 2, nu / 2, 0, k * k / (nu + k * k), regularized=True)
            assert abs(inside - mpmath.mpf("0.99")) < mpmath.mpf(10) ** -39

    def test_digits_agree_with_floats(self):
        values = {"p": "~lognormal(0, 0.1)", "x": "[1±0.1, 2±2%]", "y": (3.0, 0.25), "c": 2}
        more = {"correlation": {"x[0],y": 0.3}, "dof": {"p": 4, "y": 9}}
        program = "a = c*p*x[0]*y; b = x[1]**2/y; [a, b]"
        floats, texts = (gradcli.propagate(program, values, **more, digits=digits) for digits in (None, 20))
        for name in ("a", "b"):
            for part in ("value", "u", "relative", "dof", "k"):
                assert float(getattr(texts, part)[name]) == pytest.approx(getattr(floats, part)[name], rel=1e-12)
            assert [float(end) for end in texts.interval[name]] == pytest.approx(floats.interval[name])
            for text, number in zip(texts.budget[name], floats.budget[name]):
                assert float(text.share) == pytest.approx(number.share, abs=1e-12)
        assert [[float(cell) for cell in row] for row in texts.covariance] == pytest.approx(floats.covariance)

    def test_what_is_nothing(self, run):
        found = run("propagate", "x - x", "x=1/3±0.1", "--digits", "20", "--json").json
        assert (found["value"], found["u"], found["interval"]) == ("0", "0", ["0", "0"])
        outcome = run("propagate", "sin(x) - sin(x)", "x=5±1", "--digits", "20", "--max-precision", "100")
        assert outcome.status == 1
        assert "|…| < 1e-100" in outcome.out

    def test_errors(self, run):
        assert "contradict each other" in run("propagate", "x", "x=1±1", "--digits", "5", "--samples", "1e3").err
        with pytest.raises(GradcliError, match="'digits' is a whole number"):
            gradcli.propagate("x", x="1±1", digits=0)


class TestRows:
    TABLE = "x,u_x,y\n1,0.1,2\n3,0.2,4\n5,-1,3\n5,NA,3\n"

    @pytest.fixture
    def table(self, tmp_path):
        (tmp_path / "t.csv").write_text(self.TABLE)
        return str(tmp_path / "t.csv")

    def test_a_column_of_uncertainties(self, run, table):
        outcome = run("map", "x*y", table, "--propagate", "--wrt", "y")
        assert outcome.out.splitlines()[:3] == ["x,u_x,y,value,u,d_y", "1,0.1,2,2.0,0.2,1.0", "3,0.2,4,12.0,0.8,3.0"]
        assert outcome.out.splitlines()[3:] == ["5,-1,3,,,", "5,NA,3,,,"]
        assert "the first is row 3" in outcome.err
        assert "'u_x': an uncertainty is not negative" in outcome.err

    def test_names_and_what_rows_share(self, run, table):
        words = ("map", "x*y*c", table, "c=2", "u_c=0.1", "--propagate", "--no-grad", "--value", "R", "--prefix", "p_")
        first = run(*words, "--only").out.splitlines()[:2]
        assert first[0] == "p_R,p_u_R"
        assert [float(cell) for cell in first[1].split(",")] == [4.0, pytest.approx(math.hypot(4 * 0.1, 2 * 0.1))]

    def test_programs_and_branches_of_rows(self, run, tmp_path):
        path = tmp_path / "p.csv"
        path.write_text("p,x,u_x,y\nx*y,1,0.1,2\ny,1,0.1,2\nx**2 if x > 0 else -3*x,-2,0.1,0\n")
        outcome = run("map", "--program-column", "p", str(path), "--propagate", "--no-grad", "--only")
        rows = [[float(cell) for cell in line.split(",")] for line in outcome.out.splitlines()[1:]]
        assert rows == [[2.0, 0.2], [2.0, 0.0], [6.0, pytest.approx(0.3)]]

    def test_tensors_of_rows(self, run, tmp_path):
        path = tmp_path / "t.jsonl"
        path.write_text(
            '{"x":[1,2],"u_x":[0.1,0.2]}\n{"x":[1,2,3],"u_x":0.1}\n{"x":[1,2,3],"u_x":[1,2]}\n{"x":[2],"u_x":[-1]}\n'
        )
        outcome = run("map", "sum(x**2)", str(path), "--propagate", "--no-grad", "--only")
        rows = [json.loads(line) for line in outcome.out.splitlines()]
        assert [row["u"] for row in rows] == [
            pytest.approx(math.hypot(0.2, 0.8)), pytest.approx(0.2 * math.sqrt(14)), None, None
        ]  # fmt: skip
        assert "2 of 4 rows failed" in outcome.err

    def test_squares_out_of_range(self, run, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("x,u_x,y,u_y\n1,3e-170,2,4e-170\n1,3e200,2,4e200\n")
        outcome = run("map", "x+y", str(path), "--propagate", "--no-grad", "--only")
        assert [float(line.split(",")[1]) for line in outcome.out.splitlines()[1:]] == pytest.approx(
            [5e-170, 5e200], rel=1e-12, abs=0
        )

    def test_tables_of_python(self):
        table = {"x": np.array([1.0, 2.0]), "u_x": np.array([0.1, 0.2])}
        found = gradcli.compile("x*y").map(table, wrt="x", y=3.0, u_y=0.5, propagate=True)
        assert [*found] == ["x", "u_x", "value", "u", "d_x"]
        assert found["u"] == pytest.approx(np.hypot([0.3, 0.6], [0.5, 1.0]))

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("y", "--propagate"), "--propagate finds no uncertainty of an input"),
            (("x", "u_x=0.1", "--propagate"), "'u_x' is given a value and is a column of the table"),
            (("y", "u_y=-0.1", "--propagate"), "'u_y' is an uncertainty, which is not negative"),
            (("y", "u_y=0.1"), "the program does not read 'u_y'"),
            (("x", "--propagate", "--value", "x", "--prefix", ""), "the result 'x' is called as a column"),
        ],
    )
    def test_errors(self, run, table, words, message):
        outcome = run("map", words[0], table, *words[1:])
        assert outcome.status == 2
        assert message in outcome.err


@pytest.mark.parametrize("wrong", [None, "a", b"a", object(), {"a": 1}, 1j, 10**400, -3, math.nan, ["a"], [None], [],
                                   [[1], [2, 3]], (1, "a"), (1, 2, 3), range(3), np.array([None, {}], dtype=object)],
                         ids=lambda wrong: type(wrong).__name__)  # fmt: skip
def test_whatever_is_given_is_a_result_or_an_error(wrong):
    known = {"x": "1±0.1"}
    for words, more in [
        ((wrong, known), {}),
        (("x", wrong), {}),
        (("x", {"x": wrong}), {}),
        (("x*y", {**known, "y": wrong}), {}),
        (("x*y", {**known, "y": wrong}), {"digits": 5}),
        (("x + y", {**known, "y": "1±1"}), {"correlation": {"x,y": wrong}}),
        (("x", known), {"dof": {"x": wrong}}),
        *((("x", known), {name: wrong}) for name in ("correlation", "dof", "level", "digits", "max_steps", "samples")),
        *((("x", known), {"samples": 100, name: wrong}) for name in ("seed", "shortest")),
    ]:
        with contextlib.suppress(GradcliError):
            gradcli.propagate(*words, **more)


def test_a_number_in_parentheses_is_no_uncertainty(run):
    result = run("propagate", "x*y", "x=(5)", "y=3±0.1", "--json")
    assert result.json["value"] == 15
    assert result.json["u"] == pytest.approx(0.5)


def test_the_interval_of_samples_has_its_power_of_10(run):
    result = run("propagate", "x", "x=1.2345e-9±1e-11", "--samples", "1000")
    assert result.out.count("e-09") >= 4


def test_samples_without_a_value_are_an_error(run):
    result = run("propagate", "log(x)", "x=-1±0.001", "--samples", "1000")
    assert result.status == 1
    assert "internal" not in result.err


def test_infinite_observations_are_an_error(run, tmp_path):
    (tmp_path / "d.csv").write_text("x\n1\ninf\n2\n")
    assert run("propagate", "x", f"x=@{tmp_path}/d.csv:x").status == 2


def test_means_of_observations_have_no_proved_digits(run, tmp_path):
    (tmp_path / "d.csv").write_text("x\n1\n2\n2\n")
    assert run("propagate", "x", f"x=@{tmp_path}/d.csv:x", "--digits", "20").status == 2


def test_a_step_is_told_of_which_no_derivative_knows(run):
    told = run("propagate", "2*round(x)", "x=1.2±0.1", "--json")
    assert [w["code"] for w in told.json["warnings"]] == ["steps"]
    assert "the derivative of 'round' is 0 between its jumps" in run("propagate", "2*round(x)", "x=1.2±0.1").err
    assert "warnings" not in run("propagate", "x + floor(a)", "x=1.2±0.1", "a=3.5", "--json").json


@pytest.mark.parametrize(
    ("program", "x", "place"),
    [
        ("where(x > 1, 2, 3)", "1.1±0.5", "x > 1"),
        ("abs(x)", "0.1±0.5", "abs(x)"),
        ("2*max(0, x - 5)", "5.1±0.5", "max(0, x - 5)"),
        ("x if log(x) > 0 else 3*x", "~uniform(0.5, 2)", "log(x) > 0"),
    ],
)
def test_what_turns_out_differently_within_an_uncertainty_is_told(run, program, x, place):
    told = run("propagate", program, f"x={x}", "--json").json["warnings"]
    assert [w["code"] for w in told if w["code"] != "nonlinear"] == ["branches"]
    assert f"within the uncertainty of x '{place}' turns out differently" in told[-1]["message"]


@pytest.mark.parametrize(
    ("program", "x", "y"),
    [
        ("atan2(y, x)", "1±0.1", "0±0.1"),
        ("atan2(y, x)", "1±0.1", "0.2±0.1"),
        ("hypot(x, y)", "3±0.1", "0±0.1"),
        ("std([x, y])", "0±0.1", "2±0.1"),
        ("max(x, y)", "3±0.1", "2±0.1"),
    ],
)
def test_a_result_that_equals_an_operand_by_chance_is_no_branch(run, program, x, y):
    told = run("propagate", program, f"x={x}", f"y={y}", "--json").json.get("warnings", [])
    assert [warning["code"] for warning in told if warning["code"] != "nonlinear"] == []


@pytest.mark.parametrize(
    ("words", "u", "second"),
    [
        (("x**y", "x=-2±0.05", "y=2±0"), 0.2, 0.2),
        (("x + sqrt(y)", "x=-2±0.05", "y=0±0"), 0.05, 0.05),
        (("x + abs(y)", "x=-2±0.05", "y=0±0"), 0.05, 0.05),
        (("sum(sqrt(x))", "x=[4±0.2, 0±0]"), 0.05, 0.05),
        (("x**y*z", "x=-2±0.05", "y=2±0", "z=1±0.1", "--correlation", "x,z=-0.5"), 0.28**0.5, None),
        (("x**y", "x=-2±0", "y=2±0"), 0.0, 0.0),
    ],
)
def test_what_is_known_exactly_contributes_nothing(run, words, u, second):
    found = run("propagate", *words, "--json").json
    assert found["u"] == pytest.approx(u)
    if second is not None:
        assert found["second_order"]["u"] == pytest.approx(second, rel=1e-2)
    assert all(each["contribution"] == each["share"] == 0 for each in found["budget"] if each["u"] == 0)
    assert all(warning["code"] == "nonlinear" for warning in found.get("warnings", []))
    proved = run("propagate", *words, "--digits", "10", "--json").json
    assert float(proved["u"]) == pytest.approx(u)


def test_rows_of_what_is_known_exactly(run):
    done = run("map", "x + sqrt(y)", "--propagate", "--only", "--no-grad", stdin="x,u_x,y,u_y\n1,0.5,0,0\n1,0,0,0\n")
    assert done.out == "value,u\n1.0,0.5\n1.0,0.0\n"


@pytest.mark.parametrize(
    ("words", "kind", "place"),
    [
        (("1/x", "x=1±0.5"), "goes to infinity", "near x = 0"),
        (("1/x", "x=1±0.6"), "goes to infinity", "near x = 0"),
        (("1/x**2", "x=1±0.61"), "goes to infinity", "near x = 0"),
        (("tan(x)", "x=1.5±0.1"), "goes to infinity", "near x = 1.571"),
        (("gamma(x)", "x=0.3±0.2"), "goes to infinity", "near x = 0"),
        (("1/x", "x=~uniform(0, 1)"), "goes to infinity", "near x = 0"),
        (("1/(x - y)", "x=1±0.4", "y=0±0.4"), "goes to infinity", "near x = 0.5, y = 0.5"),
        (("[x, 1/x]", "x=1±0.5"), "goes to infinity", "near x = 0"),
        (("log(x)", "x=1±0.6"), "there is no value", "where 'log' gives nan"),
        (("acos(x)", "x=0.95±0.04"), "there is no value", "at x = 1.005, where 'acos' gives nan"),
    ],
)
def test_a_result_without_moments_is_told(run, words, kind, place):
    for more in ((), ("--samples", "1e3")):
        found = run("propagate", *words, *more, "--json").json
        (message,) = [w["message"] for w in found["warnings"] if w["code"] == "singular"]
        assert kind in message
        assert place in message
        assert found["second_order"] is None


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("atan2(y, x)", "y=0±0.1", "x=-1±0.1"), "within the uncertainty of y the value jumps, near y = 0"),
        (("atan2(y, x)", "y=0.15±0.1", "x=-1±0.1"), "within the uncertainty of y the value jumps, near y = 0"),
    ],
)
def test_a_jump_within_the_uncertainty_is_told(run, words, place):
    (warning,) = [w for w in run("propagate", *words, "--json").json["warnings"] if w["code"] == "singular"]
    assert place in warning["message"]


@pytest.mark.parametrize(
    "words",
    [
        ("1/x", "x=1±0.4"),
        ("atan2(y, x)", "y=0.1±0.01", "x=-1±0.1"),
        ("sin(x)/x", "x=0.6±0.3"),
        ("exp(-1000*x**2)", "x=0.5±0.5"),
        ("tanh(1e6*x)", "x=0.3±0.5"),
        ("sin(100*x)", "x=0±1"),
        ("1/x", "x=~lognormal(0, 1)"),
        ("sqrt(x)", "x=~exponential(1)"),
        ("x**2", "x=0±1"),
    ],
)
def test_a_result_with_moments_is_not_called_singular(run, words):
    warnings = run("propagate", *words, "--json").json.get("warnings", [])
    assert [w["message"] for w in warnings if w["code"] == "singular"] == []


def test_an_interval_is_not_rounded_by_a_few_far_draws(run):
    out = run("propagate", "1/x", "x=1±0.5", "--samples", "1e5").out
    (interval,) = [line for line in out.splitlines() if line.startswith("interval of 0.95      [")]
    assert interval == "interval of 0.95      [0.4, 6.0]"


def test_the_degrees_of_freedom_that_are_used_are_printed(run):
    words = ("a + b", "a=1±0.1", "b=2±0.2", "--dof", "a=4,b=5")
    assert "degrees of freedom    7  (7.246 cut to a whole number)" in run("propagate", *words).out
    assert run("propagate", *words, "--json").json["dof"] == pytest.approx(7.246, abs=1e-3)
    assert "degrees of freedom    7  (7.2463768 cut to a whole number)" in run("propagate", *words, "--digits", "8").out
    # Rounding to four digits would give the next one.
    assert "degrees of freedom    16  (16.99 cut" in run("propagate", "x", "x=1±0.1", "--dof", "x=16.9999").out
    assert "degrees of freedom    9\n" in run("propagate", "x", "x=1±0.1", "--dof", "x=9").out


def test_what_turns_out_as_at_the_estimates_is_not_told(run):
    assert "warnings" not in run("propagate", "where(x > 1, 2, 3)*abs(x)", "x=5.0±0.5", "--json").json


def test_a_value_without_elements_has_no_uncertainty(run):
    assert run("propagate", "[x]*[]", "x=1.5±0.1").err == ("error: the value has no elements\n  | [x]*[]\n  | ^^^^^^\n")


def test_a_derivative_without_a_number_is_no_number_times_an_uncertainty_of_0(run):
    assert (
        run("map", "inf*x", "--propagate", "--only", "--no-grad", stdin="x,u_x\n1,0\n").out == "value,u\nInfinity,NaN\n"
    )


def test_an_uncertainty_below_the_rounding_errors_is_told(run):
    assert "less than the rounding errors of its value" in run("propagate", "sin(a)", "a=1±1e-18").err
    assert "rounding" not in run("propagate", "sin(a)", "a=1±1e-13").err
    assert "rounding" not in run("propagate", "sin(a)", "a=1±1e-18", "--digits", "30").err
