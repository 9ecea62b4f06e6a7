"""Tests `gradcli diff`: readable formulas with the values of `gradcli eval`, in every language."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import os
import re
import sqlite3
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import gradcli
from gradcli import install_command
from gradcli.executors import stepwise
from gradcli.formulas import languages
from gradcli.formulas.languages import text as as_text
from gradcli.formulas.symbolic import derivatives_as_formulas
from gradcli.language.names import scope
from gradcli.language.syntax import MAX_LENGTH, parse
from gradcli.primitives.entries.arithmetic import add
from gradcli.subprocess_calls import Limits
from tests.printed_code import NEEDS_GCC, STRICT, database, in_c

# A program, the name it is differentiated by, the order, the formula.
GOLDEN = [
    ("log(x**q)", "x", 1, "q/x"),
    ("log(x**q)", "q", 1, "log(x)"),
    ("log(x**q)", "x", 2, "-q/x**2"),
    ("sin(x)**2", "x", 1, "sin(2*x)"),
    ("sin(x)**2", "x", 2, "2*cos(2*x)"),
    ("x**3", "x", 1, "3*x**2"),
    ("x**3", "x", 3, "6"),
    ("x**q", "x", 1, "q*x**(q - 1)"),
    ("x**q", "q", 1, "x**q*log(x)"),
    ("x**q", "x", 2, "q*(q - 1)*x**(q - 2)"),
    ("exp(-x**2/2)", "x", 1, "-x*exp(-x**2/2)"),
    ("exp(-x**2/2)", "x", 2, "(x**2 - 1)*exp(-x**2/2)"),
    ("x*exp(x)", "x", 1, "(x + 1)*exp(x)"),
    ("x*exp(x)", "x", 2, "(x + 2)*exp(x)"),
    ("x*exp(x)", "x", 3, "(x + 3)*exp(x)"),
    ("1/(1 + exp(-x))", "x", 1, "1/(4*cosh(x/2)**2)"),
    ("1/(1 + exp(-x))", "x", 2, "(exp(-x) - 1)*exp(-x)/(exp(-x) + 1)**3"),
    ("sqrt(x)", "x", 1, "1/(2*sqrt(x))"),
    ("sqrt(x)", "x", 2, "-1/(4*x**(3/2))"),
    ("a*x**2 + b*x + c", "x", 1, "2*a*x + b"),
    ("a*x**2 + b*x + c", "x", 2, "2*a"),
    ("sin(x)/x", "x", 1, "cos(x)/x - sin(x)/x**2"),
    ("tan(x)", "x", 1, "tan(x)**2 + 1"),
    ("tan(x)", "x", 2, "2*tan(x)/cos(x)**2"),
    ("1/x", "x", 1, "-1/x**2"),
    ("1/x", "x", 3, "-6/x**4"),
    ("1/(1 - x)", "x", 2, "2/(1 - x)**3"),
    ("2**x", "x", 1, "2**x*log(2)"),
    ("2**x", "x", 2, "2**x*log(2)**2"),
    ("x**x", "x", 1, "(log(x) + 1)*x**x"),
    ("x**x", "x", 2, "(log(x)**2 + 2*log(x) + 1/x + 1)*x**x"),
    ("asin(x)", "x", 1, "1/sqrt(1 - x**2)"),
    ("asin(x)", "x", 3, "(2*x**2 + 1)/(1 - x**2)**(5/2)"),
    ("acos(x)", "x", 2, "-x/(1 - x**2)**(3/2)"),
    ("atan(x)", "x", 1, "1/(x**2 + 1)"),
    ("atan(x)", "x", 3, "2*(3*x**2 - 1)/(x**2 + 1)**3"),
    ("asinh(x)", "x", 1, "1/sqrt(x**2 + 1)"),
    ("acosh(x)", "x", 1, "1/(sqrt(x - 1)*sqrt(x + 1))"),
    ("atanh(x)", "x", 1, "1/(1 - x**2)"),
    ("sinh(x)*cosh(x)", "x", 1, "cosh(2*x)"),
    ("tanh(x)", "x", 1, "1 - tanh(x)**2"),
    ("sigmoid(x)", "x", 2, "(sigmoid(-x) - sigmoid(x))*sigmoid(x)*sigmoid(-x)"),
    ("log(1 + exp(x))", "x", 1, "1/(exp(-x) + 1)"),
    ("log(x**2 + 1)", "x", 2, "2*(1 - x**2)/(x**2 + 1)**2"),
    ("log(x)/log(10)", "x", 1, "1/(x*log(10))"),
    ("log10(x)", "x", 1, "1/(x*log(10))"),
    ("sqrt(x**2 + a**2)", "x", 1, "x/sqrt(x**2 + a**2)"),
    ("sqrt(x**2 + a**2)", "x", 2, "a**2/(x**2 + a**2)**(3/2)"),
    ("hypot(x, y)", "x", 1, "x/hypot(x, y)"),
    ("norm([x, y])", "x", 1, "x/hypot(x, y)"),
    ("x/norm([x, y])", "x", 1, "(y/hypot(x, y))**2/hypot(x, y)"),
    ("asinh(expm1(x))", "x", 1, "exp(x)/hypot(expm1(x), 1)"),
    ("hypot(x*y, 2)", "x", 1, "x*y**2/hypot(x*y, 2)"),
    ("std([x, y, z])", "x", 1, "(2*x - y - z)/(3*sqrt((2*x - y - z)**2/3 + (2*y - x - z)**2/3 + (2*z - x - y)**2/3))"),
    ("maximum(x, 2*x)", "x", 1, "where(x <= 2*x, 0, 1) + where(2*x < x, 0, 2)"),
    ("atan2(y, x)", "x", 1, "-y/(y**2 + x**2)"),
    ("(x + 1)*(x + 2)", "x", 1, "2*x + 3"),
    ("(1 + x)**10", "x", 1, "10*(x + 1)**9"),
    ("x*log(x)", "x", 1, "log(x) + 1"),
    ("exp(x)*sin(x)", "x", 2, "2*exp(x)*cos(x)"),
    ("exp(-k*t)*cos(w*t)", "t", 1, "-(w*sin(t*w) + k*cos(t*w))*exp(-k*t)"),
    ("abs(x)", "x", 1, "sign(x)"),
    ("relu(x)", "x", 1, "where(x <= 0, 0, 1)"),
    ("maximum(x, a)", "x", 1, "where(x <= a, 0, 1)"),
    ("where(x > 1, x**2, x)", "x", 1, "where(x > 1, 2*x, 1)"),
    ("erf(x)", "x", 1, "2*exp(-x**2)/sqrt(pi)"),
    ("erf(x)", "x", 2, "-4*x*exp(-x**2)/sqrt(pi)"),
    ("gelu(x)", "x", 1, "erfc(-x/sqrt(2))/2 + x*exp(-x**2/2)/sqrt(2*pi)"),
    ("gamma(x)", "x", 1, "gamma(x)*digamma(x)"),
    ("lgamma(x)", "x", 2, "polygamma(1, x)"),
    ("cbrt(x)", "x", 1, "1/(3*cbrt(x)**2)"),
    ("x**(1/3)", "x", 1, "1/(3*x**(2/3))"),
    ("x**2.5", "x", 2, "3.75*sqrt(x)"),
    ("(a*x + b)/(c*x + d)", "x", 1, "(a*d - b*c)/(x*c + d)**2"),
    ("(a*x + b)/(c*x + d)", "x", 2, "2*c*(b*c - a*d)/(x*c + d)**3"),
    ("x/(x**2 + 1)", "x", 1, "(1 - x**2)/(x**2 + 1)**2"),
    ("x/(x**2 + 1)", "x", 2, "2*(x**3 - 3*x)/(x**2 + 1)**3"),
    ("sin(x)**2 + cos(x)**2", "x", 1, "0"),
    ("exp(sin(x))", "x", 2, "(cos(x)**2 - sin(x))*exp(sin(x))"),
    ("sin(cos(x))", "x", 1, "-cos(cos(x))*sin(x)"),
    ("sinc(x)", "x", 1, "(cos(pi*x) - sinc(x))/x"),
    ("j0(x)", "x", 2, "j1(x)/x - j0(x)"),
    ("pi*r**2", "r", 1, "2*pi*r"),
    ("exp(-(x - m)**2/(2*s**2))/(s*sqrt(2*pi))", "x", 1, "(m - x)*exp(-(x - m)**2/(2*s**2))/(s**3*sqrt(2*pi))"),
    (
        "exp(-(x - m)**2/(2*s**2))/(s*sqrt(2*pi))",
        "m",
        2,
        "((x - m)**2 - s**2)*exp(-(x - m)**2/(2*s**2))/(s**5*sqrt(2*pi))",
    ),
    ("logaddexp(x, y)", "x", 1, "sigmoid(x - y)"),
    ("diff(x**4, x)*y", "x", 1, "12*x**2*y"),
    ("u = x**2; u*log(u)", "x", 1, "2*x*(log(x**2) + 1)"),
    ("f(t) = t**3; f(x) + f(2*x)", "x", 1, "27*x**2"),
    ("x % y", "y", 1, "-(x//y)"),
    ("where(y > 0, x**2, where(z > 0, x**2, x**3))", "x", 1, "where(logical_or(y > 0, z > 0), 2*x, 3*x**2)"),
    ("where(y > 0, x**2, where(z > 0, x, x**3))", "x", 1, "where(y > 0, 2*x, where(z > 0, 1, 3*x**2))"),
    ("where(x < 0, 0, where(x < 1, x**2, 1))", "x", 1, "where(logical_and(x < 1, x >= 0), 2*x, 0)"),
    ("where(x < 1, x, where(x < 2, 3*x, x))", "x", 1, "where(logical_or(x < 1, x >= 2), 1, 3)"),
    ("where(norm([x, x] - x) != 0, 2*x, x)", "x", 1, "1"),
    ("where(gamma(x/x) == 1, 2*x, x)", "x", 1, "2"),
    ("where(log(y) == log(y), x, 2*x)", "x", 1, "where(log(y) == log(y), 1, 2)"),
    ("where(abs(x) - x == 0, 2*x, x)", "x", 1, "where(0 == abs(x) - x, 2, 1)"),
    ("where(inf + y == 0, x, 1)", "x", 1, "0"),
    ("where(k == 2, x**2, x)", "x", 1, "where(2 == k, 2*x, 1)"),
    ("x*(k != 2)", "x", 1, "1*(2 != k)"),
    ("np.equal(k, 2)*x**2", "x", 1, "2*x*(1*(2 == k))"),
    ("max(x, q)**2", "x", 1, "where(x <= q, 0, 2*maximum(x, q))"),
    ("where(y - inf == -inf, x, 1)", "x", 1, "1"),
    ("where(isnan(log(x)), -x, log(x))", "x", 1, "where(isnan(log(x)), -1, 1/x)"),
    ("nansum(sqrt(x)*y)", "x", 1, "where(isnan(sqrt(x)*y), 0, y/(2*sqrt(x)))"),
    ("nanmean(x)", "x", 1, "where(isnan(x), 0, 1/where(isnan(x), 0, 1))"),
    ("detach(x)*x", "x", 1, "x"),
    ("floor(x)", "x", 1, "0"),
]
# The points at which formulas are compared with `gradcli eval`.
POINTS = (0.37, 0.71, 1.9)


def names_of(program: str) -> list[str]:
    return [name for name in scope.free_names(parse(program)) if name not in scope.CONSTANTS]


def inputs_of(program: str, point: float) -> dict[str, float]:
    return {name: point * (1 + i / 7) for i, name in enumerate(names_of(program))}


def derivative(program: str, wrt: str, order: int, inputs: dict[str, Any]) -> Any:
    """The derivative that `eval` computes."""
    found = gradcli.compile(program).derivatives(inputs, order, wrt=(wrt,))
    if isinstance(found, list):
        return found[order]
    return found[",".join([wrt] * order)]


def value(text: str, inputs: dict[str, Any]) -> Any:
    read = names_of(text)
    return gradcli.compile(text)(**{name: v for name, v in inputs.items() if name in read})


def diff(run: Any, *words: str) -> str:
    outcome = run("diff", *words)
    assert outcome.status == 0, outcome.err
    return str(outcome.out).removesuffix("\n")


@pytest.mark.parametrize(("program", "wrt", "order", "formula"), GOLDEN)
def test_formulas(run, program, wrt, order, formula):
    assert diff(run, program, "--wrt", wrt, "--order", str(order)) == formula
    compared = 0
    for point in POINTS:
        inputs = inputs_of(program, point)
        expected = derivative(program, wrt, order, inputs)
        if expected is not None and math.isfinite(expected):
            assert value(formula, inputs) == pytest.approx(expected, rel=1e-9, abs=1e-12)
            compared += 1
    assert compared >= 1


VECTOR = np.array([0.5, 1.5, 2.5])
MATRIX = np.array([[0.5, 1.0, 2.0], [1.5, -1.0, 0.3]])
TENSORS = [
    ("sum(log(x**q))", "x", {"x": VECTOR, "q": 3.0}, "q/x"),
    ("sum(log(x**q))", "q", {"x": VECTOR, "q": 3.0}, "sum(log(x))"),
    ("sum(x**3)", "x", {"x": VECTOR}, "3*x**2"),
    ("sum(x)", "x", {"x": VECTOR}, "broadcast_to(1, (3,))"),
    ("mean(x**2)", "x", {"x": VECTOR}, "2*x/3"),
    ("norm(x)", "x", {"x": VECTOR}, "x/norm(x)"),
    ("std(x)", "x", {"x": VECTOR}, "(x - mean(x))/sqrt(3*sum((x - mean(x))**2))"),
    ("std(x/y)", "x", {"x": VECTOR, "y": VECTOR**2}, "(x/y - mean(x/y))/(y*sqrt(3*sum((x/y - mean(x/y))**2)))"),
    ("sum(std(x, 0)**2)", "x", {"x": MATRIX}, None),
    ("logsumexp(x)", "x", {"x": VECTOR}, "exp(x)/sum(exp(x))"),
    ("prod(x)", "x", {"x": VECTOR}, "prod(x)/x"),
    ("x@x", "x", {"x": VECTOR}, "2*x"),
    ("sum(x) + max(sum(x))", "x", {"x": VECTOR}, None),
    ("mean(x)", "x", {"x": np.zeros(0)}, None),
    ("sum(x*(y*0))", "x", {"x": np.ones((2, 1)), "y": VECTOR}, None),
    ("sum(atan2(x*j1(y), 7))", "y", {"x": np.array([0.3]), "y": 1.8}, None),
    ("max(x)", "x", {"x": VECTOR}, None),
    ("sum((A@x - b)**2)", "x", {"A": MATRIX, "x": VECTOR, "b": np.array([1.0, 2.0])}, "2*(A.T@(A@x - b))"),
    ("sum((A@x - b)**2)", "A", {"A": MATRIX, "x": VECTOR, "b": np.array([1.0, 2.0])}, None),
    ("sum(tanh(A@x))", "A", {"A": MATRIX, "x": VECTOR}, None),
    ("-log_softmax(A@x)[1]", "x", {"A": MATRIX, "x": VECTOR}, None),
    ("x[0]**2*x[1]", "x", {"x": VECTOR}, None),
    ("sum(cumsum(x)**2)", "x", {"x": VECTOR}, None),
    ("logdet(A@A.T)", "A", {"A": MATRIX}, None),
    ("std(var(A, 0))", "A", {"A": MATRIX}, None),
    ("linspace(logsumexp(A), y, 1).max()", "A", {"A": np.array([[0.011]]), "y": 0.5}, None),
    ("sum(einsum('ij,j->i', A, x)**2)", "x", {"A": MATRIX, "x": VECTOR}, None),
    ("sum(outer(x, x)*where(A[0] > 0.7, x, 1))", "x", {"A": MATRIX, "x": VECTOR}, None),
    ("sum(concat([x, x[::-1]])*stack([x, x**2]).ravel())", "x", {"x": VECTOR}, None),
]


def words_of(inputs: dict[str, Any]) -> list[str]:
    return [f"{name}={np.asarray(v).tolist()}" for name, v in inputs.items()]


def whole(name: str, shape: tuple[int, ...], parts: dict[str, Any]) -> Any:
    """A derivative assembled from its elements, if it is given by elements."""
    if list(parts) == [name]:
        return parts[name]
    found = np.empty(shape)
    for key in np.ndindex(shape):
        found[key] = parts[f"{name}[{', '.join(map(str, key))}]"]
    return found


@pytest.mark.parametrize(("program", "wrt", "inputs", "formula"), TENSORS)
def test_formulas_of_tensors(run, program, wrt, inputs, formula):
    tensors = {name: v for name, v in inputs.items() if np.ndim(v)}
    assert formula in (None, diff(run, program, *words_of(tensors), "--wrt", wrt))
    texts = run("diff", program, *words_of(tensors), "--wrt", wrt, "--json").json["derivatives"]
    expected = gradcli.compile(program).value_and_grad(inputs, wrt=(wrt,))[1][wrt]
    found = whole(wrt, np.shape(expected), {by: value(text, inputs) for by, text in texts.items()})
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_second_derivatives_of_tensors(run):
    text = diff(run, "sum(x**3)*q", "x=[1,2]", "--wrt", "x", "--order", "2")
    found = value(text, {"x": [1.0, 2.0], "q": 3.0})
    np.testing.assert_allclose(found, gradcli.compile("sum(x**3)*q").hessian({"x": [1.0, 2.0], "q": 3.0})["x,x"])


@pytest.mark.parametrize("program", ["max(x)", "min(ndtri(x))", "norm(norm(3 - x))", "std(x) + sum(x)", "sum(x*0)"])
def test_reductions_of_a_number(run, program):
    found = value(diff(run, program, "--wrt", "x"), {"x": 0.3})
    assert found == pytest.approx(gradcli.compile(program).value_and_grad({"x": 0.3})[1]["x"])


def test_axes_are_kept_where_a_part_is_zero(run):
    x = [[1.0], [2.0]]
    program = "sum(leaky_relu(asin(sin(x))))"
    found = value(diff(run, program, "x=[[1],[2]]", "--wrt", "x", "--order", "2"), {"x": x})
    np.testing.assert_allclose(found, gradcli.compile(program).hessian({"x": x})["x,x"], atol=1e-12)


@pytest.mark.parametrize("to", ["text", "python"])
def test_a_negative_product_behind_an_operator_is_in_parentheses(run, to):
    program, inputs = "x*(y//(-1.5*q)) + x*(y%(-1/3))", {"x": 2.0, "y": 7.0, "q": 0.6}
    found = diff(run, program, "--wrt", "x", "--to", to)
    calculated = value(found, inputs) if to == "text" else called(found, "derivative_x", inputs)
    assert calculated == pytest.approx(gradcli.compile(program).value_and_grad(inputs)[1]["x"])


def test_roots_of_zero(run):
    assert value(diff(run, "x*sqrt(sum(y*0))", "y=[1,2]", "--wrt", "x"), {"x": 2.0, "y": [1.0, 2.0]}) == 0


def test_numbers_are_put_in_for_their_names(run):
    assert diff(run, "x**n", "n=3", "--wrt", "x") == "3*x**2"
    assert diff(run, "x**n", "n=3", "--wrt", "n") == "x**n*log(x)"
    assert diff(run, "y = 0; for i in range(n) { y = y + x**i }; y", "n=3", "--wrt", "x") == "2*x + 1"


def test_every_name_by_default(run):
    assert diff(run, "log(x**q)") == "x: q/x\nq: log(x)"
    assert diff(run, "x**2*y", "--order", "2") == "x,x: 2*y\nx,y: 2*x\ny,y: 0"


def test_long_formulas_name_their_parts(run):
    program = "exp(sin(x**2 + y**2 + 1)*cos(x - y + 2))*(x*y + tanh(x*y - 3))"
    text = diff(run, program, "--wrt", "x", "--order", "2")
    assert text.startswith("v1 = ")
    inputs = {"x": 0.4, "y": 0.9}
    assert value(text, inputs) == pytest.approx(derivative(program, "x", 2, inputs), rel=1e-10)


@pytest.mark.parametrize(
    "program",
    [
        " + ".join(f"x**{i % 7}*sin({i}*x + y)" for i in range(300)),
        "; ".join(["z = x", *(f"z = sin(z)*1.1 + x/{i + 1}" for i in range(300)), "z*y"]),
    ],
    ids=["sum", "chain"],
)
def test_programs_that_nobody_reads_as_a_formula(run, program):
    inputs = {"x": 0.4, "y": 0.9}
    found = value(diff(run, program, "--wrt", "x"), inputs)
    assert found == pytest.approx(derivative(program, "x", 1, inputs), rel=1e-9)


@pytest.mark.parametrize("number", ["0 == comb(x, 5)", "0 == perm(x + 9, 5)", "0.1 == fmod(0.1, x)"])
def test_a_function_that_is_a_number_over_a_range_decides_where_it_is(run, number):
    assert diff(run, f"where({number}, x, 2*x)") == f"where({number}, 1, 2)"


@pytest.mark.parametrize("program", ["maximum(x, 0)**2.5", "where(x > 0, x, 0)**2.5", "relu(x)**3.5"])
def test_both_sides_of_a_kink_are_in_a_formula_of_high_order(run, program):
    (line,) = run("diff", program, "--order", "3", "--json").json["derivatives"].values()
    there, derivative = gradcli.compile(program), gradcli.compile(line)
    for x in (-1.0, 0.7):
        assert derivative(x=x) == pytest.approx(there.derivatives({"x": x}, 3)[3])


def test_elements_that_do_not_vary_stay_out_of_a_formula_of_high_order(run):
    (line,) = run("diff", "sum(sqrt([0, x]))", "--order", "3", "--json").json["derivatives"].values()
    assert gradcli.compile(line)(x=0.25) == pytest.approx(12.0)


@pytest.mark.parametrize(
    ("program", "formula"),
    [
        ("logsumexp([x, 1000])", "1/(exp(1000 - x) + 1)"),
        ("logsumexp([x, -1000])", "1/(exp(-x - 1000) + 1)"),
        ("softmax([x, 1000])[0]", "1/(4*cosh(x/2 - 500)**2)"),
    ],
)
def test_what_is_no_float_alone_is_none_beside_others(run, program, formula):
    assert run("diff", program).out == formula + "\n"


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("program", "order"),
    [
        ("exp(sin(x))/(1 + x**2)", 9),
        ("f(t) = t**3*exp(t) backward(g) = g*(3*t**2 + t**3)*exp(t); f(x)", 4),
        ("x*detach(x)*exp(x)", 4),
        ("diff(sin(x**2), x)*x", 5),
        ("x**y*log(x + y)", 4),
        ("lgamma(x)*tanh(x*y)", 3),
    ],
)
def test_high_orders(run, program, order):
    """High orders come from series, simplified where short enough, or from repeated reverse mode."""
    inputs = inputs_of(program, 0.71)
    found = run("diff", program, "--order", str(order), "--json").json["derivatives"]
    expected = gradcli.compile(program).derivatives(inputs, order)
    assert len(found) == math.comb(len(inputs) + order - 1, order)
    for key, text in found.items():
        assert len(text) < 10_000
        assert value(text, inputs) == pytest.approx(expected[order] if len(inputs) == 1 else expected[key], rel=1e-8)


def test_json(run):
    assert run("diff", "log(x**q)", "--wrt", "x", "--json").json == {
        "schema": "gradcli/1",
        "program": "log(x**q)",
        "wrt": ["x"],
        "order": 1,
        "to": "text",
        "derivatives": {"x": "q/x"},
    }
    assert run("diff", "x**2", "--to", "sql", "--json").json["select"].startswith("SELECT")


@pytest.mark.parametrize(
    ("words", "formula"),
    [
        (["0.1*x**2"], "0.2*x"),
        (["9.81*t**2/2"], "9.81*t"),
        (["0.1*x**5"], "0.5*x**4"),
        (["0.1*x**2/3"], "0.2*x/3"),
        (["x**1.4"], "1.4*x**0.4"),
        (["sqrt(x)*0.5"], "0.25/sqrt(x)"),
        (["3*6.6743*x"], "20.0229"),
        (["1.05**t"], "1.05**t*log(1.05)"),
        (["sqrt(2*9.81*h)"], "9.81/sqrt(19.62*h)"),
        (["sqrt(0.04*x)"], "0.1/sqrt(x)"),
        (["1/(1 - 0.1*x)"], "0.1/(1 - 0.1*x)**2"),
        (["0.3*exp(-x**2/2)"], "-0.3*x*exp(-x**2/2)"),
        (["0.044715*x**3 + x/4"], "0.134145*x**2 + 1/4"),
        (["exp(-0.1*t)*sin(2.5*t)"], "(2.5*cos(2.5*t) - 0.1*sin(2.5*t))*exp(-0.1*t)"),
        (["6.674e-11*m/r**2", "--wrt", "r"], "-1.3348e-10*m/r**3"),
        (["a*x**2", "a=0.05", "--wrt", "x"], "0.1*x"),
        (["a*x**2", "a=0.05", "--wrt", "x", "--to", "latex"], "0.1 x"),
        (["x**2/3", "--to", "latex"], r"\frac{2 x}{3}"),
        (["x**3/12"], "x**2/4"),
        (["1/4*x"], "1/4"),
    ],
)
def test_decimals_stay_decimals(run, words, formula):
    assert diff(run, *words) == formula


# --- other languages

SCALARS = [(program, wrt, order) for program, wrt, order, _ in GOLDEN]


# Programs of SCALARS with a function that a language lacks.
LACKING = {
    "c": {"gamma(x)": "digamma", "lgamma(x)": "polygamma", "j0(x)": "bessel_j"},
    "sql": {
        "erf(x)": "erf", "gelu(x)": "erfc", "gamma(x)": "gamma", "lgamma(x)": "lgamma", "sinc(x)": "sinc",
        "j0(x)": "bessel_j", "where(isnan(log(x)), -x, log(x))": "isnan", "nansum(sqrt(x)*y)": "isnan",
        "nanmean(x)": "isnan",
    },
    "polars": {
        "erf(x)": "erf", "gelu(x)": "erfc", "gamma(x)": "gamma", "lgamma(x)": "lgamma", "sinc(x)": "sinc", "j0(x)": "bessel_j",
        "x % y": "remainder",
    },
}  # fmt: skip


@pytest.mark.all_cases
@pytest.mark.parametrize(("to", "program"), [(to, program) for to in LACKING for program in LACKING[to]])
def test_what_a_language_lacks_is_refused(run, to, program):
    order = max(order for text, _, order in SCALARS if text == program)
    outcome = run("diff", program, "--order", str(order), "--to", to)
    assert (outcome.status, outcome.out) == (1, "")
    assert f"'{LACKING[to][program]}' cannot be written as {to}" in outcome.err


def called(code: str, name: str, inputs: dict[str, Any]) -> Any:
    """The result of a Python function in the text that `diff` prints."""
    module = types.ModuleType("printed")
    exec(compile(code, "printed", "exec"), module.__dict__)
    function = getattr(module, name)
    return function(**{n: v for n, v in inputs.items() if n in function.__code__.co_varnames})


@pytest.mark.parametrize(("program", "wrt", "order"), SCALARS)
def test_python(run, program, wrt, order):
    code = diff(run, program, "--wrt", wrt, "--order", str(order), "--to", "python")
    compared = 0
    for point in POINTS:
        inputs = inputs_of(program, point)
        expected = derivative(program, wrt, order, inputs)
        if expected is not None and math.isfinite(expected):
            with np.errstate(all="ignore"):
                found = [called(code, "value", inputs), called(code, f"derivative_{'_'.join([wrt] * order)}", inputs)]
                together = called(code, "value_and_derivatives", inputs)
            np.testing.assert_allclose(found, [value(program, inputs), expected], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(together, found, rtol=1e-12, atol=1e-12)
            compared += 1
    assert compared >= 1


def function_of(stem: str, by: str) -> str:
    return f"{stem}_{re.sub(r'[^0-9A-Za-z]+', '_', by).strip('_')}"


@pytest.mark.parametrize(("program", "wrt", "inputs"), [t[:3] for t in TENSORS])
def test_python_of_tensors(run, program, wrt, inputs):
    tensors = {name: v for name, v in inputs.items() if np.ndim(v)}
    codes = run("diff", program, *words_of(tensors), "--wrt", wrt, "--to", "python", "--json").json["derivatives"]
    expected = gradcli.compile(program).value_and_grad(inputs, wrt=(wrt,))[1][wrt]
    parts = {by: called(code, function_of("derivative", by), inputs) for by, code in codes.items()}
    np.testing.assert_allclose(whole(wrt, np.shape(expected), parts), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("program", ["sum(cholesky(A))", "logdet(cholesky(A@A))"])
def test_python_reads_both_triangles_of_a_matrix(run, program):
    inputs = {"A": np.array([[2.0, 0.0], [1.0, 2.0]])}
    code = diff(run, program, *words_of(inputs), "--to", "python")
    np.testing.assert_allclose(called(code, "derivative_A", inputs), derivative(program, "A", 1, inputs), rtol=1e-12)
    code = diff(run, "q*eigvalsh(A)[0]", *words_of(inputs), "--wrt", "q", "--to", "python")
    assert called(code, "derivative_q", {**inputs, "q": 1.0}) == pytest.approx(1.5)


def test_python_of_what_has_no_elements(run):
    """SciPy has no softmax of empty arrays."""
    code = diff(run, "sum(softmax(x)) + mean(sin(x))", "x=[]", "--to", "python")
    assert called(code, "derivative_x", {"x": np.zeros(0)}).shape == (0,)


def test_python_names_and_texts_cannot_escape(run):
    code = diff(run, 'einsum("i,i->", x, x)*lambda_ # """ \\', "x=[1,2]", "--wrt", "x", "--to", "python")
    np.testing.assert_allclose(called(code, "derivative_x", {"x": VECTOR, "lambda_": 2.0}), 4 * VECTOR)
    assert "np_*" in diff(run, "np*x", "--wrt", "x", "--to", "python") + "*"


