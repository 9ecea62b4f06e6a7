"""Tests samples of PyTorch's database of operators as programs; `python -m tests.operators --store` writes them."""

from __future__ import annotations

import pytest

from tests.operator_programs import Case, difference, outcome, stored


@pytest.mark.parametrize("case", stored(), ids=lambda case: case.program)
def test_an_operator_of_pytorch(case: Case):
    assert difference(case, *outcome(case)) == ""
