"""The limit of a sequence from its first terms, by Wynn's epsilon algorithm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.named_tuples import NamedTuple

# The ratio of terms from which a series may converge logarithmically.
_SLOW = 0.9
# A part of the terms, the largest relative difference of their limit from that of all where this is settled, and the
# error in units of the difference.
_FEWER, _SETTLED, _MISSED = 0.75, 1e-10, 4.0
# Rounding errors of sums, relative to the largest term.
_ROUNDING = 64 * 2.0**-53
# The number of blocks of terms that are extrapolated at once, and how closely two kinds of blocks agree on a sum.
_BLOCKS, _ALIKE = 128, 5e-14


class Limit(NamedTuple):
    """The limit of a sequence, with an estimate of its error."""

    value: float
    error: float


def limit_of_sums(terms: Sequence[float]) -> Limit:
    """The sum of a series from its first terms.

    The partial sums are extrapolated (P. Wynn, MTAC 10 (1956), 91), which is exact if their distances from the limit
    are sums of geometric sequences. Of all estimates to which the later partial sums come closer, the one is taken that
    changes least from its neighbours.
    """
    best = _extrapolated(terms)
    rest = _logarithmic_rest(terms) if best.error else 0.0
    if rest > best.error:
        fewer = _extrapolated(terms[: int(_FEWER * len(terms))])
        apart = abs(fewer.value - best.value) + best.error
        # What extrapolation misses changes with the number of terms. Of a geometric sequence times a polynomial, whose
        # ratios change too, it misses nothing.
        if apart <= _SETTLED * abs(best.value):
            rest = min(rest, _MISSED * apart)
    return best._replace(error=max(best.error, rest) + (4 * math.ulp(best.value) if best.error else 0.0))


def _extrapolated(terms: Sequence[float]) -> Limit:
    sums, total = [], 0.0
    for i in range(len(terms)):
        total = math.fsum(terms[: i + 1])
        sums.append(total)
    best = Limit(total, abs(terms[-1]) if terms else 0.0)
    if best.error == 0.0:
        return best
    before, column = [0.0] * (len(sums) + 1), sums
    last, rounding = 1, _ROUNDING * max(map(abs, terms))
    while len(column) > 2:
        odd = _next_column(before, column)
        even = _next_column(column, odd)
        # An estimate of the next column but one is made of two sums more.
        last += 2
        for n in range(2, len(even)):
            error = abs(even[n] - even[n - 1]) + abs(even[n] - even[n - 2])
            apart = abs(sums[n + last - 1] - even[n])
            if error < best.error and abs(sums[-1] - even[n]) <= apart + rounding:
                best = Limit(even[n], error)
        before, column = odd, even
    return best


def _logarithmic_rest(terms: Sequence[float]) -> float:
    """A bound on what extrapolation misses of a series whose terms shrink ever more slowly; 0 for others."""
    if len(terms) < 3 or 0.0 in terms[-3:]:
        return 0.0
    before, ratio = terms[-2] / terms[-3], terms[-1] / terms[-2]
    if not _SLOW < ratio < 1.0:
        return 0.0
    return abs(terms[-1]) / (1 - ratio) * min(1.0, 16 * abs(ratio - before) / (1 - ratio))


def _next_column(before: Sequence[float], column: Sequence[float]) -> list[float]:
    """A column of the epsilon table from the two columns before it."""
    found = []
    for n in range(len(column) - 1):
        difference = column[n + 1] - column[n]
        if difference == 0.0:
            # The column has converged; later entries are made of rounding errors.
            break
        found.append(before[n + 1] + 1.0 / difference)
    return found


def oscillating_limits(terms: Any) -> Any:
    """The sums of series whose terms, [rows, terms], change their signs again and again; nan for those not found.

    Blocks of 1, 2, 4, … terms are added up, and the sums of as many blocks of each kind are extrapolated. A sum is found
    where two kinds agree.
    """
    np = arrays.numpy_namespace()
    found, before = np.full(len(terms), np.nan), np.full(len(terms), np.nan)
    for size in 2 ** np.arange(int(math.log2(terms.shape[1] // _BLOCKS)) + 1):
        blocks = terms[:, : _BLOCKS * size].reshape(len(terms), _BLOCKS, size).sum(axis=2)
        limits = _limits(np.cumsum(blocks, axis=1))
        largest = np.abs(terms).max(axis=1)
        agree = np.isnan(found) & (np.abs(limits - before) <= _ALIKE * np.maximum(np.abs(limits), largest))
        found, before = np.where(agree, limits, found), limits
    return found


def _limits(sums: Any) -> Any:
    """The extrapolated limits of sequences, [rows, sums], each the estimate that changes least from its neighbours."""
    np = arrays.numpy_namespace()
    best, least = np.full(len(sums), np.nan), np.full(len(sums), np.inf)
    before, column = np.zeros((len(sums), sums.shape[1] + 1)), sums
    with np.errstate(all="ignore"):
        while column.shape[1] > 4:
            for _ in range(2):
                before, column = column, before[:, 1:-1] + 1.0 / (column[:, 1:] - column[:, :-1])
            error = np.abs(column[:, 2:] - column[:, 1:-1]) + np.abs(column[:, 2:] - column[:, :-2])
            # A sequence that has converged has no differences to divide by.
            error = np.where(np.isfinite(error), error, np.inf)
            place = np.argmin(error, axis=1)[:, None]
            smallest = np.take_along_axis(error, place, 1)[:, 0]
            better = smallest < least
            best = np.where(better, np.take_along_axis(column[:, 2:], place, 1)[:, 0], best)
            least = np.where(better, smallest, least)
    return best
