"""Colours the variables of a sparse Hessian, so that the variables of one colour share one direction of
differentiation.

A. R. Curtis, M. J. D. Powell and J. K. Reid, "On the estimation of sparse Jacobian matrices", IMA Journal of Applied
Mathematics 13 (1974). Variables that depend on nearly all others have a direction of their own, and their rows follow
by symmetry (M. J. D. Powell and P. L. Toint, "On the estimation of sparse Hessian matrices", SIAM Journal on Numerical
Analysis 16, 1979).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.arrays import sparsity_patterns
from gradcli.arrays.sparsity_patterns import Pattern

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
