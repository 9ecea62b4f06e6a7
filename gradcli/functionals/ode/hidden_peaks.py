"""Whether a right side may have a peak within a step that the series at its begin does not know of, by bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.functionals.body import Body
from gradcli.functionals.ode.progress import Problem
from gradcli.functionals.ode.system import System
from gradcli.functionals.ranges import Range, UnboundedError, ranges
from gradcli.primitives.entries import arithmetic, powers

# A slope that could exceed those of the series by this multiple may hide a peak, if it would change a state by more than
# this part of its size.
_LEAVING, _HIDDEN = 10.0, 1e-6
# The places in a step at which the series is evaluated.
_PLACES = 9


def hides(problem: Problem, time: float, series: Sequence[Sequence[float]], lapse: float) -> bool:
    """Whether a step from a time may step over a peak of the right side."""
    np = arrays.numpy_namespace()
    if is_polynomial(problem.system):
        return False
    given = np.array(problem.given)[:, None]
    found = hides_each(problem.system, given, np.array([time]), np.array(series)[:, :, None], np.array([lapse]))
    return bool(found[0])


def hides_each(system: System, given: Any, times: Any, series: Any, lapses: Any) -> Any:
    """The same for many problems, by the last axis; `series` is of shape [states, orders, problems]."""
    np = arrays.numpy_namespace()
    base = system.base or system
    if is_polynomial(system):
        return np.zeros(len(times), bool)
    orders = np.arange(series.shape[1])
    places = np.linspace(0.0, 1.0, _PLACES)[:, None, None]
    # [places, orders, problems]
    powers = (places * lapses) ** orders[:, None]
    coefficients = series[: base.states, None]
    states = (coefficients * powers).sum(axis=2)
    slopes = (coefficients[:, :, 1:] * orders[1:, None] * powers[:, :-1]).sum(axis=2)
    ends = Range(np.minimum(times, times + lapses), np.maximum(times, times + lapses))
    inputs = [ends, *map(Range, states.min(axis=1), states.max(axis=1)), *(Range(g, g) for g in given)]
    try:
        with arrays.using_namespace(None):
            bounds = ranges(base.body.program, inputs)[: base.states]
    except UnboundedError:
        return np.zeros(len(times), bool)
    found = np.zeros(len(times), bool)
    for (least, most), slope, size in zip(bounds, slopes, np.abs(states).max(axis=1)):
        beyond = np.maximum(most - slope.max(axis=0), slope.min(axis=0) - least)
        leaves = (beyond > _LEAVING * np.abs(slope).max(axis=0)) & (beyond * np.abs(lapses) > _HIDDEN * size)
        found |= leaves & np.isfinite(beyond)
    return found


_polynomials: WeakKeyDictionary[Body, bool] = WeakKeyDictionary()


def is_polynomial(system: System) -> bool:
    """Whether a right side computes polynomials, which have no narrow peaks."""
    body = (system.base or system).body
    found = _polynomials.get(body)
    if found is None:
        found = all(
            e.primitive in _POLYNOMIAL or (e.primitive is powers.whole_power and e.params["n"] >= 0)
            for e in body.program.equations
        )
        _polynomials[body] = found
    return found


_POLYNOMIAL = frozenset({arithmetic.add, arithmetic.subtract, arithmetic.negative, arithmetic.multiply})
