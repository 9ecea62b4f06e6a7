"""Long programs and long chains: nothing recurses."""

from __future__ import annotations

import math

import gradcli


def test_a_sum_of_3000_terms():
    program = gradcli.compile(" + ".join(f"{k}*x" for k in range(1, 3001)))
    value, grad = program.value_and_grad({"x": 2.0})
    assert (value, grad["x"]) == (9003000.0, 4501500.0)


def test_100_000_operations_in_a_program():
    program = gradcli.compile("y = x\nfor i in range(50000) { y = y*0.5 + x }\ny")
    value, grad = program.value_and_grad({"x": 3.0})
    assert (value, grad["x"]) == (6.0, 2.0)


def test_a_program_of_100_000_operations():
    program = gradcli.compile("x" + "+x" * 100_000)
    value, grad = program.value_and_grad({"x": 1.0})
    assert (value, grad["x"]) == (100_001.0, 100_001.0)


def test_recursion_of_the_program_is_not_that_of_python():
    program = gradcli.compile("f(n, y) = y if n <= 0 else f(n - 1, y*1.0001); f(20000, x)")
    assert program.value_and_grad({"x": 1.0})[1]["x"] == math.prod([1.0001] * 20000)


def test_long_chains_of_operators_that_nest_to_the_right():
    assert gradcli.compile("-" * 20_001 + "x")(x=1.0) == -1.0
    assert gradcli.compile("x" + "**1" * 20_000)(x=3.0) == 3.0
    assert gradcli.compile("1 if x else " * 20_000 + "7")(x=0.0) == 7.0


def test_1000_nested_brackets():
    assert gradcli.compile("(" * 1000 + "x" + ")" * 1000)(x=1.0) == 1.0
