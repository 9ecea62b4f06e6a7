"""Tests that programs proposed by hints run as pasted and have the intended meaning."""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import gradcli
from gradcli.cli import command, hints, usage_errors
from gradcli.cli.main import COMMANDS
from gradcli.errors import Proposal, Span
from gradcli.language.suggestions import unknown_names
from gradcli.language.syntax import foreign_notations, parse
from gradcli.primitives import table

pytestmark = pytest.mark.all_cases

NAMES = {
    "x": "2",
    "A1": "3",
    "A": "[[1, 2], [3, 5]]",
    "b": "[1, 2]",
    "v": "[3, 4]",
    "alpha": "0.5",
    "x_1": "5",
    "x1": "5",
}


def value(run, program):
    """The value of a program, for the names that it reads, or the error."""
    words = [f"{n}={text}" for n, text in NAMES.items() if re.search(rf"(?<![A-Za-z_.]){n}(?![A-Za-z_0-9])", program)]
    return run("eval", "-", *words, "--no-grad", "--json", stdin=program)


def assert_runs(run, program, expected):
    outcome = value(run, program)
    assert outcome.status == 0, (program, outcome.err)
    np.testing.assert_allclose(outcome.json["value"], expected, 1e-12)


# Notations, each with the value that its author intends.
NOTATIONS = [
    # books
    ("sin^2(x)", np.sin(2) ** 2), ("sin^2 x", np.sin(2) ** 2), ("sin²(x) + 1", np.sin(2) ** 2 + 1), ("sin² x", np.sin(2) ** 2),
    ("tan⁻¹(x)", np.arctan(2)), ("tan^-1 x", np.arctan(2)), ("log²(x)", np.log(2) ** 2), ("cos^{2}(x)", np.cos(2) ** 2),
    ("sin x", np.sin(2)), ("sin 2x + 1", np.sin(4) + 1), ("sin x cos x", np.sin(2) * np.cos(2)), ("ln x", np.log(2)),
    ("2 sin(x)", 2 * np.sin(2)), ("x sin(x)", 2 * np.sin(2)), ("sin(x)cos(x)", np.sin(2) * np.cos(2)), ("(x+1)(x+2)", 12),
    ("(x+1)x", 6), ("|x - 5|", 3), ("2|x - 5| + |x|", 8), ("‖v‖", 5), ("||v||", 5), ("⌊x/3⌋", 0), ("⌈x/3⌉", 1), ("∜16", 2),
    ("½x", 1), ("1½ + x", 3.5), ("x½", 1), ("x–1", 1), ("x∗3", 6), ("x∕2", 1), ("x^²", 4), ("log₁₀(x)", np.log10(2)), ("x₁", 5),
    ("{x + 1}", 3), ("A'", [[1, 3], [2, 5]]), ("d/dx x^2", 4), ("∂/∂x (x^3)", 12), ("d/dx sin(x)^2 + 1", np.sin(4) + 1), ("d^2/dx^2 x^4", 48), ("d²/dx² x³", 12), ("d/dx sin x", np.cos(2)), ("x² + sin x", 4 + np.sin(2)),
    # LaTeX
    (r"\\frac{x}{2}", 1), (r"\\frac{1}{1+e^{-x}}", 1 / (1 + np.exp(-2))), (r"\\dfrac12 x", 1), (r"\\sqrt{x}", 2**0.5),
    (r"\\sqrt[3]{x + 6}", 2), (r"\\sin x", np.sin(2)), (r"2\\pi x", 4 * np.pi), (r"x^{2} + 1", 5), (r"e^{-x^{2}}", np.exp(-4)),
    (r"x_{1}", 5), (r"\\left(x + 1\\right)^2", 9), (r"2 \\cdot x", 4), (r"$x^2$", 4), (r"\\(x^2\\)", 4), (r"x \\le 3", 1),
    (r"\\frac{\\sin x}{x}", np.sin(2) / 2), (r"\\sin^2 x", np.sin(2) ** 2), (r"\\alpha x", 1), (r"\\lvert x - 5\\rvert", 3),
    (r"\\frac{d}{dx} x^2", 4), (r"\\operatorname{erf}(x)", 0.9953222650189527), (r"\\exp\\left(-\\frac{x^2}{2}\\right)", np.exp(-2)),
    (r"\\log_{2} x", 1), (r"\\log_2\\left(x + 6\\right)", 3), (r"\\frac{\\log_{10}x^2}{x}", np.log10(2)), (r"\\max(x, 3)", 3),
    # letters above the line
    ("2ˣ", 4), ("e⁻ˣ", np.exp(-2)), ("2ˣ⁺¹*3", 24), ("vᵀ@v", 25),
    # spreadsheets, MATLAB, R, C, Fortran, Mathematica
    ("=A1^2", 9), ("x.^2", 4), ("x.*3", 6), ("1 ./x", 0.5), ("v.'", [3, 4]), ("[1,2;3,4]*x", [[2, 4], [6, 8]]), ("[1 2 3]", [1, 2, 3]),
    ("x ~= 2", 0), ("A\\b", [-1, 1]), ("x %% 2", 0), ("b %*% v", 11), ("x %/% 2", 1), ("x && 1", 1), ("!(x > 3)", 1), ("x ? 5 : 6", 5),
    ("if x > 1 then 2 else 3", 2), ("x mod 2", 0), ("x AND 1", 1), ("x .gt. 1", 1), ("1.5d0*x", 3), ("2d-3", 0.002),
    ("1.0f + x", 3), ("1.0_dp*x", 2), ("0x1F", 31), ("y := x^2", 4), ("y ← x^2", 4), ("$A$1*2", 6), ("x^2%", 0.04), ("{1, 2}", [1, 2]),
    ("1,5", 1.5), ("1,5*x", 3), ("1,234.5*x", 2469), ("x^0,5", 2**0.5), ("90°", np.pi / 2), ("cos(60°)", 0.5),
    ("5 kg", 5), ("9.81 m/s^2", 9.81), ("x*3 m", 6), ("$5", 5), ("5 %", 0.05),
    ("Sin[x]", np.sin(2)), ("Exp[-x^2]", np.exp(-4)), ("A^T", [[1, 3], [2, 5]]), ("D[x^3, x]", 12),
    ("x(x + 1)", 6), ("f(u) = u^3; f'(x)", None),
    ("f(u) = u^3; f'(2)", None), ("f(u) = u^4/4; f''(1 + 1)", None), ("1.234,5*x", 2469), ("1 000*x", 2000), ("x + 1 234 567.5", 1234569.5),
    ("5% * x", 0.1), ("x*(1 + 5%)^2", 2.205), ("x/5%", 40), ("det A", -1),
    ("ln|x - 5|", np.log(3)), ("2ln|x|", 2 * np.log(2)), ("||x - 5| - 1|", 2), ("2π√(x)", 2 * np.pi * 2**0.5), ("³√(x + 6)", 2),
    ("x²√x", 4 * 2**0.5), ("(1/2)alpha", 0.25), ("x²alpha", 2), ("2·10⁻² x", 0.04), ("5% of x", 0.1), ("IF(x > 1;x;-x)", 2),
    ("maximum(x;2,5)", 2.5), ("std::sin(x)", np.sin(2)), ("(float)x*2", 4), ("double y = x*x", 4), ("x ∧ 3", 3), ("¬(x > 3)", 1),
    ("⟨b,v⟩", 11), ("Sum[k^2, {k, 1, 3}]", 14), ("D[x^3, {x, 2}]", 12), ("Log[x, 8]", 3), ("log base x of 8", 3), ("sin 90 degrees", 1), ("x squared", 4),
    ("square root of x", 2**0.5), ("d/dx(x^2)", 4), ("d(x^2)/dx", 4), ("10 choose x", 45), ("v(1:2)", [3, 4]), ("A(2,:)", [3, 5]), ("A(:,1)", [1, 3]), ("v(2:end)", [4]), ("A.^2", [[1, 4], [9, 25]]),
    ("x*v.^2", [18, 32]), ("1:3", [1, 2, 3]), ("0:0.5:1", [0, 0.5, 1]), ("x++", 3), ("x ∈ [1, 3]", 1), ("beta*x where beta = 3", 6), ("let beta = x^2 in beta + 3", 7), ("dbeta/dx where beta = x^2", 4), ("[x*k for k in 1..3]", [2, 4, 6]), ("20°C", 20), (r"\\sum_{i=1}^{3} i x", 12), ("sum_{i=1}^{3} i x", 12),
    (r"2\\prod_{k=1}^3 \\frac{k}{2}", 1.5), ("sum(i, 1, 3, i^x)", 14), ("sum(i^x, i, 1, 3)", 14), ("prod(k + 1, k, 1, 2)", 6),
    ("if(x > 1, log(x), 0)", np.log(2)), ("case when x > 1 then 2 else 3 end", 2), ("2 pi x", 4 * np.pi), ("1/2 x v^2", [9, 16]), ("4 pi x1 x", 40 * np.pi),
    ("int(t^2, t=0..1)", 1 / 3), ("sum(k^2, k=1..3)", 14), ("lim(sin(t)/t, t->0)", 1), ("limit(t → 0, sin(t)/t)", 1), ("∫_0^x t^2 dt", 8 / 3), ("∫(t², t, 0, 1)", 1 / 3),
    ("integral(t^2, t, 0, 1)", 1 / 3), ("int(t^2, t, 0, 1)", 1 / 3), ("integrate(t^2, 0, 1)", 1 / 3), ("limit(sin(t)/t, 0)", 1),
    ("exp10(x)", 100), ("exp10(x + 1)", 1000), ("nthroot(8, x + 1)", 2), ("rms(v)", 12.5**0.5), ("step(x)", 1), ("coalesce(x, 3)", 2), ("C(5, x)", 10), ("W(x*e^x)", 2),
    ("sumsq(v)", 25), ("geomean(v)", 12**0.5), ("lim(t^2, t, 3)", 9), ("corr(v, v^2)", 1), ("covar(v, 2*v)", 1),
    ("norm.cdf(x - 2)", 0.5), ("stats.norm(2, 1).cdf(x)", 0.5), ("Normal(0.0, 1.0).log_prob(x)", -2 - np.log(2 * np.pi) / 2),
    ("Math.PI", np.pi), ("x >= 2 ? 5 : 6", 5), ("1 + (x > 2 ? 5 : 6)", 7),
    ("=-A1^2", 9), ("=2-A1^2", -7), ("=2*-(A1+1)^2", 32), ("=A1^2^2", 81), ("=2^-A1", 0.125), ("=sqrt(-A1^2)", 3), ("=x^-x^2", 0.0625), ("y = x <= 1 ? 5 : 6", 6), ("∣x - 5∣", 3), ("c(1,2)", [1, 2]),
]  # fmt: skip


