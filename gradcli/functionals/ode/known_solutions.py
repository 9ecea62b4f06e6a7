"""The solutions of initial value problems, the last of which are kept."""

from __future__ import annotations

import bisect
import math
from collections.abc import Hashable
from threading import Lock
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import is_exact, working_precision
from gradcli.arrays.shapes import broadcast
from gradcli.errors import EvaluationError
from gradcli.functionals import shortfalls
from gradcli.functionals.ode.ode_system import System
from gradcli.functionals.ode.solution import solve
from gradcli.named_tuples import NamedTuple


class _Known(NamedTuple):
    """The states [problems, times, states], or balls; and the estimated errors of states and of derivatives [2, problems],
    0 where they have enough digits, or None before they are estimated."""

    found: Any
    errors: Any = None


# Each row of a Jacobian asks for the same solution.
_solved: dict[Hashable, _Known] = {}
_MOST_KEPT, _LARGEST_KEPT = 8, 10_000
_lock = Lock()
# The factor of the tolerance of a second solution, the largest one, and the relative difference from which on states have
# few right digits.
_LARGER, _LARGEST, _FEW_DIGITS = 100.0, 0.01, 1e-6
# The ratio of a relative change of a state to that of a given value from which on another solution is computed.
_SUSPECT = 2.0**22
# The number of problems that are solved again first; the others are where one of these has few right digits.
_EXAMINED = 4


def solved(given: Any, times: Any, *, system: System, **params: Any) -> Any:
    """The states, of shape [..., times, states], for given values [..., given] and times [..., times]: an array of NumPy,
    or balls where digits are proved."""
    if is_exact():
        return _proved(given, times, system)
    np = arrays.numpy_namespace()
    given, times = (np.asarray(arrays.to_numpy(x), float) for x in (given, times))
    lanes = broadcast([given.shape[:-1], times.shape[:-1]])
    rows, moments = (
        np.broadcast_to(x, (*lanes, x.shape[-1])).reshape(math.prod(lanes), x.shape[-1]) for x in (given, times)
    )
    key = (system, rows.tobytes(), moments.tobytes(), *params.items())
    known = _solved.get(key)
    if known is None:
        with arrays.using_namespace(None):
            known = _keep(key, _Known(solve(system, rows, moments, **params)))
    if shortfalls.is_told():
        if known.errors is None:
            with arrays.using_namespace(None):
                known = _keep(key, known._replace(errors=_errors(known.found, system, rows, moments, **params)))
        for is_derivative, errors in enumerate(known.errors):
            shortfalls.report_each("odeint", errors.reshape(lanes), is_derivative=bool(is_derivative))
    return known.found.copy().reshape(*lanes, times.shape[-1], system.states)


def _errors(found: Any, system: System, rows: Any, moments: Any, **params: Any) -> Any:
    """The errors [2, problems] of states and derivatives, 0 where they have enough digits, as another solution with a
    larger tolerance shows: neighbouring solutions part in chaotic systems.

    Where derivatives are known, they tell for which problems this is to be examined; else it is for a few first.
    """
    np = arrays.numpy_namespace()
    # Blocks of rows are filled up with copies.
    _, index, place = np.unique(np.concatenate([rows, moments], axis=1), axis=0, return_index=True, return_inverse=True)
    errors = np.zeros((2, len(index)))

    def examine(number: int) -> bool:
        row = [index[number]]
        errors[:, number] = _differences(found[row], system, rows[row], moments[row], **params)
        return bool(errors[:, number].any())

    if system.labels:
        growth = _growth(found[index], system, rows[index])
        by_growth = np.argsort(growth)
        left = by_growth[growth[by_growth] > _SUSPECT].tolist()
        if left and examine(left[-1]):
            few = bisect.bisect_left(left, True, key=examine)
            errors[:, left[few:]] = errors[:, left[few:]].max(axis=1, keepdims=True)
    else:
        first = range(0, len(index), -(-len(index) // _EXAMINED))
        seen = [examine(number) for number in first]
        if any(seen):
            for number in {*range(len(index))} - {*first}:
                examine(number)
    return errors[:, place.ravel()]


def _growth(found: Any, system: System, rows: Any) -> Any:
    """The largest relative change of the states of each problem for one of a given value."""
    np = arrays.numpy_namespace()
    orders = np.array([len(by) for _, by in system.labels])
    first = np.flatnonzero(orders == 1)
    by = [system.labels[k][1][0] for k in first]
    sizes = np.abs(found[..., orders == 0]).max(axis=-1, initial=0.0)
    changes = np.abs(found[..., first] * rows[:, None, by]).max(axis=-1, initial=0.0)
    return np.divide(changes, sizes, out=np.zeros_like(sizes), where=sizes > 0).max(axis=-1, initial=0.0)


def _differences(found: Any, system: System, rows: Any, moments: Any, *, rtol: float, **params: Any) -> Any:
    """The differences [2] of states and of derivatives of one problem from those with a larger tolerance, where these are
    more than the tolerances explain."""
    np = arrays.numpy_namespace()
    errors = np.zeros(2)
    try:
        with limits.optional_budget():
            other = solve(system, rows, moments, rtol=min(_LARGER * rtol, _LARGEST), **params)
    except EvaluationError:
        return errors
    is_derivative = np.array([bool(by) for _, by in system.labels] or [False] * system.states)
    for k, part in enumerate((~is_derivative, is_derivative)):
        if part.any():
            apart, sizes = (np.abs(x[..., part]).max(axis=-1) for x in (other - found, found))
            errors[k] = np.where(apart > max(_FEW_DIGITS, _LARGER**2 * rtol) * sizes, apart, 0.0).max()
    return errors


def _proved(given: Any, times: Any, system: System) -> Any:
    """The states in balls."""
    # Imported here as few programs are computed in balls.
    from gradcli.functionals.ode import proved_trajectory

    xp = arrays.default_namespace()
    given, times = xp.asarray(given), xp.asarray(times)
    key = (system, working_precision(), given.shape, *map(proved_trajectory.key, (given, times)))
    known = _solved.get(key) or _keep(key, _Known(proved_trajectory.solve(given, times, system)))
    return xp.copy(known.found)


def _keep(key: Hashable, known: _Known) -> _Known:
    if known.found.size <= _LARGEST_KEPT:
        with _lock:
            _solved[key] = known
            while len(_solved) > _MOST_KEPT:
                del _solved[next(iter(_solved))]
    return known
