"""Tests the autograd behaviours that programs can express, through `gradcli eval`."""

from __future__ import annotations

import math

import pytest


@pytest.fixture
def evaluate(run):
    def evaluate(program, *words):
        outcome = run("eval", program, *words, "--json")
        assert outcome.status == 0, outcome.err
        return outcome.json

    return evaluate


def nodes(record):
    return {row["name"]: row for row in record["nodes"]}


def test_1_nothing_requires_grad(evaluate):
    record = evaluate("y = x**3; z = log(y)", "x=5", "--no-grad", "--nodes")
    assert record["value"] == pytest.approx(4.8283137373023015, rel=1e-15)
    for row in record["nodes"]:
        assert (row["requires_grad"], row["is_leaf"], row["grad_fn"], row["grad"]) == (False, True, None, None)


@pytest.mark.parametrize(("dtype", "expected"), [("float64", 0.6), ("float32", 0.6)])
def test_2_a_leaf_gets_its_gradient_and_intermediates_do_not(evaluate, dtype, expected):
    record = evaluate("y = x**3; z = log(y)", "x=5", "--nodes", "--dtype", dtype)
    found = nodes(record)
    assert record["grad"] == {"x": expected}
    assert [found[n]["grad_fn"] for n in "xyz"] == [None, "PowBackward0", "LogBackward0"]
    assert [found[n]["is_leaf"] for n in "xyz"] == [True, False, False]
    assert [found[n]["requires_grad"] for n in "xyz"] == [True, True, True]
    assert [found[n]["grad"] for n in "yz"] == [None, None]


def test_3_retained_gradients(evaluate):
    record = evaluate("y = x**3; z = log(y)", "x=5", "--retain", "y,z", "--nodes")
    assert record["retained"] == {"y": 0.008, "z": 1.0}
    assert [nodes(record)[n]["retains_grad"] for n in "xyz"] == [False, True, True]


def test_7_two_paths_add_up(evaluate):
    record = evaluate("y = x**3; w = x**2; z = log(y) + sqrt(w)", "x=5", "--nodes")
    assert record["grad"]["x"] == pytest.approx(1.6, rel=1e-15)
    assert record["value"] == pytest.approx(9.828313737302301, rel=1e-15)
    assert nodes(record)["z"]["grad_fn"] == "AddBackward0"


def test_8_both_the_base_and_the_exponent(evaluate):
    record = evaluate("y = x**q; z = log(y)", "x=5", "q=3", "--nodes", "--dtype", "float32")
    assert record["grad"] == {"x": 0.6, "q": 1.6094381}
    assert nodes(record)["y"]["grad_fn"] == "PowBackward1"


def test_9_a_function_of_ones_own(evaluate):
    program = "MyPow(a, b) = a**b backward(g) = g*b*a**(b - 1), g*a**b*log(a)\ny = MyPow(x, q); z = log(y)"
    record = evaluate(program, "x=5", "q=3", "--nodes")
    assert record["grad"] == {"x": pytest.approx(0.6, rel=1e-15), "q": pytest.approx(math.log(5), rel=1e-15)}
    assert nodes(record)["y"]["grad_fn"] == "MyPowBackward"


def test_9_with_the_wrong_number_of_gradients(run):
    outcome = run("eval", "MyPow(a, b) = a**b backward(g) = g\nMyPow(x, q)", "x=5", "q=3", "--json")
    assert outcome.status == 2
    assert "MyPow" in outcome.error["message"]


def test_10_detach(evaluate):
    record = evaluate("y = x*[2,3,5]; w = detach(y); z = w @ [4,7,9]", "x=5", "--nodes")
    assert record["value"] == 370.0
    assert record["grad"] == {"x": None}
    found = nodes(record)
    assert [found[n]["requires_grad"] for n in "yzw"] == [True, False, False]
    assert found["z"]["grad_fn"] is None


def test_13_any_order(evaluate):
    record = evaluate("y = x**3; z = log(y)", "x=5", "--order", "4")
    assert record["derivatives"] == {
        "x,x": pytest.approx(-0.12, rel=1e-14),
        "x,x,x": pytest.approx(0.048, rel=1e-14),
        "x,x,x,x": pytest.approx(-0.0288, rel=1e-13),
    }
    assert evaluate("z = log(x**3); diff(z, x, 2)", "x=5")["value"] == pytest.approx(-0.12, rel=1e-14)


LAYERS = ("y_1 = w_1@inp; y_2 = w_2@y_1", "inp=[1,2]", "w_1=[[1,2],[3,4]]", "w_2=[[2,3],[4,2]]", "--const", "inp")


def test_14_two_layers(evaluate):
    program, *words = LAYERS
    record = evaluate(program + "; s = sum(y_2)", *words, "--nodes")
    assert record["value"] == 85.0
    assert record["grad"] == {"w_1": [[6.0, 12.0], [5.0, 10.0]], "w_2": [[5.0, 11.0], [5.0, 11.0]]}
    assert [nodes(record)[n]["grad_fn"] for n in ("y_1", "y_2", "s")] == ["MvBackward0", "MvBackward0", "SumBackward0"]
    assert evaluate(program, *words, "--no-grad")["value"] == [43.0, 42.0]


def test_15_a_value_that_is_no_scalar(run, evaluate):
    outcome = run("eval", *LAYERS, "--json")
    assert outcome.status == 1
    assert (
        outcome.error["message"]
        == "the value has 2 elements and a gradient is that of a single number (grad can be implicitly created only for scalar outputs)"
    )
    assert "--jacobian" in outcome.error["hint"]
    assert "--grad-output" in outcome.error["hint"]
    program, *words = LAYERS
    assert evaluate(program, *words, "--grad-output", "[1,1]")["grad"]["w_2"] == [[5.0, 11.0], [5.0, 11.0]]


def test_16_elementwise_and_mean(evaluate):
    record = evaluate("y = x+2; z = y*y*3; out = mean(z)", "x=ones(2,2)", "--nodes")
    assert record["value"] == 27.0
    assert record["grad"]["x"] == [[4.5, 4.5], [4.5, 4.5]]
    grad_fns = [nodes(record)[n]["grad_fn"] for n in ("y", "z", "out")]
    assert grad_fns == ["AddBackward0", "MulBackward0", "MeanBackward0"]


def test_18_a_cotangent(evaluate):
    record = evaluate("3*a**3 - b**2", "a=[2,3]", "b=[6,4]", "--grad-output", "[1,1]")
    assert record["grad"] == {"a": [36.0, 81.0], "b": [-12.0, -8.0]}


def test_19_some_inputs_alone(evaluate):
    record = evaluate("x*y", "x=2", "y=3", "--wrt", "x", "--nodes")
    assert record["grad"] == {"x": 3.0}
    assert nodes(record)["y"]["grad"] is None


def test_20_a_result_requires_grad_if_an_input_does(evaluate):
    found = nodes(evaluate("a = x + k; b = k + k; c = a*b", "x=2", "k=3", "--const", "k", "--nodes"))
    assert [found[n]["requires_grad"] for n in "abc"] == [True, False, True]


def test_25_the_path_that_ran(evaluate):
    program = "y = x; while abs(y) < 100 { y = y*2 }; y"
    assert evaluate(program, "x=3")["grad"]["x"] == 64.0
    assert evaluate(program, "x=-7")["grad"]["x"] == 16.0
    assert evaluate(program, "x=200")["grad"]["x"] == 1.0


def test_27_a_chain_of_100_000_operations(evaluate):
    program = "y = x\nfor i in range(100000) { y = y + x }\ny"
    assert evaluate(program, "x=1")["grad"]["x"] == 100_001.0
