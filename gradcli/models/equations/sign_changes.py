"""Roots of one equation in one unknown by changes of sign: a guaranteed one in a bracket, and all that samples of a
range show, with the intervals in which values are 0 or round to 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import EvaluationError, GradcliError, LimitError
from gradcli.models.equations.systems import EquationSystem
from gradcli.named_tuples import NamedTuple

# Initial sample points of a range, before `_resolved` refines them.
_SAMPLES = 2_001
_EPSILON = 2.0**-52
# Sample points of a bracket with a zero at one end, which look for a value that is not 0.
_BRACKET_SAMPLES = 33
# A sign change is a root where the residual is at most `_ULPS` rounding errors of the point times the slope, or at most
# `_RESIDUAL_SHARE` times the largest residual at the ends of the bracket.
_ULPS, _RESIDUAL_SHARE = 64.0, 1e-12
# A sign change is `coarse`, and not classified, where the function changes between neighbouring floats by more than
# this share of its values around, as `sin(x)` around 1e300.
_COARSE_CHANGE = 0.01
# Upper bound of the sign changes, and of the zeros, that are examined: each takes milliseconds.
_MOST_CROSSINGS = 1_000
# Where there are more, wider intervals are preferred; widths within a factor of 2**`_WIDTH_CLASS` count as equal.
_WIDTH_CLASS = 4
# Steps, in units of 1/8, that are charged for each point that is evaluated on its own, beyond those of the program.
_EVALUATION = 40
# A turning point is a double root where its value is at most this many rounding errors of the values around it.
_TOUCHING = 16.0
# Computes values and slopes `[n]` at points `[n]`.
_Sampled = Callable[[Any], tuple[Any, Any]]

# Upper bounds of points and of halvings: except around 0, 2**60 parts of an interval are neighbouring floats.
_MOST_POINTS, _MOST_LEVELS = 2**21, 60
# The deviation from the cubic that is allowed in the middle, as a share of the change from there to the ends.
_OFF = 0.02
# The number of neighbours on both sides that must pass the test as well.
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
# Upper bound of bisection steps: there are about 2**64 floats, and `middle` halves an interval by their number.
_MAX_HALVINGS = 200
# An interval of zeros that is at most this share of the range counts as a point: around a root at which a function is
# flat, floats are 0.
_NARROW = 1e-3
# The distance from the edge of an interval of zeros at which values are tested for growth: at least `_ZERO_BESIDE` times the
# distance to the next value that is not 0, and at least `_ZERO_ULPS` units in the last place.
_ZERO_BESIDE, _ZERO_ULPS = 1e-9, 8.0
# Values below `_ROUNDED` times the scale of the others, or below `_TINY`, may be rounded to 0 further on. They are,
# where a distance `_FURTHER` times as great makes them grow by less than `_GROWTH`: values grow faster near a root, but
# not in a tail such as those of `exp(-x)` and `1 - tanh(x)`.
_ROUNDED, _TINY = 1e-13, 1e-280
_FURTHER, _GROWTH = 100.0, 10.0
# The least growth of values from 1 to 10 widths beyond a narrow interval of zeros that shows a root in it.
_ROOT_GROWTH = 5.0

Curve = Callable[[float], float]


class SignChange(NamedTuple):
    """A point where the sign changes, or an interval of zeros up to `end`.

    `kind` is `root`, `double root`, `pole`, `jump`, or `coarse` where neighbouring floats are too far apart to tell.
    For an interval it is `stretch`, where the function is 0 throughout, or `rounded`, where values are 0 only by
    rounding and show no root.
    """

    point: float
    kind: str
    end: float | None = None


class AllCrossings(NamedTuple):
    """The crossings `found` in a range, the number of further sign changes that were `left_out`, and the intervals
    `untold`, in which samples do not determine the behaviour of the function."""

    found: list[SignChange]
    left_out: int
    untold: list[tuple[float, float]]


class ScalarEquation:
    """One equation in one unknown: the difference of its sides, and its derivative."""

    def __init__(self, system: EquationSystem) -> None:
        self.system = system
        (self.name,) = system.packing.shapes

    def value(self, x: float) -> float:
        xp = arrays.numpy_namespace()
        return float(self.system.residual(xp.asarray([x]))[0])

    def slope(self, x: float) -> float:
        xp = arrays.numpy_namespace()
        return float(self.system.jacobian(xp.asarray([x]))[0, 0])

    def sampled(self, points: Any) -> tuple[Any, Any]:
        """The values and slopes `[n]` at points `[n]`."""
        xp = arrays.numpy_namespace()
        try:
            values, found = self.system.program.value_and_grad(
                {**self.system.constants, self.name: points}, [self.name], rows=[self.name]
            )
            slopes = xp.zeros(len(points)) if found[self.name] is None else xp.ravel(found[self.name])
            return xp.ravel(values), slopes
        except LimitError:
            raise
        except GradcliError:
            # At some point there is no value, so that each is evaluated on its own.
            limits.charge_steps(_EVALUATION * len(points))
            return xp.asarray([*map(self.value, points)]), xp.asarray([*map(self.slope, points)])


def root_between(curve: ScalarEquation, low: float, high: float) -> SignChange:
    """The sign change between two numbers. Raises EvaluationError where the ends have no values of opposite signs."""
    with arrays.quiet():
        ends = curve.value(low), curve.value(high)
        if math.isnan(ends[0]) != math.isnan(ends[1]):
            # Only one end has a value: shrink the bracket to the edge of the domain.
            inside, outside = (high, low) if math.isnan(ends[0]) else (low, high)
            edge = _edge(curve, inside, outside)
            if _is_root_at_edge(curve, edge, inside):
                return SignChange(edge, "root")
            low, high = sorted((inside, edge))
            ends = curve.value(low), curve.value(high)
        if math.isnan(ends[0]) or math.isnan(ends[1]) or _are_opposite(ends[0], -ends[1]):
            raise EvaluationError(
                f"there is no change of sign between {curve.name}={low:g} and {curve.name}={high:g}: "
                f"left - right is {ends[0]:.6g} and {ends[1]:.6g}",
                hint="--all finds all changes of sign inside of a range",
                span=curve.system.equations.places[0],
                source=curve.system.equations.program.source,
            )
        if ends[0] == 0.0:
            return _at_end(curve, low, high)
        return _at_end(curve, high, low) if ends[1] == 0.0 else root_or_jump_between(curve, low, high, *ends)


def all_crossings(curve: ScalarEquation, low: float, high: float, is_noisy: Callable[[float], bool]) -> AllCrossings:
    """Every sign change that samples of a range show, and every double root between them. `is_noisy` says of a point
    whether rounding errors hide how the function changes there."""
    xp = arrays.numpy_namespace()
    with arrays.quiet():
        points, values, slopes, found = _with_edges(curve, xp.linspace(low, high, _SAMPLES))
        seen = _resolved(curve.sampled, is_noisy, points, values, slopes)
        signs, turns = xp.sign(seen.values), xp.sign(seen.slopes)
        changes = changes_sign(seen.values)
        # Two values of one sign between which the function approaches 0 and turns away again.
        turning = (signs[:-1] * signs[1:] > 0) & (signs[:-1] * turns[:-1] < 0) & (signs[1:] * turns[1:] > 0)
        is_whole = changes.sum() <= _MOST_CROSSINGS
        taken = sorted([*_chosen(seen, changes), *(_chosen(seen, turning) if is_whole else [])])
        for n in taken:
            a, b, fa, fb = (float(each[k]) for each in (seen.points, seen.values) for k in (n, n + 1))
            found += (
                [root_or_jump_between(curve, a, b, fa, fb)]
                if changes[n]
                else _crossings_at_turn(curve, (a, fa), (b, fb))
            )
        zeros = [*islice(_zeros(curve, seen.points, seen.values), _MOST_CROSSINGS + 1)]
        found += zeros[:_MOST_CROSSINGS]
        left_out = max(0, int(changes.sum()) - _MOST_CROSSINGS) + len(zeros[_MOST_CROSSINGS:])
        return AllCrossings(sorted(set(found), key=lambda crossing: crossing.point), left_out, _stretches(seen))


def _chosen(seen: Resolved, are_wanted: Any) -> list[int]:
    """The indices of at most `_MOST_CROSSINGS` of the intervals `are_wanted`, ascending: resolved intervals come before
    unresolved ones, then wider before narrower, then lower before higher."""
    xp = arrays.numpy_namespace()
    places = xp.flatnonzero(are_wanted)
    widths = xp.diff(seen.points)[places]
    narrow = xp.log2(widths.max(initial=0.0) / widths) // _WIDTH_CLASS
    return [*map(int, xp.sort(places[xp.lexsort((places, narrow, seen.untold[places]))][:_MOST_CROSSINGS]))]


def _stretches(seen: Resolved) -> list[tuple[float, float]]:
    """The intervals that are not resolved, with adjacent ones joined."""
    xp = arrays.numpy_namespace()
    padded = xp.concatenate([[False], seen.untold, [False]]).astype(int)
    begins, ends = xp.flatnonzero(xp.diff(padded) == 1), xp.flatnonzero(xp.diff(padded) == -1)
    return [*zip(seen.points[begins].tolist(), seen.points[ends].tolist())]


def _with_edges(curve: ScalarEquation, points: Any) -> tuple[Any, Any, Any, list[SignChange]]:
    """The points with the edges of the domain between them inserted, the values and slopes there, and the roots at
    these edges."""
    xp = arrays.numpy_namespace()
    values, slopes = curve.sampled(points)
    ends = xp.flatnonzero(xp.diff(xp.isnan(values).astype(int)))
    pairs = [(points[n], points[n + 1]) if xp.isnan(values[n + 1]) else (points[n + 1], points[n]) for n in ends]
    edges = [(_edge(curve, float(inside), float(outside)), float(inside)) for inside, outside in pairs]
    new = [edge for edge, _ in edges]
    values = xp.insert(values, ends + 1, [*map(curve.value, new)])
    slopes = xp.insert(slopes, ends + 1, [*map(curve.slope, new)])
    roots = [SignChange(edge, "root") for edge, inside in edges if _is_root_at_edge(curve, edge, inside)]
    return xp.insert(points, ends + 1, new), values, slopes, roots


def _edge(curve: ScalarEquation, inside: float, outside: float) -> float:
    """The last point with a value on the way from `inside`, where there is one, to `outside`, where there is none."""
    return _last_point(lambda x: not math.isnan(curve.value(x)), inside, outside)


def _is_root_at_edge(curve: ScalarEquation, edge: float, inside: float) -> bool:
    """Return whether there is a root within a float of the edge of the domain, such as that of
    `sqrt(x**2 - 2)`: the residual at the edge is small relative to that nearby."""
    value, beside = curve.value(edge), curve.value(edge + math.copysign(_ULPS * math.ulp(edge), inside - edge))
    return 0.0 < abs(value) < math.inf and abs(beside - value) >= abs(value) and not _are_opposite(value, beside)


def _zeros(curve: ScalarEquation, points: Any, values: Any) -> Iterator[SignChange]:
    """The crossings for the sampled values that are 0, adjacent ones together."""
    xp = arrays.numpy_namespace()
    padded = xp.concatenate([[False], values == 0.0, [False]]).astype(int)
    finite = abs(values[xp.isfinite(values)])
    among = SearchScale(float(points[-1] - points[0]), float(finite.max(initial=0.0)))
    begins, ends = xp.flatnonzero(xp.diff(padded) == 1), xp.flatnonzero(xp.diff(padded) == -1)
    for begin, end in zip(begins.tolist(), ends.tolist()):
        low = float(points[begin - 1]) if begin else None
        high = float(points[end]) if end < len(points) else None
        yield _of_zeros(zeros_around(curve.value, float(points[begin]), float(points[end - 1]), low, high, among))


def isolated_zeros(values: Any) -> Any:
    """The indices of the values that are 0 between others that are not. Adjacent zeros belong to an interval of zeros,
    or to values that round to 0, and so may those at the ends."""
    xp = arrays.numpy_namespace()
    padded = xp.concatenate([[True], values == 0.0, [True]])
    return xp.flatnonzero(padded[1:-1] & ~padded[:-2] & ~padded[2:])


def _of_zeros(found: ZeroInterval) -> SignChange:
    if found.is_point:
        return SignChange(found.low, "root")
    return SignChange(found.low, "rounded" if found.rounded else "stretch", found.high)


def _at_end(curve: ScalarEquation, end: float, other: float) -> SignChange:
    """The crossing for a value of 0 at an end of a bracket."""
    xp = arrays.numpy_namespace()
    looks = {x: curve.value(x) for x in map(float, xp.linspace(end, other, _BRACKET_SAMPLES)[1:])}
    inner = next((x for x, v in looks.items() if v != 0.0), None)
    low, high = (None, inner) if other > end else (inner, None)
    if inner is None:
        return SignChange(min(end, other), "stretch", max(end, other))
    among = SearchScale(abs(other - end), max((abs(v) for v in looks.values() if math.isfinite(v)), default=0.0))
    return _of_zeros(zeros_around(curve.value, end, end, low, high, among))


def _are_opposite(a: float, b: float) -> bool:
    """Return whether the signs are opposite. The product is not used, as it may underflow."""
    return a < 0.0 < b or b < 0.0 < a


def changes_sign(values: Any) -> Any:
    """A mask `[n - 1]` of the neighbours among values `[n]` whose signs are opposite."""
    before, after = values[:-1], values[1:]
    return ((before < 0.0) & (after > 0.0)) | ((before > 0.0) & (after < 0.0))


def _crossings_at_turn(
    curve: ScalarEquation, left: tuple[float, float], right: tuple[float, float]
) -> Iterator[SignChange]:
    """The roots between two points of one sign between which the function approaches 0 and turns back: two sign
    changes, a double root, or none."""
    (a, fa), (b, fb) = left, right
    inner, outer = a, b
    for _ in range(_MAX_HALVINGS):
        tried = middle(inner, outer)
        if tried in (inner, outer):
            break
        if _are_opposite(fa, curve.slope(tried)):
            inner = tried
        else:
            outer = tried
    turn = min(inner, outer, key=lambda x: abs(curve.value(x)))
    value = curve.value(turn)
    if _are_opposite(value, fa):
        yield root_or_jump_between(curve, a, turn, fa, value)
        yield root_or_jump_between(curve, turn, b, value, fb)
    elif abs(value) <= _TOUCHING * _EPSILON * max(abs(fa), abs(fb)):
        yield SignChange(turn, "double root")


def root_or_jump_between(curve: ScalarEquation, low: float, high: float, at_low: float, at_high: float) -> SignChange:
    """The crossing in a bracket whose ends have opposite signs: by Newton steps where they stay in the bracket and are
    less than half as long as the step before, else by bisection, down to neighbouring floats."""
    largest = max((abs(end) for end in (at_low, at_high) if math.isfinite(end)), default=0.0)
    among = SearchScale(high - low, largest)
    for end, value in ((low, at_low), (high, at_high)):
        if value == 0.0:
            return SignChange(end, "root")
    x = low if abs(at_low) < abs(at_high) else high
    value, before = curve.value(x), high - low
    for _ in range(_MAX_HALVINGS):
        slope = curve.slope(x)
        tried = x - value / slope if slope else math.nan
        step = abs(tried - x)
        if not low < tried < high or not step < before / 2.0:
            tried = middle(low, high)
            if tried in (low, high):
                break
            step = high - low
        elif step <= _EPSILON * abs(tried):
            # The root is next to this point; a trial just beyond the root makes the bracket small.
            tried = math.nextafter(tried, high if (value < 0.0) == (at_low < 0.0) else low)
        before, x, value = step, tried, curve.value(tried)
        if value == 0.0:
            return (
                SignChange(x, "root")
                if curve.slope(x)
                else _of_zeros(zeros_around(curve.value, x, x, low, high, among))
            )
        if math.isnan(value):
            return SignChange(x, "jump")
        if (value < 0.0) == (at_low < 0.0):
            low, at_low = x, value
        else:
            high, at_high = x, value
    return _kind(curve, min((low, at_low), (high, at_high), key=lambda end: abs(end[1])), largest)


def _kind(curve: ScalarEquation, nearest: tuple[float, float], largest: float) -> SignChange:
    x, value = nearest
    slope = curve.slope(x)
    if _COARSE_CHANGE * largest < math.ulp(x) * abs(slope) < math.inf and abs(value) <= largest:
        return SignChange(x, "coarse")
    if abs(value) <= max(_RESIDUAL_SHARE * largest, _ULPS * _EPSILON * abs(x * slope)) and not abs(value) > largest:
        return SignChange(x, "root")
    return SignChange(x, "pole" if not abs(value) <= largest else "jump")


class Resolved(NamedTuple):
    """Sorted points `[n]` with their values and slopes, and a mask `untold` `[n - 1]` of the intervals that are not
    resolved."""

    points: Any
    values: Any
    slopes: Any
    untold: Any


def _resolved(sampled: _Sampled, is_noisy: Callable[[float], bool], points: Any, values: Any, slopes: Any) -> Resolved:
    """The points with those inserted that resolve all intervals, as far as the limits allow. `is_noisy` says of a point
    whether rounding errors hide how the function changes there."""
    np = arrays.numpy_namespace()
    untold = _are_open(points, values, np)
    # The number of consecutive tests that each interval, or the ones it is a part of, passed.
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


class ZeroInterval(NamedTuple):
    """The interval in which values are 0, and whether they are `rounded` to 0, so that the function need not be 0
    there."""

    low: float
    high: float
    rounded: bool

    @property
    def is_point(self) -> bool:
        return self.low == self.high and not self.rounded


class SearchScale(NamedTuple):
    """The width of the range in which zeros are looked for, and the scale of the values there."""

    width: float
    scale: float


def zeros_around(
    value: Curve, first: float, last: float, low: float | None, high: float | None, among: SearchScale
) -> ZeroInterval:
    """The zeros that contain the interval from `first` to `last`, which may be one point. `low` and `high` are points
    on both sides at which values are not 0; where one is None, the interval ends on that side at `first` or `last`."""
    left, right = (
        None if other is None else _last_point(lambda x: value(x) == 0.0, zero, other)
        for zero, other in ((first, low), (last, high))
    )
    begin, end = (first if left is None else left), (last if right is None else right)
    is_narrow = end - begin <= _NARROW * among.width
    if is_narrow and left is not None and right is not None:
        return ZeroInterval(first, first, False)
    edges = [(e, o) for e, o in ((left, low), (right, high)) if e is not None and o is not None]
    rounded = any(_is_rounded(value, edge, other, among.scale) for edge, other in edges)
    if is_narrow and (not rounded or any(_grows(value, edge, other, end - begin) for edge, other in edges)):
        return ZeroInterval(first, first, False)
    return ZeroInterval(begin, end, rounded)


def _last_point(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last point between `inside`, where a predicate holds, and `outside`, where it does not, at which it holds, by
    bisection."""
    for _ in range(_MAX_HALVINGS):
        tried = middle(min(inside, outside), max(inside, outside))
        if tried in (inside, outside):
            break
        if holds(tried):
            inside = tried
        else:
            outside = tried
    return inside


