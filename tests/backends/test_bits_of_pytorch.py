"""Bitwise operators of integers and truth values, and indices of true elements, are PyTorch's."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import gradcli

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

CASES = {
    "and": lambda m: m.tensor([5, 3]) & m.tensor([1, 2]),
    "or a number": lambda m: m.tensor([5, 3]) | 2,
    "a number xor": lambda m: 6 ^ m.tensor([5, 3]),
    "not": lambda m: ~m.tensor([5, -3]),
    "shifts": lambda m: (m.tensor([5, 3]) << 2) >> 1,
    "of one number": lambda m: m.tensor(6) & m.tensor(3),
    "of short integers": lambda m: m.tensor([200], dtype=m.uint8) ^ m.tensor([255], dtype=m.uint8),
    "of truth values": lambda m: (m.tensor([True, False]) | m.tensor([False, False])) ^ m.tensor([True, True]),
    "not of truth values": lambda m: ~m.tensor([True, False]),
    "truth values and integers": lambda m: m.tensor([True, False]) & m.tensor([3, 3]),
    "functions": lambda m: m.bitwise_or(m.bitwise_and(m.tensor([12]), 10), m.bitwise_left_shift(m.tensor([1]), 4)),
    "functions of one": lambda m: m.bitwise_right_shift(m.bitwise_xor(m.bitwise_not(m.tensor([12])), 5), 1),
    "where of a matrix": lambda m: m.stack(m.where(m.tensor([[1.0, 0.0], [2.0, 3.0]]) > 0)),
    "where chooses": lambda m: m.where(m.tensor([True, False]), m.tensor([1, 2]), m.tensor([3, 4])),
    "special": lambda m: (
        m.special.expit(m.tensor([0.5], dtype=m.float64)) > m.special.erf(m.tensor([0.6], dtype=m.float64))
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_dtypes(name: str) -> None:
    found, expected = CASES[name](gradcli), CASES[name](torch)
    assert found.tolist() == expected.tolist()
    assert str(found.dtype) == str(expected.dtype).removeprefix("torch.")


@pytest.mark.parametrize("operation", [lambda x: x & 1, lambda x: ~x, lambda x: x << 1])
def test_floats_are_refused(operation) -> None:
    with pytest.raises((NotImplementedError, TypeError)):
        operation(torch.tensor([1.5]))
    with pytest.raises(gradcli.GradcliError, match="for tensors of truth values or integers"):
        operation(gradcli.tensor([1.5]))


def test_numbers_and_arrays_stay_what_they_are() -> None:
    assert gradcli.bitwise_and(12, 10) == 8
    assert type(gradcli.bitwise_xor(12, 10)) is int
    assert gradcli.bitwise_or(np.array([1, 2]), 4).tolist() == [5, 6]
    with pytest.raises(gradcli.GradcliError, match="for tensors of truth values or integers"):
        gradcli.bitwise_left_shift(True, True)


def test_bits_inside_of_a_recorded_program_are_refused() -> None:
    compiled = gradcli.compile(lambda x: (x.long() & 1).sum() * x.sum())
    assert compiled.value_and_grad({"x": [1.0, 2.0, 3.0]})[0] == 12.0


def test_special_has_no_other_names() -> None:
    module = import_module("gradcli.special")
    with pytest.raises(AttributeError, match=r"module 'gradcli\.special' has no attribute"):
        module.nothing_of_the_kind  # noqa: B018
