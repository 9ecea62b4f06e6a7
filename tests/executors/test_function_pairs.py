"""Tests pairs of functions compiled by LLVM, and their use in programs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.evaluation.recordings import recording
from gradcli.executors import cpu, hyperbolic, llvm_ufuncs, schedule, sincos, vector_functions
from gradcli.executors.function_pairs import FunctionPair
from gradcli.executors.hyperbolic import TANH_AND_SECH_SQUARE
from gradcli.executors.sincos import SINE_AND_COSINE
from gradcli.language.syntax import parse
from gradcli.primitives.entries import arithmetic
from gradcli.primitives.entries.elementwise import trigonometric
from gradcli.program.ir import Equation, Program, Variable

RNG = np.random.default_rng(0)
# Half of pi to 80 bits.
HALF_PI = np.longdouble(sincos._HALF_PI[0]) + np.longdouble(sincos._HALF_PI[1])


def sech_square(x: Any) -> Any:
    # The formula of NumPy's path: cosh(x)**2 overflows earlier.
    return (1 / np.cosh(x)) ** 2


EXPECTED: dict[FunctionPair, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    SINE_AND_COSINE: (np.sin, np.cos),
    TANH_AND_SECH_SQUARE: (np.tanh, sech_square),
}
each_pair = pytest.mark.parametrize("pair", EXPECTED, ids=lambda pair: pair.name)


def computed(pair: FunctionPair, x: Any) -> tuple[Any, Any]:
    function = pair.compiled()
    assert function is not None
    first, second = np.empty_like(x), np.empty_like(x)
    function(x, first, second)
    return first, second


def ulps(actual: Any, expected: Any) -> float:
    """The largest error, in units in the last place of the expected number in extended precision."""
    return float(np.max(np.abs(actual - expected) / np.spacing(np.abs(expected.astype(float)))))


# Functions, because every worker collects the tests.
ARGUMENTS = {
    "within a turn": (SINE_AND_COSINE, lambda random: random.uniform(-np.pi, np.pi, 1_000_000)),
    "up to the limit": (SINE_AND_COSINE, lambda random: random.uniform(-sincos.LIMIT, sincos.LIMIT, 1_000_000)),
    "of all sizes": (SINE_AND_COSINE, lambda random: 10.0 ** random.uniform(-300, 6, 500_000)),
    "next to multiples of pi/2": (
        SINE_AND_COSINE,
        lambda _random: (np.arange(-600_000, 600_000) * HALF_PI).astype(float),
    ),
    "where tanh bends": (TANH_AND_SECH_SQUARE, lambda random: random.uniform(-3, 3, 1_000_000)),
    "where tanh is linear": (TANH_AND_SECH_SQUARE, lambda random: 10.0 ** random.uniform(-300, 0, 500_000)),
    "where tanh is 1": (
        TANH_AND_SECH_SQUARE,
        lambda random: random.uniform(-hyperbolic.LIMIT, hyperbolic.LIMIT, 500_000),
    ),
    "next to multiples of log(2)/4": (TANH_AND_SECH_SQUARE, lambda _random: np.arange(-1400, 1400) * np.log(2) / 4),
}


@pytest.mark.cases(2)
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="a long double has no more digits than a double here")
@pytest.mark.parametrize("kind", ARGUMENTS)
def test_the_error_is_below_one_unit_in_the_last_place(kind):
    pair, arguments = ARGUMENTS[kind]
    x = arguments(np.random.default_rng(0))
    for result, function in zip(computed(pair, x), EXPECTED[pair]):
        assert ulps(result, function(x.astype(np.longdouble))) < 0.8


@each_pair
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 23])
def test_a_number_has_the_same_result_at_every_position(pair, size):
    alone = computed(pair, np.full(1, 0.7))
    for result, single, function in zip(computed(pair, np.full(size, 0.7)), alone, EXPECTED[pair]):
        np.testing.assert_array_equal(result, np.full(size, single[0]))
        np.testing.assert_allclose(single, function(0.7), rtol=1e-15)


def test_sines_of_zeros_and_of_numbers_that_are_not_finite():
    sine, cosine = computed(SINE_AND_COSINE, np.array([0.0, -0.0, np.nan, 1.0]))
    np.testing.assert_array_equal(sine[:3], [0.0, -0.0, np.nan])
    assert np.signbit(sine[1])
    np.testing.assert_array_equal(cosine[:3], [1.0, 1.0, np.nan])
    with np.errstate(all="ignore"):
        x = np.array([1e30, np.inf, -np.inf, 1.0, 2.0**20 + 1])
        np.testing.assert_array_equal(computed(SINE_AND_COSINE, x), [np.sin(x), np.cos(x)])


def test_tanh_of_zeros_subnormals_large_numbers_and_nan():
    x = np.array([0.0, -0.0, 5e-324, -1e-310, np.nan, 257.0, -360.0, np.inf, -np.inf])
    with np.errstate(all="ignore"):
        tanh, square = computed(TANH_AND_SECH_SQUARE, x)
        np.testing.assert_array_equal(tanh, np.tanh(x))
        np.testing.assert_allclose(square, sech_square(x), rtol=1e-15)
    assert np.signbit(tanh[1])


@each_pair
def test_arrays_with_steps(pair):
    x = np.linspace(0.0, 3.0, 40)[::3]
    for result, function in zip(computed(pair, x), EXPECTED[pair]):
        np.testing.assert_allclose(result, function(x), rtol=1e-15)


PROGRAMS = [
    "sum(sin(x)*cos(x) + x)",
    "sum(sin(x))",
    "sum(cos(x)*x)",
    "sum(sin(x)*cos(x*x)*sin(cos(x)))",
    "sin(x) + cos(x)",
    "sum(sin(x)*sum(cos(x)))",
    "sum(sin(tan(x)) + cos(1.0)*x)",
    "sum(tanh(x))",
    "tanh(x)*x",
    "sum(tanh(sin(x))*tanh(cos(x)))",
    "sum((tanh(x) - mean(tanh(x)))**2)",
    "sum(tanh(x)*sum(tanh(x)))",
    "sum(sin(x*sum(sin(x))))",
]


@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("shape", [(17,), (6, 5)])
@pytest.mark.parametrize("block", [4, 1000])
def test_programs_with_compiled_pairs_give_what_they_give_without(monkeypatch, text, shape, block):
    monkeypatch.setattr(schedule, "BLOCK", block)
    monkeypatch.setattr(FunctionPair, "ready", lambda _pair: None)
    values = {"x": RNG.random(shape)}
    wrt = ("x",) if text.startswith("sum") else ()
    expected = recording(parse(text), values, wrt).outcome([*values.values()])
    monkeypatch.setattr(vector_functions, "ELEMENTS_PER_COMPILE", 1)
    used = []
    compiled = FunctionPair.compiled

    def counted(pair: FunctionPair) -> Callable[..., Any]:
        function = compiled(pair)
        return lambda *arrays: (used.append(pair), function(*arrays))

    monkeypatch.setattr(FunctionPair, "compiled", counted)
    outcome = recording(parse(text), values, wrt).outcome([*values.values()])
    assert {pair.name for pair in used} == {pair.name for pair in EXPECTED if _calls(text, pair)}
    np.testing.assert_allclose(outcome.value, expected.value, rtol=1e-14)
    for gradient, other in zip(outcome.derivatives.values(), expected.derivatives.values()):
        np.testing.assert_allclose(gradient, other, rtol=1e-13, atol=1e-15)


def _calls(text: str, pair: FunctionPair) -> bool:
    return any(re.search(rf"\b{primitive.name}\(", text) for primitive in pair.primitives)


def test_a_pair_is_computed_once_for_a_layer_and_its_gradient(monkeypatch):
    """The derivative of tanh, which is needed after the product of matrices, is stored with tanh before it."""
    monkeypatch.setattr(schedule, "BLOCK", 1)
    values = {"x": RNG.random((6, 5)), "a": RNG.random(5), "b": RNG.random((5, 3))}
    program = recording(parse("sum((tanh(x + a)@b)**2)"), values, ("a", "b")).trace.program
    steps = [s for s in schedule.schedule(program).steps if isinstance(s, schedule.Segment)]
    computing = [s for s in steps if any(map(TANH_AND_SECH_SQUARE.computes, s.equations.values()))]
    assert len(computing) == 1


def test_a_thread_that_compiles_leaves_numpy_alone():
    """Polars imports parts of NumPy in the meantime, and panics if it gets a partially initialised module."""
    code = """
