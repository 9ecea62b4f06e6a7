"""Programs that call one operator of PyTorch, with PyTorch's value and gradients, and their comparison with
gradcli's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gradcli

STORED = Path(__file__).parent / "data" / "operators.jsonl"
# Different algorithms for the same function, such as digamma or matrix functions, agree to this tolerance.
_RELATIVE, _ABSOLUTE = 1e-8, 1e-9


class Case(NamedTuple):
    """A program, its inputs, the weights of the output elements in the gradient, and PyTorch's results.

    `gradients` are those by the inputs to differentiate by; None where PyTorch has none.
    """

    program: str
    inputs: dict[str, Any]
    weights: Any
    value: Any
    gradients: dict[str, Any]

    def text(self) -> str:
        """The case as a line of JSON."""
        return json.dumps({name: _plain(part) for name, part in self._asdict().items()})


def _plain(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _plain(value) for name, value in part.items()}
    return part.tolist() if isinstance(part, np.ndarray) else part


def stored() -> list[Case]:
    return [Case(**json.loads(line)) for line in STORED.read_text().splitlines()]


def outcome(case: Case) -> tuple[Any, dict[str, Any]]:
    """gradcli's value and gradients."""
    compiled = gradcli.compile(case.program)
    return compiled.value_and_grad(case.inputs, [*case.gradients], np.asarray(case.weights))


def difference(case: Case, value: Any, gradients: dict[str, Any]) -> str:
    """The difference from PyTorch's results as text; empty if there is none."""
    if not _same(value, case.value):
        return f"value {_short(value)}, right {_short(case.value)}"
    for name, right in case.gradients.items():
        found = gradients[name]
        # Where PyTorch has no gradient, none or zeros are accepted.
        if not _same(
            0.0 * np.asarray(case.inputs[name]) if found is None else found,
            0.0 if right is None else right,
            right is None,
        ):
            return f"gradient by {name} {_short(found)}, right {_short(right)}"
    return ""


def _same(found: Any, right: Any, any_shape: bool = False) -> bool:
    found, right = np.asarray(found), np.asarray(right)
    dtype = complex if "c" in found.dtype.kind + right.dtype.kind else float
    found, right = found.astype(dtype), right.astype(dtype)
    if not any_shape and found.shape != right.shape:
        return False
    return np.allclose(found, right, _RELATIVE, _ABSOLUTE, equal_nan=True)


def _short(numbers: Any) -> str:
    return " ".join(f"{np.shape(numbers)} {numbers}".split())[:200]
