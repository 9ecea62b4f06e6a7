"""Keeping what was not taken out of a gradient.

A primitive that selects (`where`, `maximum`, `clip`, an index, …) sends cotangents that are 0
where an element was not taken. Such a 0 means "no gradient": an inf or nan in the derivative of
what was not taken must not turn it into nan. Zeros that are merely computed are left alone.
"""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.primitives.arithmetic import equal, where, zeros_like
from gradcli.primitives.axes import concrete


def drop_untaken(cotangent: Any, pulled: list[Any], elementwise: bool) -> list[Any]:
    """`pulled`, the operands' cotangents of an operation, with 0 wherever `cotangent` is 0.

    Only cotangents that are not finite need it. Where the operation is not elementwise, it can
    be said only of a `cotangent` that is 0 everywhere.
    """
    if all(p is None or arrays.all_finite(concrete(p)) for p in pulled):
        return pulled
    if arrays.all_zero(concrete(cotangent)):
        return [None if p is None else zeros_like(p) for p in pulled]
    if not elementwise:
        return pulled
    return [_masked(cotangent, p) for p in pulled]


def _masked(cotangent: Any, pulled: Any) -> Any:
    if pulled is None or arrays.shape(pulled) != arrays.shape(cotangent):
        return pulled
    return where(equal(concrete(cotangent), 0), 0.0, pulled)