@pytest.mark.parametrize(("program", "expected"), NOTATIONS, ids=[p for p, _ in NOTATIONS])
def test_a_notation_that_is_refused_has_a_hint_that_runs(run, program, expected):
    program = program.replace("\\\\", "\\")
    outcome = value(run, program)
    assert outcome.status != 0
    written = re.fullmatch(
        r"write (.*?)(?: for (?:the transpose|a product).*|, or \[a, b\].*|; norm.*)?", outcome.error["hint"]
    )[1]
    if expected is None:
        assert_runs(run, f"{program.rpartition(';')[0]}; {written}", 12)
    else:
        assert_runs(run, written, expected)


NOTATIONS_OF_RULES = [rule for rule in foreign_notations._RULES if isinstance(rule, foreign_notations.Notation)]


@pytest.mark.parametrize("notation", NOTATIONS_OF_RULES, ids=lambda notation: notation.example)
def test_the_example_of_a_notation_has_a_hint(notation):
    assert notation(notation.example) != notation.example
    with pytest.raises(gradcli.GradcliError) as refused:
        parse(notation.example)
    assert refused.value.hint.startswith("write ")


TWO_READINGS = [
    ("1/2x", [1 / 4, 1.0]), ("-x!", [None, -2]), ("2x!", [24, 4]), ("√x²", [2, 2]), ("[1 -2]", [[-1], [1, -2]]), ("x!!", [2]), ("2(3)", [6]),
    ("x^2(x + 1)", None), ("3!=6", None), ("1.000+-0.002", [0.998]), ("max(v, 0)", None), ("x <- 3", None),
]  # fmt: skip


