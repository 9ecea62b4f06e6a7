"""Tests sine and cosine compiled by LLVM, and their use in segments."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.evaluation.recordings import recording
from gradcli.executors import llvm_ufuncs, schedule, sincos
from gradcli.language.syntax import parse

RNG = np.random.default_rng(0)
# Half of pi to 80 bits.
HALF_PI = np.longdouble(sincos._HALF_PI[0]) + np.longdouble(sincos._HALF_PI[1])


def computed(x: Any) -> tuple[Any, Any]:
    function = sincos.compiled()
    assert function is not None
    sine, cosine = np.empty_like(x), np.empty_like(x)
    function(x, sine, cosine)
    return sine, cosine


def ulps(actual: Any, expected: Any) -> float:
    """The largest error, in units in the last place of the expected number in extended precision."""
    return float(np.max(np.abs(actual - expected) / np.spacing(np.abs(expected.astype(float)))))


# Functions, because every worker collects the tests.
ARGUMENTS = {
    "within a turn": lambda random: random.uniform(-np.pi, np.pi, 1_000_000),
    "up to the limit": lambda random: random.uniform(-sincos.LIMIT, sincos.LIMIT, 1_000_000),
    "of all sizes": lambda random: 10.0 ** random.uniform(-300, 6, 500_000),
    "next to multiples of pi/2": lambda _random: (np.arange(-600_000, 600_000) * HALF_PI).astype(float),
}


@pytest.mark.cases(2)
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="a long double has no more digits than a double here")
@pytest.mark.parametrize("kind", ARGUMENTS)
def test_the_error_is_below_one_unit_in_the_last_place(kind):
    x = ARGUMENTS[kind](np.random.default_rng(0))
    sine, cosine = computed(x)
    extended = x.astype(np.longdouble)
    assert ulps(sine, np.sin(extended)) < 0.8
    assert ulps(cosine, np.cos(extended)) < 0.8


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 23])
def test_a_number_has_the_same_sine_at_every_position(size):
    x = np.full(size, 0.7)
    sine, cosine = computed(x)
    assert len({*sine, *computed(np.full(1, 0.7))[0]}) == 1
    np.testing.assert_allclose(cosine, np.cos(x), rtol=1e-15)


def test_zeros_and_numbers_that_are_not_finite():
    sine, cosine = computed(np.array([0.0, -0.0, np.nan, 1.0]))
    np.testing.assert_array_equal(sine[:3], [0.0, -0.0, np.nan])
    assert np.signbit(sine[1])
    np.testing.assert_array_equal(cosine[:3], [1.0, 1.0, np.nan])
    with np.errstate(all="ignore"):
        x = np.array([1e30, np.inf, -np.inf, 1.0, 2.0**20 + 1])
        np.testing.assert_array_equal(computed(x), [np.sin(x), np.cos(x)])


def test_arrays_with_steps():
    x = np.linspace(0.0, 3.0, 40)[::3]
    np.testing.assert_allclose(computed(x), [np.sin(x), np.cos(x)], rtol=1e-15)


PROGRAMS = [
    "sum(sin(x)*cos(x) + x)",
    "sum(sin(x))",
    "sum(cos(x)*x)",
    "sum(sin(x)*cos(x*x)*sin(cos(x)))",
    "sin(x) + cos(x)",
    "sum(sin(x)*sum(cos(x)))",
    "sum(sin(tan(x)) + cos(1.0)*x)",
]


@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("shape", [(17,), (6, 5)])
def test_segments_with_compiled_sines_give_what_they_give_without(monkeypatch, text, shape):
    monkeypatch.setattr(schedule, "BLOCK", 4)
    values = {"x": RNG.random(shape)}
    wrt = ("x",) if text.startswith("sum") else ()
    expected = recording(parse(text), values, wrt).outcome([*values.values()])
    monkeypatch.setattr(sincos, "ELEMENTS_PER_COMPILE", 1)
    used = []
    compiled = sincos.compiled()
    monkeypatch.setattr(sincos, "compiled", lambda: lambda *arrays: (used.append(1), compiled(*arrays)))
    outcome = recording(parse(text), values, wrt).outcome([*values.values()])
    assert used
    np.testing.assert_allclose(outcome.value, expected.value, rtol=1e-14)
    for gradient, other in zip(outcome.derivatives.values(), expected.derivatives.values()):
        np.testing.assert_allclose(gradient, other, rtol=1e-13, atol=1e-15)


def test_a_thread_that_compiles_leaves_numpy_alone():
    """Polars imports parts of NumPy in the meantime, and panics if it gets a partially initialised module."""
    code = """
import sys, threading
from gradcli.executors import sincos

sincos.compile_in_background()
for thread in threading.enumerate():
    thread is threading.main_thread() or thread.join()
print(sincos._code.cache_info().currsize, 'numpy' in sys.modules, sincos.ready())
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True)
    assert run.stdout == "1 False None\n"


def test_without_llvmlite_numpy_computes_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    monkeypatch.setattr(llvm_ufuncs, "_target", llvm_ufuncs._target.__wrapped__)
    for name in ("_code", "_compiled"):
        monkeypatch.setattr(sincos, name, cache(getattr(sincos, name).__wrapped__))
    monkeypatch.setattr(sincos, "ELEMENTS_PER_COMPILE", 1)
    monkeypatch.setattr(schedule, "BLOCK", 4)
    assert sincos.compiled() is None
    program, x = gradcli.compile("sum(sin(x))"), RNG.random(9)
    for _ in range(3):
        np.testing.assert_array_equal(program.value_and_grad({"x": x})[1]["x"], np.cos(x))
