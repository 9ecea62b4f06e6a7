"""Recording a computation as a program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients
from gradcli.errors import NotRecordableError
from gradcli.evaluate.interpreter import evaluate
from gradcli.primitives import arithmetic, exponential
from gradcli.program.check import MalformedProgramError, check
from gradcli.program.ir import Equation, Program, Variable
from gradcli.program.record import Traced, record
from gradcli.syntax import parse

VECTOR = np.array([0.5, 1.5, 2.0])


def recorded(text: str, **inputs: Any) -> Traced:
    """The program for the value of `text` and its gradients."""
    program = parse(text)

    def value_and_gradients(**given: Any) -> list[Any]:
        leaves = {name: Tensor(value).requires_grad_() for name, value in given.items()}
        value = evaluate(program, leaves).value
        return [value, *gradients(value, list(leaves.values()))]

    return record(value_and_gradients, inputs)


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


def test_what_does_not_depend_on_an_input_is_a_constant():
    traced = record(lambda x: [exponential.log(np.array([1.0, 2.0])) + x], {"x": 1.0})
    assert names(traced.program) == ["add"]


def test_a_shortcut_is_taken_under_a_guard():
    assert names(recorded("prod(x)", x=VECTOR).program).count("divide") == 1
    assert recorded("prod(x)", x=VECTOR).program.guards
    assert not recorded("prod(x)", x=np.array([0.0, 1.0])).program.guards


@pytest.mark.parametrize("program", ["x if x > 0 else -x", "while x > 5 { x = x - 1 }; x", "range(3)[x]"])
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