@NEEDS_GCC
def test_c(run, tmp_path):
    """All formulas in one file, compiled once."""
    parts, cases = [], []
    for number, (program, wrt, order) in enumerate(SCALARS):
        if program in LACKING["c"]:
            continue
        code = diff(run, program, "--wrt", wrt, "--order", str(order), "--to", "c")
        parts.append(re.sub(r"(double|void) (value_and|value|derivative)(_\w+)?\(", rf"\1 \g<2>{number}(", code))
        cases.append((number, program, wrt, order))
    functions = in_c("\n".join(parts), tmp_path, *STRICT, "-O1")
    for number, program, wrt, order in cases:
        inputs = inputs_of(program, POINTS[0 if "acosh" not in program else 2])
        expected = [value(program, inputs), derivative(program, wrt, order, inputs) or 0.0]
        given, together = [*map(ctypes.c_double, inputs.values())], (ctypes.c_double * 2)()
        assert np.isfinite(expected).all()
        found = [functions(f"{name}{number}")(*given) for name in ("value", "derivative")]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12), program
        functions(f"value_and{number}")(*given, together)
        assert [*together] == pytest.approx(found, rel=1e-12, abs=1e-12), program


# Numbers that Python treats differently from NumPy and C, and programs that contain them.
EDGES = (0.0, -1.0, -8.0, 2.0, 710.0, 1e300, -1e300, math.inf, -math.inf, math.nan)
AT_EDGES = [
    "log(x**q)", "x**3", "x**q", "x**x", "1/x", "x/(1 - x)**2", "x**400", "400**x", "exp(-x**2/2)", "x**(1/3)", "x % q",
    "q*(x//q)", "q*(x % q)", "q*x**-3", "abs(x)", "q*abs(x)", "q*sign(x)", "q*maximum(x, 2)", "q*minimum(x, 1)",
    "q*clip(x, -1, 2)", "q*relu(x)", "x*q + x", "hypot(x, q)", "x*0**(1/3)", "(x*0)**(1/3)", "x*(0*q)**x", "x/0",
    "(-8)**(1/3)*x", "x*10.0**400", "10**400*x", "x*log(0)", "x*0**-1", "x//0", "where(x > 1, 10, 1)**30*x",
    "where(x > 1, 10, 1)**-2*x", "maximum(2, x)**-1", "q*sech(x)", "q*logcosh(x)", "q*atan(x**3)", "x*2**1000*2**1000",
]  # fmt: skip


