"""Loops whose backward pass keeps each √n-th round and runs the others again: the same numbers in less memory."""

import re
import tracemalloc
import warnings
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import gradcli
from gradcli import limits
from gradcli.evaluation.derivative_traces import value_and_hessian
from gradcli.evaluation.recordings import recording
from gradcli.language.interpreter import loop_policy
from gradcli.loops import loop_execution
from tests.loops.test_rolled_loops import DERIVATIVES, PROGRAMS, numbers


@pytest.fixture(autouse=True)
def short_loops_are_rolled(monkeypatch):
    monkeypatch.setattr(loop_policy, "_WORTH_RECORDING", 0)


@pytest.fixture(params=["Python", "machine code"])
def way(request, monkeypatch):
    """How the rounds are run."""
    monkeypatch.setattr(loop_execution, "_WORTH_COMPILING", 0 if request.param == "machine code" else 10**18)
    monkeypatch.setattr(loop_execution, "_states", WeakKeyDictionary())
    return request.param


def keep_nothing(monkeypatch):
    monkeypatch.setattr(limits, "MAX_STORED_BYTES", 0)


def spacings(source, values):
    """The distances of the rows that the loops of a gradient keep."""
    trace = recording(gradcli.compile(source).program, values, tuple(values)).trace
    return {e.params["loop"].spacing for e in trace.program.equations if e.primitive.name == "loop_history"}


def test_rows_are_kept_up_to_a_bound(monkeypatch):
    source, values = "s = x; for i in range(100) { s = s*x }; s", {"x": 0.99}
    monkeypatch.setattr(limits, "MAX_STORED_BYTES", 808)
    assert spacings(source, values) == {1}
    monkeypatch.setattr(limits, "MAX_STORED_BYTES", 807)
    assert spacings(source, values) == {1, 10}


CHECKPOINTED = [
    "a differential equation", "the counter", "rows of data", "strides of data", "a counter that falls",
    "what the first round makes", "small matrices", "where", "a branch", "overflow", "a pole", "while", "break",
    "bisection", "elements of a tensor", "fori_loop", "while_loop", "a function that calls itself", "a list of numbers",
    "scan",
]  # fmt: skip


CASES = [(name, "gradient") for name in CHECKPOINTED] + [
    (name, kind) for name in ["rows of data", "where", "while"] for kind in DERIVATIVES if kind != "gradient"
]


@pytest.mark.cases(3)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_results_are_the_same_to_the_last_bit(name, kind, way, monkeypatch):
    source, values = PROGRAMS[name]
    wrt = [n for n in values if n != "e"]

    def found():
        program = gradcli.compile(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gradcli.AccuracyWarning)
            return [numbers(DERIVATIVES[kind](program, values, wrt)) for _ in range(2)]

    expected = found()
    keep_nothing(monkeypatch)
    np.testing.assert_array_equal(found(), expected)


def test_gradients_by_rows_of_data(way, monkeypatch):
    source, values = PROGRAMS["rows of data"]
    expected = [gradcli.compile(source).value_and_grad(values) for _ in range(2)]
    keep_nothing(monkeypatch)
    found = gradcli.compile(source)
    for value, gradient in expected:
        again = found.value_and_grad(values)
        assert again[0] == value
        for name, own in gradient.items():
            np.testing.assert_array_equal(again[1][name], own)


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    "source",
    [
        "s = y; for i in range(400) { s = s + 0.01*x*sin(s)*y }; s",
        "s = y; for v in e { s = s*0.9 + 0.1*sin(x*s)*v + y }; s",
        "s = y; t = x; for i in range(1, 400) { s = s*0.9 + x*e[i] - t*e[i-1]; t = t*0.99 + s*y/100 }; s*t",
        "f(n, s) = s if n == 0 else f(n - 1, s*0.99 + sin(s*x)*y/10); f(400, x)",
    ],
)
def test_gradients_of_gradients_of_tensors(source, way, monkeypatch):
    names = ["x", "y", *(["e"] if re.search(r"\be\b", source) else [])]

    def found():
        program = gradcli.compile(source)
        leaves = {"x": gradcli.tensor(0.7), "y": gradcli.tensor(0.3), "e": gradcli.tensor(np.sin(np.arange(400.0)))}
        given = [leaves[n].requires_grad_() for n in names]
        first = gradcli.grad(program(**dict(zip(names, given))), given, create_graph=True)
        weighed = sum((g * (i + 1.5)).sum() for i, g in enumerate(first))
        second = gradcli.grad(weighed, given, create_graph=True)
        third = gradcli.grad(second[0] * second[1], given[:2])
        return [np.asarray(g.detach()) for g in (*first, *second, *third)]

    expected = found()
    keep_nothing(monkeypatch)
    for one, other in zip(found(), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def test_second_derivatives_keep_few_rows(monkeypatch):
    keep_nothing(monkeypatch)
    program = gradcli.compile("s = y; for i in range(400) { s = s + 0.01*x*sin(s) }; s").program
    traced = value_and_hessian(program, {"x": 0.7, "y": 0.3}, ("x", "y")).program
    rows = {e.output.shape[0] for e in traced.equations if e.primitive.name == "loop_history"}
    assert rows == {1, 21}


@pytest.mark.slow
def test_memory_grows_with_the_square_root(monkeypatch):
    monkeypatch.setattr(loop_execution, "_WORTH_COMPILING", 10**18)
    monkeypatch.setattr(limits, "MAX_STORED_BYTES", 2**16)

    def peak(rounds):
        program = gradcli.compile(f"s = 0.5; for i in range({rounds}) {{ s = s + x*sin(s) }}; s")
        for _ in range(2):
            program.value_and_grad({"x": 1e-6})
        tracemalloc.start()
        try:
            program.value_and_grad({"x": 1e-6})
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # All rows would take 1.6 MB.
    assert peak(200_000) < 300_000


@pytest.mark.slow  # docs/limits.md shows the same command.
def test_ten_million_rounds_with_a_gradient(run):
    program = "s = 0.5; for i in range(10000000) { s = s + x*sin(s) }; s"
    outcome = run("eval", program, "x=3e-7", "--json", "--max-memory", "400MB")
    assert outcome.json["value"] == pytest.approx(2.7564608701042563, rel=1e-12)
    assert outcome.json["grad"]["x"] == pytest.approx(3756813.2701877565, rel=1e-9)
