"""Tests proved digits: `--digits`, and `evaluate(…, digits=…)`."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import gradcli
from gradcli import install_command
from gradcli.errors import BindingError, EvaluationError, UsageError

RUMP = "333.75*b**6 + a**2*(11*a**2*b**2 - b**6 - 121*b**4 - 2) + 5.5*b**8 + a/(2*b)"
MULLER = """
a = 4; b = 4.25
for k in range(n):
    a, b = b, 108 - (815 - 1500/a)/b
b
"""


def proved(text: str, expected: Any, digits: int) -> None:
    """Assert that a text has this number of significant digits, the last of which is off by at most one unit."""
    number = Decimal(text)
    assert len(number.as_tuple().digits) == digits
    unit = mpmath.mpf(10) ** number.adjusted() / mpmath.mpf(10) ** (digits - 1)
    assert abs(mpmath.mpf(text) - expected) <= unit * (1 + mpmath.mpf(10) ** -20)


@pytest.fixture(autouse=True)
def _precise() -> Any:
    with mpmath.workdps(1100):
        yield


class TestValues:
    def test_rump_s_polynomial_and_its_gradient(self, run):
        found = run("eval", RUMP, "a=77617", "b=33096", "--digits", "50", "--json").json
        proved(found["value"], mpmath.mpf(-54767) / 66192, 50)
        a, b = 77617, 33096
        by_a = 44 * a**3 * b**2 + 2 * a * (-(b**6) - 121 * b**4 - 2) + mpmath.mpf(1) / (2 * b)
        by_b = (
            mpmath.mpf("2002.5") * b**5
            + a**2 * (22 * a**2 * b - 6 * b**5 - 484 * b**3)
            + 44 * b**7
            - mpmath.mpf(a) / (2 * b**2)
        )
        proved(found["grad"]["a"], by_a, 50)
        proved(found["grad"]["b"], by_b, 50)

    def test_a_base_that_is_an_exact_ball_of_0(self, run):
        found = run("eval", "asech(x)**log1p(x)", "x=0.5", "--digits", "10", "--bare").out
        assert found == "1.118104073\n"

    def test_muller_s_recurrence_has_its_true_limit(self, run):
        found = run("eval", MULLER, "n=100", "--digits", "30", "--no-grad", "--json").json["value"]
        a, b = Fraction(4), Fraction(17, 4)
        for _ in range(100):
            a, b = b, 108 - (815 - 1500 / a) / b
        proved(found, mpmath.mpf(b.numerator) / b.denominator, 30)

    def test_a_thousand_digits_of_a_derivative(self, run):
        found = run("eval", "exp(pi*sqrt(x))", "x=163", "--digits", "1000", "--json").json
        root = mpmath.sqrt(163)
        proved(found["value"], mpmath.exp(mpmath.pi * root), 1000)
        proved(found["grad"]["x"], mpmath.exp(mpmath.pi * root) * mpmath.pi / (2 * root), 1000)

    def test_a_thousand_digits_of_the_20th_derivative(self, run):
        words = ["x=1.5", "--order", "20", "--digits", "1000", "--json"]
        found = run("eval", "sin(x**2)*exp(x)/x", *words).json["derivatives"][",".join("x" * 20)]
        # By power series in t: sin((a + t)**2) is the imaginary part of exp(i*a**2)*exp(2*i*a*t)*exp(i*t**2).
        a, n, i = mpmath.mpf("1.5"), 20, mpmath.mpc(0, 1)
        series = [[mpmath.exp(i * a**2 + a) * (2 * i * a + 1) ** k / mpmath.factorial(k) for k in range(n + 1)]]
        series.append([i ** (k // 2) / mpmath.factorial(k // 2) if k % 2 == 0 else 0 for k in range(n + 1)])
        series.append([(-1) ** k / a ** (k + 1) for k in range(n + 1)])
        total = [mpmath.mpf(1)] + [0] * n
        for other in series:
            total = [mpmath.fsum(total[j] * other[k - j] for j in range(k + 1)) for k in range(n + 1)]
        proved(found, mpmath.im(total[n]) * mpmath.factorial(n), 1000)

    def test_orders_whose_factorials_are_no_floats(self, run):
        found = run("eval", "sinh(x)/x", "x=0.1", "--order", "30", "--digits", "40", "--json").json["derivatives"]
        # By the power series.
        expected = sum(
            mpmath.mpf("0.1") ** (2 * k - 30) * mpmath.ff(2 * k, 30) / mpmath.factorial(2 * k + 1)
            for k in range(15, 60)
        )
        proved(found[",".join("x" * 30)], expected, 40)

    def test_mixed_derivatives_of_high_order(self, run):
        found = run("eval", "exp(x*y)", "x=0.3", "y=0.7", "--order", "5", "--digits", "40", "--json").json[
            "derivatives"
        ]
        x, y = mpmath.mpf("0.3"), mpmath.mpf("0.7")
        proved(found["x,x,x,y,y"], mpmath.exp(x * y) * (x**2 * y**3 + 6 * x * y**2 + 6 * y), 40)

    def test_exact_results_have_fewer_digits(self, run):
        found = run(
            "eval", "[1/3 - x/30, 1/8, 1/3, sin(0)*y, 10**20]", "x=10", "y=1e400", "--digits", "30", "--no-grad"
        )
        assert found.out.split() == ["value", "[0,", "0.125,", "0." + "3" * 30 + ",", "0,", "1e+20]"]

    def test_poles_and_what_is_undefined(self, run):
        found = run("eval", "[1/x, -1/x, log(x), log(x - 1), x/x]", "x=0", "--digits", "30", "--no-grad").out
        assert found.split() == ["value", "[inf,", "-inf,", "-inf,", "nan,", "nan]"]
        found = run("eval", "[1/x, 0.5]", "x=0", "--digits", "30", "--jacobian", "--json").json
        assert found["value"] == ["Infinity", "0.5"]
        assert found["jacobian"] == {"x": ["-Infinity", "0"]}
        assert run("eval", "1/x", "x=0", "--digits", "30", "--json").json["value"] == "Infinity"

    def test_a_comparison_is_decided_at_a_precision_that_is_high_enough(self, run):
        words = ["x=0.1", "--digits", "10", "--no-grad"]
        assert run("eval", "1 if exp(x)*exp(-x) + 1e-300 > 1 else 2", *words).out == "value  1\n"
        assert run("eval", "1 if 1/3 + 1/3 + 1/3 == 1 else 2", "--digits", "10").out == "value  1\n"

    def test_decimals_of_any_length(self, run):
        # Balls at first, and fractions once the precision is high enough.
        program = f"x - 0.{'3' * 5000} - y"
        words = ["x=1/3", f"y=3.333e-{5001}", "--digits", "20", "--no-grad"]
        assert run("eval", program, *words).out == "value  3.3333333333333333333e-5005\n"
        assert (
            run("eval", "1e99999999999*x", "x=-0.5", "--digits", "3", "--no-grad").out == "value  -5.00e+99999999998\n"
        )

    def test_the_largest_of_balls_is_one_of_them(self, run):
        found = run("eval", "max([exp(x), 0.2])", "x=1", "--digits", "20", "--json").json
        assert (found["value"], found["grad"]["x"]) == ("2.7182818284590452354", "2.7182818284590452354")

    def test_a_text_that_float_reads_is_its_decimal(self, run):
        assert run("eval", 'float("0.1") - 0.1 + x', "x=0", "--digits", "20", "--no-grad").out == "value  0\n"
        assert run("eval", 'float("1e400")*x', "x=1", "--digits", "5", "--no-grad").out.startswith("value  1.0000e+400")

    def test_a_literal_beside_a_whole_number_keeps_its_digits(self, run):
        words = ["--digits", "30", "--no-grad"]
        assert run("eval", "x*1.00000000000000000001", "x=1", *words).out == "value  1.00000000000000000001\n"
        integral = run("eval", "integrate(1.00000000000000000001*t, t, 0, 1)", *words)
        assert integral.out == "value  0.500000000000000000005000000000\n"

    def test_stable_forms_are_used(self, run):
        assert run("eval", "log(x**q)", "x=5", "q=3", "--order", "2", "--digits", "20").out.endswith("q,q  0\n")

    def test_forms_for_a_part_of_the_domain_are_not_used_at_its_end(self, run):
        assert run("eval", "sqrt(1 + x) - 1", "x=-1", "--digits", "20").out.endswith("x   inf\n")
        assert run("eval", "log(1 - erf(x))", "x=-inf", "--digits", "5", "--no-grad").out == "value  0.69315\n"


def _numbers(found: Any) -> list[Any]:
    return [found["value"], *found["grad"].values(), *found["derivatives"].values()]


class TestEval:
    def test_json_has_texts_of_so_many_digits(self, run):
        found = run("eval", "1/3 + x", "x=0.1", "--digits", "20", "--json").json
        assert found == {
            "schema": "gradcli/1",
            "program": "1/3 + x",
            "backend": "flint",
            "device": "cpu",
            "dtype": "arb",
            "digits": 20,
            "shape": [],
            "value": "0.43333333333333333333",
            "grad": {"x": "1"},
        }

    def test_a_number_that_is_not_told_from_0_is_a_bound(self, run):
        outcome = run("eval", "exp(x) - exp(x) + 0*y", "x=0.1", "y=2", "--digits", "20")
        assert outcome.status == 1
        assert outcome.out == "value  |…| < 1e-10000\n\nby  gradient\nx   |…| < 1e-10000\ny   0\n"

    def test_giants_have_digits(self, run):
        value = run("eval", "exp(x)", "x=1e300", "--digits", "20", "--no-grad", "--json").json["value"]
        with mpmath.workdps(340):
            exponent = mpmath.mpf(10) ** 300 / mpmath.log(10)
            assert value.startswith(mpmath.nstr(10 ** (exponent % 1), 20, strip_zeros=False) + "e+")
            assert int(value.partition("e")[2]) == int(mpmath.floor(exponent))
        assert run("eval", "exp(-x)", "x=1e5000", "--digits", "5", "--no-grad").out.startswith("value  ")

    @pytest.mark.cases(3)
    @pytest.mark.parametrize(
        "program", ["sin(x)/x", "(1 - cos(x/2))/x**2", "(1 + x)**(1/x)", "s = exp(x) - 1\nx/s", "x*gamma(x)"]
    )
    def test_removable_points_have_their_limits(self, run, program):
        found = run("eval", program, "x=0", "--digits", "30", "--order", "3", "--json").json
        floats = run("eval", program, "x=0", "--order", "3", "--json").json
        for exact, rounded in zip(_numbers(found), _numbers(floats), strict=True):
            assert float(exact) == pytest.approx(rounded, rel=1e-12)

    @pytest.mark.parametrize(
        ("program", "value", "slope"),
        [
            (
                "sin(x)*(1048575 + x)*(1048573 + 1048575*x)*(4095 + 8191*x)/x",
                "4502482940080125",
                "13508561209409535",
            ),
            ("x**24*polygamma(23, x)", "2.585201673888497664e+22", "0"),
            ("tanh(20)*sin(x)/x", "0.99999999999999999150", "0"),
            ("sin(x/3)/x", "0.33333333333333333333", "0"),
            ("sin(pi*x)/x", "3.1415926535897932385", "0"),
            ("(exp(0.1*x) - 1)/x", "0.1", "0.005"),
            ("sin(1.00000000000000000001*x)/x", "1.0000000000000000000", "0"),
            ("sin(x*3*6004799503160661)/(x*18014398509481984)", "0.99999999999999994449", "0"),
            ("524287*524289*5*229*457*525313/524288/524288/524288/524288*sin(x)/x", "1.0000000000000000000", "0"),
            ("(sin(tan(x)) - tan(sin(x)))/x**7", "-0.033333333333333333333", "0"),
            ("(1 - cos(1e200*x))/x**2", "5.0000000000000000000e+399", "0"),
            ("sin(x*1e9999)/x", "1.0000000000000000000e+9999", "0"),
        ],
    )
    def test_limits_are_of_numbers_that_do_not_round(self, run, program, value, slope):
        found = run("eval", program, "x=0", "--digits", "20", "--json").json
        assert (found["value"], found["grad"]["x"]) == (value, slope)

    def test_removable_points_of_arrays(self, run):
        words = ["sin(a*x)/(a*x)", "x=[0, 1e-3, 0]", "a=2", "--digits", "20", "--jacobian", "--wrt", "x", "--json"]
        found = run("eval", *words).json
        assert found["value"] == ["1", "0.99999933333346666665", "1"]
        assert found["jacobian"]["x"][0] == ["0", "0", "0"]
        assert found["jacobian"]["x"][1][1].startswith("-0.0013333328")

    def test_limits_at_points_that_are_no_floats(self, run):
        words = ["(x**2 - 0.01)/(x - 0.1)", "x=0.1", "--digits", "20"]
        assert run("eval", *words).out == "value  0.2\n\nby  gradient\nx   1\n"
        words = ["sin(0.1*a*x)/(0.3*a*x)", "x=0", "a=2", "--digits", "10"]
        assert run("eval", *words).out.startswith("value  0.3333333333\n")

    def test_a_name_may_be_that_of_a_constant(self, run):
        assert (
            run("eval", "pi = 2*x; sin(pi*np.pi)/(np.pi*x)", "x=0", "--digits", "10", "--no-grad").out
            == "value  2.000000000\n"
        )

    @pytest.mark.parametrize("program", ["((sqrt(3)**2 - 3)*x + x**2)/x"])
    def test_a_limit_without_digits_is_an_error(self, run, program):
        outcome = run("eval", program, "x=0", "--digits", "20")
        assert outcome.err.startswith("error: this has no value as it stands, and no digits of its limit are proved\n")
        assert run("eval", program, "x=1e-30", "--digits", "20").status == 0

    @pytest.mark.parametrize(("n", "x"), [(1, "-10.3"), (2, "-1000.25"), (2, "-100000000000000.3")])
    def test_polygamma_takes_no_time_far_below_0(self, run, n, x):
        value = run("eval", f"polygamma({n}, x)", f"x={x}", "--digits", "20", "--no-grad", "--json").json["value"]
        with mpmath.workdps(60):
            number, order = mpmath.mpf(x), n + 1
            slope = mpmath.diff(mpmath.cot, mpmath.pi * number, n) * mpmath.pi**order
            proved(value, (-1) ** n * mpmath.polygamma(n, 1 - number) - slope, 20)

    @pytest.mark.parametrize("program", ["abs(x)*1e300*1e300/x", f"sin(x{16 * '*1e300'})/x"])
    def test_factors_of_any_size_are_no_fault(self, run, program):
        assert "internal error" not in run("eval", program, "x=0", "--digits", "10").err

    @pytest.mark.parametrize("x", ["300.5", "1e6"])
    def test_zeta_takes_no_time_far_to_the_right(self, run, x):
        found = run("eval", "zeta(x, q)", f"x={x}", "q=1.25", "--digits", "20", "--order", "2", "--json").json
        with mpmath.workdps(60):
            number, terms = mpmath.mpf(x), [mpmath.mpf("1.25") + k for k in range(40)]
            for n, text in enumerate((found["value"], found["grad"]["x"], found["derivatives"]["x,x"])):
                proved(text, mpmath.fsum((-mpmath.log(t)) ** n * t**-number for t in terms), 20)
        assert run("eval", "zeta(x)", "x=1e300", "--digits", "9").out.startswith(
            "value  1.00000000\n\nby  gradient\nx   -3."
        )

    def test_what_takes_long_is_charged(self, run):
        words = ["gammaincc(1e8, x)", "x=1e8", "--no-grad", "--digits", "900"]
        outcome = run("eval", *words, "--max-steps", "10000")
        assert outcome.err.startswith("error: the program takes more than 10,000 steps")

    def test_an_exponent_may_have_thousands_of_digits(self, run):
        outcome = run("eval", "exp(exp(x))", "x=20000", "--digits", "5", "--no-grad")
        assert re.fullmatch(r"value  \d\.\d{4}e\+\d{8686}\n", outcome.out)
        with pytest.raises(EvaluationError, match="beyond those of decimal"):
            gradcli.compile("exp(exp(x))").evaluate({"x": 20000}, digits=5)

    def test_numbers_of_text_are_the_decimals_in_it(self, run, tmp_path):
        (tmp_path / "x.json").write_text("[0.1, 1e400]")
        (tmp_path / "t.csv").write_text("a,b\n0.1,3\n0.3,4\n")
        words = [f"x=@{tmp_path}/x.json", f"a=@{tmp_path}/t.csv:a", "--vars", "-", "--no-grad", "--json"]
        given = '{"y": 0.3, "z": [[1e-5]]}'
        outcome = run("eval", "[sum(a), 3*x[0] - y, x[1], z[0, 0]]", *words, "--digits", "20", stdin=given)
        assert outcome.json["value"] == ["0.4", "0", "1.0000000000000000000e+400", "0.00001"]

    def test_an_open_comparison_is_an_error_with_its_place(self, run):
        outcome = run("eval", "2 if exp(x)*exp(-x) > 1 else x", "x=0.1", "--digits", "20", "--max-precision", "500")
        assert outcome.status == 1
        assert outcome.err.splitlines()[:3] == [
            "error: two numbers cannot be told apart with 500 digits",
            "  | 2 if exp(x)*exp(-x) > 1 else x",
            "  |      ^^^^^^^^^^^^^^^^^^",
        ]

    def test_a_pole_that_is_not_told_from_a_large_number_is_an_error(self, run):
        outcome = run("eval", "1/(exp(x)*exp(-x) - 1)", "x=0.1", "--digits", "20", "--max-precision", "500")
        assert outcome.err.startswith("error: it cannot be told whether a number is finite with 500 digits\n")

    @pytest.mark.parametrize(
        ("words", "option"),
        [
            (["--dtype", "float32"], "--dtype"),
            (["--backend", "torch"], "--backend"),
            (["--executor", "compiled"], "--executor"),
            (["--save", "x.npz"], "--save"),
            (["--sparse", "--order", "2"], "--sparse"),
        ],
    )
    def test_options_that_do_not_go_together(self, run, words, option):
        outcome = run("eval", "x**2", "x=3", "--digits", "20", *words)
        assert outcome.status == 2
        assert outcome.err.startswith(f"error: --digits and {option} contradict each other\n")

    def test_limits_hold_whatever_the_precision(self, run):
        program = "y = exp(1)\nfor k in range(1000):\n    y = sin(y)\ny"
        assert run("eval", program, "--digits", "20", "--max-steps", "20000").status == 0
        assert "more than 20,000 steps" in run("eval", program, "--digits", "1000", "--max-steps", "20000").err
        # A result is kept if a higher precision would exceed the limit.
        outcome = run("eval", "zeta(x) - zeta(x)", "x=1.5", "--digits", "20", "--no-grad", "--max-steps", "20000")
        assert outcome.status == 1
        assert re.fullmatch(r"value  \|…\| < 1e-\d{2,3}\n", outcome.out)

    def test_arrays_are_lists_of_texts(self, run):
        found = run("eval", "exp(x)", "x=[1, 0]", "--digits", "20", "--jacobian", "--json").json
        assert found["value"] == ["2.7182818284590452354", "1"]
        assert found["jacobian"] == {"x": [["2.7182818284590452354", "0"], ["0", "1"]]}


class TestDiff:
    def test_the_value_at_a_point_has_the_digits(self, run):
        assert run("diff", "x^2", "x=3", "--digits", "50").out == "2*x\n# 6 at x=3\n"
        found = run("diff", "exp(pi*sqrt(x))", "x=163", "--digits", "40", "--json").json["values"]["x"]
        proved(found, mpmath.exp(mpmath.pi * mpmath.sqrt(163)) * mpmath.pi / (2 * mpmath.sqrt(163)), 40)
        # Not the digits of float64.
        assert run("diff", "x^2", "x=1.23456789012345678901", "--digits", "25").out.endswith(
            "# 2.46913578024691357802 at x=1.23456789012345678901\n"
        )

    def test_without_a_point_there_is_nothing_to_give_digits_of(self, run):
        assert run("diff", "x^2", "--digits", "50").err.startswith("error: --digits is for values at a point\n")


class TestPython:
    def test_results_are_decimals(self):
        found = gradcli.compile("log(x**q)").evaluate({"x": 5, "q": "0.3"}, digits=30, order=2)
        assert found.value == Decimal("0.482831373730230112380227799968")
        assert found.grad == {"x": Decimal("0.06"), "q": Decimal("1.60943791243410037460075933323")}
        assert found.derivatives == {"x,x": Decimal("-0.012"), "x,q": Decimal("0.2"), "q,q": Decimal(0)}

    def test_a_float_is_the_binary_number_and_a_text_the_decimal(self):
        f = gradcli.compile("x")
        given = {0.1: "0.1000000000000000055511151231257827021181583404541015625", "0.1": "0.1"}
        given |= {Decimal("0.1"): "0.1", Fraction(1, 8): "0.125", 3: "3"}
        for value, expected in given.items():
            assert str(f.evaluate({"x": value}, digits=60).value) == expected

    def test_arrays(self):
        found = gradcli.compile("x*y").evaluate(
            {"x": ["0.1", Fraction(1, 4)], "y": np.array([3.0, 0.5])}, digits=20, jacobian=True
        )
        assert found.value.tolist() == [Decimal("0.3"), Decimal("0.125")]
        assert found.jacobian["y"].tolist() == [[Decimal("0.1"), 0], [0, Decimal("0.25")]]
        found = gradcli.compile("x*y").evaluate({"x": [1, 2], "y": 3}, ["y"], digits=20, grad_output=["0.1", 1])
        assert found.grad == {"y": Decimal("2.1")}

    def test_a_number_that_is_not_told_from_0_is_a_zero_with_the_exponent_of_its_bound(self):
        found = gradcli.compile("exp(x) - exp(x)").evaluate({"x": 1}, digits=20, max_precision=300, gradient=False)
        assert str(found.value) == "0E-300"
        assert found.grad is None

    def test_balls(self):
        from flint import arb, fmpq

        found = gradcli.compile("exp(x) + y").evaluate({"x": "0.1", "y": 1}, digits=20, balls=True)
        assert type(found.value) is arb
        assert found.value.rel_accuracy_bits() > 66
        assert found.grad["y"] == fmpq(1)

    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            ({"digits": 0}, "'digits' must be a whole number from 1 on, at most 1,000"),
            ({"digits": 1001}, "'digits' must be a whole number from 1 on, at most 1,000"),
            ({"digits": 20, "max_precision": 10}, "'max_precision' is less than 'digits'"),
            ({"digits": 20, "order": 0}, "'order' must be a whole number from 1 on"),
        ],
    )
    def test_what_cannot_be_asked_for(self, asked, message):
        with pytest.raises(UsageError, match=message):
            gradcli.compile("x**2").evaluate({"x": 3}, **asked)

    @pytest.mark.parametrize("value", ["a", [1, [2]], None, {}])
    def test_what_is_no_number(self, value):
        with pytest.raises(BindingError, match="the value of 'x' is no number"):
            gradcli.compile("x**2").evaluate({"x": value}, digits=20)

    def test_in_a_process_of_its_own(self):
        f = gradcli.compile("x/3", max_seconds=60)
        assert f.evaluate({"x": 1}, digits=5).value == Decimal("0.33333")

    def test_threads_get_right_results(self):
        f = gradcli.compile("exp(x)")
        with ThreadPoolExecutor(8) as pool:
            found = [*pool.map(lambda n: (n, f.evaluate({"x": 1}, digits=n).grad["x"]), [*range(5, 200, 13)] * 2)]
        for n, value in found:
            proved(str(value), mpmath.e, n)

    def test_the_precision_of_the_process_is_as_before(self):
        import flint

        before = flint.ctx.prec
        gradcli.compile("exp(x)").evaluate({"x": 1}, digits=50)
        assert flint.ctx.prec == before


def test_numbers_alone_load_no_numpy_and_others_no_flint():
    code = """
