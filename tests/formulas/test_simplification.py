"""Tests formulas of textbook derivatives: short, and with the values of reverse mode."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.formulas.simplification import quotients
from tests.formulas.test_diff import diff, words_of

LIST = Path(__file__).parents[2] / "benchmarks" / "derivatives.jsonl"
DERIVATIVES = [json.loads(line) for line in LIST.read_text(encoding="utf-8").splitlines()]
# Every fourth of the list; the benchmark checks all.
SOME = DERIVATIVES[::4]
POINTS = (0.43, 1.9, -0.61)

# A program, the name it is differentiated by, the formula, which is not longer than those of Maxima and SymPy.
SHORT = [
    ("atan(1/x)", "x", "-1/(x**2 + 1)"),
    ("atan(y/x)", "x", "-y/(y**2 + x**2)"),
    ("1/(1/a + 1/b)", "a", "b**2/(a + b)**2"),
    ("(1 - cos(x))/x**2", "x", "(x*sin(x) + 2*cos(x) - 2)/x**3"),
    ("x/(x + 1/(x + 1))", "x", "(2*x + 1)/(x**2 + x + 1)**2"),
    ("(x**2 - 1)/(x**2 - 3*x + 2)", "x", "-3/(x - 2)**2"),
    ("log((1 + x)/(1 - x))", "x", "2/(1 - x**2)"),
    ("atan((x + a)/(1 - a*x))", "x", "1/(x**2 + 1)"),
    ("log(1/cos(x) + tan(x))", "x", "1/cos(x)"),
    ("(sin(x) - cos(x))/(sin(x) + cos(x))", "x", "2/(sin(x) + cos(x))**2"),
    ("log(cosh(x))", "x", "tanh(x)"),
    ("sin(x)*cos(x)", "x", "cos(2*x)"),
    ("x - sin(x)*cos(x)", "x", "2*sin(x)**2"),
    ("x**3/3 + x**2 + x", "x", "(x + 1)**2"),
    ("log(x) + log((1 + x)/(1 - x))", "x", "2/(1 - x**2) + 1/x"),
    ("(x + 1)/sqrt(x)", "x", "(x - 1)/(2*x**(3/2))"),
    ("(exp(x) - 1 - x)/x**2", "x", "(x + (x - 2)*exp(x) + 2)/x**3"),
    ("log(1 + exp(-x))", "x", "-1/(exp(x) + 1)"),
    ("atan(exp(x))", "x", "1/(2*cosh(x))"),
    ("log(exp(x) + exp(-x))", "x", "tanh(x)"),
    ("asin(tanh(x))", "x", "1/cosh(x)"),
    ("acos((1 - x**2)/(1 + x**2))", "x", "2*x/((x**2 + 1)*abs(x))"),
    ("1/(g*(1 + ((x - m)/g)**2))", "x", "2*g*(m - x)/(g**2 + (x - m)**2)**2"),
    ("-y*cbrt(a)*(a + 1)**2/x", "x", "y*(a + 1)**2*cbrt(a)/x**2"),
]


def formula(run: Any, program: str, wrt: str, **tensors: Any) -> str:
    return diff(run, program, *words_of(tensors), "--wrt", wrt)


def same_values(program: str, wrt: str, text: str, **tensors: Any) -> None:
    """Compare a formula with reverse mode, where that has a number."""
    there, here = gradcli.compile(program), gradcli.compile(text)
    compared = 0
    for point in POINTS:
        names = {name: point * (1 + i / 7) for i, name in enumerate(there.inputs)}
        names = {
            **names,
            "pi": math.pi,
            "e": math.e,
            "inf": math.inf,
            **{n: np.asarray(v, "float64") for n, v in tensors.items()},
        }
        right = there.value_and_grad({n: names[n] for n in there.inputs}, wrt=[wrt])[1][wrt]
        if np.all(np.isfinite(right)):
            found = here(**{n: names[n] for n in here.inputs})
            np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)
            compared += 1
    assert compared


@pytest.mark.parametrize("of", SOME, ids=[of["program"] for of in SOME])
def test_textbook_derivatives(run, of):
    tensors = of.get("values", {})
    same_values(of["program"], of["wrt"], formula(run, of["program"], of["wrt"], **tensors), **tensors)


@pytest.mark.parametrize(("program", "wrt", "short"), SHORT)
def test_short_formulas(run, program, wrt, short):
    assert formula(run, program, wrt) == short
    same_values(program, wrt, short)


A, B = [[1.5, 0.25], [-0.5, 2.0]], [[0.5, 1.25], [2.0, -1.0]]
X, Y = [0.75, 1.5], [0.25, -1.25]


@pytest.mark.parametrize(
    ("program", "wrt", "tensors", "short"),
    [
        ("x.T@A@x", "x", {"x": X, "A": A}, "x@A + A@x"),
        ("A.T@([[1,0],[0,1]]@B.T)", "A", {"A": X, "B": Y}, "B"),
        ("trace(A.T@([[1,0],[0,1]]@B.T))", "A", {"A": A, "B": B}, "B.T"),
        ("sum((A@x - b)**2)", "A", {"A": A, "x": X, "b": Y}, "2*outer(A@x - b, x)"),
        ("trace(X.T@A@X)", "X", {"X": A, "A": B}, "A.T@X + A@X"),
        ("logdet(A@B)", "A", {"A": A, "B": A}, "inv(A@B).T@B.T"),
        ("(x@outer(x, y))@(tanh(x)@B.T)", "x", {"x": X, "y": Y, "B": B}, None),
        ("sum((exp(ones((2, 2))) + X@A.T)**2)", "X", {"X": A, "A": B}, None),
    ],
)
def test_short_formulas_of_matrices(run, program, wrt, tensors, short):
    found = formula(run, program, wrt, **tensors)
    assert short in (None, found)
    same_values(program, wrt, found, **tensors)


def test_an_outer_product_in_other_languages(run):
    words = ["sum((A@x - b)**2)", "A=[[1,2],[3,4]]", "x=[1,2]", "b=[1,2]", "--wrt", "A", "--to"]
    assert run("diff", *words, "latex").out == "2 \\left(A x - b\\right) x^{\\top}\n"
    assert "2*np.outer(A@x - b, x)" in run("diff", *words, "python").out


@pytest.mark.parametrize(
    ("program", "x"),
    [
        ("x - sin(x)*cos(x)", 1e-9),  # 1 - cos(2*x) has the same length, but is 0 there
        ("tanh(x)**2", 30.0),  # and so has 1 - tanh(x)**2
        ("tanh(x)**2", 300.0),
        ("log(cosh(x))", 1e3),
        ("1/(1 + exp(-x))", 800.0),
        ("exp(-x)/(1 + exp(-x))", 800.0),
        ("log(1 + exp(-x))", 800.0),
    ],
)
def test_short_formulas_keep_their_digits(run, program, x):
    found = gradcli.compile(formula(run, program, "x"))(x=x)
    assert found == pytest.approx(gradcli.compile(program).value_and_grad({"x": x})[1]["x"], rel=1e-9)


def test_infinities_are_not_put_over_one_bar(run):
    program = "a/x*(abs(x)/1e999 - a**y/0.5)"
    same_values(program, "x", formula(run, program, "x"))


def test_formulas_that_would_be_long_over_one_bar_are_written(run):
    """Nested fractions, whose common denominators have very many terms, stay within the share of a formula."""
    program = "; ".join(["z = x", *(["z = 1/(z + 1/(y + z*a) + 1/(z - b))"] * 12), "z"])
    outcome = run("diff", program, "--wrt", "x", "--max-steps", "100000")
    assert outcome.status == 0, outcome.err


def test_the_transpose_of_a_long_product(run):
    program = f"sum(({'@'.join(['A', 'B'] * 150)}).T*C)"
    found = formula(run, program, "C", A=A, B=B, C=A)
    assert gradcli.compile(found)(A=np.eye(2), B=np.eye(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_divisors_of_polynomials():
    x2_minus_1, x_plus_1_squared = {(2,): 1, (0,): -1}, {(2,): 1, (1,): 2, (0,): 1}
    assert quotients.common_divisor(x2_minus_1, x_plus_1_squared) == {(1,): 1, (0,): 1}
    assert quotients.exact_quotient(x2_minus_1, {(1,): 1, (0,): 1}) == {(1,): 1, (0,): -1}
    assert quotients.exact_quotient(x2_minus_1, {(1,): 2, (0,): 1}) is None
    # (x**2 + 1)*(y**2 + 1), and (x + y)**3*(x - 2)
    assert [n for _, n in quotients.factors({(2, 2): 1, (2, 0): 1, (0, 2): 1, (0, 0): 1})] == [1, 1]
    cube = {(4, 0): 1, (3, 1): 3, (2, 2): 3, (1, 3): 1, (3, 0): -2, (2, 1): -6, (1, 2): -6, (0, 3): -2}
    assert sorted((len(f), n) for f, n in quotients.factors(cube)) == [(2, 1), (2, 3)]


def test_factors_that_are_not_all_found_are_left(run):
    # The greatest common divisor of x**60 + 5*z**60 + 7*x*z and its derivative exceeds the limits.
    words = ["w*(x**60*(y+1)**2 + 5*z**60*(y+1)**2 + 7*x*z*(y+1)**2)", "--simplify", "--wrt", "w"]
    found = gradcli.compile(diff(run, *words))
    x, y, z = 1.01, -0.3, 0.98
    assert found(x=x, y=y, z=z) == pytest.approx((x**60 + 5 * z**60 + 7 * x * z) * (y + 1) ** 2)


def test_divisions_with_very_many_terms_are_left():
    assert quotients.exact_quotient({(1000,): 1, (0,): -1}, {(1,): 1, (0,): -1}) is None
