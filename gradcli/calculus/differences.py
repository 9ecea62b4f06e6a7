"""The derivative of a function of one number by central differences, with an estimate of its error.

Ridders, C. J. F. (1982), "Accurate computation of F'(x) and F'(x)F''(x)", Advances in Engineering
Software 4(2), 75-76: differences with decreasing steps are extrapolated to the step 0 (Richardson,
Neville), and how much neighbouring extrapolations differ says how far they can be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

# Of float64.
EPSILON = 2.0**-52
# Steps shrink from a tenth of the number's scale to where the number itself is rounded. Neither is
# a round number: the steps must not fit into the period of a function several times over.
_FIRST_STEP = 0.1301
_SHRINK = 2.07
_STEPS = 38
# Terms of the error that are eliminated; with more the rounding grows and the error hardly falls.
_COLUMNS = 6
# The relative error of an estimate that may stand for one with a smaller error.
_PRECISE = 1e-5
# A function may lose four digits inside; what exceeds its rounding by more is no rounding.
_UNEXPLAINED = 1e4


class Estimate(NamedTuple):
    value: float
    error: float


class Difference(NamedTuple):
    """The slope at a point, and by how much the slope to its right exceeds that to its left.

    `chord` is the largest slope between the point and those of the first step. `drift` is how far
    the differences with other steps lie from the slope, where rounding does not explain it.
    """

    slope: Estimate
    jump: Estimate
    chord: float
    drift: float = 0.0


def difference(
    function: Callable[[float], float],
    x: float,
    value: float,
    scale: float,
    accepted: Callable[[Difference], bool],
) -> Difference | None:
    """The derivative of `function` at `x`, where it is `value`; None where it is not finite beside it.

    The steps are in proportion to `scale`. What is found is the estimate with the smallest error,
    unless it is not `accepted` and a precise one is: a ripple, or a sharp peak, that large steps
    miss and rounding that flattens small ones both look like a straight line.
    """
    found: list[Difference] = []
    best: Difference | None = None
    raw: list[Estimate] = []
    chord = None
    slopes, jumps = _Extrapolation(2), _Extrapolation(1)
    for k in range(_STEPS):
        step = (x + _FIRST_STEP * scale / _SHRINK**k) - x
        if step == 0:
            break
        above, below = function(x + step), function(x - step)
        if not (math.isfinite(above) and math.isfinite(below)):
            slopes, jumps = _Extrapolation(2), _Extrapolation(1)
            continue
        noise = EPSILON * max(abs(above), abs(value), abs(below)) / step
        right, left = (above - value) / step, (value - below) / step
        chord = max(abs(right), abs(left)) if chord is None else chord
        raw.append(Estimate((above - below) / (2 * step), noise))
        slope, jump = slopes.add(*raw[-1]), jumps.add(right - left, 4 * noise)
        if slope is None or jump is None:
            continue
        found.append(Difference(slope, jump, chord))
        if best is None or slope.error < best.slope.error:
            best = found[-1]
            raw.clear()
        elif noise > best.slope.error and accepted(best):
            # Rounding alone would now be worse than what is known.
            return best
    if best is None or accepted(best):
        return best
    precise = (d for d in found if d.slope.error <= _PRECISE * abs(d.slope.value))
    for other in filter(accepted, precise):
        return other
    # Flat is what rounding makes of any function, if the steps are small enough.
    flattened = best.slope.value == 0 and any(map(accepted, found))
    return best._replace(drift=math.inf if flattened else _drift(best.slope.value, raw))


def _drift(slope: float, later: Sequence[Estimate]) -> float:
    strays = (abs(value - slope) for value, noise in later if abs(value - slope) > _UNEXPLAINED * noise)
    return max(strays, default=0.0)


class _Extrapolation:
    """Neville's tableau for values whose error is a series in the step, of the powers `power`,
    2*power, 3*power, …, while the step shrinks by the same factor each time."""

    def __init__(self, power: int) -> None:
        self.power = power
        self.rows: list[list[float]] = []

    def add(self, value: float, noise: float) -> Estimate | None:
        """The best estimate that the value for the next step gives, with at least the error
        `noise`; None where there are too few of them."""
        before = self.rows[-1] if self.rows else []
        row = [value]
        best = None
        for j, neighbour in enumerate(before[:_COLUMNS]):
            factor = _SHRINK ** (self.power * (j + 1))
            row.append(row[j] + (row[j] - neighbour) / (factor - 1))
            if j + 1 < len(before):
                # Two comparisons: rounding makes one of them small by chance now and then.
                error = max(abs(row[j] - neighbour), abs(row[j + 1] - before[j + 1]), noise)
                if best is None or error < best.error:
                    best = Estimate(row[j + 1], error)
        self.rows.append(row)
        return best if best is None or math.isfinite(best.value + best.error) else None