@pytest.mark.parametrize(("program", "expected"), TWO_READINGS, ids=[p for p, _ in TWO_READINGS])
def test_both_readings_can_be_written(run, program, expected):
    outcome = value(run, program)
    assert outcome.status != 0
    assert outcome.error["hint"].startswith("write ")
    for written, result in zip(re.split(r" or |, or ", outcome.error["hint"].removeprefix("write ")), expected or ()):
        if result is not None:
            assert_runs(run, f"[{written}]" if isinstance(result, list) else written, result)


CALLED = [
    ("normcdf(x)", 0.9772498680518208), ("fact(x)", 2), ("length(v)", 2), ("EXP(x)", np.exp(2)), ("Sin(x)", np.sin(2)), ("tg(x)", np.tan(2)),
    ("lg(x)", np.log10(2)), ("nCr(5, x)", 10), ("ReLU(x)", 2), ("LeakyReLU(x)", 2), ("dexp(x)", np.exp(2)), ("expf(x)", np.exp(2)),
    ("avg(v)", 3.5), ("arctg(x)", np.arctan(2)), ("mse(x, 1)", 1), ("Γ(x)", 1), ("Φ(x)", 0.9772498680518208),
    ("PI()*x", 2 * np.pi), ("Pi*x", 2 * np.pi), ("E^x", np.exp(2)), ("TRUE*x", 2), ("Infinity > x", 1), ("lgo(x)", np.log(2)),
    ("count(v)", 2), ("iif(x > 1, 5, 6)", 5), ("Σ(v)", 7),
    ("long(x + 0.9)", 2),
]  # fmt: skip


@pytest.mark.parametrize(("program", "expected"), CALLED, ids=[p for p, _ in CALLED])
def test_a_name_of_another_language_is_known(run, program, expected):
    error = value(run, program).error
    found = re.fullmatch(r"(?:did you mean '|write )(\w+)'?\??", error["hint"])[1]
    start = error["column"] - 1
    end = start + len(re.match(r"\w+(?:\(\))?", program[start:])[0])
    named = program[start:end]
    assert_runs(
        run,
        program[:start] + found + program[end if named.endswith("()") else start + len(named.rstrip("()")) :],
        expected,
    )


def test_what_people_mean_is_there():
    for name in unknown_names._FUNCTIONS:
        assert table.find(name) is not None or name in ("len", "diff"), name


# Each with the bindings and what the hint says.
RUN_TOGETHER = [
    ("2πr", "r=2", "'πr' is one name: write π*r"), ("mc²", "m=1 c=2", "'mc' is one name: write m*c"),
    ("n*RT/V", "n=1 R=2 T=3 V=4", "'RT' is one name: write R*T"), ("2sinx", "x=1", "'sinx' is one name: write sin(x)"),
    ("x*y + xy", "x=1 y=2", "write x*y"),
    ("sin2x", "x=1", "'sin2x' is one name: write sin(2*x)"), ("a*xsin(a)", "a=1 x=2", "write x*sin(a)"),
    ("ab", "a=1 b=2 ab=3", "did you mean 'ab'?"), ("kx", "x=1", "it reads 'kx'"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "words", "hint"), RUN_TOGETHER, ids=[p for p, _, _ in RUN_TOGETHER])
def test_names_that_run_together(run, program, words, hint):
    assert run("eval", program, *words.split(), "--json").error["hint"] == hint


def test_names_that_run_together_in_rows(run):
    assert run("map", "mc**2", "m=2", "c=3", stdin="t\n1\n").err.endswith("hint: 'mc' is one name: write m*c\n")


def test_what_python_has_and_programs_have_not(run):
    """Each says what to write, or to leave out."""
    assert "leave the 'if' out" in run("eval", 'if __name__ == "__main__":\n  x', "x=1").err
    assert "the gradients are computed anyway" in run("eval", "x.grad", "x=1").err
    assert "a name for each value" in run("eval", 'p = {"a": x}', "x=1").err


def test_more_objects_than_one_are_the_business_of_map(run):
    error = run("eval", "x**2", "--vars", "-", "--json", stdin='{"x": 3}\n{"x": 4}').error
    assert (error["line"], error["hint"]) == (2, "gradcli map takes an object a line, for as many results")


READINGS = [
    ("x^-2y", "x^(-2*y)", "x^-2*y"),
    ("1/-2x", "1/(-2*x)", "1/-2*x"),
    ("cos^-2(x)", "cos(x)^-2", "cos^(-2*(x))"),
    ("x + 5%", "+ 5/100", "*(1 + 5/100)"),
]


@pytest.mark.parametrize(("program", "one", "other"), READINGS, ids=[p for p, _, _ in READINGS])
def test_both_readings_keep_the_sign(run, program, one, other):
    message = run("eval", program, "x=1", "y=2", "--json").error["message"]
    assert message == f"this can be read as {one} and as {other}"


def test_a_condition_in_square_brackets(run):
    assert "write (x > 2)*y in round brackets" in run("eval", "[x > 2]*x^2", "x=3").err
    assert run("eval", "sum([2.0]*(n + 1))", "n=3", "--json").json["value"] == 8


@pytest.mark.parametrize("program", ["[x + 1]*2", "[x]*n", "2*[x]", "[x*1.0]*(n + 1)"])
def test_a_list_of_what_is_computed_is_not_repeated_in_silence(run, program):
    outcome = run("eval", f"sum({program}) + 0*x*n", "x=2", "n=3")
    assert "'*' of lists repeats the list in Python" in outcome.err
    assert "write tile(x, n) or multiply(x, n)" in outcome.err


