"""Tests long programs and long chains: there is no recursion, and twice the length takes twice the work."""

from __future__ import annotations

import itertools
import math
import pickle
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged


def instructions(function: Callable[[], Any]) -> int:
    """The number of Python instructions of a call: a reproducible measure of its work."""
    count = 0

    def see(frame: Any, event: str, _argument: Any) -> Any:
        nonlocal count
        if event == "call":
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
        count += event == "opcode"
        return see

    before = sys.gettrace()
    sys.settrace(see)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def test_a_sum_of_3000_terms():
    program = gradcli.compile(" + ".join(f"{k}*x" for k in range(1, 3001)))
    value, grad = program.value_and_grad({"x": 2.0})
    assert (value, grad["x"]) == (9003000.0, 4501500.0)


def test_100_000_operations_in_a_program():
    program = gradcli.compile("y = x\nfor i in range(50000) { y = y*0.5 + x }\ny")
    value, grad = program.value_and_grad({"x": 3.0})
    assert (value, grad["x"]) == (6.0, 2.0)


@pytest.mark.slow
def test_a_program_of_100_000_operations():
    program = gradcli.compile("x" + "+x" * 100_000)
    value, grad = program.value_and_grad({"x": 1.0})
    assert (value, grad["x"]) == (100_001.0, 100_001.0)


def test_recursion_of_the_program_is_not_that_of_python():
    program = gradcli.compile("f(n, y) = y if n <= 0 else f(n - 1, y*1.0001); f(20000, x)")
    assert program.value_and_grad({"x": 1.0})[1]["x"] == math.prod([1.0001] * 20000)


@pytest.mark.slow
def test_long_chains_of_operators_that_nest_to_the_right():
    assert gradcli.compile("-" * 20_001 + "x")(x=1.0) == -1.0
    assert gradcli.compile("x" + "**1" * 20_000)(x=3.0) == 3.0
    assert gradcli.compile("1 if x else " * 20_000 + "7")(x=0.0) == 7.0


def test_1000_nested_brackets():
    assert gradcli.compile("(" * 1000 + "x" + ")" * 1000)(x=1.0) == 1.0


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "body",
    [
        "y = y - 0.001*diff(sin(y)*y, y, 2)",
        "y = y - 0.001*f(y)",
        "y = y - 0.001*diff(where(y > 0, y*y, y), y)",
        "y = y*1.001; u = y*1; y = y + 0.001*diff(sin(x), u) + diff(y, i)",
        "v = v - 0.001*jacobian(v*v, v)@v",
        "v = v - 0.001*hessian(sum(v**3), v)@v",
    ],
)
def test_a_derivative_in_a_loop_walks_what_lies_between_alone(body: str):
    def run(rounds: int) -> Any:
        text = f"f(t) = diff(t*sin(t), t); y = x; v = w; for i in range({rounds}) {{ {body} }}; y + sum(v)"
        return gradcli.compile(text).value_and_grad({"x": 1.0, "w": [1.0, 2.0]})

    run(1)
    work = [instructions(lambda n=n: run(n)) for n in (8, 16, 32)]
    assert work[2] - work[1] < 2.1 * (work[1] - work[0])


def test_a_leaf_made_late_has_its_gradient():
    x = gradcli.tensor(2.0, requires_grad=True)
    y = x * 3
    assert gradcli.grad(y, x, retain_graph=True)[0].item() == 3.0
    x.requires_grad = False
    x.requires_grad = True
    assert gradcli.grad(y, x)[0].item() == 3.0
    copy = pickle.loads(pickle.dumps(x))
    assert gradcli.grad(copy * 5, copy)[0].item() == 5.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        lambda n: f"sum([{', '.join(['x'] * n)}])",
        lambda n: f"max([{', '.join(['x'] * n)}])",
        lambda n: f"sum(concat([{', '.join(['[x]'] * n)}]))",
        lambda n: f"f({', '.join(f'a{i}' for i in range(n))}) = a0; f({', '.join(['x'] * n)})",
        lambda n: f"f({', '.join(f'a{i}' for i in range(n))}) = a0; f({', '.join(f'a{i}=x' for i in range(n))})",
    ],
)
def test_many_items_take_time_in_proportion(program: Callable[[int], str]):
    def run(items: int) -> Any:
        return gradcli.compile(program(items)).value_and_grad({"x": 1.0})

    run(200)
    work = [instructions(lambda n=n: run(n)) for n in (200, 400, 800)]
    assert work[2] - work[1] < 2.1 * (work[1] - work[0])


def test_einsum_of_200_tensors():
    text = f"sum(einsum('{','.join('i' * 200)}->i', {', '.join(['x'] * 200)}))"
    value, gradient = gradcli.compile(text).value_and_grad({"x": [1.0, 1.01]})
    assert value == pytest.approx(1.0 + 1.01**200)
    assert list(gradient["x"]) == pytest.approx([200.0, 200 * 1.01**199])


def test_einsum_of_a_chain_of_matrices():
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[:50]
    terms = ",".join(a + b for a, b in itertools.pairwise(letters))
    text = f"einsum('{terms}->a{letters[-1]}', {', '.join(['x'] * 49)})"
    value = gradcli.compile(text)(x=[[0.9, 0.2], [0.1, 0.8]])
    assert value == pytest.approx(np.linalg.matrix_power(np.array([[0.9, 0.2], [0.1, 0.8]]), 49))


def test_einsum_of_more_letters_than_there_are(run):
    letters = [chr(0x4E00 + i) for i in range(60)]
    outcome = run("eval", f"einsum('{','.join(letters)}->{''.join(letters)}', {', '.join(['x'] * 60)})", "x=[1]")
    assert outcome.status == 1
    assert "'einsum' has more than 52 different letters" in outcome.err


def test_an_error_in_einsum_names_einsum(run):
    program = f"einsum('{','.join('i' * 40)}', {', '.join(['x'] * 40)})"
    for text in (program, "einsum('abcdefghijklmno,b->acdefghijklmno', ones(*s), y)".replace("*s", "3," * 14 + "2")):
        outcome = run("eval", text, "x=[1,2]", "y=[1,2,3]", "--json", "--max-elements", "100")
        assert outcome.status != 0
        assert "contract" not in outcome.error["message"]


def test_many_definitions_take_time_in_proportion_to_their_number():
    text = "".join(f"f{i}(x) = x\n" for i in range(10_000)) + "f0(q)"
    program = parse_charged(text)
    began = time.process_time()
    assert [*scope.free_names(program)] == ["q"]
    # Half a second; with quadratic time it was five.
    assert time.process_time() - began < 2.5
