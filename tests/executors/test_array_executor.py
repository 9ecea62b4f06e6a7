"""Tests repeated evaluation of programs on arrays of every size: reused memory must not affect results."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gradcli
from gradcli import limits
from gradcli.errors import BindingError, GradcliError, LimitError
from gradcli.evaluation.recordings import recording
from gradcli.executors import cpu, schedule, thread_pool, vector_functions
from gradcli.executors.function_pairs import FunctionPair
from gradcli.language.syntax import parse
from tests.segments import MIXED

RNG = np.random.default_rng(0)
# Sizes around those of scalars, of one block, and of several blocks.
SIZES = (0, 1, 7, 100, schedule.BLOCK, 2 * schedule.BLOCK + 5)
PROGRAMS = [
    MIXED,
    "y = sin(x)*q; sum(y*y + cos(y))",
    "sum(where(x > q, x*q, exp(-x)) + max(x, q))",
    "mean((x - mean(x))**2) + q[0]*sum(sqrt(x))",
    "s = sum(x); sum(x*s) / (1 + sum(q**2))",
    "sum(sigmoid(x)*relu(q - 0.5)/rsqrt(x))",
    "prod(tanh(x[:2]))*sum(q[::-1]*x)",
    "sum(x*q, axis=0)",
    "max(x*q) - min(x) + sum(abs(x - q))",
    "sum((x @ q)*x)",
]


def inputs(size: int, dtype: str = "float64") -> dict[str, Any]:
    return {name: (RNG.random(size) + 0.5).astype(dtype) for name in "xq"}


def assert_close(found: tuple[Any, dict[str, Any]], expected: tuple[Any, dict[str, Any]], rtol: float) -> None:
    value, gradients = found
    assert type(value) is type(expected[0])
    np.testing.assert_allclose(value, expected[0], rtol=rtol)
    assert gradients.keys() == expected[1].keys()
    for name, gradient in gradients.items():
        other = expected[1][name]
        assert type(gradient) is type(other)
        if gradient is not None:
            assert np.asarray(gradient).dtype == np.asarray(other).dtype
            scale = float(np.max(np.abs(other), initial=1e-300, where=np.isfinite(other)))
            np.testing.assert_allclose(gradient, other, rtol=rtol, atol=rtol * scale)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_chosen_has_the_bits_that_it_had(dtype):
    """Few and many elements, mixed or from one branch, with values that arithmetic would change."""
    program = gradcli.compile("[where(c, x, q), where(c, x, -0.0), where(d, x, q)]")
    for size in (7, 1023, 1024, schedule.BLOCK + 5):
        x, q = (np.resize(np.array(edges, dtype), size) for edges in ((np.nan, -0.0, 1e-45, -np.inf), (1, -np.nan, 0)))
        for c in (RNG.integers(-1, 2, size), np.zeros(size), np.ones(size)):
            c, d = c.astype(dtype), np.array([c[0]], dtype)
            expected = np.stack([np.where(c, x, q), np.where(c, x, np.asarray(-0.0, dtype)), np.where(d, x, q)])
            for _ in range(2):
                assert program(c=c, d=d, x=x, q=q).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("text", PROGRAMS)
def test_every_size_gives_what_eager_evaluation_gives(text, dtype):
    program = gradcli.compile(text)
    for size in SIZES:
        values = inputs(size, dtype)
        try:
            expected = program._eager_value_and_grad(values, None, None)
        except GradcliError as error:
            for _ in range(3):
                with pytest.raises(type(error)):
                    program.value_and_grad(values)
            continue
        for _ in range(3):
            assert_close(program.value_and_grad(values), expected, 1e-10 if dtype == "float64" else 2e-3)


@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(PROGRAMS), st.sampled_from((1, 3, 8, 9, 40))), min_size=3, max_size=5))
def test_calls_in_any_order_do_not_disturb_one_another(calls):
    """The results of earlier calls stay unchanged, whatever is called later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "BLOCK", 8)
        programs = {text: gradcli.compile(text) for text, _ in calls}
        kept = []
        for text, size in [*calls, *calls, *calls]:
            if size < 2 and "[:2]" in text:
                continue
            values = inputs(size)
            expected = programs[text]._eager_value_and_grad(values, None, None)
            kept.append((programs[text].value_and_grad(values), expected))
        for found, expected in kept:
            assert_close(found, expected, 1e-10)


def memory(found: tuple[Any, dict[str, Any]]) -> list[Any]:
    return [a for a in (found[0], *found[1].values()) if isinstance(a, np.ndarray)]


