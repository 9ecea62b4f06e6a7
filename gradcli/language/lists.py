"""Lists of a program: their items until a tensor is asked for, which is then built by stacking them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from typing import Literal as OneOf

from gradcli import arrays, limits
from gradcli.autograd.modes import current_span
from gradcli.errors import EvaluationError, GradcliError, ShapeError, Span
from gradcli.language.cells import Cell
from gradcli.primitives.axes import whole
from gradcli.primitives.shape import stack

Value = Any

# To stack tensors, beside what any operation on arrays takes, and for each of them, in eighths of steps.
_STACK, _OPERAND = 24, 3
# Items that are gone through in an eighth of a step.
_GONE_THROUGH = 2


class _Era:
    """The time between two changes of lists or tensors in place: what was made of others before is stale after one."""


_now = _Era()


def changed_in_place() -> None:
    """To be called where a list or a tensor has been changed."""
    global _now
    _now = _Era()


class Items:
    """`[a, b]`, `(a, b)`, `[a for …]` or what a program appends to: a list as Python has it.

    `made` says how: by a display in brackets or in parentheses, by a comprehension, or item by item.
    """

    __slots__ = ("_era", "_tensor", "items", "made", "span")

    def __init__(
        self, items: Iterable[Value], span: Span, made: OneOf["display", "tuple", "generated", "grown"]
    ) -> None:
        self.items = list(items)
        self.span = span
        self.made = made
        self._tensor: Value = None
        # When the tensor was made, None where nothing in the list can change.
        self._era: _Era | None = None

    def append(self, item: Value) -> None:
        self.items.append(item)
        self.changed()

    def extend(self, items: list[Value]) -> None:
        self.items += items
        self.changed()

    def changed(self) -> None:
        """To be called where `items` has been changed."""
        self.made = "grown"
        self._tensor = None
        changed_in_place()

    def tensor(self, check: Any) -> Value:
        """The items as one tensor; `check` gives an item as a number, or raises.

        Raises ShapeError where shapes differ, and EvaluationError for a list that contains itself.
        """
        # Lists in lists, which may be nested deeper than Python may recurse: each is met before what it holds, and again
        # behind that.
        pending = [(self, False)]
        within: set[int] = set()
        while pending:
            given, again = pending.pop()
            if again:
                within.remove(id(given))
                given._tensor = given._stacked(check)
            elif id(given) in within:
                raise EvaluationError("a list that contains itself is no tensor", span=given.span)
            elif given._tensor is None or (given._era is not None and given._era is not _now):
                within.add(id(given))
                pending.append((given, True))
                pending += [(item, False) for item in given.items if type(item) is Items]
        return self._tensor

    def _stacked(self, check: Any) -> Value:
        limits.charge_steps(len(self.items) // _GONE_THROUGH)
        items = [item._tensor if type(item) is Items else check(item) for item in self.items]
        self._era = _now if any(isinstance(item, (Items, Cell)) for item in self.items) else None
        current_span.set(self.span)
        try:
            return _joined(items)
        except GradcliError as error:
            error.locate(self.span)
            raise


def _joined(items: list[Value]) -> Value:
    if items and all(type(i) is bool for i in items):
        return arrays.placed(arrays.asarray(items))
    if all(type(i) in arrays.PLAIN for i in items):
        return arrays.placed(arrays.asarray([float(i) for i in items], arrays.default_dtype()))
    limits.charge_steps(_STACK + _OPERAND * len(items))
    return stack([in_dtype(i) for i in items])


def in_dtype(value: Value) -> Value:
    """A number of the program as one of the dtype in use, beside tensors that are to be joined with it."""
    return arrays.astype(value, arrays.default_dtype()) if type(value) in arrays.PLAIN else value


def is_position(key: Value) -> bool:
    """Whether a key is a number or a slice of numbers, as a list of Python's takes."""
    parts = (key.start, key.stop, key.step) if isinstance(key, slice) else (key,)
    return all(type(p) in arrays.PLAIN or p is None for p in parts) and (isinstance(key, slice) or key is not None)


def item_of(value: Items, key: Value) -> Value:
    """An item of a list, or the list of those that a slice takes. Raises ShapeError for a place that it has not."""
    if isinstance(key, slice):
        bounds = [None if b is None else whole(b, "a bound of a slice") for b in (key.start, key.stop, key.step)]
        return taken(value, slice(*bounds))
    place = whole(key, "an index")
    if not -len(value.items) <= place < len(value.items):
        raise ShapeError(f"index {place:.3g} is out of bounds for a list of {len(value.items)} items")
    return value.items[place]


def taken(value: Items, part: slice) -> Items:
    """The list of what a slice takes. Raises EvaluationError for one of no steps."""
    if part.step == 0:
        raise EvaluationError("the step of a slice must not be 0")
    limits.charge(len(range(*part.indices(len(value.items)))))
    return Items(value.items[part], value.span, value.made)


def replace_item(value: Items, key: tuple[Value, ...], item: Value) -> None:
    """Put another item in a list. Raises ShapeError for a place that it has not."""
    if len(key) != 1 or isinstance(key[0], slice) or not is_position(key[0]):
        raise ShapeError("one item of a list is assigned to at a time", hint="array(…) makes a tensor of a list")
    item_of(value, key[0])
    value.items[whole(key[0], "an index")] = item
    value.changed()
