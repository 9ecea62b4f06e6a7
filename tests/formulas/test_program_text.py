"""Tests programs as text of the expression language: they read back as the same program, with the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gradcli
from gradcli import arrays
from gradcli.errors import DifferentiationError, GradcliError
from gradcli.evaluation.derivative_traces import value_and_gradients
from gradcli.formulas.languages.text import LANGUAGE, text
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax import parse
from gradcli.primitives import table
from gradcli.primitives.entries import exponential, powers
from gradcli.primitives.entries.special_functions import special
from gradcli.primitives.primitive import Primitive
from gradcli.program import program_constants
from gradcli.program.ir import Program, Variable
from gradcli.program.passes import optimise
from gradcli.program.record import record
from tests.program.test_passes import assert_same, results
from tests.strategies import NAMES, expressions

VECTOR = np.array([0.5, 1.5, 2.0])
MATRIX = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]])


def outputs_of(source: str, inputs: dict[str, Any]) -> list[tuple[Program, Any]]:
    """The value and the gradients of a program, each as a program, with its value."""
    trace = value_and_gradients(parse(source), inputs, tuple(inputs), rewrite=False)
    return [
        (optimise(trace.program._replace(outputs=(output,), guards=())), value)
        for output, value in zip(trace.program.outputs, trace.values)
    ]


def read_again(source: str, inputs: dict[str, Any]) -> tuple[Program, Any]:
    program = parse(source)
    traced = record(lambda **given: [evaluate(program, given, rewrite=False).value], inputs)
    return optimise(traced.program._replace(guards=())), traced.values[0]


def same(first: Program, second: Program) -> bool:
    """Whether two programs have the same equations, in any valid order."""
    numbers: dict[Any, int] = {}

    def number(key: Any) -> int:
        return numbers.setdefault(key, len(numbers))

    def told(program: Program) -> tuple[int, list[int]]:
        known = {v: number(v.name) for v in program.inputs}

        def atom(a: Any) -> int:
            return known[a] if isinstance(a, Variable) else number(program_constants.key(a))

        for primitive, inputs, params, output in program.equations:
            operands = [atom(a) for a in inputs]
            operands = sorted(operands) if primitive.commutative else operands
            known[output] = number((primitive, *operands, repr(dict(params))))
        return atom(program.outputs[0]), sorted(known.values())

    return told(first) == told(second)


def printed(source: str, **inputs: Any) -> str:
    """The text of a program's value."""
    return text(outputs_of(source, inputs)[0][0])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("(x + y) - (x - y)", "x + y - (x - y)"),
        ("x - (y + 1)", "x - (1 + y)"),
        ("x/(y*2)", "x/(2*y)"),
        ("(x*y)/2", "x*y/2"),
        ("-(x**2.5)", "-x**2.5"),
        ("(-x)**2.5", "(-x)**2.5"),
        ("(x**y)**2.5", "(x**y)**2.5"),
        ("x**y**2.5", "x**y**2.5"),
        ("2.5**-x", "2.5**-x"),
        ("(x + 1)*y", "y*(1 + x)"),
        ("exp(-x*y)", "exp(-x*y)"),
        ("x // y % 2", "x//y%2"),
        ("x/3 + 1e-20", "1e-20 + x/3"),
        ("where(x > 1, x, y)", "where(x > 1, x, y)"),
        ("sin(x)*sin(x) + cos(sin(x))", "v1 = sin(x)\nv1*v1 + cos(v1)"),
        ("x*0.3333333333333333", "1/3*x"),
        ("pi*x + inf", "inf + pi*x"),
    ],
)
def test_as_people_write_it(source, expected):
    inputs = {name: value for name, value in (("x", 1.5), ("y", 0.7)) if name in source.replace("exp", "")}
    assert printed(source, **inputs) == expected