@functools.cache
def at_edges(program: str) -> list[tuple[str, dict[str, float], float]]:
    """The derivative of a program by each of its names, with inputs and the values that gradcli computes."""
    names, found = names_of(program), []
    for by, formula in derivatives_as_formulas(parse(program), {}, names).derivatives.items():
        read = [v.name or "" for v in formula.inputs]
        for edges in itertools.product(EDGES, repeat=len(read)):
            (expected,) = stepwise.run(formula._replace(guards=()), edges) or ()
            found.append((by, dict(zip(read, edges, strict=True)), float(expected)))
    return found


def is_close(found: Any, expected: float) -> bool:
    return type(found) is not complex and float(found) == pytest.approx(expected, rel=1e-9, abs=1e-290, nan_ok=True)


@pytest.mark.parametrize("program", AT_EDGES)
def test_python_at_edges(run, program):
    codes = run("diff", program, "--to", "python", "--json").json["derivatives"]
    for by, inputs, expected in at_edges(program):
        with np.errstate(all="ignore"):
            assert is_close(called(codes[by], f"derivative_{by}", inputs), expected), (by, inputs)


@NEEDS_GCC
def test_c_at_edges(run, tmp_path):
    codes = [run("diff", program, "--to", "c", "--json").json["derivatives"] for program in AT_EDGES]
    named = (c.replace(f" derivative_{by}(", f" {by}{i}(") for i, of in enumerate(codes) for by, c in of.items())
    functions = in_c("\n".join(named), tmp_path, *STRICT, "-O1")
    for i, program in enumerate(AT_EDGES):
        for by, inputs, expected in at_edges(program):
            found = functions(f"{by}{i}")(*map(ctypes.c_double, inputs.values()))
            assert is_close(found, expected), (program, by, inputs)


