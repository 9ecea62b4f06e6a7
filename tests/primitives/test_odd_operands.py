"""Tests every function of the table with edge values and invalid operands: a value or a GradcliError, without
warnings."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import tensor
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.primitives import table
from tests.samples import several

OPERATIONS = [o for operations in table.subjects().values() for o in operations]
EDGES = (np.inf, -np.inf, np.nan, 1e308, 5e-324, 0.0, -1.0)


def replaced(operation: Any, make: Any) -> list[list[Any]]:
    """The arguments of its samples, with one of them at a time replaced by `make`."""
    found = []
    for sample in operation.samples[:3]:
        arguments = sample if isinstance(sample, tuple) else (sample,)
        for i, argument in enumerate(arguments):
            # A list of tensors of different shapes is not an array; complex samples are no array of floats.
            with suppress(ValueError, TypeError):
                found.append([*arguments[:i], make(np.array(argument, float)), *arguments[i + 1 :]])
    return found


@several("operation", OPERATIONS, lambda o: o.name)
def test_an_edge_makes_no_library_warn(operation):
    for edge in EDGES:
        for arguments in replaced(operation, lambda a: np.full_like(a, edge)):  # noqa: B023 - called here
            with suppress(GradcliError):
                operation(*arguments)


@several("operation", OPERATIONS, lambda o: o.name)
def test_truth_values_are_numbers_or_an_error(operation):
    for make in (lambda a: a > 0.6, lambda a: bool((a > 0.6).ravel()[0]), lambda a: Tensor(a > 0.6)):
        for arguments in replaced(operation, make):
            with suppress(GradcliError):
                operation(*arguments)


def is_of_floats(argument: Any) -> bool:
    # A list of tensors of different shapes is not an array.
    with suppress(ValueError):
        return not isinstance(argument, Tensor) and np.asarray(argument).dtype == float
    return False


@several("operation", OPERATIONS, lambda o: o.name)
def test_gradients_beside_truth_values_are_numbers_or_an_error(operation):
    for arguments in replaced(operation, lambda a: a > 0.6):
        beside = [tensor(a, requires_grad=True) if is_of_floats(a) else a for a in arguments]
        with suppress(GradcliError):
            value = operation(*beside)
            if isinstance(value, Tensor) and value.requires_grad:
                value.sum().backward()


def outcome(program: str) -> str:
    """The value of a program, or its error."""
    try:
        return str(gradcli.compile(program)())
    except GradcliError as error:
        return error.report()


@pytest.mark.cases(1)
@pytest.mark.parametrize("text", ["None", "'a'", "qr([[1]])"])
def test_a_program_gives_no_function_what_is_no_number(text):
    for operation in OPERATIONS:
        needed = [p for p in operation.parameters if p.default is None and not p.variadic]
        for parameter in operation.parameters:
            given = {p.name: "[[2, 1], [1, 2]]" for p in needed} | {parameter.name: text}
            program = f"{operation.name}({', '.join(f'{name}={value}' for name, value in given.items())})"
            assert "NoneType" not in outcome(program), program


@pytest.mark.parametrize(
    "matrix", [[[np.nan, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, np.inf]], [[0.0, 0.0], [np.nan, 0.0]]]
)
def test_a_matrix_that_is_not_finite_has_no_determinant_of_zero(matrix):
    # LAPACK stops at a pivot of 0.
    singular = [[1.0, 2.0], [2.0, 4.0]]
    np.testing.assert_array_equal(gradcli.det(np.array([matrix, singular])), [np.nan, 0.0])
    _sign, logarithm = gradcli.slogdet(np.array([matrix, singular]))
    np.testing.assert_array_equal(logarithm, [np.nan, -np.inf])


@pytest.mark.parametrize("place", [(0, 0), (1, 0), (1, 1)])
def test_a_matrix_with_nan_has_no_sign_of_the_determinant(place):
    """It was 1: LAPACK has one."""
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    matrix[place] = np.nan
    np.testing.assert_array_equal(gradcli.slogdet(matrix), [np.nan, np.nan])


def test_attention_over_no_columns_has_none():
    nothing = np.zeros((2, 0))
    assert gradcli.scaled_dot_product_attention(nothing, nothing, nothing).shape == (2, 0)