@pytest.mark.parametrize("program", ["[0.0]*3", "[-1]*n", "[[0.0]*2]*n", "[True]*n"])
def test_a_list_of_numbers_that_are_written_is_repeated(run, program):
    assert run("eval", f"y = {program}; len(y) + 0*n", "n=3", "--json").json["value"] == 3


def test_a_sign_and_a_fraction_that_are_no_part_of_a_formula(run):
    assert "+ or -" in run("eval", "-b±√x", "b=1", "x=1").err
    assert "call it T_half" in run("eval", "2^(-t/T½)", "t=1", "T=1").err


@pytest.mark.parametrize(
    ("given", "hint"),
    [("3 m + 2 cm", "write 3*m + 2*cm"), ("90 km/h", "write 90*km/h"), ("5 kg * 3 m/s^2", "write 5 * 3")],
)
def test_units_are_left_out_only_where_the_numbers_mean_the_same_without_them(run, given, hint):
    assert run("eval", given, "--json").error["hint"] == hint


VALUES = [("5 kg", "write 5"), ("3 m/s", "write 3"), ("5kg", "write 5: a value has no unit"), ("1,5", "write 1.5"), ("45°30", "write deg2rad(45)"),
          ("1d3", "write 1e3"), ("[1 2 3]", "write [1, 2, 3]"), ("1.234,5", "write 1234.5"), ("1±0.1", "without its uncertainty")]  # fmt: skip


@pytest.mark.parametrize(("given", "hint"), VALUES)
def test_a_value_as_it_is_written_elsewhere(run, given, hint):
    error = run("eval", "x^2", f"x={given}", "--json").error
    assert hint in error["hint"]
    assert error["column"] > 2


@pytest.mark.parametrize(
    ("given", "read", "number"),
    [("10k", "10e3", 1e4), ("2.2u", "2.2e-6", 2.2e-6), ("-4.7n", "-4.7e-9", -4.7e-9), ("3 M", "3e6", 3e6)],
)
def test_a_prefix_of_a_value_is_read_and_told(run, given, read, number):
    outcome = run("eval", "x", f"x={given}", "--json")
    assert outcome.json["value"] == number
    assert outcome.err == f"note: x={given} is read as {read}\n"
    assert run("eval", "x", f"x={given}", "--json", "--quiet").err == ""


def test_prefixes_are_read_in_lists_and_uncertain_values(run):
    outcome = run("eval", "sum(x)", "x=[1k, 2.5k]", "--json")
    assert outcome.json["value"] == 3500
    assert outcome.err == "note: x=[1k, 2.5k] is read as [1e3, 2.5e3]\n"
    outcome = run("propagate", "R*C", "R=10k±1%", "C=100n±5n", "--json")
    assert (outcome.json["value"], outcome.json["budget"][1]["u"]) == pytest.approx((1e-3, 5e-9))
    assert run("eval", "x", "x=[1k, k]").status == 2


@pytest.mark.parametrize(
    ("given", "read", "number"),
    [("45°", "deg2rad(45)", np.pi / 4), ("-22.5 °", "-deg2rad(22.5)", -np.pi / 8), ("[90°,.5°]", "[deg2rad(90),deg2rad(.5)]", np.pi * 90.5 / 180), ("5%", "5/100", 0.05)],
)  # fmt: skip
def test_degrees_and_a_percentage_are_read_and_told(run, given, read, number):
    outcome = run("eval", "sum(x)", f"x={given}", "--json")
    assert outcome.json["value"] == pytest.approx(number)
    assert outcome.err == f"note: x={given} is read as {read}\n"


@pytest.mark.parametrize(
    ("given", "u"), [("45±1°", 1.0), ("45°±1°", 1.0), ("(45±1)°", 1.0), ("45°±2%", 0.9), ("45.5±0.5°", 0.5)]
)
def test_an_uncertain_angle_shares_its_sign(run, given, u):
    assert run("propagate", "x", f"x={given}", "--json").json["u"] == pytest.approx(np.deg2rad(u))


def test_a_range_of_angles_shares_its_sign(run):
    assert run("plot", "sin(x)", "x=0..90°", "--json").json["ranges"]["x"] == pytest.approx([0, np.pi / 2])


def test_metres_are_no_thousandths(run):
    assert "write 5e-3 for thousandths, or 5" in run("eval", "x", "x=5m").err


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("4.7kΩ", "write 4.7e3 in Ω, or 4.7 in kΩ"), ("10uF", "write 10e-6 in F, or 10 in uF"), ("1MHz", "write 1e6 in Hz"), ("3kW", "write 3e3 in W"),
        ("5V", "write 5: a value"), ("4k7", "write 4.7e3"), ("2.5e3kW", "write 2.5e3*1e3 in W"), ("1:3", "write linspace(1, 3, 3)"),
    ],
)  # fmt: skip
def test_a_prefix_of_a_unit_is_no_part_of_it(run, given, hint):
    assert f"hint: {hint}" in run("eval", "x", f"x={given}", "--no-grad").err


def test_a_value_is_not_made_of_other_names(run):
    assert "computed in the program" in run("eval", "x*y", "x=1", "y=2*x").err


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        ("A'*A", "write A.T@A"), ("i^2", "write 1j for the imaginary unit"), ("fzero(x)", "gradcli solve"),
        ("ode45(x)", "gradcli ode"), ("plot(x)", "gradcli plot"), ("∫ x^2 dx", "integrate("), ("root(x, 3)", "write x**(1/n)"),
        ("deg(x)", "rad2deg(x) to convert radians"), ("N(0, x)", "define it"), ("maximize(x)", "gradcli minimize --max"), ("help", "gradcli --help"),
        ("A(1,2)", "write A[0, 1] for an element"), ("sqrt2 + x", "write sqrt(2)"), ("5 x m", "write 5*x*m"),
    ],
)  # fmt: skip
def test_what_is_elsewhere(run, program, hint):
    words = ["A=[[1,2],[3,4]]"] if "A" in program else ["x=1"] if "x" in program else []
    assert hint in run("eval", program, *words).err


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("maximize", "gradcli minimize --max"), ("repl", "gradcli map -"), ("calc", "did you mean 'eval'?"),
        ("tangent", "gradcli series"), ("min", "did you mean 'minimize'?"), ("max", "gradcli minimize --max"),
        ("limit", "limit(sin(x)/x, x, 0)"), ("integrate", "integrate(exp(-t), t, 0, 1)"), ("latex", "--to latex"),
        ("2*x", "gradcli eval '2*x' x evaluates a program"), ("simulate", "did you mean 'ode'?"),
    ],
)  # fmt: skip
def test_a_command_that_is_called_otherwise(run, command, hint):
    outcome = run(command, "x")
    assert (outcome.status, hint in outcome.err) == (2, True)