# Derivatives of sinc that are kept when too few steps are left to simplify.
SINC = ("sinc(x)", "diff(diff(sinc(2*x + q), x), x)", "diff(sinc(x)*q, x, 4)")


@pytest.mark.parametrize("program", SINC)
@pytest.mark.parametrize("language", ["text", "python", pytest.param("c", marks=NEEDS_GCC)])
def test_derivatives_of_sinc_in_few_steps(run, tmp_path, program, language):
    """A language that has only sinc can also write its derivatives."""
    inputs = {n: v for n, v in {"x": 1.3, "q": 0.4}.items() if n in program}
    words = [program, "--wrt", ",".join(inputs), "--to", language, "--max-steps", "2000"]
    code = run("diff", *words, "--json").json["derivatives"]["x"]
    if language == "text":
        found = value(code, inputs)
    elif language == "python":
        found = called(code, "derivative_x", inputs)
    else:
        found = in_c(code, tmp_path, *STRICT)("derivative_x")(*map(ctypes.c_double, inputs.values()))
    assert found == pytest.approx(gradcli.compile(program).value_and_grad(inputs)[1]["x"], rel=1e-9)


# Booleans where numbers are expected, and the reverse.
TRUTHS = (
    "q*logical_or(q, q)", "q*logical_or(x, q > 1)", "q*logical_and(x, x < 1)", "q*logical_not(x)", "q*logical_not(x > 1)", "q*(x > 1)",
    "q*(x > 1)*(x < 2)", "q**(x > 1)", "q*((x > 1) + (x > 2))", "q*((x > 1) - (x > 2))", "q*(-(x > 1))", "q*((x > 1)/4)", "q*(x > 1)**2",
    "q/(1 + (x > 1))", "q*exp(x > 1)", "q*sqrt((x > 1) + 0.5)", "q*abs(x > 1)", "q*maximum(x > 1, x > 2)", "q*minimum(x > 1, 0.5)",
    "q*((x > 1)//((x > 2) + 1))", "q*((x > 1) % 0.75)", "q*((x > 1) == (x > 2))", "q*((x > 1) != (x < 2))", "q*((x > 1) < 0.5)",
    "q*where(x, 2, 3)", "q*where(x > 1, x > 2, x < 0)", "q*where(x > 1, x > 2, 3)", "where(logical_and(x, x > 1), q, 2*q)",
    "q*((1 < 2)*x)", "q*sin(1 < 2)", "q*(floor(x) == 1)", "q*(abs(x) == x)", "q*(relu(x) != 0)", "q*(maximum(x, 1) == maximum(x, 2))",
)  # fmt: skip


