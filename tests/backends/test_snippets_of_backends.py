"""The references of the snippets are what PyTorch and JAX compute, where they are installed."""

from __future__ import annotations

import pytest

from tests import snippets
from tests.language.test_snippets import REFERENCES, assert_same, cases, tolerance


# The references are data: a sample shows whether a new version of a library computes others.
@cases("torch", "jax")
def test_the_references_are_what_the_library_computes(snippet):
    pytest.importorskip(snippet.folder, reason=f"{snippet.folder} is not installed")
    assert_same(snippets.reference(snippet), REFERENCES[snippet.name], tolerance(snippet))
