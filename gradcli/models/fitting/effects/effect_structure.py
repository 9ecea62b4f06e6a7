"""The random effects of all groups as one vector, and their matrices as blocks: groups that share no row are
independent, and those with equally many effects are computed together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gradcli.errors import UsageError
from gradcli.models.fitting.notation.random_terms import RandomTerm
from gradcli.named_tuples import NamedTuple

# The most effects of groups that are connected by rows, whose matrix is dense, and the most numbers in all matrices.
_MOST_CONNECTED, _MOST_ELEMENTS = 4_000, 2**25


class Levels(NamedTuple):
    """A term with its levels, as texts, and the level `codes` `[n]` of the rows."""

    term: RandomTerm
    names: Sequence[str]
    codes: Any


class EffectBatch(NamedTuple):
    """Connected groups with `size` effects each: their places among all effects, and among all matrix elements."""

    size: int
    effects: slice
    elements: slice


class EffectStructure:
    """All Q effects of some terms, in an order in which those of connected groups stand together.

    `places[t]` `[l, k]` are the places of the k effects of the l levels of term t, and `of_rows` `[r, n]` those of the r
    effects of each row. A matrix of the effects is `[E]`, the elements of all of its blocks.
    """

    def __init__(self, levels: Sequence[Levels]) -> None:
        self.levels = levels
        groups = _connected(levels)
        widths = np.zeros(max(own.max() for own in groups) + 1, int)
        for own, each in zip(groups, levels):
            widths += len(each.term.effects) * np.bincount(own, minlength=len(widths))
        _check_size(widths)
        # Connected groups in the order of their sizes, so that those of one size are a batch.
        order = np.argsort(widths, kind="stable")
        first, begin = np.zeros(len(widths), int), np.zeros(len(widths), int)
        first[order] = np.cumsum(widths[order]) - widths[order]
        begin[order] = np.cumsum(widths[order] ** 2) - widths[order] ** 2
        self.count, self.elements = int(widths.sum()), int((widths**2).sum())
        self.batches = [*_batches(widths[order])]
        self.places: list[Any] = []
        used = np.zeros(len(widths), int)
        for own, each in zip(groups, levels):
            k = len(each.term.effects)
            rank = _rank_within(own)
            within = used[own] + k * rank
            self.places.append((first[own] + within)[:, None] + np.arange(k))
            used += k * np.bincount(own, minlength=len(widths))
        every = np.repeat(order, widths[order])
        # The number of the connected group of each effect.
        self.group_of = np.repeat(np.arange(len(widths)), widths[order])
        # By effect: the first element of its row of a matrix, and its place in that row.
        self._place = np.arange(self.count) - first[every]
        self._row = begin[every] + self._place * widths[every]
        self.of_rows = np.concatenate([place[each.codes].T for place, each in zip(self.places, levels)])

    def element(self, row: Any, column: Any) -> Any:
        """The places among the elements of a matrix, for effects of the same connected groups."""
        return self._row[row] + self._place[column]

    def vectors(self, vector: Any) -> Iterator[Any]:
        """The parts `[g, q, …]` of a vector `[Q, …]` for each batch."""
        for batch in self.batches:
            yield vector[batch.effects].reshape(-1, batch.size, *vector.shape[1:])

    def matrices(self, matrix: Any) -> Iterator[Any]:
        """The blocks `[g, q, q]` of a matrix for each batch."""
        for batch in self.batches:
            yield matrix[batch.elements].reshape(-1, batch.size, batch.size)

    def of_blocks(self, compute: Callable[..., Any], *matrices: Any) -> Any:
        """The matrix whose blocks are computed from those of other ones."""
        return np.concatenate([compute(*blocks).reshape(-1) for blocks in zip(*map(self.matrices, matrices))])

    def product(self, left: Any, right: Any) -> Any:
        """The product of two matrices."""
        return self.of_blocks(np.matmul, left, right)

    def transposed(self, matrix: Any) -> Any:
        return self.of_blocks(lambda block: np.swapaxes(block, 1, 2), matrix)

    def trace(self, matrix: Any) -> float:
        return sum(float(np.einsum("gii->", block)) for block in self.matrices(matrix))

    def trace_of_product(self, left: Any, right: Any) -> float:
        """The trace of the product of two matrices."""
        pairs = zip(self.matrices(left), self.matrices(right))
        return sum(float(np.einsum("gij,gji->", one, other)) for one, other in pairs)

    def times(self, matrix: Any, vector: Any) -> Any:
        """The product `[Q, …]` of a matrix and a vector `[Q]`, or several, `[Q, k]`."""
        wide = vector.reshape(self.count, -1)
        parts = zip(self.matrices(matrix), self.vectors(wide))
        return np.concatenate([(m @ v).reshape(-1, wide.shape[1]) for m, v in parts]).reshape(vector.shape)

    def unit(self) -> Any:
        """The unit matrix."""
        found = np.zeros(self.elements)
        every = np.arange(self.count)
        found[self.element(every, every)] = 1.0
        return found

    def group_sums(self, of_effects: Any, of_rows: Any = None) -> Any:
        """The sums over each connected group of numbers `[Q]` of the effects and numbers `[n]` of the rows."""
        found = np.bincount(self.group_of, of_effects)
        if of_rows is not None:
            found = found + np.bincount(self.group_of[self.of_rows[0]], of_rows, len(found))
        return found


def _connected(levels: Sequence[Levels]) -> list[Any]:
    """The connected group of each level of each term: levels with a common row are connected."""
    if len(levels) == 1:
        return [np.arange(len(levels[0].names))]
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    counts = [len(each.names) for each in levels]
    begins = np.cumsum([0, *counts])
    one = np.tile(levels[0].codes, len(levels) - 1)
    other = np.concatenate([begin + each.codes for begin, each in zip(begins[1:], levels[1:])])
    pairs = coo_array((np.ones(len(one)), (one, other)), shape=(begins[-1], begins[-1]))
    _, found = connected_components(pairs, directed=False)
    return [found[start:end] for start, end in pairwise(begins)]


def _check_size(widths: Any) -> None:
    widest = int(widths.max())
    if widest > _MOST_CONNECTED or int((widths**2).sum()) > _MOST_ELEMENTS:
        raise UsageError(
            f"groups that are connected by rows have {widest:,} random effects, too many for the matrices of all pairs",
            hint=f"there may be {_MOST_CONNECTED:,}; of columns that are nested, write the groups as a/b",
        )


def _batches(widths: Any) -> Iterator[EffectBatch]:
    effect = element = 0
    for size, count in zip(*np.unique(widths, return_counts=True)):
        ends = effect + int(size * count), element + int(size**2 * count)
        yield EffectBatch(int(size), slice(effect, ends[0]), slice(element, ends[1]))
        effect, element = ends


def _rank_within(groups: Any) -> Any:
    """The number of earlier elements of the same group, `[l]`."""
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    found = np.empty(len(groups), int)
    found[order] = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    return found


class Covariances:
    """The Cholesky factors of the covariance matrices of some terms: parameters of any sign, of which those on a
    diagonal are the standard deviation of the first effect, and what the next have beside what the ones before
    determine.

    `entries` are the term, row and column of each parameter.
    """

    def __init__(self, structure: EffectStructure) -> None:
        self.structure = structure
        self.entries = [
            (t, i, j)
            for t, each in enumerate(structure.levels)
            for i in range(len(each.term.effects))
            for j in range(i + 1)
        ]
        self._elements = [
            structure.element(structure.places[t][:, i], structure.places[t][:, j]) for t, i, j in self.entries
        ]

    @property
    def diagonal(self) -> Any:
        """A mask of the parameters that stand on a diagonal."""
        return np.array([i == j for _, i, j in self.entries])

    def factor(self, parameters: Any) -> Any:
        """The factor of all effects as a matrix."""
        found = np.zeros(self.structure.elements)
        for place, value in zip(self._elements, parameters):
            found[place] = value
        return found

    def slope(self, number: int) -> Any:
        """The derivative of the factor by a parameter, a matrix."""
        found = np.zeros(self.structure.elements)
        found[self._elements[number]] = 1.0
        return found

    def along(self, number: int, vector: Any) -> Any:
        """The derivative of the factor by a parameter, times a vector `[Q]`."""
        return self._moved(number, vector, transposed=False)

    def along_transposed(self, number: int, vector: Any) -> Any:
        """The same with the transposed factor."""
        return self._moved(number, vector, transposed=True)

    def _moved(self, number: int, vector: Any, *, transposed: bool) -> Any:
        t, i, j = self.entries[number]
        to, of = (j, i) if transposed else (i, j)
        found = np.zeros(self.structure.count)
        places = self.structure.places[t]
        found[places[:, to]] = vector[places[:, of]]
        return found

    def sum_at(self, number: int, matrix: Any) -> float:
        """The sum of the elements of a matrix at which the parameter stands: its scalar product with `slope`."""
        return float(matrix[self._elements[number]].sum())

    def of_term(self, term: int, parameters: Any) -> Any:
        """The factor of one term `[k, k]`."""
        k = len(self.structure.levels[term].term.effects)
        found = np.zeros((k, k))
        for (t, i, j), value in zip(self.entries, parameters):
            if t == term:
                found[i, j] = value
        return found
