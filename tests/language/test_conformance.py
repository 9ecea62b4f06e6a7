"""Tests programs against the values and gradients that PyTorch computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli

CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "data/torch-float64.jsonl").read_text().splitlines()]


def numbers(value: Any) -> Any:
    """Nested lists of numbers, with the strings for nan and infinities converted."""
    if isinstance(value, list):
        return [numbers(v) for v in value]
    return float(value) if isinstance(value, str) else value


# Cases where PyTorch has nan although the derivative exists: xlogy(0, q) is 0 for every q.
BETTER = {"edge/316": {"q": 0.0}}


def assert_same(actual: Any, expected: Any, scale: float) -> None:
    """Assert equality to 1e-9, relative to the number or the largest number of the case, if that is larger."""
    if expected is None or actual is None:
        assert actual is None
        assert expected is None
        return
    expected = np.asarray(numbers(expected), dtype=float)
    assert np.shape(actual) == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-14 * scale)


@pytest.mark.all_cases
@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_value_and_gradients_are_those_of_pytorch(case: dict[str, Any]) -> None:
    program = gradcli.compile(case["program"])
    values = {name: numbers(v) for name, v in case["bindings"].items()}
    read = {name: v for name, v in values.items() if name in case["program"]}
    value, grads = program.value_and_grad(read, case.get("wrt"), numbers(case.get("grad_output")))
    finite = [abs(v) for v in np.ravel(numbers(case["value"])) if np.isfinite(v)]
    scale = max([1.0, *finite])
    assert_same(value, case["value"], scale)
    assert grads.keys() <= case["grad"].keys()
    for name, expected in (case["grad"] | BETTER.get(case["id"], {})).items():
        assert_same(grads.get(name), expected, scale)
