"""Tests certified digits: `gradcli eval --certify`, the same in Python, and `gradcli check --certify`."""

from __future__ import annotations

import math
from itertools import islice

import mpmath
import numpy as np
import pytest
from flint import arb, fmpq

import gradcli
from gradcli.arrays.flint.balls import INFINITY, UNDEFINED, precise
from gradcli.arrays.flint.correct_digits import correct_digits
from tests import proved
from tests.certify import Tally, conformance, random_case
from tests.fuzz import complex_certificates
from tests.judge import Judge, NotJudgedError

CANCELS = "(1 - cos(x))/x**2"


class TestRightDigits:
    @pytest.mark.parametrize(
        ("found", "number", "digits"),
        [
            (0.1, fmpq(1, 10), 16),
            (3.14, fmpq(22, 7), 3),
            (1.0, fmpq(1, 1), 16),
            (1.1, fmpq(1, 1), 0),
            (1.0 + 2.0**-52, fmpq(1), 15),
            (1.09, fmpq(1), 1),
            (-1.0, fmpq(1), 0),
            (0.0, fmpq(0), 16),
            (-0.0, fmpq(0), 16),
            (5e-324, fmpq(0), 0),
            (0.0, fmpq(1, 10**400), 0),
            (1e300, fmpq(1, 10**300), 0),
            (math.inf, INFINITY, 16),
            (-math.inf, INFINITY, 0),
            (1e308, INFINITY, 0),
            (math.inf, fmpq(10) ** 400, 0),
            (math.nan, fmpq(1), 0),
        ],
    )
    def test_of_a_number_that_is_known(self, found, number, digits):
        with precise(128):
            assert correct_digits(found, number) == (digits, digits)

    def test_of_one_that_has_no_value(self):
        assert correct_digits(1.0, UNDEFINED) is None
        assert correct_digits(math.inf, UNDEFINED) is None
        assert correct_digits(math.nan, UNDEFINED) is None

    def test_a_wide_ball_proves_what_it_proves(self):
        with precise(128):
            assert correct_digits(1.0, arb(1, 1e-5)) == (4, 16)
            assert correct_digits(1.01, arb(1, 1e-5)) == (1, 2)
            assert correct_digits(1.0, arb(0, 1)) == (0, 16)
            assert correct_digits(0.0, arb(0, 1e-300)) == (0, 16)
            assert correct_digits(1e-17, arb(0, 1e-300)) == (0, 0)

    def test_of_a_narrow_one(self):
        with precise(200):
            assert correct_digits(math.pi, arb.pi()) == (16, 16)
            assert correct_digits(math.pi * (1 + 1.5e-9), arb.pi()) == (8, 8)


