"""Warm-up: the step size by dual averaging, and the variances in windows of doubling length, as in Stan.

Stan Reference Manual, "Automatic parameter tuning" (adaptation of HMC).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# The constants of dual averaging (Hoffman and Gelman, 2014, section 3.2).
_REGULARISATION, _DELAY, _FORGETTING = 0.05, 10.0, 0.75
# The logarithm of the largest step size, whose exponential is finite.
_LARGEST_LOGARITHM = 700.0
# The first phase, the last one, and the first window, in iterations; their shares where the warm-up is short.
_FIRST, _LAST, _WINDOW, _SHARES = 75, 50, 25, (0.15, 0.1)


class DualAveraging:
    """The step size whose mean acceptance probability is `target`."""

    def __init__(self, target: float) -> None:
        self.target = target
        self.restart(1.0)

    def restart(self, step_size: float) -> None:
        self._count, self._excess, self._mean = 0, 0.0, 0.0
        self._toward = math.log(10.0 * step_size)

    def learn(self, acceptance: float) -> float:
        """The next step size, after a transition with this acceptance probability."""
        self._count += 1
        share = 1.0 / (self._count + _DELAY)
        self._excess = (1 - share) * self._excess + share * (self.target - acceptance)
        # A density that is flat, or that grows without end, accepts steps of any size.
        logarithm = min(self._toward - self._excess * math.sqrt(self._count) / _REGULARISATION, _LARGEST_LOGARITHM)
        weight = self._count**-_FORGETTING
        self._mean = weight * logarithm + (1 - weight) * self._mean
        return math.exp(logarithm)

    @property
    def final(self) -> float:
        """The step size to stay with."""
        return math.exp(self._mean)


class Variances:
    """The variances of positions, shrunk toward 0.001 while there are few."""

    def __init__(self, size: int) -> None:
        self._count = 0
        self._mean, self._squares = np.zeros(size), np.zeros(size)

    def add(self, position: Any) -> None:
        self._count += 1
        offset = position - self._mean
        self._mean += offset / self._count
        self._squares += offset * (position - self._mean)

    def estimate(self) -> Any:
        count = self._count
        return (count / (count + 5.0)) * self._squares / max(1, count - 1) + 1e-3 * (5.0 / (count + 5.0))


def window_ends(warmup: int) -> tuple[int, list[int]]:
    """The iteration at which the first window begins, and those at which windows end, after which the variances are
    used."""
    first, last, length = _FIRST, _LAST, _WINDOW
    if warmup < 20:
        return warmup, []
    if first + last + length > warmup:
        first, last = (int(share * warmup) for share in _SHARES)
        return first, [warmup - last]
    ends, begin = [], first
    while begin < warmup - last:
        end = begin + length
        # A window that would leave no room for the next, of twice the length, takes what is left.
        if end + 2 * length > warmup - last:
            end = warmup - last
        ends.append(end)
        begin, length = end, 2 * length
    return first, ends
