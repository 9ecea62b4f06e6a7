"""The primitive of one state of a solution at one time, as a function of numbers, for functions inside functionals.

`state_at_time(*times, *given, system=System, times=…, number=(…, …), …)` is a state, by its number, at one of the times,
by its number. The operands are broadcast, and each element is a problem of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.arrays.mathematical_constants import is_exact
from gradcli.functionals.body import coefficient_operands, of_each, stacked_balls
from gradcli.functionals.ode.known_solutions import solved
from gradcli.functionals.ode.ode_system import System
from gradcli.kinds.jets import Jet
from gradcli.primitives.bind import bind
from gradcli.primitives.families import elementwise
from gradcli.primitives.jet_rules import from_derivative
from gradcli.primitives.primitive import Primitive

# The number of a time, and that of a state.
Number = tuple[int, int]

# The cost of a solution, in array elements.
_TIME = 400


def _computed(_xp: Any, *operands: Any, times: int, number: Number, **params: Any) -> Any:
    if is_exact():
        given = stacked_balls(operands)
        return solved(given[..., times:], given[..., :times], **params)[..., *number]
    return of_each(operands, lambda rows: solved(rows[:, times:], rows[:, :times], **params)[:, *number])


def _pulled_back(
    i: int, g: Any, y: Any, *operands: Any, system: System, times: int, number: Number, **params: Any
) -> Any:
    moment, state = number
    if i >= times:
        derivatives, column = system.sensitivities
        return g * _state(operands, derivatives, times, (moment, column[i - times][state]), params)
    # All lapses begin at the first time.
    sign = (i == moment) - (i == 0)
    if not sign:
        return 0.0 * g
    moments, given = operands[:times], operands[times:]
    states = [y if k == state else _state(operands, system, times, (moment, k), params) for k in range(system.states)]
    return sign * g * system.body(moments[moment] - moments[0], *states, *given)[state]


def _state(operands: Sequence[Any], system: System, times: int, number: Number, params: Any) -> Any:
    return bind(state_at_time, operands, {"system": system, "times": times, "number": number, **params})


def _coefficients(
    primitive: Primitive, y: Jet, *operands: Jet, system: System, times: int, number: Number, **params: Any
) -> Iterator[Any]:
    """The coefficients at fixed times, which are states of the system of series."""
    moments, given = operands[:times], operands[times:]
    if any(o.is_growing for o in operands) or any(t.degree for t in moments):
        known = {"system": system, "times": times, "number": number, **params}
        yield from from_derivative(primitive, y, *operands, **known)
        return
    moment, state = number
    for order in itertools.count(1):
        inner = [*(t.inner for t in moments), *coefficient_operands(given, order)]
        yield _state(inner, system.series(order), times, (moment, order * system.states + state), params)


state_at_time = elementwise(
    "state_at_time", "times, given, system, method, rtol, atol, breaks, number", "a state of a system at a time",
    internal="odeint",
    forward=_computed,
    vjp=_pulled_back,
    variadic=True,
    jet=_coefficients,
    endless=True,
    time=_TIME,
    fails=True,
    derivative="the solution of the variational equations, and the right side",
)  # fmt: skip
