"""In-place operations that change the view of the memory instead of values: `transpose_`, `squeeze_` and similar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.autograd.views import StoragePlace
from gradcli.primitives.operation import Operation


def change_view(tensor: Any, operation: Operation, arguments: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Turn a tensor into the view of it that an operation makes, with the same memory.

    A view of another tensor remains one; its history is recorded as the new view of the base.
    """
    before = tensor._before(())
    made = operation(before, *arguments, **params)
    place: StoragePlace | None = tensor.place
    if place is None:
        tensor.inner = made.inner
    else:
        tensor.place = _moved(place, made.place, before.place)
    tensor._count_change()
    if made._node is not None and (place is None or place.base is None):
        tensor.move_to(made._node, made.output_nr)
    return tensor


def _moved(place: StoragePlace, made: StoragePlace | None, before: StoragePlace | None) -> StoragePlace:
    """`place` followed by the view primitives that lead from `before` to `made`."""
    steps = []
    while made is not before and made is not None:
        steps.append((made.primitive, made.params))
        made = made.parent
    for primitive, params in reversed(steps):
        place = StoragePlace(
            place.storage, place.counter, place, primitive, params, place.base, place.origin, place.refusal
        )
    return place