def test_names_do_not_collide():
    assert printed("sin(v1)*sin(v1) + 1", v1=0.5) == "v2 = sin(v1)\n1 + v2*v2"
    assert printed("3.141592653589793*pi + 2.718281828459045*e", pi=1.0, e=2.0) == (
        "3.141592653589793*pi + 2.718281828459045*e"
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("sum(x)", "sum(x)"),
        ("sum(A, axis=0)", "sum(A, axis=0)"),
        ("mean(A, axis=(0, 1), keepdims=True)", "mean(A, keepdims=True)"),
        ("max(A, axis=1, keepdims=True)", "max(A, axis=1, keepdims=True)"),
        ("A.T@x[:2]", "A.T@x[:2]"),
        ("x[::-1]", "x[::-1]"),
        ("A[..., None, 0]", "A[..., None, 0]"),
        ("x[[0, 2, 0]]", "x[[0, 2, 0]]"),
        ("reshape(A, 3, 2)", "reshape(A, (3, 2))"),
        ("x*[1, 2.5, 3]", "[1, 2.5, 3]*x"),
        ("permute(A[None], 2, 0, 1)", "permute(A[None], (2, 0, 1))"),
        ("concat([x, x])", "concat([x, x], axis=0)"),
        ("roll(A, (1, 2), (0, 1))", "roll(A, (1, 2), axis=(0, 1))"),
        ("einsum('ij,j->i', A, x)", "einsum('ab,b->a', A, x)"),
        ("cumsum(A, axis=1)", "cumsum(A, axis=1)"),
        ("tril(A, -1)", "tril(A, -1)"),
        ("argmax(A)", "argmax(A)"),
        ("median(x)", "sort(x)[..., 1]"),
        ("logical_and(x > 1, x < 2)", "logical_and(x > 1, x < 2)"),
    ],
)
def test_tensors(source, expected):
    inputs = {name: value for name, value in (("x", VECTOR), ("A", MATRIX)) if name in source.replace("max", "")}
    program = value_and_gradients(parse(source), inputs, (), rewrite=False).program
    assert text(optimise(program._replace(guards=()))) == expected


def test_what_was_put_back_at_an_index_is_the_derivative_of_the_index():
    (_, _), (program, gradient) = outputs_of("sum(x[[0, 2, 0]]**3)", {"x": VECTOR})
    source = text(program)
    assert source.splitlines()[-1].startswith("diff(sum(3*")
    again, value = read_again(source, {"x": VECTOR})
    np.testing.assert_array_equal(value, gradient)
    assert same(again, program)


def test_a_primitive_without_a_text_is_an_error_that_names_it():
    program = record(lambda x: [special.bessel_i(x, 3)], {"x": 0.5}).program
    with pytest.raises(DifferentiationError, match="'bessel_i' cannot be written as text"):
        text(program)


def test_every_primitive_has_a_text_or_is_known_to_have_none():
    without = {e.name for e in table.entries() if isinstance(e, Primitive) and not LANGUAGE.writes(e)}
    assert without == {"sort_by", "unsort_by", "eigenvectors", "orthonormal", "sinhc"} | {
        *(f"partial_of_{count}" for count in ("one", "two", "three", "four")),
        # Programs record its definition instead.
        "affine",
        # The selected elements are fixed when a program is recorded.
        *("cummax_positions", "cummin_positions"),
        *("fourier", "half_fourier", "inverse_half_fourier", "polynomial_roots"),
        # What the derivatives of Weierstrass's elliptic function are made of.
        *("eisenstein", "elliptic_p_prime", "theta_slope"),
        # What decompositions of complex matrices are made of.
        *("determinant_phase", "eigenbasis", "phased_right_vectors"),
    }


def test_deep_and_long_programs():
    def chain(x: Any) -> list[Any]:
        for _ in range(3000):
            x = exponential.exp(-x) + 1.0
        return [x]

    program = optimise(record(chain, {"x": 0.5}).program)
    source = text(program)
    assert gradcli.compile(source)(x=0.5) == results(program, [0.5])[0]
    assert "v10 = " in source


SPECIAL = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-310, 1e300, float("inf"), float("nan")])


def test_what_is_printed_reads_back_as_the_same_program():
    compared = []

    @settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        source=st.one_of(expressions(), expressions(scalar=True)),
        values=st.tuples(*[st.one_of(SPECIAL, st.just(0.7), st.just(VECTOR), st.just(MATRIX))] * len(NAMES)),
    )
    def check(source, values):
        inputs = dict(zip(NAMES, values))
        try:
            outputs = outputs_of(f"sum({source})", inputs)
        except GradcliError:
            return
        for program, expected in outputs:
            if arrays.dtype_name(expected) != "float64":
                continue
            try:
                written = text(program)
            except DifferentiationError:
                continue
            again, found = read_again(written, inputs)
            assert_same(found, expected)
            if not _differs(program):
                assert same(again, program), written
                compared.append(written)

    check()
    assert len(compared) > 30


def _differs(program: Program) -> bool:
    """Whether a program has primitives that are written as other functions with the same value: the variants of `norm`
    and `std` that are flat at 0, ranks, and powers with a constant exponent."""
    written_otherwise = {
        "one_minus_square",
        "over_one_plus_square",
        "sech_square",
        "digamma_rise",
        "flat_sqrt",
        "flat_root",
        "order_statistic",
    }
    for equation in program.equations:
        constant_power = equation.primitive is powers.general_power and not isinstance(equation.inputs[1], Variable)
        if equation.primitive.name in written_otherwise or constant_power:
            return True
    return False
