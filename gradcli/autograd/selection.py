"""Keeping what was not taken out of a gradient.

A primitive that selects (`where`, `maximum`, `clip`, an index, …) sends cotangents that are 0
where an element was not taken. Such a 0 means "no gradient": an inf or nan in the derivative of
what was not taken must not turn it into nan. Zeros that are merely computed are left alone.
"""

from __future__ import annotations

from typing import Any

from gradcli.primitives.arithmetic import isfinite, logical_or, not_equal, where
from gradcli.primitives.bind import assume, constant
from gradcli.primitives.reductions import any_


def drop_untaken(cotangent: Any, pulled: Any, elementwise: bool) -> Any:
    """`pulled`, an operand's cotangent before it is summed to the operand's shape, with 0 for every
    inf and nan where `cotangent`, that of the result, is 0.

    What is finite stays: it is 0 too, but its own derivative need not be. Where the operation is
    not elementwise, it can be said only of a `cotangent` that is 0 everywhere.
    """
    finite = isfinite(constant(pulled))
    if assume(finite):
        return pulled
    taken = not_equal(constant(cotangent), 0)
    if not elementwise:
        taken = any_(taken)
    return where(logical_or(finite, taken), pulled, 0.0)