@pytest.mark.parametrize("size", [5, 100, schedule.BLOCK + 1])
@pytest.mark.parametrize(
    "text",
    [
        MIXED,
        "sum(x + q)",
        "sum(x*q)",
        "sum(3*x) + sum(3*q)",
        "sum((x + q)*3)",
        "sum(reshape(x*q, [-1, 1]))",
        "sum(x[1:]*q[1:])",
    ],
)
def test_results_share_no_memory(text, size):
    program, values = gradcli.compile(text), inputs(size)
    found = [program.value_and_grad(values) for _ in range(4)]
    seen = [*values.values()]
    for result in found:
        for array in memory(result):
            assert not any(np.may_share_memory(array, other) for other in seen)
            seen.append(array)
            array[...] = 7.0
    again = program.value_and_grad(values)
    assert_close(again, program._eager_value_and_grad(values, None, None), 1e-12)


def test_values_that_are_inputs_or_views_of_them_are_copies():
    x = np.arange(6.0)
    for text in ("x", "x[1:]", "x.T", "reshape(x, [2, 3])", "y = 2*x; y[1:]", "y = x + 1; y"):
        program = gradcli.compile(text)
        expected = program._eager_value({"x": x.copy()})
        for _ in range(4):
            value = program(x=x)
            np.testing.assert_array_equal(value, expected)
            assert not np.may_share_memory(value, x)
            value[...] = -1.0
    np.testing.assert_array_equal(x, np.arange(6.0))


@pytest.mark.parametrize("size", [100, schedule.BLOCK + 1])
def test_threads_call_one_program_at_the_same_time(size, monkeypatch):
    # A function that is compiled in the meantime would round differently.
    monkeypatch.setattr(vector_functions, "ELEMENTS_PER_COMPILE", 2**40)
    program = gradcli.compile(MIXED)
    given = [inputs(size) for _ in range(6)]
    for values in given:
        program.value_and_grad(values)
    expected = [program.value_and_grad(values) for values in given]
    start, wrong = threading.Barrier(len(given)), []

    def work(number: int) -> None:
        start.wait()
        for _ in range(15):
            value, gradients = program.value_and_grad(given[number])
            same = all(np.array_equal(gradients[n], expected[number][1][n]) for n in "xq")
            if value != expected[number][0] or not same:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(given))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_guard_that_fails_in_one_call_leaves_the_next_ones_alone():
    program, good = gradcli.compile(MIXED), inputs(100)
    expected = program._eager_value_and_grad(good, None, None)
    for bad in (-1.0, np.nan, np.inf, 0.0):
        values = {"x": good["x"].copy(), "q": good["q"]}
        values["x"][50] = bad
        for _ in range(3):
            assert_close(program.value_and_grad(values), program._eager_value_and_grad(values, None, None), 1e-12)
            assert_close(program.value_and_grad(good), expected, 1e-12)


def test_limits_are_charged_in_every_call_alike():
    near = inputs(100)
    far = {"x": near["x"] * 1e12, "q": near["q"]}
    spent = {}
    for name, values in [("near", near), ("far", far)]:
        made = recording(parse("sum(sin(x)*q + cos(x))"), values, ("x", "q"))
        found = []
        for _ in range(3):
            with limits.within():
                made.outcome([*values.values()])
                found.append(limits.MAX_ELEMENTS - limits.budget().elements)
        assert len({*found}) == 1
        spent[name] = found[0]
        with limits.within(max_elements=found[0]):
            assert made.outcome([*values.values()]) is not None
        with limits.within(max_elements=found[0] - 1), pytest.raises(LimitError):
            made.outcome([*values.values()])
    # Sine and cosine computed together are charged as two operations, or as one when compiled.
    assert spent["far"] - spent["near"] in (300, 600)


def test_names_that_are_none_are_refused_in_later_calls_too():
    program, values = gradcli.compile("sum(x*q)"), inputs(10)
    for _ in range(3):
        program.value_and_grad(values)
    with pytest.raises(BindingError, match="'z'"):
        program.value_and_grad(values, ["z"])
    with pytest.raises(GradcliError):
        program.value_and_grad(values, [["x"]])
    with pytest.raises(BindingError, match="does not read 'z'"):
        program.value_and_grad({**values, "z": values["x"]})
    assert program.value_and_grad(values, iter(["q"]))[1].keys() == {"q"}
    assert program.value_and_grad(values, ("q",))[1].keys() == {"q"}


