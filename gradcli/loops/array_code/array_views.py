"""Where the elements of arrays come from that only move elements: reshaped, indexed, joined, rolled, scattered."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Self

from gradcli.arrays.index_keys import has_arrays
from gradcli.arrays.shapes import Shape
from gradcli.loops.part import part
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import conversions, strides
from gradcli.primitives.entries import indexing, shape
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation


class Place(NamedTuple):
    """An index along an axis of an array: `constant` + `factor` * the index of the loop `axis`."""

    constant: int
    factor: int = 0
    axis: int = -1

    def plus(self, number: int) -> Place:
        return self._replace(constant=self.constant + number)

    def times(self, number: int) -> Place:
        if not number:
            return Place(0)
        return Place(self.constant * number, self.factor * number, self.axis)


# The index of an element.
Index = tuple[Place, ...]


class Box(tuple[tuple[int, int], ...]):
    """The range of the index of each loop.

    `splits` collects the loops, with positions, where the elements before a position come from elsewhere than those from
    there on. Where there are any, what was found is valid only for the first elements.
    """

    splits: set[tuple[int, int]]

    def __new__(cls, ranges: Iterable[tuple[int, int]]) -> Self:
        box = super().__new__(cls, ranges)
        box.splits = set()
        return box

    def parts(self, axes: Iterable[int]) -> list[Self]:
        """The box split at all positions along some axes, in order."""
        ranges = []
        for axis, (begin, end) in enumerate(self):
            cuts = {position for a, position in self.splits if a == axis and a in axes}
            ranges.append([*itertools.pairwise(sorted({begin, *cuts, end}))])
        return [*map(type(self), itertools.product(*ranges))]


class NotWrittenError(Exception):
    """An operation for which no code is written."""


def is_below(place: Place, bound: int, box: Box) -> bool:
    """Return whether an index is less than a bound for the first elements of a box, which is split where it changes."""
    if not place.factor:
        return place.constant < bound
    begin, end = box[place.axis]
    first, last = (place.constant + place.factor * i < bound for i in (begin, end - 1))
    if first != last:
        rest = bound - place.constant
        position = -(-rest // place.factor) if place.factor > 0 else rest // place.factor + 1
        box.splits.add((place.axis, position))
    return first


def aligned(index: Index, sizes: Shape) -> Index:
    """The index of an operand of an elementwise operation that is broadcast."""
    own = index[len(index) - len(sizes) :]
    return tuple(Place(0) if size == 1 else place for place, size in zip(own, sizes))


def changes_ones(old: Shape, new: Shape) -> bool:
    """Return whether a reshape adds or drops only axes of size 1."""
    return [n for n in old if n != 1] == [n for n in new if n != 1]


def is_movement(equation: Equation) -> bool:
    """Return whether each element of a result is an element of an operand, or 0, at a place that `origin` tells."""
    primitive, params = equation.primitive, equation.params
    if primitive is conversions.reshape:
        return changes_ones(_shape(equation.inputs[0]), equation.output.shape)
    if primitive is indexing.scatter:
        steps = (item.step or 1 for item in params["key"] if isinstance(item, slice))
        return not has_arrays(params["key"]) and all(step in (1, -1) for step in steps)
    return primitive in _movements()


def is_strided(equation: Equation) -> bool:
    """Return whether the elements of a result stand in the memory of the operand at regular distances."""
    if equation.primitive in (indexing.index, part) and has_arrays(equation.params["key"]):
        return False
    views = (conversions.reshape, conversions.permute, conversions.broadcast_to, indexing.index, part, shape.flip)
    return equation.primitive in views and is_movement(equation)


def origin(equation: Equation, index: Index, box: Box) -> tuple[Atom, Index] | None:
    """The operand and the index of the element that a result has at an index; None for 0."""
    return _movements()[equation.primitive](equation, index, box)


def _shape(atom: Atom) -> Shape:
    found: Shape = getattr(atom, "shape", ())
    return found


def _of_reshape(equation: Equation, index: Index, _box: Box) -> tuple[Atom, Index]:
    x = equation.inputs[0]
    places = iter([place for place, size in zip(index, equation.output.shape) if size != 1])
    return x, tuple(Place(0) if size == 1 else next(places) for size in _shape(x))


def _of_permute(equation: Equation, index: Index, _box: Box) -> tuple[Atom, Index]:
    axes = equation.params["axes"]
    return equation.inputs[0], tuple(index[axes.index(axis)] for axis in range(len(axes)))


def _of_broadcast(equation: Equation, index: Index, _box: Box) -> tuple[Atom, Index]:
    x = equation.inputs[0]
    return x, aligned(index, _shape(x))


def _of_index(equation: Equation, index: Index, box: Box) -> tuple[Atom, Index]:
    x = equation.inputs[0]
    return x, indexed(equation.params["key"], _shape(x), index, box)


def indexed(key: tuple[Any, ...], sizes: Shape, index: Index, box: Box) -> Index:
    """The index in an array of what stands at an index of `array[key]`."""
    if has_arrays(key):
        return _of_positions(key, sizes, index, box)
    found, places, left = [], iter(index), iter(sizes)
    for item in strides.expanded_key(key, len(sizes)):
        if item is None:
            next(places)
            continue
        size = next(left)
        if isinstance(item, slice):
            begin, _, step = item.indices(size)
            found.append(next(places).times(step).plus(begin))
        else:
            found.append(Place(item % size))
    return tuple(found)


def _of_positions(key: Sequence[Any], sizes: Shape, index: Index, box: Box) -> Index:
    """The index in an array of which the first axes are indexed by vectors of positions."""
    if any(len(getattr(vector, "shape", ())) != 1 or len(vector) != len(key[0]) for vector in key):
        raise NotWrittenError
    rows = [*zip(*([p % size for p in vector.tolist()] for vector, size in zip(key, sizes)))]
    begin = 0
    while True:
        end = _end_of_run(rows, begin)
        if is_below(index[0], end, box):
            break
        begin = end
    distances = [b - a for a, b in zip(rows[begin], rows[min(begin + 1, end - 1)])]
    found = (index[0].plus(-begin).times(d).plus(first) for d, first in zip(distances, rows[begin]))
    return (*found, *index[1:])


def _end_of_run(rows: Sequence[tuple[int, ...]], begin: int) -> int:
    """The end of the equally spaced positions that begin at a place."""
    distances = [tuple(y - x for x, y in zip(a, b)) for a, b in zip(rows[begin:], rows[begin + 1 :])]
    equal = itertools.takewhile(lambda d: d == distances[0], distances)
    return begin + 1 + sum(1 for _ in equal)


def _of_scatter(equation: Equation, index: Index, box: Box) -> tuple[Atom, Index] | None:
    key, sizes = equation.params["key"], equation.params["shape"]
    found: list[Place] = []
    places = iter(zip(index, sizes))
    for item in strides.expanded_key(key, len(sizes)):
        if item is None:
            found.append(Place(0))
            continue
        place, size = next(places)
        begin, end, step = _range_of(item, size)
        if is_below(place, min(begin, end + 1) if step < 0 else begin, box):
            return None
        if not is_below(place, begin + 1 if step < 0 else end, box):
            return None
        if isinstance(item, slice):
            found.append(place.plus(-begin).times(step))
    x = equation.inputs[0]
    return x, aligned(tuple(found), _shape(x))


def _range_of(item: Any, size: int) -> tuple[int, int, int]:
    """The positions along an axis that an integer or a slice selects."""
    if isinstance(item, slice):
        return item.indices(size)
    position: int = item % size
    return position, position + 1, 1


def _of_concat(equation: Equation, index: Index, box: Box) -> tuple[Atom, Index]:
    axis, begin = equation.params["axis"], 0
    for x in equation.inputs:
        end = begin + _shape(x)[axis]
        if is_below(index[axis], end, box):
            return x, (*index[:axis], index[axis].plus(-begin), *index[axis + 1 :])
        begin = end
    raise NotWrittenError


def _of_stack(equation: Equation, index: Index, box: Box) -> tuple[Atom, Index]:
    axis = equation.params["axis"]
    for number, x in enumerate(equation.inputs):
        if is_below(index[axis], number + 1, box):
            return x, (*index[:axis], *index[axis + 1 :])
    raise NotWrittenError


def _of_roll(equation: Equation, index: Index, box: Box) -> tuple[Atom, Index]:
    sizes, axes, shifts = equation.output.shape, equation.params["axis"], equation.params["shift"]
    if axes is None:
        if len(sizes) != 1:
            raise NotWrittenError
        axes, shifts = (0,), (shifts,)
    found = [*index]
    for axis, shift in zip(axes, shifts):
        before = shift % sizes[axis]
        wraps = before and is_below(found[axis], before, box)
        found[axis] = found[axis].plus((sizes[axis] if wraps else 0) - before)
    return equation.inputs[0], tuple(found)


def _of_flip(equation: Equation, index: Index, _box: Box) -> tuple[Atom, Index]:
    sizes, axes = equation.output.shape, equation.params["axis"]
    turned = (place.times(-1).plus(sizes[a] - 1) if a in axes else place for a, place in enumerate(index))
    return equation.inputs[0], tuple(turned)


@cache
def _movements() -> Mapping[Primitive, Callable[[Equation, Index, Box], tuple[Atom, Index] | None]]:
    return {
        conversions.reshape: _of_reshape,
        conversions.permute: _of_permute,
        conversions.broadcast_to: _of_broadcast,
        indexing.index: _of_index,
        part: _of_index,
        indexing.scatter: _of_scatter,
        shape.concat: _of_concat,
        shape._stack: _of_stack,
        shape.flip: _of_flip,
        shape.roll: _of_roll,
    }
