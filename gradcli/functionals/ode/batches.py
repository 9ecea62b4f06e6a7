"""Many problems of one system by Taylor's method at once, each with steps of its own, as arrays over the problems."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from gradcli import arrays, limits
from gradcli.functionals.ode import taylor_python_code
from gradcli.functionals.ode.hidden_peaks import become_active, has_peaks, hides_each
from gradcli.functionals.ode.ode_system import System
from gradcli.functionals.ode.recurrences import NoRecurrenceError, order_for, recurrences
from gradcli.functionals.ode.smooth_pieces import switching
from gradcli.functionals.ode.solver_progress import LEAST_SIZE
from gradcli.functionals.ode.taylor import LONGEST, MOST_DEFECT, shrinkage, tolerance_of

# From this number of problems on, arrays take less time than one problem after the other.
FEWEST = 16
# What takes more steps is left to those that test for stiffness.
_MOST_STEPS = 60

_codes: WeakKeyDictionary[System, taylor_python_code.Coefficients | None] = WeakKeyDictionary()


def solve(system: System, given: Any, times: Any, found: Any, rtol: float, atol: float) -> Any:
    """Write the states of as many problems as possible into `found`; returns whether each was solved."""
    np = arrays.numpy_namespace()
    solved = np.zeros(len(given), bool)
    code = _code(system)
    if code is None:
        return solved
    try:
        with np.errstate(all="ignore"):
            _Batch(system, code, given, times, found, rtol, atol).run(solved)
    except NoRecurrenceError:
        # Some operation is not known for arrays.
        solved[:] = False
    return solved


def _code(system: System) -> taylor_python_code.Coefficients | None:
    if system not in _codes:
        _codes[system] = None
        if not switching(system.body.program, 1 + system.states):
            with suppress(NoRecurrenceError):
                _codes[system] = taylor_python_code.array_coefficients(recurrences(system.body.program, system.states))
    return _codes[system]


class _Batch:
    """The problems that are not solved yet: `rows` are their numbers, `time` and `states` where they are."""

    def __init__(
        self,
        system: System,
        code: taylor_python_code.Coefficients,
        given: Any,
        times: Any,
        found: Any,
        rtol: float,
        atol: float,
    ) -> None:
        np = arrays.numpy_namespace()
        self.system, self.code, self.found = system, code, found
        self.tolerance = tolerance_of(rtol)
        self.order, self.share = order_for(self.tolerance), atol / rtol
        self.given, self.times = given, times
        self.has_peaks = has_peaks(system)
        self.longest = np.abs(times[:, -1]) * LONGEST
        with arrays.using_namespace(None):
            start = system.start(*given.T)
        self.rows = np.flatnonzero(np.isfinite(given).all(axis=1) & np.isfinite(times).all(axis=1))
        self.time = np.zeros(len(self.rows))
        self.states = np.array([np.broadcast_to(s, (len(given),)) for s in start], float)[:, self.rows]
        # The states at the begin are exact.
        for j in range(times.shape[1]):
            here = self.rows[times[self.rows, j] == 0]
            found[here, j] = self.states.T[np.isin(self.rows, here)]

    def run(self, solved: Any) -> None:
        np = arrays.numpy_namespace()
        at_end = self.times[self.rows, -1] == 0
        solved[self.rows[at_end]] = True
        self._keep(~at_end)
        series: Any = self._series() if len(self.rows) else None
        for _ in range(_MOST_STEPS):
            if not len(self.rows):
                return
            left = self.times[self.rows, -1] - self.time
            lengths = np.minimum(self._lengths(series), self.longest[self.rows])
            end = self.time + np.copysign(lengths, left)
            # A rounded sum of lengths may be the whole time.
            last = (lengths >= np.abs(left)) | (end == self.times[self.rows, -1])
            examined = np.flatnonzero((lengths >= self.longest[self.rows]) | last | self.has_peaks)
            hidden = np.zeros(len(left), bool)
            signed = np.copysign(np.minimum(lengths, np.abs(left)), left)
            hidden[examined] = hides_each(
                self.system,
                self.given[self.rows[examined]].T,
                self.time[examined],
                series[:, :, examined],
                signed[examined],
            )
            hidden |= become_active(self.system, self.given[self.rows].T, self.time, series, signed)
            end = np.where(last, self.times[self.rows, -1], end)
            lapse = end - self.time
            states = _at(series, lapse)
            slopes = _slope_at(series, lapse)
            self._write(series, end)
            self.time, self.states = end, states
            series = self._series()
            sizes = np.maximum(self._sizes(), np.abs(lapse * slopes))
            right = np.abs(lapse * (slopes - series[:, 1])) <= MOST_DEFECT * self.tolerance * sizes
            # What is not finite is not right.
            right = right.all(axis=0) & (lapse != 0) & ~hidden
            solved[self.rows[right & last]] = True
            series = series[:, :, right & ~last]
            self._keep(right & ~last)

    def _keep(self, kept: Any) -> None:
        self.rows, self.time, self.states = self.rows[kept], self.time[kept], self.states[:, kept]

    def _series(self) -> Any:
        """The coefficients, [states, orders, problems]."""
        np = arrays.numpy_namespace()
        limits.charge(self.states.size * self.order)
        try:
            found = self.code(self.order, self.time, *self.states, *self.given[self.rows].T)
        except (TypeError, ValueError, ArithmeticError):
            raise NoRecurrenceError from None
        series = np.empty((len(found), self.order + 1, len(self.time)))
        for i, coefficients in enumerate(found):
            for k, c in enumerate(coefficients):
                series[i, k] = c
        return series

    def _sizes(self) -> Any:
        np = arrays.numpy_namespace()
        sizes = np.abs(self.states)
        for group in self.system.groups:
            sizes[group] += self.share * sizes[group].max(axis=0)
        return np.where(sizes > 0, np.maximum(sizes, LEAST_SIZE), 0.0)

    def _lengths(self, series: Any) -> Any:
        np = arrays.numpy_namespace()
        sizes = self._sizes()
        length = self._radii(series, sizes).min(axis=0)
        for group in self.system.groups:
            empty = ~sizes[group].any(axis=0)
            if empty.any():
                lapse = np.where(np.isfinite(length), length, 1.0)
                size = np.maximum(np.abs(series[group, 1]) * lapse, np.abs(series[group, 2]) * lapse**2).max(axis=0)
                radii = self._radii(series[group], np.broadcast_to(size, (len(group), len(size)))).min(axis=0)
                length = np.where(empty, np.minimum(length, radii), length)
        return length

    def _radii(self, series: Any, sizes: Any) -> Any:
        np = arrays.numpy_namespace()
        found = []
        for j in (self.order - 1, self.order):
            c = np.abs(series[:, j])
            found.append(np.where((c > 0) & (sizes > 0), (sizes / c) ** (1 / j), np.where(np.isfinite(c), np.inf, 0.0)))
        return np.minimum(*found) * shrinkage(self.order)

    def _write(self, series: Any, end: Any) -> None:
        """Write the states at the times that the step reaches."""
        np = arrays.numpy_namespace()
        times = self.times[self.rows]
        reached = (np.abs(times) > np.abs(self.time)[:, None]) & (np.abs(times) <= np.abs(end)[:, None])
        for j in np.flatnonzero(reached.any(axis=0)):
            here = reached[:, j]
            self.found[self.rows[here], j] = _at(series[:, :, here], (times[:, j] - self.time)[here]).T


def _at(series: Any, lapse: Any) -> Any:
    total = series[:, -1]
    for k in range(series.shape[1] - 2, -1, -1):
        total = total * lapse + series[:, k]
    return total


def _slope_at(series: Any, lapse: Any) -> Any:
    last = series.shape[1] - 1
    total = last * series[:, last]
    for k in range(last - 1, 0, -1):
        total = total * lapse + k * series[:, k]
    return total