class TestEval:
    def test_where_digits_cancel_few_are_right(self, run):
        found = run("eval", CANCELS, "x=1e-7", "--no-rewrite", "--certify", "--json").json
        assert found["certified"] == {"value": 3, "grad": {"x": 0}}
        assert abs(found["value"] - 0.5) < 0.5e-3

    def test_a_stable_form_is_judged_by_the_program_as_typed(self, run):
        found = run("eval", CANCELS, "x=1e-7", "--certify", "--json").json
        assert found["certified"]["value"] >= 15
        assert found["certified"]["grad"]["x"] >= 15

    def test_the_table_has_a_column(self, run):
        outcome = run("eval", "x*y", "x=0.5", "y=[2,3]", "--grad-output", "[1,1]", "--certify")
        assert outcome.out == (
            "value  [1. , 1.5]  certified: 16\n\nby  gradient    certified\nx   5.0         16\ny   [0.5, 0.5]  16\n"
        )

    def test_of_an_array_the_element_with_the_fewest_counts(self, run):
        found = run("eval", "1 - cos(x)", "x=[1,1e-6]", "--jacobian", "--no-rewrite", "--certify", "--json").json
        assert found["certified"]["value"] in (3, 4)
        assert found["certified"]["jacobian"]["x"] >= 15

    def test_every_order_and_what_is_retained(self, run):
        found = run(
            "eval", "u = x*y; exp(u)", "x=1", "y=2", "--order", "2", "--retain", "u", "--certify", "--json"
        ).json
        assert {part: [*members] for part, members in found["certified"].items() if part != "value"} == {
            "grad": ["x", "y"],
            "derivatives": ["x,x", "x,y", "y,y"],
            "retained": ["u"],
        }
        assert min(found["certified"]["derivatives"].values()) >= 15

    def test_inputs_and_literals_are_the_floats_and_constants_are_not(self, run):
        assert run("eval", "x + 0.1", "x=0.2", "--certify", "--json").json["certified"]["value"] == 16
        # Certification compares with the sum of the floats, not with that of the two decimals.
        assert run("eval", "x + 0.2 - 0.3", "x=0.1", "--certify", "--json").json["certified"]["value"] == 0
        assert run("eval", "sin(x*pi)", "x=1", "--certify", "--json").json["certified"]["value"] == 0

    def test_in_single_precision_there_are_fewer(self, run):
        found = run("eval", "exp(x)", "x=0.3", "--dtype", "float32", "--certify", "--json").json
        assert found["certified"]["value"] in (7, 8)

    def test_a_derivative_that_does_not_exist_has_no_digits(self, run):
        outcome = run("eval", "x > 1", "x=2", "--certify", "--require-digits", "16", "--json")
        assert outcome.json["certified"] == {"value": 16, "grad": {"x": None}}
        assert outcome.status == 0

    @pytest.mark.parametrize(("digits", "status"), [(3, 0), (4, 1), (16, 1)])
    def test_fewer_than_are_required_are_a_failure(self, run, digits, status):
        words = ("eval", CANCELS, "x=1e-7", "--no-grad", "--no-rewrite", "--certify", "--require-digits", str(digits))
        assert run(*words).status == status

    def test_what_has_no_value_as_typed_is_not_certified(self, run):
        outcome = run("eval", "((sqrt(3)**2 - 3)*x + x**2)/x", "x=0", "--certify", "--json", "--require-digits", "1")
        assert abs(outcome.json["value"]) < 1e-15
        assert outcome.json["certified"] == {"value": None, "grad": {"x": None}}
        (warning,) = outcome.json["warnings"]
        assert (warning["code"], warning["phase"]) == ("unproved", "certify")
        assert warning["message"].startswith("no digits are proved: this has no value as it stands")
        assert outcome.status == 1

    def test_nan_has_no_digits_and_an_infinity_has_all(self, run):
        outcome = run("eval", "sqrt(x)", "x=-1", "--certify", "--json", "--require-digits", "1")
        assert outcome.json["certified"] == {"value": None, "grad": {"x": None}}
        assert outcome.status == 1
        assert "no digits of the value and the derivative by x are proved" in outcome.json["warnings"][-1]["message"]
        outcome = run("eval", "1/x", "x=0", "--certify", "--json")
        assert outcome.json["certified"] == {"value": 16, "grad": {"x": 16}}

    def test_statements_that_nothing_reads_are_left_out(self, run):
        # It cannot be told on which side of a branch cut (1j)**-2.0 is.
        program = "b = angle(1j**(-2.0)); c = b + 1; u = 2*z; real(exp(z))"
        found = run("eval", program, "z=1+2j", "--retain", "u", "--certify", "--quiet", "--json").json
        assert found["certified"]["value"] >= 14
        assert "on a branch cut" in run("eval", f"{program} + b", "z=1+2j", "--certify").err
        program = "f = lambda x: x**2; a = b = 3; s = 0; s += z; a*f(s)"
        assert run("eval", program, "z=1+2j", "--certify", "--json").json["certified"] == {
            "value": 16,
            "grad": {"z": 16},
        }

    def test_a_number_that_is_0_or_not_is_not_certified_to_be(self, run):
        outcome = run("eval", "sin(x)**2 + cos(x)**2", "x=0.7", "--certify", "--json", "--max-precision", "200")
        if outcome.json["grad"]["x"] == 0.0:
            assert outcome.json["certified"] == {"value": 16, "grad": {"x": None}}
            assert (
                "no digits of the derivative by x are proved: with 200 digits" in outcome.json["warnings"][0]["message"]
            )
        # A number that is 0 up to rounding is certain to be different.
        found = run("eval", "sin(x*pi)", "x=1", "--certify", "--no-grad", "--json")
        assert found.json["certified"] == {"value": 0}

    def test_a_function_that_balls_lack_is_named(self, run):
        outcome = run("eval", "sum(qr(A)[1]) + x", "A=[[1,2],[3,4]]", "x=1", "--certify")
        assert outcome.status == 0
        assert "certified: -" in outcome.out
        assert "warning: no digits are proved: there are no proved digits of 'qr'" in outcome.err
        assert "  | sum(qr(A)[1]) + x\n  |     ^^^^^" in outcome.err

    def test_a_choice_that_no_precision_decides(self, run):
        outcome = run("eval", "x if sin(pi) > 0 else 2*x", "x=1", "--certify", "--max-precision", "100")
        assert "no digits are proved: two numbers cannot be told apart with 100 digits" in outcome.err

    def test_truth_values_beside_numbers_count_as_0_and_1(self, run):
        program = "logsumexp(v > 1, b=[1,2]) + where(v[0] > 1, v[0], v[1] > 0)"
        assert run("eval", program, "v=[2,1]", "--certify", "--json").json["certified"]["value"] >= 15

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--require-digits", "12"), "--require-digits asks for digits that are certified"),
            (("--certify", "--require-digits", "17"), "--require-digits is between 1 and 16"),
            (("--certify", "--order", "2", "--sparse"), "--certify is for derivatives that are not sparse"),
            (("--certify", "--digits", "20"), "--digits and --certify contradict each other"),
        ],
    )
    def test_what_does_not_go_together(self, run, words, message):
        outcome = run("eval", "x**2", "x=1", *words)
        assert outcome.status == 2
        assert message in outcome.err


