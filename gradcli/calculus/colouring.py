"""Directions for a sparse Hessian: variables that share no equation of it are followed together.

A. R. Curtis, M. J. D. Powell and J. K. Reid, "On the estimation of sparse Jacobian matrices", IMA
Journal of Applied Mathematics 13 (1974). Variables that depend on nearly all others get a direction
of their own, and the symmetry gives their rows (M. J. D. Powell and P. L. Toint, "On the estimation
of sparse Hessian matrices", SIAM Journal on Numerical Analysis 16, 1979).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.arrays import sparsity_patterns
from gradcli.arrays.sparsity_patterns import Pattern

# An entry takes as long as so many elements.
_ENTRY = 32


class Colouring(NamedTuple):
    """The colour of each variable, from 0 to `number` - 1, and the mask of those that are `alone` in theirs.

    No two variables of one colour have entries in the same row, apart from the rows of variables
    that are alone.
    """

    colours: Any
    number: int
    alone: Any


def colouring(pattern: Pattern) -> Colouring:
    """Colours for the rows and columns of a symmetric pattern."""
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
    """The variables with the most entries, as many of them as leave the fewest colours to expect."""
    xp = arrays.numpy_namespace()
    entries = xp.diff(pattern.indptr)
    order = xp.argsort(-entries, stable=True)
    colours = xp.arange(len(entries)) + entries[order]
    found = xp.zeros(len(entries), bool)
    found[order[: int(colours.argmin()) if len(colours) else 0]] = True
    return found


def _greedy(bounds: list[int], columns: list[int]) -> list[int]:
    """For each variable the first colour that none has with which it shares a row.

    The colours that occur in a row are the bits of a number.
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