@functools.cache
def truths() -> list[tuple[str, dict[str, float], float]]:
    """Programs, inputs and their derivatives by q."""
    found = []
    for program, x, q in itertools.product(TRUTHS, (-1.0, 0.0, 0.5, 1.5, 2.5), (0.5, 2.0)):
        inputs = {name: {"x": x, "q": q}[name] for name in names_of(program)}
        found.append((program, inputs, gradcli.compile(program).value_and_grad(inputs)[1]["q"]))
    return found


@pytest.mark.parametrize("language", ["text", "python"])
def test_truth_values_are_numbers(run, language):
    codes = {p: run("diff", p, "--wrt", "q", "--to", language, "--json").json["derivatives"]["q"] for p in TRUTHS}
    for program, inputs, expected in truths():
        code = codes[program]
        found = value(code, inputs) if language == "text" else called(code, "derivative_q", inputs)
        assert float(found) == pytest.approx(expected, rel=1e-14), (program, inputs)


@NEEDS_GCC
def test_truth_values_are_numbers_in_c(run, tmp_path):
    codes = [run("diff", p, "--wrt", "q", "--to", "c", "--json").json["derivatives"]["q"] for p in TRUTHS]
    named = "\n".join(c.replace("derivative_q(", f"f{i}(") for i, c in enumerate(codes))
    functions = in_c(named, tmp_path, *STRICT)
    for program, inputs, expected in truths():
        function = functions(f"f{TRUTHS.index(program)}")
        assert function(*map(ctypes.c_double, inputs.values())) == pytest.approx(expected, rel=1e-14), (program, inputs)


def test_truth_values_are_numbers_in_sql(run):
    connection = database()
    selects = {p: diff(run, p, "--wrt", "q", "--to", "sql") for p in TRUTHS}
    for program, inputs, expected in truths():
        columns = ", ".join(f"{v!r} AS {name}" for name, v in inputs.items())
        (row,) = connection.execute(f"{selects[program]} FROM (SELECT {columns})").fetchall()
        assert row == pytest.approx((value(program, inputs), expected), rel=1e-14), (program, inputs)


@pytest.mark.parametrize(
    ("program", "formula"),
    [
        ("q*(x > 1)", r"\left[x > 1\right]"),
        ("q**(x > 1)", r"q^{\left[x > 1\right] - 1} \left[x > 1\right]"),
        ("q*logical_or(q, q)", r"\left[q \ne 0\right]"),
        ("where(logical_and(x, y > 1), q, 2*q)", r"\begin{cases} 1 & x \ne 0 \land y > 1 \\ 2 & \text{otherwise} \end{cases}"),
        ("q*(1 < 2)*x", "x"),
    ],
)  # fmt: skip
def test_truth_values_are_numbers_in_latex(run, program, formula):
    assert diff(run, program, "--wrt", "q", "--to", "latex") == formula


def test_names_in_c_are_ascii(run):
    code = re.sub(r"/\*.*\*/", "", diff(run, "σ**2", "--wrt", "σ", "--to", "c"))
    assert code.isascii()
    assert "double derivative_u03c3(double u03c3)" in code


def test_sql(run):
    connection = database()
    for program, wrt, order in SCALARS:
        if program in LACKING["sql"]:
            continue
        select = diff(run, program, "--wrt", wrt, "--order", str(order), "--to", "sql")
        inputs = inputs_of(program, POINTS[1 if "acosh" not in program else 2])
        columns = ", ".join(f"{v!r} AS {name}" for name, v in inputs.items())
        (row,) = connection.execute(f"{select} FROM (SELECT {columns})").fetchall()
        expected = [value(program, inputs), derivative(program, wrt, order, inputs)]
        assert row == pytest.approx(expected, rel=1e-9, abs=1e-12), program


# Sums of exponentials in one variable that overflow as written.
EXPONENTIAL_SUMS = (
    "logsumexp([x, 1000])", "logsumexp([x, 2*x, 0])", "logsumexp([x, -x, 2], b=[0.3, 0.7, 1])", "softmax([x, 1000])[0]",
    "softmax([x, 2, 2*x])[1]", "log_softmax([x, 0, 5])[0]", "cross_entropy([x, 0], 1)", "log(1 + exp(x))", "softplus(x)",
    "logsigmoid(x)", "logaddexp(x, 3)", "logaddexp2(x, 3)", "logcosh(x)",
)  # fmt: skip
EXTREMES = (-1e5, -1e3, -700.0, 0.0, 0.5, 3.0, 700.0, 1e3, 1e5)


def values_printed(run: Any, language: str, program: str, folder: Path) -> Any:
    """The values, at extreme inputs, of the value that `diff` prints."""
    if language == "c":
        code = run("diff", program, "--to", "c", "--json").json["value"]
        function = in_c(code, folder, *STRICT)("value")
        return [function(ctypes.c_double(x)) for x in EXTREMES]
    text = diff(run, program, "--to", language)
    if language == "python":
        return [called(text, "value", {"x": x}) for x in EXTREMES]
    if language == "polars":
        return polars.DataFrame({"x": EXTREMES}).select(columns_of(text)["value"]).to_series().to_list()
    connection = database()
    connection.create_function("exp", 1, lambda x: float(np.exp(x)))
    connection.create_function("cosh", 1, lambda x: float(np.cosh(x)))
    connection.create_function("power", 2, lambda x, q: float(np.power(x, q)))
    return [connection.execute(f"{text} FROM (SELECT {x!r} AS x)").fetchone()[0] for x in EXTREMES]


@pytest.mark.cases(2)
@pytest.mark.parametrize("language", ["python", pytest.param("c", marks=NEEDS_GCC), "sql", "polars"])
def test_sums_of_exponentials_do_not_overflow(run, tmp_path, language):
    for number, program in enumerate(EXPONENTIAL_SUMS):
        folder = tmp_path / str(number)
        folder.mkdir()
        with np.errstate(all="ignore"):
            found = values_printed(run, language, program, folder)
        expected = [gradcli.compile(program)(x=x) for x in EXTREMES]
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-15), program


def test_a_sum_of_exponentials_is_not_multiplied_out(run):
    doubled = "s = exp(x) + exp(y)\nfor i in range(60): s = s*s + s\nlog(s)"
    assert "np.log(" in diff(run, doubled, "--wrt", "x", "--to", "python")
    assert diff(run, "x*log(exp(x) + 1)", "--to", "text") == "log(exp(x) + 1) + x/(exp(-x) + 1)"


def columns_of(text: str) -> dict[str, Any]:
    """The columns defined by the code that `diff --to polars` prints."""
    known: dict[str, Any] = {}
    exec(compile(text, "printed", "exec"), known)
    return known["columns"]


def test_polars(run):
    for program, wrt, order in SCALARS:
        if program in LACKING["polars"]:
            continue
        columns = columns_of(diff(run, program, "--wrt", wrt, "--order", str(order), "--to", "polars"))
        inputs = inputs_of(program, POINTS[1 if "acosh" not in program else 2])
        (row,) = polars.DataFrame({name: [v] for name, v in inputs.items()}).select(**columns).rows()
        expected = [value(program, inputs), derivative(program, wrt, order, inputs)]
        assert row == pytest.approx(expected, rel=1e-9, abs=1e-12), program