def test_command_lines_in_hints_of_commands_run(run):
    said = {hint for hint in usage_errors._COMMAND_HINTS.values() if re.match("gradcli .*'.*' prints", hint)}
    assert said
    for hint in said:
        words = shlex.split(hint.partition(" prints")[0])[1:]
        assert run(*words).status == 0, hint


STRAY = [
    (["eval", "a*b", "d.csv"], "gradcli map 'a*b' d.csv computes it for each row, a=@d.csv:a reads a column"),
    (["eval", "a*b", "a=1", "3"], "write b=3"), (["eval", "x^2", "x"], "write x=1 for its value, --wrt x to"),
    (["diff", "x^2*y", "x"], "write --wrt x to differentiate by it"), (["diff", "x^2", "2x"], "write 'x^2; 2x' for several"),
    (["plot", "x^2", "2x+3", "x=0..1"], "write 'x^2; 2x+3' for several"), (["plot", "x^2", "-10", "10"], "write x=-10..10 for the range"),
    (["plot", "x^2", "x", "0", "1"], "write x=0..1 for its range"), (["series", "exp(t)", "t", "6"], "write t=0 --order 6 for"),
    (["series", "exp(t)", "6"], "write t=0 --order 6 for"), (["solve", "tan(x)=x", "4.5"], "write x~4.5"),
    (["eval", "x^2", "y+"], "write NAME=VALUE"), (["eval", "x^2", "x", "3"], "write x=3 for its value"), (["eval", "x^2", "x:3"], "write x=3"),
    (["eval", "sum(x)", "x=[1", "2", "3]"], "quote a value that has spaces"), (["diff", "x^2", "dx"], "write --wrt x to"),
    (["solve", "x+y=3", "x-y=1"], "write 'x+y=3; x-y=1' for several equations"), (["solve", "x+y=a", "x-y=1", "a=3", "x~1"], "write 'x+y=a; x-y=1' for"),
    (["plot", "x", "d.csv"], "write --data d.csv for the points"), (["eval", "x^2", "x y=3"], "a name is letters"),
    (["eval", "x^2", "x=3", "--latex"], "gradcli diff --to latex writes"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "hint"), STRAY, ids=[" ".join(words) for words, _ in STRAY])
def test_a_word_that_gives_no_value(run, words, hint):
    outcome = run(*words)
    assert (outcome.status, outcome.out) == (2, "")
    assert f"hint: {hint}" in outcome.err


def test_a_table_in_the_place_of_a_command_or_an_option(run, tmp_path):
    (tmp_path / "d.csv").write_text("a,b\n1,2\n")
    assert "gradcli map 'price*qty'" in run(str(tmp_path / "d.csv")).err
    assert (
        f"hint: gradcli map 'a*b' {tmp_path}/d.csv computes a program for each row"
        in run("a*b", f"{tmp_path}/d.csv").err
    )
    assert "a table stands behind the program" in run("eval", "a*b", "--csv", "d.csv").err
    assert "the program comes first: gradcli map 'price*qty' d.csv computes" in run("eval", "d.csv").err
    assert "--data ./d.csv draws the points of a table" in run("plot", "./d.csv").err
    assert "attributes are" in run("eval", "x.csw", "x=1").err
    assert "did you mean --http?" in run("serve", "--port", "8080").err


def test_a_function_that_is_called_otherwise(run):
    assert "diff(y, x" in run("ops", "derivative").out


def test_a_model_that_is_written_as_an_assignment(run, tmp_path):
    (tmp_path / "d.csv").write_text("L,T\n1,2\n2,2.8\n3,3.5\n")
    assert "write it as 'T ~ 2*pi*sqrt(L/g)'" in run("fit", "T = 2*pi*sqrt(L/g)", f"{tmp_path}/d.csv").err


@pytest.mark.parametrize(
    ("program", "expected"), [("cosd(60)", 0.5), ("tand(45)", 1.0), ("sind(180)", 0.0), ("atand(1)", 45.0)]
)
def test_angles_in_degrees(run, program, expected):
    outcome = run("eval", program, "--json")
    assert (outcome.json["value"], outcome.err) == (expected, "")
    assert run("eval", program).err.startswith(f"note: {program.partition('(')[0]} computes in degrees")
    assert run("eval", program, "--quiet").err == ""
    assert json.loads(run("eval", program.replace(")", "}"), "--json").err)["error"]["kind"] == "syntax"


@pytest.mark.parametrize(
    "words",
    [["solve", "sind(x) = 0.5", "x=0..90"], ["minimize", "cosd(x)", "x=100"], ["diff", "tand(x)"], ["map", "sind(t)"]],
)
def test_degrees_are_told_by_every_command(run, words):
    assert "computes in degrees" in run(*words, stdin="t\n30\n").err


@pytest.mark.parametrize("program", ["sind(x) = x; sind(3)", "def sind(x):\n  return x\nsind(3)"])
def test_a_function_of_the_program_is_not_in_degrees(run, program):
    assert run("eval", program).err == ""


@pytest.mark.parametrize(
    ("program", "call"), [("sinx", "sin(x)"), ("x + lnx", "ln(x)"), ("cos2x", "cos(2*x)"), ("t*expt", "exp(t)")]
)
def test_a_name_that_may_be_a_function_is_told(run, program, call):
    assert f"a function is written {call}" in run("diff", program).err


