"""Keeping what was not taken out of a gradient.

A primitive that selects (`where`, `maximum`, `clip`, an index, …) sends cotangents that are 0
where an element was not taken. Such a 0 means "no gradient": an inf or nan in the derivative of
what was not taken must not turn it into nan. Zeros that are merely computed are left alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.autograd.saved import ShapeOnly
from gradcli.primitives.arithmetic import ones_like
from gradcli.primitives.bind import Params, assume, components, constant
from gradcli.primitives.comparisons import equal, isfinite, logical_and, logical_not, logical_or, not_equal, where
from gradcli.primitives.primitive import Primitive
from gradcli.primitives.reductions import any_


def _everywhere(condition: Callable[[Any], Any], value: Any) -> Any:
    """Where a condition holds for a value and the derivatives that it carries along."""
    return functools.reduce(logical_and, map(condition, components(value)))


def _taken(cotangent: Any) -> Any:
    return logical_not(_everywhere(_is_zero, cotangent))


def _is_zero(value: Any) -> Any:
    return equal(value, 0)


def drop_untaken(
    primitive: Primitive, i: int, cotangent: Any, pulled: Any, result: Any, operands: Sequence[Any], params: Params
) -> Any:
    """`pulled`, the cotangent of operand `i` before it is summed to the operand's shape, with 0 for
    every inf and nan that comes from zeros in `cotangent` alone.

    What is finite stays: it is 0 too, but its own derivative need not be.
    """
    finite = _everywhere(isfinite, pulled)
    if assume(finite):
        return pulled
    if primitive.multilinear:
        return _drop_untaken_products(primitive.rule(i), cotangent, pulled, result, operands, params)
    taken = _taken(cotangent)
    if primitive.reach is not None:
        taken = primitive.reach(taken, **params)
    elif not primitive.elementwise:
        taken = any_(taken)
    return where(logical_or(finite, taken), pulled, 0.0)


def drop_if_untaken(cotangent: Any, pulled: Any) -> Any:
    """`pulled`, with 0 for every inf and nan where `cotangent` is 0 everywhere."""
    finite = _everywhere(isfinite, pulled)
    taken = any_(_taken(cotangent))
    return pulled if assume(finite) else where(logical_or(finite, taken), pulled, 0.0)


def _drop_untaken_products(
    rule: Any, cotangent: Any, pulled: Any, result: Any, operands: Sequence[Any], params: Params
) -> Any:
    """Where no product that was taken has a factor that is inf or nan, the sum of those without one."""

    def summed(cotangent: Any, factor: Callable[[Any], Any]) -> Any:
        # An operand of which backward needs the shape alone is no factor.
        factors = [o if isinstance(o, ShapeOnly) else factor(o) for o in operands]
        return rule(cotangent, result, *factors, **params)

    taken = where(_taken(cotangent), 1.0, 0.0)
    all_taken = summed(taken, lambda o: ones_like(constant(o)))
    finite_taken = summed(taken, lambda o: where(_everywhere(isfinite, o), 1.0, 0.0))
    finite_sum = summed(cotangent, lambda o: where(_everywhere(isfinite, o), o, 0.0))
    return where(not_equal(all_taken, finite_taken), pulled, finite_sum)
