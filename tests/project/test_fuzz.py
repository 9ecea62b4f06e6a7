"""Tests programs that were found wrong once, and that the fuzzer finds injected errors: see tests/fuzz."""

from __future__ import annotations

import pytest

from gradcli.errors import EvaluationError, Span
from gradcli.primitives.entries.arithmetic import negative, sign
from gradcli.primitives.entries.elementwise.trigonometric import cos, sin
from gradcli.primitives.entries.exponential import sigmoid
from gradcli.primitives.entries.linear_algebra.decompositions import orthonormal
from tests.fuzz import checks, commands, mutations, readings
from tests.fuzz.__main__ import FOUND
from tests.fuzz.case import Case
from tests.fuzz.minimise import minimised
from tests.fuzz.programs import program
from tests.wrong_rules import replace_vjp

pytestmark = [pytest.mark.all_cases, pytest.mark.filterwarnings("ignore::gradcli.errors.AccuracyWarning")]
CASES = [Case.of_line(line) for line in FOUND.read_text("utf-8").splitlines()]


@pytest.mark.cases(50)
@pytest.mark.parametrize("case", CASES, ids=range(1, len(CASES) + 1))
def test_what_was_found_is_mended(case):
    assert checks.guarded(checks.full, case, seconds=30) is None


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "count"), [("quick", 500), ("full", 20)])
def test_a_short_run_finds_nothing(mode, count):
    cases = mutations.corpus()
    for i in range(count):
        case = program(0, i, cases)
        found = checks.guarded(checks.MODES[mode], case, seconds=30)
        assert found is None, f"{found.key}\n{case.line()}\n{found.detail}"


@pytest.mark.slow
def test_a_program_of_a_seed_is_the_same_in_every_run():
    cases = mutations.corpus()
    assert [program(3, i, cases) for i in range(50)] == [program(3, i, cases) for i in range(50)]
    assert len({program(s, i, cases).program for s in range(2) for i in range(50)}) > 90


def test_a_case_is_a_line():
    case = Case("x @ y", {"x": [[1.0, float("inf")], [5e-324, -0.0]], "y": 2.0}, 7)
    assert Case.of_line(case.line()) == case


@pytest.mark.slow
def test_most_programs_of_the_writer_have_a_value():
    """The tests above would also pass if every program were an error."""
    cases = mutations.corpus()
    found = [readings.has_value(program(5, i, cases)) for i in range(100)]
    assert sum(found) > len(found) / 3


# --- injected errors are found


def test_an_error_of_python_is_found(monkeypatch):
    monkeypatch.setattr(sin, "prepare", lambda _x: len(5))
    found = checks.guarded(checks.quick, Case("sin(x)", {"x": 1.0}))
    assert found is not None
    assert found.key.startswith("TypeError: primitives/")


def test_a_wrong_derivative_is_found(monkeypatch):
    replace_vjp(monkeypatch, sin, lambda g, _y, x: g * 1.001)
    found = [checks.guarded(checks.full, Case("sin(x)", {"x": 1.0}, draw)) for draw in range(20)]
    assert "check: reverse mode and differences disagree" in {f.key for f in found if f is not None}


def test_a_series_that_is_wrong_is_found(monkeypatch):
    monkeypatch.setattr(sin, "jet", sigmoid.jet)
    found = checks.guarded(checks.full, Case("sin(x)", {"x": 1.0}))
    assert found is not None
    assert found.key == "series: a derivative differs"


def test_a_wrong_second_derivative_is_found_where_inputs_are_far_out(monkeypatch):
    replace_vjp(monkeypatch, cos, lambda g, _y, x: -1.01 * g * sin(x))
    found = checks.guarded(checks.full, Case("sin(x)*q", {"x": 1.0, "q": 1e200}))
    assert found is not None
    assert found.key == "reverse mode far out: a derivative differs"


@pytest.mark.parametrize(
    ("primitive", "case"),
    [
        # Overflowing squares, signs of numbers and matrices do not excuse a wrong rule.
        (sin, Case("sin(x)*cosh(x)", {"x": 700.0})),
        (sin, Case("copysign(sin(x), x)", {"x": 1.0})),
        (orthonormal, Case("qr(A)[0][0, 0]", {"A": [[2.0, 0.5], [-1.0, 3.0]]})),
    ],
)
def test_a_wrong_series_is_found_where_range_or_sense_may_be_lacking(monkeypatch, primitive, case):
    monkeypatch.setattr(primitive, "jet", negative.jet)
    found = checks.guarded(checks.full, case)
    assert found is not None
    assert found.key.startswith("series")


def test_a_series_that_says_zero_of_a_small_derivative_is_found(monkeypatch):
    monkeypatch.setattr(sin, "jet", sign.jet)
    found = checks.guarded(checks.full, Case("1 + sin(x)*1e-20", {"x": 1.0}))
    assert found is not None
    assert found.key == "series: a derivative differs"


def test_what_does_not_end_is_found():
    def check(_case):
        while True:
            pass

    found = checks.guarded(check, Case("x", {}), seconds=0.2)
    assert found is not None
    assert found.key.startswith("slow: ")


@pytest.mark.parametrize(
    ("error", "key"),
    [
        (EvaluationError("a 'float' here"), "insides in a message: 'float'"),
        (EvaluationError("got <class 'list'>"), "insides in a message: <class"),
        (EvaluationError("no", span=Span(2, 9), source="x + 1"), "place outside of the text: no"),
        (EvaluationError(" "), "error without a message"),
    ],
)
def test_a_message_with_insides_is_found(error, key):
    found = checks.wrong_error(error)
    assert found is not None
    assert found.key.startswith(key)


@pytest.mark.parametrize(
    ("status", "out", "err", "key"),
    [
        (3, "", "", "eval: exit status 3"),
        (1, "", "", "eval: fails without a word"),
        (0, '{"value": NaN}\n', "", "eval: JSON is not strict"),
        (0, "{}\n{}\n", "", "eval: JSON is not one line"),
        (1, "", "error: no\n  | x\n  |   ^\n", "eval: carets outside of the text"),
        (1, "", "error: no\n  | ^\n", "eval: carets without a text"),
        (1, "", "error: internal error: ValueError: x\n", "eval: insides in a message: internal error"),
    ],
)
def test_wrong_output_is_found(status, out, err, key):
    options = ["--json"] if out else []
    found = commands.wrong(commands.Printed(["eval", "x", *options], status, out, err), "x")
    assert found is not None
    assert found.key.startswith(key)


def test_a_finding_is_made_short():
    case = Case("y = x + 1\nsum(exp([y, sin(x*2), q]) ** 2) + log(q)", {"x": [0.25, 1.75], "q": 3.25})
    short = minimised(case, lambda c: "sin" in c.program)
    assert short == Case("sinx", {})
