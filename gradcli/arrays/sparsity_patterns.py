"""Which elements depend on which variables: boolean matrices in compressed rows, from SciPy.

A row stands for an element of an array, a column for a variable. SciPy is imported where a pattern is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Pattern = Any
Positions = Any


def units(first: int, size: int, variables: int) -> Pattern:
    """The pattern of `size` elements that are the variables from number `first` on."""
    import numpy as np

    rows = np.arange(size)
    return _made(rows, rows + first, (size, variables))


def taken(pattern: Pattern, positions: Positions) -> Pattern:
    """The pattern of the elements at `positions`, an array of any shape."""
    return pattern[positions.reshape(-1)]


def taken_entries(pattern: Pattern, positions: Positions) -> int:
    """How many entries `taken` would give."""
    import numpy as np

    return int(np.diff(pattern.indptr)[positions.reshape(-1)].sum())


def merged(pattern: Pattern, sources: Positions, targets: Positions, size: int) -> Pattern:
    """The pattern of `size` elements, each of which depends on the elements of `sources` beside it in `targets`."""
    return _made(targets.reshape(-1), sources.reshape(-1), (size, pattern.shape[0])) @ pattern


def united(patterns: Sequence[Pattern]) -> Pattern:
    """The pattern of elements that each depend on what one of the same number depends on in any of `patterns`."""
    total = patterns[0]
    for pattern in patterns[1:]:
        total = total + pattern
    return total


def joined(patterns: Sequence[Pattern]) -> Pattern:
    """The rows of all patterns, one below the other."""
    import scipy.sparse

    return patterns[0] if len(patterns) == 1 else scipy.sparse.vstack(patterns, format="csr")


def nothing(size: int, variables: int) -> Pattern:
    """The pattern of elements that depend on no variable."""
    import numpy as np

    none = np.zeros(0, "int64")
    return _made(none, none, (size, variables))


def without(pattern: Pattern, dropped: Any) -> Pattern:
    """A square pattern without the rows and columns in the mask `dropped`, which stay, empty."""
    row, column = entries(pattern)
    kept = ~(dropped[row] | dropped[column])
    return _made(row[kept], column[kept], pattern.shape)


def symmetric(pattern: Pattern) -> Pattern:
    """A square pattern together with its transpose."""
    return (pattern + pattern.T).tocsr()


def entries(pattern: Pattern) -> tuple[Positions, Positions]:
    """The rows and columns of the entries, row by row, the columns rising."""
    import numpy as np

    pattern.sort_indices()
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    return rows, pattern.indices.astype("int64")


def _made(rows: Positions, columns: Positions, shape: tuple[int, int]) -> Pattern:
    import numpy as np
    import scipy.sparse

    return scipy.sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)
