"""The conformance programs on every backend: the numbers of PyTorch's autograd, to 1e-9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_conformance import CASES, assert_same, numbers

import gradcli
from gradcli import arrays

# The strict library has no arithmetic of truth values, which the rule of `multiply` uses.
_TRUTHS = "(x<y)*x"


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_value_and_gradients(case: dict[str, Any], xp: Any) -> None:
    if xp.name == "standard" and _TRUTHS in case["program"]:
        pytest.skip("truth values are no numbers there")
    program = gradcli.compile(case["program"])
    given = {name: xp.asarray(numbers(v), "float64") for name, v in case["bindings"].items()}
    read = {name: v for name, v in given.items() if name in case["program"]}
    value, grads = program.value_and_grad(read, case.get("wrt"), numbers(case.get("grad_output")))
    assert xp.owns(value)
    finite = [abs(v) for v in np.ravel(numbers(case["value"])) if np.isfinite(v)]
    scale = max([1.0, *finite])
    assert_same(arrays.on_host(value), case["value"], scale)
    assert grads.keys() <= case["grad"].keys()
    for name, expected in case["grad"].items():
        found = grads.get(name)
        assert found is None or xp.owns(found)
        assert_same(None if found is None else arrays.on_host(found), expected, scale)
