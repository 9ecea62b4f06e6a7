"""`scipy.integrate` with a differentiable `odeint`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from scipy import integrate as _integrate

from gradcli import numpy as np
from gradcli.calculus.functions.custom_rules import Rule
from gradcli.calculus.functions.differential_operators import as_array, make_vjp
from gradcli.calculus.functions.pytrees import mapped
from gradcli.misc.flatten import flatten
from gradcli.numpy.dispatch import has_tensors


@functools.wraps(_integrate.odeint)
def odeint(func: Callable[..., Any], y0: Any, t: Any, args: tuple[Any, ...] = (), **options: Any) -> Any:
    if not has_tensors((y0, t, args)):
        return _integrate.odeint(func, y0, t, args, **options)

    def run(*given: Any) -> Any:
        start, times, parameters = (mapped(as_array, x) for x in given)
        return _integrate.odeint(func, start, times, parameters, **options)

    def pull(given: tuple[Any, ...], states: Any, g: Any) -> tuple[Any, ...]:
        return _adjoint(func, options, given, states, g)

    return Rule(run, pull, (y0, t, tuple(args))).applied()


def _adjoint(
    func: Callable[..., Any], options: dict[str, Any], given: tuple[Any, ...], states: Any, g: Any
) -> tuple[Any, ...]:
    """The cotangents of the initial state, the times and the parameters, by an adjoint equation solved backward in time
    (Pontryagin and others, 1962)."""
    _, times, parameters = given
    vector, unflatten = flatten(parameters)
    size = states.shape[1]

    def slope(y: Any, t: Any, v: Any) -> Any:
        return np.asarray(func(y, t, *unflatten(v)))

    def backward(state: Any, t: Any, v: Any) -> Any:
        pull, velocity = make_vjp(lambda one: slope(one[0], one[1], one[2]))((state[:size], t, v))
        of_y, _, of_v = pull(-state[size : 2 * size])
        return np.concatenate([velocity, of_y, of_v])

    cotangent, of_vector = g[-1], 0.0 * vector
    of_times: list[Any] = []
    for i in range(len(times) - 1, 0, -1):
        of_time = np.dot(slope(states[i], times[i], vector), g[i])
        of_times.append(of_time)
        start = np.concatenate([states[i], cotangent, of_vector])
        end = odeint(backward, start, np.array([times[i], times[i - 1]]), (vector,), **options)[1]
        cotangent, of_vector = end[size : 2 * size] + g[i - 1], end[2 * size :]
    # The derivative by the initial time, which shifts all later states: minus the slope at the start.
    of_times.append(-np.dot(slope(states[0], times[0], vector), cotangent - g[0]))
    return cotangent, np.array(of_times[::-1]), unflatten(of_vector)


def __getattr__(name: str) -> Any:
    return getattr(_integrate, name)


def __dir__() -> list[str]:
    return dir(_integrate)