def test_a_product_without_a_sign_is_told_where_its_factor_is_differentiated_by(run):
    outcome = run("diff", "sin(kx) + x", "--wrt", "x")
    assert outcome.out == "1\n"
    assert "warning: 'kx' is one name, which does not depend on 'x': the product is written k*x" in outcome.err
    assert "'λkT' is one name" in run("diff", "exp(1/λkT)/λ", "--wrt", "λ").err
    assert "hint: 'kx' is one name: write k*x" in run("diff", "sin(kx)", "--wrt", "x").err
    for program in ("tau*t", "t*dt", "t*rate", "t + x0t"):
        assert run("diff", program, "--wrt", "t").err == ""
    assert run("diff", "vx*t + x", "vx=3", "--wrt", "x").err == ""


def test_a_derivative_as_books_write_it_is_a_quotient_of_names(run):
    assert "'dy/dx' is the quotient of two names" in run("diff", "dy/dx").err
    assert run("diff", "dy/dx", "dx=2", "--wrt", "dy").err == ""


@pytest.mark.parametrize("program", ["d/dx x^2", "d(x^2)/dx", "d/dx(x^2)", "D[x^2, x]"])
def test_what_is_differentiated_is_not_differentiated_twice(run, program):
    assert "hint: write x^2, which gradcli diff differentiates" in run("diff", program).err


def test_a_point_between_vectors(run):
    assert "write a @ b for the product" in run("eval", "a.b", "a=[1,2]", "b=[3,4]").err


@pytest.mark.parametrize("separator", [", ", " and "])
def test_equations_that_other_signs_separate(run, separator):
    printed = run("solve", f"x + y = 3{separator}x - y = 1", "x~0", "y~0").err
    assert "separated by ';': write x + y = 3; x - y = 1" in printed


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        ("Solve[x^2 == 2, x]", "gradcli solve finds roots"), ("Plot[Sin[x], {x, 0, 1}]", "gradcli plot"), ("derivative of x^2", "gradcli diff"),
        ("solve x^2 = 2", "gradcli solve"), ("integrate x^2 from 0 to 1", "integrate(exp(-t), t, 0, 1)"), ("x squared of y", "write it in signs"),
        ("x^2 = 4", "gradcli solve takes equations"),
    ],
)  # fmt: skip
def test_what_mathematica_and_wolframalpha_are_asked(run, program, hint):
    assert hint in run("eval", program).err


@pytest.mark.parametrize("words", [["cost*2"], ["sinx", "--wrt", "sinx"], ["sinx*y", "sinx=1"], ["logs*a"]])
def test_a_name_that_begins_as_a_function_does_is_not(run, words):
    assert "one name" not in run("diff", *words).err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["integrate", "x^2"], "integrate(exp(-t), t, 0, 1)"), (["simplify", "x"], "gradcli diff --simplify"), (["foo", "x"], "gradcli --help"),
        (["foo(x)", "x=1"], "gradcli eval 'foo(x)'"), (["regression", "x"], "did you mean 'fit'?"),
        (["solve", "x^2 = 2", "x=1"], "write x~1 to start there"), (["diff", "f(x) = x^2"], "write f(x) = x^2; f(x)"),
        (["eval", "rnorm(10)"], "write randn(…, seed=0)"), (["eval", "seq(1, 10)"], "write arange("), (["eval", "is.na(1)"], "write isnan"),
        (["eval", "pbeta(0.5, 1, 2)"], "scipy.stats.beta(…).cdf(x)"), (["eval", "dpois(1, 2)"], "scipy.stats.poisson(…).pmf(x)"),
        (["eval", "pnorm(1, 2, 3)"], "scipy.stats.norm(…).cdf(x)"), (["eval", "SUM(1, 2)"], "write sum([1, 2])"),
        (["eval", "AVERAGE(1, 2, 3)"], "write average([1, 2, 3])"), (["eval", "STDEV(v)", "v=[3,4]"], "write std(v, correction=1), or std(v)"),
        (["eval", "VAR.S(v)", "v=[3,4]"], "write var(v, correction=1)"), (["eval", "NORM.S.DIST(1)"], "write ndtr(1)"),
        (["eval", "NORM.DIST(1, 0, 1, TRUE)"], "write ndtr((x - mean)/deviation)"), (["eval", "=SUM(A1:A3)"], "a range of cells is a tensor"),
        (["fit", "y ~ x", "x=[1,2,3]", "y=[1,2,4]"], "write y ~ a + b*x"), (["fit", "y ~ a*x", "--start", "a=1"], "x=1 in gradcli fit"),
        (["solve", "sin(x)", "x=0...10"], "write x=0..10 or x=0..0.10"), (["eval", "x", "x=0...5", "--enclose"], "write x=0.9..1.1"),
        (["fit", "y == a*x", "x=[1,2]", "y=[1,3]"], "write it as 'y ~ a*x'"), (["diff", "x^2", "--to", "tex"], "did you mean 'latex'?"),
        (["diff", "x^2", "--latex"], "did you mean --to latex?"), (["diff", "x^2", "--by", "x"], "did you mean --wrt?"),
        (["minimize", "a*b", "a=1,", "b=1"], "write 1, without the comma"),
        (["eval", "matrix([1, 2])"], "leave it out"), (["eval", "sqr(2)"], "x**2 for the square"), (["eval", "tahn(2)"], "did you mean 'tanh'?"),
        (["eval", "gaussian(0, 0, 1)"], "write exp("), (["eval", "x", "x=1", "--hessian"], "did you mean --order?"), (["eval", "x", "x=1", "--frob", "3"], "--help lists"),
        (["minimize", "x", "x=1", "--constraint", "x>=1"], "did you mean --subject-to?"), (["minimize", "x", "x=1", "--bounds", "x=0..1"], "write x=0:1"),
        (["eval", "sum(y)", "y=d.csv:y"], "write y=@d.csv:y"), (["eval", "lambda x: x^2", "x=1"], "write x^2"), (["eval", "x = 1, y = 2, x + y"], "write x = 1; y = 2; x + y"),
        (["eval", "sin(x)", "x=90deg"], "write deg2rad(90)"), (["eval", "x", "x=0,001"], "write 0.001"), (["eval", "x", "x=2y"], "made of numbers alone"),
        (["plot", "f(x) = x^2", "x=0..1"], "write f(x) = x^2; f(x)"), (["minimize", "f(x) = x^2", "x=1"], "write f(x) = x^2; f(x)"),
        (["series", "f(x) = x^2", "x=1"], "write f(x) = x^2; f(x)"), (["eval", "atan2d(1, 1)"], "write rad2deg(atan2(y, x))"),
    ],
)  # fmt: skip
def test_what_is_typed_first(run, words, hint):
    outcome = run(*words)
    assert (outcome.status, hint in outcome.err) == (2, True), outcome.err


