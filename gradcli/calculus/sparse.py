"""Computes sparse Hessians by directional derivatives of a recorded gradient, along compressed directions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays import sparsity_patterns
from gradcli.arrays.shapes import element_ranges
from gradcli.arrays.sparsity_patterns import Pattern
from gradcli.calculus.accuracy import deviation
from gradcli.calculus.rows import shaped
from gradcli.executors import stepwise
from gradcli.kinds import batch
from gradcli.kinds.jets import Jet, perturbed_of
from gradcli.kinds.perturbed_roundings import Perturbation
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.indexing import index, scatter
from gradcli.primitives.entries.shape import concat
from gradcli.program.ir import Program
from gradcli.program.sparsity import dependence


class Coordinates(NamedTuple):
    """A sparse matrix in coordinate format: `value[k]` is the entry at `row[k]`, `column[k]`; all others are 0.

    `row`, `column` and `value` are vectors of equal length, sorted by rows. The elements of a tensor are numbered in
    row-major order, as by `ravel`. `scipy.sparse.coo_array((h.value, (h.row, h.column)), h.shape)` is the matrix `h` in
    SciPy.
    """

    shape: tuple[int, int]
    row: Any
    column: Any
    value: Any


class HessianBlock(NamedTuple):
    """The nonzero entries of the second derivatives by two leaves, and their positions among the flattened derivatives
    along all directions."""

    shape: tuple[int, int]
    row: Any
    column: Any
    places: Any

    def coordinates(self, value: Any) -> Coordinates:
        return Coordinates(self.shape, self.row.copy(), self.column.copy(), value)

    def dense(self, value: Any, shape: Sequence[int]) -> Any:
        """The dense matrix of these entries, as a tensor of `shape`."""
        size = math.prod(self.shape)
        return reshape(scatter(value, (self.row * self.shape[1] + self.column,), (size,)), shape)


class SparseHessian:
    """The structure of the second derivatives of a scalar, and their evaluation.

    `gradient` is a recorded program whose outputs are the gradient by each of `leaves`, which are names of its inputs.
    `blocks` are keyed by two leaves joined with a comma. Raises LimitError where the Hessian is not sparse enough.
    """

    def __init__(self, gradient: Program, leaves: Sequence[str]) -> None:
        self.gradient = gradient
        named = {v.name: v for v in gradient.inputs}
        self.leaves = {name: named[name] for name in leaves}
        self.ranges = element_ranges({name: math.prod(v.shape) for name, v in self.leaves.items()})
        found = dependence(gradient, [*self.leaves.values()])
        pattern = sparsity_patterns.symmetric(sparsity_patterns.vstack(found))
        self.colouring = colouring(pattern)
        self.blocks = self._blocks(*_entries(pattern, self.colouring))

    @property
    def variables(self) -> int:
        return len(self.colouring.colours)

    def _blocks(self, row: Any, column: Any, places: Any) -> dict[str, HessianBlock]:
        blocks = {}
        for one, other in combinations_with_replacement(self.leaves, 2):
            rows, columns = self.ranges[one], self.ranges[other]
            here = _within(row, rows) & _within(column, columns)
            parts = row[here] - rows.start, column[here] - columns.start
            blocks[f"{one},{other}"] = HessianBlock((len(rows), len(columns)), *parts, places[here])
        return blocks

    def values(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries of each block at `inputs`, arrays by name or values of kinds that a series may contain."""
        (found,) = self._along_directions(inputs)
        return self._entries(found)

    def watched_values(self, inputs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the entries of each block, and their distances from those with other roundings, see `accuracy`."""
        found, others = map(self._entries, self._along_directions(inputs, Perturbation()))
        return found, {key: deviation(value, others[key]) for key, value in found.items()}

    def _entries(self, found: Any) -> dict[str, Any]:
        flat = reshape(found, (-1,))
        return {key: index(flat, (block.places,)) for key, block in self.blocks.items()}

    def _along_directions(self, inputs: Mapping[str, Any], roundings: Perturbation | None = None) -> list[Any]:
        """Return the derivatives of the gradient along the directions of all colours, of shape (colours, variables).

        With `roundings`, those of its shadow are returned too.
        """
        number, at_once = self.colouring.number, max(1, batch.MAX_ELEMENTS // max(self.variables, 1))
        starts = range(0, max(number, 1), at_once)
        parts = [self._along(inputs, range(s, min(s + at_once, number)), roundings) for s in starts]
        return [_joined(part, 0) for part in zip(*parts)]

    def _along(self, inputs: Mapping[str, Any], colours: range, roundings: Perturbation | None) -> list[Any]:
        nesting = batch.new_batch_id()
        given = dict(inputs)
        for name, leaf in self.leaves.items():
            own = self.ranges[name]
            rows = _directions(self.colouring.colours[own.start : own.stop], colours, leaf.dtype)
            series = Jet([inputs[name], batch.Batched(shaped(rows, leaf.shape), nesting)], 1)
            given[name] = series if roundings is None else series.watched(roundings)
        outputs = stepwise.run(self.gradient, [given[v.name or ""] for v in self.gradient.inputs])
        assert outputs is not None
        seen = [outputs] if roundings is None else [outputs, [*map(perturbed_of, outputs)]]
        return [_joined([_derivative(o, nesting, len(colours)) for o in of_one], 1) for of_one in seen]


def _derivative(output: Any, nesting: int, rows: int) -> Any:
    """The first derivatives of a series along several directions, one row for each."""
    found = output.coefficient(1) if isinstance(output, Jet) else None
    if found is None:
        found = arrays.zeros(arrays.shape(output), arrays.dtype_name(output))
    return reshape(batch.unbatched(found, nesting, rows), (rows, arrays.size(output)))


def _joined(parts: Sequence[Any], axis: int) -> Any:
    return concat(parts, axis=axis) if len(parts) > 1 else parts[0]


def _entries(pattern: sparsity_patterns.Pattern, found: Colouring) -> tuple[Any, Any, Any]:
    """The rows and columns of the entries, and their positions among the derivatives along directions."""
    xp = arrays.numpy_namespace()
    row, column = sparsity_patterns.entries(pattern)
    colours, variables = found.colours, len(found.colours)
    # The row of a variable in `alone` may have several entries of one colour; its column has only one of each.
    in_row = colours[column] * variables + row
    in_column = colours[row] * variables + column
    return row, column, xp.where(found.alone[row], in_column, in_row)


def _within(numbers: Any, wanted: range) -> Any:
    return (numbers >= wanted.start) & (numbers < wanted.stop)


def _directions(colours: Any, wanted: range, dtype: str) -> Any:
    """The indicator vectors of the wanted colours, one row for each."""
    xp = arrays.numpy_namespace()
    return (xp.arange(wanted.start, wanted.stop)[:, None] == colours).astype(dtype)


# --- colouring of the variables of a sparse Hessian

# Cost of an entry of the pattern, in array elements.
_ENTRY = 32


class Colouring(NamedTuple):
    """The colour of each variable, from 0 to `number` - 1, and a mask of the variables that have a colour to
    themselves.

    No two variables of one colour have entries in the same row, apart from the rows of variables in `alone`.
    """

    colours: Any
    number: int
    alone: Any


def colouring(pattern: Pattern) -> Colouring:
    """Colour the rows and columns of a symmetric pattern."""
    xp = arrays.numpy_namespace()
    alone = _alone(pattern)
    row, column = sparsity_patterns.entries(sparsity_patterns.without(pattern, alone))
    limits.charge(_ENTRY * len(column))
    bounds = xp.searchsorted(row, xp.arange(pattern.shape[0] + 1)).tolist()
    found = xp.asarray(_greedy(bounds, column.tolist()))
    shared = int(found[~alone].max(initial=-1)) + 1
    found[alone] = xp.arange(shared, shared + alone.sum())
    return Colouring(found, shared + int(alone.sum()), alone)


def _alone(pattern: Pattern) -> Any:
    """Select the variables with the most entries, as many as minimise the expected number of colours."""
    xp = arrays.numpy_namespace()
    entries = xp.diff(pattern.indptr)
    order = xp.argsort(-entries, stable=True)
    colours = xp.arange(len(entries)) + entries[order]
    found = xp.zeros(len(entries), bool)
    found[order[: int(colours.argmin()) if len(colours) else 0]] = True
    return found


def _greedy(bounds: list[int], columns: list[int]) -> list[int]:
    """Give each variable the first colour that no variable in a shared row has.

    The colours used in a row are the bits of an integer.
    """
    used = [0] * (len(bounds) - 1)
    found = []
    for variable in range(len(used)):
        rows = columns[bounds[variable] : bounds[variable + 1]]
        taken = 0
        for row in rows:
            taken |= used[row]
        free = ~taken & (taken + 1)
        for row in rows:
            used[row] |= free
        found.append(free.bit_length() - 1)
    return found
