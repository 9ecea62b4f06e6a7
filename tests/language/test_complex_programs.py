"""Tests random programs of complex numbers in every way that they can be run, beside mpmath: see tests/fuzz/complex_modes.py."""

from __future__ import annotations

import itertools

import pytest

from gradcli.primitives.entries.elementwise.trigonometric import sin
from gradcli.primitives.entries.exponential import exp, sigmoid
from tests.fuzz import complex_modes
from tests.fuzz.complex_modes import WAYS, beside_pytorch, differences, trial
from tests.wrong_rules import replace_vjp

# PyTorch's part is in backends/test_complex_of_pytorch.py.
OTHER_WAYS = {name: way for name, way in WAYS.items() if way is not beside_pytorch}


@pytest.mark.cases(1)
@pytest.mark.parametrize("first", range(0, 8, 4))
@pytest.mark.filterwarnings("ignore")
def test_all_ways_have_the_numbers_of_mpmath(first):
    for i in range(first, first + 4):
        current = trial(0, i)
        if current is not None:
            found = [*differences(current, OTHER_WAYS)]
            assert not found, (i, current.text, current.words(), found)


def test_most_programs_are_compared():
    """The test above would also pass if no program had a value."""
    trials = [trial(2, i) for i in range(60)]
    assert sum(t is not None for t in trials) > 50
    assert len({t.text for t in trials if t is not None}) > 45


def _found(word: str, way: str) -> set[str]:
    """The ways that differ for the first programs that call a function."""
    trials = (t for i in range(500) if (t := trial(0, i)) is not None and t.program.calls(word))
    ways = {way: getattr(complex_modes, way)}
    return {d.way for t in itertools.islice(trials, 5) for d in differences(t, ways)}


@pytest.mark.slow
def test_a_wrong_derivative_is_found(monkeypatch):
    replace_vjp(monkeypatch, sin, lambda g, _y, x: g * 1.001)
    assert "eval" in _found("sin", "gradients_of_eval")


@pytest.mark.slow
def test_a_wrong_series_is_found(monkeypatch):
    monkeypatch.setattr(exp, "jet", sigmoid.jet)
    assert "func.jvp" in _found("euler", "forward_mode")
