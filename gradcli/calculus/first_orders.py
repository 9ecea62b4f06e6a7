"""First derivatives of functions that switch between branches, and what all derivatives have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.targets import ancestors
from gradcli.calculus.derivatives import all_finite
from gradcli.kinds.branch_points import watcher_now
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import concrete
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.reductions import sum_

if TYPE_CHECKING:
    from gradcli.calculus.kinks import DerivativesAtSwitch

# Maps leaves by name, which may be of any kinds, to a value.
Function = Callable[[Mapping[str, Any]], Any]


class Derivatives(NamedTuple):
    """A value, its derivatives by key, and the distances of watched derivatives from their shadows."""

    value: Any
    found: Mapping[str, Any]
    deviations: Mapping[str, Any] = MappingProxyType({})

    def are_finite(self) -> bool:
        return all_finite(self.found.values())


def note_kinks(value: Any) -> None:
    """Report the operations of a graph that have kinks to the active watcher. Taylor series report them while they are
    computed."""
    see = watcher_now()
    if see is None:
        return
    for node in ancestors(value):
        if not isinstance(node, PrimitiveNode) or node.primitive.smooth is None or node.saved is None:
            continue
        if not node.compares_with_itself:
            see(node.primitive, node.operands, node.params)


def first_derivatives(
    function: Function, leaves: Mapping[str, Any], value: Any, found: Mapping[str, Any], weights: Any = None
) -> Mapping[str, Any]:
    """Return the gradient or Jacobian of a function at a point where it switches; `found` is that of the branch
    taken. With `weights` it is the gradient of the weighted sum of the value."""
    if weights is None:
        return settled(function, leaves, value, found, at_kink=False).found

    def weighted(given: Mapping[str, Any]) -> Any:
        return sum_(multiply(function(given), weights))

    return settled(weighted, leaves, sum_(multiply(value, weights)), found, at_kink=False).found


def settled(
    function: Function, leaves: Mapping[str, Any], value: Any, found: Mapping[str, Any], *, at_kink: bool
) -> DerivativesAtSwitch:
    """Derivatives at a point where the function switches or, `at_kink`, at a kink; `found` are those of the branch
    taken."""
    # Loaded on demand: functions switch at few points.
    from gradcli.calculus.kinks import derivatives_at_switch

    plain = {key: None if d is None else concrete(d) for key, d in found.items()}
    return derivatives_at_switch(function, leaves, concrete(value), plain, at_kink=at_kink)
