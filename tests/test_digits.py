"""Digits that are proved: `--digits`, and `evaluate(…, digits=…)`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import mpmath
import pytest

pytest.importorskip("flint")


def proved(text: str, expected: Any, digits: int) -> None:
    """A text has so many significant digits, of which the last is off by at most one unit."""
    number = Decimal(text)
    assert len(number.as_tuple().digits) == digits
    unit = mpmath.mpf(10) ** number.adjusted() / mpmath.mpf(10) ** (digits - 1)
    assert abs(mpmath.mpf(text) - expected) <= unit * (1 + mpmath.mpf(10) ** -20)


@pytest.fixture(autouse=True)
def _precise() -> Any:
    with mpmath.workdps(1100):
        yield


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
        # A result is not lost where a higher precision would take too long.
        outcome = run("eval", "zeta(x) - zeta(x)", "x=1.5", "--digits", "20", "--no-grad", "--max-steps", "20000")
        assert outcome.status == 1
        assert re.fullmatch(r"value  \|…\| < 1e-\d{2,3}\n", outcome.out)

    def test_arrays_are_lists_of_texts(self, run):
        found = run("eval", "exp(x)", "x=[1, 0]", "--digits", "20", "--jacobian", "--json").json
        assert found["value"] == ["2.7182818284590452354", "1"]
        assert found["jacobian"] == {"x": [["2.7182818284590452354", "0"], ["0", "1"]]}