@pytest.mark.parametrize("program", ["x % q", "x//q", "q*(x % 0.5)", "q + x//-0.25"])
@pytest.mark.parametrize(("x", "q"), [(1.0, 0.1), (1e17, 3.0), (-7.5, 2.0), (7.5, -2.0), (-1e-20, 1.0), (0.3, 0.1)])
def test_remainders_are_those_of_eval(run, program, x, q):
    """A quotient rounded up to an integer would lose the remainder."""
    inputs = {"x": x, "q": q}
    expected = [value(program, inputs), *(derivative(program, by, 1, inputs) for by in inputs)]
    select = diff(run, program, "--wrt", "x,q", "--to", "sql", "--dialect", "sqlite")
    assert [*database().execute(f"{select} FROM (SELECT ? AS x, ? AS q)", (x, q)).fetchone()] == expected
    if "/q" not in program and "% q" not in program:
        frame = polars.DataFrame({name: [v] for name, v in inputs.items()})
        assert [*frame.select(**columns_of(diff(run, program, "--wrt", "x,q", "--to", "polars"))).row(0)] == expected
    assert run("diff", "x % q", "--to", "sql", "--dialect", "postgres").status == 1


@pytest.mark.parametrize("program", ["x/(q/0)", "x/(2*x*q/0)"])
def test_a_quotient_by_what_is_divided_by_0_has_no_formula(run, program):
    assert "divided by 0" in run("diff", program).err


@pytest.mark.parametrize(("program", "expected"), [("(x*1e300)**15", "1e+300*(15*(1e+300*x)**14)")])
def test_numbers_of_thousands_of_digits(run, program, expected):
    assert run("diff", program).out == f"{expected}\n"


BRANCHES = ["x**2 if x > 1 else q", "relu(x)*q", "maximum(x, q)", "where(x > q, 2*x, q)*exp(x)", "clip(q, 0, x)"]


@pytest.mark.parametrize("program", BRANCHES)
@pytest.mark.parametrize(("x", "q"), [(None, 2.0), (3.0, None), (3.0, 2.0)])
def test_a_row_that_lacks_a_number_takes_no_branch(run, program, x, q):
    select = diff(run, program, "--wrt", "x,q", "--to", "sql", "--dialect", "sqlite")
    (found,) = database().execute(f"{select} FROM (SELECT ? AS x, ? AS q)", (x, q)).fetchall()
    frame = polars.DataFrame({"x": [x], "q": [q]}, schema={"x": polars.Float64, "q": polars.Float64})
    (expressions,) = frame.select(**columns_of(diff(run, program, "--wrt", "x,q", "--to", "polars"))).rows()
    assert (found[0] is None, expressions[0] is None) == (None in (x, q),) * 2
    if None not in (x, q):
        assert found == expressions == pytest.approx([value(program, {"x": x, "q": q}), *found[1:]])


def test_what_expressions_of_polars_share_has_a_name(run):
    text = diff(run, "exp(sin(x*q)*cos(x*q)/(1 + x**2 + q**2))", "--to", "polars")
    # Once in the value, as written, and once in both simplified derivatives.
    assert text.count(".exp()") == 2
    assert [line.split(":")[0].strip() for line in text.splitlines() if "v1" in line[5:]] == ['"d_x"', '"d_q"']


def test_polars_of_whole_numbers_truth_values_and_words(run):
    program = "x/lambda_ + 1*(x > 2)*pl + columns**2//4 + 0*__debug__"
    frame = polars.DataFrame({"x": [1, 3], "lambda_": [2, 2], "pl": [5, 5], "columns": [2, 5], "__debug__": [0, 0]})
    found = frame.with_columns(**columns_of(diff(run, program, "--wrt", "x,columns", "--to", "polars")))
    assert found.columns == [*frame.columns, "value", "d_x", "d_columns"]
    assert found.select("value", "d_x").rows() == [(1.5, 0.5), (12.5, 0.5)]
    element = columns_of(diff(run, "x[0]**2*x[1]", "--to", "polars"))
    assert polars.DataFrame({"x_0": [3], "x_1": [2]}).select(**element).rows() == [(18.0, 12.0, 9.0)]


def test_a_tensor_is_no_column(run):
    outcome = run("diff", "sum(A@x)", "A=eye(2)", "--wrt", "A", "--to", "polars")
    assert outcome.status == 1
    assert "error: " in outcome.err


def test_sql_of_a_dialect_takes_whole_numbers_for_floats(run):
    connection = database()
    for program, wrt, order in SCALARS:
        if program in LACKING["sql"]:
            continue
        words = ["--wrt", wrt, "--order", str(order), "--to", "sql", "--dialect", "sqlite"]
        select = diff(run, program, *words)
        inputs = {name: 2 + n for n, name in enumerate(inputs_of(program, POINTS[1]))}
        expected = [value(program, inputs), derivative(program, wrt, order, inputs)]
        if None in expected or not all(map(math.isfinite, expected)):
            continue
        columns = ", ".join(f"{v} AS {name}" for name, v in inputs.items())
        (row,) = connection.execute(f"{select} FROM (SELECT {columns})").fetchall()
        assert row == pytest.approx(expected, rel=1e-9, abs=1e-12), program


DIALECTS = {
    "duckdb": 'CAST("order" AS DOUBLE)*LOG10(CAST(x AS DOUBLE)/2.0)',
    "postgres": 'CAST("order" AS DOUBLE PRECISION)*LOG(CAST(x AS DOUBLE PRECISION)/2.0)',
    "sqlite": 'CAST("order" AS REAL)*LOG10(CAST(x AS REAL)/2.0)',
    "bigquery": "CAST(`order` AS FLOAT64)*LOG10(IEEE_DIVIDE(CAST(x AS FLOAT64), 2.0))",
    "spark": "CAST(`order` AS DOUBLE)*LOG10(CAST(x AS DOUBLE)/2.0D)",
}


@pytest.mark.parametrize("dialect", languages.DIALECTS)
def test_dialects_of_sql(run, dialect):
    outcome = run("diff", "order*log10(x/2)", "--wrt", "x", "--to", "sql", "--dialect", dialect, "--json")
    assert outcome.json["dialect"] == dialect
    assert outcome.json["select"].splitlines()[1] == f"    {DIALECTS[dialect]} AS value,"


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("duckdb", "CAST('Infinity' AS DOUBLE)"),
        ("postgres", "-CAST('Infinity' AS DOUBLE PRECISION)"),
        ("sqlite", "9e999"),
        ("bigquery", "CAST('nan' AS FLOAT64)"),
        ("spark", "CAST('NaN' AS DOUBLE)"),
    ],
)
def test_numbers_that_are_not_finite_in_sql(run, dialect, text):
    number = {"I": "-inf" if text.startswith("-") else "inf", "9": "inf", "n": "nan", "N": "nan"}
    program = f"x if x > 1 else {number[text[text.find(chr(39)) + 1]]}"
    assert f"ELSE {text} END END AS value" in diff(run, program, "--to", "sql", "--dialect", dialect)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "sql", "--dialect", "duckbd"], "there is no dialect 'duckbd' of SQL\nhint: did you mean 'duckdb'?"),
        (["--to", "c", "--dialect", "duckdb"], "--dialect is for --to sql"),
        (["--to", "sql", "--dialect", "sqlite", "--order", "2"], "'digamma' cannot be written as sqlite"),
    ],
)
def test_dialects_that_are_refused(run, words, message):
    outcome = run("diff", "x*digamma(x)", *words)
    assert outcome.status in (1, 2)
    assert f"error: {message}" in outcome.err


def test_nan_is_no_number_of_sqlite(run):
    outcome = run("diff", "x if x > 1 else nan", "--to", "sql", "--dialect", "sqlite")
    assert (outcome.status, outcome.out) == (1, "")
    assert "error: nan cannot be written as sqlite, which has no such number" in outcome.err


def test_sql_of_whole_numbers_and_words(run):
    text = diff(run, "x/order + N*x", "--wrt", "x", "--to", "sql")
    assert text == 'SELECT\n    1.0*x/"order" + x*"N" AS value,\n    "N" + 1.0/"order" AS d_x'
    connection = sqlite3.connect(":memory:")
    assert connection.execute(f'{text} FROM (SELECT 1 AS x, 2 AS "order", 3 AS "N")').fetchall() == [(3.5, 3.5)]


