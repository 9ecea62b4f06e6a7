"""The i-th program of a seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from tests.fuzz import attacks, derivations, mutations
from tests.fuzz.case import Case
from tests.fuzz.complex_programs import complex_program
from tests.fuzz.writer import Writer

# What of two hundred programs are attacks, derivations of the grammar, written to have a value, from the corpus;
# the others are spoilt.
_ATTACKS, _DERIVED, _WRITTEN, _FROM_CORPUS = 1, 16, 110, 126
# Beside them, one program of so many is of complex numbers.
_OF_COMPLEX = 12


def program(seed: int, i: int, cases: Sequence[Case]) -> Case:
    """A program that depends on `seed` and `i` and on the corpus alone."""
    if Random(f"is complex/{seed}/{i}").randrange(_OF_COMPLEX) == 0:
        written = complex_program(seed, i)
        inputs = {name: value.tolist() if np.ndim(value) else value for name, value in written.inputs.items()}
        return Case(written.text(readout=i % 2 == 0), inputs, i)
    rng = Random(f"{seed}/{i}")
    roll = rng.randrange(200)
    if roll < _ATTACKS:
        return attacks.attack(rng)
    if roll < _DERIVED:
        return derivations.derived(rng)
    if roll < _WRITTEN:
        return Writer(rng).case()
    if roll < _FROM_CORPUS:
        return mutations.from_corpus(rng, cases)
    roots = rng.random()
    if roots < 0.1:
        root = derivations.derived(rng)
    elif roots < 0.5:
        root = Writer(rng).case()
    else:
        root = mutations.drawn(rng, cases)
    return mutations.mutated(root, rng, cases)
