"""Programs that call an operator of PyTorch, with PyTorch's value and gradients, and how gradcli's are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gradcli

STORED = Path(__file__).parent / "data" / "operators.jsonl"
# Other algorithms for the same function, as for digamma and for matrices, agree to so much.
_RELATIVE, _ABSOLUTE = 1e-8, 1e-9


class Case(NamedTuple):
    """A program, its inputs, the weights of its elements in the gradient, and PyTorch's numbers.

    `gradients` are by the inputs to differentiate by; None is one that PyTorch does not have.
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
    """What differs from PyTorch's numbers, nothing where all are the same."""
    if not _same(value, case.value):
        return f"value {_short(value)}, right {_short(case.value)}"
    for name, right in case.gradients.items():
        found = gradients[name]
        # Where PyTorch has no gradient none is needed, or one of zeros.
        if not _same(
            0.0 * np.asarray(case.inputs[name]) if found is None else found,
            0.0 if right is None else right,
            right is None,
        ):
            return f"gradient by {name} {_short(found)}, right {_short(right)}"
    return ""


def _same(found: Any, right: Any, any_shape: bool = False) -> bool:
    found, right = np.asarray(found, float), np.asarray(right, float)
    if not any_shape and found.shape != right.shape:
        return False
    return np.allclose(found, right, _RELATIVE, _ABSOLUTE, equal_nan=True)


def _short(numbers: Any) -> str:
    return " ".join(f"{np.shape(numbers)} {numbers}".split())[:200]
