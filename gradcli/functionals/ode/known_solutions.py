"""The solutions of initial value problems, the last of which are kept."""

from __future__ import annotations

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

# Each row of a Jacobian asks for the same solution.
_solved: dict[Hashable, Any] = {}
_MOST_KEPT, _LARGEST_KEPT = 8, 10_000
_lock = Lock()
# The factor of the tolerance of a second solution, the largest one, and the relative difference from which on states have
# few right digits.
_LARGER, _LARGEST, _FEW_DIGITS = 100.0, 0.01, 1e-6


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
    found = _solved.get(key)
    if found is None:
        with arrays.using_namespace(None):
            found = solve(system, rows, moments, **params)
            if shortfalls.is_verifying():
                _verify(found, system, rows, moments, **params)
        _keep(key, found)
    return found.copy().reshape(*lanes, times.shape[-1], system.states)


def _verify(found: Any, system: System, rows: Any, moments: Any, *, rtol: float, **params: Any) -> None:
    """Report states with few right digits, as another solution with a larger tolerance shows: neighbouring solutions part
    in chaotic systems."""
    np = arrays.numpy_namespace()
    try:
        with limits.optional_budget():
            other = solve(system, rows, moments, rtol=min(_LARGER * rtol, _LARGEST), **params)
    except EvaluationError:
        return
    apart, sizes = (np.abs(x).max(axis=-1) for x in (other - found, found))
    if (apart > max(_FEW_DIGITS, _LARGER**2 * rtol) * sizes).any():
        shortfalls.report("odeint", float(np.max(apart)))


def _proved(given: Any, times: Any, system: System) -> Any:
    """The states in balls."""
    # Imported here as few programs are computed in balls.
    from gradcli.functionals.ode import proved_trajectory

    xp = arrays.default_namespace()
    given, times = xp.asarray(given), xp.asarray(times)
    key = (system, working_precision(), given.shape, *map(proved_trajectory.key, (given, times)))
    found = _solved.get(key)
    if found is None:
        found = proved_trajectory.solve(given, times, system)
        _keep(key, found)
    return xp.copy(found)


def _keep(key: Hashable, found: Any) -> None:
    if found.size <= _LARGEST_KEPT:
        with _lock:
            _solved[key] = found
            while len(_solved) > _MOST_KEPT:
                del _solved[next(iter(_solved))]