import sys, threading
from gradcli.executors import function_pairs, vector_functions

function_pairs.compile_in_background(vector_functions.PAIRS)
for thread in threading.enumerate():
    thread is threading.main_thread() or thread.join()
print(['code' in vars(pair) for pair in vector_functions.PAIRS], 'numpy' in sys.modules)
print([pair.ready() for pair in vector_functions.PAIRS])
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True)
    assert run.stdout == "[True, True] False\n[None, None]\n"


@pytest.mark.parametrize(("text", "derivative"), [("sum(sin(x))", np.cos), ("sum(tanh(x))", sech_square)])
def test_without_llvmlite_numpy_computes_them(monkeypatch, text, derivative):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    monkeypatch.setattr(llvm_ufuncs, "_target", llvm_ufuncs._target.__wrapped__)
    for pair in EXPECTED:
        monkeypatch.setattr(pair, "__dict__", {k: v for k, v in vars(pair).items() if k not in ("code", "_loop")})
        assert pair.compiled() is None
    monkeypatch.setattr(vector_functions, "ELEMENTS_PER_COMPILE", 1)
    monkeypatch.setattr(schedule, "BLOCK", 4)
    program, x = gradcli.compile(text), RNG.random(9)
    for _ in range(3):
        np.testing.assert_array_equal(program.value_and_grad({"x": x})[1]["x"], derivative(x))


def test_a_function_that_stands_twice_in_a_program():
    x = Variable((5,), "float64")
    first, second, cosine, total = (Variable((5,), "float64") for _ in range(4))
    equations = (
        Equation(trigonometric.sin, (x,), {}, first),
        Equation(trigonometric.cos, (x,), {}, cosine),
        Equation(trigonometric.sin, (x,), {}, second),
        Equation(arithmetic.add, (first, second), {}, total),
    )
    run = cpu.executable(Program((x,), equations, (total, cosine)), reproducible=True)
    found = run([np.arange(5.0)])
    np.testing.assert_allclose(found, [2 * np.sin(np.arange(5.0)), np.cos(np.arange(5.0))], rtol=1e-15)
