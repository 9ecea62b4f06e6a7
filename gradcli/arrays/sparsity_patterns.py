"""Sparsity patterns: which elements of an array depend on which variables, as boolean SciPy matrices in CSR format.

A row stands for an element of an array, a column for a variable. SciPy is imported when a pattern is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Pattern = Any
Positions = Any


def units(first: int, size: int, variables: int) -> Pattern:
    """The pattern of `size` elements that are the variables with indices from `first` on."""
    import numpy as np

    rows = np.arange(size)
    return _made(rows, rows + first, (size, variables))


def rows_at(pattern: Pattern, positions: Positions) -> Pattern:
    """The pattern of the elements at `positions`, an integer array of any shape."""
    return pattern[positions.reshape(-1)]


def taken_entries(pattern: Pattern, positions: Positions) -> int:
    """The number of entries of the result of `rows_at`."""
    import numpy as np

    return int(np.diff(pattern.indptr)[positions.reshape(-1)].sum())


def merged(pattern: Pattern, sources: Positions, targets: Positions, size: int) -> Pattern:
    """The pattern of `size` elements, where element targets[i] depends on element sources[i] of `pattern`."""
    return _made(targets.reshape(-1), sources.reshape(-1), (size, pattern.shape[0])) @ pattern


def union(patterns: Sequence[Pattern]) -> Pattern:
    """The elementwise union of patterns of the same shape."""
    total = patterns[0]
    for pattern in patterns[1:]:
        total = total + pattern
    return total


def vstack(patterns: Sequence[Pattern]) -> Pattern:
    """The patterns stacked vertically."""
    import scipy.sparse

    return patterns[0] if len(patterns) == 1 else scipy.sparse.vstack(patterns, format="csr")


def empty(size: int, variables: int) -> Pattern:
    """The pattern of elements that depend on no variable."""
    import numpy as np

    none = np.zeros(0, "int64")
    return _made(none, none, (size, variables))


def without(pattern: Pattern, dropped: Any) -> Pattern:
    """A square pattern in which the rows and columns of the mask `dropped` are emptied."""
    row, column = entries(pattern)
    kept = ~(dropped[row] | dropped[column])
    return _made(row[kept], column[kept], pattern.shape)


def symmetric(pattern: Pattern) -> Pattern:
    """The union of a square pattern and its transpose."""
    return (pattern + pattern.T).tocsr()


def entries(pattern: Pattern) -> tuple[Positions, Positions]:
    """The row and column indices of the entries, sorted by row and then by column."""
    import numpy as np

    pattern.sort_indices()
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    return rows, pattern.indices.astype("int64")


def _made(rows: Positions, columns: Positions, shape: tuple[int, int]) -> Pattern:
    import numpy as np
    import scipy.sparse

    return scipy.sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)
