"""Values of programs and their derivatives, computed with more and more digits until more change nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

from gradcli.language.syntax import tree
from tests.judge.evaluate import Reached, Run
from tests.judge.functions import NotJudgedError, exact

__all__ = ["Judge", "NotJudgedError"]

# With so many digits, until two agree to as many as are compared. Those of a step are a quarter of them.
_DIGITS = (120, 240, 480, 1000, 2600)
_AGREE = 30
# What is 0 with fewer may be a small number beside a large one.
_OF_ZERO = 1000

# What differences of a program itself give for 0 is smaller.
_NOISE = mpf(10) ** -20

# A leaf, and the place of an element in it.
Entry = tuple[str, tuple[int, ...]]


class Judge:
    """One program at one point. What it gives are numbers of mpmath and arrays of them.

    Raises NotJudgedError where it lacks something, or where digits do not settle.
    """

    def __init__(self, program: tree.Module, bindings: Mapping[str, Any]) -> None:
        self.program = program
        self.bindings = {name: exact(value) for name, value in bindings.items()}
        self._span = _span(program, self.bindings)

    def value(self, digits: int = 0) -> Any:
        return self._settled(lambda: _value(self.program, self.bindings), digits)

    def derivative(self, entries: Sequence[Entry], digits: int = 0) -> Any:
        """The derivative of the value by some entries, one after the other."""
        found = self._settled(lambda: self._difference(entries), digits)
        if _has_zeros(found) and _largest(self.value(_OF_ZERO)) > mpf(10) ** _OF_ZERO:
            raise NotJudgedError("0, or a number that is small beside a large one")
        return found

    def is_smooth(self, entries: Sequence[Entry]) -> bool:
        """Whether the slopes on both sides of the point agree, along the last entry."""
        *inner, entry = entries
        with mpmath.workdps(480):
            step = _step(self.bindings, entry)
            try:
                below, here, above = (
                    Judge(self.program, _moved(self.bindings, entry, times * step))._difference(inner)
                    for times in (-1, 0, 1)
                )
            except NotJudgedError:
                return False
            left, right = ((b - a) / step for a, b in ((below, here), (here, above)))
            size = _largest(left) + _largest(right)
            return bool(mpmath.isfinite(size) and _largest(left - right) <= size * mpf(10) ** -20)

    def _difference(self, entries: Sequence[Entry]) -> Any:
        return _central(lambda given: _value(self.program, given), self.bindings, entries)

    def _settled(self, compute: Callable[[], Any], digits: int) -> Any:
        """With so many digits; or else with those that are enough."""
        try:
            return self._computed(compute, digits)
        except RecursionError:
            # Where mpmath needs more digits of pi than it can make.
            raise NotJudgedError("a number too large for the judge") from None

    def _computed(self, compute: Callable[[], Any], digits: int) -> Any:
        if digits > self._span:
            with mpmath.workdps(digits):
                return compute()
        before = None
        for digits in _DIGITS:
            if digits <= self._span:
                continue
            with mpmath.workdps(digits):
                now = compute()
                if before is not None and _agree(before, now) and (digits >= _OF_ZERO or not _has_zeros(now)):
                    return now
                before = now
        raise NotJudgedError("digits that do not settle")


def _span(program: tree.Module, bindings: Mapping[str, Any]) -> float:
    """The digits that a sum of the smallest and the largest number has which are written or given."""
    written = [exact(n.value) for n in tree.all_nodes(program) if isinstance(n, tree.Number)]
    given = [x for value in bindings.values() for x in np.ravel(np.asarray(value, object))]
    sizes = [abs(x) for x in (mpf(1), *written, *map(mpf, given)) if x and mpmath.isfinite(x)]
    return float(mpmath.log10(max(sizes) / min(sizes)))


def _has_zeros(value: Any) -> bool:
    return not all(np.ravel(np.asarray(value, object)))


def _largest(value: Any) -> Any:
    """nan where an element is."""
    return sum((abs(x) for x in np.ravel(np.asarray(value, object))), mpf(0))


def _agree(one: Any, other: Any) -> bool:
    if np.shape(one) != np.shape(other):
        return False
    pairs = zip(np.ravel(np.asarray(one, object)), np.ravel(np.asarray(other, object)))
    return all(_alike(a, b) for a, b in pairs)


def _alike(a: Any, b: Any) -> bool:
    if not (mpmath.isfinite(a) and mpmath.isfinite(b)):
        return bool(a == b or (mpmath.isnan(a) and mpmath.isnan(b)))
    return bool(abs(a - b) <= abs(b) * mpf(10) ** -_AGREE)


def _value(program: tree.Module, bindings: Mapping[str, Any]) -> Any:
    return Run(program, bindings, _inside).value()


def _inside(run: Run, node: tree.Call, name: str, order: int) -> Any:
    """What a program differentiates itself: the run again up to there, at points beside."""
    count = run.asked[node]

    def reached(moved: Mapping[str, Any]) -> Any:
        try:
            Run(run.program, moved, _inside, (node, count)).value()
        except Reached as there:
            return there.value
        raise NotJudgedError("a run that takes another course")

    found = derivatives(reached, run.given, name, order)
    if any(0 < abs(x) < _NOISE for x in np.ravel(np.asarray(found, object))):
        raise NotJudgedError("a derivative that may be 0")
    return _settled_at_steps(found)


def _settled_at_steps(found: Any) -> Any:
    """Numbers that are whole but for the error of differences, the square of their step, as whole ones."""
    nearly = mpf(10) ** (-0.45 * mpmath.mp.dps)

    def settled(x: Any) -> Any:
        if not mpmath.isfinite(x) or abs(x) > 1 / nearly:
            return x
        whole = mpmath.nint(x)
        return whole if abs(x - whole) < nearly * max(1, abs(x)) else x

    made = np.frompyfunc(settled, 1, 1)(np.asarray(found, object))
    return made if np.shape(found) else settled(found)


def derivatives(function: Callable[[Mapping[str, Any]], Any], point: Mapping[str, Any], name: str, order: int) -> Any:
    """All derivatives of an order by the elements of a leaf: an array of the shape of the value, and of the leaf for
    each order."""
    shape = np.shape(point[name])
    rows = [
        _central(function, point, [(name, place) for place in places])
        for places in itertools.product(np.ndindex(*shape), repeat=order)
    ]
    if not shape:
        return rows[0]
    stacked = np.stack([np.asarray(row, object) for row in rows], axis=-1)
    return stacked.reshape(stacked.shape[:-1] + shape * order)


def _central(function: Callable[[Mapping[str, Any]], Any], point: Mapping[str, Any], entries: Sequence[Entry]) -> Any:
    """By central differences, each of differences of those before."""
    if not entries:
        return function(point)
    *inner, entry = entries
    step = _step(point, entry)
    above, below = (_central(function, _moved(point, entry, s), inner) for s in (step, -step))
    if np.shape(above) != np.shape(below):
        raise NotJudgedError("a run that takes another course")
    return (above - below) / (2 * step)


def _step(point: Mapping[str, Any], entry: Entry) -> Any:
    x = _entry(point, entry)
    if not mpmath.isfinite(x):
        raise NotJudgedError("a derivative at infinity")
    # Of a tiny number a step in proportion does not show beside others.
    return (abs(x) if abs(x) > mpf(10) ** -30 else 1) * mpf(10) ** -(mpmath.mp.dps // 4)


def _entry(point: Mapping[str, Any], entry: Entry) -> Any:
    name, place = entry
    return point[name][place] if place else point[name]


def _moved(point: Mapping[str, Any], entry: Entry, step: Any) -> dict[str, Any]:
    name, place = entry
    if not place:
        return {**point, name: point[name] + step}
    changed = point[name].copy()
    changed[place] += step
    return {**point, name: changed}
