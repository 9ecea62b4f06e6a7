"""Numerical derivatives by central differences: of one given step, or of many steps, with an estimate of the error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.named_tuples import NamedTuple

# The machine epsilon of float64.
EPSILON = 2.0**-52
# Steps range from a tenth of the scale of the number to its rounding error. Neither constant is a round number, so that
# the steps are not multiples of the period of a function.
_FIRST_STEP = 0.1301
_SHRINK = 2.07
_STEPS = 38
# Number of error terms that are eliminated. With more, rounding errors grow and the total error hardly falls.
_COLUMNS = 6
# Relative error up to which an estimate may replace one with a smaller error.
_PRECISE = 1e-5
# Ratio to the rounding error above which a deviation has another cause: a function may lose four digits internally.
_UNEXPLAINED = 1e4


def central_differences(function: Callable[[float], Sequence[Any]], step: float) -> list[Any]:
    """Return the derivative of each result of `function` at 0, by one difference of a given step."""
    below, above = function(-step), function(step)
    return [(after - before) / (2 * step) for before, after in zip(below, above)]


class Estimate(NamedTuple):
    value: float
    error: float


class Difference(NamedTuple):
    """The slope at a point, and the jump: the slope to the right of the point minus that to its left.

    `chord` is the largest magnitude of the slopes between the point and those of the first step. `drift` is the
    distance between the slope and the differences of later steps, where rounding does not explain it.
    """

    slope: Estimate
    jump: Estimate
    chord: float
    drift: float = 0.0


def ridders_derivative(
    function: Callable[[float], float],
    x: float,
    value: float,
    scale: float,
    accepted: Callable[[Difference], bool],
) -> Difference | None:
    """Estimate the derivative of `function` at `x`, where it has `value`; None where it is not finite nearby.

    Steps are proportional to `scale`. The result is the estimate with the smallest error, unless that is not `accepted`
    and another precise one is: large steps miss a ripple or a sharp peak, and rounding flattens small differences, so
    that both look like a straight line.
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
            # With smaller steps, the rounding error alone exceeds the error of the best estimate.
            return best
    if best is None or accepted(best):
        return best
    precise = (d for d in found if d.slope.error <= _PRECISE * abs(d.slope.value))
    for other in filter(accepted, precise):
        return other
    # With small enough steps, rounding makes any function look flat.
    flattened = best.slope.value == 0 and any(map(accepted, found))
    return best._replace(drift=math.inf if flattened else _drift(best.slope.value, raw))


def _drift(slope: float, later: Sequence[Estimate]) -> float:
    strays = (abs(value - slope) for value, noise in later if abs(value - slope) > _UNEXPLAINED * noise)
    return max(strays, default=0.0)


class _Extrapolation:
    """Neville's tableau for values whose error is a series in powers `power`, 2*`power`, 3*`power`, … of the step.

    Successive steps shrink by the factor `_SHRINK`.
    """

    def __init__(self, power: int) -> None:
        self.power = power
        self.rows: list[list[float]] = []

    def add(self, value: float, noise: float) -> Estimate | None:
        """Add the value for the next step, and return the best estimate, with an error of at least `noise`.

        None where there are too few values, or the estimate is not finite.
        """
        before = self.rows[-1] if self.rows else []
        row = [value]
        best = None
        for j, neighbour in enumerate(before[:_COLUMNS]):
            factor = _SHRINK ** (self.power * (j + 1))
            row.append(row[j] + (row[j] - neighbour) / (factor - 1))
            if j + 1 < len(before):
                # Two differences are compared: rounding occasionally makes one of them small by chance.
                error = max(abs(row[j] - neighbour), abs(row[j + 1] - before[j + 1]), noise)
                if best is None or error < best.error:
                    best = Estimate(row[j + 1], error)
        self.rows.append(row)
        return best if best is None or math.isfinite(best.value + best.error) else None
