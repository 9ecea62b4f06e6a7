"""The limit of a sequence from its first terms, by Wynn's epsilon algorithm."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradcli.named_tuples import NamedTuple

# The ratio of terms from which a series may converge logarithmically.
_SLOW = 0.9
# Rounding errors of sums, relative to the largest term.
_ROUNDING = 64 * 2.0**-53


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
    error = max(best.error, _logarithmic_rest(terms))
    return best._replace(error=error + 4 * math.ulp(best.value))


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
