"""Bounds of the global minimum of a program in a box, by branch and bound in interval arithmetic and by linear programs
with verified duals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.errors import LimitError
from gradcli.named_tuples import NamedTuple
from gradcli.proofs.box_arithmetic import BoxInterval, add, multiply, negative, subtract, total
from gradcli.proofs.box_arithmetic import divide as quotient
from gradcli.proofs.box_programs import BoxBounds, BoxProgram
from gradcli.proofs.feasible_points import Condition, feasible_boxes, holds
from gradcli.proofs.newton_contraction import clusters, contracted, cut, distances, mean_value, middle

# Boxes that are evaluated at once.
_BATCH = 256
# The gap at which the bounds are closed, relative to the value, or to 1 where the value is smaller and the values at
# points differ by as much.
_CLOSED = 1e-8
# Boxes of minimisers are divided to this share of the whole box, as far as `_MOST_LEFT` boxes go.
_FINE, _MOST_LEFT, _MOST_ROUNDS = 1e-7, 2_000, 60
# Boxes kept at most: each takes 16 bytes a variable.
_MOST_BOXES = 400_000
# A contraction to less than this share of a width replaces a bisection.
_CONTRACTED = 0.7
# Searches for lower points, and the improvement since the last one that asks for another, relative to the gap.
_MOST_SEARCHES, _IMPROVED = 24, 0.01
# Rounds of narrowing by all conditions, and the share of a width to which a box must shrink in one for another.
_MOST_NARROWINGS, _NARROWED = 4, 0.8
# Batches between two points that are tried, each of which takes as long as a part of a batch.
_BETWEEN_POINTS = 4
# The weight of the change of the functions in the choice of the direction that is divided, beside their uncertainty.
_OF_CHANGES = 0.1
# Widths below this many units in the last place are not divided.
_UNDIVIDED = 2.0**-50

# Finds a point with a lower value near a point, and the multipliers of the conditions there, None where there are none.
Improve = Callable[[Any], tuple[Any, Any]]
# The objective plus the conditions times multipliers.
Lagrangian = Callable[[Any], BoxProgram]
# Is told the number of boxes that were looked at, and the upper bound.
Watch = Callable[[int, float], object]
# Boxes whose linear programs are solved together, as one with blocks: calls of the solver take longer than small programs.
_TOGETHER = 32
# The cost of violating a condition, in units of the change of the objective over a box: above the multipliers that occur.
_PENALTY = 1e3
# Multipliers below this share of the largest are left out, which the solver's tolerance may have made.
_NEGLIGIBLE = 1e-9


class BoundedMinimum(NamedTuple):
    """Bounds of the minimum, the point at which the upper one is taken, and the boxes that contain all minimisers, with
    whether each has one at most. `boxes` is the number of boxes that were evaluated, and `ended` says
    why the gap is open, None where it is closed."""

    low: float
    high: float
    point: Any
    minimisers: Sequence[tuple[Any, Any, bool]]
    boxes: int
    ended: str | None


class _Over(NamedTuple):
    """Bounds of the elements of a program over boxes: where derivatives are `usable` `[boxes, m]`, values at
    points, and first derivatives. It is multiplied by `sign`."""

    program: BoxProgram
    sign: float
    is_equation: bool
    usable: Any
    at_point: BoxBounds
    first: BoxBounds

    def of(self, chosen: Any) -> _Over:
        """The same for some of the boxes."""
        parts = (BoxBounds(*(end[chosen] for end in part)) for part in (self.at_point, self.first))
        return _Over(self.program, self.sign, self.is_equation, self.usable[chosen], *parts)

    def signed(self, sign: float) -> tuple[BoxInterval, BoxInterval]:
        """The slopes and the values, of the negative program where `sign` is -1."""
        found = (BoxInterval(part.low, part.high) for part in (self.first, self.at_point))
        slopes, values = found if sign > 0 else map(negative, found)
        return slopes, values


def _rows(over: _Over, low: Any, high: Any, point: Any, upper: Any) -> LinearBounds:
    """Linear functions below the elements of a program, and below their negatives where these are 0 too."""
    # Both ends of a linear function's slopes are known to the rounding.
    width, size = over.first.high - over.first.low, np.maximum(abs(over.first.low), abs(over.first.high))
    with np.errstate(invalid="ignore"):
        is_linear = bool((width <= 1e-12 * size).all())
    corners = [] if is_linear else [upper, ~upper]
    at_corners: list[BoxInterval] = []
    for corner in corners:
        place = np.where(corner, high, low)
        values = over.program.values(place, place)
        bounds = BoxInterval(values.low, values.high)
        at_corners.append(bounds if over.sign > 0 else negative(bounds))
    found = []
    for sign in (1.0, -1.0) if over.is_equation else (1.0,):
        slopes, at_point = over.signed(sign)
        found.append(_rows_at_middle(at_point, slopes, low, high, point))
        for corner, at in zip(corners, at_corners):
            found.append(_rows_at_corner(at if sign > 0 else negative(at), slopes, low, high, point, corner))
    made = _joined(found)
    usable = np.tile(over.usable, (1, len(found)))
    return LinearBounds(
        np.where(usable[:, :, None], made.slopes, 0.0), np.where(usable, made.offset, -math.inf), made.widths
    )


class MinimumSearch:
    """Branch and bound for an objective, negated where `sign` is -1, between `low` and `high` `[n]`.

    At feasible points the `lagrangian` with multipliers that are not negative is at most the objective, so that its
    bounds are bounds of the objective. `whole` `[n]` says which variables are whole numbers, and the elements of
    `conditions` are at most 0 at feasible points, or 0 for equations.
    """

    def __init__(
        self,
        objective: BoxProgram,
        conditions: Sequence[Condition],
        lagrangian: Lagrangian,
        low: Any,
        high: Any,
        whole: Any,
        sign: float,
    ) -> None:
        self.lagrangian = lagrangian
        self.relaxed: BoxProgram | None = None
        self.objective, self.whole, self.sign = objective, whole, sign
        self.low, self.high = np.where(whole, np.ceil(low), low), np.where(whole, np.floor(high), high)
        # Conditions that hold everywhere, as those that repeat a bound, are not looked at again.
        self.conditions = [
            each
            for each in conditions
            if each.is_equation or not holds(each.program, self.low[None], self.high[None])[0]
        ]
        self.upper, self.best = math.inf, None
        # The largest value at a point.
        self.most = -math.inf
        self.boxes = 0
        self.has_equations = any(each.is_equation for each in conditions)
        # Draws the corners of boxes at which linear functions touch; no choice of corners is better on average.
        self.generator = np.random.default_rng(0)
        # Boxes that cannot be divided, with their bounds.
        self.finished: list[tuple[Any, Any, Any]] = []
        self.searches = 0
        # The minimum of the linear program over the most promising box.
        self.candidate = 0.5 * self.low + 0.5 * self.high
        self.searched, self.floor = math.inf, -math.inf

    def run(self, starts: Sequence[Any], improve: Improve, watch: Watch) -> BoundedMinimum:
        """Search until the gap is closed, or a limit of the run is reached."""
        for start in starts:
            self._try_points(np.asarray([start], float))
        self.improve = improve
        waiting = [*starts]
        low, high = self.low[None], self.high[None]
        bound = np.full(1, -math.inf)
        ended = None
        if (self.low > self.high).any():
            low, high, bound = low[:0], high[:0], bound[:0]
        batches = 0
        try:
            while len(bound):
                self.floor = min(float(bound.min()), self._least_finished())
                if self.upper - self.floor <= self._gap():
                    break
                if len(bound) > _MOST_BOXES:
                    ended = f"{len(bound):,} boxes are left, which is as many as are kept"
                    break
                chosen = np.argpartition(bound, min(_BATCH, len(bound)) - 1)[:_BATCH]
                if self._least_finished() <= self.floor:
                    ended = "the boxes are as small as floats allow"
                    break
                if waiting:
                    self._search_from(waiting.pop(0))
                batches += 1
                if self.conditions and not waiting and batches & (batches - 1) == 0:
                    # Points in the most promising box, after 1, 2, 4, 8, … batches.
                    self._search_from(self.candidate)
                elif self.conditions and batches % _BETWEEN_POINTS == 0:
                    self._try_near(self.candidate)
                low, high, bound = self._replaced(low, high, bound, chosen)
                watch(self.boxes, self.upper)
        except LimitError as error:
            ended = str(error)
        if ended is None and self.upper - min(self._least_finished(), self.upper) > self._gap():
            ended = "the boxes are as small as floats allow"
        if ended is None:
            low, high, bound = self._refined(low, high, bound)
        low, high, bound = (np.concatenate(parts) for parts in zip((low, high, bound), *self.finished))
        kept = bound <= self.upper
        low, high, bound = low[kept], high[kept], bound[kept]
        floor = min(float(bound.min()), self.upper) if len(bound) else self.upper
        return BoundedMinimum(floor, self.upper, self.best, self._minimisers(low, high), self.boxes, ended)

    def _least_finished(self) -> float:
        return min((float(bound.min()) for _, _, bound in self.finished), default=math.inf)

    def _gap(self) -> float:
        size = max(abs(self.upper), min(1.0, self.most - self.upper))
        return _CLOSED * size if math.isfinite(size) else -1.0

    def _replaced(self, low: Any, high: Any, bound: Any, chosen: Any) -> tuple[Any, Any, Any]:
        """All boxes, with the `chosen` ones replaced by the parts into which they are narrowed and divided."""
        made = self._processed(low[chosen], high[chosen], bound[chosen])
        kept = np.ones(len(bound), bool)
        kept[chosen] = False
        kept &= bound <= self.upper
        low, high, bound = (np.concatenate([old[kept], new]) for old, new in zip((low, high, bound), made))
        lower = bound <= self.upper
        return low[lower], high[lower], bound[lower]

    # --- points

    def _try_points(self, points: Any) -> None:
        """Lower the upper bound by proved values at points."""
        found = self._signed(self.objective.values(points, points))
        values = np.where(found.smooth & self._is_feasible(points, points, strictly=False), found.high[:, 0], math.inf)
        values = np.where(np.isnan(values), math.inf, values)
        known = values[np.isfinite(values)]
        self.most = max(self.most, *known) if len(known) else self.most
        k = int(values.argmin())
        if values[k] < self.upper:
            self.upper, self.best = float(values[k]), points[k].copy()

    def _search_from(self, point: Any) -> None:
        if self.searches >= _MOST_SEARCHES:
            return
        self.searches += 1
        self.searched = self.upper
        found, multipliers = self.improve(point)
        found = np.clip(found, self.low, self.high)
        found[self.whole] = np.rint(found[self.whole])
        before = self.upper
        if self.conditions:
            self._try_near(found)
        else:
            self._try_points(found[None])
        if multipliers is not None and (multipliers != 0).any() and (self.relaxed is None or self.upper < before):
            self.relaxed = self.lagrangian(multipliers)

    def _try_near(self, point: Any) -> None:
        """Lower the upper bound by a value at a point next to this one that meets the conditions."""
        self._try_points(point[None])
        for low, high in feasible_boxes(self.conditions, self.low, self.high, self.whole, point):
            found = self._signed(self.objective.values(low[None], high[None]))
            value = float(found.high[0, 0])
            if found.smooth[0] and math.isfinite(value):
                self.most = max(self.most, value)
                if value < self.upper:
                    self.upper, self.best = value, middle(low, high)
                return

    # --- boxes

    def _signed(self, found: BoxBounds) -> BoxBounds:
        return found if self.sign > 0 else BoxBounds(-found.high, -found.low, found.smooth)

    def _is_feasible(self, low: Any, high: Any, *, strictly: bool) -> Any:
        feasible = np.full(len(low), not self.has_equations)
        for condition in self.conditions if feasible.any() else ():
            feasible &= holds(condition.program, low, high, strictly=strictly)
        return feasible

    def _is_inside(self, low: Any, high: Any, smooth: Any) -> Any:
        """Return a mask of the boxes in which a minimiser that is not at an end of the whole box is stationary.

        These are boxes around each of whose points there are feasible points at which the objective is smooth. Faces
        that come from narrowing may be ends of its domain, so the boxes are widened by one float in each direction.
        """
        found, k = smooth.copy(), np.flatnonzero(smooth)
        if len(k):
            low, high = np.nextafter(low[k], -math.inf), np.nextafter(high[k], math.inf)
            low, high = np.maximum(low, self.low), np.minimum(high, self.high)
            found[k] = self.objective.values(low, high).smooth & self._is_feasible(low, high, strictly=True)
        return found

    def _processed(self, low: Any, high: Any, bound: Any) -> tuple[Any, Any, Any]:
        """The boxes that may contain a minimiser, contracted or divided, with their bounds."""
        self.boxes += len(low)
        before = high - low
        low, high, possible = self._narrowed(low, high)
        low, high, bound, before = low[possible], high[possible], bound[possible], before[possible]
        if not len(low):
            return low, high, bound
        value = self._signed(self.objective.values(low, high))
        possible = ~np.isnan(value.low[:, 0])
        bound = np.fmax(bound, value.low[:, 0])
        possible &= bound <= self.upper
        low, high, bound, smooth = low[possible], high[possible], bound[possible], value.smooth[possible]
        if not len(low):
            return low, high, bound
        return self._by_derivatives(low, high, bound, smooth, before[possible])

    def _narrowed(self, low: Any, high: Any) -> tuple[Any, Any, Any]:
        """The boxes, narrowed to where the conditions may hold and the objective may be low enough, and which are
        left."""
        low, high = low.copy(), high.copy()
        kept = np.ones(len(low), bool)
        ends = (-math.inf, self.upper) if self.sign > 0 else (-self.upper, math.inf)
        asked = [(each.program, 0.0 if each.is_equation else -math.inf, 0.0) for each in self.conditions]
        k = np.arange(len(low))
        for _ in range(_MOST_NARROWINGS if self.conditions else 1):
            before = high[k] - low[k]
            for program, least, most in [*asked, (self.objective, *ends)]:
                if not len(k):
                    break
                new_low, new_high, possible = program.narrowed(low[k], high[k], least, most)
                low[k], high[k] = self._whole_ends(new_low, new_high)
                possible &= (low[k] <= high[k]).all(axis=1)
                kept[k] &= possible
                k, before = k[possible], before[possible]
            k = k[(high[k] - low[k] < _NARROWED * before).any(axis=1)]
        return low, high, kept

    def _by_derivatives(self, low: Any, high: Any, bound: Any, smooth: Any, before: Any) -> tuple[Any, Any, Any]:
        point = self._middle(low, high)
        low, high, over, possible = self._cut_by_conditions(low, high, point)
        low, high, bound, smooth, before, point = (part[possible] for part in (low, high, bound, smooth, before, point))
        if not len(low):
            return low, high, bound
        at_point = self._signed(self.objective.values(point, point))
        self._try_points(point)
        first = self._signed(self.objective.first_derivatives(low, high))
        slopes = BoxInterval(first.low, first.high)
        form = mean_value(BoxInterval(at_point.low, at_point.high), slopes, low, high, point).low[:, 0]
        usable = smooth & at_point.smooth & ~np.isnan(form)
        bound = np.where(usable, np.fmax(bound, form), bound)
        if self.upper < self.searched - _IMPROVED * (self.searched - self.floor) - 10 * self._gap():
            self._search_from(self.best)
        bound = self._by_relaxation(low, high, point, bound)
        if self.conditions:
            over.insert(0, _Over(self.objective, self.sign, False, usable[:, None], at_point, first))
            low, high, bound, uncertain = self._by_linear_programs(low, high, point, bound, over)
        inside = self._is_inside(low, high, smooth)
        smear = self._smear_of_all(over, uncertain, low, high) if self.conditions else self._smear(first, low, high)
        low, high, possible = self._by_slopes(low, high, first, inside)
        if math.isfinite(self.upper):
            above = np.nextafter(at_point.low[:, 0] - self.upper, -math.inf)
            low, high, empty = cut(
                low, high, point, above, BoxInterval(first.low[:, 0], first.high[:, 0]), usable & possible
            )
            possible &= ~empty
        low, high = self._whole_ends(low, high)
        possible &= (bound <= self.upper) & (low <= high).all(axis=1)
        curved = possible & first.smooth & inside
        if curved.any():
            places = np.flatnonzero(curved)
            found = self._by_curvature(low[places], high[places], bound[places], point[places])
            low[places], high[places], bound[places], possible[places] = found
            possible &= bound <= self.upper
        shrunk = ((high - low <= _CONTRACTED * before) & (before > 0)).any(axis=1)
        kept = possible
        return self._divided(low[kept], high[kept], bound[kept], smear[kept], shrunk[kept])

    def _middle(self, low: Any, high: Any) -> Any:
        point = middle(low, high)
        return np.where(self.whole, np.clip(np.rint(point), low, high), point)

    def _whole_ends(self, low: Any, high: Any) -> tuple[Any, Any]:
        return np.where(self.whole, np.ceil(low), low), np.where(self.whole, np.floor(high), high)

    def _cut_by_conditions(self, low: Any, high: Any, point: Any) -> tuple[Any, Any, list[_Over], Any]:
        """The boxes without parts in which a condition fails, what is known of the conditions in those that are left,
        and which are left."""
        possible, found = np.ones(len(low), bool), []
        for program, is_equation in self.conditions:
            value, at_point = program.values(low, high), program.values(point, point)
            first = program.first_derivatives(low, high)
            smooth = value.smooth & at_point.smooth & ~np.isnan(at_point.low).any(axis=1)
            held = (value.high <= 0) & (not is_equation)
            usable = smooth[:, None] & ~held
            found.append(_Over(program, 1.0, is_equation, usable, at_point, first))
            for k, sign in itertools.product(range(program.count), (1.0, -1.0) if is_equation else (1.0,)):
                slopes, least = found[-1].signed(sign)
                low, high, empty = cut(
                    low, high, point, least.low[:, k], BoxInterval(slopes.low[:, k], slopes.high[:, k]),
                    usable[:, k] & possible,
                )  # fmt: skip
                low, high = self._whole_ends(low, high)
                possible &= ~empty & (low <= high).all(axis=1)
                low, high = np.where(possible[:, None], low, point), np.where(possible[:, None], high, point)
        return low, high, [over.of(possible) for over in found], possible

    def _by_linear_programs(
        self, low: Any, high: Any, point: Any, bound: Any, over: Sequence[_Over]
    ) -> tuple[Any, Any, Any, Any]:
        """Narrow boxes and bound the objective in them by linear programs.

        Returns the ends of the boxes, the bounds, which are infinite for boxes of which nothing is left, and the
        uncertainty of the bounds by each variable. In `over`, the objective precedes the conditions.
        """
        k = np.flatnonzero(bound <= self.upper)
        uncertain = np.zeros(low.shape)
        if not len(k):
            return low, high, bound, uncertain
        low, high, bound = low.copy(), high.copy(), bound.copy()
        box = low[k], high[k], point[k]
        upper = self.generator.integers(0, 2, box[0].shape).astype(bool)
        objective, *conditions = (_rows(each.of(k), *box, upper) for each in over)
        n = low.shape[1]
        nothing = np.zeros((len(k), 1, n))
        natural = LinearBounds(nothing, bound[k, None], nothing)
        found = _relaxed(_joined([objective, natural]), _joined(conditions), *box)
        uncertain[k] = found.uncertain
        points = np.where(self.whole, np.rint(found.points), found.points)
        if not self.has_equations:
            self._try_points(points)
        for linear in (found.objective, found.alone):
            ends = BoxInterval(linear.middle[:, None], linear.middle[:, None])
            slopes = BoxInterval(linear.slopes.low[:, None], linear.slopes.high[:, None])
            form = mean_value(ends, slopes, *box).low[:, 0]
            if linear is found.objective:
                with np.errstate(all="ignore"):
                    least = quotient(BoxInterval(form, form), linear.weight).low
                bound[k] = np.where(linear.weight.low > 0, np.fmax(bound[k], least), bound[k])
                self.candidate = points[int(bound[k].argmin())]
                if not math.isfinite(self.upper):
                    continue
                most = multiply(BoxInterval(np.full(len(k), self.upper), np.full(len(k), self.upper)), linear.weight)
                least = subtract(BoxInterval(linear.middle, linear.middle), most).low
            else:
                least = linear.middle
            usable = np.isfinite(least) & (bound[k] <= self.upper)
            low[k], high[k], empty = cut(low[k], high[k], point[k], least, linear.slopes, usable)
            low[k], high[k] = self._whole_ends(low[k], high[k])
            empty |= (low[k] > high[k]).any(axis=1)
            bound[k] = np.where(empty, math.inf, bound[k])
            low[k], high[k] = np.where(empty[:, None], point[k], low[k]), np.where(empty[:, None], point[k], high[k])
        return low, high, bound, uncertain

    def _by_slopes(self, low: Any, high: Any, first: BoxBounds, usable: Any) -> tuple[Any, Any, Any]:
        """Boxes in which the value changes in one direction: their face, where that is one of the whole box or of whole
        numbers, and else nothing."""
        rising = (first.low[:, 0] > 0) & usable[:, None] & (low < high)
        falling = (first.high[:, 0] < 0) & usable[:, None] & (low < high)
        to_face = (rising & ((low <= self.low) | self.whole), falling & ((high >= self.high) | self.whole))
        possible = ~((rising & ~to_face[0]) | (falling & ~to_face[1])).any(axis=1)
        return np.where(to_face[1], high, low), np.where(to_face[0], low, high), possible

    def _by_curvature(self, low: Any, high: Any, bound: Any, point: Any) -> tuple[Any, Any, Any, Any]:
        """Boxes of a smooth objective by their second derivatives: contracted, with their bounds, and whether they may
        contain a minimiser."""
        point = np.clip(point, low, high)
        second = self._signed(self.objective.second_derivatives(low, high))
        at_point = self._signed(self.objective.values(point, point))
        slope = self._signed(self.objective.first_derivatives(point, point))
        usable = second.smooth & np.isfinite(second.low).all(axis=(1, 2)) & np.isfinite(second.high).all(axis=(1, 2))
        form = self._taylor(low, high, point, at_point, slope, second)
        with np.errstate(invalid="ignore"):
            bound = np.where(usable & ~np.isnan(form), np.fmax(bound, form), bound)
        free = low < high
        open_ = free & (low > self.low) & (high < self.high)
        diagonal = np.einsum("bii->bi", second.high)
        # Where it is concave in a direction, the objective has no minimum in the inside of the whole box.
        possible = ~((diagonal < 0) & open_ & ~self.whole & usable[:, None]).any(axis=1)
        stationary = possible & usable & (open_ | ~free).all(axis=1) & ~(self.whole & free).any(axis=1)
        stationary &= free.any(axis=1)
        k = np.flatnonzero(stationary)
        if len(k):
            found = contracted(
                low[k], high[k], point[k], BoxInterval(slope.low[k, 0], slope.high[k, 0]),
                BoxInterval(second.low[k], second.high[k]), free[k],
            )  # fmt: skip
            possible[k] &= ~found.empty
            low[k], high[k] = found.low, found.high
        return low, high, bound, possible

    def _by_relaxation(self, low: Any, high: Any, point: Any, bound: Any) -> Any:
        """The bounds of the Lagrangian where they are better."""
        k = np.flatnonzero(bound <= self.upper)
        if self.relaxed is None or not len(k):
            return bound
        low, high, point = low[k], high[k], point[k]
        value, first = self.relaxed.values(low, high), self.relaxed.first_derivatives(low, high)
        at_point, slope = self.relaxed.values(point, point), self.relaxed.first_derivatives(point, point)
        second = self.relaxed.second_derivatives(low, high)
        form = mean_value(
            BoxInterval(at_point.low, at_point.high), BoxInterval(first.low, first.high), low, high, point
        )
        found = np.fmax(value.low[:, 0], np.where(value.smooth, form.low[:, 0], -math.inf))
        curved = value.smooth & first.smooth & second.smooth & np.isfinite(second.low).all(axis=(1, 2))
        found = np.fmax(found, np.where(curved, self._taylor(low, high, point, at_point, slope, second), -math.inf))
        made = bound.copy()
        made[k] = np.fmax(made[k], found)
        return made

    def _taylor(self, low: Any, high: Any, point: Any, value: BoxBounds, slope: BoxBounds, second: BoxBounds) -> Any:
        """Lower bounds by the second order form around points."""
        around = distances(low, high, point)
        with np.errstate(all="ignore"):
            linear = total(multiply(BoxInterval(slope.low[:, 0], slope.high[:, 0]), around), axis=0)
            products = multiply(
                BoxInterval(around.low[:, :, None], around.high[:, :, None]),
                BoxInterval(around.low[:, None, :], around.high[:, None, :]),
            )
            # The square of a distance is not negative.
            n = low.shape[1]
            diagonal = np.arange(n)
            squares = np.maximum(products.low[:, diagonal, diagonal], 0.0)
            products.low[:, diagonal, diagonal] = squares
            bent = total(multiply(BoxInterval(second.low, second.high), products), axis=(0, 1))
            found = add(
                add(BoxInterval(value.low[:, 0], value.high[:, 0]), linear),
                BoxInterval(0.5 * bent.low, 0.5 * bent.high),
            )
        return found.low

    def _smear(self, first: BoxBounds, low: Any, high: Any) -> Any:
        """The change of the value that each direction may make; the share of the whole width where that is unknown."""
        widths = high - low
        slopes = np.maximum(abs(first.low[:, 0]), abs(first.high[:, 0]))
        found = slopes * np.where(widths > 0, widths, 0.0)
        shares = widths / np.where(self.high > self.low, self.high - self.low, 1.0)
        known = np.isfinite(found).all(axis=1, keepdims=True)
        # Narrow directions are divided less: their slopes are those of the box that is left.
        return np.where(known, found * np.sqrt(shares) + 1e-300 * shares, shares)

    def _smear_of_all(self, over: Sequence[_Over], uncertain: Any, low: Any, high: Any) -> Any:
        """The uncertainty that each direction brings into the bounds, and the change of all functions that it makes."""
        widths = high - low
        shares = widths / np.where(self.high > self.low, self.high - self.low, 1.0)
        changes = np.zeros(low.shape)
        for each in over:
            size = np.maximum(abs(each.first.low), abs(each.first.high)) * widths[:, None]
            size = np.where(np.isfinite(size), size, 0.0)
            whole = size.sum(axis=2, keepdims=True)
            changes += (size / np.where(whole > 0, whole, 1.0)).sum(axis=1)
        parts = [np.where(np.isfinite(uncertain), uncertain, 0.0) * np.sqrt(shares), changes]
        found = 1e-3 * shares
        for part, weight in zip(parts, (1.0, _OF_CHANGES)):
            most = part.max(axis=1, keepdims=True)
            found = found + weight * part / np.where(most > 0, most, 1.0)
        return found

    def _divisible(self, low: Any, high: Any) -> Any:
        least = np.where(self.whole, 0.5, _UNDIVIDED * np.maximum(abs(low), abs(high)) + 1e-300)
        return high - low > least

    def _divided(self, low: Any, high: Any, bound: Any, smear: Any, shrunk: Any) -> tuple[Any, Any, Any]:
        divisible = self._divisible(low, high)
        k = np.where(divisible, smear, -1.0).argmax(axis=1) if len(low) else np.zeros(0, int)
        rows = np.arange(len(low))
        split = divisible.any(axis=1) & ~shrunk
        cut = 0.5 * low[rows, k] + 0.5 * high[rows, k]
        whole = self.whole[k]
        below, above = low.copy(), high.copy()
        above[rows, k] = np.where(whole, np.floor(cut), cut)
        below[rows, k] = np.where(whole, np.floor(cut) + 1.0, cut)
        same = shrunk
        finished = ~split & ~shrunk
        if finished.any():
            self.finished.append((low[finished], high[finished], bound[finished]))
        return (
            np.concatenate([low[split], below[split], low[same]]),
            np.concatenate([above[split], high[split], high[same]]),
            np.concatenate([bound[split], bound[split], bound[same]]),
        )

    # --- the minimisers

    def _refined(self, low: Any, high: Any, bound: Any) -> tuple[Any, Any, Any]:
        """The boxes that may contain a minimiser, divided further where that is cheap."""
        fine = _FINE * np.where(self.high > self.low, self.high - self.low, 1.0)
        try:
            for _ in range(_MOST_ROUNDS):
                wide = ((high - low > fine) & self._divisible(low, high)).any(axis=1)
                if not wide.any() or len(bound) > _MOST_LEFT:
                    break
                low, high, bound = self._replaced(low, high, bound, np.flatnonzero(wide)[: 2 * _BATCH])
        except LimitError:
            pass
        return low, high, bound

    def _minimisers(self, low: Any, high: Any) -> list[tuple[Any, Any, bool]]:
        found = []
        for least, most in clusters(low, high, _FINE * (self.high - self.low)):
            found.append((least, most, self._is_unique(least, most)))
        return found

    def _is_unique(self, low: Any, high: Any) -> bool:
        """Return whether there is at most one minimiser next to a box: it is a point, or the gradient vanishes exactly
        once there."""
        held = self.whole | ((low == high) & ((low == self.low) | (high == self.high)))
        free = ~held
        if not free.any():
            return bool((low == high).all())
        margin = 0.1 * (high - low) + 1e-9 * np.maximum(abs(low), abs(high)) + 1e-12 * (self.high - self.low)
        low, high = (np.where(free, end, low) for end in (low - margin, high + margin))
        if (free & ((low <= self.low) | (high >= self.high))).any() or (held & (low < high)).any():
            return False
        box = low[None], high[None]
        if not self._is_feasible(*box, strictly=True)[0]:
            return False
        point = middle(*box)
        try:
            if not (self.objective.values(*box).smooth & self.objective.first_derivatives(*box).smooth).all():
                return False
            slope = self.objective.first_derivatives(point, point)
            second = self.objective.second_derivatives(*box)
        except LimitError:
            return False
        if not second.smooth.all():
            return False
        found = contracted(
            *box,
            point,
            BoxInterval(slope.low[:, 0], slope.high[:, 0]),
            BoxInterval(second.low, second.high),
            free[None],
        )
        return bool(found.unique[0])


class LinearBounds(NamedTuple):
    """Linear functions below k functions over boxes: `offset` `[boxes, k]` in the middle of the box, and `slopes`
    `[boxes, k, n]`, with the widths of the slopes that they replace. Where nothing is known the offset is -inf."""

    slopes: Any
    offset: Any
    widths: Any


class Relaxed(NamedTuple):
    """A linear function below the objective at all feasible points of a box: its `slopes` `[boxes, n]`, its bound from
    below in the `middle`, both times `weight`. The weight is 0 where the box has no feasible point if the function is
    above 0 in it."""

    slopes: BoxInterval
    middle: Any
    weight: BoxInterval


def _rows_at_middle(value: BoxInterval, slopes: BoxInterval, low: Any, high: Any, point: Any) -> LinearBounds:
    """Functions with values `[boxes, k]` at points in the boxes, by slopes `[boxes, k, n]` in their middle."""
    with np.errstate(all="ignore"):
        middle = 0.5 * slopes.low + 0.5 * slopes.high
        exact = BoxInterval(middle, middle)
        around = distances(low, high, point)
        error = multiply(subtract(slopes, exact), BoxInterval(around.low[:, None], around.high[:, None]))
        offset = add(value, total(error, axis=(1,))).low
    return _known(middle, offset, slopes)


def _rows_at_corner(
    value: BoxInterval, slopes: BoxInterval, low: Any, high: Any, point: Any, upper: Any
) -> LinearBounds:
    """Functions with values `[boxes, k]` at the corners that are at the upper end where `upper` `[boxes, n]`."""
    extreme = np.where(upper[:, None], slopes.high, slopes.low)
    corner = np.where(upper, high, low)
    with np.errstate(all="ignore"):
        toward = subtract(BoxInterval(point, point), BoxInterval(corner, corner))
        moved = multiply(BoxInterval(extreme, extreme), BoxInterval(toward.low[:, None], toward.high[:, None]))
        offset = add(value, total(moved, axis=(1,))).low
    return _known(extreme, offset, slopes)


def _known(slopes: Any, offset: Any, replaced: BoxInterval) -> LinearBounds:
    known = np.isfinite(slopes).all(axis=2) & np.isfinite(offset)
    with np.errstate(invalid="ignore"):
        widths = np.where(known[:, :, None], replaced.high - replaced.low, 0.0)
    return LinearBounds(np.where(known[:, :, None], slopes, 0.0), np.where(known, offset, -math.inf), widths)


def _joined(parts: Sequence[LinearBounds]) -> LinearBounds:
    return LinearBounds(*(np.concatenate([part[k] for part in parts], axis=1) for k in range(3)))


class Relaxation(NamedTuple):
    """Linear functions below the objective at points where the conditions are at most 0; those of the conditions
    `alone`, which show that a box has no such point; how `uncertain` the first are by each variable `[boxes, n]`; and the
    points `[boxes, n]` where the linear programs have their minima."""

    objective: Relaxed
    alone: Relaxed
    uncertain: Any
    points: Any


def _relaxed(objective: LinearBounds, conditions: LinearBounds, low: Any, high: Any, point: Any) -> Relaxation:
    """The relaxation over boxes with points in them."""
    parts = [slice(k, k + _TOGETHER) for k in range(0, len(low), _TOGETHER)]
    solved = [
        _solved(
            LinearBounds(*(p[k] for p in objective)),
            LinearBounds(*(p[k] for p in conditions)),
            low[k] - point[k],
            high[k] - point[k],
        )
        for k in parts
    ]
    multipliers, moves = (np.concatenate([each[k] for each in solved]) for k in range(2))
    count = objective.offset.shape[1]
    both = _joined([objective, conditions])
    found = []
    for own in (multipliers, np.where(np.arange(multipliers.shape[1]) < count, 0.0, multipliers)):
        # Where a row is not known, its multiplier is 0.
        offset = np.where(own > 0, both.offset, 0.0)
        exact, constant = BoxInterval(own, own), BoxInterval(offset, offset)
        with np.errstate(all="ignore"):
            slopes = total(
                multiply(BoxInterval(own[:, :, None], own[:, :, None]), BoxInterval(both.slopes, both.slopes)),
                axis=(0,),
            )
            middle = total(multiply(exact, constant), axis=(0,)).low
            weight = total(BoxInterval(own[:, :count], own[:, :count]), axis=(0,))
        found.append(Relaxed(slopes, middle, weight))
    widths = np.where(multipliers[:, :, None] > 0, both.widths, 0.0)
    uncertain = np.einsum("br,brn->bn", multipliers, widths) * (high - low)
    return Relaxation(found[0], found[1], uncertain, np.clip(point + moves, low, high))


def _solved(objective: LinearBounds, conditions: LinearBounds, below: Any, above: Any) -> tuple[Any, Any]:
    """Multipliers `[boxes, rows]` of linear functions over boxes that reach from `below` to `above` `[boxes, n]`, and
    where the minima are; 0 where none are found."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    boxes, count, n = objective.slopes.shape
    rows = count + conditions.offset.shape[1]
    half = np.maximum(abs(below), abs(above))
    half = np.where(half > 0, half, 1.0)
    slopes = np.concatenate([objective.slopes, conditions.slopes], axis=1) * half[:, None]
    offset = np.concatenate([objective.offset, conditions.offset], axis=1)
    reach = abs(slopes).sum(axis=2)
    # Functions that are below the others everywhere, and conditions that hold everywhere, are left out.
    best = (offset[:, :count] - reach[:, :count]).max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        kept = np.concatenate([offset[:, :count] + reach[:, :count] >= best, (offset + reach)[:, count:] > 0], axis=1)
    kept &= np.isfinite(offset)
    offset = np.where(kept, offset, 0.0)
    slopes = np.where(kept[:, :, None], slopes, 0.0)
    first = np.where(kept[:, :count], offset[:, :count], -math.inf).max(axis=1)
    first = np.where(np.isfinite(first), first, 0.0)
    own = np.maximum(
        abs(slopes[:, :count]).max(axis=(1, 2)), (kept[:, :count] * abs(offset[:, :count] - first[:, None])).max(axis=1)
    )
    scale = np.empty((boxes, rows))
    scale[:, :count] = np.where(own > 0, own, 1.0)[:, None]
    size = np.maximum(abs(slopes[:, count:]).max(axis=2), abs(offset[:, count:]) / (2 * n))
    scale[:, count:] = np.where(size > 0, size, 1.0)
    # The unknowns of a box are the place in it, the objective, and by how much the conditions are violated.
    matrix = np.zeros((boxes, rows, n + 2))
    matrix[:, :, :n] = slopes / scale[:, :, None]
    matrix[:, :count, n] = -1.0 * kept[:, :count]
    matrix[:, count:, n + 1] = -1.0
    right = -np.where(np.arange(rows) < count, offset - first[:, None], offset) / scale
    right = np.where(kept, right, 0.0)
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return np.zeros((boxes, rows)), np.zeros((boxes, n))
    width = n + 2
    columns = np.arange(boxes)[:, None, None] * width + np.broadcast_to(np.arange(width), (1, rows, width))
    blocks = csr_array(
        (matrix.ravel(), columns.ravel(), np.arange(0, matrix.size + 1, width)), shape=(boxes * rows, boxes * width)
    )
    # Without a function below it, the objective counts as 0.
    free = kept[:, :count].any(axis=1)
    least = np.concatenate([below / half, np.tile([-math.inf, 0.0], (boxes, 1))], axis=1)
    most = np.concatenate([above / half, np.tile([math.inf, math.inf], (boxes, 1))], axis=1)
    least[~free, n] = most[~free, n] = 0.0
    cost = np.tile(np.append(np.zeros(n), [1.0, _PENALTY]), boxes)
    found = linprog(
        cost, A_ub=blocks, b_ub=right.ravel(), bounds=np.stack([least.ravel(), most.ravel()], axis=1),
        method="highs-ds", options={"presolve": False},
    )  # fmt: skip
    if found.status != 0:
        return np.zeros((boxes, rows)), np.zeros((boxes, n))
    multipliers = np.maximum(-np.asarray(found.ineqlin.marginals).reshape(boxes, rows), 0.0) * kept
    multipliers = np.where(multipliers > _NEGLIGIBLE * multipliers.max(axis=1, keepdims=True), multipliers, 0.0)
    units = np.where(own > 0, own, 1.0)[:, None]
    scaled = np.concatenate([multipliers[:, :count], multipliers[:, count:] * units / scale[:, count:]], axis=1)
    return scaled, np.asarray(found.x).reshape(boxes, width)[:, :n] * half
