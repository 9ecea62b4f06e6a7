"""The i-th program of a seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.fuzz import attacks, derivations, mutations
from tests.fuzz.case import Case
from tests.fuzz.writer import Writer

# What of two hundred programs are attacks, derivations of the grammar, written to have a value, from the corpus;
# the others are spoilt.
_ATTACKS, _DERIVED, _WRITTEN, _FROM_CORPUS = 1, 16, 110, 126


def program(seed: int, i: int, cases: Sequence[Case]) -> Case:
    """A program that depends on `seed` and `i` and on the corpus alone."""
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