@pytest.mark.parametrize(
    ("program", "formula"),
    [
        ("log(x**q)", r"\frac{q}{x}"),
        ("sin(x)**3", r"3 \sin^{2}\left(x\right) \cos\left(x\right)"),
        ("exp(-x**2/2)", r"-x e^{-\frac{x^{2}}{2}}"),
        ("sqrt(x)", r"\frac{1}{2 \sqrt{x}}"),
        ("alpha_1*x**2/w0", r"\frac{2 \alpha_{1} x}{w_{0}}"),
        ("σ*x**speed", r"\sigma \mathrm{speed} x^{\mathrm{speed} - 1}"),
        ("abs(x)*x", None),
        ("where(x > 1, x**2, x)", r"\begin{cases} 2 x & x > 1 \\ 1 & \text{otherwise} \end{cases}"),
        ("(x + 1)**5/3", r"\frac{5 \left(x + 1\right)^{4}}{3}"),
        ("digamma(x)", r"\operatorname{polygamma}\left(x, \mathrm{n}=\text{1}\right)"),
        ("zeta(q, x)", r"-q \zeta\left(q + 1, x\right)"),
        ("zeta(x, q)", r"-\zeta\left(x, q, \mathrm{n}=\text{1}\right)"),
        ("x*zeta(q)", r"\zeta\left(q\right)"),
        ("x*jv(q, 2)", r"\operatorname{jv}\left(q, 2\right)"),
        ("x*i0e(q)", r"\operatorname{i0e}\left(\left|q\right|\right)"),
    ],
)
def test_latex(run, program, formula):
    found = diff(run, program, "--wrt", "x", "--to", "latex")
    assert formula in (None, found)
    assert found.count("{") == found.count("}")
    assert found.count("\\left") == found.count("\\right")


def test_latex_of_matrices(run):
    found = diff(run, "sum((A@x - b)**2)", "A=eye(2, 3)", "x=[1,2,3]", "b=[1,2]", "--wrt", "x", "--to", "latex")
    assert found == r"2 A^{\top} \left(A x - b\right)"


def test_a_function_that_a_language_lacks(run):
    outcome = run("diff", "gamma(x)", "--to", "sql")
    assert outcome.status == 1
    assert "'gamma' cannot be written as sql" in outcome.err
    assert "--to text, latex, python, c" in outcome.err


def test_a_function_that_a_language_lacks_is_called_as_in_the_program(run):
    outcome = run("diff", "zeta(x, q)", "--wrt", "x", "--to", "python")
    assert outcome.status == 1
    assert "'zeta' cannot be written as python" in outcome.err


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("simplified", "program"),
    [
        ("-2*sin(2*x)", "cos(x)**2 - sin(x)**2"),
        (None, "x**x/(1 + x**2)"),
        (None, "x*(y > 1)*(y < 3) + x*logical_not(y) + x*logical_or(y, x > 1)"),
        (None, "x*exp(y > 1) + x*((y > 1) - (y > 2)) + x*(floor(y) == 1)"),
    ],
)
def test_simplification_by_sympy(run, simplified, program):
    text = diff(run, program, "--wrt", "x", "--simplify")
    assert simplified in (None, text)
    inputs = {name: {"x": 0.7, "y": 1.4}[name] for name in names_of(program)}
    assert value(text, inputs) == pytest.approx(derivative(program, "x", 1, inputs))
    code = diff(run, program, "--wrt", "x", "--simplify", "--to", "python")
    assert called(code, "derivative_x", inputs) == pytest.approx(derivative(program, "x", 1, inputs))


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("9.81*t**2/2", "9.81*t"),
        ("0.1*t**2 - 0.25*t", "0.2*t - 0.25"),
        ("0.5*t**1.5", "0.75*sqrt(t)"),
        ("t**3/4", "3*(t*t)/4"),
    ],
)
def test_decimals_stay_decimals_in_what_sympy_simplifies(run, program, text):
    found = diff(run, program, "--wrt", "t", "--simplify")
    assert found == text
    assert value(found, {"t": 1.7}) == pytest.approx(derivative(program, "t", 1, {"t": 1.7}))


def test_the_derivatives_of_zeta_of_two_operands_are_formulas(run):
    assert diff(run, "zeta(x, q)", "--wrt", "x") == "-zeta(x, q, 1)"
    assert diff(run, "zeta(x, q)", "--wrt", "x", "--order", "2") == "zeta(x, q, 2)"
    inputs = {"x": 2.5, "q": 1.5}
    assert value("zeta(x, q, 2)", inputs) == pytest.approx(derivative("zeta(x, q)", "x", 2, inputs), rel=1e-13)


@pytest.mark.parametrize("x", [2.5, 1.2, -0.7])
def test_the_derivative_of_zeta_is_a_formula(run, x):
    text = diff(run, "zeta(x)")
    # And not 1.8378770664093453 as a fraction over a power of ten.
    assert "log(2*pi)" in text
    assert "e+16" not in text
    assert value(text, {"x": x}) == pytest.approx(derivative("zeta(x)", "x", 1, {"x": x}), rel=1e-13)


@pytest.mark.slow
def test_sympy_knows_most_of_the_formulas(run):
    from gradcli.formulas import sympy_simplification
    from gradcli.formulas.languages.text import text
    from gradcli.formulas.symbolic import parsed_formula

    written = 0
    for program, wrt, order, _ in GOLDEN[::4]:
        formula = derivatives_as_formulas(parse(program), {}, (wrt,), order).derivatives[",".join([wrt] * order)]
        try:
            found = sympy_simplification.sympy_simplified_text(formula)
        except gradcli.GradcliError:
            continue
        inputs = inputs_of(program, POINTS[1 if "acosh" not in program else 2])
        expected = derivative(program, wrt, order, inputs)
        assert value(text(parsed_formula(found, like=formula), short=40), inputs) == pytest.approx(
            expected, rel=1e-9, abs=1e-12
        )
        written += 1
    assert written > 15


@pytest.mark.parametrize("program", ["(x + 1)**5000", pytest.param("gamma(x + 1e9)*x", marks=pytest.mark.slow)])
def test_what_sympy_cannot_simplify_in_time_stays_as_it_is(run, monkeypatch, program):
    monkeypatch.setattr("gradcli.formulas.sympy_simplification.LIMITS", Limits(seconds=0.8, memory=2**30))
    outcome = run("diff", program, "--simplify")
    assert (outcome.status, outcome.out) == (0, run("diff", program).out)
    assert outcome.err == "warning: SymPy cannot simplify this within its limits of time and memory\n"
    outcome = run("diff", program, "--simplify", "--json")
    assert (outcome.json["simplified"], outcome.err) == (False, "")


def test_without_sympy_there_is_an_error_that_says_how_to_get_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    outcome = run("diff", "x**2", "--simplify")
    assert outcome.status == 2
    assert f"{install_command.install_command('sympy')} installs it" in outcome.err


# --- errors


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["for i in range(x) { x = x*2 }; x"], 1, "there is no single formula: what is computed here depends on the"),
        (["while x < 9 { x = x*2 }; x", "--wrt", "x"], 1, "there is no single formula"),
        (["x**2", "--wrt", "y"], 2, "the program does not read 'y', which --wrt asks for"),
        (["x**2", "--order", "0"], 2, "--order is 1 or more"),
        (["x**2", "--to", "pyton"], 2, "did you mean 'python'?"),
        (["x**2", "x=[1,2]"], 1, "a formula is the derivative of a scalar, and the value has shape [2]"),
        (["A@x", "x=[1,2]"], 1, "a matrix product needs vectors or matrices"),
        (["sum(A@x)", "x=[1,2]"], 1, "'A' stands for a number; a tensor gives it a shape"),
        (["exp(sin(x))", "--order", "9", "--max-steps", "1"], 1, "the program takes more than 1 steps"),
        (["x**2", "--order", "1000000000"], 1, "a derivative of order 1000000000 has a factorial that is no float"),
        (["sum(x**2)", "x=[1]", "--order", "70"], 1, "a derivative of order 70 by a tensor has more than 64 axes"),
        (["*".join("abcdefghijklmnopqrst"), "--order", "6"], 1, "the program takes more than 2,000,000 steps"),
        (["1 + 1"], 2, "reads no names to differentiate by"),
        (["lgo(x)"], 2, "did you mean 'log'?"),
        (["sum(eigvalsh(x)**2)", "x=[[1,2],[2,1]]", "--to", "c"], 1, "'x' is a tensor, and C has numbers alone"),
        (["x[-1]*x[0]"], 1, "how many elements 'x' has is not known, and this depends on it"),
        (["sum(x[1:])"], 1, "hint: give it a value for its size, as in x=[1,2,3]"),
        (["sum(x)*x[0]"], 1, "'x' is read as a number, and by 1 index"),
        (["A[0]*A[0][1]"], 1, "'A' is read as a tensor of 1 axes, and by 2 indices"),
    ],
)
def test_errors(run, words, status, message):
    outcome = run("diff", *words)
    assert (outcome.status, outcome.out) == (status, "")
    assert message in outcome.err


