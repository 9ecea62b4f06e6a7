"""The primitive of initial value problems, whose derivatives solve the variational equations.

`trajectory(given, times, system=System, method=…, rtol=…, atol=…, breaks=…)` has the states of a system at some times,
the first of which is its start: `given` of shape [..., given values] and `times`, of shape [..., times] and in ascending
or descending order, give a result of shape [..., times, states]. Axes before the last one are independent problems, and
are broadcast.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.functionals.ode.known_solutions import solved
from gradcli.functionals.ode.state_at_time import state_at_time
from gradcli.functionals.ode.system import System
from gradcli.kinds.jets import Jet
from gradcli.loops.loop_primitive import part
from gradcli.primitives.bind import bind
from gradcli.primitives.conversions import broadcast_to, reshaped
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.entries.shape import concat, stack
from gradcli.primitives.primitive import Elements, Primitive

# The cost of a state at an output time, in array elements.
_TIME = 400
# Up to this number of given values, derivatives along one direction are those along all of them.
_FEW = 8


def _computed(xp: Any, given: Any, times: Any, **params: Any) -> Any:
    return xp.asarray(solved(given, times, **params))


def _by_given(g: Any, y: Any, given: Any, times: Any, *, system: System, **params: Any) -> Any:
    derivatives, column = system.sensitivities
    found = _slopes(bind(trajectory, (given, times), {"system": derivatives, **params}), column)
    shape = arrays.shape(found)
    cotangents = sum_(found * reshaped(g, (*arrays.shape(g)[:-1], 1, shape[-1])), (-3, -1))
    return _summed_to(cotangents, arrays.shape(given))


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
    operands = concat([given.zeros() if c is None else c for c in map(given.coefficient, range(order + 1))], -1)
    found = bind(trajectory, (operands, times.inner), {"system": system.series(order), **params})
    n = system.states
    return [part(found, (..., slice(k * n, (k + 1) * n))) for k in range(order + 1)]


def _first_order(given: Jet, times: Jet, system: System, params: Mapping[str, Any]) -> list[Any]:
    """The coefficients of order 0 and 1 from the derivatives by all given values, which other directions have, too."""
    derivatives, column = system.sensitivities
    found = bind(trajectory, (given.inner, times.inner), {"system": derivatives, **params})
    tangent = _or_zero(given, 1)
    slopes = _slopes(found, column) * reshaped(tangent, (*arrays.shape(tangent)[:-1], 1, system.given, 1))
    return [part(found, (..., slice(0, system.states))), sum_(slopes, -2)]


def _along_times(y: Jet, given: Jet, times: Jet, system: System, params: Mapping[str, Any]) -> Iterator[Any]:
    """The coefficients from those of the derivative along the curve, a series of one order less."""
    for order in itertools.count(1):
        shorter = [Jet([x.coefficient(k) for k in range(order)], order - 1) for x in (given, times)]
        ahead = [Jet([_or_zero(x, k) * k for k in range(1, order + 1)], order - 1) for x in (given, times)]
        derivatives, column = system.sensitivities
        found = bind(trajectory, shorter, {"system": derivatives, **params})
        states = part(found, (..., slice(0, system.states)))
        rate = _rates(states, shorter[0], shorter[1], system)
        rate = rate * _with_axis(ahead[1] - part(ahead[1], (..., slice(0, 1))))
        if system.given:
            to_given = reshaped(ahead[0], (*ahead[0].shape[:-1], 1, system.given, 1))
            rate = rate + sum_(_slopes(found, column) * to_given, -2)
        yield rate.coefficient(order - 1) * (1 / order)


def _or_zero(x: Jet, k: int) -> Any:
    c = x.coefficient(k)
    return x.zeros() if c is None else c


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
    states = params["system"].states
    return [
        (state_at_time, places, {**params, "times": times, "number": (moment, state)})
        for moment in range(times)
        for state in range(states)
    ]


trajectory = Primitive(
    "trajectory", "given, times, system, method, rtol, atol, breaks", "the states of a system of differential equations",
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