class TestInPython:
    def test_values_derivatives_and_their_digits(self):
        found = gradcli.compile("x**2*y").certify({"x": 0.3, "y": np.float64(3.0)}, order=2)
        assert found.value == pytest.approx(0.27)
        assert found.digits["value"] >= 15
        assert found.digits.keys() == {"value", "grad", "derivatives"}
        assert found.grad.keys() == found.digits["grad"].keys() == {"x", "y"}
        assert found.derivatives["x,y"] == 0.6
        assert found.problems == ()

    def test_jacobians_by_some_names(self):
        found = gradcli.compile("x*y").certify({"x": np.array([0.1, 0.7]), "y": 3.0}, ["x"], jacobian=True)
        assert found.grad is None
        assert found.digits["jacobian"].keys() == {"x"}

    def test_why_nothing_is_proved(self):
        found = gradcli.compile("eigvalsh(A)[0]").certify({"A": [[2.0, 1.0], [1.0, 3.0]]})
        assert found.digits == {"value": None, "grad": {"A": None}}
        assert "eigenvalues" in found.problems[0] or "eigvalsh" in found.problems[0]

    def test_in_a_process_of_its_own(self):
        program = gradcli.compile("1 - cos(x)", max_memory="2GiB")
        assert program.certify({"x": 0.5}).digits["value"] >= 15


