"""Maps numbers between bounds to all real numbers, on which the sampler moves, with the logarithm of the Jacobian."""

from __future__ import annotations

from typing import Any

import numpy as np


class BoundedTransform:
    """The transform of vectors between `low` and `high` `[n]`: a logarithm where one of them is finite, log-odds where
    both are, and the identity elsewhere."""

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = low, high
        bounded = np.isfinite(low), np.isfinite(high)
        self._both = bounded[0] & bounded[1]
        self._below, self._above = bounded[0] & ~bounded[1], bounded[1] & ~bounded[0]

    def kinds(self) -> dict[str, Any]:
        """The places of the numbers with an end `below`, `above` or on `both` sides, and of those that are `free`."""
        kinds = {"below": self._below, "above": self._above, "both": self._both}
        kinds["free"] = ~(self._below | self._above | self._both)
        return {name: np.flatnonzero(mask) for name, mask in kinds.items()}

    def inverse(self, x: Any) -> Any:
        """The real numbers for a vector inside of its bounds."""
        free = np.array(x, float)
        for place, distance in ((self._below, x - self.low), (self._above, self.high - x)):
            free[place] = np.log(distance[place])
        both = self._both
        free[both] = np.log(x[both] - self.low[both]) - np.log(self.high[both] - x[both])
        return free

    def numbers(self, free: Any) -> Any:
        """The vectors for arrays of real numbers `[…, n]`."""
        x = free.copy()
        below, above, both = self._below, self._above, self._both
        x[..., below] = self.low[below] + np.exp(free[..., below])
        x[..., above] = self.high[above] - np.exp(free[..., above])
        x[..., both] = self.low[both] + (self.high[both] - self.low[both]) / (1.0 + np.exp(-free[..., both]))
        return x

    def forward(self, free: Any) -> tuple[Any, Any, float, Any]:
        """For real numbers: the vector, its derivatives `[n]`, the logarithm of the Jacobian and its gradient `[n]`."""
        x, slope, gradient = free.copy(), np.ones(len(free)), np.zeros(len(free))
        logarithm = 0.0
        below, above, both = self._below, self._above, self._both
        if below.any():
            slope[below] = np.exp(free[below])
            x[below] = self.low[below] + slope[below]
        if above.any():
            slope[above] = -np.exp(free[above])
            x[above] = self.high[above] + slope[above]
        one_sided = below | above
        gradient[one_sided] = 1.0
        logarithm += float(free[one_sided].sum())
        if both.any():
            share = 1.0 / (1.0 + np.exp(-free[both]))
            width = self.high[both] - self.low[both]
            x[both] = self.low[both] + width * share
            slope[both] = width * share * (1.0 - share)
            gradient[both] = 1.0 - 2.0 * share
            odds = abs(free[both])
            logarithm += float((np.log(width) - odds - 2.0 * np.log1p(np.exp(-odds))).sum())
        return x, slope, logarithm, gradient
