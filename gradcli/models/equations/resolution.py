"""Refinement of sample points of a function of one variable until its values and slopes at them determine its shape
between them.

An interval is resolved where the cubic Hermite interpolant of its ends has the value and the slope of its middle, where
each half is convex or concave according to the slopes, or where values grow towards a pole inside or at an end. Where
sample points are too far apart, as for a fast oscillation, this may happen by chance; so an interval must pass the test
twice in a row together with its neighbours, and more often where a slope at its ends is very steep.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.errors import LimitError

# Computes values and slopes `[n]` at points `[n]`.
Sampled = Callable[[Any], tuple[Any, Any]]

# Upper bounds of points and of halvings: except around 0, 2**60 parts of an interval are neighbouring floats.
_MOST_POINTS, _MOST_LEVELS = 2**21, 60
# The deviation from the cubic that is allowed in the middle, as a share of the change from there to the ends.
_OFF = 0.02
# How many neighbours on both sides must pass the test as well.
_BESIDE = 3
# The rounding error of a mean slope, relative to the values and slopes, that is allowed where it is tested to lie
# between two slopes.
_ROUNDING = 1e-12
# How often in a row an interval must pass the test: `_PASSES`, or `_PASSES_WHERE_STEEP` where a slope times the width is more
# than `_STEEP` times the values.
_PASSES, _PASSES_WHERE_STEEP, _STEEP = 2, 8, 100.0
# Upper bound of the runs of unresolved intervals that are tested for rounding errors, and the number of points tested
# in each.
_MOST_RUNS, _LOOKS = 20, 7


class Resolved(NamedTuple):
    """Sorted points `[n]` with their values and slopes, and a mask `untold` `[n - 1]` of the intervals that are not
    resolved."""

    points: Any
    values: Any
    slopes: Any
    untold: Any


def resolved(sampled: Sampled, is_noisy: Callable[[float], bool], points: Any, values: Any, slopes: Any) -> Resolved:
    """The points with those inserted that resolve all intervals, as far as the limits allow. `is_noisy` says of a point
    whether rounding errors hide how the function changes there."""
    np = arrays.numpy_namespace()
    untold = _are_open(points, values, np)
    # How often in a row each interval, or the ones it is a part of, passed the test.
    often = np.zeros(len(untold), "int8")
    hidden = np.zeros(len(untold), bool)
    try:
        with limits.optional_budget():
            for _ in range(_MOST_LEVELS):
                places = np.flatnonzero(untold)
                if not len(places) or len(points) + len(places) > _MOST_POINTS:
                    break
                middles = points[places] / 2 + points[places + 1] / 2
                at, slope = sampled(middles)
                tells = np.ones(len(untold), bool)
                tells[places] = _is_predicted(points, values, slopes, places, at, slope, np)
                among = np.lib.stride_tricks.sliding_window_view(
                    np.pad(tells, _BESIDE, constant_values=True), 2 * _BESIDE + 1
                ).all(axis=1)
                often = np.where(tells, np.minimum(often + 1, _PASSES_WHERE_STEEP), 0).astype("int8")
                needed = np.where(_are_steep(points, values, slopes, np), _PASSES_WHERE_STEEP, _PASSES)
                # Refinement shows nothing where rounding errors dominate.
                clear = ~_are_noisy(~among[places], middles, places, is_noisy, np)
                untold[places[~clear]], hidden[places[~clear]] = False, True
                places, middles, at, slope = (each[clear] for each in (places, middles, at, slope))
                untold &= ~((often >= needed) & among)
                points = np.insert(points, places + 1, middles)
                values, slopes = np.insert(values, places + 1, at), np.insert(slopes, places + 1, slope)
                untold, often, hidden = (np.insert(each, places + 1, each[places]) for each in (untold, often, hidden))
                untold &= _are_open(points, values, np)
    except LimitError:
        pass
    return Resolved(points, values, slopes, untold | hidden)


def _are_open(points: Any, values: Any, np: Any) -> Any:
    """Mask of the intervals that contain another float and have a value at both ends."""
    middles = points[:-1] / 2 + points[1:] / 2
    has_values = ~np.isnan(values)
    return (points[:-1] < middles) & (middles < points[1:]) & has_values[:-1] & has_values[1:]


def _are_steep(points: Any, values: Any, slopes: Any, np: Any) -> Any:
    """Mask of the intervals with a slope at an end that is far greater than the values, or infinite."""
    sizes, steep = np.maximum(abs(values[:-1]), abs(values[1:])), np.maximum(abs(slopes[:-1]), abs(slopes[1:]))
    with np.errstate(all="ignore"):
        return ~(steep * np.diff(points) <= _STEEP * sizes)


def _is_predicted(points: Any, values: Any, slopes: Any, places: Any, at: Any, slope: Any, np: Any) -> Any:
    """Mask of the intervals, given by the indices `places` of their left ends and the value `at` and the `slope` of
    their middles, that pass the test."""
    left, right, width = values[places], values[places + 1], points[places + 1] - points[places]
    from_left, from_right = slopes[places], slopes[places + 1]
    size = np.maximum(np.maximum(abs(left), abs(right)), abs(at))
    with np.errstate(all="ignore"):
        # A pole may hide behind a constant that is far larger than the function beside it, as in 1/x + 1e8.
        change = np.maximum(np.maximum(abs(left - at), abs(right - at)), width * abs(slope))
        off = _OFF * change + np.where(np.isfinite(size), _ROUNDING * size, 0.0)
        cubic = (left + right) / 2 + width / 8 * (from_left - from_right)
        its_slope = 1.5 * (right - left) / width - (from_left + from_right) / 4
        is_cubic = (abs(at - cubic) <= off) & (abs(slope - its_slope) * width <= off) & np.isfinite(size)
        halves = (
            _is_between((at - left) / width * 2, from_left, slope, size / width, np)
            & _is_between((right - at) / width * 2, slope, from_right, size / width, np)
        )  # fmt: skip
        from_both = (
            (np.sign(left) * from_left > 0) | np.isinf(left),
            (np.sign(right) * from_right < 0) | np.isinf(right),
        )
        ends = [np.where(np.isinf(end), 0.0, abs(end)) for end in (left, right)]
        is_pole = from_both[0] & from_both[1] & (abs(at) > np.maximum(*ends)) & np.isfinite(at)
    return np.isnan(at) | is_cubic | halves | is_pole


def _is_between(mean: Any, one: Any, other: Any, size: Any, np: Any) -> Any:
    low, high = np.minimum(one, other), np.maximum(one, other)
    slack = np.where(np.isfinite(size), _ROUNDING * (size + abs(mean)), 0.0)
    return (low - slack <= mean) & (mean <= high + slack)


def _are_noisy(silent: Any, middles: Any, places: Any, is_noisy: Callable[[float], bool], np: Any) -> Any:
    """Mask of the intervals in long runs of `silent` ones, which fail the test because of rounding errors."""
    is_next = np.diff(places) == 1
    starts = np.flatnonzero(silent & ~np.concatenate([[False], silent[:-1] & is_next]))
    ends = np.flatnonzero(silent & ~np.concatenate([silent[1:] & is_next, [False]]))
    noisy = np.zeros(len(places), bool)
    if len(starts) > _MOST_RUNS:
        return noisy
    for start, end in zip(starts.tolist(), ends.tolist()):
        if end - start > 2 * _BESIDE:
            looks = np.linspace(start, end, _LOOKS).round().astype(int)
            # More than half of the points must be noisy: a single one may, by chance, have the same rounding errors in
            # both runs.
            noisy[start : end + 1] = sum(is_noisy(float(middles[n])) for n in looks) > _LOOKS / 2
    return noisy
