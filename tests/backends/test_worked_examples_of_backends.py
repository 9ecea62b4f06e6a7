"""The worked examples of docs/architecture.md on array libraries: another library."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worked_examples import changed_copy, check_console, worked_examples

EXAMPLES = worked_examples()


def test_another_backend(tmp_path: Path) -> None:
    pytest.importorskip("array_api_strict")
    example = EXAMPLES["How to add a backend"]
    check_console(example, changed_copy(tmp_path, example))
