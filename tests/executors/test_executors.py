"""Tests recorded programs, run by each executor, against eager evaluation."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gradcli
from gradcli import arrays, limits
from gradcli.arrays import backends, spellings
from gradcli.compiled import programs as programs_module
from gradcli.errors import BackendError, BindingError, GradcliError, NotRecordableError
from gradcli.evaluation import python_values, session
from gradcli.evaluation.recordings import Recording, abstract, recording
from gradcli.executors import kernel, scalars, schedule, stepwise, ufuncs
from gradcli.executors.blockwise import Blocks
from gradcli.executors.executor_choice import executable
from gradcli.language.syntax import parse
from gradcli.primitives import table
from gradcli.primitives.bind import bind
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.comparisons import not_equal
from gradcli.primitives.families import elementwise
from gradcli.primitives.primitive import Primitive, not_implemented
from gradcli.program.ir import Equation, Program, Variable
from tests.language.test_conformance import CASES, numbers
from tests.segments import BROADCASTING, MIXED
from tests.strategies import NAMES, expressions, programs

RNG = np.random.default_rng(0)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use blocks of four elements, so that small arrays have many."""
    monkeypatch.setattr(schedule, "BLOCK", 4)
    monkeypatch.setattr(schedule, "LONGEST_ROW", 16)


def as_inputs(values: dict[str, Any]) -> dict[str, Any]:
    return {name: python_values.value(value) for name, value in values.items()}


def eager(text: str, values: dict[str, Any], wrt: Any = None, grad_output: Any = None) -> tuple[Any, dict[str, Any]]:
    return gradcli.compile(text)._eager_value_and_grad(values, wrt, grad_output)


def assert_equal(actual: Any, expected: Any, rtol: float = 1e-12) -> None:
    if expected is None:
        assert actual is None
        return
    assert type(actual) is type(expected)
    assert np.shape(actual) == np.shape(expected)
    assert np.asarray(actual).dtype == np.asarray(expected).dtype
    finite = [abs(v) for v in np.ravel(expected) if np.isfinite(v)]
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * 1e-2 * max([1.0, *finite]))


def assert_as_eager(made: Recording, text: str, values: dict[str, Any], grad_output: Any = None) -> None:
    outcome = made.outcome([*values.values(), *([] if grad_output is None else [grad_output])])
    assert outcome is not None
    value, grads = eager(text, values, tuple(made.trace.positions), grad_output)
    assert_equal(float(outcome.value) if type(outcome.value) is bool else outcome.value, value)
    for name, gradient in outcome.derivatives.items():
        assert_equal(gradient, grads[name])


def conformance() -> list[tuple[str, dict[str, Any], list[str], Any]]:
    found = []
    for case in CASES:
        values = as_inputs({n: numbers(v) for n, v in case["bindings"].items() if n in case["program"]})
        wrt = [n for n in case.get("wrt") or values if n in values]
        weights = None if "grad_output" not in case else python_values.value(numbers(case["grad_output"]))
        found.append((case["program"], values, wrt, weights))
    return found


@pytest.mark.cases(1)
@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("first", range(12))
def test_conformance_programs_give_what_they_give_eagerly(first, blocked, request):
    if blocked:
        request.getfixturevalue("small_blocks")
    for text, values, wrt, weights in conformance()[first::12]:
        assert_as_eager(recording(parse(text), values, wrt, weights), text, values, weights)


@pytest.mark.slow
def test_conformance_programs_recorded_by_shape_alone(small_blocks):
    refused = 0
    for text, values, wrt, weights in conformance():
        try:
            shapes = {n: abstract(v) for n, v in values.items()}
            made = recording(parse(text), shapes, wrt, None if weights is None else abstract(weights))
        except GradcliError:
            refused += 1
            continue
        outcome = made.outcome([*values.values(), *([] if weights is None else [weights])])
        if outcome is None:
            refused += 1
            continue
        assert_as_eager(made, text, values, weights)
    assert refused < 30


EDGES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-300, 1e300, np.inf, -np.inf, np.nan])


