"""Tests `gradcli series`: Taylor polynomials, their fractions, remainders and radii."""

from __future__ import annotations

import cmath
import math
from fractions import Fraction
from typing import Any

import pytest

import gradcli
from gradcli.errors import BackendError, BindingError, DifferentiationError, EvaluationError, UsageError
from gradcli.models.expansions.power_series import suggested_radius


def bernoulli(n: int) -> Fraction:
    """The nth Bernoulli number, by the recurrence over the binomial coefficients."""
    known: list[Fraction] = []
    for m in range(n + 1):
        known.append(Fraction(m == 0) - sum(math.comb(m, k) * b / (m - k + 1) for k, b in enumerate(known)))
    return known[n]


def exact(program: str, order: int, **values: Any) -> list[str | None]:
    return [c.exact for c in gradcli.series(program, order=order, **values).coefficients]


def test_tan_has_bernoulli_fractions() -> None:
    found = exact("tan(x)", 19, x=0)
    for n in range(1, 11):
        want = (-1) ** (n - 1) * 4**n * (4**n - 1) * bernoulli(2 * n) / math.factorial(2 * n)
        assert found[2 * n - 1] == str(want)
        assert found[2 * n - 2] == "0"


def test_several_numbers_have_all_products_of_powers() -> None:
    found = gradcli.series("exp(x + 2*y)", x=0, y=0, order=4)
    assert [*found.center] == ["x", "y"]
    for c in found.coefficients:
        i, j = c.powers
        assert c.exact == str(Fraction(2**j, math.factorial(i) * math.factorial(j)))
    assert len(found.coefficients) == math.comb(6, 2)


def test_elements_of_a_tensor_are_numbers_of_the_centre() -> None:
    found = gradcli.series("sum(x**2) + x[0]*x[1]", x=[1, 2], order=2)
    assert found.center == {"x[0]": 1.0, "x[1]": 2.0}
    assert found.text == "7 + 4*(x[0] - 1) + 5*(x[1] - 2) + (x[0] - 1)**2 + (x[0] - 1)*(x[1] - 2) + (x[1] - 2)**2"


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("sin(x)/x", "1 - x**2/6 + x**4/120"),
        ("s = sin(x); (s - x)/x**3", "-1/6 + x**2/120 - x**4/5040"),
        ("exp(sin(x))", "1 + x + x**2/2 - x**4/8"),
        ("x - x", "0"),
        ("3", "3"),
    ],
)
def test_texts(program: str, text: str) -> None:
    assert gradcli.series(f"{program} + 0*x", x=0, order=4).text == text


def test_what_is_no_fraction_is_not_taken_for_one() -> None:
    # The nearest float is one half.
    assert exact("0.5 + exp(-50)/1e10 + 0*x", 0, x=0) == [None]
    assert exact("exp(x)", 1, x="0.5") == [None, None]
    assert exact("x**2", 2, x="0.1") == ["1/100", "1/5", "1"]


@pytest.mark.slow
def test_a_polynomial_reads_back_as_the_program_nearby() -> None:
    found = gradcli.series("exp(x)*cos(y) + x*y", x=0.25, y=-1, order=10)
    value = gradcli.compile(found.text)(x=0.3, y=-0.9)
    assert abs(value - (math.exp(0.3) * math.cos(-0.9) - 0.27)) < 1e-14
    made: dict[str, Any] = {}
    exec(found.to("python"), made)
    assert abs(made["taylor"](0.3, -0.9) - value) < 1e-14


@pytest.mark.parametrize(
    ("program", "where"),
    [
        ("log(x)", "a branch point"),
        ("1/x", "a pole"),
        ("sqrt(x)", "a branch point"),
        ("abs(x)", "a kink"),
        ("x**2.5", "a branch point"),
        ("exp(1/x)", "a pole"),
        ("relu(x)", "a kink"),
        ("gamma(x)", "a pole"),
        ("1/(1 - cos(x))", "a pole"),
        ("log(x - 1)", "outside the domain"),
        # Away from the centre it takes the other branch.
        ("1 if x == 0 else sin(x)/x", "compares numbers that are equal"),
        ("where(x >= 0, x, x**2)", "compares numbers that are equal"),
    ],
)
def test_no_series_where_there_is_none(program: str, where: str) -> None:
    with pytest.raises(EvaluationError, match=f"no Taylor series.*{where}"):
        gradcli.series(program, x=0, order=3)


