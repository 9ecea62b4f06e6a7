"""Keep the derivatives of elements that were not selected out of gradients.

A primitive that selects (`where`, `maximum`, `clip`, an index, …) sends cotangents that are 0 for elements that were
not taken. Such a 0 means "no gradient": it must stay 0 even if it is multiplied by an inf or nan in the derivative of
what was not taken. Computed zeros are ordinary numbers. If some arrive at a selecting primitive, a mask of the elements
that were taken accompanies the cotangents from there on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.autograd.node import Node
from gradcli.autograd.operand_forms import ShapeOnly
from gradcli.primitives.bind import Kind, Params, assume, constant, primal_and_tangents
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.arithmetic import ones_like
from gradcli.primitives.entries.comparisons import (
    equal,
    isfinite,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    where,
)
from gradcli.primitives.entries.reductions import any_
from gradcli.primitives.families import predicate
from gradcli.primitives.jet_rules import linear
from gradcli.primitives.primitive import Primitive
from gradcli.type_hints import Any


class UntakenMasks(dict[Node, Any]):
    """The nodes of a pass whose cotangents hold zeros that mean "not taken", with the masks of what was taken.

    The mask is None if every zero means that, and True if none does.
    """

    def marks(self, node: Node) -> bool:
        """Return whether zeros of the cotangent of a node mean "not taken"."""
        return self.get(node, True) is not True

    def meet(self, target: Node, mask: Any, arrived: Sequence[Any] | None) -> None:
        """Record that a cotangent with the mask `mask` is being sent to `target`.

        `arrived` are the cotangents that arrived there before.
        """
        if target.outputs > 1:
            # A mask would have to belong to one output.
            self[target] = None
            return
        # All elements of cotangents that arrived before the first such zero were taken.
        known = self.get(target, True if arrived and arrived[0] is not None else None)
        if known is None or mask is True:
            self[target] = mask
        elif mask is not None and known is not True:
            self[target] = logical_or(known, mask)
        else:
            self[target] = known


def _everywhere(condition: Callable[[Any], Any], value: Any) -> Any:
    """A mask of the elements for which a condition holds, for the value and for all derivatives that it carries."""
    return functools.reduce(logical_and, map(condition, primal_and_tangents(value)))


def _nonzero(value: Any) -> Any:
    """A mask of the elements whose value, or a derivative that it carries, is not 0."""
    unlike = may_differ_from_zero if is_exact() else _differs_from_zero
    return functools.reduce(logical_or, map(unlike, primal_and_tangents(value)))


def _differs_from_zero(value: Any) -> Any:
    return not_equal(value, 0)


# A ball cannot be known to be 0, unlike the exact zeros of elements that were not taken.
may_differ_from_zero = predicate(
    "may_differ_from_zero", "x", "whether x is not known to be 0", internal=True, numbers="complex"
)


def _taken(cotangent: Any, mask: Any) -> Any:
    """The mask of what was taken: where a cotangent is not 0 or its mask is true."""
    return _nonzero(cotangent) if mask is None else logical_or(_nonzero(cotangent), mask)


def has_zeros(cotangent: Any) -> bool:
    """Return whether some element is 0, or may be 0 for other values or rows."""
    if not _is_known(cotangent):
        return True
    return not arrays.all_true(_nonzero(cotangent) if isinstance(cotangent, Kind) or is_exact() else cotangent)


def _is_known(cotangent: Any) -> bool:
    """Return whether the values of a cotangent are concrete and the same for all rows."""
    return not any(isinstance(component, Kind) for component in primal_and_tangents(cotangent))


def same_zeros(a: Any, b: Any) -> bool:
    """Return whether two cotangents certainly have their zeros at the same positions."""
    if isinstance(a, Kind) or isinstance(b, Kind) or arrays.shape(a) != arrays.shape(b):
        return False
    return arrays.all_true(equal(_nonzero(a), _nonzero(b)) if is_exact() else (a != 0) == (b != 0))


def all_taken(cotangent: Any) -> Any:
    """The mask of a cotangent whose zeros were all computed."""
    return True if type(cotangent) is float else logical_or(_nonzero(cotangent), True)


def taken_of(
    primitive: Primitive, i: int, cotangent: Any, mask: Any, result: Any, operands: Sequence[Any], params: Params
) -> Any:
    """The mask of what was taken of operand `i`, before unbroadcasting; None if only the zeros themselves tell."""
    taken = _taken(cotangent, mask)
    if primitive.elementwise and not primitive.selects:
        return taken
    if primitive.selects or primitive.moves or primitive.multilinear or primitive.jet is linear or primitive.reorders:
        # The factors are replaced by ones, because a factor of 0 would make zeros of elements that were taken.
        if primitive.multilinear:
            operands = [o if isinstance(o, ShapeOnly) else ones_like(constant(o)) for o in operands]
        passed = not_equal(primitive.rule(i)(where(taken, 1.0, 0.0), result, *operands, **params), 0)
        # 0 times a factor of inf or nan is not 0, although nothing was taken there.
        return logical_and(taken, passed) if primitive.elementwise else passed
    if primitive.reach is None and mask is None:
        return None
    return broadcast_to(_reached(primitive, taken, params), arrays.shape(operands[i]))


def mask_unless_plain(taken: Any, pulled: Any) -> Any:
    """`taken` as the mask of the cotangent `pulled`; None if everything that was taken is certainly nonzero there."""
    if isinstance(taken, Kind) or not _is_known(pulled):
        return taken
    return None if arrays.all_true(logical_or(_nonzero(pulled), logical_not(taken))) else taken


def taken_of_sum(one: Any, other: Any, total: Any) -> Any:
    """The mask of what was taken of the sum of two cotangents, if some of it cancels to 0; None if nothing does."""
    return mask_unless_plain(logical_or(_nonzero(one), _nonzero(other)), total)


def _reached(primitive: Primitive, taken: Any, params: Params) -> Any:
    """The elements of an operand on which those that were taken may depend."""
    if primitive.reach is not None:
        return primitive.reach(taken, **params)
    return taken if primitive.elementwise else any_(taken)


def zero_untaken(
    primitive: Primitive,
    i: int,
    cotangent: Any,
    mask: Any,
    pulled: Any,
    result: Any,
    operands: Sequence[Any],
    params: Params,
) -> Any:
    """`pulled` with 0 for every inf and nan that results only from zeros of `cotangent` outside of its `mask`.

    `pulled` is the cotangent of operand `i` before unbroadcasting.

    Finite elements are kept: they are 0 too, but their own derivatives need not be.
    """
    finite = _everywhere(isfinite, pulled)
    if assume(finite):
        return pulled
    if primitive.multilinear:
        return _drop_untaken_products(primitive.rule(i), cotangent, mask, pulled, result, operands, params)
    taken = _reached(primitive, _taken(cotangent, mask), params)
    return where(logical_or(finite, taken), pulled, 0.0)


def drop_if_untaken(cotangent: Any, mask: Any, pulled: Any) -> Any:
    """`pulled`, with 0 for every inf and nan if nothing of `cotangent` was taken."""
    finite = _everywhere(isfinite, pulled)
    taken = any_(_taken(cotangent, mask))
    return pulled if assume(finite) else where(logical_or(finite, taken), pulled, 0.0)


def _drop_untaken_products(
    rule: Any, cotangent: Any, mask: Any, pulled: Any, result: Any, operands: Sequence[Any], params: Params
) -> Any:
    """Drop what was not taken from the cotangent of a multilinear primitive.

    Where no product that was taken has an infinite or nan factor, it is the sum without the products that have one.
    """

    def summed(cotangent: Any, factor: Callable[[Any], Any]) -> Any:
        # An operand of which only the shape is saved is not a factor in this rule.
        factors = [o if isinstance(o, ShapeOnly) else factor(o) for o in operands]
        return rule(cotangent, result, *factors, **params)

    taken = where(_taken(cotangent, mask), 1.0, 0.0)
    all_taken = summed(taken, lambda o: ones_like(constant(o)))
    finite_taken = summed(taken, lambda o: where(_everywhere(isfinite, o), 1.0, 0.0))
    finite_sum = summed(cotangent, lambda o: where(_everywhere(isfinite, o), o, 0.0))
    return where(not_equal(all_taken, finite_taken), pulled, finite_sum)
