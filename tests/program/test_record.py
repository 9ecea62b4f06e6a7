"""Tests recording a computation as a program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcli.errors import NotRecordableError
from gradcli.evaluation.derivative_traces import Trace, value_and_gradients
from gradcli.language.syntax import parse
from gradcli.primitives.entries import arithmetic, exponential
from gradcli.program.ir import Equation, MalformedProgramError, Program, Variable, check
from gradcli.program.record import record

VECTOR = np.array([0.5, 1.5, 2.0])


def recorded(text: str, **inputs: Any) -> Trace:
    """The program for the value of `text` and its gradients."""
    return value_and_gradients(parse(text), inputs, tuple(inputs))


def names(program: Program) -> list[str]:
    return [e.primitive.name for e in program.equations]


def test_a_computation_becomes_equations():
    traced = record(lambda x, q: [exponential.log(x) * q], {"x": 2.0, "q": 3.0})
    x, q = traced.program.inputs
    first, second = traced.program.equations
    assert (x.name, q.name) == ("x", "q")
    assert first == (exponential.log, (x,), {}, first.output)
    assert second == (arithmetic.multiply, (first.output, q), {}, second.output)
    assert traced.program.outputs == (second.output,)
    assert traced.values == (3.0 * np.log(2.0),)


def test_gradients_are_recorded_with_the_value():
    traced = recorded("sum(x**3)", x=VECTOR)
    assert traced.values[0] == (VECTOR**3).sum()
    np.testing.assert_allclose(traced.values[1], 3 * VECTOR**2)
    assert [v.shape for v in traced.program.outputs] == [(), (3,)]


def test_a_gradient_is_an_output_or_none():
    trace = value_and_gradients(parse("x**3 + detach(q)"), {"x": 2.0, "q": 1.0}, ("x", "q"))
    assert trace.positions == {"x": 1, "q": None}
    assert trace.values == (9.0, 12.0)


def test_derivatives_inside_a_program_are_recorded():
    trace = value_and_gradients(parse("diff(x**3, x)*q"), {"x": 2.0, "q": 5.0}, ("q",))
    assert trace.values == (60.0, 12.0)


def test_a_cotangent_weights_a_value_that_is_no_scalar():
    trace = value_and_gradients(parse("x**2"), {"x": VECTOR}, ("x",), cotangent=np.array([1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(trace.values[1], [1.0, 0.0, 8.0])


def test_what_does_not_depend_on_an_input_is_a_constant():
    traced = record(lambda x: [exponential.log(np.array([1.0, 2.0])) + x], {"x": 1.0})
    assert names(traced.program) == ["add"]


def test_a_shortcut_is_taken_under_a_guard():
    assert names(recorded("prod(x)", x=VECTOR).program).count("divide") == 1
    assert recorded("prod(x)", x=VECTOR).program.guards
    # For other products a guard states that they do not overflow on the way.
    assert names(recorded("prod(x)", x=np.array([0.0, 1.0])).program).count("divide") == 0


@pytest.mark.parametrize("program", ["x if x > 0 else -x", "range(3)[x]"])
def test_what_depends_on_the_numbers_is_not_recorded(program):
    with pytest.raises(NotRecordableError, match="depends on the numbers"):
        recorded(program, x=1.0)


def test_the_checker_finds_what_cannot_be():
    x, y = Variable((), "float64", "x"), Variable((), "float64")
    log_x = Equation(exponential.log, (x,), {}, y)
    assert check(Program((x,), (log_x,), (y,)))
    for inputs, equations, outputs in [
        ((), (log_x,), (y,)),
        ((x,), (), (y,)),
        ((x, x), (log_x,), (y,)),
        ((x,), (log_x, log_x), (y,)),
        ((x,), (Equation(exponential.log, (y,), {}, y),), (y,)),
        ((x,), (Equation(exponential.log, ("x",), {}, y),), (y,)),
    ]:
        with pytest.raises(MalformedProgramError):
            check(Program(inputs, equations, outputs))
