"""Tests programs written for HIPS autograd and for JAX, with only the name of the library in the imports changed."""

from __future__ import annotations

import json

import pytest

from tests.peer_programs import EXPECTED, assert_same, found_by, programs

FOUND = json.loads(EXPECTED.read_text(encoding="utf-8"))
# Minimisers and iterations that stop by a tolerance may end at slightly different points.
TOLERANCE = 1e-7


@pytest.mark.parametrize(
    ("library", "stand_in", "program"),
    [pytest.param(*case, id=f"{case[0]}-{case[2].stem}") for case in programs()],
)
def test_a_program_finds_what_it_finds_on_its_library(library, stand_in, program):
    assert_same(found_by(program, library, stand_in), FOUND[library][program.stem], TOLERANCE)
