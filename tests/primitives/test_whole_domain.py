"""Tests values and first derivatives of every elementwise function, from the smallest number to the largest."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

import gradcli
from tests.samples import several
from tests.whole_domain import DATA, Case, cases

# Tolerance of elementary functions, in units in the last place.
ULPS = 4
# Relative tolerance of special functions, multiplied by 1 plus their condition number.
RELATIVE = 1e-13
# A product with a factor this small has fewer digits.
SMALLEST = 1e-320

Numbers = Sequence[float]

EXACT: dict[str, list[list[float | None]]] = json.loads(DATA.read_text())
CASES = {case.program: case for case in cases()}


def one_by_one(case: Case, compiled: Callable[[], gradcli.CompiledProgram]) -> Iterable[Numbers]:
    for point in case.points:
        program = compiled()
        given = {n: x for n, x in zip(case.names, point) if n in program.inputs}
        value, gradient = program.value_and_grad(given)
        yield [value, *(gradient.get(n, 0.0) for n in case.names)]


def eager(case: Case) -> Iterable[Numbers]:
    return one_by_one(case, lambda: gradcli.compile(case.program))


def compiled(case: Case) -> Iterable[Numbers]:
    program = gradcli.compile(case.program)
    return one_by_one(case, lambda: program)


def in_arrays(case: Case, times: int) -> Iterable[Numbers]:
    """At all points at once, in the last of several runs: the first is eager, and the third compiled."""
    program = gradcli.compile(case.program)
    given = {n: np.array(x) for n, x in zip(case.names, zip(*case.points)) if n in program.inputs}
    for _ in range(times):
        value, gradient = program.value_and_grad(given, grad_output=np.ones(len(case.points)))
    nothing = np.zeros(len(case.points))
    return zip(value, *(gradient.get(n, nothing) for n in case.names))


PATHS = {
    "eager": eager,
    "compiled": compiled,
    "eager arrays": lambda case: in_arrays(case, 1),
    "compiled arrays": lambda case: in_arrays(case, 3),
}


def is_right(found: Any, exact: float | None, condition: float | None) -> bool:
    """Whether a number is within the tolerance; one near the largest float may be infinite."""
    if exact is None or found == exact:
        return True
    if math.isinf(exact):
        return abs(found) > 1.797e308 and (found > 0) == (exact > 0)
    tolerance = ULPS * math.ulp(exact)
    if condition is not None:
        tolerance = max(tolerance, RELATIVE * (1 + condition) * abs(exact), SMALLEST)
    return abs(found - exact) <= tolerance


# The first run of a compiled program is eager too.
@pytest.mark.cases(4)
@pytest.mark.parametrize("path", PATHS)
@several("case", [CASES[program] for program in EXACT], lambda case: case.program)
def test_the_digits_of_a_function(case, path):
    wrong = []
    for point, row, numbers in zip(case.points, EXACT[case.program], PATHS[path](case), strict=True):
        count = 1 + len(point)
        conditions = row[count:] if case.special else [None] * count
        for which, (found, expected, condition) in enumerate(zip(numbers, row, conditions)):
            found = 0.0 if found is None else float(found)
            if not is_right(found, expected, condition):
                wrong.append((("value", *case.names)[which], point, expected, found))
    assert wrong == []


def test_every_function_is_compared():
    assert [*CASES] == [*EXACT], "python -m tests.whole_domain writes the exact values"
    assert all(len(case.points) == len(EXACT[program]) for program, case in CASES.items())
