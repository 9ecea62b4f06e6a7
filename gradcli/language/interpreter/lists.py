"""Lists of a program, which become a tensor by stacking their items only where a tensor is needed."""

from __future__ import annotations

from collections.abc import Iterable

from gradcli import arrays, limits
from gradcli.autograd.modes import current_span
from gradcli.errors import EvaluationError, GradcliError, NotRecordableError, ShapeError, Span
from gradcli.language.interpreter.mutable_references import MutableReference
from gradcli.limits import UNITS_PER_STEP
from gradcli.primitives.axes import integer
from gradcli.primitives.bind import Kind
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.shape import concat, stack
from gradcli.type_hints import Any
from gradcli.type_hints import Literal as OneOf

Value = Any

# Cost of stacking tensors besides that of any array operation, and for each tensor, in eighths of a step.
_STACK, _OPERAND = 24, 3
# Iterating over this many items costs an eighth of a step.
_ITEMS_PER_UNIT = 2


class _CacheEra:
    """An object that identifies the time between two in-place changes; tensors cached in an earlier era are stale."""


_now = _CacheEra()


def changed_in_place() -> None:
    """Invalidate cached tensors of lists; to be called after a list or tensor was changed in place."""
    global _now
    _now = _CacheEra()


class ProgramList:
    """A list with Python's semantics, from `[a, b]`, `(a, b)`, `[a for …]` or appended items.

    `made` tells its origin: a display in brackets or parentheses, a comprehension or function, or appending. `beside`
    has what `zip` or `enumerate` made the items of.
    """

    __slots__ = ("_era", "_items", "_rows", "_tensor", "beside", "is_hidden", "made", "span")

    def __init__(
        self, items: Iterable[Value], span: Span, made: OneOf["display", "tuple", "generated", "grown"]
    ) -> None:
        self._items = list(items)
        # A tensor whose rows are the items, until one of them is asked for.
        self._rows: Value = None
        # Whether the round of a loop that appends to the list is being traced, which then cannot read it.
        self.is_hidden = False
        self.span = span
        self.made = made
        self.beside: tuple[Value, ...] = ()
        self._tensor: Value = None
        # The era in which the tensor was built, None where no item can change.
        self._era: _CacheEra | None = None

    @classmethod
    def of_rows(cls, tensor: Value, span: Span) -> ProgramList:
        """A list that a comprehension or function made of the rows of a tensor."""
        made = cls([], span, "generated")
        made._rows = made._tensor = tensor
        return made

    @property
    def items(self) -> list[Value]:
        """The items, which may be changed if `changed` is called afterwards."""
        self._require_visible()
        if self._rows is not None:
            limits.charge_steps(arrays.shape(self._rows)[0] * UNITS_PER_STEP)
            self._items, self._rows = [index(self._rows, i) for i in range(arrays.shape(self._rows)[0])], None
        return self._items

    @items.setter
    def items(self, items: list[Value]) -> None:
        self._items, self._rows = items, None

    @property
    def count(self) -> int:
        """The number of items."""
        self._require_visible()
        return len(self._items) if self._rows is None else int(arrays.shape(self._rows)[0])

    @property
    def is_vector(self) -> bool:
        """True if the items are known to be the elements of a vector, without a look at each."""
        self._require_visible()
        return self._rows is not None and len(arrays.shape(self._rows)) == 1

    def has_place(self, place: int) -> bool:
        return -self.count <= place < self.count

    def item(self, place: int) -> Value:
        """The item at a place; rows of a tensor are not taken apart for it."""
        self._require_visible()
        return self._items[place] if self._rows is None else index(self._rows, place)

    def _require_visible(self) -> None:
        if self.is_hidden:
            raise NotRecordableError("a round reads a list that it appends to")

    def extend_by_rows(self, tensor: Value) -> None:
        """Append the rows of a tensor."""
        items, row = self.items, (arrays.shape(tensor)[1:], arrays.dtype_name(tensor))
        if not all(_is_number(i) and (arrays.shape(i), arrays.dtype_name(i)) == row for i in items):
            self.extend([index(tensor, i) for i in range(arrays.shape(tensor)[0])])
            return
        if items:
            tensor = concat([stack(items), tensor])
        self.changed()
        self._rows = self._tensor = tensor
        self._era = None

    def append(self, item: Value) -> None:
        self.items.append(item)
        self.changed()

    def extend(self, items: list[Value]) -> None:
        self.items += items
        self.changed()

    def changed(self) -> None:
        """Discard the cached tensor; to be called after `items` was changed."""
        self.made = "grown"
        self.beside = ()
        self._tensor = None
        changed_in_place()

    def tensor(self, check: Any) -> Value:
        """The items as one tensor; `check` converts an item to a number or raises.

        Raises ShapeError where shapes differ, and EvaluationError for a list that contains itself.
        """
        # Lists may be nested deeper than Python's recursion limit. Each is on the stack twice: to push its items, and
        # to be stacked after them.
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
                pending += [(item, False) for item in given.items if type(item) is ProgramList]
        return self._tensor

    def _stacked(self, check: Any) -> Value:
        limits.charge_steps(len(self.items) // _ITEMS_PER_UNIT)
        items = [item._tensor if type(item) is ProgramList else check(item) for item in self.items]
        self._era = _now if any(isinstance(item, (ProgramList, MutableReference)) for item in self.items) else None
        current_span.set(self.span)
        try:
            return _joined(items)
        except GradcliError as error:
            error.locate(self.span)
            raise


def _joined(items: list[Value]) -> Value:
    if items and all(type(i) is bool for i in items):
        return arrays.in_default_namespace(arrays.asarray(items))
    if all(type(i) in arrays.PYTHON_NUMBERS for i in items):
        dtype = arrays.default_dtype()
        if complex in map(type, items):
            return arrays.in_default_namespace(arrays.asarray([*map(complex, items)], arrays.complex_dtype(dtype)))
        return arrays.in_default_namespace(arrays.asarray([float(i) for i in items], dtype))
    limits.charge_steps(_STACK + _OPERAND * len(items))
    return stack([as_default_dtype(i) for i in items])


def _is_number(value: Value) -> bool:
    """Return whether a value is a number or a tensor that cannot be changed."""
    return isinstance(value, Kind) or arrays.is_array(value)


def as_default_dtype(value: Value) -> Value:
    """A Python number in the dtype in use, as it is to be joined with tensors; other values unchanged."""
    return arrays.in_precision(value, arrays.default_dtype()) if type(value) in arrays.PYTHON_NUMBERS else value


def is_position(key: Value) -> bool:
    """Return whether a key is a number or a slice of numbers, as Python's lists take."""
    parts = (key.start, key.stop, key.step) if isinstance(key, slice) else (key,)
    return all(type(p) in arrays.PYTHON_NUMBERS or p is None for p in parts) and (
        isinstance(key, slice) or key is not None
    )


def item_of(value: ProgramList, key: Value) -> Value:
    """An item of a list, or the list that a slice selects. Raises ShapeError for an index out of bounds."""
    if isinstance(key, slice):
        bounds = [None if b is None else integer(b, "a bound of a slice") for b in (key.start, key.stop, key.step)]
        return sliced(value, slice(*bounds))
    place = integer(key, "an index")
    if not value.has_place(place):
        raise ShapeError(f"index {place:.3g} is out of bounds for a list of {value.count} items")
    return value.item(place)


def sliced(value: ProgramList, part: slice) -> ProgramList:
    """The list that a slice selects. Raises EvaluationError for a step of 0."""
    if part.step == 0:
        raise EvaluationError("the step of a slice must not be 0")
    limits.charge(len(range(*part.indices(len(value.items)))))
    return ProgramList(value.items[part], value.span, value.made)


def replace_item(value: ProgramList, key: tuple[Value, ...], item: Value) -> None:
    """Replace an item of a list. Raises ShapeError for an index out of bounds, and for other keys."""
    if len(key) != 1 or isinstance(key[0], slice) or not is_position(key[0]):
        raise ShapeError("one item of a list is assigned to at a time", hint="array(…) makes a tensor of a list")
    item_of(value, key[0])
    value.items[integer(key[0], "an index")] = item
    value.changed()