def test_a_formula_of_numbers_loads_no_array_library():
    code = (
        "import sys; from gradcli.cli.main import main; from gradcli.cli.process.environment import Environment;"
        "main(['diff', 'x**q*sin(x)'], Environment(sys.stdin, sys.stdout, sys.stderr, {}));"
        "sys.exit('numpy' in sys.modules or 'scipy' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(gradcli.__file__).resolve().parent.parent)}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=environment).returncode == 0


def test_every_language_is_found():
    for name in languages.NAMES:
        language = languages.find(name)
        assert language.name == name
        assert language.writes(add)


def test_derivatives_are_taken_in_every_order_of_the_names(run):
    texts = {
        names: diff(run, "x*y**2*z**3", "--order", "2", "--wrt", ",".join(names))
        for names in itertools.permutations("xy")
    }
    assert texts["x", "y"].splitlines()[1] == "x,y: 2*y*z**3"
    assert texts["y", "x"].splitlines()[1] == "y,x: 2*y*z**3"


def test_the_file_with_the_program(run, tmp_path: Path):
    path = tmp_path / "f.grad"
    path.write_text("y = x**3\ny*2\n", encoding="utf-8")
    assert diff(run, "--file", str(path)) == "6*x**2"


@pytest.mark.parametrize(
    ("program", "x"),
    [("(x*1e200)**2", 1e-200), ("(x*1e-200)**2", 1e200), ("(x/3e-170)**2", 1e-170), ("x**2*1e-320", 1e15)],
)
def test_numbers_that_no_float_holds_are_left_in_their_factors(run, program, x):
    formula = run("diff", program).out.strip()
    expected = run("eval", program, f"x={x}", "--json").json["grad"]["x"]
    assert expected not in (0, math.inf)
    assert run("eval", formula, f"x={x}", "--json").json["value"] == pytest.approx(expected, rel=1e-12, abs=0)


def test_no_text_is_written_that_is_too_long_to_be_read_back(run, monkeypatch):
    assert as_text.LONGEST == MAX_LENGTH
    words = ["diff", "sin(x)*cos(x)*exp(x)*tan(x)", "--order", "6"]
    assert len(run(*words).out) > 100
    monkeypatch.setattr(as_text, "LONGEST", 100)
    outcome = run(*words, "--json")
    assert outcome.error["kind"] == "limit"
    assert "longer than the 100 characters that a program can have" in outcome.error["message"]


@pytest.mark.parametrize("language", ["text", "python", "latex"])
@pytest.mark.parametrize("program", ["comb(x, k)", "perm(x, k)", "log_ndtr(x)", "softsign(x)", "csch(x)"])
def test_derivatives_of_functions_that_few_programs_use_are_written(run, program, language):
    done = run("diff", program, "--to", language)
    assert (done.status, done.err) == (0, "")


def test_the_derivative_by_the_value_of_a_step_at_0_is_written(run):
    formula = run("diff", "heaviside(x, q)*q", "--wrt", "q").out.strip()
    for x, expected in ((0.0, 1.4), (2.0, 1.0), (-2.0, 0.0)):
        assert gradcli.compile(formula)(x=x, q=0.7) == expected
    assert run("diff", "heaviside(x, q)").out == "x: 0\nq: where(0 == x, 1, 0)\n"
    assert run("diff", "heaviside(x, 0.5)*x").out == "heaviside(x, 0.5)\n"


def test_the_derivative_of_erfcx_is_written_in_erfcx(run):
    found = run("diff", "erfcx(x)").out.strip()
    assert math.isclose(gradcli.compile(found)(x=0.7), gradcli.compile("diff(erfcx(x), x)")(x=0.7), rel_tol=1e-14)


AT_A_POINT = [
    (["x^2", "x=3"], "2*x\n# 6.0 at x=3.0\n", ""),
    (["x^2*y", "x=3", "y=2"], "x: 2*x*y\ny: x**2\n# x: 12.0 at x=3.0, y=2.0\n# y: 9.0 at x=3.0, y=2.0\n", ""),
    (["x^2*y", "x=3", "y=2", "--wrt", "x"], "4*x\n# 12.0 at x=3.0\n", ""),
    (["x^2*y", "x=3", "--wrt", "y"], "9\n", ""),
    (["x^2*y", "x=3"], "x: 2*x*y\ny: x**2\n", "the value of 'x' is not used: 'y' has none"),
    (["x^3*y", "x=2", "y=1", "--order", "2", "--wrt", "x"], "6*x\n# 12.0 at x=2.0\n", ""),
    (["x^2", "x=3", "--to", "latex"], "2 x\n% 6.0 at x=3.0\n", ""),
    (["1/x", "x=0"], "-1/x**2\n# -inf at x=0.0\n", "'divide' gives inf"),
    (["sum(x**2)", "x=[1,2]"], "2*x\n", ""),
]


@pytest.mark.parametrize(("words", "out", "warned"), AT_A_POINT)
def test_a_derivative_by_a_name_with_a_value_is_evaluated_there(run, words, out, warned):
    outcome = run("diff", *words)
    assert (outcome.status, outcome.out) == (0, out)
    assert warned in outcome.err
    assert bool(warned) == bool(outcome.err)


def test_values_at_a_point_as_json(run):
    found = run("diff", "x^2*y", "x=3", "y=2", "--json").json
    assert found["derivatives"] == {"x": "2*x*y", "y": "x**2"}
    assert found["values"] == {"x": 12.0, "y": 9.0}
    assert "values" not in run("diff", "x^2*y", "y=2", "--wrt", "x", "--json").json


def test_a_formula_with_its_value_is_a_program(run):
    formula = run("diff", "x^3", "x=2").out
    assert run("eval", "-", "x=2", "--json", stdin=formula).json["value"] == 12.0


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("x*any([x])", "1"),
        ("x*any([x > 2])", "1*(x > 2)"),
        ("x*(x != 1)", "1*(1 != x)"),
        ("x*isfinite(x)", "1*isfinite(x)"),
        ("where(isfinite(x), 2, x)", "where(isfinite(x), 0, 1)"),
    ],
)
def test_whether_something_is_true_counts_as_a_number(run, program, text):
    assert run("diff", program).out == f"{text}\n"


@pytest.mark.parametrize(
    ("program", "text", "what"),
    [
        ("x**20*(10**300)**20", "20*x**19*inf", "infinite"),
        ("x*1e308*10", "inf", "infinite"),
        ("x*0/0", "nan", "nan"),
        ("(x*1e300)**20", "1e+300*(20*(1e+300*x)**19)", None),
        ("inf*x", "inf", None),
    ],
)
def test_a_number_that_is_infinite_is_told_of(run, program, text, what):
    outcome = run("diff", program)
    assert outcome.out == f"{text}\n"
    message = f"the derivative by x is written with a number that is {what}, as it is in floats"
    assert (message in outcome.err) == (what is not None)


@pytest.mark.parametrize(("program", "x"), [("minimum(sin(x), asinh(x))", 1e-5), ("maximum(x - 1, x + 1.5)", 1e150)])
def test_operands_that_are_rounded_to_the_same_number_keep_a_derivative(run, program, x):
    """If both operands were left out at a tie, the derivative would vanish."""
    assert value(diff(run, program), {"x": x}) == pytest.approx(derivative(program, "x", 1, {"x": x}))
    assert value(diff(run, "minimum(x*x, x*x)"), {"x": 3.0}) == 6.0


@pytest.mark.parametrize(
    "program", ["where(x == 0, 0, x)", "if x == 0 { 0 } else { x }", "2 if x == 2 else x*k", "not_equal(x, k)*x"]
)
def test_a_derivative_by_what_is_tested_for_equality_is_told(run, program):
    (warning,) = run("diff", program, "--wrt", "x", "--json").json["warnings"]
    assert (warning["code"], warning["operation"]) == ("nonsmooth", "equal")
    assert "gradcli eval has that of the value" in run("diff", program, "--wrt", "x").err


@pytest.mark.parametrize("program", ["where(k == 2, x**2, x)", "where(x - x == 0, 2*x, x)", "logaddexp(x, k)"])
def test_an_equality_of_other_names_is_not_told(run, program):
    assert run("diff", program).err == ""


class TestSeveralFormulas:
    @pytest.mark.parametrize("program", ["sin(x); x^2", "[sin(x), x^2]", "sin(x), x^2"])
    def test_they_are_differentiated_one_by_one(self, program, run):
        assert run("diff", program).out == "# sin(x)\ncos(x)\n# x^2\n2*x\n"
        found = run("diff", program, "x=3", "--json").json
        assert [f["formula"] for f in found["formulas"]] == ["sin(x)", "x^2"]
        assert found["formulas"][1] == {"formula": "x^2", "derivatives": {"x": "2*x"}, "values": {"x": 6.0}}

    def test_each_has_the_definitions_before_it(self, run):
        out = run("diff", "y = x*q; [y**2, log(q)]", "--wrt", "q", "--to", "latex").out
        assert out == "% y**2\n2 x^{2} q\n% log(q)\n\\frac{1}{q}\n"
        assert run("diff", "f(t) = t**2; f(x); y = 3*x", "--wrt", "x").out == "# f(x)\n2*x\n# y = 3*x\n3\n"

    def test_a_language_of_functions_has_one(self, run):
        done = run("diff", "x; x**2", "--to", "c")
        assert done.status == 2
        assert "--to c is for one formula, and these are 2" in done.err

    def test_what_is_no_list_of_formulas(self, run):
        assert run("diff", "[x, y]@[y, x]", "--wrt", "x").out == "2*y\n"
        assert "0.5*x" in run("diff", "0,5*x").err