def _is_rounded(value: Curve, edge: float, other: float, scale: float) -> bool:
    """Return whether values beyond an edge grow from 0 so slowly that they were rounded to 0 before it."""
    step = math.copysign(max(_ZERO_BESIDE * abs(other - edge), _ZERO_ULPS * math.ulp(edge)), other - edge)
    beside = abs(value(edge + step))
    return beside < max(_TINY, _ROUNDED * scale) and abs(value(edge + _FURTHER * step)) < _GROWTH * beside


def _grows(value: Curve, edge: float, other: float, width: float) -> bool:
    """Return whether values beyond the edge of a narrow interval of zeros grow as they do from a root."""
    step = math.copysign(max(width, _ZERO_ULPS * math.ulp(edge)), other - edge)
    beside = abs(value(edge + step))
    return beside >= _TINY and abs(value(edge + 10.0 * step)) >= _ROOT_GROWTH * beside


def middle(low: float, high: float) -> float:
    """A number between two others with about as many floats on either side: geometric where their sizes differ."""
    if low < 0.0 < high:
        return 0.0
    if abs(low) > 2.0 * abs(high) > 0.0 or abs(high) > 2.0 * abs(low) > 0.0:
        return math.copysign(math.sqrt(abs(low)) * math.sqrt(abs(high)), low)
    return low + (high - low) / 2.0
