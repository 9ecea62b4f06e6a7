"""Tests pasted code: its value and gradients are those of the library that it was written for."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests import snippets
from tests.snippets import Snippet

# Tolerances for the library's own derivatives, and for differences.
EXACT, OF_DIFFERENCES = 1e-9, 1e-5
REFERENCES = json.loads(snippets.REFERENCES.read_text())
REFUSED = json.loads((snippets.DATA / "refused.json").read_text())


def cases(*libraries: str) -> Any:
    found = snippets.snippets(*libraries)
    return pytest.mark.parametrize("snippet", found, ids=[s.name for s in found])


def assert_same(found: Any, expected: dict[str, Any], tolerance: float) -> None:
    """Assert the same value and gradients: none where there is none, or 0 by differences and in JAX."""
    value = np.asarray(expected["value"], float)
    np.testing.assert_allclose(np.asarray(found["value"], float), value, EXACT, EXACT * np.max(np.abs(value)))
    for name, gradient in expected["grad"].items():
        if gradient is None:
            assert found["grad"][name] is None, name
            continue
        gradient = np.asarray(gradient, float)
        largest = max(np.max(np.abs(gradient)), 1e-6 * np.max(np.abs(value)))
        ours = np.zeros(gradient.shape) if found["grad"][name] is None else np.asarray(found["grad"][name], float)
        np.testing.assert_allclose(ours, gradient, tolerance, tolerance * largest, err_msg=name)


def tolerance(snippet: Snippet) -> float:
    return OF_DIFFERENCES if snippet.folder in snippets.BY_DIFFERENCES else EXACT


@pytest.mark.cases(4)
@cases("numpy", "torch", "jax", "python")
def test_a_snippet(run, snippet):
    expected = REFERENCES[snippet.name]
    shape = np.shape(expected["value"])
    weights = [f"--grad-output=ones({', '.join(map(str, shape))})"] if shape else []
    words = ["eval", "--file", str(snippet.path), "--vars", "-", "--json", *weights]
    outcome = run(*words, stdin=json.dumps(snippet.inputs))
    assert outcome.status == 0, outcome.err
    assert_same(outcome.json, expected, tolerance(snippet))


@cases(*snippets.BY_DIFFERENCES)
def test_the_references_are_what_python_computes(snippet):
    assert_same(snippets.reference(snippet), REFERENCES[snippet.name], tolerance(snippet))


def test_every_snippet_has_a_file_inputs_and_a_reference():
    files = {p.relative_to(snippets.DATA).with_suffix("").as_posix() for p in snippets.DATA.rglob("*.py")}
    assert files == json.loads(snippets.INPUTS.read_text()).keys() == REFERENCES.keys()


@pytest.mark.all_cases
@pytest.mark.parametrize("case", REFUSED, ids=[f"{i}-{c['refused']}" for i, c in enumerate(REFUSED)])
def test_what_is_refused_is_named_or_pointed_at(run, tmp_path, case):
    program = tmp_path / "program.txt"
    program.write_text(case["program"])
    outcome = run("eval", "--file", str(program), "--vars", "-", "--json", stdin=json.dumps(case["inputs"]))
    assert outcome.status != 0, outcome.out
    error = outcome.error
    line = case["program"].splitlines()[error["line"] - 1]
    named = case["refused"] in f"{error['message']} {error['hint']}"
    assert named or line[error["column"] - 1 :].startswith(case["refused"]), error