class TestAgainstTheJudge:
    """Samples; `python -m tests.certify` checks any number of programs, and `python -m tests.fuzz.complex_certificates`
    those of complex numbers."""

    def test_programs_of_the_conformance_file(self):
        tally = Tally(seconds=1)
        for case in islice(conformance(), 0, None, 40):
            tally.add(case)
        assert tally.wrong == []
        assert tally.verdicts["confirmed"] > 25

    @pytest.mark.slow
    def test_random_programs(self):
        tally = Tally(seconds=1)
        for i in range(25):
            tally.add(random_case(14, i))
        assert tally.wrong == []
        assert tally.verdicts["confirmed"] > 15

    @pytest.mark.slow
    def test_random_programs_of_complex_numbers(self):
        tally = complex_certificates.Tally(seconds=2)
        for i in range(12):
            tally.add(complex_certificates.program(0, i))
        assert tally.wrong == []
        assert tally.verdicts["confirmed"] > 90

    def test_the_judge_finds_derivatives_and_kinks(self):
        judge = Judge(gradcli.compile("exp(2*x)*abs(y)").program, {"x": 0.5, "y": 0.0})
        with mpmath.workdps(60):
            assert not judge.is_smooth([("y", ())])
            judge = Judge(gradcli.compile("diff(exp(2*x)*y, x)").program, {"x": 0.5, "y": 3.0})
            assert abs(judge.derivative([("x", ())]) - 12 * mpmath.e) < 1e-40
        with pytest.raises(NotJudgedError):
            Judge(gradcli.compile("randn(2, seed=1)").program, {}).value()


@pytest.mark.parametrize("program", ["erfc(x)*exp(x**2)", "dawsn(x)", "ellipk(x)", "zeta(x + 2)"])
def test_series_are_not_cut_off_at_ten_terms(run, program):
    found = run("eval", program, "x=0.4", "--order", "13", "--digits", "10", "--json").json["derivatives"]
    floats = run("eval", program, "x=0.4", "--order", "13", "--quiet", "--json").json["derivatives"]
    for key, text in found.items():
        assert math.isclose(float(text), floats[key], rel_tol=1e-4)


@pytest.mark.parametrize(("name", "every"), [(name, 97) for name in proved.FILES])
def test_stored_references_are_those_that_are_proved(name, every):
    """A sample; `python -m tests.proved` checks all of them."""
    _, lines = proved.tallied(islice(proved.FILES[name](), 0, None, every))
    assert lines == []


class TestCheck:
    def test_a_clause_that_is_right(self, run):
        outcome = run(
            "check", "cube(t) = t**3 backward(g) = 3*g*t**2; sum(cube(x))", "x=[1,2]", "--order", "2", "--certify"
        )
        assert outcome.status == 0
        assert outcome.out.splitlines()[0].split() == [
            "leaf",
            "order",
            "index",
            "reverse",
            "proved",
            "digits",
            "agrees",
        ]

    @pytest.mark.parametrize("body", ["cube(x)", "log(cube(x))", "sum(cube([x, 2*x])/x)", "cube(x)*x**2"])
    def test_a_clause_that_is_wrong_in_its_twelfth_digit(self, run, body):
        wrong = f"cube(t) = t**3 backward(g) = 3.00000000001*g*t**2; {body}"
        outcome = run("check", wrong, "x=1.7", "--certify", "--tolerance", "1e-13")
        assert outcome.status == 1
        assert "reverse mode and proof disagree on the derivative by 'x'" in outcome.err
        assert "backward(g) = 3.00000000001*g*t**2" in outcome.err.splitlines()[1]
        assert run("check", wrong, "x=1.7", "--certify", "--json").json["agrees"]

    def test_a_rule_that_is_right_agrees_though_float64_loses_its_digits(self, run):
        program = "f(t) = 1 - cos(t) backward(g) = g*(sqrt(1 - cos(t)**2)); f(x)"
        (row,) = run("check", program, "x=1e-7", "--certify", "--json").json["checks"]
        assert (row["agrees"], row["proved"]) == (True, math.sin(1e-7))
        assert row["digits"] < 5

    def test_only_the_second_derivative_is_wrong(self, run):
        program = "f(t) = t**3 backward(g) = 3*g*t*detach(t); f(x)"
        rows = run("check", program, "x=0.7", "--order", "2", "--certify", "--json").json["checks"]
        assert [row["agrees"] for row in rows] == [True, False]

    def test_what_is_not_finite_is_said(self, run):
        outcome = run("check", "sqrt(x)", "x=0", "--certify")
        assert outcome.status == 1
        assert "cannot be checked where numbers are not finite" in outcome.err
