"""The kernels of compiled programs on CuPy, compiled for the processor, beside NumPy and the other executors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from emulated_cuda import COMPILER, EmulatedArrays, Module

from gradcli import arrays
from gradcli.arrays import spellings
from gradcli.errors import EvaluationError, GradcliError
from gradcli.evaluation.recordings import Recording, abstract, recording
from gradcli.executors import cuda_kernels, cupy_kernels, schedule
from gradcli.language.syntax import parse
from gradcli.primitives import conversions
from gradcli.primitives.bind import bind
from gradcli.primitives.entries import arithmetic, comparisons, powers, reductions
from gradcli.primitives.entries.elementwise import trigonometric
from gradcli.primitives.entries.linear_algebra import matrices
from gradcli.primitives.families import elementwise
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Equation, Program, Variable
from tests.backends.test_backend_functions import (
    ANY_ZERO,
    EXCLUDED,
    PARAMETERS,
    SCALARS,
    VALUES,
    WITH_ZEROS,
    operands_of,
)
from tests.backends.test_backend_functions import ELEMENTWISE as EVERY_ELEMENTWISE
from tests.language.test_conformance import CASES, numbers
from tests.segments import BROADCASTING, MIXED

pytestmark = pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
RNG = np.random.default_rng(0)
# Kernels compute with real numbers; complex ones are left to the namespace.
OF_COMPLEX = {
    *("conjugate", "real_part", "imaginary_part", "phase", "complex"),
    *("elliptic_p", "elliptic_p_prime", "theta_slope", "eisenstein"),
}
ELEMENTWISE = [p for p in EVERY_ELEMENTWISE if p.name not in OF_COMPLEX]


@pytest.fixture(scope="module", autouse=True)
def few_threads():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_kernels, "THREADS", 4)
        yield


def executable(program: Program) -> Any:
    return cupy_kernels.executable(program, EmulatedArrays())


def variable(value: Any) -> Variable:
    return Variable(arrays.shape(value), arrays.dtype_name(value))


class Check(NamedTuple):
    """A program, what it is given, and what it must give."""

    run: Any
    inputs: Sequence[Any]
    operands: Sequence[Any]
    expected: np.ndarray


def check(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], *, fixed: bool = False) -> Check:
    """`primitive` as a program of its operands; of arrays alone where numbers are `fixed`."""
    with arrays.using_dtype("float32" if any(getattr(o, "dtype", None) == "float32" for o in operands) else "float64"):
        expected = np.asarray(bind(primitive, operands, params))
    inputs = tuple(o if fixed and type(o) in arrays.PYTHON_NUMBERS else variable(o) for o in operands)
    equation = Equation(primitive, inputs, params, variable(expected))
    assert cuda_kernels.takes(equation)
    given = [o for o, i in zip(operands, inputs) if isinstance(i, Variable)]
    variables = tuple(i for i in inputs if isinstance(i, Variable))
    return Check(executable(Program(variables, (equation,), (equation.output,))), given, operands, expected)


def checks(primitive: Primitive, dtype: str) -> list[Check]:
    arrays_ = operands_of(primitive)
    if primitive.name.startswith("logical"):
        arrays_ = [o > 0 for o in arrays_]
    with np.errstate(over="ignore"):
        arrays_ = [o.astype(dtype) if o.dtype == "float64" else o for o in arrays_]
    found = []
    for params in PARAMETERS.get(primitive.name, [{}]):
        found.append(check(primitive, arrays_, params))
        if len(arrays_) == 2:
            for number in SCALARS if arrays_[0].dtype != bool else (True, False):
                for operands in ((arrays_[0].ravel(), number), (number, arrays_[1])):
                    found.append(check(primitive, operands, params))
                    found.append(check(primitive, operands, params, fixed=True))
    return found


@pytest.fixture(scope="module")
def made() -> dict[tuple[str, str], list[Check]]:
    """All of them before one is run: they are compiled together."""
    return {(p.name, dtype): checks(p, dtype) for p in ELEMENTWISE for dtype in ("float64", "float32")}


@pytest.mark.cases(16)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("primitive", ELEMENTWISE, ids=lambda p: p.name)
def test_every_function_is_that_of_numpy(primitive, dtype, made):
    for run, inputs, operands, expected in made[primitive.name, dtype]:
        (found,) = run(inputs)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        kept = np.full(expected.shape, True)
        if primitive.name in EXCLUDED:
            kept = ~np.broadcast_to(EXCLUDED[primitive.name](*operands), expected.shape)
        rtol, atol = (2e-11, 2e-15) if dtype == "float64" else (1e-5, 1e-6)
        atol = atol if primitive.name in WITH_ZEROS else 0
        np.testing.assert_allclose(found[kept], expected[kept], rtol=rtol, atol=atol, err_msg=str(operands))
        if expected.dtype.kind == "f" and primitive.name not in ANY_ZERO:
            zeros = kept & (expected == 0)
            np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


# --- whole programs


def given(values: Mapping[str, Any], weights: Any) -> list[Any]:
    return [*values.values(), *([] if weights is None else [weights])]


def recorded(text: str, values: Mapping[str, Any], wrt: Sequence[str], weights: Any = None) -> Recording:
    """By shape alone, where that is good for these values."""
    inputs = given(values, weights)
    try:
        shapes = {n: abstract(v) for n, v in values.items()}
        made = recording(parse(text), shapes, wrt, None if weights is None else abstract(weights))
        if made.run(inputs) is not None:
            return made
    except GradcliError:
        pass
    return recording(parse(text), values, wrt, weights)


def assert_as_numpy(run: Any, made: Recording, inputs: Sequence[Any], rtol: float = 1e-12) -> None:
    found, expected = run(inputs), made.run(inputs)
    assert found is not None
    assert expected is not None
    for f, e in zip(found, map(np.asarray, expected)):
        assert type(f) is np.ndarray
        assert (f.shape, f.dtype) == (e.shape, e.dtype)
        finite = [abs(v) for v in e.ravel() if np.isfinite(v)]
        np.testing.assert_allclose(f, e, rtol=rtol, atol=rtol * 1e-2 * max([1.0, *finite]))


def both(text: str, values: Mapping[str, Any], wrt: Sequence[str] | None = None) -> tuple[Any, Recording, list[Any]]:
    """`text` and its gradients as a program on the emulated device, the recording, and its inputs."""
    made = recorded(text, values, tuple(values) if wrt is None else wrt)
    return executable(made.trace.program), made, list(values.values())


def array(value: Any) -> Any:
    """Nested lists of the conformance file as a number or an array."""
    return value if value is None else arrays.asarray(numbers(value), "float64")


def test_conformance_programs():
    made = []
    for case in CASES:
        values = {n: array(v) for n, v in case["bindings"].items() if n in case["program"]}
        weights = array(case.get("grad_output"))
        found = recorded(case["program"], values, [n for n in case.get("wrt") or values if n in values], weights)
        made.append((executable(found.trace.program), found, given(values, weights)))
    for run, recording_, inputs in made:
        assert_as_numpy(run, recording_, inputs)


Shaped = dict[tuple[str, Any, Any, bool], tuple[Any, Recording, list[list[Any]]]]


def orders(array: Any) -> list[Any]:
    """An array in several orders in memory."""
    return [array, np.asfortranarray(array), array[::-1]] if np.ndim(array) else [array] * 3


@pytest.fixture(scope="module")
def shaped() -> Shaped:
    """All of them before one is run: they are compiled together."""
    found: Shaped = {}
    with pytest.MonkeyPatch.context() as patch, Module.compiler.collecting():
        for batched in (False, True):
            if batched:
                patch.setattr(cuda_kernels, "_LARGE", 0)
            for text, first, second in BROADCASTING:
                values = {"x": RNG.random(first) + 0.5, "y": RNG.random(second) + 0.5}
                run, made, inputs = both(text, values)
                given = [list(arrays_) for arrays_ in zip(*map(orders, inputs))]
                found[text, first, second, batched] = run, made, given
                for arrays_ in given:
                    run(arrays_)
    return found


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(("text", "first", "second"), BROADCASTING)
def test_shapes_and_orders_in_memory(text, first, second, batched, shaped):
    run, made, given = shaped[text, first, second, batched]
    for inputs in given:
        assert_as_numpy(run, made, inputs)


@pytest.mark.cases(2)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("wide", [False, True])
def test_sizes_around_those_of_batches_blocks_and_grids(dtype, wide, monkeypatch):
    monkeypatch.setattr(cuda_kernels, "_LARGE", 0)
    monkeypatch.setattr(cuda_kernels, "_FEW_BLOCKS", 2)
    monkeypatch.setattr(cuda_kernels, "MOST_BLOCKS", 3)
    if wide:
        monkeypatch.setattr(cuda_kernels, "SMALL_INDEX", 0)
    cases = [
        both(MIXED, {n: (RNG.random(size) + 0.5).astype(dtype) for n in ("x", "q")})
        for size in (*range(1, 35), 47, 48, 49, 97)
    ]
    for run, made, inputs in cases:
        assert_as_numpy(run, made, inputs, 1e-12 if dtype == "float64" else 1e-4)
        first, second = run(inputs), run(inputs)
        for one, other in zip(first, second):
            np.testing.assert_array_equal(one, other)


def text_of(text: str, values: Mapping[str, Any]) -> str:
    """The kernels that a program is compiled to."""
    before = len(Module.compiler.texts)
    both(text, values)
    return "\n".join(Module.compiler.texts[before:])


def test_what_the_kernels_of_a_program_are():
    x = RNG.random(30)
    text = text_of(MIXED, {"x": x, "q": x})
    assert len(re.findall(r"static void m\d+_segment\d+\(", text)) == 1
    assert text.count("sincos(") == 1
    assert not re.search(r"\b(sin|cos)\(", text)
    assert text.count("const int i") == 2


def test_large_arrays_have_wide_indices():
    segment = schedule.Segment((3 * 2**30,))
    x, y = (Variable(segment.shape, "float32") for _ in range(2))
    segment.equations = {y: Equation(trigonometric.sin, (x,), {}, y)}
    segment.stored = {y: None}
    found = cuda_kernels.kernels("k", segment, [x], [(4,)])
    assert "const long long i" in found.text
    assert "int i" not in found.text
    assert found.blocks == cuda_kernels.MOST_BLOCKS


def test_long_programs_are_several_kernels(monkeypatch):
    monkeypatch.setattr(cupy_kernels, "_MOST_EQUATIONS", 4)
    text = "; ".join(["y = x", *["y = sin(y) + q*y"] * 10, "sum(y)*max(y)"])
    assert_as_numpy(*both(text, {"x": RNG.random(20), "q": RNG.random(20)}))
    monkeypatch.setattr(cupy_kernels, "_MOST_EQUATIONS", 256)
    monkeypatch.setattr(cupy_kernels, "_MOST_OPERANDS", 3)
    names = [f"x{k}" for k in range(12)]
    assert_as_numpy(*both(f"sum({'*'.join(names)})", {n: RNG.random(9) for n in names}))


# --- guards


def test_a_guard_that_does_not_hold():
    run, made, inputs = both(MIXED, {"x": RNG.random(30) + 0.5, "q": RNG.random(30)})
    assert made.trace.program.guards
    assert_as_numpy(run, made, inputs)
    for place in (0, 17, 29):
        x = inputs[0].copy()
        x[place] = -1.0
        assert run([x, inputs[1]]) is None
    assert_as_numpy(run, made, inputs)


def test_guards_that_no_kernel_computes():
    flags, x = Variable((3,), "bool"), Variable((), "float64")
    whole = Variable((), "bool")
    equations = (Equation(reductions.all_, (flags,), {"axis": (0,), "keepdims": False}, whole),)
    for guards in ((flags,), (whole,)):
        run = executable(Program((flags, x), equations, (x,), guards))
        assert run([np.array([True, True, True]), 2.0]) == [2.0]
        assert run([np.array([True, False, True]), 2.0]) is None


def test_errors_are_those_of_the_primitives():
    matrix, inverse = Variable((2, 2), "float64"), Variable((2, 2), "float64")
    run = executable(Program((matrix,), (Equation(matrices.inv, (matrix,), {}, inverse),), (inverse,)))
    with pytest.raises(EvaluationError, match="singular"):
        run([np.ones((2, 2))])


# --- dtypes, constants and results


def assert_same(made: Sequence[Check]) -> None:
    """The very numbers of NumPy."""
    for run, inputs, _, expected in made:
        (found,) = run(inputs)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(found, expected)
        if expected.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_numbers_take_the_dtype_of_arrays():
    single, double, whole = np.array([0.1, 2.5], "float32"), np.array([0.1, 2.5]), np.array([3, -2])
    truths = np.array([True, False])
    cases: list[tuple[Primitive, Sequence[Any], dict[str, Any], str]] = [
        (arithmetic.multiply, (single, 0.1), {}, "float32"),
        (arithmetic.multiply, (single, double), {}, "float64"),
        (arithmetic.multiply, (single, whole), {}, "float32"),
        (arithmetic.multiply, (double, truths), {}, "float64"),
        (arithmetic.divide, (whole, 2), {}, "float64"),
        (comparisons.less, (single, 0.1), {}, "bool"),
        (comparisons.less, (truths, True), {}, "bool"),
        (comparisons.where, (truths, 1.5, 0), {}, "float64"),
        (comparisons.where, (truths, truths, False), {}, "bool"),
        (comparisons.where, (truths, single, double), {}, "float64"),
        (conversions.cast, (truths,), {"dtype": "float32"}, "float32"),
        (conversions.cast, (double,), {"dtype": "float32"}, "float32"),
        (arithmetic.identity, (truths,), {}, "bool"),
        (comparisons.isfinite, (truths,), {}, "bool"),
    ]
    made = [check(primitive, operands, params, fixed=True) for primitive, operands, params, _ in cases]
    assert [str(m.expected.dtype) for m in made] == [dtype for *_, dtype in cases]
    assert_same(made)


def test_a_number_of_the_device_is_one_as_well():
    x, number, total = Variable((2,), "float32"), Variable((), "float64"), Variable((2,), "float32")
    run = executable(Program((x, number), (Equation(arithmetic.add, (x, number), {}, total),), (total,)))
    single = np.array([0.1, 2.5], "float32")
    for given in (0.1, np.array(0.1)):
        assert run([single, given])[0].tolist() == (single + 0.1).tolist()


def test_whole_numbers_are_left_to_the_namespace():
    whole, double = np.array([3, -2]), np.array([0.1, 2.5])
    for primitive, operands in [
        (arithmetic.add, (whole, whole)),
        (comparisons.less, (whole, double)),
        (comparisons.where, (double > 1, whole, 7)),
    ]:
        inputs = tuple(map(variable, operands))
        expected = np.asarray(bind(primitive, operands, {}))
        equation = Equation(primitive, inputs, {}, variable(expected))
        assert not cuda_kernels.takes(equation)
        (found,) = executable(Program(inputs, (equation,), (equation.output,)))(operands)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_constants_keep_their_digits(dtype):
    numbers = (0.1, -0.1, 1 / 3, 1e-40, 1e-310, 1e300, 5e-324, -0.0, 123456789.123, np.inf, -np.inf, np.nan)
    x, array = np.array([1.0, -1.0], dtype), np.array([0.1, 1e30], dtype)
    with np.errstate(all="ignore"):
        operands = [*((x, number) for number in numbers), (x, array), (x, np.broadcast_to(array[:1], 2))]
        operands += [(np.stack([x, x]), np.broadcast_to(array, (2, 2)))]
        made = []
        for one, constant in operands:
            output = variable(one)
            program = Program((variable(one),), (), (output,))
            equation = Equation(arithmetic.multiply, (program.inputs[0], constant), {}, output)
            program = program._replace(equations=(equation,))
            made.append(Check(executable(program), [one], (), one * np.asarray(constant, dtype)))
        assert_same(made)


def test_powers_with_constant_exponents():
    exponents = (0.0, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, 5.0, 0.5, -0.5)
    made = [check(powers.general_power, (VALUES, q), {}, fixed=True) for q in exponents]
    for q, one in zip(exponents, made):
        # With a number for the exponent NumPy has square roots, also of -0.0.
        expected = bind(powers.general_power, (VALUES, np.full_like(VALUES, q)), {})
        (found,) = one.run([VALUES])
        np.testing.assert_allclose(found, expected, rtol=1e-15)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def reduction(primitive: Primitive, x: np.ndarray) -> Check:
    return check(primitive, (x,), {"axis": tuple(range(x.ndim)), "keepdims": False})


def test_reductions():
    x = RNG.standard_normal((7, 11))
    of_infinities = [
        reduction(p, np.full((2, 3), s * np.inf)) for p, s in ((reductions.max_, -1), (reductions.min_, 1))
    ]
    made = [
        reduction(p, x) for p in (reductions.sum_, reductions.mean, reductions.prod, reductions.max_, reductions.min_)
    ]
    assert_same(of_infinities)
    for run, _, _, expected in made:
        np.testing.assert_allclose(run([x])[0], expected, rtol=1e-13)
        for place in ((0, 0), (3, 5), (6, 10)):
            with_nan = x.copy()
            with_nan[place] = np.nan
            assert np.isnan(run([with_nan])[0])


def test_sums_in_single_precision_keep_the_digits_of_single_precision():
    x = np.full(30_001, 0.1, "float32")
    total, mean = (reduction(p, x) for p in (reductions.sum_, reductions.mean))
    assert total.run([x])[0] == np.float32(np.float64(x[0]) * x.size)
    assert mean.run([x])[0] == x[0]


def test_results_are_arrays_of_their_own():
    x, ones = Variable((3,), "float64"), np.broadcast_to(1.0, 3)
    run = executable(Program((x,), (), (ones, 2.0, x)))
    for _ in range(2):
        first, second, third = run([np.arange(3.0)])
        assert (first.tolist(), second.tolist(), third.tolist()) == ([1.0] * 3, 2.0, [0.0, 1.0, 2.0])
        first += 1.0
        second += 1.0


def test_no_elements():
    made = recording(parse("sum(x*q) + sum(exp(x))"), {"x": np.zeros(0), "q": 3.0}, ("x", "q"))
    assert_as_numpy(executable(made.trace.program), made, [np.zeros(0), 3.0])


def test_every_elementwise_function_is_in_a_kernel():
    """None is left to the namespace."""
    for primitive in ELEMENTWISE:
        for dtype in ("float64", "float32"):
            output = Variable((3,), "bool" if primitive.vjp is None and primitive.truths else dtype)
            for params in PARAMETERS.get(primitive.name, [{}]):
                inputs = (Variable((3,), dtype),) * len(operands_of(primitive))
                assert cuda_kernels.takes(Equation(primitive, inputs, params, output))


def test_a_function_that_cuda_lacks_is_left_to_the_namespace(monkeypatch):
    monkeypatch.setattr(spellings, "_declared", dict(spellings._declared))
    distance = elementwise(
        "distance", "x", "to the next number", vjp=None, derivative="none", spelling={"numpy": "spacing"}
    )
    x, y, z = (Variable((3,), "float64") for _ in range(3))
    equation = Equation(distance, (x,), {}, y)
    assert not cuda_kernels.takes(equation)
    program = Program((x,), (equation, Equation(arithmetic.add, (y, y), {}, z)), (z,))
    monkeypatch.setattr(EmulatedArrays, "distance", staticmethod(np.spacing), raising=False)
    (found,) = executable(program)([np.array([1.0, 2.0, 3.0])])
    np.testing.assert_array_equal(found, 2 * np.spacing([1.0, 2.0, 3.0]))


def test_a_function_that_cuda_lacks_may_be_defined_in_others_that_it_has(monkeypatch):
    monkeypatch.setattr(spellings, "_declared", dict(spellings._declared))
    double = elementwise(
        "double", "x", "2*x", fallback=lambda xp, x: xp.add(x, x), vjp=(lambda g, _y, _x: 2.0 * g,), derivative="2*g"
    )
    x, y = Variable((3,), "float64"), Variable((3,), "float64")
    equation = Equation(double, (x,), {}, y)
    assert cuda_kernels.takes(equation)
