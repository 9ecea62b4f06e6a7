"""Programs for PyTorch as people have typed them, in `tests/data/pytorch_code/networks`: with `gradcli` in place of `torch` each
gives the same numbers, from one seed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

PROGRAMS = sorted((Path(__file__).parent.parent / "data" / "pytorch_code" / "networks").glob("*.py"))
# `import torch.nn as nn`, `from torch import nn`, and `import torch` alone, by which the name stays.
_IMPORTED_AS = re.compile(r"^(\s*import )torch((?:\.\w+)+ as )", re.MULTILINE)
_IMPORTED_FROM = re.compile(r"^(\s*from )torch((?:\.\w+)* import )", re.MULTILINE)
_IMPORTED = re.compile(r"^(\s*import )torch$", re.MULTILINE)


def with_gradcli(source: str) -> str:
    source = _IMPORTED_AS.sub(r"\1gradcli\2", source)
    return _IMPORTED.sub(r"\1gradcli as torch", _IMPORTED_FROM.sub(r"\1gradcli\2", source))


def run(path: Path, library: Any) -> dict[str, Any]:
    """The numbers in the names of a program: tensors, numbers and lists of them, and the state of modules."""
    source = path.read_text()
    names: dict[str, Any] = {"__name__": "program"}
    library.manual_seed(0)
    text = source if library is torch else with_gradcli(source)
    assert ("gradcli" in text) is (library is gradcli)
    exec(compile(text, str(path), "exec"), names)
    return {name: found for name, value in names.items() if (found := numbers(value, library)) is not None}


def numbers(value: Any, library: Any) -> Any:
    if isinstance(value, library.Tensor):
        return value.detach().numpy()
    if isinstance(value, library.nn.Module):
        return {name: numbers(part, library) for name, part in value.state_dict().items()}
    if isinstance(value, (list, tuple)) and value:
        found = [numbers(part, library) for part in value]
        return found if all(part is not None for part in found) else None
    return value if isinstance(value, (bool, int, float)) else None


def same(one: Any, other: Any, name: str) -> None:
    if isinstance(other, dict):
        assert list(one) == list(other)
        for key in other:
            same(one[key], other[key], f"{name}.{key}")
    elif isinstance(other, list):
        assert len(one) == len(other), name
        for number, (x, y) in enumerate(zip(one, other)):
            same(x, y, f"{name}[{number}]")
    else:
        assert np.shape(one) == np.shape(other), name
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_gives_the_numbers_of_pytorch(path: Path, float64: None) -> None:
    expected = run(path, torch)
    found = run(path, gradcli)
    assert found.keys() == expected.keys()
    assert len(expected) > 3
    for name, value in expected.items():
        same(found[name], value, name)
