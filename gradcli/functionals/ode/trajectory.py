"""The primitive of initial value problems, whose derivatives solve the variational equations.

`trajectory(given, times, system=System, method=…, rtol=…, atol=…, breaks=…)` has the states of a system at some times,
the first of which is its start: `given` of shape [..., given values] and `times`, of shape [..., times] and in
ascending or descending order, give a result of shape [..., times, states]. Axes before the last one are independent
problems, and are broadcast.

Functions inside functionals have numbers: `state_at_time(*times, *given, system=System, times=…, number=(…, …), …)` is
a state, by its number, at one of the times, by its number. The operands are broadcast, and each element is a problem of
its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.errors import EvaluationError
from gradcli.functionals.body import coefficient_operands, of_each, stacked_balls
from gradcli.functionals.ode.adjoint import cotangents, has_adjoint
from gradcli.functionals.ode.known_solutions import solved
from gradcli.functionals.ode.ode_system import System
from gradcli.kinds.jets import Jet
from gradcli.loops.part import part
from gradcli.primitives.bind import bind
from gradcli.primitives.conversions import broadcast_to, reshaped
from gradcli.primitives.entries.arithmetic import zeros_like
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.entries.shape import concat, stack
from gradcli.primitives.families import elementwise
from gradcli.primitives.jet_rules import from_derivative
from gradcli.primitives.primitive import Elements, Primitive

# The cost of a state at an output time, in array elements.
_TIME = 400
# From more given values than this on, for each number that is differentiated, adjoint equations cost less.
_MANY = 16
# Up to this number of given values, derivatives along one direction are those along all of them.
_FEW = 8


def _computed(xp: Any, given: Any, times: Any, *, adjoint: bool | None = None, **params: Any) -> Any:
    return xp.asarray(solved(given, times, **params))


def _by_given(
    g: Any, y: Any, given: Any, times: Any, *, system: System, adjoint: bool | None = None, **params: Any
) -> Any:
    known = {"system": system, **params} | ({} if adjoint is None else {"adjoint": adjoint})
    if _is_by_adjoint(system, math.prod(arrays.shape(g)[:-2]), adjoint):
        found = bind(given_cotangents, (g, given, times), known)
    else:
        found = _by_variations(g, given, times, **known)
    return _summed_to(found, arrays.shape(given))


def _is_by_adjoint(system: System, rows: int, adjoint: bool | None) -> bool:
    """Return whether adjoint equations give the derivatives of `rows` numbers by what a system is given."""
    if is_exact() or adjoint is False or not (adjoint or system.given > _MANY * rows):
        return False
    if has_adjoint(system):
        return True
    if adjoint:
        raise EvaluationError("adjoint= is for right sides that bend and jump nowhere", hint="leave it out")
    return False


def _by_variations(g: Any, given: Any, times: Any, *, system: System, **params: Any) -> Any:
    """The cotangents of what is given, [..., given], by the variational equations."""
    derivatives, column = system.sensitivities
    found = _slopes(bind(trajectory, (given, times), {"system": derivatives, **params}), column)
    shape = arrays.shape(found)
    return sum_(found * reshaped(g, (*arrays.shape(g)[:-1], 1, shape[-1])), (-3, -1))


def _slopes(found: Any, column: Sequence[Sequence[int]]) -> Any:
    """The derivatives [..., times, given values, states] from the states of the variational equations."""
    flat = [c for columns in column for c in columns]
    taken = index(found, (..., arrays.numpy_namespace().array(flat, int)))
    return reshaped(taken, (*arrays.shape(found)[:-1], len(column), len(column[0])))


def _by_times(g: Any, y: Any, given: Any, times: Any, *, system: System, **_params: Any) -> Any:
    cotangents = sum_(g * _rates(y, given, times, system), -1)
    # All lapses begin at the first time.
    first = part(cotangents, (..., slice(0, 1))) - sum_(cotangents, -1, keepdims=True)
    return _summed_to(concat([first, part(cotangents, (..., slice(1, None)))], -1), arrays.shape(times))


def _rates(y: Any, given: Any, times: Any, system: System) -> Any:
    """The right side at the states `y`, of shape [..., times, states]."""
    shape = arrays.shape(y)[:-1]
    states = [part(y, (..., i)) for i in range(system.states)]
    reads = [part(given, (..., slice(k, k + 1))) for k in range(system.given)]
    lapses = times - part(times, (..., slice(0, 1)))
    return stack([broadcast_to(r, shape) for r in system.body(lapses, *states, *reads)], -1)


def _summed_to(x: Any, shape: Shape) -> Any:
    """`x` summed over the axes along which an operand of this shape was broadcast."""
    extra = len(arrays.shape(x)) - len(shape)
    if extra:
        x = sum_(x, tuple(range(extra)))
    wide = tuple(i for i, (a, b) in enumerate(zip(arrays.shape(x), shape)) if a != b)
    return reshaped(sum_(x, wide), shape) if wide else x


def _coefficients(
    _primitive: Primitive, y: Jet, given: Jet, times: Jet, *, system: System, **params: Any
) -> Iterator[Any]:
    if times.is_growing or times.degree:
        yield from _along_times(y, given, times, system, params)
        return
    if given.is_growing:
        for order in itertools.count(1):
            yield _series(given, times, order, system, params)[order]
    yield from _series(given, times, y.order, system, params)[1:]
    yield from itertools.repeat(None)


def _series(given: Jet, times: Jet, order: int, system: System, params: Mapping[str, Any]) -> list[Any]:
    """The coefficients of the states from 0 to `order`, at fixed times."""
    if order == 1 and system.given <= _FEW:
        return _first_order(given, times, system, params)
    operands = concat([given.dense_coefficient(k) for k in range(order + 1)], -1)
    found = bind(trajectory, (operands, times.inner), {"system": system.series(order), **params})
    n = system.states
    return [part(found, (..., slice(k * n, (k + 1) * n))) for k in range(order + 1)]


def _first_order(given: Jet, times: Jet, system: System, params: Mapping[str, Any]) -> list[Any]:
    """The coefficients of order 0 and 1 from the derivatives by all given values, which other directions have, too."""
    derivatives, column = system.sensitivities
    found = bind(trajectory, (given.inner, times.inner), {"system": derivatives, **params})
    tangent = given.dense_coefficient(1)
    slopes = _slopes(found, column) * reshaped(tangent, (*arrays.shape(tangent)[:-1], 1, system.given, 1))
    return [part(found, (..., slice(0, system.states))), sum_(slopes, -2)]


def _along_times(y: Jet, given: Jet, times: Jet, system: System, params: Mapping[str, Any]) -> Iterator[Any]:
    """The coefficients from those of the derivative along the curve, a series of one order less."""
    for order in itertools.count(1):
        shorter = [Jet([x.coefficient(k) for k in range(order)], order - 1) for x in (given, times)]
        ahead = [Jet([x.dense_coefficient(k) * k for k in range(1, order + 1)], order - 1) for x in (given, times)]
        derivatives, column = system.sensitivities
        found = bind(trajectory, shorter, {"system": derivatives, **params})
        states = part(found, (..., slice(0, system.states)))
        rate = _rates(states, shorter[0], shorter[1], system)
        rate = rate * _with_axis(ahead[1] - part(ahead[1], (..., slice(0, 1))))
        if system.given:
            to_given = reshaped(ahead[0], (*ahead[0].shape[:-1], 1, system.given, 1))
            rate = rate + sum_(_slopes(found, column) * to_given, -2)
        yield rate.coefficient(order - 1) * (1 / order)


def _with_axis(x: Any) -> Any:
    return reshaped(x, (*arrays.shape(x), 1))


def _batched(_primitive: Primitive, operands: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """The rows of a batch are independent problems."""
    rank = max(len(arrays.shape(o)) - b for o, b in zip(operands, batched))
    return bind(trajectory, [_aligned(o, rank) if b else o for o, b in zip(operands, batched)], params)


def _aligned(x: Any, rank: int) -> Any:
    rows, *rest = arrays.shape(x)
    return reshaped(x, (rows, *[1] * (rank - len(rest)), *rest))


def _shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    system: System = params["system"]
    return (*broadcast([s[:-1] for s in shapes]), shapes[1][-1], system.states)


def _elements(shapes: Sequence[Shape], params: Mapping[str, Any]) -> int:
    count = _TIME
    for size in _shape(shapes, params):
        count *= size
    return count


def _by_element(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Elements | None:
    """The states of one problem, each as a function of the times and of what is given."""
    if any(len(shape) > 1 for shape in shapes):
        return None
    (given,), (times,) = shapes
    places = [*((1, k) for k in range(times)), *((0, k) for k in range(given))]
    states, known = params["system"].states, {k: v for k, v in params.items() if k != "adjoint"}
    return [
        (state_at_time, places, {**known, "times": times, "number": (moment, state)})
        for moment in range(times)
        for state in range(states)
    ]


# --- cotangents of what is given


def _cotangents(
    xp: Any, g: Any, given: Any, times: Any, *, system: System, adjoint: bool | None = None, **params: Any
) -> Any:
    np = arrays.numpy_namespace()
    g, given, times = (np.asarray(arrays.to_numpy(x), float) for x in (g, given, times))
    lanes = broadcast([g.shape[:-2], given.shape[:-1], times.shape[:-1]])
    problems = [
        np.broadcast_to(x, (*lanes, *x.shape[x.ndim - own :])).reshape(-1, *x.shape[x.ndim - own :])
        for x, own in ((g, 2), (given, 1), (times, 1))
    ]
    found = []
    for outer, values, moments in zip(*problems):
        one = cotangents(system, values, moments, outer, **params)
        found.append(_by_variations(outer, values, moments, system=system, **params) if one is None else one)
    return xp.asarray(np.array(found).reshape(*lanes, given.shape[-1]))


def _with_direction(g: Any, given: Any, h: Any) -> tuple[Any, Any]:
    """The operands of cotangents along a series of order 1 with the coefficient `h`, from that of its coefficient of
    order 1."""
    given, h = _same_lanes(given, h)
    return concat([zeros_like(g), g], -1), concat([given, h], -1)


def _same_lanes(x: Any, y: Any) -> tuple[Any, Any]:
    lanes = broadcast([arrays.shape(x)[:-1], arrays.shape(y)[:-1]])
    return broadcast_to(x, (*lanes, arrays.shape(x)[-1])), broadcast_to(y, (*lanes, arrays.shape(y)[-1]))


def _by_cotangents(h: Any, _found: Any, g: Any, given: Any, times: Any, *, system: System, **params: Any) -> Any:
    _, operands = _with_direction(g, given, h)
    found = bind(trajectory, (operands, times), {"system": system.series(1), **params})
    return _summed_to(part(found, (..., slice(system.states, None))), arrays.shape(g))


def _twice_by_given(h: Any, _found: Any, g: Any, given: Any, times: Any, *, system: System, **params: Any) -> Any:
    outer, operands = _with_direction(g, given, h)
    found = bind(given_cotangents, (outer, operands, times), {"system": system.series(1), **params})
    return _summed_to(part(found, (..., slice(0, system.given))), arrays.shape(given))


def _cotangents_by_times(h: Any, _found: Any, g: Any, given: Any, times: Any, *, system: System, **params: Any) -> Any:
    outer, operands = _with_direction(g, given, h)
    series = system.series(1)
    y = bind(trajectory, (operands, times), {"system": series, **params})
    return _by_times(outer, y, operands, times, system=series)


def _coefficients_of_cotangents(
    _primitive: Primitive, made: Jet, g: Jet, given: Jet, times: Jet, *, system: System, **params: Any
) -> Iterator[Any]:
    """Coefficient k is the cotangent of the coefficients of order 0, where that of states of order j is the coefficient
    k - j of the outer one."""
    if times.is_growing or times.degree or g.is_growing or given.is_growing:
        found = made.lift(_by_variations(g, given, times, system=system, **params))
        yield from map(found.coefficient, itertools.count(1))
        return
    for order in itertools.count(1):
        operands = concat([given.dense_coefficient(k) for k in range(order + 1)], -1)
        outer = concat([g.dense_coefficient(order - j) for j in range(order + 1)], -1)
        found = bind(given_cotangents, (outer, operands, times.inner), {"system": system.series(order), **params})
        yield part(found, (..., slice(0, system.given)))


def _batched_cotangents(
    _primitive: Primitive, operands: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]
) -> Any:
    """The rows of a batch are independent problems."""
    own = (1, 0, 0)
    rank = max(len(arrays.shape(o)) - b - k for o, b, k in zip(operands, batched, own))
    aligned = [_aligned(o, rank + k) if b else o for o, b, k in zip(operands, batched, own)]
    return bind(given_cotangents, aligned, params)


def _cotangents_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    system: System = params["system"]
    return (*broadcast([shapes[0][:-2], shapes[1][:-1], shapes[2][:-1]]), system.given)


given_cotangents = Primitive(
    "given_cotangents", "g, given, times, system, method, rtol, atol, breaks, adjoint",
    "the cotangents of what a system of differential equations is given",
    internal="odeint",
    forward=_cotangents,
    vjp=(_by_cotangents, _twice_by_given, _cotangents_by_times),
    jet=_coefficients_of_cotangents,
    batch=_batched_cotangents,
    result_shape=_cotangents_shape,
    time=_TIME,
    fails=True,
    derivative="that of the variational equations",
)  # fmt: skip

trajectory = Primitive(
    "trajectory", "given, times, system, method, rtol, atol, breaks, adjoint", "the states of a system of differential equations",
    internal="odeint",
    forward=_computed,
    by_element=_by_element,
    vjp=(_by_given, _by_times),
    jet=_coefficients,
    batch=_batched,
    elements=_elements,
    result_shape=_shape,
    fails=True,
    derivative="the solution of the variational equations, and the right side",
)  # fmt: skip


# The number of a time, and that of a state.
Number = tuple[int, int]


def _computed_state(_xp: Any, *operands: Any, times: int, number: Number, **params: Any) -> Any:
    if is_exact():
        given = stacked_balls(operands)
        return solved(given[..., times:], given[..., :times], **params)[..., *number]
    return of_each(operands, lambda rows: solved(rows[:, times:], rows[:, :times], **params)[:, *number])


def _pulled_back_state(
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


def _coefficients_of_state(
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
    forward=_computed_state,
    vjp=_pulled_back_state,
    variadic=True,
    jet=_coefficients_of_state,
    endless=True,
    time=_TIME,
    fails=True,
    derivative="the solution of the variational equations, and the right side",
)  # fmt: skip