def test_wrong_questions() -> None:
    with pytest.raises(DifferentiationError, match="scalar"):
        gradcli.series("[x, x]", x=0)
    with pytest.raises(BindingError, match="does not read 'q'"):
        gradcli.series("x", x=0, q=1)
    with pytest.raises(UsageError, match="order"):
        gradcli.series("x", x=0, order=-1)
    with pytest.raises(BindingError, match="range of 'z'"):
        gradcli.series("x*y", x=0, y=0, over={"z": (0, 1)})
    with pytest.raises(EvaluationError, match="no bound"):
        gradcli.series("1/(1 - x)", x=0, over=(-0.5, 2))
    with pytest.raises(UsageError, match="language"):
        gradcli.series("x", x=0).to("fortran")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "center", "low", "high"),
    [
        ("exp(x)", 0, -0.5, 0.5),
        ("log(x)", 1, 0.8, 1.3),
        ("sin(3*x)", 0.5, 0.5, 1),
        ("1/(1 + x**2)", 0, -0.4, 0.2),
        # Removable singularities.
        ("sin(x)/x", 0, -0.5, 0.5),
        ("(exp(x) - 1 - x)/x**2", 0, 0, 1),
        ("log(x)/(x - 1)", 1, 0.9, 1),
    ],
)
def test_remainders_hold_and_are_not_far_too_large(program: str, center: float, low: float, high: float) -> None:
    found = gradcli.series(program, x=center, order=5, over=(low, high))
    f, p = gradcli.compile(program), gradcli.compile(found.text)
    largest = max(abs(f(x=x) - p(x=x)) for k in range(101) for x in [low + (high - low) * k / 100])
    assert largest - 1e-15 <= found.remainder <= 2 * largest


def test_a_remainder_in_two_numbers_holds() -> None:
    found = gradcli.series("exp(x)*sin(y)", x=0, y=1, order=3, over={"x": (-0.2, 0.1), "y": "0.9..1.1"})
    p = gradcli.compile(found.text)
    steps = [k / 10 for k in range(11)]
    points = [(-0.2 + 0.3 * s, 0.9 + 0.2 * t) for s in steps for t in steps]
    largest = max(abs(math.exp(x) * math.sin(y) - p(x=x, y=y)) for x, y in points)
    assert largest <= found.remainder <= 5 * largest


@pytest.mark.parametrize(
    ("program", "center", "radius"),
    [
        ("log(x)", 2, 2.0),
        ("tan(x)", 0, math.pi / 2),
        ("1/(1 + x + x**2)", 0, 1.0),
        ("1/(1 + x**2)", 1, math.sqrt(2)),
        ("cos(x)", 0, math.inf),
        ("x**3 - x", 1, math.inf),
        ("exp(exp(x))", 0, None),
    ],
)
def test_radii(program: str, center: float, radius: float | None) -> None:
    found = gradcli.series(program, x=center, order=3).radius
    assert found == radius if radius in (None, math.inf) else found == pytest.approx(radius, rel=1e-3)


@pytest.mark.parametrize(
    ("program", "radius"), [("(exp(x) - 1)/x", math.inf), ("sin(x)/x", None), ("log(1 + x)/x", 2.0)]
)
def test_a_radius_is_not_that_of_rounding_errors(program: str, radius: float | None) -> None:
    assert gradcli.series(program, x=1, order=3).radius == radius


