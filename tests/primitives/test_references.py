"""Tests the value of every function of the table against an independent reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gradcli.primitives import table
from gradcli.primitives.operation import Composite, Operation
from tests.primitives.test_primitives import CREATION, ENTRIES, WITHOUT_SAMPLES, Case, case_of, data
from tests.references import ELEMENTWISE, TENSORS, exactly
from tests.samples import several

POINTS = 40
ROUNDING = 1e-13
# Functions for which rounding of the operand alone changes the value by more.
CONDITION = {"matrix_exp": 10.0}

every_elementwise = several("entry", [e for e in ENTRIES if e.name in ELEMENTWISE], lambda e: e.name)


# Functions of complex numbers, which test_complex_numbers and test_elliptic_functions compare.
OF_COMPLEX = {
    *("complex", "polar", "conj", "conjugate", "real_part", "imaginary_part", "phase"),
    *("view_as_real", "view_as_complex"),
    *("elliptic_p", "elliptic_p_prime", "theta_slope", "eisenstein"),
}


def test_every_function_has_a_reference():
    known = {*ELEMENTWISE, *TENSORS, *WITHOUT_SAMPLES, *OF_COMPLEX}
    assert {e.name for e in ENTRIES} == known
    elementwise = {*table.subjects()["elementwise"], *table.subjects()["special"]}
    elementwise |= {e for e in ENTRIES if getattr(e, "elementwise", False)}
    assert {e.name for e in elementwise} - WITHOUT_SAMPLES - OF_COMPLEX <= ELEMENTWISE.keys()


def draw(name: str) -> list[np.ndarray]:
    """Points in the interior of each operand's interval, and near its ends."""
    random = np.random.default_rng(sum(map(ord, name)))
    drawn = []
    for low, high in ELEMENTWISE[name].domains:
        inside = random.uniform(low, high, POINTS - 8)
        ends = np.geomspace(1e-6, 1e-2, 4) * (high - low)
        drawn.append(random.permutation(np.concatenate([inside, low + ends, high - ends])))
    return drawn


@pytest.mark.cases(4)
@every_elementwise
def test_an_elementwise_function(entry: Operation):
    _, _, before, then = ELEMENTWISE[entry.name]
    points = draw(entry.name)
    expected = exactly(entry.name, points)
    found = data(entry(*before, *points, *then))
    np.testing.assert_allclose(found, expected, rtol=ROUNDING)
    for i in range(0, POINTS, 5):
        number = entry(*before, *(float(p[i]) for p in points), *then)
        assert math.isclose(number, expected[i], rel_tol=ROUNDING)


def reference_of(case: Case, sample: Any) -> Case:
    """The same sample, with the reference in place of the entry."""
    entry = case.entry
    return case_of(Composite(entry.name, entry.signature, entry.doc, TENSORS[entry.name], derivative="-"), sample)


SAMPLES = [(e, s) for e in ENTRIES if e.name in TENSORS for s in e.samples]


@several("sampled", SAMPLES, lambda sampled: sampled[0].name)
def test_a_function_of_tensors(sampled: tuple[Operation, Any]):
    entry, sample = sampled
    case = case_of(entry, sample)
    if case.entry in CREATION:
        arguments = sample if isinstance(sample, tuple) else (sample,)
        np.testing.assert_array_equal(data(case.entry(*arguments)), TENSORS[case.entry.name](*arguments))
        return
    reference = reference_of(case, sample)
    random = np.random.default_rng(len(case.operands))
    tolerance = ROUNDING * CONDITION.get(case.entry.name, 1.0)
    for spread in (0.0, 0.2, 0.2):
        points = [o * (1 + spread * random.uniform(-1, 1, np.shape(o))) for o in case.operands]
        np.testing.assert_allclose(data(case.call(*points)), reference.call(*points), rtol=tolerance, atol=1e-14)
