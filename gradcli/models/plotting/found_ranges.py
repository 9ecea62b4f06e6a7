"""Finds a range in which there is something to see: roots, extrema and inflections, and where a function bends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.models.plotting.ranges import PlotRange
from gradcli.models.plotting.refinement import Evaluate

# The lengths of the ranges around 0 that are examined, one after the other, and the points in each.
_LENGTHS = [10.0**k for k in range(-3, 5)]
_POINTS = 401
# The reach of a range, relative to the farthest root or extremum, and to the farthest inflection.
_BEHIND_EXTREMUM, _BEHIND_INFLECTION = 1.5, 3.0
# Its reach, relative to the distance over which the slope changes by its own size.
_SCALES = 5.0
# A function with more roots and extrema on one side oscillates, and the range contains this number of them.
_OSCILLATING, _SHOWN = 10, 5
# The reach where nothing says how far to go.
_USUAL = 5.0
# Reaches are rounded up to these, times a power of 10.
_ROUND = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
# The number of halvings by which the end of a domain is located.
_HALVINGS = 40


def found_range(functions: Sequence[Evaluate]) -> PlotRange:
    """A range for the curves of some functions, which have everything of interest near 0."""
    reach = _rounded(max(map(_reach, functions)))
    ends = [_domain(function, reach) for function in functions]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return PlotRange(low, high) if low < high else PlotRange(-reach, reach)


def _reach(function: Evaluate) -> float:
    """How far from 0 there is something to see."""
    np = arrays.numpy_namespace()
    turns = inflections = np.empty(0)
    before, nearest = 0.0, math.inf
    for length in _LENGTHS:
        x = np.linspace(-length, length, _POINTS)
        value, slope, bend = function(x)
        if math.isinf(nearest):
            nearest = float(min(abs(x[np.isfinite(value)]), default=math.inf))
        # What is nearer to 0 was located in a shorter range, between points that are closer together.
        turns = np.r_[turns, _beyond(before, _changes(x, value, slope))]
        inflections = np.r_[inflections, _beyond(before, _changes(x, bend))]
        for side in (turns[turns >= 0], -turns[turns < 0]):
            if side.size > _OSCILLATING:
                return float(np.sort(side)[_SHOWN - 1])
        before = length
    reach = max(_farthest(turns) * _BEHIND_EXTREMUM, _farthest(inflections) * _BEHIND_INFLECTION, _scale(function))
    return max(reach or _USUAL, 2 * nearest if math.isfinite(nearest) else 0.0)


def _changes(x: Any, *values: Any) -> Any:
    """Where numbers change their sign continuously, apart from the ends."""
    np = arrays.numpy_namespace()
    found = []
    for y in values:
        with arrays.quiet():
            sign = np.sign(y)
            crosses = (sign[:-1] * sign[1:] < 0) & (abs(np.diff(y)) <= abs(y[:-1]) + abs(y[1:]))
            exact = (sign[1:-1] == 0) & (sign[:-2] * sign[2:] < 0)
        found += [(x[:-1] + x[1:])[crosses] / 2, x[1:-1][exact]]
    return np.concatenate(found)


def _beyond(length: float, places: Any) -> Any:
    return places[abs(places) > length]


def _farthest(places: Any) -> float:
    return float(abs(places).max()) if places.size else 0.0


def _scale(function: Evaluate) -> float:
    """The distance from 1 or -1 over which the slope changes by its own size, as the decay length of exp."""
    np = arrays.numpy_namespace()
    _, slope, bend = function(np.asarray([1.0, -1.0]))
    with arrays.quiet():
        lengths = abs(slope / bend)
    lengths = lengths[np.isfinite(lengths) & (lengths > 0)]
    return _SCALES * float(lengths.min()) if lengths.size else 0.0


def _rounded(reach: float) -> float:
    power = 10.0 ** math.floor(math.log10(min(max(reach, _LENGTHS[0]), _LENGTHS[-1])))
    return next(step * power for step in _ROUND if step * power >= reach * (1 - 1e-9) or step == _ROUND[-1])


def _domain(function: Evaluate, reach: float) -> tuple[float, float]:
    """The part of the range from -reach to reach in which a function has values."""
    np = arrays.numpy_namespace()
    x = np.linspace(-reach, reach, 2 * _POINTS + 1)
    there = np.flatnonzero(np.isfinite(function(x)[0]))
    if not there.size:
        return reach, -reach
    first, last = int(there[0]), int(there[-1])
    low = x[0] if first == 0 else _end(function, x[first - 1], x[first])
    high = x[-1] if last == x.size - 1 else _end(function, x[last + 1], x[last])
    return float(low), float(high)


def _end(function: Evaluate, outside: float, inside: float) -> float:
    """The end of a domain between two points; a round number where one is as near as can be told."""
    np = arrays.numpy_namespace()
    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        if np.isfinite(function(np.asarray([middle]))[0][0]):
            inside = middle
        else:
            outside = middle
    nearest = round(inside, 6)
    return nearest if abs(nearest - inside) < 1e-9 * max(1.0, abs(inside)) else inside
