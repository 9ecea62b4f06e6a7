"""Roots of one equation in one unknown by changes of sign: a guaranteed one in a bracket, and all that samples of a
range show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.errors import EvaluationError, GradcliError, LimitError
from gradcli.models.equations.resolution import Resolved, resolved
from gradcli.models.equations.systems import System
from gradcli.models.equations.zeros import MAX_HALVINGS, SearchScale, ZeroInterval, last_point, middle, zeros_around

# Initial sample points of a range, before `resolution` refines them.
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


class Crossing(NamedTuple):
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

    found: list[Crossing]
    left_out: int
    untold: list[tuple[float, float]]


class ScalarEquation:
    """One equation in one unknown: the difference of its sides, and its derivative."""

    def __init__(self, system: System) -> None:
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


def root_between(curve: ScalarEquation, low: float, high: float) -> Crossing:
    """The sign change between two numbers. Raises EvaluationError where the ends have no values of opposite signs."""
    with arrays.quiet():
        ends = curve.value(low), curve.value(high)
        if math.isnan(ends[0]) != math.isnan(ends[1]):
            # Only one end has a value: shrink the bracket to the edge of the domain.
            inside, outside = (high, low) if math.isnan(ends[0]) else (low, high)
            edge = _edge(curve, inside, outside)
            if _is_root_at_edge(curve, edge, inside):
                return Crossing(edge, "root")
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
        seen = resolved(curve.sampled, is_noisy, points, values, slopes)
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


def _with_edges(curve: ScalarEquation, points: Any) -> tuple[Any, Any, Any, list[Crossing]]:
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
    roots = [Crossing(edge, "root") for edge, inside in edges if _is_root_at_edge(curve, edge, inside)]
    return xp.insert(points, ends + 1, new), values, slopes, roots


def _edge(curve: ScalarEquation, inside: float, outside: float) -> float:
    """The last point with a value on the way from `inside`, where there is one, to `outside`, where there is none."""
    return last_point(lambda x: not math.isnan(curve.value(x)), inside, outside)


def _is_root_at_edge(curve: ScalarEquation, edge: float, inside: float) -> bool:
    """Whether there is a root within a float of the edge of the domain, as of `sqrt(x**2 - 2)`: the residual at the
    edge is small relative to that nearby."""
    value, beside = curve.value(edge), curve.value(edge + math.copysign(_ULPS * math.ulp(edge), inside - edge))
    return 0.0 < abs(value) < math.inf and abs(beside - value) >= abs(value) and not _are_opposite(value, beside)


def _zeros(curve: ScalarEquation, points: Any, values: Any) -> Iterator[Crossing]:
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


def _of_zeros(found: ZeroInterval) -> Crossing:
    if found.is_point:
        return Crossing(found.low, "root")
    return Crossing(found.low, "rounded" if found.rounded else "stretch", found.high)


def _at_end(curve: ScalarEquation, end: float, other: float) -> Crossing:
    """The crossing for a value of 0 at an end of a bracket."""
    xp = arrays.numpy_namespace()
    looks = {x: curve.value(x) for x in map(float, xp.linspace(end, other, _BRACKET_SAMPLES)[1:])}
    inner = next((x for x, v in looks.items() if v != 0.0), None)
    low, high = (None, inner) if other > end else (inner, None)
    if inner is None:
        return Crossing(min(end, other), "stretch", max(end, other))
    among = SearchScale(abs(other - end), max((abs(v) for v in looks.values() if math.isfinite(v)), default=0.0))
    return _of_zeros(zeros_around(curve.value, end, end, low, high, among))


def _are_opposite(a: float, b: float) -> bool:
    """Whether the signs are opposite. The product is not used, as it may underflow."""
    return a < 0.0 < b or b < 0.0 < a


def changes_sign(values: Any) -> Any:
    """A mask `[n - 1]` of the neighbours among values `[n]` whose signs are opposite."""
    before, after = values[:-1], values[1:]
    return ((before < 0.0) & (after > 0.0)) | ((before > 0.0) & (after < 0.0))


def _crossings_at_turn(
    curve: ScalarEquation, left: tuple[float, float], right: tuple[float, float]
) -> Iterator[Crossing]:
    """The roots between two points of one sign between which the function approaches 0 and turns back: two sign
    changes, a double root, or none."""
    (a, fa), (b, fb) = left, right
    inner, outer = a, b
    for _ in range(MAX_HALVINGS):
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
        yield Crossing(turn, "double root")


def root_or_jump_between(curve: ScalarEquation, low: float, high: float, at_low: float, at_high: float) -> Crossing:
    """The crossing in a bracket whose ends have opposite signs: by Newton steps where they stay in the bracket and are
    less than half as long as the step before, else by bisection, down to neighbouring floats."""
    largest = max((abs(end) for end in (at_low, at_high) if math.isfinite(end)), default=0.0)
    among = SearchScale(high - low, largest)
    for end, value in ((low, at_low), (high, at_high)):
        if value == 0.0:
            return Crossing(end, "root")
    x = low if abs(at_low) < abs(at_high) else high
    value, before = curve.value(x), high - low
    for _ in range(MAX_HALVINGS):
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
                Crossing(x, "root") if curve.slope(x) else _of_zeros(zeros_around(curve.value, x, x, low, high, among))
            )
        if math.isnan(value):
            return Crossing(x, "jump")
        if (value < 0.0) == (at_low < 0.0):
            low, at_low = x, value
        else:
            high, at_high = x, value
    return _kind(curve, min((low, at_low), (high, at_high), key=lambda end: abs(end[1])), largest)


def _kind(curve: ScalarEquation, nearest: tuple[float, float], largest: float) -> Crossing:
    x, value = nearest
    slope = curve.slope(x)
    if _COARSE_CHANGE * largest < math.ulp(x) * abs(slope) < math.inf and abs(value) <= largest:
        return Crossing(x, "coarse")
    if abs(value) <= max(_RESIDUAL_SHARE * largest, _ULPS * _EPSILON * abs(x * slope)) and not abs(value) > largest:
        return Crossing(x, "root")
    return Crossing(x, "pole" if not abs(value) <= largest else "jump")