@pytest.mark.parametrize(
    ("program", "center", "coefficients", "radius"),
    [
        ("exp(1j*z)", 0.0, [1, 1j, -0.5, -1j / 6], math.inf),
        ("1/(z - 1j)", 0.5j, [2j, 4, -8j, -16], 0.5),
        ("log(1 + z)", 1 + 1j, [cmath.log(2 + 1j), 0.4 - 0.2j, -0.06 + 0.08j, (0.4 - 0.2j) ** 3 / 3], math.sqrt(5)),
        ("1/((z - 1)*(z - 1j))", 0j, [-1j, -1 - 1j, -1, 0], 1.0),
        ("sqrt(z + 1j)", 0.0, [cmath.sqrt(1j), 0.5 / cmath.sqrt(1j), -0.125 / cmath.sqrt(1j) ** 3, 0.0625 / 1j**2.5], 1.0),
        ("real(exp(1j*z))", 0.0, [1, 0, -0.5, 0], math.inf),
    ],
)  # fmt: skip
def test_complex_coefficients(program: str, center: complex, coefficients: list[complex], radius: float) -> None:
    found = gradcli.series(program, z=center, order=3)
    assert [c.value for c in found.coefficients] == pytest.approx(coefficients, rel=1e-14, abs=1e-15)
    assert found.radius == pytest.approx(radius, rel=1e-3)
    near = center + 0.01 * (1 if program.startswith("real") else 1j)
    value = gradcli.compile(program)(z=near)
    assert gradcli.compile(found.text)(z=near) == pytest.approx(value, abs=1e-6)
    names: dict[str, Any] = {}
    exec(found.to("python"), names)
    assert names["taylor"](near) == pytest.approx(value, abs=1e-6)


def test_a_complex_series_is_written(run: Any) -> None:
    assert run("series", "exp(1j*z)", "z=0", "--order", "3").out.splitlines()[0] == (
        "1 + 1j*z - 0.5*z**2 - 0.16666666666666666j*z**3"
    )
    assert (
        run("series", "z**2", "z=1-2j").out
        == "-(3 + 4j) + (2 - 4j)*(z - (1 - 2j)) + (z - (1 - 2j))**2\nradius  inf (the coefficients end)\n"
    )
    assert run("series", "z**2", "z=1j", "--order", "1", "--json").json["coefficients"][1]["value"] == {
        "re": 0,
        "im": 2,
    }
    assert "double complex taylor(double complex z)" in run("series", "z**2", "z=1j", "--to", "c").out
    assert run("series", "real(x)", "x=1/3", "--digits", "10").status == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["abs(z)", "z=1+1j"], "a real value is no power series in the complex 'z'"),
        (["conj(z)", "z=1+1j"], "the program is not holomorphic"),
        (["exp(z)", "z=1j", "--digits", "20"], "this one has complex numbers"),
        (["exp(1j*z)", "z=0", "--over", "-1..1"], "this one has complex numbers"),
    ],
)
def test_what_is_no_complex_series(run: Any, words: list[str], message: str) -> None:
    outcome = run("series", *words)
    assert outcome.status != 0
    assert message in outcome.err


def test_coefficients_that_are_too_small_for_a_float_are_told(run: Any) -> None:
    found = run("series", "exp(-x)", "x=1000", "--order", "1", "--json").json
    assert (found["text"], found["radius"], found["warnings"][0]["code"]) == ("0", None, "underflow")
    assert "5.0760e-435" in run("series", "exp(-x)", "x=1000", "--order", "0", "--digits", "5").out


@pytest.mark.parametrize(
    ("program", "center", "number"),
    [
        ("exp(-1/x**2)", "x=0", "at x = 0.25 it is 1.12535e-07, and the series 0"),
        ("where(x > 1, x, x**2)", "x=0", "at x = 2 it is 2, and the series 4"),
        ("where(x > 1, x, exp(x))", "x=0", "at x = 2 it is 2, and the series 7.38906"),
        ("sum(abs(v))", "v=[3]", "at v[0] = -3 it is 3, and the series -3"),
    ],
)
def test_no_radius_is_claimed_where_a_program_is_not_its_series(
    run: Any, program: str, center: str, number: str
) -> None:
    outcome = run("series", program, center)
    assert "radius" not in outcome.out
    assert f"the program is not equal to its series: {number}" in outcome.err
    for digits in ([], ["--digits", "5"]):
        found = run("series", program, center, "--json", *digits).json
        assert found["radius"] is None
        assert [w["code"] for w in found["warnings"]] == ["not_analytic"]


@pytest.mark.parametrize("program", ["x**3 - 1e10 + x", "sqrt(x)**2", "log(exp(x)) + 1e8", "sin(x)**2 + cos(x)**2"])
def test_a_radius_is_claimed_despite_rounding_and_a_smaller_domain(run: Any, program: str) -> None:
    outcome = run("series", program, "x=1")
    assert (outcome.out.splitlines()[1], outcome.err) == ("radius  inf (the coefficients end)", "")


