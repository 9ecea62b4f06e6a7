"""Keeping what was not taken out of a gradient.

A primitive that selects (`where`, `maximum`, `clip`, an index, …) sends cotangents that are 0
where an element was not taken. Such a 0 means "no gradient": an inf or nan in the derivative of
what was not taken must not turn it into nan. Zeros that are merely computed are left alone: where
some come to what selects, a mask of what was taken goes along with the cotangents from there on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.constants import is_exact
from gradcli.autograd.node import Node
from gradcli.autograd.saved import ShapeOnly
from gradcli.primitives.arithmetic import ones_like
from gradcli.primitives.bind import Kind, Params, assume, components, constant
from gradcli.primitives.comparisons import equal, isfinite, logical_and, logical_not, logical_or, not_equal, where
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.families import predicate
from gradcli.primitives.primitive import Primitive
from gradcli.primitives.reductions import any_
from gradcli.primitives.scans import sort
from gradcli.primitives.series import linear


class Untaken(dict[Node, Any]):
    """The nodes of a pass whose cotangents hold zeros that mean "not taken", each with the mask of what was taken: None
    where no others were computed, True where all were."""

    def meet(self, target: Node, mask: Any, arrived: Sequence[Any] | None) -> None:
        """Take note of a cotangent on its way to `target`, of which `mask` was taken, after those that `arrived`."""
        if target.outputs > 1:
            # A mask would have to be that of one output.
            self[target] = None
            return
        # Of what arrived before any zero of that meaning came, all was taken.
        known = self.get(target, True if arrived and arrived[0] is not None else None)
        if known is None or mask is True:
            self[target] = mask
        elif mask is not None and known is not True:
            self[target] = logical_or(known, mask)
        else:
            self[target] = known


def _everywhere(condition: Callable[[Any], Any], value: Any) -> Any:
    """Where a condition holds for a value and the derivatives that it carries along."""
    return functools.reduce(logical_and, map(condition, components(value)))


def _nonzero(value: Any) -> Any:
    """Where a value, or a derivative that it carries along, is not 0."""
    unlike = may_differ_from_zero if is_exact() else _differs_from_zero
    return functools.reduce(logical_or, map(unlike, components(value)))


def _differs_from_zero(value: Any) -> Any:
    return not_equal(value, 0)


# A ball is never known to be 0, and what was not taken is.
may_differ_from_zero = predicate("may_differ_from_zero", "x", "whether x is not known to be 0", internal=True)


def _taken(cotangent: Any, mask: Any) -> Any:
    """What was taken: where a cotangent is not 0, and where its mask says so."""
    return _nonzero(cotangent) if mask is None else logical_or(_nonzero(cotangent), mask)


def has_zeros(cotangent: Any) -> bool:
    """Whether some number is 0, or may be for other numbers or in other rows."""
    if not _is_known(cotangent):
        return True
    return not arrays.every(_nonzero(cotangent) if isinstance(cotangent, Kind) or is_exact() else cotangent)


def _is_known(cotangent: Any) -> bool:
    """Whether its numbers can be looked at, and are those of all rows."""
    return not any(isinstance(component, Kind) for component in components(cotangent))


def same_zeros(a: Any, b: Any) -> bool:
    """Whether two cotangents are known to be 0 at the same places."""
    if isinstance(a, Kind) or isinstance(b, Kind) or arrays.shape(a) != arrays.shape(b):
        return False
    return arrays.every(equal(_nonzero(a), _nonzero(b)) if is_exact() else (a != 0) == (b != 0))


def everything(cotangent: Any) -> Any:
    """The mask of a cotangent whose zeros were all computed."""
    return True if type(cotangent) is float else logical_or(_nonzero(cotangent), True)


def taken_of(
    primitive: Primitive, i: int, cotangent: Any, mask: Any, result: Any, operands: Sequence[Any], params: Params
) -> Any:
    """What was taken of operand `i`, before it is summed to the operand's shape; None where only zeros say it."""
    taken = _taken(cotangent, mask)
    if primitive.elementwise and not primitive.selects:
        return taken
    if primitive.selects or primitive.moves or primitive.multilinear or primitive.jet is linear or primitive is sort:
        # A factor that is 0 makes zeros of what was taken.
        if primitive.multilinear:
            operands = [o if isinstance(o, ShapeOnly) else ones_like(constant(o)) for o in operands]
        passed = not_equal(primitive.rule(i)(where(taken, 1.0, 0.0), result, *operands, **params), 0)
        # 0 times a factor that is inf or nan is not 0, but nothing was taken there.
        return logical_and(taken, passed) if primitive.elementwise else passed
    if primitive.reach is None and mask is None:
        return None
    return broadcast_to(_reached(primitive, taken, params), arrays.shape(operands[i]))


