"""The solutions of initial value problems, the last of which are kept."""

from __future__ import annotations

import math
from collections.abc import Hashable
from threading import Lock
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact, working_precision
from gradcli.arrays.shapes import broadcast
from gradcli.functionals.ode.ode_system import System
from gradcli.functionals.ode.solution import solve

# Each row of a Jacobian asks for the same solution.
_solved: dict[Hashable, Any] = {}
_MOST_KEPT, _LARGEST_KEPT = 8, 10_000
_lock = Lock()


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
        _keep(key, found)
    return found.copy().reshape(*lanes, times.shape[-1], system.states)


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
