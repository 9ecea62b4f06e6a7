"""Tests loops compiled for fused equations: they give the bits that NumPy gives."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.evaluation.recordings import recording
from gradcli.executors import cpu, llvm_equations, llvm_ufuncs, loop_fusion, schedule, ufuncs, vector_functions
from gradcli.executors.loop_fusion import FusedLoop, fused
from gradcli.language.syntax import parse
from gradcli.primitives import conversions
from gradcli.primitives.entries import arithmetic, comparisons, exponential, powers
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Equation, Program, Variable
from tests.segments import BROADCASTING, MIXED

RNG = np.random.default_rng(0)
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3.0, np.inf, -np.inf, np.nan, 5e-324, -2e-308, 1e308, 1e-200])
# Primitives with the types of their operands: n for numbers, otherwise booleans.
TAKEN = [
    *((p, "n" * len(p.parameters)) for p in llvm_equations.writers()),
    (powers.whole_power, "n"),
    *((p, kinds) for p in (comparisons.logical_and, comparisons.logical_or) for kinds in ("tt", "tn", "nn")),
    *((comparisons.logical_not, kind) for kind in "tn"),
    *((comparisons.where, kinds) for kinds in ("tnn", "nnn", "ttt")),
    *((comparisons.equal, kinds) for kinds in ("tt", "tn")),
]


@pytest.fixture(autouse=True)
def numpy_computes_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevents compiled functions in the meantime, which would round differently."""
    monkeypatch.setattr(vector_functions, "ELEMENTS_PER_COMPILE", 2**60)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile loops for whatever runs."""
    monkeypatch.setattr(loop_fusion, "ELEMENTS_PER_COMPILE", 0)


def operands(kinds: str) -> list[Any]:
    """All combinations of edge values."""
    columns = np.array([*itertools.product(EDGES, repeat=len(kinds))]).T
    return [np.ascontiguousarray(c if kind == "n" else c > 0) for kind, c in zip(kinds, columns)]


def as_numpy(equation: Equation, given: Sequence[Any]) -> Any:
    out = np.empty(equation.output.shape, equation.output.dtype)
    with np.errstate(all="ignore"):
        ufuncs.in_place_function(equation.primitive, equation.params)(*given, out)  # type: ignore[misc]
    return out


def equation_of(primitive: Primitive, given: Sequence[Any], dtype: str) -> Equation:
    inputs = tuple(Variable(a.shape, a.dtype.name) for a in given)
    params = {"n": 2.0} if primitive is powers.whole_power else {}
    return Equation(primitive, inputs, params, Variable(given[0].shape, dtype))


def looped(equations: Sequence[Equation], given: Sequence[Any], outs: Sequence[Any]) -> None:
    inputs = [a for a in equations[0].inputs if isinstance(a, Variable)]
    made = FusedLoop.of({e.output: e for e in equations}, inputs, [e.output for e in equations])
    assert made is not None
    with np.errstate(all="ignore"):
        made.loop.ufunc(*given, *outs)


@pytest.mark.parametrize(("primitive", "kinds"), TAKEN, ids=lambda p: getattr(p, "name", p))
def test_a_loop_gives_the_bits_of_numpy(primitive, kinds):
    given = operands(kinds)
    equation = equation_of(primitive, given, "bool" if primitive.derivative == "none" or kinds == "ttt" else "float64")
    assert loop_fusion.may_be_fused(equation)
    expected = as_numpy(equation, given)
    for start, step in ((0, 1), (3, 1), (0, 2), (len(expected) - 1, -1)):
        part, other = [a[start::step] for a in given], expected[start::step]
        # Contiguous elements are computed eight at a time, and the last ones one by one.
        out = np.empty(len(other), other.dtype)
        looped([equation], part, [out])
        np.testing.assert_array_equal(out, other)
        numbers = ~np.isnan(other)
        np.testing.assert_array_equal(np.signbit(out[numbers]), np.signbit(other[numbers]))


@pytest.mark.parametrize("dtype", ["bool", "float64"])
def test_casts(dtype):
    for array in (EDGES, EDGES > 0):
        variable = Variable(array.shape, array.dtype.name)
        equation = Equation(conversions.cast, (variable,), {"dtype": dtype}, Variable(array.shape, dtype))
        out = np.empty(array.shape, dtype)
        looped([equation], [array], [out])
        np.testing.assert_array_equal(out, array.astype(dtype))


@pytest.mark.parametrize("size", range(20))
def test_every_size_and_every_number_of_elements_beyond_a_multiple_of_eight(size):
    x, y = (Variable((size,), "float64") for _ in range(2))
    product = Equation(arithmetic.multiply, (x, y), {}, Variable((size,), "float64"))
    total = Equation(arithmetic.add, (product.output, 0.1), {}, Variable((size,), "float64"))
    given, outs = RNG.normal(size=(2, size)), np.full((2, size + 1), 7.0)
    looped([product, total], given, outs[:, :size])
    np.testing.assert_array_equal(outs[:, :size], [given[0] * given[1], given[0] * given[1] + 0.1])
    # Nothing is written beyond the end.
    assert (outs[:, size] == 7.0).all()


def test_a_product_and_a_sum_round_twice():
    """x*y - x*y is 0, even on processors with fused multiply-add."""
    x, y = (Variable((64,), "float64") for _ in range(2))
    product = Equation(arithmetic.multiply, (x, y), {}, Variable((64,), "float64"))
    other = Equation(arithmetic.multiply, (x, y), {}, Variable((64,), "float64"))
    difference = Equation(arithmetic.subtract, (product.output, other.output), {}, Variable((64,), "float64"))
    outs = [np.empty(64) for _ in range(3)]
    looped([product, other, difference], RNG.normal(size=(2, 64)), outs)
    assert not outs[2].any()


def runs(text: str, values: dict[str, Any], wrt: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """The results of a program: of the first run, and of runs with everything compiled."""
    run = cpu.executable(recording(parse(text), values, wrt).trace.program)
    while True:
        yield tuple(run([*values.values()]) or ())


def assert_same_bits(found: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        np.testing.assert_array_equal(f, e)


PROGRAMS = [
    MIXED.replace("q", "y"),
    "sum(((x*y + 1)*x - y)/(1 + x*x) + sqrt(abs(x - y)))",
    "sum(where(x > y, x*y, exp(-x)) + max(x, y)*sign(x - y))",
    "mean((x - mean(x))**2) + y[0]*sum(sqrt(x))",
    "s = sum(x); sum(x*s) / (1 + sum(y**2))",
    "sum(exp(x*y + 1)*(x - 1)*log(x*x + 2)/(y + 3))",
    "sum((x > 0.7)*(y < 1)*x)",
]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("size", [1, 5, 40, schedule.BLOCK + 3])
@pytest.mark.parametrize("text", PROGRAMS)
def test_programs_give_the_same_bits_once_loops_are_compiled(monkeypatch, text, size):
    values = {name: RNG.random(size) + 0.5 for name in "xy"}
    with monkeypatch.context() as patch:
        patch.setattr(loop_fusion, "ELEMENTS_PER_COMPILE", 2**60)
        expected = next(runs(text, values, ("x", "y")))
    for _, found in zip(range(3), runs(text, values, ("x", "y"))):
        assert_same_bits(found, expected)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("text", "x", "y"), BROADCASTING)
def test_broadcasting_in_blocks(monkeypatch, text, x, y):
    monkeypatch.setattr(schedule, "BLOCK", 4)
    monkeypatch.setattr(schedule, "LONGEST_ROW", 16)
    values = {"x": RNG.random(x) + 0.5, "y": RNG.random(y) + 0.5 if y else 1.3}
    with monkeypatch.context() as patch:
        patch.setattr(loop_fusion, "ELEMENTS_PER_COMPILE", 2**60)
        expected = next(runs(text, values, ("x", "y")))
    for _, found in zip(range(2), runs(text, values, ("x", "y"))):
        assert_same_bits(found, expected)


def formula(depth: int) -> str:
    """A random formula of x, y and z."""
    if depth == 0:
        return str(RNG.choice(["x", "y", "z", "1.5", "-0.25", "3"]))
    first, second = formula(depth - 1), formula(depth - 1)
    forms = [
        f"({first} + {second})", f"({first} - {second})", f"{first}*{second}", f"{first}/({second})", f"abs({first})",
        f"sqrt(abs({first}))", f"({first})**2", f"exp(-abs({first}))", f"where({first} < {second}, {first}, {second})",
        f"sign({first})*{second}", f"where(({first} > 0)*({second} > 0.5), {second}, 1)", f"atan({first})",
    ]  # fmt: skip
    return str(RNG.choice(forms))


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
def test_rows_of_random_formulas(monkeypatch):
    values = {
        name: np.resize(np.concatenate([EDGES, RNG.normal(size=23)]), 70 + k)[:70] for k, name in enumerate("xyz")
    }
    values = {name: RNG.permutation(column) for name, column in values.items()}
    for _ in range(25):
        text = f"x*y*z*0 + {formula(4)}"
        with monkeypatch.context() as patch:
            patch.setattr(loop_fusion, "ELEMENTS_PER_COMPILE", 2**60)
            expected, gradients = gradcli.compile(text).value_and_grad(values, rows=True)
        program = gradcli.compile(text)
        for _ in range(2):
            found, derivatives = program.value_and_grad(values, rows=True)
            np.testing.assert_array_equal(found, expected, err_msg=text)
            for name, gradient in gradients.items():
                np.testing.assert_array_equal(derivatives[name], gradient, err_msg=text)


@pytest.mark.usefixtures("at_once")
def test_a_guard_among_equations_that_are_computed_together():
    x, limit = Variable((9,), "float64"), Variable((), "float64")
    double = Equation(arithmetic.multiply, (x, 2.0), {}, Variable((9,), "float64"))
    below = Equation(comparisons.less, (double.output, limit), {}, Variable((9,), "bool"))
    program = Program((x, limit), (double, below), (double.output,), (below.output,))
    run = cpu.executable(program)
    for _ in range(3):
        assert run([np.ones(9), 1.0]) is None
        (found,) = run([np.ones(9), 3.0]) or [None]
        np.testing.assert_array_equal(found, np.full(9, 2.0))


@pytest.mark.usefixtures("at_once")
def test_more_operands_than_a_function_of_numpy_has():
    names = [f"c{k}" for k in range(150)]
    values = {name: RNG.random(50) for name in names}
    program = gradcli.compile(" + ".join(f"{name}*{name}" for name in names))
    for _ in range(2):
        found, gradients = program.value_and_grad(values, rows=True)
        np.testing.assert_allclose(found, sum(c * c for c in values.values()), rtol=1e-13)
        for name, column in values.items():
            np.testing.assert_array_equal(gradients[name], 2 * column)


@pytest.mark.usefixtures("at_once")
def test_long_programs_are_several_loops():
    program = gradcli.compile("y = x\nfor k in range(700): y = y*0.5 + x\nsum(y)")
    x = RNG.random(300)
    for _ in range(3):
        _, found = program.value_and_grad({"x": x})
        np.testing.assert_allclose(found["x"], 2.0, rtol=1e-14)


def test_steps_are_in_an_order_in_which_each_has_what_it_reads():
    x = Variable((5,), "float64")
    equations: list[Equation] = []
    known: list[Variable] = [x]
    for _ in range(400):
        primitive = RNG.choice([arithmetic.add, arithmetic.multiply, exponential.exp, arithmetic.negative])
        inputs = tuple(known[RNG.integers(max(0, len(known) - 30), len(known))] for _ in primitive.parameters)
        equations.append(Equation(primitive, inputs, {}, Variable((5,), "float64")))
        known.append(equations[-1].output)
    steps = fused(equations, {known[-1]}, lambda _equation: True)
    assert any(isinstance(step, FusedLoop) for step in steps)
    there, done = {x}, 0
    for step in steps:
        if isinstance(step, FusedLoop):
            assert there.issuperset(step.inputs)
            there.update(step.outputs)
            inside = set(step.inputs)
            for equation in step.equations.values():
                assert inside.issuperset(a for a in equation.inputs if isinstance(a, Variable))
                inside.add(equation.output)
            done += len(step.equations)
        else:
            assert isinstance(step, Equation)
            assert there.issuperset(a for a in step.inputs if isinstance(a, Variable))
            there.add(step.output)
            done += 1
    assert done == len(equations)
    assert known[-1] in there


@pytest.mark.usefixtures("at_once")
def test_threads_that_run_a_program_for_the_first_time_together():
    x = RNG.random(5000)
    program = recording(parse("sum((x*x + 1)*x/(2 + x))"), {"x": x}, ("x",)).trace.program
    run, expected = cpu.executable(program), None
    found: list[Any] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        found.extend(run([x]) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    expected = found[0]
    for value, gradient in found:
        assert value == expected[0]
        np.testing.assert_array_equal(gradient, expected[1])


@pytest.mark.usefixtures("at_once")
def test_numpy_computes_what_the_compiler_refuses(monkeypatch):
    def fail(*_: Any) -> None:
        raise RuntimeError("LLVM IR parsing error")

    monkeypatch.setattr(llvm_ufuncs, "_engine", fail)
    x = RNG.random(50)
    for _, (value, gradient) in zip(range(3), runs("sum(x*x*x + x)", {"x": x}, ("x",))):
        assert value == pytest.approx(np.sum(x**3 + x))
        np.testing.assert_allclose(gradient, 3 * x * x + 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_a_fork_waits_for_what_a_thread_compiles():
    code = """
import os, threading, time
from gradcli.executors import llvm_ufuncs

def hold():
    with llvm_ufuncs.lock:
        held.set()
        time.sleep(0.3)

held = threading.Event()
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if child == 0:
    os._exit(0 if llvm_ufuncs.lock.acquire(timeout=5) else 1)
raise SystemExit(os.waitpid(child, 0)[1])
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("module", "found"), [("llvmlite.binding", "_target"), ("numpy._core._multiarray_umath", "_make")]
)
def test_without_a_compiler_or_a_way_to_its_loops_numpy_computes_them(monkeypatch, module, found):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(llvm_ufuncs, found, getattr(llvm_ufuncs, found).__wrapped__)
    assert not llvm_ufuncs.is_available()
    x = RNG.random(50)
    for _, (value, gradient) in zip(range(3), runs("sum(x*x*x + x)", {"x": x}, ("x",))):
        assert value == pytest.approx(np.sum(x**3 + x))
        np.testing.assert_allclose(gradient, 3 * x * x + 1)
