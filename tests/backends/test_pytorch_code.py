"""Code of PyTorch's tutorials and of its users, as it stands but for the name of the library, beside PyTorch's numbers.

Each file is run twice, with the same seed and in double precision: what it prints and the variables that it leaves are the
same.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import gradcli

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

FOLDER = Path(__file__).parents[1] / "data" / "pytorch_code"
FILES = sorted(FOLDER.glob("*.py"))
IMPORT = re.compile(r"^(\s*)(import|from) torch\b(?!\S*\.utils\.data)", re.MULTILINE)
NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[-+]?\d+)?|\binf\b|\bnan\b)")
# Code in single precision goes on from sums that are added up in another order.
CLOSE = 2e-5


def here(code):
    """The code with gradcli in the place of PyTorch."""
    code = re.sub(r"^(\s*)import torch$", r"\1import gradcli as torch", code, flags=re.MULTILINE)
    code = re.sub(r"^(\s*)import torch\.(\S+) as ", r"\1import gradcli.\2 as ", code, flags=re.MULTILINE)
    return re.sub(r"^(\s*)from torch\b", r"\1from gradcli", code, flags=re.MULTILINE)


def run_code(code, library):
    """What code prints, and the variables that it leaves."""
    library.manual_seed(1)
    printed = []
    names = {"__name__": "__main__", "print": lambda *words, **_: printed.append(" ".join(map(text, words)))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, "<code>", "exec"), names)
    return printed, names


def text(value):
    return str(plain(value)) if isinstance(value, (torch.Tensor, gradcli.Tensor)) else str(value)


def plain(value):
    """A tensor as nested lists."""
    return value.detach().tolist()


def comparable(value):
    """Whether a variable has numbers to compare."""
    return isinstance(value, (torch.Tensor, gradcli.Tensor, float, int)) or (
        isinstance(value, (list, tuple, dict)) and len(value) < 10_000 and all(map(comparable, items(value)))
    )


def items(value):
    return list(value.values()) if isinstance(value, dict) else list(value)


def assert_close(found, expected, name):
    largest = np.max(np.abs(np.nan_to_num(expected, posinf=0, neginf=0)), initial=0.0)
    # What is 0 to rounding is another small number in each.
    np.testing.assert_allclose(found, expected, CLOSE, max(CLOSE * largest, 1e-8), err_msg=name)


def assert_alike(found, expected, name):
    if isinstance(expected, (list, tuple, dict)):
        assert len(found) == len(expected), name
        for one, other in zip(items(found), items(expected)):
            assert_alike(one, other, name)
    elif isinstance(expected, torch.Tensor):
        assert tuple(expected.shape) == found.shape, name
        assert f"torch.{found.dtype}" == str(expected.dtype), name
        assert found.requires_grad == expected.requires_grad, name
        assert_close(plain(found), plain(expected), name)
        if expected.is_leaf and expected.grad is not None:
            assert_alike(found.grad, expected.grad, f"{name}.grad")
    else:
        assert_close(float(found), float(expected), name)


@pytest.mark.cases(40)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_code_of_pytorch(file):
    code = file.read_text(encoding="utf-8")
    torch.set_default_dtype(torch.float64)
    try:
        expected_text, expected = run_code(code, torch)
    finally:
        torch.set_default_dtype(torch.float32)
    found_text, found = run_code(here(code), gradcli)
    assert len(found_text) == len(expected_text)
    for one, other in zip(found_text, expected_text):
        assert NUMBER.sub("#", one).replace("gradcli", "torch") == NUMBER.sub("#", other)
        numbers = [[float(n) for n in NUMBER.findall(line)] for line in (one, other)]
        assert_close(*numbers, other)
    compared = [name for name, value in expected.items() if not name.startswith("_") and comparable(value)]
    assert compared
    for name in compared:
        assert_alike(found[name], expected[name], name)