import io, sys
from gradcli.cli.process.environment import Environment
from gradcli.cli.main import main
main(sys.argv[1:], Environment(io.StringIO(), io.StringIO(), io.StringIO(), {}))
print(*sorted({"numpy", "flint"} & {*sys.modules}))
"""

    def loaded(*words: str) -> str:
        return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True).stdout

    words = ["eval", "log(x**q)", "x=5", "q=3"]
    assert loaded(*words) == "\n"
    assert loaded(*words, "--digits", "50") == "flint\n"


def test_without_flint_the_error_says_how_to_install_it(run, monkeypatch):
    from gradcli.arrays import backends

    monkeypatch.setitem(sys.modules, "flint", None)
    backends.backend_module.cache_clear()
    outcome = run("eval", "x", "x=1", "--digits", "5")
    backends.backend_module.cache_clear()
    assert outcome.status == 1
    assert (
        outcome.err == f"error: the backend flint is not installed\nhint: {install_command.install_command('digits')}\n"
    )


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("lambertw(exp(z))", "z=1000"),
        ("(1 + 1/x)**(x**2)/exp(x)", "x=1e6"),
        ("gamma(x)/gamma(x - 1)", "x=200"),
        ("exp(x)", "x=1000"),
        ("x/x", "x=1e400"),
    ],
)
def test_what_overflows_floats_is_told_to_have_digits(run, program, value):
    outcome = run("eval", program, value)
    assert "--digits 15 computes beyond the range of floats" in outcome.err
    assert run("eval", program, value, "--digits", "15").status == 0


@pytest.mark.parametrize(("program", "value"), [("1/x", "x=0"), ("sqrt(x)", "x=-1"), ("log(x)", "x=0"), ("x", "x=inf")])
def test_what_has_no_digits_either_is_not(run, program, value):
    assert "--digits" not in run("eval", program, value).err


def test_a_result_that_is_not_told_from_0_is_said_to_be(run):
    outcome = run("eval", "sin(x)", "x=1e1000000", "--digits", "50")
    assert outcome.status == 1
    assert "with 10,000 digits, a result is not told from 0" in outcome.err
    (warning,) = run("eval", "exp(x)*exp(-x) - 1", "x=0.1", "--digits", "5", "--max-precision", "50", "--json").json[
        "warnings"
    ]
    assert (warning["code"], warning["phase"]) == ("unproved", "digits")