def test_a_tensor_without_names_needs_no_gradient(run):
    assert run("eval", "eye(2)", "--json").json["value"] == [[1, 0], [0, 1]]


# More than notations are rewritten in.
MANY = " + ".join(["x"] * 100)
# A command line for each place that makes proposals.
PROPOSED = {
    "errors.did_you_mean": ["eval", "lgo(x)", "x=2"],
    "language/suggestions/unknown_names.hint_for_function": ["eval", "nCr(5, x)", "x=2"],
    "language/suggestions/unknown_names.hint_for_name": ["eval", "Math.sin(x)", "x=2"],
    "language/suggestions/unknown_names._without_variable": ["eval", "limit(t^2, 3)"],
    "language/suggestions/unknown_names._indexed": ["eval", "sum(i, 1, n, i^2)", "n=3"],
    "language/suggestions/unknown_names._write": ["eval", "2*Pi*x", "x=2"],
    "language/names/scope.unknown_name": ["eval", "m + c + a/mc", "a=1", "m=2", "c=4"],
    "language/names/scope._unknown_function": ["eval", "1/x(y + 1)", "x=2", "y=3"],
    "language/suggestions/joined_names.unread_hint": ["propagate", "mc**2", "m=2±0.1", "c=3"],
    "language/equations._no_equation": ["solve", "f(x) = x^2 - 2", "x=0..2"],
    "language/interpreter/expressions._unknown_attribute": ["eval", "sum(A.Tt)", "A=[[1,2],[3,4]]"],
    "language/interpreter/run._tensor": ["eval", "1,5*x", "x=2"],
    "evaluation/constant_expressions.constant": ["eval", "x^2", "x=5,"],
    "evaluation/constant_expressions._without_unit": ["eval", "x^2", "x=5kg"],
    "language/suggestions/joined_names.call_of_last_function": ["eval", "f(x) = x^2", "x=3"],
    "language/interpreter/builtin_calls/ambiguous_reductions._no_tensor": ["eval", "mean(1, 2, 3)"],
    "language/equations._said": ["solve", "x+y=3, x-y=1", "x~0", "y~0"],
    "cli/hints._differentiated": ["diff", "d/dx x^2"],
    "language/syntax/foreign_notations.propose_correction": ["minimize", "sin^2 x", "x=1"],
    "language/syntax/build_expressions.error": ["eval", "2x!", "x=2"],
    "language/syntax/parser._either": ["diff", "1/2x"],
    "language/syntax/syntax_errors._equals": ["eval", "x if x = 2 else 3", "x=2"],
    "language/syntax/syntax_errors._percent": ["eval", "y = x; y + 5%", "x=2"],
    "language/syntax/syntax_errors._bad_number": ["eval", f"{MANY} + 1.5F", "x=2"],
    "language/syntax/syntax_errors._bars": ["eval", f"{MANY} + |x|", "x=2"],
    "language/syntax/syntax_errors._call_without_brackets": ["eval", "max x y", "x=1", "y=2"],
    "language/syntax/syntax_errors._side_by_side": ["series", "x*y zeta_", "x=1", "y=2", "zeta_=3"],
    "language/syntax/unexpected_characters._hint": ["eval", "x ＋ 1", "x=2"],
}


@pytest.fixture
def proposals(monkeypatch):
    """The errors that commands have checked the hints of, and the places that made the proposals which were left."""
    checked = []
    made = {}
    new, check = Proposal.__new__, hints.check

    def recorded(cls, hint, *texts, **how):
        frame = sys._getframe(1)
        proposal = new(cls, hint, *texts, **how)
        path = Path(frame.f_code.co_filename).relative_to(PACKAGE).with_suffix("").as_posix()
        made.setdefault(str(proposal), f"{path}.{frame.f_code.co_name}")
        return proposal

    def noted(error, *others):
        check(error, *others)
        checked.append((error, made.get(error.hint or "")))

    monkeypatch.setattr(Proposal, "__new__", recorded)
    monkeypatch.setattr(hints, "check", noted)
    return checked


PACKAGE = Path(gradcli.__file__).parent


def makers():
    """The functions that make proposals."""
    for path in PACKAGE.rglob("*.py"):
        if "Proposal(" not in (text := path.read_text(encoding="utf-8")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(part, ast.Call) and getattr(part.func, "id", "") == "Proposal" for part in ast.walk(node)
            ):
                yield f"{path.relative_to(PACKAGE).with_suffix('').as_posix()}.{node.name}"


def test_each_place_that_proposes_programs_has_an_example():
    assert {*makers()} - {"errors.with_message"} == PROPOSED.keys()


@pytest.mark.parametrize(("maker", "words"), PROPOSED.items(), ids=PROPOSED)
def test_what_is_proposed_runs(run, proposals, maker, words):
    name, program, *values = words
    table = "t\n1\n" if name == "map" else ""
    outcome = run(*words, stdin=table)
    (error, made_by), *_ = proposals
    assert made_by == maker, outcome.err
    assert f"hint: {error.hint}" in outcome.err
    for text, _ in error.hint.programs(error.source or "", error.span or Span(0, 0)):
        of_a_value = error.source in values and not error.hint.whole
        line = [name, program, text] if of_a_value else [name, text, *values]
        again = run(*line, stdin=table)
        assert again.status == 0, (text, again.err)


