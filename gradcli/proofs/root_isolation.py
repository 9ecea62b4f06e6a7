"""All roots of a system of equations in a box, by branch and bound in interval arithmetic.

Boxes in which an equation certainly does not hold are left out; the others are narrowed to where each equation may hold,
contracted by interval Newton steps, or bisected, until each contains exactly one root or is too small to be divided (R. B. Kearfott, Rigorous Global Search:
Continuous Problems, 1996).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.errors import LimitError
from gradcli.named_tuples import NamedTuple
from gradcli.proofs.box_arithmetic import BoxInterval
from gradcli.proofs.box_programs import BoxBounds, BoxProgram
from gradcli.proofs.newton_contraction import Contracted, clusters, contracted, cut, mean_value, middle

# The number of boxes that are processed at once, which limits the memory of their Jacobians.
_BATCH = 512
# The share of the whole box, or of the unknown where that is smaller, below which a box is not divided, and the distance,
# in such boxes, in which a root is looked for that lies on their edges.
_FINE, _AROUND = 2.0**-20, 2.0
# Below this many units in the last place floats are not divided.
_UNDIVIDED = 2.0**-48
_MOST_BOXES, _MOST_LEFT = 400_000, 600
_CONTRACTED = 0.7
# Rounds of narrowing by the equations, and the share of a width to which a box must shrink in one for another.
_MOST_NARROWINGS, _NARROWED = 4, 0.8
# Newton steps that narrow the box of a root.
_MOST_STEPS = 12


class IsolatedRoots(NamedTuple):
    """Boxes `(low, high)` with exactly one root each, boxes that may contain roots, the number of boxes that were looked
    at, and why the search ended early, None where it did not."""

    roots: Sequence[tuple[Any, Any]]
    left: Sequence[tuple[Any, Any]]
    boxes: int
    ended: str | None


class RootIsolation:
    """The search for all roots of a program of n elements between `low` and `high` `[n]`."""

    def __init__(self, program: BoxProgram, low: Any, high: Any) -> None:
        self.program, self.low, self.high = program, low, high
        self.boxes = 0
        # The regions in which a root is unique, and the narrow box around it.
        self.found: list[tuple[Any, Any, Any, Any]] = []
        self.left: list[tuple[Any, Any]] = []

    def run(self, watch: Callable[[int, int], object]) -> IsolatedRoots:
        """Search until all boxes are decided or small; `watch` receives the numbers of boxes and of roots."""
        low, high = self.low[None], self.high[None]
        ended = None
        try:
            while len(low):
                if len(low) > _MOST_BOXES or len(self.left) > _MOST_LEFT:
                    ended = "more boxes are left than are looked at"
                    break
                # The last boxes are the smallest, which keeps the number of waiting ones small.
                chosen = slice(max(0, len(low) - _BATCH), None)
                made = self._processed(low[chosen], high[chosen])
                low, high = (np.concatenate([old[: chosen.start], new]) for old, new in zip((low, high), made))
                watch(self.boxes, len(self.found))
        except LimitError as error:
            ended = str(error)
        left = [*self.left, *zip(low, high)]
        if left:
            least, most = (np.array([box[k] for box in left]) for k in range(2))
            left = clusters(least, most, self._fine(least, most).max(axis=0))
        return IsolatedRoots([(low, high) for _, _, low, high in self.found], left, self.boxes, ended)

    def _processed(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The boxes that are not decided, contracted or divided."""
        self.boxes += len(low)
        before = high - low
        low, high, kept = self._narrowed(low, high)
        low, high, before = low[kept], high[kept], before[kept]
        if not len(low):
            return low, high
        value = self.program.values(low, high)
        kept = ((value.low <= 0) & (value.high >= 0)).all(axis=1)
        low, high, before, smooth = low[kept], high[kept], before[kept], value.smooth[kept]
        if not len(low):
            return low, high
        point = middle(low, high)
        at_point, first = self.program.values(point, point), self.program.first_derivatives(low, high)
        usable = smooth & at_point.smooth
        slopes = BoxInterval(first.low, first.high)
        form = mean_value(BoxInterval(at_point.low, at_point.high), slopes, low, high, point)
        possible = ~(usable & ~((form.low <= 0) & (form.high >= 0)).all(axis=1))
        found = self._contracted(low, high, point, at_point, first)
        unique = possible & usable & found.unique & ~found.empty
        for place in np.flatnonzero(unique):
            k = int(place)
            self._add(low[k], high[k], found.low[k], found.high[k])
        possible &= ~unique & ~(usable & found.empty)
        low, high = np.where(usable[:, None], found.low, low), np.where(usable[:, None], found.high, high)
        for k in range(self.program.count):
            for sign in (1.0, -1.0):
                ends = (first.low[:, k], first.high[:, k]) if sign > 0 else (-first.high[:, k], -first.low[:, k])
                least = at_point.low[:, k] if sign > 0 else -at_point.high[:, k]
                low, high, empty = cut(low, high, point, least, BoxInterval(*ends), usable & possible)
                possible &= ~empty
                low, high = np.where(empty[:, None], point, low), np.where(empty[:, None], point, high)
        smear = np.where(
            np.isfinite(first.low) & np.isfinite(first.high), np.maximum(abs(first.low), abs(first.high)), 1.0
        )
        weights = (smear / np.maximum(smear.max(axis=2, keepdims=True), 1e-300)).sum(axis=1)
        return self._divided(low[possible], high[possible], before[possible], weights[possible])

    def _narrowed(self, low: Any, high: Any) -> tuple[Any, Any, Any]:
        """The boxes, narrowed to where the equations may hold, and which are left."""
        low, high = low.copy(), high.copy()
        kept = np.ones(len(low), bool)
        k = np.arange(len(low))
        for _ in range(_MOST_NARROWINGS):
            before = high[k] - low[k]
            low[k], high[k], possible = self.program.narrowed(low[k], high[k], 0.0, 0.0)
            kept[k] &= possible
            k = k[possible & (high[k] - low[k] < _NARROWED * before).any(axis=1)]
            if not len(k):
                break
        return low, high, kept

    def _divided(self, low: Any, high: Any, before: Any, weights: Any) -> tuple[Any, Any]:
        widths = high - low
        shrunk = ((widths <= _CONTRACTED * before) & (before > 0)).any(axis=1)
        least = np.maximum(self._fine(low, high), _UNDIVIDED * np.maximum(abs(low), abs(high)))
        divisible = widths > least
        small = ~divisible.any(axis=1)
        self._decide(low[small], high[small])
        waiting = shrunk & ~small
        split = ~shrunk & ~small
        k = np.where(divisible, weights * widths, -1.0).argmax(axis=1) if len(low) else np.zeros(0, int)
        rows = np.arange(len(low))
        below, above = low.copy(), high.copy()
        below[rows, k] = above[rows, k] = 0.5 * low[rows, k] + 0.5 * high[rows, k]
        return (
            np.concatenate([low[split], below[split], low[waiting]]),
            np.concatenate([above[split], high[split], high[waiting]]),
        )

    def _fine(self, low: Any, high: Any) -> Any:
        """The widths below which boxes are not divided."""
        return _FINE * np.minimum(self.high - self.low, np.maximum(np.maximum(abs(low), abs(high)), 1.0))

    def _decide(self, low: Any, high: Any) -> None:
        """Decide small boxes by roots that are unique in larger ones."""
        for least, most, _, _ in self.found:
            known = ((least <= low) & (high <= most)).all(axis=1)
            low, high = low[~known], high[~known]
        if not len(low):
            return
        around = _AROUND * self._fine(low, high)
        made, smooth = self._step(low - around, high + around)
        unique = made.unique & smooth
        for k in range(len(low)):
            if unique[k]:
                self._add(low[k] - around[k], high[k] + around[k], made.low[k], made.high[k])
            else:
                self.left.append((low[k], high[k]))

    def _add(self, low: Any, high: Any, inner_low: Any, inner_high: Any) -> None:
        """Add the only root of a box, which is narrowed, unless it is known or outside of the whole box."""
        box = inner_low[None], inner_high[None]
        for _ in range(_MOST_STEPS):
            made, smooth = self._step(*box)
            if not smooth[0] or made.empty[0] or not ((made.low > box[0]) | (made.high < box[1])).any():
                break
            box = made.low, made.high
        root = box[0][0], box[1][0]
        for least, most, _, _ in self.found:
            if (least <= root[0]).all() and (root[1] <= most).all():
                return
        if not ((root[1] < self.low) | (root[0] > self.high)).any():
            self.found.append((low, high, *root))

    def _step(self, low: Any, high: Any) -> tuple[Contracted, Any]:
        """A Newton step, and for which boxes it is valid."""
        point = middle(low, high)
        value, at_point = self.program.values(low, high), self.program.values(point, point)
        first = self.program.first_derivatives(low, high)
        return self._contracted(low, high, point, at_point, first), value.smooth & at_point.smooth

    def _contracted(self, low: Any, high: Any, point: Any, at_point: BoxBounds, first: BoxBounds) -> Contracted:
        residual, slopes = BoxInterval(at_point.low, at_point.high), BoxInterval(first.low, first.high)
        made = contracted(low, high, point, residual, slopes, np.ones(low.shape, bool))
        # A box without an inside proves nothing.
        return made._replace(unique=made.unique & (low < high).all(axis=1))
