"""The worked examples of docs/architecture.md on array libraries: another function, and another library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.worked_examples import changed_copy, check_console, worked_examples

EXAMPLES = worked_examples()


def test_another_backend(tmp_path: Path) -> None:
    pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    example = EXAMPLES["How to add a backend"]
    check_console(example, changed_copy(tmp_path, example))


def test_another_function_on_every_backend(tmp_path: Path) -> None:
    copy = changed_copy(tmp_path, EXAMPLES["How to add a function"])

    def computed(options: str) -> tuple[str, Any]:
        record = json.loads(copy.run(f"gradcli eval 'sum(spence(x)*dilog(-x))' x='[0.3,1,2,50]' --json {options}"))
        return record["backend"], [record["value"], *record["grad"]["x"]]

    _, expected = computed("")
    for library in ("torch", "jax"):
        if library_is_there(library):
            for executor in ("eager", "compiled"):
                name, found = computed(f"--backend {library} --executor {executor}")
                assert name == library
                assert found == pytest.approx(expected, rel=1e-14)
    report = copy.python("-m", "pytest", "-q", "tests/backends", "-k", "spence or dilog")
    assert " passed" in report


def library_is_there(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True
