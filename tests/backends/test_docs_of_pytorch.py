"""What the pages of docs/ show of PyTorch is what it prints; what they show of gradcli is in tests/project/test_docs.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.test_docs import WITH_PYTORCH, check_sessions, sessions


def test_there_is_such_a_page() -> None:
    assert [page.name for page in WITH_PYTORCH] == ["coming-from-pytorch.md"]


# PyTorch's own, of its rules for series.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
@pytest.mark.parametrize("page", WITH_PYTORCH, ids=lambda page: page.name)
def test_the_sessions_with_pytorch_are_true(page: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    check_sessions(page, sessions(page, of_pytorch=True))