def test_a_radius_has_the_digits_that_settle() -> None:
    assert gradcli.series("1/((1 - x)*(1.05 - x))", x=0).radius == 1.0
    assert gradcli.series("exp(1/(1 - x))", x=0).radius is None


def test_a_coefficient_of_which_no_digit_is_known_is_not_taken_for_0(run: Any) -> None:
    assert gradcli.series("sin(x)", x=1e300, order=1).coefficients[0].value == math.sin(1e300)
    outcome = run("series", "1 + exp(x)", "x=1000", "--order", "1")
    assert outcome.status == 1
    assert "a coefficient is too large for a float" in outcome.err
    assert "1.9701e+434" in run("series", "exp(x)", "x=1000", "--order", "1", "--digits", "5").out


def test_ranges_of_several_names_in_one_option(run: Any) -> None:
    words = ("series", "exp(x)*y", "x=0", "y=1", "--order", "2", "--json")
    one = run(*words, "--over", "x=-0.1..0.1, y=1..2").json["remainder"]
    assert one == run(*words, "--over", "x=-0.1..0.1", "--over", "y=1..2").json["remainder"]


def test_few_coefficients_suggest_no_radius() -> None:
    assert suggested_radius([1.0] * 5) == (None, None)


def test_digits_are_proved_decimals(run: Any) -> None:
    line = run("series", "exp(x)", "x=1/3", "--order", "1", "--digits", "30", "--json").json
    assert [c["value"] for c in line["coefficients"]] == ["1.39561242508608952862812531960"] * 2
    assert (line["coefficients"][0]["exact"], line["digits"]) == (None, 30)
    unknown = run("series", "sin(x)", "x=pi", "--order", "1", "--digits", "5", "--max-precision", "50", "--json")
    assert unknown.status == 1
    assert unknown.json["coefficients"][0]["value"].startswith("|…| < 1e-")


def test_without_flint_coefficients_are_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise BackendError("there is no python-flint")

    monkeypatch.setattr("gradcli.proofs.digits.computing", missing)
    found = gradcli.series("sin(x)", x=0, order=3)
    assert [c.exact for c in found.coefficients] == [None] * 4
    assert found.text == "x - 0.16666666666666666*x**3"


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "logsigmoid", "silu"])
def test_the_remainder_of_what_is_smooth_at_0_has_a_bound(run, name):
    found = run("series", f"{name}(x)", "x=0", "--order", "3", "--over", "-0.25..0.25", "--json")
    assert found.status == 0
    assert 0 < found.json["remainder"] < 1e-4


def test_the_side_without_a_remainder_is_told(run):
    assert "at some point of x = -1" in run("series", "log(1 + x)", "x=0", "--order", "5", "--over", "-1..0").err


@pytest.mark.slow
def test_no_remainder_is_proved_at_a_kink_beside_a_removable_singularity():
    with pytest.raises(EvaluationError, match="no bound"):
        gradcli.series("sin(x)/x + abs(x - 0.5)", x=0, order=2, over=(0, 1))


@pytest.mark.parametrize(("program", "center"), [("exp(1/x)", "inf"), ("sqrt(x**2 + 1) - x", "-inf")])
def test_a_centre_at_infinity_is_refused_with_what_to_write(run, program, center):
    outcome = run("series", program, f"x={center}")
    assert outcome.status == 1
    assert "a Taylor series is around a finite number, which x is not" in outcome.err
    assert "write 1/t for x, simplify, and expand around t=0" in outcome.err


@pytest.mark.parametrize(
    ("center", "shown"),
    [
        ("1.5707963267948966", "(x - 1.5707963267948966)"),
        ("1e-9", "(x - 1e-09)"),
        ("1/3", "(x - 1/3)"),
        ("-1/4", "(x + 1/4)"),
    ],
)
def test_a_centre_is_the_shorter_of_a_fraction_and_its_decimal(run, center, shown):
    assert f"*{shown}" in run("series", "exp(x)", f"x={center}", "--order", "1").out
