"""Digits that are proved: `--digits`, and `evaluate(…, digits=…)`."""

from __future__ import annotations

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

    def test_arrays_are_lists_of_texts(self, run):
        found = run("eval", "exp(x)", "x=[1, 0]", "--digits", "20", "--jacobian", "--json").json
        assert found["value"] == ["2.7182818284590452354", "1"]
        assert found["jacobian"] == {"x": [["2.7182818284590452354", "0"], ["0", "1"]]}