def assert_compiled_as_eager(text: str, values: dict[str, Any]) -> bool:
    """Assert that two calls of a compiled program agree with eager evaluation; returns whether there is a value."""
    program = gradcli.compile(text)
    values = {n: v for n, v in values.items() if n in program._accepted}
    expected: Any
    try:
        with limits.within(max_elements=10**6):
            expected = eager(text, values)
    except GradcliError as error:
        expected = error
    if isinstance(expected, GradcliError):
        for _ in range(3):
            with pytest.raises(type(expected)) as raised:
                program.value_and_grad(values)
            assert raised.value.report() == expected.report()
        return False
    for _ in range(3):
        value, grads = program.value_and_grad(values)
        assert_equal(value, expected[0], 1e-9)
        for name, gradient in grads.items():
            assert_equal(gradient, expected[1][name], 1e-9)
    return True


@pytest.mark.slow
@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(text=programs(scalar=True), values=st.tuples(*[st.one_of(EDGES, st.floats(-3, 3))] * len(NAMES)))
def test_scalar_programs_give_what_they_give_eagerly(text, values):
    assert_compiled_as_eager(text, dict(zip(NAMES, values)))


@pytest.mark.slow
@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    text=st.one_of(programs(), expressions().map("sum({})".format)),
    values=st.tuples(*[st.lists(st.one_of(EDGES, st.floats(-3, 3)), min_size=7, max_size=7)] * len(NAMES)),
)
def test_programs_on_arrays_give_what_they_give_eagerly(text, values):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "BLOCK", 4)
        assert_compiled_as_eager(text, dict(zip(NAMES, map(np.array, values))))


SCALARS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 800.0, -800.0, 1e-310, 1e300, np.inf, -np.inf, np.nan)


WRITTEN = [e for e in table.entries() if isinstance(e, Primitive) and scalars.template(e) is not None]


@pytest.mark.parametrize("primitive", WRITTEN, ids=lambda p: p.name)
def test_every_template_is_the_function_of_floats(primitive):
    """Bit for bit, including signs of zeros. Booleans are computed in the program, since its inputs are floats."""
    arity = primitive._arity
    inputs = tuple(Variable((), "float64") for _ in range(arity))
    truths = {"where": 1, "logical_not": 1, "logical_and": 2, "logical_or": 2}.get(primitive.name, 0)
    made = [Equation(not_equal, (v, 0.0), {}, Variable((), "bool")) for v in inputs[:truths]]
    atoms = (*(e.output for e in made), *inputs[truths:])
    samples = SCALARS if arity < 3 else (0.0, -0.0, 1.5, np.nan)
    for operands in itertools.product(samples, repeat=arity):
        expected = primitive(*(o != 0 for o in operands[:truths]), *operands[truths:])
        output = Variable((), arrays.dtype_name(expected))
        program = Program(inputs, (*made, Equation(primitive, atoms, {}, output)), (output,))
        run = scalars.function(
            program,
            lambda names: names[0],
            raised=lambda *inputs, program=program: float(stepwise.run(program, inputs)[0]),
            refused=not_implemented("floats are not refused"),
        )
        np.testing.assert_equal(run(*operands), float(expected))


@pytest.mark.parametrize("number", SCALARS)
def test_a_truth_value_of_a_number_is_computed_without_numpy(monkeypatch, number):
    x, truth = Variable((), "float64"), Variable((), "bool")
    program = Program((x,), (Equation(cast, (x,), {"dtype": "bool"}, truth),), (truth,))
    monkeypatch.setattr("gradcli.arrays.astype", not_implemented("a conversion by NumPy"))
    unexpected = not_implemented("floats are not refused")
    run = scalars.function(program, lambda names: names[0], raised=unexpected, refused=unexpected)
    assert run(number) == float(bool(number))


def test_generated_text_holds_no_text_of_the_user(monkeypatch):
    texts = []
    monkeypatch.setattr(scalars, "exec", lambda text, known: texts.append(text) or exec(text, known), raising=False)
    program = gradcli.compile("__import__ = σ*exit; __import__ + open")
    assert program.compiled(("σ", "exit", "open"))(2.0, 3.0, 4.0) == (10.0, (3.0, 2.0, 1.0))
    assert texts
    assert not any(word in text for text in texts for word in ("σ", "exit", "open", "import"))


