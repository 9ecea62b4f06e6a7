"""Estimates the rounding errors of a right side by a second evaluation in which all results are rounded in another
way."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import GOLDEN_RATIO
from gradcli.primitives.bind import bind
from gradcli.program.ir import Atom, Program, Variable

# Bound on the rounding of states within a step, in units in the last place.
_ROUNDED = 16


def rounded_otherwise(program: Program, inputs: Sequence[Any], states: int) -> list[Any]:
    """The outputs of a program, numbers or arrays, where `states` of the inputs after the first one, and the result of
    each operation, are changed by some units in the last place. The changes are irregular, as equal ones may cancel."""
    known: dict[Atom, Any] = dict(zip(program.inputs, inputs))
    changes = (1.0 + _ROUNDED * 2.0**-52 * (k * GOLDEN_RATIO % 1.0 - 0.5) for k in itertools.count(1))
    for state in program.inputs[1 : 1 + states]:
        known[state] = known[state] * next(changes)
    with arrays.using_namespace(None), arrays.quiet():
        for primitive, atoms, params, output in program.equations:
            result = bind(primitive, [known[a] if isinstance(a, Variable) else a for a in atoms], params)
            known[output] = result * next(changes) if output.dtype == "float64" else result
    return [known[o] if isinstance(o, Variable) else o for o in program.outputs]