def test_other_kinds_of_inputs_after_arrays():
    program, x = gradcli.compile("sum(x*q)"), np.arange(1.0, 4.0)
    for q in (
        2.0,
        2,
        np.float32(2),
        np.float64(2),
        x,
        [1.0, 2.0, 3.0],
        x.astype("int64"),
        x.astype(">f8"),
        x.astype("f4"),
    ):
        for _ in range(3):
            found = program.value_and_grad({"x": x, "q": q})
            assert_close(found, program._eager_value_and_grad({"x": x, "q": q}, None, None), 1e-12)
    tensor = gradcli.Tensor(x).requires_grad_()
    value = program(x=tensor, q=2.0)
    value.backward()
    np.testing.assert_array_equal(tensor.grad.numpy(), [2.0, 2.0, 2.0])


def test_threads_that_stay_help_several_at_once_and_are_not_in_a_fork():
    seen: list[int] = []
    lock = threading.Lock()

    def shared(numbers: Any) -> None:
        for number in numbers:
            with lock:
                seen.append(number)

    def ask(first: int) -> None:
        for turn in range(20):
            numbers = iter(range(first + 100 * turn, first + 100 * turn + 50))
            thread_pool.work(lambda numbers=numbers: shared(numbers), 3)

    asking = [threading.Thread(target=ask, args=(10_000 * n,)) for n in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert sorted(seen) == sorted(10_000 * n + 100 * t + k for n in range(4) for t in range(20) for k in range(50))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no process is forked on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_has_threads_of_its_own_and_the_process_ends():
    code = (
        "import os, numpy as np, gradcli\n"
        "from gradcli.executors import kernel\n"
        "kernel._KernelRun._threads = lambda self: 2\n"
        "program = gradcli.compile('sum(sin(x)*x)')\n"
        "x = np.arange(300_000.0)\n"
        "def run(): return program.value_and_grad({'x': x})[0]\n"
        "first = run()\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(run() != first)\n"
        "raise SystemExit(os.waitpid(child, 0)[1] or run() != first)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


def places_of(threads: int, *, stay: bool = True) -> list[set[int]]:
    """The cores that cooperating threads are allowed to use."""
    found: list[set[int]] = []
    together = threading.Barrier(threads)

    def work() -> None:
        together.wait(30)
        # Helpers keep the calling thread in its place once they have started.
        time.sleep(0.05)
        found.append(os.sched_getaffinity(0))
        together.wait(30)

    thread_pool.work(work, threads, pinned=stay)
    return found


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system does not say where threads may run")
def test_threads_that_use_all_cores_stay_on_one_each_until_they_are_done():
    allowed = os.sched_getaffinity(0)
    if len(allowed) > 1:
        for _ in range(3):
            found = places_of(len(allowed))
            assert sorted(core for cores in found for core in cores) == sorted(allowed)
            assert os.sched_getaffinity(0) == allowed
    assert places_of(len(allowed) + 1) == [allowed] * (len(allowed) + 1)
    assert places_of(len(allowed), stay=False) == [allowed] * len(allowed)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system does not say where threads may run")
def test_an_interrupt_leaves_no_thread_in_its_place():
    allowed = os.sched_getaffinity(0)

    def work() -> None:
        if threading.current_thread() is threading.main_thread():
            time.sleep(0.05)
            raise KeyboardInterrupt
        time.sleep(0.1)

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            thread_pool.work(work, max(2, len(allowed)), pinned=True)
        assert os.sched_getaffinity(0) == allowed


@pytest.mark.parametrize("size", [50, schedule.BLOCK + 1])
def test_a_reproducible_program_gives_the_same_bits_however_often_it_ran(size, monkeypatch):
    monkeypatch.setattr(vector_functions, "ELEMENTS_PER_COMPILE", 1)
    monkeypatch.setattr(FunctionPair, "ready", lambda _pair: None)
    x = RNG.random(size) * 100
    made = recording(parse("sum(sin(x)*cos(x))"), {"x": x}, ("x",))
    run = cpu.executable(made.trace.program, reproducible=True)
    value, gradient = run([x])
    for _ in range(3):
        again, same = run([x])
        assert again == value
        np.testing.assert_array_equal(same, gradient)
    np.testing.assert_allclose(gradient, np.cos(2 * x), atol=1e-13)
    assert value == pytest.approx(np.sum(np.sin(x) * np.cos(x)))