# --- blocks

SIZES = (1, 3, 4, 5, 7, 8, 9, 16, 17)


@pytest.mark.parametrize("size", SIZES)
def test_sizes_around_the_size_of_a_block(small_blocks, size):
    values = {"x": RNG.random(size) + 0.5, "q": RNG.random(size)}
    assert_as_eager(recording(parse(MIXED), values, ("x", "q")), MIXED, values)


@pytest.mark.parametrize(("text", "first", "second"), BROADCASTING)
def test_shapes(small_blocks, text, first, second):
    values = as_inputs({"x": RNG.random(first) + 0.5, "y": RNG.random(second) + 0.5})
    made = recording(parse(text), values, ("x", "y"))
    assert_as_eager(made, text, values)
    transposed = as_inputs({n: np.asfortranarray(v) if np.ndim(v) else v for n, v in values.items()})
    assert_as_eager(made, text, transposed)
    shape_alone = recording(parse(text), {n: abstract(v) for n, v in values.items()}, ("x", "y"))
    assert_as_eager(shape_alone, text, values)


def test_float32_stays_float32(small_blocks):
    values = {"x": (RNG.random(17) + 0.5).astype("float32"), "q": RNG.random(17).astype("float32")}
    program = gradcli.compile(MIXED)
    expected = eager(MIXED, values)
    for _ in range(3):
        value, grads = program.value_and_grad(values)
        assert_equal(value, expected[0], 1e-5)
        assert_equal(grads["x"], expected[1]["x"], 1e-5)


def test_no_elements():
    assert_compiled_as_eager(MIXED, {"x": np.zeros(0), "q": np.zeros(0)})


def test_inputs_with_steps_and_read_only_inputs(small_blocks):
    whole = RNG.random((40, 3)) + 0.5
    whole.flags.writeable = False
    values = {"x": whole[::-2, 1], "q": whole[1::2, 2]}
    assert_as_eager(recording(parse(MIXED), values, ("x", "q")), MIXED, values)


def test_the_result_does_not_depend_on_the_number_of_threads(monkeypatch):
    values = {"x": RNG.random(300_000) + 0.5, "q": RNG.random(300_000)}
    made = recording(parse(MIXED), values, ("x", "q"))
    found = []
    for cores in (1, 2, 5):
        monkeypatch.setattr(kernel._KernelRun, "_threads", lambda self, cores=cores: cores)
        found.append(made.outcome([*values.values()]))
    for outcome in found[1:]:
        assert outcome.value == found[0].value
        np.testing.assert_array_equal(outcome.derivatives["x"], found[0].derivatives["x"])


def test_intermediate_results_are_never_whole():
    size = 1_000_000
    values = {"x": RNG.random(size) + 0.5, "q": RNG.random(size)}
    made = recording(parse(MIXED), {n: abstract(v) for n, v in values.items()}, ("x", "q"))
    tracemalloc.start()
    outcome = made.outcome([*values.values()])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert outcome is not None
    blocks = 12 * schedule.BLOCK * 8 * len(outcome.derivatives)
    assert peak < 2 * size * 8 + blocks