def mask_unless_plain(taken: Any, pulled: Any) -> Any:
    """`taken` as a mask of the cotangent `pulled`, unless it is plain that all that was taken is other than 0 there."""
    if isinstance(taken, Kind) or not _is_known(pulled):
        return taken
    return None if arrays.every(logical_or(_nonzero(pulled), logical_not(taken))) else taken


def taken_of_sum(one: Any, other: Any, total: Any) -> Any:
    """What was taken of the sum of two cotangents, as a mask where some of it cancels to 0; None where nothing does."""
    return mask_unless_plain(logical_or(_nonzero(one), _nonzero(other)), total)


def _reached(primitive: Primitive, taken: Any, params: Params) -> Any:
    """On which elements of an operand those that were taken may depend."""
    if primitive.reach is not None:
        return primitive.reach(taken, **params)
    return taken if primitive.elementwise else any_(taken)


def drop_untaken(
    primitive: Primitive,
    i: int,
    cotangent: Any,
    mask: Any,
    pulled: Any,
    result: Any,
    operands: Sequence[Any],
    params: Params,
) -> Any:
    """`pulled`, the cotangent of operand `i` before it is summed to the operand's shape, with 0 for
    every inf and nan that comes from zeros in `cotangent` alone, outside of its `mask` where it has one.

    What is finite stays: it is 0 too, but its own derivative need not be.
    """
    finite = _everywhere(isfinite, pulled)
    if assume(finite):
        return pulled
    if primitive.multilinear:
        return _drop_untaken_products(primitive.rule(i), cotangent, mask, pulled, result, operands, params)
    taken = _reached(primitive, _taken(cotangent, mask), params)
    return where(logical_or(finite, taken), pulled, 0.0)


def drop_if_untaken(cotangent: Any, mask: Any, pulled: Any) -> Any:
    """`pulled`, with 0 for every inf and nan where nothing of `cotangent` was taken."""
    finite = _everywhere(isfinite, pulled)
    taken = any_(_taken(cotangent, mask))
    return pulled if assume(finite) else where(logical_or(finite, taken), pulled, 0.0)


def _drop_untaken_products(
    rule: Any, cotangent: Any, mask: Any, pulled: Any, result: Any, operands: Sequence[Any], params: Params
) -> Any:
    """Where no product that was taken has a factor that is inf or nan, the sum of those without one."""

    def summed(cotangent: Any, factor: Callable[[Any], Any]) -> Any:
        # An operand of which backward needs the shape alone is no factor.
        factors = [o if isinstance(o, ShapeOnly) else factor(o) for o in operands]
        return rule(cotangent, result, *factors, **params)

    taken = where(_taken(cotangent, mask), 1.0, 0.0)
    all_taken = summed(taken, lambda o: ones_like(constant(o)))
    finite_taken = summed(taken, lambda o: where(_everywhere(isfinite, o), 1.0, 0.0))
    finite_sum = summed(cotangent, lambda o: where(_everywhere(isfinite, o), o, 0.0))
    return where(not_equal(all_taken, finite_taken), pulled, finite_sum)
