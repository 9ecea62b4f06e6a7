"""Tests repeated evaluation with proved digits: a recorded program has the digits of an unrecorded one."""

from __future__ import annotations

from decimal import Decimal

import pytest

import gradcli

PROGRAMS = {
    "log(x**q)": {"x": "5", "q": "3"},
    "sin(x**2)*exp(x)/x + 0.1": {"x": "1.25"},
    "relu(x)*gamma(x + 3) + abs(x - q)": {"x": "-0.7", "q": "0.2"},
    "where(x > q, x*pi, q**2)": {"x": "1", "q": "0.5"},
    "atan2(x, q) - hypot(x, q)*e": {"x": "-1e-30", "q": "3"},
    "x**-2 + floor(x)*x": {"x": "2.5"},
    "x > 1": {"x": "2"},
}


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def fresh(program, values, **options):
    return gradcli.compile(program).evaluate(values, **options)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "options", [{"digits": 30}, {"digits": 12, "order": 3}, {"digits": 5, "gradient": False}], ids=str
)
def test_a_recorded_program_has_the_digits_of_one_that_is_not(program, options):
    values = PROGRAMS[program]
    compiled = gradcli.compile(program)
    # Not at a jump, where derivatives do not exist.
    other = {name: str(-Decimal(value)) for name, value in values.items()} | {"x": "4.5" if "floor" in program else "4"}
    for given in (values, values, values, other, values):
        assert compiled.evaluate(given, **options) == fresh(program, given, **options)


def test_a_program_is_computed_anew_where_a_guard_does_not_hold():
    program = gradcli.compile("abs(x)**1.5 + max(x, 0)")
    for x, slope in (("4", "4"), ("4", "4"), ("4", "4"), ("-4", "-3"), ("0", "0")):
        assert (
            program.evaluate({"x": x}, digits=10).grad["x"]
            == fresh("abs(x)**1.5 + max(x, 0)", {"x": x}, digits=10).grad["x"]
        )
        assert x == "0" or program.evaluate({"x": x}, digits=10).grad["x"] == Decimal(slope)


def test_constants_have_the_precision_that_is_asked_for():
    program = gradcli.compile("x*pi")
    for digits in (5, 5, 5, 60, 5, 60, 60):
        value = program.evaluate({"x": 1}, digits=digits).value
        assert abs(value - PI) <= Decimal(10) ** (1 - digits)


def test_a_recorded_program_raises_where_one_that_is_not_does():
    program = gradcli.compile("where(x > sqrt(2)**2, 1, x)")
    for _ in range(2):
        assert program.evaluate({"x": 3}, digits=5).value == 1
    for _ in range(3):
        with pytest.raises(gradcli.GradcliError, match="cannot be told apart"):
            program.evaluate({"x": 2}, digits=5, max_precision=100)