def test_a_recording_by_shape_makes_no_large_array():
    x = abstract(np.broadcast_to(1.0, (10**9,)))
    tracemalloc.start()
    recording(parse(MIXED), {"x": x, "q": x}, ("x", "q"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**7


def test_a_failure_in_a_thread_is_raised(small_blocks, monkeypatch):
    values = {"x": RNG.random(40)}
    made = recording(parse("sum(exp(x)*x)"), values, ("x",))

    def fail(*_arguments: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(kernel, "_block", fail)
    with pytest.raises(MemoryError):
        made.outcome([*values.values()])


def test_steps_of_a_chain_of_reductions_are_computed_once(small_blocks):
    text = "; ".join(["y = x", *["y = y - mean(y*y)*x"] * 30, "sum(y)"])
    made = recording(parse(text), {"x": RNG.random(40)}, ("x",))
    steps = schedule.schedule(made.trace.program).steps
    equations = sum(len(s.equations) if isinstance(s, schedule.Segment) else 1 for s in steps)
    assert equations < 4 * len(made.trace.program.equations)
    assert_as_eager(made, text, {"x": RNG.random(40)})


def test_what_is_computed_again_later_is_not_computed_before(small_blocks):
    text = "h = sinh(x); sum((h@y)**2)"
    made = recording(parse(text), {"x": RNG.random((6, 5)), "y": RNG.random(5)}, ("x",))
    segments = [s for s in schedule.schedule(made.trace.program).steps if isinstance(s, schedule.Segment)]
    first, *others = [[e.primitive.name for e in s.equations.values()] for s in segments if s.shape == (6, 5)]
    assert first == ["sinh"]
    assert others == [["cosh", "multiply"]]


def test_intermediate_arrays_are_written_over(small_blocks):
    text = "h = tanh(A@x + b); sum((h@x.T)**2)"
    values = {"A": RNG.random((6, 5)), "x": RNG.random((5, 3)), "b": RNG.random(3)}
    made = recording(parse(text), values, tuple(values))
    kernels = []
    init = kernel._KernelRun.__init__

    def note(self: Any, made: Any, known: Any) -> None:
        kernels.append(made)
        init(self, made, known)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel._KernelRun, "__init__", note)
        for _ in range(2):
            assert_as_eager(made, text, values)
    assert any(k.code.over for k in kernels)


def test_results_are_arrays_of_their_own(small_blocks):
    program = gradcli.compile("sum(x*y) + sum(x + y)")
    values = {"x": RNG.random(9), "y": RNG.random(9)}
    _, first = program.value_and_grad(values)
    kept = {n: g.copy() for n, g in first.items()}
    for _ in range(3):
        _, grads = program.value_and_grad(values)
        for gradient in grads.values():
            gradient[...] = np.nan
        assert not any(np.isnan(v).any() for v in values.values())
    np.testing.assert_array_equal(program.value_and_grad(values)[1]["x"], kept["x"])
    ones = gradcli.compile("sum(x) + sum(y)")
    for _ in range(3):
        _, grads = ones.value_and_grad(values)
        assert not np.may_share_memory(grads["x"], grads["y"])
        grads["x"][...] = 7.0
    np.testing.assert_array_equal(ones.value_and_grad(values)[1]["x"], np.ones(9))


def test_multiplication_in_place_of_an_operand_that_is_read_again():
    x = Variable((8,), "float64")
    square, cube = Variable((8,), "float64"), Variable((8,), "float64")
    equations = (Equation(multiply, (x, x), {}, square), Equation(multiply, (square, x), {}, cube))
    given = np.arange(8.0)
    for outputs in [(square, cube), (cube,), (square,)]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(schedule, "BLOCK", 4)
            found = Blocks(Program((x,), equations, outputs)).run([given])
        expected = {square: given**2, cube: given**3}
        for output, array in zip(outputs, found):
            np.testing.assert_array_equal(array, expected[output])


# --- gradcli.compile


def test_a_number_says_which_side_of_a_condition_it_is_on(run, monkeypatch):
    monkeypatch.setattr(session, "_run", None)
    outcome = run("eval", "sum(x**q)", "x=[1, 4]", "q=0.25", "--executor", "compiled", "--json")
    assert outcome.json["grad"]["x"] == [0.25, pytest.approx(4**-0.75 / 4)]


def test_inputs_that_break_a_guard_are_right_too():
    program = gradcli.compile("log(x**q)*sin(x)")
    for x in (5.0, 5.0, 6.0, -5.0, -5.0, -5.0, 0.0, 5.0, np.inf, np.nan, -5.0):
        values = {"x": x, "q": 2.0}
        expected = eager("log(x**q)*sin(x)", values)
        value, grads = program.value_and_grad(values)
        assert_equal(value, expected[0])
        assert_equal(grads["x"], expected[1]["x"])
        assert_equal(grads["q"], expected[1]["q"])
        assert_equal(program(x=x, q=2.0), expected[0])


def test_the_second_call_runs_a_recording(monkeypatch):
    program = gradcli.compile("sum(sin(x))")
    values = {"x": RNG.random(5)}
    first = program.value_and_grad(values)
    program.value_and_grad(values)
    monkeypatch.setattr(programs_module, "evaluate", None)
    assert_equal(program.value_and_grad(values)[1]["x"], first[1]["x"])
    with pytest.raises(TypeError):
        program.value_and_grad({"x": RNG.random(6)})


@pytest.mark.parametrize("condition", ["[0.5, 0, -2]", "[0, nan, inf]", "x", "x - x[0]", "0.5", "[1, 0, 1]", "x > 1"])
def test_a_condition_of_numbers_is_the_same_in_every_call(condition):
    program = gradcli.compile(f"sum(where({condition}, x*x, 3*x))")
    inputs = {"x": np.array([1.0, 0.0, 2.0])}
    value, gradients = program.value_and_grad(inputs)
    for _ in range(3):
        again, found = program.value_and_grad(inputs)
        assert again == value
        assert np.array_equal(found["x"], gradients["x"])


def test_programs_that_depend_on_numbers_run_eagerly():
    program = gradcli.compile("y = x; while y < 100 { y = y*2 }; y")
    for x in (1.0, 3.0, 70.0, 200.0):
        assert program.value_and_grad({"x": x}) == eager(program.program.source, {"x": x})


def test_a_condition_that_never_holds_is_found():
    text = "log(zeros_like(x)**q) + x"
    expected = eager(text, {"x": 1.0, "q": 0.0})
    program = gradcli.compile(text)
    assert program.compiled(("x", "q"))(1.0, 0.0) == (expected[0], tuple(expected[1].values()))
    for _ in range(3):
        assert program.value_and_grad({"x": 1.0, "q": 0.0}) == expected


def test_a_positional_function():
    program = gradcli.compile("log(x**q)*sin(x)")
    run = program.compiled(("x", "q"), wrt=("q",))
    value, grads = eager("log(x**q)*sin(x)", {"x": 5.0, "q": 3.0})
    assert run(5.0, 3.0) == (pytest.approx(value, rel=1e-14), (pytest.approx(grads["q"], rel=1e-14),))
    assert run(5, 3) == (pytest.approx(value, rel=1e-14), (pytest.approx(grads["q"], rel=1e-14),))
    assert_equal(run(-5.0, 2.0)[0], eager("log(x**q)*sin(x)", {"x": -5.0, "q": 2.0})[0])
    assert gradcli.compile("x + detach(q)").compiled(("x", "q"))(1.0, 2.0) == (3.0, (1.0, None))
    assert gradcli.compile("x > 1").compiled(("x",), wrt=())(2.0) == (1.0, ())


def test_a_positional_function_of_arrays():
    run = gradcli.compile("sum(A@v)").compiled(("A", "v"))
    matrix, vector = RNG.random((3, 2)), RNG.random(2)
    for _ in range(3):
        value, (by_matrix, by_vector) = run(matrix, vector)
        assert value == pytest.approx((matrix @ vector).sum())
        np.testing.assert_allclose(by_matrix, np.tile(vector, (3, 1)))
        np.testing.assert_allclose(by_vector, matrix.sum(axis=0))


def test_compiling_says_why_it_cannot():
    with pytest.raises(NotRecordableError, match="depends on the numbers") as raised:
        gradcli.compile("x if x > 0 else -x").compiled(("x",))
    assert "^" in raised.value.report()
    with pytest.raises(BindingError, match="'q', which is not among the inputs"):
        gradcli.compile("x*q").compiled(("x",))
    with pytest.raises(BindingError, match="does not read 'z'"):
        gradcli.compile("x*q").compiled(("x", "q", "z"))
    with pytest.raises(BindingError, match="do not fit"):
        gradcli.compile("sum(A@A)").compiled(("A",))(1.0, 2.0)


def test_errors_of_compiled_programs_are_those_of_eager_ones():
    program = gradcli.compile("sum(inv(A))")
    good, singular = RNG.random((3, 3)), np.ones((3, 3))
    for _ in range(3):
        program.value_and_grad({"A": good})
    with pytest.raises(GradcliError, match="singular") as raised:
        program.value_and_grad({"A": singular})
    assert "inv(A)" in raised.value.report()


def test_a_cotangent():
    program, values = gradcli.compile("x**2*q"), {"x": RNG.random(5), "q": RNG.random(5)}
    for _ in range(4):
        weights = RNG.random(5)
        _, expected = eager("x**2*q", values, None, weights)
        assert_equal(program.value_and_grad(values, grad_output=weights)[1]["x"], expected["x"])
    with pytest.raises(GradcliError, match="Mismatch in shape"):
        program.value_and_grad(values, grad_output=np.ones(4))
    with pytest.raises(GradcliError, match="scalar outputs"):
        program.value_and_grad(values)


def test_kinds_of_inputs_are_not_kept_without_end():
    program = gradcli.compile("sum(x)")
    for size in range(100):
        program.value_and_grad({"x": np.ones(size)})
    assert len(program._recordings._known) <= 32


def test_threads_share_a_program():
    program = gradcli.compile(MIXED)
    inputs = [{"x": RNG.random(50) + 0.5, "q": RNG.random(50)} for _ in range(8)]
    expected = [eager(MIXED, values)[0] for values in inputs]
    wrong = []

    def work(number: int) -> None:
        for _ in range(20):
            value, _ = program.value_and_grad(inputs[number])
            if not np.isclose(value, expected[number], rtol=1e-12):
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(len(inputs))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_scalar_program_loads_no_array_library():
    code = (
        "import sys, gradcli; f = gradcli.compile('log(x**q)*sin(x)'); "
        "[f.value_and_grad({'x': 5.0, 'q': 3.0}) for _ in range(3)]; f.compiled(('x', 'q'))(5.0, 3.0); "
        "assert f._scalar.functions; sys.exit('numpy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_eval_of_a_small_program_does_not_load_the_executors(run):
    code = (
        "import sys; from gradcli.cli.main import main; from gradcli.cli.process.environment import Environment; import io;"
        "main(('eval', 'log(x**q)', 'x=5', 'q=3'), Environment(io.StringIO(), sys.stderr, sys.stderr, {}));"
        "sys.exit(any(name.startswith(('gradcli.executors', 'gradcli.program', 'gradcli.formulas')) for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)


# --- gradcli eval --executor


@pytest.mark.parametrize(
    "words",
    [
        ("log(x**q)", "x=5", "q=3"),
        ("sum(log(x**q))", "x=[1, 2, 3]", "q=[1, -2, 0]"),
        ("sum(abs(x))", "x=[1, 0, 3]"),
        ("sum(max(x, axis=0))", "x=[[1, 2], [1, 3]]"),
        ("sum(median(x))", "x=[1, 2, 2]"),
        ("sum(log(x))", "x=[1, 0, 3]"),
        ("x**2", "x=[1, 2]", "--grad-output", "[1, 10]"),
        ("x**2", "x=[1, 2]", "--no-grad"),
        ("x > 1", "x=[1, 2]", "--no-grad"),
        ("x + detach(q)", "x=1", "q=2"),
        ("log(x**q)", "x=5", "q=3", "--no-rewrite", "--dtype", "float32"),
    ],
)
def test_executors_print_the_same(run, words):
    outcomes = [run("eval", *words, "--json", "--executor", executor) for executor in session.EXECUTORS]
    first, second = (o.json for o in outcomes)
    assert first.keys() == second.keys()
    assert first.get("warnings") == second.get("warnings")
    np.testing.assert_allclose(np.array(second["value"], float), np.array(first["value"], float), rtol=1e-6)
    for name, gradient in first.get("grad", {}).items():
        if gradient is None:
            assert second["grad"][name] is None
        else:
            np.testing.assert_allclose(np.array(second["grad"][name], float), np.array(gradient, float), rtol=1e-6)


def test_large_arrays_are_compiled(run, monkeypatch):
    small = backends.check_name("numpy")._replace(worth=backends.CompileThresholds(3, 3, 3))
    monkeypatch.setitem(backends._BY_NAME, "numpy", small)
    monkeypatch.setattr(session, "_run", None)
    assert run("eval", "sum(sin(x))", "x=[1, 2, 3]", "--json").json["grad"]["x"] == list(np.cos([1.0, 2.0, 3.0]))


def test_an_error_in_what_is_not_needed_stays_one(run):
    eager, compiled = (run("eval", "y = min(x); sum(x)", "x=[]", "--executor", e) for e in ("eager", "compiled"))
    assert "an empty tensor has no 'min'" in eager.err
    assert compiled == eager


def test_wrong_uses_of_the_executor_are_errors(run):
    assert run("eval", "x", "x=1", "--executor", "fast").status == 2
    assert "eagerly alone" in run("eval", "x", "x=1", "--executor", "compiled", "--order", "2").err
    outcome = run("eval", "x if x > 0 else -x", "x=1", "--executor", "compiled")
    assert outcome.status == 1
    assert "hint: --executor eager" in outcome.err
    assert run("eval", "x if x > 0 else -x", "x=1").status == 0


def test_limits_hold(run):
    words = ("sum(sin(x)*x)", "x=[1, 2, 3]", "--max-elements", "8")
    outcomes = [run("eval", *words, "--executor", executor) for executor in session.EXECUTORS]
    assert [o.status for o in outcomes] == [1, 1]
    assert outcomes[0].err == outcomes[1].err


WRITTEN_INTO = [
    e for e in table.entries() if isinstance(e, Primitive) and e.elementwise and ufuncs.in_place_function(e, {"n": 2})
]


@pytest.mark.parametrize("primitive", WRITTEN_INTO, ids=lambda p: p.name)
def test_every_function_into_a_buffer_is_that_of_the_table(primitive):
    """Also with an operand as the output buffer, where that is allowed."""
    params = {"n": 3} if primitive.name == "whole_power" else {"dtype": "float64"} if primitive.name == "cast" else {}
    operands = [o.ravel() for o in np.meshgrid(*[SCALARS] * (primitive._arity - len(params)))]
    if primitive.name == "where":
        operands[0] = operands[0] > 0
    if primitive.name.startswith("logical"):
        operands = [o > 0 for o in operands]
    into = ufuncs.in_place_function(primitive, params)
    expected = bind(primitive, operands, params)
    outs = [np.empty_like(expected), *range(0 if primitive in ufuncs.NOT_IN_PLACE else len(operands))]
    for out in outs:
        given = [o.copy() for o in operands]
        buffer = given[out] if type(out) is int else out
        if buffer.dtype == expected.dtype:
            with arrays.quiet():
                into(*given, buffer)
            np.testing.assert_allclose(buffer, expected, rtol=1e-15)


def test_functions_into_buffers_are_in_the_table():
    known = table.entries()
    assert all(primitive in known for primitive in (*ufuncs._own(), *scalars._TEMPLATES))


# --- functions that a library lacks


@pytest.fixture
def unknown(monkeypatch):
    """A primitive that no library implements."""
    monkeypatch.setattr(spellings, "_declared", dict(spellings._declared))
    return elementwise("sharpness", "x", "of which nothing is known", vjp=None, derivative="none")


def test_a_function_that_a_library_lacks_is_refused(unknown):
    for x in (0.5, np.array([0.5])):
        with pytest.raises(BackendError, match="the backend numpy has no function 'sharpness'"):
            unknown(x)


@pytest.mark.parametrize("shape", [(), (3,), (100_000,)])
def test_a_program_with_a_function_that_a_library_lacks_is_refused_before_it_runs(unknown, shape):
    x, y = Variable(shape, "float64"), Variable(shape, "float64")
    with pytest.raises(BackendError, match="the backend numpy has no function 'sharpness'"):
        executable(Program((x,), (Equation(unknown, (x,), {}, y),), (y,)))


def test_numbers_have_the_functions_of_numpy(monkeypatch):
    monkeypatch.setattr(spellings, "_declared", dict(spellings._declared))
    distance = elementwise(
        "distance", "x", "to the next number", vjp=None, derivative="none", spelling={"numpy": "spacing"}
    )
    assert distance(1.0) == np.spacing(1.0)
    assert type(distance(1.0)) is float
    x, y = Variable((), "float64"), Variable((), "float64")
    assert executable(Program((x,), (Equation(distance, (x,), {}, y),), (y,)))([1.0]) == [np.spacing(1.0)]