# Proposals that fail with the values, and what is printed in their place.
DROPPED = [
    ("A(1,2)", ["A=3"], ""), ("A(3)", ["A=2"], "write A*(3) for a product"), ("A'*x", ["A=[[1,2],[3,4]]", "x=2"], "write A.T*x"),
    ("exq(x)", ["x=2"], "did you mean 'exp'?"), ("eqq(x)", ["x=2"], "define it in the program"),
    ("A'*B", ["A=[[1,2],[3,4]]", "B=[1,2,3]"], ""), ("x.Tt + b", ["x=[1,2]", "b=[1,2,3]"], "attributes are"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "words", "hint"), DROPPED, ids=[p for p, _, _ in DROPPED])
def test_what_would_fail_is_not_proposed(run, program, words, hint):
    printed = run("eval", program, *words, "--json").error["hint"] or ""
    assert printed.startswith(hint)
    assert bool(printed) == bool(hint)


def test_a_second_mistake_leaves_the_hint_of_the_first(run):
    assert "did you mean 'log'?" in run("eval", "lgo(x) + snn(x)", "x=1").err


def test_a_loop_that_does_not_end_is_not_waited_for(run):
    assert "did you mean 'log'?" in run("eval", "while x > 0 { x = x + 1 }; lgo(x)", "x=1").err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["eval", "x", "x=1", "--encoding", "utf8"], "--encoding is an option of gradcli fit, gradcli minimize"),
        (["solve", "x=2", "--encoding", "utf8"], "--encoding is an option of gradcli fit, gradcli minimize"),
        (["fit", "y ~ a + b*x", "x=[1,2]", "y=[1,2]", "--sigma-x", "x=1"], "did you mean --x-sigma?"),
        (["eval", "x", "x=1", "--steps-max", "3"], "did you mean --max-steps?"),
        (["eval", "x", "x=1", "--digit", "3"], "did you mean --digits?"),
        (["eval", "x", "x=1", "--maxiter", "3"], "gradcli eval --help"),
    ],
)
def test_an_option_of_another_command(run, words, hint):
    assert f"hint: {hint}" in run(*words).err


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        ("1,000*x", "write 1000*x, or 1.000*x where the comma is decimal"), ("0,500*x", "write 0.500*x, or"),
        ("x*12,5", "write x*12.5, or"), ("deriv(x**2)", "write diff(y, x) for"), ("deriv(x**2, x)", "did you mean 'diff'?"),
        ("lim(x)", "write limit(y, x, a) for"), ("lim(sin(t)/t, t, 0)*x", "write limit(sin(t)/t, t, 0)"),
        ("exponential(x)", "did you mean 'exp'?"), ("heavyside(x)", "write heaviside(x, 0.5)"),
        ("x[0]", "it is a single number, which has no elements"), ("(x*ones(2))[5]", "its shape is [2], and elements are counted from 0"),
        ("y = 0; for i in 3 { y = y + x }; y", "range(n) has the numbers from 0 to n - 1"),
        ("modulo(x, 2)", "did you mean 'remainder'?"), ("magnitude([x, 2])", "did you mean 'norm'?"),
    ],
)  # fmt: skip
def test_what_newcomers_call_it(run, program, hint):
    assert f"hint: {hint}" in run("eval", program, "x=1.5").err


@pytest.mark.parametrize(("derivative", "status"), [("2*x*cos(x^2)", 0), ("2*x*cos(x)", 1), ("2*x*sin(f)", 2)])
def test_a_derivative_behind_the_program_that_is_checked(run, derivative, status):
    hint = re.search("hint: write '(.*)' to check", run("check", "sin(x^2)", derivative, "x=2").err)
    assert run("check", hint[1], "x=2").status == status


@pytest.mark.parametrize(
    ("program", "hint"), [("x/RT", "(R*T)"), ("x^RT", "(R*T)"), ("RT.sum()", "(R*T)"), ("x+RT", "R*T")]
)
def test_a_product_in_the_place_of_a_name_stays_one_operand(run, program, hint):
    printed = run("eval", program, *["x=1"] * ("x" in program), "R=2", "T=3", "--json").error["hint"]
    assert printed == f"'RT' is one name: write {hint}"


def test_a_function_where_an_equation_should_stand(run):
    assert "did you mean 'sin'?" in run("solve", "sinn(x) = 0.5", "x=0..1").err
    assert "write x^2-2 for what is to be 0" in run("solve", "f(x) = x^2-2", "x=0..2").err


def test_a_model_names_the_column_that_it_does_not_read(run):
    assert "write it as 'T ~ 2*pi*sqrt(L/g)'" in run("fit", "2*pi*sqrt(L/g)", "L=[1,2]", "T=[2,3]").err
    assert "the column that it is a model of" in run("fit", "a*x", "x=[1,2]", "u=[2,3]", "v=[1,2]").err


def strings():
    """The texts in files that write an option or a command, with a name in the place of what is filled in."""
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if not hints._OPTION.search(source) and not re.search(r"gradcli (?!import )", source):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "NAME" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_command_lines_in_messages_have_commands_and_options_that_there_are():
    known = {name: command._options_of(COMMANDS, name) for name in COMMANDS}
    every = set().union(*known.values(), {"--version"})
    for text in strings():
        if " " in text and not re.search(r"\b(?:pip|pipx|uv|cargo) ", text):
            assert every.issuperset(hints._OPTION.findall(text)), text
        for name, rest in re.findall(r"\bgradcli ([a-z]+)\b((?:(?! and )[^,;:()\n])*)", text):
            assert name not in known or known[name].issuperset(hints._OPTION.findall(rest)), text


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["maximize", "x*exp(-x)", "x=0.5"], "gradcli minimize --max"), (["maximize", "x < ", "x=0.5"], "gradcli --help"),
        (["eval", "x**2", "x=1", "--jso"], "did you mean --json?"), (["eval", "x**2", "x=1", "--hessian"], "did you mean --order?"),
        (["root", "x**2 = 2"], "did you mean 'solve'?"), (["evl", "x <"], "gradcli --help"),
    ],
)  # fmt: skip
def test_a_proposal_is_tried_on_the_program(run, words, hint):
    done = run(*words)
    assert (done.status, done.out) == (2, "")
    assert hint in done.err
